"""Nonzeros of fibers in memory and in the SRAM, mixed: every one in order, every line asked for once; planted faults."""

import random
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from rtl.accessor.nonzero_reader import LINES, REQUEST_LINES, NonzeroReader
from tests.rtl.planted import planted
from tests.rtl.port_bench import PortBench

LANES = 4
SIZES = {"lanes": LANES, "address_width": 40, "line_address_width": 10}
SRAM_LATENCY = 3

#: name -> (module, source snippet, what it becomes)
FAULTS = {
    "line_of_a_short_fiber": ("nonzero_reader", "current.lane + number", "number"),
    "last_line_is_missing": ("nonzero_reader", "place.position[:shift] + (self.lanes - 1)", "(self.lanes - 1)"),
    "line_is_kept": ("nonzero_reader", "((lane == self.lanes - 1) | out.payload.last)", "(lane == self.lanes - 1)"),
    "sram_is_overrun": ("nonzero_reader", "& (under_way != LINES)", ""),
    "empty_fiber_is_one": ("nonzero_reader", "out.payload.present.eq(~empty)", "out.payload.present.eq(1)"),
    "records_of_c": ("nonzero_reader", "plain.eq(self.plain)", "plain.eq(0)"),
    "shared_beat_is_read_again": ("nonzero_reader", "payload.follows.eq(follows)", "payload.follows.eq(0)"),
    "fiber_follows_another": ("nonzero_reader", "begun.eq(0), follows.eq(0)", "begun.eq(0)"),
    "long_fiber_is_cut": ("nonzero_reader", "left.eq(left - many)", "left.eq(0)"),
}


def value(place: int, in_memory: bool) -> tuple[int, int]:
    """The nonzero at a place."""
    return place & 0xFFFFFFFF, (place * 7 + in_memory) & 0xFFFFFFFF


def line(number: int, in_memory: bool) -> int:
    packed = 0
    for n in range(LANES):
        coordinate, bits = value(number * LANES + n, in_memory)
        packed |= (coordinate | bits << 32) << 64 * n
    return packed


def lines_of(fiber: dict[str, int]) -> tuple[int, int]:
    return fiber["position"] // LANES, -(-(fiber["position"] + fiber["length"]) // LANES)


def exercise(block: Any, seed: int = 1, chance: float = 0.7, long: int = 1) -> None:
    dut = block(**SIZES)
    rng, bench = random.Random(seed), PortBench(dut, seed=seed, chance=chance)
    lengths = [rng.choice([0, 1, 2, 5, 17, 40]) for _ in range(14)] + [300] * long
    fibers = [
        {
            "in_memory": int(rng.random() < 0.5),
            "closes": rng.getrandbits(1),
            "position": rng.randrange(1 << 11),
            "length": length,
        }
        for length in lengths
    ]
    for fiber in fibers:
        fiber["position"] += (1 << 33) * fiber["in_memory"]
    bench.feed(dut.places, fibers)
    beats = bench.feed(dut.read_data)
    asked, lines = bench.collect(dut.read_request), bench.collect(dut.sram_request)
    found = bench.collect(dut.nonzeros)
    plain = seed % 2
    found_requests: list[tuple[int, int, int]] = []
    on_the_way: deque[tuple[int, int]] = deque()
    served = [0, 0]

    def each(ctx: Any) -> None:
        ctx.set(dut.plain, plain)
        for request in asked[served[0] :]:
            assert request["address"] % (8 * LANES) == 0 and request["beats"] > 0
            assert request["plain"] == plain
            found_requests.append((request["address"] // (8 * LANES), request["beats"], request["follows"]))
            first = request["address"] // (8 * LANES)
            beats.extend(line(first + n, True) for n in range(request["beats"]))
        served[0] = len(asked)
        on_the_way.extend((bench.cycle + SRAM_LATENCY, number) for number in lines[served[1] :])
        served[1] = len(lines)
        answers = on_the_way and on_the_way[0][0] <= bench.cycle
        ctx.set(dut.sram_response.valid, int(bool(answers)))
        if answers:
            ctx.set(
                dut.sram_response.line,
                [dict(zip(("coordinate", "value"), one, strict=True)) for one in words(on_the_way.popleft()[1])],
            )

    def words(number: int) -> list[tuple[int, int]]:
        return [value(number * LANES + n, False) for n in range(LANES)]

    expected = []
    for fiber in fibers:
        count = fiber["length"]
        for n in range(count):
            coordinate, bits = value(fiber["position"] + n, bool(fiber["in_memory"]))
            ends = int(n == count - 1)
            expected.append(
                {"coordinate": coordinate, "value": bits, "present": 1, "last": ends, "closes": ends & fiber["closes"]}
            )
        if not count:
            expected.append({"present": 0, "last": 1, "closes": fiber["closes"]})
    bench.run(lambda: len(found) == len(expected), limit=4_000, each=each)
    assert [one if one["present"] else {k: one[k] for k in ("present", "last", "closes")} for one in found] == expected
    assert found_requests == [
        (first, min(REQUEST_LINES, stop - first), int(first > begin))
        for begin, stop in (lines_of(fiber) for fiber in fibers if fiber["in_memory"] and fiber["length"])
        for first in range(begin, stop, REQUEST_LINES)
    ], "what follows in a fiber says so"
    for in_memory, read in ((1, sum(request["beats"] for request in asked)), (0, len(lines))):
        spans = [lines_of(f) for f in fibers if f["in_memory"] == in_memory and f["length"]]
        assert read == sum(stop - first for first, stop in spans), "each line of a fiber is asked for once"


@pytest.mark.parametrize("chance", [1.0, 0.7, 0.3])
def test_fibers(chance: float) -> None:
    exercise(NonzeroReader, 1, chance)


def test_a_nonzero_a_cycle() -> None:
    """Fibers of many lines, neighbours that never wait: what each fiber takes beside its nonzeros is small."""
    dut = NonzeroReader(**SIZES)
    bench = PortBench(dut, seed=1, chance=1.0)
    bench.feed(dut.places, [{"in_memory": 1, "closes": 0, "position": 64 * n, "length": 64} for n in range(8)])
    beats, found = bench.feed(dut.read_data), bench.collect(dut.nonzeros)
    asked = bench.collect(dut.read_request)
    served = [0]

    def each(ctx: Any) -> None:
        for request in asked[served[0] :]:
            first = request["address"] // (8 * LANES)
            beats.extend(line(first + n, True) for n in range(request["beats"]))
        served[0] = len(asked)

    cycles = bench.run(lambda: len(found) == 8 * 64, each=each)
    assert cycles <= 8 * (64 + 2) + 10
    assert LINES >= SRAM_LATENCY + 1


@pytest.mark.plants
@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = planted(tmp_path, monkeypatch, "accessor", FAULTS[name], "nonzero_reader.NonzeroReader")
    with where as (block,), pytest.raises(AssertionError):
        exercise(block, 2, 1.0)
        exercise(block, 3, 0.6)
