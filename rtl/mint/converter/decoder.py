"""Entries of a matrix in row-major order from its arrays in any format that a converter reads."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.check import check_integer, check_power_of_two
from ...lib.unit import Fault, Unit
from ...regs.converter_map import POINTER_BITS
from ..host.hosted_sum import HOST, host_member
from ..records import record_group
from .conversions import ALL, Conversions, check_conversions
from .entry_filter import EntryFilter
from .fields import FieldSplitter
from .place_scanner import PlaceScanner
from .position_maker import PositionMaker
from .row_expander import RowExpander
from .run_decoder import RunDecoder
from .settings import HAS_RECORDS, KEEPS_ZEROS, is_one_of, is_tensor, settings_layout, source_widths
from .streams import COORDINATE_BITS, POSITION_BITS, position_group, record_bits
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
    conversions : Conversions
        Those that it is built for: nothing else is.

    Members
    -------
    settings : In(settings_layout), unsorted : In(1), keyed : In(1), places : In(65)
        Constant while something is inside. ``unsorted``: entries come in any order. ``keyed``: of COO and CSR, as
        :class:`rtl.mint.converter.position_maker.PositionMaker`.
    records, pointers, beats : In(stream)
        As :class:`rtl.mint.converter.source_reader.SourceReader` gives them.
    run_host, place_host : Out(SumPort)
        Of the prefix sums that are built, where ``form`` is ``host``.
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
        self,
        *,
        beat_bits: int,
        lanes: int,
        value_bits: int,
        floating: bool,
        form: str,
        address_width: int,
        conversions: Conversions = ALL,
    ) -> None:
        self.beat_bits = check_power_of_two("Beat bits", beat_bits, 128, 1024)
        self.lanes = check_power_of_two("Lanes", lanes, 2, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        self.address_width = check_integer("Address width", address_width, 13, 64)
        check_conversions(conversions)
        self.conversions = conversions
        self.floating = bool(floating)
        self.form = form
        number = Out(64)
        super().__init__(
            {
                "settings": In(settings_layout(address_width)),
                "unsorted": In(1),
                "keyed": In(1),
                "places": In(POSITION_BITS + 1),
                "records": In(stream.Signature(record_group(lanes, record_bits(conversions.triples)))),
                "pointers": In(stream.Signature(record_group(lanes, POINTER_BITS))),
                "beats": In(stream.Signature(beat_bits)),
                "groups": Out(stream.Signature(position_group(lanes, value_bits, conversions.tensors))),
                **host_member(form if "rlc" in conversions.reads else "", "run_host"),
                **host_member(form if conversions.reads & {"dense", "zvc"} else "", "place_host"),
                **{f"{name}_error": Out(1) for name in FAULTS},
                **{f"{name}_number": number for name in FAULTS},
            }
        )

    def faults(self) -> Sequence[Fault]:
        return tuple(Fault(name, getattr(self, f"{name}_error"), getattr(self, f"{name}_number")) for name in FAULTS)

    def build(self, platform: Any) -> Module:
        m = Module()
        sizes: dict[str, Any] = {"lanes": self.lanes, "value_bits": self.value_bits}
        compares: dict[str, Any] = {**sizes, "floating": self.floating}
        source, reads = self.settings.formats.source, self.conversions.reads
        m.submodules.filter = filter_ = EntryFilter(**compares, tensors=self.conversions.tensors)
        m.d.comb += [
            filter_.unsorted.eq(self.unsorted),
            filter_.drop_zeros.eq(
                ~is_one_of(self.settings.formats.target, *KEEPS_ZEROS, among=self.conversions.writes)
            ),
        ]
        connect(m, filter_.groups, flipped(self.groups))
        found: dict[str, tuple[Value, Value]] = {
            "bad_coordinate": (filter_.outside, filter_.number),
            "bad_order": (filter_.disorder, filter_.number),
        }
        fields: Any = None
        if reads & {*HAS_RECORDS}:
            fields = self._fields(m, sizes)
        if reads & {"coo", "csr"}:
            found |= self._cells(m, sizes, fields, filter_)
        if "rlc" in reads:
            m.submodules.run_decoder = runs = RunDecoder(**compares, form=self.form)
            m.d.comb += [runs.run_bits.eq(self.settings.widths.source_run), runs.places.eq(self.places)]
            _join(m, is_one_of(source, "rlc", among=reads), fields, runs.pairs)
            _join(m, is_one_of(source, "rlc", among=reads), runs.placed, filter_.placed)
            found["bad_run"] = runs.error, runs.number
            if self.form == HOST:
                connect(m, runs.host, flipped(self.run_host))
        if reads & {"dense", "zvc"}:
            found |= self._places(m, compares, fields, filter_)
        for name, (error, number) in found.items():
            m.d.comb += [getattr(self, f"{name}_error").eq(error), getattr(self, f"{name}_number").eq(number)]
        return m

    def _fields(self, m: Module, sizes: dict[str, Any]) -> Any:
        """The stream of records, taken apart."""
        m.submodules.splitter = splitter = FieldSplitter(**sizes, tensors=self.conversions.triples)
        first, second, _ = source_widths(self.settings, self.conversions)
        connect(m, flipped(self.records), splitter.i)
        m.d.comb += splitter.first_bits.eq(first)
        if self.conversions.triples:
            m.d.comb += splitter.second_bits.eq(Mux(self._tensor, second, COORDINATE_BITS))
        return splitter.o

    def _cells(
        self, m: Module, sizes: dict[str, Any], fields: Any, filter_: EntryFilter
    ) -> dict[str, tuple[Value, Value]]:
        """COO and CSR. Errors by name."""
        source, reads = self.settings.formats.source, self.conversions.reads
        tensors = self.conversions.triples
        m.submodules.position_maker = maker = PositionMaker(
            **sizes, multiplies=self.conversions.multiplies, tensors=tensors
        )
        settings = self.settings
        m.d.comb += [maker.rows.eq(settings.rows), maker.columns.eq(settings.columns), maker.keyed.eq(self.keyed)]
        if tensors:
            m.d.comb += maker.outers.eq(1)
            with m.If(self._tensor):
                m.d.comb += [
                    maker.outers.eq(settings.rows),
                    maker.rows.eq(settings.columns),
                    maker.columns.eq(settings.depth),
                ]
        _join(m, is_one_of(source, "coo", "csr", among=reads), maker.o, filter_.placed)
        found: dict[str, tuple[Value, Value]] = {}
        if "csr" in reads:
            m.submodules.row_expander = expander = RowExpander(**sizes)
            connect(m, flipped(self.pointers), expander.pointers)
            _join(m, is_one_of(source, "csr", among=reads), fields, expander.entries)
            _join(m, is_one_of(source, "csr", among=reads), expander.cells, maker.i)
            found["bad_pointers"] = expander.error, expander.number
        if "coo" in reads:
            group = fields.payload
            with m.If(is_one_of(source, "coo", among=reads)):
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
                    if tensors:
                        with m.If(self._tensor):
                            m.d.comb += [
                                maker.i.payload.outers[n].eq(group.first[n]),
                                maker.i.payload.rows[n].eq(group.second[n]),
                                maker.i.payload.columns[n].eq(group.third[n]),
                            ]
        return found

    @property
    def _tensor(self) -> Value:
        return is_tensor(self.settings, self.conversions.writes)

    def _places(
        self, m: Module, compares: dict[str, Any], fields: Any, filter_: EntryFilter
    ) -> dict[str, tuple[Value, Value]]:
        """ZVC and dense. Errors by name."""
        source, reads = self.settings.formats.source, self.conversions.reads
        m.submodules.place_scanner = scanner = PlaceScanner(**compares, beat_bits=self.beat_bits, form=self.form)
        connect(m, flipped(self.beats), scanner.beats)
        if self.form == HOST:
            connect(m, scanner.host, flipped(self.place_host))
        m.d.comb += [scanner.places.eq(self.places), scanner.dense.eq(is_one_of(source, "dense", among=reads))]
        ways = {"dense": scanner.found}
        found: dict[str, tuple[Value, Value]] = {}
        if "zvc" in reads:
            is_zvc = is_one_of(source, "zvc", among=reads)
            m.submodules.value_matcher = matcher = ValueMatcher(**compares)
            _join(m, is_zvc, fields, matcher.values)
            _join(m, is_zvc, scanner.found, matcher.found)
            ways["zvc"] = matcher.placed
            found["bad_mask"] = matcher.mismatch | (scanner.excess & is_zvc), matcher.number
            found["bad_value"] = matcher.zero, matcher.number
        taken = filter_.placed
        for name, given in ways.items():
            if name in reads:
                with m.If(is_one_of(source, name, among=reads)):
                    m.d.comb += [
                        taken.valid.eq(given.valid),
                        given.ready.eq(taken.ready),
                        taken.payload.present.eq(_used(given.payload.count, self.lanes)),
                        taken.payload.positions.eq(given.payload.positions),
                        taken.payload.values.eq(given.payload.values),
                        taken.payload.last.eq(given.payload.last),
                    ]
        return found


def _join(m: Module, chosen: Value, given: Any, taken: Any) -> None:
    """One stream flows into the other where it is chosen. What only one of them has is left out, or 0."""
    common = [name for name in given.payload.shape().members if name in taken.payload.shape().members]
    with m.If(chosen):
        m.d.comb += [
            taken.valid.eq(given.valid),
            *(taken.payload[name].eq(given.payload[name]) for name in common),
            given.ready.eq(taken.ready),
        ]


FAULTS = ("bad_coordinate", "bad_order", "bad_pointers", "bad_run", "bad_mask", "bad_value")


def _used(count: Value, lanes: int) -> Value:
    """The lanes below ``count``."""
    return Cat(count > n for n in range(lanes))
