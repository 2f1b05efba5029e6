"""The policies for outer and inner products. Paper: HYTE, section 5.2 and table 2; Tailors, sections 2.2 and 4.

``hyte`` searches its pruned space with the cost model, ``optimal`` runs that space in the model tier, the most promising first,
``auto`` only the first few of it. Tiles of ``uniform``, ``prescient`` and ``swiftiles`` grow along k, then j, then i, until the
shares of A and B are full: if the tiles were dense, in the worst case, or in all but y of them. ``drt`` and ``harp`` are static
here: the even tiles that fill table 2's shares on average.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp

from sw.cost.candidates.of_shares import scheme_of_shares
from sw.cost.dataflows import predict_dataflow
from sw.operands.errors import OperandError
from sw.plan.thresholds import DRT_SIDE, FINALISTS_OF_DATAFLOWS, GRID_MOST_TILES, HARP_ROWS, OPTIMAL_BUDGET, SHARES
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.shares import rest_to_largest
from sw.scheme.terms import OUTER, STREAMING, TENSORS
from sw.stats.largest import largest_good
from sw.stats.occupancy import occupancy, sample_occupancies
from sw.stats.pattern import Pattern
from sw.stats.workload import Workload

from ..cost.candidates.evaluator import Judge
from ..cost.predict import Prediction
from ..cost.protocol import Machine

__all__ = ["auto", "drt", "harp", "hyte", "optimal", "prescient", "space", "swiftiles", "uniform"]


def uniform(A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, **options: Any) -> Scheme:
    """Tiles that would fit if they were dense."""
    return _filled("uniform", _work(A, B, design, seed), design, lambda matrix, rows, columns: rows * columns)


def prescient(A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, **options: Any) -> Scheme:
    """Tiles of which the fullest fits."""
    workload = _work(A, B, design, seed)
    return _filled(
        "prescient", workload, design, lambda matrix, rows, columns: occupancy(matrix, rows, columns).largest
    )


def swiftiles(
    A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, y: float = 0.1, k: int = 10, **options: Any
) -> Scheme:
    """Tiles all but y of which fit, by a sample of k / y of them."""
    if isinstance(y, bool) or not isinstance(y, (int, float)) or not 0 < y < 1:
        raise SchemeError("option y", y, "a number between 0 and 1")
    samples, rng = math.ceil(k / y), np.random.default_rng(seed)

    def tile_occupancy(matrix: Pattern, rows: int, columns: int) -> float:
        seen = np.sort(sample_occupancies(matrix, rows, columns, samples, rng))
        return float(seen[max(0, len(seen) - 1 - round(y * len(seen)))])

    return _filled("swiftiles", _work(A, B, design, seed), design, tile_occupancy)


def drt(A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, **options: Any) -> Scheme:
    """Even tiles: one step more along k, i and j in turn, of 32 coordinates or twice as many, while the average ones fit."""
    workload = _work(A, B, design, seed)
    sizes = {"i": workload.I, "j": workload.J, "k": workload.K}
    tile = {rank: min(DRT_SIDE, size) for rank, size in sizes.items()}
    growing = ["k", "i", "j"]
    while growing:
        for rank in list(growing):
            shape = tile | {rank: min(sizes[rank], 2 * tile[rank])}
            capacities = _capacities(design, SHARES["drt"], shape)
            fits = (
                workload.a.nnz / _count(workload.a, shape["i"], shape["k"]) <= capacities["A"]
                and workload.b.nnz / _count(workload.b, shape["k"], shape["j"]) <= capacities["B"]
            )
            if not fits or shape == tile:
                growing.remove(rank)
            else:
                tile = shape
    return _kept_where_legal("drt", workload, design, "jki", tile, SHARES["drt"])


def harp(A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, **options: Any) -> Scheme:
    """Only i is cut: pseudo-tiles are merged while the tile of C has room where it is that which is kept."""
    workload = _work(A, B, design, seed)
    capacity = int(SHARES["harp"][2] * design.buffer.bytes // design.line_bytes) * design.lanes
    rows = workload.I
    if design.pe.dataflow == OUTER:

        def fit(tiles: int) -> bool:
            return HARP_ROWS * tiles * workload.output.nnz / workload.I <= capacity - HARP_ROWS * tiles

        rows = largest_good(-(-workload.I // HARP_ROWS), fit) * HARP_ROWS
    tile = {"i": min(workload.I, rows), "j": workload.J, "k": workload.K}
    return _kept_where_legal("harp", workload, design, "jki", tile, SHARES["harp"])


def hyte(A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, **options: Any) -> Scheme:
    """The best of the space by the cost model."""
    scheme, prediction = _ranked(_work(A, B, design, seed), design)[0]
    return replace(scheme, predicted=prediction.as_dict())


def optimal(
    A: sp.csr_array,
    B: sp.csr_array,
    design: Machine,
    *,
    seed: int = 0,
    judge: Judge | None = None,
    others: Callable[[], Iterable[Scheme]] = tuple,
    budget: int = OPTIMAL_BUDGET,
    **options: Any,
) -> Scheme:
    """The best, by the model tier, of the ``budget`` most promising schemes of the space and of what other policies choose."""
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise SchemeError("option budget", budget, "an integer of at least 1")
    return _judged("optimal", _work(A, B, design, seed), design, judge, budget, others)


def auto(
    A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, judge: Judge | None = None, **options: Any
) -> Scheme:
    """The same of the first few of it; by the cost model where there is no model tier."""
    return _judged("auto", _work(A, B, design, seed), design, judge, FINALISTS_OF_DATAFLOWS)


def _work(A: sp.csr_array, B: sp.csr_array, design: Machine, seed: int) -> Workload:
    return Workload(A, B, lanes=design.lanes, seed=seed)


def _count(matrix: Pattern, rows: int, columns: int) -> int:
    """Tiles of that shape."""
    return -(-matrix.rows // rows) * -(-matrix.columns // columns)


# HYTE's space -------------------------------------------------------------------------------------------------------


def _sides(size: int) -> list[int]:
    """The whole side, then powers of two below it, falling."""
    return [size, *(1 << n for n in reversed(range(size.bit_length())) if 1 << n < size)]


def space(workload: Workload, design: Machine) -> Iterator[Scheme]:
    """Legal schemes: the dataflow's outermost rank whole, the others cut at powers of two, three innermost ranks, and shares.

    What the dataflow walks poorly always has a place: C of an outer product, B of an inner one (section 5.2). The tensor that
    the innermost rank leaves alone gets a half or a quarter of the buffer, or nothing.
    """
    outer = design.pe.dataflow == OUTER
    first = "C" if outer else "B"
    cut = ("i", "j") if outer else ("j", "k")
    sizes = {"i": workload.I, "j": workload.J, "k": workload.K}
    for sides in product(*(_sides(sizes[rank]) for rank in cut)):
        tile = sizes | dict(zip(cut, sides, strict=True))
        counts = {rank: -(-sizes[rank] // tile[rank]) for rank in "ijk"}
        if math.prod(counts.values()) > GRID_MOST_TILES:
            continue
        for inner, order in {"k": "ijk", "j": "ikj", "i": "jki"}.items():
            reused = {"i": "B", "j": "A", "k": "C"}[inner]
            if counts[inner] == 1 and inner != "k":
                continue
            shares = [0.0] if reused == first or counts[inner] == 1 else [0.0, 0.5, 0.25]
            for share in shares:
                scheme = scheme_of_shares(
                    "hyte",
                    design,
                    order,
                    tile,
                    {reused: share, first: 1 - share},
                    {first, reused} if share else {first},
                )
                if scheme is not None:
                    yield scheme


def _streaming(workload: Workload, design: Machine) -> Scheme:
    """One tile and nothing kept: legal on every design."""
    parts, fifo = rest_to_largest(design, {"B": 1.0})
    return Scheme(
        policy="hyte", order="ijk", T_i=workload.I, T_j=workload.J, T_k=workload.K, buffer_bytes=parts, fifo_bytes=fifo,
        mode=dict.fromkeys(TENSORS, STREAMING),
    )  # fmt: skip


def _ranked(workload: Workload, design: Machine) -> list[tuple[Scheme, Prediction]]:
    """The space, cheapest first by cycles, then bytes."""
    schemes = [*space(workload, design), _streaming(workload, design)]
    for tensor, ranks in (("A", "ik"), ("B", "kj")):  # coarser tiles are made of the finest ones
        workload.tiles(tensor, *(min(s.tile(rank) for s in schemes) for rank in ranks))
    found = [(scheme, predict_dataflow(workload, design, scheme)) for scheme in schemes]
    return sorted(found, key=lambda item: (item[1].cycles, item[1].dram_bytes))


def _judged(
    policy: str,
    workload: Workload,
    design: Machine,
    ask: Judge | None,
    budget: int,
    others: Callable[[], Iterable[Scheme]] | None = None,
) -> Scheme:
    """The best by the model tier of the ``budget`` most promising schemes and of ``others``, which do not do without it.

    Where nobody can ask the model tier, the most promising one.
    """
    if ask is None and others is not None:
        raise SchemeError("policy", policy, "used where the model tier can be run")
    found = [replace(s, predicted=p.as_dict()) for s, p in _ranked(workload, design)[:budget]]
    if ask is None:
        return replace(found[0], policy=policy)
    found += others() if others is not None else ()
    known: list[tuple[int, int]] = []
    refused: Exception | None = None
    for n, scheme in enumerate(found):
        try:
            known.append((ask(scheme, workload.a, workload.b), n))
        except (MemoryError, OperandError) as error:
            refused = error  # its tables do not fit the memory of this computer: others are smaller
    if not known:
        assert refused is not None  # there is a scheme at least
        raise refused
    cycles, best = min(known)
    predicted = found[best].predicted | {"cycles": cycles}
    return replace(found[best], policy=policy, predicted=predicted, alternatives=[])


# Tailors' tiles ---------------------------------------------------------------------------------------------------------


def _capacities(design: Machine, shares: tuple[float, float, float], tile: dict[str, int]) -> dict[str, int]:
    """Elements that A's and B's shares hold: beside the metadata of an inner product's tiles, which rows come back to.

    An outer product walks its fibers once, so that its tiles can do without.
    """
    parts, fifo = rest_to_largest(design, dict(zip(TENSORS, shares, strict=True)))
    rank = {"A": "i", "B": "j"}
    return {
        t: (parts[t] - (fifo[t] if t == "B" else 0)) // design.line_bytes * design.lanes
        - (0 if design.pe.dataflow == OUTER else tile[rank[t]])
        for t in "AB"
    }


def _filled(
    policy: str, workload: Workload, design: Machine, tile_occupancy: Callable[[Pattern, int, int], float]
) -> Scheme:
    """Tiles that grow along the ranks, one after the other, while A's and B's fit what they must, by ``tile_occupancy``."""
    sizes = {"i": workload.I, "j": workload.J, "k": workload.K}
    tile = dict.fromkeys("ijk", 1) if design.pe.dataflow == OUTER else {"i": workload.I, "j": 1, "k": 1}

    def fit(rank: str, side: int) -> bool:
        shape = tile | {rank: side}
        capacities = _capacities(design, SHARES["tailors"], shape)
        # A inner product's tile of A passes by row by row, an outer product's has to stay beside B's.
        needs_a = design.pe.dataflow == OUTER and rank in "ik"
        return (not needs_a or tile_occupancy(workload.a, shape["i"], shape["k"]) <= capacities["A"]) and (
            rank == "i" or tile_occupancy(workload.b, shape["k"], shape["j"]) <= capacities["B"]
        )

    for rank in ("k", "j", "i"):
        if tile[rank] < sizes[rank]:
            tile[rank] = largest_good(sizes[rank], partial(fit, rank))
    return _kept_where_legal(policy, workload, design, "ikj", tile, SHARES["tailors"])


def _kept_where_legal(
    policy: str,
    workload: Workload,
    design: Machine,
    order: str,
    tile: dict[str, int],
    shares: tuple[float, float, float],
) -> Scheme:
    """With its prediction. A tensor whose share does not hold its metadata streams; A first, since it is walked once a visit."""
    by_tensor = dict(zip(TENSORS, shares, strict=True))
    schemes = (
        scheme_of_shares(policy, design, order, tile, by_tensor, kept)
        for kept in ({"A", "B", "C"}, {"B", "C"}, {"A", "C"}, {"C"}, {"B"}, set())
    )
    found = next((scheme for scheme in schemes if scheme is not None), None)
    scheme = found or replace(_streaming(workload, design), policy=policy)
    return replace(scheme, predicted=predict_dataflow(workload, design, scheme).as_dict())
