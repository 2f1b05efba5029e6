"""The whole accelerator's result, bit for bit, without any knowledge of its hardware.

Integer sums do not depend on their order, floating-point sums do: the order in which the merge tree adds is part of the
contract. It is fixed by the merge radix, by the tile shapes along k and j, by what becomes of partial rows, and by nothing
else: neither the inter-tile order, nor the tile shape along i, nor the number of PEs can change a bit. Where shapes are
tuned during the run, by the cuts that the walk made.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sw.formats.csr import Csr
from sw.formats.distinct import compacted, distinct
from sw.jit import njit

from .arithmetic import Mode, add_bits, mode_of, mul_bits, value_type
from .tuned_walk import TunedWalk

__all__ = ["Product", "TileShape", "count_macs", "multiply"]

# Leaves of a row: whether unscaled, by what to scale, begin and end of the fiber.
_Leaves = tuple[NDArray[np.bool_], NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]
# Coordinates and bits of fibers.
_Fibers = tuple[NDArray[np.uint32], NDArray[np.uint32]]
# By coordinate: how many values have come, subtrees by stage, the generation they are of.
_Space = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]

_GROWTH = 2
# Sweeping a range takes about a nanosecond for each coordinate, sorting some tens of nanoseconds for each nonzero.
_CROWDED = 16


class TileShape(Protocol):
    """The part of a tile scheme that can change a value."""

    @property
    def T_j(self) -> int: ...

    @property
    def T_k(self) -> int: ...
    @property
    def joins(self) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class Product:
    """``C = A x B``.

    Parameters
    ----------
    structural: every coordinate that received at least one product, zeros included: what the machine leaves in memory.
    canonical: the same without zeros.
    macs: effectual multiplications.
    value: of ``arithmetic.VALUES``: how it was computed.
    """

    structural: Csr
    canonical: Csr
    macs: int
    value: str


def count_macs(a: Csr, b: Csr) -> int:
    """Pairs of nonzeros that meet in the multiplication."""
    return int(np.diff(b.pointers)[a.coordinates].sum())


def multiply(a: Csr, b: Csr, radix: int, value: str, scheme: TileShape, walk: TunedWalk | None = None) -> Product:
    """Multiplies in the machine's order of additions.

    Parameters
    ----------
    a, b: operands of one value type; ``a.columns == b.rows``.
    radix: leaves of one merge job, a power of two from 2.
    value: one of ``arithmetic.VALUES``: their type, and how sums and products depart from its default.
    scheme: its ``T_j`` and ``T_k``; whether the last k step joins parts that the steps before have made of a row.
    walk: the tiles, where their shape was tuned; ``scheme`` is then ignored.

    Time follows the effectual multiplications and the tile visits of stored rows, memory follows the nonzeros.
    """
    if radix < 2 or radix & (radix - 1):
        raise ValueError(f"Merge radix must be a power of two from 2, not {radix!r}")
    if a.columns != b.rows:
        raise ValueError(f"A is {a.rows} x {a.columns} and B is {b.rows} x {b.columns}: inner shapes must agree")
    if not a.value == b.value == value_type(value):
        raise ValueError(f"Operands are {a.value} and {b.value}, the design computes {value}")
    tile_j, tile_k = (max(1, min(int(T), limit)) for T, limit in ((scheme.T_j, b.columns), (scheme.T_k, b.rows)))

    # Columns that B never uses need no workspace: a hypersparse B may be billions wide.
    columns, places = compacted(b.coordinates, b.columns)
    used = columns.astype(np.uint32)
    compact = places.astype(np.uint32)
    static: _Cuts = {int(tile + 1) * tile_j: {a.rows: None} for tile in distinct(used // tile_j)}
    cuts = static if walk is None else _cuts(walk)
    parts = []
    begin = b.pointers[:-1].copy()
    for end_j, rows in cuts.items():
        end = (
            b.pointers[1:] if end_j >= b.columns else _advance(begin, b.pointers, compact, np.searchsorted(used, end_j))
        )
        blocks = []
        first = 0
        for end_i, ends_k in rows.items():
            chosen = slice(a.pointers[first], a.pointers[end_i])
            steps = (a.coordinates[chosen], begin, end, tile_k)
            if ends_k is not None:
                steps = _even_steps(np.array(ends_k), *steps[:3])
            coordinates, b_begin, b_end, step = steps
            blocks.append(
                _tile_column(
                    a.pointers[first : end_i + 1] - a.pointers[first],
                    coordinates,
                    a.bits[chosen],
                    b_begin,
                    b_end,
                    (compact, b.bits),
                    len(used),
                    radix,
                    step,
                    (b.rows - 1) // step if scheme.joins and walk is None else -1,
                    mode_of(value),
                )
            )
            first = end_i
        parts.append(_stacked(blocks))
        begin = end
    pointers, coordinates, bits = _assemble(parts, a.rows)
    structural = Csr(
        rows=a.rows, columns=b.columns, pointers=pointers, coordinates=used[coordinates], bits=bits, value=a.value
    )
    return Product(structural=structural, canonical=structural.without_zeros(), macs=count_macs(a, b), value=value)


_Part = tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]
_Positions = NDArray[np.int64]
# Ends of the j tiles; of the i tiles in each; of the k steps of each of these, None where they are all alike.
_Cuts = dict[int, dict[int, list[int] | None]]


def _cuts(walk: TunedWalk) -> _Cuts:
    """Where the walk cut."""
    found: _Cuts = {}
    for tile in walk.tiles:
        end_i, end_j, end_k = (begin + size for begin, size in zip(tile.begin, tile.size, strict=True))
        steps = found.setdefault(end_j, {}).setdefault(end_i, [])
        assert steps is not None
        steps.append(end_k)
    return found


def _even_steps(
    ends: _Positions, coordinates: NDArray[np.uint32], begin: _Positions, end: _Positions
) -> tuple[NDArray[np.uint32], _Positions, _Positions, int]:
    """k renumbered so that steps that end at ``ends`` are all as long as the longest: A's coordinates, B's, the length."""
    begins = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    longest = int((ends - begins).max())
    k = np.arange(len(begin))
    step = np.searchsorted(ends, k, side="right")
    renumbered = step * longest + k - begins[step]
    spread = [np.zeros(len(ends) * longest, np.int64) for _ in range(2)]
    for target, source in zip(spread, (begin, end), strict=True):
        target[renumbered] = source
    return renumbered[coordinates].astype(np.uint32), spread[0], spread[1], longest


def _stacked(blocks: list[_Part]) -> _Part:
    """Rows of several blocks below each other."""
    if len(blocks) == 1:
        return blocks[0]
    pointers = [blocks[0][0]]
    for block in blocks[1:]:
        pointers.append(block[0][1:] + pointers[-1][-1])
    return (
        np.concatenate(pointers),
        np.concatenate([block[1] for block in blocks]),
        np.concatenate([block[2] for block in blocks]),
    )


def _assemble(parts: list[_Part], rows: int) -> _Part:
    """Joins the finished j tiles of each row; their coordinate ranges are disjoint and rising."""
    if not parts:
        return np.zeros(rows + 1, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.uint32)
    if len(parts) == 1:
        return parts[0]
    lengths = sum(np.diff(pointers) for pointers, _, _ in parts)
    pointers = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    coordinates = np.empty(pointers[-1], np.uint32)
    bits = np.empty(pointers[-1], np.uint32)
    place = pointers[:-1].copy()
    for part in parts:
        _place(place, *part, coordinates, bits)
    return pointers, coordinates, bits


@njit(cache=True, nogil=True)
def _place(
    place: NDArray[Any],
    pointers: NDArray[Any],
    part_coordinates: NDArray[Any],
    part_bits: NDArray[Any],
    coordinates: NDArray[Any],
    bits: NDArray[Any],
) -> None:
    for row in range(len(place)):
        for position in range(pointers[row], pointers[row + 1]):
            coordinates[place[row]] = part_coordinates[position]
            bits[place[row]] = part_bits[position]
            place[row] += 1


@njit(cache=True, nogil=True)
def _advance(begin: NDArray[Any], pointers: NDArray[Any], coordinates: NDArray[Any], boundary: int) -> NDArray[Any]:
    """For each row the position of the first nonzero from ``boundary`` on, at or after ``begin``."""
    end = np.empty_like(begin)
    for row in range(len(begin)):
        position = begin[row]
        while position < pointers[row + 1] and coordinates[position] < boundary:
            position += 1
        end[row] = position
    return end


@njit(cache=True)
def _room(array: NDArray[Any], needed: int) -> NDArray[Any]:
    """The array itself, or a larger copy with at least ``needed`` entries."""
    if needed <= len(array):
        return array
    larger = np.empty(max(needed, _GROWTH * len(array)), array.dtype)
    for n in range(len(array)):
        larger[n] = array[n]
    return larger


@njit(cache=True)
def _gather(
    leaves: _Leaves,
    first: int,
    last: int,
    b: _Fibers,
    coordinates: NDArray[Any],
    bits: NDArray[Any],
    top: int,
    space: _Space,
    generation: int,
    mode: Mode,
) -> int:
    """Adds up all leaves by coordinate; leaves the distinct coordinates, unsorted, from ``top`` and returns their end.

    A run of m equal coordinates is summed by a tree that pairs neighbours stage by stage. That tree is the one a
    binary counter walks: ``stages[c, s]`` holds a finished subtree of 2**s values, and two of a kind join at once.
    """
    unit, weights, begins, ends = leaves
    b_coordinates, b_bits = b
    runs, stages, stamps = space
    for leaf in range(first, last):
        from_scratch = unit[leaf]
        for position in range(begins[leaf], ends[leaf]):
            if from_scratch:
                coordinate = coordinates[position]
                carry = bits[position]
            else:
                coordinate = b_coordinates[position]
                carry = mul_bits(mode, weights[leaf], b_bits[position])
            if stamps[coordinate] != generation:
                stamps[coordinate] = generation
                runs[coordinate] = 0
                coordinates[top] = coordinate
                top += 1
            run = runs[coordinate]
            runs[coordinate] = run + 1
            stage = 0
            while run & 1:
                carry = add_bits(mode, stages[coordinate, stage], carry)
                run >>= 1
                stage += 1
            stages[coordinate, stage] = carry
    return top


@njit(cache=True)
def _sort(coordinates: NDArray[Any], begin: int, end: int, stamps: NDArray[Any], generation: int) -> None:
    """Sorts the coordinates just gathered: a crowded range is swept by its stamps, a sparse one is sorted."""
    if end - begin < 2:
        return
    low = high = np.int64(coordinates[begin])
    for position in range(begin, end):
        low = min(low, np.int64(coordinates[position]))
        high = max(high, np.int64(coordinates[position]))
    if high - low > _CROWDED * (end - begin):
        coordinates[begin:end].sort()
        return
    for coordinate in range(low, high + 1):
        if stamps[coordinate] == generation:
            coordinates[begin] = coordinate
            begin += 1


@njit(cache=True)
def _job(
    leaves: _Leaves,
    first: int,
    last: int,
    b: _Fibers,
    coordinates: NDArray[Any],
    bits: NDArray[Any],
    top: int,
    space: _Space,
    generation: int,
    mode: Mode,
) -> tuple[NDArray[Any], NDArray[Any], int]:
    """One merge job over leaves ``first`` to ``last - 1``; appends its fiber at ``top``.

    Returns the arrays, which may have grown, and the fiber's end.
    """
    _, _, begins, ends = leaves
    runs, stages, stamps = space
    needed = top
    for leaf in range(first, last):
        needed += ends[leaf] - begins[leaf]
    coordinates = _room(coordinates, needed)
    bits = _room(bits, needed)
    end = _gather(leaves, first, last, b, coordinates, bits, top, space, generation, mode)
    _sort(coordinates, top, end, stamps, generation)
    for position in range(top, end):
        # The subtrees left over join from the smallest upwards; the larger one came earlier and is the first operand.
        coordinate = coordinates[position]
        run = runs[coordinate]
        stage = 0
        while not run & 1:
            run >>= 1
            stage += 1
        total = stages[coordinate, stage]
        while run > 1:
            run >>= 1
            stage += 1
            if run & 1:
                total = add_bits(mode, stages[coordinate, stage], total)
        bits[position] = total
    return coordinates, bits, end


@njit(cache=True)
def _tile_row(
    leaves: _Leaves,
    count: int,
    table: _Leaves,
    radix: int,
    b: _Fibers,
    coordinates: NDArray[Any],
    bits: NDArray[Any],
    top: int,
    space: _Space,
    generation: int,
    mode: Mode,
) -> tuple[NDArray[Any], NDArray[Any], int, int, int]:
    """All ``count`` leaves of one row in one tile, in as many jobs as the radix asks for.

    Returns the arrays, the begin and end of the row's fiber, and the generation.
    """
    if count <= radix:
        first = 0
        coordinates, bits, end = _job(leaves, first, count, b, coordinates, bits, top, space, generation + 1, mode)
        return coordinates, bits, top, end, generation + 1
    _, _, table_begins, table_ends = table
    waiting = done = 0
    while done < count or waiting > 1:
        if waiting == radix or done == count:
            # Either the table is full while leaves remain, or nothing remains: in both cases it becomes one fiber.
            source, first, last = table, 0, waiting
            waiting = 0
        else:
            source, first, last = leaves, done, min(done + radix, count)
            done = last
        generation += 1
        coordinates, bits, end = _job(source, first, last, b, coordinates, bits, top, space, generation, mode)
        table_begins[waiting] = top
        table_ends[waiting] = end
        waiting += 1
        top = end
    return coordinates, bits, table_begins[0], table_ends[0], generation


@njit(cache=True, nogil=True)
def _tile_column(
    a_pointers: NDArray[Any],
    a_coordinates: NDArray[Any],
    a_bits: NDArray[Any],
    b_begin: NDArray[Any],
    b_end: NDArray[Any],
    b: _Fibers,
    width: int,
    radix: int,
    tile_k: int,
    joins: int,
    mode: Mode,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """All rows of C for one tile along j; B's segments are ``b_begin`` to ``b_end``. Returns CSR arrays.

    ``joins``: the k step that joins what each step before it has made of a row, as its first leaves, the earliest first; -1
    where each step takes along what those before it have made.
    """
    rows = len(a_pointers) - 1
    out_pointers = np.zeros(rows + 1, np.int64)
    out_coordinates = np.empty(1024, np.uint32)
    out_bits = np.empty(1024, np.uint32)

    # A stage holds subtrees of 2**stage values, up to the whole radix.
    depth = 1
    while (1 << depth) <= radix:
        depth += 1
    space = (np.zeros(width, np.int32), np.empty((width, depth), np.uint32), np.zeros(width, np.int64))
    generation = np.int64(0)

    # Fibers that stay inside the row: the partial result of the k steps so far lies at the bottom, the fibers of
    # finished groups above it.
    coordinates = np.empty(1024, np.uint32)
    bits = np.empty(1024, np.uint32)

    longest = 0
    for row in range(rows):
        longest = max(longest, a_pointers[row + 1] - a_pointers[row])
    leaves = _leaf_table(longest + 1)
    part_ends = np.zeros(longest + 1, np.int64)
    table = _leaf_table(radix)
    for n in range(radix):
        table[0][n] = True
    unit, weights, begins, ends = leaves

    for row in range(rows):
        partial = np.int64(0)
        position = a_pointers[row]
        made = 0  # parts that are to be joined: they lie one behind the other, their ends in `part_ends`
        while position < a_pointers[row + 1] or made > 0:
            step = a_coordinates[position] // tile_k if position < a_pointers[row + 1] else joins
            count = np.int64(0)
            if joins < 0:
                if partial:
                    unit[0] = True
                    begins[0] = 0
                    ends[0] = partial
                    count = np.int64(1)
            elif step == joins:
                for n in range(made):
                    unit[n] = True
                    begins[n] = part_ends[n - 1] if n else 0
                    ends[n] = part_ends[n]
                count = np.int64(made)
                made = 0
            while position < a_pointers[row + 1] and a_coordinates[position] // tile_k == step:
                k = a_coordinates[position]
                if b_begin[k] < b_end[k]:
                    unit[count] = False
                    weights[count] = a_bits[position]
                    begins[count] = b_begin[k]
                    ends[count] = b_end[k]
                    count += 1
                position += 1
            coordinates, bits, begin, end, generation = _tile_row(
                leaves, count, table, radix, b, coordinates, bits, partial, space, generation, mode
            )
            # The step's fiber is the partial result of the next step, or one more part; what else was below it is consumed.
            first = partial if 0 <= joins != step else np.int64(0)
            for n in range(end - begin):
                coordinates[first + n] = coordinates[begin + n]
                bits[first + n] = bits[begin + n]
            partial = first + end - begin
            if first < partial and 0 <= joins != step:
                part_ends[made] = partial
                made += 1
        used = out_pointers[row]
        out_coordinates = _room(out_coordinates, used + partial)
        out_bits = _room(out_bits, used + partial)
        for n in range(partial):
            out_coordinates[used + n] = coordinates[n]
            out_bits[used + n] = bits[n]
        out_pointers[row + 1] = used + partial
    return out_pointers, out_coordinates[: out_pointers[rows]].copy(), out_bits[: out_pointers[rows]].copy()


@njit(cache=True)
def _leaf_table(count: int) -> _Leaves:
    """Arrays for the leaves of a row: whether unscaled, by what to scale, begin and end of the fiber."""
    return np.zeros(count, np.bool_), np.zeros(count, np.uint32), np.zeros(count, np.int64), np.zeros(count, np.int64)
