"""Rows of C made in strips of ``T_j`` columns, so that a long one is merged by many PEs at once.

Rows of C leave in order, and one that is longer than the queue behind its PE is merged in its own turn,
while the others wait. In strips such a row is many short ones, one behind the other: what is one row of A for the
hardware is a strip, and holds the nonzeros whose rows of B have anything in these columns. Lists (:mod:`.gather`) say where
each row of B begins and ends, so that a strip of one is an entry of the list like a whole one, and nothing of B is copied.
That is strip-mining along j inside a tile: B is not cut into tiles, nothing has to be put together afterwards.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.plan.thresholds import SHARE_OF_ENTRIES
from sw.scheme.errors import SchemeError
from sw.timing.hardware import MAXIMUM_ELEMENTS, MOST_LINES

from .gather import Index, Rows

__all__ = ["Strips", "cut_strips", "most_used"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Strips:
    """``A`` and ``B`` as the hardware meets them.

    Parameters
    ----------
    pointers, coordinates: of A: a row for each strip that has nonzeros, and empty rows where a tile ended early; coordinates are
        strips of B.
    sources: int64[len(coordinates)], the nonzero of A that each of them is.
    starts: int64[I + 1], the first strip of each row of A, and the number of strips.
    b_pointers: int64[strips of B + 1]: where each begins among B's nonzeros, and the end. Strips without nonzeros are left out.
    """

    pointers: Index
    coordinates: Index
    sources: Index
    starts: Index
    b_pointers: Index

    @property
    def rows(self) -> int:
        """Rows of A, strips and empty ones."""
        return len(self.pointers) - 1

    @property
    def inner(self) -> int:
        """Strips of B."""
        return len(self.b_pointers) - 1

    def in_tiles(self, T_i: int, most: int) -> "Strips":
        """The same with empty rows where a tile of ``T_i`` would use more than ``most`` strips of B, so that it ends early.

        What a single strip uses always fits. There is one row at least.
        """
        at = _places(self.pointers, self.coordinates, self.inner, T_i, most)
        pointers = np.zeros(max(1, at[-1]) + 1, np.int64)
        pointers[at[:-1] + 1] = np.diff(self.pointers)
        starts = at[self.starts]
        starts[-1] = len(pointers) - 1
        return replace(self, pointers=np.cumsum(pointers), starts=starts)


def most_used(lines: int, lanes: int) -> int:
    """Strips of B that a tile may use before it ends early; ``lines``: of B's partition without its FIFO-managed region."""
    return max(1, min(lines, MOST_LINES) * lanes // SHARE_OF_ENTRIES)


def cut_strips(a: Rows, b: Rows, columns: int, T_j: int) -> Strips:
    """Cuts ``B`` at multiples of ``T_j``, and the rows of ``A`` with it: no tile has ended early yet.

    Parameters
    ----------
    a, b: A (I x K) and B (K x ``columns``), canonical.

    Raises SchemeError where A would have more nonzeros than positions can count.
    """
    first, b_pointers, blocks = _cut(b.pointers, b.coordinates, T_j)
    total = int(_nonzeros(a.coordinates, first))
    if total > MAXIMUM_ELEMENTS:
        allowed = f"larger: A in strips has {total} elements, positions count to {MAXIMUM_ELEMENTS}"
        raise SchemeError("T_j", T_j, allowed)
    strips = -(-columns // T_j)
    pointers, coordinates, sources, starts = _spread(a.pointers, a.coordinates, first, blocks, strips, total)
    return Strips(pointers=pointers, coordinates=coordinates, sources=sources, starts=starts, b_pointers=b_pointers)


@njit(cache=True)
def _cut(pointers: NDArray[Any], coordinates: NDArray[Any], T_j: int) -> tuple[Index, Index, Index]:
    """Strips of B: the first one of each row and the end, where each begins, and which columns it holds."""
    rows = len(pointers) - 1
    first = np.empty(rows + 1, np.int64)
    count = 0
    for row in range(rows):
        first[row] = count
        before = -1
        for position in range(pointers[row], pointers[row + 1]):
            block = coordinates[position] // T_j
            count += block != before
            before = block
    first[rows] = count
    begins = np.empty(count + 1, np.int64)
    blocks = np.empty(count, np.int64)
    count = 0
    for row in range(rows):
        before = -1
        for position in range(pointers[row], pointers[row + 1]):
            block = coordinates[position] // T_j
            if block != before:
                begins[count] = position
                blocks[count] = block
                count += 1
            before = block
    begins[count] = pointers[rows]
    return first, begins, blocks


@njit(cache=True)
def _nonzeros(coordinates: NDArray[Any], first: Index) -> int:
    """Nonzeros of A in strips."""
    total = 0
    for position in range(len(coordinates)):
        k = coordinates[position]
        total += first[k + 1] - first[k]
    return total


@njit(cache=True)
def _spread(
    a_pointers: NDArray[Any],
    a_coordinates: NDArray[Any],
    first: Index,
    blocks: Index,
    strips: int,
    total: int,
) -> tuple[Index, Index, Index, Index]:
    """A in strips: pointers, coordinates, which nonzero each was, and the first strip of each row."""
    rows = len(a_pointers) - 1
    pointers = np.empty(total + 1, np.int64)  # no strip is empty
    coordinates = np.empty(total, np.int64)
    sources = np.empty(total, np.int64)
    starts = np.empty(rows + 1, np.int64)
    end_of = np.zeros(strips, np.int64)  # of each strip of the row at hand: its nonzeros, then where the next one goes
    count, nonzeros = 0, 0
    pointers[0] = 0
    for row in range(rows):
        starts[row] = count
        low, high = strips, -1
        for position in range(a_pointers[row], a_pointers[row + 1]):
            k = a_coordinates[position]
            for strip in range(first[k], first[k + 1]):
                block = blocks[strip]
                end_of[block] += 1
                low, high = min(low, block), max(high, block)
        at = nonzeros
        for block in range(low, high + 1):
            size = end_of[block]
            end_of[block] = at
            at += size
            if size > 0:
                count += 1
                pointers[count] = at
        for position in range(a_pointers[row], a_pointers[row + 1]):
            k = a_coordinates[position]
            for strip in range(first[k], first[k + 1]):
                block = blocks[strip]
                coordinates[end_of[block]] = strip
                sources[end_of[block]] = position
                end_of[block] += 1
        end_of[low : high + 1] = 0
        nonzeros = at
    starts[rows] = count
    return pointers[: count + 1].copy(), coordinates, sources, starts


@njit(cache=True)
def _places(pointers: Index, coordinates: Index, inner: int, T_i: int, most: int) -> Index:
    """Where each row goes, and the end: on, or to the begin of the next tile where it would make its own use too much."""
    rows = len(pointers) - 1
    found = np.empty(rows + 1, np.int64)
    used_by = np.full(inner, -1, np.int64)  # the last tile that uses each strip of B
    at, tile, used = 0, -1, 0
    for row in range(rows):
        fresh = 0
        for position in range(pointers[row], pointers[row + 1]):
            fresh += used_by[coordinates[position]] != tile
        if at % T_i == 0 or used + fresh > most:
            at = -(-at // T_i) * T_i
            tile += 1
            used, fresh = 0, pointers[row + 1] - pointers[row]
        for position in range(pointers[row], pointers[row + 1]):
            used_by[coordinates[position]] = tile
        used += fresh
        found[row] = at
        at += 1
    found[rows] = at
    return found
