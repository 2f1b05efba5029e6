"""Small machines and workloads of the tests' own."""

from collections.abc import Iterable, Mapping

import numpy as np

from sw.analytic.architecture import Architecture, Compute, Storage
from sw.analytic.conventions import V03, Conventions
from sw.analytic.dataflow.traffic import Traffic, dense_traffic
from sw.analytic.densities.actual import Actual
from sw.analytic.densities.protocol import Density
from sw.analytic.features import ActionOption, ActionSaf, Features, FormattedRank, Representation
from sw.analytic.formats.registry import FORMATS
from sw.analytic.mapping import Loop
from sw.analytic.mapping import Mapping as Nest
from sw.analytic.nests import Nests
from sw.analytic.problem import Problem, Tensor, Term, Workload
from sw.analytic.sparse.step import SparseTraffic, sparse_traffic
from sw.analytic.values import at

__all__ = ["A", "B", "Z", "masks", "nest", "product", "represented", "saf", "sparse", "traffic"]

A, B, Z = range(3)


def product(m: int, n: int, k: int) -> Problem:
    """Z[m, n] = A[m, k] * B[n, k]."""
    ranks = {"A": (0, 2), "B": (1, 2), "Z": (0, 1)}
    return Problem(
        "product",
        ("M", "N", "K"),
        (m, n, k),
        tuple(Tensor(name, tuple((Term(d, 1),) for d in own), name == "Z") for name, own in ranks.items()),
    )


def nest(problem: Problem, *levels: str, keeps: Iterable[str]) -> Nest:
    """Levels innermost first, each with its loops outermost first, as ``K4 N2 Mx2``: an axis after the dimension is spatial."""
    loops = []
    for text in levels:
        own = []
        for word in text.split():
            axis = word[1] if word[1] in "xy" else "time"
            own.append(Loop(problem.dimensions.index(word[0]), int(word[1:].lstrip("xy")), axis))
        loops.append(tuple(reversed(own)))
    names = [tensor.name for tensor in problem.tensors]
    return Nest(problem, tuple(loops), tuple(tuple(name in kept for name in names) for kept in keeps))


def masks(problem: Problem, seed: int, share: float = 0.4) -> dict[str, np.ndarray]:
    """Random places of nonzeros of the inputs."""
    random = np.random.default_rng(seed)
    return {
        tensor.name: random.random(tensor.extents(problem.bounds)) < share
        for tensor in problem.tensors
        if not tensor.is_output
    }


def represented(*formats: str, inner_first: bool = False) -> Representation:
    """Ranks outermost first."""
    return Representation(tuple(FormattedRank(FORMATS[name]) for name in reversed(formats)), inner_first)


def saf(kind: str, target: int, *leaders: int) -> ActionSaf:
    return ActionSaf(kind, (ActionOption(target, leaders),))


def sparse(
    mapping: Nest,
    features: Features,
    densities: Mapping[str, np.ndarray | Density],
    conventions: Conventions = V03,
    block: int = 1,
) -> SparseTraffic:
    """The sparse step on levels that hold anything. block: words of a row."""
    output = mapping.problem.tensors[Z]
    dense = np.ones(output.extents(mapping.problem.bounds), dtype=bool)
    models = {
        name: Actual(found) if isinstance(found, np.ndarray) else found
        for name, found in {output.name: dense, **densities}.items()
    }
    levels = tuple(
        Storage(
            name=f"L{level}",
            path=f"L{level}",
            instances=mapping.instances(level),
            block=block,
            metadata_width=8,
            decompresses=True,
            compresses=True,
        )
        for level in range(len(mapping.loops))
    )
    architecture = Architecture(levels, Compute(name="MAC", path="MAC", instances=mapping.instances(-1)), conventions)
    workload, nests = Workload(mapping.problem, models), Nests.of([mapping])
    found = sparse_traffic(workload, nests, architecture, features, dense_traffic(nests, conventions))
    error = nests.error(0)
    if error is not None:
        raise error
    return at(found, 0)


def traffic(mapping: Nest, conventions: Conventions) -> dict[tuple[int, int], Traffic]:
    """Dense traffic of one mapping."""
    return at(dense_traffic(Nests.of([mapping]), conventions), 0)
