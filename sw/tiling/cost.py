"""The cost model that every policy predicts with: HYTE's (section 5.3), for this machine's rules.

Time is the time to load B's tiles, and A's where they are kept, plus the larger of PE, front-end, DRAM and SRAM time
while computing, plus the assembly pass, plus what each tile costs by itself: loading, computing and draining do not
overlap.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from sw.stats.segments import Pace, window_profile
from sw.stats.workload import Workload

from .lists import plan_list
from .protocol import Machine
from .ring import WINDOW_BYTES, plan_ring
from .scheme import Scheme
from .traffic import TrafficEstimate, scratch

__all__ = [
    "ROUND_TRIPS",
    "ROUND_TRIPS_OF_A",
    "TILE_CYCLES",
    "Prediction",
    "latency_cycles",
    "lines_a_cycle",
    "predict",
    "tail_cycles",
]

# Phases of a tile that wait for memory once: B's pointers and elements, A's pointers and elements, the last write.
ROUND_TRIPS = 5
ROUND_TRIPS_OF_A = 2  # fewer where A's tile is in place
TILE_CYCLES = 40


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
        assembly = max(t.assembly / per_cycle, float(work.I) * found.N_j, work.output.nnz / design.pe.count)
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
    line, lanes = design.line_bytes, design.lanes
    room = scheme.rows_lines(line)
    begin, end = work.b.pointers[:-1], work.b.pointers[1:]
    if scheme.listed:
        plan = plan_list(work.a, scheme.T_i, work.b.pointers, room, lanes)
        windows, ring, places = plan.windows, plan.ring, plan.places
        begin, end = begin[plan.rows], end[plan.rows]
    else:
        windows, places = np.array(scheme.windows, np.int64), work.a.coordinates
        ring = plan_ring(windows, work.a, scheme.T_i, work.b.pointers, room, lanes)
    fresh = windows[:, 0] + ring.kept
    tiles = len(windows)
    words = 2 * lanes
    again, scratch_lines = scratch(work, design, (work.J, work.K), 1)
    moved = {
        "a_data": work.a.nnz / lanes + 0.5 * tiles,
        "a_meta": (work.I + tiles) / words + 0.5 * tiles + WINDOW_BYTES * tiles / line,
        "c_data": work.output.nnz / lanes + scratch_lines,
        "c_meta": (work.I + tiles) / words + 0.5 * tiles,
    }
    nonzeros = max(1, work.a.nnz)
    pace = Pace(
        line=1 / lines_a_cycle(design),
        element=max(1.0, (work.effmac + again) / design.pe.count / nonzeros),
        others=sum(moved.values()) / nonzeros,
    )
    found = window_profile(work.a.pointers, places, (begin, end), scheme.T_i, windows, fresh, ring.held, lanes, pace)
    pair = 2 if scheme.listed else 1
    moved |= {
        "b_data": float(found.lines + found.bumped_lines),
        "b_meta": pair * (found.rows / words + found.loads),
    }
    parts = {
        "load": 0.0,  # beside the rows of the tile, or waited for by them
        "pe": (work.effmac + again) / design.pe.count,
        "front": float(work.a.nnz),
        "dram": max(found.cycles + moved["b_meta"] * pace.line, float((2 if scheme.listed else 1) * found.rows)),
        "sram": (found.lines + (work.effmac - found.bumped_macs) / lanes + 1.5 * work.a.nnz) / design.buffer.banks,
        "assembly": 0.0,
        "overhead": tiles * (TILE_CYCLES + ROUND_TRIPS * latency_cycles(design) + tail_cycles(work)),
    }
    return _prediction(work, design, parts, moved, tiles, found.overbooked / max(1, found.loads), found.bumped_macs)
