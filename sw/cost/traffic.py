"""What a scheme moves over the bus: the machine's rules of access, in expectation.

A and B are read by tile with their pointers and begin positions, partial rows of C leave and come back at each k step,
finished tiles are put together at the end when C is cut along j.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sw.plan.records import tensor_formats
from sw.scheme.scheme import Scheme
from sw.stats.segments import ScanProfile, prefix_profile, row_beats, row_lines
from sw.stats.workload import Workload
from sw.timing.constants import PARTS_LINE_CYCLES
from sw.timing.record_beats import expected_beats, line_beats

from .protocol import Machine
from .tile_maps import map_lines
from .visits import TileVisits

__all__ = ["Traffic", "TrafficEstimate", "scratch", "words_beside", "words_of_c"]

Floats = NDArray[np.float64]


@dataclass
class Traffic:
    """What the bus moves, in lines of as many bytes as one has on chip; fractions are expectations."""

    a_data: float = 0.0
    a_meta: float = 0.0
    b_data: float = 0.0
    b_meta: float = 0.0
    c_data: float = 0.0
    c_meta: float = 0.0
    written: dict[str, float] = field(default_factory=dict)  # part of a kind that is written; the rest is read
    load: float = 0.0  # part of A's and B's that moves before computing starts
    load_lines: float = 0.0  # of the nonzeros in it: a unit takes one in a cycle, however few beats hold them
    assembly: float = 0.0  # part of C's that the final pass moves
    maps: float = 0.0  # part of A's and B's that the walk looks up between tiles

    @property
    def total(self) -> float:
        return self.a_data + self.a_meta + self.b_data + self.b_meta + self.c_data + self.c_meta


class TrafficEstimate(TileVisits):
    """Beats of one scheme on one workload; the steps are methods so that they read like the rules of the machine.

    After construction: ``traffic``; ``tiles`` visited; ``loads`` of B tiles, lines ``load_b`` in them, ``overbooked`` share;
    ``loads_a`` of A tiles, ``hits_a`` visits that find theirs; ``bumped_macs``; ``leaf_lines`` fetched for bumped segments,
    ``bursts`` and look-ups; ``unit_lines`` that are read back; ``lines_c`` that leave, and of the final pass, ``meta_c`` of
    positions before it; ``sram_lines``; ``selections`` of fibers; ``pieces`` of rows of C; ``carried`` nonzeros of partial rows,
    of which a share is ``kept`` on chip, or of the parts of rows that are joined, which are ``found`` in so many cycles and
    ``grouped`` where they are many;
    ``scratch_macs`` of scratch fibers, merged once more.
    """

    def __init__(self, workload: Workload, design: Machine, scheme: Scheme) -> None:
        super().__init__(workload, scheme)
        self.design = design
        self.lanes = design.lanes
        self.words = 2 * design.lanes  # pointers or positions in a bus line
        formats = tensor_formats(design, workload.K, workload.J)
        self.widths = {tensor: found.record_bits for tensor, found in formats.items()}
        self.line_beats = design.buffer.line_beats
        self.traffic = Traffic()
        self.overbooked = self.bumped_macs = 0.0
        self.leaf_lines = self.bursts = self.unit_lines = self.sram_lines = 0.0
        self.lines_c = {"leave": 0.0, "joined": 0.0}
        self.loads = 1.0
        self.load_b = self.meta_c = self.loads_a = self.hits_a = 0.0
        self.carried = self.kept = self.found = self.grouped = self.pieces = self.scratch_macs = 0.0
        self._keep_a() if scheme.buffers("A") else self._stream_a()
        self._operand_b()
        self._operand_c()
        self._maps()

    def _word_lines(self, words: float, runs: float) -> float:
        """Lines for ``words`` words in ``runs`` runs that begin anywhere."""
        return words / self.words + runs * 0.5

    def _beats(self, tensor: str, lines: float, runs: float = 0.0) -> float:
        """What lines of records in runs that begin anywhere take of the bus."""
        return expected_beats(lines, min(runs, lines), self._pitch(tensor)) / self.line_beats

    def _pitch(self, tensor: str) -> int:
        return self.widths[tensor] * self.line_beats

    def _maps(self) -> None:
        """What says which tiles are empty; each tile is looked up, also those that are left out."""
        found = map_lines(self.scheme.order, (self.N_i, self.N_j, self.N_k), 8 * self.design.line_bytes)
        self.traffic.a_meta += found["A"]
        self.traffic.b_meta += found["B"]
        self.traffic.maps += sum(found.values())

    def _stream_a(self) -> None:
        """A once per visited tile."""
        s, workload, t = self.scheme, self.workload, self.traffic
        rows = min(s.T_i, workload.I)
        if self.N_k == 1:
            visits = float(self.working)
            per_visit = self.a_nonzeros[0] / max(1, self.a_rows_of_tiles[0])
            t.a_data = self._beats("A", visits * (per_visit / self.lanes + 0.5), visits)
            words = visits * (rows + 1)
            written = 0.0
        else:
            _, t.a_data = self._scan_a(self.visits_k)
            first = float(self.visits_k[0])
            visits = float(self.working)
            words = first * (rows + 1) + (visits - first) * 2 * rows
            written = self._advances(self.visits_k, False) * rows
        t.written["a_meta"] = self._word_lines(written, visits if written else 0)
        t.a_meta = self._word_lines(words, 2 * visits) + t.written["a_meta"]

    def _keep_a(self) -> None:
        """A tile is loaded when it is not in place; rows that do not fit come from memory at each visit."""
        s, workload, t = self.scheme, self.workload, self.traffic
        rows = min(s.T_i, workload.I)
        stays = self._innermost("j")
        loads = np.where(self.occupied_j > 0, self.a_rows_of_tiles, 0) if stays else self.visits_k
        self.loads_a = float(loads.sum())
        self.hits_a = self.working - self.loads_a
        if self.N_i == 1:
            occupancy, step = self.a_nonzeros, np.arange(self.N_k)
        else:
            tiles = workload.tiles("A", s.T_i, s.T_k)
            occupancy, step = tiles.occupancy.astype(np.float64), tiles.columns
        over = np.maximum(0.0, occupancy - s.partition("A", self.design).resident(rows))
        bumped = float(over @ self.occupied_j[step])  # nonzeros from memory, over all visits
        resident = float((occupancy - over) @ self.occupied_j[step])
        words = self.loads_a * (rows + 1)
        written = 0.0
        if self.N_k == 1:
            per_load = float(loads[0]) / max(1, self.a_rows_of_tiles[0])
            load = float((occupancy - over).sum()) * per_load / self.lanes + 0.5 * self.loads_a
            moved = self._beats("A", load, self.loads_a)
            uses = self._beats("A", bumped / self.lanes + (0.5 * self.working if bumped else 0.0), self.working)
        else:
            load, moved = self._scan_a(loads)
            uses = bumped * self._scan("A", s.T_k).fetch_beats / self.line_beats / max(1.0, float(workload.a.nnz))
            first = float(loads[0])
            words = first * (rows + 1) + (self.loads_a - first) * 2 * rows
            written = self._advances(loads, stays) * rows
        t.written["a_meta"] = self._word_lines(written, self.loads_a if written else 0)
        meta = self._word_lines(words, 2 * self.loads_a) + t.written["a_meta"]
        t.a_data = moved + uses
        t.a_meta = meta
        t.load += moved + meta
        t.load_lines += load
        self.sram_lines += load + (resident + self.working * rows) / self.lanes

    def _scan(self, tensor: str, T: int) -> ScanProfile:
        return self.workload.scan(tensor, T, self._pitch(tensor))

    def _overshoot(self, tensor: str, T: int, nonzeros: Floats) -> tuple[Floats, Floats]:
        """Lines and beats that the scans of each step along a tensor's rows ask for beyond its ``nonzeros``."""
        profile, lines = self._scan(tensor, T), nonzeros / self.lanes
        moved = lines * line_beats(self.widths[tensor])
        return np.maximum(0.0, profile.lines - lines), np.maximum(0.0, profile.beats / self.line_beats - moved)

    def _scan_a(self, visits_k: NDArray[np.int64]) -> tuple[float, float]:
        """Lines and beats from where the last visited tile of these rows left off, with what the chunks overshoot.

        ``visits_k``: tiles scanned in each k step.
        """
        s = self.scheme
        share = visits_k / np.maximum(1, self.N_i)  # of the rows, for each j visited
        lines = self._passed_a() / self.lanes
        extra, extra_beats = (float(over @ share) for over in self._overshoot("A", s.T_k, self.a_nonzeros))
        return extra + lines, extra_beats + self._beats("A", lines)

    def _operand_b(self) -> None:
        if not self.scheme.buffers("B"):
            self._stream_b()
        elif self.N_j == 1:
            self._keep_rows()
        else:
            self._keep_segments()

    def _stream_b(self) -> None:
        """Each use of a row reads its pointer pair and its nonzeros from memory."""
        workload, t = self.workload, self.traffic
        fetched = float(workload.uses @ row_lines(workload.b, self.lanes))
        t.b_data = float(workload.uses @ row_beats(workload.b, self.lanes, self._pitch("B"))) / self.line_beats
        t.b_meta = float(workload.uses.sum()) * (1 + 1 / self.words)
        self.bursts = float(workload.uses.sum() + workload.uses @ (workload.b.row_lengths > 0))
        self.loads = 0.0
        self.leaf_lines = fetched
        self.bumped_macs = workload.effmac

    def _keep_rows(self) -> None:
        """Tiles of whole rows: a run of memory each; rows from the first that does not fit on stay there."""
        s, workload, t = self.scheme, self.workload, self.traffic
        profile = prefix_profile(workload.b, s.T_k, _capacity(self), self.lanes, workload.uses, self._pitch("B"))
        working = np.maximum(1, np.count_nonzero(self.visits_k))
        times = float((self._reloads() * (self.occupied_j > 0)).sum()) / working
        self.loads = times * working
        moved = profile.beats / self.line_beats * times
        self.load_b = moved + self._word_lines(self.loads * (s.T_k + 1), self.loads)
        t.load += moved + self._word_lines(self.loads * (s.T_k + 1), self.loads)
        t.load_lines += profile.lines * times
        t.b_data = moved + profile.bumped_beats / self.line_beats
        t.b_meta = self._word_lines(self.loads * (s.T_k + 1), self.loads)
        self.overbooked = profile.overbooked / self.N_k
        self.bumped_macs = float(profile.bumped_macs)
        self.leaf_lines, self.bursts = float(profile.bumped_lines), float(profile.bumped_uses)
        self._sram(profile.lines * times)

    def _keep_segments(self) -> None:
        """Tiles cut out of rows by scanning; the segments beyond the capacity are fetched at each use."""
        s, t = self.scheme, self.traffic
        tiles = self.b_tiles
        assert tiles is not None  # N_j > 1
        row_of = tiles.rows
        capacity = _capacity(self)[row_of]
        used = self.a_rows_of_tiles[row_of] > 0
        hit = np.minimum(1.0, capacity / tiles.occupancy)
        bumped = float((tiles.weight * (1 - hit)).sum())
        profile = self._scan("B", s.T_j)
        share = bumped / max(1.0, float(tiles.weight.sum()))  # of all uses
        reloads = self._reloads()[row_of] * used
        self.loads = float(reloads.sum())
        nonzeros = float((tiles.occupancy * reloads).sum())
        per_column = np.bincount(tiles.columns, minlength=self.N_j)
        reloaded = self.loads / max(1, len(tiles.columns)) * per_column / self.N_k
        extra, extra_beats = (float(over @ reloaded) for over in self._overshoot("B", s.T_j, self._column_nonzeros()))
        load = nonzeros / self.lanes + extra
        self.overbooked = float(np.count_nonzero(tiles.occupancy > capacity)) / max(1, len(tiles.columns))
        self.bumped_macs = bumped
        moved = self._beats("B", nonzeros / self.lanes) + extra_beats
        self.leaf_lines, self.bursts = share * profile.fetch_lines, share * profile.fetches
        t.b_data = moved + share * profile.fetch_beats / self.line_beats
        t.written["b_meta"] = self._word_lines(self.loads * (1 - 1 / self.N_j) * s.T_k, self.loads)
        t.b_meta = self._word_lines(self.loads * (2 - 1 / self.N_j) * s.T_k, 2 * self.loads) + t.written["b_meta"]
        self.load_b = moved + t.b_meta
        t.load += moved + t.b_meta
        t.load_lines += load
        self._sram(load)

    def _sram(self, written: float) -> None:
        """Resident segments are read line by line, one metadata line for each use."""
        macs = max(0.0, self.workload.effmac - self.bumped_macs)
        self.sram_lines += written + macs / self.lanes + self.selections * 1.5

    def _operand_c(self) -> None:
        s, workload, t = self.scheme, self.workload, self.traffic
        nnz = workload.nnz_c
        self.kept = _kept_of_c(self) if s.buffers("C") and self._innermost("k") else 0.0
        self.carried = self._parts() if s.joins else self._carried()
        carried = self.carried * (1 - self.kept)
        passes = max(0.0, self.tiles - self.N_i * self.N_j) * (self.kept < 1)  # tiles whose rows leave as partial ones
        pieces, leaving = workload.output_rows.fibers(s.T_j, s.T_k, self.N_k) if self.N_j * self.N_k > 1 else (0.0, 0.0)
        self.pieces = pieces
        if s.joins:  # by tiles with work, for each row of A that has any there
            passes = float(self.visits_k[:-1].sum())
            leaving = float(self._scan("A", s.T_k).by_bits.sum()) * self.N_j * (1 - 1 / self.N_k)
        fibers = min(carried, passes * workload.I / self.N_i, leaving)
        misaligned = (self.lanes - 1) / self.lanes
        final = self._beats("C", nnz / self.lanes)
        t.written["c_data"] = carried / self.lanes + (final if self.N_j == 1 else nnz / self.lanes)
        read = self.unit_lines = carried / self.lanes + fibers * misaligned
        # The last line of a fiber that leaves is half full.
        self.lines_c["leave"] = (nnz + carried) / self.lanes + 0.5 * (pieces + fibers)
        t.written["c_meta"] = self._word_lines(workload.I + self.N_i, self.N_i)
        read_meta = 0.0
        self.meta_c = t.written["c_meta"] if self.N_j == 1 else self._word_lines(workload.I * self.N_j, 0)
        if self.N_j > 1:
            # Finished tiles have positions of their own, which the final pass reads row by row; then it writes those of C.
            t.written["c_meta"] = self._word_lines((workload.I + self.N_i) * self.N_j, self.N_i * self.N_j)
            data = nnz / self.lanes + pieces * misaligned
            meta = float(workload.I) * self.N_j * (1 + 1 / self.words)
            joined, pointers = final, (workload.I + 1) / self.words
            t.assembly = data + meta + joined + pointers
            self.lines_c["joined"] = max(data, nnz / self.lanes)
            read += data
            read_meta += meta
            t.written["c_data"] += joined
            t.written["c_meta"] += pointers
        if self.N_k > 1:
            with_positions = 0.0 if s.buffers("C") else passes
            each_way = self._word_lines(with_positions * (workload.I / self.N_i + 1), with_positions)
            read_meta += each_way
            t.written["c_meta"] += each_way
            self.meta_c += 2 * each_way
            if s.joins:  # lines of positions come one by one
                self.bursts, self.found = self.bursts + each_way, _found(each_way, fibers, workload.I * self.N_j)
        self.scratch_macs, lines = scratch(workload, self.design, (s.T_j, s.T_k), self.N_j)
        if s.joins:
            self.grouped, more = grouped_parts(self)
            self.scratch_macs, lines = self.scratch_macs + self.grouped, lines + more
        self.unit_lines += lines / 2
        t.written["c_data"] += lines / 2
        t.c_data = read + lines / 2 + t.written["c_data"]
        t.c_meta = read_meta + t.written["c_meta"]


