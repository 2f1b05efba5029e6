"""The buffer of a weight-stationary PE, counted in nonzeros of its column of B."""

import numpy as np
from numpy.typing import NDArray

from sw.timing.hardware import REGION_PARTS

__all__ = ["nonzeros_of_buffer"]


def nonzeros_of_buffer(entries: int) -> NDArray[np.int64]:
    """int64[2, 3]: nonzeros of the buffer, of its part that stays, of its FIFO-managed region; of a column in CSC, and in Dense.

    In CSC a nonzero takes two of the ``entries``. In Dense it takes one (``rtl.pe.match_buffer``, ``rtl.pe.bumped_walk``).
    """
    pairs = entries // 2
    region = max(1, pairs // REGION_PARTS)
    return np.array([pairs, pairs - region, region], np.int64) * np.array([[1], [2]])
