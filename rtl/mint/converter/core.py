"""The converter behind its registers: memory engine, reader, decoder, divider, transposer, encoder, writer."""

from typing import Any

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Const, Module, Mux, ResetSignal, Signal
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...lib.counter import EventCounter, popcount
from ...memory.axi4 import Axi4Signature
from ...memory.memory_engine import MemoryEngine
from ...regs.map import VALUE_TYPES
from ..prefix_sum import FORMS
from .block_finder import BlockFinder
from .cell_finder import CellFinder
from .control import ConverterControl
from .decoder import Decoder
from .encoder import Encoder
from .pass_plan import PassPlan
from .record_memory import RecordMemory
from .settings import ERROR_CODES, settings_layout
from .source_reader import SourceReader
from .target_writer import TargetWriter
from .transposer import Transposer

__all__ = ["ConverterCore"]

READER_DEPTH = 128
MOST_LANES = 16
VALUE_BITS = {"int8": 8, "int16": 16, "int32": 32, "bf16": 16, "fp32": 32}


class ConverterCore(Block):
    """One conversion from ``start`` to ``done``::

        record_memory --> source_reader --> decoder --> finders --+--> encoder --> target_writer --+--> record_memory
                                                                  +--> transposer -----------------+

    ``record_memory`` is a client port of ``memory_engine``, or an SRAM. Frames and blocks have client ports of their own.

    Between an order of rows and one of columns it takes several passes (:class:`rtl.mint.converter.pass_plan.PassPlan`).

    Parameters
    ----------
    beat_bits : int
        Bits of a bus beat, power of two from 128 to 1024. An entry for every 32 of them, at most 16, is converted in a cycle.
    address_width : int
        Bits of a byte address, 13 to 64.
    outstanding, burst_beats : int
        See :class:`rtl.memory.memory_engine.MemoryEngine`.
    value : str
        Value type, one of :data:`rtl.regs.map.VALUE_TYPES`.
    form : str
        Network of the prefix sums, one of :data:`rtl.mint.prefix_sum.FORMS`.
    counters : int
        Counters of the transposition, power of two from 16 to 65536.
    sram_bytes : int
        Bytes of the SRAM in which entries are transposed that fit, power of two from 512 to 2^24.

    Members
    -------
    settings : In(settings_layout), start : In(1)
        Constant from ``start``, a pulse after the reset, on.
    done : Out(1), error : Out(8), detail : Out(64)
        As :class:`rtl.mint.converter.control.ConverterControl`.
    entries, cycles, read_beats, written_beats, passes : Out
        What the run has done so far.
    bus : Out(Axi4Signature)
    halt : In(1), bus_busy : Out(1)
        See :class:`rtl.memory.memory_engine.MemoryEngine`.

    Timing
    ------
    A beat a cycle where nothing else is slower: ``docs/blocks/converter.md``.
    """

    def __init__(
        self,
        *,
        beat_bits: int,
        address_width: int,
        outstanding: int,
        burst_beats: int,
        value: str,
        form: str,
        counters: int,
        sram_bytes: int,
    ) -> None:
        check_power_of_two("Beat bits", beat_bits, 128, 1024)
        check_integer("Address width", address_width, 13, 64)
        if value not in VALUE_TYPES:
            raise ValueError(f"Value type must be one of {', '.join(VALUE_TYPES)}, not {value!r}")
        if form not in FORMS:
            raise ValueError(f"Prefix sum must be one of {', '.join(FORMS)}, not {form!r}")
        check_power_of_two("Counters", counters, 16, 1 << 16)
        check_power_of_two("SRAM bytes", sram_bytes, 512, 1 << 24)
        self.counters = counters
        self.sram_bytes = sram_bytes
        self.beat_bits = beat_bits
        self.lanes = min(MOST_LANES, beat_bits // 32)
        self.address_width = address_width
        self.outstanding = outstanding
        self.burst_beats = burst_beats
        self.value = value
        self.form = form
        self.memory = MemoryEngine(
            data_width=beat_bits,
            address_width=address_width,
            readers=2,
            writers=3,
            outstanding=outstanding,
            burst_beats=burst_beats,
            reader_depth=READER_DEPTH,
        )
        bus = Axi4Signature(data_width=beat_bits, address_width=address_width, id_width=self.memory.id_width)
        super().__init__(
            {
                "settings": In(settings_layout(address_width)),
                "start": In(1),
                "done": Out(1),
                "error": Out(8),
                "detail": Out(64),
                "entries": Out(64),
                "cycles": Out(64),
                "read_beats": Out(64),
                "written_beats": Out(64),
                "passes": Out(6),
                "bus": Out(bus),
                "halt": In(1),
                "bus_busy": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {
            "b": self.beat_bits,
            "a": self.address_width,
            "o": self.outstanding,
            "n": self.burst_beats,
            "v": self.value,
            "p": self.form,
            "c": self.counters,
            "s": self.sram_bytes,
        }

    def build(self, platform: Any) -> Module:
        m = Module()
        value_bits, floating = VALUE_BITS[self.value], not self.value.startswith("int")
        sizes: dict[str, Any] = {"lanes": self.lanes, "value_bits": value_bits}
        whole: dict[str, Any] = {**sizes, "beat_bits": self.beat_bits, "address_width": self.address_width}
        ends: dict[str, Any] = {"value_bits": value_bits, "address_width": self.address_width}
        m.submodules.memory_engine = memory = self.memory
        m.submodules.control = control = ConverterControl(beat_bits=self.beat_bits, counters=self.counters, **ends)
        m.submodules.pass_plan = plan = PassPlan(sram_bytes=self.sram_bytes, **ends)
        m.submodules.source_reader = reader = SourceReader(**whole)
        m.submodules.decoder = decoder = Decoder(**whole, floating=floating, form=self.form)
        m.submodules.cell_finder = finder = CellFinder(**sizes)
        m.submodules.block_finder = blocks = BlockFinder(**sizes)
        m.submodules.transposer = transposer = Transposer(**whole, counters=self.counters, form=self.form)
        m.submodules.encoder = encoder = Encoder(**whole)
        m.submodules.target_writer = writer = TargetWriter(**whole, burst_beats=self.burst_beats)

        # A pass leaves nothing in what the next one uses.
        m.domains.one_pass = one_pass = ClockDomain()
        m.d.comb += [one_pass.clk.eq(ClockSignal()), one_pass.rst.eq(ResetSignal() | control.following)]
        for block in (reader, decoder, finder, blocks, encoder, writer):
            block.domain = "one_pass"

        for name in ("records", "pointers", "beats"):
            connect(m, getattr(reader, name), getattr(decoder, name))
            connect(m, getattr(encoder, name), getattr(writer, name))
        connect(m, decoder.groups, finder.groups)
        connect(m, finder.cells, blocks.cells)
        connect(m, memory.bus, flipped(self.bus))
        self._choose_cells(m, plan, blocks.blocks, encoder, transposer)
        records = self._join_memory(m, plan, reader, transposer, writer, memory)
        self._plan(m, plan, control, transposer)
        settings = self.settings
        m.d.comb += [
            *(block.settings.eq(settings) for block in (control, plan)),
            *(block.settings.eq(plan.reading) for block in (reader, decoder)),
            *(block.settings.eq(plan.writing) for block in (encoder, writer)),
        ]
        dividing = Signal()  # the divisors of both finders are taken at once
        m.d.sync += dividing.eq(control.launch | (dividing & ~finder.columns.ready))
        m.d.comb += [
            control.start.eq(self.start),
            reader.launch.eq(control.launch),
            writer.launch.eq(control.launch & (plan.encodes | plan.keeps)),
            *(getattr(reader, name).eq(getattr(control, name)) for name in ("record_beats", "frame_beats")),
            *(block.places.eq(control.places) for block in (decoder, encoder)),
            encoder.block_size.eq(control.block_size),
            decoder.unsorted.eq(plan.unsorted),
            finder.columns.payload.eq(plan.reading.columns),
            *(divisor.valid.eq(dividing) for divisor in (finder.columns, blocks.sides)),
            *(blocks.sides.payload[name].eq(settings[f"block_{name}"]) for name in ("rows", "columns")),
            *(getattr(blocks, name).eq(getattr(plan, name)) for name in ("by_row", "by_block")),
            control.written.eq(writer.done & transposer.done & records.idle & Cat(*memory.write_idle).all()),
            *(getattr(self, name).eq(getattr(control, name)) for name in ("done", "error", "detail")),
            *(getattr(memory, name).eq(settings[name]) for name in ("write_begin", "write_end")),
            memory.halt.eq(self.halt),
            self.bus_busy.eq(memory.busy),
            self.passes.eq(plan.scattered),
        ]
        for block in (writer, encoder, transposer, decoder, memory):
            for fault in reversed(block.faults()):
                with m.If(fault.found):
                    m.d.comb += [
                        control.fault.eq(1),
                        control.fault_code.eq(ERROR_CODES[fault.name]),
                        control.fault_detail.eq(fault.detail),
                    ]
        counted = Mux(plan.encodes & decoder.groups.valid & decoder.groups.ready, decoder.groups.payload.count, 0)
        self._count(m, control.done, counted, memory)
        return m

    def _choose_cells(self, m: Module, plan: PassPlan, cells: Any, encoder: Any, transposer: Any) -> None:
        """Cells go to the encoder in the last pass, to the transposer in all others, and to both where they are kept."""
        encodes, transposes = plan.encodes | plan.keeps, ~plan.encodes
        encoder_can, transposer_can = encoder.cells.ready | ~encodes, transposer.cells.ready | ~transposes
        m.d.comb += [
            encoder.cells.payload.eq(cells.payload),
            transposer.cells.payload.eq(cells.payload),
            encoder.cells.valid.eq(cells.valid & encodes & transposer_can),
            transposer.cells.valid.eq(cells.valid & transposes & encoder_can),
            cells.ready.eq(encoder_can & transposer_can),
        ]

    def _join_memory(
        self, m: Module, plan: PassPlan, reader: Any, transposer: Any, writer: Any, memory: MemoryEngine
    ) -> RecordMemory:
        """Records pass client 0, or an SRAM; the frame passes client 1, blocks the writing client 2."""
        m.submodules.record_memory = records = RecordMemory(
            sram_bytes=self.sram_bytes,
            beat_bits=self.beat_bits,
            address_width=self.address_width,
            burst_beats=self.burst_beats,
        )
        connect(m, reader.read_request[0], records.read_request)
        connect(m, records.read_data, reader.read_data[0])
        connect(m, records.memory_read_request, memory.read_request[0])
        connect(m, memory.read_data[0], records.memory_read_data)
        connect(m, reader.read_request[1], memory.read_request[1])
        connect(m, memory.read_data[1], reader.read_data[1])
        for name in ("write_request", "write_data"):
            connect(m, getattr(writer, name)[0], getattr(records, name)[0])
            connect(m, getattr(transposer, name), getattr(records, name)[1])
            connect(m, getattr(records, f"memory_{name}"), getattr(memory, name)[0])
            for n in (1, 2):
                connect(m, getattr(writer, name)[n], getattr(memory, name)[n])
        for name in ("from_sram", "to_sram", "scatters"):
            m.d.comb += getattr(records, name).eq(getattr(plan, name))
        return records

    def _plan(self, m: Module, plan: PassPlan, control: ConverterControl, transposer: Transposer) -> None:
        """What the plan says to control and transposer."""
        m.d.comb += [
            plan.start.eq(self.start),
            plan.following.eq(control.following),
            *(getattr(plan, name).eq(getattr(transposer, name)) for name in ("entries", "bytes")),
            *(getattr(control, name).eq(getattr(plan, name)) for name in ("reading", "encodes")),
            transposer.launch.eq(control.launch & ~plan.encodes),
            transposer.first.eq(plan.counts),
            transposer.last.eq(plan.sorts_last),
            transposer.digit_bits.eq(self.settings.digits.bits),
            *(getattr(transposer, name).eq(getattr(plan, name)) for name in RECORD_OF_A_PASS),
        ]

    def _count(self, m: Module, done: Any, entries: Any, memory: MemoryEngine) -> None:
        events = {
            "entries": entries,
            "cycles": Const(1),
            "read_beats": popcount(memory.read_beat),
            "written_beats": popcount(memory.write_beat),
        }
        running = Signal()
        m.d.sync += running.eq(running | self.start)
        for name, step in events.items():
            m.submodules[f"{name}_counter"] = counter = EventCounter(width=64, step_width=len(step))
            m.d.comb += getattr(self, name).eq(counter.count)
            with m.If(running & ~done):
                m.d.comb += counter.step.eq(step)


RECORD_OF_A_PASS = (
    *("by_row", "by_block", "shift", "inner_bits", "column_bits"),
    *("first_bits", "second_bits", "record_bytes", "base", "space"),
)
