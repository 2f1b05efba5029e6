"""RLC: runs of zeros and the levels that end them, row-major."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..array_checks import FormatError, id_array, require_range, value_array
from ..sparse_tensor import SparseTensor
from ..storage_format import Field, Layout, Region, places, value_field

__all__ = ["FORMAT", "Rlc"]

MOST_RUN_BITS = 32


@dataclass(frozen=True)
class Rlc:
    """``runs``: zeros before each level, ``levels``: values. There is no run after the last level.

    A run that is too long goes on by a filler: the longest run, 2^b - 1, with level 0, which stands for 2^b zeros. A level of 0
    is always a filler, so that a stored zero becomes a place without an entry.

    ``run_bits``: b, 1 to 32.
    """

    run_bits: int = 5

    orders: ClassVar[tuple[int, ...]] = (2, 3)
    keeps_zeros: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 1 <= self.run_bits <= MOST_RUN_BITS:
            raise ValueError(f"Bits of a run must be from 1 to {MOST_RUN_BITS}, not {self.run_bits}")

    @property
    def longest(self) -> int:
        return (1 << self.run_bits) - 1

    def counts(self, tensor: SparseTensor) -> dict[str, int]:
        gaps = self._gaps(tensor.without_zeros())
        return {"pairs": len(gaps) + int((gaps >> np.uint64(self.run_bits)).sum())}

    def _gaps(self, stored: SparseTensor) -> NDArray[np.uint64]:
        """Zeros before each value."""
        gaps = stored.positions()
        gaps[1:] -= gaps[:-1] + np.uint64(1)
        return gaps

    def layout(self, shape: Sequence[int], counts: Mapping[str, int], value: str) -> Layout:
        fields = (value_field("levels", value), Field("runs", self.run_bits))
        return Layout(value, (Region("pairs", counts["pairs"], fields),))

    def encode(self, tensor: SparseTensor) -> dict[str, NDArray[Any]]:
        stored = tensor.without_zeros()
        gaps = self._gaps(stored)
        ends = np.cumsum((gaps >> np.uint64(self.run_bits)).astype(np.int64) + 1)
        pairs = int(ends[-1]) if len(ends) else 0
        runs = np.full(pairs, self.longest, np.int64)
        levels = np.zeros(pairs, stored.values.dtype)
        runs[ends - 1] = (gaps & np.uint64(self.longest)).astype(np.int64)
        levels[ends - 1] = stored.values
        return {"runs": runs, "levels": levels}

    def decode(self, arrays: Mapping[str, NDArray[Any]], shape: Sequence[int], value: str) -> SparseTensor:
        levels = value_array(arrays, "levels", value)
        runs = id_array(arrays, "runs", len(levels))
        require_range("runs", runs, 1 << self.run_bits)
        stored = levels != 0
        short = ~stored & (runs != self.longest)
        if short.any():
            at = int(np.argmax(short))
            raise FormatError(
                f"levels has 0 behind a run of {runs[at]} at entry {at}: a filler's run must be {self.longest}"
            )
        if len(levels) and not stored[-1]:
            raise FormatError("levels ends with a filler: the last level must not be 0")
        positions = np.cumsum(runs + 1).astype(np.uint64) - np.uint64(1)
        if len(positions) and int(positions[-1]) >= places(shape):
            raise FormatError(
                f"runs lead to position {positions[-1]}: must be below {places(shape)}, the places there are"
            )
        return SparseTensor.from_positions(shape, positions[stored], levels[stored], value)


FORMAT = Rlc
