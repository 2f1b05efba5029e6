"""The operators as hardware against exact integer arithmetic: floating point, subnormals kept and flushed, and integers,
wrapped and saturated.

``FIBERLOOM_ARITH_PAIRS`` sets how many random pairs each operator is given (``make arith``: twenty million).
"""

import os
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from rtl.arith import VALUES, arithmetic
from sw.golden import arithmetic as golden
from tests.rtl.arith.operands import bf16_words, corners, crossed_corners, exponent_ladder, noise, structured
from tests.rtl.arith.rack import compile_rack
from tests.verif.ieee import Format, Words

PAIRS = int(os.environ.get("FIBERLOOM_ARITH_PAIRS", "1000000"))
CHUNK = 500_000
SIGN = 0x80000000
OPERATIONS = ("add", "multiply")
FRACTIONS = {"fp32": 23, "bf16": 7}
WIDTHS = {"int8": 8, "int16": 16, "int32": 32}
# Of magnitudes, by the place of the fraction's highest bit and the last place, in slots.
CLASSES: dict[str, Callable[[Words, int], np.ndarray]] = {
    "zero": lambda bits, last: bits == 0,
    "smallest subnormal": lambda bits, last: bits == last,
    "largest subnormal": lambda bits, last: bits == 0x00800000 - last,
    "smallest normal": lambda bits, last: bits == 0x00800000,
    "largest normal": lambda bits, last: bits == 0x7F800000 - last,
    "below a power of two": lambda bits, last: _beside(bits, last, -last),
    "power of two": lambda bits, last: _beside(bits, last, 0),
    "above a power of two": lambda bits, last: _beside(bits, last, last),
    "infinity": lambda bits, last: bits == 0x7F800000,
    "signalling NaN": lambda bits, last: (bits > 0x7F800000) & (bits < 0x7FC00000),
    "quiet NaN": lambda bits, last: bits >= 0x7FC00000,
}


def _beside(bits: Words, last: int, distance: int) -> np.ndarray:
    return ((bits.astype(np.int64) - distance) & 0x7FFFFF == 0) & (bits > 0x00800000) & (bits < 0x7F800000 - last)


@pytest.fixture(scope="module")
def rack():
    """Every operator of every value type; gives results for two lists of words, by value type and operation."""
    names = {f"{operation}_{value}": (value, operation) for value in VALUES for operation in OPERATIONS}
    makers = {value: dict(zip(OPERATIONS, arithmetic(value), strict=True)) for value in VALUES}
    run = compile_rack({name: makers[value][operation]() for name, (value, operation) in names.items()})

    def results(a: Words, b: Words, **options: int) -> dict[tuple[str, str], Words]:
        return {names[name]: words for name, words in run(a, b, **options).items()}

    return results


def by_definition(value: str, operation: str, a: Words, b: Words) -> tuple[Words, int]:
    """Results, and how many of them were halfway before rounding; of integers, how many do not fit."""
    kind, _, special = value.partition("_")
    if kind in FRACTIONS:
        unused = np.uint32(23 - FRACTIONS[kind])
        form = Format(fraction=FRACTIONS[kind], flush=special == "flush")
        words, ties = getattr(form, operation)(a >> unused, b >> unused)
        return words << unused, int(ties.sum())
    width = WIDTHS[kind]
    left, right = ((words.astype(np.int64) << (64 - width)) >> (64 - width) for words in (a, b))
    exact = left + right if operation == "add" else left * right
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    kept = np.minimum(np.maximum(exact, low), high) if special else (exact << (64 - width)) >> (64 - width)
    return kept.astype(np.int32).view(np.uint32), int(((exact < low) | (exact > high)).sum())


def agree(rack, a: Words, b: Words, kind: str, **options: int) -> int:
    """Compares every operator of a type with the reference; gives the number of ties, of integers that of overflows."""
    special = 0
    for (value, operation), got in rack(a, b, **options).items():
        if value.partition("_")[0] != kind:
            continue
        expected, count = by_definition(value, operation, a, b)
        wrong = np.flatnonzero(got != expected)
        shown = [f"{a[n]:08x} {b[n]:08x} -> {got[n]:08x}, expected {expected[n]:08x}" for n in wrong[:5]]
        assert not len(wrong), f"{value} {operation}: {len(wrong)} of {len(a)} differ\n" + "\n".join(shown)
        special += count
    return special


def of_kind(kind: str, pairs: tuple[Words, Words]) -> tuple[Words, Words]:
    """Pairs made for binary32, as they are and, for bf16, with the lowest places of fractions for its own."""
    return pairs if kind == "fp32" else (bf16_words(pairs[0]), bf16_words(pairs[1]))


def corners_of(kind: str) -> Words:
    return corners() if kind == "fp32" else np.unique(np.concatenate([bf16_words(corners()), corners() & 0xFFFF0000]))


def powers(kind: str) -> Words:
    """Every power of two that is a normal number, and the words beside it, with both signs."""
    last = 1 << (23 - FRACTIONS[kind])
    words = np.arange(1, 255, dtype=np.uint32)[:, None] * np.uint32(1 << 23) + np.array([-last, 0, last], np.int64)
    words = words.astype(np.uint32).ravel()
    return np.concatenate([words, words | np.uint32(SIGN)])


