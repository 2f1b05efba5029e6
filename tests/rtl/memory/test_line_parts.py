"""Lines of several beats: joined and cut in order, with pauses and without, and after a reset in the middle."""

from random import Random
from typing import Any

import pytest

from rtl.memory.line_parts import LineJoiner, LineSplitter, PartJoiner
from tests.rtl.mint.streams import BEHAVIOURS, PAUSES, run

BEAT = 16
SIZES = {"beat_bits": BEAT, "address_width": 24}
PARTS = pytest.mark.parametrize("parts", [2, 4, 8])


def number(_: str, payload: Any) -> Any:
    """A payload as an integer, or the fields of one that has any."""
    return payload if isinstance(payload, int) else {name: int(payload[name]) for name in payload.shape().members}


def joined(beats: list[int]) -> int:
    return sum(beat << n * BEAT for n, beat in enumerate(beats))


@PARTS
@pytest.mark.parametrize("reset_after", [None, 40])
def test_a_last_beat_ends_its_line(parts: int, reset_after: int | None) -> None:
    """A line has as many beats as it has, or fewer: those that are not there mean nothing."""
    for behaviour in BEHAVIOURS:
        random = Random(f"{parts} {behaviour}")
        lines = [[random.getrandbits(BEAT) for _ in range(random.randint(1, parts))] for _ in range(60)]
        lines[:3] = [[1], [2] * parts, [3]]
        beats = [
            {"beat": beat, "last": int(n == len(line) - 1 and (len(line) < parts or random.random() < 0.5))}
            for line in lines
            for n, beat in enumerate(line)
        ]
        result = run(
            PartJoiner(beat_bits=BEAT, parts=parts),
            {"beats": beats},
            {"lines": len(lines)},
            pause={"beats": PAUSES[behaviour[0]], "lines": PAUSES[behaviour[2]]},
            view=number,
            reset_after=reset_after,
        )
        for line, out in zip(lines, result.items["lines"], strict=True):
            assert out & ((1 << len(line) * BEAT) - 1) == joined(line)
        if behaviour[0] == behaviour[2] == "never":
            assert result.cycles["beats"] == list(range(len(beats))), "a beat a cycle"
            ends = [n for n, (line, last) in enumerate(_places(lines)) if last]
            assert [out - taken for taken, out in zip(ends, result.cycles["lines"], strict=True)] == [1] * len(lines)


def _places(lines: list[list[int]]) -> list[tuple[int, bool]]:
    return [(n, k == len(line) - 1) for n, line in enumerate(lines) for k in range(len(line))]


@PARTS
@pytest.mark.parametrize("reset_after", [None, 40])
def test_lines_are_read_as_beats(parts: int, reset_after: int | None) -> None:
    """Whatever address in a line is asked for, all beats of it are."""
    line_bytes = parts * BEAT // 8
    for behaviour in BEHAVIOURS:
        random = Random(f"{parts} {behaviour}")
        lines = [[random.getrandbits(BEAT) for _ in range(parts)] for _ in range(50)]
        requests = [
            {"address": line_bytes * random.randrange(1000) + random.randrange(line_bytes), "beats": count}
            for count in (1, 2, 5, 0, 42)
        ]
        result = run(
            LineJoiner(parts=parts, **SIZES),
            {"request": requests, "read_data": [beat for line in lines for beat in line]},
            {"read_request": len(requests), "lines": len(lines)},
            pause={"read_data": PAUSES[behaviour[0]], "lines": PAUSES[behaviour[2]]},
            view=number,
            reset_after=reset_after,
        )
        assert result.items["lines"] == list(map(joined, lines))
        assert result.items["read_request"] == [
            {"address": one["address"] // line_bytes * line_bytes, "beats": parts * one["beats"]} for one in requests
        ]


@PARTS
@pytest.mark.parametrize("reset_after", [None, 40])
def test_lines_are_written_as_beats(parts: int, reset_after: int | None) -> None:
    """A beat carries the strobes of its bytes; a line is taken with its last beat."""
    line_bytes, beat_bytes = parts * BEAT // 8, BEAT // 8
    for behaviour in BEHAVIOURS:
        random = Random(f"{parts} {behaviour}")
        lines = [
            {"data": random.getrandbits(8 * line_bytes), "strobe": random.getrandbits(line_bytes)} for _ in range(30)
        ]
        requests = [{"address": line_bytes * random.randrange(1000), "beats": count} for count in (1, 2, 0, 27)]
        beats = [
            {
                "data": line["data"] >> n * BEAT & ((1 << BEAT) - 1),
                "strobe": line["strobe"] >> n * beat_bytes & ((1 << beat_bytes) - 1),
            }
            for line in lines
            for n in range(parts)
        ]
        result = run(
            LineSplitter(parts=parts, **SIZES),
            {"request": requests, "lines": lines},
            {"write_request": len(requests), "write_data": len(beats)},
            pause={"lines": PAUSES[behaviour[0]], "write_data": PAUSES[behaviour[2]]},
            view=number,
            reset_after=reset_after,
        )
        assert result.items["write_data"] == beats
        assert result.items["write_request"] == [one | {"beats": parts * one["beats"]} for one in requests]
        if behaviour[0] == behaviour[2] == "never":
            sent = result.cycles["write_data"]
            assert sent == list(range(sent[0], sent[0] + len(beats))), "a beat a cycle"
            assert result.cycles["lines"] == sent[parts - 1 :: parts]


@pytest.mark.parametrize("block", [PartJoiner, LineJoiner, LineSplitter])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"parts": 1}, "^Beats of a line must be a power of two from 2 to 8, not 1$"),
        ({"parts": 3}, "^Beats of a line must be a power of two from 2 to 8, not 3$"),
        ({"beat_bits": 12}, "^Beat bits must be a power of two from 8 to 1024, not 12$"),
    ],
)
def test_wrong_parameters(block: Any, wrong: dict[str, int], message: str) -> None:
    sizes = SIZES if block is not PartJoiner else {"beat_bits": BEAT}
    with pytest.raises(ValueError, match=message):
        block(**{"parts": 2} | sizes | wrong)
