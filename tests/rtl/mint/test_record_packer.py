"""Record packer against a bit string: beats of records without gaps, flushes in the middle of beats, restarts, plain runs."""

from random import Random
from typing import Any

import pytest

from rtl.arith.arithmetic import value_bits
from rtl.mint.record_packer import RecordPacker
from tests.rtl.mint.records import nonzeros, record
from tests.rtl.port_bench import PortBench


class Bench(PortBench):
    """Feeds words, pulses flushes and restarts, and keeps what memory would hold."""

    def __init__(self, dut: RecordPacker, seed: int) -> None:
        super().__init__(dut, seed=seed)
        self.words, self.lines = self.feed(dut.words), self.collect(dut.lines)

    async def write(self, ctx: Any, words: list[dict[str, Any]]) -> None:
        """All words go in."""
        self.words.extend(words)
        await self.until(ctx, lambda: not self.words)

    async def flush(self, ctx: Any) -> None:
        """Asks for all that was taken; ``flushed`` comes once, with the last line."""
        dut = self.dut
        seen: list[tuple[int, int]] = []

        def each(ctx: Any) -> None:
            ctx.set(dut.flush, not seen)
            seen.append((ctx.get(dut.flushed), ctx.get(dut.idle)))

        await self.until(ctx, lambda: seen[-1][0] == 1, each=each)
        ended = len(self.lines)
        await self.until(ctx, lambda: len(seen) > 40, each=each)
        assert sum(flushed for flushed, _ in seen) == 1 and len(self.lines) == ended
        assert [idle for _, idle in seen[1:]] == [int(any(f for f, _ in seen[:n])) for n in range(1, len(seen))]

    async def restart(self, ctx: Any) -> None:
        ctx.set(self.dut.restart, 1)
        await ctx.tick()
        ctx.set(self.dut.restart, 0)
        assert ctx.get(self.dut.position) == 0

    def memory(self) -> int:
        """What the lines so far have written, each only its words; later ones replace earlier ones."""
        found = 0
        for line in self.lines:
            for n in range(2 * self.dut.lanes):
                if line["words"] >> n & 1:
                    place = 64 * self.dut.lanes * line["index"] + 32 * n
                    found &= ~(0xFFFFFFFF << place)
                    found |= (line["data"] >> 32 * n & 0xFFFFFFFF) << place
        return found


def drawn(random: Random, lanes: int, items: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """Fiber words of one to ``lanes`` nonzeros; lanes behind these hold others."""
    words, at = [], 0
    while at < len(items):
        some = items[at : at + random.randrange(1, lanes + 1)]
        at += len(some)
        noise = [(random.getrandbits(32), random.getrandbits(32)) for _ in range(lanes - len(some))]
        line = [{"coordinate": c, "value": v} for c, v in (*some, *noise)]
        words.append({"line": line, "count": len(some), "last": int(random.random() < 0.3)})
    return words


@pytest.mark.parametrize(
    ("value", "lanes", "coordinates"),
    [
        ("fp32", 2, (32, 11)),
        ("int32_saturate", 1, (1, 32)),
        ("bf16_flush", 4, (13, 16)),
        ("int8", 4, (3, 24)),
        ("int16", 2, (20, 1)),
    ],
)
def test_records_lie_without_gaps(value: str, lanes: int, coordinates: tuple[int, ...]) -> None:
    """After each flush memory holds all records so far, whatever the pauses; a reset and a restart begin anew."""
    random = Random(f"{value}{lanes}")
    dut = RecordPacker(lanes=lanes, value=value)
    bench = Bench(dut, seed=2)

    async def script(ctx: Any) -> None:
        for chance in (0.4, 1.0):
            for coordinate_bits, plain in [(bits, 0) for bits in coordinates] + [(5, 1)]:
                await bench.clear(ctx)
                bench.chance = chance
                ctx.set(dut.coordinate_bits, coordinate_bits)
                ctx.set(dut.plain, plain)
                # Broken off by a reset.
                await bench.write(
                    ctx, drawn(random, lanes, nonzeros(random, 50, value, 32 if plain else coordinate_bits))
                )
                await bench.clear(ctx)
                for _ in range(2):
                    await region(ctx, coordinate_bits, plain)
                    await bench.restart(ctx)

    async def region(ctx: Any, coordinate_bits: int, plain: int) -> None:
        bench.lines.clear()
        width = 64 if plain else coordinate_bits + value_bits(value)
        whole, count = 0, 0
        for length in (0, 1, 2, 37, 0, 3, 1, 64):
            items = nonzeros(random, length, value, 32 if plain else coordinate_bits)
            for c, v in items:
                whole |= (c | v << 32 if plain else record(c, v, value)) << count * width
                count += 1
            await bench.write(ctx, drawn(random, lanes, items))
            assert ctx.get(dut.position) == count
            await bench.flush(ctx)
            assert bench.memory() == whole
        # In order, each once but for those that a flush cut.
        index = [line["index"] for line in bench.lines]
        assert index == sorted(index) and set(index) == set(range(-(-count * width // (64 * lanes))))
        # Nothing is written behind the last word.
        assert max(64 * lanes * line["index"] + 32 * line["words"].bit_length() for line in bench.lines) == 32 * -(
            -count * width // 32
        )

    bench.simulate(script)


def test_a_word_a_cycle() -> None:
    """Whole words of short records; where records are as long as on chip, a beat a cycle."""
    dut = RecordPacker(lanes=2, value="int8")
    bench = Bench(dut, seed=1)
    bench.chance = 1.0
    taken: dict[int, int] = {}

    async def script(ctx: Any) -> None:
        for plain in (0, 1):
            await bench.clear(ctx)
            ctx.set(dut.coordinate_bits, 10)
            ctx.set(dut.plain, plain)
            begun = bench.cycle
            word = {"line": [{"coordinate": 1, "value": 2}] * 2, "count": 2, "last": 1}
            await bench.write(ctx, [word] * 100)
            taken[plain] = bench.cycle - begun

    bench.simulate(script)
    assert all(100 <= cycles <= 105 for cycles in taken.values()), taken


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"lanes": 3}, "^Lanes must be a power of two from 1 to 16, not 3$"),
        ({"lanes": 32}, "^Lanes must be a power of two from 1 to 16, not 32$"),
        ({"value": "int4"}, "^Value type must be one of int8, "),
    ],
)
def test_wrong_parameters(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RecordPacker(**{"lanes": 2, "value": "int8"} | wrong)
