"""A on its way in out of another format: the front of a converter hands the accelerator its nonzeros, tile by tile."""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..arith.arithmetic import value_bits
from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import chosen
from ..lib.unit import Fault, ReadClient, Unit
from ..mint.converter.cell_finder import CellFinder
from ..mint.converter.control import ConverterControl
from ..mint.converter.conversions import WITH_POSITIONS, Conversions
from ..mint.converter.decoder import Decoder
from ..mint.converter.settings import ERROR_CODES, is_one_of, settings_layout
from ..mint.converter.source_reader import SourceReader
from ..mint.prefix_sum import FORMS
from ..regs.converter_map import REGISTERS as SETTINGS
from ..regs.map import ERRORS, REGISTERS
from ..regs.source_formats import CONVERTED
from ..types import COORDINATE_WIDTH, part_of_one, read_request, row_part, selection, tile
from .row_shaper import RowShaper

__all__ = ["ConvertedA"]

#: What the rows of A are made of as they are read. CSR needs no conversion; the entries of CSC are in another order.
CONVERSIONS = Conversions(tuple((source, "csr") for source in CONVERTED))
#: A nonzero a cycle is what leaves: as few lanes as a decoder has.
LANES = 2
#: Errors of the decoder, and what the accelerator calls them where that is another name.
FAULTS = {name: name for name in ("bad_setting", "bad_mask", "bad_run", "bad_value")} | {
    "bad_coordinate": "bad_entry",
    "bad_order": "bad_entry_order",
}


BAD_MODE = next(error.code for error in ERRORS if error.name == "bad_mode")
SETTING_OFFSETS = {register.key: register.offset for register in SETTINGS}
OFFSETS = {register.key: register.offset for register in REGISTERS}
#: Bits of the register of modes.
MODES_WIDTH = sum(field.width for register in REGISTERS if register.name == "MODES" for field in register.fields)


