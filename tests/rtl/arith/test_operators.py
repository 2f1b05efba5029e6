"""Adders and multipliers agree with the golden arithmetic bit for bit, under stalls, at their stated latency."""

from functools import partial

import numpy as np
import pytest
from amaranth.lib import wiring
from amaranth.sim import Simulator

from rtl.arith import BFLOAT16, VALUES, FpAdd, FpMultiply, IntAdd, IntMultiply, arithmetic
from rtl.regs.map import VALUE_TYPES
from sw.golden import arithmetic as golden
from tests.rtl.arith.operands import corners, crossed_corners, exponent_ladder, noise, structured
from tests.rtl.arith.rack import compile_rack

OPERATORS = {
    f"{operation}_{value}": (arithmetic(value)[n], partial(getattr(golden, operation), value=value))
    for value in VALUES
    for n, operation in enumerate(("add", "multiply"))
}
MILLION = 1_000_000


def differences(name, a, b, got):
    """Where an operator's results differ from the golden ones; the first few in words."""
    expected = OPERATORS[name][1](a, b)
    wrong = np.flatnonzero(got != expected)
    shown = [f"{a[n]:08x} {b[n]:08x} -> {got[n]:08x}, expected {expected[n]:08x}" for n in wrong[:5]]
    return len(wrong), f"{name}: {len(wrong)} of {len(a)} differ\n" + "\n".join(shown)


@pytest.fixture(scope="module")
def rack():
    return compile_rack({name: make() for name, (make, _) in OPERATORS.items()})


