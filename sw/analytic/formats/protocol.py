"""What the analysis asks of the format of a rank."""

from dataclasses import dataclass
from typing import Protocol

__all__ = ["Fibers", "RankFormat", "Units"]


@dataclass(frozen=True)
class Fibers:
    """Fibers of one rank in a tile, as expected.

    count: fibers when nothing is left out. shape: coordinates of a fiber. filled: fibers that hold a nonzero. coordinates:
    coordinates, over all fibers, below which there is a nonzero.
    """

    count: float
    shape: int
    filled: float
    coordinates: float


# Words of metadata, which say what the coordinates are, and of payloads, which say where the fiber below lies.
Units = tuple[float, float]


class RankFormat(Protocol):
    """The format of one rank."""

    @property
    def name(self) -> str:
        """As specifications call it."""

    @property
    def is_compressed(self) -> bool:
        """Whether coordinates without a nonzero take no space below."""

    @property
    def metadata_bits(self) -> int | None:
        """Bits of a word of metadata where the specification says nothing; None: as the level has them."""

    def units(self, fibers: Fibers) -> Units:
        """Expected words of metadata and of payloads in a tile."""
