"""How many rows of A a tile should take that keeps rows of B in place: a climb from where half of the buffer is used.

Taller tiles cost less by themselves, until the rows of B that they use leave no room for those of the tile before, and
then for their own. Between the two cycles have one valley, most often; each step is a replay (:mod:`.kept_rows`).
"""

from collections.abc import Callable

import numpy as np

from sw.stats.pattern import Index
from sw.stats.workload import Workload

from .cost import Prediction, predict_kept, work_rows
from .kept_rows import RowWork
from .kept_space import FEWEST_ROWS, kept_room, kept_scheme, kept_windows
from .lists import ListError
from .protocol import Machine
from .sampling import runs_of
from .scheme import Scheme

__all__ = ["best_kept"]

# A step has to save this share for the climb to go on.
GAIN = 0.005
# Steps at first, and around the best then.
STEP = 2.0
FINER = 2**0.5
# Operands of many more nonzeros are climbed on so many, in runs of rows, by tiles of up to a part of one.
SEARCHED = 3 << 15
MANY_MORE = 1.5
RUNS = 3
TILES_OF_A_RUN = 3
# So much worse than the best so far windows of the same height may be before other heights are tried.
HOPELESS = 1.05


class _Costs:
    """Cycles by height, each found once."""

    def __init__(self, cycles: Callable[[int], float], most: int) -> None:
        self._cycles = cycles
        self.most = most
        self.known: dict[int, float] = {}

    def at(self, height: float) -> float:
        """Infinite beyond the heights that there are."""
        T_i = round(height)
        if not FEWEST_ROWS <= T_i <= self.most:
            return float("inf")
        if T_i not in self.known:
            self.known[T_i] = self._cycles(T_i)
        return self.known[T_i]

    def climb(self, start: int) -> int:
        """The height at the bottom of the valley, a step up or down from which gains too little."""
        best, least = float(start), self.at(start)
        while least == float("inf") and best > FEWEST_ROWS:
            best = max(float(FEWEST_ROWS), best / STEP)
            least = self.at(best)
        for factor in (STEP, 1 / STEP):
            began = best
            while self.at(best * factor) < (1 - GAIN) * least:
                best *= factor
                least = self.at(best)
            if best != began:
                break
        return round(best)

    def finest(self, height: int) -> int:
        """The best of this one and those beside it."""
        return min((height, round(height / FINER), round(height * FINER)), key=lambda T_i: (self.at(T_i), T_i))


def _start(work: Workload, room: int, lanes: int) -> int:
    """Rows of A that use half of the room, were all the rows of B that they use different ones."""
    height = room * lanes * work.I / 2 / max(1.0, work.effmac + work.a.nnz)
    return int(max(FEWEST_ROWS, min(work.I // 2, height)))


def _part(work: Workload, rows: RowWork) -> tuple[RowWork, int]:
    """Rows that the climb looks at, and the tallest tiles that these say anything of."""
    tallest = work.I // 2
    if work.a.nnz <= MANY_MORE * SEARCHED:
        return rows, tallest
    run = max(1, work.I * SEARCHED // (RUNS * work.a.nnz))
    return rows.of(runs_of(work.I, RUNS * run, run)), max(FEWEST_ROWS, min(tallest, run // TILES_OF_A_RUN))


class _Heights:
    """Costs of one kind of tiles, on some rows of A.

    Parameters
    ----------
    listed: tiles load what they use; else windows. less_than: what windows have to come near.
    """

    def __init__(
        self, work: Workload, design: Machine, rows: RowWork, room: int, listed: bool, less_than: float = float("inf")
    ) -> None:
        self.work = work
        self.design = design
        self.rows = rows
        self.room = room
        self.listed = listed
        self.less_than = less_than

    def windows(self, T_i: int) -> Index | None:
        """None where there are none, or they leave no room for a line of data."""
        return kept_windows(self.rows.a, self.work, T_i, self.room, self.design.lanes)

    def predicted(self, T_i: int, windows: Index | None) -> Prediction | None:
        """None where a tile uses too many rows, or windows cannot come near."""
        if not self.listed and (windows is None or self._floor(T_i, windows) > HOPELESS * self.less_than):
            return None
        try:
            return predict_kept(self.work, self.design, self.rows, T_i, self.room, windows)
        except ListError:
            return None

    def cycles(self, T_i: int) -> float:
        found = self.predicted(T_i, None if self.listed else self.windows(T_i))
        return float("inf") if found is None else float(found.cycles)

    def _floor(self, T_i: int, windows: Index) -> float:
        """Lines that windows move at least: A and C once, and what of their rows finds no room at each use, used evenly."""
        lanes, pointers, rows = self.design.lanes, self.work.b.pointers, self.rows
        elements = pointers[windows[:, 1]] - pointers[windows[:, 0]]
        macs = np.add.reduceat(rows.macs, np.arange(0, rows.a.rows, T_i))
        bumped = macs * np.maximum(0.0, 1 - lanes * self.room / np.maximum(1, elements))
        return float(bumped.sum() + rows.a.nnz + rows.elements.sum()) / lanes


def best_kept(
    policy: str, work: Workload, design: Machine, *, lists: bool = True, windows: bool = True
) -> list[tuple[Scheme, Prediction]]:
    """The schemes with lists (:mod:`.lists`) and with windows (:mod:`.windows`) of the fewest predicted cycles; not validated.

    None of a kind where A has fewer than two times ``FEWEST_ROWS`` rows or no elements, where the design's buffer has no
    default partition, and where even few rows of A use more rows of B than there is room for their metadata; no windows where
    these cannot come near lists.

    Parameters
    ----------
    policy: name that the schemes carry.
    work: the operands, A of I x K and B of K x J.
    """
    room = kept_room(work, design)
    if room == 0:
        return []
    rows = work_rows(work, design)
    part, most = _part(work, rows)
    start = min(_start(work, room, design.lanes), most)
    found = []
    least, of_all = float("inf"), float("inf")
    for listed in [True] * lists + [False] * windows:
        some = _Costs(_Heights(work, design, part, room, listed, least).cycles, most)
        if not listed and some.at(start) > HOPELESS * least:
            continue
        T_i = some.climb(start)
        least = min(least, some.at(T_i))
        heights = _Heights(work, design, rows, room, listed, of_all)
        whole = some if part is rows else _Costs(heights.cycles, work.I // 2)
        if whole is not some and STEP * T_i > most:
            T_i = whole.climb(T_i)  # the valley may lie beyond
        T_i = whole.finest(T_i)
        spans = None if listed else heights.windows(T_i)
        prediction = heights.predicted(T_i, spans)
        if prediction is not None:
            found.append((kept_scheme(policy, work, design, T_i, spans), prediction))
            of_all = min(of_all, prediction.cycles)
            start = min(T_i, most)
    return found
