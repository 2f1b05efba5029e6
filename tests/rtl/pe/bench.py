"""Bench of the Gustavson PE: SRAM, memory, a source of jobs and a sink of fibers around the compiled block."""

import random
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from amaranth.hdl import Shape
from amaranth.lib import data

from rtl.leaf_lines import LONG_LEAVES, long_leaf_lines, memory_burst
from rtl.pe.gustavson import GustavsonPe
from rtl.types import fiber_word, leaf
from sw.golden.pe import JobLeaf, merge_job
from tests.rtl.buffer.verilated import Verilated

#: Elements of the memory begin here, far above what fits in 32 bits of byte address.
MEMORY_BASE = 0x1234567000
#: Cycles without a handshake at any port after which nothing more will come: far above every latency of the bench.
PATIENCE = 3000
#: Cycles that a run goes on behind the last word: anything that still comes is one too many.
AFTER = 60


@dataclass(frozen=True)
class Segment:
    """A leaf of a job and where its elements lie."""

    leaf: JobLeaf
    in_memory: bool = False


@dataclass
class Conditions:
    """How the surroundings behave. Rates are probabilities per cycle of being ready or valid."""

    leaves: float = 1.0
    sram_grant: float = 1.0
    sram_latency: int = 2
    fetch_grant: float = 1.0
    fetch_latency: tuple[int, int] = (3, 3)
    fiber: float = 1.0


def pack(layout: data.Layout, fields: dict[str, int]) -> int:
    """A struct as an integer."""
    word = 0
    for name, number in fields.items():
        part = layout[name]
        width = Shape.cast(part.shape).width
        assert 0 <= number < 1 << width, f"{name} = {number} does not fit {width} bits"
        word |= number << part.offset
    return word


def unpack(layout: data.StructLayout, word: int) -> dict[str, int]:
    return {name: word >> part.offset & (1 << Shape.cast(part.shape).width) - 1 for name, part in layout}


@dataclass
class Image:
    """Elements at their places, with other elements before, between and after them."""

    lanes: int
    rng: random.Random
    cells: list[int] = field(default_factory=list)

    def place(self, leaf: JobLeaf) -> int:
        for _ in range(self.rng.randrange(self.lanes)):
            self.cells.append(self.rng.getrandbits(64))
        position = len(self.cells)
        self.cells += [int(c) | int(v) << 32 for c, v in zip(leaf.coordinates, leaf.values, strict=True)]
        return position

    def line(self, number: int) -> int:
        cells = self.cells[number * self.lanes : (number + 1) * self.lanes]
        return sum(cell << 64 * n for n, cell in enumerate(cells))


