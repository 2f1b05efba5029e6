"""The parts of the segment player alone: lines of the partition, entries, pieces of segments, words."""

from collections import deque
from random import Random
from typing import Any

import pytest

from rtl.accessor.entry_unpacker import EntryUnpacker
from rtl.accessor.partition_reader import PartitionReader
from rtl.accessor.piece_finder import PieceFinder
from rtl.accessor.piece_words import PieceWords
from rtl.accessor.segment_player import SegmentPlayer
from tests.rtl.port_bench import PortBench

TOP = 63  # the metadata's first line


def line_of(value: int, lanes: int) -> list[dict[str, int]]:
    """A line's payload from its bits."""
    words = [value >> 64 * lane for lane in range(lanes)]
    return [{"coordinate": word & 0xFFFF_FFFF, "value": word >> 32 & 0xFFFF_FFFF} for word in words]


def segments_of(random: Random, count: int) -> list[tuple[int, int, bool]]:
    """Position, length and whether it is bumped, of segments that follow one another in the SRAM and in memory."""
    at, found = random.randrange(9), []
    # The same positions in both, so that lines of the same number meet, or others.
    in_memory, gaps = random.choice(((at, (0,)), (random.randrange(500), (0, 0, 7))))
    for n in range(count):
        length, bumped = random.choice((0, 1, 1, 2, 5, random.randrange(20))), n > count * 2 // 3
        found.append((in_memory if bumped else at, length, bumped))
        at, in_memory = at + length, in_memory + length + random.choice(gaps)
    return found


