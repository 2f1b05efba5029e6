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


def plan_list(a: Rows, T_i: int, pointers: NDArray[Any], lines: int, lanes: int) -> ListPlan:
    """Loads the rows that each tile uses, in ascending order, behind those that are there.

    Rows leave in the order in which they came, no sooner than room is needed; one that the tile uses is then
    loaded again. Where all must leave, a chain begins anew, and what then does not fit is bumped.

    Parameters
    ----------
    a, T_i: the operand A, and rows of a tile.
    pointers: int[K + 1], rising: where each row of B begins, and the end.
    lines: of B's partition without its FIFO-managed region. lanes: elements in a line.

    Raises ListError where a tile uses more rows than entries of metadata would leave a line for.
    """
    tiles = -(-(len(a.pointers) - 1) // T_i)
    used = check_list(a, T_i, len(pointers) - 1, lines, lanes)
    lines = min(lines, MOST_LINES)
    most = int(used.max(initial=0))
    touched = np.zeros(len(pointers) - 1, np.bool_)
    touched[a.coordinates] = True
    mean = float(np.diff(pointers)[touched].mean()) if touched.any() else 0.0
    entries = max(most, int(min(SPARE_ENTRIES * lines * lanes / (mean + 1), used.sum())))
    metadata = min(-(-entries // lanes) + 1, lines - 1)
    rows, places, windows, table = _plan(
        a.pointers, a.coordinates, T_i, pointers, lines - metadata, metadata, lanes, tiles, int(used.sum())
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
def _plan(
    a_pointers: NDArray[Any],
    a_coordinates: NDArray[Any],
    T_i: int,
    pointers: NDArray[Any],
    data_lines: int,
    metadata: int,
    lanes: int,
    tiles: int,
    most: int,
) -> tuple[Index, Index, Index, Index]:
    rows = len(a_pointers) - 1
    listed = np.empty(most, np.int64)
    line_of = np.empty(most, np.int64)  # of each place: its row's first line, -1 where it has none
    places = np.empty(len(a_coordinates), np.int64)
    windows = np.zeros((tiles, 2), np.int64)
    table = np.zeros((tiles, 5), np.int64)
    place_of = np.full(len(pointers) - 1, -1, np.int64)  # of rows in place
    met = np.full(len(pointers) - 1, -1, np.int64)  # the tile that used a row last
    begin, end = 0, 0
    block, block_line, tail = 0, 0, 0  # place and first line of the rows loaded last, and the line behind them
    first = 0  # the oldest place with a line
    for tile in range(tiles):
        low, high = a_pointers[tile * T_i], a_pointers[min(rows, (tile + 1) * T_i)]
        if low == high:
            continue
        fresh = np.empty(high - low, np.int64)
        count, elements = 0, 0
        for position in range(low, high):
            k = a_coordinates[position]
            if met[k] != tile:
                met[k] = tile
                if place_of[k] < begin:
                    fresh[count] = k
                    count += 1
                    elements += pointers[k + 1] - pointers[k]
        line, lines = 0, data_lines
        extra = np.empty(0, np.int64)
        if count > 0:
            dropped = np.empty(end - begin, np.int64)
            drops = 0
            while begin < end:
                while first < end and (first < begin or line_of[first] < 0):
                    first += 1
                wanted = -(-elements // lanes)
                line, lines = 0, data_lines
                if first < end:
                    head = line_of[first]
                    turned = first < block and block_line < head
                    line, lines = free_lines(head, turned, tail, data_lines, wanted)
                if lines >= wanted and end + count - begin + lanes <= metadata * lanes:
                    break
                row = listed[begin]
                if place_of[row] == begin:
                    place_of[row] = -1
                    if met[row] == tile:
                        dropped[drops] = row
                        drops += 1
                        count += 1
                        elements += pointers[row + 1] - pointers[row]
                begin += 1
            extra = dropped[:drops]
        kept = end - begin
        if kept == 0:
            line, lines = 0, data_lines
        new = np.sort(np.concatenate((fresh[: count - len(extra)], extra)))
        at = line * lanes
        held = 0
        for n in range(count):
            row = new[n]
            size = pointers[row + 1] - pointers[row]
            place = end + n
            listed[place] = row
            place_of[row] = place
            line_of[place] = -1
            if held == n and at + size <= (line + lines) * lanes:
                held += 1
                if size > 0:
                    line_of[place] = at // lanes
                at += size
        for position in range(low, high):
            places[position] = place_of[a_coordinates[position]]
        for n in range(held, count):
            place_of[new[n]] = -1  # bumped: loaded again by the next tile that uses it
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
    return listed[:end].copy(), places, windows, table
