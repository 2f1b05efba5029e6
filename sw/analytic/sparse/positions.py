"""Position skipping: lanes take the next nonzeros of a tile, wherever they are, as the dual-side sparse tensor core does."""

from dataclasses import dataclass
from math import prod

import numpy as np

from ..features import Features
from ..mapping import Mapping
from ..problem import Workload

__all__ = ["Lanes", "position_skipping"]


@dataclass(frozen=True)
class Lanes:
    """Lanes that take the nonzeros of a tensor's tile.

    use: average share of them that is busy, E[k / (l ceil(k / l)) | k > 0] for k nonzeros and l lanes. steps: rounds that a tile
    takes, as a share of those of a dense one, E[ceil(k / l) | k > 0] l / n. share: of the operations whose operand is a zero.
    """

    level: int
    tensor: int
    use: float
    steps: float
    share: float


def position_skipping(workload: Workload, mapping: Mapping, features: Features) -> list[Lanes]:
    """For each tensor that a level hands out by positions. Lanes are the instances side by side that index the tensor."""
    found = []
    for level, safs in features.actions.items():
        for option in (option for saf in safs if saf.kind == "position_skipping" for option in saf.options):
            tensor = mapping.problem.tensors[option.target]
            inner = mapping.inner_keeper(option.target, level)
            lanes = prod(
                place.loop.bound
                for place in mapping.between(inner, level)
                if place.loop.is_spatial and place.loop.dimension in tensor.dimensions
            )
            extents = tensor.extents(mapping.box(level))
            k, probability = workload.density(tensor).occupancies(extents)
            k, probability = k[k > 0], probability[k > 0]
            if not probability.sum():
                found.append(Lanes(level, option.target, 1.0, 0.0, 1.0))
                continue
            probability = probability / probability.sum()
            rounds = np.ceil(k / lanes)
            size = prod(extents)
            found.append(
                Lanes(
                    level,
                    option.target,
                    use=float((probability * k / (lanes * rounds)).sum()),
                    steps=float((probability * rounds).sum()) / np.ceil(size / lanes),
                    share=1.0 - workload.density(tensor).mean(extents) / size,
                )
            )
    return found
