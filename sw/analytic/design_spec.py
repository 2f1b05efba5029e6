"""A design of Fiberloom and a tile scheme as a specification of the analysis, in dialect v0.4.

Each tensor that the scheme keeps on chip has a level of its own, its partition of the buffer. PEs take rows of A side by side;
each walks a row, a nonzero after another, and along a segment of B's row for each. What the specification leaves out stands
in docs/analysis.md.
"""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

from gen.design import Design
from sw.plan.records import tensor_formats
from sw.scheme.errors import SchemeError
from sw.scheme.hardware_scheme import HardwareScheme
from sw.scheme.terms import GUSTAVSON, LOAD_TILE, NATURAL, TENSORS

from .spec.document import TAG

__all__ = ["PARTITION", "ROWS", "Shape", "design_sections", "require_export"]

# Rows of A and of B, columns of B, as in the scheme: I, J, K.
Shape = tuple[int, int, int]
RANKS = "IJK"
INDEXED = {"A": "IK", "B": "KJ", "C": "IJ"}
# The level of a tensor's partition, and what a PE holds of a row of A and of C.
PARTITION = {tensor: f"Partition{tensor}" for tensor in TENSORS}
ROWS = "Rows"
POINTER_BITS = 32


def require_export(design: Design, scheme: HardwareScheme) -> None:
    """Raise SchemeError where a specification has no words for what the scheme does."""
    if design.pe.dataflow != GUSTAVSON:
        raise SchemeError("pe.dataflow", design.pe.dataflow, f"{GUSTAVSON}, to be analysed")
    if scheme.tiles:
        raise SchemeError("tiles", scheme.tiles, "left out, to be analysed: tiles of one shape")
    if scheme.load != LOAD_TILE:
        raise SchemeError("load", scheme.load, f"{LOAD_TILE}, to be analysed: lists follow from the data")
    if scheme.tuning:
        raise SchemeError("tuning", True, "false, to be analysed: shapes that change follow from the data")
    if scheme.row_order != NATURAL:
        raise SchemeError("row_order", scheme.row_order, f"{NATURAL}, to be analysed")


@dataclass(frozen=True)
class _Loop:
    """A loop of the mapping. level: where it runs. last: iterations at the last one of all outer loops of its rank."""

    level: str
    rank: str
    bound: int
    last: int

    def __str__(self) -> str:
        return f"{self.rank}={self.bound}" + (f",{self.last}" if self.last != self.bound else "")


