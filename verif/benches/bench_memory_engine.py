"""Memory engine on the bus: requests of all clients against cocotbext-axi's memory, with stalls on every channel.

Testplan: ``verif/testplans/memory_engine.toml``. The number of clients and the widths are taken from the ports, so any
build of ``MemoryEngine`` with an address of at least 17 bits fits.
"""

import logging
import random
from collections import deque
from dataclasses import dataclass
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge
from cocotbext.axi import AxiBus, AxiRam, AxiResp

from verif.agents.axi4 import Axi4MemoryAgent, Behaviour
from verif.agents.layouts import described
from verif.agents.memory import Memory
from verif.clocking import reset
from verif.coverage import Coverage

coverage = Coverage("memory_engine")
MEMORY_BYTES = 1 << 17
POISON = 0xA5
BEATS_BITS = 24
CYCLE_LIMIT = 60_000


def pauses(rng: random.Random, chance: float) -> Any:
    """Endless pause pattern: each cycle is a pause with this chance."""
    while True:
        yield rng.random() < chance


class MemoryEngineBench:
    """Drivers and monitors for every client port, and the bus memory. Everything is driven after the rising edge."""

    def __init__(self, dut: Any, seed: int, idle: float, backpressure: float) -> None:
        self.dut = dut
        self.idle = idle
        self.backpressure = backpressure
        self.seed = seed
        self.readers = self._count("read_request")
        self.writers = self._count("write_request")
        self.line_bytes = len(dut.bus__rdata) // 8
        self.address_bits = len(dut.bus__araddr)
        self.received: list[list[int]] = [[] for _ in range(self.readers)]
        self.beats_seen = {"read": [0] * self.readers, "write": [0] * self.writers}
        self.retired = [0] * self.writers
        self.requests: dict[tuple[str, int], deque[int]] = {}
        for n in range(self.readers):
            self.requests["read_request", n] = deque()
        for n in range(self.writers):
            self.requests["write_request", n] = deque()
            self.requests["write_data", n] = deque()
        self.shadow = bytearray([POISON] * MEMORY_BYTES)
        self.expected: list[list[int]] = [[] for _ in range(self.readers)]

    def _count(self, port: str) -> int:
        n = 0
        while hasattr(self.dut, f"{port}__{n}__valid"):
            n += 1
        return n

    async def start(self) -> None:
        dut = self.dut
        dut.rst.value = 1
        dut.clear.value = 0
        dut.halt.value = 0
        dut.write_begin.value = dut.write_end.value = 0
        for port, n in self.requests:
            getattr(dut, f"{port}__{n}__valid").value = 0
            getattr(dut, f"{port}__{n}__payload").value = 0
        for n in range(self.readers):
            getattr(dut, f"read_data__{n}__ready").value = 0
        for name in (
            "awready",
            "wready",
            "bvalid",
            "bid",
            "bresp",
            "arready",
            "rvalid",
            "rid",
            "rdata",
            "rresp",
            "rlast",
        ):
            getattr(dut, f"bus__{name}").value = 0
        Clock(dut.clk, 10, unit="ns").start()
        for _ in range(3):
            await RisingEdge(dut.clk)
        self._attach()
        dut.rst.value = 0
        await RisingEdge(dut.clk)
        self.run_clients()

    def _attach(self) -> None:
        """The memory on the bus."""
        dut = self.dut
        self.ram = AxiRam(AxiBus.from_prefix(dut, "bus_"), dut.clk, dut.rst, size=MEMORY_BYTES)
        self.ram.write_if.log.setLevel(logging.WARNING)  # one logger for both directions
        self.ram.write(0, bytes(self.shadow))
        coverage.hit("bus_stall", self.backpressure > 0)
        if self.backpressure:
            write, read = self.ram.write_if, self.ram.read_if
            for k, channel in enumerate(
                (write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel)
            ):
                channel.set_pause_generator(pauses(random.Random(f"{self.seed} {k}"), self.backpressure))

    def run_clients(self) -> None:
        self.tasks = [cocotb.start_soon(self._drive(port, n)) for port, n in self.requests]
        self.tasks += [cocotb.start_soon(self._receive(n)) for n in range(self.readers)]
        self.tasks.append(cocotb.start_soon(self._count_beats()))

    async def _drive(self, port: str, n: int) -> None:
        valid = getattr(self.dut, f"{port}__{n}__valid")
        ready = getattr(self.dut, f"{port}__{n}__ready")
        payload = getattr(self.dut, f"{port}__{n}__payload")
        rng = random.Random(f"{self.seed} {port} {n}")
        queue = self.requests[port, n]
        while True:
            if not queue or rng.random() < self.idle:
                await RisingEdge(self.dut.clk)
                continue
            payload.value = queue[0]
            valid.value = 1
            await ReadOnly()
            while not ready.value:
                await RisingEdge(self.dut.clk)
                await ReadOnly()
            await RisingEdge(self.dut.clk)
            queue.popleft()
            valid.value = 0

    async def _receive(self, n: int) -> None:
        valid = getattr(self.dut, f"read_data__{n}__valid")
        ready = getattr(self.dut, f"read_data__{n}__ready")
        payload = getattr(self.dut, f"read_data__{n}__payload")
        rng = random.Random(f"{self.seed} read data {n}")
        while True:
            take = rng.random() >= self.backpressure
            ready.value = take
            await ReadOnly()
            if take and valid.value:
                self.received[n].append(int(payload.value))
            await RisingEdge(self.dut.clk)

    async def _count_beats(self) -> None:
        while True:
            await ReadOnly()
            for kind, seen in self.beats_seen.items():
                events = int(getattr(self.dut, f"{kind}_beat").value)
                for n in range(len(seen)):
                    seen[n] += events >> n & 1
            retired = int(self.dut.write_retired.value)
            for n in range(self.writers):
                self.retired[n] += retired >> n & 1
            await RisingEdge(self.dut.clk)

    def preload(self, address: int, content: bytes) -> None:
        self.ram.write(address, content)
        self.shadow[address : address + len(content)] = content

    def read(self, n: int, address: int, beats: int) -> None:
        """Queue a read request and the data that it must return while nothing is written there."""
        self.requests["read_request", n].append(beats << self.address_bits | address)
        base = address - address % self.line_bytes
        coverage.hit("unaligned", address != base)
        coverage.hit("long_request", beats > 16)
        coverage.hit("across_page", base // 4096 != (base + beats * self.line_bytes - 1) // 4096)
        for beat in range(beats):
            line = self.shadow[base + beat * self.line_bytes : base + (beat + 1) * self.line_bytes]
            self.expected[n].append(int.from_bytes(line, "little"))

    def write(self, n: int, address: int, beats: list[tuple[int, int]]) -> None:
        """Queue a write request with its data and strobes, and do it in the shadow memory."""
        self.requests["write_request", n].append(len(beats) << self.address_bits | address)
        for k, (value, strobe) in enumerate(beats):
            coverage.hit("masked", strobe not in (0, (1 << self.line_bytes) - 1))
            self.requests["write_data", n].append(strobe << 8 * self.line_bytes | value)
            for byte in range(self.line_bytes):
                if strobe >> byte & 1:
                    self.shadow[address + k * self.line_bytes + byte] = value >> 8 * byte & 0xFF

    def _quiet(self) -> bool:
        return (
            not any(self.requests.values())
            and all(len(got) >= len(want) for got, want in zip(self.received, self.expected, strict=True))
            and all(bool(getattr(self.dut, f"write_idle__{n}").value) for n in range(self.writers))
            and not self.dut.busy.value
        )

    def _content(self) -> bytes:
        return bytes(self.ram.read(0, MEMORY_BYTES))

    async def settle(self) -> None:
        """Wait for quiet, then compare everything: data, order, surplus, memory, events, no error."""
        await self.quiet()
        self._compare()

    async def quiet(self) -> None:
        """Wait until nothing is queued or in flight."""
        quiet = 0
        for _ in range(CYCLE_LIMIT):
            await ReadOnly()
            quiet = quiet + 1 if self._quiet() else 0
            await RisingEdge(self.dut.clk)
            if quiet == 30:
                break
        else:
            raise AssertionError(f"not quiet after {CYCLE_LIMIT} cycles (seed {self.seed})")

    def _compare(self) -> None:
        for n in range(self.readers):
            assert self.received[n] == self.expected[n], f"reader {n} (seed {self.seed})"
            assert self.beats_seen["read"][n] == len(self.expected[n]), f"read events of client {n}"
        content = self._content()
        wrong = [address for address in range(MEMORY_BYTES) if content[address] != self.shadow[address]]
        assert not wrong, f"{len(wrong)} bytes of memory are wrong, the first at 0x{wrong[0]:x} (seed {self.seed})"
        assert not int(self.dut.error.value) & 1, "an error is reported"


def random_writes(rng: random.Random, bench: MemoryEngineBench, n: int, base: int, count: int) -> int:
    """Writes of client ``n`` from ``base`` upwards with a guard line after each; returns the beats written."""
    total = 0
    address = base
    for _ in range(count):
        beats = rng.choice([1, 1, 2, 3, 4, 17, 40])
        bits = 8 * bench.line_bytes
        bench.write(n, address, [(rng.getrandbits(bits), rng.getrandbits(bench.line_bytes)) for _ in range(beats)])
        address += (beats + 1) * bench.line_bytes
        total += beats
    return total


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=[0.0, 0.5], backpressure=[0.0, 0.25, 0.6])
async def random_traffic(dut: Any, idle: float, backpressure: float) -> None:
    """All clients at once: every beat read and every byte of memory is as it must be."""
    seed = 1
    rng = random.Random(f"{seed} {idle} {backpressure}")
    bench = MemoryEngineBench(dut, seed, idle, backpressure)
    await bench.start()
    bench.preload(0, rng.randbytes(MEMORY_BYTES // 2))
    span = MEMORY_BYTES // 2 - 64 * bench.line_bytes
    for n in range(bench.readers):
        for _ in range(20):
            bench.read(n, rng.randrange(span), rng.choice([1, 1, 2, 3, 4, 17, 40]))
    written = [0] * bench.writers
    for n in range(bench.writers):
        base = MEMORY_BYTES // 2 + n * (MEMORY_BYTES // 2 // bench.writers)
        written[n] = random_writes(rng, bench, n, base - base % bench.line_bytes, 8)
    await bench.settle()
    assert bench.beats_seen["write"] == written
    assert bench.retired == [8] * bench.writers, "requests retired"
    coverage.save()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def reads_what_was_written(dut: Any) -> None:
    """Once a writer is idle, every reader sees its data."""
    rng = random.Random(7)
    bench = MemoryEngineBench(dut, 7, 0.2, 0.2)
    await bench.start()
    for n in range(bench.writers):
        random_writes(rng, bench, n, 0x4000 * n + 0xF00, 6)
    await bench.settle()
    for n in range(bench.readers):
        bench.read(n, 0x4000 * (n % bench.writers) + 0xF00, 60)
    await bench.settle()
    coverage.save()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def clients_are_independent(dut: Any) -> None:
    """Alone or together, each client gets its data; no other client sees a beat of it."""
    rng = random.Random(8)
    bench = MemoryEngineBench(dut, 8, 0.0, 0.0)
    await bench.start()
    bench.preload(0, rng.randbytes(0x4000))
    for n in range(bench.readers):
        bench.read(n, 0xFF0 + 8 * n, 5)
        await bench.settle()
    coverage.save()


@dataclass
class Region:
    """All of memory, writable."""

    data: Any
    name: str = "memory"
    base: int = 0
    writable: bool = True


class FaultyBench(MemoryEngineBench):
    """The same clients before a memory that reorders and answers with errors."""

    async def start(self) -> None:
        self.content = np.frombuffer(self.shadow, np.uint8).copy()
        await super().start()

    def _attach(self) -> None:
        behaviour = Behaviour(latency=8, jitter=30, reorder=True, seed=self.seed)
        self.memory = Memory([Region(self.content)])
        self.bus = Axi4MemoryAgent(self.dut, "bus_", self.dut.clk, self.dut.rst, self.memory, behaviour)
        self.bus.start()

    def preload(self, address: int, content: bytes) -> None:
        self.content[address : address + len(content)] = np.frombuffer(content, np.uint8)
        self.shadow[address : address + len(content)] = content

    def _content(self) -> bytes:
        return self.content.tobytes()

    def forget(self) -> None:
        """After a reset: nothing is expected; writes in flight may or may not have happened."""
        self.bus.forget()
        for queue in self.requests.values():
            queue.clear()
        self.received = [[] for _ in range(self.readers)]
        self.expected = [[] for _ in range(self.readers)]
        self.beats_seen = {"read": [0] * self.readers, "write": [0] * self.writers}
        self.shadow[:] = self.content.tobytes()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def responses_in_any_order(dut: Any) -> None:
    """Identifiers are answered in any order: data still reach each client in the order of its requests."""
    rng = random.Random(9)
    bench = FaultyBench(dut, 9, 0.1, 0.0)
    await bench.start()
    bench.preload(0, rng.randbytes(MEMORY_BYTES // 2))
    for n in range(bench.readers):
        for _ in range(12):
            bench.read(n, rng.randrange(MEMORY_BYTES // 4), rng.choice([1, 2, 5, 33]))
    for n in range(bench.writers):
        random_writes(rng, bench, n, MEMORY_BYTES // 2 + 0x4000 * n, 6)
    await bench.settle()
    assert not bench.bus.breaches, bench.bus.breaches[:3]
    coverage.hit("reordered")
    coverage.save()


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(kind=["read", "write"], response=["SLVERR", "DECERR"])
async def error_responses(dut: Any, kind: str, response: str) -> None:
    """The first error is kept with its kind, response and address until cleared; the engine goes on."""
    rng = random.Random(10)
    bench = FaultyBench(dut, 10, 0.0, 0.0)
    await bench.start()
    layout = described().layout("error")
    address = 0x8000 + 4 * bench.line_bytes
    bench.bus.faults[kind, address] = AxiResp[response]
    if kind == "read":
        bench.read(0, address, 1)
    else:
        bench.write(0, address, [(rng.getrandbits(8 * bench.line_bytes), (1 << bench.line_bytes) - 1)])
        bench.shadow[address : address + bench.line_bytes] = bench.content[
            address : address + bench.line_bytes
        ].tobytes()
    await bench.quiet()
    found = layout.unpack(int(dut.error.value))
    assert found["valid"] and found["write"] == (kind == "write"), found
    assert found["address"] == address and found["response"] == int(AxiResp[response]), found
    coverage.hit(f"{kind}_error")
    bench.bus.faults.clear()
    dut.clear.value = 1
    await RisingEdge(dut.clk)
    dut.clear.value = 0
    await RisingEdge(dut.clk)
    bench.received = [[] for _ in range(bench.readers)]
    bench.expected = [[] for _ in range(bench.readers)]
    bench.beats_seen = {"read": [0] * bench.readers, "write": [0] * bench.writers}
    bench.read(0, address, 3)
    await bench.settle()
    coverage.save()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset of engine and memory with bursts in flight; the requests after it are served as after power up."""
    rng = random.Random(11)
    bench = FaultyBench(dut, 11, 0.0, 0.0)
    await bench.start()
    for n in range(bench.readers):
        bench.read(n, 0x100 * n, 40)
    for n in range(bench.writers):
        random_writes(rng, bench, n, MEMORY_BYTES // 2 + 0x4000 * n, 4)
    for _ in range(60):
        await RisingEdge(dut.clk)
    coverage.hit("reset", not bench.bus.quiet)
    for task in bench.tasks:
        task.cancel()
    for port, n in bench.requests:
        getattr(dut, f"{port}__{n}__valid").value = 0
    await reset(dut, 3)
    bench.forget()
    bench.run_clients()
    for _ in range(3):
        await RisingEdge(dut.clk)
    bench.forget()
    for n in range(bench.readers):
        bench.read(n, 0x1000 * n, 20)
    for n in range(bench.writers):
        random_writes(rng, bench, n, MEMORY_BYTES // 2 + 0x4000 * n, 4)
    await bench.settle()
    coverage.save()


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(outside=["before", "behind"])
async def write_window(dut: Any, outside: str) -> None:
    """A burst outside the window is reported and never seen on the bus; after a reset everything goes on."""
    rng = random.Random(outside)
    bench = FaultyBench(dut, 12, 0.1, 0.2)
    await bench.start()
    begin, end = 0x8000, 0xC000
    dut.write_begin.value, dut.write_end.value = begin, end
    line = bench.line_bytes
    beats = [(rng.getrandbits(8 * line), (1 << line) - 1) for _ in range(3)]
    # The window's first and last lines, and a request that has one line outside.
    bench.write(0, begin, beats[:1])
    bench.write(0, end - line, beats[:1])
    await bench.settle()
    address = begin - line if outside == "before" else end - 2 * line
    culprit = address if outside == "before" else end
    bench.requests["write_request", 0].append(3 << bench.address_bits | address)
    for value, strobe in beats:
        bench.requests["write_data", 0].append(strobe << 8 * line | value)
    layout = described().layout("error")
    for _ in range(200):
        await RisingEdge(dut.clk)
    assert not int(dut.busy.value)
    found = layout.unpack(int(dut.error.value))
    assert found["valid"] and found["write"] and found["outside"] and found["client"] == 0, found
    assert found["address"] // line * line <= culprit < found["address"] + 3 * line, found
    coverage.hit("held_back")
    spared = np.ones(MEMORY_BYTES, bool)
    spared[begin:end] = False
    assert (bench.content[spared] == np.frombuffer(bench.shadow, np.uint8)[spared]).all()
    for task in bench.tasks:
        task.cancel()
    for port, n in bench.requests:
        getattr(dut, f"{port}__{n}__valid").value = 0
    await reset(dut, 3)
    bench.forget()
    bench.run_clients()
    for _ in range(3):
        await RisingEdge(dut.clk)
    bench.forget()
    bench.write(0, begin, beats)
    await bench.settle()
    coverage.save()
