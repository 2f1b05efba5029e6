"""What a policy's scheme records as predicted is near the model tier: cases of schemes that differ in what bounds them."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import load_design
from sw.cost.candidates.share_of_b import ShareOfB, scheme_for_b
from sw.cost.predict import predict_rows
from sw.model.machine import run_model
from sw.model.shaped import run_shaped
from sw.operands import load, to_csr
from sw.operands.arrays import from_array
from sw.plan.plan import plan
from sw.policies.registry import schedule
from sw.stats.workload import Workload

EDGE = load_design("edge", ["pe.value=fp32"])
# Rows whose work lies in few tiles (bands), carried and joined, cut along j and along k; tiles of shapes of their own; rows of B
# that are loaded one by one.
CASES = [
    ("pyamg:local_disc_galerkin_diffusion", "d2t2"),
    ("banded:2000:12", "d2t2"),
    ("banded:2000:12", "drt"),
    ("banded:6000:20", "swiftiles"),
    ("banded:6000:20", "hyte"),
    ("mycielskian:9", "harp"),
]


@pytest.mark.parametrize(("name", "policy"), CASES)
def test_a_prediction_is_near_the_model(name, policy):
    matrix = load(name).matrix
    scheme, operand = schedule(policy, matrix, matrix, EDGE), to_csr(load(name), "fp32")
    run = run_shaped if scheme.uneven else run_model
    cycles = run(EDGE, plan(scheme, operand, operand, EDGE)).cycles
    assert scheme.predicted["cycles"] == pytest.approx(cycles, rel=0.15)


def arrow(size: int) -> sp.csr_array:
    """A band with a full row and a full column: products of the full row never meet, those of the band do."""
    dense = sum(np.eye(size, k=place) for place in range(-2, 3))
    dense[size // 3] = dense[:, size // 3] = 1
    return sp.csr_array(dense)


def grid(side: int) -> sp.csr_array:
    chain = sp.diags_array([np.ones(side - 1), np.ones(side), np.ones(side - 1)], offsets=[-1, 0, 1])
    return sp.csr_array(sp.kron(sp.eye_array(side), chain) + sp.kron(chain, sp.eye_array(side)))


def test_products_meet_as_often_as_in_the_tile() -> None:
    """Of all C there is no one width in which they would."""
    operand = from_array(arrow(1600), "arrow")
    scheme = schedule("drt", operand.matrix, operand.matrix, EDGE)
    c = to_csr(operand, "fp32")
    cycles = run_shaped(EDGE, plan(scheme, c, c, EDGE)).cycles
    assert scheme.predicted["cycles"] == pytest.approx(cycles, rel=0.1)


@pytest.mark.parametrize("order", ["ijk", "kji"])
@pytest.mark.parametrize("partial_rows", ["carried", "joined"])
def test_rows_and_tiles_without_work_count(order: str, partial_rows: str) -> None:
    """Most tiles of a grid only carry rows, which are empty for the most part, too, or are left out."""
    operand = from_array(grid(80), "grid")
    matrix, size = operand.matrix, 6400
    scheme = scheme_for_b("test", ShareOfB(EDGE), (size, size, size), size // 8, size // 5, order)
    scheme = replace(scheme, partial_rows=partial_rows)
    c = to_csr(operand, "fp32")
    cycles = run_model(EDGE, plan(scheme, c, c, EDGE)).cycles
    found = predict_rows(Workload(matrix, matrix, lanes=EDGE.lanes), EDGE, scheme)
    assert found.cycles == pytest.approx(cycles, rel=0.06)