def _rank_loops(rank: str, extent: int, bounds: Sequence[tuple[str, int]]) -> list[_Loop]:
    """Loops of one rank, innermost first, the outermost as long as it must be."""
    found, inside = [], 1
    for level, bound in bounds:
        bound = min(bound, -(-extent // inside))
        found.append(_Loop(level, rank, bound, (extent - 1) // inside % bound + 1))
        inside *= bound
    outermost = -(-extent // inside)
    return [*found, _Loop("DRAM", rank, outermost, outermost)]


class _Machine:
    """What the sections are made of. kept: tensors on chip, outermost level first; the last level has the loop over rows."""

    def __init__(self, design: Design, scheme: HardwareScheme, shape: Shape) -> None:
        require_export(design, scheme)
        self.design, self.scheme, self.shape = design, scheme, shape
        self.kept = [tensor for tensor in "ACB" if scheme.buffers(tensor)] or ["B"]
        walks, pes = PARTITION[self.kept[-1]], design.pe.count
        sides = dict(zip(RANKS, (scheme.T_i, scheme.T_j, scheme.T_k), strict=True))
        inner = {
            "I": (("PEs", pes), (walks, -(-sides["I"] // pes))),
            "J": ((ROWS, sides["J"]),),
            "K": ((ROWS, sides["K"]),),
        }
        self.loops = [
            loop for rank, extent in zip(RANKS, shape, strict=True) for loop in _rank_loops(rank, extent, inner[rank])
        ]
        _, columns, depth = shape
        self.records = tensor_formats(design, depth, columns)

    def at(self, level: str, order: str = RANKS) -> list[_Loop]:
        """Loops of a level that have several iterations, by the order of their ranks."""
        own = [loop for loop in self.loops if loop.level == level and loop.bound > 1]
        return sorted(own, key=lambda loop: order.index(loop.rank))

    def format(self, tensor: str, *, in_memory: bool) -> dict[str, Any]:
        """Compressed rows of each tile: offsets of its fibers, and coordinates."""
        row, column = tuple(INDEXED[tensor])
        inside = [{loop.rank for loop in self.loops if loop.level != "DRAM" and loop.bound > 1}, {row, column}]
        inner = set.intersection(*inside)
        ranks: list[dict[str, Any]] = []
        if in_memory:
            ranks = [{"format": "U"} for loop in self.at("DRAM") if loop.rank in INDEXED[tensor]]
        coordinates = {"format": "CP", "metadata_word_bits": self.records[tensor].coordinate_bits if in_memory else 32}
        if {row, column} <= inner:
            offsets = self.segment_bits(tensor) if in_memory else POINTER_BITS
            ranks.append({"format": "UOP", "payload_word_bits": offsets, "flattened_rankIDs": [[row]]})
        if inner:
            ranks.append(coordinates if column in inner else coordinates | {"flattened_rankIDs": [[row]]})
        return {"name": tensor, "ranks": ranks or [{"format": "U"}]}

    def segment_bits(self, tensor: str) -> int:
        """What a row takes in a tile besides its nonzeros, in whole bytes: its pointer, and where tiles of A and B cut rows its
        begin position, which all but the last tile write for the next one and all but the first read beside the row's end, and
        the part of a beat that is another segment's."""
        column = INDEXED[tensor][1]
        sides = [loop.bound for loop in self.at("DRAM") if loop.rank == column]
        if tensor == "C" or not sides:
            return POINTER_BITS
        words, bus = 3 - 2 / sides[0], self.design.axi.data_bits
        shared = bus - gcd(bus, self.records[tensor].coordinate_bits + self.records[tensor].value_bits)
        return 8 * round((POINTER_BITS * words + shared) / 8)

    def words(self, tensor: str) -> tuple[int, int]:
        """Nonzeros that a partition holds, and through how many the others stream."""
        rows = min(self.scheme.tile("k" if tensor == "B" else "i"), self.shape[2 if tensor == "B" else 0])
        capacity = self.scheme.partition(tensor, self.design).capacity(rows)
        return capacity.limit, capacity.limit - capacity.regular


def design_sections(design: Design, scheme: HardwareScheme, shape: Shape, densities: Table[str, Any]) -> dict[str, Any]:
    """Sections ``architecture``, ``problem`` and ``mapping``. densities: of A, B and C, as the problem has them."""
    own = _Machine(design, scheme, shape)
    return {
        "architecture": {"version": 0.4, "nodes": [_memory(own), *_partitions(own), *_pes(own)]},
        "problem": _problem(shape, densities),
        "mapping": _mapping(own),
    }


def _component(name: str, kind: str, attributes: dict[str, Any], sparse: dict[str, Any]) -> dict[str, Any]:
    found = {TAG: "Component", "name": name, "class": kind, "attributes": attributes}
    return found | ({"sparse_optimizations": sparse} if sparse else {})


def _skipping(target: str, *leaders: str) -> dict[str, Any]:
    return {"type": "skipping", "target": target, "condition_on": list(leaders)}


def _memory(own: _Machine) -> dict[str, Any]:
    """DRAM by the bus, which reads and writes in turn. Tiles of which A or B is empty are not visited."""
    value = max(8, own.records["B"].value_bits)
    attributes = {
        "width": own.design.axi.data_bits,
        "datawidth": value,
        "metadata_storage_width": 8,
        "metadata_datawidth": 32,
        "shared_bandwidth": own.design.axi.data_bits // value,
    }
    formats = [own.format(tensor, in_memory=True) for tensor in TENSORS]
    actions = [_skipping("A", "B")] + ([_skipping("B", "A")] if own.scheme.buffers("B") else [])
    sparse = {"representation_format": {"data_spaces": formats}, "action_optimization": actions}
    return _component("DRAM", "DRAM", attributes, sparse)


def _partitions(own: _Machine) -> list[dict[str, Any]]:
    found = []
    line_words = own.design.line_bytes * 8 // 32
    for tensor in own.kept:
        attributes: dict[str, Any] = {
            "width": 32,
            "datawidth": 32,
            "metadata_storage_width": 32,
            "metadata_datawidth": 32,
        }
        sparse: dict[str, Any] = {}
        if own.scheme.buffers(tensor):
            words, stream = own.words(tensor)
            rows = own.scheme.tile("k" if tensor == "B" else "i")
            attributes |= {"entries": words, "metadata_storage_depth": words + rows + 1}
            attributes |= {"shared_bandwidth": own.design.buffer.banks * line_words}
            if tensor != "C":
                attributes |= {"overbooks": tensor, "fifo_words": stream}
            sparse["representation_format"] = {"data_spaces": [own.format(tensor, in_memory=False)]}
        if tensor != "C":
            sparse["action_optimization"] = [_skipping(tensor, "A" if tensor == "B" else "B")]
        found.append(_component(PARTITION[tensor], "SRAM", attributes, sparse))
    return found


def _pes(own: _Machine) -> list[dict[str, Any]]:
    """A PE has a row of A, as coordinates, and one of C, of which only effectual products reach a word."""
    rows = {"width": 32, "datawidth": 32, "metadata_storage_width": 32, "metadata_datawidth": 32}
    rows |= {"decompression_supported": True, "compression_supported": True}
    a = own.format("A", in_memory=False)
    a["ranks"] = [rank for rank in a["ranks"] if rank["format"] == "CP"] or [{"format": "U"}]
    sparse = {"representation_format": {"data_spaces": [a]}, "action_optimization": [_skipping("C", "A", "B")]}
    skips = {"compute_optimization": [{"type": "skipping"}]}
    return [
        {TAG: "Container", "name": "PEs", "spatial": {"meshX": own.design.pe.count}},
        _component(ROWS, "regfile", rows, sparse),
        _component("MAC", "mac", {"datawidth": 32}, skips),
    ]


def _problem(shape: Shape, densities: Table[str, Any]) -> dict[str, Any]:
    spaces = [
        {"name": tensor, "projection": [[[rank]] for rank in ranks]} | ({"read_write": True} if tensor == "C" else {})
        for tensor, ranks in INDEXED.items()
    ]
    instance = dict(zip(RANKS, shape, strict=True)) | {"densities": dict(densities)}
    described = {"name": "product", "dimensions": list(RANKS), "data_spaces": spaces}
    return {"version": 0.4, "shape": described, "instance": instance}


def _mapping(own: _Machine) -> list[dict[str, Any]]:
    """Innermost loops first. A row of C is walked inside one nonzero of A."""

    def entry(level: str, kind: str, order: str) -> dict[str, Any]:
        loops = own.at(level, order)
        return {
            "target": level,
            "type": kind,
            "factors": [str(loop) for loop in loops],
            "permutation": [loop.rank for loop in loops],
        }

    keeps = {"DRAM": list(TENSORS), ROWS: ["A", "C"]}
    keeps |= {PARTITION[tensor]: [tensor] if own.scheme.buffers(tensor) else [] for tensor in own.kept}
    outer = own.scheme.order.upper()[::-1]
    levels = ["DRAM", *(PARTITION[tensor] for tensor in own.kept)]
    found = []
    for level in (*levels, ROWS):
        kept = keeps[level]
        bypassed = [tensor for tensor in TENSORS if tensor not in kept]
        found.append({"target": level, "type": "dataspace", "keep": kept, "bypass": bypassed})
        found.append(entry(level, "temporal", outer if level == "DRAM" else "JKI"))
        if level == levels[-1]:
            found.append(entry("PEs", "spatial", RANKS) | {"no_multicast_no_reduction": list(TENSORS)})
    return found
