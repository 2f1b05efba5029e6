"""Policies see the same matrix in whatever form it comes."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import load_design
from sw.cost.predict import predict, predict_rows
from sw.policies.registry import POLICIES, find_policy, schedule
from sw.stats.workload import Workload

TINY = load_design("tiny")
RNG = np.random.default_rng(11)
# The first columns are full: the transpose asks for other tiles.
DENSE = ((RNG.random((48, 48)) < 0.05) | (np.arange(48) < 6)).astype(float)
FORMATS = ("csc", "coo", "bsr", "dia", "lil", "dok")


def forms():
    for name in FORMATS:
        yield pytest.param(sp.coo_array(DENSE).asformat(name), id=f"{name}_array")
        yield pytest.param(sp.coo_matrix(DENSE).asformat(name), id=f"{name}_matrix")
    yield pytest.param(sp.csr_matrix(DENSE), id="csr_matrix")
    yield pytest.param(DENSE, id="ndarray")


@pytest.fixture(scope="module")
def expected():
    matrix = sp.csr_array(DENSE)
    chosen = schedule("hyte", matrix, matrix, TINY)
    other = sp.csr_array(DENSE.T)
    assert schedule("hyte", other, other, TINY).predicted != chosen.predicted  # else the test below sees nothing
    return replace(chosen, seconds=0.0)


@pytest.mark.parametrize("matrix", list(forms()))
def test_schedule_in_every_form(matrix, expected):
    assert replace(schedule("hyte", matrix, matrix, TINY), seconds=0.0) == expected
    assert replace(schedule("hyte", sp.csr_array(DENSE), matrix, TINY), seconds=0.0) == expected


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "optimal"])
def test_policies_called_by_themselves(policy):
    matrix, by_column = sp.csr_array(DENSE), sp.csc_array(DENSE)
    choose = find_policy(policy)
    assert choose(by_column, by_column, TINY) == choose(matrix, matrix, TINY)


def test_predictions(expected):
    by_column = Workload(sp.csc_array(DENSE), sp.lil_array(DENSE), lanes=TINY.lanes)
    assert predict(by_column, TINY, expected) == predict(Workload(DENSE, DENSE, lanes=TINY.lanes), TINY, expected)
    assert predict_rows(by_column, TINY, expected).as_dict() == expected.predicted


def test_what_is_no_matrix():
    with pytest.raises(TypeError, match="^Operand must be a SciPy sparse matrix or a NumPy array, not list$"):
        schedule("auto", [[1.0]], [[1.0]], TINY)
