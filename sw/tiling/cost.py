"""The cost model that every policy predicts with: HYTE's (section 5.3), for this machine's rules.

Time is the time to load B's tiles, and A's where they are kept, plus the larger of PE, front-end, DRAM and SRAM time
while computing, plus the assembly pass, plus what each tile costs by itself: loading, computing and draining do not
overlap.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from sw.stats.pattern import Index, Pattern
from sw.stats.workload import Workload

from .kept_rows import LISTED_ROW_CYCLES, Pace, RowWork, replay
from .lists import plan_list
from .protocol import Machine
from .ring import WINDOW_BYTES, plan_ring
from .scheme import Scheme, resident_lines
from .strips import Strips, cut_strips, most_used, strips_of
from .traffic import TrafficEstimate, scratch

__all__ = [
    "ROUND_TRIPS",
    "ROUND_TRIPS_OF_A",
    "TILE_CYCLES",
    "Prediction",
    "latency_cycles",
    "lines_a_cycle",
    "predict",
    "predict_kept",
    "predict_strips",
    "predict_whole",
    "tail_cycles",
    "work_rows",
]

# Phases of a tile that wait for memory once: B's pointers and elements, A's pointers and elements, the last write.
ROUND_TRIPS = 5
ROUND_TRIPS_OF_A = 2  # fewer where A's tile is in place
TILE_CYCLES = 40
# Of tiles that keep rows of B and run into one another, whose jobs are replayed: before and after their rows.
KEPT_TILE_CYCLES = 59
KEPT_ROUND_TRIPS = 2.5
# From a job's last leaf to its first merged element, and from its last one to its last word; with each level of the merge.
DEPTH_CYCLES = -8.0
DEPTH_LEVEL_CYCLES = 2.75
FILL_CYCLES = 24.0
FILL_LEVEL_CYCLES = 4.5


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a scheme is expected to cost.

    ``traffic`` gives bus bytes by tensor and kind, ``time`` the cycles of each part; ``tiles`` counts visited tiles,
    ``overbooked`` the share of loaded B tiles that do not fit, ``hit_rate`` the share of MACs on resident segments.
    """

    cycles: int
    dram_bytes: int
    tiles: int
    overbooked: float
    hit_rate: float
    traffic: dict[str, int] = field(default_factory=dict)
    time: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, int]:
        """What a scheme keeps."""
        return {"cycles": self.cycles, "dram_bytes": self.dram_bytes}


def lines_a_cycle(design: Machine) -> float:
    """Bus lines that memory moves in a cycle, at most one."""
    return float(min(1.0, design.dram.bandwidth_gbps * 1000 / design.clock.mhz / design.line_bytes))


def latency_cycles(design: Machine) -> float:
    """Cycles that memory takes to answer."""
    return float(design.dram.latency_ns * design.clock.mhz / 1000)


def tail_cycles(work: Workload) -> float:
    """Cycles in which elements wait for the last row of a tile: half of a row's, a product a cycle."""
    return 0.5 * float(work.effmac) / max(1, work.I)


def predict(work: Workload, design: Machine, scheme: Scheme) -> Prediction:
    """Cycles and bus bytes of ``scheme``, which must be legal for ``design``."""
    if scheme.keeps_rows:
        return _predict_windows(work, design, scheme)
    found = TrafficEstimate(work, design, scheme)
    t = found.traffic
    per_cycle, latency = lines_a_cycle(design), latency_cycles(design)
    assembly = 0.0
    if found.N_j > 1:
        assembly = max(t.assembly / per_cycle, float(work.I) * found.N_j, work.nnz_c / design.pe.count)
    parts = {
        "load": max(
            t.load / per_cycle, found.loads * min(scheme.T_k, work.K) + found.loads_a * min(scheme.T_i, work.I)
        ),
        "pe": (work.effmac + found.carried + found.again) / design.pe.count,
        "front": max(found.selections, found.tiles * work.I / found.N_i),
        "dram": (t.total - t.load - t.assembly) / per_cycle,
        "sram": found.sram_lines / design.buffer.banks,
        "assembly": assembly,
        "overhead": found.tiles * (TILE_CYCLES + ROUND_TRIPS * latency) - found.hits_a * ROUND_TRIPS_OF_A * latency,
    }
    names = ("a_data", "a_meta", "b_data", "b_meta", "c_data", "c_meta")
    moved = {name: getattr(t, name) for name in names}
    return _prediction(work, design, parts, moved, int(found.tiles), found.overbooked, found.bumped_macs)


def _prediction(
    work: Workload,
    design: Machine,
    parts: dict[str, float],
    moved: dict[str, float],
    tiles: int,
    overbooked: float,
    bumped_macs: float,
) -> Prediction:
    """From cycles of each part and lines of each kind: loading, then the slowest of what computing needs, then the rest."""
    computing = max(parts[name] for name in ("pe", "front", "dram", "sram"))
    cycles = parts["load"] + computing + parts["assembly"] + parts["overhead"]
    traffic = {name: math.ceil(lines) * design.line_bytes for name, lines in moved.items()}  # whole lines move
    return Prediction(
        cycles=max(1, round(cycles)),
        dram_bytes=sum(traffic.values()),
        tiles=tiles,
        overbooked=overbooked,
        hit_rate=1 - bumped_macs / work.effmac if work.effmac else 1.0,
        traffic=traffic,
        time={name: round(value) for name, value in parts.items()},
    )


def _predict_windows(work: Workload, design: Machine, scheme: Scheme) -> Prediction:
    """The same where each tile along i loads a window of B, or of a list of its rows: A and C move once, nothing is carried."""
    if strips_of(scheme, work.J):
        cut = cut_strips(work.a, work.b, work.J, scheme.T_j)
        return predict_strips(work, design, cut, scheme.T_i, scheme.rows_lines(design.line_bytes))
    windows = None if scheme.listed else np.array(scheme.windows, np.int64)
    room = scheme.rows_lines(design.line_bytes)
    return predict_kept(work, design, work_rows(work, design), scheme.T_i, room, windows)


