"""CSR as the accelerator holds it: 32-bit coordinates and values in 32-bit slots."""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["VALUE_DTYPES", "Csr"]

#: What each value type is in NumPy; bf16, which NumPy lacks, is a binary32 that has zeros in its lower half.
VALUE_DTYPES = {
    name: np.dtype(kind)
    for name, kind in {
        "int8": np.int8,
        "int16": np.int16,
        "int32": np.int32,
        "bf16": np.float32,
        "fp32": np.float32,
    }.items()
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Csr:
    """A sparse matrix as it lies in the accelerator's memory.

    Parameters
    ----------
    rows, columns: shape.
    pointers: int64[rows + 1], position of each row's first nonzero; ``pointers[0] == 0``, never decreasing.
    coordinates: uint32[nnz], column of each nonzero, strictly rising inside a row.
    bits: uint32[nnz], the value in its slot: read as int32 or binary32 it is the number, whatever the value type.
    value: value type, one of ``VALUE_DTYPES``.

    Stored zeros are nonzeros like any other. Nothing is copied; treat the arrays as read-only.
    """

    rows: int
    columns: int
    pointers: NDArray[np.int64]
    coordinates: NDArray[np.uint32]
    bits: NDArray[np.uint32]
    value: str

    def __post_init__(self) -> None:
        if self.value not in VALUE_DTYPES:
            raise ValueError(f"Value type must be one of {', '.join(VALUE_DTYPES)}, not {self.value!r}")
        for name, dtype in (("pointers", np.int64), ("coordinates", np.uint32), ("bits", np.uint32)):
            array = getattr(self, name)
            if array.dtype != dtype or array.ndim != 1:
                raise TypeError(f"CSR {name} must be a vector of {np.dtype(dtype)}, not {array.dtype} {array.shape}")
        if len(self.pointers) != self.rows + 1:
            raise ValueError(f"CSR pointers must have rows + 1 = {self.rows + 1} entries, not {len(self.pointers)}")
        if len(self.coordinates) != len(self.bits) or self.pointers[-1] != len(self.bits):
            raise ValueError(
                f"CSR arrays disagree: {self.pointers[-1]} elements by pointers, {len(self.coordinates)} coordinates, "
                f"{len(self.bits)} values"
            )

    @property
    def nnz(self) -> int:
        """Stored nonzeros, zeros included."""
        return len(self.bits)

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.columns

    @property
    def values(self) -> NDArray[np.generic]:
        """The values as numbers; of 32-bit types a view of ``bits``."""
        kind = VALUE_DTYPES[self.value]
        return self.bits.view(np.float32 if kind.kind == "f" else np.int32).astype(kind, copy=False)

    def to_scipy(self) -> sp.csr_array:
        """The same matrix for SciPy, in its own value type (bf16: float32); stored zeros stay."""
        index = np.int64 if max(self.nnz, self.columns, self.rows) > np.iinfo(np.int32).max else np.int32
        return sp.csr_array(
            (self.values, self.coordinates.astype(index), self.pointers.astype(index)), shape=(self.rows, self.columns)
        )

    def transposed(self) -> "Csr":
        """The columns as rows."""
        order = np.argsort(self.coordinates, kind="stable")
        rows = np.repeat(np.arange(self.rows, dtype=np.uint32), np.diff(self.pointers))
        counts = np.bincount(self.coordinates, minlength=self.columns)
        return replace(
            self,
            rows=self.columns,
            columns=self.rows,
            pointers=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)]),
            coordinates=rows[order],
            bits=self.bits[order],
        )

    def without_zeros(self) -> "Csr":
        """A copy without the stored zeros (``-0.0`` is a zero)."""
        keep = self.values != 0
        if keep.all():
            return self
        kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep, dtype=np.int64)])
        return Csr(
            rows=self.rows,
            columns=self.columns,
            pointers=kept[self.pointers],
            coordinates=self.coordinates[keep],
            bits=self.bits[keep],
            value=self.value,
        )

    @classmethod
    def from_scipy(cls, matrix: sp.csr_array, bits: NDArray[np.uint32], value: str) -> "Csr":
        """The structure of canonical CSR (:func:`.canonical.canonical`) with given value patterns, one for each nonzero.

        Raises TypeError for any other matrix: which pattern belongs to which nonzero would be lost in converting it.
        """
        if not isinstance(matrix, sp.csr_array) or not matrix.has_canonical_format:
            raise TypeError(
                f"Matrix must be a csr_array, its rows sorted and without duplicates, not {type(matrix).__name__}"
            )
        return cls(
            rows=int(matrix.shape[0]),
            columns=int(matrix.shape[1]),
            pointers=matrix.indptr.astype(np.int64),
            coordinates=matrix.indices.astype(np.uint32),
            bits=np.ascontiguousarray(bits, dtype=np.uint32),
            value=value,
        )
