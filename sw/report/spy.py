"""Spy plots: where the nonzeros of a matrix lie, with the tile grid over them."""

import base64
import struct
import zlib

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["density", "png", "spy"]

SIDE = 270
GRID_LIMIT = 80
COLOUR = (42, 120, 214)


def density(matrix: sp.csr_array, side: int = SIDE) -> NDArray[np.int64]:
    """Stored elements in each cell of a picture whose longer side is at most ``side`` cells."""
    rows, columns = matrix.shape
    longest = max(rows, columns)
    height = max(1, min(rows, round(side * rows / longest))) if longest > side else rows
    width = max(1, min(columns, round(side * columns / longest))) if longest > side else columns
    row = np.repeat(np.arange(rows, dtype=np.int64), np.diff(matrix.indptr)) * height // rows
    column = matrix.indices.astype(np.int64) * width // columns
    return np.bincount(row * width + column, minlength=height * width).reshape(height, width)


def png(shade: NDArray[np.uint8]) -> bytes:
    """A picture in one colour whose opacity is ``shade``, so that it sits on light and dark pages alike."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width = shade.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), shade], axis=1)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
        + chunk(b"PLTE", bytes(COLOUR) * 256)
        + chunk(b"tRNS", bytes(range(256)))
        + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9))
        + chunk(b"IEND", b"")
    )


def spy(
    matrix: sp.csr_array,
    name: str,
    tile: tuple[int, int],
    ranks: str,
) -> str:
    """An SVG picture of ``matrix`` with lines between its tiles of ``tile`` rows and columns.

    ``ranks`` names the two ranks, rows first, as in ``"ik"``. Grids too fine to see are left out (the caption of the
    report gives the tile counts anyway).
    """
    rows, columns = (int(n) for n in matrix.shape)
    cells = density(matrix)
    # The darkest cell is opaque; a single element in a big cell must still be seen.
    most = cells.max(initial=0)
    shade = np.zeros(cells.shape, np.uint8)
    if most:
        strength = np.log1p(cells) / np.log1p(most)
        shade = np.where(cells > 0, 70 + np.rint(185 * strength), 0).astype(np.uint8)
    image = base64.b64encode(png(shade)).decode()
    scale = SIDE / max(rows, columns)
    width, height = max(columns * scale, 2.0), max(rows * scale, 2.0)
    lines = []
    for count, step, vertical in ((-(-rows // tile[0]), tile[0], False), (-(-columns // tile[1]), tile[1], True)):
        if not 1 < count <= GRID_LIMIT:
            continue
        for n in range(1, count):
            at = n * step * scale
            ends = f'x1="{at:.2f}" x2="{at:.2f}" y1="0" y2="{height:.2f}"' if vertical else (
                f'x1="0" x2="{width:.2f}" y1="{at:.2f}" y2="{at:.2f}"'
            )  # fmt: skip
            lines.append(f'<line class="tile" {ends}/>')
    return (
        f'<svg class="spy" role="img" aria-label="Nonzeros of {name}: {matrix.nnz:,} in {rows:,} x {columns:,}" '
        f'viewBox="-14 -14 {SIDE + 16} {height + 16:.1f}" '
        f'width="{SIDE + 16}" height="{height + 16:.1f}">'
        f'<rect class="frame" x="0" y="0" width="{width:.2f}" height="{height:.2f}"/>'
        f'<image width="{width:.2f}" height="{height:.2f}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{image}"/>'
        + "".join(lines)
        + f'<text class="rank" x="-4" y="10" text-anchor="end">{ranks[0]}</text>'
        f'<text class="rank" x="2" y="-4">{ranks[1]}</text></svg>'
    )
