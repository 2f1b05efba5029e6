"""Copies of words read as the words: bytes that were written, zero before, also of a word that is being written."""

import random

import pytest
from amaranth.sim import Simulator

from rtl.regs import word_copies
from rtl.regs.word_copies import WordCopies
from tests.rtl.regs.torn import Torn

WIDTHS = {64: 32, 65: 8, 66: 18, 68: 32, 128: 32, 129: 12, 130: 32, 137: 1}


@pytest.fixture(autouse=True)
def torn(monkeypatch):
    monkeypatch.setattr(word_copies, "SramBank", Torn)


@pytest.mark.parametrize("seed", range(4))
def test_reads_beside_writes(seed):
    rng = random.Random(seed)
    dut = WordCopies(widths=WIDTHS)
    words = dict.fromkeys(WIDTHS, 0)
    met = set()

    async def task(ctx):
        value = known = 0
        holds = False  # data of a write stay for one more cycle
        for _ in range(3000):
            write = not holds and rng.random() < 0.4
            if not holds:
                number = rng.choice([*WIDTHS])
                data, strobe = rng.getrandbits(32), rng.choice([0xF, rng.randrange(16)])
                for name, driven in (("written", number), ("data", data), ("strobe", strobe)):
                    ctx.set(getattr(dut, name), driven)
            ctx.set(dut.write, write)
            read = number if rng.random() < 0.5 else rng.choice([*WIDTHS, 0, 1, 67, 192, 1023, rng.randrange(1024)])
            ctx.set(dut.read, read)
            assert (ctx.get(dut.value), ctx.get(dut.known)) == (value, known)
            if write:
                mask = sum(0xFF << 8 * n for n in range(4) if strobe >> n & 1)
                words[number] = (words[number] & ~mask | data & mask) & ((1 << WIDTHS[number]) - 1)
                met.add((read == number, strobe == 0xF))
            value, known = words.get(read, 0), read in words
            await ctx.tick()
            holds = write
        assert len(met) == 4

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(task)
    sim.run()
