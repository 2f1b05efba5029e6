"""An operand on its way in out of another format: the front of a converter, once a pass over the operand's rows."""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..arith.arithmetic import value_bits
from ..lib.check import check_integer, check_power_of_two
from ..lib.signals import signals
from ..lib.unit import Fault, ReadClient, Unit
from ..mint.converter.cell_finder import CellFinder
from ..mint.converter.control import ConverterControl
from ..mint.converter.conversions import WITH_POSITIONS, Conversions
from ..mint.converter.decoder import Decoder
from ..mint.converter.settings import ERROR_CODES, is_one_of, settings_layout
from ..mint.converter.source_reader import SourceReader
from ..mint.prefix_sum import FORMS
from ..regs.converter_map import REGISTERS as SETTINGS
from ..regs.map import CONVERSION, ERRORS, REGISTERS
from ..regs.source_formats import CONVERTED
from ..types import COORDINATE_WIDTH, read_request

__all__ = ["ConvertedOperand", "read_clients"]

#: What rows are made of as they are read. CSR needs no conversion; the entries of CSC are in another order.
CONVERSIONS = Conversions(tuple((source, "csr") for source in CONVERTED))
#: Errors of the decoder, and what the accelerator calls them where that is another name.
FAULTS = {name: name for name in ("bad_setting", "bad_mask", "bad_run", "bad_value")} | {
    "bad_coordinate": "bad_entry",
    "bad_order": "bad_entry_order",
}
BAD_MODE = next(error.code for error in ERRORS if error.name == "bad_mode")
SETTING_OFFSETS = {register.key: register.offset for register in SETTINGS}
OFFSETS = {register.name: register.offset for register in REGISTERS}
#: Bits of the register of modes.
MODES_WIDTH = sum(field.width for register in REGISTERS if register.name == "MODES" for field in register.fields)


def read_clients(tensor: str) -> tuple[ReadClient, ...]:
    """Ports of the memory engine: records and frame."""
    return tuple(
        ReadClient(f"{tensor}_{part}", 128, f"read_{tensor}_data", beats=True) for part in ("records", "frame")
    )


