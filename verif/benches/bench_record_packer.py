"""Record packer on its pins, against the software's layout of records. Testplan: ``verif/testplans/record_packer.toml``."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from verif.agents.pauses import PATTERN_NAMES
from verif.benches.records import RecordArray, record_array
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

INPUTS = ("coordinate_bits", "plain", "flush", "restart")
coverage = Coverage("record_packer")


class RecordPackerBench(StreamBench):
    """The array of records is drawn first. Each beat is expected as soon as its last record, or a flush, has been taken."""

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none", seed: int = 1) -> None:
        super().__init__(
            dut, drive=["words"], receive=["lines"], idle=idle, backpressure=backpressure, zero=INPUTS, seed=seed
        )
        sizes = self.block.parameters
        self.lanes, self.value = int(sizes["lanes"]), sizes["value"]
        self.beat_bits = 64 * self.lanes
        self.cycle = 0
        self.forget()

    def forget(self) -> None:
        """Nothing was taken: after a reset."""
        self.array: RecordArray | None = None
        self.given = 0  # records sent
        self.begin()
        self.flushing = False
        self.before = dict.fromkeys(("flush", "flushed", "restart"), 0)

    def begin(self) -> None:
        """A run begins."""
        self.count = self.handed = self.parts = 0  # records taken; bits handed out; parts of the present beat
        self.completed: list[int] = []  # cycles of the words that completed a beat, and of the beats
        self.came_at: list[int] = []

    def settings(self, coordinate_bits: int, *, plain: bool = False, most: int = 600) -> None:
        """Of the next run, of at most so many records."""
        self.dut.coordinate_bits.value = coordinate_bits
        self.dut.plain.value = int(plain)
        self.array = record_array(self.rng, most, coordinate_bits=coordinate_bits, value=self.value, plain=plain)
        self.given = 0
        coverage.hit("plain", plain)
        coverage.hit("widest_coordinate", not plain and coordinate_bits == 32)
        coverage.hit("narrowest_coordinate", not plain and coordinate_bits == 1)

    def put(self, count: int, *, last: bool = False) -> None:
        """A word of the next records; lanes behind these have others."""
        assert self.array is not None
        items = self.array.nonzeros[self.given : self.given + count]
        self.given += count
        items += [(self.rng.getrandbits(32), self.rng.getrandbits(32)) for _ in range(self.lanes - count)]
        line = [{"coordinate": coordinate, "value": word} for coordinate, word in items]
        self.send("words", {"line": line, "count": count, "last": int(last)})
        coverage.hit("empty_row", not count)

    def rows(self, number: int) -> None:
        """Rows of no, one and several nonzeros."""
        for _ in range(number):
            length = self.rng.choice([0, 1, self.lanes, self.rng.randint(0, 5 * self.lanes)])
            counts = [self.lanes] * (length // self.lanes) + [length % self.lanes]
            for n, count in enumerate(counts):
                self.put(count, last=n == len(counts) - 1)

    def expect_beat(self, end: int) -> None:
        """The beat that has been handed out up to ``handed``, up to bit ``end`` of the run."""
        assert self.array is not None
        number = self.handed // self.beat_bits
        begin, past = self.handed - number * self.beat_bits, end - number * self.beat_bits
        words = sum(1 << n for n in range(begin // 32, -(-past // 32)))
        data = self.array.beat(number, self.beat_bits) & ((1 << past) - 1)
        self.board.expect("lines", {"index": number, "data": data, "words": words})
        self.parts = 0 if past == self.beat_bits else self.parts + 1
        coverage.hit("comes_again", begin > 0)
        coverage.hit("word_comes_again", begin % 32 > 0)
        coverage.hit("beat_of_three_parts", self.parts == 2 and begin > 0)
        self.handed = end

    def taken(self, port: str, item: Any) -> None:
        assert self.array is not None
        before, width = self.count, self.array.width
        self.count += item["count"]
        end = self.count * width
        for n in range(before, self.count):
            begins, ends = n * width // self.beat_bits, ((n + 1) * width - 1) // self.beat_bits
            coverage.hit("straddles", begins != ends)
        coverage.hit("ends_with_a_beat", item["count"] > 0 and end % self.beat_bits == 0)
        while end // self.beat_bits > self.handed // self.beat_bits:
            self.completed.append(self.cycle)
            self.expect_beat((self.handed // self.beat_bits + 1) * self.beat_bits)

    def came(self, port: str, item: Any) -> None:
        self.came_at.append(self.cycle)
        super().came(port, item)

    def every_cycle(self) -> None:
        dut = self.dut
        if self.before["restart"]:
            self.begin()
        if self.before["flush"]:
            self.flushing = True
            end = self.count * (self.array.width if self.array else 0)
            coverage.hit("flush_of_nothing", end == self.handed)
            coverage.hit("flush_of_one", self.count == 1)
            coverage.hit("flush_at_a_beat", self.count > 0 and end % self.beat_bits == 0)
            if end > self.handed:
                self.expect_beat(end)
        elif self.before["flushed"]:
            self.flushing = False
            if missing := self.board.outstanding("lines"):
                self.board.fail(f"flushed: {missing} beats have not come")
        now = {name: int(getattr(dut, name).value) for name in self.before}
        word = [bool(dut.words__valid.value), bool(dut.words__ready.value)]
        line = [bool(dut.lines__valid.value), bool(dut.lines__ready.value)]
        if int(dut.idle.value) == self.flushing:
            self.board.fail(f"cycle {self.cycle}: idle is {int(dut.idle.value)}, a flush pending {self.flushing}")
        if now["flushed"] and not self.flushing:
            self.board.fail(f"cycle {self.cycle}: flushed without a flush")
        # A word that goes in may have been counted already.
        if word != [True, True] and int(dut.position.value) != self.count:
            self.board.fail(f"cycle {self.cycle}: position {int(dut.position.value)}, {self.count} taken")
        coverage.hit("word_refused", word == [True, False] and not self.flushing)
        coverage.hit("word_waits_for_flush", word == [True, False] and self.flushing)
        coverage.hit("beat_refused", line == [True, False])
        coverage.hit("beat_refused_in_flush", line == [True, False] and self.flushing)
        self.before = now
        self.cycle += 1

    async def pulse(self, name: str) -> None:
        getattr(self.dut, name).value = 1
        await RisingEdge(self.dut.clk)
        getattr(self.dut, name).value = 0

    async def flush(self) -> None:
        """Until it ends."""
        await self.pulse("flush")
        await self.wait(lambda: not self.flushing and not self.before["flush"], "the flush does not end")

    async def restart_run(self) -> None:
        await self.settle()
        await self.flush()
        await self.pulse("restart")
        coverage.hit("restart")
        await self.cycles(1)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def records_lie_without_gaps(dut: Any, idle: str, backpressure: str) -> None:
    """Every beat of every run as the software lays it out, cut by flushes anywhere, for records of any width."""
    bench = RecordPackerBench(dut, idle, backpressure)
    await bench.start()
    for coordinate_bits, plain in [(1, 0), (32, 0), (bench.rng.randint(2, 31), 0), (7, 1)]:
        bench.settings(coordinate_bits, plain=bool(plain))
        await bench.flush()
        bench.put(1, last=True)
        await bench.settle()
        for _ in range(3):
            await bench.flush()
            bench.rows(bench.rng.choice([1, 6]))
            # Words wait while it is flushed; or all of them have gone in.
            await bench.cycles(bench.rng.randint(0, 12))
            await bench.flush()
            await bench.settle()
        # A record at a time, so that a beat comes in many parts, and one ends with a flush.
        for _ in range(2 * bench.beat_bits // 9 if coordinate_bits == 1 else 6):
            bench.put(1, last=True)
            await bench.wait(lambda: bench.drivers["words"].idle, "a word is not taken")
            await bench.flush()
        await bench.restart_run()
    await bench.settle()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_word_a_cycle(dut: Any) -> None:
    """Words go in without a pause, or a beat where they are longer, and a beat comes after the latency."""
    bench = RecordPackerBench(dut)
    await bench.start()
    for coordinate_bits, plain in ((10, False), (32, False), (32, True)):
        bench.settings(coordinate_bits, plain=plain)
        begun = bench.cycle
        for _ in range(60):
            bench.put(bench.lanes)
        await bench.wait(lambda: bench.drivers["words"].idle, "not all words are taken")
        taken = bench.cycle - begun
        assert taken <= 66, f"{bench.board.context}: 60 words in {taken} cycles"
        await bench.cycles(12)
        delays = {came - done for done, came in zip(bench.completed, bench.came_at, strict=True)}
        latency = int(bench.block.parameters["latency"])
        assert delays == {latency}, f"{bench.board.context}: delays {delays}, latency {latency}"
        coverage.hit("full_rate")
        await bench.restart_run()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset drops records, beats and a pending flush; what follows is a run from its first bit."""
    bench = RecordPackerBench(dut, "fourth", "random")
    await bench.start()
    for wait, flushes in ((3, False), (40, False), (41, True), (30, True)):
        bench.settings(bench.rng.randint(1, 32))
        bench.rows(30)
        await bench.cycles(wait)
        if flushes:
            await bench.pulse("flush")
            await bench.cycles(2)
        coverage.hit("reset_with_records", bench.count * 64 > bench.handed)
        coverage.hit("reset_in_a_flush", bench.flushing)
        await bench.restart()
        bench.forget()
    bench.settings(13)
    bench.rows(20)
    await bench.settle()
    await bench.flush()
    await bench.settle()
    coverage.save()
