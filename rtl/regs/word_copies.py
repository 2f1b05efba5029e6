"""Copies of what software wrote, for software to read."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..lib.block import Block, digest
from ..lib.onehot import COLUMN_BITS, indexed_select
from ..lib.sram import SramBank
from .register import ADDRESS_BITS

__all__ = ["WordCopies"]

COLUMNS = 1 << COLUMN_BITS


class WordCopies(Block):
    """Keeps a copy of each configuration word in a memory, so that a read chooses among no registers.

    Parameters
    ----------
    widths : Mapping[int, int]
        Bits that each word keeps, from bit 0 on, by the word's number: its byte offset divided by four.

    Members
    -------
    write : In(1), written : In(10), data : In(32), strobe : In(4)
        The word with the number ``written`` is written, one of those that there are. All but ``write`` stay for one more cycle.
    read : In(10)
        Number of a word.
    value : Out(32), known : Out(1)
        One cycle later: the word, with writes before that cycle, and whether there is one. Zero after a reset, and where there
        is none.

    Timing
    ------
    One cycle; one read and one write a cycle.
    """

    latency = 1

    def __init__(self, *, widths: Mapping[int, int]) -> None:
        self.widths = dict(widths)
        number = ADDRESS_BITS - 2
        super().__init__(
            {
                "write": In(1),
                "written": In(number),
                "data": In(32),
                "strobe": In(4),
                "read": In(number),
                "value": Out(32),
                "known": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"c": digest({str(word): width for word, width in self.widths.items()})}

    @property
    def place_bits(self) -> int:
        """Lowest bits of a word's number that tell all words apart."""
        return next(
            n for n in range(1, ADDRESS_BITS) if len({word % (1 << n) for word in self.widths}) == len(self.widths)
        )

    @property
    def places(self) -> list[int]:
        return [word % (1 << self.place_bits) for word in self.widths]

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.copies = copies = SramBank(depth=1 << self.place_bits, width=32, granularity=8)
        place = self.written[: self.place_bits]
        taken = Signal(32)  # bits that the write at hand sets
        bytes_written = Cat(self.strobe[n].replicate(8) for n in range(4))
        m.d.comb += taken.eq(self.data & bytes_written & self._kept(place))

        # Nothing clears the memory: the first write of a word sets all its bytes.
        filled = Signal(1 << self.place_bits)
        for n in self.places:
            with m.If(self.write & (place[:COLUMN_BITS] == n % COLUMNS) & (place[COLUMN_BITS:] == n // COLUMNS)):
                m.d.sync += filled[n].eq(1)
        later = indexed_select(place, filled)
        m.d.comb += [
            copies.read_enable.eq(1),
            copies.read_address.eq(self.read),
            copies.write_mask.eq(Mux(self.write, Mux(later, self.strobe, 0xF), 0)),
            copies.write_address.eq(place),
            copies.write_data.eq(taken),
        ]

        # What is written in the cycle of the read is not read from the memory.
        known = self._known()
        old, fresh = Signal(4), Signal(4)  # bytes of the memory, and of the write at hand
        meets = Mux(self.write & (self.read == self.written), self.strobe, 0)
        m.d.sync += [
            self.known.eq(known),
            old.eq(Mux(known & indexed_select(self.read[: self.place_bits], filled), ~meets, 0)),
            fresh.eq(meets),
        ]
        for n in range(4):
            part = slice(8 * n, 8 * n + 8)
            m.d.comb += self.value[part].eq(Mux(old[n], copies.read_data[part], 0) | Mux(fresh[n], taken[part], 0))
        return m

    def _known(self) -> Value:
        """The word that is read is one that there is."""
        rows: dict[int, int] = {}  # columns of each row
        for word in self.widths:
            rows[word // COLUMNS] = rows.get(word // COLUMNS, 0) | 1 << word % COLUMNS
        column, row = Cat(self.read[:COLUMN_BITS] == n for n in range(COLUMNS)), self.read[COLUMN_BITS:]
        return Cat((row == number) & (column & columns).any() for number, columns in rows.items()).any()

    def _kept(self, place: Value) -> Value:
        """Bits that the word at this place keeps."""
        short: dict[int, list[Value]] = {}
        for word, width in self.widths.items():
            short.setdefault(width, []).append(place == word % (1 << self.place_bits))
        hit = {width: Cat(hits).any() for width, hits in short.items()}
        return ~Cat(Cat(one for width, one in hit.items() if width <= bit).any() for bit in range(32))
