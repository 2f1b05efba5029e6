"""Every form of the prefix sum gives the plain sums, in its time, with as many adders as its formula says."""

import re
from math import log2

import numpy as np
import pytest
from amaranth.back import rtlil

from rtl.mint.prefix_sum import FORMS, PrefixSum
from sw.golden.mint import prefix_sums
from tests.rtl.mint.vectors import PAUSES, run_vectors

SIZES = {
    "two": {"inputs": 2, "width": 1},
    "eight": {"inputs": 8, "width": 8},
    "wider": {"inputs": 4, "width": 7, "sum_width": 20},
    "flags": {"inputs": 16, "width": 1, "sum_width": 3},
    "widest": {"inputs": 4, "width": 64, "sum_width": 128},
}

ADDERS = {
    "serial_chain": lambda n: n - 1,
    "work_efficient": lambda n: 2 * n - 2 - log2(n),
    "highly_parallel": lambda n: n * log2(n) - n + 1,
}
DEPTH = {
    "serial_chain": lambda n: n - 1,
    "work_efficient": lambda n: 2 * log2(n) - 1,
    "highly_parallel": lambda n: log2(n),
}


def stimulus(inputs, width, seed):
    """Values and first flags: largest values, ones in one lane, zeros, noise; arrays of one vector and of several."""
    rng = np.random.default_rng(seed)
    largest = (1 << width) - 1
    rows = [[largest] * inputs] * 3 + [[0] * inputs]
    rows += [[largest if lane == n else 0 for lane in range(inputs)] for n in range(inputs)]
    rows += rng.integers(0, largest, (12, inputs), dtype=np.uint64, endpoint=True).tolist()
    values = np.array(rows, np.uint64)
    return values, rng.random(len(values)) < 0.3


def check(dut, values, first, *, begin=0, **conditions):
    """Runs all vectors; compares those from ``begin`` on. Returns the cycles in which they came."""
    sent = [{"first": bool(f), "values": [int(v) for v in row]} for f, row in zip(first, values, strict=True)]
    came = run_vectors(dut, sent, **conditions)
    wanted = prefix_sums(values[begin:], first[begin:], dut.sum_width).tolist()
    assert [list(payload.sums) for payload, _ in came] == wanted
    assert [payload.first for payload, _ in came] == first[begin:].tolist()
    return [cycle for _, cycle in came]


@pytest.mark.parametrize("backpressure", PAUSES)
@pytest.mark.parametrize("idle", PAUSES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("form", FORMS)
def test_sums_are_the_plain_ones(form, size, idle, backpressure):
    dut = FORMS[form](**SIZES[size])
    values, first = stimulus(dut.inputs, dut.width, len(size))
    check(dut, values, first, idle=PAUSES[idle], backpressure=PAUSES[backpressure])


@pytest.mark.parametrize("form", FORMS)
def test_a_vector_a_cycle(form):
    """Back to back: the first result after the latency, then one in every cycle; one long array."""
    dut = FORMS[form](inputs=8, width=8, sum_width=32)
    values, _ = stimulus(8, 8, 5)
    cycles = check(dut, values, np.arange(len(values)) == 0)
    assert cycles == [1 + dut.latency + n for n in range(len(values))]


@pytest.mark.parametrize("form", FORMS)
def test_default_size(form):
    dut = FORMS[form]()
    assert (dut.inputs, dut.width, dut.sum_width) == (32, 32, 32)
    values = np.random.default_rng(3).integers(0, 1 << 32, (4, 32), dtype=np.uint64)
    check(dut, values, np.array([True, False, True, False]), backpressure=0.3)


@pytest.mark.parametrize("form", FORMS)
def test_a_reset_drops_vectors_and_offset(form):
    """The first vector after a reset begins an array although it does not say so."""
    dut = FORMS[form](inputs=4, width=8, sum_width=16)
    values, _ = stimulus(4, 8, 9)
    first = np.arange(len(values)) == 0
    for count in (1, 3, dut.latency, dut.latency + 3):
        check(dut, values, first, begin=count, reset_after=count, backpressure=0.3)


@pytest.mark.parametrize("inputs", [2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("form", FORMS)
def test_adders_and_depth_are_those_of_the_formulas(form, inputs):
    dut = FORMS[form](inputs=inputs, width=4)
    assert (dut.adders, dut.depth) == (ADDERS[form](inputs), DEPTH[form](inputs))
    assert dut.latency == dut.depth + 1
    dut.build(None)


@pytest.mark.parametrize(("sum_width", "widths"), [(32, [2, 2, 3, 3, 3, 3, 4]), (3, [2, 2, 3, 3, 3, 3, 3])])
def test_sums_are_no_wider_than_they_can_become(sum_width, widths):
    """The chain's sums of 2 to 8 values of 1 bit."""
    text = rtlil.convert(FORMS["serial_chain"](inputs=8, width=1, sum_width=sum_width))
    found = re.findall(r"wire width (\d+) \\level(\d)_lane", text)
    assert [int(width) for width, _ in sorted(found, key=lambda one: one[1])] == widths


def test_latencies_of_32_inputs():
    assert {form: block().latency for form, block in FORMS.items()} == {
        "serial_chain": 32,
        "work_efficient": 10,
        "highly_parallel": 6,
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"inputs": 12}, r"^Inputs must be a power of two from 2 to 64, not 12$"),
        ({"inputs": 128}, r"^Inputs must be a power of two from 2 to 64, not 128$"),
        ({"width": 0}, r"^Value width must be an integer from 1 to 64, not 0$"),
        ({"width": 8, "sum_width": 7}, r"^Sum width must be an integer from 8 to 128, not 7$"),
    ],
)
def test_refuses_impossible_parameters(form, sizes, message):
    with pytest.raises(ValueError, match=message):
        FORMS[form](**sizes)


def test_a_form_says_its_network():
    with pytest.raises(TypeError, match=r"^PrefixSum does not say how its adders are joined$"):
        PrefixSum().levels()
