"""Addition and multiplication of IEEE 754 binary numbers in integers: a reference that shares nothing with the hardware or
with the processor's floating point.

Any format that fits 32 bits, by its number of fraction and exponent bits; rounded to nearest even. Exact values are
significand times a power of two; they are rounded once, at the end.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
Exact = NDArray[np.int64]

GUARD = 34  # places below the larger operand that a sum keeps; what lies further down becomes one sticky bit


@dataclass(frozen=True)
class Format:
    """A binary format. ``flush``: subnormal operands count as zeros, results below the normal numbers become zeros."""

    fraction: int = 23
    exponent: int = 8
    flush: bool = False

    @property
    def lowest(self) -> int:
        """Exponent of the last place of a subnormal."""
        return 2 - (1 << (self.exponent - 1)) - self.fraction

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def nan(self) -> int:
        """The one that every result is which is none."""
        return self.infinity | 1 << (self.fraction - 1)

    def split(self, words: Words) -> tuple[Exact, Exact, Exact]:
        """Sign, significand and exponent of its last place; of infinities and NaN they mean nothing."""
        bits = words.astype(np.int64)
        field = bits >> self.fraction & ((1 << self.exponent) - 1)
        fraction = bits & ((1 << self.fraction) - 1)
        tiny = field == 0
        significand = np.where(tiny, 0 if self.flush else fraction, fraction | 1 << self.fraction)
        return bits >> (self.fraction + self.exponent) & 1, significand, np.maximum(field, 1) - 1 + self.lowest

    def is_nan(self, words: Words) -> NDArray[np.bool_]:
        return self._magnitude(words) > self.infinity

    def is_infinite(self, words: Words) -> NDArray[np.bool_]:
        return self._magnitude(words) == self.infinity

    def _magnitude(self, words: Words) -> Words:
        return words & np.uint32((1 << (self.fraction + self.exponent)) - 1)

    def rounded(self, sign: Exact, significand: Exact, exponent: Exact) -> tuple[Words, NDArray[np.bool_]]:
        """``significand * 2**exponent`` of this sign as a word, and whether it lay halfway between two of them."""
        length = _bit_length(significand)
        place = np.maximum(exponent + length - self.fraction - 1, self.lowest)
        drop = np.maximum(place - exponent, 0)
        gone = drop > 62  # all of it, and less than half of the last place
        drop = np.minimum(drop, 62)
        kept = (significand << np.clip(exponent - place, 0, self.fraction + 1)) >> drop
        rest = significand & ((np.int64(1) << drop) - 1)
        half = np.where(drop > 0, np.int64(1) << np.maximum(drop - 1, 0), 0)
        tie = (drop > 0) & (rest == half) & ~gone
        kept += ~gone & (drop > 0) & ((rest > half) | (tie & (kept & 1 == 1)))
        kept = np.where(gone, 0, kept)
        # A significand that rounding carried beyond its length is one in the exponent more, as the encoding has it.
        field = np.where(kept >> self.fraction > 0, place - self.lowest, 0)
        magnitude = np.minimum((field << self.fraction) + kept, self.infinity)
        if self.flush:
            magnitude = np.where(exponent + length - 1 < self.lowest + self.fraction, 0, magnitude)
        magnitude = np.where(significand == 0, 0, magnitude)
        return (magnitude | sign << (self.fraction + self.exponent)).astype(np.uint32), tie & (significand != 0)

    def multiply(self, a: Words, b: Words) -> tuple[Words, NDArray[np.bool_]]:
        """Products, and which of them were exactly halfway before rounding."""
        (sign_a, left, scale_a), (sign_b, right, scale_b) = self.split(a), self.split(b)
        result, tie = self.rounded(sign_a ^ sign_b, left * right, scale_a + scale_b)
        infinite = self.is_infinite(a) | self.is_infinite(b)
        top = (sign_a ^ sign_b) << (self.fraction + self.exponent)
        result = np.where(infinite, (top | self.infinity).astype(np.uint32), result)
        # An infinity times a zero; which subnormals are zeros depends on flushing.
        zero = (~self.is_infinite(a) & (left == 0)) | (~self.is_infinite(b) & (right == 0))
        nan = self.is_nan(a) | self.is_nan(b) | (infinite & zero)
        return np.where(nan, np.uint32(self.nan), result), tie & ~infinite & ~nan

    def add(self, a: Words, b: Words) -> tuple[Words, NDArray[np.bool_]]:
        """Sums, and which of them were exactly halfway before rounding."""
        (sign_a, left, scale_a), (sign_b, right, scale_b) = self.split(a), self.split(b)
        swap = scale_b > scale_a
        high, low = np.where(swap, right, left), np.where(swap, left, right)
        sign_high, sign_low = np.where(swap, sign_b, sign_a), np.where(swap, sign_a, sign_b)
        distance = np.abs(scale_a - scale_b)
        shift = np.minimum(distance, 62)
        spread = low << GUARD
        aligned = spread >> shift
        aligned |= (aligned << shift != spread).astype(np.int64)
        total = np.where(sign_high, -1, 1) * (high << GUARD) + np.where(sign_low, -1, 1) * aligned
        # An exact zero is positive unless both operands were negative.
        sign = np.where(total == 0, sign_a & sign_b, total < 0).astype(np.int64)
        result, tie = self.rounded(sign, np.abs(total), np.maximum(scale_a, scale_b) - GUARD)
        infinite_a, infinite_b = self.is_infinite(a), self.is_infinite(b)
        result = np.where(infinite_a, a, np.where(infinite_b, b, result))
        nan = self.is_nan(a) | self.is_nan(b) | (infinite_a & infinite_b & (sign_a != sign_b))
        return np.where(nan, np.uint32(self.nan), result), tie & ~infinite_a & ~infinite_b & ~nan


def _bit_length(values: Exact) -> Exact:
    """Of nonnegative integers below 2**63; each half is exact as a float64."""
    high, low = values >> 32, values & 0xFFFFFFFF
    return np.where(high > 0, 32 + np.frexp(high.astype(np.float64))[1], np.frexp(low.astype(np.float64))[1]).astype(
        np.int64
    )
