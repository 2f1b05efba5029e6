"""Trace-driven model of the machine: traffic exact to the byte, cycles from what each phase has to move.

Every tile is visited as the tiling controller visits it; what it moves is counted from the real nonzeros with the rules
of the accessors (``docs/architecture.md``). No value is computed.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sw.engine_result import EngineResult
from sw.formats.csr import Csr
from sw.formats.distinct import compacted
from sw.golden.tuning import quadrants
from sw.operands.memory import require_memory
from sw.plan.plan import Plan
from sw.plan.thresholds import BYTES_A_PIECE, BYTES_A_ROW, COUNTS_A_MAC, JOBS_A_GROUP, MOST_COUNTS
from sw.timing.constants import AHEAD_LINES, NEXT_TILE_GAIN, PHASE_CYCLES, START_CYCLES, TILE_CYCLES, TILE_LATENCIES
from sw.timing.hardware import FIRST_CHUNK_LINES, NEXT_CHUNK_LINES
from sw.timing.jobs import JOB_FIELDS, ONE_TILE, jobs_end
from sw.timing.pace import pace_of

from .assembly import assembly_jobs
from .growth import RowGrowth, row_growth
from .kept_a import KeptA
from .kernels import TOTALS, boundaries, fetched_lines, fiber_counts, gather_tile, kept_rows
from .loaded_b import LoadedB
from .occupied import Occupied
from .reads import Reads
from .traffic_record import dram_bytes
from .walk import Tile, TileWalk, Tuning

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["EXACT_COUNTERS", "require_rows", "run_model"]

# Counters that are those of the hardware, not estimates of them.
EXACT_COUNTERS = (
    "macs",
    "jobs",
    "leaves",
    "tiles_total",
    "tiles_skipped",
    "tiles_overbooked",
    "bumped_elements",
    "bumped_fetches",
    "loads_a",
    "overbooked_a",
    "bumped_elements_a",
    "hits_a",
    "bumped_fetches_a",
    "tuning_adjustments",
)


def run_model(design: "Design", planned: Plan[Csr]) -> EngineResult:
    """Runs the model.

    Parameters
    ----------
    design, planned: what runs; the plan is of a scheme that is legal for the design.

    Returns
    -------
    EngineResult without values: cycles (estimated), counters, traffic, tiles, occupancy of A's and B's partitions.
    """
    return _Run(design, planned).result()


def require_rows(rows: int, source: str) -> None:
    """Refuses an operand of more rows than the model has room for, before anything is decided. Raises OperandError.

    Parameters
    ----------
    rows: of A. source: names it.
    """
    what = f"{source}: {rows:,} rows of C in the model"
    require_memory(rows * BYTES_A_ROW, what, "; no tiling takes less: rows without elements count, too")


class _Run:
    def __init__(self, design: "Design", planned: Plan[Csr]) -> None:
        self.design = design
        self.planned = planned
        self.scheme = scheme = planned.scheme
        self.a = a = planned.a
        self.b = b = planned.b
        self.lanes = design.lanes
        self.pace = pace_of(design)
        self.extent = (a.rows, b.columns, a.columns)
        # Tiles that load what they use: k is a place in the list of what is loaded.
        self.rows = planned.rows_of_b if scheme.gathers else None
        self.list = self.rows.rows if self.rows is not None else None
        if self.list is not None:
            self.extent = (*self.extent[:2], max(1, len(self.list)))
        self.windows = self.rows.windows if self.rows is not None else None
        grid_j, grid_k = planned.grids["j"], planned.grids["k"]
        self.tile = (scheme.T_i, grid_j.start, self.extent[2] if self.rows is not None else grid_k.start)
        self.tuning: Tuning | None = None
        if scheme.tuning:
            partition = scheme.partition("B", design)
            self.tuning = Tuning(grain_j=grid_j.grain, grain_k=grid_k.grain, partition=partition)
        self.reads = Reads(self.lanes)
        self.beats = self.reads.beats
        self.cycles = 0
        self._tiles_timed = 0
        self.totals = np.zeros(len(TOTALS), np.int64)
        # Tiles that run into one another, and what had been counted before the first of them.
        self._chain: list[tuple[NDArray[np.int64], int]] = []
        self._chain_rows = 0
        self._chain_before = dict(self.beats), self.totals.copy()
        self._partial: dict[tuple[int, int], tuple[NDArray[np.int64], NDArray[np.bool_]]] = {}
        self.kept_a = KeptA(scheme.partition("A", design))
        # Partial rows of C leave one half and enter the other.
        self.half_of_c = replace(
            scheme.partition("C", design), lines=scheme.buffer_bytes["C"] // design.line_bytes // 2
        )
        self.loaded_b = LoadedB(design, planned, self.reads, self.pace.beat)
        self.a_coordinates = a.coordinates.astype(np.int64) if self.rows is None else self.rows.places
        # Columns that B uses, numbered from 0: a hypersparse B may be billions wide.
        used, self.b_coordinates = compacted(b.coordinates, b.columns)
        self.used_columns = used
        columns = max(1, len(used))
        self.stamps = (np.full(columns, -1, np.int64), np.full(columns, -1, np.int64), np.zeros(1, np.int64))

    def _require_memory(self) -> None:
        """Refuses what has no room: tables of a column for each j tile, and what is known of each row and its job.

        Raises OperandError.
        """
        rows, columns, _ = self.extent
        tiles_j = -(-columns // self.tile[1])
        wide = rows * tiles_j * BYTES_A_PIECE if tiles_j > 1 else 0
        least = rows * BYTES_A_ROW
        shape = f"{rows:,} rows of C in {tiles_j:,} j tile{'s' if tiles_j > 1 else ''} of {self.tile[1]:,} columns"
        cure = f"; j left whole takes {least / 2**30:.1f} GiB (--tiling auto, or a larger --T_j)" if wide else ""
        require_memory(wide + least, f"model of {shape}", cure)

    def result(self) -> EngineResult:
        self._require_memory()
        walk = TileWalk(
            self.extent,
            self.tile,
            self.scheme.order,
            *self._occupied(),
            beat_bits=8 * self.design.line_bytes,
            keep_a=self.scheme.buffers("A"),
            tuning=self.tuning,
            windows=self.windows,
        )
        self.cycles = self.pace.latency + START_CYCLES
        self._walk(walk)
        if walk.tiles[1] > 1:
            self._assemble(walk)
        self.beats["read_a_meta"] += walk.map_beats["A"]
        self.beats["read_b_meta"] += walk.map_beats["B"]
        line = self.design.line_bytes
        counted = dict(zip(TOTALS, map(int, self.totals), strict=True))
        capacity = self.scheme.buffer_bytes["B"]
        traffic = dram_bytes(self.beats, self.design.line_bytes)
        held = [min(size, capacity) for size in self.loaded_b.occupancy]
        occupancy: dict[str, dict[str, Any]] = {}
        if self.scheme.buffers("A"):
            occupancy["A"] = {"bytes": self.kept_a.needed, "capacity": self.scheme.buffer_bytes["A"]}
        if self.scheme.buffers("B"):
            occupancy["B"] = {"bytes": self.loaded_b.occupancy, "capacity": capacity}
        return EngineResult(
            c=None,
            cycles=self.cycles,
            counters={
                "cycles": self.cycles,
                "macs": counted["products"],
                "jobs": counted["jobs"],
                "leaves": counted["leaves"],
                "tiles_total": walk.visited,
                "tiles_skipped": walk.empty,
                "tiles_overbooked": self.loaded_b.overbooked,
                "bumped_elements": self.loaded_b.bumped_elements,
                "bumped_fetches": counted["bumped_elements"],
                "tuning_adjustments": len(walk.adjustments),
                **self.kept_a.counters(),
                **self.beats,
            },
            dram_bytes=traffic,
            tiles={"total": walk.visited, "skipped_empty": walk.empty, "overbooked": self.loaded_b.overbooked},
            buffer={
                "A": self.kept_a.result(line),
                "B": {
                    "peak_bytes": max(held, default=0),
                    "mean_bytes": float(np.mean(held)) if held else 0.0,
                    "hits": counted["products"] - counted["bumped_elements"],
                    "bumped": counted["bumped_elements"],
                },
            },
            occupancy=occupancy,
            adjustments=[
                {"tile": number, "T_i": self.tile[0], "T_j": side_j, "T_k": side_k}
                for number, side_j, side_k in walk.adjustments
            ],
        )

    def _occupied(self) -> tuple[Occupied, Occupied]:
        """Which tiles of A and B hold anything; of cells where shapes are tuned. Where tiles load what they use nobody asks."""
        if self.rows is not None:
            nothing = Occupied.in_table(np.zeros((1, 1), np.bool_))
            return nothing, nothing
        i, j, k = self.tile
        if self.tuning is not None:
            j, k = self.tuning.grain_j, self.tuning.grain_k
        return Occupied.of(self.a, i, k), Occupied.of(self.b, k, j)

    def _walk(self, walk: TileWalk) -> None:
        a, b = self.a, self.b
        tile_k = self.tile[2]
        tiles_i, tiles_k = walk.tiles[0], -(-self.extent[2] // tile_k)
        keep_a, kept_a = self.scheme.buffers("A"), self.kept_a
        streaming = not self.scheme.buffers("B")
        on_chip = self.scheme.buffers("C")

        # Begin positions: where the present k tile's (j tile's) segments begin and end, and where a scan begins.
        a_places: dict[int, NDArray[np.int64]] = {0: a.pointers[:-1]}  # by column: the first element at or beyond it
        a_place = a.pointers[:-1].copy()
        b_place = b.pointers[:-1].copy()
        b_now = ((-1, -1), b.pointers[:-1], b.pointers[:-1])
        counts: dict[int, NDArray[np.int32]] = {}
        growth: dict[int, RowGrowth] = {}
        # A count for each row and k step, unless there are many more of these than elements that a row can gain.
        by_step = self.tuning is None and (
            a.rows * tiles_k <= MOST_COUNTS
            or a.rows * tiles_k <= COUNTS_A_MAC * int(np.diff(b.pointers)[a.coordinates].sum())
        )
        loaded: tuple[int, ...] | None = None
        bumped = np.zeros(0, np.bool_)  # rows of the present tile of B that stay in memory
        self.final_position = 0
        partial_position = 0
        partial_base: dict[tuple[int, int], int] = {}
        self.finished: dict[tuple[int, int], NDArray[np.int64]] = {}
        self.finished_base: dict[tuple[int, int], int] = {}

        for tile in walk:
            it, jt = tile.index_i, tile.index_j
            whole_j, whole_k = tile.whole_j, tile.whole_k
            rows = (tile.i, tile.i + tile.size_i)
            end_k = tile.k + tile.size_k
            if whole_k:
                a_begin, a_end = a.pointers[:-1], a.pointers[1:]
            else:
                for column in (tile.k, end_k):
                    if column not in a_places:
                        a_places[column] = boundaries(a.pointers, self.a_coordinates, a.pointers[:-1], column)
                a_begin, a_end = a_places[tile.k], a_places[end_k]
            for old in [at for at in a_places if at not in (0, tile.k, end_k)] if tiles_k > 64 else []:
                del a_places[old]
            if b_now[0] != (tile.j, tile.size_j):
                low = int(np.searchsorted(self.used_columns, tile.j))
                high = int(np.searchsorted(self.used_columns, tile.j + tile.size_j))
                begin = boundaries(b.pointers, self.b_coordinates, b.pointers[:-1], low)
                b_now = ((tile.j, tile.size_j), begin, boundaries(b.pointers, self.b_coordinates, begin, high))
                if self.list is not None:
                    b_now = (b_now[0], b_now[1][self.list], b_now[2][self.list])
            _, b_begin, b_end = b_now
            segments = (a.pointers, self.a_coordinates, b_begin, b_end, self.b_coordinates, len(self.stamps[0]))
            if by_step and jt not in counts:
                counts.clear()
                counts[jt] = fiber_counts(*segments, tile_k, tiles_k)
            if not by_step and jt not in growth:
                if self.tuning is None or self.scheme.order.index("j") < self.scheme.order.index("k"):
                    growth.clear()  # this range of columns does not come again, or is soon counted again
                growth[jt] = row_growth(*segments)
            if self.rows is not None and not self.rows.early[it]:
                self._end_chain()
            load_beats = 0
            overlapped = 0  # beats of B's load, while rows are computed
            usable = np.empty(0, np.int64)
            a_scan = a_begin if whole_k else (a.pointers[:-1] if tile.from_pointers_a else a_place)
            a_flags = (whole_k, tile.from_pointers_a, tile.advance_a)
            a_place_now = (tile.i, tile.k, tile.size_k)
            a_moves = not tile.carry and not (keep_a and kept_a.place == a_place_now) and self.rows is None
            if a_moves and keep_a:
                kept_a.load(a_place_now, rows, a_begin, a_end)
                resident = kept_a.first_bumped if whole_k else None
                load_beats += self.reads.rows("a", a.pointers, rows, *a_flags, a_scan, a_end, resident)
            b_place_now = (tile.k, tile.size_k, tile.j, tile.size_j)
            if not tile.carry and not streaming and loaded != b_place_now:
                loaded = b_place_now
                bumped, beats, usable = self.loaded_b.load(tile, whole_j, b_place, b_begin, b_end)
                if self.tuning is None:
                    overlapped = beats
                else:
                    load_beats += beats
                    usable = usable[:0]
                    walk.loaded(self._quadrants(tile, walk.shape))

            before = dict(self.beats)
            totals_before = self.totals.copy()
            if self.rows is not None:
                self._go_on("read_a", rows, (int(a.pointers[rows[0]]), int(a.pointers[rows[1]])))
            if keep_a and not tile.carry:
                self.beats["read_a_data"] += kept_a.visit(rows, a_begin, a_end)
            elif a_moves:
                self.reads.rows("a", a.pointers, rows, *a_flags, a_scan, a_end)
            if a_moves and not whole_k and tile.advance_a:
                a_place[rows[0] : rows[1]] = a_end[rows[0] : rows[1]]

            # Partial rows come back, rows leave.
            index = jt * (self.extent[0] + tiles_i) + tile.i + it
            partial = np.zeros(tile.size_i, np.int64)
            spilled = np.ones(tile.size_i, np.bool_)
            if tile.partial_in:
                partial, spilled = self._partial[(it, jt)]
                if not on_chip:
                    self.beats["read_c_meta"] += self.reads.word_beats(index, tile.size_i + 1)
            if by_step:
                lengths = counts[jt][rows[0] : rows[1], 0 if self.rows is not None else tile.k // tile_k].astype(
                    np.int64
                )
            else:
                lengths = growth[jt].lengths(*rows, end_k)
            examined = 0 if tile.carry else int((a_end[rows[0] : rows[1]] - a_begin[rows[0] : rows[1]]).sum())
            if overlapped:
                usable = self._beside_a(usable, before)
            jobs = np.empty(
                (tile.size_i + JOBS_A_GROUP * (examined // self.design.pe.merge_radix + 2), len(JOB_FIELDS)), np.int64
            )
            number = gather_tile(
                rows[0],
                rows[1],
                a.pointers,
                a_begin,
                a_end,
                self.a_coordinates,
                b_begin,
                b_end,
                self.b_coordinates,
                bumped,
                streaming,
                tile.carry,
                partial,
                spilled,
                partial_base.get((it, jt), 0),
                lengths,
                self.design.pe.merge_radix,
                self.lanes,
                self.stamps,
                self.totals,
                jobs,
                0 if whole_k or keep_a else FIRST_CHUNK_LINES,
                NEXT_CHUNK_LINES,
                tile.k,
                usable,
                self.pace.slot_factors,
            )
            if tile.k_step:
                partial_position = 0
            elements = int(lengths.sum())
            final = tile.last_k and whole_j
            if self.rows is not None:
                base, self.final_position = self.final_position, self.final_position + elements
                self._go_on("write_c", rows, (base, self.final_position))
                self._chain.append((jobs[:number], overlapped))
                self._chain_rows += tile.size_i
                continue
            if tile.last_k:
                base, self.final_position = self.final_position, self.final_position + elements
                self._partial.pop((it, jt), None)
                if not whole_j:
                    self.finished[(it, jt)] = lengths
                    self.finished_base[(it, jt)] = base
            else:
                stays = np.zeros(tile.size_i, np.bool_)
                if on_chip:
                    stays = kept_rows(
                        rows[0],
                        rows[1],
                        a_begin,
                        a_end,
                        self.a_coordinates,
                        b_begin,
                        b_end,
                        tile.carry,
                        partial,
                        tile.size_j,
                        lengths,
                        self.half_of_c.resident(tile.size_i),
                    )
                    elements = int(lengths[~stays].sum())
                base, partial_position = partial_position, partial_position + elements
                self._partial[(it, jt)] = (lengths, ~stays)
                partial_base[(it, jt)] = base
            self.beats["write_c_data"] += int(fetched_lines(base, elements, self.lanes))
            if tile.last_k or not on_chip:
                self.beats["write_c_meta"] += self.reads.word_beats(tile.i if final else index, tile.size_i + 1)
            self._time(
                load_beats,
                self._moved(before) + overlapped,
                totals_before,
                tile.size_i,
                jobs[:number],
                overlapped,
                a_beats=self._moved_of_a(before),
            )
        self._end_chain()
        gathered = dict(zip(TOTALS, map(int, self.totals), strict=True))
        self.beats["read_b_data"] += gathered["bumped_lines"]
        self.beats["read_b_meta"] += gathered["lookup_beats"]
        self.beats["read_c_data"] += gathered["unit_lines"]
        self.beats["write_c_data"] += gathered["scratch_written"]

    def _beside_a(self, usable: NDArray[np.int64], before: dict[str, int]) -> NDArray[np.int64]:
        """When each row of B can be used: A's elements come beside them, until as many wait as there is room for."""
        ahead = min(self._moved_of_a(before), AHEAD_LINES)
        return usable + np.minimum(usable, int(ahead * self.pace.beat))

    def _quadrants(self, tile: Tile, shape: list[int]) -> tuple[int, int, int, int]:
        """What the four counters say once the tile is in place."""
        k_range = (tile.k, tile.k + (shape[2] >> 1), tile.k + tile.size_k)
        return quadrants(self.b, k_range, (tile.j, tile.j + (shape[1] >> 1), tile.j + tile.size_j))

    def _assemble(self, walk: TileWalk) -> None:
        """The pass that joins the j tiles of each row."""
        tiles_i, tiles_j = walk.tiles
        rows = self.extent[0]
        words = 2 * self.lanes
        jobs_before = self.totals.copy()
        before = dict(self.beats)
        lengths = np.zeros((rows, tiles_j), np.int64)
        begins = np.zeros((rows, tiles_j), np.int64)
        for (it, jt), of_rows in self.finished.items():
            first = it * self.tile[0]
            lengths[first : first + len(of_rows), jt] = of_rows
            begins[first : first + len(of_rows), jt] = self.finished_base[(it, jt)] + np.cumsum(of_rows) - of_rows
        every_row = np.arange(rows)
        for jt in range(tiles_j):
            index = jt * (rows + tiles_i) + every_row + every_row // self.tile[0]
            self.beats["read_c_meta"] += int(np.sum(1 + (index % words == words - 1)))
        elements = int(lengths.sum())
        every_job, unit_lines, scratch_written = assembly_jobs(
            lengths, begins, self.design.pe.merge_radix, self.lanes, self.pace.slot_factors
        )
        self.beats["read_c_data"] += unit_lines
        self.beats["write_c_data"] += scratch_written + int(fetched_lines(0, elements, self.lanes))
        self.beats["write_c_meta"] += self.reads.word_beats(0, rows + 1)
        for name, field in (("leaves", "leaves"), ("merged", "merged")):
            self.totals[TOTALS.index(name)] += int(every_job[:, JOB_FIELDS.index(field)].sum())
        self.totals[TOTALS.index("jobs")] += len(every_job)
        self.totals[TOTALS.index("selections")] += rows * tiles_j
        self._time(0, self._moved(before), jobs_before, rows, every_job)

    def _go_on(self, access: str, rows: tuple[int, int], positions: tuple[int, int]) -> None:
        """Gathered: all rows of A, or of C, are one tile for its accessor, of which these follow."""
        lines = [-(-position // self.lanes) for position in positions]
        words = [self.reads.word_beats(0, row + 1) if row else 0 for row in rows]
        self.beats[f"{access}_data"] += lines[1] - lines[0]
        self.beats[f"{access}_meta"] += words[1] - words[0]

    def _end_chain(self) -> None:
        """Adds the cycles of tiles that ran into one another."""
        if self._chain:
            jobs = np.concatenate([of for of, _ in self._chain])
            firsts = np.cumsum([len(of) for of, _ in self._chain[:-1]], dtype=np.int64)
            loads = np.array([overlapped for _, overlapped in self._chain], np.int64)
            before, totals_before = self._chain_before
            a_beats = self._moved_of_a(before)
            self._time(
                0, self._moved(before), totals_before, self._chain_rows, jobs, int(loads[0]), firsts, loads[1:], a_beats
            )
        self._chain, self._chain_rows = [], 0
        self._chain_before = dict(self.beats), self.totals.copy()

    def _moved_of_a(self, before: dict[str, int]) -> int:
        """Beats of A since then."""
        return sum(self.beats[name] - before[name] for name in ("read_a_data", "read_a_meta"))

    def _moved(self, before: dict[str, int]) -> int:
        """Beats since then."""
        return sum(self.beats.values()) - sum(before.values())

    def _time(
        self,
        load_beats: int,
        moved: int,
        totals_before: NDArray[np.int64],
        rows: int,
        jobs: NDArray[np.int64],
        overlapped: int = 0,
        firsts: NDArray[np.int64] = ONE_TILE,
        loads: NDArray[np.int64] = ONE_TILE,
        a_beats: int = 0,
    ) -> None:
        """Adds the cycles of one tile: loading, then the slowest of memory, dispatch and processing elements.

        ``moved``: beats, but for those of ``load_beats`` and of what the rows need. ``overlapped`` of them are B's load, which
        moves while rows are computed. ``firsts``, ``loads``, ``a_beats``: see :func:`sw.timing.jobs.jobs_end`.
        """
        done = dict(zip(TOTALS, (int(x) for x in self.totals - totals_before), strict=True))
        moved += done["bumped_lines"] + done["lookup_beats"] + done["unit_lines"] + done["scratch_written"]
        latency = self.pace.latency
        work = int(jobs_end(jobs, self.pace, overlapped, firsts, loads, a_beats))
        if load_beats:
            self.cycles += math.ceil(load_beats * self.pace.beat) + latency + PHASE_CYCLES
        self.cycles += max(math.ceil(moved * self.pace.beat), work, rows) + int(TILE_LATENCIES * latency) + TILE_CYCLES
        if self._tiles_timed and self.rows is None:
            self.cycles += latency - NEXT_TILE_GAIN
        self._tiles_timed += 1
