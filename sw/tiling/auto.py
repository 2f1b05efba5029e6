"""Ours: HYTE's search with what the other papers add, finer sides, and the model tier where estimates are close.

From HYTE the space of shapes, orders and splits; from Swiftiles the sizes at which given shares of the tiles overflow; from
D2T2 shapes whose tiles all fit, with i cut as well. All are costed by one model, which counts metadata and looks at every
tile's occupancy, so that it says itself how much overbooking pays. The closest candidates then run in the model tier.
"""

from dataclasses import replace
from typing import Any

import scipy.sparse as sp

from sw.stats.occupancy import occupancy
from sw.stats.workload import Workload

from .cost import Prediction, predict
from .dynamic import shared_buffer
from .judging import NEARLY_ALL, Bench, Judge
from .listed import listed
from .partition import RoomForB
from .protocol import Machine
from .scheme import BUFFERING, STREAMING, Scheme, SchemeError, default_partition
from .search import ranked
from .super_tiles import super_tiles
from .windowed import windowed

__all__ = ["WINDOWED", "auto"]

# Shares of tiles that may overflow at the sizes taken from occupancies.
QUANTILES = (0.0, 0.1, 0.3)
# Candidates up to this factor above the best prediction go before the model tier, this many at most.
CLOSE = 1.35
FINALISTS = 6
# Of schemes of windows so many besides.
WINDOWED = 2
# Bits of a side that matter: 32 steps from one power of two to the next.
KEPT_BITS = 6
# So much worse than one tile the best of many tiles may be before their sides are not looked into.
HOPELESS = 2
# So much worse than the best tiles that keep rows of B in place the best grid may be before only that one is judged.
COMPARABLE = 1.1
# Rounds of looking for better sides around the best.
ROUNDS = 3
# Effort of all judgements together (:func:`.judging.work_units`): a floor, and so much for each nonzero of the operands.
UNITS = 1 << 27
UNITS_A_NONZERO = 32
# Rows of the pseudo-tiles that super-tiles are made of.
PSEUDO_TILES = (8, 32)
# Share of the rows below which a sample says too little.
LEAST_SHARE = 0.02
# By how much a scheme has to be better on a sample of the rows.
MARGIN = 0.05

Candidate = tuple[Scheme, Prediction]


def auto(
    A: sp.csr_array,
    B: sp.csr_array,
    design: Machine,
    *,
    seed: int = 0,
    judge: Judge | None = None,
    finalists: int = FINALISTS,
    effort: float = 1.0,
    uneven: bool = False,
    windows: bool = True,
    lists: bool = True,
    **options: Any,
) -> Scheme:
    """The best scheme that the hardware can run.

    Parameters
    ----------
    judge: cycles by the model tier; without it the cost model alone decides.
    finalists: how many candidates of a grid are judged at most. effort: multiplies what judging may cost.
    windows: tiles that span a window of k each (:mod:`.windows`) are candidates, for operands whose rows have their elements
        close together.
    lists: tiles that load the rows of B that they use, and keep them for the next (:mod:`.lists`), are candidates.
    uneven: super-tiles along i that load what they use (:mod:`.super_tiles`) are candidates too, which no hardware runs.
    """
    if options:
        raise TypeError(
            f"auto takes the options finalists, effort, uneven, windows and lists, not {', '.join(options)}"
        )
    if isinstance(finalists, bool) or not isinstance(finalists, int) or finalists < 1:
        raise SchemeError("option finalists", finalists, "an integer of at least 1")
    if isinstance(effort, bool) or not isinstance(effort, (int, float)) or not effort > 0:
        raise SchemeError("option effort", effort, "a number above 0")
    for name, flag in (("uneven", uneven), ("windows", windows), ("lists", lists)):
        if not isinstance(flag, bool):
            raise SchemeError(f"option {name}", flag, "true or false")
    work = Workload(A, B, lanes=design.lanes, seed=seed)
    found = ranked(work, design, tile_i=True)
    plain = next(c for c in found if c[0].T_i == work.I)  # what hyte chooses: judged with the others
    if _nothing_moves_twice(work, design, found[0]):
        # Uneven tiles cannot move less. But rows of B that few rows of A use may come sooner from where they are.
        streamed = [c for c in _close(found) if not c[0].buffers("B")][:1]
        if judge is not None and streamed:
            streamed = _judged(Bench(work, judge, _units(work, effort, 2)), [found[0], *streamed], found[0])
            return _chosen(streamed)
        return _chosen(found[:1])
    pool = {_key(s): (s, p) for s, p in found}
    cut = [p.cycles for s, p in found if s.tiles_per_rank(work.I, work.J, work.K) != (1, 1, 1)]
    worth = min(cut, default=0) <= HOPELESS * found[0][1].cycles  # else better sides of tiles cannot win either
    for scheme in _by_occupancy(work, design) if worth else ():
        _add(pool, work, design, scheme)
    for _ in range(ROUNDS if worth else 0):
        best = min(pool.values(), key=_cost)
        for scheme in _around(work, design, best[0]):
            _add(pool, work, design, scheme)
        if min(map(_cost, pool.values())) == _cost(best):
            break
    chosen = _varied(work, _close(list(pool.values())), finalists)
    spans = [(s, predict(work, design, s)) for s in windowed("auto", work, design)] if windows else []
    spans = _close(spans)[:WINDOWED]
    if lists:
        spans += listed("auto", work, design)
    chosen = _with_windows(chosen, _close(spans))
    if plain not in chosen:
        chosen.append(plain)
    if judge is not None and len(chosen) > 1:
        chosen = _judged(Bench(work, judge, _units(work, effort, len(chosen))), chosen, plain)
    else:
        chosen.sort(key=_cost)
    even = _chosen(chosen)
    return _less_even(work, design, even, judge) if uneven else even


