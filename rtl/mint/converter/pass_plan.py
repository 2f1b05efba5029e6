"""The passes of a conversion, and what each of them reads and writes."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import enum
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...lib.signals import signals
from ...regs.converter_map import FORMATS, POINTER_BITS
from .bucket_bank import ENTRY_BYTES
from .conversions import ALL, Conversions, check_conversions
from .settings import changes_order, is_one_of, settings_layout
from .streams import COORDINATE_BITS, KEY_BITS

__all__ = ["PassPlan"]


class _Kind(enum.Enum, shape=2):
    ENCODE = 0  # entries go into the target
    COUNT = 1  # the first digit is counted
    SCATTER = 2  # entries go to a scratch region


class PassPlan(Block):
    """Splits a conversion into passes, each of which converts in one order of entries.

    A CSC matrix is the CSR matrix of its transpose, bit for bit: the other blocks meet no CSC, but rows and columns that have
    been exchanged. Where source and target differ in their order, entries are sorted on the way: a pass counts,
    ``digits.passes`` passes write a scratch region each, in turns, as COO in the order of the target, and the last pass reads
    that as its source. To those that write BSR it is a CSR matrix of blocks.

    Scratch regions are in the SRAM where all entries fit. Where that is known beforehand, the counting pass keeps the entries
    there, as COO in the order of the source: that is read once.

    Parameters
    ----------
    value_bits : int
        Bits of a value, 8, 16 or 32.
    address_width : int
        Bits of a byte address.
    sram_bytes : int
        Bytes of the SRAM, power of two; it has two regions.
    conversions : Conversions
        Those that it is built for: nothing else is.

    Members
    -------
    settings : In(settings_layout), entries : In(40), bytes : In(64)
        Registers, constant from ``start`` on; entries that the counting pass found and bytes of their records, constant from the
        second pass on.
    start : In(1), following : In(1)
        Pulses: the first pass is next; the pass after the present one.
    reading, writing : Out(settings_layout)
        What those blocks see that read a source, and those that write a target.
    counts, scatters, encodes : Out(1)
        Kind of the pass. ``unsorted``: its source is a scratch region that is not sorted by row.
    by_row, by_block : Out(1)
        Rows of the source are rows of the target, or of the matrix where that has blocks; entries are sorted by block.
    keeps : Out(1)
        A pass that counts and keeps the entries.
    from_sram, to_sram : Out(1)
        Records are read from the SRAM; they go to it.
    sorts_last : Out(1)
        A pass that scatters by the last digit.
    shift : Out(7), inner_bits, column_bits : Out(range(33))
        Bits of the key below the digit of this pass; of its parts (:class:`rtl.mint.converter.record_router.RecordRouter`).
    first_bits, second_bits : Out(range(33)), record_bytes : Out(range(13)), base : Out(address_width), space : Out(64)
        A record of a scratch region: new row, new column and value in whole bytes. The region of this pass; its bytes.
    scattered : Out(6)
        Passes that have written a scratch region.

    Timing
    ------
    One cycle from a pulse to its pass, two from settings to ``keeps``; everything else is combinational.
    """

    latency = 1

    def __init__(self, *, value_bits: int, address_width: int, sram_bytes: int, conversions: Conversions = ALL) -> None:
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        self.address_width = check_integer("Address width", address_width, 13, 64)
        self.sram_bytes = check_power_of_two("SRAM bytes", sram_bytes, 64, 1 << 24)
        check_conversions(conversions)
        self.conversions = conversions
        self.region = sram_bytes // 2
        width = Out(range(COORDINATE_BITS + 1))
        flags = ("counts", "scatters", "encodes", "unsorted", "by_row", "by_block", "sorts_last", "keeps")
        flags += ("from_sram", "to_sram")
        super().__init__(
            {
                "settings": In(settings_layout(address_width)),
                "entries": In(POINTER_BITS),
                "bytes": In(64),
                "start": In(1),
                "following": In(1),
                "reading": Out(settings_layout(address_width)),
                "writing": Out(settings_layout(address_width)),
                **{name: Out(1) for name in flags},
                "shift": Out(KEY_BITS),
                "inner_bits": width,
                "column_bits": width,
                "first_bits": width,
                "second_bits": width,
                "record_bytes": Out(range(ENTRY_BYTES + 1)),
                "base": Out(address_width),
                "space": Out(64),
                "scattered": Out(6),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        settings = self.settings
        kind = Signal(_Kind)
        from_scratch, from_kept = signals("from_scratch from_kept")
        known, fits = signals("known fits")  # that entries fit into the SRAM: beforehand, after the counting
        built = {"source": self.conversions.sources, "target": self.conversions.targets}
        by_columns = {side: is_one_of(settings.formats[side], "csc", among=built[side]) for side in built}
        differs = by_columns["source"] ^ by_columns["target"]
        if not self.conversions.transposes:
            m.d.comb += [self.encodes.eq(1), self.by_row.eq(~differs)]
            self._views(m, Const(0), Const(0), by_columns, differs)
            return m
        m.d.comb += [
            self.counts.eq(kind == _Kind.COUNT),
            self.scatters.eq(kind == _Kind.SCATTER),
            self.encodes.eq(kind == _Kind.ENCODE),
            self.keeps.eq(self.counts & known),
            self.unsorted.eq((self.scatters | self.by_block) & from_scratch),
            self.by_row.eq(from_scratch | ~differs),
            self.by_block.eq(is_one_of(settings.formats.target, "bsr", among=built["target"])),
            self.inner_bits.eq(Mux(by_columns["source"], settings.grid_widths.inner, 0)),
            self.column_bits.eq(settings.grid_widths.column),
            self.sorts_last.eq(self.scatters & (self.scattered + 1 == settings.digits.passes)),
            from_kept.eq(self.scatters & ~from_scratch & known),
            self.from_sram.eq(from_kept | (from_scratch & fits)),
            self.to_sram.eq(self.keeps | (self.scatters & fits)),
            self.space.eq(Mux(settings.scratch_bytes < self.region, self.region, settings.scratch_bytes)),
        ]
        counted = settings.count * self.record_bytes
        m.d.sync += known.eq((counted <= self.region) & ~is_one_of(settings.formats.source, "dense"))
        with m.If(self.start):
            m.d.sync += kind.eq(Mux(changes_order(settings, self.conversions), _Kind.COUNT, _Kind.ENCODE))
        with m.Elif(self.following):
            m.d.sync += kind.eq(Mux(self.sorts_last, _Kind.ENCODE, _Kind.SCATTER))
            with m.If(self.counts):
                m.d.sync += fits.eq(self.bytes <= self.region)
            with m.Else():
                m.d.sync += [
                    from_scratch.eq(1),
                    self.scattered.eq(self.scattered + 1),
                    self.shift.eq(self.shift + settings.digits.bits),
                ]
        self._record(m, by_columns["target"])
        self._views(m, from_scratch, from_kept, by_columns, differs)
        return m

    def _record(self, m: Module, by_columns: Value) -> None:
        """Widths of a record of a scratch region: what its coordinates lack to a whole byte goes to the second, or to both."""
        widths = self.settings.widths
        row = Mux(by_columns, widths.column, widths.row)
        both = Signal(range(2 * COORDINATE_BITS + 8))
        second = Signal(range(2 * COORDINATE_BITS + 8))
        m.d.comb += [
            both.eq(Cat(Const(0, 3), (widths.row + widths.column + 7)[3:7])),
            second.eq(both - row),
            self.second_bits.eq(Mux(second > COORDINATE_BITS, COORDINATE_BITS, second)),
            self.first_bits.eq(both - self.second_bits),
            self.record_bytes.eq((both >> 3) + self.value_bits // 8),
        ]

    def _views(
        self, m: Module, from_scratch: Value, from_kept: Value, by_columns: dict[str, Value], differs: Value
    ) -> None:
        settings = self.settings
        odd = self.scattered[0]  # the second region is written, the first one is read
        read_address = Mux(self.from_sram, Mux(odd, 0, self.region), Mux(odd, settings.scratch_0, settings.scratch_1))
        m.d.comb += [
            self.base.eq(Mux(self.to_sram, Mux(odd, self.region, 0), Mux(odd, settings.scratch_1, settings.scratch_0))),
            self.reading.eq(settings),
            self.writing.eq(settings),
        ]
        flips = {
            "reading": Mux(from_scratch, by_columns["target"], by_columns["source"]),
            "writing": by_columns["target"],
        }
        for name, flipped in flips.items():
            view = getattr(self, name)
            with m.If(flipped):
                m.d.comb += [
                    view.rows.eq(settings.columns),
                    view.columns.eq(settings.rows),
                    view.widths.row.eq(settings.widths.column),
                    view.widths.column.eq(settings.widths.row),
                ]
            for side, is_csc in by_columns.items():
                with m.If(is_csc):
                    m.d.comb += view.formats[side].eq(FORMATS.index("csr"))
        with m.If(self.by_block & self.encodes):
            m.d.comb += [
                self.writing.rows.eq(settings.grid_rows),
                self.writing.widths.column.eq(settings.grid_widths.column),
            ]
        # Of row and column of the source.
        kept_bits = (
            Mux(differs, self.second_bits, self.first_bits),
            Mux(differs, self.first_bits, self.second_bits),
        )
        with m.If(from_scratch | from_kept):
            m.d.comb += [
                self.reading.formats.source.eq(FORMATS.index("coo")),
                self.reading.widths.row.eq(Mux(from_kept, kept_bits[0], self.first_bits)),
                self.reading.widths.column.eq(Mux(from_kept, kept_bits[1], self.second_bits)),
                self.reading.source_records.eq(read_address),
                self.reading.count.eq(self.entries),
            ]
        with m.If(self.keeps):
            m.d.comb += [
                self.writing.formats.target.eq(FORMATS.index("coo")),
                self.writing.widths.row.eq(kept_bits[0]),
                self.writing.widths.column.eq(kept_bits[1]),
                self.writing.target_records.eq(self.region),
                self.writing.target_records_bytes.eq(self.region),
            ]
