"""Checks the settings of a conversion, begins it, and knows when it has ended."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import enum
from amaranth.lib.wiring import In, Out

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...lib.unit import Fault
from ...regs.converter_map import BLOCK_BITS, FORMATS, POINTER_BITS, REGISTERS, SOURCES, TENSOR_FORMATS, TENSOR_SOURCES
from .conversions import ALL, WITH_POSITIONS, Conversions, check_conversions
from .settings import (
    ERROR_CODES,
    HAS_FRAME,
    HAS_POINTERS,
    HAS_RECORDS,
    changes_order,
    is_one_of,
    is_tensor,
    settings_layout,
    source_widths,
)
from .streams import COORDINATE_BITS, POSITION_BITS

__all__ = ["ConverterControl"]

OFFSETS = {register.key: register.offset for register in REGISTERS}


class _State(enum.Enum, shape=3):
    IDLE = 0
    MULTIPLY = 1
    SIZE = 2
    CHECK = 3
    BEGIN = 4
    RUN = 5
    DONE = 6
    EXTEND = 7


class ConverterControl(Block):
    """Four cycles from ``start`` to ``launch``, five with a tensor, in which sizes are computed and settings checked; then it
    waits for the end.

    Each pass of a conversion begins the same way.

    Parameters
    ----------
    beat_bits : int
        Bits of a beat, power of two from 128 to 1024.
    value_bits : int
        Bits of a value, 8, 16 or 32.
    address_width : int
        Bits of a byte address.
    counters : int
        Counters of the transposition, a power of two.
    conversions : Conversions
        All others are refused.

    Members
    -------
    start : In(1), settings : In(settings_layout), reading : In(settings_layout)
        Pulse; constant from then on. As :class:`rtl.mint.converter.pass_plan.PassPlan` gives it, from the cycle after ``start``
        or ``following`` on.
    launch : Out(1)
        Pulse: a pass begins. From then on:
    places : Out(65), record_beats : Out(address_width), frame_beats : Out(address_width), block_size : Out(25)
        Places of the matrix or tensor; beats of the source's regions; values of a block of BSR.
    written : In(1), encodes : In(1)
        All that the pass writes is in memory, which counts from two cycles after ``launch``; it is the last pass.
    following : Out(1)
        Pulse: the next pass is due, what the present one left in the blocks is forgotten.
    fault : In(1), fault_code : In(8), fault_detail : In(64)
        An error of another block ends the run.
    done : Out(1), error : Out(8), detail : Out(64)
        The run has ended, with this error or 0. They stay until the reset.

    Timing
    ------
    See above.
    """

    def __init__(
        self, *, beat_bits: int, value_bits: int, address_width: int, counters: int, conversions: Conversions = ALL
    ) -> None:
        self.beat_bits = check_power_of_two("Beat bits", beat_bits, 128, 1024)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        self.address_width = check_integer("Address width", address_width, 13, 64)
        self.counters = check_power_of_two("Counters", counters, 2, 1 << 16)
        check_conversions(conversions)
        self.conversions = conversions
        super().__init__(
            {
                "start": In(1),
                "settings": In(settings_layout(address_width)),
                "reading": In(settings_layout(address_width)),
                "launch": Out(1),
                "places": Out(POSITION_BITS + 1),
                "record_beats": Out(address_width),
                "frame_beats": Out(address_width),
                "block_size": Out(BLOCK_BITS + 1),
                "written": In(1),
                "encodes": In(1),
                "following": Out(1),
                "fault": In(1),
                "fault_code": In(8),
                "fault_detail": In(64),
                "done": Out(1),
                "error": Out(8),
                "detail": Out(64),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        state = Signal(_State)
        too_many = self._places(m)
        tensor = is_tensor(self.settings, self.conversions.targets)
        bad_parts = [*self._bad_blocks(m), *_bad_tensor(self.settings, self.conversions, too_many)]
        checks = self._checks(self._sizes(m), bad_parts)

        def end(code: Any, detail: Any) -> None:
            m.d.sync += [state.eq(_State.DONE), self.error.eq(code), self.detail.eq(detail)]

        m.d.comb += [self.launch.eq(state == _State.BEGIN), self.done.eq(state == _State.DONE)]
        with m.Switch(state):
            with m.Case(_State.IDLE):
                with m.If(self.start):
                    m.d.sync += state.eq(Mux(tensor, _State.EXTEND, _State.MULTIPLY))
            with m.Case(_State.EXTEND):
                m.d.sync += state.eq(_State.MULTIPLY)
            with m.Case(_State.MULTIPLY):
                m.d.sync += state.eq(_State.SIZE)
            with m.Case(_State.SIZE):
                m.d.sync += state.eq(_State.CHECK)
            with m.Case(_State.CHECK):
                m.d.sync += state.eq(_State.BEGIN)
                for check in reversed(checks):
                    with m.If(check.found):
                        end(ERROR_CODES[check.name], check.detail)
            with m.Case(_State.BEGIN):
                m.d.sync += state.eq(_State.RUN)
            with m.Case(_State.RUN):
                with m.If(self.fault):
                    end(self.fault_code, self.fault_detail)
                with m.Elif(self.written & self.encodes):
                    end(ERROR_CODES["none"], 0)
                with m.Elif(self.written):
                    m.d.comb += self.following.eq(1)
                    m.d.sync += state.eq(_State.MULTIPLY)
        return m

    def _sizes(self, m: Module) -> Signal:
        """Beats of both regions; whether one is larger than memory."""
        settings = self.reading
        source, reads = settings.formats.source, self.conversions.reads
        first, second, third = source_widths(settings, self.conversions)
        width = Signal(range(3 * COORDINATE_BITS + self.value_bits + 1))
        record_bits = Signal(POINTER_BITS + len(width))
        pointer_bits = Signal(COORDINATE_BITS + 2 + 6)
        frame_bits = Signal(POSITION_BITS + 1 + 5)
        beat = (self.beat_bits - 1).bit_length()
        too_large = Signal()
        record_beats = (record_bits + self.beat_bits - 1) >> beat
        frame_beats = (frame_bits + self.beat_bits - 1) >> beat
        has_records, has_frame = (is_one_of(source, *names, among=reads) for names in (HAS_RECORDS, HAS_FRAME))
        value_place = (self.value_bits - 1).bit_length()
        m.d.sync += [
            width.eq(first + second + third + self.value_bits),
            pointer_bits.eq((settings.rows + 1) * settings.pointers.source),
            record_bits.eq(Mux(has_records, width * settings.count, 0)),
            frame_bits.eq(
                Mux(
                    is_one_of(source, *HAS_POINTERS, among=reads),
                    pointer_bits,
                    Mux(is_one_of(source, "zvc", among=reads), self.places, self.places << value_place),
                )
            ),
            self.record_beats.eq(record_beats),
            self.frame_beats.eq(Mux(has_frame, frame_beats, 0)),
        ]
        bits_of_beats = self.address_width - (self.beat_bits // 8 - 1).bit_length()
        m.d.comb += too_large.eq(
            (record_bits >> (bits_of_beats + beat)).any() | (has_frame & (frame_bits >> (bits_of_beats + beat)).any())
        )
        return too_large

    def _places(self, m: Module) -> Value:
        """Rows times columns; of a tensor a cycle later its fibers, as many, times depth. Whether these are too many."""
        settings = self.reading
        area = Signal(POSITION_BITS + 2)
        m.d.sync += area.eq(settings.rows * settings.columns)
        m.d.comb += self.places.eq(area)
        if not self.conversions.fibers:
            return Const(0, 1)
        volume = Signal(POSITION_BITS + 1)
        m.d.sync += volume.eq(area[: COORDINATE_BITS + 1] * settings.depth)
        with m.If(is_tensor(settings, self.conversions.writes)):
            m.d.comb += self.places.eq(volume)
        has_positions = is_one_of(settings.formats.source, *WITH_POSITIONS, among=self.conversions.reads)
        return has_positions & (area > 1 << COORDINATE_BITS)

    def _bad_blocks(self, m: Module) -> Sequence[Fault]:
        """What is wrong with the blocks of a target that has some: their sizes, their numbers, the bits of these."""
        if not self.conversions.blocks:
            return ()
        settings = self.settings
        most = 1 << BLOCK_BITS
        found = []
        size = Signal(2 * (BLOCK_BITS + 1))
        m.d.sync += size.eq(settings.block_rows * settings.block_columns)
        m.d.comb += self.block_size.eq(size)
        for name in ("rows", "columns"):
            sides, grid = settings[f"block_{name}"], settings[f"grid_{name}"]
            covered = Signal(BLOCK_BITS + COORDINATE_BITS + 2, name=f"covered_{name}")
            m.d.sync += covered.eq(sides * grid)
            beyond = covered - settings[name]  # below 0: a row is in no block; a block or more: it has no row
            large = (sides > most) | ((size > most) if name == "columns" else 0)
            found.append(bad(f"block_{name}", (sides == 0) | large))
            found.append(bad(f"grid_{name}", (beyond < 0) | (beyond >= sides)))
        widths = settings.grid_widths
        found.append(
            bad(
                "grid_widths",
                narrow(settings.grid_rows, widths.row)
                | narrow(settings.grid_columns, widths.column)
                | narrow(settings.block_rows, widths.inner),
            )
        )
        blocked = is_one_of(settings.formats.target, "bsr", among=self.conversions.targets)
        return [Fault(fault.name, blocked & fault.found, fault.detail) for fault in found]

    def _checks(self, too_large: Value, bad_parts: Sequence[Fault]) -> Sequence[Fault]:
        """What is wrong with the settings, the first one first."""
        settings = self.settings
        codes = settings.formats.source, settings.formats.target
        widths = settings.widths
        runs = [
            is_one_of(code, "rlc", among=among) & ((run == 0) | (run > COORDINATE_BITS))
            for code, run, among in (
                (codes[0], widths.source_run, self.conversions.sources),
                (codes[1], widths.target_run, self.conversions.targets),
            )
        ]
        aligned = (self.beat_bits // 8 - 1).bit_length()
        size = 1 << COORDINATE_BITS
        return (
            bad("formats", _bad_formats(self.conversions, *codes)),
            bad("rows", (settings.rows == 0) | (settings.rows > size)),
            bad("columns", (settings.columns == 0) | (settings.columns > size)),
            bad(
                "widths",
                narrow(settings.rows, widths.row) | narrow(settings.columns, widths.column) | runs[0] | runs[1],
            ),
            bad("pointers", (settings.pointers.source > POINTER_BITS) | (settings.pointers.target > POINTER_BITS)),
            *bad_parts,
            bad("digits", _bad_digits(settings, self.conversions, self.counters)),
            bad("count", too_large),
            *(
                Fault("bad_address", settings[name][:aligned].any(), Const(OFFSETS[name], 64))
                for name in (
                    "source_records",
                    "source_frame",
                    "target_records",
                    "target_frame",
                    "target_blocks",
                    "target_ids_0",
                    "target_ptrs_1",
                    "scratch_0",
                    "scratch_1",
                    "write_begin",
                    "write_end",
                )
            ),
        )


def bad(register: str, found: Any) -> Fault:
    """A register has a value that it must not have."""
    return Fault("bad_setting", found, Const(OFFSETS[register], 64))


def narrow(size: Value, width: Value) -> Value:
    """Numbers below ``size`` do not fit."""
    return (width > COORDINATE_BITS) | ((size - 1)[:COORDINATE_BITS] >> width).any()


def _bad_formats(conversions: Conversions, source: Value, target: Value) -> Value:
    """Formats that none of the conversions has, or that are none."""
    if conversions == ALL:
        tensor = is_one_of(target, *TENSOR_FORMATS) & ~is_one_of(source, *TENSOR_SOURCES)
        return (source >= len(SOURCES)) | (target >= len(FORMATS)) | tensor
    built = ((FORMATS.index(one), FORMATS.index(other)) for one, other in conversions.pairs)
    return ~Cat((source == one) & (target == other) for one, other in built).any()


def _bad_digits(settings: Any, conversions: Conversions, counters: int) -> Value:
    """The key that entries are sorted by has more or fewer digits than passes, or they are too wide."""
    if not conversions.transposes:
        return Const(0, 1)
    digits, widths, grid = settings.digits, settings.widths, settings.grid_widths
    source = is_one_of(settings.formats.source, "csc", among=conversions.sources)
    number = Mux(
        is_one_of(settings.formats.target, "bsr", among=conversions.targets),
        grid.row + grid.column + Mux(source, grid.inner, 0),
        Mux(source, widths.row, widths.column),
    )
    covered = digits.bits * digits.passes
    wide = (digits.bits == 0) | (digits.bits > counters.bit_length() - 1)
    extra = (digits.passes != 1) & (covered >= number + digits.bits)
    return changes_order(settings, conversions) & (wide | (digits.passes == 0) | (covered < number) | extra)


def _bad_tensor(settings: Any, conversions: Conversions, too_many: Value) -> Sequence[Fault]:
    """What is wrong with the third extent of a tensor, and with those before it."""
    if not conversions.tensors:
        return ()
    tensor = is_tensor(settings, conversions.targets)
    found = (
        bad("columns", too_many),
        bad("depth", (settings.depth == 0) | (settings.depth > 1 << COORDINATE_BITS)),
        bad("widths", narrow(settings.depth, settings.widths.depth)),
        bad("pointers", settings.pointers.slices > POINTER_BITS),
    )
    return [Fault(fault.name, tensor & fault.found, fault.detail) for fault in found]
