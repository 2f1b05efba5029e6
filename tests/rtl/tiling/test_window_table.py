"""Window table against the table in memory: every window as it stands there, each beat read once while it is held."""

from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator

from rtl.tiling.window_table import WindowTable
from tests.rtl.accessor.clients import ClientMemory, patient

TABLE = 0x100
TOP = 2**32 - 1
ENTRY_BYTES = 16
# Bits of each field of an entry, from the lowest one on.
FIELDS = {"begin": 32, "line": 16, "lines": 16, "size": 24, "kept": 23, "early": 1, "metadata": 16}
Bench = Callable[["Table", Any], Awaitable[None]]


def packed(window: dict[str, int]) -> bytes:
    """An entry as memory holds it."""
    bits, at = 0, 0
    for name, width in FIELDS.items():
        bits |= window[name] << at
        at += width
    return bits.to_bytes(ENTRY_BYTES, "little")


class Table:
    """The block and memory with a table of windows; counts the beats that the block should read."""

    def __init__(self, lanes: int, entries: int, hurry: float = 0.7) -> None:
        self.lanes = lanes
        self.in_beat = lanes // 2  # windows
        self.rng = np.random.default_rng(100 * lanes + entries)
        self.memory = ClientMemory(0x1000, 8 * lanes, seed=entries, hurry=hurry)
        self.entries = entries
        self.fill()
        self.dut = WindowTable(lanes=lanes, address_width=40)
        self.reset = Signal()
        self.held, self.beats = -1, 0

    def fill(self) -> None:
        """Another table at the same place."""
        fields = {name: self.rng.integers(0, 2**width, self.entries) for name, width in FIELDS.items()}
        self.store([{name: int(values[n]) for name, values in fields.items()} for n in range(self.entries)])

    def store(self, windows: list[dict[str, int]]) -> None:
        self.windows = windows
        self.memory.store(TABLE, np.frombuffer(b"".join(map(packed, windows)), np.uint8))

    def run(self, bench: Bench, *, served: bool = True) -> None:
        sim = Simulator(ResetInserter(self.reset)(self.dut))
        sim.add_clock(1e-8)
        if served:
            sim.add_testbench(self.memory.reader(self.dut.read_request, self.dut.read_data, 0), background=True)

        async def testbench(ctx: Any) -> None:
            ctx.set(self.dut.table_address, TABLE)
            await bench(self, ctx)

        sim.add_testbench(testbench)
        sim.run()
        assert self.memory.beats_read.get(0, 0) == self.beats

    async def pulse(self, ctx: Any, *pins: Any) -> None:
        for pin in pins:
            ctx.set(pin, 1)
        await ctx.tick()
        for pin in pins:
            ctx.set(pin, 0)

    async def wait(self, ctx: Any, pin: Any) -> int:
        """Until the pin is high; the cycles that it took."""
        for cycle in patient(5000):
            if ctx.get(pin):
                return cycle
            await ctx.tick()

    def check(self, ctx: Any, index: int) -> None:
        found = ctx.get(self.dut.window)
        assert {name: found[name] for name in FIELDS} == self.windows[index], f"window {index}"

    async def ask(self, ctx: Any, index: int, *also: Any) -> int:
        """Looks up a window, checks it; the cycles that it took. ``also``: pins of a pulse with the question."""
        beat = index // self.in_beat
        if beat != self.held or also:
            self.held, self.beats = beat, self.beats + 1
        ctx.set(self.dut.index, index)
        await self.pulse(ctx, self.dut.ask, *also)
        cycles = 1 + await self.wait(ctx, self.dut.done)
        for _ in range(int(self.rng.integers(1, 4))):
            self.check(ctx, index)
            assert ctx.get(self.dut.done), "the answer stays"
            await ctx.tick()
        return cycles


