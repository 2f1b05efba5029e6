"""Record placer against its definition: each record behind the one before it, counted from the beat that is being filled."""

from random import Random
from typing import Any

import pytest

from rtl.mint.record_placer import RecordPlacer
from tests.rtl.port_bench import PortBench

BEAT = 32


@pytest.mark.parametrize("chance", [0.4, 1.0])
@pytest.mark.parametrize(("lanes", "width"), [(1, 32), (4, 20)])
def test_every_record_has_its_place(lanes: int, width: int, chance: float) -> None:
    random = Random(lanes)
    dut = RecordPlacer(beat_bits=BEAT, lanes=lanes, width=width)
    bench = PortBench(dut, seed=lanes, chance=chance)
    regions, groups, expected = [], [], []
    for n in range(40):
        start, bits = random.randrange(BEAT), random.choice((0, 1, width, random.randrange(width + 1)))
        # Wider than the widest record: it takes no bits.
        told = (1 << width.bit_length()) - 1 if n == 30 and width & (width + 1) else bits
        taken = bits if told == bits else 0
        regions.append({"start": start, "width": told})
        at = start
        for last in (*[False] * random.randrange(6), True):
            records = [random.getrandbits(width) for _ in range(lanes)]
            count = random.randrange(lanes + 1)
            groups.append({"records": records, "count": count, "last": last})
            expected.append(
                {
                    "records": [record & ((1 << taken) - 1) for record in records],
                    "count": count,
                    "last": last,
                    "first": not expected or expected[-1]["last"],
                    "start": start,
                    # Counted from the beat in which the group begins.
                    "places": [at % BEAT + k * taken for k in range(lanes)],
                    "end": at % BEAT + count * taken,
                }
            )
            at += count * taken
    bench.feed(dut.region, regions)
    bench.feed(dut.groups, groups)
    placed = bench.collect(dut.placed)
    errors: list[int] = []
    cycles = bench.run(lambda: len(placed) == len(groups), each=lambda ctx: errors.append(ctx.get(dut.error)))
    assert placed == expected
    assert (errors[0], errors[-1]) == (0, int(any(one["width"] > width for one in regions)))
    if chance == 1.0:
        assert cycles <= len(groups) + dut.latency + 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"lanes": 3}, "^Lanes must be a power of two from 1 to 16, not 3$"),
        ({"width": 33}, "^Record width must be from 1 "),
    ],
)
def test_wrong_parameters(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RecordPlacer(**{"beat_bits": BEAT, "lanes": 2, "width": 8} | wrong)
