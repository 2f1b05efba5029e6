"""Line range against positions of bits. Testplan: ``verif/testplans/line_range.toml``."""

from typing import Any

import cocotb

from verif.agents.pauses import PATTERN_NAMES
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

LONGEST = (1 << 24) - 1
POSITIONS = 1 << 32
coverage = Coverage("line_range")


class LineRangeBench(StreamBench):
    """The model counts bits from the begin of the array, or of memory, and cuts them into beats."""

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none", seed: int = 1) -> None:
        super().__init__(
            dut,
            drive=["request"],
            receive=["ranges"],
            idle=idle,
            backpressure=backpressure,
            zero=("base", "coordinate_bits", "value_bits"),
            seed=seed,
        )
        sizes = self.block.parameters
        self.lanes, self.carries, self.address_width = (
            int(sizes[name]) for name in ("lanes", "carries", "address_width")
        )
        self.line_bytes, self.beat_bits = 8 * self.lanes, 64 * self.lanes
        self.cycle = 0
        self.entered: list[int] = []
        self.left: list[int] = []

    def settings(self, coordinate_bits: int, value_bits: int) -> None:
        """Of the requests to come; none is under way."""
        self.width = coordinate_bits + value_bits
        self.base = self.rng.randrange(1 << self.address_width) // self.line_bytes * self.line_bytes
        for name in ("base", "coordinate_bits", "value_bits"):
            getattr(self.dut, name).value = {"base": self.base, "coordinate_bits": coordinate_bits}.get(
                name, value_bits
            )
        coverage.hit("as_wide_as_on_chip", self.width == 64)
        coverage.hit("narrowest", self.width == 9)

    def ask(self, line: int, count: int, *, plain: bool = False, follows: bool = False) -> None:
        request = {"address": line * self.line_bytes, "beats": count, "plain": int(plain), "follows": int(follows)}
        self.send("request", request | ({"carry": self.rng.randrange(self.carries)} if self.carries > 1 else {}))

    def random_requests(self, number: int) -> None:
        """The last lines that there may be among them."""
        rng = self.rng
        addressed = (1 << self.address_width) // self.line_bytes
        for _ in range(number):
            plain = rng.random() < 0.2
            lines = addressed if plain else min(addressed, POSITIONS // self.lanes)
            count = rng.choice([1, 1, 2, rng.randint(1, 300), LONGEST])
            first = max(0, lines - count) if rng.random() < 0.1 else rng.randrange(max(1, lines - count))
            self.ask(first, count, plain=plain, follows=rng.random() < 0.5)

    def taken(self, port: str, item: Any) -> None:
        self.entered.append(self.cycle)
        plain, line, count = bool(item["plain"]), item["address"] // self.line_bytes, item["beats"]
        width = 64 if plain else self.width
        begin, end = (at * self.lanes * width for at in (line, line + count))
        first, past = begin // self.beat_bits, -(-end // self.beat_bits)
        drop = begin - first * self.beat_bits
        shared = bool(item["follows"]) and not plain and drop != 0
        address = (0 if plain else self.base) + (first + shared) * self.line_bytes
        self.board.expect(
            "ranges",
            {
                "address": address % (1 << self.address_width),
                "reads": past - first - shared,
                "beats": past - first,
                "lines": count,
                "width": width,
                "drop": drop,
                "shared": int(shared),
                "plain": int(plain),
                "carry": item.get("carry", 0),
            },
        )
        coverage.hit("one_line", count == 1)
        coverage.hit("longest", count == LONGEST)
        coverage.hit("plain", plain)
        coverage.hit("plain_follows", plain and bool(item["follows"]))
        coverage.hit("shared", shared)
        coverage.hit("in_the_shared_beat", shared and past - first == 1)
        coverage.hit("follows_a_whole_beat", bool(item["follows"]) and not plain and not shared)
        coverage.hit("begins_in_a_beat", drop != 0 and not item["follows"])
        coverage.hit("last_record", not plain and (line + count) * self.lanes == POSITIONS)
        coverage.hit("last_address", plain and (line + count) * self.line_bytes == 1 << self.address_width)

    def came(self, port: str, item: Any) -> None:
        self.left.append(self.cycle)
        super().came(port, item)

    def every_cycle(self) -> None:
        dut = self.dut
        coverage.hit("request_refused", [int(dut.request__valid.value), int(dut.request__ready.value)] == [1, 0])
        coverage.hit("range_refused", [int(dut.ranges__valid.value), int(dut.ranges__ready.value)] == [1, 0])
        self.cycle += 1


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def beats_hold_the_lines(dut: Any, idle: str, backpressure: str) -> None:
    """The beats of each request, for records of any width."""
    bench = LineRangeBench(dut, idle, backpressure)
    await bench.start()
    for coordinate_bits, value_bits in [
        (1, 8),
        (32, 32),
        (bench.rng.randint(1, 32), 16),
        (bench.rng.randint(1, 31), 32),
    ]:
        bench.settings(coordinate_bits, value_bits)
        bench.random_requests(60)
        await bench.settle()
    coverage.save()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def every_width(dut: Any) -> None:
    """Each width of a record, requests that follow each other."""
    bench = LineRangeBench(dut)
    await bench.start()
    for value_bits in (8, 16, 32):
        for coordinate_bits in range(1, 33):
            bench.settings(coordinate_bits, value_bits)
            line = bench.rng.randrange(1 << 12)
            for n in range(8):
                bench.ask(line + 3 * n, 3, follows=n > 0)
            await bench.settle()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_request_a_cycle(dut: Any) -> None:
    """With neither side pausing a request goes in each cycle, and its range comes after the latency."""
    bench = LineRangeBench(dut)
    await bench.start()
    bench.settings(13, 16)
    bench.random_requests(100)
    await bench.settle()
    steps = {after - before for before, after in zip(bench.entered[:-1], bench.entered[1:], strict=True)}
    delays = {out - into for into, out in zip(bench.entered, bench.left, strict=True)}
    assert steps == {1}, f"{bench.board.context}: requests went in with steps {steps}"
    assert delays == {int(bench.block.parameters["latency"])}, f"{bench.board.context}: delays {delays}"
    coverage.hit("full_rate")
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset drops what is inside."""
    bench = LineRangeBench(dut, "fourth", "random")
    await bench.start()
    for wait in (4, 25, 41):
        bench.settings(bench.rng.randint(1, 32), 8)
        bench.random_requests(40)
        await bench.cycles(wait)
        coverage.hit("reset", bench.board.outstanding() > 0)
        await bench.restart()
    bench.settings(11, 32)
    bench.random_requests(30)
    await bench.settle()
    coverage.save()
