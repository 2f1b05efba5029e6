"""Sizes of a random matrix in each format by density: MINT, section III.A and figure 4.

Every place holds a value with the same chance, independent of the others. Counts are expected ones, rounded, so that a curve
over densities needs no matrix of 121 million places.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from .storage import storage_format
from .storage.rlc import Rlc

__all__ = ["COMPARED", "expected_bits", "expected_counts", "smallest"]

#: The formats for memory that the paper compares.
COMPARED = ("dense", "coo", "csr", "csc", "rlc", "zvc")
EXPECTED = (*COMPARED, "csf")
# Terms that a sum is made of one by one, and the exponent from which on they are nothing.
MOST_TERMS = 1 << 22
NO_MORE = 50


def expected_counts(name: str, shape: Sequence[int], density: float, longest: int = Rlc().longest) -> dict[str, int]:
    """What :meth:`.storage_format.StorageFormat.counts` gives on average.

    ``name``: one of ``COMPARED``, or csf; ``density``: 0 to 1; ``longest``: run of zeros before a level, of rlc.
    """
    if name not in EXPECTED:
        raise ValueError(f"Format must be one of {', '.join(EXPECTED)}, not {name!r}")
    if not 0 <= density <= 1:
        raise ValueError(f"Density must be from 0 to 1, not {density!r}")
    count = prod(shape)
    nnz = round(count * density)
    if name == "dense":
        return {}
    if name == "csf":
        slices = [(prod(shape[:ranks]), prod(shape[ranks:])) for ranks in (1, 2)]
        first, second = (round(number * _some(size, density)) for number, size in slices)
        return {"ids_0": first, "ids_1": second, "nnz": nnz}
    return {"pairs": nnz + _fillers(count, density, longest + 1)} if name == "rlc" else {"nnz": nnz}


def _some(size: int, density: float) -> float:
    """The chance that so many places are not all empty."""
    return 1.0 if density == 1 else -float(np.expm1(size * np.log1p(-density)))


def _fillers(count: int, density: float, span: int) -> int:
    """Fillers before all values: a value has its m-th filler where m x ``span`` places before it are empty, 2^b of them."""
    if density in (0, 1):
        return 0
    rate = float(-span * np.log1p(-density))
    most = min((count - 1) // span, int(NO_MORE / rate) + 1)
    if most > MOST_TERMS:
        return round(density * _smooth(count, span, rate, most))
    empty = span * np.arange(1, most + 1, dtype=np.float64)
    return round(float(density * ((count - empty) * np.exp(empty * np.log1p(-density))).sum()))


def _smooth(count: int, span: int, rate: float, most: int) -> float:
    """The sum of (count - m span) e^(-rate m) over m from 1 to ``most``, as an integral."""
    if rate * most < 1e-6:
        return count * count / (2 * span)
    first, last = np.exp(-rate * np.array([0.5, most + 0.5]))
    return float(
        ((count - span / 2) * first - (count - span * (most + 0.5)) * last) / rate - span * (first - last) / rate**2
    )


def expected_bits(name: str, shape: Sequence[int], density: float, value: str) -> int:
    """The size in bits with the format's default parameters."""
    return storage_format(name).layout(shape, expected_counts(name, shape, density), value).bits


def smallest(shape: Sequence[int], density: float, value: str) -> str:
    """The most compact of ``COMPARED``."""
    return min(COMPARED, key=lambda name: expected_bits(name, shape, density, value))
