"""B and UB: a bit for each coordinate."""

from dataclasses import dataclass

from .protocol import Fibers, Units

__all__ = ["Bitmask", "UncompressedBitmask"]


@dataclass(frozen=True)
class Bitmask:
    """B: a bit for each coordinate of a fiber that holds a nonzero; only coordinates with a nonzero are kept below."""

    name: str = "B"
    is_compressed: bool = True
    metadata_bits: int | None = 1

    def units(self, fibers: Fibers) -> Units:
        return fibers.filled * fibers.shape, fibers.coordinates


@dataclass(frozen=True)
class UncompressedBitmask:
    """UB: a bit for each coordinate; every coordinate is kept below. Saves accesses, not space."""

    name: str = "UB"
    is_compressed: bool = False
    metadata_bits: int | None = 1

    def units(self, fibers: Fibers) -> Units:
        return fibers.count * fibers.shape, fibers.count * fibers.shape
