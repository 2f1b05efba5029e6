"""Patterns drawn at random: R-MAT, banded, uniform, N:M and block, each from a NumPy generator."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sw.formats.distinct import distinct

from .errors import OperandError
from .memory import require_memory

__all__ = [
    "GRAPH500",
    "VALUES",
    "banded",
    "block",
    "dense",
    "n_of_m",
    "rmat",
    "sources",
    "uniform",
    "values_of",
    "with_values",
]

VALUES = ("int", "real", "one")
LARGEST_INT = 9
# Shares of three quadrants, as the Graph 500 benchmark takes them; the fourth has the rest.
GRAPH500 = {"a": 0.57, "b": 0.19, "c": 0.19}
# Edges drawn at a time.
CHUNK = 1 << 22
# Bytes of a nonzero while it is made: its place, its copy in order, its value.
BYTES_AN_ELEMENT = 48

Draw = np.random.Generator
Positions = NDArray[np.int64]


def with_values(
    build: Callable[..., sp.csr_array],
    numbers: Sequence[Any],
    settings: dict[str, Any],
    seed: int,
    values: str,
    source: str,
) -> sp.csr_array:
    """The pattern that ``build`` draws, with values drawn after it from the same generator."""
    rng = np.random.default_rng(seed)
    try:
        matrix = build(rng, *numbers, **settings, source=source)
    except MemoryError:
        raise OperandError(f"{source}: does not fit this machine's memory") from None
    matrix.data = values_of(rng, matrix.nnz, values)
    return matrix


def values_of(rng: Draw, count: int, kind: str) -> NDArray[Any]:
    """Values of one of the kinds of ``VALUES``."""
    if kind == "int":
        return rng.integers(1, LARGEST_INT + 1, count)
    return rng.standard_normal(count) if kind == "real" else np.ones(count, np.int64)


def _from_keys(keys: Positions, rows: int, columns: int) -> sp.csr_array:
    """The matrix with nonzeros at these places, given as ``row * columns + column``, rising."""
    pointers = np.searchsorted(keys, np.arange(rows + 1, dtype=np.int64) * columns)
    return sp.csr_array((np.ones(len(keys), np.int64), keys % columns, pointers), shape=(rows, columns))


def _distinct(rng: Draw, cells: int, count: int) -> Positions:
    """``count`` different numbers below ``cells``, rising; each set has the same chance."""
    if 3 * count >= cells:
        return np.sort(rng.permutation(cells)[:count])
    found = np.empty(0, np.int64)
    while len(found) < count:
        missing = count - len(found)
        found = distinct(np.concatenate([found, rng.integers(0, cells, missing + missing // 8 + 16)]))
    surplus = len(found) - count
    return np.delete(found, rng.choice(len(found), surplus, replace=False, shuffle=False)) if surplus else found


def rmat(rng: Draw, scale: int, edges: int, *, a: float, b: float, c: float, source: str) -> sp.csr_array:
    """A recursive-matrix graph: each edge falls, bit by bit, into one of four quadrants.

    Paper: Chakrabarti, Zhan, Faloutsos, "R-MAT: a recursive model for graph mining", SDM 2004. Node numbers are as drawn,
    not shuffled: nodes of many edges have small ones.
    """
    if a + b + c > 1:
        raise OperandError(f"{source}: a + b + c = {a + b + c:g}: must be at most 1")
    total = edges << scale
    require_memory(BYTES_AN_ELEMENT * total + (8 << scale), source)
    parts = []
    for begin in range(0, total, CHUNK):
        size = min(CHUNK, total - begin)
        row, column = np.zeros(size, np.int64), np.zeros(size, np.int64)
        for _ in range(scale):
            where = rng.random(size)
            lower = where >= a + b
            right = ((where >= a) & ~lower) | (where >= a + b + c)
            row, column = 2 * row + lower, 2 * column + right
        parts.append(distinct((row << scale) | column))
    return _from_keys(distinct(np.concatenate(parts)), 1 << scale, 1 << scale)


def banded(rng: Draw, size: int, width: int, *, density: float, source: str) -> sp.csr_array:
    """A full diagonal, and the share ``density`` of the rest of the band up to ``width`` away."""
    width = min(width, size - 1)
    require_memory(BYTES_AN_ELEMENT * size * (2 * width + 1), source)
    offsets = np.arange(-width, width + 1)
    rows = np.repeat(np.arange(size, dtype=np.int64), len(offsets))
    columns = rows + np.tile(offsets, size)
    keep = (columns >= 0) & (columns < size)
    if density < 1:
        keep &= (rng.random(len(rows)) < density) | (rows == columns)
    return _from_keys(rows[keep] * size + columns[keep], size, size)


def uniform(rng: Draw, rows: int, columns: int, density: float, *, source: str) -> sp.csr_array:
    """Exactly ``round(density * rows * columns)`` nonzeros, anywhere."""
    count = round(density * rows * columns)
    require_memory(BYTES_AN_ELEMENT * count + 8 * rows, source)
    return _from_keys(_distinct(rng, rows * columns, count), rows, columns)


def dense(rng: Draw, rows: int, columns: int, *, source: str) -> sp.csr_array:
    """Every entry; the machine stores it like any other matrix, coordinates included."""
    require_memory(BYTES_AN_ELEMENT * rows * columns, source)
    return _from_keys(np.arange(rows * columns, dtype=np.int64), rows, columns)


def sources(rng: Draw, nodes: int, searches: int, *, source: str) -> sp.csr_array:
    """Where as many searches of a graph begin: one nonzero in each column, no two in one row.

    Transposed and times the graph it is the first step of a multi-source breadth-first search (HYTE, section 7).
    """
    if searches > nodes:
        raise OperandError(f"{source}: SEARCHES {searches}: must be at most NODES = {nodes}")
    require_memory(BYTES_AN_ELEMENT * searches + 8 * nodes, source)
    begins = _distinct(rng, nodes, searches)
    return _from_keys(begins * searches + rng.permutation(searches), nodes, searches)


def n_of_m(rng: Draw, rows: int, columns: int, n: int, m: int, *, source: str) -> sp.csr_array:
    """``n`` nonzeros in each group of ``m`` neighbouring columns of each row."""
    if n > m:
        raise OperandError(f"{source}: N {n}: must be at most M = {m}")
    if columns % m:
        raise OperandError(f"{source}: COLUMNS {columns}: must be a multiple of M = {m}")
    groups = rows * (columns // m)
    require_memory(16 * groups * m + BYTES_AN_ELEMENT * groups * n, source)
    chosen = np.sort(np.argsort(rng.random((groups, m)), axis=1)[:, :n], axis=1)
    keys = np.arange(groups, dtype=np.int64)[:, None] * m + chosen
    return _from_keys(keys.ravel(), rows, columns)


def block(rng: Draw, rows: int, columns: int, side: int, density: float, *, source: str) -> sp.csr_array:
    """Exactly ``density`` of all blocks of ``side x side``, each of them full."""
    for name, size in (("ROWS", rows), ("COLUMNS", columns)):
        if size % side:
            raise OperandError(f"{source}: {name} {size}: must be a multiple of SIDE = {side}")
    high, wide = rows // side, columns // side
    count = round(density * high * wide)
    require_memory(BYTES_AN_ELEMENT * count * side * side + 8 * rows, source)
    blocks = _from_keys(_distinct(rng, high * wide, count), high, wide)
    return sp.csr_array(sp.kron(blocks, np.ones((side, side), np.int64), format="csr"))
