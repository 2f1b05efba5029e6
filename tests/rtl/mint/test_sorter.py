"""The sorting network sorts every vector, keeps equal keys in order, and has the comparators that it says."""

from math import log2

import numpy as np
import pytest

from rtl.mint.sorter import Sorter, network_levels
from sw.golden.mint import sorted_lanes
from tests.rtl.mint.vectors import PAUSES, run_vectors

SIZES = {
    "two": {"inputs": 2, "key_width": 1, "payload_width": 1},
    "eight": {"inputs": 8, "key_width": 5, "payload_width": 9},
    "keys": {"inputs": 4, "key_width": 64, "payload_width": 0},
}


def stimulus(dut, seed):
    """Keys and present flags: all equal, largest and zero, falling, few keys, noise; whole vectors, some lanes, one, none."""
    rng = np.random.default_rng(seed)
    n, largest = dut.inputs, (1 << dut.key_width) - 1
    rows = [[largest] * n, [0] * n, [largest if lane % 2 else 0 for lane in range(n)]]
    rows += [[max(0, min(n, largest) - lane) for lane in range(n)]]
    rows += rng.integers(0, min(largest, 2), (8, n), dtype=np.uint64, endpoint=True).tolist()
    rows += rng.integers(0, largest, (8, n), dtype=np.uint64, endpoint=True).tolist()
    keys = np.array(rows, np.uint64)
    present = rng.random(keys.shape) < rng.choice([1.0, 0.5], (len(keys), 1))
    present[-2:] = False
    present[-1, n // 2] = True
    return keys, present


def check(dut, *, begin=0, seed=1, **conditions):
    keys, present = stimulus(dut, seed)
    payloads = np.random.default_rng(seed).integers(0, 1 << dut.payload_width, keys.shape).tolist()
    vectors = []
    for row in zip(keys.tolist(), present.tolist(), payloads, strict=True):
        items = [{"key": key, "present": here} for key, here, _ in zip(*row, strict=True)]
        if dut.payload_width:
            items = [item | {"payload": payload} for item, payload in zip(items, row[2], strict=True)]
        vectors.append(items)
    came = run_vectors(dut, vectors, **conditions)
    assert len(came) == len(vectors) - begin
    for n, (items, _) in enumerate(came, begin):
        order = sorted_lanes(keys[n], present[n]).tolist()
        assert [item.lane for item in items] == order, n
        assert [(item.key, item.present) for item in items] == [(int(keys[n][k]), present[n][k]) for k in order]
        if dut.payload_width:
            assert [item.payload for item in items] == [payloads[n][k] for k in order]
    return [cycle for _, cycle in came]


@pytest.mark.parametrize("backpressure", PAUSES)
@pytest.mark.parametrize("idle", PAUSES)
@pytest.mark.parametrize("size", SIZES)
def test_vectors_come_out_sorted_and_stable(size, idle, backpressure):
    check(Sorter(**SIZES[size]), idle=PAUSES[idle], backpressure=PAUSES[backpressure])


def test_a_vector_a_cycle():
    dut = Sorter(inputs=8, key_width=8, payload_width=4)
    cycles = check(dut)
    assert cycles == [1 + dut.latency + n for n in range(len(cycles))]


@pytest.mark.parametrize("count", [1, 6, 9])
def test_a_reset_drops_what_is_inside(count):
    check(Sorter(inputs=8, key_width=4, payload_width=4), begin=count, reset_after=count, backpressure=0.3)


def test_default_size():
    check(Sorter(), backpressure=0.3)


@pytest.mark.parametrize("inputs", [2, 4, 8, 16])
def test_the_network_sorts_every_vector_of_zeros_and_ones(inputs):
    """By the zero-one principle it then sorts everything."""
    vectors = (np.arange(1 << inputs)[:, None] >> np.arange(inputs)) & 1
    wanted = np.sort(vectors, axis=1)
    for level in network_levels(inputs):
        for low, high in level:
            pair = np.sort(vectors[:, [low, high]], axis=1)
            vectors[:, [low, high]] = pair
    assert (vectors == wanted).all()


@pytest.mark.parametrize(("inputs", "comparators", "bitonic"), [(8, 19, 24), (16, 63, 80), (32, 191, 240)])
def test_comparators_and_levels(inputs, comparators, bitonic):
    dut = Sorter(inputs=inputs)
    levels = log2(inputs)
    assert dut.comparators == comparators == (levels**2 - levels + 4) * 2 ** (levels - 2) - 1
    assert dut.latency == levels * (levels + 1) / 2
    assert bitonic == dut.latency * inputs / 2
    for level in network_levels(inputs):
        lanes = [lane for pair in level for lane in pair]
        assert len(set(lanes)) == len(lanes), "a lane is in two comparators of a level"
    dut.build(None)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"inputs": 64}, r"^Inputs must be a power of two from 2 to 32, not 64$"),
        ({"key_width": 0}, r"^Key width must be an integer from 1 to 64, not 0$"),
        ({"payload_width": -1}, r"^Payload width must be an integer from 0 to 128, not -1$"),
    ],
)
def test_refuses_impossible_parameters(sizes, message):
    with pytest.raises(ValueError, match=message):
        Sorter(**sizes)
