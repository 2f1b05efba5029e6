"""The cost model that every policy predicts with: HYTE's (section 5.3), for this machine's rules.

Time is the time to load B's tiles, and A's where they are kept, plus the larger of PE, front-end, DRAM and SRAM time
while computing, plus the assembly pass, plus what each tile costs by itself: loading, computing and draining do not
overlap. Where rows of tiles are replayed B's tiles come beside them.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from sw.plan.plan import Plan, plan
from sw.plan.records import record_formats, tensor_formats
from sw.scheme.scheme import Scheme
from sw.stats.pattern import Pattern
from sw.stats.workload import Workload
from sw.timing.constants import ROUND_TRIPS, ROUND_TRIPS_OF_A, TILE_CYCLES, TILE_LATENCIES, VISIT_CYCLES
from sw.timing.hardware import ENTRY_BYTES
from sw.timing.pace import chain_cycles, flying_cycles, memory_cycles, pace_of
from sw.timing.record_beats import line_beats

from .passes import Pass
from .protocol import Machine
from .replay import RowWork, one_tile, replay
from .row_replay import fitting_rows
from .tile_rows import assembly_cycles, rows_cycles
from .traffic import TrafficEstimate, scratch

__all__ = [
    "Prediction",
    "predict",
    "predict_gathered",
    "predict_rows",
    "predict_whole",
    "strips_workload",
    "work_rows",
]


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a scheme is expected to cost.

    ``traffic`` gives bus bytes by tensor and kind, ``written`` how many of them are written, where any are, ``time`` the
    cycles of each part; ``tiles`` counts visited tiles, ``overbooked`` the share of loaded B tiles that do not fit,
    ``hit_rate`` the share of MACs on resident segments.
    """

    cycles: int
    dram_bytes: int
    tiles: int
    overbooked: float
    hit_rate: float
    traffic: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    time: dict[str, int] = field(default_factory=dict)

    def plus(self, conversion: Pass) -> "Prediction":
        """With conversions in the run, and before and after it."""
        return replace(
            self,
            cycles=conversion.whole(self.cycles),
            dram_bytes=self.dram_bytes + conversion.dram_bytes,
            time=self.time | {"convert": conversion.cycles},
        )

    def as_dict(self) -> dict[str, int]:
        """What a scheme keeps."""
        return {"cycles": self.cycles, "dram_bytes": self.dram_bytes}


def predict(workload: Workload, design: Machine, scheme: Scheme, planned: Plan[Pattern] | None = None) -> Prediction:
    """Cycles and bus bytes of ``scheme``, which must be legal for ``design``. ``planned``: its plan, where there is one."""
    if scheme.gathers:
        planned = planned or plan(scheme, workload.a, workload.b, design, with_places=False)
        return predict_gathered(strips_workload(workload, planned) if scheme.strips else workload, design, planned)
    return _predicted(workload, design, TrafficEstimate(workload, design, scheme))


def predict_rows(
    workload: Workload, design: Machine, scheme: Scheme, planned: Plan[Pattern] | None = None
) -> Prediction:
    """:func:`predict` with the rows of some tiles replayed, which takes longer: what a scheme that was chosen records."""
    if scheme.gathers:
        return predict(workload, design, scheme, planned)
    found = TrafficEstimate(workload, design, scheme)
    return _predicted(workload, design, found, rows_cycles(found), assembly_cycles(found) if found.N_j > 1 else 0.0)


def _predicted(
    workload: Workload, design: Machine, found: TrafficEstimate, rows: float | None = None, joined: float = 0.0
) -> Prediction:
    """The closed form; ``rows``, ``joined``: cycles of the jobs of tiles, beside which B's tiles come, and of the assembly pass,
    where they are known."""
    scheme, t = found.scheme, found.traffic
    # What moves before the rows do.
    before = t.load if rows is None else t.load - found.load_b
    per_cycle, latency = design.dram_bytes_per_cycle / design.line_bytes, design.memory_latency_cycles
    flying = flying_cycles(found.bursts, latency, design.axi.outstanding)
    assembly = 0.0
    if found.N_j > 1:
        assembly = max(
            t.assembly / per_cycle,
            float(workload.I) * found.N_j,
            workload.nnz_c / design.pe.count,
            found.lines_c["joined"],
            joined,
        )
    rows_b = found.loads * min(scheme.T_k, workload.K) if rows is None else 0.0
    parts = {
        "load": max(
            before / per_cycle,
            t.load_lines if rows is None else 0.0,
            rows_b + found.loads_a * min(scheme.T_i, workload.I),
        ),
        "pe": (workload.effmac + found.carried + found.scratch_macs) / design.pe.count,
        # A nonzero of A, a row, a line through the reader that all PEs share, a line of C: one each in a cycle.
        "front": max(
            found.selections,
            found.tiles * workload.I / found.N_i,
            found.leaf_lines + found.unit_lines,
            found.lines_c["leave"],
            found.found,
        ),
        # The maps' time is part of what each tile costs.
        "dram": memory_cycles((t.total - before - t.assembly - t.maps) / per_cycle, flying),
        "sram": found.sram_lines / design.buffer.banks,
        "rows": rows or 0.0,
        "assembly": assembly,
        "overhead": found.tiles * (VISIT_CYCLES + ROUND_TRIPS * latency) - found.hits_a * ROUND_TRIPS_OF_A * latency,
    }
    names = ("a_data", "a_meta", "b_data", "b_meta", "c_data", "c_meta")
    moved = {name: getattr(t, name) for name in names}
    return _prediction(workload, design, parts, moved, t.written, int(found.tiles), found.overbooked, found.bumped_macs)


