"""TTM and MTTKRP by tiles, values and all: each product of tiles on its own, added up as it leaves. In float64 or int64.

No hardware computes these kernels; this is what their tile schemes are checked with.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["by_elements", "by_tiles", "same_values"]

# Nonzeros of A times columns of the matrices that are processed at a time.
CHUNK = 1 << 22

Values = NDArray[Any]


def by_tiles(
    coordinates: NDArray[np.int64],
    values: Values,
    matrices: Sequence[sp.csr_array],
    shape: Sequence[int],
    sides: Sequence[int],
) -> sp.csr_array:
    """The output as a matrix: its rows are the ranks that A keeps, flattened, its columns the free rank.

    Parameters
    ----------
    coordinates: int64[nnz, 3] of A. matrices: one for each of A's last ranks that are summed over, these as rows.
    shape: of A. sides: of the tiles along A's ranks and the free one.
    """
    kept = 3 - len(matrices)
    free = matrices[0].shape[1]
    steps = range(-(-free // sides[3]))
    tiles = coordinates // np.asarray(sides[:3])
    blocks: dict[tuple[int, int, int], sp.csr_array] = {}
    for number, matrix in enumerate(matrices):
        side = sides[kept + number]
        rows = [matrix[begin : begin + side] for begin in range(0, matrix.shape[0], side)]
        for (place, band), step in itertools.product(enumerate(rows), steps):
            blocks[number, place, step] = band[:, step * sides[3] : (step + 1) * sides[3]]
    order = np.lexsort(tiles.T[::-1])
    changes = np.flatnonzero((tiles[order][1:] != tiles[order][:-1]).any(axis=1)) + 1
    pieces = []
    for members in np.split(order, changes) if len(order) else []:
        at = tiles[members[0]]
        inner = coordinates[members] - at * np.asarray(sides[:3])
        flat = np.ravel_multi_index(tuple(coordinates[members, rank] for rank in range(kept)), tuple(shape[:kept]))
        for step in steps:
            tile = [blocks[number, int(at[kept + number]), step] for number in range(len(matrices))]
            part = _product(inner, values[members], tile, kept).tocoo()
            part.sum_duplicates()
            pieces.append((flat[part.row], part.col + step * sides[3], part.data))
    kind = np.result_type(values, *(matrix.dtype for matrix in matrices))
    rows_of, columns, terms = (
        [np.concatenate(parts) for parts in zip(*pieces, strict=True)] if pieces else [np.empty(0, np.int64)] * 3
    )
    size = (int(np.prod(shape[:kept])), free)
    return sp.csr_array(sp.coo_array((terms.astype(kind), (rows_of, columns)), shape=size))


def _product(inner: NDArray[np.int64], values: Values, tiles: Sequence[sp.csr_array], kept: int) -> sp.csr_array:
    """A row for each nonzero of a tile of A: its value times the rows of the matrices' tiles that it selects."""
    rows = tiles[0][inner[:, kept]]
    for number, tile in enumerate(tiles[1:], start=1):
        rows = sp.csr_array(rows.multiply(tile[inner[:, kept + number]]))
    return sp.csr_array(sp.diags_array(values, dtype=values.dtype) @ rows)


def by_elements(
    coordinates: NDArray[np.int64], values: Values, matrices: Sequence[sp.csr_array], shape: Sequence[int]
) -> NDArray[Any]:
    """The same product from dense matrices, nonzero of A by nonzero, without tiles: what ``by_tiles`` must equal."""
    kept = 3 - len(matrices)
    factors = [matrix.toarray() for matrix in matrices]
    flat = np.ravel_multi_index(tuple(coordinates[:, rank] for rank in range(kept)), tuple(shape[:kept]))
    kind = np.result_type(values, *(factor.dtype for factor in factors))
    found = np.zeros((int(np.prod(shape[:kept])), factors[0].shape[1]), kind)
    step = max(1, CHUNK // max(1, found.shape[1]))
    for begin in range(0, len(values), step):
        span = slice(begin, begin + step)
        terms = values[span, None] * factors[0][coordinates[span, kept]]
        for number, factor in enumerate(factors[1:], start=1):
            terms = terms * factor[coordinates[span, kept + number]]
        np.add.at(found, flat[span], terms)
    return found


def same_values(
    coordinates: NDArray[np.int64],
    values: Values,
    matrices: Sequence[sp.csr_array],
    shape: Sequence[int],
    sides: Sequence[int],
) -> tuple[bool, str]:
    """Whether the product by tiles is the product without; and what was compared.

    Integers must be equal; a real entry may be off by the rounding of each of its terms and sums.
    """
    tiled = by_tiles(coordinates, values, matrices, shape, sides).toarray()
    whole = by_elements(coordinates, values, matrices, shape)
    if whole.dtype.kind == "i":
        same = np.array_equal(tiled, whole)
        return same, f"{np.count_nonzero(whole):,} elements {'equal' if same else 'DIFFER'}"
    sizes = by_elements(coordinates, np.abs(values), [abs(matrix) for matrix in matrices], shape)
    bound = sizes * (len(values) + 3) * np.finfo(np.float64).eps
    same = bool(np.all(np.abs(tiled - whole) <= bound))
    return same, f"{np.count_nonzero(sizes):,} elements {'within rounding' if same else 'DIFFER'}"
