"""Which rows of B the tiles of A load: those that they use and no tile before them has left in place.

Each row of A uses a few rows of B, neighbouring rows of A often the same. As in HARP (HYTE, section 2) a tile of A needs just
the rows that it uses; here they are also kept for the tiles after it, first in, first out. Rows stand in a list in the order
in which they are loaded: a tile has a window of the list, and a nonzero of A says where in the list its row stands. Where the
list counts B's rows from the first one on, a window is a range of k, and the hardware needs no list.

With ``bypass`` a row that its tile uses once stays only if it is used again before it would leave. All others go by, bumped, and
leave the room to those that come again. What is used again is known beforehand, as in Belady's replacement.

B's partition is a ring. Each tile loads its new rows behind those that are there already, into lines whose rows no tile wants
any more until they are loaded again; one entry of metadata for each row lies in a ring of its own. HYTE's static scheduler and
its hardware divide the work alike: what follows from the operands alone is decided here.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.plan.thresholds import BYPASS_LIFE, BYPASS_LINES, BYPASS_NEWEST, BYPASS_ROWS, FEW_NUMBERS, SPARE_ENTRIES
from sw.scheme.errors import SchemeError
from sw.timing.hardware import MOST_LINES

__all__ = [
    "Index",
    "RowPlan",
    "RowPlanError",
    "Rows",
    "TileOfB",
    "Uses",
    "free_lines",
    "gather",
    "mean_length",
    "metadata_lines",
    "used_rows",
    "uses_of",
]


Index = NDArray[np.int64]


class Rows(Protocol):
    """Where a matrix has its nonzeros: int[rows + 1] begins of rows in int[nnz] columns."""

    @property
    def pointers(self) -> NDArray[Any]: ...
    @property
    def coordinates(self) -> NDArray[Any]: ...


class RowPlanError(SchemeError):
    """A tile uses more rows than the partition has entries for."""

    def __init__(self, side: str, size: int, tile: int, rows: int, entries: int) -> None:
        why = f"smaller: tile {tile} along i uses {rows} rows of B, B's partition has entries for {entries}"
        super().__init__(side, size, why)


@dataclass(frozen=True)
class TileOfB:
    """Rows of B that one tile finds in place, loads, and uses from memory; ``early``: it loads beside the tile before.

    A row that was bumped and is loaded again is in ``bumped``, too, as long as the window holds its first place.
    """

    resident: Index
    loaded: Index
    bumped: Index
    early: bool


@dataclass(frozen=True, eq=False)
class RowPlan:
    """What each tile finds, loads and bumps of B. int64[tiles] where nothing else is said.

    Parameters
    ----------
    rows: int64[entries], the row of B at each place of the list; None where place n is row n.
    lines: int64[entries], the line of the partition where each of them begins; -1 where it has none, empty or bumped.
    places: int64[nnz of A], the place of each nonzero's row; empty where nobody asked for them.
    windows: int64[tiles, 2], begin and end of each tile's part of the list.
    kept: rows at its begin that are there already; 0 where a chain of tiles begins anew.
    line, free: first line, counted from the partition's, for the rows that follow, and how many they may take.
    metadata: lines of the ring of metadata, at the partition's end.
    placed: how many of the rows that follow find room; the others are bumped for as long as windows hold them.
    read: how many of them the load reads: those that are placed, and what was found not to fit only when it had come.
    early: bool[tiles], none of the lines that a tile fills holds a row that the tile before uses, and it keeps some rows.
    entries: int64[entries], the entry of metadata of the row at each place, where the plan chooses it and its lines
        (:mod:`.replacement`); None where rows and entries follow one another. Where there are some, ``windows`` begin at the
        list's begin, rows before ``kept`` may have left, a bumped row is away from the next tile on, and ``free`` are the lines
        that nothing lies in once the tile has been loaded.
    most_loaded: rows that any tile loads, where there are ``entries``.
    """

    rows: Index | None
    lines: Index
    places: Index
    windows: Index
    kept: Index
    line: Index
    free: Index
    metadata: Index
    placed: Index
    read: Index
    early: NDArray[np.bool_]
    entries: Index | None = None
    most_loaded: int = 0

    @cached_property
    def fresh(self) -> Index:
        """First place that each tile loads."""
        found: Index = self.windows[:, 0] + self.kept
        return found

    @property
    def list_words(self) -> int:
        """Words that the list has for each place: where the row begins and ends, and where it goes if the plan says so."""
        return 0 if self.rows is None else 2 if self.entries is None else 3

    @property
    def entry_bits(self) -> int:
        """Bits of the entry that a coordinate of A names, where there are ``entries``; else 0."""
        return 0 if self.entries is None else int(self.entries.max(initial=0)).bit_length()

    def named(self, a: Rows, begins: Index) -> Index:
        """int64[nnz of A]: where there are ``entries``, what each nonzero of A has for a coordinate: an entry, and above it which
        load of its tile the row comes with, from 1 on, or 0 where it is there already."""
        assert self.entries is not None
        fresh = np.repeat(self.fresh, np.diff(a.pointers[begins]))
        return self.entries[self.places] | np.maximum(self.places - fresh + 1, 0) << self.entry_bits

    @property
    def coordinates(self) -> int:
        """How many different coordinates A's nonzeros may have: one for each place, or an entry and which load of its tile a row
        comes with, 0 for one that is there already."""
        if self.entries is None:
            return max(1, len(self.lines))
        return (self.most_loaded + 1) << self.entry_bits

    def rows_of(self, places: Index) -> Index:
        """Rows of B at these places."""
        return places if self.rows is None else self.rows[places]

    def tile(self, number: int, b_pointers: NDArray[Any]) -> TileOfB:
        """One tile, by rows of B. A row without nonzeros is in place or loaded, never bumped."""
        places = np.arange(*self.windows[number])
        rows = self.rows_of(places)
        fresh = places >= self.fresh[number]
        away = (self.lines[places] < 0) & (b_pointers[rows + 1] > b_pointers[rows])
        return TileOfB(rows[~fresh & ~away], rows[fresh & ~away], rows[away], bool(self.early[number]))


@njit(cache=True)
def metadata_lines(rows: int, lanes: int) -> int:
    """Lines of a ring for windows of so many rows: one more than they take, so that newest and oldest never share one."""
    return -(-rows // lanes) + 1


@njit(cache=True)
def free_lines(head: int, wrapped: bool, tail: int, lines: int, wanted: int) -> tuple[int, int]:
    """First line and number of lines for new rows: behind the newest, or from line 0 on where they do not fit and have more room.

    ``head``: line of the oldest row in place. ``tail``: the line behind the newest rows; ``turned``: these lie before ``head``.
    """
    if wrapped:
        return tail, head - tail
    if lines - tail >= wanted or lines - tail >= head:
        return tail, lines - tail
    return 0, head


def gather(
    a: Rows,
    begins: Index,
    pointers: NDArray[Any],
    lines: int,
    lanes: int,
    *,
    with_places: bool = True,
    side: str = "T_i",
    bypass: bool = False,
) -> RowPlan:
    """Loads the rows that each tile uses, in ascending order, behind those that are there.

    Rows leave in the order in which they came, no sooner than room is needed; one that the tile uses is then loaded again. Where
    all must leave, a chain begins anew, and what then does not fit is bumped. Rows that go by follow the others, in ascending
    order as well, beyond the lines that these may take.

    Parameters
    ----------
    a, begins: the operand A, and the first row of each tile and the end, int64[tiles + 1].
    pointers: int[K + 1], rising: where each row of B begins, and the end.
    lines: of B's partition without its FIFO-managed region. lanes: nonzeros in a line.
    with_places: else ``places`` of the plan is empty, which who only asks for its cost does without.
    side: what the scheme calls the height of a tile. bypass: rows that nobody uses again in time go by.

    Raises RowPlanError where a tile uses more rows than entries of metadata would leave a line for.
    """
    used: Index = used_rows(a.pointers, a.coordinates, begins, len(pointers) - 1)
    lines = min(lines, MOST_LINES)
    most = int(used.max(initial=0))
    if -(-most // lanes) + 2 > lines:
        raise RowPlanError(side, int(begins[1] - begins[0]), int(np.argmax(used)), most, max(0, lines - 2) * lanes)
    mean = mean_length(a.coordinates, pointers)
    each = 1 + (BYPASS_ROWS if bypass else 0)  # entries for each row that takes lines
    entries = max(most, int(min(SPARE_ENTRIES * lines * lanes * each / (mean + each), used.sum())))
    metadata = min(metadata_lines(entries, lanes), lines - 1)
    places = np.empty(len(a.coordinates) if with_places else 0, np.int64)
    nothing = np.zeros(0, np.int64)
    uses = uses_of(a.pointers, a.coordinates, begins, len(pointers) - 1) if bypass else Uses(nothing, nothing, nothing)
    rows, first, windows, table, early = _gather(
        a.pointers, a.coordinates, begins, pointers, lines - metadata, metadata, lanes, used, uses, places, _positions
    )
    counted = len(rows) > 0 and bool((rows == np.arange(len(rows))).all())
    kept, line, free, ring, placed = table.T
    return RowPlan(
        rows=None if counted else rows,
        lines=first,
        places=places,
        windows=windows,
        kept=kept,
        line=line,
        free=free,
        metadata=ring,
        placed=placed,
        read=placed,
        early=early,
    )


@njit(cache=True)
def used_rows(pointers: NDArray[Any], coordinates: NDArray[Any], begins: Index, columns: int) -> Index:
    """Different columns in each tile along i."""
    tiles = len(begins) - 1
    found = np.zeros(tiles, np.int64)
    met = np.full(columns, -1, np.int64)
    for tile in range(tiles):
        for position in range(pointers[begins[tile]], pointers[begins[tile + 1]]):
            k = coordinates[position]
            if met[k] != tile:
                met[k] = tile
                found[tile] += 1
    return found


class Uses(NamedTuple):
    """Which tiles use each row of B; empty where nobody asks.

    Parameters
    ----------
    begins: int64[K + 1], of each row in ``tiles``. tiles: 2 times the number of each tile that uses it, rising, plus 1 where
        several of its rows of A do. at: int64[K], the place in ``tiles`` that was asked for last.
    """

    begins: Index
    tiles: Index
    at: Index


@njit(cache=True)
def uses_of(pointers: NDArray[Any], coordinates: NDArray[Any], begins: Index, columns: int) -> Uses:
    count = np.zeros(columns + 1, np.int64)
    for position in range(len(coordinates)):
        count[coordinates[position] + 1] += 1
    first = np.cumsum(count)
    ends = first[:-1].copy()
    tiles = np.full(len(coordinates), -1, np.int64)  # fewer tiles than nonzeros may use a row
    for tile in range(len(begins) - 1):
        for position in range(pointers[begins[tile]], pointers[begins[tile + 1]]):
            k = coordinates[position]
            if ends[k] > first[k] and tiles[ends[k] - 1] >> 1 == tile:
                tiles[ends[k] - 1] |= 1
            else:
                tiles[ends[k]] = tile << 1
                ends[k] += 1
    return Uses(first, tiles, first[:-1].copy())


@njit(cache=True)
def _goes_by(k: int, tile: int, life: float, uses: Uses) -> bool:
    """Whether a row that the tile uses once would leave before it is used again. ``life``: tiles for which a row stays."""
    at = uses.at[k]
    while uses.tiles[at] >> 1 < tile:
        at += 1
    uses.at[k] = at
    if uses.tiles[at] & 1:
        return False
    following = uses.tiles[at + 1] if at + 1 < uses.begins[k + 1] else -1
    return following < 0 or (following >> 1) - tile > life


@njit(cache=True)
def mean_length(coordinates: NDArray[Any], pointers: NDArray[Any]) -> float:
    """Mean length of the rows of B that any nonzero of A uses."""
    met = np.zeros(len(pointers) - 1, np.bool_)
    for position in range(len(coordinates)):
        met[coordinates[position]] = True
    count, nonzeros = 0, 0
    for k in range(len(met)):
        if met[k]:
            count += 1
            nonzeros += pointers[k + 1] - pointers[k]
    return nonzeros / count if count > 0 else 0.0


# Positions of the lowest bit of a 64-bit word, by the top six bits of its product with this number.
LOWEST_BIT = 0x03F79D71B4CB0A89
_positions = np.zeros(64, np.int64)
_positions[[((LOWEST_BIT << n) & (2**64 - 1)) >> 58 for n in range(64)]] = np.arange(64)


@njit(cache=True)
def _rise(numbers: Index, count: int, words: NDArray[np.uint64], groups: NDArray[np.uint64], where: Index) -> None:
    """Sorts the first ``count`` different numbers in place, through a map of bits that is empty before and after.

    ``words``: a bit for each number; ``groups``: a bit for each word. ``where``: position of a lowest bit.
    """
    if count <= FEW_NUMBERS:
        for n in range(1, count):
            number = numbers[n]
            at = n
            while at > 0 and numbers[at - 1] > number:
                numbers[at] = numbers[at - 1]
                at -= 1
            numbers[at] = number
        return
    one, zero, top, factor = np.uint64(1), np.uint64(0), np.uint64(58), np.uint64(LOWEST_BIT)
    least, most = numbers[0], numbers[0]
    for n in range(count):
        number = numbers[n]
        least, most = min(least, number), max(most, number)
        word = number >> 6
        words[word] |= one << np.uint64(number & 63)
        groups[word >> 6] |= one << np.uint64(word & 63)
    n = 0
    for group in range(least >> 12, (most >> 12) + 1):
        bits = groups[group]
        groups[group] = zero
        while bits != zero:
            low = bits & (~bits + one)
            bits ^= low
            word = (group << 6) + where[np.int64((low * factor) >> top)]
            inner = words[word]
            words[word] = zero
            while inner != zero:
                low = inner & (~inner + one)
                inner ^= low
                numbers[n] = (word << 6) + where[np.int64((low * factor) >> top)]
                n += 1


@njit(cache=True)
def _add(
    new: Index, row: int, by: bool, count: int, last: int, nonzeros: int, rows_of_b: NDArray[Any]
) -> tuple[int, int, int]:
    """Notes a row to be loaded, or one that goes by; gives the new ``count``, ``last`` and ``nonzeros`` of those that stay."""
    if by:
        new[last - 1] = row
        return count, last - 1, nonzeros
    new[count] = row
    return count + 1, last, nonzeros + rows_of_b[row, 2]


@njit(cache=True)
def _fitting(new: Index, count: int, rows_of_b: NDArray[Any], most: int) -> tuple[int, int]:
    """How many of the first rows have no more than ``most`` nonzeros, and how many these have."""
    nonzeros = 0
    for n in range(count):
        if nonzeros + rows_of_b[new[n], 2] > most:
            return n, nonzeros
        nonzeros += rows_of_b[new[n], 2]
    return count, nonzeros


@njit(cache=True)
def _wanted(coordinates: NDArray[Any], rows_of_b: NDArray[Any], line: int, end: int) -> bool:
    """Whether a tile with these nonzeros may still want what lies in lines from ``line`` to ``end``."""
    for k in coordinates:  # noqa: SIM110 - compiled
        if rows_of_b[k, 3] < end and line < rows_of_b[k, 4]:
            return True
    return False


@njit(cache=True)
def _gather(
    a_pointers: NDArray[Any],
    a_coordinates: NDArray[Any],
    begins: Index,
    pointers: NDArray[Any],
    data_lines: int,
    metadata: int,
    lanes: int,
    used: Index,
    uses: Uses,
    places: Index,
    where: Index,
) -> tuple[Index, Index, Index, Index, NDArray[np.bool_]]:
    """``used``: rows of B that each tile uses. ``uses``: which, where rows may go by. ``places``: as long as A's nonzeros, and
    written; or empty.
    """
    inner = len(pointers) - 1
    tiles, most, longest = len(used), 0, 0
    for tile in range(tiles):
        most += used[tile]
        longest = max(longest, used[tile])
    rows_listed = np.empty(most, np.int64)
    line_of = np.empty(most, np.int64)  # of each place: its row's first line, -1 where it has none
    windows = np.zeros((tiles, 2), np.int64)
    table = np.zeros((tiles, 5), np.int64)
    early = np.zeros(tiles, np.bool_)
    # Of each row: its place, the tile that used it last, its nonzeros, its lines as loaded last: first, and behind the last.
    rows_of_b = np.zeros((inner, 5), np.int64)
    rows_of_b[:, :2] = -1
    rows_of_b[:, 2] = np.diff(pointers)
    new = np.empty(longest, np.int64)  # rows that stay, from the begin, and rows that go by, from the end
    bypass, taken = len(uses.tiles) > 0, 0.0  # nonzeros that a tile loads, of late
    words = np.zeros((inner >> 6) + 1, np.uint64)
    groups = np.zeros((inner >> 12) + 1, np.uint64)
    long = BYPASS_LINES * lanes
    begin, end = 0, 0
    block, block_line, tail = 0, 0, 0  # place and first line of the rows loaded last, and the line behind them
    first = 0  # the oldest place with a line
    for tile in range(tiles):
        low, high = a_pointers[begins[tile]], a_pointers[begins[tile + 1]]
        if low == high:
            continue
        count, nonzeros, last = 0, 0, longest
        life = BYPASS_LIFE * data_lines * lanes / max(1.0, taken)
        for position in range(low, high):
            k = a_coordinates[position]
            if rows_of_b[k, 1] != tile:
                rows_of_b[k, 1] = tile
                if rows_of_b[k, 0] < begin:
                    by = bypass and rows_of_b[k, 2] >= long and _goes_by(k, tile, life, uses)
                    count, last, nonzeros = _add(new, k, by, count, last, nonzeros, rows_of_b)
        line, lines = 0, data_lines
        if count > 0 or last < longest:
            wanted = -(-nonzeros // lanes)
            while begin < end:
                while first < end and (first < begin or line_of[first] < 0):
                    first += 1
                line, lines = 0, data_lines
                if first < end:
                    head = line_of[first]
                    wrapped = first < block and block_line < head
                    line, lines = free_lines(head, wrapped, tail, data_lines, wanted)
                if lines >= wanted and end + count + longest - last - begin + lanes <= metadata * lanes:
                    break
                row = rows_listed[begin]
                if rows_of_b[row, 0] == begin:
                    rows_of_b[row, 0] = -1
                    if rows_of_b[row, 1] == tile:
                        by = bypass and rows_of_b[row, 2] >= long and _goes_by(row, tile, life, uses)
                        count, last, nonzeros = _add(new, row, by, count, last, nonzeros, rows_of_b)
                        wanted = -(-nonzeros // lanes)
                begin += 1
        kept = end - begin
        if kept == 0:
            line, lines = 0, data_lines
        _rise(new, count, words, groups, where)
        if bypass:
            taken += BYPASS_NEWEST * (nonzeros - taken)
            _rise(new[last:], longest - last, words, groups, where)
            if last < longest:
                lines = min(lines, -(-nonzeros // lanes))
            for n in range(longest - last):
                new[count + n] = new[last + n]
            count += longest - last
        placed, size = _fitting(new, count, rows_of_b, lines * lanes)
        early[tile] = tile > 0 and kept > 0
        if early[tile]:
            before = a_coordinates[a_pointers[begins[tile - 1]] : low]
            early[tile] = not _wanted(before, rows_of_b, line, line - (-size // lanes))
        at = line * lanes
        for n in range(count):
            row = new[n]
            size = rows_of_b[row, 2]
            place = end + n
            rows_listed[place] = row
            rows_of_b[row, 0] = place
            line_of[place] = -1
            rows_of_b[row, 3], rows_of_b[row, 4] = 0, 0
            if n < placed and size > 0:
                line_of[place] = at // lanes
                at += size
                rows_of_b[row, 3], rows_of_b[row, 4] = line_of[place], -(-at // lanes)
        if len(places) > 0:
            for position in range(low, high):
                places[position] = rows_of_b[a_coordinates[position], 0]
        for n in range(placed, count):
            rows_of_b[new[n], 0] = -1  # bumped: loaded again by the next tile that uses it
        windows[tile, 0], windows[tile, 1] = begin, end + count
        table[tile, 0], table[tile, 1], table[tile, 2], table[tile, 3], table[tile, 4] = (
            kept,
            line,
            lines,
            metadata,
            placed,
        )
        if at > line * lanes:
            block, block_line, tail = end, line, -(-at // lanes)
        end += count
    return rows_listed[:end].copy(), line_of[:end].copy(), windows, table, early
