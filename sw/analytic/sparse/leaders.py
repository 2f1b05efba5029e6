"""How probable it is that a leader's tile is empty, so that accesses to the follower are gated or skipped."""

from collections.abc import Mapping as Table
from dataclasses import dataclass
from math import ceil

from ..architecture import Storage
from ..errors import MappingError
from ..features import ActionOption, ActionSaf
from ..mapping import Mapping, Place
from ..problem import Workload
from .joint import joint_share
from .occupancy import Occupancy

__all__ = ["Elimination", "best_option", "eliminations_of"]


@dataclass(frozen=True)
class Elimination:
    """A SAF at the level that it acts at.

    kind: ``gating``, ``skipping`` or ``skipping_spatial``. share: of all accesses of the dense algorithm that it removes.
    of_nonzeros: of those to nonzeros of the target; the same unless the data is known. leaders: each leader and the probability
    that its tile is empty. boxes: the iterations of the tile of each leader.
    """

    kind: str
    level: int
    target: int
    share: float
    of_nonzeros: float
    leaders: tuple[tuple[int, float], ...]
    boxes: tuple[tuple[int, ...], ...]

    def removed(self, tile: Occupancy) -> float:
        """Share of the accesses that exist at a level with this tile."""
        return self.of_nonzeros if tile.has_metadata else self.share


def keeper_from(mapping: Mapping, tensor: int, level: int) -> int:
    """The nearest level from ``level`` outwards that keeps the tensor."""
    found = [keeper for keeper in mapping.keepers(tensor) if keeper >= level]
    if not found:
        name = mapping.problem.tensors[tensor].name
        raise MappingError(level, name, "bypassed here and at all levels outside", "kept, to be gated or skipped")
    return found[0]


def leader_boxes(
    mapping: Mapping, target: int, leaders: tuple[int, ...], level: int, block: int
) -> list[tuple[int, ...] | None]:
    """Iterations of the tile of each leader that decides over one access to the target at ``level``; None where the order of the
    spatial loops lets no tile decide.

    The target loop is the innermost that replaces what the next level inside holds. What the tile inside stays for is in the
    leader's tile: loops that do not index the target, and instances side by side. Of dimensions that index both, one iteration.
    """
    tensors = mapping.problem.tensors
    child = mapping.inner_keeper(target, level)
    between = [place for place in mapping.between(child, level) if place.loop.bound > 1]
    of_target = tensors[target].dimensions
    scalar = child < 0 and not (between and between[0].loop.is_spatial)
    if scalar:
        base, relevant = mapping.box(-1), []
        wider = [place for place in between if place.loop.is_spatial]
    else:
        number = _target_loop(between, of_target, child)
        if number is None:
            return [mapping.box(level) for _ in leaders]
        place = between[number]
        base, relevant = place.above, [place]
        wider = _spatial_above(between[number + 1 :], place, of_target, child)
    found: list[tuple[int, ...] | None] = []
    for leader in leaders:
        box = list(base)
        for place in wider:
            box[place.loop.dimension] *= place.loop.bound
        if scalar:
            found.append(tuple(box))
            continue
        found.append(_divided(mapping, target, leader, [*relevant, *wider], base, box, block))
    return found


def _target_loop(between: list[Place], of_target: frozenset[int], child: int) -> int | None:
    for number, place in enumerate(between):
        if place.loop.dimension in of_target and (child >= 0 or place.loop.is_spatial):
            return number
        following = between[number + 1] if number + 1 < len(between) else None
        if child < 0 and (following is None or not following.loop.is_spatial):
            return number
    return None


def _spatial_above(above: list[Place], target: Place, of_target: frozenset[int], child: int) -> list[Place]:
    """Loops outside the target loop whose iterations share one decision."""
    found, passed = [], not target.loop.is_spatial
    for place in above:
        indexes = place.loop.dimension in of_target
        if place.loop.is_spatial or (not passed and child >= 0 and not indexes):
            found.append(place)
        if not place.loop.is_spatial and (child < 0 or indexes):
            passed = True
    return found


def _divided(
    mapping: Mapping,
    target: int,
    leader: int,
    relevant: list[Place],
    base: tuple[int, ...],
    box: list[int],
    block: int,
) -> tuple[int, ...] | None:
    """The leader's tile for one block of the target."""
    tensors = mapping.problem.tensors
    of_leader = tensors[leader].dimensions
    both = tensors[target].dimensions & of_leader
    factors: dict[int, int] = {}
    for place in relevant:
        dimension = place.loop.dimension
        if relevant[0].loop.is_spatial and factors and dimension in of_leader:
            return None
        if dimension in both:
            factors[dimension] = factors.get(dimension, 1) * place.loop.bound
    total = 1
    for factor in factors.values():
        total *= factor
    scaling = float(ceil(block / (tensors[target].size(base) / total)))
    for dimension, factor in factors.items():
        box[dimension] = ceil(box[dimension] / (factor / scaling))
        scaling /= factor
    if scaling > 1:
        box[relevant[0].loop.dimension] = int(box[relevant[0].loop.dimension] * scaling)
    return tuple(box)


def eliminations_of(
    workload: Workload,
    mapping: Mapping,
    levels: tuple[Storage, ...],
    option: ActionOption,
    kind: str,
    stated: int,
) -> Elimination:
    """What one option does at the level where it acts. Raises MappingError where no level keeps the target."""
    level = keeper_from(mapping, option.target, stated)
    boxes = leader_boxes(mapping, option.target, option.leaders, level, levels[level].block)
    effectual, leaders, tiles = 1.0, [], []
    for leader, box in zip(option.leaders, boxes, strict=True):
        if box is None:
            continue
        box = tuple(map(min, box, mapping.problem.bounds))
        tensor = mapping.problem.tensors[leader]
        empty = workload.density(tensor).empty(tensor.extents(box))
        effectual *= 1.0 - empty
        leaders.append((leader, empty))
        tiles.append(box)
    of_nonzeros = effectual
    known = joint_share(workload, mapping.problem, option.target, tuple(leader for leader, _ in leaders), tuple(tiles))
    if known is not None:
        effectual, of_nonzeros = known.any_target, known.of_nonzeros
    return Elimination(kind, level, option.target, 1.0 - effectual, 1.0 - of_nonzeros, tuple(leaders), tuple(tiles))


def best_option(
    workload: Workload,
    mapping: Mapping,
    levels: tuple[Storage, ...],
    saf: ActionSaf,
    stated: int,
    occupancy: Table[tuple[int, int], Occupancy],
) -> Elimination:
    """The option that saves most energy: share of accesses removed, times words of a tile, times energy of a word."""

    def saving(found: Elimination) -> float:
        storage, tile = levels[found.level], occupancy[found.level, found.target]
        inner = mapping.inner_keeper(found.target, found.level)
        moved = occupancy[found.level if inner < 0 else inner, found.target]
        ratio = (storage.metadata_word_bits or 0) / storage.word_bits
        words = tile.mean + ratio * sum(sum(rank.mean) for rank in moved.ranks)
        return storage.energies.get("read", 1.0) / storage.block * words * found.share

    options = [eliminations_of(workload, mapping, levels, option, saf.kind, stated) for option in saf.options]
    return max(reversed(options), key=saving)
