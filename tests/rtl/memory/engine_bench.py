"""Drives a MemoryEngine in the Amaranth simulator against :class:`AxiMemory`."""

import random
from collections.abc import Callable
from typing import Any

from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator

from rtl.memory.memory_engine import MemoryEngine
from tests.rtl.memory.axi_memory import AxiMemory

__all__ = ["EngineBench", "engine", "fill", "never", "random_beats", "sometimes"]

Pause = Callable[[random.Random], bool]


def never(rng: random.Random) -> bool:
    return False


def sometimes(chance: float) -> Pause:
    return lambda rng: rng.random() < chance


class EngineBench:
    """One engine, one memory, and a task for each client.

    ``reads[n]`` and ``writes[n]`` list the requests of client n: (address, beats) and (address, [(data, strobe), ...]).
    After ``run`` the beats that reader n received are in ``got[n]``. Whenever a write is told as retired, its bytes must be
    in memory; at the end each write must have been.
    """

    def __init__(self, dut: MemoryEngine, **memory: Any) -> None:
        self.dut = dut
        self.reset = Signal()
        self.line_bytes = dut.data_width // 8
        self.memory = AxiMemory(dut.bus, reset=self.reset, **memory)
        self.got: list[list[int]] = [[] for _ in range(dut.readers)]
        self.reads: dict[int, list[tuple[int, int]]] = {}
        self.writes: dict[int, list[tuple[int, list[tuple[int, int]]]]] = {}
        self.read_events = [0] * dut.readers
        self.write_events = [0] * dut.writers
        self.retired = [0] * dut.writers
        self.request_pause: Pause = never
        self.read_pause: dict[int, Pause] = {}
        self.write_pause: Pause = never
        self.extra: list[Callable[[Any], Any]] = []
        self.finished = 0

    def run(self, *, cycles: int = 20_000, seed: int = 0) -> None:
        """Run until every task has ended; fail when ``cycles`` do not suffice."""
        sim = Simulator(ResetInserter(self.reset)(self.dut))
        sim.add_clock(1e-8)
        tasks: list[Callable[[Any], Any]] = []
        for n, reads in self.reads.items():
            tasks += [self._reader_requests(n, reads, seed), self._reader_data(n, reads, seed)]
        for n, writes in self.writes.items():
            tasks += [self._writer_requests(n, writes, seed), self._writer_data(n, writes, seed)]
        tasks += self.extra

        def counted(task: Callable[[Any], Any]) -> Callable[[Any], Any]:
            async def wrapper(ctx: Any) -> None:
                await task(ctx)
                self.finished += 1

            return wrapper

        async def guard(ctx: Any) -> None:
            for _ in range(cycles):
                if self.finished == len(tasks):
                    break
                await ctx.tick()
            else:
                raise AssertionError(
                    f"{len(tasks) - self.finished} of {len(tasks)} tasks still wait after {cycles} cycles"
                )
            for n in self.writes:
                for _ in range(cycles):
                    if ctx.get(self.dut.write_idle[n]):
                        break
                    await ctx.tick()
                else:
                    raise AssertionError(f"writer {n} is not idle after {cycles} cycles")
            # Anything that should not come any more.
            for _ in range(40):
                await ctx.tick()
            for n, writes in self.writes.items():
                assert self.retired[n] == sum(bool(beats) for _, beats in writes), f"writer {n}"

        for task in tasks:
            sim.add_testbench(counted(task), background=True)
        sim.add_testbench(self.memory.run, background=True)
        sim.add_testbench(self._watch, background=True)
        sim.add_testbench(guard)
        sim.run()

    def expect(self, n: int) -> list[int]:
        """What reader n must have received, if memory did not change."""
        return [
            self.memory.line((address // self.line_bytes + beat) * self.line_bytes)
            for address, beats in self.reads[n]
            for beat in range(beats)
        ]

    async def _watch(self, ctx: Any) -> None:
        dut = self.dut
        async for _, _, reads, writes, retired in ctx.tick().sample(dut.read_beat, dut.write_beat, dut.write_retired):
            for n in range(dut.writers):
                if n in self.writes and retired >> n & 1:
                    self._retire(n)
            for n in range(self.dut.readers):
                self.read_events[n] += reads >> n & 1
            for n in range(self.dut.writers):
                self.write_events[n] += writes >> n & 1

    def _retire(self, n: int) -> None:
        address, beats = [write for write in self.writes[n] if write[1]][self.retired[n]]
        self.retired[n] += 1
        base = address - address % self.line_bytes
        for beat, (_, strobe) in enumerate(beats):
            if base + beat * self.line_bytes in self.memory.bad:  # answered with an error, not written
                continue
            for byte in range(self.line_bytes):
                at = base + beat * self.line_bytes + byte
                assert not strobe >> byte & 1 or at in self.memory.written, f"writer {n}: 0x{at:x} is not in memory"

    def _reader_requests(self, n: int, reads: list[tuple[int, int]], seed: int) -> Callable[[Any], Any]:
        return self._source(
            self.dut.read_request[n],
            [{"address": address, "beats": beats} for address, beats in reads],
            self.request_pause,
            random.Random(f"{seed} read request {n}"),
        )

    def _reader_data(self, n: int, reads: list[tuple[int, int]], seed: int) -> Callable[[Any], Any]:
        port = self.dut.read_data[n]
        pause = self.read_pause.get(n, never)
        rng = random.Random(f"{seed} read data {n}")

        async def task(ctx: Any) -> None:
            for _ in range(sum(beats for _, beats in reads)):
                while pause(rng):
                    await ctx.tick()
                ctx.set(port.ready, 1)
                (payload,) = await ctx.tick().sample(port.payload).until(port.valid)
                self.got[n].append(payload)
                ctx.set(port.ready, 0)
            ctx.set(port.ready, 1)  # a surplus beat would now come out

        return task

    def _writer_requests(self, n: int, writes: list[tuple[int, list]], seed: int) -> Callable[[Any], Any]:
        return self._source(
            self.dut.write_request[n],
            [{"address": address, "beats": len(beats)} for address, beats in writes],
            self.request_pause,
            random.Random(f"{seed} write request {n}"),
        )

    def _writer_data(self, n: int, writes: list[tuple[int, list]], seed: int) -> Callable[[Any], Any]:
        items = [{"data": value, "strobe": strobe} for _, beats in writes for value, strobe in beats]
        return self._source(self.dut.write_data[n], items, self.write_pause, random.Random(f"{seed} write data {n}"))

    @staticmethod
    def _source(port: Any, items: list[dict[str, int]], pause: Pause, rng: random.Random) -> Callable[[Any], Any]:
        async def task(ctx: Any) -> None:
            for item in items:
                while pause(rng):
                    await ctx.tick()
                ctx.set(port.payload, item)
                ctx.set(port.valid, 1)
                await ctx.tick().until(port.ready)
                ctx.set(port.valid, 0)

        return task


def engine(
    readers=2,
    writers=2,
    outstanding=8,
    burst_beats=8,
    reader_depth=16,
    writer_depth=None,
    data_width=64,
    address_width=32,
):
    return MemoryEngine(
        data_width=data_width,
        address_width=address_width,
        readers=readers,
        writers=writers,
        outstanding=outstanding,
        burst_beats=burst_beats,
        reader_depth=reader_depth,
        writer_depth=writer_depth,
    )


def fill(bench, base, lines, seed=1):
    rng = random.Random(seed)
    for n in range(lines):
        bench.memory.load(base + n * bench.line_bytes, rng.getrandbits(8 * bench.line_bytes))


def random_beats(rng, count, strobes=False):
    return [(rng.getrandbits(64), rng.getrandbits(8) if strobes else 0xFF) for _ in range(count)]
