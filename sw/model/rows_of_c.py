"""Rows of C on their way out: partial rows that come back, finished parts of rows that wait for the others, positions."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.formats.csr import Csr
from sw.plan.gather import Index
from sw.plan.plan import Plan
from sw.timing.constants import PARTS_LINE_CYCLES
from sw.timing.record_beats import fetched_lines

from .converted_tensor import ConvertedTensor
from .kernels import kept_rows
from .reads import Reads
from .segments import Segments
from .walk import Tile

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["Back", "JoinedRows", "RowsOfC", "rows_of"]


def rows_of(tile: Tile) -> tuple[int, int]:
    """The first row of a tile, and the one after its last."""
    return tile.i, tile.i + tile.size_i


class Back(NamedTuple):
    """Fibers of C that come back to the rows of a tile, row by row.

    Parameters
    ----------
    rows: int64[rows + 1], where the fibers of each row begin among all.
    lengths, begins: nonzeros of each fiber, and the position in memory of the first one, -1 on chip.
    first, last: positions in A of the nonzeros that it comes of.
    """

    rows: Index
    lengths: Index
    begins: Index
    first: Index
    last: Index

    @classmethod
    def none(cls, rows: int) -> "Back":
        """No fiber for any of ``rows`` rows."""
        return cls(np.zeros(rows + 1, np.int64), *(np.zeros(0, np.int64) for _ in range(4)))


class RowsOfC:
    """Where rows of C are, tile after tile.

    Parameters
    ----------
    design, planned: of the run. reads: counts what moves. rows: of C. tiles_i: tiles along i.
    a_places: int64, for each nonzero of A its row of B. row_starts: int64[rows], where the rows of A begin.
    """

    def __init__(
        self,
        design: "Design",
        planned: Plan[Csr],
        reads: Reads,
        rows: int,
        tiles_i: int,
        a_places: Index,
        row_starts: Index,
    ) -> None:
        scheme = planned.scheme
        self.reads = reads
        self.beats = reads.beats
        self.converted = ConvertedTensor("write_c_data", planned.stored_c, design.bus_bytes, rows, reads.beats)
        self.rows, self.tiles_i = rows, tiles_i
        self.a_places = a_places
        self.row_starts = row_starts
        self.on_chip = scheme.buffers("C")
        self._half = scheme.half_for_partial_rows(design)
        self.final_position = self.partial_position = 0
        # By place along i and j: nonzeros of partial rows and which of them lie in memory, and from which position on.
        self._partial: dict[tuple[int, int], tuple[Index, NDArray[np.bool_]]] = {}
        self._partial_base: dict[tuple[int, int], int] = {}
        self._finished: dict[tuple[int, int], tuple[Index, int]] = {}

    def _index(self, tile: Tile) -> int:
        """The first word of a tile's rows in the table of positions."""
        return tile.index_j * (self.rows + self.tiles_i) + tile.i + tile.index_i

    def back(self, tile: Tile) -> tuple[Index, NDArray[np.bool_], int]:
        """Partial rows come back: their nonzeros, which of them lie in memory, and from which position on."""
        place = (tile.index_i, tile.index_j)
        base = self._partial_base.get(place, 0)
        if not tile.partial_in:
            return np.zeros(tile.size_i, np.int64), np.ones(tile.size_i, np.bool_), base
        if not self.on_chip:
            self.beats["read_c_meta"] += self.reads.word_beats(self._index(tile), tile.size_i + 1)
        return *self._partial[place], base

    def fibers(self, tile: Tile, at: Segments, partial: Index, spilled: NDArray[np.bool_], base: int) -> Back:
        """What comes back as the engine meets it, of what :meth:`back` says."""
        first, last = rows_of(tile)
        some = partial > 0
        in_memory = np.where(spilled, partial, 0)
        begins = np.where(spilled, base + np.cumsum(in_memory) - in_memory, -1)
        rows = np.append(0, np.cumsum(some))
        starts = self.row_starts[first:last]
        return Back(rows, partial[some], begins[some], starts[some], at.a_begin[first:last][some])

    def search(self, tile: Tile, latency: int) -> tuple[int, int, int]:
        """Cycles in which rows and what comes back to them are found; lines that say where that is; cycles before."""
        return tile.size_i, 0, 0

    def follow(self, nonzeros: int) -> tuple[int, int]:
        """Positions of rows that follow the rows before without a gap."""
        begin, self.final_position = self.final_position, self.final_position + nonzeros
        return begin, self.final_position

    def go_on(self, tile: Tile, nonzeros: int) -> None:
        """Gathered: rows leave for good, and those of the next tile follow them."""
        begin, end = self.follow(nonzeros)
        if self.converted.enabled:
            self.converted.stream(rows_of(tile))
            return
        self.reads.go_on("write_c", rows_of(tile), self.reads.result_beats(0, end) - self.reads.result_beats(0, begin))

    def leave(self, tile: Tile, at: Segments, partial: Index, lengths: Index) -> None:
        """Rows leave: for good, for the pass that joins j tiles, or as partial rows."""
        place = (tile.index_i, tile.index_j)
        nonzeros = int(lengths.sum())
        if tile.k_step:
            self.partial_position = 0
        if tile.last_k:
            base, _ = self.follow(nonzeros)
            self._partial.pop(place, None)
            if not tile.whole_j:
                self._finished[place] = lengths, base
        else:
            stays = self._stay(tile, at, partial, lengths) if self.on_chip else np.zeros(tile.size_i, np.bool_)
            nonzeros = int(lengths[~stays].sum())
            base, self.partial_position = self.partial_position, self.partial_position + nonzeros
            self._partial[place], self._partial_base[place] = (lengths, ~stays), base
        if tile.last_k and tile.whole_j:
            if self.converted.enabled:
                self.converted.stream(rows_of(tile))
                return
            self.beats["write_c_data"] += self.reads.result_beats(base, nonzeros)
        else:
            self.beats["write_c_data"] += self.reads.line_beats * int(fetched_lines(base, nonzeros, self.reads.lanes))
        if tile.last_k or not self.on_chip:
            first = tile.i if tile.last_k and tile.whole_j else self._index(tile)
            self.beats["write_c_meta"] += self.reads.word_beats(first, tile.size_i + 1)

    def finish(self, nonzeros: int) -> None:
        """All rows leave for good, once the tiles along j are joined."""
        if self.converted.enabled:
            self.converted.stream((0, self.rows))
            return
        self.beats["write_c_data"] += self.reads.result_beats(0, nonzeros)
        self.beats["write_c_meta"] += self.reads.word_beats(0, self.rows + 1)

    def _stay(self, tile: Tile, at: Segments, partial: Index, lengths: Index) -> NDArray[np.bool_]:
        """Which partial rows stay on chip."""
        kept: NDArray[np.bool_] = kept_rows(
            *rows_of(tile),
            at.a_begin,
            at.a_end,
            self.a_places,
            at.b_begin,
            at.b_end,
            tile.carry,
            partial,
            tile.size_j,
            lengths,
            self._half.resident(tile.size_i),
        )
        return kept

    def parts(self, tile_i: int, tiles_j: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """int64[rows, tiles_j]: nonzeros of each finished part of a row, and where they begin. ``tile_i``: rows of a tile."""
        lengths = np.zeros((self.rows, tiles_j), np.int64)
        begins = np.zeros((self.rows, tiles_j), np.int64)
        for (it, jt), (of_rows, base) in self._finished.items():
            first = it * tile_i
            lengths[first : first + len(of_rows), jt] = of_rows
            begins[first : first + len(of_rows), jt] = base + np.cumsum(of_rows) - of_rows
        return lengths, begins


class JoinedRows(RowsOfC):
    """Where rows of C are while each k step writes its parts of them, and the last one joins these."""

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        # By place along i and j, for each k step that has visited it: nonzeros of its parts, where the first one begins, and the
        # positions in A that they come of.
        self._parts: dict[tuple[int, int], list[tuple[Index, int, Index, Index]]] = {}
        # Of the present tile: cycles in which parts are found, cycles in which lines are asked for, and the lines of positions.
        self._found = self._asked = self._lines = 0

    def back(self, tile: Tile) -> tuple[Index, NDArray[np.bool_], int]:
        """The positions of all parts are read, a line of each step first, which says whether the step has visited the tile."""
        nothing = np.zeros(tile.size_i, np.int64), np.ones(tile.size_i, np.bool_), 0
        self._found = self._asked = self._lines = 0
        if tile.partial_in:
            words = 2 * self.reads.lanes
            lines = -(-(self._index(tile) % words + tile.size_i + 1) // words)
            read = tile.step + len(self._parts.get((tile.index_i, tile.index_j), ())) * (lines - 1)
            self.beats["read_c_meta"] += self.reads.line_beats * read
            self._found, self._lines = PARTS_LINE_CYCLES * read + lines, read
            # Behind the first lines each step is passed in a cycle, whether it has the tile or not.
            self._asked = tile.step * (lines - 1)
        return nothing

    def fibers(self, tile: Tile, at: Segments, partial: Index, spilled: NDArray[np.bool_], base: int) -> Back:
        """The parts of each row, the earliest step first."""
        steps = self._parts.pop((tile.index_i, tile.index_j), []) if tile.last_k else []
        if not steps:
            return Back.none(tile.size_i)
        lengths, begins, first, last = (
            np.stack(found, axis=1)
            for found in zip(
                *((of, where + np.cumsum(of) - of, begin, end) for of, where, begin, end in steps), strict=True
            )
        )
        some = lengths > 0
        rows = np.append(0, np.cumsum(some.sum(axis=1)))
        self._found += int(np.maximum(1, some.sum(axis=1)).sum())
        return Back(rows, lengths[some], begins[some], first[some], last[some])

    def search(self, tile: Tile, latency: int) -> tuple[int, int, int]:
        # The first lines say which others are asked for.
        waits = latency + PARTS_LINE_CYCLES * tile.step if self._lines else 0
        return max(self._found, self._asked, tile.size_i), self._lines, waits

    def leave(self, tile: Tile, at: Segments, partial: Index, lengths: Index) -> None:
        """Rows leave for good, or for the pass that joins j tiles; before the last k step parts of them leave to wait for it."""
        if tile.last_k:
            super().leave(tile, at, partial, lengths)
            return
        if tile.k_step:
            self.partial_position = 0
        nonzeros, (first, last) = int(lengths.sum()), rows_of(tile)
        base, self.partial_position = self.partial_position, self.partial_position + nonzeros
        made_of = at.a_begin[first:last].copy(), at.a_end[first:last].copy()
        self._parts.setdefault((tile.index_i, tile.index_j), []).append((lengths, base, *made_of))
        self.beats["write_c_data"] += self.reads.line_beats * int(fetched_lines(base, nonzeros, self.reads.lanes))
        self.beats["write_c_meta"] += self.reads.word_beats(self._index(tile), tile.size_i + 1)
