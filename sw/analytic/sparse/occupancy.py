"""Expected and largest occupancy of each tile, of its values and of each rank of its format."""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, prod

import numpy as np

from ..architecture import Architecture, Storage
from ..dataflow.traffic import Traffic
from ..densities.many import Many, of_many
from ..features import Features, FormattedRank, Representation
from ..formats.protocol import Fibers
from ..nests import Nests
from ..problem import Tensor, Workload
from ..values import Batched, Count, Real
from .ranks import RankPlan, plan_ranks

__all__ = ["Occupancy", "RankOccupancy", "occupancies"]


@dataclass(frozen=True)
class RankOccupancy(Batched):
    """Format data of a rank of one tile. mean, maximum: words of metadata and of payloads. bits: of a word of each."""

    rank: FormattedRank
    shape: Count
    mean: tuple[Real, Real]
    maximum: tuple[Real, Real]
    bits: tuple[int, int]

    @property
    def mean_bits(self) -> Real:
        """Expected bits."""
        return self.mean[0] * self.bits[0] + self.mean[1] * self.bits[1]

    @property
    def maximum_bits(self) -> Real:
        """Bits in the fullest tile."""
        return self.maximum[0] * self.bits[0] + self.maximum[1] * self.bits[1]


@dataclass(frozen=True)
class Occupancy(Batched):
    """A tensor's tile at a level.

    mean: expected nonzeros of a tile that arrives at all. maximum: words that the fullest tile takes. arrives: share of the tiles
    that arrive; empty ones do not where the level outside knows it. points: words of a tile without zeros left out, on average:
    the edge of the tensor cuts some. ranks: innermost first, none without format data.
    """

    size: Count
    mean: Real
    maximum: Count
    arrives: Real
    is_compressed: bool
    points: Real
    ranks: tuple[RankOccupancy, ...] = ()

    @property
    def density(self) -> Real:
        """Expected share of nonzeros."""
        return self.mean / self.points

    @property
    def has_metadata(self) -> bool:
        """Whether the level knows where the zeros are."""
        return bool(self.ranks)


def occupancies(
    workload: Workload,
    nests: Nests,
    architecture: Architecture,
    features: Features,
    traffic: Table[tuple[int, int], Traffic],
) -> dict[tuple[int, int], Occupancy]:
    """Occupancy by ``(level, tensor)``. Refuses mappings that a representation does not fit."""
    found: dict[tuple[int, int], Occupancy] = {}
    for number, tensor in enumerate(nests.problem.tensors):
        density = of_many(workload.density(tensor))
        needed = any((level, number) in features.representations for level in nests.keepers(number))
        plans: dict[int, tuple[RankPlan, ...]] = {}
        for level in nests.keepers(number):
            representation = features.representations.get((level, number))
            if needed:
                plans[level] = _plans(nests, number, level, features, traffic, plans)
            outer = nests.outer_keeper(number, level)
            if outer is not None:
                outside = features.representations.get((outer, number))
                _require_translation(nests, architecture.levels[level], tensor, level, representation, outside)
            if representation is not None:
                _require_inner_compression(nests, level, tensor, representation, plans[level])
            own = traffic[level, number]
            knows = outer is not None and (outer, number) in features.representations
            empty = density.empty(own.extents) if knows or representation is not None else None
            arrives = 1.0 - empty if knows and empty is not None else 1.0
            compressed = representation is not None and representation.is_compressed
            found[level, number] = Occupancy(
                size=own.size,
                mean=_over(density.mean(own.extents), arrives),
                maximum=density.maximum(own.extents) if compressed else own.size,
                arrives=arrives,
                is_compressed=compressed,
                points=density.points(own.extents),
                ranks=()
                if representation is None
                else _Ranks(
                    tensor,
                    density,
                    own.extents,
                    empty,
                    representation,
                    plans[level],
                    architecture.levels[level],
                    arrives,
                    None if tensor.slides or not nests.mappings else tensor.extents(nests.problem.bounds),
                ).found(silent=architecture.conventions.spare_ranks_silent),
            )
    return found


