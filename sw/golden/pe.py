"""The function of the Gustavson PE, nonzero by nonzero: for unit tests, readable rather than fast."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arithmetic import VALUES, add, multiply

__all__ = ["JobLeaf", "merge_job", "reduce_run"]

Words = NDArray[np.uint32]


class JobLeaf(NamedTuple):
    """A fiber with ascending coordinates and what scales it, all as bit patterns; no weight: unscaled."""

    coordinates: Words
    values: Words
    weight: int | None


def merge_job(leaves: Sequence[JobLeaf], radix: int, value: str) -> tuple[Words, Words]:
    """The fiber that one job gives: coordinates and values, zeros kept.

    Parameters
    ----------
    leaves
        1 to ``radix`` leaves, all with nonzeros, or one without.
    radix
        Merge radix of the PE, a power of two.
    value
        One of ``arithmetic.VALUES``.
    """
    if value not in VALUES:
        raise ValueError(f"Value type must be one of {', '.join(VALUES)}, not {value!r}")
    if not 1 <= len(leaves) <= radix:
        raise ValueError(f"A job must have 1 to {radix} leaves, not {len(leaves)}")
    runs: dict[int, list[np.uint32]] = {}
    for number, leaf in enumerate(leaves):
        coordinates, values = _checked(number, leaf)
        if len(coordinates) == 0 and len(leaves) > 1:
            raise ValueError(f"Leaf {number} is empty and not the only leaf of its job")
        if leaf.weight is not None:
            values = multiply(np.asarray([leaf.weight], dtype=np.uint32), values, value=value)
        for coordinate, scaled in zip(coordinates.tolist(), values, strict=True):
            runs.setdefault(coordinate, []).append(scaled)
    order = sorted(runs)
    sums = [reduce_run(runs[coordinate], radix, value) for coordinate in order]
    return np.array(order, dtype=np.uint32), np.array(sums, dtype=np.uint32)


def reduce_run(run: Sequence[np.uint32], radix: int, value: str) -> np.uint32:
    """The sum of equal coordinates: log2(radix) stages, each adds neighbours, an odd last one passes unchanged."""
    values = np.array(run, dtype=np.uint32)
    for _ in range(radix.bit_length() - 1):
        paired = len(values) // 2 * 2
        sums = add(values[0:paired:2], values[1:paired:2], value=value)
        values = np.concatenate([sums, values[paired:]])
    if len(values) != 1:
        raise ValueError(f"A run of {len(run)} is longer than the merge radix {radix}")
    return values[0]


def _checked(number: int, leaf: JobLeaf) -> tuple[Words, Words]:
    coordinates, values = np.asarray(leaf.coordinates), np.asarray(leaf.values)
    if coordinates.dtype != np.uint32 or values.dtype != np.uint32:
        raise TypeError(f"Leaf {number} must hold uint32 words, not {coordinates.dtype} and {values.dtype}")
    if coordinates.shape != values.shape or coordinates.ndim != 1:
        raise ValueError(f"Leaf {number} has coordinates {coordinates.shape} but values {values.shape}")
    if np.any(coordinates[1:] <= coordinates[:-1]):
        raise ValueError(f"Coordinates of leaf {number} do not ascend")
    return coordinates, values
