"""The product of a weight-stationary design, bit for bit, without any knowledge of its hardware.

What the array adds for each row of A and each column of B, and in which order, :mod:`.weight_stationary` defines, cycle by
cycle of the bus. Here it is the same for whole operands, and what a machine adds on top: where k is cut, the sum of each tile
is added to the partial sum of the tiles before it along k, which is the left operand. So the order of additions depends on
``T_k``, on A's format on the bus, on the bus and on the MACs of a PE: neither on B, nor on the other sides of tiles, nor on the
number of PEs.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sw.formats.csr import Csr

from .arithmetic import add, multiply, value_type
from .spgemm import Product, count_macs
from .weight_stationary import data_per_cycle, partial_sums

__all__ = ["bus_data", "bus_words", "multiply_stationary"]

# Products that are looked at together.
PRODUCTS = 1 << 20

Index = NDArray[np.int64]
Words = NDArray[np.uint32]


def bus_words(acf: str, vector: int) -> int:
    """Words of the bus of PEs with so many MACs: a datum for each in a cycle, of CSR or Dense; COO has those of CSR."""
    return max(3, vector + 1) if acf == "dense" else 2 * vector + 1


def bus_data(acf: str, vector: int) -> int:
    """Data of A, in Dense places, that a cycle of that bus carries at most."""
    return data_per_cycle(acf, bus_words(acf, vector), vector)


def multiply_stationary(a: Csr, b: Csr, *, acf: str, words: int, vector: int, value: str, tile_k: int) -> Product:
    """Multiplies in the order of additions of a weight-stationary machine.

    Parameters
    ----------
    a, b: operands of one value type; ``a.columns == b.rows``.
    acf, words, vector: A's format on the bus, words of the bus, MACs of a PE, as :func:`.weight_stationary.bus_cycles`.
    value: one of ``arithmetic.VALUES``.
    tile_k: side of tiles along k.

    Time and memory follow the effectual multiplications, of which about a million are looked at together.
    """
    if a.columns != b.rows:
        raise ValueError(f"A is {a.rows} x {a.columns} and B is {b.rows} x {b.columns}: inner shapes must agree")
    if not a.value == b.value == value_type(value):
        raise ValueError(f"Operands are {a.value} and {b.value}, the design computes {value}")
    bus = _Bus(acf == "dense", data_per_cycle(acf, words, vector), vector)
    lengths = np.diff(b.pointers)[a.coordinates]
    made = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])[a.pointers]
    blocks, first = [], 0
    while first < a.rows:
        end = max(first + 1, int(np.searchsorted(made, made[first] + PRODUCTS, side="right")) - 1)
        blocks.append(_rows(a, b, (first, end), bus, value, tile_k))
        first = end
    pointers = np.zeros(a.rows + 1, np.int64)
    if blocks:
        pointers[1:] = np.cumsum(np.concatenate([counts for counts, _, _ in blocks]))
    structural = Csr(
        rows=a.rows,
        columns=b.columns,
        pointers=pointers,
        coordinates=np.concatenate([columns for _, columns, _ in blocks] or [np.zeros(0, np.uint32)]),
        bits=np.concatenate([bits for _, _, bits in blocks] or [np.zeros(0, np.uint32)]),
        value=a.value,
    )
    return Product(structural=structural, canonical=structural.without_zeros(), macs=count_macs(a, b), value=value)


class _Bus(NamedTuple):
    """``dense``: every place of a row of a tile is sent; a nonzero's place says its cycle. ``most``: data of a cycle."""

    dense: bool
    most: int
    vector: int


