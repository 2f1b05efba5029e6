"""Lines of nonzeros out of packed records: values, beats read once, plain lines between, back-pressure, a reset."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from rtl.arith.arithmetic import VALUES, value_bits
from rtl.mint.reader.record_reader import RecordReader
from tests.rtl.mint.records import lines_of, nonzeros, record
from tests.rtl.port_bench import PortBench
from tests.tools import long_run

BASE = 0x4000
PLAIN_BASE = 0x80000


@dataclass
class Case:
    """Requests, and what is to come of them: lines, and the beats that are read with whether they are plain."""

    lanes: int
    beat_bits: int
    coordinate_bits: int
    packed: int
    plain: list[int]
    requests: list[dict[str, int]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    beats: list[tuple[int, bool]] = field(default_factory=list)

    def beat(self, number: int) -> int:
        """The beat of memory at byte address ``number`` x bytes of a beat."""
        first, bits = 8 * PLAIN_BASE // self.beat_bits, self.beat_bits
        parts = 64 * self.lanes // bits
        if number >= first:
            line, part = divmod(number - first, parts)
            return self.plain[line] >> part * bits & ((1 << bits) - 1)
        return self.packed >> (number - 8 * BASE // bits) * bits & ((1 << bits) - 1)


def drawn(random: Random, value: str, lanes: int, beat_bits: int, coordinate_bits: int, carries: int) -> Case:
    """Requests of random carries, some of which follow the one before, plain ones between them."""
    line_bytes, beat_bytes = 8 * lanes, beat_bits // 8
    parts = line_bytes // beat_bytes
    items = nonzeros(random, 300 * lanes, value, coordinate_bits)
    width = coordinate_bits + value_bits(value)
    packed = sum(record(c, v, value) << n * width for n, (c, v) in enumerate(items))
    case = Case(lanes, beat_bits, coordinate_bits, packed, [random.getrandbits(64 * lanes) for _ in range(100)])
    whole = lines_of(items, lanes)
    ends: dict[int, int | None] = dict.fromkeys(range(carries))

    def asks(first: int, count: int, *, carry: int, plain: bool = False, follows: bool = False) -> None:
        address = (PLAIN_BASE if plain else 0) + first * line_bytes
        request = {"address": address, "beats": count, "plain": int(plain), "follows": int(follows)}
        case.requests.append(request | ({"carry": carry} if carries > 1 else {}))

    # Wide lines take longest to simulate.
    for _ in range(50 if lanes < 8 else 20):
        carry = random.randrange(carries)
        if random.random() < 0.2:
            first, count = random.randrange(80), random.randrange(1, 20)
            asks(first, count, carry=carry, plain=True)
            case.lines += case.plain[first : first + count]
            case.beats += [(PLAIN_BASE // beat_bytes + first * parts + n, True) for n in range(count * parts)]
            ends[carry] = None
            continue
        count = random.choice((1, 2, random.randrange(1, 40)))
        end = ends[carry]
        follows = end is not None and end + count < len(whole) and random.random() < 0.6
        first = end if end is not None and follows else random.randrange(len(whole) - count)
        asks(first, count, carry=carry, follows=follows)
        case.lines += whole[first : first + count]
        line = width * lanes  # bits
        begin, stop = first * line // beat_bits, -(-(first + count) * line // beat_bits)
        begin += follows and first * line % beat_bits != 0
        case.beats += [(BASE // beat_bytes + n, False) for n in range(begin, stop)]
        ends[carry] = first + count
    return case


@pytest.mark.parametrize(
    ("value", "lanes", "line_beats", "carries", "coordinates"),
    [
        ("fp32", 2, 1, 1, (32, 11)),
        ("fp32", 4, 4, 1, (32, 11)),
        ("int32_saturate", 1, 1, 5, (1, 32)),
        ("bf16_flush", 2, 1, 3, (13, 16)),
        ("bf16_flush", 4, 2, 3, (13, 16)),
        ("int8", 4, 1, 8, (3, 24)),
        pytest.param("int8", 8, 8, 8, (3, 24), marks=long_run()),  # each build of 8 lanes takes long
        ("int16", 8, 1, 1, (20, 1)),
    ],
)
def test_lines_come_out_of_records(
    value: str, lanes: int, line_beats: int, carries: int, coordinates: tuple[int, ...]
) -> None:
    """Neighbours that pause and ones that do not; a reset with requests under way leaves nothing of them."""
    random = Random(f"{value}{lanes}{carries}")
    beat_bits = 64 * lanes // line_beats
    dut = RecordReader(lanes=lanes, beat_bits=beat_bits, address_width=24, value=value, carries=carries, pending=8)
    bench = PortBench(dut, seed=1)
    requests, asked = bench.feed(dut.request), bench.collect(dut.read_request)
    answers, lines = bench.feed(dut.read_data), bench.collect(dut.lines)

    async def script(ctx: Any) -> None:
        ctx.set(dut.base, BASE)
        for broken in (True, False):
            for coordinate_bits in coordinates:
                for chance in (0.5, 1.0):
                    await bench.clear(ctx)
                    await answered(
                        ctx, drawn(random, value, lanes, beat_bits, coordinate_bits, carries), chance, broken
                    )

    async def answered(ctx: Any, case: Case, chance: float, broken: bool) -> None:
        served, counted = 0, []
        bench.chance = chance
        requests.extend(case.requests)
        ctx.set(dut.coordinate_bits, case.coordinate_bits)

        def memory(ctx: Any) -> None:
            nonlocal served
            if ctx.get(dut.beat):
                counted.append(bool(ctx.get(dut.plain)))
            for one in asked[served:]:
                first = 8 * one["address"] // beat_bits
                answers.extend(case.beat(first + n) for n in range(one["beats"]))
            served = len(asked)

        begun = bench.cycle
        wanted = 40 if broken else len(case.lines)
        await bench.until(ctx, lambda: len(lines) == wanted, each=memory)
        assert lines == case.lines[:wanted]
        if not broken:
            read = [8 * one["address"] // beat_bits + n for one in asked for n in range(one["beats"])]
            assert read == [number for number, _ in case.beats]
            assert counted == [kind for _, kind in case.beats]
        # A request, a line and a beat a cycle.
        assert chance < 1.0 or broken or bench.cycle - begun <= max(len(lines), len(counted)) + len(case.requests) + 25

    bench.simulate(script)


def test_a_line_a_cycle() -> None:
    """Beats at once: one request after another gives a line each cycle but for what fills the pipeline."""
    dut = RecordReader(lanes=2, address_width=24, value="fp32")
    bench = PortBench(dut, seed=1, chance=1.0)
    bench.feed(dut.request, [{"address": 128 * n, "beats": 8, "plain": 0, "follows": int(n > 0)} for n in range(30)])
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
    ("wrong", "message"),
    [
        ({"lanes": 3}, "^Lanes must be a power of two from 1 to 16, not 3$"),
        ({"value": "int4"}, "^Value type must be one of int8, "),
        ({"pending": 1}, "^Pending requests must be "),
        ({"carries": 0}, "^Carries must be "),
        ({"beat_bits": 32}, "^Beat bits must be a power of two from 64 to 128, not 32$"),
        ({"address_width": 7}, "^Address width must be an integer from 8 to 64, not 7$"),
    ],
)
def test_wrong_parameters(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RecordReader(**{"lanes": 2, "address_width": 24, "value": VALUES[0]} | wrong)
