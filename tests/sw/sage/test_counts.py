"""Groups and fullest fibers against loops over every place, and against the mean of many random tensors."""

import numpy as np
import pytest

from sw.sage.counts import Counted, Lengths, Uniform

SHAPES = [(6, 20, 0.3), (1, 7, 1.0), (9, 33, 0.05), (4, 16, 0.0)]


def places(count: int, length: int, density: float, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((count, length)) < density


def counted(marks: np.ndarray) -> Counted:
    fiber, place = np.nonzero(marks)
    return Counted(*marks.shape, fiber, place)


def looked_at(marks: np.ndarray, width: int, most: int) -> tuple[int, int, int]:
    """Groups, ranges with something, the fullest one: one fiber and one range after the other."""
    groups = filled = fullest = 0
    for fiber in marks:
        for begin in range(0, len(fiber), width):
            number = sum(bool(place) for place in fiber[begin : begin + width])
            fullest = max(fullest, number)
            filled += number > 0
            groups += len(range(0, number, most))
    return groups, filled, fullest


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("width", "most"), [(1, 1), (5, 2), (8, 3), (100, 4)])
def test_operands_are_counted(shape, width, most):
    marks = places(*shape, seed=1)
    found = counted(marks)
    assert (found.groups(width, most), found.filled(width), found.fullest(width)) == looked_at(marks, width, most)
    assert found.nnz == marks.sum()


@pytest.mark.parametrize(("width", "most"), [(40, 1), (40, 7), (16, 2), (13, 4)])
@pytest.mark.parametrize("density", [0.03, 0.4, 1.0])
def test_uniform_is_the_mean_of_random_tensors(width, most, density):
    count, length = 50, 40
    found = Uniform(count, length, density)
    looks = np.array([looked_at(places(count, length, density, seed), width, most) for seed in range(30)])
    error = 4 * looks.std(axis=0) / len(looks) ** 0.5 + 1e-6
    mean = looks.mean(axis=0)
    assert abs(found.groups(width, most) - mean[0]) <= error[0]
    assert abs(found.filled(width) - mean[1]) <= error[1]
    assert abs(found.fullest(width) - mean[2]) <= 1.5
    assert found.nnz == pytest.approx(count * length * density)


def test_uniform_is_exact_in_a_case_by_hand():
    """Two places, each filled with chance 1/2: none, one, one or two nonzeros."""
    found = Uniform(8, 2, 0.5)
    assert found.groups(2, 1) == pytest.approx(8 * (0 + 1 + 1 + 2) / 4)
    assert found.groups(2, 2) == pytest.approx(8 * 3 / 4)
    assert found.filled(1) == pytest.approx(8)
    assert found.fullest(2) == 2


def test_large_tensors_take_no_more():
    found = Uniform(10**9, 10**9, 1e-7)
    assert found.groups(10**9, 7) == pytest.approx(found.nnz / 7, rel=0.05)


@pytest.mark.parametrize("density", [0.02, 0.2, 0.9])
def test_lengths_alone_come_close(density):
    marks = places(200, 256, density, seed=3)
    exact, found = counted(marks), Lengths(256, marks.sum(axis=1))
    assert (found.count, found.nnz) == (exact.count, exact.nnz)
    for most in (1, 7, 64):
        assert found.groups(256, most) == exact.groups(256, most)
        assert found.groups(64, most) == pytest.approx(exact.groups(64, most), rel=0.35)
    assert found.fullest(256) == exact.fullest(256)
    assert found.filled(32) == pytest.approx(exact.filled(32), rel=0.05)
