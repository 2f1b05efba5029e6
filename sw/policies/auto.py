"""Ours: what the other papers know, tiles that keep rows of B, and the model tier where grids come near.

Schemes that leave k and j whole (one tile, B streamed, lists) are costed by a replay of their rows, which is near
the model tier and cheap. From HYTE the space of shapes, orders and splits, from Swiftiles the sizes at which given shares of
the tiles overflow, from D2T2 shapes with i cut as well: of these grids only those are looked at whose bound says that they may
win. Rows of those that come near are replayed as well, and the best are run in the model tier beside the best of the others.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import scipy.sparse as sp

from sw.cost.candidates.evaluator import NEARLY_ALL, Bench, Judge
from sw.cost.candidates.grids import ranked
from sw.cost.candidates.scratch_share import with_scratch
from sw.cost.candidates.share_of_b import ShareOfB
from sw.cost.candidates.strip_width import best_strips
from sw.cost.candidates.super_tiles import super_tiles
from sw.cost.candidates.tile_height import best_kept
from sw.cost.partial_rows import cheaper
from sw.cost.passes import NO_PASSES, Passes
from sw.cost.predict import Prediction, predict, predict_rows, predict_whole
from sw.cost.protocol import Machine
from sw.plan.thresholds import (
    BYPASS_CLOSE,
    FINALISTS,
    GRID_CLOSE,
    GRID_COMPARABLE,
    GRID_OF_ANOTHER_KIND,
    GRID_QUANTILES,
    GRID_ROUNDS,
    JUDGED_UNITS,
    JUDGED_UNITS_A_CYCLE,
    KEPT_BITS,
    MOST_JUDGED_UNITS,
    ON_CHIP_CLOSE,
    PLANNED_MARGIN,
    PSEUDO_TILES,
    REPLAY_CLOSE,
    REPLAYED_GRIDS,
    SAMPLE_LEAST_SHARE,
    SAMPLE_MARGIN,
    STREAMED_MARGIN,
    STRIP_FAR,
    TIE,
    UNUSED,
)
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition, shared_buffer
from sw.scheme.terms import BUFFERING, GATHERS, LOAD_PLANNED, LOAD_REUSE, STREAMING
from sw.stats.occupancy import occupancy
from sw.stats.workload import Workload

__all__ = ["auto"]


Candidate = tuple[Scheme, Prediction]
# Cycles by the model tier of those candidates that were judged, by their `_key`.
Judged = dict[tuple[Any, ...], int]


def auto(
    A: sp.csr_array,
    B: sp.csr_array,
    design: Machine,
    *,
    seed: int = 0,
    judge: Judge | None = None,
    passes: Passes = NO_PASSES,
    finalists: int = FINALISTS,
    effort: float = 1.0,
    uneven: bool = False,
    lists: bool = True,
    load: str | None = None,
    **options: Any,
) -> Scheme:
    """The best scheme that the hardware can run.

    Parameters
    ----------
    judge: cycles by the model tier; without it the cost model alone decides.
    passes: conversions before and after the run. Lists need none of A, and are no candidates where the host cannot write A anew.
    finalists: how many candidates of a grid are judged at most. effort: multiplies what judging may cost.
    lists: tiles that load the rows of B that they use, and keep them for the next (:mod:`sw.plan.gather`), are candidates, and
        such tiles of strips (:mod:`sw.cost.candidates.strip_width`), where rows of C are long.
    load: one of ``GATHERS``: of tiles that load what they use those that keep rows in this way, and nothing else.
    uneven: super-tiles along i that load what they use are candidates too, which no hardware runs.
    """
    if options:
        raise TypeError(f"auto takes the options finalists, effort, uneven, lists and load, not {', '.join(options)}")
    if isinstance(finalists, bool) or not isinstance(finalists, int) or finalists < 1:
        raise SchemeError("option finalists", finalists, "an integer of at least 1")
    if isinstance(effort, bool) or not isinstance(effort, (int, float)) or not effort > 0:
        raise SchemeError("option effort", effort, "a number above 0")
    for name, flag in (("uneven", uneven), ("lists", lists)):
        if not isinstance(flag, bool):
            raise SchemeError(f"option {name}", flag, "true or false")
    if load is not None and load not in GATHERS:
        raise SchemeError("load", load, f"one of {', '.join(GATHERS)}")
    workload = Workload(A, B, lanes=design.lanes, statistics="rows", seed=seed)
    if load is not None:
        return _of_load(workload, design, load, passes)

    lists, modelled = lists and not passes.fixes_a, judge is not None

    def evened(best: Scheme) -> Scheme:
        return _less_even(workload, design, best, judge, passes) if uneven and not passes.fixes_a else best

    whole = _converted(_one_tile(workload, design), passes)
    # Without products nothing of B moves: cutting k would add steps and save none.
    settled = workload.effmac == 0 or _nothing_moves_twice(workload, design, whole[-1])
    found = _best_first(whole)
    if lists and (passes.a.alone.cycles or not settled):
        found = _best_first([*whole, *_converted(best_kept("auto", workload, design, judged=modelled), passes)])
    if settled:
        # Rows of B that few rows of A use may still come sooner from where they are, and lists need no pass over A.
        return evened(_chosen(workload, found, {}))
    strips = best_strips("auto", workload, design, found[0][1], judged=modelled) if lists else []
    strips = _converted(strips, passes)
    found = _best_first([*found, *strips])
    spans = any(s.gathers for s, _ in found)
    found = _best_first([*found, *_on_chip(workload, design, found, passes)])
    if lists and not strips and effort > 1:
        found = _best_first([*found, *_for_long_fibers(workload, design, found[0], passes)])
    limit = (GRID_COMPARABLE if spans else GRID_OF_ANOTHER_KIND) * found[0][1].cycles - passes.least_cycles
    grids = _replayed(workload, design, _grids(workload, design, limit, passes, tile_i=not spans), passes)
    # Predictions are good enough within a kind, not from kind to kind.
    near = sorted([*_kinds(found), *_varied(workload, grids, finalists)], key=_cost)
    judged: Judged = {}
    if judge is not None and len(near) > 1:
        near, judged = _judged(Bench(workload, design, judge, _units(near, effort)), near, found[0])
    chosen = [*near, *(c for c in found if c not in near)] if grids or judged else found
    return evened(_chosen(workload, chosen, judged))


def _of_load(workload: Workload, design: Machine, load: str, passes: Passes) -> Scheme:
    """The best tiles that keep rows of B in this way."""
    found = _converted(best_kept("auto", workload, design, load=load), passes)
    if not found:
        raise SchemeError(
            "load", load, "left out: A has few rows or no nonzeros, or B's partition is too small for what they use"
        )
    on_chip = with_scratch(workload, design, found[0], passes)
    return _chosen(workload, [*([] if on_chip is None else [on_chip]), *found], {})


def _converted(candidates: list[Candidate], passes: Passes) -> list[Candidate]:
    """With the conversions that each decides on."""
    return [(scheme, prediction.plus(passes.over(scheme))) for scheme, prediction in candidates]


def _one_tile(workload: Workload, design: Machine) -> list[Candidate]:
    """B streamed, and all of it in one tile, as far as it fits, where its metadata leave a line."""
    parts, fifo = default_partition(design)
    found = []
    for kept in (STREAMING, BUFFERING):
        mode = {"A": STREAMING, "B": kept, "C": STREAMING}
        scheme = Scheme(
            policy="auto",
            order="ijk",
            T_i=workload.I,
            T_j=workload.J,
            T_k=workload.K,
            buffer_bytes=parts,
            fifo_bytes=fifo,
            mode=mode,
        )
        try:
            scheme.validate(design, workload.I, workload.J, workload.K)
        except SchemeError:
            continue
        found.append((scheme, predict_whole(workload, design, scheme)))
    return found


def _for_long_fibers(workload: Workload, design: Machine, best: Candidate, passes: Passes) -> list[Candidate]:
    """Strips in which fewer fibers of long rows meet, where these are far better: predictions of strips are low."""
    strips = _converted(best_strips("auto", workload, design, best[1], judged=True, thorough=True), passes)
    found = [*strips, *(c for s in strips if (c := with_scratch(workload, design, s, passes)) is not None)]
    return [c for c in found if c[1].cycles < (1 - STRIP_FAR) * best[1].cycles]


def _margin(scheme: Scheme) -> float:
    """By what share its cycles are low, by the model tier and by prediction."""
    if scheme.load == LOAD_PLANNED:
        return PLANNED_MARGIN
    return 0.0 if scheme.buffers("B") else STREAMED_MARGIN


def _kinds(found: list[Candidate]) -> list[Candidate]:
    """The best of each way to leave j and k whole, where a replay cannot tell it from the best of all, which comes first."""
    best: dict[tuple[str, bool, bool], Candidate] = {}
    for scheme, prediction in found:
        best.setdefault((scheme.load, scheme.strips > 0, scheme.buffers("B")), (scheme, prediction))
    close = BYPASS_CLOSE if found[0][0].load == LOAD_REUSE else REPLAY_CLOSE
    return [c for c in best.values() if c[1].cycles <= close * (1 + _margin(found[0][0])) * found[0][1].cycles]


def _on_chip(workload: Workload, design: Machine, found: list[Candidate], passes: Passes) -> list[Candidate]:
    """The best, and those of other kinds next to it, with scratch fibers on chip, where that gains something."""
    most = ON_CHIP_CLOSE * (1 + _margin(found[0][0])) * found[0][1].cycles
    tried = (with_scratch(workload, design, c, passes) for c in _kinds(found) if c[1].cycles <= most)
    return [candidate for candidate in tried if candidate is not None]


def _grids(workload: Workload, design: Machine, limit: float, passes: Passes, tile_i: bool) -> list[Candidate]:
    """Schemes that cut k or j, or all three with ``tile_i``, near the best of them and not above ``limit`` cycles.

    Cycles have those of conversions that not every scheme needs.
    """

    def converted(scheme: Scheme, prediction: Prediction) -> Prediction:
        over = passes.over(scheme)
        return prediction.plus(replace(over, cycles=over.cycles - passes.least_cycles))

    def cost(workload: Workload, design: Machine, scheme: Scheme) -> Prediction:
        return converted(scheme, predict(workload, design, scheme))

    costed = [(s, converted(s, p)) for s, p in ranked(workload, design, tile_i=tile_i, at_most=limit)]
    found = [c for c in costed if _cut(workload, c[0]) and c[1].cycles <= limit]
    if not found:
        return []
    pool = {_key(s): (s, p) for s, p in found}
    for scheme in _by_occupancy(workload, design):
        _add(pool, workload, design, scheme, cost)
    for _ in range(GRID_ROUNDS):
        best = min(pool.values(), key=_cost)
        for scheme in _around(workload, design, best[0]):
            _add(pool, workload, design, scheme, cost)
        if min(map(_cost, pool.values())) == _cost(best):
            break
    return [c for c in _close(list(pool.values())) if c[1].cycles <= limit and _cut(workload, c[0])]


def _replayed(workload: Workload, design: Machine, grids: list[Candidate], passes: Passes) -> list[Candidate]:
    """Some of each way to cut, and those around the best, with rows of their tiles replayed.

    The closed form takes PEs to be busy all the time, and so likes smaller tiles.
    """

    def cost(workload: Workload, design: Machine, scheme: Scheme) -> Prediction:
        return predict_rows(workload, design, scheme).plus(passes.over(scheme))

    pool: dict[tuple[Any, ...], Candidate] = {}
    for scheme, _ in _varied(workload, grids, REPLAYED_GRIDS):
        _add(pool, workload, design, scheme, cost)
    if pool:
        for scheme in _around(workload, design, min(pool.values(), key=_cost)[0]):
            _add(pool, workload, design, scheme, cost)
    return _close([c for c in pool.values() if _cut(workload, c[0])])


def _cut(workload: Workload, scheme: Scheme) -> bool:
    return scheme.tiles_per_rank(workload.I, workload.J, workload.K) != (1, 1, 1)


def _units(candidates: list[Candidate], effort: float) -> float:
    """Effort that judging one of them may cost: all together about as much as the run takes, and no more than a ceiling."""
    run = JUDGED_UNITS_A_CYCLE * min(p.cycles for _, p in candidates)
    return effort * min(max(JUDGED_UNITS, run), MOST_JUDGED_UNITS) / len(candidates)


def _close(candidates: list[Candidate]) -> list[Candidate]:
    """Those near the best, which comes first."""
    least = min((p.cycles for _, p in candidates), default=0)
    return sorted((c for c in candidates if c[1].cycles <= GRID_CLOSE * least), key=_cost)


def _less_even(workload: Workload, design: Machine, best: Scheme, judge: Judge | None, passes: Passes) -> Scheme:
    """Super-tiles with all of the buffer for B, for which the host writes A anew, where they are better."""
    candidates = [best]
    for pseudo in PSEUDO_TILES:
        candidates.append(super_tiles("auto", workload, design, shared_buffer(design, 0.0, 0.0), pseudo))
    if judge is None:
        return min(candidates, key=lambda s: s.predicted["cycles"])
    return min(candidates, key=lambda s: passes.over(s).whole(judge(s, workload.a, workload.b)))


def _chosen(workload: Workload, candidates: list[Candidate], judged: Judged) -> Scheme:
    """The first. Its alternatives are those of the others that it beat by a measure which both of them have.

    That is the model tier where both were judged, else the prediction. Where the model tier had a say, predictions are only
    compared within a kind: those of grids, or those of schemes that leave k and j whole.
    """
    scheme, prediction = candidates[0]
    mine = judged.get(_key(scheme))
    alternatives = []
    for other, predicted in candidates[1:]:
        theirs = judged.get(_key(other))
        if mine is not None and theirs is not None:
            beaten = theirs >= mine
        else:
            alike = not judged or _is_grid(workload, other) == _is_grid(workload, scheme)
            beaten = alike and predicted.cycles >= prediction.cycles
        if beaten:
            alternatives.append(_summary(other, predicted, theirs))
    return replace(scheme, policy="auto", predicted=prediction.as_dict() | _as_judged(mine), alternatives=alternatives)


def _is_grid(workload: Workload, scheme: Scheme) -> bool:
    """Whether its prediction is a grid's: all others are replayed row by row."""
    return not scheme.gathers and _cut(workload, scheme)


