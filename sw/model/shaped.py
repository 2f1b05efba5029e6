"""The model of machines that the hardware is not: tiles whose shapes differ, and tiles of B that hold only what is used.

Rules of access, metadata, merging and time are those of :mod:`.machine`. What differs is which tiles there are.
"""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sw.engine_result import EngineResult
from sw.formats.csr import Csr
from sw.golden.partition import tile_bytes
from sw.golden.tuning import Counts
from sw.plan.plan import Plan
from sw.plan.shapes import TileShapes
from sw.timing.constants import SETTLE_CYCLES
from sw.timing.job import JOB_FIELDS

from .kernels import fiber_counts
from .machine import Run, add_gathered, delayed_by_a
from .rows_of_c import Back
from .tile_jobs import gather_tile
from .walk import TileWalk, Tuning

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["run_shaped"]


def run_shaped(design: "Design", planned: Plan[Csr]) -> EngineResult:
    """Runs a scheme with ``tiles`` in the model; parameters and result as :func:`.machine.run_model`.

    Tiles that follow one another along i while B's tile stays are one visit: A streams, so that where it is cut changes
    nothing that moves. The j order of the list makes k innermost of what remains, so that empty tiles are left out.
    """
    run = _UsedRun if planned.shapes is None else _ShapedRun
    return run(design, planned).result()


class _ShapedWalk(TileWalk):
    """Tiles with the sides of a list."""

    shapes: TileShapes

    def loaded(self, counts: Counts) -> None:
        """Shapes are decided already."""

    def _step(self, moves: list[int], at_end: list[bool]) -> None:
        super()._step(moves, at_end)
        _, j, k = self._begin
        self.shape[1:] = (self.shapes.ends_j[j] - j, self.shapes.ends_k[j, k] - k)


class _ShapedRun(Run):
    def __init__(self, design: "Design", planned: Plan[Csr]) -> None:
        super().__init__(design, planned)
        assert planned.shapes is not None
        self.shapes = shapes = planned.shapes
        self.tile = (self.a.rows, shapes.ends_j[0], shapes.ends_k[0, 0])
        partition = self.scheme.partition("B", design)
        self.tuning = Tuning(grain_j=shapes.grain_j, grain_k=shapes.grain_k, partition=partition)

    def _walk(self, walk: TileWalk) -> None:
        shaped = _ShapedWalk(
            self.extent, self.tile, "jik", walk.occupied_a, walk.occupied_b, walk.line_bits, tuning=self.tuning
        )
        shaped.shapes = self.shapes
        super()._walk(shaped)
        walk.tiles, walk.visited, walk.empty = shaped.tiles, shaped.visited, shaped.empty
        walk.map_lines = shaped.map_lines


class _UsedRun(Run):
    """k and j whole; each tile along i loads the rows of B that it uses, one by one, and keeps what fits."""

    def _walk(self, walk: TileWalk) -> None:
        a, b = self.a, self.b
        begin, end = b.pointers[:-1], b.pointers[1:]
        sizes = np.diff(b.pointers)
        columns = len(self.stamps[0])
        lengths = fiber_counts(
            a.pointers, self.a_coordinates, begin, end, self.b_coordinates, columns, max(1, a.columns), 1
        )[:, 0].astype(np.int64)
        position = 0
        found = self.planned.rows_of_b
        assert found is not None
        for tile, (first, last) in enumerate(pairwise(self.planned.begins.tolist())):
            used = found.rows_of(np.arange(*found.windows[tile]))
            walk.visited += 1
            before = self.clock.mark()
            bumped, load_beats, usable = self._load_used(
                used, begin[used], sizes[used], int(found.placed[tile]), int(found.read[tile])
            )
            rows = last - first
            self.reads.rows(
                "a", a.pointers, (first, last), True, False, False, begin=a.pointers[:-1], end=a.pointers[1:]
            )
            usable = delayed_by_a(self, usable, before)
            before = before[0] | {name: before[0][name] + beats for name, beats in load_beats.items()}, before[1]
            examined = int(a.pointers[last] - a.pointers[first])
            jobs = np.empty((2 * rows + 2 * (examined // self.design.pe.merge_radix) + 2, len(JOB_FIELDS)), np.int64)
            of_rows = lengths[first:last]
            number = gather_tile(
                first,
                last,
                a.pointers,
                a.pointers[:-1],
                a.pointers[1:],
                self.a_coordinates,
                begin,
                end,
                self.b_coordinates,
                bumped,
                False,
                Back.none(rows),
                of_rows,
                self.design.pe.merge_radix,
                self.lanes,
                self.reads.pitches["b"],
                self.stamps,
                self.totals,
                jobs,
                False,
                0,
                usable,
                self.pace.slot_factors,
                self.pace.kept_lines,
            )
            nonzeros = int(of_rows.sum())
            self.beats["write_c_data"] += self.reads.result_beats(position, nonzeros)
            self.beats["write_c_meta"] += self.reads.word_beats(first, rows + 1)
            position += nonzeros
            beats = sum(load_beats.values())
            moved, a_beats = self.clock.moved(before) + beats, self.clock.moved_of_a(before)
            self.clock.tile(moved, before, rows, jobs[:number], a_beats=a_beats)
        add_gathered(self)

    def _load_used(
        self, used: NDArray[np.int64], begin: NDArray[np.int64], lengths: NDArray[np.int64], fitting: int, read: int
    ) -> tuple[NDArray[np.bool_], dict[str, int], NDArray[np.int64]]:
        """Loads these rows, whose pointers come in pairs, row by row: the first ``fitting`` stay, ``read`` of them come.

        Returns which rows of B are bumped, the beats read, and when each row of B can be used: beats come evenly over
        nonzeros and rows; what is bumped waits for the end.
        """
        self.loaded_b.count(lengths, np.arange(len(used)) >= fitting, tile_bytes(lengths))
        words = 2 * self.lanes
        moved = {
            "read_b_meta": self.reads.line_beats * int(np.sum(1 + (used % words == words - 1))),
            "read_b_data": self.reads.row_beats("b", begin[:read], (begin + lengths)[:read]),
        }
        for name, beats in moved.items():
            self.beats[name] += beats
        usable = np.zeros(self.extent[2], np.int64)
        if len(used):
            beats = int(sum(moved.values()) * self.pace.beat)
            weight = np.cumsum(lengths) + 2 * np.arange(1, len(lengths) + 1)
            usable[used] = beats * weight // weight[-1] + SETTLE_CYCLES
            usable[used[fitting:]] = beats + SETTLE_CYCLES
        bumped = np.zeros(self.extent[2], np.bool_)
        bumped[used[fitting:]] = True
        return bumped, moved, usable
