"""UOP: uncompressed offset pairs, the pointers of CSR."""

from dataclasses import dataclass

from .protocol import Fibers, Units

__all__ = ["UncompressedOffsetPairs"]


@dataclass(frozen=True)
class UncompressedOffsetPairs:
    """An offset for each coordinate and one more at the end of a fiber."""

    name: str = "UOP"
    is_compressed: bool = False
    metadata_bits: int | None = None

    def units(self, fibers: Fibers) -> Units:
        return 0.0, fibers.filled * (fibers.shape + 1)
