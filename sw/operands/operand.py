"""An operand: a named sparse matrix in SciPy's canonical CSR, and its values as the design holds them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sw.formats.csr import VALUE_DTYPES, Csr

from .errors import OperandError
from .memory import require_memory

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
    matrix: rows sorted, duplicates summed, stored zeros kept; float64 or int64 as in the source.
    symmetric_expanded: the source stores one triangle and the other one was added.
    """

    name: str
    source: str
    matrix: sp.csr_array
    symmetric_expanded: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.matrix.shape[0]), int(self.matrix.shape[1])

    @property
    def nnz(self) -> int:
        return int(self.matrix.nnz)

    def transposed(self) -> "Operand":
        """The transpose, under the name ``NAME^T``."""
        return Operand(
            name=f"{self.name}^T",
            source=f"{self.source} (transposed)",
            matrix=canonical_csr(self.matrix.T, self.source),
            symmetric_expanded=self.symmetric_expanded,
        )


def canonical_csr(matrix: sp.sparray | sp.spmatrix, source: str) -> sp.csr_array:
    """Any SciPy sparse matrix as sorted CSR without duplicates, values float64 or int64; stored zeros stay.

    Raises OperandError for complex values and anything else that is not a real number, and for what does not fit the
    machine: the pointers of many empty rows take room, too.
    """
    if len(matrix.shape) != 2:
        raise OperandError(f"{source}: {len(matrix.shape)} dimensions: an operand must be a matrix")
    kind = matrix.dtype.kind
    if kind == "c":
        raise OperandError(f"{source}: values are complex ({matrix.dtype}): must be real, integer or pattern")
    if kind not in "fiub":
        raise OperandError(f"{source}: values are {matrix.dtype}: must be real, integer or pattern")
    if max(matrix.shape) > COORDINATE_LIMIT:
        raise OperandError(f"{source}: shape {matrix.shape}: at most {COORDINATE_LIMIT} rows and columns")
    if kind == "u" and matrix.nnz and matrix.data.max() > np.iinfo(np.int64).max:
        raise OperandError(f"{source}: value {matrix.data.max()} is too large: at most {np.iinfo(np.int64).max}")
    require_memory(16 * matrix.shape[0] + 48 * matrix.nnz, source)
    converted = sp.csr_array(matrix, copy=True).astype(np.float64 if kind == "f" else np.int64)
    converted.sum_duplicates()
    converted.sort_indices()
    return converted


def to_design_values(operand: Operand, value: str) -> NDArray[np.uint32]:
    """The operand's values in 32-bit slots of the design's value type, one for each stored element.

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
    """Rounded to nearest even, once: by way of binary32 a number just beside a tie could become one."""
    if data.dtype.kind == "i":
        # What float64 has no place for becomes one bit that keeps the number off a tie.
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
