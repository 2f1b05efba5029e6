"""Images unfolded for a convolution: ``im2col:CxHxW:KHxKW[:stride=N][:padding=N][:dilation=N]:OPERAND``.

The product of a layer's weights (out x (in kh kw), as :mod:`.networks` unfolds them) and the unfolded images is the convolution,
a column for each place of the output.
"""

import re
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from gen.design import did_you_mean

from .errors import OperandError
from .memory import require_memory
from .operand import COORDINATE_LIMIT, Operand
from .window import Unfolded, Window

__all__ = ["IM2COL", "read_im2col"]

IM2COL = "im2col"
FORM = f"{IM2COL}:CxHxW:KHxKW[:stride=N][:padding=N][:dilation=N]:OPERAND"
# Bytes that an unfolded nonzero takes while the matrix is made.
ENTRY_BYTES = 64
MOST = 1 << 20


def read_im2col(argument: str, source: str, load: Callable[[str], Operand]) -> Operand:
    """The operand (C KH KW) x (N OH OW): row ``(c KH + ky) KW + kx``, column ``(n OH + y) OW + x``.

    Parameters
    ----------
    argument: what follows ``im2col:``. source: the whole, for messages. load: reads OPERAND, whose entries are, row by row,
        those of N images of C x H x W; N follows from their number.

    Raises OperandError.
    """
    shape, _, rest = argument.partition(":")
    kernel, _, rest = rest.partition(":")
    sizes, sides = _numbers("CxHxW", shape, 3, source), _numbers("KHxKW", kernel, 2, source)
    steps = {"stride": 1, "padding": 0, "dilation": 1}
    while found := re.match(r"([a-z]+)=([^:]*)(?::|$)", rest):
        name, least = found[1], 0 if found[1] == "padding" else 1
        if name not in steps:
            raise OperandError(f"{source}: {name}: must be one of {', '.join(steps)}{did_you_mean(name, list(steps))}")
        if not re.fullmatch("[0-9]{1,7}", found[2]) or not least <= int(found[2]) <= MOST:
            raise OperandError(f"{source}: {name} {found[2]!r}: must be a whole number from {least} to {MOST}")
        steps[name] = int(found[2])
        rest = rest[found.end() :]
    if not rest:
        raise OperandError(f"{source}: the images are missing: must be {FORM}")
    window = Window(image=(sizes[0], sizes[1], sizes[2]), kernel=(sides[0], sides[1]), **steps)
    if min(window.output) < 1:
        padded = " x ".join(str(size + 2 * window.padding) for size in window.image[1:])
        wide = " x ".join(str(window.dilation * (side - 1) + 1) for side in window.kernel)
        raise OperandError(f"{source}: the kernel covers {wide} of {padded}: must be at most the image and its padding")
    given = load(rest)
    images = _images(given, window, source)
    return Operand(
        name=f"{IM2COL}-{given.name}",
        source=source,
        matrix=_unfold(images, window, source),
        symmetric_expanded=given.symmetric_expanded,
        unfolded=Unfolded(window=window, images=images),
    )


def _numbers(form: str, text: str, count: int, source: str) -> list[int]:
    parts = text.split("x")
    good = len(parts) == count and all(re.fullmatch("[0-9]{1,7}", part) and 1 <= int(part) <= MOST for part in parts)
    if not good:
        raise OperandError(f"{source}: {form} {text!r}: must be {count} whole numbers from 1 to {MOST}, as in {FORM}")
    return [int(part) for part in parts]


def _images(given: Operand, window: Window, source: str) -> sp.csr_array:
    """(N C) x (H W), from a matrix of any shape with as many entries, row by row."""
    channels, height, width = window.image
    size, entries = channels * height * width, given.shape[0] * given.shape[1]
    if entries % size or not entries:
        allowed = f"a multiple of {size} entries, {' x '.join(map(str, window.image))} for each"
        raise OperandError(f"{source}: the images are {given.shape[0]} x {given.shape[1]}: must have {allowed}")
    found = sp.coo_array(given.matrix)
    rows, columns = found.coords
    place = rows.astype(np.int64) * given.shape[1] + columns
    area = height * width
    return sp.csr_array((found.data, (place // area, place % area)), shape=(entries // area, area))


def _unfold(images: sp.csr_array, window: Window, source: str) -> sp.coo_array:
    """Each nonzero goes to the places of the output whose window has it."""
    channels, _, width = window.image
    (tall, wide), (out_tall, out_wide) = window.kernel, window.output
    shape = (channels * tall * wide, images.shape[0] // channels * out_tall * out_wide)
    if max(shape) > COORDINATE_LIMIT:
        raise OperandError(f"{source}: unfolds to {shape[0]} x {shape[1]}: at most {COORDINATE_LIMIT} rows and columns")
    require_memory(ENTRY_BYTES * images.nnz * min(tall * wide, shape[1]), source)
    found = sp.coo_array(images)
    image, channel = np.divmod(found.coords[0].astype(np.int64), channels)
    y, x = np.divmod(found.coords[1].astype(np.int64), width)
    rows, columns, data = [], [], []
    for ky in range(tall):
        for kx in range(wide):
            top, down = np.divmod(y + window.padding - ky * window.dilation, window.stride)
            left, right = np.divmod(x + window.padding - kx * window.dilation, window.stride)
            met = (down == 0) & (right == 0) & (top >= 0) & (left >= 0) & (top < out_tall) & (left < out_wide)
            rows.append((channel[met] * tall + ky) * wide + kx)
            columns.append((image[met] * out_tall + top[met]) * out_wide + left[met])
            data.append(found.data[met])
    return sp.coo_array((np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))), shape=shape)
