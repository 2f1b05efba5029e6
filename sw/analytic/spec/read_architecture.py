"""The section ``architecture``: a tree of containers and components, in dialect v0.3 or v0.4."""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import floor
from typing import Any

from ..architecture import Architecture, Compute, Storage
from ..conventions import V03, V04
from .document import TAG, Document, Steps
from .fields import Count, Flag, Name, Number, Section, validated
from .read_tables import Tables

__all__ = ["Component", "components", "is_new_dialect", "read_architecture"]

RANGE = re.compile(r"^(?P<name>[^\[\]]+)(\[(?P<first>\d+)\.\.(?P<last>\d+)\])?$")
WORD_BITS = 16
# Attributes that only estimators of energy and area read.
ESTIMATORS = (
    "adder_width", "avg_sparsity", "control_queue_depth", "global_cycle_seconds", "has_power_gating", "latency",
    "metadata_counter_width", "metadata_n_banks", "multiplier_width", "n_banks", "n_ports", "n_rd_ports", "n_rdwr_ports",
    "n_wr_ports", "num_banks", "num_ports", "power_gated_at", "technology", "type", "version", "voltage",
)  # fmt: skip


class _Attributes(Section):
    """What the analysis reads of a component. Names in one line are one attribute."""

    entries: Count | None = None
    depth: Count | None = None
    memory_depth: Count | None = None
    data_storage_depth: Count | None = None
    sizeKB: Number | None = None
    width: Count | None = None
    memory_width: Count | None = None
    data_storage_width: Count | None = None
    datawidth: Count | None = None
    word_bits: Count | None = None
    block_size: Count | None = None
    n_words: Count | None = None
    cluster_size: Count | None = None
    instances: Count | None = None
    meshX: Count | None = None
    meshY: Count | None = None
    bandwidth: Number | None = None
    read_bandwidth: Number | None = None
    write_bandwidth: Number | None = None
    shared_bandwidth: Number | None = None
    metadata_storage_depth: Count | None = None
    metadata_storage_width: Count | None = None
    metadata_datawidth: Count | None = None
    metadata_word_bits: Count | None = None
    metadata_block_size: Count | None = None
    multiple_buffering: Number = 1.0
    min_utilization: Number = 0.0
    allow_overbooking: Flag = False
    overbooks: Name | None = None
    fifo_words: Count = 0
    compression_supported: Flag = False
    decompression_supported: Flag = False
    tile_partition_supported: Flag = False
    concordant_compressed_tile_traversal: Flag = False
    reduction_supported: Flag = True
    vector_access_energy: Number | None = None


@dataclass(frozen=True)
class Component:
    """A component of the tree, outer ones first. is_spatial: only a container's copies side by side."""

    name: str
    path: str
    kind: str
    instances: int
    steps: Steps
    attributes: Mapping[str, Any]
    content: Mapping[str, Any]
    mesh: tuple[int, int] | None = None
    is_spatial: bool = False


@dataclass
class _Walk:
    """State of the way through a v0.4 tree: copies so far, along x and y."""

    x: int = 1
    y: int = 1
    found: list[Component] = field(default_factory=list)


class _Spatial(Section):
    meshX: Count = 1
    meshY: Count = 1
    meshZ: Count = 1


class _Node(Section):
    """A container or component of dialect v0.4."""

    name: Any = None
    class_: Any = None
    subclass: Any = None
    attributes: dict[str, Any] | None = None
    spatial: _Spatial | None = None
    sparse_optimizations: Any = None
    constraints: Any = None
    nodes: list[Any] | None = None
    required_actions: Any = None
    enabled: Any = None


class _Tree(Section):
    """A container of dialect v0.3."""

    name: Any = None
    attributes: dict[str, Any] | None = None
    local: list[dict[str, Any]] | None = None
    subtree: list[Any] | None = None


