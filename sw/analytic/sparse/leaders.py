"""How probable it is that a leader's tile is empty, so that accesses to the follower are gated or skipped."""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ..architecture import Storage
from ..densities.many import of_many
from ..features import ActionOption, ActionSaf
from ..nests import Differ, Nests, Site
from ..problem import Workload
from ..values import Batched, Count, Real
from .joint import joint_share
from .occupancy import Occupancy

__all__ = ["Elimination", "best_option", "eliminations_of"]

Box = tuple[Count, ...]


@dataclass(frozen=True)
class Elimination(Batched):
    """A SAF at the level that it acts at.

    kind: ``gating``, ``skipping`` or ``skipping_spatial``. share: of all accesses of the dense algorithm that it removes.
    of_nonzeros: of those to nonzeros of the target; the same unless the data is known. leaders: each leader and the probability
    that its tile is empty. boxes: the iterations of the tile of each leader.
    """

    kind: str
    level: int
    target: int
    share: Real
    of_nonzeros: Real
    leaders: tuple[tuple[int, Real], ...]
    boxes: tuple[tuple[Count, ...], ...]

    def removed(self, tile: Occupancy) -> Real:
        """Share of the accesses that exist at a level with this tile."""
        return self.of_nonzeros if tile.has_metadata else self.share


def leader_boxes(nests: Nests, target: int, leaders: tuple[int, ...], level: int, block: int) -> list[Box]:
    """Iterations of the tile of each leader that decides over one access to the target at ``level``; all of them where the order
    of the spatial loops lets no tile decide.

    The target loop is the innermost that replaces what the next level inside holds. What the tile inside stays for is in the
    leader's tile: loops that do not index the target, and instances side by side unless each has accesses of its own. Of
    dimensions that index both, one iteration.
    """
    child = nests.inner_keeper(target, level)
    between = [
        site for site in nests.between(child, level) if not (site.is_spatial and nests.is_apart(site.level, target))
    ]
    found = _TargetLoop.of(nests, between, target, child)
    return [found.box(nests, target, leader, level, block) for leader in leaders]


@dataclass(frozen=True)
class _TargetLoop:
    """The loop between a level and the one inside that decides, in each mapping another. All lists are by site.

    alone: mappings where one operation decides over one word. none: those where no loop does. at: where the loop is the site.
    wider: where the site's iterations share the decision.
    """

    between: Sequence[Site]
    alone: np.ndarray
    none: np.ndarray
    at: list[np.ndarray]
    wider: list[np.ndarray]

    @classmethod
    def of(cls, nests: Nests, between: Sequence[Site], target: int, child: int) -> "_TargetLoop":
        no = np.zeros(nests.count, dtype=bool)
        of_target = nests.problem.tensors[target].dimensions
        alone = no
        if child < 0:  # the innermost loop runs in time
            begun, alone = no, ~no
            for site in between:
                alone = alone & ~(site.moves & ~begun & site.is_spatial)
                begun = begun | site.moves
        at = []
        found = alone
        for number, site in enumerate(between):
            if child >= 0:
                here = site.moves & site.is_over(of_target)
            elif site.is_spatial:
                here = site.moves & (site.is_over(of_target) | ~_spatial_follows(no, between[number + 1 :]))
            else:
                here = no
            at.append(here & ~found)
            found = found | here
        wider = []
        past, passed = no, no
        for site, here in zip(between, at, strict=True):
            indexes = site.is_over(of_target)
            if site.is_spatial:
                wider.append(site.moves & (past | alone))
            else:
                shares = site.moves & past & ~passed & ~indexes if child >= 0 else no
                wider.append(shares)
                passed = passed | (past & site.moves & (indexes if child >= 0 else True))
            past = past | here
            if not site.is_spatial:
                passed = passed | here
        return cls(between, alone, ~found, at, wider)

    def box(self, nests: Nests, target: int, leader: int, level: int, block: int) -> Box:
        """The leader's tile."""
        base: list[Count] = [np.where(self.none, whole, 1.0) for whole in nests.box(level)]
        for site, here in zip(self.between, self.at, strict=True):
            if here.any():
                base = [np.where(here, above, own) for above, own in zip(nests.above(site), base, strict=True)]
        box = list(base)
        for site, wide in zip(self.between, self.wider, strict=True):
            if wide.any():
                box = [own * np.where(wide, site.factor(d), 1.0) for d, own in enumerate(box)]
        decides = ~self.alone & ~self.none
        if decides.any():
            divided = self._divided(nests, target, leader, base, box, block)
            box = [np.where(decides, mine, own) for mine, own in zip(divided, box, strict=True)]
        void = self._void(nests, target, leader)
        if void is not None:
            box = [np.where(void, bound, own) for bound, own in zip(nests.problem.bounds, box, strict=True)]
        return tuple(map(np.minimum, box, nests.problem.bounds))

    def _void(self, nests: Nests, target: int, leader: int) -> np.ndarray | None:
        """Mappings whose spatial loops stand in an order that lets no tile decide."""
        if not any(site.is_spatial and here.any() for site, here in zip(self.between, self.at, strict=True)):
            return None
        of_leader = nests.problem.tensors[leader].dimensions
        both = nests.problem.tensors[target].dimensions & of_leader
        void = np.zeros(nests.count, dtype=bool)
        begins_in_space, divided = void, void
        for site, here, wide in zip(self.between, self.at, self.wider, strict=True):
            void = void | (wide & ~self.alone & begins_in_space & divided & site.is_over(of_leader))
            if site.is_spatial:
                begins_in_space = begins_in_space | here
            divided = divided | ((here | wide) & site.is_over(both))
        return void

    def _divided(
        self, nests: Nests, target: int, leader: int, base: Sequence[Count], box: Sequence[Count], block: int
    ) -> list[Count]:
        """The leader's tile for one block of the target: of dimensions that index both, one iteration."""
        tensors = nests.problem.tensors
        both = sorted(tensors[target].dimensions & tensors[leader].dimensions)
        takes = [here | wide for here, wide in zip(self.at, self.wider, strict=True)]
        factors: dict[int, Count] = {
            d: prod(np.where(own, site.factor(d), 1.0) for site, own in zip(self.between, takes, strict=True))
            for d in both
        }
        total = prod(factors.values())
        scaling = np.ceil(block / (tensors[target].size(base) / total))
        found = list(box)
        seen = {d: np.zeros(nests.count, dtype=bool) for d in both}
        for site, own in zip(self.between, takes, strict=True):
            for d in both:
                first = own & (site.dimension == d) & ~seen[d]
                if first.any():
                    seen[d] = seen[d] | first
                    found[d] = np.where(first, np.ceil(found[d] / (factors[d] / scaling)), found[d])
                    scaling = np.where(first, scaling / factors[d], scaling)
        for site, here in zip(self.between, self.at, strict=True):
            for d in tensors[target].dimensions | tensors[leader].dimensions:
                widens = here & (site.dimension == d) & (scaling > 1)
                if widens.any():
                    found[d] = np.where(widens, np.floor(found[d] * scaling), found[d])
        return found


