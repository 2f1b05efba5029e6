"""What the adders and multipliers compute, bit for bit: vectorised for arrays, compiled for single values.

Operands and results are the 32-bit slots that values have in memory, as unsigned words. Read as ``int32`` or as binary32
a slot is the number itself: integers are sign-extended, a bfloat16 is the upper half above zeros. Every operation is of
the value type alone:

- ``int8``, ``int16``, ``int32``: two's complement; results wrap, or clamp to the range of the type (``int8_saturate``).
- ``bf16``, ``fp32``: IEEE 754, rounded once, to nearest even, subnormals kept; every NaN result is ``CANONICAL_NAN``.
  With ``_flush`` a subnormal operand counts as a zero of its sign, and a result whose exact value is smaller in
  magnitude than 2**-126 becomes a zero of its sign.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sw.jit import njit

__all__ = [
    "CANONICAL_NAN",
    "VALUES",
    "Mode",
    "add",
    "add_bits",
    "in_slots",
    "mode_of",
    "mul_bits",
    "multiply",
    "value_type",
]

CANONICAL_NAN = 0x7FC00000

_WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "bf16": 16, "fp32": 32}
_SUFFIXES = {False: "_saturate", True: "_flush"}

_SIGN = np.uint32(0x80000000)
_EXPONENT = np.uint32(0x7F800000)
_SMALLEST_NORMAL = 2.0**-126

Words = NDArray[np.uint32]


class Mode(NamedTuple):
    """What distinguishes the value types: for use in compiled code.

    Parameters
    ----------
    floating: ``bf16`` and ``fp32``.
    width: bits of a number.
    special: integers saturate, subnormals are flushed.
    """

    floating: bool
    width: int
    special: bool


_MODES = {
    name + suffix: Mode(floating, width, bool(suffix))
    for name, width in _WIDTHS.items()
    for floating in (not name.startswith("int"),)
    for suffix in ("", _SUFFIXES[floating])
}
#: Value types, and the same with how they depart from the default: ``int8``, ``int8_saturate`` and so on.
VALUES = tuple(_MODES)


def mode_of(value: str) -> Mode:
    """The mode of one of ``VALUES``."""
    if value not in _MODES:
        raise ValueError(f"Value type must be one of {', '.join(VALUES)}, not {value!r}")
    return _MODES[value]


def value_type(value: str) -> str:
    """The type that the operands of an arithmetic have: ``int8`` of ``int8_saturate``."""
    mode_of(value)
    return value.partition("_")[0]


def in_slots(words: Words, value: str) -> Words:
    """Any words as slots of the type: what lies in the bits that it does not use is replaced."""
    mode = mode_of(value)._replace(special=False)
    unused = np.uint32(32 - mode.width)
    return words >> unused << unused if mode.floating else _fitted(words.astype(np.int64), mode)


def add(a: ArrayLike, b: ArrayLike, *, value: str) -> Words:
    """Elementwise ``a + b`` of slots, with broadcasting."""
    a, b, mode = _operands(a, b, value)
    if not mode.floating:
        return _fitted(a.view(np.int32).astype(np.int64) + b.view(np.int32).astype(np.int64), mode)
    with np.errstate(all="ignore"):
        # The fp32 sum of two bf16 is rounded a second time: 24 bits are more than twice 8 and 2, so that this changes nothing.
        bits = _canonical(a.view(np.float32) + b.view(np.float32))
    # A sum in the subnormal range is always exact, so rounding cannot have moved it across the border.
    return _rounded(_flushed(bits) if mode.special else bits, mode)


def multiply(a: ArrayLike, b: ArrayLike, *, value: str) -> Words:
    """Elementwise ``a * b`` of slots, with broadcasting."""
    a, b, mode = _operands(a, b, value)
    if not mode.floating:
        return _fitted(a.view(np.int32).astype(np.int64) * b.view(np.int32).astype(np.int64), mode)
    with np.errstate(all="ignore"):
        # The product of two bf16 has 16 bits: fp32 holds it exactly down to where bf16 has only zeros.
        bits = _canonical(a.view(np.float32) * b.view(np.float32))
        if mode.special:
            # Two 24-bit significands make a product that float64 holds exactly.
            exact = a.view(np.float32).astype(np.float64) * b.view(np.float32).astype(np.float64)
            bits = np.where(np.abs(exact) < _SMALLEST_NORMAL, bits & _SIGN, bits)
    return _rounded(bits, mode)


def _operands(a: ArrayLike, b: ArrayLike, value: str) -> tuple[Words, Words, Mode]:
    """Slots whatever the unused bits hold, flushed where the mode says so."""
    mode = mode_of(value)
    words = []
    for operand in (a, b):
        array = np.ascontiguousarray(operand)
        if array.dtype != np.uint32:
            raise TypeError(f"Operands must be bit patterns of dtype uint32, not {array.dtype}")
        array = in_slots(array.reshape(np.shape(operand)), value)
        words.append(_flushed(array) if mode.floating and mode.special else array)
    return words[0], words[1], mode


def _fitted(exact: NDArray[np.int64], mode: Mode) -> Words:
    """Integers in the range of the type."""
    half = 1 << (mode.width - 1)
    limited = np.clip(exact, -half, half - 1) if mode.special else (exact + half) % (2 * half) - half
    return (limited & 0xFFFFFFFF).astype(np.uint32)


def _canonical(values: NDArray[np.float32]) -> Words:
    values = np.asarray(values, dtype=np.float32)
    return np.where(np.isnan(values), np.uint32(CANONICAL_NAN), values.view(np.uint32))


def _flushed(bits: Words) -> Words:
    return np.where(bits & _EXPONENT == 0, bits & _SIGN, bits)


def _rounded(bits: Words, mode: Mode) -> Words:
    """fp32 patterns rounded to the type."""
    if mode.width == 32:
        return bits
    odd = bits >> np.uint32(16) & np.uint32(1)
    return (bits + (np.uint32(0x7FFF) + odd)) & np.uint32(0xFFFF0000)


# The compiled functions are for use inside other compiled kernels. They are compiled without fastmath, and LLVM flags sit on
# the instructions, so a caller with fastmath that inlines them cannot relax them; nothing contracts a product and a
# sum into one rounding. Their operands must be slots as values have them, with nothing in the bits that a type does not use.


@njit(cache=True)
def add_bits(mode: Mode, a: int, b: int) -> np.uint32:
    """The sum of the values in slots ``a`` and ``b``."""
    if not mode.floating:
        return _fit(mode, np.int64(np.int32(a)) + np.int64(np.int32(b)))
    if mode.special:
        a, b = _flush(a), _flush(b)
    total = np.float32(np.uint32(a).view(np.float32) + np.uint32(b).view(np.float32))
    if np.isnan(total):
        return np.uint32(CANONICAL_NAN)
    bits = total.view(np.uint32)
    return _round(mode, _flush(bits) if mode.special else bits)


@njit(cache=True)
def mul_bits(mode: Mode, a: int, b: int) -> np.uint32:
    """The product of the values in slots ``a`` and ``b``."""
    if not mode.floating:
        return _fit(mode, np.int64(np.int32(a)) * np.int64(np.int32(b)))
    if mode.special:
        a, b = _flush(a), _flush(b)
    left, right = np.uint32(a).view(np.float32), np.uint32(b).view(np.float32)
    product = np.float32(left * right)
    if np.isnan(product):
        return np.uint32(CANONICAL_NAN)
    bits = product.view(np.uint32)
    if mode.special and abs(np.float64(left) * np.float64(right)) < _SMALLEST_NORMAL:
        bits = bits & _SIGN
    return _round(mode, bits)


@njit(cache=True)
def _fit(mode: Mode, exact: int) -> np.uint32:
    half = 1 << (mode.width - 1)
    if mode.special:
        return np.uint32(max(-half, min(exact, half - 1)) & 0xFFFFFFFF)
    return np.uint32((((exact + half) & (2 * half - 1)) - half) & 0xFFFFFFFF)


@njit(cache=True)
def _flush(bits: int) -> np.uint32:
    return np.uint32(bits & _SIGN) if bits & _EXPONENT == 0 else np.uint32(bits)


@njit(cache=True)
def _round(mode: Mode, bits: int) -> np.uint32:
    if mode.width == 32:
        return np.uint32(bits)
    odd = np.uint32(bits) >> np.uint32(16) & np.uint32(1)
    return np.uint32((np.uint32(bits) + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000))
