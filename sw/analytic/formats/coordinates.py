"""CP and RLE: a word for each coordinate with a nonzero."""

from dataclasses import dataclass

from .protocol import Fibers, Units

__all__ = ["CoordinatePayload", "RunLength"]


@dataclass(frozen=True)
class CoordinatePayload:
    """CP: the coordinate."""

    name: str = "CP"
    is_compressed: bool = True
    metadata_bits: int | None = None

    def units(self, fibers: Fibers) -> Units:
        return fibers.coordinates, fibers.coordinates


@dataclass(frozen=True)
class RunLength(CoordinatePayload):
    """RLE: the run of zeros before it. A run that its word cannot hold takes no second word."""

    name: str = "RLE"
