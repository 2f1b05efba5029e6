# amaranth: UnusedElaboratable=no
"""Bit unpacker: every width and place of a record, requests back to back, pauses on all ports, its rate in cycles."""

import random

import numpy as np
import pytest

from rtl.mint.bit_unpacker import BitUnpacker
from sw.formats.bit_fields import pack_fields
from sw.golden.mint_bits import beat_count, unpack
from tests.rtl.mint.streams import BEHAVIOURS, PAUSES, run


def request_of(rng, dut, *, width=None, count=None, drop=None):
    width = rng.randint(1, dut.width) if width is None else width
    drop = rng.randrange(dut.beat_bits) if drop is None else drop
    count = rng.choice((0, 1, 2, rng.randint(3, 40))) if count is None else count
    return {"drop": drop, "width": width, "count": count}


def with_beats(rng, dut, requests):
    """Random beats for each request; every bit around the records is drawn too."""
    return [
        [rng.getrandbits(dut.beat_bits) for _ in range(beat_count(beat_bits=dut.beat_bits, **request))]
        for request in requests
    ]


def unpacked(dut, requests, beats, **options):
    """Records of each request, and the run."""
    groups = sum(1 for _ in requests)
    got = []

    def view(port, group):
        count = group["count"]
        got.append(([group["records"][n] for n in range(count)], bool(group["last"])))

    wanted = wanted_groups(dut, requests)
    result = run(
        dut,
        {"request": requests, "beats": [beat for part in beats for beat in part]},
        {"groups": wanted},
        view=view,
        **options,
    )
    got = got[-wanted:]
    found, current = [], []
    for records, last in got:
        assert records or last, "an empty group does not end its request"
        current += records
        if last:
            found.append(current)
            current = []
    assert len(found) == groups
    return found, result