def _found(lines: float, fibers: float, rows: int) -> float:
    """Cycles in which parts of rows are found: lines of positions, parts, and a cycle for each row without any."""
    return PARTS_LINE_CYCLES * lines + fibers + rows * float(np.exp(-fibers / max(1, rows)))


def _kept_of_c(found: TrafficEstimate) -> float:
    """Share of the carried nonzeros that stay on chip: of each tile as many as the half for them holds."""
    s, workload = found.scheme, found.workload
    capacity = max(0, s.half_for_partial_rows(found.design).resident(s.T_i))
    widths = np.minimum(s.T_j, workload.J - s.T_j * np.arange(found.N_j))
    tiles = workload.nnz_c / found.N_i * widths / workload.J
    return float(np.minimum(tiles, capacity).sum() / max(1.0, tiles.sum()))


def words_beside(found: TrafficEstimate) -> float:
    """Words that each row of a tile moves beside the one that says where its nonzeros of A are, and beside its nonzeros."""
    lines, t = found.meta_c, found.traffic
    if not found.scheme.buffers("A"):
        lines += t.a_meta + max(0.0, t.a_data - found._beats("A", found.selections / found.lanes))
    return max(0.0, found.words * lines * found.N_i / (max(1, found.working) * found.workload.I) - 1)