class ConvertedA(Unit):
    """Reads A in its format from begin to end, once a pass over its rows, and hands out one selection for each nonzero::

        source_reader --> decoder --> cell_finder --> row_shaper --> selections
              ^                                           ^             ^
        converter_control (a pass)                      tile --> accessor A

    It stands between accessor A and the tiles, and lets that do its work where A is not converted.

    A tile begins another pass where it does not lie behind the tile before it. A pass is read to its end with the last tile that
    has a nonzero.

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
    lanes : int
        Not 0: as many nonzeros of a row at most leave accessor A together, one at a time the conversion.

    Members
    -------
    enable : In(1), allowed : In(1), modes : In(MODES_WIDTH)
        A is converted; the scheme reads A in this way; what the error says where it does not. Constant during a run.
    settings : In(settings_layout)
        As a converter has them: those of the source, CSR as the target. Constant during a run.
    tile : In(stream(tile))
        Tiles that span their rows, in rising order, any number of times. One with ``carry`` gives empty rows.
    selections : Out(stream)
        Selections, or with ``lanes`` parts of rows. ``index`` is the column; the last one of each row has ``last`` set.
    fetched_tile : Out(stream(tile)), fetched : In(stream)
        Accessor A's, in use without ``enable``.
    read_request[2], read_data[2] : streams
        Client ports of the memory engine, in beats: records and frame.
    busy : Out(1)
        Rows are to be handed out, or a pass has not come to its end or to a nonzero of a later tile.
    starved : Out(1)
        A selection could be taken, and the conversion has none.
    error : Out(8), detail : Out(64)
        What is wrong with the scheme, or the source, as :class:`rtl.mint.converter.control.ConverterControl` tells it, but for
        offsets, which are those of the accelerator; 0 where nothing is.

    Timing
    ------
    One selection a cycle, where the decoder has so many. Five cycles from a tile to the requests of its pass.
    """

    READERS = (
        ReadClient("a_records", 128, "read_a_data", beats=True),
        ReadClient("a_frame", 128, "read_a_data", beats=True),
    )

    def __init__(self, *, beat_bits: int, address_width: int, value: str, form: str, lanes: int = 0) -> None:
        check_power_of_two("Beat bits", beat_bits, 128, 1024)
        check_integer("Address width", address_width, 13, 64)
        check_integer("Lanes", lanes, 0, 64)
        if form not in FORMS:
            raise ValueError(f"Prefix sum must be one of {', '.join(FORMS)}, not {form!r}")
        self.beat_bits = beat_bits
        self.address_width = address_width
        self.value = value
        self.value_bits = value_bits(value)
        self.form = form
        self.lanes = lanes
        handed = stream.Signature(row_part(lanes) if lanes else selection())
        super().__init__(
            {
                "enable": In(1),
                "allowed": In(1),
                "modes": In(MODES_WIDTH),
                "settings": In(settings_layout(address_width)),
                "tile": In(stream.Signature(tile())),
                "selections": Out(handed),
                "fetched_tile": Out(stream.Signature(tile())),
                "fetched": In(handed),
                "read_request": Out(stream.Signature(read_request(address_width))).array(len(self.READERS)),
                "read_data": In(stream.Signature(beat_bits)).array(len(self.READERS)),
                "busy": Out(1),
                "starved": Out(1),
                "error": Out(8),
                "detail": Out(64),
            }
        )

    def parameters(self) -> dict[str, Any]:
        sizes = {"b": self.beat_bits, "a": self.address_width, "v": self.value, "p": self.form}
        return sizes | ({"l": self.lanes} if self.lanes else {})

    def events(self) -> Mapping[str, Value]:
        return {"stall_conversion": self.starved}

    def faults(self) -> Sequence[Fault]:
        codes = {called: ERROR_CODES[name] for name, called in FAULTS.items()} | {"bad_mode": BAD_MODE}
        return [Fault(name, self.error == code, self.detail) for name, code in codes.items()]

    def activity(self) -> Mapping[str, Value]:
        return {"a_accessor": self.busy}

    def build(self, platform: Any) -> Module:
        m = Module()
        ends: dict[str, Any] = {"value_bits": self.value_bits, "address_width": self.address_width}
        ends |= {"beat_bits": self.beat_bits, "conversions": CONVERSIONS}
        sizes = {"lanes": LANES, "value_bits": self.value_bits}
        m.submodules.control = control = ConverterControl(**ends, counters=2)
        m.submodules.source_reader = reader = SourceReader(**ends, lanes=LANES)
        floating = not self.value.startswith("int")
        m.submodules.decoder = decoder = Decoder(**ends, lanes=LANES, floating=floating, form=self.form)
        m.submodules.cell_finder = finder = CellFinder(**sizes)
        m.submodules.row_shaper = shaper = RowShaper(lanes=LANES, value=self.value)
        # A pass leaves nothing in what the next one uses.
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
        shaped = self.selections.signature.create(path=("shaped",))
        one = shaper.selections.payload
        m.d.comb += [
            shaped.valid.eq(shaper.selections.valid),
            shaper.selections.ready.eq(shaped.ready),
            shaped.payload.eq(part_of_one(self.lanes, one) if self.lanes else one),
            *chosen(self.enable, shaped, self.fetched, self.selections),
        ]
        for n in range(len(self.READERS)):
            connect(m, reader.read_request[n], flipped(self.read_request[n]))
            connect(m, flipped(self.read_data[n]), reader.read_data[n])
        setting = Mux(control.detail == SETTING_OFFSETS["count"], OFFSETS["count"], OFFSETS["conversion"])
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
            self.starved.eq(shaper.starved),
            self.error.eq(Mux(control.done, control.error, 0)),
            self.detail.eq(Mux(control.error == ERROR_CODES["bad_setting"], setting, control.detail)),
        ]
        with m.If(self.enable & ~self.allowed):
            m.d.comb += [self.error.eq(BAD_MODE), self.detail.eq(self.modes)]
        left_over = self._passes(m, control, shaper)
        # An entry that no tile has taken is found by the next tile, or by the next pass.
        stray = Fault("bad_coordinate", shaper.stray | left_over, shaper.number)
        for fault in reversed([stray, *decoder.faults()]):
            with m.If(fault.found):
                m.d.comb += [
                    control.fault.eq(1),
                    control.fault_code.eq(ERROR_CODES[fault.name]),
                    control.fault_detail.eq(fault.detail),
                ]
        return m

    def _passes(self, m: Module, control: ConverterControl, shaper: RowShaper) -> Value:
        """A tile goes to the shaper, once its pass has begun. Whether entries are left that it has no use for."""
        want, fetched = self.tile.payload, self.fetched_tile
        begun, last_begin = Signal(), Signal(COORDINATE_WIDTH)  # some pass has; where its latest tile does
        fresh = Signal()  # the pass of the tile at the port has begun
        another, comes = Signal(), Signal()
        m.d.comb += [
            comes.eq(self.tile.valid & self.enable),
            another.eq(~want.carry & ~fresh & (~begun | (want.begin_i <= last_begin))),
            control.start.eq(comes & another & ~begun),
            # Its last group has come, so that all of it has been read.
            control.written.eq(comes & another & begun & shaper.over),
            shaper.tile.valid.eq(comes & ~another),
            fetched.valid.eq(self.tile.valid & ~self.enable),
            fetched.payload.eq(want),
            self.tile.ready.eq(Mux(self.enable, shaper.tile.ready & ~another, fetched.ready)),
            shaper.tile.payload.begin.eq(want.begin_i),
            shaper.tile.payload.rows.eq(want.size_i),
            shaper.tile.payload.empty.eq(want.carry),
            self.busy.eq(~shaper.idle | (begun & ~shaper.waiting & ~shaper.over)),
        ]
        with m.If(control.start | control.written):
            m.d.sync += [begun.eq(1), fresh.eq(1)]
        with m.If(comes & self.tile.ready):
            m.d.sync += fresh.eq(0)
            with m.If(~want.carry):
                m.d.sync += last_begin.eq(want.begin_i)
        return comes & another & begun & shaper.idle & shaper.waiting
