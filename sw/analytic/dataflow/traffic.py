"""Dense reads, fills and updates of each tensor at each level that keeps it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..conventions import Conventions
from ..mapping import Mapping, Place
from ..problem import Tensor
from .remainders import arrivals

__all__ = ["Sweep", "Traffic", "dense_traffic"]


@dataclass(frozen=True)
class Sweep:
    """How often a level's tile of a tensor is replaced while the loops outside run.

    whole: times that a sweep begins. steps: iterations of the innermost loop that replaces the tile. first: words that the first
    of them brings. step: words that each other brings; fewer than ``first`` where a window slides.
    """

    whole: int
    steps: int
    first: int
    step: int

    @property
    def words(self) -> int:
        """Words that arrive at one instance."""
        return self.whole * (self.first + (self.steps - 1) * self.step)


@dataclass(frozen=True)
class Traffic:
    """Accesses of one tensor at one instance of a level, in words.

    Where loops have remainders, instances differ: then it is the mean of all of them, rounded up.
    extents: of its tile, at most. partition: words of different places that one instance sees. sweep: where ``fills`` comes
    from, None where loops have remainders. spread: children that receive different words at once; others receive the same
    words, or their results are added up.
    """

    extents: tuple[int, ...]
    partition: int
    reads: int
    fills: int
    updates: int
    sweep: Sweep | None
    spread: int

    @property
    def size(self) -> int:
        """Words of the tile."""
        return prod(self.extents)


def sweep(tensor: Tensor, box: Sequence[int], outside: Sequence[Place], *, stationary: bool = True) -> Sweep:
    """How often a tile is replaced.

    Loops that do not index the tensor replace nothing, from the innermost one to the first that does. The innermost loop that
    replaces can slide a window: what two neighbouring tiles share stays. Without ``stationary`` no loop is left out.
    """
    left = [place for place in outside if not place.loop.is_spatial and place.loop.bound > 1]
    while stationary and left and left[0].loop.dimension not in tensor.dimensions:
        left = left[1:]
    size = tensor.size(box)
    if not left:
        return Sweep(1, 1, size, 0)
    inner, whole = left[0], prod(place.loop.bound for place in left[1:])
    if inner.loop.dimension not in tensor.dimensions:
        return Sweep(whole, inner.loop.bound, size, size)
    return Sweep(whole, inner.loop.bound, size, _news(tensor, box, inner))


def _news(tensor: Tensor, box: Sequence[int], moved: Place) -> int:
    """Words of a tile that the tile of the iteration before has not. Instances side by side may stand between the two."""
    dimension = moved.loop.dimension
    extents = tensor.extents(box)
    shared = []
    for rank, extent in zip(tensor.ranks, extents, strict=True):
        shift = sum(term.coefficient * moved.below[dimension] for term in rank if term.dimension == dimension)
        shared.append(max(0, extent - shift))
    return prod(extents) - prod(shared)


def dense_traffic(mapping: Mapping, conventions: Conventions) -> dict[tuple[int, int], Traffic]:
    """Traffic of each level and tensor that it keeps, by ``(level, tensor)``.

    A compute unit has no register: an input is read, and an output updated, once for each of its operations. The first read of an
    output that the level has not seen is left out.
    """
    found: dict[tuple[int, int], Traffic] = {}
    for number, tensor in enumerate(mapping.problem.tensors):
        keepers = mapping.keepers(number)
        for level in keepers:
            if mapping.imperfect:
                found[level, number] = _with_remainders(mapping, tensor, level, keepers, conventions)
                continue
            inner = mapping.inner_keeper(number, level)
            box = mapping.box(level)
            below = sweep(tensor, mapping.box(inner), mapping.between(inner, len(mapping.loops)), stationary=inner >= 0)
            between = mapping.between(inner, level)
            spread = prod(p.loop.bound for p in between if p.loop.is_spatial and p.loop.dimension in tensor.dimensions)
            arrivals = below.words * spread
            outside = mapping.between(level, len(mapping.loops))
            filled = sweep(tensor, box, outside)
            partition = tensor.size(box) * prod(
                p.loop.bound for p in outside if not p.loop.is_spatial and p.loop.dimension in tensor.dimensions
            )
            fills = 0 if level == keepers[-1] else filled.words
            if tensor.is_output and fills and not conventions.first_fills:
                fills -= partition
            found[level, number] = Traffic(
                extents=tensor.extents(box),
                partition=partition,
                reads=arrivals - partition if tensor.is_output else arrivals,
                fills=fills,
                updates=arrivals if tensor.is_output else 0,
                sweep=filled,
                spread=spread,
            )
    return found


def _with_remainders(
    mapping: Mapping, tensor: Tensor, level: int, keepers: Sequence[int], conventions: Conventions
) -> Traffic:
    """The same for the mean instance where not all iterations of a loop are alike."""
    inner = max((keeper for keeper in keepers if keeper < level), default=-1)
    alike = [
        p for p in mapping.between(inner, level) if p.loop.is_spatial and p.loop.dimension not in tensor.dimensions
    ]
    between = mapping.between(inner, level)
    outside = mapping.between(level, len(mapping.loops))
    moved = arrivals(mapping, tensor, inner, alike, stationary=inner >= 0)
    stays = [p for p in outside if not p.loop.is_spatial and p.loop.dimension not in tensor.dimensions]
    partition = arrivals(mapping, tensor, level, stays, stationary=False)
    fills = 0 if level == keepers[-1] else arrivals(mapping, tensor, level, ())
    if tensor.is_output and fills and not conventions.first_fills:
        fills -= partition

    def mean(words: int) -> int:
        return -(-words // mapping.instances(level))

    return Traffic(
        extents=tensor.extents(mapping.box(level)),
        partition=mean(partition),
        reads=mean(moved - partition if tensor.is_output else moved),
        fills=mean(fills),
        updates=mean(moved) if tensor.is_output else 0,
        sweep=None,
        spread=prod(p.loop.bound for p in between if p.loop.is_spatial and p.loop.dimension in tensor.dimensions),
    )
