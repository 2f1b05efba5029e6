"""Distinct numbers of an array. NumPy's own way hashes, which takes many times as long as sorting or marking."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["compacted", "distinct"]

Integer = TypeVar("Integer", bound=np.integer)

# So many times the array's length may be marked: beyond that, sorting is cheaper than looking at all marks.
MARKS = 8
FEW_MARKS = 1 << 20


def distinct(values: NDArray[Integer]) -> NDArray[Integer]:
    """The different ones of ``values``, rising."""
    ordered = np.sort(values)
    return ordered[np.concatenate([np.ones(min(1, len(ordered)), np.bool_), ordered[1:] != ordered[:-1]])]


def compacted(values: NDArray[np.integer], extent: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different ones of ``values``, from 0 to below ``extent``, rising, and the place of each value among them."""
    if extent > max(FEW_MARKS, MARKS * len(values)):
        used, places = np.unique(values, return_inverse=True)
        return used.astype(np.int64), places.astype(np.int64)
    marks = np.zeros(extent, np.bool_)
    marks[values] = True
    return np.flatnonzero(marks), (np.cumsum(marks) - 1)[values]
