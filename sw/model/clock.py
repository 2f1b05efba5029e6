"""The cycles of a run, tile by tile: what moves and what computes beside it."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.timing.constants import (
    LOOK_UP_CYCLES,
    NEXT_CHAIN_CYCLES,
    NEXT_TILE_GAIN,
    PHASE_CYCLES,
    START_CYCLES,
    TILE_CYCLES,
    TILE_LATENCIES,
)
from sw.timing.job import JOB_FIELDS, ONE_TILE
from sw.timing.jobs import jobs_end
from sw.timing.pace import Pace, chain_cycles, flying_cycles, memory_cycles

from .tile_jobs import TOTALS

__all__ = ["Clock", "Mark"]

# What had been counted at a moment: beats by tensor and kind, and the totals of the kernels.
Mark = tuple[dict[str, int], NDArray[np.int64]]


class Clock:
    """Adds up cycles.

    Parameters
    ----------
    pace: of the machine. beats, totals: what a run counts, by reference (:mod:`.reads`, ``kernels.TOTALS``).
    next_tile_waits: each tile but the first looks its bits of the maps up.
    overlaps_loads: a tile that is loaded before its rows is loaded beside them, as where A streams.

    ``cycles`` so far, of ``tiles`` tiles.
    """

    def __init__(
        self,
        pace: Pace,
        beats: dict[str, int],
        totals: NDArray[np.int64],
        *,
        next_tile_waits: bool,
        overlaps_loads: bool,
    ) -> None:
        self.pace = pace
        self.beats = beats
        self.totals = totals
        self.next_tile_waits = next_tile_waits
        self.overlaps_loads = overlaps_loads
        self.cycles = pace.latency + START_CYCLES
        self.tiles = 0
        self._newest = 0  # cycles of the tile before
        self._looked_up = 0, 0  # tiles, and lines of maps
        self._chains = 0
        # Tiles that run into one another, the rows of these, and what had been counted before the first.
        self._chain: list[tuple[NDArray[Any], int]] = []
        self._chain_rows = self._chain_bursts = 0
        self._chain_begin = self.mark()

    def mark(self) -> Mark:
        """What is counted now."""
        return dict(self.beats), self.totals.copy()

    def moved(self, since: Mark) -> int:
        """Beats since then, but for those that the kernels count."""
        return sum(self.beats.values()) - sum(since[0].values())

    def moved_of_a(self, since: Mark) -> int:
        """Beats of A since then."""
        return sum(self.beats[name] - since[0][name] for name in ("read_a_data", "read_a_meta"))

    def tile(
        self,
        moved: int,
        since: Mark,
        rows: int,
        jobs: NDArray[Any],
        *,
        load_beats: int = 0,
        load_cycles: int = 0,
        firsts: NDArray[np.int64] = ONE_TILE,
        loads: NDArray[np.int64] = ONE_TILE,
        a_beats: int = 0,
        bursts: int = 0,
        waits: int = 0,
        region: int | None = None,
        partial_rows: bool = False,
    ) -> None:
        """Adds one tile: loading, then the slowest of memory, dispatch and processing elements.

        ``moved``: beats, but for ``load_beats``, which move before its rows in ``load_cycles`` at least, and for what the kernels
        count, since ``since``.
        ``firsts``, ``loads``, ``a_beats``: see :func:`sw.timing.jobs.jobs_end`. ``bursts`` beside those of look-ups and leaves.
        ``waits``: cycles before the first row. ``region``: lines through which leaves in memory pass, if not those of B's tiles;
        ``partial_rows``: these are partial rows.
        """
        begun = self.cycles
        pace = self.pace if region is None else self.pace._replace(region=region, partial_rows=partial_rows)
        if self.overlaps_loads:
            moved, load_beats = moved + load_beats, 0
        done = dict(zip(TOTALS, (int(x) for x in self.totals - since[1]), strict=True))
        looked_up = self.pace.line_beats * done["lookup_lines"]
        of_c = self.pace.line_beats * (done["unit_lines"] + done["scratch_written"])
        moved += done["bumped_beats"] + looked_up + of_c
        latency, reader = self.pace.latency, self.pace.reader
        computing = int(jobs_end(jobs, pace, firsts, loads, a_beats + looked_up))
        # Each look-up and each leaf is a burst of its own.
        bursts += done["lookups"] + int(jobs[:, JOB_FIELDS.index("fetched")].sum())
        flying = flying_cycles(bursts, latency, self.pace.outstanding)
        memory = math.ceil(memory_cycles(moved * self.pace.beat, flying))
        if load_beats:
            self.cycles += max(math.ceil(load_beats * self.pace.beat), load_cycles) + latency + reader + PHASE_CYCLES
        # One reader of records serves all PEs, a line in a cycle.
        lines = done["bumped_lines"] + done["unit_lines"]
        loading = load_cycles if self.overlaps_loads else 0
        self.cycles += waits + max(memory, computing, rows, lines, loading)
        if self._chain:
            self._chains += 1
            self.cycles += chain_cycles(1, latency) if self._chains == 1 else NEXT_CHAIN_CYCLES
        else:
            self.cycles += int(TILE_LATENCIES * latency) + reader + TILE_CYCLES
        if self.tiles and self.next_tile_waits:
            self.cycles += latency - NEXT_TILE_GAIN
        self.tiles += 1
        self._newest = self.cycles - begun

    def look_up(self, tiles: int, lines: int) -> None:
        """Adds what it takes to look up the tiles that were left out while the tile before worked.

        ``tiles``, ``lines``: looked up so far, the next tile among them, and lines of maps that were read for it.
        """
        seen, read = self._looked_up
        self._looked_up = tiles, lines
        self.cycles += max(0, LOOK_UP_CYCLES * (tiles - 1 - seen) + (lines - read) * self.pace.latency - self._newest)

    def chain(self, rows: int, jobs: NDArray[Any], load: int, bursts: int) -> None:
        """A tile that runs into the one behind it; ``load``, ``bursts``: beats and bursts of its load."""
        self._chain.append((jobs, load))
        self._chain_rows += rows
        self._chain_bursts += bursts

    def end_chain(self) -> None:
        """Adds the tiles that ran into one another."""
        if self._chain:
            begin = self._chain_begin
            self.tile(
                self.moved(begin),
                begin,
                self._chain_rows,
                np.concatenate([jobs for jobs, _ in self._chain]),
                firsts=np.cumsum([len(jobs) for jobs, _ in self._chain[:-1]], dtype=np.int64),
                loads=np.array([load for _, load in self._chain[1:]], np.int64),
                a_beats=self.moved_of_a(begin),
                bursts=self._chain_bursts,
            )
        self._chain, self._chain_rows, self._chain_bursts = [], 0, 0
        self._chain_begin = self.mark()
