"""Entries of a matrix in row-major order from its arrays in any format that a converter reads."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.check import check_integer, check_power_of_two
from ...lib.unit import Fault, Unit
from ...regs.converter_map import POINTER_BITS
from ..records import record_group
from .entry_filter import EntryFilter
from .fields import FieldSplitter
from .place_scanner import PlaceScanner
from .position_maker import PositionMaker
from .row_expander import RowExpander
from .run_decoder import RunDecoder
from .settings import KEEPS_ZEROS, is_one_of, record_widths, settings_layout
from .streams import ENTRY_BITS, POSITION_BITS, position_group
from .value_matcher import ValueMatcher

__all__ = ["Decoder"]


class Decoder(Unit):
    """One stream of entries by position, whatever the format; where stored zeros have no place in the target they are dropped::

        records --> splitter --+------------> rows, columns of COO --+
                               +--> row_expander (CSR) --------------+--> position_maker --+
                               +--> run_decoder (RLC) -----------------------------------+
                               +--> value_matcher (ZVC) <--- place_scanner <--- beats    +--> filter --> groups
                                                                  +---------- (dense) ---+

    Parameters
    ----------
    beat_bits : int
        Bits of a beat, power of two from 128 to 1024.
    lanes : int
        Entries a cycle, power of two from 2 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.
    floating : bool
        The sign bit does not count where a value is compared with zero.
    form : str
        Network of the prefix sums.

    Members
    -------
    settings : In(settings_layout), unsorted : In(1), places : In(65)
        Constant while something is inside. ``unsorted``: entries come in any order.
    records, pointers, beats : In(stream)
        As :class:`rtl.mint.converter.source_reader.SourceReader` gives them.
    groups : Out(stream(position_group))
        Entries with positions inside the matrix, which rise unless ``unsorted``. A group may be empty.

    Errors
    ------
    ``faults``: what the blocks inside find.

    Timing
    ------
    That of its blocks, a vector a cycle.
    """

    def __init__(
        self, *, beat_bits: int, lanes: int, value_bits: int, floating: bool, form: str, address_width: int
    ) -> None:
        check_power_of_two("Beat bits", beat_bits, 128, 1024)
        check_power_of_two("Lanes", lanes, 2, 16)
        check_power_of_two("Value bits", value_bits, 8, 32)
        check_integer("Address width", address_width, 13, 64)
        self.beat_bits = beat_bits
        self.lanes = lanes
        self.value_bits = value_bits
        self.floating = bool(floating)
        self.form = form
        self.address_width = address_width
        number = Out(64)
        super().__init__(
            {
                "settings": In(settings_layout(address_width)),
                "unsorted": In(1),
                "places": In(POSITION_BITS + 1),
                "records": In(stream.Signature(record_group(lanes, ENTRY_BITS))),
                "pointers": In(stream.Signature(record_group(lanes, POINTER_BITS))),
                "beats": In(stream.Signature(beat_bits)),
                "groups": Out(stream.Signature(position_group(lanes, value_bits))),
                **{f"{name}_error": Out(1) for name in FAULTS},
                **{f"{name}_number": number for name in FAULTS},
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {
            "b": self.beat_bits,
            "l": self.lanes,
            "v": self.value_bits,
            "f": int(self.floating),
            "p": self.form,
            "a": self.address_width,
        }

    def faults(self) -> Sequence[Fault]:
        return tuple(Fault(name, getattr(self, f"{name}_error"), getattr(self, f"{name}_number")) for name in FAULTS)

    def build(self, platform: Any) -> Module:
        m = Module()
        sizes: dict[str, Any] = {"lanes": self.lanes, "value_bits": self.value_bits}
        compares: dict[str, Any] = {**sizes, "floating": self.floating}
        m.submodules.splitter = splitter = FieldSplitter(**sizes)
        m.submodules.row_expander = expander = RowExpander(**sizes)
        m.submodules.position_maker = maker = PositionMaker(**sizes)
        m.submodules.run_decoder = runs = RunDecoder(**compares, form=self.form)
        m.submodules.place_scanner = scanner = PlaceScanner(**compares, beat_bits=self.beat_bits, form=self.form)
        m.submodules.value_matcher = matcher = ValueMatcher(**compares)
        m.submodules.filter = filter_ = EntryFilter(**compares)
        settings = self.settings
        source = settings.formats.source
        first, _ = record_widths(settings, source, settings.widths.source_run)
        connect(m, flipped(self.records), splitter.i)
        connect(m, flipped(self.pointers), expander.pointers)
        connect(m, flipped(self.beats), scanner.beats)
        connect(m, filter_.groups, flipped(self.groups))
        m.d.comb += [
            splitter.first_bits.eq(first),
            maker.rows.eq(settings.rows),
            maker.columns.eq(settings.columns),
            runs.run_bits.eq(settings.widths.source_run),
            runs.places.eq(self.places),
            scanner.places.eq(self.places),
            scanner.dense.eq(is_one_of(source, "dense")),
            filter_.unsorted.eq(self.unsorted),
            filter_.drop_zeros.eq(~is_one_of(settings.formats.target, *KEEPS_ZEROS)),
        ]
        self._join(m, splitter.o, expander, maker, runs, scanner, matcher, filter_)

        found = {
            "bad_coordinate": (filter_.outside, filter_.number),
            "bad_order": (filter_.disorder, filter_.number),
            "bad_pointers": (expander.error, expander.number),
            "bad_run": (runs.error, runs.number),
            "bad_mask": (matcher.mismatch | (scanner.excess & is_one_of(source, "zvc")), matcher.number),
            "bad_value": (matcher.zero, matcher.number),
        }
        for name, (error, number) in found.items():
            m.d.comb += [getattr(self, f"{name}_error").eq(error), getattr(self, f"{name}_number").eq(number)]
        return m

    def _join(
        self, m: Module, fields: Any, expander: Any, maker: Any, runs: Any, scanner: Any, matcher: Any, filter_: Any
    ) -> None:
        """Each format's way from fields and beats to the filter."""
        source = self.settings.formats.source
        group = fields.payload
        for name, sink in (("csr", expander.entries), ("rlc", runs.pairs), ("zvc", matcher.values)):
            m.d.comb += sink.payload.eq(group)
            with m.If(is_one_of(source, name)):
                m.d.comb += [sink.valid.eq(fields.valid), fields.ready.eq(sink.ready)]

        m.d.comb += [maker.i.payload.eq(expander.cells.payload), maker.i.valid.eq(expander.cells.valid)]
        m.d.comb += expander.cells.ready.eq(maker.i.ready)
        with m.If(is_one_of(source, "coo")):
            m.d.comb += [
                maker.i.valid.eq(fields.valid),
                fields.ready.eq(maker.i.ready),
                maker.i.payload.present.eq(_used(group.count, self.lanes)),
                maker.i.payload.last.eq(group.last),
            ]
            for n in range(self.lanes):
                m.d.comb += [
                    maker.i.payload.rows[n].eq(group.first[n]),
                    maker.i.payload.columns[n].eq(group.second[n]),
                    maker.i.payload.values[n].eq(group.values[n]),
                ]

        m.d.comb += [matcher.found.payload.eq(scanner.found.payload), scanner.found.ready.eq(matcher.found.ready)]
        taken = filter_.placed
        with m.If(is_one_of(source, "rlc")):
            m.d.comb += [
                taken.valid.eq(runs.placed.valid),
                runs.placed.ready.eq(taken.ready),
                taken.payload.eq(runs.placed.payload),
            ]
        for name, given in (("zvc", matcher.placed), ("dense", scanner.found)):
            with m.If(is_one_of(source, name)):
                m.d.comb += [
                    taken.valid.eq(given.valid),
                    given.ready.eq(taken.ready),
                    taken.payload.present.eq(_used(given.payload.count, self.lanes)),
                    taken.payload.positions.eq(given.payload.positions),
                    taken.payload.values.eq(given.payload.values),
                    taken.payload.last.eq(given.payload.last),
                ]
        m.d.comb += matcher.found.valid.eq(scanner.found.valid & is_one_of(source, "zvc"))
        with m.If(is_one_of(source, "coo", "csr")):
            m.d.comb += [
                taken.valid.eq(maker.o.valid),
                maker.o.ready.eq(taken.ready),
                taken.payload.eq(maker.o.payload),
            ]


FAULTS = ("bad_coordinate", "bad_order", "bad_pointers", "bad_run", "bad_mask", "bad_value")


def _used(count: Value, lanes: int) -> Value:
    """The lanes below ``count``."""
    return Cat(count > n for n in range(lanes))
