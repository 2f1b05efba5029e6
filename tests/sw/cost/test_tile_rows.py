"""Rows of tiles, replayed for the prediction that a scheme records: near the model where the closed form is not."""

from dataclasses import replace

import numpy as np
import pytest

from gen.design import load_design
from sw.cost.predict import predict, predict_rows
from sw.model.machine import run_model
from sw.plan.plan import plan
from sw.policies.registry import schedule
from sw.stats.workload import Workload
from tests.sw.stats.matrices import banded, mesh, noise, power_law

from .test_traffic_kinds import csr

TINY = load_design("tiny")
OPERANDS = {
    "band": banded(400, 6),
    "mesh": mesh(16),
    "noise": noise(200, 200, 0.04),
    "power law": power_law(300),
}
POLICIES = ("uniform", "prescient", "swiftiles", "d2t2", "hyte")


@pytest.fixture(scope="module")
def errors():
    """Of each operand and policy: how far the closed form is from the model, and how far the replay is."""
    found = {}
    for name, matrix in OPERANDS.items():
        for policy in POLICIES:
            scheme = schedule(policy, matrix, matrix, TINY)
            cycles = run_model(TINY, plan(scheme, csr(matrix), csr(matrix), TINY)).cycles
            workload = Workload(matrix, matrix, lanes=TINY.lanes)
            closed, replayed = (how(workload, TINY, scheme).cycles for how in (predict, predict_rows))
            found[name, policy] = closed / cycles - 1, replayed / cycles - 1, scheme.cycles == replayed
    return found


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_what_a_scheme_records_is_near_the_model(errors, operand, policy):
    closed, replayed, _ = errors[operand, policy]
    assert abs(replayed) < 0.2, f"{replayed:+.1%} ({closed:+.1%} by the closed form)"


def test_replaying_rows_is_what_makes_it_near(errors):
    """The closed form alone is far off on this design, whose rows wait for one another."""
    closed, replayed = (np.mean([abs(each[n]) for each in errors.values()]) for n in (0, 1))
    assert replayed < 0.08 < 0.2 < closed


@pytest.mark.parametrize("policy", ["prescient", "d2t2"])
def test_the_same_scheme_gets_the_same_number(policy):
    A = OPERANDS["power law"]
    first, second = (schedule(policy, A, A, TINY).cycles for _ in range(2))
    assert first == second


def test_a_tile_without_work_costs_next_to_nothing():
    """Products that are all in one of many tiles: the others do not count as it does."""
    A = noise(256, 256, 0.03)
    rows = A.tocoo()
    inside = (rows.row < 64) & (rows.col < 64)
    corner = type(A)((rows.data[inside], (rows.row[inside], rows.col[inside])), shape=A.shape)
    scheme = replace(schedule("uniform", A, A, TINY), T_i=64, T_j=64, T_k=64, predicted={})
    few, many = (predict_rows(Workload(m, m, lanes=TINY.lanes), TINY, scheme).time["rows"] for m in (corner, A))
    assert 0 < few < many / 8