class ConvertedOperand(Unit):
    """What A and B have in common that are converted on their way in::

        source_reader --> decoder --> cell_finder --> shaper
              ^                                         ^
        converter_control (a pass)                    tile

    A tile begins another pass where it does not lie behind the tile before it.

    Parameters
    ----------
    beat_bits : int
        Bits of a beat, power of two from 128 to 1024.
    address_width : int
        Bits of a byte address.
    value : str
        Value type, one of ``arith.VALUES``.
    form : str
        Network of the prefix sums, one of :data:`rtl.mint.prefix_sum.FORMS`.
    group : int
        Entries that the decoder gives in a cycle at most, power of two from 2 to 16.
    members : Mapping
        Those of the operand.

    Members
    -------
    enable : In(1), allowed : In(1), modes : In(MODES_WIDTH)
        The operand is converted; the scheme reads it in this way; what the error says where it does not. Constant during a run.
    settings : In(settings_layout)
        As a converter has them: those of the source, CSR as the target. Constant during a run.
    read_request[2], read_data[2] : streams
        Client ports of the memory engine, in beats: records and frame.
    busy : Out(1)
        Something is to be handed out or read.
    stalled : Out(1)
        An entry could be taken, and the conversion has none.
    error : Out(8), detail : Out(64)
        What is wrong with the scheme, or the source, as :class:`rtl.mint.converter.control.ConverterControl` tells it, but for
        offsets, which are those of the accelerator. 0 where nothing is.

    Timing
    ------
    Five cycles from a tile to the requests of its pass.
    """

    #: The operand, "a" or "b".
    TENSOR: str

    def __init__(
        self, *, beat_bits: int, address_width: int, value: str, form: str, group: int, members: Mapping[str, Any]
    ) -> None:
        self.beat_bits = check_power_of_two("Beat bits", beat_bits, 128, 1024)
        self.address_width = check_integer("Address width", address_width, 13, 64)
        self.group = check_power_of_two("Entries of a group", group, 2, 16)
        if form not in FORMS:
            raise ValueError(f"Prefix sum must be one of {', '.join(FORMS)}, not {form!r}")
        self.value = value
        self.value_bits = value_bits(value)
        self.form = form
        super().__init__(
            {
                "enable": In(1),
                "allowed": In(1),
                "modes": In(MODES_WIDTH),
                "settings": In(settings_layout(address_width)),
                **members,
                "read_request": Out(stream.Signature(read_request(address_width))).array(len(self.READERS)),
                "read_data": In(stream.Signature(beat_bits)).array(len(self.READERS)),
                "busy": Out(1),
                "stalled": Out(1),
                "error": Out(8),
                "detail": Out(64),
            }
        )

    def faults(self) -> Sequence[Fault]:
        codes = {called: ERROR_CODES[name] for name, called in FAULTS.items()} | {"bad_mode": BAD_MODE}
        return [Fault(name, self.error == code, self.detail) for name, code in codes.items()]

    def activity(self) -> Mapping[str, Value]:
        return {f"{self.TENSOR}_accessor": self.busy}

    def convert(self, m: Module, shaper: Any, faults: Sequence[Fault]) -> ConverterControl:
        """Everything before the shaper, which takes ``cells``. A pass leaves nothing in any of it.

        ``faults``: of what is done with the entries.
        """
        ends: dict[str, Any] = {"value_bits": self.value_bits, "address_width": self.address_width}
        ends |= {"beat_bits": self.beat_bits, "conversions": CONVERSIONS}
        m.submodules.control = control = ConverterControl(**ends, counters=2)
        m.submodules.source_reader = reader = SourceReader(**ends, lanes=self.group)
        floating = not self.value.startswith("int")
        m.submodules.decoder = decoder = Decoder(**ends, lanes=self.group, floating=floating, form=self.form)
        m.submodules.cell_finder = finder = CellFinder(lanes=self.group, value_bits=self.value_bits)
        m.domains.one_pass = one_pass = ClockDomain()
        m.d.comb += [
            one_pass.clk.eq(ClockSignal()),
            one_pass.rst.eq(ResetSignal(allow_reset_less=True) | control.following),
        ]
        for block in (reader, decoder, finder, shaper):
            block.domain = "one_pass"

        for name in ("records", "pointers", "beats"):
            connect(m, getattr(reader, name), getattr(decoder, name))
        connect(m, decoder.groups, finder.groups)
        connect(m, finder.cells, shaper.cells)
        for n in range(len(self.READERS)):
            connect(m, reader.read_request[n], flipped(self.read_request[n]))
            connect(m, flipped(self.read_data[n]), reader.read_data[n])
        conversion, count = (OFFSETS[name] for name in CONVERSION[self.TENSOR])
        setting = Mux(control.detail == SETTING_OFFSETS["count"], count, conversion)
        dividing = Signal()  # the divider waits for its divisor
        by_position = is_one_of(self.settings.formats.source, *WITH_POSITIONS, among=CONVERSIONS.reads)
        with m.If(finder.columns.ready):
            m.d.sync += dividing.eq(0)
        with m.If(control.launch):
            m.d.sync += dividing.eq(by_position)
        m.d.comb += [
            *(block.settings.eq(self.settings) for block in (control, reader, decoder)),
            control.reading.eq(self.settings),
            reader.launch.eq(control.launch),
            *(getattr(reader, name).eq(getattr(control, name)) for name in ("record_beats", "frame_beats")),
            decoder.places.eq(control.places),
            decoder.keyed.eq(1),
            finder.passes.eq(~by_position),
            finder.columns.valid.eq(dividing),
            finder.columns.payload.eq(self.settings.columns),
            self.stalled.eq(shaper.starved),
            self.error.eq(Mux(control.done, control.error, 0)),
            self.detail.eq(Mux(control.error == ERROR_CODES["bad_setting"], setting, control.detail)),
        ]
        with m.If(self.enable & ~self.allowed):
            m.d.comb += [self.error.eq(BAD_MODE), self.detail.eq(self.modes)]
        for fault in reversed([*faults, *decoder.faults()]):
            with m.If(fault.found):
                m.d.comb += [
                    control.fault.eq(1),
                    control.fault_code.eq(ERROR_CODES[fault.name]),
                    control.fault_detail.eq(fault.detail),
                ]
        return control

    def begin_passes(
        self, m: Module, control: ConverterControl, shaper: Any, comes: Value, begin: Value, reads: Value
    ) -> tuple[Value, Value]:
        """Begins a pass with the first tile that ``reads``, and with each that does not lie behind the one before it.

        ``comes``, ``begin``: a tile is at the port, and its first row. The tile goes to the shaper once its own pass has begun.
        Returns whether the pass before must end first, and whether something of the present one has not left.
        """
        begun = Signal()  # some pass has
        last_begin = Signal(COORDINATE_WIDTH)  # where its latest tile does
        fresh = Signal()  # the pass of the tile at the port has begun
        another, ends, unread = signals("another ends unread")
        m.d.comb += [
            another.eq(reads & ~fresh & (~begun | (begin <= last_begin))),
            ends.eq(comes & another & begun),
            control.start.eq(comes & another & ~begun),
            # Its last group has come, so that all of it has been read; its last rows, which may be empty, have left.
            control.written.eq(ends & shaper.over & shaper.idle),
            shaper.tile.valid.eq(comes & ~another),
            shaper.tile.payload.begin.eq(begin),
            unread.eq(begun & ~shaper.over),
        ]
        with m.If(control.start | control.written):
            m.d.sync += [begun.eq(1), fresh.eq(1)]
        with m.If(shaper.tile.valid & shaper.tile.ready):
            m.d.sync += fresh.eq(0)
            with m.If(reads):
                m.d.sync += last_begin.eq(begin)
        return ends, unread
