"""A description of a matrix: its size, how its nonzeros lie, and the size of its product with itself."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sw.formats.canonical import Matrix, canonical

from .effmac import exact_effmac
from .pattern import Pattern
from .symbolic import count_tiled, in_parallel

__all__ = ["distribution", "summary"]

QUARTILES = {"first_quartile": 0.25, "median": 0.5, "third_quartile": 0.75}


def distribution(counts: NDArray[np.int64]) -> dict[str, float | int]:
    """Least, quartiles, most, mean and standard deviation of nonzeros a fiber, and how many fibers are empty."""
    if not len(counts):
        return dict.fromkeys(("least", *QUARTILES, "most", "mean", "deviation", "empty"), 0)
    quartiles = {name: float(np.quantile(counts, share)) for name, share in QUARTILES.items()}
    return {
        "least": int(counts.min()),
        **quartiles,
        "most": int(counts.max()),
        "mean": float(counts.mean()),
        "deviation": float(counts.std()),
        "empty": int((counts == 0).sum()),
    }


def summary(matrix: Matrix) -> dict[str, Any]:
    """Everything that is counted about a matrix, ready for JSON; stored zeros count as nonzeros.

    ``symmetry``: shares of the nonzeros off the diagonal whose mirror image is stored, and is stored with the same value;
    null for matrices that are not square, and where there are none. ``values``: ``least``, ``most`` and ``whole_numbers`` are of
    the finite ones. ``product``: A x A, or A x A^T where A is not square;
    both counts are exact and C is never built.
    """
    matrix = canonical(matrix)
    rows, columns = (int(size) for size in matrix.shape)
    nnz = int(matrix.nnz)
    pattern = Pattern.of(matrix)
    row_of = np.repeat(np.arange(rows, dtype=np.int64), pattern.row_lengths)
    below = row_of - pattern.coordinates
    data = matrix.data
    finite = data[np.isfinite(data)]
    return {
        "rows": rows,
        "cols": columns,
        "nnz": nnz,
        "density": nnz / (rows * columns) if rows and columns else 0.0,
        "symmetry": _symmetry(matrix, int((below != 0).sum())) if rows == columns else None,
        "diagonal": int((below == 0).sum()),
        "bandwidth": {"lower": max(0, int(below.max())), "upper": max(0, int(-below.min()))}
        if nnz
        else {"lower": 0, "upper": 0},
        "row_nnz": distribution(pattern.row_lengths),
        "col_nnz": distribution(pattern.column_counts()),
        "values": {
            "least": finite.min().item() if len(finite) else None,
            "most": finite.max().item() if len(finite) else None,
            "zeros": int((data == 0).sum()),
            "infinite": int(np.isinf(data).sum()),
            "not_a_number": int(np.isnan(data).sum()),
            "whole_numbers": bool(np.all(finite == np.rint(finite))),
        },
        "product": _product(pattern, matrix),
    }


def _symmetry(matrix: sp.csr_array, off_diagonal: int) -> dict[str, float] | None:
    """By merging the matrix with its transpose: both are sorted, so that common places are neighbours."""
    if not off_diagonal:
        return None
    mirrored = sp.csr_array(matrix.T.tocsr())
    mirrored.sort_indices()
    size = matrix.shape[1]
    keys, others = (
        np.repeat(np.arange(m.shape[0], dtype=np.int64), np.diff(m.indptr)) * size + m.indices
        for m in (matrix, mirrored)
    )
    at = np.searchsorted(others, keys)
    at[at == len(others)] = 0
    here = (others[at] == keys) & (keys // size != keys % size)
    same = here & (mirrored.data[at] == matrix.data)
    return {"pattern": float(here.sum() / off_diagonal), "values": float(same.sum() / off_diagonal)}


def _product(pattern: Pattern, matrix: sp.csr_array) -> dict[str, Any]:
    square = pattern.rows == pattern.columns
    other = pattern if square else Pattern.of(sp.csr_array(matrix.T.tocsr()))
    macs = exact_effmac(pattern, other)

    def part(first: int, last: int) -> NDArray[np.int64]:
        a, b = pattern, other
        depth = max(1, a.columns)
        count = count_tiled(a.pointers, a.coordinates, b.pointers, b.coordinates, b.columns, depth, first, last)
        return np.array([count])

    nnz_c = int(in_parallel(part, pattern.rows)[0]) if pattern.rows else 0
    return {
        "kernel": "A x A" if square else "A x A^T",
        "macs": macs,
        "nnz_c": nnz_c,
        "macs_per_element": macs / nnz_c if nnz_c else None,
    }
