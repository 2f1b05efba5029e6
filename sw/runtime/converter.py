"""The converter's driver: where the arrays of a conversion lie in memory, what its registers say, what came out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sw.formats.sparse_tensor import VALUE_BITS
from sw.formats.storage import storage_format
from sw.formats.storage_format import Layout, Region, coordinate_bits, places
from sw.formats.stored_matrix import Matrix

from . import converter_constants as constants
from .register_driver import RegisterDriver
from .registers import RegisterMap

if TYPE_CHECKING:
    from gen.design import Design

__all__ = [
    "BLOCK_BITS",
    "BLOCK_REGIONS",
    "CONVERTER",
    "ERRORS",
    "FORMATS",
    "FRAME_REGIONS",
    "MATRIX_FORMATS",
    "PAIRS",
    "RECORD_REGIONS",
    "REGISTERS",
    "SOURCES",
    "Conversion",
    "ConverterDriver",
    "ConverterImage",
    "Matrix",
    "converter_image",
    "entry_bytes",
    "sorting",
]

CONVERTER = RegisterMap("converter", constants.IDENTITY, constants.VERSION, constants.REGISTERS, constants.ERRORS)
REGISTERS = CONVERTER.registers
ERRORS = constants.ERRORS
SOURCES = constants.SOURCES
FORMATS = constants.FORMATS
PAIRS = constants.PAIRS
#: Formats of a matrix; all others are of tensors of order 3 alone.
MATRIX_FORMATS = tuple(kind for kind in FORMATS if 2 in storage_format(kind).orders)
BLOCK_BITS = constants.BLOCK_BITS
#: Region of each format that has a record for each entry (of BSR for each block), the one whose size follows from the shape, and
#: that of the values of blocks. CSF has pointers to the entries, and fibers, in their places, and two regions more.
RECORD_REGIONS = {
    "coo": "entries",
    "csr": "entries",
    "csc": "entries",
    "rlc": "pairs",
    "zvc": "values",
    "bsr": "col_ids",
    "csf": "entries",
}
FRAME_REGIONS = {
    "dense": "values",
    "csr": "row_ptrs",
    "csc": "col_ptrs",
    "zvc": "mask",
    "bsr": "row_ptrs",
    "csf": "ptrs_2",
}
BLOCK_REGIONS = {"bsr": "blocks", "csf": "ids_1"}
TREE_REGIONS = {"IDS_0": {"csf": "ids_0"}, "PTRS_1": {"csf": "ptrs_1"}}
PARTS = {"RECORDS": RECORD_REGIONS, "FRAME": FRAME_REGIONS, "BLOCKS": BLOCK_REGIONS, **TREE_REGIONS}
PAGE = 4096
FIRST_ADDRESS = 1 << 20
# What lies in a target before the run, and what surrounds it.
POISON = 0xA5

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """What a run says of itself.

    Parameters
    ----------
    error: one line, or None. cycles: of the run. entries: that went into the target.
    read_bytes, written_bytes: as the memory counts them, whole beats. passes: that have sorted entries.
    """

    error: str | None
    cycles: int
    entries: int
    read_bytes: int
    written_bytes: int
    passes: int


@dataclass(frozen=True, kw_only=True)
class ConverterImage:
    """Memory and registers of one conversion.

    Parameters
    ----------
    registers: contents of each configuration register by name.
    source: address and bytes of each region, in whole beats. target: the same, poisoned before the run.
    target_layout: where the bits of the target lie. scratch: where entries lie on their way to another order.
    scratch_bytes: what a run may write in each of its regions. passes: in which entries are sorted.
    """

    registers: dict[str, int]
    source: dict[str, tuple[int, Bytes]]
    target: dict[str, tuple[int, Bytes]]
    target_layout: Layout
    scratch: dict[str, tuple[int, Bytes]]
    scratch_bytes: int
    passes: int

    def written(self) -> dict[str, Bytes]:
        """The bytes of each region of the target."""
        return {region.name: self.target[region.name][1][: region.bytes] for region in self.target_layout.regions}

    def spilled(self) -> list[str]:
        """Regions behind whose last byte something was written."""
        ends = {region.name: (self.target, region.bytes) for region in self.target_layout.regions}
        ends |= dict.fromkeys(self.scratch, (self.scratch, self.scratch_bytes))
        return [name for name, (regions, end) in ends.items() if (regions[name][1][end:] != POISON).any()]


def converter_image(
    design: "Design", shape: tuple[int, ...], source: Matrix, target: Matrix, memory: Mapping[str, Bytes]
) -> ConverterImage:
    """The image of a conversion on a design's bus. ``memory``: the bytes of each region of the source."""
    beat = design.bus_bytes
    rows, columns, *others = shape
    at = FIRST_ADDRESS

    def placed(sizes: Mapping[str, int], guard: int) -> dict[str, tuple[int, Bytes]]:
        nonlocal at
        found = {}
        for name, size in sizes.items():
            size = -(-size // beat) * beat + guard
            found[name] = at, np.full(size, POISON, np.uint8)
            at += -(-(size + 1) // PAGE) * PAGE
        return found

    given = placed(_sizes(source.layout), 0)
    for name, (_, data) in given.items():
        data[: len(memory[name])] = memory[name]
    begin = at
    wanted = placed(_sizes(target.layout), beat)
    digit_bits, passes, scratch_bytes = sorting(design, shape, source, target)
    scratch = placed({f"scratch_{n}": scratch_bytes for n in range(min(passes, 2) if scratch_bytes else 0)}, beat)
    pointers = {"source": 0, "target": 0}
    for side, matrix in (("source", source), ("target", target)):
        if matrix.kind in ("csr", "csc", "bsr", "csf"):
            pointers[side] = _region(matrix, FRAME_REGIONS).width
    depth, tensor = 0, {}
    if others:
        depth, tensor = coordinate_bits(others[0]), {"DEPTH": others[0]}
        pointers["slices"] = _region(target, TREE_REGIONS["PTRS_1"]).width
    registers = {
        "FORMATS": CONVERTER.pack_fields(
            "FORMATS", source=SOURCES.index(source.kind), target=FORMATS.index(target.kind)
        ),
        "WIDTHS": CONVERTER.pack_fields(
            "WIDTHS",
            row=coordinate_bits(rows),
            column=coordinate_bits(columns),
            source_run=source.run_bits,
            target_run=target.run_bits,
            depth=depth,
        ),
        "POINTERS": CONVERTER.pack_fields("POINTERS", **pointers),
        "DIGITS": CONVERTER.pack_fields("DIGITS", bits=digit_bits, passes=passes),
        "ROWS": rows,
        "COLUMNS": columns,
        **tensor,
        "COUNT": _region(source, RECORD_REGIONS).count if source.kind in RECORD_REGIONS else 0,
        **_blocks(shape, target),
        **{name.upper(): address for name, (address, _) in scratch.items()},
        "SCRATCH_BYTES": scratch_bytes,
        "WRITE_BEGIN": begin,
        "WRITE_END": at,
    }
    for side, matrix, regions in (("SOURCE", source, given), ("TARGET", target, wanted)):
        for part, names in PARTS.items():
            if matrix.kind in names:
                registers[f"{side}_{part}"] = regions[names[matrix.kind]][0]
                if side == "TARGET":
                    registers[f"TARGET_{part}_BYTES"] = _region(matrix, names).bytes
    return ConverterImage(
        registers=registers,
        source=given,
        target=wanted,
        target_layout=target.layout,
        scratch=scratch,
        scratch_bytes=scratch_bytes,
        passes=passes,
    )


def _sizes(layout: Layout) -> dict[str, int]:
    return {region.name: region.bytes for region in layout.regions}


def _grid(shape: tuple[int, ...], target: Matrix) -> tuple[int, int]:
    """Rows and columns of blocks."""
    (rows, columns), (high, wide) = shape[:2], target.block
    return -(-rows // high), -(-columns // wide)


def _blocks(shape: tuple[int, ...], target: Matrix) -> dict[str, int]:
    """Registers of a target that has blocks."""
    if target.kind != "bsr":
        return {}
    grid = _grid(shape, target)
    inner = coordinate_bits(target.block[0])
    widths = dict(zip(("row", "column"), (coordinate_bits(size) for size in grid), strict=True))
    return {
        **dict(zip(("BLOCK_ROWS", "BLOCK_COLUMNS"), target.block, strict=True)),
        **dict(zip(("GRID_ROWS", "GRID_COLUMNS"), grid, strict=True)),
        "GRID_WIDTHS": CONVERTER.pack_fields("GRID_WIDTHS", **widths, inner=inner),
    }


def _key_bits(shape: tuple[int, ...], source: Matrix, target: Matrix) -> int | None:
    """Bits of the key that entries are sorted by; None where they stay in their order."""
    row, column = (coordinate_bits(size) for size in shape[:2])
    by_columns = source.kind == "csc"
    if target.kind == "bsr":
        grid, height = _grid(shape, target), target.block[0]
        if not by_columns and (height == 1 or grid[1] == 1):
            return None
        return sum(map(coordinate_bits, grid)) + (coordinate_bits(height) if by_columns else 0)
    if by_columns == (target.kind == "csc"):
        return None
    return row if by_columns else column


def entry_bytes(shape: tuple[int, ...], value: str) -> int:
    """Of an entry that is sorted: row, column and value in whole bytes."""
    return -(-sum(map(coordinate_bits, shape)) // 8) + VALUE_BITS[value] // 8


def sorting(design: "Design", shape: tuple[int, ...], source: Matrix, target: Matrix) -> tuple[int, int, int]:
    """Bits of a digit, passes and bytes of a scratch region where entries change their order; else nothing is sorted.

    Entries that fit into a half of the SRAM need no region.

    Passes are as few as the counters allow, digits as narrow as the passes allow: each of their values costs time.
    """
    if (number := _key_bits(shape, source, target)) is None:
        return 0, 0, 0
    passes = max(1, -(-number // (design.converter.counters.bit_length() - 1)))
    # A record of BSR is a block; a dense source does not tell how many places of it have a value.
    bounds = [_region(source, RECORD_REGIONS).count if source.kind in RECORD_REGIONS else places(shape)]
    entries_of = BLOCK_REGIONS if target.kind in BLOCK_REGIONS else RECORD_REGIONS
    bounds += [_region(target, entries_of).count for _ in range(target.kind in entries_of)]
    whole = min(bounds) * entry_bytes(shape, source.layout.value)
    return max(1, -(-number // passes)), passes, whole if whole > design.converter.sram_bytes // 2 else 0


def _region(matrix: Matrix, names: Mapping[str, str]) -> Region:
    return next(region for region in matrix.layout.regions if region.name == names[matrix.kind])


class ConverterDriver(RegisterDriver):
    """One converter behind a register bus."""

    MAP = CONVERTER
