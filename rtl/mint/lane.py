"""How one record is taken out of a ring of two beats."""

from typing import Any

from amaranth.hdl import Cat, Const, Mux, Value
from amaranth.lib import data

from ..lib.onehot import onehot_select

__all__ = ["Lane", "PackLane", "lanes_of"]


class Lane:
    """A barrel shifter in levels, from a ring of two beats to the record at a position of it.

    The ring is seen as words as wide as the widest record, rounded up to a power of two. A record lies in two
    neighbouring words, one of which has an even number: each of the two is chosen by one-hot bits (level 0), then the pair is
    rotated by halves, quarters and so on (levels from ``word_levels``), each of which keeps only the bits that the rest needs.

    Parameters
    ----------
    beat_bits : int
    width : int
        Of the widest record.

    Attributes
    ----------
    levels : int
        Numbers of levels go from 0 to here; the same for all widths.
    """

    def __init__(self, *, beat_bits: int, width: int) -> None:
        self.beat_bits = beat_bits
        self.width = width
        self.word = 1 << (width - 1).bit_length()
        self.words = beat_bits // self.word  # with an even number, and as many with an odd one
        self.word_levels = (self.words - 1).bit_length()
        self.rotations = [self.word >> n for n in range(self.word.bit_length())]
        self.levels = self.word_levels + len(self.rotations)

    @property
    def select(self) -> data.StructLayout:
        """Which words, and how far their pair is rotated: what :meth:`at` finds."""
        choice = self.words if self.words > 1 else 0
        return data.StructLayout({"even": choice, "odd": choice, "shift": len(self.rotations)})

    def at(self, position: Value) -> list[Value]:
        """Values of the fields of ``select`` for a position in the ring."""
        shift = position[: len(self.rotations)]
        if self.words == 1:
            return [Const(0, 0), Const(0, 0), shift]
        odd = position[len(self.rotations) :]
        even = (odd + shift[-1])[: len(odd)]  # behind an odd word comes the next even one
        return [Cat(word == n for n in range(self.words)) for word in (even, odd)] + [shift]

    def words_of(self, ring: Value, select: Any) -> Value:
        """Level 0: the even word, and above it the odd one."""
        found = []
        for parity, choice in enumerate((select.even, select.odd)):
            inputs = [ring[(2 * n + parity) * self.word :][: self.word] for n in range(self.words)]
            found.append(onehot_select(choice, inputs) if self.words > 1 else inputs[0])
        return Cat(*found)

    def rotated(self, pair: Value, shift: Value, *, step: int) -> Value:
        """The pair rotated by ``rotations[step]`` if that bit of the shift is set, less the bits that nobody needs."""
        distance = self.rotations[step]
        kept = self.width + distance - 1
        rotated = Cat(pair, pair) if step == 0 else pair
        return Mux(shift[len(self.rotations) - 1 - step], rotated[distance:][:kept], rotated[:kept])


def lanes_of(*, beat_bits: int, lanes: int, width: int) -> list[Lane]:
    """The lanes of a step that has a record more than a beat holds, at most: record n is never wider than a beat over n."""
    return [Lane(beat_bits=beat_bits, width=min(width, beat_bits // n) if n else width) for n in range(lanes)]


class PackLane:
    """The inverse of :class:`Lane`: a barrel shifter from a record to a pair of words, and where these lie in two beats.

    Levels rotate the record by 1, 2, ... bits, at last by a whole word, so that one word of the pair has an even number.

    Parameters
    ----------
    beat_bits : int
    width : int
        Of the widest record.
    """

    def __init__(self, *, beat_bits: int, width: int) -> None:
        self.width = width
        self.word = 1 << (width - 1).bit_length()
        self.words = beat_bits // self.word  # with an even number, and as many with an odd one
        self.rotations = [1 << n for n in range(self.word.bit_length())]

    def width_after(self, levels: int) -> int:
        """Bits that may be set after so many levels."""
        return min(self.width + (1 << levels) - 1, 2 * self.word)

    def rotated(self, record: Value, shift: Value, *, level: int) -> Value:
        """The record turned by ``rotations[level]`` if bit 0 of what is left of the shift is set."""
        distance = self.rotations[level]
        width = self.width_after(level + 1)
        if distance < self.word:
            return Mux(shift[0], Cat(Const(0, distance), record), record)[:width]
        pair = Cat(record, Const(0, 2 * self.word))[: 2 * self.word]
        return Mux(shift[0], Cat(pair[self.word :], pair[: self.word]), pair)

    def choices(self, position: Value, active: Value) -> list[Value]:
        """One-hot: where the even word and the odd one go. None of the places if the lane is not active."""
        odd = position[len(self.rotations) :]
        even = odd + position[len(self.rotations) - 1] if len(odd) else position[:0]
        return [Cat(active & ((word == n) if self.words > 1 else 1) for n in range(self.words)) for word in (even, odd)]
