"""Trace-driven model of the machine: traffic exact to the byte, cycles from what each phase has to move.

Every tile is visited as the tiling controller visits it; what it moves is counted from the real nonzeros with the rules
of the accessors (``docs/architecture.md``). No value is computed.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sw.formats.csr import Csr
from sw.formats.distinct import compacted
from sw.golden.tuning import PartitionB, cells, quadrants, tile_grid
from sw.runtime.result import EngineResult
from sw.tiling.ahead import loads_ahead
from sw.tiling.lists import ListPlan, plan_list
from sw.tiling.ring import RingPlan, plan_ring
from sw.tiling.scheme import Scheme
from sw.tiling.strips import in_strips, strips_of

from .assembly import assembly_jobs
from .growth import RowGrowth, row_growth
from .kept_a import KeptA
from .kernels import TOTALS, boundaries, fetched_lines, fiber_counts, gather_tile, kept_rows
from .loaded_b import LoadedB
from .reads import FIRST_CHUNK_LINES, NEXT_CHUNK_LINES, Reads
from .timing import JOB_FIELDS, ONE_TILE, jobs_end
from .traffic_record import dram_bytes
from .walk import Tile, TileWalk, Tuning

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["EXACT_COUNTERS", "run_model"]

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
# Cycles beside the load of a tile that nothing is computed beside, beyond the memory's own latency.
PHASE_CYCLES = 40
# Cycles before and after a tile's rows: what no transfer hides, beyond two latencies of reads and half of one of writes.
TILE_CYCLES = 59
# What a tile of a grid takes beside a latency of memory, in which its bits of the maps are looked up, less than the first one.
NEXT_TILE_GAIN = 40
# From `start` to the first tile, beyond the latency of the first line of the tile map: the scheme is checked and divided.
START_CYCLES = 51
# Cycles from the last merged element of a job to its last word: scaler and packer, and each level of combiners.
FILL_CYCLES = 24
FLOATING_LEVEL_CYCLES = 6
INTEGER_LEVEL_CYCLES = 3
# Beats of A that are read before its first row has been looked up.
AHEAD_BEATS = 200


def slot_factors_of(design: "Design") -> NDArray[np.int64]:
    """int64[merge_radix]: how many times the usual line slots each leaf of a job has."""
    return np.array([design.leaf_slots(n) // design.pe.leaf_lines for n in range(design.pe.merge_radix)], np.int64)


def run_model(design: "Design", scheme: Scheme, a: Csr, b: Csr) -> EngineResult:
    """Runs the model.

    Parameters
    ----------
    design, scheme: what runs; the scheme is legal for the design and clipped to the shape.
    a, b: operands, I x K and K x J.

    Returns
    -------
    EngineResult without values: cycles (estimated), counters, traffic, tiles, occupancy of A's and B's partitions.
    """
    if strips_of(scheme, b.columns):
        scheme, a, b, _ = in_strips(scheme, a, b, design)
    return _Run(design, scheme, a, b).result()


class _Run:
    def __init__(self, design: "Design", scheme: Scheme, a: Csr, b: Csr) -> None:
        self.design = design
        self.scheme = scheme
        self.a = a
        self.b = b
        self.lanes = design.lanes
        # Cycles that memory takes for a line: the bus moves one a cycle at most.
        self.beat_cycles = max(1.0, design.line_bytes / design.dram_bytes_per_cycle)
        self.slot_factors = slot_factors_of(design)
        level = INTEGER_LEVEL_CYCLES if design.pe.value.startswith("int") else FLOATING_LEVEL_CYCLES
        self.fill = FILL_CYCLES + level * (design.pe.merge_radix.bit_length() - 1)
        self.extent = (a.rows, b.columns, a.columns)
        tile_k = a.columns if scheme.windows else min(scheme.T_k, a.columns)
        self.tile = (min(scheme.T_i, a.rows), min(scheme.T_j, b.columns), tile_k)
        self.windows = np.array(scheme.windows, np.int64) if scheme.windows else None
        ring: RingPlan | None = None
        self.list: ListPlan | None = None
        room = scheme.rows_lines(design.line_bytes)
        if scheme.listed:
            self.list = plan_list(a, scheme.T_i, b.pointers, room, design.lanes)
            self.windows, ring = self.list.windows, self.list.ring
            self.extent = (a.rows, b.columns, max(1, len(self.list.rows)))
            self.tile = (self.tile[0], b.columns, self.extent[2])
        elif self.windows is not None:
            ring = plan_ring(self.windows, a, scheme.T_i, b.pointers, room, design.lanes)
        self.ahead = np.zeros(0, np.bool_)  # which windows are loaded before the rows of the one before are out
        if ring is not None and self.windows is not None:
            lengths = np.diff(b.pointers) if self.list is None else np.diff(b.pointers)[self.list.rows]
            places = a.coordinates if self.list is None else self.list.places
            self.ahead = loads_ahead(self.windows, ring, a.pointers, places, scheme.T_i, lengths, design.lanes)
        self.tuning: Tuning | None = None
        if scheme.tuning:
            grid_j, grid_k = (tile_grid(self.tile[r], self.extent[r]) for r in (1, 2))
            self.tile = (self.tile[0], grid_j.start, grid_k.start)
            line = design.line_bytes
            partition = PartitionB(
                lines=scheme.buffer_bytes["B"] // line, fifo_lines=scheme.fifo_bytes["B"] // line, lanes=design.lanes
            )
            self.tuning = Tuning(grain_j=grid_j.grain, grain_k=grid_k.grain, partition=partition)
        self.reads = Reads(self.lanes)
        self.beats = self.reads.beats
        self.cycles = 0
        self._tiles_timed = 0
        self.totals = np.zeros(len(TOTALS), np.int64)
        # Windows that run into one another, and what had been counted before the first of them.
        self._chain: list[tuple[NDArray[np.int64], int]] = []
        self._chain_rows = 0
        self._chain_before = dict(self.beats), self.totals.copy()
        self._partial: dict[tuple[int, int], tuple[NDArray[np.int64], NDArray[np.bool_]]] = {}
        self.kept_a = KeptA(self.lanes, scheme.buffer_bytes["A"] // design.line_bytes)
        self.loaded_b = LoadedB(design, scheme, b, self.reads, self.beat_cycles, ring, self.list)
        self.a_coordinates = a.coordinates.astype(np.int64) if self.list is None else self.list.places
        # Columns that B uses, numbered from 0: a hypersparse B may be billions wide.
        used, self.b_coordinates = compacted(b.coordinates, b.columns)
        self.used_columns = used
        columns = max(1, len(used))
        self.stamps = (np.full(columns, -1, np.int64), np.full(columns, -1, np.int64), np.zeros(1, np.int64))

    def result(self) -> EngineResult:
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
        self.cycles = self.design.memory_latency_cycles + START_CYCLES
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

    def _occupied(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which tiles of A and B hold anything; of cells where shapes are tuned."""
        i, j, k = self.tile
        if self.tuning is not None:
            j, k = self.tuning.grain_j, self.tuning.grain_k
        return cells(self.a, i, k), cells(self.b, k, j)

    def _walk(self, walk: TileWalk) -> None:
        a, b = self.a, self.b
        tile_k = self.tile[2]
        tiles_i, tiles_k = walk.tiles[0], -(-self.extent[2] // tile_k)
        keep_a, kept_a = self.scheme.buffers("A"), self.kept_a
        streaming = not self.scheme.buffers("B")
        on_chip = self.scheme.buffers("C")
        line = self.design.line_bytes

        # Begin positions: where the present k tile's (j tile's) segments begin and end, and where a scan begins.
        a_places: dict[int, NDArray[np.int64]] = {0: a.pointers[:-1]}  # by column: the first element at or beyond it
        a_place = a.pointers[:-1].copy()
        b_place = b.pointers[:-1].copy()
        b_now = ((-1, -1), b.pointers[:-1], b.pointers[:-1])
        counts: dict[int, NDArray[np.int32]] = {}
        growth: dict[int, RowGrowth] = {}
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
                    b_now = (b_now[0], b_now[1][self.list.rows], b_now[2][self.list.rows])
            _, b_begin, b_end = b_now
            segments = (a.pointers, self.a_coordinates, b_begin, b_end, self.b_coordinates, len(self.stamps[0]))
            if self.tuning is None and jt not in counts:
                counts.clear()
                counts[jt] = fiber_counts(*segments, tile_k, tiles_k)
            if self.tuning is not None and jt not in growth:
                if self.scheme.order.index("j") < self.scheme.order.index("k"):
                    growth.clear()  # this range of columns does not come again
                growth[jt] = row_growth(*segments)
            if self.windows is not None and not self.ahead[it]:
                self._end_chain()
            load_beats = 0
            beside = 0  # beats of B's load, while rows are computed
            there = np.empty(0, np.int64)
            a_scan = a_begin if whole_k else (a.pointers[:-1] if tile.from_pointers_a else a_place)
            a_flags = (whole_k, tile.from_pointers_a, tile.advance_a)
            a_place_now = (tile.i, tile.k, tile.size_k)
            a_moves = not tile.carry and not (keep_a and kept_a.place == a_place_now) and self.windows is None
            if a_moves and keep_a:
                kept_a.load(a_place_now, rows, a_begin, a_end)
                resident = kept_a.first_bumped if whole_k else None
                load_beats += self.reads.rows("a", a.pointers, rows, *a_flags, a_scan, a_end, resident)
            b_place_now = (tile.k, tile.size_k, tile.j, tile.size_j)
            if not tile.carry and not streaming and loaded != b_place_now:
                loaded = b_place_now
                bumped, beats, there = self.loaded_b.load(tile, whole_j, b_place, b_begin, b_end)
                if self.tuning is None:
                    beside = beats
                else:
                    load_beats += beats
                    there = there[:0]
                    walk.loaded(self._quadrants(tile, walk.shape))

            before = dict(self.beats)
            totals_before = self.totals.copy()
            if self.windows is not None:
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
            if self.tuning is None:
                lengths = counts[jt][rows[0] : rows[1], 0 if self.windows is not None else tile.k // tile_k].astype(
                    np.int64
                )
            else:
                lengths = growth[jt].lengths(*rows, end_k)
            looked_at = 0 if tile.carry else int((a_end[rows[0] : rows[1]] - a_begin[rows[0] : rows[1]]).sum())
            if beside:
                there = self._beside_a(there, before)
            jobs = np.empty(
                (2 * tile.size_i + 2 * (looked_at // self.design.pe.merge_radix) + 2, len(JOB_FIELDS)), np.int64
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
                there,
                self.slot_factors,
            )
            if tile.k_step:
                partial_position = 0
            elements = int(lengths.sum())
            final = tile.last_k and whole_j
            if self.windows is not None:
                base, self.final_position = self.final_position, self.final_position + elements
                self._go_on("write_c", rows, (base, self.final_position))
                self._chain.append((jobs[:number], beside))
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
                        self.lanes * (self.scheme.buffer_bytes["C"] // line // 2 - -(-tile.size_i // self.lanes)),
                    )
                    elements = int(lengths[~stays].sum())
                base, partial_position = partial_position, partial_position + elements
                self._partial[(it, jt)] = (lengths, ~stays)
                partial_base[(it, jt)] = base
            self.beats["write_c_data"] += int(fetched_lines(base, elements, self.lanes))
            if tile.last_k or not on_chip:
                self.beats["write_c_meta"] += self.reads.word_beats(tile.i if final else index, tile.size_i + 1)
            self._time(load_beats, self._moved(before) + beside, totals_before, tile.size_i, jobs[:number], beside)
        self._end_chain()
        gathered = dict(zip(TOTALS, map(int, self.totals), strict=True))
        self.beats["read_b_data"] += gathered["bumped_lines"]
        self.beats["read_b_meta"] += gathered["lookup_beats"]
        self.beats["read_c_data"] += gathered["unit_lines"]
        self.beats["write_c_data"] += gathered["scratch_written"]

    def _beside_a(self, there: NDArray[np.int64], before: dict[str, int]) -> NDArray[np.int64]:
        """When each row of B can be used: A's elements come beside them, until as many wait as there is room for."""
        ahead = min(sum(self.beats[name] - before[name] for name in ("read_a_data", "read_a_meta")), AHEAD_BEATS)
        return there + np.minimum(there, int(ahead * self.beat_cycles))

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
            lengths, begins, self.design.pe.merge_radix, self.lanes, self.slot_factors
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
        """Windows: all rows of A, or of C, are one tile for its accessor, of which these follow."""
        lines = [-(-position // self.lanes) for position in positions]
        words = [self.reads.word_beats(0, row + 1) if row else 0 for row in rows]
        self.beats[f"{access}_data"] += lines[1] - lines[0]
        self.beats[f"{access}_meta"] += words[1] - words[0]

    def _end_chain(self) -> None:
        """Adds the cycles of windows that ran into one another."""
        if self._chain:
            jobs = np.concatenate([of for of, _ in self._chain])
            firsts = np.cumsum([len(of) for of, _ in self._chain[:-1]], dtype=np.int64)
            loads = np.array([beside for _, beside in self._chain], np.int64)
            before, totals_before = self._chain_before
            self._time(0, self._moved(before), totals_before, self._chain_rows, jobs, int(loads[0]), firsts, loads[1:])
        self._chain, self._chain_rows = [], 0
        self._chain_before = dict(self.beats), self.totals.copy()

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
        beside: int = 0,
        firsts: NDArray[np.int64] = ONE_TILE,
        loads: NDArray[np.int64] = ONE_TILE,
    ) -> None:
        """Adds the cycles of one tile: loading, then the slowest of memory, dispatch and processing elements.

        ``moved``: beats, but for those of ``load_beats`` and of what the rows need; ``beside`` of them are B's load, moved while
        rows are computed. ``firsts``, ``loads``: of tiles behind the first (:func:`.timing.jobs_end`).
        """
        done = dict(zip(TOTALS, (int(x) for x in self.totals - totals_before), strict=True))
        moved += done["bumped_lines"] + done["lookup_beats"] + done["unit_lines"] + done["scratch_written"]
        pes = self.design.pe.count
        latency = self.design.memory_latency_cycles
        work = int(
            jobs_end(
                jobs,
                pes,
                self.design.pe.merge_radix,
                self.lanes,
                self.design.pe.leaf_lines,
                self.design.pe.queue_lines,
                latency,
                self.fill,
                beside,
                self.design.scratch_slots,
                self.beat_cycles,
                firsts,
                loads,
            )
        )
        if load_beats:
            self.cycles += math.ceil(load_beats * self.beat_cycles) + latency + PHASE_CYCLES
        self.cycles += max(math.ceil(moved * self.beat_cycles), work, rows) + 5 * latency // 2 + TILE_CYCLES
        if self._tiles_timed and self.windows is None:
            self.cycles += latency - NEXT_TILE_GAIN
        self._tiles_timed += 1
