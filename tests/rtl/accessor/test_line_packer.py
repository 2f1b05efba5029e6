"""Packed lines under back-pressure: no element lost, none twice, partial lines handed out by a flush and completed later; fibers
in lines of their own."""

from random import Random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.accessor.line_packer import LinePacker

from .clients import patient


@pytest.mark.parametrize("lanes", [2, 4])
@pytest.mark.parametrize("hurry", [1.0, 0.4])
@pytest.mark.parametrize("apart", [False, True], ids=["packed only", "may be apart"])
def test_every_element_goes_out_once(lanes: int, hurry: float, apart: bool) -> None:
    dut = LinePacker(lanes=lanes, has_apart=apart)
    random = Random(lanes)
    given: list[int] = []
    memory: dict[int, int] = {}
    done = False

    async def source(ctx: Any) -> None:
        nonlocal done
        for n in range(120):
            count = random.randint(0, lanes)
            values = [random.getrandbits(64) for _ in range(count)]
            line = [{"coordinate": v & 0xFFFFFFFF, "value": v >> 32} for v in values] + [{}] * (lanes - count)
            ctx.set(dut.words.payload, {"line": line, "count": count, "last": 1})
            ctx.set(dut.words.valid, 1)
            for _ in patient(200):
                if (await ctx.tick().sample(dut.words.ready))[2]:
                    break
            ctx.set(dut.words.valid, 0)
            given.extend(values)
            assert ctx.get(dut.position) == len(given)
            if n % 7 == 6:
                ctx.set(dut.flush, 1)
                await ctx.tick()
                ctx.set(dut.flush, 0)
                assert not ctx.get(dut.idle)
                for _ in patient(200):
                    if (await ctx.tick().sample(dut.flushed))[2]:
                        break
                assert ctx.get(dut.idle) and sorted(memory) == list(range(len(given)))
            while random.random() > hurry:
                await ctx.tick()
        done = True

    async def sink(ctx: Any) -> None:
        out = dut.lines
        while True:
            ctx.set(out.ready, ready := random.random() < hurry)
            _, _, valid, payload = await ctx.tick().sample(out.valid, out.payload)
            if valid and ready:
                assert payload.mask, "a line without anything new"
                for lane in range(lanes):
                    if payload.mask >> lane & 1:
                        place = payload.index * lanes + lane
                        assert place not in memory, f"position {place} comes twice"
                        memory[place] = payload.data >> 64 * lane & (1 << 64) - 1

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(sink, background=True)
    sim.add_testbench(source)
    sim.run()
    assert done and [memory[n] for n in sorted(memory)] == given[: len(memory)]


def test_restart_forgets_what_is_held() -> None:
    dut = LinePacker(lanes=2)

    async def test(ctx: Any) -> None:
        async def give(value: int) -> None:
            ctx.set(dut.words.payload, {"line": [{"coordinate": value}, {}], "count": 1, "last": 1})
            ctx.set(dut.words.valid, 1)
            await ctx.tick()
            ctx.set(dut.words.valid, 0)

        ctx.set(dut.lines.ready, 1)
        await give(1)
        ctx.set(dut.flush, 1)
        await ctx.tick()
        ctx.set(dut.flush, 0)
        assert ctx.get(dut.lines.valid) and ctx.get(dut.lines.payload.mask) == 1
        await ctx.tick()
        ctx.set(dut.restart, 1)
        await ctx.tick()
        ctx.set(dut.restart, 0)
        assert ctx.get(dut.position) == 0
        await give(2)
        ctx.set(dut.words.payload, {"line": [{"coordinate": 3}, {}], "count": 1, "last": 1})
        ctx.set(dut.words.valid, 1)
        line = ctx.get(dut.lines.payload)
        assert ctx.get(dut.lines.valid) and (line.index, line.mask) == (0, 3)
        assert line.data == 2 | 3 << 64

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(test)
    sim.run()


Word = tuple[list[int], bool]  # elements, and whether the fiber ends


