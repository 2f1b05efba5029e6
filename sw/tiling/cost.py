"""The cost model that every policy predicts with: HYTE's (section 5.3), for this machine's rules.

Time is the time to load B's tiles, and A's where they are kept, plus the larger of PE, front-end, DRAM and SRAM time
while computing, plus the assembly pass, plus what each tile costs by itself: loading, computing and draining do not
overlap.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from sw.stats.segments import window_profile
from sw.stats.workload import Workload

from .protocol import Machine
from .scheme import Scheme, resident_lines
from .traffic import TrafficEstimate, scratch

__all__ = ["ROUND_TRIPS", "ROUND_TRIPS_OF_A", "TILE_CYCLES", "Prediction", "latency_cycles", "lines_a_cycle", "predict"]

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


def predict(work: Workload, design: Machine, scheme: Scheme) -> Prediction:
    """Cycles and bus bytes of ``scheme``, which must be legal for ``design``."""
    if scheme.windows:
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
    """The same where each tile along i loads a window of B: A and C move once, nothing is carried or assembled."""
    line, lanes = design.line_bytes, design.lanes
    windows = np.array(scheme.windows, np.int64)
    b_lines, fifo_lines = scheme.buffer_bytes["B"] // line, scheme.fifo_bytes["B"] // line
    resident = resident_lines(lines=b_lines, fifo_lines=fifo_lines, rows=scheme.T_k, lanes=lanes)
    load, rows, bumped_lines, bumped_macs, over = window_profile(
        work.a, work.b, scheme.T_i, windows, lanes * max(0, resident), lanes
    )
    tiles = len(windows)
    loads = max(1, int(np.count_nonzero(windows[:, 1] > windows[:, 0])))
    words = 2 * lanes
    again, scratch_lines = scratch(work, design, (work.J, work.K), 1)
    moved = {
        "a_data": work.a.nnz / lanes + 0.5 * tiles,
        "a_meta": (work.I + tiles) / words + 0.5 * tiles + tiles / lanes,
        "b_data": float(load + bumped_lines),
        "b_meta": rows / words + loads,
        "c_data": work.output.nnz / lanes + scratch_lines,
        "c_meta": (work.I + tiles) / words + 0.5 * tiles,
    }
    per_cycle, latency = lines_a_cycle(design), latency_cycles(design)
    parts = {
        "load": max((load + moved["b_meta"]) / per_cycle, float(rows)),
        "pe": (work.effmac + again) / design.pe.count,
        "front": float(work.a.nnz),
        "dram": (sum(moved.values()) - load - moved["b_meta"]) / per_cycle,
        "sram": (load + (work.effmac - bumped_macs) / lanes + 1.5 * work.a.nnz) / design.buffer.banks,
        "assembly": 0.0,
        "overhead": tiles * (TILE_CYCLES + ROUND_TRIPS * latency),
    }
    return _prediction(work, design, parts, moved, tiles, over / loads, bumped_macs)
