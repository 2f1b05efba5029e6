"""Dense reads, fills and updates of each tensor at each level that keeps it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ..conventions import Conventions
from ..mapping import Mapping
from ..nests import Nests
from ..problem import Tensor
from ..values import Batched, Count
from .remainders import arrivals

__all__ = ["Sweep", "Traffic", "dense_traffic"]


@dataclass(frozen=True)
class Sweep(Batched):
    """How often a level's tile of a tensor is replaced while the loops outside run.

    whole: times that a sweep begins. steps: iterations of the innermost loop that replaces the tile, where a window slides along
    it; else ``whole`` counts them. first: words that the first of them brings. step: words that each other brings.
    """

    whole: Count
    steps: Count
    first: Count
    step: Count

    @property
    def words(self) -> Count:
        """Words that arrive at one instance."""
        return self.whole * (self.first + (self.steps - 1) * self.step)


@dataclass(frozen=True)
class Traffic(Batched):
    """Accesses of one tensor at one instance of a level, in words.

    Where loops have remainders, instances differ: then it is the mean of all of them, rounded up.
    extents, size: of its tile, at most. partition: words of different places that one instance sees. sweep: where ``fills``
    comes from, None where loops have remainders. spread: children that receive different words at once; others receive the same
    words, or their results are added up, unless each has accesses of its own.
    """

    extents: tuple[Count, ...]
    size: Count
    partition: Count
    reads: Count
    fills: Count
    updates: Count
    sweep: Sweep | None
    spread: Count


def dense_traffic(nests: Nests, conventions: Conventions) -> dict[tuple[int, int], Traffic]:
    """Traffic of each level and tensor that it keeps, by ``(level, tensor)``.

    A compute unit has no register: an input is read, and an output updated, once for each of its operations. The first read of an
    output that the level has not seen is left out.
    """
    if nests.mappings:
        return _with_remainders(nests, conventions)
    found: dict[tuple[int, int], Traffic] = {}
    operations = prod(nests.product(level, spatial=False) for level in range(nests.levels))
    for number, tensor in enumerate(nests.problem.tensors):
        leads = [_Lead.of(nests, tensor, level) for level in range(nests.levels)]
        keepers = nests.keepers(number)
        moved = operations
        for inner, level in zip([-1, *keepers], keepers, strict=False):
            box = nests.box(level)
            extents = tensor.extents(box)
            size = prod(extents)
            between, outside = range(inner + 1, level + 1), range(level + 1, nests.levels)
            spread = prod(_differ(nests, number, each) for each in between)
            arrivals = moved * spread
            partition = size * prod(
                nests.product(each, spatial=False, dimensions=tensor.dimensions) for each in outside
            )
            filled = _sweep(nests, tensor, level, size, extents, leads)
            moved = filled.words
            fills = 0.0 if level == keepers[-1] else moved
            if tensor.is_output and level != keepers[-1] and not conventions.first_fills:
                fills = fills - partition
            found[level, number] = Traffic(
                extents=extents,
                size=size,
                partition=partition,
                reads=arrivals - partition if tensor.is_output else arrivals,
                fills=fills,
                updates=arrivals if tensor.is_output else 0.0,
                sweep=filled,
                spread=spread,
            )
    return found


def _differ(nests: Nests, number: int, level: int) -> Count:
    """Instances inside the spatial loops of a level that each have accesses of their own to a tensor."""
    dimensions = None if nests.is_apart(level, number) else nests.problem.tensors[number].dimensions
    return nests.product(level, spatial=True, dimensions=dimensions)


@dataclass(frozen=True)
class _Lead:
    """Temporal loops of a level as a tensor's tile inside sees them. moves: whether one of them replaces the tile. rest:
    iterations from the innermost that does, with all loops outside it."""

    moves: Count
    rest: Count

    @classmethod
    def of(cls, nests: Nests, tensor: Tensor, level: int) -> "_Lead":
        moves: Count = np.zeros(nests.count, dtype=bool)
        rest: Count = 1.0
        for site in nests.between(level - 1, level):
            if not site.is_spatial:
                moves = moves | (site.is_over(tensor.dimensions) & site.moves)
                rest = rest * np.where(moves, site.bound, 1.0)
        return cls(moves, rest)


def _sweep(
    nests: Nests, tensor: Tensor, level: int, size: Count, extents: Sequence[Count], leads: Sequence[_Lead]
) -> Sweep:
    """How often a tile is replaced.

    Loops that do not index the tensor replace nothing, from the innermost one to the first that does. The innermost loop that
    replaces can slide a window: what two neighbouring tiles share stays.
    """
    times: Count = nests.ones()
    begun: Count = False
    for outside in range(level + 1, nests.levels):
        lead, every = leads[outside], nests.product(outside, spatial=False)
        times = times * (lead.rest if begun is False else np.where(begun, every, lead.rest))
        begun = lead.moves if begun is False else begun | lead.moves
    if not tensor.slides:
        return Sweep(times, 1.0, size, 0.0)
    steps, shared = _slides(nests, tensor, level, extents)
    sliding = (steps > 1) & (shared > 0)
    steps = np.where(sliding, steps, 1.0)
    return Sweep(times / steps, steps, size, np.where(sliding, size - shared, 0.0))


def _slides(nests: Nests, tensor: Tensor, level: int, extents: Sequence[Count]) -> tuple[Count, Count]:
    """Iterations of the innermost loop that replaces a tile, and words that a tile shares with that of the next iteration.

    A loop over a rank's only dimension moves the tile by all its length at least. Instances side by side may stand between two
    iterations.
    """
    alone = frozenset(rank[0].dimension for rank in tensor.ranks if len(rank) == 1)
    sums = [(number, rank) for number, rank in enumerate(tensor.ranks) if len(rank) > 1]
    steps: Count = nests.ones()
    left = {number: extents[number] for number, _ in sums}
    whole = begun = np.zeros(nests.count, dtype=bool)
    for site in nests.between(level, nests.levels):
        if site.is_spatial:
            continue
        first = site.is_over(tensor.dimensions) & site.moves & ~begun
        begun = begun | first
        steps = np.where(first, site.bound, steps)
        whole = whole | (first & site.is_over(alone))
        below = nests.below(site)
        for number, rank in sums:
            for term in rank:
                if site.is_ever_over(term.dimension):
                    moved = first & (site.dimension == term.dimension)
                    left[number] = left[number] - moved * (term.coefficient * below[term.dimension])
    shared = prod(np.maximum(0.0, left[number]) if number in left else extent for number, extent in enumerate(extents))
    return steps, np.where(whole, 0.0, shared)


def _with_remainders(nests: Nests, conventions: Conventions) -> dict[tuple[int, int], Traffic]:
    """The same for the mean instance where not all iterations of a loop are alike, mapping by mapping."""
    found = {}
    for level, number in nests.walk():
        tensor = nests.problem.tensors[number]
        each = np.array([_words(mapping, number, level, conventions) for mapping in nests.mappings], dtype=float)
        inner = nests.inner_keeper(number, level)
        extents = tensor.extents(nests.box(level))
        found[level, number] = Traffic(
            extents=extents,
            size=prod(extents),
            partition=each[:, 0],
            reads=each[:, 1],
            fills=each[:, 2],
            updates=each[:, 3],
            sweep=None,
            spread=prod(_differ(nests, number, between) for between in range(inner + 1, level + 1)),
        )
    return found


def _words(mapping: Mapping, number: int, level: int, conventions: Conventions) -> tuple[int, int, int, int]:
    """Partition, reads, fills and updates of the mean instance."""
    tensor, inner = mapping.problem.tensors[number], mapping.inner_keeper(number, level)
    between, outside = mapping.between(inner, level), mapping.between(level, len(mapping.loops))
    alike = [
        p
        for p in between
        if p.loop.is_spatial and p.loop.dimension not in tensor.dimensions and not mapping.is_apart(p.level, number)
    ]
    moved = arrivals(mapping, tensor, inner, alike, stationary=inner >= 0)
    stays = [p for p in outside if not p.loop.is_spatial and p.loop.dimension not in tensor.dimensions]
    partition = arrivals(mapping, tensor, level, stays, stationary=False)
    fills = 0 if level == mapping.keepers(number)[-1] else arrivals(mapping, tensor, level, ())
    if tensor.is_output and fills and not conventions.first_fills:
        fills -= partition

    def mean(words: int) -> int:
        return -(-words // mapping.instances(level))

    reads = mean(moved - partition if tensor.is_output else moved)
    return mean(partition), reads, mean(fills), mean(moved) if tensor.is_output else 0