@pytest.mark.parametrize("lanes", [2, 8])
@pytest.mark.parametrize("entries", [1, 8, 37])
def test_in_order(lanes: int, entries: int) -> None:
    """Each beat is read once; three cycles where it is at hand."""

    async def bench(table: Table, ctx: Any) -> None:
        for index in range(entries):
            at_hand = index // table.in_beat == table.held
            assert (await table.ask(ctx, index) == 3) == at_hand
        assert table.beats == -(-entries // table.in_beat)

    Table(lanes, entries).run(bench)


@pytest.mark.parametrize("lanes", [2, 8])
@pytest.mark.parametrize("hurry", [1.0, 0.7, 0.1])
def test_in_any_order(lanes: int, hurry: float) -> None:
    """Whatever memory takes its time for."""

    async def bench(table: Table, ctx: Any) -> None:
        for index in table.rng.integers(0, table.entries, 80):
            for _ in range(int(table.rng.integers(1, 3))):
                await table.ask(ctx, int(index))

    Table(lanes, 50, hurry).run(bench)


@pytest.mark.parametrize("lanes", [2, 8])
def test_extreme_windows(lanes: int) -> None:
    """No field spills into another or into the next window: each alone is all ones, then all but it."""

    async def bench(table: Table, ctx: Any) -> None:
        full, none = ({name: 2**width - 1 if ones else 0 for name, width in FIELDS.items()} for ones in (1, 0))
        alone = [none | {name: full[name]} for name in FIELDS]
        table.store([*alone, full, none, *(full | {name: 0} for name in FIELDS), full, none])
        for index in (*range(table.entries), *reversed(range(table.entries))):
            await table.ask(ctx, index)

    Table(lanes, 16).run(bench)


@pytest.mark.parametrize("lanes", [2, 8])
@pytest.mark.parametrize("index", [0, 1, 2**29 + 5, 2**31, TOP - 1, TOP])
def test_addresses(lanes: int, index: int) -> None:
    """However large an index, its beat is asked for where it is."""

    async def bench(table: Table, ctx: Any) -> None:
        ctx.set(table.dut.table_address, 0xE7_0000_0100)
        ctx.set(table.dut.index, index)
        await table.pulse(ctx, table.dut.ask)
        await table.wait(ctx, table.dut.read_request.valid)
        asked = ctx.get(table.dut.read_request.payload)
        assert (asked.address, asked.beats) == (0xE7_0000_0100 + index // table.in_beat * 8 * lanes, 1)

    Table(lanes, 1).run(bench, served=False)


def test_what_was_cleared_is_read_again() -> None:
    """Also where the pulse comes with the question, and where another window of the beat is asked for."""

    async def bench(table: Table, ctx: Any) -> None:
        for index in (0, 5, 5, 4, 1):
            await table.ask(ctx, index)
            table.fill()
            await table.pulse(ctx, table.dut.clear)
            table.held = -1
            await table.ask(ctx, index)
            table.fill()
            await table.ask(ctx, index ^ 1, table.dut.clear)

    Table(4, 20).run(bench)


@pytest.mark.parametrize("steps", range(5))
def test_reset_in_the_middle(steps: int) -> None:
    """A reset after so many steps of a lookup ends it; nothing is held afterwards, and memory may hold another table."""

    async def lookup(table: Table, ctx: Any, index: int, steps: int = 4) -> None:
        dut = table.dut
        ctx.set(dut.index, index)
        await table.pulse(ctx, dut.ask)
        if steps > 0:
            await table.wait(ctx, dut.read_request.valid)
        if steps > 1:
            await table.pulse(ctx, dut.read_request.ready)
        if steps > 2:
            await table.wait(ctx, dut.read_data.ready)
            ctx.set(dut.read_data.payload, table.memory.beat(TABLE + index // table.in_beat * 8 * table.lanes))
            await table.pulse(ctx, dut.read_data.valid)
        if steps > 3:
            await table.wait(ctx, dut.done)

    async def bench(table: Table, ctx: Any) -> None:
        for index in (12, 13, 0):
            await lookup(table, ctx, index, steps)
            await table.pulse(ctx, table.reset)
            assert not ctx.get(table.dut.done) and not ctx.get(table.dut.read_request.valid)
            table.fill()
            await lookup(table, ctx, index)
            table.check(ctx, index)
            await table.pulse(ctx, table.reset)

    Table(4, 20).run(bench, served=False)


def test_a_beat_holds_a_whole_window() -> None:
    with pytest.raises(ValueError, match="a window of 2 lanes at least, not 1 lanes"):
        WindowTable(lanes=1, address_width=40)