def words_of_c(found: TrafficEstimate) -> float:
    """The same of a tile that only carries partial rows along."""
    return max(0.0, found.words * found.meta_c * found.N_i / (max(1.0, found.tiles) * found.workload.I) - 1)


def _capacity(found: TrafficEstimate) -> NDArray[np.int64]:
    """Nonzeros of B resident in each k step's tile."""
    s, workload = found.scheme, found.workload
    partition = s.partition("B", found.design)
    whole, last = (max(0, partition.resident(rows)) for rows in (s.T_k, workload.K - (found.N_k - 1) * s.T_k))
    return np.array([whole] * (found.N_k - 1) + [last], np.int64)


def grouped_parts(found: TrafficEstimate) -> tuple[float, float]:
    """Rows of more parts than the merge tree has inputs: as :func:`scratch`, for the step that joins them.

    A row has a part in as many k steps as its nonzeros of A fall in by chance, and of all parts its share by MACs.
    """
    workload, radix = found.workload, found.design.pe.merge_radix
    steps = -np.expm1(workload.a.row_lengths * np.log1p(-1 / found.N_k)) * found.N_k
    steps *= float(found._scan("A", found.scheme.T_k).by_bits.sum()) / max(1.0, float(steps.sum()))
    many = steps > radix
    if not many.any():
        return 0.0, 0.0
    groups = np.ceil(steps[many] / radix) * found.N_j
    each = found.carried * workload.row_macs[many] / max(1.0, workload.effmac) / groups
    width = max(1.0, workload.width / found.N_j)
    results = float((-width * np.expm1(-each / width) * groups).sum())
    return results, 2 * results / found.lanes + float(groups.sum()) * 0.5


