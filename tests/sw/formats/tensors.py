"""Tensors that formats are tried on: random, empty, full, of one entry, ragged, with the largest coordinates."""

from math import prod

import numpy as np

from sw.formats.csr import VALUE_DTYPES
from sw.formats.sparse_tensor import VALUE_BITS, SparseTensor

SPECIAL = {
    "int8": [-128, 127, -1, 1],
    "int16": [-(2**15), 2**15 - 1, -1, 1],
    "int32": [-(2**31), 2**31 - 1, -1, 1],
    "bf16": [1.5, -(2.0**-133), np.inf, 3.3895e38],
    "fp32": [1.1, -(2.0**-149), np.nan, -np.inf],
}


def values_of(count, value, zeros=False):
    """Values with the extremes of their type, and with zeros of both signs where those are wanted."""
    few = np.array(SPECIAL[value] + ([0, -0.0] if zeros else []))
    found = np.resize(few, count).astype(VALUE_DTYPES[value])
    if value == "bf16":
        found = (found.view(np.uint32) & 0xFFFF0000).view(np.float32)
    return found


def tensor(shape, positions, value="fp32", zeros=False):
    positions = np.unique(np.array(positions, np.uint64))
    return SparseTensor.from_positions(shape, positions, values_of(len(positions), value, zeros), value)


def drawn(shape, density, value="fp32", seed=1, zeros=False):
    chosen = np.flatnonzero(np.random.default_rng(seed).random(prod(shape)) < density)
    return tensor(shape, chosen, value, zeros)


def far(order, value="fp32"):
    """Entries at the first and the last place of the largest shape."""
    last = np.array([0, 2**32 - 1], np.int64)
    size = 1 << 32
    return SparseTensor(shape=(size,) * order, ids=(last,) * order, values=values_of(2, value), value=value)


def ragged(value="fp32"):
    """Rows of 0, 1, 2 ... entries, each at another place of the row."""
    return tensor((7, 13), [13 * row + (5 * row + column) % 13 for row in range(7) for column in range(row)], value)


def small_tensors(order):
    """Name and tensor; dense ones of them fit any memory."""
    shapes = [(1, 1), (1, 9), (9, 1), (7, 5), (16, 16), (33, 20)]
    if order == 3:
        shapes = [(1, 1, 1), (1, 1, 9), (9, 1, 2), (7, 5, 3), (8, 8, 8), (5, 20, 11)]
    for shape in shapes:
        name = "x".join(map(str, shape))
        count = prod(shape)
        yield f"{name}-empty", tensor(shape, [])
        yield f"{name}-full", tensor(shape, range(count))
        yield f"{name}-first", tensor(shape, [0])
        yield f"{name}-last", tensor(shape, [count - 1])
        for value in VALUE_BITS:
            yield f"{name}-{value}", drawn(shape, 0.3, value)
        yield f"{name}-sparse", drawn(shape, 0.02)
        yield f"{name}-zeros", drawn(shape, 0.5, zeros=True)
    if order == 2:
        yield "ragged", ragged()
        yield "one-row", tensor((50, 40), range(7 * 40, 8 * 40))
        yield "one-column", tensor((50, 40), range(7, 2000, 40))
        yield "diagonal", tensor((40, 40), range(0, 1600, 41))
        yield "anti-diagonal", tensor((40, 40), range(39, 1599, 39))
        yield "far-apart", tensor((300, 300), [3, 40, 72, 104, 137, 89_999])
