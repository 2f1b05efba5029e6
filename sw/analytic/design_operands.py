"""How the nonzeros of A x B are told to the analysis: by their number, by a band, or place by place."""

from dataclasses import dataclass, field
from math import expm1, log1p
from typing import Any

import scipy.sparse as sp

from .errors import SpecError

__all__ = ["KINDS", "Told", "told"]

KINDS = ("uniform", "banded", "actual")


@dataclass(frozen=True)
class Told:
    """densities: of A, B and C, as the section ``problem`` has them. files: matrices of ones that these name."""

    densities: dict[str, Any]
    files: dict[str, sp.csr_matrix] = field(default_factory=dict)


def told(kind: str, a: sp.csr_matrix, b: sp.csr_matrix, stem: str) -> Told:
    """``uniform``: each place as likely as any other, also of C, whose places are empty where none of K products is.
    ``banded``: the narrowest band with as many nonzeros, C's as wide as both together. ``actual``: the places themselves, C's
    too, in files whose names begin with ``stem``. Raises SpecError where operands have no band."""
    if kind == "uniform":
        share_a, share_b = (each.nnz / (each.shape[0] * each.shape[1]) for each in (a, b))
        both = share_a * share_b
        share_c = 1.0 if both >= 1 else -expm1(a.shape[1] * log1p(-both))
        shares = {"A": share_a, "B": share_b, "C": share_c}
        return Told({name: {"distribution": "uniform", "density": share} for name, share in shares.items()})
    if kind == "banded":
        bands = {name: _band(name, each) for name, each in (("A", a), ("B", b))}
        bands["C"] = min(bands["A"] + bands["B"], a.shape[0] - 1)
        return Told({name: {"distribution": "banded", "band_width": band} for name, band in bands.items()})
    ones = {"A": _ones(a), "B": _ones(b)}
    ones["C"] = _ones(ones["A"] @ ones["B"])
    names = {tensor: f"{stem}-{tensor}.npz" for tensor in ones}
    densities = {tensor: {"distribution": "actual_data", "data_file_path": name} for tensor, name in names.items()}
    return Told(densities, {names[tensor]: matrix for tensor, matrix in ones.items()})


def _ones(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Its places; stored zeros are moved and multiplied as others are."""
    found = sp.csr_matrix(matrix, copy=True)
    found.data = found.data.astype("float32")
    found.data[:] = 1
    return found


def _band(name: str, matrix: sp.csr_matrix) -> int:
    side = matrix.shape[0]
    if matrix.shape[1] != side:
        raise SpecError(f"--density banded: {name} is {side} x {matrix.shape[1]}: must be square")
    band = 0
    while band < side - 1 and side * (2 * band + 1) - band * (band + 1) < matrix.nnz:
        band += 1
    return band
