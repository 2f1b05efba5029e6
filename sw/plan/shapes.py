"""Tiles of B whose shapes differ: where each ends."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from sw.scheme.explicit_tiles import steps

__all__ = ["TileShapes"]


@dataclass(frozen=True, kw_only=True)
class TileShapes:
    """The sides of each tile of B.

    Parameters
    ----------
    ends_j, ends_k: where the tiles that begin at j end along j, and the tile that begins at j, k along k.
    grain_j, grain_k: sides of a cell of the map of empty tiles: every tile is made of whole cells.
    """

    ends_j: dict[int, int]
    ends_k: dict[tuple[int, int], int]
    grain_j: int
    grain_k: int

    @classmethod
    def of(cls, tiles: list[list[int]], columns: int, inner: int) -> Self:
        """The shapes of explicit tiles of a B of ``inner`` rows and ``columns`` columns."""
        boxes = steps(tiles)
        ends_j = {j: end_j for j, end_j, _, _ in boxes}
        ends_k = {(j, k): end_k for j, _, k, end_k in boxes}
        grain_j = _grain((*ends_j, *ends_j.values()), columns)
        grain_k = _grain((*(k for _, k in ends_k), *ends_k.values()), inner)
        return cls(ends_j=ends_j, ends_k=ends_k, grain_j=grain_j, grain_k=grain_k)


def _grain(cuts: Iterable[int], size: int) -> int:
    """The longest side of which all begins and ends inside the operand are multiples."""
    return int(np.gcd.reduce([n for n in set(cuts) if n < size] or [size])) or size