class _Local(Section):
    """A component of dialect v0.3."""

    name: Any = None
    class_: Any = None
    subclass: Any = None
    attributes: dict[str, Any] | None = None
    required_actions: Any = None
    enabled: Any = None


def is_new_dialect(document: Document) -> bool:
    """Whether the architecture is written in dialect v0.4."""
    content = document.require("architecture")
    return isinstance(content, dict) and ("nodes" in content or str(content.get("version")) == "0.4")


def components(document: Document, names: Mapping[str, Any]) -> list[Component]:
    """Components of the tree, outermost first. Raises SpecError."""
    content = document.require("architecture")
    if not isinstance(content, dict):
        raise document.error(("architecture",), "must be a mapping with subtree or nodes", content)
    for key in content:
        if key not in ("version", "subtree", "nodes", "name", "attributes", "local"):
            raise document.error(
                ("architecture", key), "no such key: must be one of version, subtree, nodes", content[key]
            )
    found = list(_of_nodes(document, content, names)) if "nodes" in content else list(_of_tree(document, content))
    seen: dict[str, Component] = {}
    for each in found:
        if each.name in seen and not (each.is_spatial or seen[each.name].is_spatial):
            raise document.error((*each.steps, "name"), "must be a name of its own", each.name)
        seen[each.name] = each
    if not found:
        raise document.error(("architecture",), "must have components")
    return found


def _range(document: Document, steps: Steps, name: Any) -> tuple[str, int]:
    """``name[0..n]``: n + 1 copies."""
    match = RANGE.match(str(name)) if name is not None else None
    if match is None or int(match["last"] or 0) < int(match["first"] or 0):
        raise document.error((*steps, "name"), "must be a name or name[0..n]", name)
    return match["name"], int(match["last"] or 0) - int(match["first"] or 0) + 1


def _renamed(content: Any) -> Any:
    """``class`` is no name for a field."""
    if not isinstance(content, dict):
        return content
    return {("class_" if key == "class" else key): value for key, value in content.items() if key != TAG}


def _of_tree(document: Document, content: Mapping[str, Any]) -> Iterator[Component]:
    def walk(entries: Any, steps: Steps, path: str, copies: int) -> Iterator[Component]:
        if not isinstance(entries, list) or len(entries) != 1:
            raise document.error(steps, "must be a list of one container")
        here = (*steps, 0)
        tree = validated(_Tree, _renamed(entries[0]), document, here)
        name, count = _range(document, here, tree.name)
        path, copies = f"{path}{tree.name}.", copies * count
        for number, local in enumerate(tree.local or []):
            where = (*here, "local", number)
            found = validated(_Local, _renamed(local), document, where)
            own, more = _range(document, where, found.name)
            if found.class_ is None:
                raise document.error((*where, "class"), "is missing")
            yield Component(
                own, path + str(found.name), str(found.class_), copies * more, where, found.attributes or {}, local
            )
        if tree.subtree:
            yield from walk(tree.subtree, (*here, "subtree"), path, copies)

    yield from walk(content.get("subtree"), ("architecture", "subtree"), "", 1)


