"""The converter's driver: where the arrays of a conversion lie in memory, what its registers say, what came out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sw.formats.storage_format import Layout, Region, coordinate_bits

from . import converter_constants as constants
from .register_driver import RegisterDriver
from .registers import RegisterMap

if TYPE_CHECKING:
    from gen.design import Design

__all__ = [
    "CONVERTER",
    "ERRORS",
    "FORMATS",
    "FRAME_REGIONS",
    "RECORD_REGIONS",
    "REGISTERS",
    "ConverterDriver",
    "ConverterImage",
    "Matrix",
    "converter_image",
]

CONVERTER = RegisterMap("converter", constants.IDENTITY, constants.VERSION, constants.REGISTERS, constants.ERRORS)
REGISTERS = CONVERTER.registers
ERRORS = constants.ERRORS
FORMATS = constants.FORMATS
#: Region of each format that has an entry's record for each entry, and the one whose size follows from the shape.
RECORD_REGIONS = {"coo": "entries", "csr": "entries", "rlc": "pairs", "zvc": "values"}
FRAME_REGIONS = {"dense": "values", "csr": "row_ptrs", "zvc": "mask"}
PAGE = 4096
FIRST_ADDRESS = 1 << 20
# What lies in a target before the run, and what surrounds it.
POISON = 0xA5

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A matrix in one of the converter's formats.

    ``kind``: the format. ``layout``: where each bit lies. ``run_bits``: of RLC.
    """

    kind: str
    layout: Layout
    run_bits: int = 1


@dataclass(frozen=True, kw_only=True)
class ConverterImage:
    """Memory and registers of one conversion.

    Parameters
    ----------
    registers: contents of each configuration register by name.
    source: address and bytes of each region, in whole beats. target: the same, poisoned before the run.
    target_layout: where the bits of the target lie.
    """

    registers: dict[str, int]
    source: dict[str, tuple[int, Bytes]]
    target: dict[str, tuple[int, Bytes]]
    target_layout: Layout

    def written(self) -> dict[str, Bytes]:
        """The bytes of each region of the target."""
        return {region.name: self.target[region.name][1][: region.bytes] for region in self.target_layout.regions}

    def spilled(self) -> list[str]:
        """Regions behind whose last byte something was written."""
        return [
            region.name
            for region in self.target_layout.regions
            if (self.target[region.name][1][region.bytes :] != POISON).any()
        ]


def converter_image(
    design: "Design", shape: tuple[int, int], source: Matrix, target: Matrix, memory: Mapping[str, Bytes]
) -> ConverterImage:
    """The image of a conversion on a design's bus. ``memory``: the bytes of each region of the source."""
    beat = design.line_bytes
    rows, columns = shape
    at = FIRST_ADDRESS

    def placed(layout: Layout, guard: int) -> dict[str, tuple[int, Bytes]]:
        nonlocal at
        found = {}
        for region in layout.regions:
            size = -(-region.bytes // beat) * beat + guard
            found[region.name] = at, np.full(size, POISON, np.uint8)
            at += -(-(size + 1) // PAGE) * PAGE
        return found

    given = placed(source.layout, 0)
    for name, (_, data) in given.items():
        data[: len(memory[name])] = memory[name]
    begin = at
    wanted = placed(target.layout, beat)
    pointers = {"source": 0, "target": 0}
    for side, matrix in (("source", source), ("target", target)):
        if matrix.kind == "csr":
            pointers[side] = _region(matrix, FRAME_REGIONS).width
    registers = {
        "FORMATS": CONVERTER.pack_fields(
            "FORMATS", source=FORMATS.index(source.kind), target=FORMATS.index(target.kind)
        ),
        "WIDTHS": CONVERTER.pack_fields(
            "WIDTHS",
            row=coordinate_bits(rows),
            column=coordinate_bits(columns),
            source_run=source.run_bits,
            target_run=target.run_bits,
        ),
        "POINTERS": CONVERTER.pack_fields("POINTERS", **pointers),
        "ROWS": rows,
        "COLUMNS": columns,
        "COUNT": _region(source, RECORD_REGIONS).count if source.kind in RECORD_REGIONS else 0,
        "WRITE_BEGIN": begin,
        "WRITE_END": at,
    }
    for side, matrix, regions in (("SOURCE", source, given), ("TARGET", target, wanted)):
        for part, names in (("RECORDS", RECORD_REGIONS), ("FRAME", FRAME_REGIONS)):
            if matrix.kind in names:
                registers[f"{side}_{part}"] = regions[names[matrix.kind]][0]
                if side == "TARGET":
                    registers[f"TARGET_{part}_BYTES"] = _region(matrix, names).bytes
    return ConverterImage(registers=registers, source=given, target=wanted, target_layout=target.layout)


def _region(matrix: Matrix, names: Mapping[str, str]) -> Region:
    return next(region for region in matrix.layout.regions if region.name == names[matrix.kind])


class ConverterDriver(RegisterDriver):
    """One converter behind a register bus."""

    MAP = CONVERTER
