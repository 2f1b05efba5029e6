"""The parts of the segment scanner alone: first chunks, chunks after them, lines in order, segments cut out of lines."""

from collections import deque
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from rtl.accessor.chunk_peeker import WAITING_LINES, ChunkPeeker
from rtl.accessor.first_chunks import FirstChunks
from rtl.accessor.next_chunks import NextChunks
from rtl.accessor.row_lines import RowLines
from rtl.accessor.segment_cutter import SegmentCutter
from rtl.accessor.segment_scanner import SegmentScanner
from rtl.types import line as line_shape
from tests.rtl.port_bench import PortBench

ELEMENTS = 0x4000


def chunk_of(line: int, last: int, head: int, tail: int, block: int) -> dict[str, Any]:
    """The lines of a row's rest, up to line ``last``, that lie in the aligned block of ``block`` lines that it begins in."""
    rest = last - line + 1
    lines = min(rest, (line // block + 1) * block - line)
    part = {"line": line, "last": last, "head": head, "tail": tail}
    return {"part": part, "lines": lines, "single": lines == 1, "over": lines == rest}


@pytest.mark.parametrize("chance", [0.4, 1.0])
@pytest.mark.parametrize("lanes", [2, 8])
def test_first_chunks(lanes: int, chance: float) -> None:
    random = Random(lanes)
    dut = FirstChunks(lanes=lanes, address_width=32)
    bench = PortBench(dut, seed=lanes, chance=chance)
    begins = [random.randrange(1000) for _ in range(300)]
    pairs = [{"begin": at, "end": at + random.choice((0, 1, lanes, random.randrange(6 * lanes)))} for at in begins]
    left = bench.feed(dut.pairs, pairs)
    # What there is of a row leaves at once, so offers wait for one another.
    requests, chunks, rows = (bench.collect(port, steady=False) for port in (dut.read_request, dut.chunks, dut.rows))
    seen = {"together": 0, "empty": 0}

    def each(ctx: Any) -> None:
        ctx.set(dut.elements, ELEMENTS)
        assert bench.moved in ([], [2], [0, 1, 2])
        seen["together"] += bench.moved == [0, 1, 2]
        seen["empty"] += bench.moved == [2]
        # The fiber reader ends a tile by it: while a row is inside it is low, also where nothing else is under way.
        assert ctx.get(dut.idle) == (len(rows) == len(pairs) - len(left))

    cycles = bench.run(lambda: len(rows) == len(pairs), each=each)
    full = [pair for pair in pairs if pair["begin"] != pair["end"]]
    wanted = [
        chunk_of(
            pair["begin"] // lanes,
            (pair["end"] - 1) // lanes,
            pair["begin"] % lanes,
            pair["end"] % lanes,
            2,
        )
        for pair in full
    ]
    assert chunks == wanted
    assert requests == [
        {"address": ELEMENTS + 8 * lanes * chunk["part"]["line"], "beats": chunk["lines"], "plain": 0, "follows": 0}
        for chunk in wanted
    ]
    assert rows == [
        {"line": pair["begin"] // lanes, "end": pair["end"], "empty": pair["begin"] == pair["end"]} for pair in pairs
    ]
    assert min(seen.values()) > 20 or chance == 1.0
    if chance == 1.0:
        assert cycles == len(pairs) + dut.latency


@pytest.mark.parametrize("chance", [0.4, 0.9])
def test_chunks_after_the_first_one(chance: float) -> None:
    """A row's later chunks follow one another, and no row's begins before it is known whether the one before goes on."""
    random = Random(5)
    lanes = 2
    dut = NextChunks(lanes=lanes, address_width=32)
    bench = PortBench(dut, seed=5, chance=chance)
    lines = [random.randrange(1, 400) for _ in range(120)]
    second = [
        {"line": 2 * at, "last": 2 * at + random.choice((0, 1, 15, random.randrange(39))), "head": 0, "tail": 1}
        for at in lines
    ]
    # The row's number is its place; `line` is at the begin of a block, as behind every second chunk.
    third = [
        {"line": at, "last": at + random.choice((0, 14, 15, 16, random.randrange(79))), "head": 0, "tail": 0}
        for at in range(1024, 81 * 1024, 1024)
    ]
    bench.feed(dut.more[0], second)
    bench.feed(dut.more[1], third)
    further = bench.feed(dut.more[2])
    found = [bench.collect(port, steady=False) for port in (*dut.read_request, *dut.chunks)]
    requests, chunks = found[:2], found[2:]
    looked = 0  # later chunks that have been looked at
    under_way: deque[dict[str, Any]] = deque()
    goes_on: dict[int, bool] = {}
    seen = {"ended early": 0, "goes on": 0, "waits": 0}

    def each(ctx: Any) -> None:
        nonlocal looked
        ctx.set(dut.elements, ELEMENTS)
        under_way.extend(chunks[1][looked + len(under_way) :])
        if under_way and random.random() < 0.2:
            chunk, looked = under_way.popleft(), looked + 1
            part = chunk["part"]
            if not chunk["over"]:
                goes_on[looked - 1] = random.random() < 0.6
                seen["goes on" if goes_on[looked - 1] else "ended early"] += 1
                if goes_on[looked - 1]:
                    further.append(part | {"line": part["line"] + chunk["lines"]})
        idle = not under_way and not further
        ctx.set(dut.later_idle, idle)
        seen["waits"] += not idle and ctx.get(dut.more[1].valid) and not ctx.get(dut.more[1].ready)

    def begun() -> set[int]:
        return {chunk["part"]["line"] // 1024 for chunk in chunks[1]}

    bench.run(
        lambda: len(chunks[0]) == len(second) and len(begun()) == len(third) and not further and not under_way,
        each=each,
        limit=40_000,
    )
    assert chunks[0] == [chunk_of(**part, block=16) for part in second]
    for asked, those in zip(requests, chunks, strict=True):
        assert asked == [
            {"address": ELEMENTS + 8 * lanes * one["part"]["line"], "beats": one["lines"], "plain": 0, "follows": 0}
            for one in those
        ]
    assert [chunk == chunk_of(**chunk["part"], block=16) for chunk in chunks[1]] == [True] * len(chunks[1])
    for n, (before, after) in enumerate(pairwise(chunks[1])):
        row, next_row = (chunk["part"]["line"] // 1024 for chunk in (before, after))
        assert next_row == row + (not goes_on.get(n, False))
    assert min(seen.values()) > 10, seen


@pytest.mark.parametrize("chance", [0.4, 1.0])
@pytest.mark.parametrize("lanes,capacity", [(2, WAITING_LINES), (2, 64), (8, 64)])
def test_chunks_are_looked_at_while_lines_wait(lanes: int, capacity: int, chance: float) -> None:
    """Lines of rows behind one that waits for its second chunk are looked at, and what is left of these rows is told."""
    random = Random(lanes)
    high, rows = 100, 200
    dut = ChunkPeeker(lanes=lanes, depth=64, capacity=capacity)
    bench = PortBench(dut, seed=lanes, chance=chance)
    chunks, beats, lines, more = [], [], [], []
    for row in range(rows):
        two, over, tail = random.random() < 0.7, random.random() < 0.5, random.randrange(lanes)
        last = 1000 * row + two + (0 if over else random.randrange(1, 40))
        head = random.randrange(lanes)
        tail *= two or not over or tail > head  # a row has something
        part = {"line": 1000 * row, "last": last, "head": head, "tail": tail}
        chunks.append({"part": part, "lines": 1 + two, "single": not two, "over": over})
        ended = False
        for n in range(1 + two):
            closes = n == two
            to = tail if closes and over and tail else lanes
            inside = [(n > 0 or lane >= head) and lane < to for lane in range(lanes)]
            first = lanes if random.random() < 0.7 else random.randrange(lanes)  # at or above `high`
            beat = [{"coordinate": high + lane if lane >= first else lane, "value": row} for lane in range(lanes)]
            beats.append(line_shape(lanes).const(beat).as_bits())
            above = [lane >= first and inside[lane] for lane in range(lanes)]
            if not ended:
                found = any(above)
                masks = [sum(bit << lane for lane, bit in enumerate(mask)) for mask in (inside, above)]
                lines.append((*masks, found or (closes and over), closes and not found and not over))
                ended = found
        if not ended and not over:
            more.append({"line": part["line"] + 1 + two, "last": last, "head": 0, "tail": tail})
    bench.feed(dut.rows, chunks)
    left = bench.feed(dut.beats, beats)
    told = bench.collect(dut.more, chance=1.0)
    came = bench.collect(dut.lines)

    async def script(ctx: Any) -> None:
        ctx.set(dut.high, high)
        # Nobody takes a line, and so many are looked at all the same.
        since = int(4 * capacity / chance)
        await bench.until(ctx, lambda: bench.cycle == since, each=lambda ctx: ctx.set(dut.lines.ready, 0))
        assert not came and capacity <= len(beats) - len(left) < 1.5 * capacity
        assert told == more[: len(told)] and len(told) >= capacity // 8
        await bench.until(ctx, lambda: not left and len(came) == len(lines))
        await bench.until(ctx, lambda: bool(ctx.get(dut.idle)))

    bench.simulate(script)
    assert told == more
    assert [(one["inside"], one["above"], one["ends"], one["over"]) for one in came] == lines


@pytest.mark.parametrize("chance", [0.5, 1.0])
@pytest.mark.parametrize("lanes", [2, 4])
def test_lines_in_the_order_of_rows(lanes: int, chance: float) -> None:
    random = Random(lanes)
    dut = RowLines(lanes=lanes)
    bench = PortBench(dut, seed=lanes, chance=chance)
    kinds: list[list[dict[str, Any]]] = [[], [], []]
    rows, wanted = [], []
    low = (1 << 31) + 3
    for _ in range(150):
        counts = random.choice(((0,), (1,), (2,), (1, 3), (2, 4), (2, 2, 3), (1, 2, 1, 2)))
        row = {"line": random.randrange(100), "end": random.randrange(1000), "empty": counts == (0,)}
        rows.append(row)
        at, total = row["line"], sum(counts)
        for chunk, count in enumerate(counts):
            for n in range(count):
                ends = at - row["line"] == total - 1
                inside = random.randrange(1 << lanes)
                above = inside & random.randrange(1 << lanes)
                columns = [low + random.choice((-1, 0, 1, -low, 100)) for _ in range(lanes)]
                line = {
                    "line": [{"coordinate": column, "value": random.getrandbits(32)} for column in columns],
                    "inside": inside,
                    "above": above,
                    "ends": ends,
                }
                kinds[min(chunk, 2)].append(line | {"over": n == count - 1 and not ends})
                keep = sum(1 << lane for lane in range(lanes) if columns[lane] >= low) & inside & ~above
                marks = {"keep": keep, "kept": keep != 0, "passes": above != 0}
                wanted.append(line | marks | {"at": at, "end": row["end"]})
                at += 1
        if row["empty"]:
            marks = dict.fromkeys(("inside", "keep", "kept", "above", "passes"), 0)
            wanted.append(marks | {"at": at, "end": row["end"], "ends": 1})
    bench.feed(dut.rows, rows)
    for port, lines in zip(dut.lines, kinds, strict=True):
        bench.feed(port, lines)
    steps = bench.collect(dut.steps)
    cycles = bench.run(lambda: len(steps) == len(wanted), each=lambda ctx: ctx.set(dut.low, low))
    assert [{name: step[name] for name in want} for step, want in zip(steps, wanted, strict=True)] == wanted
    if chance == 1.0:
        assert cycles == len(wanted) + dut.latency


@pytest.mark.parametrize("chance", [0.5, 1.0])
@pytest.mark.parametrize("lanes", [2, 4])
def test_segments_out_of_lines(lanes: int, chance: float) -> None:
    random = Random(lanes)
    dut = SegmentCutter(lanes=lanes)
    bench = PortBench(dut, seed=lanes, chance=chance)
    low, high, at = 20, 40, 3
    steps, words, positions = [], [], []
    seen = {"empty": 0, "behind": 0, "in the next line": 0}
    for _ in range(200):
        columns = sorted(random.randrange(60) for _ in range(random.choice((0, 1, 2, 5, random.randrange(30)))))
        end = at + len(columns)
        inside = [at + n for n, column in enumerate(columns) if low <= column < high]
        begin = inside[0] if inside else None
        after = next((at + n for n, column in enumerate(columns) if column >= high), end)
        last = after if after < end else end - 1
        lines = range(at // lanes, max(last, at) // lanes + 1)
        for line in lines:
            own = {lane: line * lanes + lane - at for lane in range(lanes) if at <= line * lanes + lane < end}
            values = [{"coordinate": columns[own[lane]] if lane in own else 0, "value": lane} for lane in range(lanes)]
            keep = [lane for lane, n in own.items() if low <= columns[n] < high]
            above = [lane for lane, n in own.items() if columns[n] >= high]
            marks = {
                name: sum(1 << lane for lane in those)
                for name, those in (("keep", keep), ("above", above), ("inside", own))
            }
            ends = line == lines[-1]
            marks |= {"kept": bool(keep), "passes": bool(above)}
            steps.append({"line": values, **marks, "at": line, "end": end, "ends": ends})
            if keep or ends:
                word = {"line": values, "count": len(keep), "last": ends, "first": keep[0] if keep else 0}
                words.append({"word": word, "begin": after if begin is None else begin})
            seen["in the next line"] += bool(ends and inside and not keep)
        positions.append(after)
        seen["empty"] += begin is None
        seen["behind"] += after < end
        at = end
    bench.feed(dut.steps, steps)
    # The last word of a row waits for its position to be taken.
    segments, nexts = bench.collect(dut.segments, steady=False), bench.collect(dut.positions)
    cycles = bench.run(lambda: len(segments) == len(words) and len(nexts) == len(positions))
    assert [{name: segment[name] for name in ("word", "begin")} for segment in segments] == words
    assert nexts == positions
    assert min(seen.values()) > 5, seen
    if chance == 1.0:
        assert cycles == len(steps)


@pytest.mark.parametrize(
    ("block", "wrong", "message"),
    [
        (FirstChunks, {"lanes": 3, "address_width": 32}, "^Lanes must be a power of two from 2 to 64, not 3$"),
        (NextChunks, {"lanes": 2, "address_width": 7}, "^Address width must be an integer from 8 to 64, not 7$"),
        (RowLines, {"lanes": 1}, "^Lanes must be a power of two from 2 to 64, not 1$"),
        (SegmentCutter, {"lanes": "2"}, "^Lanes must be a power of two from 2 to 64, not '2'$"),
        (
            SegmentScanner,
            {"lanes": 2, "address_width": 32, "rows": 1},
            "^Rows under way must be an integer from 2 to ",
        ),
    ],
)
def test_wrong_parameters(block: Any, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        block(**wrong)
