"""Shared by the benches of packed records: an array of records, and the nonzeros that the software finds in it."""

import random

import numpy as np

from sw.formats.memory_csr import MemoryCsr

__all__ = ["RecordArray", "record_array"]


class RecordArray:
    """Records of any bits.

    Attributes
    ----------
    width : int
        Bits of a record.
    nonzeros : list of (int, int)
        Coordinate and word of the value of each record.
    bits : int
        The array, its first bit the lowest.
    """

    def __init__(self, form: MemoryCsr, packed: bytes, count: int) -> None:
        self.width = form.record_bits
        arrays = {
            "pointers": np.array([0, count], "<u4").view(np.uint8),
            "elements": np.frombuffer(packed, np.uint8),
        }
        _, coordinates, words = form.unpack(arrays, 1, count)
        self.nonzeros = list(zip(coordinates.tolist(), words.tolist(), strict=True))
        self.bits = int.from_bytes(packed, "little") & ((1 << self.width * count) - 1)

    def beat(self, number: int, beat_bits: int) -> int:
        """Bits of a beat; behind the records they are 0."""
        return self.bits >> number * beat_bits & ((1 << beat_bits) - 1)


def record_array(
    rng: random.Random, count: int, *, coordinate_bits: int, value: str, plain: bool = False
) -> RecordArray:
    """``count`` records, the first two of which have every bit set, or none."""
    form = MemoryCsr() if plain else MemoryCsr(coordinate_bits, value.partition("_")[0])
    size = form.sizes(0, count)["elements"]
    alike = min(size, form.record_bits // 4)
    return RecordArray(form, rng.choice([b"\xff", b"\0"]) * alike + rng.randbytes(size - alike), count)