def _spatial_follows(no: np.ndarray, following: Sequence[Site]) -> np.ndarray:
    """Where the next loop with several iterations runs side by side."""
    begun, found = no, no
    for site in following:
        found = found | (site.moves & ~begun & site.is_spatial)
        begun = begun | site.moves
    return found


def eliminations_of(
    workload: Workload, nests: Nests, levels: tuple[Storage, ...], option: ActionOption, kind: str, stated: int
) -> Elimination | None:
    """What one option does at the nearest level outwards that keeps the target. Refuses mappings where none does."""
    keepers = [keeper for keeper in nests.keepers(option.target) if keeper >= stated]
    if not keepers:
        told = ("bypassed here and at all levels outside", "kept, to be gated or skipped")
        nests.refuse(True, stated, nests.problem.tensors[option.target].name, lambda _: told)
        return None
    level = keepers[0]
    boxes = leader_boxes(nests, option.target, option.leaders, level, levels[level].block)
    effectual: Real = nests.ones()
    leaders = []
    for leader, box in zip(option.leaders, boxes, strict=True):
        tensor = nests.problem.tensors[leader]
        empty = of_many(workload.density(tensor)).empty(tensor.extents(box))
        effectual = effectual * (1.0 - empty)
        leaders.append((leader, empty))
    of_nonzeros = effectual
    known = joint_share(workload, nests.problem, option.target, option.leaders, tuple(boxes))
    if known is not None:
        effectual, of_nonzeros = known.any_target, known.of_nonzeros
    return Elimination(kind, level, option.target, 1.0 - effectual, 1.0 - of_nonzeros, tuple(leaders), tuple(boxes))


def best_option(
    workload: Workload,
    nests: Nests,
    levels: tuple[Storage, ...],
    saf: ActionSaf,
    stated: int,
    occupancy: Table[tuple[int, int], Occupancy],
) -> Elimination | None:
    """The option that saves most energy: share of accesses removed, times words of a tile, times energy of a word. Of options
    that save the same the last one."""

    def saving(found: Elimination) -> Real:
        storage, tile = levels[found.level], occupancy[found.level, found.target]
        inner = nests.inner_keeper(found.target, found.level)
        moved = occupancy[found.level if inner < 0 else inner, found.target]
        ratio = (storage.metadata_word_bits or 0) / storage.word_bits
        words = tile.mean + ratio * sum(sum(rank.mean) for rank in moved.ranks)
        return storage.energies.get("read", 1.0) / storage.block * words * found.share

    asked = [eliminations_of(workload, nests, levels, option, saf.kind, stated) for option in saf.options]
    options = [found for found in asked if found is not None]
    if len(options) < 2:
        return options[0] if options else None
    savings = np.stack([np.broadcast_to(saving(found), nests.count) for found in reversed(options)])
    best = savings.argmax(axis=0)
    if (best != best[0]).any():
        raise Differ(best)
    return options[len(options) - 1 - int(best[0])]
