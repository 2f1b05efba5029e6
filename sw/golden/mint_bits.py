"""Packed records and division, as plain sums: what the blocks of ``rtl/mint`` for bits and positions must compute."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["PackedBeat", "beat_count", "divided", "pack", "unpack"]


@dataclass(frozen=True)
class PackedBeat:
    """A beat of a region: its bits, a bit for each byte that the region touches, how many these are, whether it is the last."""

    data: int
    strobe: int
    bytes: int
    last: bool


def beat_count(*, beat_bits: int, drop: int, width: int, count: int) -> int:
    """Beats of a request; none where there is no bit."""
    return -(-(drop + width * count) // beat_bits) if width * count else 0


def unpack(beats: Sequence[int], *, beat_bits: int, drop: int, width: int, count: int) -> list[int]:
    """The records of a request: record p begins at bit drop + p x width."""
    bits = sum(beat << n * beat_bits for n, beat in enumerate(beats)) >> drop
    return [bits >> p * width & ((1 << width) - 1) for p in range(count)]


def pack(records: Sequence[int], *, beat_bits: int, start: int, width: int) -> list[PackedBeat]:
    """The beats of a region whose first record begins at bit ``start`` of the first; bits around the records are 0."""
    bits = sum((record & ((1 << width) - 1)) << p * width for p, record in enumerate(records)) << start
    count = beat_count(beat_bits=beat_bits, drop=start, width=width, count=len(records))
    end = start + len(records) * width
    beats = []
    for n in range(count):
        # First and last byte of this beat that hold a bit of the region.
        first = max(start - n * beat_bits, 0) // 8
        last = (min(end - n * beat_bits, beat_bits) - 1) // 8
        beats.append(
            PackedBeat(
                data=bits >> n * beat_bits & ((1 << beat_bits) - 1),
                strobe=sum(1 << byte for byte in range(first, last + 1)),
                bytes=last + 1 - first,
                last=n == count - 1,
            )
        )
    return beats


def divided(dividend: int, divisor: int) -> tuple[int, int]:
    """Quotient and remainder by schoolbook division, a bit at a time."""
    quotient = remainder = 0
    for place in reversed(range(dividend.bit_length())):
        remainder = remainder << 1 | (dividend >> place & 1)
        quotient <<= 1
        if remainder >= divisor:
            remainder -= divisor
            quotient |= 1
    return quotient, remainder
