"""Schemes with lists: what they cost, when ``auto`` takes them, and that the model runs them as the cost model says."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import load_design
from sw.cost.candidates.resident import FEWEST_ROWS, listed_schemes
from sw.cost.predict import predict
from sw.model.judge import judge
from sw.model.tier import simulate
from sw.operands import to_csr
from sw.operands.operand import Operand, canonical_csr
from sw.plan.plan import plan
from sw.policies.registry import schedule
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.terms import BUFFERING, STREAMING
from sw.stats.workload import Workload
from tests.sw.stats.matrices import banded, canonical, noise

TINY = load_design("tiny")
SMALL = load_design("edge", ["buffer.bytes=16384", "buffer.fifo_bytes=1024"])
GOOD = Scheme(
    policy="forced",
    order="ijk",
    T_i=4,
    T_j=20,
    T_k=30,
    buffer_bytes={"A": 256, "B": 1024, "C": 0},
    fifo_bytes={"A": 64, "B": 128},
    mode={"A": STREAMING, "B": BUFFERING, "C": STREAMING},
    load="list",
)


def shuffled(rows: int, width: int, seed: int) -> sp.csr_array:
    """A band whose columns have been renumbered at random: neighbouring rows use the same few rows of B, far apart."""
    order = np.random.default_rng(seed).permutation(rows)
    found = sp.csr_array(banded(rows, width)[:, order])
    found.sort_indices()
    return canonical(found)


OPERANDS = {"shuffled": shuffled(900, 6, 1), "narrow band": banded(900, 4), "noise": noise(300, 300, 0.02)}


def run(design, scheme: Scheme, A: sp.csr_array, B: sp.csr_array):
    a, b = (to_csr(Operand(name="A", source="here", matrix=canonical_csr(m, "A")), design.pe.value) for m in (A, B))
    return simulate(design, plan(scheme, a, b, design))


def test_a_scheme_with_a_list_is_legal_and_survives_json() -> None:
    GOOD.validate(TINY, 10, 20, 30)
    assert Scheme.from_json(GOOD.to_json()) == GOOD
    assert GOOD.gathers and not GOOD.uneven


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"mode": GOOD.mode | {"A": BUFFERING}}, "mode"),
        ({"mode": GOOD.mode | {"B": STREAMING}}, "mode"),
        ({"T_k": 29}, "T_k"),
        ({"tuning": True}, "tuning"),
    ],
)
def test_what_does_not_go_with_a_list_is_refused(change: dict, field: str) -> None:
    with pytest.raises(SchemeError) as found:
        replace(GOOD, **change).validate(TINY, 10, 20, 30)
    assert found.value.field == field
    with pytest.raises(SchemeError, match="load = 'list': must be"):
        replace(GOOD, tiles=[[0, 10, 0, 20, 0, 30]])


@pytest.mark.parametrize("design", [TINY, SMALL], ids=["tiny", "16K"])
@pytest.mark.parametrize("name", OPERANDS)
def test_predicted_traffic_is_close_to_what_moves(name: str, design) -> None:
    A = OPERANDS[name]
    workload = Workload(A, A, lanes=design.lanes, statistics="exact")
    found = listed_schemes("auto", workload, design)
    assert found
    for scheme, prediction in found:
        scheme.validate(design, *A.shape, A.shape[1])
        assert prediction == predict(workload, design, scheme)
        moved = run(design, scheme, A, A).dram_bytes
        assert moved is not None
        total = sum(sum(kinds.values()) for kinds in moved.values())
        b = prediction.traffic["b_data"] + prediction.traffic["b_meta"]
        assert b == pytest.approx(moved["B"]["read"] + moved["B"]["metadata_read"], rel=0.03)
        # Rows of more leaves than a job takes pass through scratch memory: on `tiny` most do, which is an estimate.
        assert total / 2 < prediction.dram_bytes < 2 * total


def test_auto_takes_a_list_where_rows_share_what_lies_apart() -> None:
    A = OPERANDS["shuffled"]
    chosen, without = (schedule("auto", A, A, SMALL, judge=judge(SMALL), lists=flag) for flag in (True, False))
    assert chosen.gathers and not without.gathers
    cycles = [run(SMALL, scheme, A, A).cycles for scheme in (chosen, without)]
    assert cycles[0] < 0.6 * cycles[1]
    assert any(other.get("load") != "list" for other in chosen.alternatives)


@pytest.mark.parametrize("name", OPERANDS)
def test_auto_is_no_worse_for_having_them(name: str) -> None:
    A = OPERANDS[name]
    chosen, without = (schedule("auto", A, A, SMALL, judge=judge(SMALL), lists=flag) for flag in (True, False))
    assert run(SMALL, chosen, A, A).cycles <= run(SMALL, without, A, A).cycles


@pytest.mark.parametrize("A", [noise(2 * FEWEST_ROWS - 1, 30, 0.3), sp.csr_array((100, 100), dtype=np.float64)])
def test_there_are_none_for_few_rows_or_nothing(A: sp.csr_array) -> None:
    workload = Workload(canonical(A), canonical(noise(A.shape[1], 20, 0.1)), lanes=TINY.lanes)
    assert listed_schemes("auto", workload, TINY) == []
