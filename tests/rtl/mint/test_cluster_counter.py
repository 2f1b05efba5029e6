"""The cluster counter finds every run of equal keys and its length."""

import numpy as np
import pytest

from rtl.mint.cluster_counter import ClusterCounter
from sw.golden.mint import equal_runs
from tests.rtl.mint.vectors import PAUSES, run_vectors

SIZES = {
    "two": {"inputs": 2, "key_width": 1},
    "eight": {"inputs": 8, "key_width": 3},
    "sixteen": {"inputs": 16, "key_width": 64},
}


def stimulus(dut, seed):
    """One run of each length at each place, between other keys or absent lanes; all equal, all different, noise."""
    rng = np.random.default_rng(seed)
    n, largest = dut.inputs, (1 << dut.key_width) - 1
    keys = [[largest] * n, [lane % 2 * largest for lane in range(n)], [0] * n]
    present = [[True] * n, [True] * n, [False] * n]
    for length in range(1, n + 1):
        begin = int(rng.integers(0, n - length + 1))
        inside = [begin <= lane < begin + length for lane in range(n)]
        keys += [[largest if here else lane % 2 for lane, here in enumerate(inside)], [largest] * n]
        present += [[True] * n, inside]
    for _ in range(20):
        row = rng.integers(0, min(largest, 3), n, dtype=np.uint64, endpoint=True)
        keys.append((np.sort(row) if rng.random() < 0.5 else row).tolist())
        present.append((rng.random(n) < rng.choice([1.0, 0.7])).tolist())
    # Keys that differ in their highest bit alone are different ones.
    keys.append([(lane % 2) << (dut.key_width - 1) for lane in range(n)])
    present.append([True] * n)
    return np.array(keys, np.uint64), np.array(present)


def check(dut, *, begin=0, **conditions):
    keys, present = stimulus(dut, dut.inputs)
    vectors = [
        [{"key": key, "present": here} for key, here in zip(*row, strict=True)]
        for row in zip(keys.tolist(), present.tolist(), strict=True)
    ]
    came = run_vectors(dut, vectors, **conditions)
    assert len(came) == len(vectors) - begin
    for n, (items, _) in enumerate(came, begin):
        counts, last = equal_runs(keys[n], present[n])
        assert [item.count for item in items] == counts.tolist(), n
        assert [item.last for item in items] == last.tolist(), n
        assert [(item.key, item.present) for item in items] == list(zip(keys[n].tolist(), present[n], strict=True))
        runs = [(item.key, item.count) for item in items if item.last]
        assert sum(count for _, count in runs) == present[n].sum(), "every present lane is in one run"
    return [cycle for _, cycle in came]


@pytest.mark.parametrize("backpressure", PAUSES)
@pytest.mark.parametrize("idle", PAUSES)
@pytest.mark.parametrize("size", SIZES)
def test_runs_and_their_lengths(size, idle, backpressure):
    check(ClusterCounter(**SIZES[size]), idle=PAUSES[idle], backpressure=PAUSES[backpressure])


def test_a_vector_a_cycle():
    cycles = check(ClusterCounter(inputs=8, key_width=8))
    assert cycles == [1 + 2 + n for n in range(len(cycles))]


@pytest.mark.parametrize("count", [1, 3])
def test_a_reset_drops_what_is_inside(count):
    check(ClusterCounter(inputs=4, key_width=4), begin=count, reset_after=count, backpressure=0.3)


def test_default_size():
    check(ClusterCounter())


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"inputs": 6}, r"^Inputs must be a power of two from 2 to 64, not 6$"),
        ({"key_width": 65}, r"^Key width must be an integer from 1 to 64, not 65$"),
    ],
)
def test_refuses_impossible_parameters(sizes, message):
    with pytest.raises(ValueError, match=message):
        ClusterCounter(**sizes)
