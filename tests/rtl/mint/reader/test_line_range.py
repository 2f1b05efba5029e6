"""Line range against plain arithmetic: which beats hold lines of records, which of them come again, with which bit they begin."""

from random import Random
from typing import Any

import pytest

from rtl.mint.reader.line_range import LineRange
from tests.rtl.mint.streams import BEHAVIOURS, PAUSES, run

BASE = 0x7000


def drawn(random: Random, count: int, dut: LineRange) -> list[dict[str, int]]:
    """Requests; the first ones at the ends of what may be asked for."""
    addressed = 1 << (dut.address_width - (8 * dut.lanes).bit_length() + 1)
    longest = ((1 << 24) - 1) * dut.beat_bits // (64 * dut.lanes)  # a count of beats has 24 bits
    found = []
    for n in range(count):
        plain = random.random() < 0.2
        # Positions of records have 32 bits.
        lines = addressed if plain else min(addressed, (1 << 32) // dut.lanes)
        beats = random.choice((1, 2, random.randrange(1, 300), longest))
        first = random.randrange(max(1, lines - beats)) if n > 1 else n * (lines - 1)
        request = {"address": first * 8 * dut.lanes, "beats": beats if n > 1 else 1}
        request |= {"plain": int(plain), "follows": int(random.random() < 0.5)}
        found.append(request | ({"carry": random.randrange(dut.carries)} if dut.carries > 1 else {}))
    return found


def wanted(dut: LineRange, request: dict[str, int], width: int, base: int) -> dict[str, int]:
    """By record positions: those of lines, times the bits of one."""
    line = request["address"] // (8 * dut.lanes)
    beat_bits = dut.beat_bits
    if request["plain"]:
        width = 64
    begin, end = line * dut.lanes * width, (line + request["beats"]) * dut.lanes * width
    first, stop = begin // beat_bits, -(-end // beat_bits)
    shared = int(request["follows"] and not request["plain"] and begin % beat_bits != 0)
    return {
        "address": ((0 if request["plain"] else base) + (first + shared) * beat_bits // 8)
        & ((1 << dut.address_width) - 1),
        "reads": stop - first - shared,
        "beats": stop - first,
        "lines": request["beats"],
        "width": width,
        "drop": begin % beat_bits,
        "shared": shared,
        "plain": request["plain"],
        "carry": request.get("carry", 0),
    }


def shown(port: str, payload: Any) -> dict[str, int]:
    return {name: int(payload[name]) for name in payload.shape().members}


@pytest.mark.parametrize(
    ("lanes", "line_beats", "address_width", "carries", "coordinate_bits", "value_bits"),
    [
        (1, 1, 40, 1, 1, 8),
        (2, 1, 40, 3, 11, 32),
        (4, 1, 32, 1, 32, 32),
        (4, 2, 32, 1, 32, 32),
        (8, 1, 20, 64, 9, 16),
        (8, 2, 20, 64, 9, 16),
        (8, 8, 40, 3, 19, 32),
        (16, 1, 64, 1, 31, 8),
        (16, 4, 64, 1, 31, 8),
        (2, 1, 8, 1, 5, 16),
    ],
)
def test_beats_hold_the_lines(
    lanes: int, line_beats: int, address_width: int, carries: int, coordinate_bits: int, value_bits: int
) -> None:
    for number, behaviour in enumerate(BEHAVIOURS[:2] + BEHAVIOURS[3:4]):
        beat_bits = 64 * lanes // line_beats
        dut = LineRange(lanes=lanes, beat_bits=beat_bits, address_width=address_width, carries=carries)
        base = BASE % (1 << address_width)
        requests = drawn(Random(f"{lanes} {number}"), 120, dut)
        result = run(
            dut,
            {"request": requests},
            {"ranges": len(requests)},
            pause={"request": PAUSES[behaviour[0]], "ranges": PAUSES[behaviour[2]]},
            steady={"base": base, "coordinate_bits": coordinate_bits, "value_bits": value_bits},
            view=shown,
            reset_after=(None, 50, None)[number],
        )
        expected = [wanted(dut, request, coordinate_bits + value_bits, base) for request in requests]
        assert result.items["ranges"] == expected
        # Records as wide as those on chip never straddle a beat.
        assert sum(one["shared"] for one in expected) > 5 or coordinate_bits + value_bits == 64
        if behaviour[0] == behaviour[2] == "never":
            assert [out - taken for taken, out in zip(*result.cycles.values(), strict=True)] == [3] * 120
            assert result.cycles["request"] == list(range(120))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"lanes": 3}, "^Lanes must be a power of two from 1 to 16, not 3$"),
        ({"lanes": 32}, "^Lanes must be a power of two from 1 to 16, not 32$"),
        ({"address_width": 65}, "^Address width must be an integer from 8 to 64, not 65$"),
        ({"lanes": 16, "beat_bits": 64}, "^Beat bits must be a power of two from 128 to 1024, not 64$"),
        ({"beat_bits": 256}, "^Beat bits must be a power of two from 64 to 128, not 256$"),
        ({"carries": 0}, "^Carries must be an integer from 1 to 65536, not 0$"),
    ],
)
def test_wrong_parameters(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LineRange(**{"lanes": 2, "address_width": 24} | wrong)
