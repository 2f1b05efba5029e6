"""Schemes whose tiles are windows (:mod:`.windows`): how many rows of A a tile should take."""

import numpy as np

from sw.stats.workload import Workload

from .cost import ROUND_TRIPS, TILE_CYCLES, latency_cycles, tail_cycles
from .protocol import Machine
from .ring import MOST_LINES, metadata_lines, plan_ring
from .scheme import BUFFERING, LOAD_WINDOW, STREAMING, Scheme, SchemeError, default_partition
from .windows import boxes, steady, windows_of

__all__ = ["windowed"]

# Tiles along i that are tried: from two up to this many, each 1.4 times as many as before.
MOST_TILES = 4096
FINER = 2**0.5
FEWEST_ROWS = 16
# Of these the ones that promise most.
KEPT = 4


def windowed(policy: str, work: Workload, design: Machine, *, most: int | None = KEPT) -> list[Scheme]:
    """Schemes of windows, the most promising by estimated cycles first; they are not validated.

    Empty where the design's buffer has no default partition, where A has fewer than two times ``FEWEST_ROWS`` rows or no
    elements, and where even few rows of A span so much that metadata leave no room for a line of data. Raises nothing of its own.

    Parameters
    ----------
    policy: name that the schemes carry.
    work: the operands, A of I x K and B of K x J.
    most: schemes at most; None for all.
    """
    try:
        parts, fifo = default_partition(design)
    except SchemeError:
        return []
    room = min((parts["B"] - fifo["B"]) // design.line_bytes, MOST_LINES)
    a_tile = TILE_CYCLES + ROUND_TRIPS * latency_cycles(design) + tail_cycles(work)
    macs_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(work.row_macs)])
    found: list[tuple[float, Scheme]] = []
    tried: set[int] = set()
    tiles = 2.0
    while tiles <= min(MOST_TILES, work.I / FEWEST_ROWS):
        T_i = -(-work.I // round(tiles))
        tiles *= FINER
        if T_i in tried:
            continue
        tried.add(T_i)
        spans = windows_of(work.a.pointers, work.a.coordinates, T_i)
        windows = steady(spans, work.b.pointers, room, design.lanes)
        T_k = int((windows[:, 1] - windows[:, 0]).max())
        if T_k == 0 or metadata_lines(T_k, design.lanes) >= room:
            continue
        ring = plan_ring(windows, work.a, T_i, work.b.pointers, room, design.lanes)
        fresh = windows[:, 0] + ring.kept
        elements = work.b.pointers[windows[:, 1]] - work.b.pointers[windows[:, 0]]
        loaded = work.b.pointers[fresh + ring.held] - work.b.pointers[fresh]
        ends = np.minimum(np.arange(1, len(windows) + 1) * T_i, work.I)
        macs = np.diff(macs_before[np.concatenate([[0], ends])])
        resident = design.lanes * (room - ring.metadata)
        bumped = macs * np.maximum(0.0, 1 - resident / np.maximum(1, elements))
        moved = loaded + (windows[:, 1] - fresh) / 2 + bumped
        cost = float(moved.sum()) / design.lanes + len(windows) * a_tile
        mode = {"A": STREAMING, "B": BUFFERING, "C": STREAMING}
        scheme = Scheme(
            policy=policy,
            order="ijk",
            T_i=T_i,
            T_j=work.J,
            T_k=T_k,
            buffer_bytes=parts,
            fifo_bytes=fifo,
            mode=mode,
            tiles=boxes(windows, T_i, (work.I, work.J)),
            load=LOAD_WINDOW,
        )
        found.append((cost, scheme))
    found.sort(key=lambda item: item[0])
    return [scheme for _, scheme in found[:most]]
