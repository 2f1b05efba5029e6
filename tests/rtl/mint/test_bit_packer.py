# amaranth: UnusedElaboratable=no
"""Bit packer: every width and start, groups of any fill, pauses on all ports, its rate in cycles."""

import random

import numpy as np
import pytest

from rtl.mint.bit_packer import BitPacker
from sw.formats.bit_fields import pack_fields
from sw.golden.mint_bits import PackedBeat, pack
from tests.rtl.mint.streams import BEHAVIOURS, PAUSES, run

BUILDS = {
    "one_lane": {"beat_bits": 32, "lanes": 1, "width": 32},
    "two_lanes": {"beat_bits": 32, "lanes": 2, "width": 16},
    "beyond_a_beat": {"beat_bits": 32, "lanes": 4, "width": 32},
    "eight_lanes": {"beat_bits": 16, "lanes": 8, "width": 5, "stages": 3},
    "narrow": {"beat_bits": 16, "lanes": 4, "width": 3, "stages": 1},
    "four_stages": {"beat_bits": 64, "lanes": 2, "width": 20, "stages": 4},
    "smallest": {"beat_bits": 8, "lanes": 1, "width": 1, "stages": 1},
    "as_wide_as_a_beat": {"beat_bits": 8, "lanes": 4, "width": 8, "stages": 2},
}


def region_of(rng, dut, *, width=None, start=None, counts=None):
    """A region and its groups; bits above the width and records above the count are drawn too."""
    width = rng.randint(1, dut.width) if width is None else width
    start = rng.randrange(dut.beat_bits) if start is None else start
    if counts is None:
        counts = [rng.randint(0, dut.lanes) for _ in range(rng.randint(1, 12))]
    groups = [
        {
            "records": [rng.getrandbits(dut.width) for _ in range(dut.lanes)],
            "count": count,
            "last": n == len(counts) - 1,
        }
        for n, count in enumerate(counts)
    ]
    return {"start": start, "width": width}, groups


def wanted_beats(dut, region, groups):
    """The golden beats. A region whose last group finds nothing left to fill ends with a beat without bytes."""
    records = [group["records"][n] for group in groups for n in range(group["count"])]
    beats = pack(records, beat_bits=dut.beat_bits, **region)
    last = groups[-1]["count"] * region["width"]
    if not beats or (not last and (region["start"] + len(records) * region["width"]) % dut.beat_bits == 0):
        if beats:
            beats[-1] = PackedBeat(beats[-1].data, beats[-1].strobe, beats[-1].bytes, False)
        beats.append(PackedBeat(0, 0, 0, True))
    return beats


def checked(dut, regions, **options):
    wanted = [beat for region, groups in regions for beat in wanted_beats(dut, region, groups)]
    result = run(
        dut,
        {"region": [region for region, _ in regions], "groups": [group for _, groups in regions for group in groups]},
        {"beats": len(wanted)},
        view=lambda port, beat: PackedBeat(beat["data"], beat["strobe"], beat["bytes"], bool(beat["last"])),
        **options,
    )
    assert result.items["beats"] == wanted
    return result


