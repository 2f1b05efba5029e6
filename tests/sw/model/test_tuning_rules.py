"""Rules of dynamic tuning other than the hardware's: what each decides, and that the model walks by it."""

from dataclasses import replace

import pytest

from gen.design import load_design
from sw.golden.partition import Capacity
from sw.golden.tuning import CANDIDATES, STAY, decide
from sw.model.machine import run_model
from sw.model.tuning_rules import ByCost, run_with_rule, text_rule
from sw.model.walk import hardware_rule
from sw.operands import load, to_csr
from sw.plan.plan import plan
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition
from sw.scheme.terms import ONLY_B
from sw.stats.workload import Workload

DESIGN = load_design("tiny", ["pe.value=fp32"])
MATRIX = load("banded:600:6:density=0.5:seed=1")
ONE = dict.fromkeys((-1, 0, 1), Capacity(limit=1, regular=1))
HUNDRED = dict.fromkeys((-1, 0, 1), Capacity(limit=100, regular=100))


def scheme(T_k: int, T_j: int) -> Scheme:
    parts, fifo = default_partition(DESIGN, partial_rows=True)
    return Scheme(policy="test", order="jki", T_i=600, T_j=T_j, T_k=T_k, buffer_bytes=parts, fifo_bytes=fifo, mode=ONLY_B,
                  tuning=True)  # fmt: skip


def test_the_papers_example() -> None:
    """Section 6.4: a buffer of one element, three nonzeros in one quadrant and one in another: half hit in halves."""
    assert text_rule((3, 0, 0, 1), ONE, CANDIDATES, (2, 2)) == (0, -1)  # of equals the larger tile
    assert text_rule((3, 0, 0, 1), ONE, [STAY], (2, 2)) == STAY


def test_by_the_letter_a_tile_never_grows_that_fits() -> None:
    """The hardware takes the larger of shapes that do as well."""
    assert text_rule((5, 5, 5, 5), HUNDRED, CANDIDATES, (8, 8)) == STAY
    assert decide((5, 5, 5, 5), HUNDRED) == hardware_rule((5, 5, 5, 5), HUNDRED, CANDIDATES, (8, 8)) == (1, 1)


def test_a_rule_decides_the_walk() -> None:
    csr = to_csr(MATRIX, "fp32")
    planned = plan(scheme(16, 600), csr, csr, DESIGN)
    alike = run_with_rule(DESIGN, planned, hardware_rule)
    assert alike == run_model(DESIGN, planned) and alike.adjustments
    assert not run_with_rule(DESIGN, planned, lambda *_: STAY).adjustments
    with pytest.raises(ValueError, match="must have tuning"):
        run_with_rule(DESIGN, plan(replace(scheme(16, 600), tuning=False), csr, csr, DESIGN), text_rule)


def test_the_cost_model_leaves_a_right_shape_and_mends_a_wrong_one() -> None:
    csr = to_csr(MATRIX, "fp32")
    workload = Workload(MATRIX.matrix, MATRIX.matrix, lanes=DESIGN.lanes)

    def cycles(T_k: int, T_j: int) -> tuple[int, int, int]:
        tuned = scheme(T_k, T_j)
        planned = plan(tuned, csr, csr, DESIGN)
        found = run_with_rule(DESIGN, planned, ByCost(workload, DESIGN, tuned))
        still = run_model(DESIGN, plan(replace(tuned, tuning=False), csr, csr, DESIGN))
        return found.cycles or 0, still.cycles or 0, len(found.adjustments)

    right = min((64, 128, 256), key=lambda T_k: cycles(T_k, 600)[1])
    tuned, still, _ = cycles(right, 600)
    assert tuned <= 1.05 * still
    tuned, still, changes = cycles(16, 600)
    assert changes >= 1 and tuned < 0.8 * still


def test_the_tenth_of_hysteresis(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shape whose cost is less by less than a tenth is not taken."""
    rule = ByCost(Workload(MATRIX.matrix, MATRIX.matrix, lanes=DESIGN.lanes), DESIGN, scheme(64, 600))
    for best, taken in ((0.95, STAY), (0.85, (1, 0))):
        monkeypatch.setattr(rule, "_cost", lambda change, _, best=best: best if change == (1, 0) else 1.0)
        assert rule((5, 5, 5, 5), HUNDRED, CANDIDATES, (64, 600)) == taken


def test_counts_are_a_mean_until_the_shape_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = ByCost(Workload(MATRIX.matrix, MATRIX.matrix, lanes=DESIGN.lanes), DESIGN, scheme(64, 600))
    seen = []
    monkeypatch.setattr(rule, "_cost", lambda change, hit: seen.append((change, hit)) or 1.0)
    rule((50, 50, 50, 50), HUNDRED, [STAY], (64, 600))  # 200, of which 100 stay
    rule((0, 0, 0, 0), HUNDRED, [STAY], (64, 600))  # in the mean 100: all stay
    rule((50, 50, 50, 50), HUNDRED, [STAY], (32, 600))
    assert [hit for _, hit in seen] == [0.5, 1.0, 0.5]