def _as_judged(cycles: int | None) -> dict[str, int]:
    return {} if cycles is None else {"judged_cycles": cycles}


def _nothing_moves_twice(workload: Workload, design: Machine, candidate: Candidate) -> bool:
    """One tile that fits, of which nearly all is used, and no row that needs more than one job: no scheme can move less."""
    scheme, prediction = candidate
    short = int(workload.a.row_lengths.max(initial=0)) <= design.pe.merge_radix
    used = int(workload.b.row_lengths[workload.uses > 0].sum())
    fits = scheme.buffers("B") and prediction.overbooked == 0
    return fits and short and workload.b.nnz - used <= UNUSED * workload.b.nnz


def _key(scheme: Scheme) -> tuple[Any, ...]:
    return (
        scheme.order,
        scheme.T_i,
        scheme.T_j,
        scheme.T_k,
        scheme.load,
        scheme.strips,
        tuple(scheme.mode.values()),
        tuple(scheme.buffer_bytes.values()),
        scheme.scratch_bytes,
    )


def _cost(candidate: Candidate) -> tuple[int, int, tuple[Any, ...]]:
    return candidate[1].cycles, candidate[1].dram_bytes, _key(candidate[0])


def _best_first(candidates: list[Candidate]) -> list[Candidate]:
    """By cycles, but for the first: of those that tie with the fewest cycles it moves the fewest bytes."""
    by_cycles = sorted(candidates, key=_cost)
    ties = [c for c in by_cycles if c[1].cycles <= (1 + TIE) * by_cycles[0][1].cycles]
    best = min(ties, key=lambda c: c[1].dram_bytes)
    return [best, *(c for c in by_cycles if c is not best)]