def _rows(a: Csr, b: Csr, rows: tuple[int, int], bus: _Bus, value: str, tile_k: int) -> tuple[Index, Words, Words]:
    """Rows ``rows`` of C: nonzeros of each, columns, bits."""
    chosen = slice(a.pointers[rows[0]], a.pointers[rows[1]])
    coordinates = a.coordinates[chosen].astype(np.int64)
    row = np.repeat(np.arange(rows[1] - rows[0], dtype=np.int64), np.diff(a.pointers[rows[0] : rows[1] + 1]))
    # Cycles of each row's part in a tile along k, and the place of each nonzero in them.
    visit = _starts(row, coordinates // tile_k)
    part = np.cumsum(visit) - 1
    begins = np.flatnonzero(visit)
    if bus.dense:
        place = coordinates % tile_k
        sent = np.minimum(tile_k, a.columns - coordinates[begins] // tile_k * tile_k)
    else:
        place = np.arange(len(row)) - begins[part]
        sent = np.diff(np.append(begins, len(row)))
    cycles = -(-sent // bus.most)

    counts = np.diff(b.pointers)[coordinates]
    source = np.repeat(np.arange(len(row)), counts)
    within = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
    fiber = b.pointers[coordinates][source] + within
    column = b.coordinates[fiber].astype(np.int64)
    bits = multiply(a.bits[chosen][source], b.bits[fiber], value=value)
    # Nonzeros of a row ascend in k: a stable order by row and column keeps cycles and lanes in theirs.
    order = np.lexsort((column, row[source]))
    source, column, bits = source[order], column[order], bits[order]
    keys: dict[str, Index] = {"row": row[source], "column": column, "part": part[source]}
    keys |= {"cycle": place[source] // bus.most, "node": place[source] % bus.most}
    for _ in range(bus.vector.bit_length() - 1):
        keys["node"] >>= 1
        keys, bits = _in_pairs(keys, bits, value)
    del keys["node"]

    # Cycle t adds to partial sum t mod L.
    sums = partial_sums(value)
    keys["node"] = keys["cycle"] % sums
    order = np.lexsort((keys["cycle"], keys["node"], keys["part"], keys["column"], keys["row"]))
    keys, bits = {name: key[order] for name, key in keys.items()}, bits[order]
    del keys["cycle"]
    keys, bits = _chained(keys, bits, value, newest_left=True)
    # The partial sums in the order of their last additions.
    whole = cycles[keys["part"]]
    keys["node"] = (keys["node"] - np.maximum(whole - sums, 0)) % sums
    order = np.lexsort((keys["node"], keys["part"], keys["column"], keys["row"]))
    keys, bits = {name: key[order] for name, key in keys.items()}, bits[order]
    for _ in range((sums - 1).bit_length()):
        keys["node"] = keys["node"] >> 1
        keys, bits = _in_pairs(keys, bits, value)
    keys, bits = _chained({"row": keys["row"], "column": keys["column"]}, bits, value, newest_left=False)
    return np.bincount(keys["row"], minlength=rows[1] - rows[0]), keys["column"].astype(np.uint32), bits


def _starts(*keys: Index) -> NDArray[np.bool_]:
    """Where one of the keys differs from the place before."""
    found = np.ones(len(keys[0]), np.bool_)
    found[1:] = False
    for key in keys:
        found[1:] |= key[1:] != key[:-1]
    return found


def _in_pairs(keys: dict[str, Index], bits: Words, value: str) -> tuple[dict[str, Index], Words]:
    """Neighbours with the same keys, never more than two, are added."""
    starts = np.flatnonzero(_starts(*keys.values()))
    second = np.diff(np.append(starts, len(bits))) == 2
    summed = bits[starts]
    summed[second] = add(summed[second], bits[starts[second] + 1], value=value)
    return {name: key[starts] for name, key in keys.items()}, summed


def _chained(keys: dict[str, Index], bits: Words, value: str, *, newest_left: bool) -> tuple[dict[str, Index], Words]:
    """Those with the same keys are added one after the other; ``newest_left``: the sum so far is the right operand."""
    starts = np.flatnonzero(_starts(*keys.values()))
    lengths = np.diff(np.append(starts, len(bits)))
    total: Any = bits[starts]
    left, step = np.arange(len(starts)), 1
    while len(left := left[lengths[left] > step]):
        pair = (bits[starts[left] + step], total[left])
        total[left] = add(*(pair if newest_left else pair[::-1]), value=value)
        step += 1
    return {name: key[starts] for name, key in keys.items()}, total
