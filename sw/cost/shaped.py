"""What tiles cost whose shapes differ, which no hardware runs: the tiles of B are replayed, or some of them."""

from dataclasses import replace

import numpy as np

from sw.plan.placement import alone
from sw.plan.records import tensor_formats
from sw.plan.thresholds import SAMPLED_SHAPES, SAMPLED_TILES
from sw.scheme.explicit_tiles import steps
from sw.scheme.scheme import Scheme
from sw.scheme.terms import LOAD_TILE
from sw.stats.workload import Workload
from sw.timing.constants import NEXT_TILE_GAIN, TILE_CYCLES, TILE_LATENCIES
from sw.timing.pace import pace_of, reader_cycles

from .predict import Prediction, predict_rows, work_rows
from .protocol import Machine
from .replay import replay
from .row_replay import Box, TileRows
from .tile_rows import load_cycles, pick, tile_weights
from .traffic import TrafficEstimate, words_beside

__all__ = ["predict_shaped", "predict_used"]


def _around(design: Machine, tiles: int) -> float:
    """Cycles of so many tiles beside those of their rows."""
    latency = design.memory_latency_cycles
    return tiles * (TILE_CYCLES + (TILE_LATENCIES + 1) * latency + reader_cycles(design) - NEXT_TILE_GAIN)


def predict_shaped(workload: Workload, design: Machine, scheme: Scheme) -> Prediction:
    """Cycles of a scheme of explicit tiles; bytes as those of even tiles of the mean sides.

    Parameters
    ----------
    scheme: with A and C streaming and B kept, whose tiles follow one another along i, then k, then j.
    """
    boxes = steps(scheme.tiles)
    across = len({box[0] for box in boxes})
    even = replace(
        scheme, T_i=workload.I, T_j=-(-workload.J // across), T_k=-(-workload.K * across // len(boxes)), tiles=[]
    )  # fmt: skip
    found, base = TrafficEstimate(workload, design, even), predict_rows(workload, design, even)
    count, carries = min(len(boxes), SAMPLED_TILES), len(boxes) > across
    rows = TileRows(workload, design, scheme, pieces=found.pieces, tiles=count, carries=carries, kept=0.0)
    uses = np.append(0, np.cumsum(workload.uses))
    macs, of_b = np.zeros(len(boxes)), np.zeros(len(boxes))
    for number, (j, end_j, k, end_k) in enumerate(boxes):
        lengths = rows.lengths((j, end_j))[k:end_k]
        macs[number], of_b[number] = float(workload.uses[k:end_k] @ lengths), float(lengths.sum())
    # Empty tiles are left out, save the last of each j, which ends the rows.
    ends = [box[3] == workload.K for box in boxes]
    works = [bool(of_b[n] and uses[box[3]] > uses[box[2]]) for n, box in enumerate(boxes)]
    visited = [n for n in range(len(boxes)) if works[n] or ends[n]]
    words = words_beside(found)
    # Segments are scanned: lines beyond their own nonzeros come along.
    extra = 1.0
    if across > 1:
        extra = found.load_b * design.lanes / max(1.0, float(of_b.sum()))

    def cycles(number: int) -> float:
        j, end_j, k, end_k = boxes[number]
        load_time = load_cycles(extra * of_b[number] / design.lanes, end_k - k, rows.pace)
        return rows.cycles(Box((0, workload.I), (j, end_j), (k, end_k)), load_time, words)

    if len(visited) <= SAMPLED_SHAPES:
        total = sum(cycles(n) for n in visited)
    else:
        alike = np.ones(len(visited))
        drawn = [
            pick(macs[visited] if number % 2 else alike, (number + 0.5) / SAMPLED_SHAPES)
            for number in range(SAMPLED_SHAPES)
        ]
        weights = tile_weights(macs[visited][drawn] / max(1.0, macs.sum()), float(len(visited)))
        total = sum(float(weight) * cycles(visited[n]) for n, weight in zip(drawn, weights, strict=True))
    time = base.time | {"load": 0, "rows": round(total), "overhead": round(_around(design, len(visited)))}
    whole = total + time["overhead"] + time["assembly"]
    return replace(base, cycles=max(1, round(whole)), tiles=len(visited), time=time)


def predict_used(workload: Workload, design: Machine, scheme: Scheme) -> int:
    """Cycles of tiles that cut i alone, each of which loads the rows of B that it uses for itself."""
    begins = np.array([*(tile[0] for tile in scheme.tiles), workload.I], np.int64)
    found = alone(workload.a, begins, workload.b.pointers, scheme.partition("B", design))
    assert scheme.load != LOAD_TILE
    line, formats = design.line_bytes, tensor_formats(design, workload.K, workload.J)
    pace = pace_of(design, scheme.region_lines(line), formats, scheme.scratch_lines(line))
    of_rows, words = work_rows(workload, design), workload.I / (2 * design.lanes)  # where rows of C begin
    more = words * pace.line_beats
    replayed = replay(of_rows, begins, workload.b.pointers, found, pace, whole=True, pairs=True, more=more)
    return round(replayed.cycles + _around(design, len(scheme.tiles)))
