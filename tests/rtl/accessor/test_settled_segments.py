"""Settled segments: none is told before its writes, and all of them are in the end."""

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.accessor.settled_segments import SettledSegments


@pytest.mark.parametrize("lanes", [2, 4])
def test_segments_settle_after_their_writes(lanes: int) -> None:
    rng = random.Random(lanes)
    dut = SettledSegments(lanes=lanes, line_address_width=8)
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    seen = {"all": 0, "moves": 0, "kept": 0}

    async def bench(ctx: Any) -> None:
        for _ in range(40):
            count, kept = rng.randrange(1, 30), rng.choice((0, 0, rng.randrange(9)))
            lengths = [rng.randrange(3 * lanes) for _ in range(count)]
            moves_from = rng.choice((count, count, rng.randrange(count)))  # of the segments that come
            ctx.set(dut.kept, kept)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            assert ctx.get(dut.settled) == 0
            ctx.set(dut.index, kept)
            ctx.set(dut.entry_lane, kept % lanes)
            ctx.set(dut.place_kept, 1)
            await ctx.tick()
            ctx.set(dut.place_kept, 0)
            base = kept - kept % lanes
            assert ctx.get(dut.settled) == base
            seen["kept"] += base > 0
            ended, nonzeros, entries, lines, cycle = 0, 0, 0, 0, 0
            notes: list[tuple[int, int, int]] = []  # (segments, lines of data, entries) of those that may settle
            written_at: dict[int, int] = {}
            last = -1
            while cycle - last <= 12 or last < 0:
                end = ended < count and rng.random() < 0.4
                entry = entries < ended and rng.random() < 0.5
                line = lines < -(-nonzeros // lanes) and rng.random() < 0.5
                if end:
                    nonzeros += lengths[ended]
                    ended += 1
                    whole, moves = (kept + ended) % lanes == 0, ended - 1 >= moves_from
                    ctx.set(dut.segments, kept + ended)
                    ctx.set(dut.lines, -(-nonzeros // lanes))
                    ctx.set(dut.whole_line, whole)
                    ctx.set(dut.moves, moves)
                    if whole and ended - 1 < moves_from:
                        notes.append((kept + ended, -(-nonzeros // lanes), ended))
                for port, value in (("ended", end), ("entry_written", entry), ("line_written", line)):
                    ctx.set(getattr(dut, port), value)
                await ctx.tick()
                cycle += 1
                entries, lines = entries + entry, lines + line
                for segments, needed, numbers in notes:
                    if lines >= needed and entries >= numbers:
                        written_at.setdefault(segments, cycle)
                settled = ctx.get(dut.settled)
                if settled > base:
                    assert settled in written_at and cycle >= written_at[settled] + dut.latency - 1, settled
                if last < 0 and ended == count and entries == count and lines == -(-nonzeros // lanes):
                    last = cycle
            for port in ("ended", "entry_written", "line_written"):
                ctx.set(getattr(dut, port), 0)
            assert not ctx.get(dut.pending)
            told = [segments for segments, _, _ in notes]
            # Where more notes wait than there is room for, the later ones stand out.
            assert ctx.get(dut.settled) in ([base, *told] if len(told) > 4 else [told[-1] if told else base])
            seen["all"] += bool(told) and ctx.get(dut.settled) == told[-1]
            seen["moves"] += moves_from < count

    sim.add_testbench(bench)
    sim.run()
    assert min(seen.values()) > 3, seen


@pytest.mark.parametrize("lanes", [0, 6, "2"])
def test_lanes_are_a_power_of_two(lanes: Any) -> None:
    with pytest.raises(ValueError, match="power of two"):
        SettledSegments(lanes=lanes, line_address_width=6)
