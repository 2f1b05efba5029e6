# amaranth: UnusedElaboratable=no
"""The floating-point operators as hardware against exact integer arithmetic, subnormals kept and flushed.

``FIBERLOOM_ARITH_PAIRS`` sets how many random pairs each operator is given (``make arith``: twenty million).
"""

import os
from collections.abc import Iterator

import numpy as np
import pytest

from rtl.arith import FpAdd, FpMultiply
from sw.golden import arithmetic as golden
from tests.rtl.arith.operands import corners, crossed_corners, exponent_ladder, noise, structured
from tests.rtl.arith.rack import compile_rack
from tests.verif.ieee import Format, Words

PAIRS = int(os.environ.get("FIBERLOOM_ARITH_PAIRS", "1000000"))
CHUNK = 500_000
SIGN = np.uint32(0x80000000)
OPERATORS = {
    ("add", False): FpAdd,
    ("multiply", False): FpMultiply,
    ("add", True): FpAdd,
    ("multiply", True): FpMultiply,
}
CLASSES = {
    "zero": lambda bits: bits == 0,
    "smallest subnormal": lambda bits: bits == 1,
    "largest subnormal": lambda bits: bits == 0x007FFFFF,
    "smallest normal": lambda bits: bits == 0x00800000,
    "largest normal": lambda bits: bits == 0x7F7FFFFF,
    "below a power of two": lambda bits: (bits & 0x7FFFFF == 0x7FFFFF) & (bits < 0x7F7FFFFF) & (bits > 0x00800000),
    "power of two": lambda bits: (bits & 0x7FFFFF == 0) & (bits > 0x00800000) & (bits < 0x7F800000),
    "above a power of two": lambda bits: (bits & 0x7FFFFF == 1) & (bits > 0x00800000) & (bits < 0x7F800000),
    "infinity": lambda bits: bits == 0x7F800000,
    "signalling NaN": lambda bits: (bits > 0x7F800000) & (bits < 0x7FC00000),
    "quiet NaN": lambda bits: bits >= 0x7FC00000,
}


@pytest.fixture(scope="module")
def rack():
    """All four operators; gives their results for two lists of words, by operation and mode."""
    names = {f"{operation}{int(flush)}": (operation, flush) for operation, flush in OPERATORS}
    run = compile_rack({name: OPERATORS[key](flush_subnormals=key[1]) for name, key in names.items()})

    def results(a: Words, b: Words, **options: int) -> dict[tuple[str, bool], Words]:
        return {names[name]: words for name, words in run(a, b, **options).items()}

    return results


def agree(rack, a: Words, b: Words, **options: int) -> int:
    """Compares every operator with the reference; gives the number of results that were halfway before rounding."""
    ties = 0
    for (operation, flush), got in rack(a, b, **options).items():
        expected, tie = getattr(Format(flush=flush), operation)(a, b)
        wrong = np.flatnonzero(got != expected)
        shown = [f"{a[n]:08x} {b[n]:08x} -> {got[n]:08x}, expected {expected[n]:08x}" for n in wrong[:5]]
        assert not len(wrong), f"{operation}, flush {flush}: {len(wrong)} of {len(a)} differ\n" + "\n".join(shown)
        ties += int(tie.sum())
    return ties


def powers() -> Words:
    """Every power of two that is a normal number, and the words beside it, with both signs."""
    words = np.arange(1, 255, dtype=np.uint32)[:, None] * np.uint32(1 << 23) + np.array([-1, 0, 1], np.int64)
    words = words.astype(np.uint32).ravel()
    return np.concatenate([words, words | SIGN])