def _of_nodes(document: Document, content: Mapping[str, Any], names: Mapping[str, Any]) -> Iterator[Component]:
    state = _Walk()

    def walk(nodes: Any, steps: Steps) -> None:
        if not isinstance(nodes, list):
            raise document.error(steps, "must be a list of nodes", nodes)
        for number, node in enumerate(nodes):
            here = (*steps, number)
            kind = node.get(TAG) if isinstance(node, dict) else None
            if kind not in ("Component", "Container", "Hierarchical", "Parallel", "Pipelined"):
                raise document.error(here, "must be !Component, !Container, !Hierarchical or !Parallel", kind)
            found = validated(_Node, _renamed(node), document, here, names)
            if kind in ("Hierarchical", "Parallel", "Pipelined"):
                walk(found.nodes or [], (*here, "nodes"))
                continue
            name, count = _range(document, here, found.name)
            spatial = found.spatial or _Spatial()
            for side in ("meshX", "meshY"):
                if getattr(spatial, side) < 1:
                    raise document.error((*here, "spatial", side), "must be at least 1", getattr(spatial, side))
            if spatial.meshZ != 1:
                raise document.error((*here, "spatial", "meshZ"), "must be 1", spatial.meshZ)
            if kind == "Component" and found.class_ is None:
                raise document.error((*here, "class"), "is missing")
            if spatial.meshX * spatial.meshY * count > 1 or kind == "Container" and found.spatial is not None:
                state.x, state.y = state.x * spatial.meshX * count, state.y * spatial.meshY
                state.found.append(
                    Component(name, name, "spatial", state.x * state.y, here, {}, node, (state.x, state.y), True)
                )
            if kind == "Component":
                state.found.append(
                    Component(
                        name,
                        name,
                        str(found.class_),
                        state.x * state.y,
                        here,
                        found.attributes or {},
                        node,
                        (state.x, state.y),
                    )  # fmt: skip
                )

    walk(content["nodes"], ("architecture", "nodes"))
    yield from state.found


def _is_compute(component: Component) -> bool:
    kind = component.kind.lower()
    return not component.is_spatial and ("mac" in kind or "compute" in kind)


def read_architecture(
    document: Document, found: list[Component], tables: Tables, names: Mapping[str, Any], notes: list[str]
) -> Architecture:
    """Raises SpecError."""
    computes = [each for each in found if _is_compute(each)]
    if len(computes) != 1 or found[-1] is not computes[0]:
        known = ", ".join(each.name for each in computes) or "none"
        allowed = f"must have one component for compute (class with mac or compute), the innermost; has {known}"
        raise document.error(("architecture",), allowed)
    if len([each for each in found if not each.is_spatial]) < 2:
        raise document.error(("architecture",), "must have a storage level outside the compute units")
    levels = [_storage(document, each, tables, names, notes) for each in reversed(found[:-1])]
    unit = found[-1]
    attributes = _attributes(document, unit, names, notes)
    mesh = _mesh(document, unit, attributes)
    compute = Compute(
        name=unit.name,
        path=unit.path,
        instances=mesh[0] * mesh[1],
        mesh_x=mesh[0],
        mesh_y=mesh[1],
        word_bits=attributes.datawidth or attributes.word_bits or WORD_BITS,
        energies=tables.energies.get(unit.name, {}),
        leak_pj=tables.energies.get(unit.name, {}).get("leak", 0.0),
        area=tables.areas.get(unit.name),
    )
    return Architecture(tuple(levels), compute, V04 if is_new_dialect(document) else V03)


def _attributes(document: Document, component: Component, names: Mapping[str, Any], notes: list[str]) -> _Attributes:
    known = list(_Attributes.model_fields)
    used = {}
    for key, value in component.attributes.items():
        if key in known:
            if value is not None:
                used[key] = value
        elif key not in ESTIMATORS:
            steps = (*component.steps, "attributes", key)
            close = difflib.get_close_matches(key, known, n=1, cutoff=0.75)
            if close:
                raise document.error(steps, f"no such attribute: did you mean {close[0]}?", value)
            notes.append(f"{document.written(steps)}: is not an attribute that the analysis reads")
    numbers = {**names, **{key: value for key, value in component.attributes.items() if key not in names}}
    return validated(_Attributes, used, document, (*component.steps, "attributes"), numbers)


