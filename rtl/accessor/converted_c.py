"""C on its way out in another format: the back of a converter writes its rows as they leave the accelerator."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..arith.arithmetic import value_bits
from ..lib.check import check_integer, check_power_of_two
from ..lib.unit import Fault, Unit, WriteClient
from ..mint.converter.control import ConverterControl
from ..mint.converter.conversions import Conversions
from ..mint.converter.encoder import Encoder
from ..mint.converter.entry_filter import EntryFilter
from ..mint.converter.settings import ERROR_CODES, KEEPS_ZEROS, is_one_of, settings_layout
from ..mint.converter.target_writer import TargetWriter
from ..mint.prefix_sum import FORMS
from ..regs.map import CONVERSION, REGISTERS
from ..regs.source_formats import CONVERTED
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, fiber_word, write_beat, write_request
from .fiber_placer import FiberPlacer

__all__ = ["ConvertedC"]

#: What is made of rows as they leave. CSR needs no conversion; the entries of CSC are in another order.
CONVERSIONS = Conversions(tuple(("csr", target) for target in CONVERTED))
(REGISTER,) = (register.offset for register in REGISTERS if register.name == CONVERSION["c"][0])


class ConvertedC(Unit):
    """Writes C in its format, from its first row to its last::

        words --> fiber_placer --> entry_filter --> encoder --> target_writer

    Entries that the target keeps no zeros of are left out where they are 0.

    Parameters
    ----------
    lanes : int
        Nonzeros of a word, power of two from 2 to 16.
    beat_bits : int
        Bits of a beat, power of two from 128 to 1024.
    address_width : int
        Bits of a byte address.
    burst_beats : int
        Beats of the longest burst, power of two.
    value : str
        Value type, one of ``arith.VALUES``.
    form : str
        Network of the prefix sums, one of :data:`rtl.mint.prefix_sum.FORMS`.

    Members
    -------
    settings : In(settings_layout)
        As a converter has them: those of the target, CSR as the source. Constant during a run.
    words : In(stream(fiber_word))
        C's rows in order. The first word begins the conversion.
    flush : In(1)
        Rows that have come go to memory, but for a beat that is not full.
    write_request[2], write_data[2] : streams
        Client ports of the memory engine, in beats: records and frame.
    written : In(2)
        The memory engine has finished what each was given.
    idle : Out(1)
        No row has come, more of them are to come, or everything is in memory.
    records : Out(POSITION_WIDTH)
        Records so far.
    stalled : Out(1)
        A word waits.
    error : Out(8)
        What is wrong with the settings, as :class:`rtl.mint.converter.control.ConverterControl` tells it; 0 where nothing is.
    overflow : Out(1), needed : Out(64)
        The records have no room; bytes that they need at least.

    Timing
    ------
    Five cycles from the first word to that in which it is taken; a word a cycle, or a beat where that is slower.
    """

    TENSOR = "c"
    WRITERS = (
        WriteClient("c_records", "write_c_data", beats=True),
        WriteClient("c_frame", "write_c_data", beats=True),
    )

    def __init__(
        self, *, lanes: int, beat_bits: int, address_width: int, burst_beats: int, value: str, form: str
    ) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 16)
        self.beat_bits = check_power_of_two("Beat bits", beat_bits, 128, 1024)
        self.address_width = check_integer("Address width", address_width, 13, 64)
        self.burst_beats = check_power_of_two("Burst beats", burst_beats, 1, 256)
        if form not in FORMS:
            raise ValueError(f"Prefix sum must be one of {', '.join(FORMS)}, not {form!r}")
        self.value = value
        self.value_bits = value_bits(value)
        self.form = form
        ports = len(self.WRITERS)
        super().__init__(
            {
                "settings": In(settings_layout(address_width)),
                "words": In(stream.Signature(fiber_word(lanes))),
                "flush": In(1),
                "write_request": Out(stream.Signature(write_request(address_width))).array(ports),
                "write_data": Out(stream.Signature(write_beat(beat_bits))).array(ports),
                "written": In(ports),
                "idle": Out(1),
                "records": Out(POSITION_WIDTH),
                "stalled": Out(1),
                "error": Out(8),
                "overflow": Out(1),
                "needed": Out(64),
            }
        )

    def faults(self) -> Sequence[Fault]:
        return (
            Fault("bad_setting", self.error == ERROR_CODES["bad_setting"], REGISTER),
            Fault("c_elements_overflow", self.overflow, self.needed),
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        sizes: dict[str, Any] = {"lanes": self.lanes, "value_bits": self.value_bits}
        bus: dict[str, Any] = {"beat_bits": self.beat_bits, "address_width": self.address_width}
        bus |= {"conversions": CONVERSIONS}
        m.submodules.control = control = ConverterControl(value_bits=self.value_bits, counters=2, **bus)
        m.submodules.fiber_placer = placer = FiberPlacer(lanes=self.lanes, value=self.value)
        floating = not self.value.startswith("int")
        m.submodules.entry_filter = entries = EntryFilter(floating=floating, **sizes)
        m.submodules.encoder = encoder = Encoder(form=self.form, **sizes, **bus)
        m.submodules.target_writer = writer = TargetWriter(burst_beats=self.burst_beats, **sizes, **bus)
        connect(m, placer.placed, entries.placed)
        connect(m, encoder.pointers, writer.pointers)
        connect(m, encoder.beats, writer.beats)
        connect(m, encoder.records, writer.records)
        for n in range(len(self.WRITERS)):
            connect(m, writer.write_request[n], flipped(self.write_request[n]))
            connect(m, writer.write_data[n], flipped(self.write_data[n]))
        launched = Signal()  # the settings are right
        with m.If(control.launch):
            m.d.sync += launched.eq(1)
        target = self.settings.formats.target
        groups, cells = entries.groups, encoder.cells
        m.d.comb += [
            *(block.settings.eq(self.settings) for block in (control, encoder, writer)),
            control.reading.eq(self.settings),
            control.start.eq(self.words.valid),  # begins once, until the reset
            control.encodes.eq(1),
            control.written.eq(writer.done & self.written.all()),
            writer.launch.eq(control.launch),
            writer.flush.eq(self.flush),
            encoder.places.eq(control.places),
            placer.rows.eq(self.settings.rows),
            placer.columns.eq(self.settings.columns),
            placer.keyed.eq(is_one_of(target, "coo", among=CONVERSIONS.writes)),
            placer.words.payload.eq(self.words.payload),
            placer.words.valid.eq(self.words.valid & launched),
            self.words.ready.eq(placer.words.ready & launched),
            entries.unsorted.eq(1),  # rows come in order, and their nonzeros
            entries.drop_zeros.eq(~is_one_of(target, *KEEPS_ZEROS, among=CONVERSIONS.writes)),
            cells.valid.eq(groups.valid),
            groups.ready.eq(cells.ready),
            *(cells.payload[name].eq(groups.payload[name]) for name in groups.payload.shape().members),
            self.idle.eq(~placer.complete | control.done),
            self.stalled.eq(self.words.valid & ~self.words.ready),
            self.error.eq(Mux(control.done, control.error, 0)),
            self.overflow.eq(writer.records_overflow),
            self.needed.eq(writer.records_bytes),
        ]
        for n in range(self.lanes):
            # As placer and target agree on what a position is: for COO the row is above the column.
            position = groups.payload.positions[n]
            m.d.comb += [
                cells.payload.rows[n].eq(position[COORDINATE_WIDTH:]),
                cells.payload.columns[n].eq(position[:COORDINATE_WIDTH]),
            ]
        made = encoder.records
        with m.If(made.valid & made.ready):
            m.d.sync += self.records.eq(self.records + made.payload.count)
        return m