@pytest.mark.parametrize(
    ("pairs", "stalls_in_256"),
    [
        pytest.param(crossed_corners, 0, id="corners"),
        pytest.param(crossed_corners, 128, id="corners_stalled"),
        pytest.param(exponent_ladder, 40, id="exponent_ladder"),
        pytest.param(partial(structured, np.random.default_rng(1), MILLION), 0, id="structured"),
        pytest.param(partial(structured, np.random.default_rng(2), MILLION), 100, id="structured_stalled"),
        pytest.param(partial(noise, np.random.default_rng(3), MILLION), 0, id="noise"),
        pytest.param(partial(noise, np.random.default_rng(4), MILLION // 4), 240, id="noise_mostly_stalled"),
    ],
)
def test_agrees_with_golden(rack, pairs, stalls_in_256):
    a, b = pairs()
    results = rack(a, b, stalls_in_256=stalls_in_256, seed=7)
    failures = [text for count, text in (differences(name, a, b, results[name]) for name in OPERATORS) if count]
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize(("value", "largest"), [("fp32", 0x7F7FFFFF), ("bf16", 0x7F7F0000)])
def test_the_structured_pairs_reach_every_kind_of_result(value, largest):
    a, b = structured(np.random.default_rng(1), MILLION)
    for operator in (golden.add, golden.multiply):
        bits = operator(a, b, value=value) & 0x7FFFFFFF
        kinds = {
            "zero": bits == 0,
            "subnormal": (bits > 0) & (bits < 0x00800000),
            "smallest normal": bits == 0x00800000,
            "normal": (bits > 0x00800000) & (bits < largest),
            "infinity": bits == 0x7F800000,
            "nan": bits > 0x7F800000,
        }
        counts = {kind: int(hits.sum()) for kind, hits in kinds.items()}
        assert min(counts.values()) > 0, (operator.__name__, counts)
        assert counts["subnormal"] > 5_000, (operator.__name__, counts)
    flushed = golden.multiply(a, b, value=f"{value}_flush")
    rounded_up_to_normal = (golden.multiply(a, b, value=value) & 0x7FFFFFFF == 0x00800000) & (flushed << 1 == 0)
    assert rounded_up_to_normal.any()


@pytest.mark.parametrize("name", OPERATORS)
def test_amaranth_simulation_agrees_too(name):
    """The Verilog is the product, but the simulator's view of the same source must not differ from it."""
    make, reference = OPERATORS[name]
    rng = np.random.default_rng(11)
    words = corners()
    a, b = rng.choice(words, 300), rng.choice(words, 300)
    expected = reference(a, b)
    dut = make()
    got = []

    async def testbench(ctx):
        sent = 0
        while len(got) < len(a):
            advance = bool(rng.random() < 0.7)
            ctx.set(dut.advance, advance)
            ctx.set(dut.a, int(a[sent]) if advance and sent < len(a) else 0xDEADBEEF)
            ctx.set(dut.b, int(b[sent]) if advance and sent < len(a) else 0x12345678)
            await ctx.tick()
            sent += advance
            if advance and sent >= dut.latency:
                got.append(ctx.get(dut.result))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    assert got == expected.tolist()


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_interchangeable(name):
    operator = OPERATORS[name][0]()
    assert operator.signature == wiring.Signature(dict(FpAdd().signature.members))
    assert 1 <= operator.latency <= 5
    assert operator.module_name.isidentifier()


def test_distinct_builds_have_distinct_module_names():
    names = [make().module_name for make, _ in OPERATORS.values()]
    assert len(set(names)) == len(names)
    assert FpAdd().module_name == "fp_add"
    assert FpAdd(format=BFLOAT16).module_name == "fp_add_format_bfloat16"
    assert IntAdd(width=8, saturate=True).module_name == "int_add_width8_saturate"


def test_value_types():
    assert VALUES == golden.VALUES
    assert {value.partition("_")[0] for value in VALUES} == set(VALUE_TYPES)
    with pytest.raises(ValueError, match=r"^Value type must be one of int8, int8_saturate, .*, not 'bf16_saturate'$"):
        arithmetic("bf16_saturate")


def test_int8_is_exact_for_every_pair(rack):
    """Against Python's integers; the upper bits of the operands are noise that must not matter."""
    numbers = np.arange(-128, 128)
    x, y = (grid.ravel() for grid in np.meshgrid(numbers, numbers))
    noise_a, noise_b = noise(np.random.default_rng(12), len(x))
    a, b = ((n & 0xFF).astype(np.uint32) | (w & np.uint32(0xFFFFFF00)) for n, w in ((x, noise_a), (y, noise_b)))
    results = rack(a, b, stalls_in_256=30)
    for operation, exact in (("add", x + y), ("multiply", x * y)):
        wrapped = [n % 256 - 256 * (n % 256 > 127) for n in exact.tolist()]
        clamped = [max(-128, min(127, n)) for n in exact.tolist()]
        assert results[f"{operation}_int8"].view(np.int32).tolist() == wrapped
        assert results[f"{operation}_int8_saturate"].view(np.int32).tolist() == clamped


@pytest.mark.parametrize(("make", "parameter"), [(FpAdd, "flush_subnormals"), (FpMultiply, "flush_subnormals")])
def test_refuses_a_flush_that_is_not_a_bool(make, parameter):
    with pytest.raises(TypeError, match=r"^Flush subnormals must be a bool, not 1$"):
        make(**{parameter: 1})


@pytest.mark.parametrize("make", [FpAdd, FpMultiply])
def test_refuses_a_format_of_its_own(make):
    with pytest.raises(ValueError, match=r"^Format must be BINARY32 or BFLOAT16, not 'fp16'$"):
        make(format="fp16")


@pytest.mark.parametrize("make", [IntAdd, IntMultiply])
def test_refuses_a_width_of_its_own(make):
    with pytest.raises(ValueError, match=r"^Width must be 8, 16 or 32, not 24$"):
        make(width=24)


@pytest.mark.parametrize("make", [IntAdd, IntMultiply])
def test_refuses_a_saturate_that_is_not_a_bool(make):
    with pytest.raises(TypeError, match=r"^Saturate must be a bool, not 'yes'$"):
        make(saturate="yes")
