"""The policies for outer and inner products. Paper: HYTE, section 5.2 and table 2; Tailors, sections 2.2 and 4.

``hyte`` searches its pruned space with the cost model, ``optimal`` runs that space in the model tier, the most promising first,
``auto`` only the first few of it. Tiles of ``uniform``, ``prescient`` and ``swiftiles`` grow along k, then j, then i, until the
shares of A and B are full: if the tiles were dense, in the worst case, or in all but y of them. ``drt`` and ``harp`` are static
here: the even tiles that fill table 2's shares on average.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp

from sw.cost.candidates.of_shares import scheme_of_shares
from sw.cost.dataflows import predict_dataflow
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

__all__ = ["POLICIES", "choose", "space"]

POLICIES = ("uniform", "prescient", "swiftiles", "drt", "harp", "hyte", "optimal", "auto")
# Table 2: shares of A, B and C, and the innermost rank of the tiles. Tailors leaves its shares open: those of ExTensor with
# DRT, whose machine it also is.
SHARES = {"drt": (0.05, 0.45, 0.5), "harp": (0.045, 0.91, 0.045), "tailors": (0.05, 0.45, 0.5)}
FINALISTS = 6
BUDGET = 200
# Finer cuts than these multiply what each visit costs by itself.
MOST_TILES = 1 << 16


def choose(
    policy: str,
    A: sp.csr_array,
    B: sp.csr_array,
    design: Machine,
    *,
    seed: int = 0,
    judge: Judge | None = None,
    **options: Any,
) -> Scheme:
    """A scheme by the policy called so; options ``y`` and ``k`` of swiftiles, ``budget`` of optimal."""
    work = Workload(A, B, lanes=design.lanes, seed=seed)
    if policy == "hyte":
        scheme, prediction = _ranked(work, design)[0]
        return replace(scheme, policy=policy, predicted=prediction.as_dict())
    if policy in ("optimal", "auto"):
        return _judged(policy, work, design, judge, options.get("budget", BUDGET if policy == "optimal" else FINALISTS))
    if policy in ("uniform", "prescient", "swiftiles"):
        scheme = _filled(policy, work, design, options.get("y", 0.1), options.get("k", 10), np.random.default_rng(seed))
    elif policy in ("drt", "harp"):
        scheme = _even(policy, work, design)
    else:
        raise SchemeError("policy", policy, f"one of {', '.join(POLICIES)} where pe.dataflow is {design.pe.dataflow}")
    return replace(scheme, predicted=predict_dataflow(work, design, scheme).as_dict())


# HYTE's space -------------------------------------------------------------------------------------------------------


def _sides(size: int) -> list[int]:
    """The whole side, then powers of two below it, falling."""
    return [size, *(1 << n for n in reversed(range(size.bit_length())) if 1 << n < size)]


def space(work: Workload, design: Machine) -> Iterator[Scheme]:
    """Legal schemes: the dataflow's outermost rank whole, the others cut at powers of two, three innermost ranks, and shares.

    What the dataflow walks poorly always has a place: C of an outer product, B of an inner one (section 5.2). The tensor that
    the innermost rank leaves alone gets a half or a quarter of the buffer, or nothing.
    """
    outer = design.pe.dataflow == OUTER
    first = "C" if outer else "B"
    cut = ("i", "j") if outer else ("j", "k")
    sizes = {"i": work.I, "j": work.J, "k": work.K}
    for sides in product(*(_sides(sizes[rank]) for rank in cut)):
        tile = sizes | dict(zip(cut, sides, strict=True))
        counts = {rank: -(-sizes[rank] // tile[rank]) for rank in "ijk"}
        if math.prod(counts.values()) > MOST_TILES:
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


def _streaming(work: Workload, design: Machine) -> Scheme:
    """One tile and nothing kept: legal on every design."""
    parts, fifo = rest_to_largest(design, {"B": 1.0})
    return Scheme(
        policy="hyte", order="ijk", T_i=work.I, T_j=work.J, T_k=work.K, buffer_bytes=parts, fifo_bytes=fifo,
        mode=dict.fromkeys(TENSORS, STREAMING),
    )  # fmt: skip


def _ranked(work: Workload, design: Machine) -> list[tuple[Scheme, Prediction]]:
    """The space, cheapest first by cycles, then bytes."""
    schemes = [*space(work, design), _streaming(work, design)]
    for tensor, ranks in (("A", "ik"), ("B", "kj")):  # coarser tiles are made of the finest ones
        work.tiles(tensor, *(min(s.tile(rank) for s in schemes) for rank in ranks))
    found = [(scheme, predict_dataflow(work, design, scheme)) for scheme in schemes]
    return sorted(found, key=lambda item: (item[1].cycles, item[1].dram_bytes))


def _judged(policy: str, work: Workload, design: Machine, judge: Judge | None, budget: int) -> Scheme:
    """The best of the ``budget`` most promising schemes by the model tier; by the cost model where there is none."""
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise SchemeError("option budget", budget, "an integer of at least 1")
    ranked = _ranked(work, design)
    if judge is None:
        if policy == "optimal":
            raise SchemeError("policy", policy, "used where the model tier can be run")
        return replace(ranked[0][0], policy=policy, predicted=ranked[0][1].as_dict())
    judged = [(judge(scheme, work.a, work.b), n) for n, (scheme, _) in enumerate(ranked[:budget])]
    cycles, best = min(judged)
    scheme, prediction = ranked[best]
    return replace(scheme, policy=policy, predicted=prediction.as_dict() | {"cycles": cycles})


# Tailors' tiles, and even ones that stand for dynamic ones --------------------------------------------------------------


def _rooms(design: Machine, shares: tuple[float, float, float], tile: dict[str, int]) -> dict[str, int]:
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


def _filled(policy: str, work: Workload, design: Machine, y: float, k: int, rng: np.random.Generator) -> Scheme:
    if isinstance(y, bool) or not isinstance(y, (int, float)) or not 0 < y < 1:
        raise SchemeError("option y", y, "a number between 0 and 1")
    samples = math.ceil(k / y)

    def held(matrix: Pattern, rows: int, columns: int) -> float:
        """What has to fit: all points, the worst tile, or the quantile of a sample that y of them exceed."""
        if policy == "uniform":
            return rows * columns
        if policy == "prescient":
            return occupancy(matrix, rows, columns).largest
        seen = np.sort(sample_occupancies(matrix, rows, columns, samples, rng))
        return float(seen[max(0, len(seen) - 1 - round(y * len(seen)))])

    return _grown(policy, work, design, SHARES["tailors"], "ikj", ("k", "j", "i"), held)


def _grown(
    policy: str,
    work: Workload,
    design: Machine,
    shares: tuple[float, float, float],
    order: str,
    ranks: tuple[str, ...],
    held: Callable[[Pattern, int, int], float],
) -> Scheme:
    """Tiles that grow along the ranks, one after the other, while A's and B's tiles fit what they must."""
    sizes = {"i": work.I, "j": work.J, "k": work.K}
    tile = dict.fromkeys("ijk", 1) if design.pe.dataflow == OUTER else {"i": work.I, "j": 1, "k": 1}

    def fit(rank: str, side: int) -> bool:
        shape = tile | {rank: side}
        rooms = _rooms(design, shares, shape)
        # A inner product's tile of A passes by row by row, an outer product's has to stay beside B's.
        needs_a = design.pe.dataflow == OUTER and rank in "ik"
        return (not needs_a or held(work.a, shape["i"], shape["k"]) <= rooms["A"]) and (
            rank == "i" or held(work.b, shape["k"], shape["j"]) <= rooms["B"]
        )

    for rank in ranks:
        if tile[rank] < sizes[rank]:
            tile[rank] = largest_good(sizes[rank], partial(fit, rank))
    return replace(_kept_where_legal(work, design, order, tile, shares), policy=policy)


def _kept_where_legal(
    work: Workload, design: Machine, order: str, tile: dict[str, int], shares: tuple[float, float, float]
) -> Scheme:
    """A tensor whose share does not hold its metadata streams; A first, since it is walked once a visit."""
    by_tensor = dict(zip(TENSORS, shares, strict=True))
    for kept in ({"A", "B", "C"}, {"B", "C"}, {"A", "C"}, {"C"}, {"B"}, set()):
        scheme = scheme_of_shares("hyte", design, order, tile, by_tensor, kept)
        if scheme is not None:
            return scheme
    return _streaming(work, design)


def _even(policy: str, work: Workload, design: Machine) -> Scheme:
    def held(matrix: Pattern, rows: int, columns: int) -> float:
        return matrix.nnz / (-(-matrix.rows // rows) * -(-matrix.columns // columns))

    if policy == "drt":
        return _cube(work, design, held)
    # HARP: only i is cut; pseudo-tiles of 32 rows are merged while the tile of C has room where it is that which is kept.
    shares = SHARES["harp"]
    room = int(shares[2] * design.buffer.bytes // design.line_bytes) * design.lanes
    rows = work.I
    if design.pe.dataflow == OUTER:
        rows = largest_good(-(-work.I // 32), lambda n: 32 * n * work.output.nnz / work.I <= room - 32 * n) * 32
    tile = {"i": min(work.I, rows), "j": work.J, "k": work.K}
    return replace(_kept_where_legal(work, design, "jki", tile, shares), policy=policy)


def _cube(work: Workload, design: Machine, held: Callable[[Pattern, int, int], float]) -> Scheme:
    """DRT: one step more along k, i and j in turn, of 32 coordinates or twice as many, while the average tiles fit."""
    shares = SHARES["drt"]
    sizes = {"i": work.I, "j": work.J, "k": work.K}
    tile = {rank: min(32, size) for rank, size in sizes.items()}
    growing = ["k", "i", "j"]
    while growing:
        for rank in list(growing):
            shape = tile | {rank: min(sizes[rank], 2 * tile[rank])}
            rooms = _rooms(design, shares, shape)
            fits = (
                held(work.a, shape["i"], shape["k"]) <= rooms["A"]
                and held(work.b, shape["k"], shape["j"]) <= rooms["B"]
            )
            if not fits or shape == tile:
                growing.remove(rank)
            else:
                tile = shape
    return replace(_kept_where_legal(work, design, "jki", tile, shares), policy="drt")
