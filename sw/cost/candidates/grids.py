"""HYTE's search space and its order: tile shapes, orders, buffer splits, cheapest first by the cost model.

Paper: HYTE, section 5.2. Schemes are looked at in the order of a bound that the model itself gives, until none left can win.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sw.cost.partial_rows import cheaper
from sw.cost.predict import Prediction
from sw.cost.protocol import Machine
from sw.cost.traffic import scratch
from sw.plan.records import tensor_formats
from sw.plan.thresholds import (
    EVERY_COUNT,
    EVERY_SIDE,
    GRID_HOPELESS,
    GRID_LOOKED_AT_FIRST,
    GRID_MOST_TILES_I,
    GRID_SEARCHED_WHOLE,
)
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.shares import Shares, default_partition, partition_of
from sw.scheme.terms import BUFFERING, ONLY_B, STREAMING, TENSORS
from sw.stats.nnzc import powers_of_two
from sw.stats.workload import Workload
from sw.timing.constants import FILL_LEAF_CYCLES, MERGE_CYCLES, ROUND_TRIPS, ROUND_TRIPS_OF_A, VISIT_CYCLES
from sw.timing.record_beats import line_beats

from .share_of_b import ShareOfB

__all__ = ["ranked", "small_space", "tiling_space"]

# One order for each choice of the innermost rank: the others only exchange the outer two (section 5.2). The first of
# equals wins: with k innermost the machine leaves empty tiles out.
ORDER_BY_INNERMOST = {"k": "ijk", "j": "ikj", "i": "jki"}


@dataclass(frozen=True)
class _Split:
    """How the buffer is shared, and which tensors' tiles it keeps; the same for many shapes.

    ``most_i``, ``most_k``: rows of the highest tiles of A and of B whose metadata leave a line; ``most_c``: rows of which half of
    C's partition has a place for metadata and a line.
    """

    parts: dict[str, int]
    fifo: dict[str, int]
    mode: dict[str, str]
    most_i: int
    most_k: int
    most_c: int

    @classmethod
    def of(cls, design: Machine, shares: Shares, mode: dict[str, str]) -> "_Split":
        most_i, most_k = (partition_of(design, shares, tensor).most_rows for tensor in "AB")
        half = shares[0]["C"] // design.line_bytes // 2
        return cls(*shares, mode, most_i, most_k, (half - 1) * design.lanes)

    def holds(self, T_i: int, T_k: int) -> bool:
        """Whether every tile that is kept has a place for its metadata."""
        rows = [most for tensor, most in (("A", self.most_i), ("C", self.most_c)) if self.mode[tensor] == BUFFERING]
        return self.most_k >= T_k and all(most >= T_i for most in rows)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A scheme before it is one: what its cost is bounded by."""

    order: str
    T_i: int
    T_j: int
    T_k: int
    split: _Split

    def tile(self, rank: str) -> int:
        return {"i": self.T_i, "j": self.T_j, "k": self.T_k}[rank]

    def buffers(self, tensor: str) -> bool:
        return self.split.mode[tensor] == BUFFERING

    def scheme(self) -> Scheme:
        split = self.split
        return Scheme(
            policy="hyte",
            order=self.order,
            T_i=self.T_i,
            T_j=self.T_j,
            T_k=self.T_k,
            buffer_bytes=dict(split.parts),
            fifo_bytes=dict(split.fifo),
            mode=dict(split.mode),
        )


def tiling_space(
    workload: Workload, design: Machine, buffered: tuple[str, ...] = TENSORS, tile_i: bool = False
) -> list[Scheme]:
    """Every legal scheme with tile sides that are powers of two or whole: 3 inner loops plus no inter-tile reuse."""
    return [candidate.scheme() for candidate in _space(workload, design, buffered, tile_i)]


def small_space(workload: Workload, design: Machine, most: int) -> list[Scheme]:
    """Legal schemes with any of A, B and C kept, the ``most`` whose bound is least, that first.

    Sides of a rank of up to ``EVERY_SIDE`` are all that there are, of one of up to ``EVERY_COUNT`` one for each count of tiles.
    Where a rank is larger its sides are powers of two or whole, and k and one other rank at most are cut.
    """
    if max(workload.I, workload.J, workload.K) > EVERY_COUNT:
        found = _space(workload, design, TENSORS, tile_i=True)
    else:
        splits = _splits(design, TENSORS)
        found = [_streaming(workload, design)]
        sides = (_every_side(size) for size in (workload.I, workload.J, workload.K))
        for T_i, T_j, T_k in product(*sides):
            found += _with_shape(workload, T_i, T_j, T_k, splits)
    limits = _Bound(workload, design).all(found)
    return [found[n].scheme() for n in np.argsort(limits, kind="stable")[:most]]


