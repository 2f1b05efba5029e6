"""HYTE's cost model (section 5.3) for outer and inner products: what their model counts tile by tile, in expectation."""

import numpy as np
from numpy.typing import NDArray

from sw.scheme.dataflow_rules import fibers
from sw.scheme.scheme import Scheme
from sw.scheme.terms import OUTER
from sw.stats.occupancy import TileList
from sw.stats.workload import Workload
from sw.timing.constants import TILE_TRIPS_OF_DATAFLOWS, VISIT_CYCLES

from .predict import Prediction
from .protocol import Machine

__all__ = ["predict_dataflow"]

Floats = NDArray[np.float64]


class _Operand:
    """Tiles of A or B by k step: how many, their nonzeros, nonempty fibers, lines and what does not fit."""

    def __init__(
        self, tiles: TileList, tensor: str, height: int, cut: bool, steps: int, design: Machine, scheme: Scheme
    ):
        lanes = design.lanes
        occupancy = tiles.occupancy.astype(np.float64)
        step = tiles.columns if tensor == "A" else tiles.rows
        fibers = height * -np.expm1(-occupancy / height)  # fibers that hold anything, were nonzeros spread evenly
        lines = occupancy / lanes + (fibers * (1 - 1 / lanes) if cut else 0.5)
        capacity = -1.0
        if scheme.buffers(tensor):
            capacity = float(max(0, scheme.partition(tensor, design).resident(height)))
        bumped = np.clip(1 - capacity / np.maximum(occupancy, 1), 0, 1)

        def by_step(values: Floats) -> Floats:
            return np.bincount(step, values, steps).astype(np.float64)

        self.count = by_step(np.ones_like(occupancy))
        self.nonzeros = by_step(occupancy)
        self.fibers = by_step(fibers)
        self.lines = by_step(lines)
        self.packed = by_step(np.ceil(occupancy / lanes))
        self.bumped_lines = by_step(bumped * lines)
        self.bumped = by_step(bumped * occupancy)
        self.meta = (2.0 * height if cut else height + 1.0) / (2 * lanes)
        self.kept = height / (2 * lanes) if cut else 0.0


def predict_dataflow(workload: Workload, design: Machine, scheme: Scheme) -> Prediction:
    """Cycles and bus bytes of ``scheme``, which must be legal for ``design``, whose dataflow is not gustavson."""
    dataflow, pes, lanes = design.pe.dataflow, design.pe.count, design.lanes
    outer = dataflow == OUTER
    counts = dict(zip("ijk", scheme.tiles_per_rank(workload.I, workload.J, workload.K), strict=True))
    moving = [rank for rank in scheme.order if counts[rank] > 1]
    inner = moving[-1] if moving else "k"
    steps = counts["k"]
    a = _Operand(
        workload.tiles("A", scheme.T_i, scheme.T_k), "A", fibers(dataflow, scheme, "A"),
        counts["i" if outer else "k"] > 1, steps, design, scheme,
    )  # fmt: skip
    b = _Operand(
        workload.tiles("B", scheme.T_k, scheme.T_j), "B", fibers(dataflow, scheme, "B"),
        counts["j" if outer else "k"] > 1, steps, design, scheme,
    )  # fmt: skip
    visits = a.count * b.count
    loads_a = np.where(b.count > 0, 1.0, 0.0) if scheme.buffers("A") and inner == "j" else b.count
    loads_b = np.where(a.count > 0, 1.0, 0.0) if scheme.buffers("B") and inner == "i" else a.count
    passes = a.count if outer else np.maximum(a.count, a.fibers / pes)  # of all tiles of A over each tile of B
    traffic = {
        "a_data": float(np.sum(a.lines * loads_a + a.bumped_lines * (b.count - loads_a))),
        "a_meta": float(np.sum(a.count * loads_a)) * (a.meta + a.kept),
        "b_data": float(np.sum(b.lines * loads_b + b.bumped_lines * np.maximum(0.0, passes - loads_b))),
        "b_meta": float(np.sum(b.count * loads_b)) * (b.meta + b.kept),
    }
    final, logged = _output(workload, design, scheme, counts, outer, inner == "k" or steps == 1, a, b)
    tiles_c = counts["i"] * counts["j"]
    assembled = 2 * final / lanes if counts["j"] > 1 else 0.0
    traffic["c_data"] = (final + 2 * logged) / lanes + assembled
    traffic["c_meta"] = tiles_c * (scheme.T_i + 1) / (2 * lanes) * (2 if counts["j"] > 1 else 1)

    per_cycle = design.dram_bytes_per_cycle / design.line_bytes
    through = 2 * (traffic["a_data"] + traffic["b_data"])
    passing = float(np.sum(a.fibers * b.packed))
    pe = workload.effmac / pes if outer else max(passing, workload.effmac) / pes
    fetch = float(np.sum((a.nonzeros if outer else a.fibers) * b.count))
    sram = ((workload.effmac if outer else passing) + through) / design.buffer.banks
    alone = (assembled + (2 * logged + (final if outer else 0.0)) / lanes) / per_cycle  # when no tile is visited
    moved = sum(traffic.values()) / per_cycle - alone
    waits = VISIT_CYCLES + TILE_TRIPS_OF_DATAFLOWS * design.memory_latency_cycles
    time = {
        "pe": pe, "fetch": fetch, "sram": sram, "dram": moved, "merge": max(alone, logged / pes),
        "overhead": float(visits.sum() + (tiles_c if logged else 0)) * waits,
    }  # fmt: skip
    cycles = max(pe, fetch, sram, moved) + time["merge"] + time["overhead"]
    rounded = {name: int(np.ceil(value)) * design.line_bytes for name, value in traffic.items()}
    return Prediction(
        cycles=max(1, round(cycles)),
        dram_bytes=sum(rounded.values()),
        tiles=int(visits.sum()),
        overbooked=0.0,
        hit_rate=1 - float(b.bumped.sum()) / max(1.0, float(b.nonzeros.sum())) if scheme.buffers("B") else 0.0,
        traffic=rounded,
        time={name: round(value) for name, value in time.items()},
    )


def _output(
    workload: Workload, design: Machine, scheme: Scheme, counts: dict[str, int], outer: bool, until_whole: bool,
    a: _Operand, b: _Operand,
) -> tuple[float, float]:  # fmt: skip
    """Nonzeros of C, and those of partial fibers, each fiber being one more."""
    final = workload.output.nnz
    lines = scheme.buffer_bytes["C"] // design.line_bytes
    capacity = design.lanes * (lines - -(-scheme.T_i // design.lanes)) if scheme.buffers("C") else 0
    fits = min(1.0, max(0.0, capacity / max(1.0, final / (counts["i"] * counts["j"]))))
    met = float(np.sum(a.fibers * b.count))  # an upper bound of the partial rows
    partial = workload.output.nnz_tk(scheme.T_k)
    if outer:
        products = (1 - fits) * (workload.effmac + float(np.sum(a.nonzeros * b.count)))
        return final, products + (0.0 if until_whole else fits * (partial + min(partial, met)))
    if counts["k"] == 1:
        return final, 0.0
    leaves = 1 - fits if until_whole else 1.0
    return final, leaves * (partial + min(partial, met))
