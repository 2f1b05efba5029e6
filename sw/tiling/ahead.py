"""Which tiles may load their rows of B while the rows of C of the tile before are still being merged.

A tile's new rows (:mod:`.ring`, :mod:`.lists`) go where rows lie that it does not want itself; the tile before may still want
them. Where it does not, the hardware need not wait for it, but only for the tiles before that one.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .ring import Index, RingPlan

__all__ = ["loads_ahead"]


def loads_ahead(
    windows: Index, ring: RingPlan, pointers: NDArray[Any], places: NDArray[Any], T_i: int, lengths: Index, lanes: int
) -> NDArray[np.bool_]:
    """bool[tiles]: none of the lines that a tile fills holds a row that the tile before uses, and it keeps some rows.

    Where it keeps none, a chain of windows begins anew, and with it the ring of metadata.

    Parameters
    ----------
    windows, ring: int[tiles, 2] and what each keeps and loads.
    pointers, places: int[I + 1] begins of A's rows in int[nnz], where each element's row of B stands: the k that windows are of.
    T_i: rows of a tile.
    lengths: int[K], elements of the row of B at each of these places.
    lanes: elements in a line.
    """
    found: NDArray[np.bool_] = _loads_ahead(
        windows, ring.kept, ring.line, ring.held, pointers, places, T_i, lengths, lanes
    )
    return found


@njit(cache=True)
def _loads_ahead(
    windows: NDArray[Any],
    kept: NDArray[Any],
    line: NDArray[Any],
    held: NDArray[Any],
    pointers: NDArray[Any],
    places: NDArray[Any],
    T_i: int,
    lengths: NDArray[Any],
    lanes: int,
) -> NDArray[np.bool_]:
    rows = len(pointers) - 1
    ahead = np.zeros(len(windows), np.bool_)
    # Lines of each row in place, as they were when it was loaded last: first, and behind the last; equal where it has none.
    first = np.zeros(len(lengths), np.int64)
    behind = np.zeros(len(lengths), np.int64)
    for tile in range(len(windows)):
        begin, end = windows[tile, 0], windows[tile, 1]
        if begin >= end:
            continue
        fresh = begin + kept[tile]
        elements = 0
        for place in range(fresh, fresh + held[tile]):
            elements += lengths[place]
        low, high = line[tile], line[tile] + -(-elements // lanes)
        ahead[tile] = tile > 0 and kept[tile] > 0
        if ahead[tile]:
            for position in range(pointers[(tile - 1) * T_i], pointers[min(rows, tile * T_i)]):
                place = places[position]
                if first[place] < high and low < behind[place]:
                    ahead[tile] = False
                    break
        at = low * lanes
        for place in range(fresh, end):
            first[place], behind[place] = 0, 0
            if place < fresh + held[tile] and lengths[place] > 0:
                first[place], behind[place] = at // lanes, -(-(at + lengths[place]) // lanes)
                at += lengths[place]
    return ahead
