"""The order in which the rows of A are met: neighbours that use the same rows of B find them on chip.

Rows of C are independent of one another, so any order gives the same result. ``rcm`` is reverse Cuthill-McKee on the graph of
rows and columns, ``greedy`` takes as the next row the one that misses the fewest of its rows of B on chip (affinity reordering
of Gamma, ASPLOS 2021, with the buffer itself as the window), ``communities`` those of a community (:mod:`.communities`).
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sw.formats.csr import Csr
from sw.formats.memory_csr import ELEMENT_BYTES
from sw.jit import njit
from sw.scheme.errors import SchemeError
from sw.scheme.terms import COMMUNITIES, NATURAL, ROW_ORDERS, Hardware
from sw.stats.pattern import Pattern

from .communities import by_communities
from .gather import Index
from .linked import link, unlink
from .thresholds import ORDER_MOST_USERS, ORDER_SHARE_OF_B

__all__ = ["in_order", "inverse", "row_order"]

Matrix = TypeVar("Matrix", Csr, Pattern)


def row_order(name: str, a: Csr | Pattern, b: Csr | Pattern, design: Hardware) -> Index | None:
    """Which row of A each row in turn is; None for their natural order.

    Parameters
    ----------
    name: one of ``ROW_ORDERS``, or a file with a permutation of 0 to I - 1: ``.npy``, or text with a number a line.
    a, b: I x K and K x J. design: whose buffer says how many rows of B are on chip.

    Raises SchemeError where the file cannot be read or holds no permutation.
    """
    if name == NATURAL:
        return None
    if name == "rcm":
        return _rcm(a)
    if name == COMMUNITIES:
        return by_communities(a)
    if name == "greedy":
        pattern = Pattern(a.rows, a.columns, a.pointers, a.coordinates.astype(np.int64))
        users = pattern.by_column(np.arange(a.rows, dtype=np.int64))
        order: Index = _greedy(pattern.pointers, pattern.coordinates, *users, np.diff(b.pointers), _capacity(design))
        return order
    return _of_file(name, a.rows)


def _capacity(design: Hardware) -> int:
    """Nonzeros of B on chip."""
    return int(ORDER_SHARE_OF_B * design.buffer.bytes) // ELEMENT_BYTES


def in_order(matrix: Matrix, order: Index | None) -> Matrix:
    """The matrix whose row n is row ``order[n]``, a permutation; itself where there is none."""
    if order is None:
        return matrix
    lengths = np.diff(matrix.pointers)[order]
    pointers = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    sources = np.repeat(matrix.pointers[:-1][order] - pointers[:-1], lengths) + np.arange(pointers[-1])
    moved: dict[str, Any] = {"pointers": pointers, "coordinates": matrix.coordinates[sources]}
    if isinstance(matrix, Csr):
        moved["bits"] = matrix.bits[sources]
    return replace(matrix, **moved)


def inverse(order: Index) -> Index:
    """Where each row stands in the order."""
    found = np.empty_like(order)
    found[order] = np.arange(len(order))
    return found


def _rcm(a: Csr | Pattern) -> Index:
    graph = sp.csr_array((np.ones(len(a.coordinates), np.int8), a.coordinates, a.pointers), shape=(a.rows, a.columns))
    both = sp.csr_array(sp.block_array([[None, graph], [graph.T, None]]))
    both.sort_indices()
    found = sp.csgraph.reverse_cuthill_mckee(both, symmetric_mode=True)
    return found[found < a.rows].astype(np.int64)


class _Waiting(NamedTuple):
    """Rows that find something on chip, in lists by how many rows of B they miss, the one that gained one last first.

    Parameters
    ----------
    first, following, preceding: int64[degree + 1], int64[I], int64[I], the lists (:mod:`.linked`).
    missing: int64[I], rows of B that are not on chip; -1 for rows that had their turn. degree: int64[I], rows of B of each.
    """

    first: NDArray[Any]
    following: NDArray[Any]
    preceding: NDArray[Any]
    missing: NDArray[Any]
    degree: NDArray[Any]


@njit(cache=True)
def _greedy(
    a_pointers: NDArray[Any],
    a_coordinates: NDArray[Any],
    users_begin: NDArray[Any],
    users: NDArray[Any],
    b_lengths: NDArray[Any],
    capacity: int,
) -> NDArray[Any]:
    """Rows in turn. ``users_begin``, ``users``: rows of A that use each row of B.

    The row that misses the fewest rows of B is next, of those that find any, else the first one that is left. Rows of B leave in
    the order in which they came, as in a partition.
    """
    rows = len(a_pointers) - 1
    order = np.empty(rows, np.int64)
    degree = np.diff(a_pointers)
    most = degree.max() if rows else 0
    waiting = _Waiting(
        np.full(most + 1, -1, np.int64),
        np.full(rows, -1, np.int64),
        np.full(rows, -1, np.int64),
        degree.copy(),
        degree,
    )
    first, missing = waiting.first, waiting.missing
    on_chip = np.zeros(len(b_lengths), np.bool_)
    came = np.empty(len(b_lengths) + 1, np.int64)  # rows of B on chip, a ring
    oldest = newest = used = natural = 0
    least = most + 1  # no list below it has a row
    for number in range(rows):
        while least <= most and first[least] < 0:
            least += 1
        if least <= most:
            row = first[least]
            unlink(first, waiting.following, waiting.preceding, missing[row], row)
        else:
            while missing[natural] < 0:
                natural += 1
            row = natural
        order[number] = row
        missing[row] = -1
        for position in range(a_pointers[row], a_pointers[row + 1]):
            k = a_coordinates[position]
            if on_chip[k] or b_lengths[k] == 0 or b_lengths[k] > capacity:
                continue
            while used + b_lengths[k] > capacity:
                out = came[oldest]
                oldest = (oldest + 1) % len(came)
                used -= b_lengths[out]
                on_chip[out] = False
                _change(waiting, users_begin, users, out, 1)
            on_chip[k] = True
            came[newest] = k
            newest = (newest + 1) % len(came)
            used += b_lengths[k]
            least = min(least, _change(waiting, users_begin, users, k, -1))
    return order


@njit(cache=True)
def _change(waiting: _Waiting, users_begin: NDArray[Any], users: NDArray[Any], k: int, step: int) -> int:
    """Row ``k`` of B comes, so that its users miss one less (-1), or leaves (1); returns the fewest that one of them misses."""
    least = len(waiting.first)
    if users_begin[k + 1] - users_begin[k] > ORDER_MOST_USERS:
        return least
    for place in range(users_begin[k], users_begin[k + 1]):
        row = users[place]
        if waiting.missing[row] < 0:
            continue
        if waiting.missing[row] < waiting.degree[row]:
            unlink(waiting.first, waiting.following, waiting.preceding, waiting.missing[row], row)
        waiting.missing[row] += step
        number = waiting.missing[row]
        if number < waiting.degree[row]:
            link(waiting.first, waiting.following, waiting.preceding, number, row)
            least = min(least, number)
    return least


def _of_file(name: str, rows: int) -> Index:
    """The order that a file says."""
    path = Path(name)
    known = f"{', '.join(ROW_ORDERS)} or a file"
    if not path.is_file():
        raise SchemeError("row_order", name, f"one of {known}")
    try:
        read = np.load(path, allow_pickle=False) if path.suffix == ".npy" else np.loadtxt(path, dtype=np.int64, ndmin=1)
    except (OSError, ValueError) as error:
        raise SchemeError("row_order", name, f"a file of row numbers ({error})") from None
    if not isinstance(read, np.ndarray) or read.dtype.kind not in "iu" or read.shape != (rows,):
        shape = f"{read.dtype} of shape {read.shape}" if isinstance(read, np.ndarray) else "several arrays"
        raise SchemeError("row_order", name, f"a file of {rows} row numbers, not {shape}")
    order = read.astype(np.int64)
    times = np.zeros(rows, np.int64)
    outside = order[(order < 0) | (order >= rows)]
    if len(outside):
        raise SchemeError("row_order", name, f"a permutation of 0 to {rows - 1}: it has row {outside[0]}")
    np.add.at(times, order, 1)
    if (times != 1).any():
        repeated, missing = int(np.argmax(times > 1)), int(np.argmax(times == 0))
        raise SchemeError(
            "row_order", name, f"a permutation of 0 to {rows - 1}: row {repeated} comes twice, row {missing} is missing"
        )
    return order
