"""Replays of tiles that keep rows of B: they say what the model tier says, and heights found with them are about the best."""

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import load_design
from sw.cost.candidates.resident import kept_scheme, listed_schemes
from sw.cost.candidates.tile_height import FEWEST_ROWS, best_kept
from sw.cost.predict import predict, predict_whole, work_rows
from sw.cost.replay import RowWork
from sw.golden.partition import Partition
from sw.model.judge import judge
from sw.plan.gather import _positions, _rise
from sw.plan.plan import plan
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition
from sw.scheme.terms import BUFFERING, STREAMING
from sw.stats.pattern import Pattern
from sw.stats.workload import Workload
from tests.sw.stats.matrices import banded, canonical, mesh, noise, power_law

from .test_listed import shuffled

EDGE = load_design("edge", ["pe.value=fp32"])
SMALL = load_design("edge", ["pe.value=fp32", "buffer.bytes=16384", "buffer.fifo_bytes=1024"])
TINY = load_design("tiny")
# Records of two to eight bytes, so that lines, not beats, bound most of what moves.
NARROW = {
    value: load_design(
        "edge", [f"pe.value={value}", "memory.records=packed", "buffer.bytes=16384", "buffer.fifo_bytes=1024"]
    )
    for value in ("int8", "bf16", "fp32")
}
OPERANDS = {
    "band": banded(1500, 5),
    "shuffled": shuffled(1200, 5, 3),
    "mesh": mesh(40),
    "noise": noise(700, 700, 0.01),
    "power law": power_law(600),
    "long rows": noise(300, 300, 0.35),
    "oblong": noise(400, 1200, 0.01),
}


def pair(name: str) -> tuple[sp.csr_array, sp.csr_array]:
    A = OPERANDS[name]
    return A, A if A.shape[0] == A.shape[1] else canonical(sp.csr_array(A.T))


def one_tile(design, workload: Workload, kept: str) -> Scheme:
    parts, fifo = default_partition(design)
    mode = {"A": STREAMING, "B": kept, "C": STREAMING}
    return Scheme(
        policy="x",
        order="ijk",
        T_i=workload.I,
        T_j=workload.J,
        T_k=workload.K,
        buffer_bytes=parts,
        fifo_bytes=fifo,
        mode=mode,
    )


@pytest.mark.parametrize("design", [SMALL, EDGE, *NARROW.values()], ids=["16K", "edge", *NARROW])
@pytest.mark.parametrize("name", OPERANDS)
def test_cycles_are_about_those_of_the_model(name: str, design) -> None:
    A, B = pair(name)
    workload = Workload(A, B, lanes=design.lanes, statistics="exact")
    found = listed_schemes("x", workload, design)[:8][:4]
    for kept in (STREAMING, BUFFERING):
        scheme = one_tile(design, workload, kept)
        found.append((scheme, predict_whole(workload, design, scheme)))
    for scheme, prediction in found:
        expected = judge(design)(scheme, workload.a, workload.b)
        assert prediction.cycles == pytest.approx(expected, rel=0.08), (scheme.load, scheme.T_i, scheme.mode)


@pytest.mark.parametrize("design", [SMALL, TINY], ids=["16K", "tiny"])
@pytest.mark.parametrize("name", OPERANDS)
def test_the_climb_ends_near_the_best_height(name: str, design) -> None:
    A, B = pair(name)
    workload = Workload(A, B, lanes=design.lanes, statistics="exact")
    found = best_kept("x", workload, design)
    every = [p.cycles for _, p in listed_schemes("x", workload, design)]
    assert bool(found) == bool(every)
    for scheme, prediction in found:
        scheme.validate(design, workload.I, workload.J, workload.K)
        assert prediction == predict(workload, design, scheme)
    alone = [predict_whole(workload, design, one_tile(design, workload, STREAMING)).cycles]
    if Partition(lines=design.buffer.bytes // design.line_bytes - 100, lanes=2).data_lines(workload.K) > 0:
        alone.append(predict_whole(workload, design, one_tile(design, workload, BUFFERING)).cycles)
    assert min([p.cycles for _, p in found] + alone) <= 1.06 * min([*every, *alone])


def test_a_large_operand_is_climbed_on_some_of_its_rows(monkeypatch) -> None:
    workload = Workload(OPERANDS["mesh"], OPERANDS["mesh"], lanes=SMALL.lanes, statistics="exact")
    whole = best_kept("x", workload, SMALL)
    monkeypatch.setattr("sw.cost.candidates.tile_height.SEARCHED", workload.a.nnz // 4)
    part = best_kept("x", workload, SMALL)
    assert min(p.cycles for _, p in part) <= 1.1 * min(p.cycles for _, p in whole)


def test_what_is_found_loads_what_it_uses() -> None:
    workload = Workload(OPERANDS["band"], OPERANDS["band"], lanes=SMALL.lanes)
    assert [s.gathers for s, _ in best_kept("x", workload, SMALL)] == [True]


@pytest.mark.parametrize("A", [noise(2 * FEWEST_ROWS - 1, 30, 0.3), sp.csr_array((100, 100), dtype=np.float64)])
def test_there_are_none_for_few_rows_or_nothing(A: sp.csr_array) -> None:
    workload = Workload(canonical(A), canonical(noise(A.shape[1], 20, 0.1)), lanes=TINY.lanes)
    assert best_kept("x", workload, TINY) == []


def test_some_rows_keep_what_each_has_to_do() -> None:
    workload = Workload(OPERANDS["power law"], OPERANDS["power law"], lanes=2, statistics="exact")
    rows = work_rows(workload, SMALL)
    assert rows.nonzeros.sum() == pytest.approx(workload.nnz_c, rel=0.02)
    assert ((rows.group_results > 0) == (workload.a.row_lengths > SMALL.pe.merge_radix)).all()
    picked = np.array([3, 5, 400])
    few: RowWork = rows.of(picked)
    assert (
        few.a.rows == 3
        and (few.macs == rows.macs[picked]).all()
        and (few.group_results == rows.group_results[picked]).all()
    )


@pytest.mark.parametrize("seed", range(5))
def test_numbers_are_sorted_through_a_map_of_bits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    words, groups = np.zeros(300, np.uint64), np.zeros(6, np.uint64)
    for count in (0, 1, 5, 12, 13, 63, 64, 200, 4000):
        numbers = rng.choice(300 * 64, count, replace=False).astype(np.int64)
        expected = np.sort(numbers)
        _rise(numbers, count, words, groups, _positions)
        assert (numbers == expected).all() and not words.any() and not groups.any()


def test_a_plan_without_places_is_the_same_otherwise() -> None:
    a = Pattern.of(OPERANDS["shuffled"])
    scheme = kept_scheme("x", Workload(a, a, lanes=2), SMALL, 30)
    full, bare = (plan(scheme, a, a, SMALL, with_places=flag).rows_of_b for flag in (True, False))
    assert full is not None and bare is not None and full.rows is not None and bare.rows is not None
    assert len(bare.places) == 0 and len(full.places) == a.nnz
    assert (full.rows == bare.rows).all() and (full.windows == bare.windows).all()
    assert (full.line == bare.line).all() and (full.placed == bare.placed).all() and (full.early == bare.early).all()
