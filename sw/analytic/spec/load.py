"""A whole specification."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..architecture import Architecture
from ..errors import MappingError, SpecError
from ..features import Features
from ..mapping import Loop, Mapping
from ..problem import Workload
from .document import Document, load_document
from .extensions import Extensions
from .read_architecture import Component, components, read_architecture
from .read_features import read_features
from .read_mapping import read_mapping
from .read_network import Layer, read_network
from .read_problem import read_workload
from .read_tables import read_tables

if TYPE_CHECKING:
    from ..mapspace import MapSpace
    from .read_mapper import Settings

__all__ = ["SHIPPED", "Spec", "load_layers", "load_search", "load_spec", "shipped_names"]

# Specifications that come with Fiberloom.
SHIPPED = Path(__file__).resolve().parents[3] / "configs" / "analysis"

SECTIONS = (
    "architecture", "problem", "mapping", "sparse_optimizations", "ERT", "ART", "variables", "mapper", "constraints",
    "architecture_constraints", "mapspace_constraints", "mapspace", "network",
)  # fmt: skip
NO_EXTENSIONS = Extensions()
# Sections of other tools: estimators of energy, summaries.
OTHERS = ("compound_components", "components", "ERT_summary", "ART_summary", "globals", "version")


@dataclass(frozen=True)
class Spec:
    """What to analyse. notes: what of the specification has no effect."""

    workload: Workload
    architecture: Architecture
    mapping: Mapping
    features: Features
    document: Document
    notes: tuple[str, ...]

    def unit(self, level: int) -> str:
        """Name of a level; -1: of the compute units."""
        return self.architecture.compute.name if level < 0 else self.architecture.levels[level].name

    def file(self, section: str) -> Path:
        """The file of a section, else that of the architecture."""
        return self.document.files.get(section, self.document.files["architecture"])

    def refusal(self, error: MappingError) -> str:
        """A level that cannot do what is asked, by its name and the file of its section."""
        where = f"{self.file('mapping')}: mapping: {self.unit(error.level)}"
        return f"{where}: {error.subject}: {error.value}: must be {error.allowed}"


def shipped_names() -> list[str]:
    """Names of the specifications that come with Fiberloom."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def _place(path: Path) -> Path:
    """A file, or the one of a shipped name."""
    if path.exists() or path.suffix:
        return path
    if str(path) not in shipped_names():
        raise SpecError(f"{path}: no such file: must be a YAML file or one of {', '.join(shipped_names())}")
    return SHIPPED / f"{path}.yaml"


def load_spec(
    paths: Sequence[Path],
    changes: Sequence[str] = (),
    extensions: Extensions = NO_EXTENSIONS,
    mapping: Path | None = None,
    layer: Layer | None = None,
) -> Spec:
    """Reads the files of a specification, or a shipped one by name; ``changes`` are ``path.to.key=value``. Raises SpecError.

    mapping: a file whose section ``mapping`` stands for that of the others. layer: of the network that the specification has.
    """
    document, names, found, spec = _load(paths, changes, extensions, mapping, layer)
    return replace(spec, mapping=read_mapping(document, spec.workload.problem, spec.architecture, found, names))


def load_search(
    paths: Sequence[Path],
    changes: Sequence[str] = (),
    extensions: Extensions = NO_EXTENSIONS,
    layer: Layer | None = None,
) -> "tuple[Spec, MapSpace, Settings]":
    """A specification whose mapping is to be found: it holds one that keeps all at the outermost level. Raises SpecError."""
    # An analysis of one mapping needs none of these.
    from ..mapspace import MapSpace
    from .read_constraints import read_constraints
    from .read_mapper import read_settings

    document, names, found, spec = _load(paths, changes, extensions, None, layer)
    rules = read_constraints(document, spec.workload.problem, spec.architecture, found, names)
    settings = read_settings(document, names)
    try:
        space = MapSpace(spec.workload.problem, spec.architecture, rules)
    except MappingError as error:
        where = f"{spec.file('constraints')}: {spec.unit(error.level)}"
        raise SpecError(f"{where}: {error.subject}: {error.value}: must be {error.allowed}") from None
    return spec, space, settings


def load_layers(paths: Sequence[Path], changes: Sequence[str] = ()) -> list[Layer]:
    """Layers of the network that a specification has, none without one. Raises SpecError."""
    return read_network(
        load_document([_place(path) for path in paths], [c for c in changes if c.startswith("network")])
    )


def _load(
    paths: Sequence[Path],
    changes: Sequence[str],
    extensions: Extensions,
    mapping: Path | None,
    layer: Layer | None,
) -> tuple[Document, dict[str, Any], list[Component], Spec]:
    """All but the mapping, for which one stands that keeps all at the outermost level."""
    document = load_document([_place(path) for path in paths], changes, mapping, layer.values if layer else None)
    for name in document.content:
        if name not in (*SECTIONS, *OTHERS):
            raise document.error((name,), f"no such section: must be one of {', '.join(SECTIONS)}")
    names = document.content.get("variables") or {}
    if not isinstance(names, dict):
        raise document.error(("variables",), "must be a mapping of names", names)
    notes: list[str] = []
    workload = read_workload(document, names, extensions)
    found = components(document, names)
    tables = read_tables(document, names)
    architecture = read_architecture(document, found, tables, names, notes)
    for component, storage in zip(reversed(found[:-1]), architecture.levels, strict=True):
        known = [tensor.name for tensor in workload.problem.tensors if not tensor.is_output]
        if storage.overbooks is not None and storage.overbooks not in known:
            where = (*component.steps, "attributes", "overbooks")
            raise document.error(where, f"must be one of {', '.join(known)}", storage.overbooks)
    features = read_features(document, workload.problem, architecture, found, names, notes, extensions)
    problem, outermost = workload.problem, len(architecture.levels) - 1
    simplest = Mapping(
        problem,
        (*((),) * outermost, tuple(Loop(dimension, bound) for dimension, bound in enumerate(problem.bounds))),
        (*((False,) * len(problem.tensors),) * outermost, (True,) * len(problem.tensors)),
    )
    return document, names, found, Spec(workload, architecture, simplest, features, document, tuple(notes))
