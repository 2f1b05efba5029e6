"""Rows read whole: their sizes, what becomes of them, the beats that are asked for, the words that come out."""

from collections import deque
from random import Random
from typing import Any

import pytest

from rtl.accessor.fiber_reader import FiberReader
from rtl.accessor.whole_rows import WholeRows
from tests.rtl.port_bench import PortBench

ELEMENTS = 0x8000


@pytest.mark.parametrize("chance", [0.4, 1.0])
@pytest.mark.parametrize("lanes", [2, 4])
def test_every_row_that_is_not_bumped(lanes: int, chance: float) -> None:
    random = Random(lanes)
    dut = WholeRows(lanes=lanes, address_width=32, burst_beats=4)
    bench = PortBench(dut, seed=lanes, chance=chance)
    pairs, answers, places = bench.feed(dut.pairs), bench.feed(dut.read_data), bench.feed(dut.places)
    requests = bench.collect(dut.read_request, steady=False)
    # Offered while there is a register for the row.
    sizes = bench.collect(dut.sizes, steady=False)
    # The lanes of a line that a word does not name may change.
    segments = bench.collect(dut.segments, steady=False)
    line_bits = [random.getrandbits(64 * lanes) for _ in range(2000)]
    expected: list[dict[str, Any]] = []
    wanted_lines: list[int] = []
    expected_sizes: list[int] = []
    asked: list[int] = []
    coming: deque[tuple[int, int]] = deque()
    fates: deque[dict[str, int]] = deque()
    known = answered = tiles = last = 0

    def tile(ctx: Any) -> None:
        nonlocal last
        at, count, bumped = random.randrange(40), random.randrange(1, 40), random.randrange(60)
        ctx.set(dut.rows, count)
        last = -1
        for n in range(count):
            at += random.choice((0, 0, 0, 1, 9))
            row = {"begin": at, "end": at + random.choice((0, 1, 2, 3, random.randrange(20)))}
            beyond = random.getrandbits(1)
            pairs.append(row)
            fates.append({"bumped": n >= bumped, "beyond": beyond})
            expected_sizes.append(row["end"] - row["begin"])
            whole = {"begin": at, "length": row["end"] - at, "bumped": n >= bumped, "beyond": beyond}
            lines = sorted({one // lanes for one in range(at, row["end"])}) if n < bumped else []
            wanted_lines.extend(line for line in lines if line > last)
            last = lines[-1] if lines else last
            for line in lines:
                inside = [one for one in range(at, row["end"]) if one // lanes == line]
                word = {"first": inside[0] % lanes, "count": len(inside), "last": line == lines[-1], "line": line}
                expected.append(whole | {"word": word})
            if not lines:
                expected.append(whole | {"word": {"count": 0, "last": 1}})
            at = row["end"]

    def each(ctx: Any) -> None:
        nonlocal known, answered, tiles
        ctx.set(dut.elements, ELEMENTS)
        for request in requests[answered:]:
            first = (request["address"] - ELEMENTS) // (8 * lanes)
            asked.extend(range(first, first + request["beats"]))
            coming.extend((bench.cycle + random.randrange(20), first + n) for n in range(request["beats"]))
        answered = len(requests)
        while coming and coming[0][0] <= bench.cycle:
            answers.append(line_bits[coming.popleft()[1]])
        for _ in sizes[known:]:
            places.append(fates.popleft())
        known = len(sizes)
        begins = len(segments) == len(expected) and ctx.get(dut.idle)
        ctx.set(dut.start, begins)
        ctx.set(dut.whole, 1)
        if begins:
            tiles += 1
            tile(ctx)

    bench.run(lambda: tiles > 12, each=each)
    assert [size["nonzeros"] for size in sizes] == expected_sizes[: len(sizes)] and len(sizes) > 100
    assert asked == wanted_lines[: len(asked)]
    for got, want in zip(segments, expected, strict=False):
        assert {name: got[name] for name in ("begin", "length", "bumped", "beyond")} == {
            name: want[name] for name in ("begin", "length", "bumped", "beyond")
        }
        word = dict(want["word"])
        if "line" in word:
            bits = sum((one["coordinate"] | one["value"] << 32) << 64 * n for n, one in enumerate(got["word"]["line"]))
            assert bits == line_bits[word.pop("line")]
        assert {name: got["word"][name] for name in word} == word
    assert len(segments) > 200


@pytest.mark.parametrize("block", [WholeRows, FiberReader])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"lanes": 3}, "^Lanes must be a power of two from 2 to 64, not 3$"),
        ({"address_width": 65}, "^Address width must be an integer from 8 to 64, not 65$"),
        ({"burst_beats": 0}, "^Burst beats must be a power of two from 1 to 256, not 0$"),
    ],
)
def test_wrong_parameters(block: Any, wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        block(**{"lanes": 2, "address_width": 32, "burst_beats": 8} | wrong)
