"""Position skipping: lanes take the next nonzeros of a tile, wherever they are, as the dual-side sparse tensor core does."""

from dataclasses import dataclass
from functools import partial
from math import ceil, prod

import numpy as np

from ..densities.many import each_once
from ..densities.protocol import Density
from ..features import Features
from ..nests import Nests
from ..problem import Workload
from ..values import Batched, Real

__all__ = ["Lanes", "position_skipping"]


@dataclass(frozen=True)
class Lanes(Batched):
    """Lanes that take the nonzeros of a tensor's tile.

    use: average share of them that is busy, E[k / (l ceil(k / l)) | k > 0] for k nonzeros and l lanes. steps: rounds that a tile
    takes, as a share of those of a dense one, E[ceil(k / l) | k > 0] l / n. share: of the operations whose operand is a zero.
    """

    level: int
    tensor: int
    use: Real
    steps: Real
    share: Real


def position_skipping(workload: Workload, nests: Nests, features: Features) -> list[Lanes]:
    """For each tensor that a level hands out by positions. Lanes are the instances side by side that index the tensor."""
    found = []
    for level, safs in features.actions.items():
        for option in (option for saf in safs if saf.kind == "position_skipping" for option in saf.options):
            tensor = nests.problem.tensors[option.target]
            density = workload.density(tensor)
            inner = nests.inner_keeper(option.target, level)
            lanes = prod(
                nests.product(each, spatial=True, dimensions=tensor.dimensions) for each in range(inner + 1, level + 1)
            )
            columns = (lanes, *tensor.extents(nests.box(level)))
            shares = each_once(columns, partial(_shares_of, density))
            found.append(Lanes(level, option.target, *shares))
    return found


def _shares_of(density: Density, row: tuple[int, ...]) -> tuple[float, float, float]:
    """``row``: lanes, then the extents of a tile."""
    return _shares(density, row[0], row[1:])


def _shares(density: Density, lanes: int, extents: tuple[int, ...]) -> tuple[float, float, float]:
    """Use, steps and share of one tile."""
    k, probability = density.occupancies(extents)
    k, probability = k[k > 0], probability[k > 0]
    if not probability.sum():
        return 1.0, 0.0, 1.0
    probability = probability / probability.sum()
    rounds = np.ceil(k / lanes)
    size = prod(extents)
    return (
        float((probability * k / (lanes * rounds)).sum()),
        float((probability * rounds).sum()) / ceil(size / lanes),
        1.0 - density.mean(extents) / size,
    )