def _prediction(
    workload: Workload,
    design: Machine,
    parts: dict[str, float],
    moved: dict[str, float],
    written: dict[str, float],
    tiles: int,
    overbooked: float,
    bumped_macs: float,
) -> Prediction:
    """From cycles of each part and lines of each kind: loading, then the slowest of what computing needs, then the rest."""
    computing = max(parts[name] for name in ("pe", "front", "dram", "sram", "rows"))
    cycles = parts["load"] + computing + parts["assembly"] + parts["overhead"]
    traffic = {name: math.ceil(lines) * design.line_bytes for name, lines in moved.items()}  # whole lines move
    return Prediction(
        cycles=max(1, round(cycles)),
        dram_bytes=sum(traffic.values()),
        tiles=tiles,
        overbooked=overbooked,
        hit_rate=1 - bumped_macs / workload.effmac if workload.effmac else 1.0,
        traffic=traffic,
        written={name: min(traffic[name], math.ceil(lines) * design.line_bytes) for name, lines in written.items()},
        time={name: round(value) for name, value in parts.items()},
    )


def work_rows(workload: Workload, design: Machine) -> RowWork:
    """What each row of A has to do."""
    return RowWork(workload.a, workload.row_macs, workload.row_nonzeros, workload.group_nonzeros(design.pe.merge_radix))


def predict_gathered(
    workload: Workload, design: Machine, planned: Plan[Pattern], rows: RowWork | None = None
) -> Prediction:
    """Tiles that load the rows of B that they use: A and C move once, nothing is carried.

    Parameters
    ----------
    workload: the operands as the plan has them.
    rows: of A, where the plan is one of some of them; then only ``cycles`` mean something, for these.
    """
    line, lanes = design.line_bytes, design.lanes
    gathered = planned.rows_of_b
    assert gathered is not None
    scheme = planned.scheme
    pace = pace_of(design, scheme.region_lines(line), record_formats(planned, design), scheme.scratch_lines(line))
    found = replay(rows or work_rows(workload, design), planned.begins, workload.b.pointers, gathered, pace)
    tiles, words = len(gathered.windows), 2 * lanes
    scratch_lines = found.scratch
    if not scheme.scratch_bytes:
        _, scratch_lines = scratch(workload, design, (workload.J, workload.K), 1)
    moved = {
        "a_data": workload.a.nnz / lanes * line_beats(pace.pitch_a) / pace.line_beats,
        "a_meta": workload.I / words + ENTRY_BYTES * tiles / line,
        "c_data": workload.nnz_c / lanes * line_beats(pace.pitch_c) / pace.line_beats + scratch_lines,
        "c_meta": workload.I / words,
        "b_data": (found.beats + found.bumped_beats) / pace.line_beats,
        # Begins and ends are read by themselves; a planned place comes with its begin.
        "b_meta": max(1, gathered.list_words) * found.rows / words + max(1, min(2, gathered.list_words)) * found.loads,
    }
    parts = {
        "load": 0.0,  # beside the rows of the tile, or waited for by them
        "pe": 0.0,
        "front": 0.0,
        "dram": found.cycles,  # of memory, PEs and dispatch together
        "rows": 0.0,
        "sram": (found.lines + (workload.effmac - found.bumped_macs) / lanes + 1.5 * workload.a.nnz)
        / design.buffer.banks,
        "assembly": 0.0,
        "overhead": chain_cycles(found.chains, design.memory_latency_cycles),
    }
    written = {"c_data": moved["c_data"] - scratch_lines / 2, "c_meta": moved["c_meta"]}
    overbooked = found.overbooked / max(1, found.loads)
    return _prediction(workload, design, parts, moved, written, tiles, overbooked, found.bumped_macs)


def strips_workload(workload: Workload, planned: Plan[Pattern]) -> Workload:
    """The operands in strips, as the plan has them."""
    return Workload(planned.a, planned.b, lanes=workload.lanes, statistics=workload.statistics, seed=workload.seed)


def predict_whole(workload: Workload, design: Machine, scheme: Scheme) -> Prediction:
    """:func:`predict` for a scheme of one tile, its cycles replayed as those of tiles that keep rows of B."""
    partition = scheme.partition("B", design)
    keeps = scheme.buffers("B")
    one = one_tile(workload.K * keeps, fitting_rows(partition, workload.b.pointers) if keeps else 0)
    begins = np.array([0, workload.I])
    formats, line = tensor_formats(design, workload.K, workload.J), design.line_bytes
    pace = pace_of(design, scheme.region_lines(line), formats, scheme.scratch_lines(line))
    found = replay(work_rows(workload, design), begins, workload.b.pointers, one, pace, whole=True, streaming=not keeps)
    base = predict(workload, design, scheme)
    cycles = found.cycles + TILE_CYCLES + TILE_LATENCIES * design.memory_latency_cycles
    return replace(_on_chip(base, workload, design, scheme, found.scratch), cycles=max(1, round(cycles)))


def _on_chip(base: Prediction, workload: Workload, design: Machine, scheme: Scheme, lines: float) -> Prediction:
    """The prediction of one tile, with so many lines of scratch memory where some of it stays on chip."""
    if not scheme.scratch_bytes:
        return base
    _, all_lines = scratch(workload, design, (scheme.T_j, scheme.T_k), 1)
    fewer = {"c_data": round((all_lines - lines) * design.line_bytes)}
    traffic = base.traffic | {"c_data": base.traffic["c_data"] - fewer["c_data"]}
    written = base.written | {"c_data": base.written["c_data"] - fewer["c_data"] // 2}
    return replace(base, dram_bytes=sum(traffic.values()), traffic=traffic, written=written)