def halfway(rng: np.random.Generator, count: int) -> tuple[Words, Words]:
    """Sums and products that lie exactly between two numbers, in turn."""
    part = count // 2
    # An addend that is an odd number of half places of the other.
    exponent = rng.integers(30, 254, part)
    big = rng.integers(0, 2, part) << 31 | exponent << 23 | rng.integers(0, 1 << 23, part)
    halves = 2 * rng.integers(0, 1 << rng.integers(0, 12, part)) + 1
    small = np.ldexp(halves.astype(np.float64), exponent - 127 - 24).astype(np.float32).view(np.uint32)
    small = small | rng.integers(0, 2, part).astype(np.uint32) << np.uint32(31)
    # Odd factors whose product has one bit more than fits.
    rest = count - part
    factors = [rng.integers(1 << bits, 2 << bits, rest) | 1 for bits in (11, 12)]
    scale = rng.integers(-40, 40, (2, rest))
    left, right = (
        np.ldexp(f.astype(np.float64), s).astype(np.float32).view(np.uint32)
        for f, s in zip(factors, scale, strict=True)
    )
    sign = rng.integers(0, 2, rest).astype(np.uint32) << np.uint32(31)
    return np.concatenate([big.astype(np.uint32), left | sign]), np.concatenate([small, right])


def random_pairs(total: int) -> Iterator[tuple[Words, Words]]:
    """Half of them uniform, a quarter structured, a quarter halfway; a piece at a time."""
    for number, begin in enumerate(range(0, total, CHUNK)):
        rng = np.random.default_rng([20260, number])
        count = min(CHUNK, total - begin)
        made = [noise(rng, count // 2), structured(rng, count // 4), halfway(rng, count - count // 2 - count // 4)]
        a, b = (np.concatenate([pair[side] for pair in made]) for side in range(2))
        yield (a, b) if number % 2 else (b, a)


@pytest.mark.parametrize("stalls", [0, 90])
def test_every_class_with_every_class(rack, stalls):
    assert agree(rack, *crossed_corners(), stalls_in_256=stalls) > 1000


def test_powers_of_two_with_every_class(rack):
    a, b = (grid.ravel() for grid in np.meshgrid(powers(), corners(), indexing="ij"))
    assert agree(rack, a, b) + agree(rack, b, a) > 1000


def test_exponent_ladder(rack):
    assert agree(rack, *exponent_ladder(), stalls_in_256=20) > 10_000


def test_random_pairs(rack):
    ties = sum(agree(rack, a, b) for a, b in random_pairs(PAIRS))
    assert ties > PAIRS // 4


def test_the_corners_are_of_every_class():
    words = corners()
    for name, holds in CLASSES.items():
        for sign in (0, SIGN):
            assert holds(words[words & SIGN == sign] & ~SIGN).any(), (name, sign)


def test_the_reference_is_the_processors_arithmetic():
    """NumPy's float32, which rounds as IEEE 754 says, is a second reference; of flushing the golden functions are one."""
    rng = np.random.default_rng(1)
    for a, b in (crossed_corners(), exponent_ladder(), structured(rng, 400_000), halfway(rng, 100_000)):
        for operation in ("add", "multiply"):
            for flush in (False, True):
                expected = getattr(golden, operation)(a, b, value="fp32", flush_subnormals=flush)
                assert np.array_equal(getattr(Format(flush=flush), operation)(a, b)[0], expected), (operation, flush)


def test_the_reference_knows_other_formats():
    """Every pair of an 8-bit format (4 exponent bits, 3 fraction bits) by rounding to the nearest of its numbers."""
    small = Format(fraction=3, exponent=4)
    words = np.arange(256, dtype=np.uint32)
    magnitudes = np.array([np.ldexp((w & 7) + 8 * (w >> 3 > 0), max(w >> 3, 1) - 10) for w in range(120)])
    values = np.concatenate([magnitudes, np.full(8, np.nan)])
    numbers = np.concatenate([values, -values])
    finite = words[~np.isnan(numbers)]
    a, b = (grid.ravel() for grid in np.meshgrid(finite, finite))
    for operation, exact in (("add", numbers[a] + numbers[b]), ("multiply", numbers[a] * numbers[b])):
        got, _ = getattr(small, operation)(a, b)
        nearest = np.abs(np.abs(exact)[:, None] - np.append(magnitudes, 256.0)[None, :])
        best = nearest.min(axis=1, keepdims=True) == nearest
        # Of two that are as near the even one, which is the one with an even word.
        chosen = np.where(best, np.arange(121) % 2 * 1000 + np.arange(121), 10_000).argmin(axis=1)
        assert np.array_equal(got & 0x7F, chosen), operation
        signed = exact != 0
        assert np.array_equal(got[signed] >> 7, (exact[signed] < 0).astype(np.uint32)), operation
