"""Policies and cost model of weight-stationary designs: what columns that overflow cost, and where none does."""

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import load_design
from sw.cost.stationary import bumped_cycles, predict_stationary
from sw.model.judge import judge
from sw.policies.registry import schedule
from sw.policies.stationary import candidates, fitting_side
from sw.stats.workload import Workload

FLEX = load_design("flex", ["pe.value=int32"])
# Rows, inner dimension, columns, densities of A and B.
SHAPES = [(64, 256, 32, 0.3, 0.5), (90, 120, 20, 0.1, 0.9), (60, 300, 24, 0.05, 0.2), (40, 200, 17, 0.5, 1.0)]


def operands(shape, seed=1):
    rows, inner, columns, of_a, of_b = shape
    rng = np.random.default_rng(seed)
    a = sp.random_array((rows, inner), density=of_a, rng=rng, format="csr")
    b = sp.random_array((inner, columns), density=of_b, rng=rng, format="csr")
    return a, b


def columns_of(b, side):
    """Nonzeros of every column in every tile of ``side`` rows, counted one by one."""
    dense = b.toarray() != 0
    return [int(n) for first in range(0, len(dense), side) for n in dense[first : first + side].sum(axis=0)]


@pytest.mark.parametrize("shape", SHAPES)
def test_auto_is_close_to_the_best_of_all_that_it_looks_at(shape):
    """Of six that it runs in the model tier."""
    a, b = operands(shape)
    ask, workload = judge(FLEX), Workload(a, b, lanes=FLEX.lanes)
    chosen = schedule("auto", a, b, FLEX, judge=ask)
    every = [ask(scheme, workload.a, workload.b) for scheme in candidates(workload, FLEX)]
    assert ask(chosen, workload.a, workload.b) <= 1.05 * min(every)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_column_overflows_at_the_fitting_side(shape):
    """And one does in tiles that are a sixteenth higher, unless that is all of B."""
    _, b = operands(shape)
    workload = Workload(sp.csr_array((1, shape[1])), b, lanes=FLEX.lanes)
    side = fitting_side(workload, 64)
    assert max(columns_of(b, side)) <= 64
    assert side >= shape[1] or max(columns_of(b, side + side // 16 + 2)) > 64


def test_a_dense_column_of_as_many_entries_as_a_buffer_does_not_overflow():
    a = sp.csr_array(np.ones((5, 129)))
    waits = {
        rows: bumped_cycles(Workload(a[:, :rows], sp.csr_array(np.ones((rows, 8))), lanes=2), FLEX, scheme(rows))
        for rows in (128, 129)
    }
    assert waits[128] == 0 < waits[129]


def scheme(side):
    a, b = sp.csr_array(np.ones((5, side))), sp.csr_array(np.ones((side, 8)))
    found = candidates(Workload(a, b, lanes=FLEX.lanes), FLEX)
    return next(one for one in found if one.T_k == side)


def test_uniform_cuts_a_dense_b_at_twice_the_height():
    a = sp.csr_array(np.ones((5, 300)))
    sides = [schedule("uniform", a, sp.csr_array(b), FLEX).T_k for b in (np.ones((300, 8)), np.tri(300, 8))]
    assert sides == [128, 64]


@pytest.mark.parametrize("shape", SHAPES)
def test_predictions_are_within_a_factor_of_the_model(shape):
    """Of all candidates that keep B, also where columns that overflow take most of the time."""
    a, b = operands(shape, seed=2)
    ask, workload = judge(FLEX), Workload(a, b, lanes=FLEX.lanes)
    for one in candidates(workload, FLEX):
        if one.buffers("B"):
            predicted = predict_stationary(workload, FLEX, one).cycles
            assert 0.5 < predicted / ask(one, workload.a, workload.b) < 1.6, one
