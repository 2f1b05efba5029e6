"""Tile shapes of the three variants, on both levels. Paper: Tailors, sections 4.2 and 5.2.

N: a fixed square, 128 x 128 in an element, as many whole ones in the global buffer as fit when dense. P: the largest square
whose worst tile fits. OB: a square of the size that Swiftiles says. The tile of figure 1, 51.4 million points, is such a square,
7168 x 7168. Section 5.2 grows tiles along k until its end and along the rows then: P and OB do so with ``k_first``.
"""

import math
from dataclasses import dataclass

import numpy as np

from sw.stats.largest import largest_good
from sw.stats.pattern import Pattern

from .machine import ExTensor
from .tiles import Operands, tile_set

__all__ = ["VARIANTS", "Tiling", "fixed", "overbooked", "prescient"]

VARIANTS = ("N", "P", "OB")
Shape = tuple[int, int]


@dataclass(frozen=True)
class Tiling:
    """Tiles ``(rows, k)`` of A and of B's columns: in the global buffer, and within those in an element's."""

    a: Shape
    b: Shape
    pe_a: Shape
    pe_b: Shape

    def __post_init__(self) -> None:
        if self.a[1] != self.b[1] or self.pe_a[1] != self.pe_b[1]:
            raise ValueError(f"Tiles of A and B must have the same k, not {self!r}")


def fixed(machine: ExTensor, operands: Operands) -> Tiling:
    """ExTensor-N: looks at nothing, so that a tile has to fit when all of its points are nonzero."""
    side = _dense_side(machine.pe_entries, 1)
    whole = _dense_side(machine.global_entries, side)
    return _clipped(operands, (whole, whole), (whole, whole), (side, side), (side, side))


