"""HYTE's search space and its order: tile shapes, orders, buffer splits, cheapest first by the cost model.

Paper: HYTE, section 5.2. Schemes are looked at in the order of a bound that the model itself gives, until none left can win.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from sw.stats.nnzc import powers_of_two
from sw.stats.workload import Workload

from .cost import ROUND_TRIPS, ROUND_TRIPS_OF_A, TILE_CYCLES, Prediction, latency_cycles, lines_a_cycle, predict
from .partition import RoomForB
from .protocol import Machine
from .scheme import (
    BUFFERING,
    HARDWARE_BUFFERED,
    STREAMING,
    TENSORS,
    Scheme,
    SchemeError,
    default_partition,
    resident_lines,
)

__all__ = ["ranked", "tiling_space"]

# One order for each choice of the innermost rank: the others only exchange the outer two (section 5.2). The first of
# equals wins: with k innermost the machine leaves empty tiles out.
ORDER_BY_INNERMOST = {"k": "ijk", "j": "ikj", "i": "jki"}
# Spaces up to this many shapes are searched whole; in larger ones shapes inside another feasible one are left out.
SEARCHED_WHOLE = 64
# Schemes costed before the finest shape that may still win is known.
LOOKED_AT_FIRST = 4
# Where i is cut, tiles of A are looked for along its diagonal: no finer than this along i or k, counts within 8 times.
MOST_TILES_I = 128


def tiling_space(
    work: Workload, design: Machine, buffered: tuple[str, ...] = HARDWARE_BUFFERED, tile_i: bool = False
) -> list[Scheme]:
    """Every legal scheme with tile sides that are powers of two or whole: 3 inner loops plus no inter-tile reuse."""
    sides = {rank: _sides(size) for rank, size in zip("ijk", (work.I, work.J, work.K), strict=True)}
    schemes = [_streaming(work, design)]
    for T_k, T_j in product(sides["k"], sides["j"]):
        schemes += _with_shape(work, design, work.I, T_j, T_k, buffered)
    if tile_i:
        for T_i, T_k in product(sides["i"][1:], sides["k"][1:]):
            N_i, N_k = -(-work.I // T_i), -(-work.K // T_k)
            if max(N_i, N_k) <= MOST_TILES_I and 1 / 8 < N_i / N_k < 8:
                schemes += _with_shape(work, design, T_i, work.J, T_k, buffered)
    return schemes


def _sides(size: int) -> list[int]:
    """The whole side, then powers of two below it, falling."""
    return [size, *(T for T in reversed(powers_of_two(size)) if size > T)]


def _streaming(work: Workload, design: Machine) -> Scheme:
    """No inter-tile reuse at all: one tile, B fetched row by row as A asks for it."""
    parts, fifo = default_partition(design)
    return Scheme(
        policy="hyte",
        order="ijk",
        T_i=work.I,
        T_j=work.J,
        T_k=work.K,
        buffer_bytes=parts,
        fifo_bytes=fifo,
        mode=dict.fromkeys(TENSORS, STREAMING),
    )


def _with_shape(
    work: Workload, design: Machine, T_i: int, T_j: int, T_k: int, buffered: tuple[str, ...]
) -> Iterator[Scheme]:
    """Schemes of one shape: B's segments always have a place (intra-tile reuse), the inner loop's reuse may get one.

    The tensor that does not depend on the innermost rank is reused between tiles: B along i, A along j, C along k.
    """
    if "B" not in buffered:
        return
    counts = {"i": -(-work.I // T_i), "j": -(-work.J // T_j), "k": -(-work.K // T_k)}
    lines = design.buffer.bytes // design.line_bytes
    for inner, order in ORDER_BY_INNERMOST.items():
        if inner != "k" and counts[inner] == 1:
            continue  # nothing moves there: the order with k innermost does the same and leaves more out
        reused = {"i": "B", "j": "A", "k": "C"}[inner]
        splits: list[dict[str, int]] = [{}]
        if reused != "B" and reused in buffered and counts[inner] > 1:
            splits += [{f"lines_{reused.lower()}": lines // share} for share in (2, 4)]
        for split in splits:
            try:
                parts, fifo = default_partition(design, partial_rows=counts["k"] > 1, **split)
            except SchemeError:
                continue
            b_lines, fifo_lines = parts["B"] // design.line_bytes, fifo["B"] // design.line_bytes
            if resident_lines(lines=b_lines, fifo_lines=fifo_lines, rows=T_k, lanes=design.lanes) < 1:
                continue
            if (
                "lines_a" in split
                and resident_lines(lines=split["lines_a"], fifo_lines=0, rows=T_i, lanes=design.lanes) < 1
            ):
                continue
            mode = {"A": STREAMING, "B": BUFFERING, "C": STREAMING}
            if split:
                mode[reused] = BUFFERING
            yield Scheme(
                policy="hyte",
                order=order,
                T_i=T_i,
                T_j=T_j,
                T_k=T_k,
                buffer_bytes=parts,
                fifo_bytes=fifo,
                mode=mode,
            )


def _without_smaller(schemes: list[Scheme], work: Workload, design: Machine) -> list[Scheme]:
    """Section 5.2: leave out shapes inside another shape that fits the buffer; they would only leave room unused.

    A shape fits when the average tile does. One power of two below the largest that fit stay in: the model may like the
    skipping of empty tiles more than the room.
    """
    room = RoomForB(design)
    density = work.b.nnz / (work.K * work.J)
    shapes = {(s.T_k, s.T_j) for s in schemes if s.buffers("B")}
    fitting = [(k, j) for k, j in shapes if k * j * density <= room.capacity(k)]
    inside = {(k, j) for k, j in shapes if any(2 * k < f and 2 * j < g for f, g in fitting)}
    return [s for s in schemes if (s.T_k, s.T_j) not in inside]


class _Bound:
    """What no scheme of a shape can undercut, by the cost model: tiles that end rows, tiles with work, products, C."""

    def __init__(self, work: Workload, design: Machine) -> None:
        self.work = work
        self.design = design
        self._useful = np.flatnonzero((work.uses > 0) & (work.b.row_lengths > 0))
        self._steps: dict[int, int] = {}
        per_cycle = lines_a_cycle(design)
        # Every product, and C once, while computing.
        self._computing = max(work.effmac / design.pe.count, work.output.nnz / design.lanes / per_cycle)

    def _useful_steps(self, T_k: int) -> int:
        """k tiles in which any element of A meets any of B."""
        if T_k not in self._steps:
            tiles = self._useful // T_k
            self._steps[T_k] = int(np.count_nonzero(np.diff(tiles))) + (len(tiles) > 0)
        return self._steps[T_k]

    def cycles(self, scheme: Scheme) -> float:
        N_i, N_j, _ = scheme.tiles_per_rank(self.work.I, self.work.J, self.work.K)
        tiles = max(N_i * N_j, self._useful_steps(scheme.T_k))
        latency = latency_cycles(self.design)
        rows = self.work.I / N_i
        assembly = self.work.I * N_j if N_j > 1 else 0
        trips = ROUND_TRIPS - ROUND_TRIPS_OF_A if scheme.buffers("A") else ROUND_TRIPS
        return float(tiles * (TILE_CYCLES + trips * latency) + max(tiles * rows, self._computing) + assembly)


def ranked(
    work: Workload, design: Machine, *, buffered: tuple[str, ...] = HARDWARE_BUFFERED, tile_i: bool = False
) -> list[tuple[Scheme, Prediction]]:
    """The schemes looked at, cheapest first: by cycles, then bytes, then the coarser tiling."""
    schemes = tiling_space(work, design, buffered, tile_i)
    if len({(s.T_k, s.T_j) for s in schemes}) > SEARCHED_WHOLE:
        schemes = _without_smaller(schemes, work, design)
    sizes = (("k", work.K), ("j", work.J))
    bound = _Bound(work, design)
    limits = [bound.cycles(s) for s in schemes]
    found: list[tuple[tuple[float, ...], Scheme, Prediction]] = []
    least = float("inf")
    for count, position in enumerate(np.argsort(limits, kind="stable")):
        if limits[position] > least:
            break  # this one and all that follow cost more than the best so far
        if count == LOOKED_AT_FIRST:
            left = [s for s, limit in zip(schemes, limits, strict=True) if limit <= least and s.buffers("B")]
            powers = {side: [s.tile(side) for s in left if s.tile(side) < size] for side, size in sizes}
            work.tiles("B", *(min(powers[side], default=1) for side in "kj"))  # all shapes left are made of these tiles
            cut = [s for s in left if s.T_i < work.I]
            if cut:
                work.tiles("A", min(s.T_i for s in cut), min(s.T_k for s in cut))
        scheme = schemes[position]
        prediction = predict(work, design, scheme)
        found.append(((prediction.cycles, prediction.dram_bytes, position), scheme, prediction))
        least = min(least, prediction.cycles)
    found.sort(key=lambda item: item[0])
    return [(scheme, prediction) for _, scheme, prediction in found]
