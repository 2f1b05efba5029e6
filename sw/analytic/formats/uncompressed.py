"""U: coordinates are implied by positions."""

from dataclasses import dataclass

from .protocol import Fibers, Units

__all__ = ["Uncompressed"]


@dataclass(frozen=True)
class Uncompressed:
    """Keeps every coordinate and says nothing of them."""

    name: str = "U"
    is_compressed: bool = False
    metadata_bits: int | None = None

    def units(self, fibers: Fibers) -> Units:
        return 0.0, 0.0
