"""Record reader over a memory, against the software's layout of records. Testplan: ``verif/testplans/record_reader.toml``."""

from collections.abc import Iterator
from typing import Any

import cocotb
import numpy as np

from verif.agents.client_memory import ClientMemory
from verif.agents.pauses import PATTERN_NAMES, Pattern, never
from verif.agents.stream import StreamMonitor
from verif.benches.records import RecordArray, record_array
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

MEMORY_BYTES = 1 << 16
BASE = 0x1200
PLAIN_BASE = 0xC000
PLAIN_LINES = 80
# A beat that comes so many cycles after memory's request finds the steps of its request planned.
PLANNING = 3
coverage = Coverage("record_reader")


class RecordReaderBench(StreamBench):
    """Lines, reads and beats are expected as soon as a request has been taken."""

    def __init__(
        self,
        dut: Any,
        idle: str = "none",
        backpressure: str = "none",
        seed: int = 1,
        data: Pattern | None = None,
    ) -> None:
        """``data``: when the memory pauses, in place of ``backpressure``."""
        super().__init__(
            dut,
            drive=["request"],
            receive=["lines"],
            idle=idle,
            backpressure=backpressure,
            zero=("base", "coordinate_bits"),
            seed=seed,
        )
        sizes = self.block.parameters
        self.lanes, self.value, self.carries = int(sizes["lanes"]), sizes["value"], int(sizes["carries"])
        self.line_bytes, self.beat_bits = 8 * self.lanes, 64 * self.lanes
        self.memory = ClientMemory(dut, self.block, MEMORY_BYTES, self.line_bytes)
        grant, pause = (self.pattern(backpressure, name) for name in ("grant", "data"))
        self.memory.reader("read_request", "read_data", grant, data or pause)
        self.helpers = [self.memory]
        reads = self.block.layout("read_request")
        self.monitors["read_request"] = StreamMonitor(
            dut, "read_request", dut.clk, lambda bits: self.came("reads", reads.unpack(bits)), self.board.fail, dut.rst
        )
        self.array: RecordArray | None = None
        self.plain = record_array(self.rng, PLAIN_LINES * self.lanes, coordinate_bits=32, value=self.value, plain=True)
        self.memory.store(PLAIN_BASE, self._bytes(self.plain))
        self.cycle = 0
        self.forget()

    def forget(self) -> None:
        """No request is under way."""
        self.ends: dict[int, int | None] = dict.fromkeys(range(self.carries))
        self.asked: dict[int, int | None] = dict(self.ends)
        self.latest: dict[str, int] | None = None
        self.moved: dict[str, list[int]] = {name: [] for name in ("request", "reads", "beat", "lines")}

    def _bytes(self, array: RecordArray) -> Any:
        size = -(-len(array.nonzeros) * array.width // self.beat_bits) * self.line_bytes
        return np.frombuffer(array.bits.to_bytes(size, "little"), np.uint8)

    def settings(self, coordinate_bits: int, lines: int = 200) -> None:
        """Of the requests to come; none is under way."""
        self.forget()
        self.dut.base.value = BASE
        self.dut.coordinate_bits.value = coordinate_bits
        self.array = record_array(self.rng, lines * self.lanes, coordinate_bits=coordinate_bits, value=self.value)
        self.memory.store(BASE, self._bytes(self.array))
        coverage.hit("widest_coordinate", coordinate_bits == 32)
        coverage.hit("narrowest_coordinate", coordinate_bits == 1)

    def ask(self, first: int, count: int, *, carry: int = 0, plain: bool = False, follows: bool = False) -> None:
        address = (PLAIN_BASE if plain else 0) + first * self.line_bytes
        request = {"address": address, "beats": count, "plain": int(plain), "follows": int(follows)}
        self.send("request", request | ({"carry": carry} if self.carries > 1 else {}))
        self.asked[carry] = None if plain else first + count

    def random_requests(self, number: int) -> None:
        rng = self.rng
        assert self.array is not None
        lines = len(self.array.nonzeros) // self.lanes
        for _ in range(number):
            carry, count = rng.randrange(self.carries), rng.choice([1, 1, 2, rng.randint(1, 20)])
            end = self.asked[carry]
            if rng.random() < 0.2:
                self.ask(rng.randrange(PLAIN_LINES - count), count, carry=carry, plain=True)
            elif end is not None and end + count <= lines and rng.random() < 0.7:
                self.ask(end, count, carry=carry, follows=True)
            else:
                self.ask(rng.randrange(lines - count), count, carry=carry)

    def taken(self, port: str, item: Any) -> None:
        assert self.array is not None
        self.moved["request"].append(self.cycle)
        plain, carry, count = bool(item["plain"]), item.get("carry", 0), item["beats"]
        array = self.plain if plain else self.array
        first = (item["address"] - (PLAIN_BASE if plain else 0)) // self.line_bytes
        begin, end = (line * self.lanes * array.width for line in (first, first + count))
        first_beat, past = begin // self.beat_bits, -(-end // self.beat_bits)
        shared = bool(item["follows"]) and begin % self.beat_bits != 0
        reads = past - first_beat - shared
        base = PLAIN_BASE if plain else BASE
        if reads:
            address = base + (first_beat + shared) * self.line_bytes
            self.board.expect("reads", {"address": address, "beats": reads})
        for _ in range(reads):
            self.board.expect("kinds", int(plain))
        nonzeros = array.nonzeros[first * self.lanes : (first + count) * self.lanes]
        for n in range(0, len(nonzeros), self.lanes):
            line = nonzeros[n : n + self.lanes]
            self.board.expect("lines", sum((c | v << 32) << 64 * lane for lane, (c, v) in enumerate(line)))
        self._cover(item, shared=shared, reads=reads, width=array.width, begin=begin)
        self.ends[carry] = None if plain else first + count
        self.latest = item

    def _cover(self, item: Any, *, shared: bool, reads: int, width: int, begin: int) -> None:
        carry, plain, former = item.get("carry", 0), bool(item["plain"]), self.latest or {}
        coverage.hit("one_line", item["beats"] == 1)
        coverage.hit("plain", plain)
        coverage.hit("packed_behind_plain", not plain and former.get("plain") == 1)
        coverage.hit("shared_beat", shared)
        coverage.hit("in_the_shared_beat", shared and not reads)
        coverage.hit("follows_a_whole_beat", bool(item["follows"]) and not shared)
        coverage.hit("begins_in_a_beat", begin % self.beat_bits != 0 and not item["follows"])
        coverage.hit(
            "straddles", any((begin + n * width) // 64 != (begin + (n + 1) * width - 1) // 64 for n in range(2))
        )
        coverage.hit("follows_across_another", shared and bool(former) and former.get("carry", 0) != carry)

    def came(self, port: str, item: Any) -> None:
        self.moved[port].append(self.cycle)
        super().came(port, item)

    def every_cycle(self) -> None:
        dut = self.dut
        data = [bool(dut.read_data__valid.value), bool(dut.read_data__ready.value)]
        beat = bool(dut.beat.value)
        if beat != all(data):
            self.board.fail(f"cycle {self.cycle}: beat is {beat}, valid and ready of the data are {data}")
        if beat:
            self.moved["beat"].append(self.cycle)
            self.board.observe("kinds", int(dut.plain.value))
        request = [bool(dut.request__valid.value), bool(dut.request__ready.value)]
        line = [bool(dut.lines__valid.value), bool(dut.lines__ready.value)]
        coverage.hit("request_refused", request == [True, False])
        coverage.hit("line_refused", line == [True, False])
        coverage.hit("beat_refused", data == [True, False])
        coverage.hit(
            "memory_refuses",
            [bool(dut.read_request__valid.value), bool(dut.read_request__ready.value)] == [True, False],
        )
        self.cycle += 1


def at_first(cycles: int) -> Pattern:
    """Some pauses, and then none."""

    def pattern() -> Iterator[bool]:
        yield from [True] * cycles
        yield from never()

    return pattern


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def lines_come_out_of_records(dut: Any, idle: str, backpressure: str) -> None:
    """Every line of every request, each beat read once, for records of any width and plain lines between them."""
    bench = RecordReaderBench(dut, idle, backpressure)
    await bench.start()
    for coordinate_bits in (1, 32, bench.rng.randint(2, 31), bench.rng.randint(2, 31)):
        bench.settings(coordinate_bits)
        bench.random_requests(30)
        await bench.settle()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def every_width(dut: Any) -> None:
    """Lines one after the other, a request each, for each width of a coordinate."""
    bench = RecordReaderBench(dut)
    await bench.start()
    for coordinate_bits in range(1, 33):
        bench.settings(coordinate_bits, lines=12)
        for n in range(12):
            bench.ask(n, 1, follows=n > 0)
        await bench.settle()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_line_a_cycle(dut: Any) -> None:
    """Requests of many lines: a line a cycle, or a beat where a line is longer; the latencies as stated."""
    bench = RecordReaderBench(dut, data=at_first(PLANNING - 1))
    await bench.start()
    for coordinate_bits in (11, 32):
        bench.settings(coordinate_bits)
        for n in range(24):
            bench.ask(8 * n, 8, follows=n > 0)
        await bench.settle()
        moved = bench.moved
        waited = moved["reads"][0] - moved["request"][0], moved["lines"][0] - moved["beat"][0]
        # The memory pauses at first only: the second time beats come a cycle after their request.
        latency = int(bench.block.parameters["latency"]) + (0 if coordinate_bits == 11 else PLANNING - 1)
        assert waited == (4, latency), f"{bench.board.context}: latencies {waited}"
        # With several carries the shared beat of each request comes a cycle later.
        pauses = 24 * (bench.carries > 1)
        taken = moved["lines"][-1] - moved["lines"][0]
        assert taken <= 8 * 24 + pauses, f"{bench.board.context}: 192 lines in {taken} cycles"
        coverage.hit("full_rate")
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset drops requests, beats and lines; requests after it are answered whole."""
    bench = RecordReaderBench(dut, "fourth", "random")
    await bench.start()
    for wait in (3, 30, 90):
        bench.settings(bench.rng.randint(1, 32))
        bench.random_requests(30)
        await bench.cycles(wait)
        coverage.hit("reset", bench.board.outstanding("lines") > 0)
        await bench.restart(3)
    bench.settings(13)
    bench.random_requests(20)
    await bench.settle()
    coverage.save()
