"""Convolution of images by a layer's weights, directly: SciPy slides the kernel, nothing is unfolded."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.signal import correlate

__all__ = ["direct_convolution"]


def direct_convolution(
    image: tuple[int, int, int], kernel: tuple[int, int], stride: int, padding: int, dilation: int
) -> Callable[[sp.csr_array, sp.csr_array], sp.csr_array]:
    """``multiply(weights, images)`` of :func:`.compare.check_against_scipy`.

    Parameters
    ----------
    image: channels, height, width. kernel: height, width.

    ``weights`` are out x (C KH KW), ``images`` (N C) x (H W), the result is out x (N OH OW). Zeros of the result are not stored.
    """

    def multiply(weights: sp.csr_array, images: sp.csr_array) -> sp.csr_array:
        filters = weights.toarray().reshape(-1, image[0], *kernel)
        spread = np.zeros((*filters.shape[:2], *(dilation * (side - 1) + 1 for side in kernel)), filters.dtype)
        spread[:, :, ::dilation, ::dilation] = filters
        planes = images.toarray().reshape(-1, *image)
        padded = np.pad(planes, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
        found: list[list[Any]] = [
            [correlate(one, each, mode="valid", method="direct")[0, ::stride, ::stride] for one in padded]
            for each in spread
        ]
        return sp.csr_array(np.array(found).reshape(len(filters), -1))

    return multiply