def words_of(random: Random, elements: list[int], lanes: int) -> list[Word]:
    """Words of a fiber: as lines of memory cut it, or of any number of elements each. The last one has some."""
    words: list[Word] = []
    ragged = random.random() < 0.5
    count = random.randint(1, lanes)
    while len(elements) > count:
        words.append((elements[:count], False))
        elements = elements[count:]
        count = random.randint(0, lanes) if ragged else lanes
    return [*words, (elements, True)]


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("hurry", [1.0, 0.4])
def test_fibers_have_lines_of_their_own(lanes: int, hurry: float) -> None:
    """Every length up to some lines, cut into words anywhere: each line once, in order, no lane of it but the fiber's."""
    dut = LinePacker(lanes=lanes, has_apart=True)
    random = Random(f"apart {lanes} {hurry}")
    lengths = [*range(1, 4 * lanes + 2), *(random.randint(1, 3 * lanes) for _ in range(50))]
    random.shuffle(lengths)
    fibers: list[tuple[int, list[int], list[Word]]] = []
    for length in lengths:
        elements = [random.getrandbits(64) for _ in range(length)]
        fibers.append((random.randrange(1 << 20), elements, words_of(random, elements, lanes)))
    expected = [
        (line + n, elements[n * lanes : (n + 1) * lanes])
        for line, elements, _ in fibers
        for n in range(-(-len(elements) // lanes))
    ]
    found: list[tuple[int, list[int]]] = []
    cycles = 0
    ended = False

    async def source(ctx: Any) -> None:
        nonlocal cycles, ended
        ctx.set(dut.apart, 1)
        ctx.set(dut.restart, 1)
        await ctx.tick()
        ctx.set(dut.restart, 0)
        for line, _, words in fibers:
            for n, (elements, last) in enumerate(words):
                # Lanes beyond the count have anything; the line counts with the first word alone.
                lane_bits = [*elements, *(random.getrandbits(64) for _ in range(lanes - len(elements)))]
                shown = [{"coordinate": bits & 0xFFFFFFFF, "value": bits >> 32} for bits in lane_bits]
                ctx.set(dut.words.payload, {"line": shown, "count": len(elements), "last": last})
                ctx.set(dut.line, random.randrange(1 << 20) if n else line)
                ctx.set(dut.words.valid, 1)
                for _ in patient(300):
                    cycles += 1
                    if (await ctx.tick().sample(dut.words.ready))[2]:
                        break
                ctx.set(dut.words.valid, 0)
                while random.random() > hurry:
                    await ctx.tick()
        for _ in patient(300):
            if ctx.get(dut.idle):
                break
            await ctx.tick()
        assert found == expected
        # Nothing is kept of the last fiber: a flush ends at once, and packed elements then begin a line.
        ctx.set(dut.flush, 1)
        await ctx.tick()
        ctx.set(dut.flush, 0)
        assert not ctx.get(dut.lines.valid) and ctx.get(dut.flushed)
        await ctx.tick()
        ctx.set(dut.restart, 1)
        await ctx.tick()
        ctx.set(dut.restart, 0)
        ctx.set(dut.apart, 0)
        ctx.set(dut.words.payload, {"line": [{"coordinate": n} for n in range(lanes)], "count": lanes, "last": 0})
        ctx.set(dut.words.valid, 1)
        whole = ctx.get(dut.lines.payload)
        assert (whole.index, whole.mask) == (0, (1 << lanes) - 1)
        ended = True

    async def sink(ctx: Any) -> None:
        out = dut.lines
        waiting = None
        while not ended:
            ctx.set(out.ready, ready := random.random() < hurry)
            _, _, valid, line = await ctx.tick().sample(out.valid, out.payload)
            if ended:
                break
            got = (
                line.index,
                line.mask,
                [line.data >> 64 * n & (1 << 64) - 1 for n in range(lanes) if line.mask >> n & 1],
            )
            assert waiting is None or (valid and waiting == got), "a line changes while it waits"
            waiting = got if valid and not ready else None
            if valid and ready:
                index, mask, elements = got
                assert mask == (1 << len(elements)) - 1 != 0
                found.append((index, elements))

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(sink, background=True)
    sim.add_testbench(source)
    sim.run()
    if hurry == 1:
        # A cycle a word, and one more for the line that the last word of a fiber begins. The very last one nobody waits for.
        spills = [
            (len(elements) - len(words[-1][0])) % lanes + len(words[-1][0]) > lanes for _, elements, words in fibers
        ]
        assert cycles == sum(len(words) for _, _, words in fibers) + sum(spills[:-1])
        assert lanes == 1 or sum(spills) > 2


def test_the_next_fiber_waits_for_the_rest_of_the_one_before() -> None:
    """A last word that fills a line and begins another hands out both, before anything of the next fiber."""
    dut = LinePacker(lanes=2, has_apart=True)

    async def give(ctx: Any, line: int, values: list[int], last: int) -> None:
        ctx.set(dut.words.payload, {"line": [{"coordinate": v} for v in values], "count": len(values), "last": last})
        ctx.set(dut.line, line)
        ctx.set(dut.words.valid, 1)

    async def test(ctx: Any) -> None:
        ctx.set(dut.apart, 1)
        ctx.set(dut.lines.ready, 1)
        await give(ctx, 9, [1], 0)
        assert not ctx.get(dut.lines.valid) and ctx.get(dut.words.ready)
        await ctx.tick()
        await give(ctx, 50, [2, 3], 1)
        line = ctx.get(dut.lines.payload)
        assert ctx.get(dut.lines.valid) and (line.index, line.mask, line.data) == (9, 3, 1 | 2 << 64)
        await ctx.tick()
        ctx.set(dut.lines.ready, 0)
        await give(ctx, 5, [4], 1)
        for _ in range(3):
            line = ctx.get(dut.lines.payload)
            assert ctx.get(dut.lines.valid) and (line.index, line.mask, line.data & 0xFF) == (10, 1, 3)
            assert not ctx.get(dut.words.ready) and not ctx.get(dut.idle)
            await ctx.tick()
        ctx.set(dut.lines.ready, 1)
        await ctx.tick()
        line = ctx.get(dut.lines.payload)
        assert ctx.get(dut.words.ready) and ctx.get(dut.idle)
        assert ctx.get(dut.lines.valid) and (line.index, line.mask, line.data & 0xFF) == (5, 1, 4)

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(test)
    sim.run()


def test_restart_forgets_a_fiber_that_has_begun() -> None:
    dut = LinePacker(lanes=4, has_apart=True)

    async def test(ctx: Any) -> None:
        ctx.set(dut.apart, 1)
        ctx.set(dut.lines.ready, 1)
        ctx.set(dut.words.valid, 1)
        ctx.set(dut.line, 7)
        ctx.set(dut.words.payload, {"line": [{"coordinate": 1}] * 4, "count": 3, "last": 0})
        await ctx.tick()
        ctx.set(dut.words.valid, 0)
        ctx.set(dut.restart, 1)
        await ctx.tick()
        ctx.set(dut.restart, 0)
        ctx.set(dut.words.valid, 1)
        ctx.set(dut.line, 20)
        ctx.set(dut.words.payload, {"line": [{"coordinate": 5}] * 4, "count": 2, "last": 1})
        line = ctx.get(dut.lines.payload)
        assert ctx.get(dut.lines.valid) and (line.index, line.mask) == (20, 3)
        assert [line.data >> 64 * n & 0xFFFFFFFF for n in range(2)] == [5, 5]

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(test)
    sim.run()