def work_rows(work: Workload, design: Machine) -> RowWork:
    """What each row of A has to do."""
    return RowWork(work.a, work.row_macs, work.row_elements, work.group_elements(design.pe.merge_radix))


def predict_kept(
    work: Workload, design: Machine, rows: RowWork, T_i: int, room: int, windows: Index | None = None
) -> Prediction:
    """Tiles of ``T_i`` rows of A that find rows of B in place, which those before them have loaded.

    Parameters
    ----------
    rows: of A, :func:`work_rows` or some of them; of a part only ``cycles`` mean something, for that part.
    room: lines of B's partition without its FIFO-managed region.
    windows: int64[tiles, 2], of k (:mod:`.windows`); None for lists of rows (:mod:`.lists`).

    Raises :class:`.lists.ListError` where a tile uses more rows than a list has entries for.
    """
    line, lanes = design.line_bytes, design.lanes
    listed = None
    pointers = work.b.pointers
    if windows is None:
        plan = plan_list(rows.a, T_i, pointers, room, lanes, with_places=False)
        windows, ring, listed = plan.windows, plan.ring, plan.rows
    else:
        ring = plan_ring(windows, rows.a, T_i, pointers, room, lanes)
    fresh = windows[:, 0] + ring.kept
    found = replay(
        rows,
        T_i,
        pointers,
        windows,
        fresh,
        ring.held,
        ring.line,
        lanes,
        _pace(design, listed is not None),
        listed=listed,
    )
    tiles, words = len(windows), 2 * lanes
    _, scratch_lines = scratch(work, design, (work.J, work.K), 1)
    pair = 2 if listed is not None else 1
    moved = {
        "a_data": work.a.nnz / lanes,
        "a_meta": work.I / words + WINDOW_BYTES * tiles / line,
        "c_data": work.nnz_c / lanes + scratch_lines,
        "c_meta": work.I / words,
        "b_data": float(found.lines + found.bumped_lines),
        "b_meta": pair * (found.rows / words + found.loads),
    }
    parts = {
        "load": 0.0,  # beside the rows of the tile, or waited for by them
        "pe": 0.0,
        "front": 0.0,
        "dram": found.cycles,  # of memory, elements and dispatch together
        "sram": (found.lines + (work.effmac - found.bumped_macs) / lanes + 1.5 * work.a.nnz) / design.buffer.banks,
        "assembly": 0.0,
        "overhead": found.chains * (KEPT_TILE_CYCLES + KEPT_ROUND_TRIPS * latency_cycles(design)),
    }
    return _prediction(work, design, parts, moved, tiles, found.overbooked / max(1, found.loads), found.bumped_macs)


def predict_strips(work: Workload, design: Machine, cut: Strips, T_i: int, room: int) -> Prediction:
    """Lists of which rows of C are made in strips.

    Parameters
    ----------
    cut: the operands of ``work`` in strips, in no tiles yet. T_i: strips of a tile.
    room: lines of B's partition without its FIFO-managed region.

    Raises :class:`.lists.ListError` where a strip uses more of B than a list has entries for.
    """
    cut = cut.in_tiles(T_i, most_used(room, design.lanes))
    a = Pattern(cut.rows, cut.inner, cut.pointers, cut.coordinates)
    b = Pattern(cut.inner, work.J, cut.b_pointers, work.b.coordinates)
    strips = Workload(a, b, lanes=design.lanes, statistics=work.statistics, seed=work.seed)
    return predict_kept(strips, design, work_rows(strips, design), T_i, room)


def _pace(design: Machine, listed: bool = False) -> Pace:
    levels = (design.pe.merge_radix - 1).bit_length()
    return Pace(
        line=1 / lines_a_cycle(design),
        latency=latency_cycles(design),
        elements=design.pe.count,
        radix=design.pe.merge_radix,
        room=design.pe.leaf_lines * design.lanes,
        queue=design.pe.queue_lines * design.lanes,
        long_rows=design.scratch_slots,
        depth=DEPTH_CYCLES + DEPTH_LEVEL_CYCLES * levels,
        fill=FILL_CYCLES + FILL_LEVEL_CYCLES * levels,
        row=LISTED_ROW_CYCLES if listed else 1,
    )


def predict_whole(work: Workload, design: Machine, scheme: Scheme) -> Prediction:
    """:func:`predict` for a scheme of one tile, its cycles replayed as those of tiles that keep rows of B."""
    line = design.line_bytes
    windows, first = np.array([[0, work.K]]), np.zeros(1, np.int64)
    held = 0
    if scheme.buffers("B"):
        fit = [
            design.lanes
            * resident_lines(lines=scheme.buffer_bytes["B"] // line, fifo_lines=fifo, rows=work.K, lanes=design.lanes)
            for fifo in (scheme.fifo_bytes["B"] // line, 0)
        ]
        held = work.K
        if work.b.nnz > fit[1]:
            held = int(np.searchsorted(work.b.pointers[1:], fit[0], side="right"))
    else:
        windows = np.zeros((1, 2), np.int64)
    found = replay(
        work_rows(work, design), work.I, work.b.pointers, windows, first, np.array([held]), first, design.lanes, _pace(design),
        streaming=not scheme.buffers("B"),
    )  # fmt: skip
    base = predict(work, design, scheme)
    cycles = found.cycles + KEPT_TILE_CYCLES + KEPT_ROUND_TRIPS * latency_cycles(design)
    return replace(base, cycles=max(1, round(cycles)))
