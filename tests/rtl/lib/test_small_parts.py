"""One-hot helpers, order, named signals, counters, sticky errors, steady conditions and the SRAM bank."""

import random

import pytest
from amaranth.hdl import Array, Module, Signal
from amaranth.lib import enum
from amaranth.sim import Simulator

from rtl.lib.counter import EventCounter, popcount
from rtl.lib.error import StickyError
from rtl.lib.onehot import above_lowest, lowest_set, onehot_index, onehot_select
from rtl.lib.order import below
from rtl.lib.signals import signals
from rtl.lib.sram import SramBank
from rtl.lib.steady import SteadyFor


class Codes(enum.Enum, shape=2):
    NONE = 0
    FIRST = 1
    SECOND = 2
    THIRD = 3


def simulate(dut, bench):
    top = Module()
    top.submodules.dut = dut
    top.d.sync += Signal().eq(1)
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 16])
def test_onehot_helpers(count):
    rng = random.Random(count)
    value = Signal(count)
    inputs = Array(Signal(7, name=f"input{n}") for n in range(count))
    lowest, index, chosen, ones = Signal(count), Signal(8), Signal(7), Signal(8)
    above = Signal(count)
    m = Module()
    m.d.comb += [
        lowest.eq(lowest_set(value)),
        above.eq(above_lowest(value)),
        index.eq(onehot_index(value)),
        chosen.eq(onehot_select(value, list(inputs))),
        ones.eq(popcount(value)),
    ]

    async def bench(ctx):
        values = [rng.getrandbits(7) for _ in inputs]
        for signal, number in zip(inputs, values, strict=True):
            ctx.set(signal, number)
        for _ in range(50):
            bits = rng.getrandbits(count)
            ctx.set(value, bits)
            assert ctx.get(lowest) == bits & -bits
            assert ctx.get(above) == (bits and ((1 << count) - 1) & -2 * (bits & -bits))
            assert ctx.get(ones) == bits.bit_count()
        for n in range(count):
            ctx.set(value, 1 << n)
            assert ctx.get(index) == n and ctx.get(chosen) == values[n]
        ctx.set(value, 0)
        assert ctx.get(index) == 0 and ctx.get(chosen) == 0

    simulate(m, bench)


@pytest.mark.parametrize("widths", [(1, 1), (3, 3), (3, 5), (5, 3)])
def test_order_of_two_numbers(widths):
    value, limit = (Signal(width) for width in widths)
    less = Signal()
    m = Module()
    m.d.comb += less.eq(below(value, limit))

    async def bench(ctx):
        for one in range(1 << widths[0]):
            ctx.set(value, one)
            for other in range(1 << widths[1]):
                ctx.set(limit, other)
                assert ctx.get(less) == (one < other)

    simulate(m, bench)


def test_event_counter_adds_clears_and_wraps():
    dut = EventCounter(width=4, step_width=3)

    async def bench(ctx):
        total = 0
        for step in (0, 1, 7, 5, 7, 3):
            ctx.set(dut.step, step)
            await ctx.tick()
            total = (total + step) % 16
            assert ctx.get(dut.count) == total
        ctx.set(dut.clear, 1)
        await ctx.tick()
        assert ctx.get(dut.count) == 0

    simulate(dut, bench)


def test_sticky_error_keeps_the_first():
    dut = StickyError(codes=Codes)

    async def bench(ctx):
        ctx.set(dut.raised, 0b0001)
        await ctx.tick()
        assert ctx.get(dut.error) == Codes.NONE, "bit 0 is ignored"
        ctx.set(dut.raised, 0b1100)
        await ctx.tick()
        assert ctx.get(dut.error) == Codes.SECOND, "the lowest of one cycle wins"
        ctx.set(dut.raised, 0b0010)
        await ctx.tick()
        assert ctx.get(dut.error) == Codes.SECOND, "later ones are not kept"
        ctx.set(dut.clear, 1)
        await ctx.tick()
        assert ctx.get(dut.error) == Codes.FIRST, "raised while cleared"
        ctx.set(dut.raised, 0)
        await ctx.tick()
        assert ctx.get(dut.error) == Codes.NONE

    simulate(dut, bench)


@pytest.mark.parametrize("depth,width,granularity", [(2, 8, None), (5, 24, 8), (16, 128, 64)])
def test_sram_bank_keeps_what_was_written(depth, width, granularity):
    rng = random.Random(depth)
    dut = SramBank(depth=depth, width=width, granularity=granularity)
    part = granularity or width

    async def bench(ctx):
        model = [None] * depth
        expected = None
        defined = 0  # bits of what was read last
        beside = 0
        for _ in range(200):
            row, mask, word = rng.randrange(depth), rng.getrandbits(width // part), rng.getrandbits(width)
            mask = mask if model[row] is not None else (1 << width // part) - 1
            read = rng.randrange(depth)
            enable = rng.random() < 0.7 and model[read] is not None
            for signal, value in ((dut.write_address, row), (dut.write_mask, mask), (dut.write_data, word)):
                ctx.set(signal, value)
            ctx.set(dut.read_address, read)
            ctx.set(dut.read_enable, enable)
            await ctx.tick()
            take = sum((1 << part) - 1 << part * n for n in range(width // part) if mask >> n & 1)
            if enable:
                # Parts that are written in the cycle of the read are not defined, the others of the word are.
                expected, defined = model[read], ~take if read == row else -1
                beside += read == row and 0 < take < (1 << width) - 1
            model[row] = (model[row] or 0) & ~take | word & take
            if expected is not None:
                assert (ctx.get(dut.read_data) ^ expected) & defined == 0, "holds until the next enabled read"
        assert (beside > 0) == (width > part)

    simulate(dut, bench)


@pytest.mark.parametrize(
    "build,message",
    [
        (lambda: SramBank(depth=1, width=8), "^SRAM depth must be an integer of at least 2, not 1$"),
        (lambda: SramBank(depth=4, width=0), "^SRAM width must be a positive integer, not 0$"),
        (lambda: SramBank(depth=4, width=8, granularity=3), "^SRAM mask granularity must divide the width 8, not 3$"),
        (lambda: EventCounter(width=0), "^Counter width must be a positive integer, not 0$"),
        (lambda: EventCounter(width=4, step_width=5), "^Counter step width must be from 1 to 4, not 5$"),
        (lambda: StickyError(codes=int), "^Error codes must be an Amaranth enum with values 0, 1, 2, ..., not "),
        (lambda: onehot_select(Signal(2), [Signal()]), "^One-hot select of 2 bits cannot choose among 1 inputs$"),
    ],
)
def test_bad_parameters_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("cycles", [1, 3, 6])
def test_a_condition_is_steady_that_held_in_all_of_the_last_cycles(cycles):
    rng = random.Random(cycles)
    dut = SteadyFor(cycles=cycles)
    past = [0] * cycles

    async def bench(ctx):
        for _ in range(400):
            condition = rng.random() < 0.8
            ctx.set(dut.condition, condition)
            assert ctx.get(dut.steady) == all(past[-cycles:])
            past.append(condition)
            await ctx.tick()

    simulate(dut, bench)


@pytest.mark.parametrize("cycles", [0, 1.5])
def test_wrong_cycles(cycles):
    with pytest.raises(ValueError, match="^Cycles must be an integer from 1 to "):
        SteadyFor(cycles=cycles)


def test_several_signals_have_their_names_and_one_shape():
    found = list(signals("taken left", 5, init=3))
    assert [(one.name, len(one), one.init) for one in found] == [("taken", 5, 3), ("left", 5, 3)]
    assert [len(one) for one in signals("fresh")] == [1]
