"""How the nonzeros of A x B are told to the analysis: by their number, by a band, or place by place."""

from collections.abc import Sequence
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


def told(
    kind: str, a: sp.csr_matrix, b: sp.csr_matrix, stem: str, step: int | None = None, *, joined: bool = False
) -> Told:
    """Densities of A, B and C = A x B.

    ``uniform``: each place as likely as any other, also of C, whose places are empty where none of K products is.
    ``banded``: the narrowest band with as many nonzeros, C's as wide as both together. ``actual``: the places themselves, C's
    too, in files whose names begin with ``stem``. Raises SpecError where operands have no band.

    step: rows of B after which C leaves as a partial result and comes back; None where it stays until it is complete. joined:
    parts of its rows are read and written once more. The analysis moves the same C at each step: it is told one that moves as
    often as all of these together, no larger than C.
    """
    if kind == "uniform":
        share_a, share_b = (each.nnz / (each.shape[0] * each.shape[1]) for each in (a, b))
        both = share_a * share_b
        depths = _steps(a.shape[1], step)
        share_c = 1.0 if both >= 1 else _moved([-expm1(depth * log1p(-both)) for depth in depths], joined=joined)
        shares = {"A": share_a, "B": share_b, "C": share_c}
        return Told({name: {"distribution": "uniform", "density": share} for name, share in shares.items()})
    if kind == "banded":
        bands = {name: _band(name, each) for name, each in (("A", a), ("B", b))}
        whole = min(bands["A"] + bands["B"], a.shape[0] - 1)
        # A step reaches only the rows that its band meets.
        depths = _steps(a.shape[1], step)
        nonzeros = [_inside(a.shape[0], whole) * depth / a.shape[1] for depth in depths]
        bands["C"] = _narrowest(a.shape[0], round(_moved(nonzeros, joined=joined)))
        return Told({name: {"distribution": "banded", "band_width": band} for name, band in bands.items()})
    ones = {"A": _ones(a), "B": _ones(b)}
    ones["C"] = _ones(_partial(ones["A"], ones["B"], _steps(a.shape[1], step), joined=joined))
    names = {tensor: f"{stem}-{tensor}.npz" for tensor in ones}
    densities = {tensor: {"distribution": "actual_data", "data_file_path": name} for tensor, name in names.items()}
    return Told(densities, {names[tensor]: matrix for tensor, matrix in ones.items()})


def _ones(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Its places; stored zeros are moved and multiplied as others are."""
    found = sp.csr_matrix(matrix, copy=True)
    found.data = found.data.astype("float32")
    found.data[:] = 1
    return found


def _steps(depth: int, step: int | None) -> list[int]:
    """Rows of B that C is made of at each step."""
    return [*range(step, depth, step), depth] if step else [depth]


def _moved(sizes: Sequence[float], *, joined: bool) -> float:
    """A size that moves 2 n - 1 times as much as partial results of these n sizes do: all but the last are written and read, the
    last is written, and where parts are joined read and written once more. No more than the last."""
    moves = 2 * sum(sizes[:-1]) + (3 if joined else 1) * sizes[-1]
    return min(sizes[-1], moves / (2 * len(sizes) - 1))


def _partial(a: sp.csr_matrix, b: sp.csr_matrix, depths: Sequence[int], *, joined: bool) -> sp.csr_matrix:
    """The partial result whose number of nonzeros is nearest to what moves."""
    by_column, found, number = a.tocsc(), sp.csr_matrix((a.shape[0], b.shape[1]), dtype=a.dtype), []
    begin = 0
    for depth in depths:
        found = found + by_column[:, begin:depth].tocsr() @ b[begin:depth]
        number.append(found.nnz)
        begin = depth
    wanted = _moved(number, joined=joined)
    nearest = min(range(len(depths)), key=lambda n: abs(number[n] - wanted))
    return found if nearest == len(depths) - 1 else by_column[:, : depths[nearest]].tocsr() @ b[: depths[nearest]]


def _band(name: str, matrix: sp.csr_matrix) -> int:
    side = matrix.shape[0]
    if matrix.shape[1] != side:
        raise SpecError(f"--density banded: {name} is {side} x {matrix.shape[1]}: must be square")
    return _narrowest(side, matrix.nnz)


def _inside(side: int, band: int) -> int:
    """Places of a square matrix that lie in a band."""
    return side * (2 * band + 1) - band * (band + 1)


def _narrowest(side: int, nonzeros: int) -> int:
    """The narrowest band with so many places."""
    return next((band for band in range(side) if _inside(side, band) >= nonzeros), side - 1)
