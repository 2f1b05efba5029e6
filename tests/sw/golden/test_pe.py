"""The golden model of the Gustavson element against the definition of the sum, worked by hand."""

import numpy as np
import pytest

from sw.golden.pe import JobLeaf, merge_job, reduce_run


def fp(*numbers):
    return np.array(numbers, dtype=np.float32).view(np.uint32)


def leaf(coordinates, values, weight):
    return JobLeaf(np.array(coordinates, dtype=np.uint32), np.array(values, dtype=np.uint32), weight)


def test_scaled_leaves_are_added_by_coordinate():
    coordinates, values = merge_job([leaf([1, 4], [10, 20], 3), leaf([4, 0xFFFFFFFF], [5, 7], 2)], 4, "int32")
    assert coordinates.tolist() == [1, 4, 0xFFFFFFFF]
    assert values.tolist() == [30, 70, 14]


def test_unit_leaves_are_not_multiplied():
    signalling = 0x7F800001  # a product would make the canonical NaN of it
    _, values = merge_job([leaf([3], [signalling], None)], 2, "fp32")
    assert values.tolist() == [signalling]
    _, values = merge_job([leaf([3], [signalling], int(fp(1.0)[0]))], 2, "fp32")
    assert values.tolist() == [0x7FC00000]


def test_sum_is_the_balanced_tree_over_the_run():
    big, one = np.float32(2**24), np.float32(1)
    # ((big + 1) + (1 + 1)) + 1, each rounded to even: from left to right it would stay at 2**24.
    expected = ((big + one) + (one + one)) + one
    assert expected == 2**24 + 4
    assert reduce_run(list(fp(big, 1, 1, 1, 1)), 8, "fp32") == fp(expected)[0]
    # Six elements: ((v0 + v1) + (v2 + v3)) + (v4 + v5).
    expected = ((one + one) + (one + big)) + (one + one)
    assert reduce_run(list(fp(1, 1, 1, big, 1, 1)), 8, "fp32") == fp(expected)[0]


def test_shape_of_the_sum_does_not_depend_on_the_radix():
    rng = np.random.default_rng(1)
    for length in range(1, 17):
        run = list(rng.standard_normal(length).astype(np.float32).view(np.uint32))
        assert reduce_run(run, 16, "fp32") == reduce_run(run, 256, "fp32")


def test_zeros_are_kept_and_integers_wrap():
    coordinates, values = merge_job([leaf([2], [5], 1), leaf([2], [0xFFFFFFFB], 1)], 2, "int32")
    assert (coordinates.tolist(), values.tolist()) == ([2], [0])
    assert merge_job([leaf([0], [0x80000000], 2)], 2, "int32")[1].tolist() == [0]


def test_saturated_sums_depend_on_their_order():
    numbers = [np.uint32(number & 0xFFFFFFFF) for number in (100, 100, -100, 50)]
    assert reduce_run(numbers, 4, "int8_saturate") == 77
    assert reduce_run([numbers[n] for n in (0, 2, 1, 3)], 4, "int8_saturate") == 127
    assert reduce_run(numbers, 4, "int8") == 150 - 256 + 2**32


def test_bf16_rounds_every_product_and_sum():
    numbers = list(fp(1, 2.0**-8, 1, 2.0**-8))
    assert reduce_run(numbers, 4, "bf16") == fp(2)[0]
    assert reduce_run(numbers, 4, "fp32") == fp(2 + 2.0**-7)[0]
    _, values = merge_job([leaf([3], fp(1.0078125), int(fp(1.0078125)[0]))], 2, "bf16")
    assert values == fp(1.015625)


def test_empty_job_gives_an_empty_fiber():
    coordinates, values = merge_job([leaf([], [], 1)], 2, "int32")
    assert len(coordinates) == len(values) == 0 and coordinates.dtype == values.dtype == np.uint32


@pytest.mark.parametrize(
    ("leaves", "value", "message"),
    [
        ([], "int32", r"^A job must have 1 to 2 leaves, not 0$"),
        ([leaf([1], [1], 1)] * 3, "int32", r"^A job must have 1 to 2 leaves, not 3$"),
        ([leaf([1], [1], 1), leaf([], [], 1)], "int32", r"^Leaf 1 is empty and not the only leaf of its job$"),
        ([leaf([2, 2], [1, 1], 1)], "int32", r"^Coordinates of leaf 0 do not ascend$"),
        ([leaf([1, 2], [1], 1)], "int32", r"^Leaf 0 has coordinates \(2,\) but values \(1,\)$"),
        ([leaf([1], [1], 1)], "fp16", r"^Value type must be one of int8, int8_saturate, .*, not 'fp16'$"),
    ],
)
def test_refuses_what_is_not_a_job(leaves, value, message):
    with pytest.raises(ValueError, match=message):
        merge_job(leaves, 2, value)
