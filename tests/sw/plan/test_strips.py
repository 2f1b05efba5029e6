"""Strips of rows of C: what they hold, how they fill tiles, what they cost, and when ``auto`` makes them."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import Design, load_design
from sw.cost.candidates.resident import kept_scheme
from sw.cost.candidates.strip_width import best_strips
from sw.cost.predict import predict, predict_whole
from sw.formats.csr import Csr
from sw.model.judge import judge
from sw.model.tier import simulate
from sw.operands import to_csr
from sw.operands.operand import Operand, canonical_csr
from sw.plan.gather import RowPlanError
from sw.plan.plan import plan
from sw.plan.strips import Strips, cut_strips, most_used
from sw.policies.registry import schedule
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.stats.pattern import Pattern
from sw.stats.workload import Workload
from tests.sw.stats.matrices import banded, canonical, noise, power_law

SHORT_QUEUES = load_design("edge", ["pe.queue_lines=32"])  # 64 elements
FULL = np.zeros((50, 60))
FULL[np.arange(50), np.arange(50)] = 1
FULL[[7, 31]] = 1

PAIRS = {
    "noise": (noise(40, 30, 0.2), noise(30, 50, 0.2)),
    "band": (banded(60, 3), banded(60, 3)),
    "graph": (power_law(80), power_law(80)),
    "a full row": (canonical(sp.csr_array(FULL)), noise(60, 50, 0.1)),
    "nothing in A": (sp.csr_array((5, 30)), noise(30, 50, 0.2)),
    "nothing in B": (noise(40, 30, 0.2), sp.csr_array((30, 50))),
    "hollow": (noise(40, 30, 0.02), noise(30, 50, 0.02)),
}


def csr(matrix: sp.csr_array) -> Csr:
    return to_csr(Operand(name="A", source="here", matrix=canonical_csr(matrix, "A")), "fp32")


def long_fibers(rows: int = 600) -> sp.csr_array:
    """Rows of three elements that point to twenty long rows: all rows of C are long."""
    rng = np.random.default_rng(4)
    above = np.zeros((20, rows))
    for row in range(20):
        above[row, 20 + rng.choice(rows - 20, rows // 2, replace=False)] = 1
    below = np.zeros((rows - 20, rows))
    for row in range(rows - 20):
        below[row, rng.choice(20, 3, replace=False)] = 1
    return canonical(sp.csr_array(np.vstack([above, below])))


def as_matrices(cut: Strips, a: sp.csr_array, b: sp.csr_array) -> tuple[sp.csr_array, sp.csr_array]:
    first = sp.csr_array((a.data[cut.sources], cut.coordinates, cut.pointers), shape=(cut.rows, max(1, cut.inner)))
    pointers = cut.b_pointers if cut.inner else np.zeros(2, np.int64)
    return first, sp.csr_array((b.data, b.indices, pointers), shape=(max(1, cut.inner), b.shape[1]))


def in_strips(workload: Workload, design: Design, strips: int, T_j: int) -> Scheme:
    return replace(kept_scheme("x", workload, design, workload.I), strips=strips, T_j=T_j)


@pytest.mark.parametrize("T_j", [1, 7, 16, 49, 50, 80])
@pytest.mark.parametrize("name", PAIRS)
def test_strips_one_after_the_other_are_the_rows_of_c(name: str, T_j: int) -> None:
    A, B = PAIRS[name]
    cut = cut_strips(Pattern.of(A), Pattern.of(B), B.shape[1], T_j)
    for T_i, most in ((1, 1), (4, 10), (16, 1000)):
        tiles = cut.in_tiles(T_i, most)
        first, second = as_matrices(tiles, A, B)
        product = sp.csr_array(first @ second)
        product.sort_indices()
        pointers = product.indptr[tiles.starts]
        assert len(pointers) == A.shape[0] + 1 and pointers[0] == 0 and pointers[-1] == product.nnz
        joined = sp.csr_array((product.data, product.indices, pointers), shape=(A.shape[0], B.shape[1]))
        assert joined.has_sorted_indices or all(
            (np.diff(joined.indices[low:high]) > 0).all() for low, high in zip(pointers[:-1], pointers[1:], strict=True)
        )
        assert np.abs((joined - A @ B).toarray()).max(initial=0) < 1e-9
        for row in range(tiles.rows):
            low, high = product.indptr[row : row + 2]
            assert len(np.unique(product.indices[low:high] // T_j)) <= 1, "a strip lies between two multiples of T_j"


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize(("T_i", "most"), [(1, 5), (4, 1), (4, 12), (16, 40), (16, 10_000)])
def test_tiles_use_no_more_than_they_may(name: str, T_i: int, most: int) -> None:
    A, B = PAIRS[name]
    cut = cut_strips(Pattern.of(A), Pattern.of(B), B.shape[1], 9)
    tiles = cut.in_tiles(T_i, most)
    assert np.array_equal(tiles.coordinates, cut.coordinates) and np.array_equal(tiles.sources, cut.sources)
    filled = np.diff(tiles.pointers) > 0
    assert np.array_equal(np.diff(tiles.pointers)[filled], np.diff(cut.pointers)), "no strip is lost, none moves"
    before, used_before = 0, np.empty(0, np.int64)
    for first in range(0, tiles.rows, T_i):
        last = min(first + T_i, tiles.rows)
        used = np.unique(tiles.coordinates[tiles.pointers[first] : tiles.pointers[last]])
        strips = int(filled[first:last].sum())
        assert len(used) <= most or strips == 1
        assert not (~filled[first:last][:strips]).any(), "empty rows are at the end of a tile"
        if 0 < before < T_i:
            following = np.unique(tiles.coordinates[tiles.pointers[first] : tiles.pointers[first + 1]])
            assert len(np.union1d(used_before, following)) > most, "a tile that ended early had to"
        before, used_before = strips, used


def test_values_go_where_their_elements_go() -> None:
    A, B = noise(30, 40, 0.2), noise(40, 64, 0.2)
    scheme = in_strips(Workload(A, B, lanes=2), SHORT_QUEUES, 8, 20)
    a, b = csr(A), csr(B)
    met = plan(scheme, a, b, SHORT_QUEUES)
    whole, first, second = met.scheme, met.a, met.b
    lines = scheme.rows_lines(SHORT_QUEUES.line_bytes)
    cut = cut_strips(a, b, 64, 20).in_tiles(8, most_used(lines, SHORT_QUEUES.lanes))
    assert np.array_equal(cut.starts, met.starts) and met.widest == 20
    assert (whole.T_j, whole.T_k, whole.T_i, whole.strips) == (64, second.rows, 8, 0)
    assert np.array_equal(second.bits, b.bits) and np.array_equal(second.coordinates, b.coordinates)
    rows = np.repeat(np.arange(30), np.diff(a.pointers))
    of_row = np.searchsorted(cut.starts, np.repeat(np.arange(first.rows), np.diff(first.pointers)), side="right") - 1
    assert np.array_equal(rows[cut.sources], of_row)
    assert np.array_equal(first.bits, a.bits[cut.sources])


def test_what_strips_are() -> None:
    A = long_fibers()
    workload = Workload(A, A, lanes=2)
    narrow = in_strips(workload, SHORT_QUEUES, 16, 100)
    narrow.validate(SHORT_QUEUES, 600, 600, 600)
    assert narrow.clip(600, 600, 600) == narrow and Scheme.from_json(narrow.to_json()) == narrow
    replace(narrow, T_j=1).validate(SHORT_QUEUES, 600, 600, 600)
    with pytest.raises(SchemeError, match=r"T_j = 10: must be at least 25 where load is list: 4096 strips of a row"):
        replace(narrow, T_j=10).validate(SHORT_QUEUES, 600, 100_000, 600)
    with pytest.raises(SchemeError, match=r"T_i = 16: must be I = 600 where strips is above 0"):
        replace(narrow, T_i=16).validate(SHORT_QUEUES, 600, 600, 600)
    with pytest.raises(SchemeError, match=r"T_j = 100: must be J = 600 where load is list and strips is 0"):
        replace(narrow, strips=0).validate(SHORT_QUEUES, 600, 600, 600)
    for wrong, field in (({"load": "tile"}, "strips"), ({"strips": -1}, "strips"), ({"strips": True}, "strips")):
        with pytest.raises(SchemeError) as found:
            replace(narrow, **wrong)
        assert found.value.field == field
    assert most_used(1000, 2) == 500 and most_used(1, 2) == 1


def test_a_scheme_that_counts_strips_in_t_i_still_means_them() -> None:
    """As documents said it before ``strips`` was a field of its own."""
    A = long_fibers()
    narrow = in_strips(Workload(A, A, lanes=2), SHORT_QUEUES, 16, 100)
    document = json.loads(narrow.to_json()) | {"T_i": 16}
    del document["strips"]
    assert Scheme.from_dict(document).clip(600, 600, 600) == narrow


def test_a_strip_that_uses_too_much_is_named() -> None:
    design = load_design("tiny")
    A, B = noise(40, 2000, 0.9), noise(2000, 40, 0.5)
    workload = Workload(A, B, lanes=2)
    scheme = in_strips(workload, design, 8, 20)
    with pytest.raises(RowPlanError, match=r"strips = 8: must be smaller: tile \d+ along i uses 1[78]\d\d rows of B"):
        plan(scheme, workload.a, workload.b, design)
    with pytest.raises(RowPlanError):
        simulate(design, plan(scheme, csr(A), csr(B), design))


def test_more_elements_than_positions_count_to_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sw.plan.strips.MAXIMUM_ELEMENTS", 100)
    A = Pattern.of(noise(40, 40, 0.5))
    with pytest.raises(
        SchemeError, match=r"T_j = 1: must be larger: A in strips has \d+ elements, positions count to 100"
    ):
        cut_strips(A, A, 40, 1)


def test_prediction_and_model_agree_about_strips() -> None:
    A = long_fibers()
    workload = Workload(A, A, lanes=2, statistics="exact")
    scheme = in_strips(workload, SHORT_QUEUES, 16, 75)
    found, said = (
        simulate(SHORT_QUEUES, plan(scheme, csr(A), csr(A), SHORT_QUEUES)),
        predict(workload, SHORT_QUEUES, scheme),
    )
    assert found.dram_bytes is not None
    for tensor in "AB":
        moved = found.dram_bytes[tensor]["read"] + found.dram_bytes[tensor]["metadata_read"]
        predicted = said.traffic[f"{tensor.lower()}_data"] + said.traffic[f"{tensor.lower()}_meta"]
        assert predicted == pytest.approx(moved, rel=0.02)
    assert said.cycles == pytest.approx(found.cycles, rel=0.15)


def test_auto_cuts_long_rows_of_c_in_strips() -> None:
    A = long_fibers()
    chosen, without = (
        schedule("auto", A, A, SHORT_QUEUES, judge=judge(SHORT_QUEUES), lists=flag) for flag in (True, False)
    )
    assert chosen.strips and not without.gathers
    assert chosen.T_j <= 2 * 64
    cycles = [simulate(SHORT_QUEUES, plan(scheme, csr(A), csr(A), SHORT_QUEUES)).cycles for scheme in (chosen, without)]
    assert cycles[0] < 0.7 * cycles[1]


def test_many_rows_are_searched_on_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    A = long_fibers(2000)
    workload = Workload(A, A, lanes=2, statistics="rows")
    before = predict_whole(
        workload, SHORT_QUEUES, replace(kept_scheme("x", workload, SHORT_QUEUES, workload.I), load="tile")
    )
    full = best_strips("x", workload, SHORT_QUEUES, before)
    monkeypatch.setattr("sw.cost.candidates.strip_width.SEARCHED", 3000)
    some = best_strips("x", workload, SHORT_QUEUES, before)
    assert full and some
    assert some[0][1].cycles < 1.1 * full[0][1].cycles
    monkeypatch.setattr("sw.cost.candidates.strip_width.MOST_OF_B_IN_STRIPS", 3000)
    assert best_strips("x", workload, SHORT_QUEUES, before) == []
    monkeypatch.undo()
    monkeypatch.setattr("sw.cost.candidates.strip_width.MOST_ELEMENTS_IN_STRIPS", 3000)
    assert best_strips("x", workload, SHORT_QUEUES, before) == []


def test_a_busy_bus_is_a_reason_for_strips_where_b_moves_more_than_once() -> None:
    A = long_fibers()
    workload = Workload(A, A, lanes=2, statistics="rows")
    scheme = replace(kept_scheme("x", workload, SHORT_QUEUES, workload.I), load="tile")
    before = predict_whole(workload, SHORT_QUEUES, scheme)
    moved = int(before.cycles * SHORT_QUEUES.dram_bytes_per_cycle)
    for b_data, found in ((8 * A.nnz, 0), (moved // 2, 1)):
        busy = replace(before, dram_bytes=moved, traffic=before.traffic | {"b_data": b_data})
        assert len(best_strips("x", workload, SHORT_QUEUES, busy, judged=True)) == found


@pytest.mark.parametrize("name", ["short rows", "long rows, long queues"])
def test_there_are_none_where_nothing_waits(name: str) -> None:
    A, design = {
        "short rows": (banded(600, 3), SHORT_QUEUES),
        "long rows, long queues": (long_fibers(), load_design("edge")),
    }[name]
    workload = Workload(A, A, lanes=2, statistics="rows")
    scheme = kept_scheme("x", workload, design, 16)
    assert best_strips("x", workload, design, predict(workload, design, scheme)) == []
