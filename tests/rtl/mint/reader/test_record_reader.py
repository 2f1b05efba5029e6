"""Lines of nonzeros out of packed records: values, beats read once, plain lines between, back-pressure."""

from random import Random
from typing import Any

import pytest

from rtl.arith.arithmetic import VALUES, value_bits
from rtl.mint.reader.line_range import LineRange
from rtl.mint.reader.record_reader import RecordReader
from rtl.mint.reader.shared_beats import SharedBeats
from tests.rtl.port_bench import PortBench

BASE = 0x4000
PLAIN_BASE = 0x80000


def nonzeros(random: Random, count: int, value: str, coordinate_bits: int) -> list[tuple[int, int]]:
    """Coordinates and values as they are on chip; the first ones have every bit set."""
    width = value_bits(value)
    found = []
    for n in range(count):
        coordinate, bits = random.getrandbits(coordinate_bits), random.getrandbits(width)
        if n < 3:
            coordinate, bits = (1 << coordinate_bits) - 1, (1 << width) - 1
        found.append((coordinate, on_chip(bits, value)))
    return found


def on_chip(bits: int, value: str) -> int:
    width = value_bits(value)
    if value.startswith("int"):
        return (bits - (bits >> (width - 1) << width)) & 0xFFFFFFFF
    return bits << (32 - width)


def in_record(word: int, value: str) -> int:
    width = value_bits(value)
    return word & ((1 << width) - 1) if value.startswith("int") else word >> (32 - width)


def lines_of(items: list[tuple[int, int]], lanes: int) -> list[int]:
    found = []
    for n in range(0, len(items), lanes):
        found.append(sum((c | v << 32) << 64 * k for k, (c, v) in enumerate(items[n : n + lanes])))
    return found


@pytest.mark.parametrize("chance", [0.5, 1.0])
@pytest.mark.parametrize(
    ("value", "lanes", "coordinate_bits", "carries"),
    [
        ("fp32", 2, 32, 1),
        ("fp32", 2, 11, 1),
        ("int32_saturate", 1, 1, 5),
        ("bf16_flush", 2, 13, 3),
        ("int8", 4, 3, 8),
        ("int16", 8, 20, 1),
    ],
)
def test_lines_come_out_of_records(value: str, lanes: int, coordinate_bits: int, carries: int, chance: float) -> None:
    random = Random(f"{value}{lanes}{carries}")
    line_bytes, beat_bits = 8 * lanes, 64 * lanes
    items = nonzeros(random, 600 * lanes, value, coordinate_bits)
    width = coordinate_bits + value_bits(value)
    packed = sum((c | in_record(v, value) << coordinate_bits) << n * width for n, (c, v) in enumerate(items))
    plain = [random.getrandbits(beat_bits) for _ in range(100)]
    whole = lines_of(items, lanes)

    requests, expected, reads = [], [], []
    ends = dict.fromkeys(range(carries))
    for _ in range(60):
        carry = random.randrange(carries)
        if random.random() < 0.2:
            first, count = random.randrange(80), random.randrange(1, 20)
            requests.append({"address": PLAIN_BASE + first * line_bytes, "beats": count, "plain": 1, "carry": carry})
            expected += plain[first : first + count]
            reads += [(PLAIN_BASE // line_bytes + first + n, True) for n in range(count)]
            ends[carry] = None
            continue
        count = random.choice((1, 2, random.randrange(1, 40)))
        follows = ends[carry] is not None and ends[carry] + count < len(whole) and random.random() < 0.6
        first = ends[carry] if follows else random.randrange(len(whole) - count)
        requests.append({"address": first * line_bytes, "beats": count, "follows": int(follows), "carry": carry})
        expected += whole[first : first + count]
        begin, stop = first * width // 64, -(-(first + count) * width // 64)
        begin += follows and first * width % 64 != 0
        reads += [(BASE // line_bytes + n, False) for n in range(begin, stop)]
        ends[carry] = first + count

    dut = RecordReader(lanes=lanes, address_width=24, value=value, carries=carries, pending=8)
    bench = PortBench(dut, seed=1, chance=chance)
    bench.feed(dut.request, [{"plain": 0, "follows": 0} | request for request in requests])
    asked = bench.collect(dut.read_request)
    answers = bench.feed(dut.read_data)
    lines = bench.collect(dut.lines)
    served, counted = 0, []

    def memory(ctx: Any) -> None:
        nonlocal served
        ctx.set(dut.base, BASE)
        ctx.set(dut.coordinate_bits, coordinate_bits)
        if ctx.get(dut.beat):
            counted.append(bool(ctx.get(dut.plain)))
        while served < len(asked):
            for n in range(asked[served]["beats"]):
                beat = asked[served]["address"] // line_bytes + n
                if beat >= PLAIN_BASE // line_bytes:
                    answers.append(plain[beat - PLAIN_BASE // line_bytes])
                else:
                    answers.append(packed >> (beat - BASE // line_bytes) * beat_bits & ((1 << beat_bits) - 1))
            served += 1

    bench.run(lambda: len(lines) == len(expected), each=memory)
    assert lines == expected
    assert [one["address"] // line_bytes + n for one in asked for n in range(one["beats"])] == [n for n, _ in reads]
    assert counted == [kind for _, kind in reads]


def test_a_line_a_cycle() -> None:
    """Beats at once: one request after another gives a line each cycle but for what fills the pipeline."""
    dut = RecordReader(lanes=2, address_width=24, value="fp32")
    bench = PortBench(dut, seed=1, chance=1.0)
    bench.feed(
        dut.request,
        [{"address": 16 * 8 * n, "beats": 8, "plain": 0, "follows": int(n > 0), "carry": 0} for n in range(30)],
    )
    asked, answers, lines = bench.collect(dut.read_request), bench.feed(dut.read_data), bench.collect(dut.lines)
    served = 0

    def memory(ctx: Any) -> None:
        nonlocal served
        ctx.set(dut.coordinate_bits, 11)
        while served < len(asked):
            answers.extend([0] * asked[served]["beats"])
            served += 1

    cycles = bench.run(lambda: len(lines) == 240, each=memory)
    assert cycles < 240 + 25
    # 43 bits a nonzero: each beat is read once.
    assert sum(one["beats"] for one in asked) == -(-480 * 43 // 128)


@pytest.mark.parametrize(
    ("block", "wrong", "message"),
    [
        (RecordReader, {"lanes": 3}, "^Lanes must be a power of two from 1 to 16, not 3$"),
        (RecordReader, {"value": "int4"}, "^Value type must be one of int8, "),
        (RecordReader, {"pending": 1}, "^Pending requests must be "),
        (LineRange, {"carries": 0}, "^Carries must be "),
    ],
)
def test_wrong_parameters(block: Any, wrong: dict[str, Any], message: str) -> None:
    sizes = {"lanes": 2, "address_width": 24} | ({"value": VALUES[0]} if block is RecordReader else {})
    with pytest.raises(ValueError, match=message):
        block(**sizes | wrong)


def test_shared_beats_refuse_a_width() -> None:
    with pytest.raises(ValueError, match="^Data width must be a power of two from 8 to 1024, not 12$"):
        SharedBeats(data_width=12)
