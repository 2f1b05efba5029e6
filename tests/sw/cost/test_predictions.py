"""What a policy's scheme records as predicted is near the model tier: cases of schemes that differ in what bounds them."""

import pytest

from gen.design import load_design
from sw.model.machine import run_model
from sw.model.shaped import run_shaped
from sw.operands import load, to_csr
from sw.plan.plan import plan
from sw.policies.registry import schedule

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
