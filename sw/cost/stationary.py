"""What a scheme costs on a weight-stationary design, in expectation: every tile of B's columns sees all of A's rows."""

from math import ceil

import numpy as np

from sw.formats.memory_csr import ELEMENT_BYTES, WORD_BYTES
from sw.golden.stationary_product import bus_data
from sw.plan.pe_buffer import nonzeros_of_buffer
from sw.plan.records import tensor_formats
from sw.scheme.scheme import Scheme
from sw.stats.workload import Workload
from sw.timing.chunks import Chunks, scan_cycles
from sw.timing.constants import (
    COLUMN_CYCLES,
    PART_CYCLES,
    PIECE_CYCLES,
    STATIONARY_TILE_CYCLES,
    TILE_LATENCIES,
)
from sw.timing.hardware import FIRST_CHUNK_LINES, NEXT_CHUNK_LINES, READ_FIBERS

from .predict import Prediction
from .protocol import Machine

__all__ = ["bumped_cycles", "entries_of_nonzero", "predict_stationary", "scanned_cycles"]


def entries_of_nonzero(workload: Workload) -> int:
    """Entries of a PE's buffer that a nonzero of B takes: 1 where B is dense, else 2, its coordinate being one."""
    return 1 if workload.b.nnz == workload.K * workload.J else 2


