"""The golden arithmetic against exact rational arithmetic, and its compiled form against its vectorised one."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numba import njit

from sw.golden import arithmetic
from sw.golden.arithmetic import CANONICAL_NAN, add, multiply, scalar_operators

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
    """The rational number a finite binary32 stands for."""
    exponent, fraction = word >> 23 & 0xFF, word & 0x7FFFFF
    significand = fraction if exponent == 0 else fraction | 1 << 23
    magnitude = Fraction(significand) * Fraction(2) ** (max(exponent, 1) - 150)
    return -magnitude if word & SIGN else magnitude


def encoded(number, sign):
    """A rational number rounded to nearest even by the definition; ``sign`` is that of a zero."""
    if number == 0:
        return sign
    sign = SIGN if number < 0 else 0
    number = abs(number)
    scale = -149
    while number >= Fraction(2) ** (scale + 24):
        scale += 1
    significand = round(number / Fraction(2) ** scale)  # Python rounds halves to even.
    if significand == 1 << 24:
        significand, scale = 1 << 23, scale + 1
    if scale > 104:
        return sign | INFINITY
    exponent = 0 if significand < 1 << 23 else scale + 150
    return sign | exponent << 23 | significand & 0x7FFFFF


def flushed(word):
    return word & SIGN if word & INFINITY == 0 else word


def reference(operation, a, b, flush=False):
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
    return encoded(number, zero)


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize(("operation", "function"), [("add", add), ("multiply", multiply)])
def test_fp32_by_definition(operation, function, flush):
    rng = np.random.default_rng(2)
    pairs = [(a, b) for a in CORNERS for b in CORNERS]
    close = rng.integers(0, 1 << 32, 3000, dtype=np.uint32).astype(np.int64)
    near = np.clip(close + (rng.integers(-30, 31, 3000) << 23) + rng.integers(-4, 5, 3000), 0, 0xFFFFFFFF)
    pairs += list(zip(close.tolist(), (near ^ rng.integers(0, 2, 3000) << 31).tolist(), strict=True))
    complement = (254 << 23) - (close & 0x7FFFFFFF) + (rng.integers(-152, -120, 3000) << 23)
    pairs += list(zip(close.tolist(), np.clip(complement, 0, 0x7FFFFFFF).tolist(), strict=True))
    expected = [reference(operation, a, b, flush) for a, b in pairs]
    a, b = np.array(pairs, dtype=np.uint32).T
    got = function(a, b, value="fp32", flush_subnormals=flush).tolist()
    wrong = [(hex(x), hex(y), hex(g), hex(e)) for (x, y), g, e in zip(pairs, got, expected, strict=True) if g != e]
    assert not wrong, wrong[:5]


@pytest.mark.parametrize("saturate", [False, True])
def test_int32_by_definition(saturate):
    rng = np.random.default_rng(3)
    edges = [0, 1, -1, 2, -2, 46340, 46341, -46341, 65535, 65536, 2**30, 2**31 - 1, -(2**31), -(2**31) + 1]
    pairs = [(a, b) for a in edges for b in edges]
    width = rng.integers(0, 32, (2000, 2))
    pairs += (rng.integers(-(2**31), 2**31, (2000, 2)) >> width).tolist()
    words = np.array(pairs, dtype=np.int64).astype(np.int32).view(np.uint32)

    def limited(number):
        return max(-(2**31), min(2**31 - 1, number)) % 2**32 if saturate else number % 2**32

    a, b = words.T
    assert add(a, b, value="int32", saturate=saturate).tolist() == [limited(x + y) for x, y in pairs]
    assert multiply(a, b, value="int32", saturate=saturate).tolist() == [limited(x * y) for x, y in pairs]


@pytest.mark.parametrize("value", arithmetic.VALUES)
def test_compiled_equals_vectorised(value):
    add_bits, mul_bits = scalar_operators(value)

    @njit
    def both(a, b):
        sums, products = np.empty_like(a), np.empty_like(a)
        for n in range(len(a)):
            sums[n] = add_bits(a[n], b[n])
            products[n] = mul_bits(a[n], b[n])
        return sums, products

    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 1 << 32, (2, 500_000), dtype=np.uint32)
    corner_a, corner_b = (grid.ravel().astype(np.uint32) for grid in np.meshgrid(CORNERS, CORNERS))
    halves = len(a) // 2
    b[:halves] = (b[:halves] & 0x807FFFFF) | (a[:halves] & INFINITY)
    a, b = np.concatenate([a, corner_a]), np.concatenate([b, corner_b])
    sums, products = both(a, b)
    np.testing.assert_array_equal(sums, add(a, b, value=value))
    np.testing.assert_array_equal(products, multiply(a, b, value=value))


def test_product_and_sum_are_rounded_apart_even_in_a_fastmath_kernel():
    add_bits, mul_bits = scalar_operators("fp32")

    @njit(fastmath=True)
    def scaled_sum(a, b, c):
        out = np.empty_like(a)
        for n in range(len(a)):
            out[n] = add_bits(mul_bits(a[n], b[n]), c[n])
        return out

    # (1 + 2**-12)**2 = 1 + 2**-11 + 2**-24: rounding the product loses the last term, a fused operation would keep it.
    a = np.array([0x3F800800] * 64, dtype=np.uint32)
    c = add(multiply(a, a, value="fp32"), np.uint32(0), value="fp32") ^ np.uint32(SIGN)
    assert scaled_sum(a, a, c).tolist() == [0] * 64
    rng = np.random.default_rng(6)
    a, b, c = (rng.standard_normal(100_000).astype(np.float32).view(np.uint32) for _ in range(3))
    np.testing.assert_array_equal(scaled_sum(a, b, c), add(multiply(a, b, value="fp32"), c, value="fp32"))


def test_compiled_keeps_subnormals():
    add_bits, mul_bits = scalar_operators("fp32")
    assert add_bits(1, 1) == 2
    assert mul_bits(0x00800000, 0x3F000000) == 0x00400000
    assert mul_bits(1, 0x3F800000) == 1


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
    assert multiply(a, b, value="fp32", flush_subnormals=True) == 0


def test_refusals():
    words = np.zeros(1, dtype=np.uint32)
    with pytest.raises(ValueError, match=r"^Value type must be one of int32, fp32, not 'bf16'$"):
        add(words, words, value="bf16")
    with pytest.raises(ValueError, match=r"^Value type must be one of int32, fp32, not 'bf16'$"):
        scalar_operators("bf16")
    with pytest.raises(ValueError, match=r"^Saturation is defined for int32, not for fp32$"):
        multiply(words, words, value="fp32", saturate=True)
    with pytest.raises(ValueError, match=r"^Flushing of subnormals is defined for fp32, not for int32$"):
        add(words, words, value="int32", flush_subnormals=True)
    with pytest.raises(TypeError, match=r"^Operands must be bit patterns of dtype uint32, not float32$"):
        add(words, words.astype(np.float32), value="fp32")
