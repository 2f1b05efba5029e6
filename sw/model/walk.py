"""The walk over tiles as the tiling controller does it: order, ragged edges, empty tiles, partial results, tuned shapes."""

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sw.golden.partition import Capacity, Partition
from sw.golden.tuning import Counts, decide, legal_candidates
from sw.timing.hardware import ENTRY_BYTES

from .occupied import Occupied

__all__ = ["Rule", "Tile", "TileWalk", "Tuning", "hardware_rule"]

# From the counts, the capacities by the change of T_k, the legal changes and the sides (T_k, T_j) to a change of both.
Rule = Callable[[Counts, Mapping[int, Capacity], Container[tuple[int, int]], tuple[int, int]], tuple[int, int]]


def hardware_rule(
    counts: Counts, capacities: Mapping[int, Capacity], legal: Container[tuple[int, int]], sides: tuple[int, int]
) -> tuple[int, int]:
    """What the tuning unit decides."""
    return decide(counts, capacities, legal)


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One visited tile; fields as the controller's tile record (``rtl.types.tile``), and its place along i and j.

    ``step``: number of the k step, where parts of rows are joined; else 0.
    """

    i: int
    j: int
    k: int
    size_i: int
    size_j: int
    size_k: int
    index_i: int
    index_j: int
    step: int
    carry: bool
    partial_in: bool
    k_step: bool
    last_k: bool
    whole_j: bool
    whole_k: bool
    advance_a: bool
    advance_b: bool
    from_pointers_a: bool
    from_pointers_b: bool


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What dynamic tuning needs: the smallest sides along j and k, B's partition; another rule than the hardware's."""

    grain_j: int
    grain_k: int
    partition: Partition
    rule: Rule = hardware_rule


