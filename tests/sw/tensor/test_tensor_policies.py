"""Tiles for TTM and MTTKRP: they fit, they are the largest of their kind, and D2T2's move the least of what it looks at."""

import json

import numpy as np
import pytest

from sw.operands import load
from sw.operands.load_tensor import load_tensor
from sw.scheme.errors import SchemeError
from sw.stats.csf import WORD_BYTES
from sw.stats.pattern import Pattern
from sw.tensor.kernels import KERNELS, Problem
from sw.tensor.policies import POLICIES, conservative_side, d2t2, dense_words, grown, shapes
from sw.tensor.scheme import schedule_tensor, statistics
from sw.tensor.traffic import largest_words, tensor_traffic

BUFFER = 8192


def problem(kernel: str, spec: str, width: int = 120, density: float = 0.03) -> Problem:
    tensor = load_tensor(spec)
    found = KERNELS[kernel]
    matrices = tuple(
        Pattern.of(load(f"uniform:{tensor.shape[r]}:{width}:{density}:seed={r}").matrix) for r in found.contracted
    )
    return Problem(found, tensor.shape, tensor.coordinates, matrices)


TENSORS = {
    "even": "tensor:150:120:90:6000",
    "skewed": "tensor:200:80:150:8000:exponent=0.7:seed=4",
    "oblong": "tensor:12:400:300:7000:seed=2",
    "dense": "tensor:60:30:20:9000:exponent=0.3",
}


@pytest.fixture(scope="module", params=[(k, t) for k in KERNELS for t in TENSORS], ids=lambda p: "-".join(p))
def case(request):
    task = problem(request.param[0], TENSORS[request.param[1]])
    return task, statistics(task, BUFFER)


def test_every_tile_of_every_policy_fits(case):
    task, model = case
    for policy in POLICIES:
        scheme = schedule_tensor(policy, task, BUFFER, model)
        assert max(largest_words(task, scheme.sides)) * WORD_BYTES <= BUFFER, policy
        assert all(1 <= scheme.tile[rank] <= scheme.shape[rank] for rank in scheme.order)
        assert json.loads(scheme.to_json())["tile"] == scheme.tile
        assert scheme.seconds >= 0 and scheme.predicted["total"] > 0


def test_squares_are_the_largest_that_fit(case):
    task, model = case
    words = BUFFER // WORD_BYTES
    side = conservative_side(task, words)
    dense = [min(side, size) for size in task.extent]
    assert dense_words(task.kernel, tuple(dense)) <= words
    longer = tuple(min(side + 1, size) for size in task.extent)
    assert longer == tuple(dense) or dense_words(task.kernel, longer) > words
    found = schedule_tensor("prescient", task, BUFFER, model)
    next_side = max(found.sides) + 1
    longer = tuple(min(next_side, size) for size in task.extent)
    assert longer == found.sides or max(largest_words(task, longer)) > words


def test_growing_never_overflows_and_shapes_are_of_conservative_tiles(case):
    task, model = case
    words = BUFFER // WORD_BYTES
    tried = shapes(task, words, model[0].tensor.T, [(p, q) for p in range(-4, 7) for q in range(-4, 7)])
    assert len(tried) == len(set(tried.values())) > 5
    for shape in tried.values():
        assert dense_words(task.kernel, shape) <= words
        sides = grown(task, words, shape)
        assert max(largest_words(task, sides)) <= words
        assert all(a >= b for a, b in zip(sides, shape, strict=True))


def test_d2t2_moves_less_than_squares_and_nearly_as_little_as_any_shape(case):
    task, model = case
    words = BUFFER // WORD_BYTES
    exact = {
        policy: tensor_traffic(task, schedule_tensor(policy, task, BUFFER, model).sides).total for policy in POLICIES
    }
    assert exact["d2t2"] < 0.8 * exact["uniform"]
    assert exact["d2t2"] < 1.15 * exact["prescient"]
    tried = shapes(task, words, model[0].tensor.T, [(p, q) for p in range(-4, 7, 2) for q in range(-4, 7, 2)])
    best = min(tensor_traffic(task, grown(task, words, shape)).total for shape in tried.values())
    assert exact["d2t2"] <= 1.25 * best
    before = d2t2(task, words, model[0], before=True)
    assert max(largest_words(task, before)) <= words


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tensor", ["even", "skewed", "oblong"])
def test_predictions_follow_exact_traffic_over_shapes(kernel, tensor):
    task = problem(kernel, TENSORS[tensor], density=0.1)
    model, _ = statistics(task, BUFFER)
    T = model.tensor.T
    off = []
    for long, short in ((T, T), (2 * T, T // 2), (4 * T, T // 4), (T // 2, 2 * T)):
        sides = tuple(min(side, size) for side, size in zip((long, T, short, long), task.extent, strict=True))
        exact, found = tensor_traffic(task, sides), model.predict(sides)
        assert found.macs == pytest.approx(exact.macs, rel=0.1)
        off.append(abs(found.total / exact.total - 1))
    # Full slices beside empty ones are what means do not know.
    assert np.mean(off) < (0.2 if tensor == "skewed" else 0.12) and max(off) < 0.3, off


def test_what_cannot_be():
    task = problem("ttm", TENSORS["dense"])
    model = statistics(task, BUFFER)
    with pytest.raises(SchemeError, match="policy = 'drt': must be one of uniform, prescient, d2t2 for tensors"):
        schedule_tensor("drt", task, BUFFER, model)
    with pytest.raises(SchemeError, match="at least 40 bytes, which one element takes"):
        statistics(task, 36)
