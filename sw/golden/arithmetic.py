"""What the adders and multipliers compute, bit for bit: vectorised for arrays, compiled for single values.

Operands and results are bit patterns in unsigned 32-bit words, whatever the value type:

- ``int32``: two's complement; results wrap, or clamp to the range of the type with ``saturate``.
- ``fp32``: IEEE 754 binary32, rounded to nearest even, subnormals kept; every NaN result is ``CANONICAL_NAN``. With
  ``flush_subnormals`` a subnormal operand counts as a zero of its sign, and a result whose exact value is smaller in
  magnitude than 2**-126 becomes a zero of its sign.
"""

from collections.abc import Callable

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "CANONICAL_NAN",
    "VALUES",
    "add",
    "add_bits_fp32",
    "add_bits_int32",
    "mul_bits_fp32",
    "mul_bits_int32",
    "multiply",
    "scalar_operators",
]

CANONICAL_NAN = 0x7FC00000
VALUES = ("int32", "fp32")

_SIGN = np.uint32(0x80000000)
_EXPONENT = np.uint32(0x7F800000)
_SMALLEST_NORMAL = 2.0**-126

Words = NDArray[np.uint32]


def add(a: ArrayLike, b: ArrayLike, *, value: str, saturate: bool = False, flush_subnormals: bool = False) -> Words:
    """Elementwise ``a + b`` of bit patterns, with broadcasting."""
    a, b = _operands(a, b, value, saturate, flush_subnormals)
    if value == "int32":
        total = a.view(np.int32).astype(np.int64) + b.view(np.int32).astype(np.int64)
        return _int32(total, saturate)
    if flush_subnormals:
        a, b = _flushed(a), _flushed(b)
    with np.errstate(all="ignore"):
        bits = _canonical(a.view(np.float32) + b.view(np.float32))
    # A sum in the subnormal range is always exact, so rounding cannot have moved it across the border.
    return _flushed(bits) if flush_subnormals else bits


def multiply(
    a: ArrayLike, b: ArrayLike, *, value: str, saturate: bool = False, flush_subnormals: bool = False
) -> Words:
    """Elementwise ``a * b`` of bit patterns, with broadcasting."""
    a, b = _operands(a, b, value, saturate, flush_subnormals)
    if value == "int32":
        product = a.view(np.int32).astype(np.int64) * b.view(np.int32).astype(np.int64)
        return _int32(product, saturate)
    if flush_subnormals:
        a, b = _flushed(a), _flushed(b)
    with np.errstate(all="ignore"):
        bits = _canonical(a.view(np.float32) * b.view(np.float32))
        if flush_subnormals:
            # Two 24-bit significands make a product that float64 holds exactly.
            exact = a.view(np.float32).astype(np.float64) * b.view(np.float32).astype(np.float64)
            bits = np.where(np.abs(exact) < _SMALLEST_NORMAL, bits & _SIGN, bits)
    return bits


def _operands(a: ArrayLike, b: ArrayLike, value: str, saturate: bool, flush_subnormals: bool) -> tuple[Words, Words]:
    if value not in VALUES:
        raise ValueError(f"Value type must be one of {', '.join(VALUES)}, not {value!r}")
    if saturate and value != "int32":
        raise ValueError(f"Saturation is defined for int32, not for {value}")
    if flush_subnormals and value != "fp32":
        raise ValueError(f"Flushing of subnormals is defined for fp32, not for {value}")
    words = []
    for operand in (a, b):
        array = np.ascontiguousarray(operand)
        if array.dtype != np.uint32:
            raise TypeError(f"Operands must be bit patterns of dtype uint32, not {array.dtype}")
        words.append(array.reshape(np.shape(operand)))
    return words[0], words[1]


def _int32(exact: NDArray[np.int64], saturate: bool) -> Words:
    if saturate:
        exact = np.clip(exact, -(2**31), 2**31 - 1)
    return (exact & 0xFFFFFFFF).astype(np.uint32)


def _canonical(values: NDArray[np.float32]) -> Words:
    values = np.asarray(values, dtype=np.float32)
    return np.where(np.isnan(values), np.uint32(CANONICAL_NAN), values.view(np.uint32))


def _flushed(bits: Words) -> Words:
    return np.where(bits & _EXPONENT == 0, bits & _SIGN, bits)


# The scalar functions are for use inside other compiled kernels. They are compiled without fastmath, and LLVM flags sit on
# the instructions, so a caller with fastmath that inlines them cannot relax them; nothing contracts a product and a
# sum into one rounding.


@njit(cache=True)
def add_bits_int32(a: int, b: int) -> np.uint32:
    """Low 32 bits of ``a + b``."""
    return np.uint32((np.uint64(a) + np.uint64(b)) & np.uint64(0xFFFFFFFF))


@njit(cache=True)
def mul_bits_int32(a: int, b: int) -> np.uint32:
    """Low 32 bits of ``a * b``."""
    return np.uint32((np.uint64(a) * np.uint64(b)) & np.uint64(0xFFFFFFFF))


@njit(cache=True)
def add_bits_fp32(a: int, b: int) -> np.uint32:
    """Bits of the binary32 sum of the numbers encoded by ``a`` and ``b``."""
    total = np.float32(np.uint32(a).view(np.float32) + np.uint32(b).view(np.float32))
    if np.isnan(total):
        return np.uint32(CANONICAL_NAN)
    return total.view(np.uint32)


@njit(cache=True)
def mul_bits_fp32(a: int, b: int) -> np.uint32:
    """Bits of the binary32 product of the numbers encoded by ``a`` and ``b``."""
    product = np.float32(np.uint32(a).view(np.float32) * np.uint32(b).view(np.float32))
    if np.isnan(product):
        return np.uint32(CANONICAL_NAN)
    return product.view(np.uint32)


ScalarOperator = Callable[[int, int], np.uint32]


def scalar_operators(value: str) -> tuple[ScalarOperator, ScalarOperator]:
    """The compiled ``add_bits`` and ``mul_bits`` of a value type, with the machine's defaults (wrap; subnormals kept).

    Take them outside a kernel and use them inside: Numba binds functions when it compiles.
    """
    if value == "int32":
        return add_bits_int32, mul_bits_int32
    if value == "fp32":
        return add_bits_fp32, mul_bits_fp32
    raise ValueError(f"Value type must be one of {', '.join(VALUES)}, not {value!r}")