def _over(value: Real, share: Real) -> Real:
    """Of what arrives; 0 where nothing does."""
    if isinstance(share, float) and share == 1.0:
        return value
    return np.where(share > 0, value / np.where(share > 0, share, 1.0), 0.0)


def _plans(
    nests: Nests,
    tensor: int,
    level: int,
    features: Features,
    traffic: Table[tuple[int, int], Traffic],
    plans: Table[int, tuple[RankPlan, ...]],
) -> tuple[RankPlan, ...]:
    """Ranks of a level. A compressed one takes over those of the level inside, since it hands out compressed tiles as they are,
    unless these are single words."""
    representation = features.representations.get((level, tensor))
    child = nests.inner_keeper(tensor, level)
    if representation is None or not representation.is_compressed or child < 0:
        return plan_ranks(nests, tensor, level, representation, None)
    tiled = np.broadcast_to(traffic[child, tensor].size > 1, nests.count)
    alone = () if tiled.all() else plan_ranks(nests, tensor, level, representation, None, among=~tiled)
    if not tiled.any():
        return alone
    dimensions = nests.problem.tensors[tensor].dimensions
    cut = _pre_tiled(nests, tensor, level, features, plans[child], tiled)
    if not alone:
        return cut
    return tuple(
        RankPlan(
            np.where(tiled, mine.shape, other.shape),
            tuple(
                np.where(tiled, a, b) if dimension in dimensions else a
                for dimension, (a, b) in enumerate(zip(mine.box, other.box, strict=True))
            ),
            np.where(tiled, mine.stands, other.stands),
        )
        for mine, other in zip(cut, alone, strict=True)
    )


def _pre_tiled(
    nests: Nests, tensor: int, level: int, features: Features, inside: tuple[RankPlan, ...], tiled: np.ndarray
) -> tuple[RankPlan, ...]:
    """Ranks of a level that hands out tiles of several words as they are."""
    representation, child = features.representations[level, tensor], nests.inner_keeper(tensor, level)
    own, inner = representation.ranks, features.representations.get((child, tensor))
    name = nests.problem.tensors[tensor].name
    if len(own) < len(inside):
        text = f"at least {len(inside)}: those of the level inside, whose tiles it hands out"
        nests.refuse(tiled, level, name, lambda _: (f"{len(own)} ranks", text))
        return inside[: len(own)]
    if inner is not None and inner.is_compressed:
        for number, (mine, other) in enumerate(zip(own, inner.ranks, strict=False)):
            if mine.format.name != other.format.name:
                told = (mine.format.name, f"{other.format.name}, as at the level inside, whose tiles it hands out")
                nests.refuse(tiled, level, f"{name}, rank {number}", partial(_always, told))
    return plan_ranks(nests, tensor, level, representation, inside, among=tiled)


def _always(told: tuple[str, str], _: int) -> tuple[str, str]:
    """The same of every mapping."""
    return told


def _require_inner_compression(
    nests: Nests, level: int, tensor: Tensor, representation: Representation, plans: Sequence[RankPlan]
) -> None:
    """Refuses values that lie in rows of their full length below coordinates that are left out."""
    kinds = [rank.format.is_compressed for rank in representation.ranks]
    if kinds == sorted(kinds, reverse=True):
        return
    full = seen = np.zeros(nests.count, dtype=bool)
    for compressed, plan in zip(kinds, plans, strict=True):
        if compressed:
            told = ("uncompressed", "compressed, as a rank outside it")
            nests.refuse(full & plan.stands, level, f"{tensor.name}, innermost rank", partial(_always, told))
        else:
            full = full | (plan.stands & ~seen)
        seen = seen | plan.stands


def _require_translation(
    nests: Nests, storage: Storage, tensor: Tensor, level: int, own: Representation | None, outer: Representation | None
) -> None:
    if outer is None or not outer.is_compressed or (own is not None and own.is_compressed):
        return
    if not storage.decompresses:
        allowed = "compressed, as at the level outside, or decompression_supported: true"
        nests.refuse(True, level, tensor.name, lambda _: ("uncompressed", allowed))
    elif tensor.is_output and not storage.compresses:
        text = "compressed, as at the level outside, or compression_supported: true"
        nests.refuse(True, level, tensor.name, lambda _: ("uncompressed", text))


