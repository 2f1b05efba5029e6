"""Whether each row of B that a plan puts in a place is still there for the last tile that uses it.

A plan is made once and read by many: a place that another row takes too soon would give wrong values without a sign of it in the
hardware, which knows lines and entries and not whose they are.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .gather import Index, RowPlan, Rows

__all__ = ["Overwritten", "overwritten"]


class Overwritten(NamedTuple):
    """``row`` of B, which tile ``used`` needs, loses its place to the row ``by`` when ``tile`` loads that."""

    row: int
    by: int
    tile: int
    used: int


def overwritten(plan: RowPlan, a: Rows, begins: Index, pointers: NDArray[Any], lanes: int) -> Overwritten | None:
    """The first row whose line or entry goes to another one while it is needed; None where there is none.

    Parameters
    ----------
    plan: with ``entries`` and ``places``. a, begins, pointers, lanes: as of :func:`.replacement.place_rows`.
    """
    assert plan.entries is not None and plan.rows is not None
    last = np.full(len(plan.lines), -1, np.int64)
    tiles = np.repeat(np.arange(len(begins) - 1), np.diff(a.pointers[begins]))
    last[plan.places] = tiles  # of places that are named more than once the last tile stays
    sizes = -(-np.diff(pointers)[plan.rows] // lanes)
    place, before, tile = _taken(plan.lines, sizes, plan.entries, plan.fresh, plan.windows[:, 1], plan.early, last)
    if place < 0:
        return None
    return Overwritten(int(plan.rows[before]), int(plan.rows[place]), int(tile), int(last[before]))


@njit(cache=True)
def _taken(
    lines: Index, sizes: Index, entries: Index, fresh: Index, end: Index, early: NDArray[np.bool_], last: Index
) -> tuple[int, int, int]:
    """The place that is loaded into another one's line or entry, that other place, and the tile; -1 for none.

    ``last``: the last tile that uses each place. With ``early`` the tile before is still computed, and needs its rows.
    """
    most = (lines + sizes).max() if len(lines) else 0  # -1 where no row has a line: empty rows have none
    of_line = np.full(max(most, 0), -1)
    of_entry = np.full(entries.max() + 1 if len(entries) else 0, -1)
    for tile in range(len(fresh)):
        needed = tile - early[tile]
        for place in range(fresh[tile], end[tile]):
            before = of_entry[entries[place]]
            if before >= 0 and last[before] >= needed:
                return place, before, tile
            of_entry[entries[place]] = place
            for line in range(lines[place], lines[place] + sizes[place] if lines[place] >= 0 else lines[place]):
                before = of_line[line]
                if before >= 0 and last[before] >= needed:
                    return place, before, tile
                of_line[line] = place
    return -1, -1, -1
