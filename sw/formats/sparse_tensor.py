"""A sparse tensor of any order, on its way from one storage format to another: coordinates and values, row-major."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .array_checks import FormatError, Ids
from .csr import VALUE_DTYPES, Csr

__all__ = [
    "LARGEST_RANK",
    "VALUE_BITS",
    "SparseTensor",
    "flat_positions",
    "numbers",
    "patterns",
    "require_shape",
    "row_major_order",
]

#: Bits of each value type in memory.
VALUE_BITS = {"int8": 8, "int16": 16, "int32": 32, "bf16": 16, "fp32": 32}
#: Coordinates take 32 bits at most.
LARGEST_RANK = 1 << 32
_POSITIONS = 1 << 64
# bf16 is the upper half of a binary32.
_LOWER_HALF = 16


def patterns(values: NDArray[Any], value: str) -> NDArray[Any]:
    """The bits of each value, as unsigned numbers of its width."""
    if value == "bf16":
        return (values.view(np.uint32) >> _LOWER_HALF).astype(np.uint16)
    return values.view(f"u{values.dtype.itemsize}")


def numbers(bits: NDArray[Any], value: str) -> NDArray[Any]:
    """The values whose bits these are, given as unsigned numbers of any width."""
    kind = VALUE_DTYPES[value]
    if value == "bf16":
        return (bits.astype(np.uint32) << _LOWER_HALF).view(kind)
    return bits.astype(f"u{kind.itemsize}", copy=False).view(kind)


def require_shape(shape: Sequence[int]) -> None:
    """Refuses a size outside 1 to 2^32. Raises FormatError."""
    if not shape or any(not 1 <= size <= LARGEST_RANK for size in shape):
        raise FormatError(f"shape {' x '.join(map(str, shape))}: each rank must be from 1 to 2^32")


def flat_positions(shape: Sequence[int], ids: Sequence[Ids]) -> NDArray[np.uint64]:
    """Row-major position of each tuple of ids. Raises FormatError where positions take more than 64 bits."""
    if prod(shape) > _POSITIONS:
        raise FormatError(f"shape {' x '.join(map(str, shape))}: positions must fit 64 bits")
    found = np.zeros(len(ids[0]), np.uint64)
    for size, rank in zip(shape, ids, strict=True):
        found = found * np.uint64(size) + rank.astype(np.uint64)
    return found


def row_major_order(shape: Sequence[int], ids: Sequence[Ids]) -> NDArray[np.int64]:
    """The order that sorts tuples of ids, those that are the same as they come."""
    if prod(shape) <= _POSITIONS:
        return np.argsort(flat_positions(shape, ids), kind="stable")
    return np.lexsort(tuple(reversed(list(ids))))


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseTensor:
    """The stored entries of a tensor, sorted row-major, each place once.

    Parameters
    ----------
    shape: size of each rank, 1 to 2^32.
    ids: int64[nnz] for each rank, coordinates from 0.
    values: one for each entry, in the type that ``VALUE_DTYPES`` has for ``value``; stored zeros stay.
    value: value type.

    Nothing is copied; treat the arrays as read-only.
    """

    shape: tuple[int, ...]
    ids: tuple[Ids, ...]
    values: NDArray[Any]
    value: str

    def __post_init__(self) -> None:
        if self.value not in VALUE_BITS:
            raise ValueError(f"Value type must be one of {', '.join(VALUE_BITS)}, not {self.value!r}")
        require_shape(self.shape)
        if len(self.ids) != len(self.shape) or any(len(rank) != len(self.values) for rank in self.ids):
            raise FormatError(f"{len(self.values)} values: must have as many coordinates in each of {len(self.shape)}")

    @property
    def nnz(self) -> int:
        """Stored entries, zeros included."""
        return len(self.values)

    @property
    def order(self) -> int:
        return len(self.shape)

    def positions(self) -> NDArray[np.uint64]:
        """Row-major position of each entry."""
        return flat_positions(self.shape, self.ids)

    def without_zeros(self) -> "SparseTensor":
        """The tensor without stored zeros (``-0.0`` is a zero)."""
        keep = self.values != 0
        if keep.all():
            return self
        ids = tuple(rank[keep] for rank in self.ids)
        return SparseTensor(shape=self.shape, ids=ids, values=self.values[keep], value=self.value)

    def same_as(self, other: "SparseTensor") -> bool:
        """Whether both are the same to the last bit."""
        return (
            self.shape == other.shape
            and self.value == other.value
            and all(np.array_equal(mine, its) for mine, its in zip(self.ids, other.ids, strict=True))
            and np.array_equal(patterns(self.values, self.value), patterns(other.values, other.value))
        )

    @classmethod
    def from_csr(cls, matrix: Csr) -> "SparseTensor":
        """The nonzeros of a matrix, with values of its type."""
        rows = np.repeat(np.arange(matrix.rows, dtype=np.int64), np.diff(matrix.pointers))
        ids = rows, matrix.coordinates.astype(np.int64)
        values = matrix.values.astype(VALUE_DTYPES[matrix.value], copy=False)
        return cls(shape=matrix.shape, ids=ids, values=values, value=matrix.value)

    def to_csr(self) -> Csr:
        """A matrix of it."""
        rows, columns = self.shape
        wide = self.values.astype(np.float32 if self.values.dtype.kind == "f" else np.int32)
        pointers = np.append(0, np.cumsum(np.bincount(self.ids[0], minlength=rows))).astype(np.int64)
        return Csr(
            rows=rows,
            columns=columns,
            pointers=pointers,
            coordinates=self.ids[1].astype(np.uint32),
            bits=wide.view(np.uint32),
            value=self.value,
        )

    @classmethod
    def from_positions(
        cls, shape: Sequence[int], positions: NDArray[np.uint64], values: NDArray[Any], value: str
    ) -> "SparseTensor":
        """Of entries whose row-major positions rise."""
        ids: list[Ids] = []
        rest = positions
        for size in reversed(shape[1:]):
            rest, rank = np.divmod(rest, np.uint64(size))
            ids.insert(0, rank.astype(np.int64))
        return cls(shape=tuple(shape), ids=(rest.astype(np.int64), *ids), values=values, value=value)

    @classmethod
    def from_entries(cls, shape: Sequence[int], ids: Sequence[Ids], values: NDArray[Any], value: str) -> "SparseTensor":
        """Of entries in any order, no place twice."""
        order = row_major_order(shape, ids)
        found = tuple(rank[order] for rank in ids)
        return cls(shape=tuple(shape), ids=found, values=values[order], value=value)
