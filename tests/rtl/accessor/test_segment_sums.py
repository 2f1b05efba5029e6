"""Segment sums against a plain walk over the same segments."""

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from rtl.accessor.segment_sums import SegmentSums


def drawn(rng: random.Random, lanes: int, whole: bool) -> list[dict[str, Any]]:
    """Words of some segments, as the reader gives them."""
    words = []
    for number in range(rng.randrange(2, 12)):
        bumped = whole and rng.random() < 0.3
        length = 0 if bumped else rng.choice((0, 1, 2, 5, 3 * lanes))
        named = rng.randrange(1, 50) if bumped else length
        done = 0
        while True:
            first = rng.randrange(lanes)
            count = min(length - done, lanes - first)
            done += count
            line = [{"coordinate": rng.getrandbits(32), "value": rng.getrandbits(32)} for _ in range(lanes)]
            word = {"line": line, "first": first, "count": count, "last": done == length}
            beyond = rng.random() < 0.5
            words.append({"word": word, "begin": 100 * number, "length": named, "bumped": bumped, "beyond": beyond})
            if done == length:
                break
    return words


Places = list[tuple[int, int]]  # line and entry of each segment


def expected(
    words: list[dict[str, Any]], lanes: int, tile: dict[str, int], whole: bool, places: Places | None
) -> list[dict[str, int]]:
    """``places``: that a plan names."""
    found = []
    index, entry, reach, length, segment_at = tile["kept"], tile["entry"], 0, 0, 0
    for given in words:
        word = given["word"]
        if places is not None:
            line, entry = places[index - tile["kept"]]
            segment_at = line * lanes
        reach, length = reach + word["count"], length + word["count"]
        found.append(
            {
                "nonzeros": word["line"][word["first"] : word["first"] + word["count"]],
                "last": word["last"],
                "memory_begin": given["begin"],
                "total": given["length"] if whole and given["bumped"] else length,
                "reach": reach,
                "position": tile["origin"] + segment_at,
                "address": (tile["top"] - entry // lanes) % 128,
                "lane": entry % lanes,
                "segments": index + 1,
                "outside": places is not None and entry > tile["last_entry"],
                "place": (given["bumped"], given["beyond"]),
            }
        )
        if word["last"]:
            index, entry, length, segment_at = index + 1, 0 if entry == tile["last_entry"] else entry + 1, 0, reach
    return found


@pytest.mark.parametrize("kind", ["whole rows", "parts of rows", "planned rows"])
@pytest.mark.parametrize("lanes", [2, 4])
def test_words_are_counted(lanes: int, kind: str) -> None:
    rng = random.Random(lanes)
    whole, planned = kind != "parts of rows", kind == "planned rows"
    dut = SegmentSums(lanes=lanes, line_address_width=7)
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    turned = outside = 0

    async def bench(ctx: Any) -> None:
        nonlocal turned, outside
        ctx.set(dut.planned, planned)
        for _ in range(25):
            places = rng.random() < 0.5
            last = rng.randrange(3, 20)
            tile = {"kept": rng.randrange(9), "entry": rng.randrange(last) if places else 0, "last_entry": last}
            tile |= {"top": rng.randrange(60, 90), "origin": rng.randrange(500)}
            words = drawn(rng, lanes, whole)
            named = [
                (rng.randrange(1 << 16), rng.choice([0, rng.randrange(last + 1), last, last + 1, 0xFFFF]))
                for given in words
                if given["word"]["last"]
            ]
            wanted = expected(words, lanes, tile, whole, named if planned else None)
            outside += sum(want["outside"] for want in wanted)
            turned += any(one["lane"] == 0 and one["address"] == tile["top"] for one in wanted[1:])
            for name in ("kept", "entry", "last_entry", "top", "origin"):
                ctx.set(getattr(dut, name), tile[name])
            ctx.set(dut.whole, whole)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.place_entry, places)
            await ctx.tick()
            ctx.set(dut.place_entry, 0)
            assert ctx.get(dut.index) == tile["kept"] and ctx.get(dut.entry_lane) == tile["entry"] % lanes
            sent, cycle, first_sent = 0, 0, None
            told, shows = 0, False  # places that have been taken; whether the next one is there
            steps: list[tuple[int, int]] = []
            for number, want in enumerate(wanted):
                while True:
                    shows = shows or rng.random() < 0.5
                    ctx.set(dut.row_places.valid, shows and told < len(named))
                    if told < len(named):
                        ctx.set(dut.row_places.payload, {"line": named[told][0], "entry": named[told][1]})
                    offered = sent < len(words) and rng.random() < 0.8
                    ctx.set(dut.segments.valid, offered)
                    if offered:
                        ctx.set(dut.segments.payload, words[sent])
                    ctx.set(dut.summed.ready, rng.random() < 0.7)
                    _, _, taken, gone, item, used, stepping, step = await ctx.tick().sample(
                        dut.segments.ready,
                        dut.summed.valid & dut.summed.ready,
                        dut.summed.payload,
                        dut.row_places.ready,
                        dut.stepping,
                        dut.step,
                    )
                    cycle += 1
                    if stepping:
                        steps.append((step.nonzeros, step.last))
                    if used and shows and told < len(named):
                        told, shows = told + 1, False
                    if offered and taken:
                        first_sent = cycle if first_sent is None else first_sent
                        sent += 1
                    if gone:
                        assert first_sent is not None and cycle >= first_sent + dut.latency
                        break
                found = {name: item[name] for name in ("memory_begin", "total", "reach", "position", "segments")}
                found |= {"address": item.entry.address, "lane": item.entry.lane, "last": item.word.last}
                found["outside"] = item.outside
                found["place"] = (item.place.bumped, item.place.beyond)
                kept = [item.word.line[n] for n in range(item.word.count)]
                found["nonzeros"] = [{"coordinate": e.coordinate, "value": e.value} for e in kept]
                assert found == want
                if planned:
                    # A place is taken with the last word of its segment, of which two wait for their way out.
                    ends = sum(given["word"]["last"] for given in words[: number + 1])
                    assert ends <= told <= ends + 2
            assert told == (len(named) if planned else 0)
            # The block that places segments keeps step with the words.
            assert steps == [(given["word"]["count"], given["word"]["last"]) for given in words]
            ctx.set(dut.segments.valid, 0)
            ctx.set(dut.row_places.valid, 0)
            ctx.set(dut.summed.ready, 0)
            await ctx.tick()
            assert ctx.get(dut.idle)

    sim.add_testbench(bench)
    sim.run()
    assert turned > 2 and (outside > 10) == planned


@pytest.mark.parametrize("lanes", [0, 6, "2"])
def test_lanes_are_a_power_of_two(lanes: Any) -> None:
    with pytest.raises(ValueError, match="power of two"):
        SegmentSums(lanes=lanes, line_address_width=6)
