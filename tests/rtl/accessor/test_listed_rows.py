"""Rows that a list names: begins and ends from arrays of their own, elements with gaps between rows, each line read once."""

from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator

from rtl.accessor.fiber_reader import READ_CLIENTS, FiberReader
from rtl.accessor.segment_placement import SegmentPlacement

from .clients import ClientMemory, patient

BEGINS, ENDS, ELEMENTS = 0x1000, 0x2000, 0x8000
PORTS = tuple(READ_CLIENTS.index(name) for name in ("positions", "pointers", "elements"))
DATA = PORTS[-1]
UNLIMITED = (1 << 32) - 1
Row = tuple[int, int]


class Reader:
    """The block, memory, and what has come out: for each row its begin, length, whether it is bumped, and its elements."""

    def __init__(self, lanes: int, rows: list[Row], seed: int, hurry: float = 0.7) -> None:
        self.lanes = lanes
        self.rows = rows
        self.memory = ClientMemory(0x20000, 8 * lanes, seed=seed, hurry=hurry)
        begins, ends = np.array(rows, np.uint32).T
        self.memory.store(BEGINS, begins)
        self.memory.store(ENDS, np.concatenate([np.array([99], np.uint32), ends]))
        self.values = np.random.default_rng(seed).integers(0, 2**64, 8000, np.uint64)
        self.memory.store(ELEMENTS, self.values)
        self.dut = FiberReader(lanes=lanes, address_width=40, burst_beats=8)
        self.placement = SegmentPlacement(remembered=0)
        both = Module()
        both.submodules += [self.dut, self.placement]
        connect(both, self.dut.sizes, self.placement.steps)
        connect(both, self.placement.places, self.dut.places)
        self.sim = Simulator(both)
        self.sim.add_clock(1e-8)
        for n in range(len(READ_CLIENTS)):
            self.sim.add_testbench(
                self.memory.reader(self.dut.read_request[n], self.dut.read_data[n], n), background=True
            )

    async def read(
        self, ctx: Any, first: int, count: int, *, limit: int = UNLIMITED
    ) -> list[tuple[Row, int, list[int]]]:
        """Rows ``first`` to ``first + count`` of the list: begin and length of each, whether it is bumped, its elements."""
        dut = self.dut
        for name, value in {"positions": BEGINS, "pointers": ENDS, "elements": ELEMENTS}.items():
            ctx.set(getattr(dut, name), value)
        ctx.set(self.placement.limit, limit)
        ctx.set(self.placement.regular, limit)
        for pulse in (self.placement.start, self.placement.load):
            ctx.set(pulse, 1)
            await ctx.tick()
            ctx.set(pulse, 0)
        ctx.set(dut.tile.payload, {"row": first, "rows": count, "whole": 1, "by_list": 1, "from_pointers": 1})
        ctx.set(dut.tile.valid, 1)
        for _ in patient(100):
            if (await ctx.tick().sample(dut.tile.ready))[2]:
                break
        ctx.set(dut.tile.valid, 0)
        found: list[tuple[Row, int, list[int]]] = []
        held: list[int] = []
        for _ in patient(200 * count + 2000):
            take = self.memory.random.random() < 0.7
            ctx.set(dut.segments.ready, take)
            _, _, valid, piece = await ctx.tick().sample(dut.segments.valid, dut.segments.payload)
            word, begin, length, bumped = piece.word, piece.begin, piece.length, piece.bumped
            if not (take and valid):
                continue
            held += [e.coordinate | e.value << 32 for e in word.line][word.first : word.first + word.count]
            if word.last:
                found.append(((begin, begin + length), bumped, held))
                held = []
                if len(found) == count:
                    break
        ctx.set(dut.segments.ready, 0)
        for _ in patient(200):
            if (await ctx.tick().sample(dut.idle))[2]:
                break
        return found

    def lines(self, first: int, stop: int) -> int:
        """Lines that hold an element of these rows, which rise in memory."""
        return len({at // self.lanes for begin, end in self.rows[first:stop] for at in range(begin, end)})

    def words(self, first: int, count: int) -> int:
        """Lines that hold these words."""
        return (4 * (first + count) - 1) // (8 * self.lanes) - 4 * first // (8 * self.lanes) + 1

    def check(self, found: list[tuple[Row, int, list[int]]], first: int, held: int) -> None:
        for n, (row, bumped, elements) in enumerate(found):
            begin, end = self.rows[first + n]
            assert row == (begin, end) and bumped == (n >= held)
            assert elements == ([] if n >= held else self.values[begin:end].tolist())


def random_rows(rng: np.random.Generator, count: int, longest: int, gap: int) -> list[Row]:
    """Rows that rise in memory, with gaps of up to ``gap`` elements between them; some are empty."""
    rows, at = [], int(rng.integers(0, 5))
    for _ in range(count):
        at += int(rng.integers(0, gap + 1))
        end = at + int(rng.integers(0, longest + 1))
        rows.append((at, end))
        at = end
    return rows


@pytest.mark.parametrize("lanes", [2, 8])
@pytest.mark.parametrize(("longest", "gap"), [(1, 0), (3, 0), (3, 1), (1, 40), (20, 3), (20, 60), (70, 9)])
def test_every_row(lanes: int, longest: int, gap: int) -> None:
    """Several tiles one after the other, the later ones from the middle of the list."""
    rng = np.random.default_rng(lanes + longest + gap)
    rows = [*random_rows(rng, 25, longest, gap), *random_rows(rng, 25, longest, gap)]
    reader = Reader(lanes, rows, seed=longest)

    async def bench(ctx: Any) -> None:
        for first, count in ((0, 25), (25, 25), (7, 1), (3, 11), (26, 20)):
            before = dict(reader.memory.beats_read)
            found = await reader.read(ctx, first, count)
            reader.check(found, first, count)
            read = [reader.memory.beats_read.get(port, 0) - before.get(port, 0) for port in PORTS]
            pairs = [reader.words(first, count), reader.words(first + 1, count)]
            assert read == [*pairs, reader.lines(first, first + count)]

    reader.sim.add_testbench(bench)
    reader.sim.run()


@pytest.mark.parametrize("lanes", [2, 8])
@pytest.mark.parametrize("hurry", [1.0, 0.15])
def test_rows_beyond_the_limit_are_not_read(lanes: int, hurry: float) -> None:
    """The limit counts elements of rows, whatever lies between them in memory."""
    rng = np.random.default_rng(lanes)
    rows = random_rows(rng, 40, 9, 30)
    ends = np.cumsum([end - begin for begin, end in rows])
    reader = Reader(lanes, rows, seed=1, hurry=hurry)

    async def bench(ctx: Any) -> None:
        for limit in (int(ends[11]), int(ends[11]) - 1, int(ends[30]) + 1, 0):
            held = int(np.searchsorted(ends, limit, side="right"))
            before = reader.memory.beats_read.get(DATA, 0)
            reader.check(await reader.read(ctx, 0, 40, limit=limit), 0, held)
            assert reader.memory.beats_read.get(DATA, 0) - before == reader.lines(0, held)

    reader.sim.add_testbench(bench)
    reader.sim.run()