def steps(dut, requests):
    """Of each group of all requests: the last beat that it needs, and the first that is needed after it."""
    base = 0
    for request in requests:
        at, left, width = request["drop"], request["count"], request["width"]
        if not left * width:
            for _ in range(max(1, -(-left // dut.lanes))):
                yield base - 1, base
            continue
        beats = beat_count(beat_bits=dut.beat_bits, **request)
        while left:
            if width * dut.lanes <= dut.beat_bits:
                count = dut.lanes
            else:
                count = dut.beat_bits // width
                count += at % dut.beat_bits + count * width < dut.beat_bits
            count = min(count, left)
            left -= count
            at += count * width
            yield base + -(-at // dut.beat_bits) - 1, base + (at // dut.beat_bits if left else beats)
        base += beats


def wanted_groups(dut, requests):
    return sum(1 for _ in steps(dut, requests))


def wanted_cycles(dut, requests):
    """When each group leaves if nobody pauses: one a cycle and a beat a cycle, two beats at hand at a time."""
    taken, freed = [], []  # cycles
    fires = dut.request_latency - dut.stages - 1
    for needed, done in steps(dut, requests):
        while len(taken) <= needed:
            n = len(taken)
            taken.append(max(taken[-1] + 1 if taken else 0, freed[n - 2] if n >= 2 else 0))
        fires = max(fires + 1, taken[needed] + 1 if needed >= 0 else 0)
        freed += [fires] * (done - len(freed))
        yield fires + dut.stages


def checked(dut, requests, rng, **options):
    beats = with_beats(rng, dut, requests)
    found, result = unpacked(dut, requests, beats, **options)
    for request, part, records in zip(requests, beats, found, strict=True):
        assert records == unpack(part, beat_bits=dut.beat_bits, **request), request
    return result


BUILDS = {
    "one_lane": {"beat_bits": 32, "lanes": 1, "width": 32},
    "two_lanes": {"beat_bits": 32, "lanes": 2, "width": 16},
    "beyond_a_beat": {"beat_bits": 32, "lanes": 4, "width": 32},
    "eight_lanes": {"beat_bits": 16, "lanes": 8, "width": 5, "stages": 3},
    "narrow": {"beat_bits": 16, "lanes": 4, "width": 3, "stages": 1},
    "four_stages": {"beat_bits": 64, "lanes": 2, "width": 20, "stages": 4},
    "smallest": {"beat_bits": 8, "lanes": 1, "width": 1, "stages": 1, "count_bits": 5},
    "as_wide_as_a_beat": {"beat_bits": 8, "lanes": 4, "width": 8, "stages": 2},
}


@pytest.mark.parametrize("build", BUILDS)
def test_every_width_at_several_drops(build):
    dut = BitUnpacker(**BUILDS[build])
    rng = random.Random(build)
    requests = [
        request_of(rng, dut, width=width, drop=drop, count=rng.randint(1, 3 * dut.lanes + 1))
        for width in range(dut.width + 1)
        for drop in (0, dut.beat_bits - 1, rng.randrange(dut.beat_bits))
    ]
    if dut.count_bits < 6:
        requests = [request | {"count": min(request["count"], 31)} for request in requests]
    checked(dut, requests, rng)


@pytest.mark.parametrize(("request_pause", "idle", "stall"), BEHAVIOURS)
@pytest.mark.parametrize("build", ["beyond_a_beat", "two_lanes", "as_wide_as_a_beat"])
def test_any_behaviour_of_the_neighbours(build, request_pause, idle, stall):
    dut = BitUnpacker(**BUILDS[build])
    rng = random.Random(f"{build} {idle} {stall}")
    requests = [request_of(rng, dut) for _ in range(40)]
    pauses = {"request": PAUSES[request_pause], "beats": PAUSES[idle], "groups": PAUSES[stall]}
    checked(dut, requests, rng, pause=pauses)


@pytest.mark.parametrize("build", BUILDS)
def test_rate_of_long_requests(build):
    """Lanes records a cycle, or a beat a cycle, whichever is the bound, from the first group to the last."""
    dut = BitUnpacker(**BUILDS[build])
    rng = random.Random(build)
    count = 31 if dut.count_bits == 5 else 100
    widths = sorted({1, dut.width, *(rng.randint(1, dut.width) for _ in range(4))})
    requests = [
        request_of(rng, dut, width=width, count=count, drop=drop) for width in widths for drop in (0, dut.beat_bits - 1)
    ]
    result = checked(dut, requests, rng)
    assert result.cycles["groups"] == list(wanted_cycles(dut, requests))
    for request in requests:
        groups, beats = wanted_groups(dut, [request]), beat_count(beat_bits=dut.beat_bits, **request)
        fits = request["width"] * dut.lanes <= dut.beat_bits
        assert groups == -(-count // dut.lanes) if fits else groups <= beats


@pytest.mark.parametrize("build", ["one_lane", "two_lanes", "beyond_a_beat", "eight_lanes"])
def test_rate_of_requests_back_to_back(build):
    """Rows of none to a few records, one after the other, pause only for beats that cannot have come."""
    dut = BitUnpacker(**BUILDS[build])
    rng = random.Random(build)
    widths = (1, dut.width // 3, dut.width // 2 + 1, dut.width)
    requests = [request_of(rng, dut, width=width, count=rng.randint(0, 9)) for width in widths for _ in range(40)]
    result = checked(dut, requests, rng)
    assert result.cycles["groups"] == list(wanted_cycles(dut, requests))


@pytest.mark.parametrize("build", ["two_lanes", "beyond_a_beat", "eight_lanes", "four_stages"])
def test_latency(build):
    rng = random.Random(1)
    dut = BitUnpacker(**BUILDS[build])
    request = request_of(rng, dut, width=1, count=1, drop=0)
    result = checked(dut, [request], rng)
    assert result.cycles["groups"][0] - result.cycles["request"][0] == dut.request_latency
    late = [True] * 20
    dut = BitUnpacker(**BUILDS[build])
    result = checked(dut, [request], rng, pause={"beats": lambda rng: bool(late and late.pop())})
    assert result.cycles["groups"][0] - result.cycles["beats"][0] == dut.latency


def test_largest_count():
    dut = BitUnpacker(beat_bits=32, lanes=8, width=4, count_bits=9)
    rng = random.Random(3)
    requests = [{"drop": 5, "width": 3, "count": 511}, {"drop": 0, "width": 4, "count": 511}]
    checked(dut, requests, rng)


@pytest.mark.parametrize("after", [3, 6, 9, 30])
def test_reset_in_the_middle(after):
    dut = BitUnpacker(beat_bits=16, lanes=4, width=16)
    rng = random.Random(after)
    requests = [request_of(rng, dut, count=rng.randint(0, 12)) for _ in range(20)]
    checked(dut, requests, rng, reset_after=after)


def test_records_of_a_region_in_memory():
    """The layout of docs/formats.md: what ``pack_fields`` puts into memory comes out again."""
    dut = BitUnpacker(beat_bits=128, lanes=4, width=64)
    rng = np.random.default_rng(5)
    for widths in ((17, 8), (32, 32)):
        count = 40
        fields = [rng.integers(0, 1 << width, count, dtype=np.uint64) for width in widths]
        memory = pack_fields(fields, widths, count).tobytes()
        memory += bytes(-len(memory) % 16)
        beats = [int.from_bytes(memory[n : n + 16], "little") for n in range(0, len(memory), 16)]
        request = {"drop": 0, "width": sum(widths), "count": count}
        (found,), _ = unpacked(dut, [request], [beats])
        assert found == [int(low) | int(high) << widths[0] for low, high in zip(*fields, strict=True)]


def test_a_width_above_the_widest_is_an_error():
    dut = BitUnpacker(beat_bits=64, lanes=2, width=20)
    seen = []
    requests = [
        {"drop": 3, "width": 20, "count": 5},
        {"drop": 0, "width": 21, "count": 5},
        {"drop": 9, "width": 4, "count": 2},
    ]
    rng = random.Random(8)
    beats = with_beats(rng, dut, [requests[0], requests[2]])
    answered = [requests[0], {"drop": 0, "width": 21, "count": 0}, requests[2]]
    got = []
    run(
        dut,
        {"request": requests, "beats": [beat for part in beats for beat in part]},
        {"groups": wanted_groups(dut, answered)},
        view=lambda port, group: got.append(group["count"]),
        after=lambda ctx: seen.append(ctx.get(dut.error)),
    )
    assert seen == [1] and sum(got) == 7
    fine = BitUnpacker(beat_bits=64, lanes=2, width=20)
    checked(fine, [requests[0]], rng, after=lambda ctx: seen.append(ctx.get(fine.error)))
    assert seen == [1, 0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"beat_bits": 96}, "Beat must be a power of two from 8 to 1024 bits, not 96"),
        ({"beat_bits": 2048}, "Beat must be a power of two from 8 to 1024 bits, not 2048"),
        ({"beat_bits": 64, "lanes": 3}, "Lanes must be a power of two from 1 to 16, not 3"),
        ({"beat_bits": 64, "lanes": 32}, "Lanes must be a power of two from 1 to 16, not 32"),
        ({"beat_bits": 64, "width": 65}, "Record width must be from 1 to 64 bits, not 65"),
        ({"beat_bits": 16, "width": 17}, "Record width must be from 1 to 16 bits, not 17"),
        ({"beat_bits": 64, "width": 0}, "Record width must be from 1 to 64 bits, not 0"),
        ({"beat_bits": 64, "stages": 0}, "Stages must be from 1 to 4, not 0"),
        ({"beat_bits": 64, "stages": 5}, "Stages must be from 1 to 4, not 5"),
        ({"beat_bits": 64, "count_bits": 4}, "Count must have from 5 to 64 bits, not 4"),
    ],
)
def test_refuses_impossible_parameters(parameters, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        BitUnpacker(**parameters)


def test_refuses_what_is_no_integer():
    with pytest.raises(TypeError, match="^Beat must be an integer, not '64'$"):
        BitUnpacker(beat_bits="64")
