"""Machines with outer-product and inner-product dataflow inside their tiles, which no hardware here runs.

Their memory, partitions, lines and metadata are those of :mod:`sw.model.machine`; every tile is visited and what it moves is
counted from the real nonzeros. HYTE, sections 2.2, 5.3 and 8.3, says what the dataflows access; rules that it leaves open are
in ``docs/tilings.md``.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sw.engine_result import EngineResult
from sw.formats.csr import Csr
from sw.formats.memory_csr import ELEMENT_BYTES
from sw.scheme.scheme import Scheme
from sw.stats.pattern import Index, Pattern
from sw.tile_sizes import TileSizes
from sw.timing.constants import PHASE_CYCLES, TILE_TRIPS_OF_DATAFLOWS

from ..traffic_record import dram_bytes
from .fibers import FiberTiles, by_columns, fiber_tiles, word_lines
from .products import LEAVES_AS_PRODUCTS, LEAVES_AS_ROW, STAYS, row_fates, tile_products

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["PARTS", "run_dataflow"]

OUTER, INNER = "outer", "inner"
# What a visit's time is the longest of, and what it waits for besides.
PARTS = ("memory", "pe", "fetch", "sram", "overhead")


def run_dataflow(design: "Design", scheme: Scheme, a: Csr, b: Csr) -> EngineResult:
    """Runs the model for a design whose dataflow is ``outer`` or ``inner``; parameters and result as ``run_model``.

    Counters ``cycles_memory``, ``cycles_pe``, ``cycles_fetch``, ``cycles_sram`` and ``cycles_overhead`` say what each phase was
    bound by; they add up to ``cycles``.
    """
    return _Run(design, scheme, _pattern(a), _pattern(b)).result()


def _pattern(matrix: Csr) -> Pattern:
    return Pattern(matrix.rows, matrix.columns, matrix.pointers, matrix.coordinates.astype(np.int64))


def _lines(nonzeros: Index, lanes: int) -> Index:
    return -(-nonzeros // lanes)


class _Run:
    def __init__(self, design: "Design", scheme: Scheme, a: Pattern, b: Pattern) -> None:
        self.design, self.scheme, self.a, self.b = design, scheme, a, b
        self.outer = design.pe.dataflow == OUTER
        self.lanes = design.lanes
        self.tile = (min(scheme.T_i, a.rows), min(scheme.T_j, b.columns), min(scheme.T_k, a.columns))
        self.tiles = -(-a.rows // self.tile[0]), -(-b.columns // self.tile[1]), -(-a.columns // self.tile[2])
        moving = [rank for rank in scheme.order if self.tiles["ijk".index(rank)] > 1]
        self.innermost = moving[-1] if moving else "k"
        i, j, k = self.tile
        if self.outer:
            self.tiles_a = self._tiles("A", by_columns(a), k, i).transposed()
            self.tiles_b = self._tiles("B", b, k, j)
        else:
            self.tiles_a = self._tiles("A", a, i, k)
            self.tiles_b = self._tiles("B", by_columns(b), j, k).transposed()
        self.beats = dict.fromkeys(
            (*(f"read_{t}_{kind}" for t in "abc" for kind in ("data", "meta")),
             *("write_a_meta", "write_b_meta", "write_c_data", "write_c_meta")), 0
        )  # fmt: skip
        self.time = dict.fromkeys(PARTS, 0)
        self.visits = 0
        self.overbooked = {"a": 0, "b": 0}
        self.bumped = {"a": 0, "b": 0}
        self.bumped_lines = {"a": 0, "b": 0}
        self.macs = 0
        self.logged = 0
        # Nonzeros of tiles that visits walk over; those of them that are compared with a row; those that merging passes take in.
        self.walked = self.compared = self.merged = 0
        self.sizes = TileSizes(scheme.buffer_bytes["B"])

    def _tiles(self, tensor: str, matrix: Pattern, height: int, width: int) -> FiberTiles:
        """Tiles of an operand; of one that streams past an inner product nothing stays."""
        regular = limit = -1
        if self.scheme.buffers(tensor):
            capacity = self.scheme.partition(tensor, self.design).capacity(height)
            regular, limit = max(0, capacity.regular), max(0, capacity.limit)
        return fiber_tiles(matrix, height, width, self.lanes, regular, limit)

    def _stays(self, tensor: str, rank: str) -> bool:
        """Whether a tile of the tensor is still there when only ``rank``, which it does not depend on, has moved."""
        return self.scheme.buffers(tensor) and self.innermost == rank

    # The run -------------------------------------------------------------------------------------------------------

    def result(self) -> EngineResult:
        counts_i, counts_j, counts_k = self.tiles
        loaded_b = np.zeros((counts_k, counts_j), np.bool_)
        stamp = np.full(self.b.columns, -1, np.int64)
        visit_stamp = np.full(self.b.columns, -1, np.int64)
        generation = 0
        nonzeros = lines = 0  # of the tiles of C
        pattern = self.a.pointers, self.a.coordinates, self.b.pointers, self.b.coordinates
        # Lines of B that pass by each row of an inner product; an outer product's rows take no time of their own.
        passing = np.zeros((counts_k, counts_j), np.int64) if self.outer else _lines(self.tiles_b.nonzeros, self.lanes)
        for it in range(counts_i):
            rows = (it * self.tile[0], min(self.a.rows, (it + 1) * self.tile[0]))
            fates = np.empty((rows[1] - rows[0], counts_j), np.int8)
            finals = np.zeros(counts_j, np.int64)
            row_fates(*rows, *pattern, self.tile[1], *self._fates(len(fates)), fates, finals, stamp)
            nonzeros += int(finals.sum())
            lines += int(_lines(finals, self.lanes).sum())
            macs, row_time, longest, logged = (np.zeros((counts_k, counts_j), np.int64) for _ in range(4))
            merged = np.zeros((2, counts_j), np.int64)
            generation = tile_products(
                *rows, *pattern, self.tile[1], self.tile[2], fates, self.design.pe.merge_radix,
                passing, visit_stamp, generation, macs, row_time, longest, logged, merged,
            )  # fmt: skip
            self._visit(it, loaded_b, macs, row_time, longest, logged, merged, finals)
            self._finish(rows, merged, finals)
        if counts_j > 1:
            self._assemble(nonzeros, lines)
        cells = counts_i * counts_j * counts_k
        # Which tiles are empty: a bit for each, looked up at each step.
        maps = -(-cells // (8 * self.design.line_bytes))
        for tensor in "ab":
            self.beats[f"read_{tensor}_meta"] += maps
        # They come while visits wait; where there are too few visits for that, they take time of their own.
        per_cycle = self.design.dram_bytes_per_cycle / self.design.line_bytes
        self.time["memory"] += max(0, math.ceil(2 * maps / per_cycle) - self.time["overhead"])
        return self._result(cells)

    def _fates(self, rows: int) -> tuple[int, int, int]:
        """What becomes of rows of the C tiles at the end of a visit: nonzeros on chip, of rows that fit there, and of others."""
        whole = self.tiles[2] == 1
        lines = self.scheme.buffer_bytes["C"] // self.design.line_bytes
        capacity = self.lanes * (lines - -(-rows // self.lanes)) if self.scheme.buffers("C") else -1
        fitting = STAYS if whole or self.innermost == "k" else LEAVES_AS_ROW
        if self.outer:
            return capacity, fitting, LEAVES_AS_PRODUCTS
        return capacity, fitting, STAYS if whole else LEAVES_AS_ROW

    def _visit(
        self,
        it: int,
        loaded_b: NDArray[np.bool_],
        macs: Index,
        row_time: Index,
        longest: Index,
        logged: Index,
        merged: Index,
        finals: Index,
    ) -> None:
        """All visits of one i tile, as arrays over (k tile, j tile)."""
        a, b = self.tiles_a, self.tiles_b
        pes = self.design.pe.count
        visited = (a.nonzeros[it] > 0)[:, None] & (b.nonzeros > 0)
        stays_a, stays_b = self._stays("A", "j"), self._stays("B", "i")
        loads_a = visited & (np.cumsum(visited, axis=1) == 1) if stays_a else visited
        loads_b = visited & ~loaded_b if stays_b else visited
        loaded_b |= visited

        read_a = np.where(loads_a, a.lines[it][:, None], a.bumped_lines[it][:, None]) * visited
        # Rows of an inner product that are under way together share what streams by: a pass for each group of them.
        passes = np.ones_like(macs) if self.outer else np.broadcast_to(-(-a.fibers[it] // pes)[:, None], macs.shape)
        read_b = np.where(loads_b, b.lines + b.bumped_lines * (passes - 1), b.bumped_lines * passes) * visited
        meta_a = (a.meta_lines[it][:, None] + a.kept_lines[it][:, None]) * loads_a
        meta_b = (b.meta_lines + b.kept_lines) * loads_b
        written = _lines(logged, self.lanes)
        ends = np.zeros_like(macs)
        if not self.outer:  # rows that no merge makes leave while the last visit computes
            last = visited & (np.cumsum(visited[::-1], axis=0)[::-1] == 1)
            ends = last * (_lines(finals, self.lanes) * (merged[0] == 0))[None, :]

        moved = read_a + read_b + meta_a + meta_b + written + ends
        through = 2 * (read_a + read_b)
        if self.outer:
            pe = -(-macs // pes)
            fetch = np.broadcast_to(a.nonzeros[it][:, None], macs.shape)
            sram = macs + through
        else:
            pe = np.maximum(-(-row_time // pes), longest)
            fetch = np.broadcast_to(a.fibers[it][:, None], macs.shape)
            sram = fetch * _lines(b.nonzeros, self.lanes) + through
        self._spend(visited, moved, pe, fetch, -(-sram // self.design.buffer.banks))

        self.visits += int(visited.sum())
        self.macs += int(macs.sum())
        self.logged += int(logged.sum())
        self.compared += 0 if self.outer else int((fetch * b.nonzeros * visited).sum())
        of_b = b.nonzeros if self.outer else fetch * b.nonzeros
        self.walked += int(((a.nonzeros[it][:, None] + of_b) * visited).sum())
        beats = self.beats
        beats["read_a_data"] += int(read_a.sum())
        beats["read_b_data"] += int(read_b.sum())
        beats["read_a_meta"] += int((a.meta_lines[it][:, None] * loads_a).sum())
        beats["read_b_meta"] += int((b.meta_lines * loads_b).sum())
        beats["write_a_meta"] += int((a.kept_lines[it][:, None] * loads_a).sum())
        beats["write_b_meta"] += int((b.kept_lines * loads_b).sum())
        beats["write_c_data"] += int(written.sum() + ends.sum())
        if self.scheme.buffers("A"):
            self._note("a", a.bumped[it][:, None] * loads_a, read_a - a.lines[it][:, None] * loads_a)
        if self.scheme.buffers("B"):
            self._note("b", b.bumped * loads_b, read_b - b.lines * loads_b)
            self.sizes.add(ELEMENT_BYTES * b.nonzeros[loads_b])

    def _note(self, tensor: str, bumped: Index, refetched: Index) -> None:
        self.overbooked[tensor] += int(np.count_nonzero(bumped))
        self.bumped[tensor] += int(bumped.sum())
        self.bumped_lines[tensor] += int(refetched.sum())

    def _spend(self, visited: NDArray[np.bool_], moved: Index, pe: Index, fetch: Index, sram: Index) -> None:
        """Adds the cycles of visits to the part that each was bound by."""
        if not visited.any():
            return
        per_cycle = self.design.dram_bytes_per_cycle / self.design.line_bytes
        parts = np.stack([np.ceil(moved / per_cycle).astype(np.int64), pe, fetch, sram])[:, visited]
        which = parts.argmax(axis=0)
        for number, name in enumerate(PARTS[:-1]):
            self.time[name] += int(parts[number, which == number].sum())
        waits = TILE_TRIPS_OF_DATAFLOWS * self.design.memory_latency_cycles + PHASE_CYCLES
        self.time["overhead"] += waits * parts.shape[1]

    def _finish(self, rows: tuple[int, int], merged: Index, finals: Index) -> None:
        """Partial fibers of the tiles of C are merged, rows that wait on chip leave, and the pointers of all."""
        entries, passed = merged
        self.merged += int(passed.sum())
        refetched = _lines(passed, self.lanes)
        rewritten = _lines(passed - entries, self.lanes)
        waiting = self.outer | (entries > 0)
        leaves = _lines(finals, self.lanes) * waiting
        pointers = word_lines(0, rows[1] - rows[0] + 1, self.lanes)
        per_cycle = self.design.dram_bytes_per_cycle / self.design.line_bytes
        moved = refetched + rewritten + leaves
        merging = entries > 0
        zero = np.zeros_like(moved)
        self._spend(merging, moved, -(-passed // self.design.pe.count), zero, zero)
        self.time["memory"] += int(np.ceil((moved * ~merging + pointers) / per_cycle).sum())
        self.beats["read_c_data"] += int(refetched.sum())
        self.beats["write_c_data"] += int(rewritten.sum() + leaves.sum())
        self.beats["write_c_meta"] += pointers * len(finals)

    def _assemble(self, nonzeros: int, lines: int) -> None:
        """The pass that joins the j tiles of each row, as in the machine with hardware."""
        counts_i, counts_j, _ = self.tiles
        self.merged += nonzeros
        pointers = counts_i * counts_j * word_lines(0, self.tile[0] + 1, self.lanes)
        written = -(-nonzeros // self.lanes)
        end = word_lines(0, self.a.rows + 1, self.lanes)
        self.beats["read_c_data"] += lines
        self.beats["read_c_meta"] += pointers
        self.beats["write_c_data"] += written
        self.beats["write_c_meta"] += end
        one = np.ones(1, np.int64)
        self._spend(
            one > 0, one * (lines + pointers + written + end), one * -(-nonzeros // self.design.pe.count),
            one * self.a.rows * counts_j, one * 0,
        )  # fmt: skip

    def _result(self, cells: int) -> EngineResult:
        traffic = dram_bytes(self.beats, self.design.line_bytes)
        cycles = sum(self.time.values())
        tiles = {"total": cells, "skipped_empty": cells - self.visits, "overbooked": self.overbooked["b"]}
        return EngineResult(
            c=None,
            cycles=cycles,
            counters={
                "cycles": cycles,
                "macs": self.macs,
                "tiles_total": cells,
                "tiles_skipped": tiles["skipped_empty"],
                "tiles_overbooked": self.overbooked["b"],
                "bumped_elements": self.bumped["b"],
                "overbooked_a": self.overbooked["a"],
                "bumped_elements_a": self.bumped["a"],
                "logged_elements": self.logged,
                "merged": self.merged,
                "compared": self.compared,
                "walked": self.walked,
                "tuning_adjustments": 0,
                **{f"cycles_{name}": spent for name, spent in self.time.items()},
                **self.beats,
            },
            dram_bytes=traffic,
            tiles=tiles,
            buffer={
                "A": {"bumped": self.lanes * self.bumped_lines["a"]},
                "B": {
                    "peak_bytes": self.sizes.peak_bytes,
                    "mean_bytes": self.sizes.mean_bytes,
                    "bumped": self.lanes * self.bumped_lines["b"],
                },
            },
            occupancy={"B": self.sizes} if self.scheme.buffers("B") else {},
        )
