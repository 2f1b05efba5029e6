"""Lists of the rows of B that tiles use: a tile loads those of its rows that no tile before left in place.

Each row of A uses a few rows of B, neighbouring rows of A often the same. As in HARP (HYTE, section 2) a tile of A needs just
the rows that it uses; here they are also kept for the tiles after it, first in, first out. The list says, one after the
other, which rows are loaded; a tile has a window of the list (:mod:`.ring`), and an element of A says where in the list
its row stands. So the hardware knows no more than windows, and where each listed row begins and ends.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .ring import MOST_LINES, Index, RingPlan, Rows, free_lines
from .scheme import SchemeError

__all__ = ["ListError", "ListPlan", "check_list", "plan_list"]

# Entries of metadata beyond those that rows of mean length need to fill the partition.
SPARE_ENTRIES = 1.15


class ListError(SchemeError):
    """A tile uses more rows than the partition has entries for."""

    def __init__(self, T_i: int, tile: int, rows: int, entries: int) -> None:
        why = f"smaller: tile {tile} along i uses {rows} rows of B, B's partition has entries for {entries}"
        super().__init__("T_i", T_i, why)


@dataclass(frozen=True)
class ListPlan:
    """What is loaded, and where A's elements find it.

    Parameters
    ----------
    rows: int64[entries], the row of B at each place of the list.
    places: int64[nnz of A], the place of each element's row.
    windows: int64[tiles, 2], begin and end of each tile's window of the list.
    ring: what each window keeps and loads.
    """

    rows: Index
    places: Index
    windows: Index
    ring: RingPlan


def check_list(a: Rows, T_i: int, columns: int, lines: int, lanes: int) -> Index:
    """How many rows of B each tile uses; ``columns`` are A's. Raises ListError where :func:`plan_list` would."""
    lines = min(lines, MOST_LINES)
    used: Index = _used(a.pointers, a.coordinates, T_i, columns)
    most = int(used.max(initial=0))
    if -(-most // lanes) + 2 > lines:
        raise ListError(T_i, int(np.argmax(used)), most, max(0, lines - 2) * lanes)
    return used


def plan_list(
    a: Rows, T_i: int, pointers: NDArray[Any], lines: int, lanes: int, *, with_places: bool = True
) -> ListPlan:
    """Loads the rows that each tile uses, in ascending order, behind those that are there.

    Rows leave in the order in which they came, no sooner than room is needed; one that the tile uses is then
    loaded again. Where all must leave, a chain begins anew, and what then does not fit is bumped.

    Parameters
    ----------
    a, T_i: the operand A, and rows of a tile.
    pointers: int[K + 1], rising: where each row of B begins, and the end.
    lines: of B's partition without its FIFO-managed region. lanes: elements in a line.
    with_places: else ``places`` of the plan is empty, which who only asks for its cost does without.

    Raises ListError where a tile uses more rows than entries of metadata would leave a line for.
    """
    used = check_list(a, T_i, len(pointers) - 1, lines, lanes)
    lines = min(lines, MOST_LINES)
    most = int(used.max(initial=0))
    mean = _mean_length(a.coordinates, pointers)
    entries = max(most, int(min(SPARE_ENTRIES * lines * lanes / (mean + 1), used.sum())))
    metadata = min(-(-entries // lanes) + 1, lines - 1)
    places = np.empty(len(a.coordinates) if with_places else 0, np.int64)
    rows, windows, table = _plan(
        a.pointers, a.coordinates, T_i, pointers, lines - metadata, metadata, lanes, used, places, _positions
    )
    return ListPlan(rows, places, windows, RingPlan(*(table[:, n] for n in range(5))))


@njit(cache=True)
def _used(pointers: NDArray[Any], coordinates: NDArray[Any], T_i: int, columns: int) -> Index:
    """Different columns in each tile along i."""
    rows = len(pointers) - 1
    tiles = -(-rows // T_i)
    found = np.zeros(tiles, np.int64)
    met = np.full(columns, -1, np.int64)
    for tile in range(tiles):
        for position in range(pointers[tile * T_i], pointers[min(rows, (tile + 1) * T_i)]):
            k = coordinates[position]
            if met[k] != tile:
                met[k] = tile
                found[tile] += 1
    return found


@njit(cache=True)
def _mean_length(coordinates: NDArray[Any], pointers: NDArray[Any]) -> float:
    """Mean length of the rows of B that any element of A uses."""
    met = np.zeros(len(pointers) - 1, np.bool_)
    for position in range(len(coordinates)):
        met[coordinates[position]] = True
    count, elements = 0, 0
    for k in range(len(met)):
        if met[k]:
            count += 1
            elements += pointers[k + 1] - pointers[k]
    return elements / count if count > 0 else 0.0


# Positions of the lowest bit of a 64-bit word, by the top six bits of its product with this number.
LOWEST_BIT = 0x03F79D71B4CB0A89
_positions = np.zeros(64, np.int64)
_positions[[((LOWEST_BIT << n) & (2**64 - 1)) >> 58 for n in range(64)]] = np.arange(64)
# Fewer numbers than this are sorted by insertion.
FEW = 12


@njit(cache=True)
def _rise(numbers: Index, count: int, words: NDArray[np.uint64], groups: NDArray[np.uint64], where: Index) -> None:
    """Sorts the first ``count`` different numbers in place, through a map of bits that is empty before and after.

    ``words``: a bit for each number; ``groups``: a bit for each word. ``where``: position of a lowest bit.
    """
    if count <= FEW:
        for n in range(1, count):
            number = numbers[n]
            at = n
            while at > 0 and numbers[at - 1] > number:
                numbers[at] = numbers[at - 1]
                at -= 1
            numbers[at] = number
        return
    one, zero, top, factor = np.uint64(1), np.uint64(0), np.uint64(58), np.uint64(LOWEST_BIT)
    least, most = numbers[0], numbers[0]
    for n in range(count):
        number = numbers[n]
        least, most = min(least, number), max(most, number)
        word = number >> 6
        words[word] |= one << np.uint64(number & 63)
        groups[word >> 6] |= one << np.uint64(word & 63)
    n = 0
    for group in range(least >> 12, (most >> 12) + 1):
        bits = groups[group]
        groups[group] = zero
        while bits != zero:
            low = bits & (~bits + one)
            bits ^= low
            word = (group << 6) + where[np.int64((low * factor) >> top)]
            inner = words[word]
            words[word] = zero
            while inner != zero:
                low = inner & (~inner + one)
                inner ^= low
                numbers[n] = (word << 6) + where[np.int64((low * factor) >> top)]
                n += 1


@njit(cache=True)
def _plan(
    a_pointers: NDArray[Any],
    a_coordinates: NDArray[Any],
    T_i: int,
    pointers: NDArray[Any],
    data_lines: int,
    metadata: int,
    lanes: int,
    used: Index,
    places: Index,
    where: Index,
) -> tuple[Index, Index, Index]:
    """``used``: rows of B that each tile uses. ``places``: as long as A's elements, written; or empty, and not."""
    rows, inner = len(a_pointers) - 1, len(pointers) - 1
    tiles, most, longest = len(used), 0, 0
    for tile in range(tiles):
        most += used[tile]
        longest = max(longest, used[tile])
    listed = np.empty(most, np.int64)
    line_of = np.empty(most, np.int64)  # of each place: its row's first line, -1 where it has none
    windows = np.zeros((tiles, 2), np.int64)
    table = np.zeros((tiles, 5), np.int64)
    # Of each row: its place, the tile that used it last, its elements.
    rows_of_b = np.empty((inner, 3), np.int64)
    for k in range(inner):
        rows_of_b[k, 0] = -1
        rows_of_b[k, 1] = -1
        rows_of_b[k, 2] = pointers[k + 1] - pointers[k]
    new = np.empty(longest + 1, np.int64)
    words = np.zeros((inner >> 6) + 1, np.uint64)
    groups = np.zeros((inner >> 12) + 1, np.uint64)
    begin, end = 0, 0
    block, block_line, tail = 0, 0, 0  # place and first line of the rows loaded last, and the line behind them
    first = 0  # the oldest place with a line
    for tile in range(tiles):
        low, high = a_pointers[tile * T_i], a_pointers[min(rows, (tile + 1) * T_i)]
        if low == high:
            continue
        count, elements = 0, 0
        for position in range(low, high):
            k = a_coordinates[position]
            if rows_of_b[k, 1] != tile:
                rows_of_b[k, 1] = tile
                if rows_of_b[k, 0] < begin:
                    new[count] = k
                    count += 1
                    elements += rows_of_b[k, 2]
        line, lines = 0, data_lines
        if count > 0:
            wanted = -(-elements // lanes)
            while begin < end:
                while first < end and (first < begin or line_of[first] < 0):
                    first += 1
                line, lines = 0, data_lines
                if first < end:
                    head = line_of[first]
                    turned = first < block and block_line < head
                    line, lines = free_lines(head, turned, tail, data_lines, wanted)
                if lines >= wanted and end + count - begin + lanes <= metadata * lanes:
                    break
                row = listed[begin]
                if rows_of_b[row, 0] == begin:
                    rows_of_b[row, 0] = -1
                    if rows_of_b[row, 1] == tile:
                        new[count] = row
                        count += 1
                        elements += rows_of_b[row, 2]
                        wanted = -(-elements // lanes)
                begin += 1
        kept = end - begin
        if kept == 0:
            line, lines = 0, data_lines
        _rise(new, count, words, groups, where)
        at = line * lanes
        held = 0
        for n in range(count):
            row = new[n]
            size = rows_of_b[row, 2]
            place = end + n
            listed[place] = row
            rows_of_b[row, 0] = place
            line_of[place] = -1
            if held == n and at + size <= (line + lines) * lanes:
                held += 1
                if size > 0:
                    line_of[place] = at // lanes
                at += size
        if len(places) > 0:
            for position in range(low, high):
                places[position] = rows_of_b[a_coordinates[position], 0]
        for n in range(held, count):
            rows_of_b[new[n], 0] = -1  # bumped: loaded again by the next tile that uses it
        windows[tile, 0], windows[tile, 1] = begin, end + count
        table[tile, 0], table[tile, 1], table[tile, 2], table[tile, 3], table[tile, 4] = (
            kept,
            line,
            lines,
            metadata,
            held,
        )
        if at > line * lanes:
            block, block_line, tail = end, line, -(-at // lanes)
        end += count
    return listed[:end].copy(), windows, table