def bumped_cycles(workload: Workload, design: Machine, scheme: Scheme) -> float:
    """Cycles for which rows of A wait for columns that overflow the buffers of their PEs, and which come once more in each.

    Each row with a nonzero in the tile passes over all that overflows, of Dense each row of a tile with a nonzero. PEs of a tile
    ask side by side, one reader sends what they ask for (:func:`sw.model.pe_columns.bumped_waits`).
    """
    cells = workload.tiles("B", scheme.T_k, 1)
    step, column, nonzeros = cells.rows, cells.columns, cells.occupancy
    dense = (nonzeros == np.minimum(scheme.T_k, workload.K - step * scheme.T_k)).astype(np.int64)
    words = 2 - dense
    most, kept, region = nonzeros_of_buffer(design.pe.buffer_entries)[dense].T
    if not (over := nonzeros > most).any():
        return 0.0
    sent = np.where(over, nonzeros - kept, 0)
    answer = PART_CYCLES + (0 if scheme.buffers("B") else design.memory_latency_cycles)
    alone = sent * words + np.ceil(sent / region) * answer
    tiles_j = -(-workload.J // scheme.T_j)
    tile = step * tiles_j + column // scheme.T_j
    count = (int(step.max()) + 1) * tiles_j
    together, longest = np.bincount(tile, sent * words, count), np.zeros(count)
    np.maximum.at(longest, tile, alone)
    waits = np.maximum(together, longest).reshape(-1, tiles_j).sum(axis=1)
    rows = np.bincount(workload.tiles("A", 1, scheme.T_k).columns, minlength=len(waits))[: len(waits)]
    if design.pe.acf_a == "dense":
        rows = np.where(rows > 0, workload.I, 0)
    return float(rows @ waits)


def scanned_cycles(workload: Workload, design: Machine, scheme: Scheme) -> float:
    """Cycles for which a scan of A's rows, cut along k, waits for chunks behind second ones, once for all of A.

    A segment begins anywhere in the aligned blocks that end its chunks (:func:`sw.timing.chunks.scan_cycles`).
    """
    if scheme.T_k >= workload.K:
        return 0.0
    found = workload.scan("A", scheme.T_k)
    lines = found.nonzeros_by_bits / np.maximum(found.by_bits, 1.0) / design.lanes
    later = np.maximum(0.0, lines - FIRST_CHUNK_LINES) / NEXT_CHUNK_LINES
    return scan_cycles(Chunks(later=int(found.by_bits @ later)), design.memory_latency_cycles, 1.0)


def predict_stationary(workload: Workload, design: Machine, scheme: Scheme) -> Prediction:
    """Cycles and bus bytes of ``scheme``, which must be legal for ``design``, whose dataflow is ``weight_stationary``.

    But for columns that overflow their PEs, nonzeros are taken as spread evenly over tiles, of which none is empty.
    """
    a, b, line, lanes = workload.a, workload.b, design.line_bytes, design.lanes
    tiles_i, tiles_j, tiles_k = scheme.tiles_per_rank(workload.I, workload.J, workload.K)
    tiles = tiles_i * tiles_j * tiles_k
    moving = [rank for rank, count in zip("ijk", (tiles_i, tiles_j, tiles_k), strict=True) if count > 1]
    inner = max(moving, key=scheme.order.index, default="k")
    # A tile of A, or of B, comes once where the rank that it has not is innermost and it is kept; else at each visit. What of A
    # its partition has no place for comes at each visit.
    loads_a, passes_a = tiles_j, float(tiles_j)
    if scheme.buffers("A") and inner == "j":
        kept = min(1.0, scheme.partition("A", design).resident(scheme.T_i) * tiles_i * tiles_k / max(1, a.nnz))
        loads_a, passes_a = 1, kept + (1.0 - kept) * tiles_j
    passes_b = 1 if inner == "i" or tiles_i == 1 else tiles_i
    pointers_a, pointers_b = workload.I * tiles_k * passes_a, workload.J * tiles_k * passes_b
    more_a, more_b = (1.0 if tiles_k == 1 else 1.0 + (lanes - 1) * rows / max(1, matrix.nnz) * tiles_k / 2
                      for matrix, rows in ((a, workload.I), (b, workload.J)))  # fmt: skip
    final = workload.output.nnz
    carried = partial = workload.output.carried(scheme.T_k)
    if tiles_k > 1 and scheme.buffers("C"):
        room = scheme.partition("C", design).resident(scheme.T_i) / 2
        partial *= 1 - min(1.0, room * tiles_i * tiles_j / max(1.0, final))
    joined = final if tiles_j > 1 else 0.0
    record = {t: each.record_bits / 8 for t, each in tensor_formats(design, workload.K, workload.J).items()}
    pieces = min(joined, float(workload.I) * tiles_j)
    traffic = {
        "a_data": record["A"] * a.nnz * passes_a * more_a,
        "a_meta": WORD_BYTES * pointers_a * (3 if tiles_k > 1 else 1),
        "b_data": record["B"] * b.nnz * passes_b * more_b,
        "b_meta": WORD_BYTES * pointers_b * (3 if tiles_k > 1 else 1),
        "c_data": record["C"] * final + ELEMENT_BYTES * (2 * partial + joined) + line * pieces,
        "c_meta": WORD_BYTES * workload.I * tiles_j * (1 + 2 * (tiles_k - 1) * (not scheme.buffers("C")))
        + (line * workload.I * tiles_j if tiles_j > 1 else 0),
    }
    written = record["C"] * final + ELEMENT_BYTES * (partial + joined)
    moved = sum(traffic.values()) / design.dram_bytes_per_cycle

    # A comes a line of a row a cycle, of which each row begins somewhere; columns load a word for each entry.
    words = entries_of_nonzero(workload)
    entries = design.pe.buffer_entries // words
    rows = float(workload.I) * tiles_j * tiles_k
    data = bus_data(design.pe.acf_a, design.pe.vector)
    if design.pe.acf_a == "dense":  # every place of a row, at no more nonzeros a cycle than lie in a line
        places = workload.K // scheme.T_k * ceil(scheme.T_k / data) + ceil(workload.K % scheme.T_k / data)
        passes = tiles_j * max(float(workload.I) * places, a.nnz / lanes)
    else:
        data = min(lanes, data)
        segments = min(a.nnz, workload.I * tiles_k)
        passes = tiles_j * (a.nnz + segments * (data - 1)) / data
    sums = workload.output.nnz_tk(scheme.T_k)
    scanned = scanned_cycles(workload, design, scheme)
    on_bus = max(passes, rows, sums + carried, 0 if scheme.buffers("A") else scanned * tiles_j)
    columns = float(workload.J) * tiles_k
    loading = words * min(b.nnz, entries * columns) * tiles_i + tiles * (design.pe.count + COLUMN_CYCLES)
    if scheme.buffers("A"):
        loading += loads_a * max(scanned, a.nnz / lanes)
    waiting = bumped_cycles(workload, design, scheme)
    visits = tiles * (STATIONARY_TILE_CYCLES + (TILE_LATENCIES + 1) * design.memory_latency_cycles)
    bursts = workload.I * tiles_j + pieces
    pace = (design.memory_latency_cycles + PIECE_CYCLES) / READ_FIBERS
    assembly = max(2 * workload.I * tiles_j, bursts * pace) if tiles_j > 1 else 0
    time = {
        "pe": on_bus + waiting,
        "load": loading,
        "dram": moved,
        "merge": float(assembly),
        "overhead": visits,
    }
    cycles = max(time["pe"] + loading, moved) + time["merge"] + visits
    rounded = {name: ceil(size / line) * line for name, size in traffic.items()}
    return Prediction(
        cycles=max(1, round(cycles)),
        dram_bytes=sum(rounded.values()),
        tiles=tiles,
        overbooked=0.0,
        hit_rate=0.0,
        traffic=rounded,
        written={"c": ceil(written / line) * line},
        time={name: round(value) for name, value in time.items()},
    )
