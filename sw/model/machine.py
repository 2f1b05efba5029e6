"""Trace-driven model of the machine: traffic exact to the byte, cycles from what each phase has to move.

Every tile is visited as the tiling controller visits it; what it moves is counted from the real nonzeros with the rules
of the accessors (``docs/architecture.md``). No value is computed.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sw.engine_result import EngineResult
from sw.formats.csr import Csr
from sw.formats.distinct import compacted
from sw.golden.tuning import quadrants
from sw.operands.memory import require_memory
from sw.plan.gather import Index
from sw.plan.plan import Plan
from sw.plan.records import record_formats
from sw.plan.thresholds import BYTES_A_PIECE, BYTES_A_ROW, JOBS_A_GROUP
from sw.tile_sizes import TileSizes
from sw.timing.assembly import assembly_jobs
from sw.timing.constants import PREFETCHED_LINES
from sw.timing.job import JOB_FIELDS, MERGE_ON_THE_WAY, SCRATCH, SCRATCH_MERGE
from sw.timing.pace import pace_of

from .clock import Clock, Mark
from .converted_tensor import ConvertedTensor
from .kept_a import KeptA
from .loaded_b import LoadedB
from .occupied import Occupied
from .reads import Reads
from .rows_of_c import Back, JoinedRows, RowsOfC, rows_of
from .segments import SegmentPlaces, Segments
from .tile_jobs import TOTALS, gather_tile
from .traffic_record import dram_bytes
from .walk import Tile, TileWalk, Tuning

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["EXACT_COUNTERS", "Run", "add_gathered", "delayed_by_a", "require_rows", "run_model"]

# Counters that are those of the hardware, not estimates of them.
EXACT_COUNTERS = (
    "macs",
    "merged",
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
    return Run(design, planned).result()


def require_rows(rows: int, source: str) -> None:
    """Refuses an operand of more rows than the model has room for, before anything is decided. Raises OperandError.

    Parameters
    ----------
    rows: of A. source: names it.
    """
    what = f"{source}: {rows:,} rows of C in the model"
    require_memory(rows * BYTES_A_ROW, what, "; no tiling takes less: rows without elements count, too")


def _require_memory(extent: tuple[int, int, int], tile: tuple[int, int, int]) -> None:
    """Refuses what has no room: tables of a column for each j tile, and what is known of each row and its job.

    Raises OperandError.
    """
    rows, columns, _ = extent
    tiles_j = -(-columns // tile[1])
    wide = rows * tiles_j * BYTES_A_PIECE if tiles_j > 1 else 0
    least = rows * BYTES_A_ROW
    shape = f"{rows:,} rows of C in {tiles_j:,} j tile{'s' if tiles_j > 1 else ''} of {tile[1]:,} columns"
    cure = f"; j left whole takes {least / 2**30:.1f} GiB (--tiling auto, or a larger --T_j)" if wide else ""
    require_memory(wide + least, f"model of {shape}", cure)


class Run:
    """One run of the model on a design with Gustavson's dataflow, tile by tile."""

    # The rank that numbers B's fibers; what knows of C's rows.
    b_fibers = "k"
    make_rows = RowsOfC

    def __init__(self, design: "Design", planned: Plan[Csr]) -> None:
        self.design = design
        self.planned = planned
        self.scheme = scheme = planned.scheme
        self.a = a = planned.a
        self.b = b = planned.b
        self.lanes = design.lanes
        line, formats = design.line_bytes, record_formats(planned, design)
        self.pace = pace_of(design, scheme.region_lines(line), formats, scheme.scratch_lines(line))
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
        self.reads = Reads(self.lanes, design.buffer.line_beats, formats)
        self.beats = self.reads.beats
        self.totals = np.zeros(len(TOTALS), np.int64)
        self.clock = Clock(
            self.pace,
            self.beats,
            self.totals,
            next_tile_waits=self.rows is None,
            overlaps_loads=planned.shapes is not None,
        )
        self.kept_a = KeptA(scheme.partition("A", design), self.reads, TileSizes(scheme.buffer_bytes["A"]))
        self.converted_a = ConvertedTensor("read_a_data", planned.stored_a, design.bus_bytes, a.rows, self.beats)
        self.loaded_b = LoadedB(design, planned, self.reads, self.pace)
        self.a_coordinates = a.coordinates.astype(np.int64) if self.rows is None else self.rows.places
        # Columns that B uses, numbered from 0: a hypersparse B may be billions wide.
        used, self.b_coordinates = compacted(b.coordinates, b.columns)
        self.used_columns = used
        columns = max(1, len(used))
        self.stamps = (np.full(columns, -1, np.int64), np.full(columns, -1, np.int64), np.zeros(1, np.int64))

    def result(self) -> EngineResult:
        _require_memory(self.extent, self.tile)
        walk = TileWalk(
            self.extent,
            self.tile,
            self.scheme.order,
            *_occupied(self),
            line_bits=8 * self.design.line_bytes,
            keep_a=self.scheme.buffers("A"),
            tuning=self.tuning,
            windows=self.windows,
            b_fibers=self.b_fibers,
            joins=self.scheme.joins,
        )
        self._walk(walk)
        if walk.tiles[1] > 1:
            self._assemble(walk)
        self.beats["read_a_meta"] += self.reads.line_beats * walk.map_lines["A"]
        self.beats["read_b_meta"] += self.reads.line_beats * walk.map_lines["B"]
        return _engine_result(self, walk)

    def _walk(self, walk: TileWalk) -> None:
        tile_k, order = self.tile[2], self.scheme.order
        self.places = SegmentPlaces(
            self.a,
            self.b,
            self.a_coordinates,
            self.list,
            used_columns=self.used_columns,
            b_coordinates=self.b_coordinates,
            tile_k=tile_k,
            tiles_k=-(-self.extent[2] // tile_k),
            j_inside_k=order.index("k") < order.index("j"),
            tuned=self.tuning is not None,
        )
        rows = self.extent[0], walk.tiles[0], self.a_coordinates, self.a.pointers[:-1]
        make = JoinedRows if self.scheme.joins else self.make_rows
        self.rows_of_c = make(self.design, self.planned, self.reads, *rows)
        # Begin positions: where the scans of the next k tile (j tile) begin.
        self._a_place, self._b_place = self.a.pointers[:-1].copy(), self.b.pointers[:-1].copy()
        self._in_partition: tuple[int, ...] | None = None  # the tile of B
        self._bumped = np.zeros(0, np.bool_)  # its rows that stay in memory
        self._trips: Index | int = 0  # of memory before its rows can be used
        for tile in walk:
            if self.scheme.joins:
                self.clock.look_up(walk.visited, sum(walk.map_lines.values()))
            self._visit(walk, tile)
        self.clock.end_chain()
        for converted in (self.converted_a, self.loaded_b.converted):
            converted.end_pass()
        add_gathered(self)

    def _assemble(self, walk: TileWalk) -> None:
        _assemble(self, walk)

    def _visit(self, walk: TileWalk, tile: Tile) -> None:
        """One tile: A and B come, its rows of C are merged and leave."""
        at = self.places.of(tile)
        scanned = self.reads.bursts
        if self.rows is not None and not self.rows.early[tile.index_i]:
            self.clock.end_chain()
        keeps_a = self.scheme.buffers("A")
        a_comes = (
            not tile.carry
            and not (keeps_a and self.kept_a.place == (tile.i, tile.k, tile.size_k))
            and self.rows is None
        )
        load_beats = self._load_a(tile, at) if a_comes and keeps_a else 0
        beats, overlapped, usable, load_cycles = self._load_b(walk, tile, at)
        before = self.clock.mark()
        self._stream_a(tile, at, a_comes)
        partial, spilled, base = self.rows_of_c.back(tile)
        part = self.scheme.joins and not tile.last_k
        lengths = self.places.part_lengths(tile) if part else self.places.lengths(tile)
        if overlapped:
            first = 0 if self.rows is None else int(self.rows.kept[tile.index_i])  # those before it can be used at once
            usable[first:] = delayed_by_a(self, usable[first:], before, tile) + self._trips
        back = self.rows_of_c.fibers(tile, at, partial, spilled, base)
        jobs = self._gather(tile, at, back, lengths, usable)
        if self.rows is not None:
            self.rows_of_c.go_on(tile, int(lengths.sum()))
            self.clock.chain(tile.size_i, jobs, overlapped, self.reads.bursts - scanned)
            return
        self.rows_of_c.leave(tile, at, partial, lengths)
        rows, bursts, waits = self.rows_of_c.search(tile, self.pace.latency)
        # Chunks of A and B.
        bursts += self.reads.bursts - scanned
        self.clock.tile(
            self.clock.moved(before) + overlapped,
            before,
            rows,
            jobs,
            load_beats=load_beats + beats,
            load_cycles=load_cycles,
            a_beats=self.clock.moved_of_a(before),
            bursts=bursts,
            waits=waits,
            region=self._region_of_c(back, before),
            partial_rows=True,
        )

    def _region_of_c(self, back: Back, before: Mark) -> int | None:
        """Lines through which leaves in memory pass, where these are partial rows that come ``back`` and no rows of B."""
        rows_of_b = TOTALS.index("bumped_lines")
        if not len(back.lengths) or self.totals[rows_of_b] > before[1][rows_of_b]:
            return None
        # There is no region where C's partition keeps them.
        return 0 if self.scheme.buffers("C") else self.scheme.partial_lines(self.design.line_bytes)

    def _scan_of_a(self, tile: Tile, at: Segments) -> tuple[tuple[bool, bool, bool], Index, Index]:
        """How A's rows are read: what :meth:`.reads.Reads.rows` asks, where the scan begins, where segments end."""
        begin = self.a.pointers[:-1] if tile.from_pointers_a else self._a_place
        return (tile.whole_k, tile.from_pointers_a, tile.advance_a), at.a_begin if tile.whole_k else begin, at.a_end

    def _load_a(self, tile: Tile, at: Segments) -> int:
        """A's tile goes into its partition. Returns the beats of its load."""
        self.kept_a.load((tile.i, tile.k, tile.size_k), rows_of(tile), at.a_begin, at.a_end)
        flags, begin, end = self._scan_of_a(tile, at)
        resident = self.kept_a.first_bumped if tile.whole_k else None
        return self.reads.rows("a", self.a.pointers, rows_of(tile), *flags, begin, end, resident)

    def _load_b(self, walk: TileWalk, tile: Tile, at: Segments) -> tuple[int, int, Index, int]:
        """B's tile goes into its partition, unless it is there.

        Returns the beats before and beside the rows of A, when each row of B can be used, and the least cycles of a load before.
        """
        nothing, place = np.empty(0, np.int64), (tile.k, tile.size_k, tile.j, tile.size_j)
        if tile.carry or not self.scheme.buffers("B") or self._in_partition == place:
            return 0, 0, nothing, 0
        self._in_partition = place
        self._bumped, beats, usable, self._trips = self.loaded_b.load(
            tile, tile.whole_j, self._b_place, at.b_begin, at.b_end
        )
        if self.tuning is None:
            return 0, beats, usable, 0
        walk.loaded(_quadrants(self.b, tile, walk.shape))
        return beats, 0, nothing, 0 if tile.whole_j else self.loaded_b.scan_cycles(self.reads.chunks)

    def _stream_a(self, tile: Tile, at: Segments, a_comes: bool) -> None:
        """A's nonzeros come for the rows, from memory as far as they are not kept."""
        rows = rows_of(tile)
        if self.rows is not None:
            before, after = (self.reads.beats_through("a", int(self.a.pointers[row])) for row in rows)
            self.reads.go_on("read_a", rows, after - before)
        if self.scheme.buffers("A") and not tile.carry:
            self.beats["read_a_data"] += self.kept_a.visit(rows, at.a_begin, at.a_end)
        elif a_comes and self.converted_a.enabled:
            self.converted_a.stream(rows)
        elif a_comes:
            flags, begin, end = self._scan_of_a(tile, at)
            self.reads.rows("a", self.a.pointers, rows, *flags, begin, end)
        if a_comes and not tile.whole_k and tile.advance_a:
            self._a_place[rows[0] : rows[1]] = at.a_end[rows[0] : rows[1]]

    def _gather(
        self,
        tile: Tile,
        at: Segments,
        back: Back,
        lengths: Index,
        usable: Index,
    ) -> NDArray[np.int64]:
        """The jobs of a tile's rows (``sw.timing.job.JOB_FIELDS``)."""
        first, last = rows_of(tile)
        radix = self.design.pe.merge_radix
        a_end = at.a_begin if tile.carry else at.a_end
        leaves = int((a_end[first:last] - at.a_begin[first:last]).sum()) + len(back.lengths)
        jobs = np.empty((tile.size_i + JOBS_A_GROUP * (leaves // radix + 2), len(JOB_FIELDS)), np.int64)
        number = gather_tile(
            first,
            last,
            self.a.pointers,
            at.a_begin,
            a_end,
            self.a_coordinates,
            at.b_begin,
            at.b_end,
            self.b_coordinates,
            self._bumped,
            not self.scheme.buffers("B"),
            back,
            lengths,
            radix,
            self.lanes,
            self.reads.pitches["b"],
            self.stamps,
            self.totals,
            jobs,
            not (tile.whole_k or tile.carry or self.scheme.buffers("A")),
            tile.k,
            usable,
            self.pace.slot_factors,
            self.pace.kept_lines,
        )
        if tile.partial_in:
            # The dispatcher looks at each row's partial row first.
            kinds = jobs[:number, JOB_FIELDS.index("kind")]
            long = (kinds == SCRATCH) | (kinds == MERGE_ON_THE_WAY)
            begins = (kinds != SCRATCH_MERGE) & ~(long & np.r_[False, long[:-1]])
            jobs[:number, JOB_FIELDS.index("steps")] += begins
        return jobs[:number]


def delayed_by_a(run: Run, usable: Index, before: Mark, tile: Tile | None = None) -> Index:
    """When each row of B can be used: A's nonzeros come beside them, until as many wait as there is room for.

    Where the load of ``tile`` begins early they are there before it.
    """
    if run.rows is not None and tile is not None and run.rows.early[tile.index_i]:
        return usable
    lines = min(run.clock.moved_of_a(before), PREFETCHED_LINES)
    return usable + np.minimum(usable, int(lines * run.pace.beat))


def _occupied(run: Run) -> tuple[Occupied, Occupied]:
    """Which tiles of A and B hold anything; of cells where shapes are tuned. Where tiles load what they use nobody asks."""
    if run.rows is not None:
        nothing = Occupied.in_table(np.zeros((1, 1), np.bool_))
        return nothing, nothing
    i, j, k = run.tile
    if run.tuning is not None:
        j, k = run.tuning.grain_j, run.tuning.grain_k
    return Occupied.of(run.a, i, k), Occupied.of(run.b, k, j)


def add_gathered(run: Run) -> None:
    """What the kernels have counted."""
    gathered = dict(zip(TOTALS, map(int, run.totals), strict=True))
    run.beats["read_b_data"] += gathered["bumped_beats"]
    lines = {
        "read_b_meta": "lookup_lines",
        "read_c_data": "unit_lines",
        "read_scratch": "scratch_read",
        "write_c_data": "scratch_written",
        "write_scratch": "scratch_written",
    }
    for name, counted in lines.items():
        run.beats[name] += run.reads.line_beats * gathered[counted]


def _quadrants(b: Csr, tile: Tile, shape: list[int]) -> tuple[int, int, int, int]:
    """What the four counters say once the tile is in place."""
    k_range = (tile.k, tile.k + (shape[2] >> 1), tile.k + tile.size_k)
    return quadrants(b, k_range, (tile.j, tile.j + (shape[1] >> 1), tile.j + tile.size_j))


def _assemble(run: Run, walk: TileWalk) -> None:
    """The pass that joins the j tiles of each row."""
    tiles_i, tiles_j = walk.tiles
    rows = run.extent[0]
    words = 2 * run.lanes
    before = run.clock.mark()
    lengths, begins = run.rows_of_c.parts(run.tile[0], tiles_j)
    every_row = np.arange(rows)
    for jt in range(tiles_j):
        index = jt * (rows + tiles_i) + every_row + every_row // run.tile[0]
        run.beats["read_c_meta"] += run.reads.line_beats * int(np.sum(1 + (index % words == words - 1)))
    nonzeros = int(lengths.sum())
    every_job, pieces, scratch_read, scratch_written = assembly_jobs(
        lengths, begins, run.design.pe.merge_radix, run.lanes, run.pace.slot_factors, run.pace.kept_lines
    )
    run.beats["read_c_data"] += run.reads.line_beats * (pieces + scratch_read)
    run.beats["write_c_data"] += run.reads.line_beats * scratch_written
    run.rows_of_c.finish(nonzeros)
    for name, field in (("leaves", "leaves"), ("merged", "merged")):
        run.totals[TOTALS.index(name)] += int(every_job[:, JOB_FIELDS.index(field)].sum())
    run.totals[TOTALS.index("jobs")] += len(every_job)
    run.totals[TOTALS.index("selections")] += rows * tiles_j
    # Each piece is a burst of its own, and passes all of B's partition: its tiles are done with.
    _, region = run.scheme.partition_lines(run.design.line_bytes)["B"]
    bursts = int(np.count_nonzero(lengths))
    run.clock.tile(run.clock.moved(before), before, rows, every_job, bursts=bursts, region=region)
    # These beats have been counted as C's.
    run.beats["read_scratch"] += run.reads.line_beats * scratch_read
    run.beats["write_scratch"] += run.reads.line_beats * scratch_written


def _engine_result(run: Run, walk: TileWalk) -> EngineResult:
    """What the model says of a run that has ended."""
    line = run.design.line_bytes
    counted = dict(zip(TOTALS, map(int, run.totals), strict=True))
    traffic = dram_bytes(run.beats, run.design.bus_bytes)
    sizes = {"A": run.kept_a.sizes, "B": run.loaded_b.sizes}
    return EngineResult(
        c=None,
        cycles=run.clock.cycles,
        counters={
            "cycles": run.clock.cycles,
            "macs": counted["products"],
            "merged": counted["merged"],
            "jobs": counted["jobs"],
            "leaves": counted["leaves"],
            "tiles_total": walk.visited,
            "tiles_skipped": walk.empty,
            "tiles_overbooked": run.loaded_b.overbooked,
            "bumped_elements": run.loaded_b.bumped_elements,
            "bumped_fetches": counted["bumped_elements"],
            "tuning_adjustments": len(walk.adjustments),
            **run.kept_a.counters(),
            **run.beats,
        },
        dram_bytes=traffic,
        tiles={"total": walk.visited, "skipped_empty": walk.empty, "overbooked": run.loaded_b.overbooked},
        buffer={
            "A": run.kept_a.result(line),
            "B": {
                "peak_bytes": run.loaded_b.sizes.peak_bytes,
                "mean_bytes": run.loaded_b.sizes.mean_bytes,
                "hits": counted["products"] - counted["bumped_elements"],
                "bumped": counted["bumped_elements"],
            },
        },
        occupancy={tensor: found for tensor, found in sizes.items() if run.scheme.buffers(tensor)},
        adjustments=[
            {"tile": number, "T_i": run.tile[0], "T_j": side_j, "T_k": side_k}
            for number, side_j, side_k in walk.adjustments
        ],
    )