def _mesh(document: Document, component: Component, attributes: _Attributes) -> tuple[int, int]:
    """Instances along x and y; what is not given follows from their number."""
    if component.mesh is not None:
        return component.mesh
    count = attributes.instances or component.instances
    x, y = attributes.meshX, attributes.meshY
    for key, side in (("meshX", x), ("meshY", y)):
        if side is not None and (side < 1 or count % side):
            raise document.error((*component.steps, "attributes", key), f"must divide the {count} instances", side)
    if x is not None and y is not None and x * y != count:
        raise document.error(
            (*component.steps, "attributes"), f"meshX {x} x meshY {y} = {x * y}: must be {count} instances"
        )
    if x is not None:
        return x, count // x
    return (count // y, y) if y is not None else (count, 1)


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _storage(
    document: Document, component: Component, tables: Tables, names: Mapping[str, Any], notes: list[str]
) -> Storage:
    if component.is_spatial:
        assert component.mesh is not None
        x, y = component.mesh
        return Storage(name=component.name, path=component.path, instances=x * y, mesh_x=x, mesh_y=y, is_spatial=True)
    own = _attributes(document, component, names, notes)
    mesh = _mesh(document, component, own)
    word_bits = _first(own.datawidth, own.word_bits, WORD_BITS)
    block = _block(document, component, own, word_bits)
    depth = _first(own.depth, own.memory_depth, own.data_storage_depth)
    words = own.entries if own.entries is not None else depth * block if depth is not None else None
    if words is None and own.sizeKB is not None:
        words = int(own.sizeKB * 1024 * 8 / word_bits)
    is_dram = "dram" in component.kind.lower()
    energies = dict(tables.energies.get(component.name, {}))
    if own.vector_access_energy is not None and not energies:
        energies = {"read": own.vector_access_energy, "write": own.vector_access_energy}
    half = None if own.bandwidth is None else own.bandwidth / 2
    if own.multiple_buffering < 1:
        raise document.error(
            (*component.steps, "attributes", "multiple_buffering"), "must be at least 1", own.multiple_buffering
        )
    for key in ("bandwidth", "read_bandwidth", "write_bandwidth", "shared_bandwidth"):
        if getattr(own, key) == 0:
            raise document.error((*component.steps, "attributes", key), "must be above 0", 0)
    for key, instead in (
        ("allow_overbooking", "overbooks names the tensor"),
        ("tile_partition_supported", "true is not supported"),
    ):
        if getattr(own, key):
            raise document.error((*component.steps, "attributes", key), f"must be false: {instead}", True)
    width = own.metadata_storage_width or 0
    return Storage(
        name=component.name,
        path=component.path,
        instances=mesh[0] * mesh[1],
        mesh_x=mesh[0],
        mesh_y=mesh[1],
        word_bits=word_bits,
        words=words,
        block=block,
        read_bandwidth=_first(own.read_bandwidth, half),
        write_bandwidth=_first(own.write_bandwidth, half),
        shared_bandwidth=own.shared_bandwidth,
        metadata_bits=None if words is None else floor((own.metadata_storage_depth or 0) * width),
        metadata_width=width,
        metadata_word_bits=_first(own.metadata_datawidth, own.metadata_word_bits),
        multiple_buffering=own.multiple_buffering,
        minimum_utilization=own.min_utilization,
        decompresses=own.decompression_supported,
        compresses=own.compression_supported,
        overbooks=own.overbooks,
        fifo_words=own.fifo_words,
        is_dram=is_dram,
        energies=energies,
        leak_pj=energies.get("leak", 0.0),
        area=tables.areas.get(component.name),
    )


def _block(document: Document, component: Component, own: _Attributes, word_bits: int) -> int:
    """Words of a row."""
    width = _first(own.width, own.memory_width, own.data_storage_width)
    block, cluster = _first(own.block_size, own.n_words), own.cluster_size or 1
    steps = (*component.steps, "attributes")
    if word_bits < 1 or block == 0 or cluster < 1:
        raise document.error(steps, "datawidth, block_size and cluster_size must be at least 1")
    if width is None:
        return block or 1
    if width % (word_bits * (block or 1)):
        raise document.error(
            steps,
            f"width {width}: must be a multiple of {block or 1} words of {word_bits} bits = {word_bits * (block or 1)}",
        )
    return block or max(1, width // cluster // word_bits)
