"""Arithmetic operators against the golden (NumPy) functions, bit for bit. Fits any ``Operator``.

Testplan: ``verif/testplans/arith.toml``. ``FIBERLOOM_PAIRS`` sets how many operand pairs each test sends.
"""

import os
from collections import deque
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ReadOnly, RisingEdge
from numpy.typing import NDArray

from sw.golden.arithmetic import add, multiply
from verif.agents.layouts import described
from verif.agents.pauses import pattern
from verif.clocking import begin
from verif.coverage import Coverage

PAIRS = int(os.environ.get("FIBERLOOM_PAIRS", "4000"))
EXPONENT, FRACTION, SIGN = 0x7F800000, 0x007FFFFF, 0x80000000
CORNERS = np.array(
    [0, 1, 2, 0x400000, 0x7FFFFF, 0x800000, 0x800001, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x34000000, 0x33800001]
    + [0x7F7FFFFF, 0x7F000000, 0x7F800000, 0x7FC00000, 0x7F800001, 0x4B000001, 0x7FFFFFFF, 0x0000FFFF],
    np.uint32,
)
coverage = Coverage("arith")
Words = NDArray[np.uint32]


def crossed() -> tuple[Words, Words]:
    """All pairs of corners with both signs."""
    words = np.concatenate([CORNERS, CORNERS | np.uint32(SIGN)])
    a, b = np.meshgrid(words, words, indexing="ij")
    return a.ravel(), b.ravel()


def close_pairs(rng: np.random.Generator, count: int) -> tuple[Words, Words]:
    """Exponents that differ by at most 26, fractions with runs of equal bits: rounding, cancellation, borders."""
    place = rng.integers(0, 24, (2, count))
    ones = np.int64(1) << place
    kind = rng.integers(0, 3, (2, count))
    fraction = np.choose(kind, [ones, ones - 1, rng.integers(0, 1 << 23, (2, count))]) & FRACTION
    first = rng.integers(0, 255, count)
    exponent = np.stack([first, np.clip(first + rng.integers(-26, 27, count), 0, 254)])
    exponent[1, ::3] = np.clip(
        127 - first[::3] + rng.integers(-28, 30, len(first[::3])), 0, 254
    )  # products near 2**-126
    words = (rng.integers(0, 2, (2, count)) << 31 | exponent << 23 | fraction).astype(np.uint32)
    return words[0], words[1]


def noise(rng: np.random.Generator, count: int) -> tuple[Words, Words]:
    a, b = rng.integers(0, 1 << 32, (2, count), dtype=np.uint32)
    return a, b


class OperatorBench:
    """Operands at every advancing edge; each result is the golden one, ``latency`` advancing cycles later."""

    def __init__(self, dut: Any, pause: str) -> None:
        block = described()
        self.dut = dut
        self.latency = int(block.parameters["latency"])
        self.pauses = pattern(pause, block.module)()
        taken = block.parameters
        self.floating = block.module.startswith("fp_")
        if self.floating:
            kind = "bf16" if "bfloat16" in block.module else "fp32"
            kind += "_flush" if int(taken["flush_subnormals"]) else ""
        else:
            kind = f"int{taken.get('width', 32)}" + ("_saturate" if int(taken["saturate"]) else "")
        golden = add if "_add" in block.module else multiply
        self.golden = lambda a, b: golden(a, b, value=kind)
        self.due: deque[tuple[int, int, int] | None] = deque([None] * self.latency)
        self.compared = 0

    async def run(self, a: Words, b: Words, *, reset_at: int = -1) -> None:
        """Send all pairs; then as many more cycles as the last result takes."""
        wanted = self.golden(a, b)
        self.cover(a, b, wanted)
        pairs = list(zip(a.tolist(), b.tolist(), wanted.tolist(), strict=True))
        stalled_result: int | None = None
        sent = 0
        for _ in range(20 * (len(pairs) + 200)):
            advance = not next(self.pauses)
            item = pairs[sent] if sent < len(pairs) else None
            self.dut.advance.value = advance
            self.dut.a.value, self.dut.b.value = item[:2] if item else (0x12345678, 0x7FC00000)
            self.dut.rst.value = sent == reset_at
            coverage.hit("reset", sent == reset_at)
            await ReadOnly()
            if (now := self.due[0]) is not None:
                result = int(self.dut.result.value)
                assert result == now[2], f"0x{now[0]:08x}, 0x{now[1]:08x}: 0x{result:08x}, expected 0x{now[2]:08x}"
                assert stalled_result is None or stalled_result == result, (
                    "a result changed while the pipeline stood still"
                )
                coverage.hit("stalled", stalled_result is not None)
            stalled_result = now[2] if now is not None and not advance else None
            await RisingEdge(self.dut.clk)
            if advance:
                self.compared += self.due[0] is not None
                self.due.popleft()
                self.due.append(item)
                sent += 1
            if sent >= len(pairs) and not any(self.due):
                break
        assert self.compared == len(pairs), f"{self.compared} of {len(pairs)} results came"

    def cover(self, a: Words, b: Words, wanted: Words) -> None:
        def tiny(word: Words) -> Words:
            return (word & EXPONENT == 0) & (word & FRACTION != 0)

        def finite(word: Words) -> Words:
            return word & EXPONENT != EXPONENT

        coverage.hit("negative", bool(np.any(wanted & SIGN)))
        coverage.hit("zero", bool(np.any((wanted & ~np.uint32(SIGN) == 0) & (a & b & ~np.uint32(SIGN) != 0))))
        flags = {
            "nan": (wanted & EXPONENT == EXPONENT) & (wanted & FRACTION != 0),
            "infinity": (wanted & ~np.uint32(SIGN) == EXPONENT) & finite(a) & finite(b),
            "subnormal_operand": tiny(a) | tiny(b),
            "subnormal_result": tiny(wanted),
        }
        for name, reached in flags.items():
            coverage.hit(name, self.floating and bool(np.any(reached)))


async def started(dut: Any, pause: str) -> OperatorBench:
    await begin(dut, zero=("a", "b", "advance"))
    return OperatorBench(dut, pause)


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(pause=["none", "random"])
async def corners(dut: Any, pause: str) -> None:
    """Zeros, subnormals, borders of the exponent, infinities and NaN, each with each."""
    bench = await started(dut, pause)
    await bench.run(*crossed())
    coverage.save()


@cocotb.test(timeout_time=100, timeout_unit="ms")
@cocotb.parametrize(pause=["none", "fourth"])
async def random_pairs(dut: Any, pause: str) -> None:
    """Noise, and pairs that noise alone would hardly produce."""
    rng = np.random.default_rng(5)
    bench = await started(dut, pause)
    await bench.run(*close_pairs(rng, PAIRS))
    bench.compared = 0
    await bench.run(*noise(rng, PAIRS // 2))
    coverage.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def reset_does_not_reach_the_pipeline(dut: Any) -> None:
    """Operands inside during a reset still give the right result: valid bits outside guard it."""
    rng = np.random.default_rng(6)
    bench = await started(dut, "none")
    await bench.run(*noise(rng, 100), reset_at=50)
    coverage.save()