def _every_side(size: int) -> list[int]:
    """Falling: every one of a short rank, of a longer one those of which as many tiles are as even as they can be."""
    if size <= EVERY_SIDE:
        return list(range(size, 0, -1))
    return sorted({-(-size // count) for count in range(1, size + 1)}, reverse=True)


def _space(workload: Workload, design: Machine, buffered: tuple[str, ...], tile_i: bool) -> list[_Candidate]:
    sides = {rank: _sides(size) for rank, size in zip("ijk", (workload.I, workload.J, workload.K), strict=True)}
    found = [_streaming(workload, design)]
    splits = _splits(design, buffered)
    for T_k, T_j in product(sides["k"], sides["j"]):
        found += _with_shape(workload, workload.I, T_j, T_k, splits)
    if tile_i:
        for T_i, T_k in product(sides["i"][1:], sides["k"][1:]):
            N_i, N_k = -(-workload.I // T_i), -(-workload.K // T_k)
            if max(N_i, N_k) <= GRID_MOST_TILES_I and 1 / 8 < N_i / N_k < 8:
                found += _with_shape(workload, T_i, workload.J, T_k, splits)
    return found


def _sides(size: int) -> list[int]:
    """The whole side, then powers of two below it, falling."""
    return [size, *(T for T in reversed(powers_of_two(size)) if size > T)]


def _streaming(workload: Workload, design: Machine) -> _Candidate:
    """No inter-tile reuse at all: one tile, B fetched row by row as A asks for it."""
    split = _Split.of(design, default_partition(design), dict.fromkeys(TENSORS, STREAMING))
    return _Candidate("ijk", workload.I, workload.J, workload.K, split)


def _splits(design: Machine, buffered: tuple[str, ...]) -> dict[tuple[str, bool], list[_Split]]:
    """By the tensor that is reused between tiles ("" for none but B) and whether k is cut.

    Empty where B has no place.
    """
    found: dict[tuple[str, bool], list[_Split]] = {}
    lines = design.buffer.bytes // design.line_bytes
    for reused in ("", "A", "C"):
        for cut_k in (False, True):
            sizes: list[dict[str, int]] = [{}]
            if reused:
                sizes = (
                    [{f"lines_{reused.lower()}": lines // (2 * share) * 2} for share in (2, 4)]
                    if reused in buffered
                    else []
                )
            kept = found.setdefault((reused, cut_k), [])
            for size in sizes if "B" in buffered else []:
                try:
                    shares = default_partition(design, partial_rows=cut_k, **size)
                except SchemeError:
                    continue
                mode = dict(ONLY_B)
                if reused:
                    mode[reused] = BUFFERING
                kept.append(_Split.of(design, shares, mode))
    return found


def _with_shape(
    workload: Workload,
    T_i: int,
    T_j: int,
    T_k: int,
    splits: dict[tuple[str, bool], list[_Split]],
) -> Iterator[_Candidate]:
    """Schemes of one shape: B's segments always have a place (intra-tile reuse), the inner loop's reuse may get one.

    The tensor that does not depend on the innermost rank is reused between tiles: B along i, A along j, C along k.
    """
    counts = {"i": -(-workload.I // T_i), "j": -(-workload.J // T_j), "k": -(-workload.K // T_k)}
    cut_k = counts["k"] > 1
    for inner, order in ORDER_BY_INNERMOST.items():
        if inner != "k" and counts[inner] == 1:
            continue  # nothing moves there: the order with k innermost does the same and leaves more out
        reused = {"i": "B", "j": "A", "k": "C"}[inner]
        options = splits["", cut_k]
        if reused != "B" and counts[inner] > 1:
            options = options + splits[reused, cut_k]
        for split in options:
            if split.holds(T_i, T_k):
                yield _Candidate(order, T_i, T_j, T_k, split)


def _without_smaller(schemes: list[_Candidate], workload: Workload, design: Machine) -> list[_Candidate]:
    """Section 5.2: leave out shapes inside another shape that fits the buffer; they would only leave room unused.

    A shape fits when the average tile does. One power of two below the largest that fit stay in: the model may like the
    skipping of empty tiles more than the room.
    """
    share = ShareOfB(design)
    density = workload.b.nnz / (workload.K * workload.J)
    shapes = sorted({(s.T_k, s.T_j) for s in schemes if s.buffers("B")})
    k, j = np.array(shapes, np.int64).reshape(-1, 2).T
    fits = k * j * density <= np.array([share.capacity(T_k) for T_k in k.tolist()], np.int64)
    smaller = np.any((2 * k[:, None] < k[fits]) & (2 * j[:, None] < j[fits]), axis=1)
    inside = {shapes[n] for n in np.flatnonzero(smaller)}
    return [s for s in schemes if (s.T_k, s.T_j) not in inside]


class _Bound:
    """What no scheme of a shape can undercut, by the cost model: tiles that end rows, tiles with work, products, C.

    Parameters
    ----------
    close: a closer bound, which takes longer: A and the rows of B that it uses move once, C as often as it is carried or put
        together, what groups of long rows leave in scratch twice; elements also take what filling their merges takes.
    """

    def __init__(self, workload: Workload, design: Machine, close: bool = False) -> None:
        self.workload = workload
        self.design = design
        self.close = close
        self._useful = np.flatnonzero((workload.uses > 0) & (workload.b.row_lengths > 0))
        self._steps: dict[int, int] = {}
        self._moved: dict[int, float] = {}
        self._per_line = design.line_bytes / design.dram_bytes_per_cycle
        # Every product, and C once, while computing.
        leaves = int(workload.uses[self._useful].sum()) if close else 0
        products = workload.effmac * MERGE_CYCLES + FILL_LEAF_CYCLES * leaves
        of = tensor_formats(design, workload.K, workload.J)
        self._beats_c = workload.nnz_c / design.lanes * line_beats(of["C"].record_bits)
        self._computing = max(products / design.pe.count, self._beats_c * self._per_line)
        used = int(workload.b.row_lengths[self._useful].sum())
        self._once = used / design.lanes * line_beats(of["B"].record_bits) + self._beats_c

    def _useful_steps(self, T_k: int) -> int:
        """k tiles in which any element of A meets any of B."""
        if T_k not in self._steps:
            tiles = self._useful // T_k
            self._steps[T_k] = int(np.count_nonzero(np.diff(tiles))) + (len(tiles) > 0)
        return self._steps[T_k]

    def all(self, schemes: list[_Candidate]) -> NDArray[np.float64]:
        """Cycles of each."""
        T_i, T_j, T_k, keeps_a = np.array([(s.T_i, s.T_j, s.T_k, s.buffers("A")) for s in schemes], np.int64).T
        workload = self.workload
        N_i, N_j = -(-workload.I // T_i), -(-workload.J // T_j)
        steps = {int(T): self._useful_steps(int(T)) for T in np.unique(T_k)}
        tiles = np.maximum(N_i * N_j, np.array([steps[T] for T in T_k.tolist()], np.int64))
        latency = self.design.memory_latency_cycles
        trips = np.where(keeps_a, ROUND_TRIPS - ROUND_TRIPS_OF_A, ROUND_TRIPS)
        assembly = np.where(N_j > 1, workload.I * N_j, 0).astype(np.float64)
        computing = np.full(len(schemes), self._computing)
        if self.close:
            put_together = workload.nnz_c / self.design.lanes + self._beats_c + workload.I * N_j
            assembly = np.where(N_j > 1, put_together * self._per_line, 0.0)
            scratched = self._scratch(workload.K)
            computing = np.maximum(
                computing, (self._once + np.where(T_k >= workload.K, scratched, 0.0)) * self._per_line
            )
        found: NDArray[np.float64] = (
            tiles * (VISIT_CYCLES + trips * latency) + np.maximum(tiles * (workload.I / N_i), computing) + assembly
        )
        return found

    def closer(self, scheme: _Candidate, limit: float) -> float:
        """At least ``limit``, the one that :meth:`all` gave: where k is cut, with what that carries and leaves in scratch."""
        workload, T_k = self.workload, scheme.T_k
        if T_k >= workload.K:
            return limit
        if T_k not in self._moved:
            self._moved[T_k] = self._once + self._scratch(T_k)
        moved = self._moved[T_k]
        N_j = -(-workload.J // scheme.T_j)
        if scheme.T_i >= workload.I and N_j == 1 and not scheme.buffers("C"):
            moved += self._carried_lines(T_k)
        assembly = workload.nnz_c / self.design.lanes + self._beats_c + workload.I * N_j if N_j > 1 else 0.0
        trips = ROUND_TRIPS - ROUND_TRIPS_OF_A if scheme.buffers("A") else ROUND_TRIPS
        tiles = max(N_j, self._useful_steps(T_k))
        return max(
            limit,
            tiles * (VISIT_CYCLES + trips * self.design.memory_latency_cycles)
            + max(self._computing, moved * self._per_line)
            + assembly * self._per_line,
        )

    def _scratch(self, T_k: int) -> float:
        """Lines of the results of groups of long rows."""
        return scratch(self.workload, self.design, (self.workload.J, T_k), 1)[1]

    def _carried_lines(self, T_k: int) -> float:
        """Lines of partial rows that leave and come back where only k is cut, and each k step with work is a tile.

        Carried, or joined: what all steps make but for the last, which makes no more than there is of C.
        """
        counts, steps = self.workload.output, np.unique(self._useful // T_k)
        after = len(steps) - 1 - np.searchsorted(steps, counts.first_k // T_k)
        joined = max(0.0, counts.nnz_tk(T_k) - counts.nnz)
        return 2 * min(counts.weighed(np.maximum(0, after)), joined) / self.design.lanes


def ranked(
    workload: Workload,
    design: Machine,
    *,
    buffered: tuple[str, ...] = TENSORS,
    tile_i: bool = False,
    at_most: float = float("inf"),
) -> list[tuple[Scheme, Prediction]]:
    """The schemes looked at, cheapest first: by cycles, then bytes, then the coarser tiling.

    ``at_most``: schemes that cannot cost less are not looked at, and every second power of two stands for those around it; there
    may be none then.
    """
    schemes = _space(workload, design, buffered, tile_i)
    if len({(s.T_k, s.T_j) for s in schemes}) > GRID_SEARCHED_WHOLE:
        schemes = _without_smaller(schemes, workload, design)
    sizes = (("k", workload.K), ("j", workload.J))
    pruned = at_most < float("inf")
    bound = _Bound(workload, design, close=pruned)
    limits = bound.all(schemes)
    found: list[tuple[tuple[float, ...], Scheme, Prediction]] = []
    least = at_most

    def look_at(positions: NDArray[np.int64]) -> None:
        """Costs these, the best bound first."""
        nonlocal least
        count = len(found)
        for position in positions[np.argsort(limits[positions], kind="stable")]:
            if limits[position] > least:
                break  # this one and all that follow cost more than the best so far
            scheme = schemes[position]
            if pruned and bound.closer(scheme, float(limits[position])) > least:
                continue
            if count == GRID_LOOKED_AT_FIRST:
                left = [s for s, limit in zip(schemes, limits, strict=True) if limit <= least and s.buffers("B")]
                powers = {side: [s.tile(side) for s in left if s.tile(side) < size] for side, size in sizes}
                workload.tiles(
                    "B", *(min(powers[side], default=1) for side in "kj")
                )  # all shapes left are made of these
                cut = [s for s in left if s.T_i < workload.I]
                if cut:
                    workload.tiles("A", min(s.T_i for s in cut), min(s.T_k for s in cut))
            count += 1
            whole, prediction = cheaper(workload, design, scheme.scheme())
            found.append(((prediction.cycles, prediction.dram_bytes, position), whole, prediction))
            least = min(least, prediction.cycles)

    if not pruned:
        look_at(np.arange(len(schemes)))
    else:
        # Every second power of two, then what lies around the best of them.
        first = [s.order == "ijk" and not s.buffers("A") and _coarse(s, workload) for s in schemes]
        look_at(np.flatnonzero(first))
        if found:
            best = min(found, key=lambda item: item[0])
            if best[0][0] <= GRID_HOPELESS * at_most:
                near = [
                    not seen and all(0.5 <= s.tile(rank) / best[1].tile(rank) <= 2 for rank in "ijk")
                    for s, seen in zip(schemes, first, strict=True)
                ]
                look_at(np.flatnonzero(near))
    found.sort(key=lambda item: item[0])
    return [(scheme, prediction) for _, scheme, prediction in found]


def _coarse(scheme: _Candidate, workload: Workload) -> bool:
    """Whether each side is whole or a power of four."""
    sides = ((scheme.T_i, workload.I), (scheme.T_j, workload.J), (scheme.T_k, workload.K))
    return all(side >= size or side.bit_length() % 2 == 1 for side, size in sides)
