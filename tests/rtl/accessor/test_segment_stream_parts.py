"""The parts of the segment streamer alone: sizes of leaves, places in the region, lines in use, beats to lines."""

from collections import deque
from random import Random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.accessor.leaf_sizer import LeafSizer
from rtl.accessor.region_lines import RegionLines
from rtl.accessor.region_places import RegionPlaces
from rtl.accessor.run_writer import RunWriter

WIDTH = 5  # of a line address


def simulate(dut: Any, bench: Any) -> None:
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()


def put(ctx: Any, dut: Any, **values: Any) -> None:
    for name, value in values.items():
        ctx.set(getattr(dut, name), value)


@pytest.mark.parametrize("units", [0, 1])
@pytest.mark.parametrize("lanes", [1, 4])
def test_lines_that_cover_a_leaf(lanes: int, units: int) -> None:
    random = Random(lanes)
    dut = LeafSizer(lanes=lanes, address_width=16, line_address_width=WIDTH, short_lines=3)
    region = 9
    expected: deque[tuple[int, bool, int]] = deque()
    seen = {True: 0, False: 0}

    async def bench(ctx: Any) -> None:
        put(ctx, dut, units=units, lines=region)
        taken = 0
        assert ctx.get(dut.idle)
        while taken < 400:
            position, length = (
                random.randrange(64),
                random.choice((0, 1, lanes, random.randrange(12 * lanes), 2**32 - 1)),
            )
            present, in_memory, unit = (random.random() < chance for chance in (0.9, 0.9, 0.3))
            fields = {"position": position, "length": length, "in_memory": in_memory, "unit": unit}
            ctx.set(dut.leaves.payload, {"present": present, "leaf": fields})
            ctx.set(dut.leaves.valid, random.random() < 0.8)
            ctx.set(dut.sized.ready, random.random() < 0.8)
            assert ctx.get(dut.idle) == (not expected)
            if ctx.get(dut.sized.valid) and ctx.get(dut.sized.ready):
                place, wanted, lines = expected.popleft()
                found = ctx.get(dut.sized.payload)
                assert (found.item.leaf.position, bool(found.wanted)) == (place, wanted)
                assert not wanted or (found.lines, found.short) == (lines, lines <= 3)
                seen[wanted] += 1
                taken += 1
            if ctx.get(dut.leaves.valid) and ctx.get(dut.leaves.ready):
                lines = (position + length - 1) // lanes - position // lanes + 1
                wanted = present and in_memory and (not unit or bool(units)) and 0 < length and lines <= region
                expected.append((position, wanted, lines))
            await ctx.tick()

    simulate(dut, bench)
    assert min(seen.values()) > 50


def test_a_leaf_is_placed_behind_the_one_before() -> None:
    """Or at the region's begin; one that does not go there leaves its place to the next."""
    random = Random(1)
    region = 11
    dut = RegionPlaces(address_width=16, line_address_width=WIDTH)
    seen = {"wraps": 0, "left": 0, "anew": 0, "empty": 0}

    async def bench(ctx: Any) -> None:
        after = 0
        put(ctx, dut, lines=region, empty=1)
        await ctx.tick()
        put(ctx, dut, empty=0)
        coming: deque[tuple[int, bool]] = deque()
        for _ in range(1500):
            lines, wanted = random.randrange(1, region + 1), random.random() < 0.8
            offered = random.random() < 0.8
            ctx.set(dut.sized.valid, offered)
            ctx.set(dut.sized.payload, {"lines": lines, "wanted": wanted})
            valid = ctx.get(dut.places.valid)
            assert valid == bool(coming)
            goes = used = anew = False
            if valid:
                now, is_wanted = coming[0]
                if is_wanted:
                    wraps = after + now > region
                    place = ctx.get(dut.places.payload)
                    skipped = region - after if wraps else 0
                    assert (place.place, place.taken) == (0 if wraps else after, now + skipped)
                    seen["wraps"] += wraps
                goes = random.random() < 0.6
                used = goes and is_wanted and random.random() < 0.7
                anew = not goes and is_wanted and random.random() < 0.1
                if used:
                    after = now if wraps else after + now
                seen["left"] += goes and is_wanted and not used
                seen["anew"] += anew
            empty = not valid and not offered and random.random() < 0.5
            put(ctx, dut, used=used, anew=anew, empty=empty)
            ctx.set(dut.places.ready, goes)
            if anew or empty:
                after = 0
                seen["empty"] += empty
            taken = offered and ctx.get(dut.sized.ready)
            assert taken or not offered or (valid and (not goes or (coming[0][1] and not used)))
            if goes:
                coming.popleft()
            if taken:
                coming.append((lines, wanted))
            await ctx.tick()

    simulate(dut, bench)
    assert min(seen.values()) > 15


