"""Memory of a bench: regions as the driver lays them out, with guards around what may be written."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Memory", "OutsideError", "RegionLike"]


class RegionLike(Protocol):
    """``sw.runtime.memory_image.MemoryRegion`` and whatever else has its fields."""

    @property
    def name(self) -> str: ...
    @property
    def base(self) -> int: ...
    @property
    def data(self) -> NDArray[np.uint8]: ...
    @property
    def writable(self) -> bool: ...


class OutsideError(LookupError):
    """No region holds the whole access."""


@dataclass
class Memory:
    """Byte arrays at addresses. A write to another place is refused and recorded in ``breaches``."""

    regions: list[RegionLike]
    breaches: list[str] = field(default_factory=list)

    def __init__(self, regions: Iterable[RegionLike]) -> None:
        self.regions = list(regions)
        self.breaches = []

    def _find(self, address: int, size: int) -> RegionLike:
        for region in self.regions:
            if region.base <= address and address + size <= region.base + region.data.nbytes:
                return region
        self.breaches.append(f"access of {size} bytes outside every region at 0x{address:010x}")
        raise OutsideError(self.breaches[-1])

    def read(self, address: int, size: int) -> bytes:
        region = self._find(address, size)
        return region.data[address - region.base : address - region.base + size].tobytes()

    def write(self, address: int, data: bytes, strobe: int) -> None:
        """Write the bytes whose bit in ``strobe`` is set. Raises PermissionError where nothing may be written."""
        if strobe == 0:
            return
        region = self._find(address, len(data))
        if not region.writable:
            self.breaches.append(f"write to read-only region {region.name} at 0x{address:010x}")
            raise PermissionError(self.breaches[-1])
        at = address - region.base
        mask = np.array([strobe >> n & 1 for n in range(len(data))], np.bool_)
        region.data[at : at + len(data)][mask] = np.frombuffer(data, np.uint8)[mask]
