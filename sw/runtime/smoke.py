"""The multiplication of the smoke bench: small, cut into several tiles, the same for ever for a design."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sw.formats.csr import Csr
from sw.golden.arithmetic import in_slots
from sw.golden.product import product_of
from sw.golden.spgemm import Product
from sw.plan.plan import plan
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.shares import MINIMUM_FIFO_LINES, MINIMUM_LINES_A
from sw.scheme.terms import WEIGHT_STATIONARY

from .memory_image import MemoryImage, build_image

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["SmokeCase", "smoke_case"]

SHAPE = {"i": 10, "j": 16, "k": 12}
# Of 16: how many places of A and B hold an element.
DENSITY = 5
# Line slots behind metadata and FIFO-managed region: so few that tiles of B overbook their partition.
LINES_OF_DATA = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class SmokeCase:
    """One multiplication with all that a driver needs and the result that it must find."""

    a: Csr
    b: Csr
    scheme: Scheme
    image: MemoryImage
    product: Product


def smoke_case(design: "Design") -> SmokeCase:
    """For a design with hardware. Raises SchemeError when its buffer holds no tile at all."""
    numbers = _numbers(0x5EED)
    a = _operand(SHAPE["i"], SHAPE["k"], design.pe.value, numbers)
    b = _operand(SHAPE["k"], SHAPE["j"], design.pe.value, numbers)
    scheme = _scheme(design)
    return SmokeCase(
        a=a,
        b=b,
        scheme=scheme,
        image=build_image(design, plan(scheme, a, b, design), poison=True),
        product=product_of(design.pe, a, b, scheme),
    )


def _numbers(state: int) -> Iterator[int]:
    """32 random bits at a time (xorshift): NumPy's generators may give others in its next version."""
    while True:
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        yield state


def _operand(rows: int, columns: int, value: str, numbers: Iterator[int]) -> Csr:
    """Scattered elements, a full row, an empty row, and an empty corner: a tile that is skipped."""
    pointers, coordinates, bits = [0], [], []
    for row in range(rows):
        for column in range(columns):
            corner = 2 * row >= rows and 3 * column >= 2 * columns
            if row != 2 and not corner and (row == 4 or next(numbers) >> 28 < DENSITY):
                coordinates.append(column)
                bits.append(_bits(next(numbers), value))
        pointers.append(len(coordinates))
    return Csr(
        rows=rows,
        columns=columns,
        pointers=np.array(pointers, np.int64),
        coordinates=np.array(coordinates, np.uint32),
        bits=in_slots(np.array(bits, np.uint32), value),
        value=value,
    )


def _bits(number: int, value: str) -> int:
    """Any integer; floating-point numbers from 2**-8 to 2**8 of either sign, so that the order of sums shows."""
    if value.startswith("int"):
        return number
    return number & 0x807FFFFF | (119 + (number >> 23 & 0xF)) << 23


def _scheme(design: "Design") -> Scheme:
    """Two tiles along i, two or more along j and at least three along k, as large as PEs and buffer allow."""
    line, stationary = design.line_bytes, design.pe.dataflow == WEIGHT_STATIONARY
    side_j, side_k = -(-SHAPE["j"] // 2), -(-SHAPE["k"] // 3)
    # Of a tile of B the fibers are the columns that the PEs keep, or rows.
    for fibers in range(min(side_j, design.pe.count) if stationary else side_k, 0, -1):
        lines = -(-fibers // design.lanes) + MINIMUM_FIFO_LINES + LINES_OF_DATA
        lines = min(lines, design.sram_lines - MINIMUM_LINES_A)
        scheme = Scheme(
            policy="smoke",
            order="jki",
            T_i=-(-SHAPE["i"] // 2),
            T_j=fibers if stationary else side_j,
            T_k=side_k if stationary else fibers,
            buffer_bytes={"A": MINIMUM_LINES_A * line, "B": lines * line, "C": 0},
            fifo_bytes={"A": MINIMUM_FIFO_LINES * line, "B": MINIMUM_FIFO_LINES * line},
            mode={"A": "streaming", "B": "buffering", "C": "streaming"},
        )
        try:
            scheme.validate(design, SHAPE["i"], SHAPE["j"], SHAPE["k"])
        except SchemeError:
            if fibers == 1:
                raise
            continue
        return scheme
    raise AssertionError("the loop ends by return or raise")