class TileWalk:
    """Iterates over the tiles that are not skipped, and counts what the walk itself costs.

    Parameters
    ----------
    extent, tile: (I, J, K) and (T_i, T_j, T_k) to begin with.
    order: inter-tile order, outermost first.
    occupied_a, occupied_b: which tiles hold anything, tiles_i x tiles_k and tiles_k x tiles_j, also as arrays of bool; of cells
        with the grains' sides where shapes are tuned.
    line_bits: bits of a line: so much of a tile map is read at a time.
    keep_a: A is in buffering mode, so that begin positions move on when its tile is loaded.
    b_fibers: the rank that numbers B's fibers, ``k`` (rows) or ``j`` (columns).
    joins: the last k step joins parts of rows, so that others without work are left out.
    windows: int[tiles_i, 2]: what each tile along i spans of k, begin and end, where k is not cut in steps. One that is
        empty is an empty tile; there are no maps then, ``occupied_a`` and ``occupied_b`` are not looked at.
    tuning: None where the shape stays. Else :meth:`loaded` is to be called for each tile of B that was put in place,
        before the next tile is asked for.

    ``tiles`` are the tile counts along i and j as far as walked; ``adjustments`` each change of shape: the number of the
    first tile that has it (skipped ones counted), T_j and T_k.
    """

    def __init__(
        self,
        extent: tuple[int, int, int],
        tile: tuple[int, int, int],
        order: str,
        occupied_a: Occupied | NDArray[np.bool_],
        occupied_b: Occupied | NDArray[np.bool_],
        line_bits: int,
        keep_a: bool = False,
        tuning: Tuning | None = None,
        windows: NDArray[np.int64] | None = None,
        b_fibers: str = "k",
        joins: bool = False,
    ) -> None:
        self.extent = extent
        # Ranks of B: the one along which its fibers run, and the one that numbers them. Its rules are those of an order in which
        # j and k have changed places where its fibers are columns.
        self._along, self._across = (1, 2) if b_fibers == "k" else (2, 1)
        self._order_of_b = order if b_fibers == "k" else order.translate(str.maketrans("jk", "kj"))
        self.shape = list(tile)
        self.order = order
        self.occupied_a, self.occupied_b = (
            found if isinstance(found, Occupied) else Occupied.in_table(found) for found in (occupied_a, occupied_b)
        )
        self.line_bits = line_bits
        self.keep_a = keep_a
        self.tuning = tuning
        self.windows = windows
        self.joins = joins
        self.grains = tile if tuning is None else (tile[0], tuning.grain_j, tuning.grain_k)
        self.tiles = (-(-extent[0] // tile[0]), 1)
        self.visited = 0
        self.empty = 0
        self.map_lines = {"A": 0, "B": 0}
        self.adjustments: list[tuple[int, int, int]] = []
        self._begin = [0, 0, 0]
        self._wanted = [0, 0, 0]
        self._held = {"A": -1, "B": -1}
        self._sweep = (-1, -1)
        self._useful = np.zeros(0, np.int64)

    def loaded(self, counts: Counts) -> None:
        """The present tile of B has been put in place; its quadrants hold so much."""
        tuning, begin, shape, extent = self.tuning, self._begin, self.shape, self.extent
        at_end = self._at_end()
        cut = any(at_end[r] and begin[r] and begin[r] + shape[r] != extent[r] for r in (1, 2))
        if tuning is None or cut or not any(counts):
            return
        spans = [begin[r] == 0 and at_end[r] for r in range(3)]
        capacities = {k: tuning.partition.capacity(min(_scaled(shape[2], k), extent[2])) for k in (-1, 0, 1)}
        sides, grains, extents = ((x[2], x[1]) for x in (shape, self.grains, extent))
        legal = legal_candidates(
            self.order, not spans[0], spans[1], spans[2], sides, grains, extents, tuning.partition.most_rows
        )
        self._wanted[2], self._wanted[1] = tuning.rule(counts, capacities, legal, (shape[2], shape[1]))

    def _at_end(self) -> list[bool]:
        return [b + t >= n for b, t, n in zip(self._begin, self.shape, self.extent, strict=True)]

    def _occupied(self, tensor: str, rank_rows: int, rank_columns: int, size: list[int]) -> bool:
        """Looks up the tile's cells, row by row, until one is occupied."""
        cells = self.occupied_a if tensor == "A" else self.occupied_b
        begins = [begin // grain for begin, grain in zip(self._begin, self.grains, strict=True)]
        count = [-(-n // grain) for n, grain in zip(size, self.grains, strict=True)]
        first, end = begins[rank_columns], begins[rank_columns] + count[rank_columns]
        for row in range(begins[rank_rows], begins[rank_rows] + count[rank_rows]):
            found = cells.first(row, first, end)
            self._look_up(tensor, row * cells.shape[1] + first, 1, min(found + 1, end) - first)
            if found < end:
                return True
        return False

    def _window(self, index: int) -> tuple[int, int]:
        """Looks up a window: where it begins, its size."""
        assert self.windows is not None
        line = 8 * ENTRY_BYTES * index // self.line_bits
        if line != self._held["A"]:
            self._held["A"] = line
            self.map_lines["A"] += 1
        begin, end = map(int, self.windows[index])
        return begin, end - begin

    def __iter__(self) -> Iterator[Tile]:
        order, begin, extent = self.order, self._begin, self.extent
        ranks = ["ijk".index(rank) for rank in reversed(order)]
        k_innermost = order[2] == "k"
        j_outside_k = order.index("j") < order.index("k")
        a_stays = self.keep_a and (order[2] == "j" or self.tiles[0] == 1)
        swept_a = order in ("ijk", "ikj", "jik")
        along, across, order_of_b = self._along, self._across, self._order_of_b
        swept_b = order_of_b in ("ikj", "kij", "kji")
        index_i = index_j = 0
        partial_exists = False  # with k innermost: this (i, j) has partial rows
        k_before: int | None = None
        left_a = left_b = False  # the present sweep over k (over j) has left begin positions
        while True:
            at_end = self._at_end()
            last_i, last_j, last_k = at_end
            size = [n - b if end else t for b, t, n, end in zip(begin, self.shape, extent, at_end, strict=True)]
            self.visited += 1
            span = begin[2], size[2]
            if self.windows is None:
                occupied = [self._occupied("A", 0, 2, size), self._occupied("B", 2, 1, size)]
            else:
                span = self._window(index_i)
                occupied = [span[1] > 0]
            # Interleaved sweeps that start again need positions from their first tile, empty or not.
            must = (order == "jki" and begin[2] == 0 and begin[1] > 0 and not last_k) or (
                order_of_b == "ijk" and begin[along] == 0 and begin[0] > 0 and not at_end[along]
            )
            empty = not must and not all(occupied)
            self.empty += empty
            skip = empty and (k_innermost or self.joins) and not last_k
            whole_k = begin[2] == 0 and last_k
            advance_a = not last_k and (j_outside_k or last_j or a_stays)
            # A tile of B with all fibers stays in place while i moves, unless tuning may cut it meanwhile.
            stays_b = begin[across] == 0 and at_end[across] and self.tuning is None
            advance_b = not at_end[along] and (order_of_b != "jik" or last_i or stays_b)
            partial_in = partial_exists if k_innermost else begin[2] != 0
            k_step = k_before != begin[2]
            if self.joins:
                partial_in = partial_in and last_k
                k_step = k_before is None or begin[2] < k_before
            if not skip:
                yield Tile(
                    i=begin[0],
                    j=begin[1],
                    k=span[0],
                    size_i=size[0],
                    size_j=size[1],
                    size_k=span[1],
                    index_i=index_i,
                    index_j=index_j,
                    step=begin[2] // self.shape[2] if self.joins else 0,
                    carry=empty,
                    partial_in=partial_in,
                    k_step=k_step,
                    last_k=last_k,
                    whole_j=begin[1] == 0 and last_j,
                    whole_k=whole_k,
                    advance_a=advance_a,
                    advance_b=advance_b,
                    from_pointers_a=begin[2] == 0 or (swept_a and not left_a),
                    from_pointers_b=begin[along] == 0 or (swept_b and not left_b),
                )
                k_before = begin[2]
            self.tiles = (self.tiles[0], index_j + 1)
            if all(at_end):
                return
            moves = [ranks[0]]
            for inner, rank in zip(ranks, ranks[1:], strict=False):
                if not at_end[inner]:
                    break
                moves.append(rank)
            left_a = (left_a or (advance_a and not empty)) and not (2 in moves and last_k)
            left_b = (left_b or (advance_b and not empty)) and not (
                across in moves or (along in moves and at_end[along])
            )
            partial_exists = not (0 in moves or 1 in moves) and (partial_exists or not skip)
            if 0 in moves:
                index_i = 0 if last_i else index_i + 1
            if 1 in moves:
                index_j = 0 if last_j else index_j + 1
            self._step(moves, at_end)
            if skip and moves == [2] and self.tuning is None and self.windows is None:
                self._leap(index_i, index_j)

    def _leap(self, index_i: int, index_j: int) -> None:
        """Goes on to the next k tile with work, or the last one, in one step: those between are empty and skipped, too.

        They count as visited, and their bits of the maps are looked up.
        """
        step = self.shape[2]
        now, last = self._begin[2] // step, -(-self.extent[2] // step) - 1
        if self._sweep != (index_i, index_j):
            self._sweep = (index_i, index_j)
            in_a, in_b = self.occupied_a.in_row(index_i), self.occupied_b.in_column(index_j)
            self._useful = np.intersect1d(in_a, in_b, assume_unique=True)
        at = int(np.searchsorted(self._useful, now))
        target = min(last, int(self._useful[at])) if at < len(self._useful) else last
        count = target - now
        if count < 1:
            return
        self.visited += count
        self.empty += count
        across = self.occupied_b.shape[1]
        self._look_up("A", index_i * self.occupied_a.shape[1] + now, 1, count)
        self._look_up("B", now * across + index_j, across, count)
        self._begin[2] = target * step

    def _look_up(self, tensor: str, first: int, stride: int, count: int) -> None:
        """Bits ``first``, ``first + stride`` ... of a map: counts the lines that hold them."""
        begin, end = first // self.line_bits, (first + stride * (count - 1)) // self.line_bits
        lines = count if stride >= self.line_bits else end - begin + 1
        self.map_lines[tensor] += lines - (begin == self._held[tensor])
        self._held[tensor] = end

    def _step(self, moves: list[int], at_end: list[bool]) -> None:
        """Begins move on by the present shape; ranks that move take the shape that was wanted of them."""
        for rank in moves:
            self._begin[rank] = 0 if at_end[rank] else self._begin[rank] + self.shape[rank]
        changing = [rank for rank in moves if self._wanted[rank]]
        for rank in changing:
            self.shape[rank] = _scaled(self.shape[rank], self._wanted[rank])
            self._wanted[rank] = 0
        if changing:
            self.adjustments.append((self.visited, self.shape[1], self.shape[2]))


def _scaled(side: int, change: int) -> int:
    return side << 1 if change > 0 else side >> 1 if change < 0 else side