def _dense_side(entries: int, unit: int) -> int:
    """The largest multiple of ``unit`` whose dense square fits with its fibers."""
    side = math.isqrt(entries)
    while side * side + side > entries:
        side -= 1
    return max(unit, side // unit * unit)


def prescient(machine: ExTensor, operands: Operands, *, k_first: bool = False) -> Tiling:
    """ExTensor-P: binary searches over exact worst occupancies."""
    whole = ((operands.a.rows, operands.a.columns), (operands.bt.rows, operands.bt.columns))
    search = _largest_k_first if k_first else _largest_square
    a, b = search(operands, whole, machine.global_entries)
    pe_a, pe_b = search(operands, (a, b), machine.pe_entries)
    return _clipped(operands, a, b, pe_a, pe_b)


def _largest_k_first(operands: Operands, outer: tuple[Shape, Shape], capacity: int) -> tuple[Shape, Shape]:
    matrices = operands.a, operands.bt

    def worst(n: int, shape: Shape) -> int:
        return int(tile_set(matrices[n], outer[n], shape).entries.max(initial=0))

    depth = largest_good(outer[0][1], lambda k: all(worst(n, (1, k)) <= capacity for n in (0, 1)))
    rows_a = largest_good(outer[0][0], lambda rows: worst(0, (rows, depth)) <= capacity)
    rows_b = largest_good(outer[1][0], lambda rows: worst(1, (rows, depth)) <= capacity)
    return (rows_a, depth), (rows_b, depth)


def _largest_square(operands: Operands, outer: tuple[Shape, Shape], capacity: int) -> tuple[Shape, Shape]:
    both = tuple(zip((operands.a, operands.bt), outer, strict=True))

    def good(side: int) -> bool:
        return all(int(tile_set(m, o, (side, side)).entries.max(initial=0)) <= capacity for m, o in both)

    side = largest_good(max(max(o) for o in outer), good)
    return _square(side, outer)


def _square(side: int, outer: tuple[Shape, Shape]) -> tuple[Shape, Shape]:
    """Squares of this side, cut where the tiles around them end."""
    a, b = ((min(side, o[0]), min(side, o[1])) for o in outer)
    return a, b


def overbooked(
    machine: ExTensor, operands: Operands, *, y: float = 0.1, k: int = 10, seed: int = 0, k_first: bool = False
) -> Tiling:
    """ExTensor-OB: Swiftiles on both levels and for both operands.

    Parameters
    ----------
    y: share of the tiles that may overbook, from 0 to 1. k: samples above the quantile; every tile at y = 0.
    """
    if not 0 <= y <= 1:
        raise ValueError(f"Share of overbooked tiles must be from 0 to 1, not {y!r}")
    rng = np.random.default_rng(seed)
    whole = ((operands.a.rows, operands.a.columns), (operands.bt.rows, operands.bt.columns))
    a, b = _sampled(operands, whole, machine.global_entries, y, k, rng, k_first)
    pe_a, pe_b = _sampled(operands, (a, b), machine.pe_entries, y, k, rng, k_first)
    return _clipped(operands, a, b, pe_a, pe_b)


def _sampled(
    operands: Operands,
    outer: tuple[Shape, Shape],
    capacity: int,
    y: float,
    k: int,
    rng: np.random.Generator,
    k_first: bool,
) -> tuple[Shape, Shape]:
    points = [
        _swiftiles(matrix, within, capacity, y, k, rng, k_first)
        for matrix, within in zip((operands.a, operands.bt), outer, strict=True)
    ]
    if not k_first:
        return _square(max(1, math.isqrt(int(min(points)))), outer)
    depth = min(_grown(p, within, True)[1] for p, within in zip(points, outer, strict=True))
    a, b = ((max(1, min(within[0], round(p / depth))), depth) for p, within in zip(points, outer, strict=True))
    return a, b


def _grown(points: float, outer: Shape, k_first: bool) -> Shape:
    """A tile of so many points: along both ranks until one of them ends; or along k first, then along the rows."""
    if k_first:
        depth = max(1, min(outer[1], round(points)))
        return max(1, min(outer[0], round(points / depth))), depth
    rows = max(1, min(outer[0], round(points**0.5)))
    depth = max(1, min(outer[1], round(points / rows)))
    return max(1, min(outer[0], round(points / depth))), depth


def _swiftiles(
    matrix: Pattern, outer: Shape, capacity: int, y: float, k: int, rng: np.random.Generator, k_first: bool
) -> float:
    """Points of the tile: b / s, a sample of such tiles, and b over the quantile that y of them exceed."""
    if matrix.nnz == 0:
        return float(outer[0] * outer[1])
    initial = min(float(outer[0] * outer[1]), capacity * matrix.rows * matrix.columns / matrix.nnz)
    shape = _grown(initial, outer, k_first)
    found = tile_set(matrix, outer, shape)
    seen = np.concatenate((np.zeros(max(0, found.all_tiles - len(found.k)), np.int64), found.entries))
    if y > 0 and math.ceil(k / y) < len(seen):
        seen = rng.choice(seen, math.ceil(k / y))
    seen = np.sort(seen)
    quantile = int(seen[max(0, len(seen) - 1 - round(y * len(seen)))])
    if quantile == 0:  # more than 1 - y of the tiles are empty: those that are not decide
        filled = seen[seen > 0]
        quantile = int(filled[max(0, len(filled) - 1 - round(y * len(filled)))]) if len(filled) else capacity
    return shape[0] * shape[1] * capacity / quantile


def _clipped(operands: Operands, a: Shape, b: Shape, pe_a: Shape, pe_b: Shape) -> Tiling:
    """No tile beyond its operand, none of an element beyond the one around it."""
    a, b = (
        (min(shape[0], max(1, m.rows)), min(shape[1], max(1, m.columns)))
        for shape, m in ((a, operands.a), (b, operands.bt))
    )
    pe_a, pe_b = ((min(p[0], s[0]), min(p[1], s[1])) for p, s in ((pe_a, a), (pe_b, b)))
    return Tiling(a, b, pe_a, pe_b)
