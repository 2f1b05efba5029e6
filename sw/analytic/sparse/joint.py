"""Where the data is known: how often follower and leaders are nonzero together."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from ..densities.actual import Actual
from ..densities.many import each_once
from ..problem import Problem, Tensor, Workload
from ..values import Count, Real

__all__ = ["Joint", "Known", "joint_share", "known_states", "share_of_uses"]

# Iterations of each dimension.
Box = tuple[Count, ...]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Joint:
    """any_target: share of the iterations at which the tile of each leader holds a nonzero. of_nonzeros: the same, of the
    iterations at which the target is a nonzero."""

    any_target: Real
    of_nonzeros: Real


@dataclass(frozen=True)
class Known:
    """surviving: share of the iterations at which all leaders' tiles hold a nonzero. states: of those, the share of each
    combination of inputs that are nonzeros."""

    surviving: Real
    states: dict[tuple[bool, ...], Real]


def joint_share(
    workload: Workload, problem: Problem, target: int, leaders: tuple[int, ...], boxes: tuple[Box, ...]
) -> Joint | None:
    """Exact shares; None where the data of a leader is not known. A target of unknown data is independent of the leaders."""
    densities = {number: workload.density(problem.tensors[number]) for number in (target, *leaders)}
    if not leaders or not all(isinstance(densities[number], Actual) for number in leaders):
        return None
    own = None
    if isinstance(densities[target], Actual):
        own = _over_iterations(problem, problem.tensors[target], densities[target], (1,) * len(problem.bounds))

    def shares(row: tuple[int, ...]) -> tuple[float, float]:
        views = [
            _over_iterations(problem, problem.tensors[leader], densities[leader], box)
            for leader, box in zip(leaders, _parted(problem, row), strict=True)
        ]
        together = _sum(problem, views) / problem.computes
        if own is None:
            return together, together
        nonzeros = _sum(problem, [own])
        return together, _sum(problem, [*views, own]) / nonzeros if nonzeros else 0.0

    return Joint(*each_once([length for box in boxes for length in box], shares))


def share_of_uses(workload: Workload, number: int) -> float | None:
    """Of all operations those that meet a nonzero of a tensor, where a window meets some words more often than others and the
    data is known; else the share of its words says the same."""
    problem = workload.problem
    tensor = problem.tensors[number]
    density = workload.density(tensor)
    if not tensor.slides or not isinstance(density, Actual):
        return None
    return _sum(problem, [_over_iterations(problem, tensor, density, (1,) * len(problem.bounds))]) / problem.computes


def _parted(problem: Problem, row: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Boxes that stand one after the other."""
    width = len(problem.bounds)
    return [row[start : start + width] for start in range(0, len(row), width)]


# A mask over some dimensions, and their numbers.
View = tuple[np.ndarray, tuple[int, ...]]


def _over_iterations(problem: Problem, tensor: Tensor, density: object, box: tuple[int, ...]) -> View:
    """Whether the tile around each iteration holds a nonzero, over the dimensions that index the tensor."""
    assert isinstance(density, Actual)
    dimensions = tuple(sorted(tensor.dimensions))
    strides = {
        dimension: sum(
            term.coefficient * stride
            for rank, stride in zip(tensor.ranks, density.mask.strides, strict=True)
            for term in rank
            if term.dimension == dimension
        )
        for dimension in dimensions
    }
    shape = tuple(problem.bounds[dimension] for dimension in dimensions)
    view = np.lib.stride_tricks.as_strided(
        density.mask, shape, tuple(strides[dimension] for dimension in dimensions), writeable=False
    )
    for axis, dimension in enumerate(dimensions):
        length = min(box[dimension], problem.bounds[dimension])
        if length > 1:
            starts = np.arange(0, view.shape[axis], length)
            widths = np.diff(np.append(starts, view.shape[axis]))
            view = np.repeat(np.logical_or.reduceat(view, starts, axis=axis), widths, axis=axis)
    return view, dimensions


def _sum(problem: Problem, views: list[View]) -> float:
    """Iterations at which all masks hold. Masks over the same dimensions are one; dimensions that one alone has come first."""
    letters = [LETTERS[number] for number in range(len(problem.bounds))]
    whole: dict[tuple[int, ...], np.ndarray] = {}
    for mask, dimensions in views:
        whole[dimensions] = mask & whole[dimensions] if dimensions in whole else mask
    uses = Counter(dimension for dimensions in whole for dimension in dimensions)
    counts, terms = [], []
    for dimensions, mask in whole.items():
        alone = tuple(axis for axis, dimension in enumerate(dimensions) if uses[dimension] == 1)
        counts.append(mask.sum(axis=alone, dtype=np.float64) if alone else mask)
        terms.append("".join(letters[dimension] for dimension in dimensions if uses[dimension] > 1))
    if [len(term) for term in terms] == [2, 2, 2]:
        total = _triangle(terms, counts)
    else:
        numbers = [each.astype(np.float64) for each in counts]
        total = float(np.einsum(f"{','.join(terms)}->", *numbers, optimize="greedy")) if numbers else 1.0
    return total * prod(bound for number, bound in enumerate(problem.bounds) if number not in uses)


def _triangle(terms: Sequence[str], counts: Sequence[np.ndarray]) -> float:
    """The sum of three matrices over three dimensions, as that of a product of two at the nonzeros of the third."""
    import scipy.sparse as sp

    whole, *others = (sp.csr_array(each).astype(np.float64) for each in counts)
    first, last = tuple(terms[0])
    if first not in terms[1]:
        others, terms = others[::-1], [terms[0], terms[2], terms[1]]
    left = others[0] if terms[1][0] == first else others[0].T
    right = others[1] if terms[2][1] == last else others[1].T
    return float(((left @ right) * whole).sum())


def known_states(workload: Workload, problem: Problem, tiles: Sequence[tuple[int, Box]]) -> Known | None:
    """Where the data of all inputs is known. tiles: leaders, and their boxes that hold a nonzero."""
    inputs = [number for number, tensor in enumerate(problem.tensors) if not tensor.is_output]
    densities = {number: workload.density(problem.tensors[number]) for number in inputs}
    if not all(isinstance(density, Actual) for density in densities.values()):
        return None
    scalar = (1,) * len(problem.bounds)
    own = [_over_iterations(problem, problem.tensors[number], densities[number], scalar) for number in inputs]
    states = list(product((True, False), repeat=len(inputs)))

    def shares(row: tuple[int, ...]) -> list[float]:
        views = [
            _over_iterations(problem, problem.tensors[leader], densities[leader], box)
            for (leader, _), box in zip(tiles, _parted(problem, row[1:]), strict=True)
        ]
        # Where these inputs are nonzeros, whatever the others are; those that are zeros follow by inclusion and exclusion.
        least = {
            state: _sum(problem, [*views, *(mask for nonzero, mask in zip(state, own, strict=True) if nonzero)])
            for state in states
        }
        surviving = least[(False,) * len(inputs)]
        found = [surviving / problem.computes]
        for state in states:
            exact = sum(
                (-1) ** (sum(other) - sum(state)) * iterations
                for other, iterations in least.items()
                if all(theirs or not mine for mine, theirs in zip(state, other, strict=True))
            )
            found.append(exact / surviving if surviving else 0.0)
        return found

    lengths = [length for _, box in tiles for length in box]
    surviving, *parts = each_once([0, *lengths], shares)
    return Known(surviving, dict(zip(states, parts, strict=True)))
