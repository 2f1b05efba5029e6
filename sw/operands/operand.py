"""An operand: a named sparse matrix in SciPy's canonical CSR, and its values as the design holds them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sw.formats.canonical import Matrix, RangeError, canonical
from sw.formats.csr import VALUE_DTYPES, Csr

from .errors import OperandError
from .memory import require_memory
from .window import Unfolded

__all__ = ["CANONICAL_NAN", "COORDINATE_LIMIT", "Operand", "canonical_csr", "to_csr", "to_design_values"]

COORDINATE_LIMIT = 2**32 - 1
CANONICAL_NAN = 0x7FC00000


@dataclass(frozen=True, kw_only=True, eq=False)
class Operand:
    """A matrix with a name.

    Parameters
    ----------
    name: short, for tables and file names.
    source: what the user asked for, enough to find it again.
    matrix: given in any SciPy format; held as CSR, rows sorted, duplicates summed, stored zeros kept; float64 or int64 as in the
        source.
    symmetric_expanded: the source stores one triangle and the other one was added.
    unfolded: images of which the matrix is the form for a convolution.
    """

    name: str
    source: str
    matrix: sp.csr_array
    symmetric_expanded: bool = False
    unfolded: Unfolded | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.matrix.shape[0]), int(self.matrix.shape[1])

    @property
    def nnz(self) -> int:
        return int(self.matrix.nnz)

    def __str__(self) -> str:
        """As in messages."""
        return self.source

    def __post_init__(self) -> None:
        # Every reader gives canonical CSR; a matrix of any other form is converted, never taken for one.
        object.__setattr__(self, "matrix", canonical_csr(self.matrix, self.source))

    def transposed(self) -> "Operand":
        """The transpose, under the name ``NAME^T``."""
        return Operand(
            name=f"{self.name}^T",
            source=f"{self.source} (transposed)",
            matrix=canonical_csr(self.matrix.T, self.source),
            symmetric_expanded=self.symmetric_expanded,
        )


def canonical_csr(matrix: Matrix, source: str, place: Callable[[int], str] | None = None) -> sp.csr_array:
    """Any matrix as sorted CSR without duplicates, values float64 or int64; stored zeros stay (:mod:`sw.formats.canonical`).

    Parameters
    ----------
    source: names the operand in messages. place: names the n-th stored entry of a COO matrix (``FILE:LINE``), instead of it.

    Raises OperandError for complex values and anything else that is not a real number, for duplicates whose sum is out of range,
    and for an operand that does not fit the memory: pointers of empty rows count too.
    """
    given: Any = matrix
    if len(given.shape) != 2:
        raise OperandError(f"{source}: {len(given.shape)} dimensions: an operand must be a matrix")
    if not sp.issparse(given) or given.format in ("lil", "dok"):
        given = sp.coo_array(given)
    kind = given.dtype.kind
    if kind == "c":
        raise OperandError(f"{source}: values are complex ({given.dtype}): must be real, integer or pattern")
    if kind not in "fiub":
        raise OperandError(f"{source}: values are {given.dtype}: must be real, integer or pattern")
    if max(given.shape) > COORDINATE_LIMIT:
        raise OperandError(f"{source}: shape {given.shape}: at most {COORDINATE_LIMIT} rows and columns")
    if kind == "u" and given.nnz and given.data.max() > np.iinfo(np.int64).max:
        raise OperandError(f"{source}: value {given.data.max()} is too large: at most {np.iinfo(np.int64).max}")
    if kind == "f" and given.dtype.itemsize > 8 and np.any(np.isfinite(given.data) & np.isinf(_double(given.data))):
        raise OperandError(
            f"{source}: values are {given.dtype}: must be at most {np.finfo(np.float64).max:.6e}, as in float64"
        )
    require_memory(16 * given.shape[0] + 48 * given.nnz, source)
    try:
        return canonical(given)
    except RangeError as error:
        row, column = (index + 1 for index in error.place)
        where = source if place is None else place(error.entry)
        raise OperandError(f"{where}: row {row}, column {column}: {error.complaint}") from None
    except ValueError as error:
        raise OperandError(
            f"{source}: damaged {given.format.upper()} matrix ({' '.join(str(error).split())[:120]})"
        ) from None


def _double(data: NDArray[Any]) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        return data.astype(np.float64)


def to_design_values(operand: Operand, value: str) -> NDArray[np.uint32]:
    """The operand's values in 32-bit words of the design's value type, one for each stored nonzero.

    Integer types: every value must be an integer in the range of the type. ``bf16`` and ``fp32``: rounded to nearest
    even, once; a finite value that would become infinite is refused; infinities and NaN pass (NaN as the canonical quiet
    one). Raises OperandError naming the first offending entry (row and column counted from 1).
    """
    if value not in VALUE_DTYPES:
        raise ValueError(f"Value type must be one of {', '.join(VALUE_DTYPES)}, not {value!r}")
    data = operand.matrix.data
    kind = VALUE_DTYPES[value]
    if kind.kind == "i":
        if data.dtype.kind == "f":
            _refuse(operand, np.isnan(data), f"is not a number: {value} designs need integers (use --value fp32)")
            _refuse(
                operand, data != np.rint(data), f"is not an integer: {value} designs need integers (use --value fp32)"
            )
        limits = np.iinfo(value)
        _refuse(
            operand,
            (data < limits.min) | (data > limits.max),
            f"is out of range: {value} holds {limits.min} to {limits.max}",
        )
        return data.astype(np.int32).view(np.uint32)
    single = _bfloat16(data) if value == "bf16" else _binary32(data)
    limit = np.float32(2.0**128 - 2.0 ** (120 if value == "bf16" else 104))
    complaint = f"is out of range: {value} holds magnitudes up to {limit:.6e}"
    _refuse(operand, np.isinf(single) & np.isfinite(data), complaint)
    bits = single.view(np.uint32)
    bits[np.isnan(single)] = CANONICAL_NAN
    return bits


def _binary32(data: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(over="ignore", invalid="ignore"):
        return data.astype(np.float32)


def _bfloat16(data: NDArray[Any]) -> NDArray[np.float32]:
    """Rounded to nearest even, once: rounding to binary32 first could turn a number near a tie into a tie."""
    if data.dtype.kind == "i":
        # Bits beyond float64 become one sticky bit that keeps the number off a tie.
        data = np.where(np.abs(data) >> 53, data >> 11 << 11 | ((data & 0x7FF) != 0) * np.int64(1 << 10), data)
    with np.errstate(invalid="ignore", over="ignore"):
        exact = data.astype(np.float64)
        _, exponent = np.frexp(exact)
        # Of 8 significant bits the last one weighs this much; of subnormals it weighs 2**-133.
        place = np.ldexp(1.0, np.maximum(exponent - 8, -133))
        return _binary32(np.rint(exact / place) * place)


def to_csr(operand: Operand, value: str) -> Csr:
    """The operand as the accelerator holds it."""
    return Csr.from_scipy(operand.matrix, to_design_values(operand, value), value)


def _refuse(operand: Operand, bad: NDArray[np.bool_], complaint: str) -> None:
    if not bad.any():
        return
    position = int(np.argmax(bad))
    row = int(np.searchsorted(operand.matrix.indptr, position, side="right"))
    column = int(operand.matrix.indices[position]) + 1
    raise OperandError(
        f"{operand.source}: value {operand.matrix.data[position]} at row {row}, column {column} {complaint}"
    )