def test_lines_are_free_when_their_row_is_done() -> None:
    random = Random(2)
    region, rows = 13, 4
    dut = RegionLines(line_address_width=WIDTH, rows=rows)
    seen = {"fits": 0, "will fit": 0, "never": 0, "empty": 0, "full": 0}

    async def bench(ctx: Any) -> None:
        put(ctx, dut, lines=region)
        await ctx.tick().repeat(3)
        under_way: deque[int] = deque()  # lines of rows that have ended
        ages: deque[int] = deque()
        freed = [0] * (dut.latency - 1)  # lines that are about to be counted as free
        own = used = before = 0
        for _ in range(3000):
            taken, last = random.randrange(1, region + 3), random.random() < 0.4
            put(ctx, dut, taken=taken, last=last)
            await ctx.delay(0)
            fits, will_fit = ctx.get(dut.fits), ctx.get(dut.will_fit)
            assert ctx.get(dut.used) == used
            assert fits == (taken <= region - used)
            assert will_fit == (not own or taken <= region - own)
            ready = ctx.get(dut.row_ready)
            assert ready == (len(under_way) < rows)
            assert not ctx.get(dut.empty) or before == 0
            seen["fits" if fits else "will fit" if will_fit else "never"] += 1
            seen["empty"] += ctx.get(dut.empty)
            seen["full"] += not ready
            enter = random.random() < 0.6 and (ready or not last)
            placed = enter and fits and will_fit
            done = bool(ages) and ages[0] > 2 and random.random() < 0.3
            put(ctx, dut, enter=enter, placed=placed, row_done=done)
            before = used + (taken if placed else 0)
            used = before - freed.pop(0)
            freed.append(under_way.popleft() if done else 0)
            if done:
                ages.popleft()
            ages = deque(age + 1 for age in ages)
            own += taken if placed else 0
            if enter and last:
                under_way.append(own)
                ages.append(0)
                own = 0
            await ctx.tick()

    simulate(dut, bench)
    assert min(seen.values()) > 15


@pytest.mark.parametrize("lanes", [1, 4])
def test_beats_go_to_the_lines_of_their_runs(lanes: int) -> None:
    random = Random(lanes)
    dut = RunWriter(lanes=lanes, line_address_width=WIDTH, pending=4)
    runs = [(random.randrange(16), random.choice((1, 1, 2, 5, 16))) for _ in range(80)]
    beats = [random.getrandbits(64 * lanes) for _, lines in runs for _ in range(lines)]
    lines = [line + n for line, count in runs for n in range(count)]
    ends = [n == count - 1 for _, count in runs for n in range(count)]
    found: list[tuple[int, int]] = []

    async def bench(ctx: Any) -> None:
        asked = moved = 0
        while len(found) < len(lines):
            ctx.set(dut.runs.valid, asked < len(runs) and random.random() < 0.5)
            ctx.set(dut.runs.payload, dict(zip(("line", "lines"), (*runs, (0, 1))[asked], strict=True)))
            ctx.set(dut.beats.valid, moved < len(beats) and random.random() < 0.9)
            ctx.set(dut.beats.payload, (*beats, 0)[moved])
            ctx.set(dut.sram_write.ready, random.random() < 0.9)
            if ctx.get(dut.beats.valid) and ctx.get(dut.beats.ready):
                moved += 1
            if ctx.get(dut.runs.valid) and ctx.get(dut.runs.ready):
                asked += 1
            granted = ctx.get(dut.sram_write.valid) and ctx.get(dut.sram_write.ready)
            assert ctx.get(dut.written) == (granted and ends[len(found)])
            if granted:
                write = ctx.get(dut.sram_write.payload)
                assert write.mask == (1 << len(dut.sram_write.payload.mask)) - 1
                found.append((write.address, ctx.get(dut.sram_write.payload.line.as_value())))
            await ctx.tick()

    simulate(dut, bench)
    assert found == list(zip(lines, beats, strict=True))


SIZES = {"lanes": 2, "short_lines": 4, "address_width": 16, "line_address_width": 6, "pending": 4, "rows": 4}


@pytest.mark.parametrize(
    ("block", "names", "wrong", "message"),
    [
        (
            LeafSizer,
            "lanes address_width line_address_width short_lines",
            {"lanes": 3},
            "^Lanes must be a power of two",
        ),
        (
            RegionPlaces,
            "address_width line_address_width",
            {"address_width": 0},
            "^Address width must be an integer from ",
        ),
        (RegionLines, "line_address_width rows", {"rows": 0}, "^Rows must be an integer from 1 to "),
        (RunWriter, "lanes line_address_width pending", {"pending": 0}, "^Pending runs must be an integer from 1 to "),
    ],
)
def test_wrong_parameters(block: Any, names: str, wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        block(**{name: SIZES[name] for name in names.split()} | wrong)
