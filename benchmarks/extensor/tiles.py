"""Tiles inside tiles: what every nonempty tile of an element's buffer holds, and which tile of the global buffer it is of."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.stats.effmac import exact_effmac, row_macs
from sw.stats.pattern import Index, Pattern
from sw.stats.symbolic import count_tiled, in_parallel

__all__ = ["Operands", "TileSet", "tile_set"]


@dataclass(frozen=True, eq=False)
class Operands:
    """``Z[m, n] = sum_k A[m, k] * B[k, n]``: A by rows, B by rows, and B by columns as ``bt``, an N x K pattern."""

    a: Pattern
    b: Pattern
    bt: Pattern

    @classmethod
    def of(cls, a: Pattern, b: Pattern) -> "Operands":
        """Adds B by columns; raises ValueError when the shapes do not meet."""
        if a.columns != b.rows:
            raise ValueError(f"A has {a.columns} columns but B has {b.rows} rows")
        return cls(a, b, Pattern(b.columns, b.rows, *b.by_column(np.arange(b.rows, dtype=np.int64))))

    @cached_property
    def macs(self) -> int:
        """Effectual multiply-accumulates."""
        return exact_effmac(self.a, self.b)

    @cached_property
    def nonzeros_of_z(self) -> int:
        return self.updates(max(1, self.a.columns))

    @cached_property
    def rows_of_z(self) -> int:
        """Rows of Z that hold anything."""
        return int(np.count_nonzero(row_macs(self.a, self.b)))

    def updates(self, step: int) -> int:
        """Elements that the k steps of ``step`` coordinates add to, counted once a step: a symbolic product."""
        a, b = self.a, self.b

        def part(first: int, last: int) -> NDArray[np.int64]:
            found = count_tiled(a.pointers, a.coordinates, b.pointers, b.coordinates, b.columns, step, first, last)
            return np.array([found])

        return int(in_parallel(part, a.rows)[0])


@dataclass(frozen=True, eq=False)
class TileSet:
    """The nonempty tiles, in the order of outer rows, inner rows and, unsorted, k.

    Parameters
    ----------
    outer: which tile along the rows on the outer level each one lies in. k: number of its k step on the inner level,
        counted through all outer ones. steps: inner k steps of an outer one.
    nonzeros, fibers: of each; fibers are rows that hold anything.
    k_steps: inner k steps in all. all_tiles: tiles, empty ones too.
    """

    outer: Index
    k: Index
    steps: int
    nonzeros: Index
    fibers: Index
    k_steps: int
    all_tiles: int

    @property
    def entries(self) -> Index:
        """What each takes: its elements, and an entry for each fiber."""
        return self.nonzeros + self.fibers


def tile_set(matrix: Pattern, outer: tuple[int, int], inner: tuple[int, int] | None = None) -> TileSet:
    """Tiles ``inner`` (rows, k) within tiles ``outer``, at whose ends they are cut short; ``outer`` themselves without."""
    inner = outer if inner is None else inner
    for rows, depth in (outer, inner):
        if rows < 1 or depth < 1:
            raise ValueError(f"Tile shape must be at least 1 x 1, not {rows!r} x {depth!r}")
    outer = min(outer[0], max(1, matrix.rows)), min(outer[1], max(1, matrix.columns))
    inner = min(inner[0], outer[0]), min(inner[1], outer[1])
    steps = -(-outer[1] // inner[1])
    k_steps = -(-matrix.columns // outer[1]) * steps
    found = _tiles(matrix.pointers, matrix.coordinates, *outer, *inner, k_steps)
    all_tiles = _count(matrix.rows, outer[0], inner[0]) * _count(matrix.columns, outer[1], inner[1])
    return TileSet(found[0], found[1], steps, found[2], found[3], k_steps, all_tiles)


def _count(size: int, outer: int, inner: int) -> int:
    """Inner pieces of a rank that is cut on both levels."""
    return size // outer * -(-outer // inner) + -(-(size % outer) // inner)


@njit(cache=True, nogil=True)
def _tiles(
    pointers: NDArray[Any],
    coordinates: NDArray[Any],
    outer_rows: int,
    outer_k: int,
    inner_rows: int,
    inner_k: int,
    k_steps: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    rows = len(pointers) - 1
    steps = (outer_k + inner_k - 1) // inner_k
    slot = np.full(k_steps, -1, np.int64)
    capacity = 1024
    outer = np.empty(capacity, np.int64)
    ks = np.empty(capacity, np.int64)
    nonzeros = np.empty(capacity, np.int64)
    fibers = np.empty(capacity, np.int64)
    n = 0
    begin = 0
    while begin < rows:
        stop = min(rows, begin + inner_rows, (begin // outer_rows + 1) * outer_rows)
        first = n
        for row in range(begin, stop):
            before = np.int64(-1)
            for p in range(pointers[row], pointers[row + 1]):
                c = coordinates[p]
                k = c // outer_k * steps + c % outer_k // inner_k
                at = slot[k]
                if at < first:
                    if n == capacity:
                        capacity *= 2
                        outer = np.concatenate((outer, np.empty(n, np.int64)))
                        ks = np.concatenate((ks, np.empty(n, np.int64)))
                        nonzeros = np.concatenate((nonzeros, np.empty(n, np.int64)))
                        fibers = np.concatenate((fibers, np.empty(n, np.int64)))
                    slot[k] = at = n
                    outer[n] = begin // outer_rows
                    ks[n] = k
                    nonzeros[n] = 0
                    fibers[n] = 0
                    n += 1
                nonzeros[at] += 1
                if k != before:
                    fibers[at] += 1
                    before = k
        begin = stop
    return outer[:n].copy(), ks[:n].copy(), nonzeros[:n].copy(), fibers[:n].copy()