@pytest.mark.parametrize(("chance", "taken"), [(0.4, 0.4), (0.9, 0.2), (1.0, 1.0)])
def test_lines_of_the_partition(chance: float, taken: float) -> None:
    """Each kind of line comes back in order, tile after tile, with no more asked for than there is room for."""
    random = Random(1)
    lanes = 2
    dut = PartitionReader(lanes=lanes, line_address_width=6)
    bench = PortBench(dut, seed=1, chance=chance)
    wanted = bench.feed(dut.wanted)
    requests = bench.collect(dut.sram_request, steady=False)
    entries, lines = (bench.collect(port, chance=taken) for port in (dut.entries, dut.lines))
    content = [random.getrandbits(64 * lanes) for _ in range(64)]
    expected: dict[str, list[int]] = {"entries": [], "lines": []}
    answers: deque[tuple[int, int]] = deque()
    answered = tiles = 0
    most = 0

    def each(ctx: Any) -> None:
        nonlocal answered, tiles, most
        answers.extend((bench.cycle + random.randrange(1, 4), content[at]) for at in requests[answered:])
        answered = len(requests)
        most = max(most, answered - len(entries) - len(lines))
        come = bool(answers) and answers[0][0] <= bench.cycle
        ctx.set(dut.sram_response.valid, come)
        ctx.set(dut.sram_response.line, line_of(answers.popleft()[1] if come else random.getrandbits(99), lanes))
        rest = len(entries) == len(expected["entries"]) and len(lines) == len(expected["lines"])
        ctx.set(dut.start, rest)
        if rest:
            tiles += 1
            rows = random.randrange(1, 30)
            ctx.set(dut.rows, rows)
            ctx.set(dut.metadata_line, TOP)
            expected["entries"] += [content[TOP - n] for n in range(-(-rows // lanes))]
            addresses = [random.randrange(40) for _ in range(random.randrange(25))]
            wanted.extend(addresses)
            expected["lines"] += [content[at] for at in addresses]

    bench.run(lambda: tiles > 12, each=each)
    assert entries == expected["entries"][: len(entries)] and lines == expected["lines"][: len(lines)]
    assert len(lines) > 100 and len(entries) > 60
    assert most <= 10


@pytest.mark.parametrize("chance", [0.4, 1.0])
@pytest.mark.parametrize("lanes", [2, 4])
def test_segments_out_of_entries(lanes: int, chance: float) -> None:
    random = Random(lanes)
    dut = EntryUnpacker(lanes=lanes)
    bench = PortBench(dut, seed=lanes, chance=chance)
    feed = bench.feed(dut.entries)
    runs, segments = bench.collect(dut.runs, steady=False), bench.collect(dut.segments)
    expected: list[dict[str, Any]] = []
    expected_runs: list[dict[str, int]] = []
    tiles, seen = 0, {"shares": 0, "single": 0, "empty": 0, "bumped": 0}
    cycles: list[tuple[int, int]] = []
    begun = 0

    def each(ctx: Any) -> None:
        nonlocal tiles, begun
        rest = len(segments) == len(expected)
        ctx.set(dut.start, rest)
        if not rest:
            return
        if tiles:
            cycles.append((bench.cycle - begun, len(tile)))
        tile[:] = segments_of(random, random.randrange(1, 20))
        tiles, begun = tiles + 1, bench.cycle
        ctx.set(dut.rows, len(tile))
        words = [at | length << 32 | bumped << 63 for at, length, bumped in tile]
        words += [random.getrandbits(64) for _ in range(-len(words) % lanes)]
        feed.extend(
            sum(word << 64 * lane for lane, word in enumerate(words[n : n + lanes]))
            for n in range(0, len(words), lanes)
        )
        before: tuple[int, bool] | None = None
        for at, length, bumped in tile:
            first, last = at // lanes, (at + length - 1) // lanes
            shares = length > 0 and before == (first, bumped)
            known = {"first": at % lanes, "end": (at + length) % lanes, "empty": length == 0, "bumped": bumped}
            if length:
                before = (last, bumped)
                known |= {"line": first, "more": last - first, "single": first == last, "shares": shares}
                if bumped:
                    expected_runs.append({"begin": at, "end": at + length})
                seen["shares"] += shares
                seen["single"] += first == last
            else:
                known["single"] = 1
            seen["empty"] += not length
            seen["bumped"] += bumped
            expected.append(known)

    tile: list[tuple[int, int, bool]] = []
    bench.run(lambda: tiles > 25, each=each)
    found = segments[: len(expected)]
    assert len(found) > 100
    assert [{name: got[name] for name in want} for got, want in zip(found, expected[: len(found)], strict=True)] == (
        expected[: len(found)]
    )
    assert runs == expected_runs[: len(runs)] and len(runs) > 30
    assert min(seen.values()) > 10, seen
    if chance == 1.0:
        # One a cycle, and the line enters in the cycle after the start.
        assert all(took <= count + dut.latency + 1 for took, count in cycles)


@pytest.mark.parametrize("chance", [0.4, 1.0])
@pytest.mark.parametrize("lanes", [2, 4])
def test_pieces_of_segments(lanes: int, chance: float) -> None:
    random = Random(lanes)
    dut = PieceFinder(lanes=lanes, line_address_width=8)
    bench = PortBench(dut, seed=lanes, chance=chance)
    items, expected, wanted_lines = [], [], []
    before: tuple[int, bool] | None = None
    for at, length, bumped in segments_of(random, 150):
        lines = range(at // lanes, (at + length - 1) // lanes + 1) if length else range(1)
        shares = length > 0 and before == (lines[0], bumped)
        items.append(
            {
                "line": lines[0],
                "more": len(lines) - 1,
                "single": len(lines) == 1,
                "shares": shares,
                "first": at % lanes,
                "end": (at + length) % lanes,
                "empty": length == 0,
                "bumped": bumped,
            }
        )
        for line in lines:
            inside = [n for n in range(at, at + length) if n // lanes == line]
            fresh = length > 0 and not (shares and line == lines[0])
            piece = {"fresh": fresh, "in_memory": bumped, "count": len(inside), "last": line == lines[-1]}
            expected.append(piece | ({"first": inside[0] % lanes} if inside else {}))
            if fresh and not bumped:
                wanted_lines.append(line)
        if length:
            before = (lines[-1], bumped)
    bench.feed(dut.segments, items)
    wanted, pieces = (bench.collect(port, steady=False) for port in (dut.wanted, dut.pieces))
    cycles = bench.run(lambda: len(pieces) == len(expected))
    assert [{name: got[name] for name in want} for got, want in zip(pieces, expected, strict=True)] == expected
    assert wanted == wanted_lines
    assert 20 < len(wanted) < len(pieces)
    if chance == 1.0:
        assert cycles == len(pieces)


@pytest.mark.parametrize("chance", [0.4, 1.0])
def test_words_of_pieces(chance: float) -> None:
    random = Random(3)
    lanes = 4
    dut = PieceWords(lanes=lanes)
    bench = PortBench(dut, seed=3, chance=chance)
    pieces, expected = [], []
    sources: dict[bool, list[int]] = {False: [], True: []}
    present = 0
    for n in range(300):
        fresh, in_memory = n == 0 or random.random() < 0.6, random.random() < 0.4
        if fresh:
            present = random.getrandbits(64 * lanes)
            sources[in_memory].append(present)
        word = {"first": random.randrange(lanes), "count": random.randrange(lanes + 1), "last": random.getrandbits(1)}
        pieces.append(word | {"fresh": fresh, "in_memory": in_memory})
        expected.append(word | {"line": line_of(present, lanes)})
    bench.feed(dut.pieces, pieces)
    bench.feed(dut.lines, sources[False])
    bench.feed(dut.beats, sources[True])
    words = bench.collect(dut.words)
    counted = {"event_resident": 0, "event_bumped": 0}

    def each(ctx: Any) -> None:
        for name in counted:
            counted[name] += ctx.get(getattr(dut, name))

    cycles = bench.run(lambda: len(words) == len(expected), each=each)
    assert words == expected
    assert counted["event_bumped"] == sum(piece["count"] for piece in pieces if piece["in_memory"])
    assert counted["event_resident"] == sum(piece["count"] for piece in pieces if not piece["in_memory"])
    if chance == 1.0:
        assert cycles == len(pieces)


SIZES = {"lanes": 2, "address_width": 32, "line_address_width": 6, "burst_beats": 8}


@pytest.mark.parametrize(
    ("block", "names", "wrong", "message"),
    [
        (
            PartitionReader,
            "lanes line_address_width",
            {"lanes": 3},
            "^Lanes must be a power of two from 2 to 64, not 3$",
        ),
        (EntryUnpacker, "lanes", {"lanes": 1}, "^Lanes must be a power of two from 2 to 64, not 1$"),
        (
            PieceFinder,
            "lanes line_address_width",
            {"line_address_width": 0},
            "^Line address width must be an integer from ",
        ),
        (PieceWords, "lanes", {"lanes": None}, "^Lanes must be a power of two from 2 to 64, not None$"),
        (
            SegmentPlayer,
            " ".join(SIZES),
            {"burst_beats": 3},
            "^Burst beats must be a power of two from 1 to 256, not 3$",
        ),
    ],
)
def test_wrong_parameters(block: Any, names: str, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        block(**{name: SIZES[name] for name in names.split()} | wrong)
