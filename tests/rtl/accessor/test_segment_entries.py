"""Segment entries: what the SRAM holds in the end, and that the first bumped segment takes the remembered ones with it."""

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.accessor.segment_entries import SegmentEntries

Entry = tuple[int, int, bool]


def drawn(rng: random.Random, lanes: int, remembered: int) -> list[dict[str, Any]]:
    """Segments of a tile: some in place, some beyond the regular lines, then perhaps bumped ones."""
    count = rng.randrange(2, 14)
    beyond = rng.randrange(count) if remembered else count
    bumped = rng.choice((count, rng.randrange(count), min(count, beyond + rng.randrange(remembered + 1))))
    bumped = min(bumped, beyond + remembered)
    return [
        {
            "entry": {"address": 90 - n // lanes, "lane": n % lanes},
            "memory_begin": 1000 + 10 * n,
            "position": 10 * n,
            "total": rng.randrange(1, 9),
            "words": rng.randrange(1, 4),
            "place": {"bumped": n >= bumped, "beyond": n >= beyond},
        }
        for n in range(count)
    ]


@pytest.mark.parametrize("remembered", [0, 1, 3])
@pytest.mark.parametrize("lanes", [2, 4])
def test_each_segment_has_its_entry(lanes: int, remembered: int) -> None:
    rng = random.Random(lanes + remembered)
    dut = SegmentEntries(lanes=lanes, line_address_width=8, remembered=remembered)
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    seen = {"bumped": 0, "took back": 0, "waited": 0}
    written: dict[tuple[int, int], Entry] = {}

    def note(write: Any) -> None:
        assert write.mask & (write.mask - 1) == 0 and write.mask
        lane = write.mask.bit_length() - 1
        element = write.line[lane]
        length = element.value
        written[write.address, lane] = (element.coordinate, length & 0x7FFF_FFFF, bool(length >> 31))

    async def cycle(ctx: Any) -> tuple[bool, int]:
        ctx.set(dut.write.ready, rng.random() < 0.6)
        _, _, goes, write, gone, took, nonzeros = await ctx.tick().sample(
            dut.write.valid & dut.write.ready,
            dut.write.payload,
            dut.valid & dut.goes,
            dut.took_back,
            dut.nonzeros,
        )
        if goes:
            note(write)
        return gone, nonzeros if took else 0

    async def bench(ctx: Any) -> None:
        for _ in range(40):
            written.clear()
            if remembered:
                ctx.set(dut.forget, 0)
            segments, taken_back = drawn(rng, lanes, remembered), 0
            for segment in segments:
                fields = {name: segment[name] for name in ("entry", "memory_begin", "position", "total")}
                for n in range(segment["words"]):
                    ctx.set(dut.word, fields | {"last": n + 1 == segment["words"]})
                    ctx.set(dut.bumped, segment["place"]["bumped"])
                    if remembered:
                        ctx.set(dut.beyond, segment["place"]["beyond"])
                    ctx.set(dut.valid, 1)
                    gone = False
                    while not gone:
                        ctx.set(dut.packs, rng.random() < 0.6)
                        gone, more = await cycle(ctx)
                        taken_back += more
                        seen["waited"] += not gone
            ctx.set(dut.valid, 0)
            while not ctx.get(dut.idle):
                await cycle(ctx)
            some_bumped = any(one["place"]["bumped"] for one in segments)
            back = [one for one in segments if one["place"]["beyond"] and not one["place"]["bumped"]] * some_bumped
            assert taken_back == sum(one["total"] for one in back)
            assert bool(ctx.get(dut.remembers)) == (not some_bumped and any(one["place"]["beyond"] for one in segments))
            seen["bumped"] += some_bumped
            seen["took back"] += bool(back)
            wanted = {}
            for one in segments:
                out = one["place"]["bumped"] or one in back
                place = one["memory_begin"] if out else one["position"]
                wanted[one["entry"]["address"], one["entry"]["lane"]] = (place, one["total"], out)
            assert written == wanted
            if remembered:
                ctx.set(dut.forget, 1)
            for _ in range(remembered):
                await cycle(ctx)
            assert not ctx.get(dut.remembers)

    sim.add_testbench(bench)
    sim.run()
    assert seen["bumped"] > 3 and seen["waited"] > 3 and (seen["took back"] > 3 or not remembered), seen


@pytest.mark.parametrize("remembered", [-1, 1.0])
def test_a_number_of_segments_is_remembered(remembered: Any) -> None:
    with pytest.raises(ValueError, match="from 0 on"):
        SegmentEntries(lanes=2, line_address_width=6, remembered=remembered)