def _units(work: Workload, effort: float, candidates: int) -> float:
    """Effort that judging one of so many candidates may cost."""
    return effort * max(UNITS, UNITS_A_NONZERO * (work.a.nnz + work.b.nnz)) / candidates


def _close(candidates: list[Candidate]) -> list[Candidate]:
    """Those near the best, which comes first."""
    least = min((p.cycles for _, p in candidates), default=0)
    return sorted((c for c in candidates if c[1].cycles <= CLOSE * least), key=_cost)


def _with_windows(grid: list[Candidate], spans: list[Candidate]) -> list[Candidate]:
    """Both kinds where they are comparable, else the better one and the best of the other."""
    if not spans or spans[0][1].cycles > HOPELESS * grid[0][1].cycles:
        return grid
    return [*(grid if grid[0][1].cycles <= COMPARABLE * spans[0][1].cycles else grid[:1]), *spans]


def _less_even(work: Workload, design: Machine, best: Scheme, judge: Judge | None) -> Scheme:
    """Super-tiles with all of the buffer for B, where they are better."""
    candidates = [best]
    for pseudo in PSEUDO_TILES:
        candidates.append(super_tiles("auto", work, design, shared_buffer(design, 0.0, 0.0), pseudo))
    if judge is None:
        return min(candidates, key=lambda s: s.predicted["cycles"])
    return min(candidates, key=lambda s: judge(s, work.a, work.b))


def _chosen(candidates: list[Candidate]) -> Scheme:
    """The first, the others as its alternatives."""
    scheme, prediction = candidates[0]
    alternatives = [_summary(s, p) for s, p in candidates[1:]]
    return replace(scheme, policy="auto", predicted=prediction.as_dict(), alternatives=alternatives)


def _nothing_moves_twice(work: Workload, design: Machine, candidate: Candidate) -> bool:
    """One tile that fits, and no row that needs more than one job: no scheme can move less."""
    scheme, prediction = candidate
    whole = scheme.tiles_per_rank(work.I, work.J, work.K) == (1, 1, 1)
    short = int(work.a.row_lengths.max(initial=0)) <= design.pe.merge_radix
    return whole and short and scheme.buffers("B") and prediction.overbooked == 0


def _key(scheme: Scheme) -> tuple[Any, ...]:
    return (
        scheme.order,
        scheme.T_i,
        scheme.T_j,
        scheme.T_k,
        tuple(scheme.mode.values()),
        tuple(scheme.buffer_bytes.values()),
    )


def _cost(candidate: Candidate) -> tuple[int, int, tuple[Any, ...]]:
    return candidate[1].cycles, candidate[1].dram_bytes, _key(candidate[0])


def _summary(scheme: Scheme, prediction: Prediction) -> dict[str, Any]:
    shape = {f"T_{rank}": scheme.tile(rank) for rank in "ijk"}
    spans: dict[str, Any] = {"windows": len(scheme.windows)} if scheme.windows else {}
    if scheme.listed:
        spans = {"load": scheme.load}
    return {"order": scheme.order, **shape, **spans, "mode": dict(scheme.mode), **prediction.as_dict()}


def _add(pool: dict[tuple[Any, ...], Candidate], work: Workload, design: Machine, scheme: Scheme) -> None:
    """Costs a scheme, if it is legal and new."""
    key = _key(scheme)
    if key in pool:
        return
    try:
        scheme.validate(design, work.I, work.J, work.K)
    except SchemeError:
        return
    pool[key] = scheme, predict(work, design, scheme)


