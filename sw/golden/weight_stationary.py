"""The function of the extended weight-stationary array, cycle by cycle of its bus: for unit tests, readable rather than fast.

MINT (Qin et al., "Extending Sparse Tensor Accelerators to Support Multiple Compression Formats"), section IV and figures 6
and 7: columns of B stay in the PEs' buffers, A passes all of them on a bus whose words are data or metadata by a flag. What
a column that overflows its buffer costs is Tailors' policy (Xue et al., "Tailors", section 3.3).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arithmetic import VALUES, add, multiply

__all__ = [
    "A_FORMATS",
    "B_FORMATS",
    "BusCycle",
    "RowSum",
    "StationaryColumn",
    "array_rows",
    "bumped_words",
    "bus_cycles",
    "data_per_cycle",
    "partial_sums",
    "places_of",
    "row_sums",
]

Words = NDArray[np.uint32]

#: Compute formats of A and what one cycle carries, of ``words`` words of the bus: a common row id and data, a common row id and
#: pairs of data and column id, or triples of data and both.
A_FORMATS: dict[str, Callable[[int], int]] = {
    "dense": lambda words: words - 1,
    "csr": lambda words: (words - 1) // 2,
    "coo": lambda words: words // 3,
}
B_FORMATS = ("dense", "csc")


class BusCycle(NamedTuple):
    """What one cycle brings to every PE: data of one row, each with its column. ``words``: (flag of metadata, payload).

    A value of None is a place of Dense without a datum, and its word is not present.
    """

    row: int
    columns: tuple[int, ...]
    values: tuple[int | None, ...]
    words: tuple[tuple[bool, int | None], ...]


class StationaryColumn(NamedTuple):
    """A column of B with ascending coordinates, bit patterns; ``dense``: every coordinate from 0 on, without metadata."""

    coordinates: Sequence[int]
    values: Sequence[int]
    dense: bool

    @property
    def entries(self) -> int:
        """Buffer entries that it takes."""
        return len(self.values) * (1 if self.dense else 2)

    @property
    def words(self) -> list[tuple[bool, int]]:
        """Its entries in order: flag of metadata, payload."""
        pairs = zip(self.coordinates, self.values, strict=True)
        return [word for k, bits in pairs for word in ([] if self.dense else [(True, int(k))]) + [(False, int(bits))]]


class RowSum(NamedTuple):
    """What a PE hands out for a row of A; ``met``: something of the row met something of the column."""

    row: int
    value: int
    met: bool


def data_per_cycle(acf: str, words: int, vector: int) -> int:
    """Data that a cycle of the bus carries at most: what its words allow, and no more than a PE multiplies.

    Raises ValueError for a format that A cannot have, or a bus that cannot carry a datum of it.
    """
    if acf not in A_FORMATS:
        raise ValueError(f"The compute format of A must be one of {', '.join(A_FORMATS)}, not {acf!r}")
    carried = A_FORMATS[acf](words)
    if carried < 1:
        raise ValueError(f"A bus of {words} words cannot carry {acf}")
    return min(carried, vector)


def bus_cycles(
    rows: Sequence[int], columns: Sequence[int], values: Sequence[int | None], *, acf: str, words: int, vector: int
) -> list[BusCycle]:
    """The cycles that A takes (section IV.B): as many data of a row as fit; where the row changes a new cycle begins.

    Parameters
    ----------
    rows, columns, values
        Coordinates and bit patterns of A's data, row by row, columns ascending; for ``dense`` of every place from 0 on
        (:func:`places_of`).
    acf
        One of ``A_FORMATS``.
    words, vector
        Words of the bus; MACs of a PE.
    """
    most = data_per_cycle(acf, words, vector)
    cycles: list[BusCycle] = []
    bits_or_none = (None if one is None else int(one) for one in values)
    taken = list(zip(map(int, rows), map(int, columns), bits_or_none, strict=True))
    while taken:
        row = taken[0][0]
        part = [one for one in taken[:most] if one[0] == row]
        part = part[: next((n for n, one in enumerate(taken[: len(part)]) if one[0] != row), len(part))]
        taken = taken[len(part) :]
        sent: list[tuple[bool, int | None]] = []
        for n, (_, k, bits) in enumerate(part):
            if n == 0 or acf == "coo":
                sent.append((True, row))
            if acf != "dense":
                sent.append((True, k))
            sent.append((False, bits))
        cycles.append(BusCycle(row, tuple(k for _, k, _ in part), tuple(bits for _, _, bits in part), tuple(sent)))
    return cycles


def places_of(
    rows: Sequence[int], columns: Sequence[int], values: Sequence[int], shape: tuple[int, int]
) -> tuple[list[int], list[int], list[int | None]]:
    """Every place of an A of ``shape`` with its datum, or None where it has none; none of an A without data.

    A place without a datum is a zero that is sent and not multiplied: what is 0 times infinity with a datum is nothing there.
    """
    data = {(int(row), int(k)): int(bits) for row, k, bits in zip(rows, columns, values, strict=True)}
    places = [(row, k) for row in range(shape[0]) for k in range(shape[1])] if data else []
    return [row for row, _ in places], [k for _, k in places], [data.get(place) for place in places]


def partial_sums(value: str) -> int:
    """Partial sums of a row that a PE keeps: as many as its adder of ``value`` has stages."""
    return 1 if value.startswith("int") else 4


def row_sums(
    cycles: Sequence[BusCycle], column: StationaryColumn, *, vector: int, sums: int, value: str
) -> list[RowSum]:
    """What one PE hands out for each row of A that comes by, in order.

    Products of a cycle (A's value times B's) are added lane by lane as a balanced tree; what does not meet contributes
    nothing. Cycle t of a row adds its sum to partial sum t mod ``sums``; at the row's end the partial sums, in the order of
    their last additions, are added as a balanced tree, neighbours first, an odd last one unchanged.

    Parameters
    ----------
    vector
        MACs of the PE, a power of two: lanes of the tree.
    sums
        Partial sums of a row, the latency of the adder of ``value``.
    value
        One of ``arithmetic.VALUES``.
    """
    if value not in VALUES:
        raise ValueError(f"Value type must be one of {', '.join(VALUES)}, not {value!r}")
    stationary = {int(k): int(bits) for k, bits in zip(column.coordinates, column.values, strict=True)}
    results: list[RowSum] = []
    begin = 0
    while begin < len(cycles):
        row = cycles[begin].row
        partial: list[int | None] = []
        while begin < len(cycles) and cycles[begin].row == row:
            here = cycles[begin]
            lanes: list[int | None] = [None] * vector
            for lane, (k, bits) in enumerate(zip(here.columns, here.values, strict=True)):
                if bits is not None and k in stationary:
                    lanes[lane] = _word(multiply(_array(bits), _array(stationary[k]), value=value))
            before = partial.pop(0) if len(partial) == sums else None
            partial.append(_added(_tree(lanes, value), before, value))
            begin += 1
        total = _tree(partial, value)
        results.append(RowSum(row, 0 if total is None else total, total is not None))
    return results


def array_rows(
    cycles: Sequence[BusCycle], columns: Sequence[StationaryColumn], *, vector: int, sums: int, value: str
) -> list[tuple[int, list[RowSum]]]:
    """What the array hands out: for each row of A, in order, the sum of each PE, PE 0 first (O: Dense on the way)."""
    by_pe = [row_sums(cycles, column, vector=vector, sums=sums, value=value) for column in columns]
    return [(at_once[0].row, list(at_once)) for at_once in zip(*by_pe, strict=True)]


def bumped_words(cycles: Sequence[BusCycle], column: StationaryColumn, *, entries: int, region: int) -> list[int]:
    """Lengths of the parts in which bumped entries of a column stream through the region of a buffer of ``entries``.

    A column of more entries keeps its first ``entries - region``; a row of A passes the bumped ones in order, from the first
    one, and no further than it needs: the first that has not met yet is asked for where a cycle comes, the others where its
    last column is not passed. The rest is passed over where the next row needs them from the first one on. They come in
    parts of at most ``region``, each when everything of the one before was used; the first ``region`` came with the column.
    """
    if column.entries <= entries:
        return []
    size, kept = 1 if column.dense else 2, entries - region
    parts: list[int] = []
    waiting = list(range(kept, entries))  # entries in the region that have not been used
    following = kept

    def use() -> None:
        nonlocal following
        for _ in range(size):
            fetch()
            waiting.pop(0)
            following = kept if following + 1 == column.entries else following + 1

    def fetch() -> None:
        if not waiting:
            parts.append(min(region, column.entries - following))
            waiting.extend(range(following, following + parts[-1]))

    row, exhausted = None, False
    for cycle in cycles:
        if row is not None and cycle.row != row:
            while following != kept:
                use()
            exhausted = False
        row = cycle.row
        while not exhausted:
            fetch()
            if column.coordinates[following // size] > cycle.columns[-1]:
                break
            use()
            exhausted = following == kept
    return parts


def _array(bits: int) -> Words:
    return np.array([bits], np.uint32)


def _word(words: Words) -> int:
    return int(words[0])


def _added(a: int | None, b: int | None, value: str) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return _word(add(_array(a), _array(b), value=value))


def _tree(values: Sequence[int | None], value: str) -> int | None:
    """Neighbours are added, and their sums; an odd last one passes unchanged."""
    level = list(values)
    while len(level) > 1:
        level = [_added(level[n], level[n + 1] if n + 1 < len(level) else None, value) for n in range(0, len(level), 2)]
    return level[0]
