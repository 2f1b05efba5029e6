"""Bit packer on its pins, against regions packed as a whole. Testplan: ``verif/testplans/bit_packer.toml``."""

from collections import deque
from typing import Any

import cocotb

from sw.golden.mint_bits import pack
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

coverage = Coverage("bit_packer")


class PackerBench(StreamBench):
    """The beats of a region are expected when its last group has been taken; earlier ones wait in the scoreboard."""

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none", seed: int = 1) -> None:
        super().__init__(
            dut, drive=["region", "groups"], receive=["beats"], idle=idle, backpressure=backpressure, seed=seed
        )
        sizes = self.block.parameters
        self.beat_bits, self.lanes, self.width = (int(sizes[name]) for name in ("beat_bits", "lanes", "width"))
        self.forget()

    def forget(self) -> None:
        self.regions: deque[dict[str, int]] = deque()
        self.records: list[int] = []
        self.groups: deque[dict[str, Any]] = deque()

    def put(self, *, start: int, width: int, counts: list[int]) -> None:
        self.send("region", {"start": start, "width": width})
        for n, count in enumerate(counts):
            records = [self.rng.getrandbits(self.width) for _ in range(self.lanes)]
            self.send("groups", {"records": records, "count": count, "last": int(n == len(counts) - 1)})
            coverage.hit("empty_group", count == 0)
            coverage.hit("several_beats", count * width >= 2 * self.beat_bits)
        end = start + width * sum(counts)
        coverage.hit("no_bits", not sum(counts) * width)
        coverage.hit("begins_in_a_beat", start > 0)
        coverage.hit("begins_in_a_byte", start % 8 > 0)
        coverage.hit("ends_with_a_beat", end % self.beat_bits == 0)
        coverage.hit("one_beat", sum(counts) * width > 0 and end <= self.beat_bits)
        coverage.hit("last_finds_nothing", counts[-1] == 0 and sum(counts) > 0 and end % self.beat_bits == 0)

    def random_regions(self, number: int) -> None:
        rng = self.rng
        for _ in range(number):
            width = rng.choice([0, 1, self.width, *[rng.randint(1, self.width)] * 6])
            start = rng.choice([0, self.beat_bits - 1, *[rng.randrange(self.beat_bits)] * 4])
            self.put(
                start=start,
                width=width,
                counts=[rng.choice([self.lanes, rng.randint(0, self.lanes)]) for _ in range(rng.randint(1, 14))],
            )
        # A region whose last record ends a beat, and one of which the last group has nothing to add.
        ones = [1] * (self.beat_bits - 3)
        self.put(start=3, width=1, counts=ones)
        self.put(start=3, width=1, counts=[*ones, 0])

    def taken(self, port: str, item: Any) -> None:
        (self.regions if port == "region" else self.groups).append(item)
        while self.regions and self.groups:
            group = self.groups.popleft()
            self.records += group["records"][: group["count"]]
            if group["last"]:
                self.expect_region(self.regions.popleft(), group["count"])

    def expect_region(self, region: dict[str, int], last_count: int) -> None:
        width = region["width"]
        end = region["start"] + width * len(self.records)
        beats = [vars(beat) for beat in pack(self.records, beat_bits=self.beat_bits, **region)]
        if not beats or (not last_count * width and end % self.beat_bits == 0):
            if beats:
                beats[-1]["last"] = False
            beats.append({"data": 0, "strobe": 0, "bytes": 0, "last": True})
        for beat in beats:
            self.board.expect("beats", {name: int(value) for name, value in beat.items()})
        self.records = []

    def settled(self) -> bool:
        return super().settled() and not self.regions

    def every_cycle(self) -> None:
        dut = self.dut
        group = [bool(dut.groups__valid.value), bool(dut.groups__ready.value)]
        beat = [bool(dut.beats__valid.value), bool(dut.beats__ready.value)]
        coverage.hit("group_refused", group == [True, False])
        coverage.hit("beat_refused", beat == [True, False])


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES)
async def beats_come_out(dut: Any, idle: str, backpressure: str) -> None:
    """Every beat of every region once, in order, whatever the neighbours do."""
    bench = PackerBench(dut, idle, backpressure)
    await bench.start()
    bench.random_regions(40)
    await bench.settle()
    assert not int(dut.error.value)
    coverage.save()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def every_width(dut: Any) -> None:
    """Each width, from the first, the last and some bit of a beat."""
    bench = PackerBench(dut)
    await bench.start()
    for width in range(bench.width + 1):
        for start in (0, bench.beat_bits - 1, bench.rng.randrange(bench.beat_bits)):
            bench.put(start=start, width=width, counts=[bench.lanes] * 3 + [1])
    await bench.settle()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset drops regions, groups and beats; what follows is whole."""
    bench = PackerBench(dut, "fourth", "random")
    await bench.start()
    bench.random_regions(20)
    await bench.cycles(60)
    coverage.hit("reset", bool(bench.regions or bench.records))
    await bench.restart()
    bench.forget()
    bench.random_regions(20)
    await bench.settle()
    coverage.save()