@dataclass(frozen=True)
class _Ranks:
    """What the ranks of a tensor's tile at a level take. empty: probability that the tile is empty. whole: extents of the tensor
    where loops have remainders, so that fibers at its edge are shorter than others."""

    tensor: Tensor
    density: Many
    extents: tuple[Count, ...]
    empty: Real
    representation: Representation
    plans: tuple[RankPlan, ...]
    storage: Storage
    arrives: Real
    whole: tuple[Count, ...] | None

    def found(self, *, silent: bool) -> tuple[RankOccupancy, ...]:
        """silent: where ranks that take loops from the outermost on leave inner ranks without one, none counts."""
        counts: Count = True
        if silent and not self.representation.inner_first:
            counts = self.plans[0].stands | ~np.logical_or.reduce([plan.stands for plan in self.plans])
        means = self._units(self.density, self.empty, self.arrives, counts, self._edge())
        fullest = self.density.fullest(self.extents)
        most = self._units(fullest, fullest.empty(self.extents), 1.0, counts, self.whole and self.extents)
        return tuple(
            RankOccupancy(rank, plan.shape, mean, maximum, _word_bits(rank, self.storage))
            for rank, plan, mean, maximum in zip(self.representation.ranks, self.plans, means, most, strict=True)
        )

    def _edge(self) -> tuple[Count, ...] | None:
        """What cuts the fibers of a tile: the tensor's edge where the density is a mean over all tiles, else the tile's own."""
        return self.whole and (
            self.whole if np.any(self.density.points(self.extents) < prod(self.extents)) else self.extents
        )

    def _units(
        self, density: Many, empty: Real, arrives: Real, counts: Count, edge: tuple[Count, ...] | None
    ) -> list[tuple[Real, Real]]:
        """Words of metadata and payloads of each rank. The payload of the last rank is the value itself. A rank of one coordinate
        that is not the last takes nothing."""
        found = []
        count: Count = 1.0
        filled = _over(1.0 - empty, arrives)
        for number in reversed(range(len(self.plans))):
            rank, plan = self.representation.ranks[number], self.plans[number]
            below = self.tensor.extents(plan.box)
            points = count * plan.shape if edge is None else _tiles(edge, below) / _tiles(edge, self.extents)
            coordinates = points * _over(1.0 - density.empty(below), arrives)
            units = rank.format.units(Fibers(count, points / count, filled, coordinates))
            shown = counts & (plan.shape > 1) if number else counts
            words = [each if _is_zero(each) or shown is True else np.where(shown, each, 0.0) for each in units]
            found.append((words[0], words[1] if number else 0.0))
            count, filled = points, coordinates
        return found[::-1]


def _tiles(whole: tuple[Count, ...], extents: tuple[Count, ...]) -> Count:
    """Tiles of a tensor or a larger tile, those that its edge cuts among them."""
    return prod(np.ceil(side / length) for side, length in zip(whole, extents, strict=True))


def _is_zero(value: Real) -> bool:
    """Whether it is for all mappings, without a look at each."""
    return isinstance(value, int | float) and value == 0


def _word_bits(rank: FormattedRank, storage: Storage) -> tuple[int, int]:
    """Bits of a word of metadata and of payloads; 0, and free, where nothing says. Words fill a row: their width divides it."""
    usual = storage.metadata_word_bits or 0
    of_format = rank.format.metadata_bits
    metadata = rank.metadata_bits if rank.metadata_bits is not None else usual if of_format is None else of_format
    payload = rank.payload_bits if rank.payload_bits is not None else usual
    return _divisor(metadata, storage.metadata_width), _divisor(payload, storage.metadata_width)


def _divisor(bits: int, width: int) -> int:
    """The smallest divisor of a row's width that is not below ``bits``; wider words take whole rows."""
    if not bits or not width:
        return bits
    if bits > width:
        return width * ceil(bits / width)
    return next(size for size in range(bits, width + 1) if width % size == 0)
