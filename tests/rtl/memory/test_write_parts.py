"""The parts of the write engine alone: a client's bursts and beats, the window's guard, the sender of beats."""

from collections import deque
from random import Random
from typing import Any

import pytest

from rtl.memory.beat_sender import BeatSender
from rtl.memory.window_guard import WindowGuard
from rtl.memory.write_client import WriteClient
from tests.rtl.port_bench import PortBench

BYTES = 8


def cut(line: int, beats: int, limit: int) -> list[tuple[int, int, bool]]:
    """A request's bursts: first line, beats, whether it is the last; each ends at a multiple of ``limit`` lines."""
    found = []
    while beats:
        now = min(beats, limit - line % limit)
        found.append((line, now, now == beats))
        line, beats = line + now, beats - now
    return found


@pytest.mark.parametrize("chance", [0.4, 1.0])
@pytest.mark.parametrize(("depth", "limit"), [(2, 1), (6, 2), (16, 8), (80, 8)])
def test_bursts_of_a_client(depth: int, limit: int, chance: float) -> None:
    """Bursts are the requests cut in pieces, none before its data have come, and idle means that all is acknowledged."""
    random = Random(depth)
    dut = WriteClient(data_width=8 * BYTES, address_width=20, depth=depth, outstanding=3, burst_beats=8)
    bench = PortBench(dut, seed=depth, chance=chance)
    requests = [
        {
            "address": BYTES * random.randrange(1 << 16) + random.randrange(BYTES),
            "beats": random.choice((0, 1, 2, 5, 9)),
        }
        for _ in range(60)
    ]
    total = sum(request["beats"] for request in requests)
    data = [{"data": random.getrandbits(64), "strobe": random.getrandbits(8)} for _ in range(total)]
    asked, given = bench.feed(dut.request, requests), bench.feed(dut.data, data)
    bursts = bench.collect(dut.bursts)
    beats: list[Any] = []
    pending = acknowledged = 0
    granted = 0  # beats of the bursts that came out and have not been taken

    def each(ctx: Any) -> None:
        nonlocal pending, acknowledged, granted
        for burst in bursts[acknowledged + pending :]:
            pending += 1
            granted += burst["beats"]
        # A burst comes out only when all of its beats are there.
        taken = total - len(given)
        assert sum(burst["beats"] for burst in bursts) <= taken
        requested = sum(request["beats"] for request in requests[: len(requests) - len(asked)])
        in_memory = sum(burst["beats"] for burst in bursts[:acknowledged])
        assert ctx.get(dut.idle) == (requested == taken == in_memory)
        now = pending > 0 and random.random() < 0.3
        ctx.set(dut.acknowledged, now)
        pending, acknowledged = pending - now, acknowledged + now
        takes = granted > 0 and random.random() < 0.7
        ctx.set(dut.beats.ready, takes)
        if takes and ctx.get(dut.beats.valid):
            beat = ctx.get(dut.beats.payload)
            beats.append({"data": beat.data, "strobe": beat.strobe})
            granted -= 1
        # As the engine, the bench has no more than three bursts under way.
        ctx.set(dut.bursts.ready, pending < 3 and ctx.get(dut.bursts.ready))

    wanted = [part for one in requests for part in cut(one["address"] // BYTES, one["beats"], limit)]
    rest = 0

    def done() -> bool:
        nonlocal rest
        rest += acknowledged == len(wanted) and len(beats) == total
        return rest > 3

    bench.run(done, each=each)
    assert [(one["line"], one["beats"], bool(one["ends"])) for one in bursts] == [
        (line & 0x1FFFF, count, ends) for line, count, ends in wanted
    ]
    assert beats == data


@pytest.mark.parametrize("chance", [0.4, 1.0])
@pytest.mark.parametrize(("begin", "end"), [(0, 0), (100, 0), (0, 400), (90, 410), (100, 100)])
def test_nothing_outside_the_window(begin: int, end: int, chance: float) -> None:
    """Bursts go on up to the first one with a line outside; that one is told once, and nothing follows it."""
    random = Random(begin + end)
    dut = WindowGuard(address_width=20, line_bytes=BYTES, id_width=2, burst_beats=8)
    top = end or 1 << 17
    commands, outside = [], 0
    for n in range(120):
        count = random.choice((1, 2, 4, 8))
        inside = n < 60 or random.random() < 0.5
        first = random.randrange(begin, max(begin + 1, top - count + 1)) if inside else random.randrange(500)
        # Within a page of 512 lines; at a border as often as not.
        line = random.choice((first, begin, max(begin, top - count))) if inside else first
        line = min(line, line // 512 * 512 + 512 - count)
        commands.append({"id": random.randrange(4), "burst": {"line": line, "beats": count, "ends": 0}})
    fits = [one["burst"]["line"] >= begin and one["burst"]["line"] + one["burst"]["beats"] <= top for one in commands]
    passed = fits.index(False) if False in fits else len(fits)
    bench = PortBench(dut, seed=begin, chance=chance)
    left = bench.feed(dut.commands, commands)
    bursts, held = bench.collect(dut.bursts), bench.collect(dut.held_back)
    dropped = 0

    def each(ctx: Any) -> None:
        nonlocal dropped, outside
        ctx.set(dut.first_line, begin)
        ctx.set(dut.end_line, end)
        closed = ctx.get(dut.closed)
        assert closed == (dropped > 0)
        dropped += ctx.get(dut.dropped)
        outside += closed and ctx.get(dut.bursts.valid)

    quiet = 0

    def done() -> bool:
        nonlocal quiet
        quiet += not left
        return quiet > 12 and len(bursts) + dropped == len(commands)

    cycles = bench.run(done, each=each)
    assert bursts == commands[:passed]
    assert dropped == len(commands) - passed and not outside
    first = [{"id": one["id"], "line": one["burst"]["line"]} for one in commands[passed : passed + 1]]
    assert held == first
    assert (passed < len(commands)) == ((begin, end) != (0, 0))
    if chance == 1.0:
        assert cycles <= len(commands) + dut.latency + 12


@pytest.mark.parametrize("chance", [0.4, 1.0])
@pytest.mark.parametrize("clients", [1, 3])
def test_beats_in_the_order_of_bursts(clients: int, chance: float) -> None:
    random = Random(clients)
    dut = BeatSender(data_width=64, clients=clients, outstanding=4, burst_beats=8)
    bench = PortBench(dut, seed=clients, chance=chance)
    queues = [bench.feed(port) for port in dut.beats]
    bursts = bench.feed(dut.bursts)
    sent = bench.collect(dut.sent)
    expected: list[dict[str, Any]] = []
    ends: deque[int] = deque()  # beats by which each burst inside has been sent
    moved = [0] * clients
    given = [0] * clients

    def each(ctx: Any) -> None:
        while ends and ends[0] <= len(sent):
            ends.popleft()
        if len(ends) < 4 and len(expected) < 400:
            client, count = random.randrange(clients), random.choice((1, 2, 7, 8))
            bursts.append({"client": 1 << client, "beats": count})
            given[client] += count
            for n in range(count):
                beat = {"data": random.getrandbits(64), "strobe": random.getrandbits(8)}
                queues[client].append(beat)
                expected.append({"beat": beat, "last": n == count - 1})
            ends.append(len(expected))
        moves = ctx.get(dut.moved)
        assert moves & (moves - 1) == 0
        for client in range(clients):
            moved[client] += moves >> client & 1

    cycles = bench.run(lambda: len(expected) >= 400 and len(sent) == len(expected), each=each)
    assert sent == expected
    assert moved == given
    if chance == 1.0:
        assert cycles <= len(expected) + dut.latency + 2


CLIENT = {"data_width": 64, "address_width": 20, "depth": 4, "outstanding": 2, "burst_beats": 4}
GUARD = {"address_width": 20, "line_bytes": 8, "id_width": 1, "burst_beats": 4}
SENDER = {"data_width": 64, "clients": 2, "outstanding": 2, "burst_beats": 4}


@pytest.mark.parametrize(
    ("block", "sizes", "wrong", "message"),
    [
        (WriteClient, CLIENT, {"depth": 1}, "^Queue depth must be an integer from 2 to 65536, not 1$"),
        (WriteClient, CLIENT, {"burst_beats": 3}, "^Burst beats must be a power of two from 1 to 256, not 3$"),
        (WindowGuard, GUARD, {"line_bytes": 12}, "^Bytes of a beat must be a power of two from 1 to 128, not 12$"),
        (WindowGuard, GUARD, {"id_width": 0}, "^Identifier width must be an integer from 1 to 16, not 0$"),
        (BeatSender, SENDER, {"clients": 0}, "^Clients must be an integer from 1 to 65536, not 0$"),
        (BeatSender, SENDER, {"outstanding": "2"}, "^Outstanding bursts must be an integer from 1 to 65536, not '2'$"),
    ],
)
def test_wrong_parameters(block: Any, sizes: dict[str, int], wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        block(**sizes | wrong)
