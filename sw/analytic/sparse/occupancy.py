"""Expected and largest occupancy of each tile, of its values and of each rank of its format."""

from collections.abc import Mapping as Table
from dataclasses import dataclass
from math import ceil

from ..architecture import Architecture, Storage
from ..dataflow.traffic import Traffic
from ..densities.protocol import Density
from ..errors import MappingError
from ..features import Features, FormattedRank, Representation
from ..formats.protocol import Fibers
from ..mapping import Mapping
from ..problem import Tensor, Workload
from .ranks import RankPlan, plan_ranks

__all__ = ["Occupancy", "RankOccupancy", "occupancies"]


@dataclass(frozen=True)
class RankOccupancy:
    """Format data of a rank of one tile. mean, maximum: words of metadata and of payloads. bits: of a word of each."""

    rank: FormattedRank
    shape: int
    mean: tuple[float, float]
    maximum: tuple[float, float]
    bits: tuple[int, int]

    @property
    def mean_bits(self) -> float:
        """Expected bits."""
        return self.mean[0] * self.bits[0] + self.mean[1] * self.bits[1]

    @property
    def maximum_bits(self) -> float:
        """Bits in the fullest tile."""
        return self.maximum[0] * self.bits[0] + self.maximum[1] * self.bits[1]


@dataclass(frozen=True)
class Occupancy:
    """A tensor's tile at a level.

    mean: expected nonzeros of a tile that arrives at all. maximum: words that the fullest tile takes. arrives: share of the tiles
    that arrive; empty ones do not where the level outside knows it. ranks: innermost first, none without format data.
    """

    size: int
    mean: float
    maximum: int
    arrives: float
    is_compressed: bool
    ranks: tuple[RankOccupancy, ...] = ()

    @property
    def density(self) -> float:
        """Expected share of nonzeros."""
        return self.mean / self.size

    @property
    def has_metadata(self) -> bool:
        """Whether the level knows where the zeros are."""
        return bool(self.ranks)


def occupancies(
    workload: Workload,
    mapping: Mapping,
    architecture: Architecture,
    features: Features,
    traffic: Table[tuple[int, int], Traffic],
) -> dict[tuple[int, int], Occupancy]:
    """Occupancy by ``(level, tensor)``. Raises MappingError where a representation does not fit the mapping."""
    found: dict[tuple[int, int], Occupancy] = {}
    for number, tensor in enumerate(mapping.problem.tensors):
        plans: dict[int, tuple[RankPlan, ...]] = {}
        for level in mapping.keepers(number):
            representation = features.representations.get((level, number))
            inner = _inner_ranks(mapping, number, level, features, traffic, plans)
            plans[level] = plan_ranks(mapping, number, level, representation, inner)
            outer = mapping.outer_keeper(number, level)
            if outer is not None:
                _require_translation(
                    architecture.levels[level],
                    tensor,
                    level,
                    representation,
                    features.representations.get((outer, number)),
                )
            extents = traffic[level, number].extents
            density = workload.density(tensor)
            knows = outer is not None and (outer, number) in features.representations
            arrives = 1.0 - density.empty(extents) if knows else 1.0
            compressed = representation is not None and representation.is_compressed
            found[level, number] = Occupancy(
                size=traffic[level, number].size,
                mean=density.mean(extents) / arrives if arrives else 0.0,
                maximum=density.maximum(extents) if compressed else traffic[level, number].size,
                arrives=arrives,
                is_compressed=compressed,
                ranks=()
                if representation is None
                else _ranks(
                    tensor,
                    density,
                    extents,
                    representation,
                    plans[level],
                    architecture.levels[level],
                    arrives,
                    silent=architecture.conventions.spare_ranks_silent and _has_spare(representation, plans[level]),
                ),
            )
    return found


def _inner_ranks(
    mapping: Mapping,
    tensor: int,
    level: int,
    features: Features,
    traffic: Table[tuple[int, int], Traffic],
    plans: Table[int, tuple[RankPlan, ...]],
) -> tuple[RankPlan, ...] | None:
    """Ranks that a compressed level takes over from the one inside, since it hands out compressed tiles as they are."""
    representation = features.representations.get((level, tensor))
    child = mapping.inner_keeper(tensor, level)
    if representation is None or not representation.is_compressed or child < 0 or traffic[child, tensor].size == 1:
        return None
    own, inner = representation.ranks, features.representations.get((child, tensor))
    name = mapping.problem.tensors[tensor].name
    if len(own) < len(plans[child]):
        text = f"at least {len(plans[child])}: those of the level inside, whose tiles it hands out"
        raise MappingError(level, name, f"{len(own)} ranks", text)
    if inner is not None and inner.is_compressed:
        for number, (mine, other) in enumerate(zip(own, inner.ranks, strict=False)):
            if mine.format.name != other.format.name:
                text = f"{other.format.name}, as at the level inside, whose tiles it hands out"
                raise MappingError(level, f"{name}, rank {number}", mine.format.name, text)
    return plans[child]


def _require_translation(
    storage: Storage, tensor: Tensor, level: int, own: Representation | None, outer: Representation | None
) -> None:
    if outer is None or not outer.is_compressed or (own is not None and own.is_compressed):
        return
    if not storage.decompresses:
        text = "compressed, as at the level outside, or decompression_supported: true"
        raise MappingError(level, tensor.name, "uncompressed", text)
    if tensor.is_output and not storage.compresses:
        text = "compressed, as at the level outside, or compression_supported: true"
        raise MappingError(level, tensor.name, "uncompressed", text)


def _ranks(
    tensor: Tensor,
    density: Density,
    extents: tuple[int, ...],
    representation: Representation,
    plans: tuple[RankPlan, ...],
    storage: Storage,
    arrives: float,
    *,
    silent: bool,
) -> tuple[RankOccupancy, ...]:
    found: list[RankOccupancy] = []
    fullest = density.fullest(extents)
    count, above = 1, extents
    for number in reversed(range(len(plans))):
        rank, plan = representation.ranks[number], plans[number]
        below = tensor.extents(plan.box)
        mean = maximum = (0.0, 0.0)
        if (plan.shape > 1 or not number) and not silent:
            mean = _units(rank, count, plan.shape, density, above, below, arrives)
            maximum = _units(rank, count, plan.shape, fullest, above, below, 1.0)
        if not number:
            mean, maximum = (mean[0], 0.0), (maximum[0], 0.0)  # the payload of the last rank is the value itself
        found.append(RankOccupancy(rank, plan.shape, mean, maximum, _word_bits(rank, storage)))
        count, above = count * plan.shape, below
    return tuple(reversed(found))


def _has_spare(representation: Representation, plans: tuple[RankPlan, ...]) -> bool:
    """Whether ranks that take loops from the outermost on leave inner ranks without one."""
    return not representation.inner_first and not plans[0].loops and any(plan.loops for plan in plans)


def _units(
    rank: FormattedRank,
    count: int,
    shape: int,
    density: Density,
    above: tuple[int, ...],
    below: tuple[int, ...],
    arrives: float,
) -> tuple[float, float]:
    filled = count * (1.0 - density.empty(above)) / arrives if arrives else 0.0
    coordinates = count * shape * (1.0 - density.empty(below)) / arrives if arrives else 0.0
    return rank.format.units(Fibers(count, shape, filled, coordinates))


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