class PeBench:
    """One PE. ``run`` gives it jobs, checks everything and returns the cycles from first leaf to last word."""

    def __init__(self, dut: GustavsonPe, seed: int = 0) -> None:
        self.dut = dut
        self.seed = seed
        self.rng = random.Random(seed)
        self.model = Verilated(dut)
        self.leaf = leaf(dut.address_width)
        self.word = fiber_word(dut.lanes)
        self.request = dut.fetch_request.payload.shape()
        self.sram_response = dut.sram_response.shape()
        self.fetch_response = dut.fetch_response.shape()
        self.macs = 0
        self.merged = 0
        self.stalls = 0
        self.fetched_lines = 0

    def reset(self) -> None:
        """As after power up, whatever was going on."""
        for name in self.model._inputs:
            self.model.poke(name, 0)
        self.model.reset()
        self.macs = self.merged = self.stalls = self.fetched_lines = 0

    def descriptors(self, jobs: list[list[Segment]], sram: Image, memory: Image) -> list[int]:
        words = []
        for job in jobs:
            for number, segment in enumerate(job):
                one = segment.leaf
                image, base = (memory, MEMORY_BASE) if segment.in_memory else (sram, 0)
                fields = {
                    "in_memory": int(segment.in_memory),
                    "unit": int(one.weight is None),
                    "last": int(number == len(job) - 1),
                    "position": base + image.place(one),
                    "length": len(one.coordinates),
                    "weight": self.rng.getrandbits(32) if one.weight is None else one.weight,
                }
                words.append(pack(self.leaf, fields))
        return words

    def run(self, jobs: list[list[Segment]], conditions: Conditions | None = None, limit: int | None = None) -> int:
        """Runs jobs to their end. With ``limit``: stops after so many cycles, wherever things stand."""
        now = conditions or Conditions()
        rng, model, dut = self.rng, self.model, self.dut
        sram, memory = Image(dut.lanes, rng), Image(dut.lanes, rng)
        leaves = deque(self.descriptors(jobs, sram, memory))
        assert len(sram.cells) <= dut.lanes << dut.line_address_width, "the test's jobs do not fit its SRAM"
        expected = deque(merge_job([segment.leaf for segment in job], dut.radix, dut.value) for job in jobs)
        offered: int | None = None
        sram_due: deque[tuple[int, int]] = deque()
        fetches: deque[tuple[int, int, int]] = deque()
        held: dict[str, int] = {}
        coordinates: list[int] = []
        values: list[int] = []
        elements = sum(len(segment.leaf.coordinates) for job in jobs for segment in job)
        most = 20000 + 400 * (elements + len(leaves))
        first: int | None = None  # the cycle in which the first leaf was taken
        last = cycle = idle = moved = 0
        while limit is None or cycle < limit:
            if offered is None and leaves and rng.random() < now.leaves:
                offered = leaves.popleft()
            model.poke("leaves__valid", offered is not None)
            model.poke("leaves__payload", offered or 0)
            model.poke("sram_request__ready", rng.random() < now.sram_grant)
            model.poke("fetch_request__ready", rng.random() < now.fetch_grant)
            model.poke("fiber__ready", rng.random() < now.fiber)
            response = pack(self.sram_response, {"line": rng.getrandbits(64 * dut.lanes)})
            if sram_due and sram_due[0][0] == cycle:
                response = pack(self.sram_response, {"valid": 1, "line": sram.line(sram_due.popleft()[1])})
            model.poke("sram_response", response)
            response = pack(self.fetch_response, {"line": rng.getrandbits(64 * dut.lanes)})
            if fetches and fetches[0][0] <= cycle:
                _, number, owner = fetches.popleft()
                response = pack(self.fetch_response, {"valid": 1, "leaf": owner, "line": memory.line(number)})
            model.poke("fetch_response", response)
            model.settle()

            for port in ("sram_request", "fetch_request", "fiber"):
                payload = model.peek(f"{port}__payload") if model.peek(f"{port}__valid") else None
                assert port not in held or held[port] == payload, f"{port} changed while it waited (seed {self.seed})"
                held.pop(port, None)
                if payload is None:
                    continue
                moved = cycle
                if not model._in[model._inputs[f"{port}__ready"][0]]:
                    held[port] = payload
                elif port == "sram_request":
                    sram_due.append((cycle + now.sram_latency, payload))
                elif port == "fetch_request":
                    asked = unpack(self.request, payload)
                    slots = long_leaf_lines(dut.leaf_lines) if asked["leaf"] < LONG_LEAVES else dut.leaf_lines
                    assert 1 <= asked["lines"] <= memory_burst(slots)
                    number = (asked["position"] - MEMORY_BASE) // dut.lanes
                    start = max(cycle, fetches[-1][0] if fetches else 0)
                    for n in range(asked["lines"]):
                        start = max(start + rng.choice((1, 1, 2)), cycle + rng.randint(*now.fetch_latency))
                        fetches.append((start, number + n, asked["leaf"]))
                    self.fetched_lines += asked["lines"]
                else:
                    word = unpack(self.word, payload)
                    assert word["count"] == dut.lanes or word["last"], "a word that is not full ends the fiber"
                    for n in range(word["count"]):
                        element = word["line"] >> 64 * n
                        coordinates.append(element & 0xFFFFFFFF)
                        values.append(element >> 32 & 0xFFFFFFFF)
                    if word["last"]:
                        number = len(jobs) - len(expected)
                        assert expected, f"a fiber too many: {coordinates}"
                        self.check(number, expected.popleft(), coordinates, values)
                        coordinates, values = [], []
                        last = cycle
                    assert model.peek("busy"), "busy is low though a fiber was not out"
            if offered is not None and model.peek("leaves__ready"):
                if first is None:
                    first = cycle
                moved = cycle
                offered = None
            self.macs += model.peek("event_mac")
            self.merged += model.peek("event_merged")
            self.stalls += model.peek("event_stall_input")
            model.tick()
            model.settle()
            cycle += 1
            stuck = cycle - moved > PATIENCE or cycle > most
            assert not stuck, f"stuck after {len(jobs) - len(expected)} of {len(jobs)} jobs (seed {self.seed})"
            if not expected:
                idle += 1
                if idle > AFTER:
                    break
        if limit is None:
            assert not model.peek("busy") and not coordinates and not sram_due and not fetches
        return 0 if first is None else last - first + 1

    def check(
        self, number: int, expected: tuple[np.ndarray, np.ndarray], coordinates: list[int], values: list[int]
    ) -> None:
        where = f"job {number} (seed {self.seed})"
        assert coordinates == expected[0].tolist(), f"{where}: coordinates"
        got = [f"{value:08x}" for value in values]
        assert got == [f"{value:08x}" for value in expected[1].tolist()], f"{where}: values"