def _summary(scheme: Scheme, prediction: Prediction, judged: int | None) -> dict[str, Any]:
    shape = {f"T_{rank}": scheme.tile(rank) for rank in "ijk"}
    spans = {"load": scheme.load} if scheme.gathers else {}
    return {
        "order": scheme.order,
        **shape,
        **spans,
        "mode": dict(scheme.mode),
        **prediction.as_dict(),
        **_as_judged(judged),
    }


def _add(
    pool: dict[tuple[Any, ...], Candidate],
    workload: Workload,
    design: Machine,
    scheme: Scheme,
    cost: Callable[[Workload, Machine, Scheme], Prediction],
) -> None:
    """Costs a scheme, if it is legal and new."""
    key = _key(scheme)
    if key in pool:
        return
    try:
        scheme.validate(design, workload.I, workload.J, workload.K)
    except SchemeError:
        return
    pool[key] = cheaper(workload, design, scheme, cost)


def _even(size: int, parts: int) -> int:
    """The side that cuts ``size`` into so many tiles of about one length.

    Of its bits only the first few are kept, rounded up: tiles of such sides are made of coarse ones that are counted already.
    """
    side = -(-size // max(1, min(parts, size)))
    grain = 1 << max(0, side.bit_length() - KEPT_BITS)
    return min(size, -(-side // grain) * grain)


def _kept_b(workload: Workload, design: Machine, T_j: int, T_k: int) -> Scheme | None:
    """A streaming, B kept, i whole."""
    try:
        parts, fifo = default_partition(design, partial_rows=T_k < workload.K)
    except SchemeError:
        return None
    mode = {"A": STREAMING, "B": BUFFERING, "C": STREAMING}
    return Scheme(
        policy="auto", order="ijk", T_i=workload.I, T_j=T_j, T_k=T_k, buffer_bytes=parts, fifo_bytes=fifo, mode=mode
    )


def _by_occupancy(workload: Workload, design: Machine) -> list[Scheme]:
    """One rank cut evenly, into as few tiles as let a given share of them overflow. Paper: Tailors, section 4.

    With k whole, j is cut, and the other way round. The number of tiles comes from the occupancies at the mean size, scaled
    linearly as Swiftiles does.
    """
    found = []
    share_of_b = ShareOfB(design)
    for side, size, other in (("j", workload.J, workload.K), ("k", workload.K, workload.J)):
        capacity = share_of_b.capacity(other if side == "j" else share_of_b.most_rows_by_half(size))
        if capacity < 1 or workload.b.nnz <= capacity:
            continue
        parts = -(-workload.b.nnz // capacity)
        if parts >= size:
            continue
        even = _even(size, parts)
        occupancies = occupancy(workload.b, *((other, even) if side == "j" else (even, other)))
        for share in GRID_QUANTILES:
            needed = min(size, max(2, round(parts * occupancies.quantile(share) / capacity)))
            for count in {needed, max(2, needed - 1), needed + 1}:
                T = _even(size, count)
                scheme = _kept_b(workload, design, *((T, other) if side == "j" else (other, T)))
                if scheme is not None:
                    found.append(scheme)
    return found


def _around(workload: Workload, design: Machine, best: Scheme) -> list[Scheme]:
    """Schemes whose sides cut a rank into a few tiles more or fewer, and other places for partial rows.

    Where C is kept, the same with C's place given to B too, in which larger tiles fit.
    """
    found = []
    sizes = {"i": workload.I, "j": workload.J, "k": workload.K}
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
                if best.buffers("C") and (streamed := _kept_b(workload, design, T["j"], T["k"])) is not None:
                    found.append(streamed)
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


def _varied(workload: Workload, candidates: list[Candidate], most: int) -> list[Candidate]:
    """The cheapest of each way to cut first, then the next of each, so that those judged are not all of one kind.

    Of schemes that only share out the buffer differently the cheapest stands for all.
    """
    kinds: dict[tuple[bool, ...], list[Candidate]] = {}
    seen: set[tuple[Any, ...]] = set()
    for scheme, prediction in candidates:
        shape = _key(scheme)[:-2]
        if shape in seen:
            continue
        seen.add(shape)
        cut = scheme.T_i < workload.I, scheme.T_j < workload.J, scheme.T_k < workload.K
        kinds.setdefault((*cut, scheme.buffers("A"), scheme.buffers("B")), []).append((scheme, prediction))
    order = sorted(
        ((rank, _cost(c), c) for group in kinds.values() for rank, c in enumerate(group)), key=lambda item: item[:2]
    )
    return [c for _, _, c in order[:most]]


def _judged(bench: Bench, candidates: list[Candidate], trusted: Candidate) -> tuple[list[Candidate], Judged]:
    """Fewest cycles in the model tier first; those last that cost too much to judge on enough rows. And what it said.

    Schemes with i whole are judged on the same rows. What a sample says overrules ``trusted`` only by a margin; so does the
    prediction of a grid where no grid at all can be judged. Planned places and B streamed, whose cycles are low, need margins.
    """
    whole = bench.workload.I
    shares = [bench.share(s, p) for s, p in candidates]
    if max(shares) < SAMPLE_LEAST_SHARE:
        return sorted(candidates, key=_cost), {}
    common = min(
        (of for (s, _), of in zip(candidates, shares, strict=True) if of >= SAMPLE_LEAST_SHARE and s.T_i == whole),
        default=1.0,
    )
    by_grids = any(
        of >= SAMPLE_LEAST_SHARE and _is_grid(bench.workload, s) for (s, _), of in zip(candidates, shares, strict=True)
    )
    cycles = []
    judged: Judged = {}
    for (scheme, prediction), of in zip(candidates, shares, strict=True):
        share = min(of, common) if scheme.T_i == whole else of
        found = float("inf") if by_grids else float(prediction.cycles)
        if of >= SAMPLE_LEAST_SHARE:
            found = bench.cycles(scheme, prediction, share)
            judged[_key(scheme)] = round(found)
        trusts = scheme is trusted[0] or min(common, of) >= NEARLY_ALL
        cycles.append(found * (1 + _margin(scheme)) * (1.0 if trusts else 1 + SAMPLE_MARGIN))
    order = sorted(range(len(candidates)), key=lambda n: (cycles[n], _cost(candidates[n])))
    return [candidates[n] for n in order], judged