def scratch(workload: Workload, design: Machine, tile: tuple[int, int], N_j: int) -> tuple[float, float]:
    """Rows with more leaves than the merge tree has inputs: their groups' results go to memory and come back.

    Results of a group are fewer than its products by chance collisions in the workload's effective width, and as many fewer
    still as they are where no rank is cut (:meth:`Workload.group_share`).

    Parameters
    ----------
    tile: ``T_j`` and ``T_k``. N_j: tiles along j.

    Returns nonzeros of such results, and the bus lines that they take both ways.
    """
    T_j, T_k = tile
    radix = design.pe.merge_radix
    profile = workload.scan("A", T_k)
    segments, leaves = profile.by_bits[radix.bit_length() :], profile.nonzeros_by_bits[radix.bit_length() :]
    present = segments > 0
    if not present.any():
        return 0.0, 0.0
    segments, leaves = segments[present] * N_j, leaves[present] * N_j
    groups = segments * np.ceil(leaves / segments / radix)
    each = leaves / groups * (workload.effmac / max(1, workload.a.nnz)) / N_j  # MACs of a group
    width = max(1.0, workload.width * min(T_j, workload.J) / workload.J)
    results = float((-width * np.expm1(-each / width) * groups).sum())
    # A full table of such results is merged into one scratch fiber before the next groups follow.
    tables = np.where(groups > radix * segments, groups / max(1, radix - 1), 0.0)
    results += float((-width * np.expm1(-each * radix / width) * tables).sum())
    results *= workload.group_share(radix)
    return results, 2 * results / design.lanes + float(groups.sum()) * 0.5
