"""Order-3 problems for tests: even, skewed, along the diagonal, empty in parts; and tiles as dense blocks."""

import numpy as np

from sw.operands.load_tensor import load_tensor
from sw.stats.pattern import Pattern
from sw.tensor.kernels import KERNELS, Problem, TensorKernel
from tests.sw.stats.matrices import banded, noise


def diagonal(size: int) -> np.ndarray:
    """Places with all coordinates within 1 of each other."""
    grid = np.indices((size,) * 3).reshape(3, -1).T
    return grid[np.ptp(grid, axis=1) <= 1].astype(np.int64)


def places(spec: str) -> tuple[tuple[int, int, int], np.ndarray]:
    tensor = load_tensor(spec)
    return tensor.shape, tensor.coordinates


TENSORS = {
    "even": places("tensor:14:11:17:300"),
    "skewed": places("tensor:20:9:13:250:exponent=1:seed=2"),
    "diagonal": ((15, 15, 15), diagonal(15)),
    "corner": ((12, 10, 8), diagonal(5)),
    "one": ((3, 4, 5), np.array([[2, 0, 3]])),
    "none": ((3, 4, 5), np.empty((0, 3), np.int64)),
}


def problem(kernel: str, tensor: str, width: int = 19, density: float = 0.2) -> Problem:
    shape, coordinates = TENSORS[tensor]
    found: TensorKernel = KERNELS[kernel]
    factors = [noise(shape[rank], width, density, seed=rank) for rank in found.contracted]
    if tensor == "diagonal":
        factors[0] = banded(max(width, 15), 2)[:15, :width]
    return Problem(found, shape, coordinates, tuple(Pattern.of(factor) for factor in factors))


def dense(problem: Problem) -> list[np.ndarray]:
    """The tensor and the matrices, True where they hold something."""
    tensor = np.zeros(problem.shape, bool)
    tensor[tuple(problem.coordinates.T)] = True
    found = [tensor]
    for matrix in problem.matrices:
        block = np.zeros((matrix.rows, matrix.columns), bool)
        for row in range(matrix.rows):
            block[row, matrix.coordinates[matrix.pointers[row] : matrix.pointers[row + 1]]] = True
        found.append(block)
    return found


def words(block: np.ndarray) -> int:
    """A CSF tile, array by array: coordinates and segments of every level, and the values."""
    total = np.count_nonzero(block)  # values
    parents = 1
    for depth in range(1, block.ndim + 1):
        nodes = np.count_nonzero(block.reshape(*block.shape[:depth], -1).any(axis=-1))
        total += nodes + parents + 1
        parents = nodes
    return int(total)
