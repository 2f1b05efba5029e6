"""The order-3 kernels and the order in which their tiles are walked. Paper: D2T2, table 3."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sw.stats.pattern import Index, Pattern

__all__ = ["KERNELS", "MTTKRP", "TTM", "Problem", "Sides", "TensorKernel"]

# Tile sides by rank of the kernel, in its order.
Sides = tuple[int, int, int, int]


@dataclass(frozen=True)
class TensorKernel:
    """A tensor A of order 3 times a matrix for each rank that is summed over; all of them share one rank that A lacks.

    Parameters
    ----------
    name: as a user types it.
    order: the four ranks as they are walked, outermost first: those of A as it is stored, then the free one.
    kept: how many of A's ranks, the first ones, are the output's. The others are summed over.
    formula: for people.
    """

    name: str
    order: str
    kept: int
    formula: str

    @property
    def contracted(self) -> range:
        """Positions of the ranks that are summed over, one matrix each."""
        return range(self.kept, 3)

    @property
    def matrices(self) -> tuple[str, ...]:
        """Ranks of the matrices, rows first, as in ``lk``."""
        return tuple(self.order[rank] + self.order[3] for rank in self.contracted)

    @property
    def output(self) -> str:
        """Ranks of the output."""
        return self.order[: self.kept] + self.order[3]


TTM = TensorKernel("ttm", "ijlk", 2, "X[i,j,k] = sum over l of A[i,j,l] * B[l,k]")
MTTKRP = TensorKernel("mttkrp", "iklj", 1, "X[i,j] = sum over k, l of A[i,k,l] * B[k,j] * C[l,j]")
KERNELS = {kernel.name: kernel for kernel in (TTM, MTTKRP)}


@dataclass(frozen=True, eq=False)
class Problem:
    """A kernel and its operands' patterns.

    Parameters
    ----------
    shape: sizes of A's ranks. coordinates: int64[nnz, 3] of A, sorted, each place once.
    matrices: one a contracted rank, its size as rows; all with as many columns as the free rank has coordinates.
    """

    kernel: TensorKernel
    shape: tuple[int, int, int]
    coordinates: NDArray[np.int64]
    matrices: tuple[Pattern, ...]

    def __post_init__(self) -> None:
        sizes = [self.shape[rank] for rank in self.kernel.contracted]
        if [matrix.rows for matrix in self.matrices] != sizes:
            raise ValueError(f"{self.kernel.name} needs matrices with {sizes} rows")
        if len({matrix.columns for matrix in self.matrices}) != 1:
            raise ValueError(f"{self.kernel.name} needs matrices with as many columns as each other")

    @property
    def nnz(self) -> int:
        return len(self.coordinates)

    @property
    def extent(self) -> Sides:
        """Sizes of all ranks, in the kernel's order."""
        first, second, third = self.shape
        return first, second, third, self.matrices[0].columns

    @cached_property
    def columns(self) -> tuple[Index, Index, Index]:
        """A's coordinates, rank by rank, each in one piece."""
        first, second, third = (np.ascontiguousarray(self.coordinates[:, rank]) for rank in range(3))
        return first, second, third
