"""Formats by the names that specifications use."""

from .bitmasks import Bitmask, UncompressedBitmask
from .coordinates import CoordinatePayload, RunLength
from .offsets import UncompressedOffsetPairs
from .protocol import RankFormat
from .uncompressed import Uncompressed

__all__ = ["FORMATS"]

FORMATS: dict[str, RankFormat] = {
    format.name: format
    for format in (
        Uncompressed(),
        UncompressedOffsetPairs(),
        UncompressedBitmask(),
        Bitmask(),
        CoordinatePayload(),
        RunLength(),
    )
}