def _even(size: int, parts: int) -> int:
    """The side that cuts ``size`` into so many tiles of about one length.

    Of its bits only the first few are kept, rounded up: tiles of such sides are made of coarse ones that are counted already.
    """
    side = -(-size // max(1, min(parts, size)))
    grain = 1 << max(0, side.bit_length() - KEPT_BITS)
    return min(size, -(-side // grain) * grain)


def _kept_b(work: Workload, design: Machine, T_j: int, T_k: int) -> Scheme | None:
    """A streaming, B kept, i whole."""
    try:
        parts, fifo = default_partition(design, partial_rows=T_k < work.K)
    except SchemeError:
        return None
    mode = {"A": STREAMING, "B": BUFFERING, "C": STREAMING}
    return Scheme(
        policy="auto", order="ijk", T_i=work.I, T_j=T_j, T_k=T_k, buffer_bytes=parts, fifo_bytes=fifo, mode=mode
    )


def _by_occupancy(work: Workload, design: Machine) -> list[Scheme]:
    """One rank cut evenly, into as few tiles as let a given share of them overflow. Paper: Tailors, section 4.

    With k whole, j is cut, and the other way round. The number of tiles comes from the occupancies at the mean size, scaled
    linearly as Swiftiles does.
    """
    found = []
    room = RoomForB(design)
    for side, size, other in (("j", work.J, work.K), ("k", work.K, work.J)):
        capacity = room.capacity(other if side == "j" else room.most_rows_by_half(size))
        if capacity < 1 or work.b.nnz <= capacity:
            continue
        parts = -(-work.b.nnz // capacity)
        if parts >= size:
            continue
        even = _even(size, parts)
        occupancies = occupancy(work.b, *((other, even) if side == "j" else (even, other)))
        for share in QUANTILES:
            needed = min(size, max(2, round(parts * occupancies.quantile(share) / capacity)))
            for count in {needed, max(2, needed - 1), needed + 1}:
                T = _even(size, count)
                scheme = _kept_b(work, design, *((T, other) if side == "j" else (other, T)))
                if scheme is not None:
                    found.append(scheme)
    return found


def _around(work: Workload, design: Machine, best: Scheme) -> list[Scheme]:
    """Schemes whose sides cut a rank into a few tiles more or fewer, and other places for partial rows."""
    found = []
    sizes = {"i": work.I, "j": work.J, "k": work.K}
    counts = {rank: -(-size // best.tile(rank)) for rank, size in sizes.items()}
    if not best.buffers("B"):
        return []
    for rank, size in sizes.items():
        count = counts[rank]
        if count == 1:
            continue
        wanted = {count - 1, count, count + 1, round(0.7 * count), round(1.4 * count)}
        for n in sorted(wanted):
            if 1 <= n <= size:
                T = {r: _even(size, n) if r == rank else best.tile(r) for r in "ijk"}
                found.append(replace(best, T_i=T["i"], T_j=T["j"], T_k=T["k"]))
    if counts["k"] > 1 and not best.buffers("A") and not best.buffers("C"):
        line = design.line_bytes
        lines = design.buffer.bytes // line
        for share in (64, 256):
            try:
                parts, fifo = default_partition(design, lines_c=lines // share)
            except SchemeError:
                continue
            found.append(replace(best, buffer_bytes=parts, fifo_bytes=fifo))
    return found


def _varied(work: Workload, candidates: list[Candidate], most: int) -> list[Candidate]:
    """The cheapest of each way to cut first, then the next of each, so that those judged are not all of one kind.

    Of schemes that only share out the buffer differently the cheapest stands for all.
    """
    kinds: dict[tuple[bool, ...], list[Candidate]] = {}
    seen: set[tuple[Any, ...]] = set()
    for scheme, prediction in candidates:
        shape = _key(scheme)[:-1]
        if shape in seen:
            continue
        seen.add(shape)
        cut = scheme.T_i < work.I, scheme.T_j < work.J, scheme.T_k < work.K
        kinds.setdefault((*cut, scheme.buffers("A"), scheme.buffers("B")), []).append((scheme, prediction))
    order = sorted(
        ((rank, _cost(c), c) for group in kinds.values() for rank, c in enumerate(group)), key=lambda item: item[:2]
    )
    return [c for _, _, c in order[:most]]


def _judged(bench: Bench, candidates: list[Candidate], trusted: Candidate) -> list[Candidate]:
    """Fewest cycles in the model tier first; those last that cost too much to judge on enough rows.

    Schemes with i whole are judged on the same rows. What a sample says overrules ``trusted`` only by a margin.
    """
    whole = bench.work.I
    shares = [bench.share(s, p) for s, p in candidates]
    if max(shares) < LEAST_SHARE:
        return sorted(candidates, key=_cost)
    common = min(
        (of for (s, _), of in zip(candidates, shares, strict=True) if of >= LEAST_SHARE and s.T_i == whole), default=1.0
    )
    cycles = []
    for (scheme, prediction), of in zip(candidates, shares, strict=True):
        share = min(of, common) if scheme.T_i == whole else of
        found = bench.cycles(scheme, prediction, share) if of >= LEAST_SHARE else float("inf")
        trusts = scheme is trusted[0] or min(common, of) >= NEARLY_ALL
        cycles.append(found if trusts else found * (1 + MARGIN))
    order = sorted(range(len(candidates)), key=lambda n: (cycles[n], _cost(candidates[n])))
    return [candidates[n] for n in order]
