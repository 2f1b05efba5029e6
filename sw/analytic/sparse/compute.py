"""What the compute units do with operands that are zero or missing (paper, section 5.3.4)."""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from ..mapping import Keeping
from ..problem import Workload
from ..values import Batched, Count, Real
from .joint import known_states
from .leaders import Elimination
from .occupancy import Occupancy

__all__ = ["Computes", "compute_counts"]

# The density of a scalar is rounded to this many decimals, as in the published numbers; the probability that a leader is empty is
# not. Where both are the same number their quotient is a hair off one: its rounding gives the published numbers their "+ 1".
DECIMALS = 6
NONZERO, ZERO, MISSING = range(3)


@dataclass(frozen=True)
class Computes(Batched):
    """Operations, over all units. algorithmic: of the dense algorithm."""

    algorithmic: int
    actual: Count
    gated: Count = 0
    skipped: Count = 0


def compute_counts(
    workload: Workload,
    nests: Keeping,
    occupancy: Table[tuple[int, int], Occupancy],
    innermost: Sequence[Elimination],
    optimisations: frozenset[str],
    computes: Count,
) -> Computes:
    """Splits the computes that storage leaves.

    An operand is a nonzero, a zero that arrives, or missing because its level knows the zeros. All missing: nothing happens. One
    missing: skipped, or gated, or a bubble that counts as actual, by what the units can do. A zero that arrives: gated or actual.
    innermost: for each input with SAFs the one nearest to the units; what its leaders are is known to be nonempty there.
    """
    inputs = [number for number, tensor in enumerate(workload.problem.tensors) if not tensor.is_output]
    zeros = []
    for number in inputs:
        keepers = nests.keepers(number)
        zeros.append(MISSING if keepers and occupancy[keepers[0], number].has_metadata else ZERO)
    tiles = [(leader, box) for found in innermost for (leader, _), box in zip(found.leaders, found.boxes, strict=True)]
    known = known_states(workload, workload.problem, tiles)
    if known is None:
        densities = [_density(workload, number, innermost) for number in inputs]
        states = list(product((True, False), repeat=len(inputs)))
        parts = [
            prod(density if nonzero else 1.0 - density for nonzero, density in zip(state, densities, strict=True))
            for state in states
        ]
    else:
        states, parts = list(known.states), list(known.states.values())
        computes = np.round(known.surviving * workload.problem.computes)
    skipped: Count = 0
    gated: Count = 0
    gone: Count = 0
    for state, part in zip(states, parts, strict=True):
        kinds = [NONZERO if nonzero else zero for nonzero, zero in zip(state, zeros, strict=True)]
        share = computes * part
        if all(which == MISSING for which in kinds):
            gone = gone + share
        elif MISSING in kinds and "skipping" in optimisations:
            skipped = skipped + share
        elif any(which != NONZERO for which in kinds) and "gating" in optimisations:
            gated = gated + share
    gated, skipped = np.floor(gated), np.floor(skipped)
    return Computes(workload.problem.computes, computes - skipped - gated - np.floor(gone), gated, skipped)


def _density(workload: Workload, number: int, innermost: Sequence[Elimination]) -> Real:
    """Of a word of an input that meets computes: where SAFs follow it, of the tiles that are not empty."""
    tensor = workload.problem.tensors[number]
    density: Real = round(float(workload.density(tensor).mean((1,) * len(tensor.ranks))), DECIMALS)
    known = [_remaining(found, number) for found in innermost if number in dict(found.leaders)]
    if known:
        least = np.minimum.reduce(np.broadcast_arrays(*known))
        density = np.where(least > 0, density / np.where(least > 0, least, 1.0), 1.0)
    return density


def _remaining(found: Elimination, leader: int) -> Real:
    """Probability that the leader's tile is nonempty; with the shares of known data, where the SAF has one leader."""
    if len(found.leaders) == 1:
        return 1.0 - found.share
    return 1.0 - dict(found.leaders)[leader]
