"""The counter bank adds, keeps maxima, clears, and counts only while enabled."""

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from rtl.lib.sram import SramBank
from rtl.regs import counters
from rtl.regs.counter_list import COUNTERS
from rtl.regs.counters import CounterBank

WIDTHS = {"MACS": 2, "PE_BUSY": 4, "READ_B_DATA": 5, "BUFFER_PEAK_A": 12, "BUFFER_PEAK_B": 3}


class Torn(SramBank):
    """A word that is read in the cycle in which it is written reads as its complement, and so does what was never written."""

    def build(self, platform):
        m = Module()
        m.submodules.bank = bank = SramBank(depth=self.depth, width=self.width)
        written, torn = Signal(self.depth), Signal()
        with m.If(self.write_mask):
            m.d.sync += written.bit_select(self.write_address, 1).eq(1)
        collides = self.write_mask & (self.write_address == self.read_address)
        m.d.sync += torn.eq(collides | ~written.bit_select(self.read_address, 1))
        for name in ("read_enable", "read_address", "write_mask", "write_address", "write_data"):
            m.d.comb += getattr(bank, name).eq(getattr(self, name))
        m.d.comb += self.read_data.eq(bank.read_data ^ torn.replicate(self.width))
        return m


@pytest.fixture(autouse=True)
def torn(monkeypatch):
    monkeypatch.setattr(counters, "SramBank", Torn)


class Bank:
    """A bank with what its counters must be, cycle by cycle."""

    def __init__(self, dut, ctx):
        self.dut, self.ctx = dut, ctx
        self.counts = dict.fromkeys(dut.counters, 0)
        self.underway = {}  # events that no read has yet
        self.asked = None  # the counter that is read, and its value

    async def cycle(self, events, *, enable=True, clear=False, read=None):
        """``read`` is a counter's number."""
        dut, ctx = self.dut, self.ctx
        for counter in dut.counters:
            ctx.set(dut.events[counter.name.lower()], events.get(counter.name, 0))
        ctx.set(dut.enable, enable)
        ctx.set(dut.clear, clear)
        ctx.set(dut.read, read is not None)
        ctx.set(dut.number, read or 0)
        if self.asked is not None:
            counter, value = self.asked
            assert ctx.get(dut.count) == value, counter.name
        self.asked = None
        if read is not None:
            counter = dut.counters[read]
            self.asked = counter, 0 if clear else self.counts[counter]
        for counter, before in self.counts.items():
            value = self.underway.get(counter.name, 0)
            after = max(before, value) if counter.peak else before + value
            self.counts[counter] = 0 if clear else after % (1 << dut.width)
        self.underway = events if enable and not clear else {}
        await ctx.tick()

    async def check(self):
        """All counters, as fast as reads may come."""
        for number in range(len(self.dut.counters)):
            await self.cycle({}, read=number)
            for _ in range(self.dut.read_spacing - 1):
                await self.cycle({})


def run(dut, task):
    async def whole(ctx):
        await task(Bank(dut, ctx))

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(whole)
    sim.run()


def largest(dut):
    return {counter.name: (1 << dut.increments.get(counter.name, 1)) - 1 for counter in dut.counters}


def test_sums_and_maxima():
    dut = CounterBank(increments=WIDTHS)
    rng = random.Random(5)

    async def task(bank):
        for _ in range(4):
            for n in range(150):
                events = {name: rng.randint(0, most) for name, most in largest(dut).items()}
                read = rng.randrange(len(COUNTERS)) if n % dut.read_spacing == 0 else None
                await bank.cycle(events, enable=rng.random() < 0.8, read=read)
            await bank.check()
            await bank.cycle(largest(dut))
            await bank.cycle(largest(dut), clear=True)
            if rng.random() < 0.5:
                await bank.check()

    run(dut, task)


@pytest.mark.parametrize("shift", [*range(-4, 5), None])
def test_full_events_in_every_cycle_and_reads_as_often_as_they_may_come(shift):
    """Reads follow the word whose turn it is, at each distance; or they are at random, of few words."""
    turn = 11
    dut = CounterBank(increments={"MACS": 3, "PE_BUSY": 2}, counters=COUNTERS[:turn], width=14)
    rng = random.Random(3)

    async def task(bank):
        position = 0
        for n in range(20 * turn * turn):
            read = None
            if n % dut.read_spacing == 0:
                read = rng.randrange(turn) if shift is None else (position + shift) % turn
            clear = n % 997 == 400
            await bank.cycle(largest(dut), clear=clear, read=read)
            position = 0 if clear else (position + (read is None)) % turn
        await bank.check()

    run(dut, task)


@pytest.mark.parametrize("spacing", [0, 5, 6, 7, 9])
def test_each_register_lasts_a_turn(spacing):
    """With full events in every cycle no count loses a round of its register, whatever reads do to the turns."""
    dut = CounterBank(increments=WIDTHS)

    async def task(bank):
        for n in range(6 * dut.turn):
            read = n // spacing * 7 % len(COUNTERS) if spacing and n % spacing == 0 else None
            await bank.cycle(largest(dut), read=read)
        await bank.check()

    run(dut, task)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_few_counters(number):
    dut = CounterBank(increments={"CYCLES": 3}, counters=COUNTERS[:number], width=9)

    async def task(bank):
        for n in range(400):
            read = n // dut.read_spacing % number if n % dut.read_spacing == 0 else None
            await bank.cycle(largest(dut), clear=n == 333, read=read)
        await bank.check()

    run(dut, task)


def test_carry_beyond_32_bits_and_wrap():
    dut = CounterBank(increments={"MACS": 36}, width=36)

    async def task(bank):
        for _ in range(2):
            await bank.cycle({"MACS": (1 << 35) + 1})
            await bank.cycle({}, enable=False)
            await bank.check()
        assert list(bank.counts.values())[1] == 2

    run(dut, task)


def test_refuses_wrong_parameters():
    with pytest.raises(ValueError, match="^There is no counter 'NOISE'$"):
        CounterBank(increments={"NOISE": 1})
    with pytest.raises(ValueError, match="^Increment of MACS must have 1 to 48 bits, not 49$"):
        CounterBank(increments={"MACS": 49})
    with pytest.raises(ValueError, match="^Counter width must be from 1 to 64, not 65$"):
        CounterBank(width=65)
