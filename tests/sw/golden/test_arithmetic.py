"""The golden arithmetic against exact rational arithmetic, and its compiled form against its vectorised one."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numba import njit

from sw.golden import arithmetic
from sw.golden.arithmetic import CANONICAL_NAN, add, add_bits, in_slots, mode_of, mul_bits, multiply, value_type

SIGN, INFINITY = 0x80000000, 0x7F800000
SMALLEST_NORMAL = Fraction(1, 2**126)
CORNERS = [
    word | sign
    for word in (
        *(0x00000000, 0x00000001, 0x00000002, 0x00000003, 0x003FFFFF, 0x00400000, 0x007FFFFF, 0x00800000, 0x00800001),
        *(0x00FFFFFF, 0x01000000, 0x0C800000, 0x33800000, 0x337FFFFF, 0x33800001, 0x3F000000, 0x3F7FFFFF, 0x3F800000),
        *(0x3F800001, 0x3F800003, 0x3FFFFFFF, 0x40000000, 0x4B800000, 0x4B800001, 0x7EFFFFFF, 0x7F000000, 0x7F7FFFFF),
        *(0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF),
    )
    for sign in (0, SIGN)
]


def exact(word):
    """The rational number a finite binary32 stands for, or a bfloat16 in its slot."""
    exponent, fraction = word >> 23 & 0xFF, word & 0x7FFFFF
    significand = fraction if exponent == 0 else fraction | 1 << 23
    magnitude = Fraction(significand) * Fraction(2) ** (max(exponent, 1) - 150)
    return -magnitude if word & SIGN else magnitude


def encoded(number, sign, bits):
    """A rational number rounded to nearest even by the definition, to so many bits; ``sign`` is that of a zero."""
    if number == 0:
        return sign
    sign = SIGN if number < 0 else 0
    number = abs(number)
    scale = -125 - bits
    while number >= Fraction(2) ** (scale + bits):
        scale += 1
    significand = round(number / Fraction(2) ** scale)  # Python rounds halves to even.
    if significand == 1 << bits:
        significand, scale = significand >> 1, scale + 1
    if scale > 128 - bits:
        return sign | INFINITY
    exponent = 0 if significand < 1 << (bits - 1) else scale + 126 + bits
    return sign | exponent << 23 | (significand & ((1 << (bits - 1)) - 1)) << (24 - bits)


def flushed(word):
    return word & SIGN if word & INFINITY == 0 else word


def reference(operation, a, b, bits, flush=False):
    """``a`` and ``b`` combined by the rules, in exact arithmetic."""
    if flush:
        a, b = flushed(a), flushed(b)
    magnitude_a, magnitude_b = a & ~SIGN, b & ~SIGN
    if magnitude_a > INFINITY or magnitude_b > INFINITY:
        return CANONICAL_NAN
    infinite = magnitude_a == INFINITY or magnitude_b == INFINITY
    if operation == "add":
        if infinite:
            if magnitude_a == magnitude_b and a != b:
                return CANONICAL_NAN
            return a if magnitude_a == INFINITY else b
        number, zero = exact(a) + exact(b), a & b & SIGN
    else:
        sign = (a ^ b) & SIGN
        if infinite:
            return CANONICAL_NAN if 0 in (magnitude_a, magnitude_b) else sign | INFINITY
        number, zero = exact(a) * exact(b), sign
    if flush and number != 0 and abs(number) < SMALLEST_NORMAL:
        return SIGN if number < 0 else 0
    return encoded(number, zero, bits)


@pytest.mark.parametrize("value", ["fp32", "fp32_flush", "bf16", "bf16_flush"])
@pytest.mark.parametrize(("operation", "function"), [("add", add), ("multiply", multiply)])
def test_floating_point_by_definition(operation, function, value):
    rng = np.random.default_rng(2)
    pairs = [(a, b) for a in CORNERS for b in CORNERS]
    close = rng.integers(0, 1 << 32, 3000, dtype=np.uint32).astype(np.int64)
    near = np.clip(close + (rng.integers(-30, 31, 3000) << 23) + rng.integers(-4, 5, 3000), 0, 0xFFFFFFFF)
    pairs += list(zip(close.tolist(), (near ^ rng.integers(0, 2, 3000) << 31).tolist(), strict=True))
    complement = (254 << 23) - (close & 0x7FFFFFFF) + (rng.integers(-152, -120, 3000) << 23)
    pairs += list(zip(close.tolist(), np.clip(complement, 0, 0x7FFFFFFF).tolist(), strict=True))
    bits = 24
    if value.startswith("bf16"):
        # The lowest places of the fractions rather than the highest: there is what lies beside a boundary.
        bits = 8
        pairs += [tuple((word & 0xFF800000) | (word & 0x7F) << 16 for word in pair) for pair in pairs]
        pairs = [(a & 0xFFFF0000, b & 0xFFFF0000) for a, b in pairs]
    expected = [reference(operation, a, b, bits, value.endswith("flush")) for a, b in pairs]
    a, b = np.array(pairs, dtype=np.uint32).T
    got = function(a, b, value=value).tolist()
    wrong = [(hex(x), hex(y), hex(g), hex(e)) for (x, y), g, e in zip(pairs, got, expected, strict=True) if g != e]
    assert not wrong, wrong[:5]


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("width", [8, 16, 32])
def test_integers_by_definition(width, saturate):
    rng = np.random.default_rng(3)
    half = 1 << (width - 1)
    root = math.isqrt(half)
    edges = [0, 1, -1, 2, -2, root, root + 1, -root - 1, half // 2, half - 1, -half, -half + 1, 4, half // 4]
    pairs = [(a, b) for a in edges for b in edges]
    shift = rng.integers(0, width, (2000, 2))
    pairs += (rng.integers(-half, half, (2000, 2)) >> shift).tolist()
    words = np.array(pairs, dtype=np.int64).astype(np.int32).view(np.uint32)

    def limited(number):
        if saturate:
            return max(-half, min(half - 1, number))
        return (number + half) % (2 * half) - half

    value = f"int{width}" + ("_saturate" if saturate else "")
    a, b = words.T
    assert add(a, b, value=value).view(np.int32).tolist() == [limited(x + y) for x, y in pairs]
    assert multiply(a, b, value=value).view(np.int32).tolist() == [limited(x * y) for x, y in pairs]


def test_bits_that_a_type_does_not_use_do_not_count():
    words = np.array([0x12345678, 0xFFFF80FF, 0x7F800001, 0x80], np.uint32)
    assert in_slots(words, "int8").view(np.int32).tolist() == [0x78, -1, 1, -128]
    assert in_slots(words, "int16").view(np.int32).tolist() == [0x5678, -0x7F01, 1, 128]
    assert in_slots(words, "bf16_flush").tolist() == [0x12340000, 0xFFFF0000, 0x7F800000, 0]
    assert in_slots(words, "fp32").tolist() == in_slots(words, "int32_saturate").tolist() == words.tolist()
    for value in ("int8_saturate", "int16", "bf16"):
        clean = in_slots(words, value)
        assert add(words, words[::-1], value=value).tolist() == add(clean, clean[::-1], value=value).tolist()
        assert multiply(words, words[::-1], value=value).tolist() == multiply(clean, clean[::-1], value=value).tolist()


@pytest.mark.parametrize("value", arithmetic.VALUES)
def test_compiled_equals_vectorised(value):
    @njit
    def both(mode, a, b):
        sums, products = np.empty_like(a), np.empty_like(a)
        for n in range(len(a)):
            sums[n] = add_bits(mode, a[n], b[n])
            products[n] = mul_bits(mode, a[n], b[n])
        return sums, products

    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 1 << 32, (2, 500_000), dtype=np.uint32)
    corner_a, corner_b = (grid.ravel().astype(np.uint32) for grid in np.meshgrid(CORNERS, CORNERS))
    halves = len(a) // 2
    b[:halves] = (b[:halves] & 0x807FFFFF) | (a[:halves] & INFINITY)
    a, b = np.concatenate([a, corner_a]), np.concatenate([b, corner_b])
    a, b = in_slots(a, value), in_slots(b, value)
    sums, products = both(mode_of(value), a, b)
    np.testing.assert_array_equal(sums, add(a, b, value=value))
    np.testing.assert_array_equal(products, multiply(a, b, value=value))


def test_product_and_sum_are_rounded_apart_even_in_a_fastmath_kernel():
    mode = mode_of("fp32")

    @njit(fastmath=True)
    def scaled_sum(a, b, c):
        out = np.empty_like(a)
        for n in range(len(a)):
            out[n] = add_bits(mode, mul_bits(mode, a[n], b[n]), c[n])
        return out

    # (1 + 2**-12)**2 = 1 + 2**-11 + 2**-24: rounding the product loses the last term, a fused operation would keep it.
    a = np.array([0x3F800800] * 64, dtype=np.uint32)
    c = add(multiply(a, a, value="fp32"), np.uint32(0), value="fp32") ^ np.uint32(SIGN)
    assert scaled_sum(a, a, c).tolist() == [0] * 64
    rng = np.random.default_rng(6)
    a, b, c = (rng.standard_normal(100_000).astype(np.float32).view(np.uint32) for _ in range(3))
    np.testing.assert_array_equal(scaled_sum(a, b, c), add(multiply(a, b, value="fp32"), c, value="fp32"))


def test_compiled_keeps_subnormals():
    mode = mode_of("fp32")
    assert add_bits(mode, 1, 1) == 2
    assert mul_bits(mode, 0x00800000, 0x3F000000) == 0x00400000
    assert mul_bits(mode, 1, 0x3F800000) == 1


def test_shapes_follow_broadcasting():
    column, row = np.zeros((3, 1), np.uint32), np.arange(4, dtype=np.uint32)
    for value in arithmetic.VALUES:
        assert add(column, row, value=value).shape == (3, 4)
        assert multiply(column, row, value=value).shape == (3, 4)
        assert add(np.uint32(1), np.uint32(2), value=value).shape == ()
        assert multiply(row[:0], row[:0], value=value).shape == (0,)
        assert add(row, row, value=value).dtype == np.uint32


def test_the_border_of_flushing_is_before_rounding():
    # Just below 2**-126, and rounding would carry it there.
    a, b = np.uint32(0x00FFFFFF), np.uint32(0x3F000000)
    assert math.isclose(float(exact(int(a)) * exact(int(b))), 2.0**-126, rel_tol=1e-7)
    assert multiply(a, b, value="fp32") == 0x00800000
    assert multiply(a, b, value="fp32_flush") == 0


def test_names():
    types = {"int8", "int16", "int32", "bf16", "fp32"}
    assert {value_type(value) for value in arithmetic.VALUES} == types and len(arithmetic.VALUES) == 10
    assert value_type("int8_saturate") == "int8" and value_type("bf16_flush") == "bf16"


def test_refusals():
    words = np.zeros(1, dtype=np.uint32)
    for call in (lambda: add(words, words, value="fp16"), lambda: mode_of("fp16"), lambda: value_type("fp16")):
        with pytest.raises(ValueError, match=r"^Value type must be one of int8, int8_saturate, .*, not 'fp16'$"):
            call()
    with pytest.raises(ValueError, match=r"^Value type must be one of .*, fp32_flush, not 'fp32_saturate'$"):
        multiply(words, words, value="fp32_saturate")
    with pytest.raises(TypeError, match=r"^Operands must be bit patterns of dtype uint32, not float32$"):
        add(words, words.astype(np.float32), value="fp32")
