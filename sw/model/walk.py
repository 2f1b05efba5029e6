"""The walk over tiles as the tiling controller does it: order, ragged edges, empty tiles, partial results."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Tile", "TileWalk"]


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One visited tile; fields as the controller's tile record (``rtl.types.tile``)."""

    i: int
    j: int
    k: int
    size_i: int
    size_j: int
    size_k: int
    index_i: int
    index_j: int
    index_k: int
    carry: bool
    partial_in: bool
    k_step: bool
    last_k: bool
    advance_a: bool
    advance_b: bool
    from_pointers_a: bool
    from_pointers_b: bool


class TileWalk:
    """Iterates over the tiles that are not skipped, and counts what the walk itself costs.

    Parameters
    ----------
    extent, tile: (I, J, K) and (T_i, T_j, T_k).
    order: inter-tile order, outermost first.
    occupied_a, occupied_b: bool[tiles_i, tiles_k] and bool[tiles_k, tiles_j].
    beat_bits: bits of a bus beat: so much of a tile map is read at a time.
    keep_a: A is in buffering mode, so that begin positions move on when its tile is loaded.
    """

    def __init__(
        self,
        extent: tuple[int, int, int],
        tile: tuple[int, int, int],
        order: str,
        occupied_a: NDArray[np.bool_],
        occupied_b: NDArray[np.bool_],
        beat_bits: int,
        keep_a: bool = False,
    ) -> None:
        self.extent = extent
        self.tile = tile
        self.order = order
        self.occupied_a = occupied_a
        self.occupied_b = occupied_b
        self.beat_bits = beat_bits
        self.keep_a = keep_a
        self.tiles = tuple(-(-n // t) for n, t in zip(extent, tile, strict=True))
        self.visited = 0
        self.empty = 0
        self.map_beats = {"A": 0, "B": 0}

    def __iter__(self) -> Iterator[Tile]:
        tiles_i, tiles_j, tiles_k = self.tiles
        counts = dict(zip("ijk", self.tiles, strict=True))
        order = self.order
        k_innermost = order[2] == "k"
        partial_of: tuple[int, int] | None = None  # with k innermost: the (i, j) that has partial rows
        k_before: int | None = None
        held = {"A": -1, "B": -1}
        a_stays = self.keep_a and (order[2] == "j" or tiles_i == 1)
        swept_a = order in ("ijk", "ikj", "jik")
        swept_b = order in ("ikj", "kij", "kji")
        at_before = (-1, -1)
        left_a = left_b = False  # the present sweep over k (over j) has left begin positions
        for outer in range(counts[order[0]]):
            for middle in range(counts[order[1]]):
                for inner in range(counts[order[2]]):
                    at = dict(zip(order, (outer, middle, inner), strict=True))
                    it, jt, kt = at["i"], at["j"], at["k"]
                    self.visited += 1
                    for tensor, index in (("A", it * tiles_k + kt), ("B", kt * tiles_j + jt)):
                        beat = index // self.beat_bits
                        if beat != held[tensor]:
                            held[tensor] = beat
                            self.map_beats[tensor] += 1
                    last_i, last_j, last_k = it == tiles_i - 1, jt == tiles_j - 1, kt == tiles_k - 1
                    # Interleaved sweeps that start again need positions from their first tile, empty or not.
                    must = (order == "jki" and kt == 0 and jt > 0 and not last_k) or (
                        order == "ijk" and jt == 0 and it > 0 and not last_j
                    )
                    empty = not must and not (self.occupied_a[it, kt] and self.occupied_b[kt, jt])
                    self.empty += empty
                    if kt == 0 and (jt == 0 or order[2] != "j"):
                        left_a = False
                    if jt == 0 and at_before != (jt, kt):
                        left_b = False
                    at_before = (jt, kt)
                    if empty and k_innermost and not last_k:
                        continue
                    begin = [n * t for n, t in zip((it, jt, kt), self.tile, strict=True)]
                    size = [min(t, n - b) for b, t, n in zip(begin, self.tile, self.extent, strict=True)]
                    advance_a = not last_k and (order.index("j") < order.index("k") or last_j or a_stays)
                    advance_b = not last_j and (order != "jik" or last_i or tiles_k == 1)
                    partial_in = partial_of == (it, jt) if k_innermost else kt != 0
                    yield Tile(
                        i=begin[0],
                        j=begin[1],
                        k=begin[2],
                        size_i=size[0],
                        size_j=size[1],
                        size_k=size[2],
                        index_i=it,
                        index_j=jt,
                        index_k=kt,
                        carry=empty,
                        partial_in=partial_in,
                        k_step=k_before != kt,
                        last_k=last_k,
                        advance_a=advance_a,
                        advance_b=advance_b,
                        from_pointers_a=kt == 0 or (swept_a and not left_a),
                        from_pointers_b=jt == 0 or (swept_b and not left_b),
                    )
                    left_a |= advance_a and not empty
                    left_b |= advance_b and not empty
                    k_before = kt
                    partial_of = (it, jt)