def halfway(rng: np.random.Generator, count: int, kind: str) -> tuple[Words, Words]:
    """Sums and products that lie exactly between two numbers, in turn."""
    f = FRACTIONS[kind]
    part = count // 2
    # An addend that is an odd number of half places of the other.
    exponent = rng.integers(30, 254, part)
    big = rng.integers(0, 2, part) << 31 | exponent << 23 | rng.integers(0, 1 << f, part) << (23 - f)
    halves = 2 * rng.integers(0, 1 << rng.integers(0, min(12, f), part)) + 1
    small = np.ldexp(halves.astype(np.float64), exponent - 127 - f - 1).astype(np.float32).view(np.uint32)
    small = small | rng.integers(0, 2, part).astype(np.uint32) << np.uint32(31)
    # Odd factors whose product has one bit more than fits.
    rest = count - part
    factors = [rng.integers(1 << bits, 2 << bits, rest) | 1 for bits in (f // 2, f // 2 + 1)]
    scale = rng.integers(-40, 40, (2, rest))
    left, right = (
        np.ldexp(f.astype(np.float64), s).astype(np.float32).view(np.uint32)
        for f, s in zip(factors, scale, strict=True)
    )
    sign = rng.integers(0, 2, rest).astype(np.uint32) << np.uint32(31)
    return np.concatenate([big.astype(np.uint32), left | sign]), np.concatenate([small, right])


def random_pairs(total: int, kind: str) -> Iterator[tuple[Words, Words]]:
    """Half of them uniform, a quarter structured, a quarter halfway; a piece at a time."""
    for number, begin in enumerate(range(0, total, CHUNK)):
        rng = np.random.default_rng([20260, number])
        count = min(CHUNK, total - begin)
        made = [noise(rng, count // 2), of_kind(kind, structured(rng, count // 4))]
        made.append(halfway(rng, count - count // 2 - count // 4, kind))
        a, b = (np.concatenate([pair[side] for pair in made]) for side in range(2))
        yield (a, b) if number % 2 else (b, a)


@pytest.mark.parametrize("kind", FRACTIONS)
@pytest.mark.parametrize("stalls", [0, 90])
def test_every_class_with_every_class(rack, kind, stalls):
    a, b = (grid.ravel() for grid in np.meshgrid(corners_of(kind), corners_of(kind), indexing="ij"))
    assert agree(rack, a, b, kind, stalls_in_256=stalls) > 300


@pytest.mark.parametrize("kind", FRACTIONS)
def test_powers_of_two_with_every_class(rack, kind):
    a, b = (grid.ravel() for grid in np.meshgrid(powers(kind), corners_of(kind), indexing="ij"))
    assert agree(rack, a, b, kind) + agree(rack, b, a, kind) > 1000


@pytest.mark.parametrize("kind", FRACTIONS)
def test_exponent_ladder(rack, kind):
    assert agree(rack, *of_kind(kind, exponent_ladder()), kind, stalls_in_256=20) > 10_000


def test_every_bf16_with_every_class(rack):
    words = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    for corner in corners_of("bf16")[::4]:
        other = np.full_like(words, corner)
        agree(rack, np.concatenate([words, other]), np.concatenate([other, words]), "bf16")


@pytest.mark.parametrize("kind", FRACTIONS)
def test_random_pairs(rack, kind):
    ties = sum(agree(rack, a, b, kind) for a, b in random_pairs(PAIRS, kind))
    assert ties > PAIRS // 4


def test_every_pair_of_int8(rack):
    """With noise in the bits of the slots that the type does not use."""
    numbers = np.arange(256, dtype=np.uint32)
    a, b = (grid.ravel() for grid in np.meshgrid(numbers, numbers))
    above = noise(np.random.default_rng(8), len(a))
    assert agree(rack, a | above[0] << np.uint32(8), b | above[1] << np.uint32(8), "int8") > 65536


@pytest.mark.parametrize("kind", ["int16", "int32"])
def test_random_integers(rack, kind):
    """Uniform and of every length, so that sums and products overflow, just fit or are far from it."""
    overflows = 0
    for number, begin in enumerate(range(0, PAIRS, CHUNK)):
        rng = np.random.default_rng([20261, number])
        count = min(CHUNK, PAIRS - begin)
        words = rng.integers(-(2**31), 2**31, (2, count)) >> rng.integers(0, 32, (2, count))
        words[:, : count // 4] = rng.integers(-(2**31), 2**31, (2, count // 4))
        a, b = words.astype(np.int32).view(np.uint32)
        overflows += agree(rack, a, b, kind, stalls_in_256=0)
    assert overflows > PAIRS // 4


@pytest.mark.parametrize("kind", FRACTIONS)
def test_the_corners_are_of_every_class(kind):
    words = corners_of(kind)
    for name, holds in CLASSES.items():
        for sign in (0, SIGN):
            assert holds(words[words & SIGN == sign] & ~np.uint32(SIGN), 1 << (23 - FRACTIONS[kind])).any(), (
                name,
                sign,
            )


@pytest.mark.parametrize("value", [name for name in VALUES if name.partition("_")[0] in FRACTIONS])
def test_the_reference_is_the_processors_arithmetic(value):
    """NumPy's float32, which rounds as IEEE 754 says, is a second reference; of flushing the golden functions are one."""
    rng = np.random.default_rng(1)
    kind = value.partition("_")[0]
    made = [of_kind(kind, pair) for pair in (crossed_corners(), exponent_ladder(), structured(rng, 400_000))]
    for a, b in (*made, halfway(rng, 100_000, kind)):
        for operation in OPERATIONS:
            expected = getattr(golden, operation)(a, b, value=value)
            assert np.array_equal(by_definition(value, operation, a, b)[0], expected), operation


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
