"""The workload: one loop nest over named dimensions, and the tensors that it reads and writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from .densities.protocol import Density
from .values import Count

__all__ = ["Problem", "Tensor", "Term", "Workload"]


@dataclass(frozen=True)
class Term:
    """``coefficient * dimension`` of an index; the dimension by its number in the problem."""

    dimension: int
    coefficient: int


@dataclass(frozen=True)
class Tensor:
    """A tensor of the problem.

    ranks: for each rank the terms whose sum is its index. A sliding window has two: ``stride * P + dilation * R``.
    """

    name: str
    ranks: tuple[tuple[Term, ...], ...]
    is_output: bool

    @cached_property
    def dimensions(self) -> frozenset[int]:
        """Dimensions that index the tensor."""
        return frozenset(term.dimension for rank in self.ranks for term in rank)

    def extents(self, box: Sequence[Count]) -> tuple[Count, ...]:
        """Coordinates along each rank that a box of the iteration space touches; ``box`` has a length for each dimension."""
        found: list[Count] = []
        for rank in self._terms:
            if len(rank) == 1 and rank[0][1] == 1:
                found.append(box[rank[0][0]])
                continue
            extent = 1
            for dimension, coefficient in rank:
                extent = extent + coefficient * (box[dimension] - 1)
            found.append(extent)
        return tuple(found)

    @cached_property
    def slides(self) -> bool:
        """Whether neighbouring tiles can share points."""
        return any(len(rank) > 1 for rank in self.ranks)

    @cached_property
    def _terms(self) -> list[list[tuple[int, int]]]:
        return [[(term.dimension, term.coefficient) for term in rank] for rank in self.ranks]

    def size(self, box: Sequence[Count]) -> Count:
        """Points of the tensor that a box touches."""
        return prod(self.extents(box))


@dataclass(frozen=True)
class Problem:
    """Dimensions with their bounds, and the tensors over them."""

    name: str
    dimensions: tuple[str, ...]
    bounds: tuple[int, ...]
    tensors: tuple[Tensor, ...]

    @property
    def computes(self) -> int:
        """Points of the iteration space: multiplications of the dense algorithm."""
        return prod(self.bounds)

    def tensor(self, name: str) -> int:
        """Number of the tensor with this name."""
        return next(number for number, tensor in enumerate(self.tensors) if tensor.name == name)


@dataclass(frozen=True)
class Workload:
    """A problem and how the nonzeros of each tensor lie."""

    problem: Problem
    densities: Mapping[str, Density]

    def density(self, tensor: Tensor) -> Density:
        """Density model of a tensor."""
        return self.densities[tensor.name]
