"""What ``auto`` and ``optimal`` promise, with the model tier as their judge."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import load_design
from sw.cost.candidates.evaluator import Bench
from sw.cost.candidates.tile_height import best_kept
from sw.cost.passes import NO_PASSES
from sw.cost.predict import predict
from sw.cost.sampling import rows_of, runs_of
from sw.model.judge import judge
from sw.plan.thresholds import TIE
from sw.policies.auto import _best_first, _on_chip, _one_tile
from sw.policies.registry import option_names, schedule
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition
from sw.stats.pattern import Pattern
from sw.stats.workload import Workload
from tests.sw.stats.matrices import MATRICES, banded, canonical, mesh, noise, power_law

TINY = load_design("tiny")
SMALL = load_design("edge", ["buffer.bytes=16384", "buffer.fifo_bytes=1024"])
OPERANDS = {
    "band": banded(500, 6),
    "mesh": mesh(20),
    "power_law": power_law(300),
    "noise": noise(250, 250, 0.03),
    "blocks": canonical(sp.block_diag([np.ones((25, 25))] * 12)),
}


def cycles(scheme, A, design=TINY):
    return judge(design)(scheme, Pattern.of(A), Pattern.of(A))


@pytest.mark.parametrize("design", [TINY, SMALL], ids=["tiny", "16K"])
@pytest.mark.parametrize("name", OPERANDS)
def test_auto_is_at_least_as_good_as_every_other_static_policy(name, design):
    A = OPERANDS[name]
    found = cycles(schedule("auto", A, A, design, judge=judge(design)), A, design)
    for other in ("prescient", "swiftiles", "hyte"):
        assert found <= 1.03 * cycles(schedule(other, A, A, design), A, design), other


@pytest.mark.parametrize("name", OPERANDS)
def test_auto_that_may_be_uneven_is_at_least_as_good_as_all(name):
    A = OPERANDS[name]
    scheme = schedule("auto", A, A, TINY, judge=judge(TINY), uneven=True)
    scheme.validate(TINY, A.shape[0], A.shape[1], A.shape[1])
    found = cycles(scheme, A)
    for other in ("drt", "harp", "d2t2", "auto"):
        assert found <= 1.03 * cycles(schedule(other, A, A, TINY, judge=judge(TINY)), A), other


def test_of_schemes_that_tie_the_one_of_fewest_bytes_comes_first():
    A = canonical(OPERANDS["mesh"])
    workload = Workload(A, A, lanes=TINY.lanes, statistics="rows", seed=0)
    candidates = [*_one_tile(workload, TINY), *best_kept("auto", workload, TINY)]
    fewest = min(candidates, key=lambda found: found[1].dram_bytes)[0]
    fastest = min(p.cycles for scheme, p in candidates if scheme is not fewest)

    def first(cycles: float) -> Scheme:
        """The scheme of fewest bytes takes so many cycles: which comes first?"""
        timed = [(s, replace(p, cycles=round(cycles)) if s is fewest else p) for s, p in candidates]
        return _best_first(timed)[0][0]

    assert first((1 + TIE / 2) * fastest) is fewest
    assert first(2 * fastest) is not fewest


def test_scratch_fibers_on_chip_are_tried_of_every_close_kind(monkeypatch):
    """A list half a percent better than the one tile leaves the tile its chance; what is three percent slower has none."""
    design = load_design("edge")
    workload = Workload(mesh(20), mesh(20), lanes=design.lanes, statistics="rows")
    scheme, prediction = _one_tile(workload, design)[-1]
    cycles = {"list": 1000, "tile": 1005, "reuse": 1030}
    found = [(replace(scheme, load=load), replace(prediction, cycles=n)) for load, n in cycles.items()]
    monkeypatch.setattr("sw.policies.auto.with_scratch", lambda workload, design, best, passes: best)
    assert [s.load for s, _ in _on_chip(workload, design, found, NO_PASSES)] == ["list", "tile"]


def test_auto_asks_nobody_where_there_is_no_judge():
    A = OPERANDS["band"]
    alone, judged = schedule("auto", A, A, TINY), schedule("auto", A, A, TINY, judge=judge(TINY))
    assert alone.cycles <= judged.cycles  # by the cost model, which decided
    assert cycles(judged, A) <= cycles(alone, A)


@pytest.mark.parametrize("effort", [1.0, 0.2, 0.001])
def test_a_grid_of_more_tiles_than_can_be_judged_is_not_given_up(effort):
    """F^T x F of a tall F: only tiles of k do, and running the model on so many of them costs more than the run."""
    F = noise(4000, 40, 0.5)
    transposed = F.T.tocsr()
    scheme = schedule("auto", transposed, F, SMALL, judge=judge(SMALL), effort=effort)
    found, beaten = (
        judge(SMALL)(s, Pattern.of(transposed), Pattern.of(F)) for s in (scheme, schedule("hyte", transposed, F, SMALL))
    )
    assert found <= 1.03 * beaten


def test_a_grid_that_costs_too_much_to_judge_is_taken_where_the_others_are_far_worse():
    """Of rows of A so long and so few the model tier sees a list, and no grid: one whose prediction is a third of that wins."""
    design = load_design("edge")
    thin = canonical(sp.random_array((64, 20000), density=0.3, rng=np.random.default_rng(3), format="csr"))
    other = sp.csr_array(thin.T.tocsr())
    found = schedule("auto", thin, other, design, judge=judge(design), effort=0.2)
    assert found.T_k < 2000 and "judged_cycles" not in found.predicted
    whole = schedule("auto", thin, other, design, load="list")
    cycles = [judge(design)(s, Pattern.of(thin), Pattern.of(other)) for s in (found, whole)]
    assert cycles[0] < 0.5 * cycles[1]


def test_auto_says_what_it_beat():
    A = OPERANDS["noise"]
    scheme = schedule("auto", A, A, TINY, judge=judge(TINY), finalists=3)
    assert scheme.policy == "auto"
    assert 1 <= len(scheme.alternatives) <= 3 + 5  # grids, B streamed, one tile, lists, planned places
    assert {"order", "T_i", "T_j", "T_k", "mode", "cycles", "dram_bytes"} <= set(scheme.alternatives[0])
    assert option_names("auto") == ["finalists", "effort", "uneven", "lists", "load"]


@pytest.mark.parametrize("name", OPERANDS)
@pytest.mark.parametrize("judged", [True, False])
def test_every_alternative_was_beaten_by_a_measure_that_both_have(name, judged):
    """On `tiny`, grids are predicted far below what they take; the model tier is what they lose by."""
    A = OPERANDS[name]
    model = judge(TINY)
    asked = {}

    def remembering(scheme, left, right):
        asked[scheme.order, scheme.T_i, scheme.T_j, scheme.T_k, scheme.load] = cycles = model(scheme, left, right)
        return cycles

    scheme = schedule("auto", A, A, TINY, judge=remembering if judged else None, finalists=3)
    mine = scheme.predicted
    assert ("judged_cycles" in mine) == bool(asked)
    for other in scheme.alternatives:
        if "judged_cycles" in other:
            assert other["judged_cycles"] >= mine["judged_cycles"]
            key = other["order"], other["T_i"], other["T_j"], other["T_k"], other.get("load", "tile")
            assert other["judged_cycles"] == asked[key]
        else:
            assert other["cycles"] >= mine["cycles"]


@pytest.mark.parametrize(
    "options", [{"finalists": 0}, {"effort": 0}, {"effort": "much"}, {"uneven": 1}, {"lists": 0}], ids=str
)
def test_auto_refuses_impossible_options(options):
    with pytest.raises(SchemeError, match=f"^scheme: option {next(iter(options))} = "):
        schedule("auto", MATRICES["one"], MATRICES["one"], TINY, **options)


@pytest.mark.parametrize("name", ["band", "mesh", "noise"])
def test_a_sample_of_the_rows_says_about_what_all_rows_say(name):
    A = {"band": banded(6000, 6), "mesh": mesh(80), "noise": noise(6000, 6000, 0.002)}[name]
    workload = Workload(A, A, lanes=SMALL.lanes)
    bench = Bench(workload, SMALL, judge(SMALL), units=1.0)
    for T_i, T_k in ((6400, 6400), (6400, 2000), (500, 500)):
        parts, fifo = default_partition(SMALL, partial_rows=True)
        mode = {"A": "streaming", "B": "buffering" if T_k < 6400 else "streaming", "C": "streaming"}
        scheme = Scheme(
            policy="x",
            order="ijk",
            T_i=T_i,
            T_j=6400,
            T_k=min(T_k, 700),
            buffer_bytes=parts,
            fifo_bytes=fifo,
            mode=mode,
        ).clip(A.shape[0], A.shape[0], A.shape[0])
        prediction = predict(workload, SMALL, scheme)
        assert bench.cycles(scheme, prediction, 0.2) == pytest.approx(bench.cycles(scheme, prediction, 1.0), rel=0.12)


def test_sampled_rows_are_rows_of_the_matrix():
    A = power_law(500)
    part = rows_of(Pattern.of(A), runs_of(500, 130, 32))
    assert 96 <= part.rows <= 160
    starts = {tuple(row) for row in np.split(A.indices, A.indptr[1:-1])}
    for row in np.split(part.coordinates, part.pointers[1:-1]):
        assert tuple(row) in starts
    whole = rows_of(Pattern.of(A), runs_of(500, 500, 32))
    assert whole.rows == 500 and np.array_equal(whole.coordinates, A.indices)


@pytest.mark.parametrize("name", ["band", "noise"])
def test_optimal_is_not_beaten_inside_its_space(name):
    A = canonical(OPERANDS[name][:6, :6])
    best = schedule("optimal", A, A, TINY, judge=judge(TINY), budget=10_000)
    assert best.cycles == cycles(best, A)
    for other in ("hyte",):
        assert best.cycles <= cycles(schedule(other, A, A, TINY), A)
    for T_k in (2, 4, 6):
        try:
            scheme = replace(best, T_k=T_k, order="kij")
            scheme.validate(TINY, 6, 6, 6)
        except SchemeError:
            continue
        if scheme.mode["C"] == "streaming" and (T_k == 6) == (best.T_k == 6):  # else the split would differ
            assert best.cycles <= cycles(scheme, A)


def test_optimal_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    A = canonical(OPERANDS["mesh"][:100, :100])
    state = tmp_path / "state.jsonl"
    asked = []

    def counting(scheme, a, b):
        # What other policies choose, and what they ask the model, is not of the budget.
        if scheme.policy == "optimal":
            asked.append(scheme)
        if len(asked) == 7:
            raise KeyboardInterrupt
        return judge(TINY)(scheme, a, b)

    with pytest.raises(KeyboardInterrupt):
        schedule("optimal", A, A, TINY, judge=counting, budget=12, state=str(state))
    assert len(state.read_text().splitlines()) == 6
    with state.open("a") as file:
        file.write('{"for": "cut sh')  # as an interruption leaves it
    resumed = schedule("optimal", A, A, TINY, judge=counting, budget=6, state=str(state))
    assert len(asked) == 7 + 6
    whole = schedule("optimal", A, A, TINY, judge=judge(TINY), budget=12)
    assert replace(resumed, seconds=0.0) == replace(whole, seconds=0.0)
    entries = [json.loads(line)["cycles"] for line in state.read_text().splitlines()[:6]]
    assert whole.cycles <= min(entries)
    # Another pair of operands has results of its own.
    B = canonical(OPERANDS["band"][:100, :100])
    schedule("optimal", B, B, TINY, judge=counting, budget=2, state=str(state))
    assert len(asked) == 7 + 6 + 2
    # So has another model: what an older one said is not taken for its word.
    monkeypatch.setattr("sw.policies.optimal.source_digest", lambda packages: "another")
    schedule("optimal", B, B, TINY, judge=counting, budget=2, state=str(state))
    assert len(asked) == 7 + 6 + 2 + 2


def test_results_of_an_older_model_are_told_by_all_of_its_source(monkeypatch):
    """Every room that the model and the decisions import is in the digest that kept results carry."""
    asked = []
    monkeypatch.setattr("sw.policies.optimal.source_digest", lambda packages: asked.extend(packages) or "digest")
    A = canonical(OPERANDS["mesh"][:20, :20])
    schedule("optimal", A, A, TINY, judge=judge(TINY), budget=1)
    root = Path(__file__).parents[3]
    used = {"sw.model", "sw.stats", "sw.policies", "sw.cost", "sw.plan", "sw.scheme", "sw.timing"}
    for room in ("sw/model", "sw/stats", "sw/policies", "sw/cost", "sw/plan", "sw/scheme", "sw/timing"):
        for path in (root / room).rglob("*.py"):
            used |= set(re.findall(r"^ *from (sw\.[\w.]+) import", path.read_text(encoding="utf-8"), re.MULTILINE))
    assert "sw.golden.tuning" in used
    for module in used:
        assert any(module == package or module.startswith(f"{package}.") for package in asked), module


def test_optimal_needs_a_judge_and_a_budget():
    A = MATRICES["one"]
    with pytest.raises(SchemeError, match="^scheme: policy = 'optimal': must be used where the model tier can be run$"):
        schedule("optimal", A, A, TINY)
    with pytest.raises(SchemeError, match="^scheme: option budget = 0: "):
        schedule("optimal", A, A, TINY, judge=judge(TINY), budget=0)
