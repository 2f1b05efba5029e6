"""What the compute units do with operands that are zero or missing (paper, section 5.3.4)."""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import floor, prod

from ..mapping import Mapping
from ..problem import Workload
from .joint import known_states
from .leaders import Elimination
from .occupancy import Occupancy

__all__ = ["Computes", "compute_counts"]

# The density of a scalar is rounded to this many decimals, as in the published numbers; the probability that a leader is empty is
# not. Where both are the same number their quotient is a hair off one: its rounding gives the published numbers their "+ 1".
DECIMALS = 6
NONZERO, ZERO, MISSING = range(3)


@dataclass(frozen=True)
class Computes:
    """Operations, over all units. algorithmic: of the dense algorithm."""

    algorithmic: int
    actual: int
    gated: int = 0
    skipped: int = 0


def compute_counts(
    workload: Workload,
    mapping: Mapping,
    occupancy: Table[tuple[int, int], Occupancy],
    innermost: Sequence[Elimination],
    optimisations: frozenset[str],
    computes: int,
) -> Computes:
    """Splits the computes that storage leaves.

    An operand is a nonzero, a zero that arrives, or missing because its level knows the zeros. All missing: nothing happens. One
    missing: skipped, or gated, or a bubble that counts as actual, by what the units can do. A zero that arrives: gated or actual.
    innermost: for each input with SAFs the one nearest to the units; what its leaders are is known to be nonempty there.
    """
    known_shares = known_states(workload, mapping.problem, _leader_tiles(innermost))
    states = []
    shares: dict[tuple[int, ...], float]
    for number, tensor in enumerate(workload.problem.tensors):
        if tensor.is_output:
            continue
        scalar = (1,) * len(tensor.ranks)
        density = round(workload.density(tensor).mean(scalar), DECIMALS)
        known = [_remaining(found, number) for found in innermost if number in dict(found.leaders)]
        if known:
            density = density / min(known) if min(known) else 1.0
        keepers = mapping.keepers(number)
        missing = bool(keepers) and occupancy[keepers[0], number].has_metadata
        states.append((density, MISSING if missing else ZERO))
    if known_shares is None:
        shares = {}
        for state in product((True, False), repeat=len(states)):
            shares[_kinds(states, state)] = prod(
                density if nonzero else 1.0 - density for nonzero, (density, _) in zip(state, states, strict=True)
            )
    else:
        computes = round(known_shares[0] * workload.problem.computes)
        shares = {_kinds(states, state): share for state, share in known_shares[1].items()}
    skipped = gated = gone = 0.0
    for kinds, part in shares.items():
        share = computes * part
        if all(which == MISSING for which in kinds):
            gone += share
        elif MISSING in kinds and "skipping" in optimisations:
            skipped += share
        elif any(which != NONZERO for which in kinds) and "gating" in optimisations:
            gated += share
    left = computes - floor(skipped) - floor(gated) - floor(gone)
    return Computes(workload.problem.computes, left, floor(gated), floor(skipped))


def _kinds(states: Sequence[tuple[float, int]], state: tuple[bool, ...]) -> tuple[int, ...]:
    return tuple(NONZERO if nonzero else other for nonzero, (_, other) in zip(state, states, strict=True))


def _leader_tiles(innermost: Sequence[Elimination]) -> list[tuple[int, tuple[int, ...]]]:
    return [(leader, box) for found in innermost for (leader, _), box in zip(found.leaders, found.boxes, strict=True)]


def _remaining(found: Elimination, leader: int) -> float:
    """Probability that the leader's tile is nonempty; with the shares of known data, where the SAF has one leader."""
    if len(found.leaders) == 1:
        return 1.0 - found.share
    return 1.0 - dict(found.leaders)[leader]
