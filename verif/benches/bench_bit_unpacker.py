"""Bit unpacker on its pins, against the records that the beats hold. Testplan: ``verif/testplans/bit_unpacker.toml``."""

from collections import deque
from typing import Any

import cocotb

from sw.golden.mint_bits import beat_count, unpack
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

coverage = Coverage("bit_unpacker")


class UnpackerBench(StreamBench):
    """The records of a request are compared as a whole, when it and its beats have been taken and its last group came."""

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none", seed: int = 1) -> None:
        super().__init__(
            dut, drive=["request", "beats"], receive=["groups"], idle=idle, backpressure=backpressure, seed=seed
        )
        sizes = self.block.parameters
        self.beat_bits, self.lanes, self.width = (int(sizes[name]) for name in ("beat_bits", "lanes", "width"))
        self.forget()

    def forget(self) -> None:
        self.requests: deque[dict[str, int]] = deque()
        self.beats: deque[int] = deque()
        self.records: list[int] = []

    def ask(self, *, width: int, count: int, drop: int) -> None:
        request = {"drop": drop, "width": width, "count": count}
        beats = beat_count(beat_bits=self.beat_bits, **request)
        self.send("request", request)
        self.send("beats", *(self.rng.getrandbits(self.beat_bits) for _ in range(beats)))
        end = drop + width * count
        coverage.hit("empty", count == 0)
        coverage.hit("no_bits", width == 0 and count > 0)
        coverage.hit("one_beat", beats == 1)
        coverage.hit("straddles", beats > 1 and width > 1 and (self.beat_bits - drop) % width != 0)
        coverage.hit("ends_with_a_beat", beats > 0 and end % self.beat_bits == 0)
        coverage.hit("drops_most", beats > 0 and drop == self.beat_bits - 1)
        coverage.hit("lanes_fit", count > self.lanes and width * self.lanes <= self.beat_bits)
        coverage.hit("lanes_beyond_a_beat", count > self.lanes and width * self.lanes > self.beat_bits)

    def random_requests(self, number: int) -> None:
        rng = self.rng
        for _ in range(number):
            width = rng.choice([0, 1, self.width, *[rng.randint(1, self.width)] * 6])
            count = rng.choice([0, 1, self.lanes, self.lanes + 1, rng.randint(0, 50)])
            drop = rng.choice([0, self.beat_bits - 1, *[rng.randrange(self.beat_bits)] * 4])
            self.ask(width=width, count=count, drop=drop)
        # A request that ends where its last beat does.
        self.ask(width=1, count=self.beat_bits - 3, drop=3)

    def taken(self, port: str, item: Any) -> None:
        (self.requests if port == "request" else self.beats).append(item)
        while self.requests:
            request = self.requests[0]
            beats = beat_count(beat_bits=self.beat_bits, **request)
            if len(self.beats) < beats:
                return
            self.requests.popleft()
            taken = [self.beats.popleft() for _ in range(beats)]
            self.board.expect("requests", unpack(taken, beat_bits=self.beat_bits, **request))

    def came(self, port: str, item: Any) -> None:
        count = item["count"]
        self.records += item["records"][:count]
        if not count and not item["last"]:
            self.board.fail("a group without records does not end its request")
        if item["last"]:
            self.board.observe("requests", self.records)
            self.records = []

    def settled(self) -> bool:
        return super().settled() and not self.requests

    def every_cycle(self) -> None:
        dut = self.dut
        beat = [bool(dut.beats__valid.value), bool(dut.beats__ready.value)]
        group = [bool(dut.groups__valid.value), bool(dut.groups__ready.value)]
        coverage.hit("beat_refused", beat == [True, False])
        coverage.hit("group_refused", group == [True, False])
        coverage.hit("starved", group == [False, True] and bool(self.requests))


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def records_come_out(dut: Any, idle: str, backpressure: str) -> None:
    """Every record of every request once, in order, whatever the neighbours do."""
    bench = UnpackerBench(dut, idle, backpressure)
    await bench.start()
    bench.random_requests(60)
    await bench.settle()
    assert not int(dut.error.value)
    coverage.save()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def every_width(dut: Any) -> None:
    """Each width at the first, the last and some bit of a beat."""
    bench = UnpackerBench(dut)
    await bench.start()
    for width in range(bench.width + 1):
        for drop in (0, bench.beat_bits - 1, bench.rng.randrange(bench.beat_bits)):
            bench.ask(width=width, count=2 * bench.lanes + 1, drop=drop)
    await bench.settle()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset drops requests, beats and groups; what follows is whole."""
    bench = UnpackerBench(dut, "fourth", "random")
    await bench.start()
    bench.random_requests(20)
    await bench.cycles(60)
    coverage.hit("reset", bool(bench.requests or bench.records))
    await bench.restart()
    bench.forget()
    bench.random_requests(20)
    await bench.settle()
    coverage.save()