def passes(dut, region, groups):
    """Cycles that each group takes: one for each beat that it completes, at least one."""
    at = region["start"]
    for group in groups:
        end = at + group["count"] * region["width"]
        beats = -(-end // dut.beat_bits) if group["last"] else end // dut.beat_bits
        yield max(beats, 1)
        at = end % dut.beat_bits


@pytest.mark.parametrize("build", BUILDS)
def test_every_width_at_several_starts(build):
    dut = BitPacker(**BUILDS[build])
    rng = random.Random(build)
    regions = [
        region_of(rng, dut, width=width, start=start)
        for width in range(dut.width + 1)
        for start in (0, dut.beat_bits - 1, rng.randrange(dut.beat_bits))
    ]
    checked(dut, regions)


@pytest.mark.parametrize(("region_pause", "idle", "stall"), BEHAVIOURS)
@pytest.mark.parametrize("build", ["beyond_a_beat", "two_lanes", "as_wide_as_a_beat"])
def test_any_behaviour_of_the_neighbours(build, region_pause, idle, stall):
    dut = BitPacker(**BUILDS[build])
    rng = random.Random(f"{build} {idle} {stall}")
    regions = [region_of(rng, dut) for _ in range(25)]
    pauses = {"region": PAUSES[region_pause], "groups": PAUSES[idle], "beats": PAUSES[stall]}
    checked(dut, regions, pause=pauses)


@pytest.mark.parametrize("build", BUILDS)
def test_rate(build):
    """Full groups, and groups of any fill: one a cycle, or a beat a cycle, from region to region without a pause."""
    dut = BitPacker(**BUILDS[build])
    rng = random.Random(build)
    regions = [region_of(rng, dut, counts=[dut.lanes] * 20) for _ in range(6)]
    regions += [region_of(rng, dut) for _ in range(20)]
    result = checked(dut, regions)
    cycles = [cycle for region, groups in regions for cycle in passes(dut, region, groups)]
    groups = result.cycles["groups"]
    moves, leaves, expected = 0, 0, []
    for cycle in cycles:
        expected.append(max(moves, groups[0]))
        moves = max(expected[-1] + 1, leaves)  # to where the passes are made
        leaves = moves + cycle
    assert groups == expected
    assert result.cycles["beats"][-1] - groups[0] == dut.latency + sum(cycles) - 1


@pytest.mark.parametrize("after", [4, 7, 10, 30])
def test_reset_in_the_middle(after):
    dut = BitPacker(beat_bits=16, lanes=4, width=16)
    rng = random.Random(after)
    checked(dut, [region_of(rng, dut) for _ in range(15)], reset_after=after)


def test_a_region_in_memory():
    """The layout of docs/formats.md, as ``pack_fields`` makes it."""
    dut = BitPacker(beat_bits=64, lanes=2, width=40)
    rng = np.random.default_rng(5)
    for widths in ((17, 8), (24, 16)):
        fields = [rng.integers(0, 1 << width, 40, dtype=np.uint64) for width in widths]
        records = [int(low) | int(high) << widths[0] for low, high in zip(*fields, strict=True)]
        groups = [{"records": records[n : n + 2], "count": 2, "last": n == 38} for n in range(0, 40, 2)]
        result = checked(dut, [({"start": 0, "width": sum(widths)}, groups)])
        memory = b"".join(beat.data.to_bytes(8, "little")[: beat.bytes] for beat in result.items["beats"])
        assert memory == pack_fields(fields, widths, 40).tobytes()


def test_a_width_above_the_widest_is_an_error():
    dut = BitPacker(beat_bits=64, lanes=2, width=20)
    rng, seen = random.Random(8), []
    fine, wrong = region_of(rng, dut), region_of(rng, dut, start=0, width=21)
    wanted = [wanted_beats(dut, *fine), [PackedBeat(0, 0, 0, True)], wanted_beats(dut, *fine)]
    regions = [fine, wrong, fine]
    result = run(
        dut,
        {"region": [region for region, _ in regions], "groups": [group for _, groups in regions for group in groups]},
        {"beats": sum(map(len, wanted))},
        view=lambda port, beat: PackedBeat(beat["data"], beat["strobe"], beat["bytes"], bool(beat["last"])),
        after=lambda ctx: seen.append(ctx.get(dut.error)),
    )
    assert result.items["beats"] == [beat for part in wanted for beat in part] and seen == [1]
    again = BitPacker(beat_bits=64, lanes=2, width=20)
    checked(again, [fine], after=lambda ctx: seen.append(ctx.get(again.error)))
    assert seen == [1, 0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"beat_bits": 96}, "Beat must be a power of two from 8 to 1024 bits, not 96"),
        ({"beat_bits": 64, "lanes": 0}, "Lanes must be a power of two from 1 to 16, not 0"),
        ({"beat_bits": 16, "width": 17}, "Record width must be from 1 to 16 bits, not 17"),
        ({"beat_bits": 64, "stages": 5}, "Stages must be from 1 to 4, not 5"),
    ],
)
def test_refuses_impossible_parameters(parameters, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        BitPacker(**parameters)
