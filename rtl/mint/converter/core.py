"""One converter between its settings and its client ports: reader, decoder, dividers, transposer, encoder, writer."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Module, ResetSignal, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_integer, check_power_of_two
from ...lib.unit import Unit
from ...regs.map import VALUE_TYPES
from ...types import read_request, write_beat, write_request
from ..host.hosted_divmod import HOST_PORTS
from ..host.hosted_sum import HOST, HOSTED
from ..host.signature import sum_request, sum_result
from ..host.sum_clients import SumClients
from .block_finder import BlockFinder
from .cell_finder import CellFinder
from .control import ConverterControl
from .conversions import ALL, WITH_POSITIONS, Conversions, check_conversions
from .decoder import Decoder
from .encoder import TREE_WIDTHS, Encoder
from .pass_plan import PassPlan
from .record_memory import RecordMemory
from .settings import ERROR_CODES, is_one_of, is_tensor, settings_layout
from .source_reader import SourceReader
from .target_writer import REGIONS, TargetWriter
from .transposer import Transposer

__all__ = ["CORE_PORTS", "ConverterCore", "show_ports"]

MOST_LANES = 16
VALUE_BITS = {"int8": 8, "int16": 16, "int32": 32, "bf16": 16, "fp32": 32}


class ConverterCore(Block):
    """One conversion from ``start`` to ``done``::

        record_memory --> source_reader --> decoder --> finders --+--> encoder --> target_writer --+--> record_memory
                                                                  +--> transposer -----------------+

    ``record_memory`` is client port 0, or an SRAM. Frames have client port 1, blocks the writing client 2, slices 3 and 4.

    Between an order of rows and one of columns it takes several passes (:class:`rtl.mint.converter.pass_plan.PassPlan`).

    Parameters
    ----------
    beat_bits : int
        Bits of a bus beat, power of two from 128 to 1024.
    lane_bits : int
        Bits of a beat for each lane, 16 or 32. A lane converts an entry a cycle; there are at most 16.
    address_width : int
        Bits of a byte address, 13 to 64.
    burst_beats : int
        See :class:`rtl.memory.memory_engine.MemoryEngine`.
    value : str
        Value type, one of :data:`rtl.regs.map.VALUE_TYPES`.
    form : str
        Network of the prefix sums, one of :data:`rtl.mint.host.hosted_sum.HOSTED`. ``host``: prefix sums and dividers are those
        of a host.
    counters : int
        Counters of the transposition, power of two from 16 to 65536.
    sram_bytes : int
        Bytes of the SRAM in which entries are transposed that fit, power of two from 512 to 2^24.
    conversions : Conversions
        Those that it is built for: what none of them needs is not built, and all others are refused.

    Members
    -------
    settings : In(settings_layout), start : In(1)
        Constant from ``start``, a pulse after the reset, on.
    done : Out(1), error : Out(8), detail : Out(64)
        As :class:`rtl.mint.converter.control.ConverterControl`.
    counted : Out(range(lanes + 1)), passes : Out(6)
        Entries that go into the target in this cycle; passes that have written a scratch region.
    read_request[2], read_data[2], write_request[5], write_data[5] : streams
        Client ports of the memory engine.
    owned, sum_valid, sum, sums_valid, sums, division_valid, division, divided_valid, divided
        Those of :class:`rtl.mint.host.host_array.HostArray`, where ``form`` is ``host``.
    write_idle : In(1), memory_fault : In(1), memory_code : In(8), memory_detail : In(64)
        All writes are in memory; an error of the memory engine ends the run.

    Timing
    ------
    A beat a cycle where nothing else is slower: ``docs/blocks/converter.md``.
    """

    def __init__(
        self,
        *,
        beat_bits: int,
        address_width: int,
        burst_beats: int,
        value: str,
        form: str,
        counters: int,
        sram_bytes: int,
        lane_bits: int = 32,
        conversions: Conversions = ALL,
    ) -> None:
        self.beat_bits = check_power_of_two("Beat bits", beat_bits, 128, 1024)
        self.address_width = check_integer("Address width", address_width, 13, 64)
        if value not in VALUE_TYPES:
            raise ValueError(f"Value type must be one of {', '.join(VALUE_TYPES)}, not {value!r}")
        if form not in HOSTED:
            raise ValueError(f"Prefix sum must be one of {', '.join(HOSTED)}, not {form!r}")
        self.counters = check_power_of_two("Counters", counters, 16, 1 << 16)
        self.sram_bytes = check_power_of_two("SRAM bytes", sram_bytes, 512, 1 << 24)
        self.burst_beats = check_power_of_two("Burst beats", burst_beats, 1, 256)
        self.lane_bits = check_power_of_two("Lane bits", lane_bits, 16, 32)
        check_conversions(conversions)
        self.conversions = conversions
        self.lanes = min(MOST_LANES, beat_bits // lane_bits)
        self.value = value
        self.form = form
        reads, writes = stream.Signature(read_request(address_width)), stream.Signature(write_request(address_width))
        super().__init__(
            {
                "settings": In(settings_layout(address_width)),
                "start": In(1),
                "done": Out(1),
                "error": Out(8),
                "detail": Out(64),
                "counted": Out(range(self.lanes + 1)),
                "passes": Out(6),
                "read_request": Out(reads).array(2),
                "read_data": In(stream.Signature(beat_bits)).array(2),
                "write_request": Out(writes).array(len(REGIONS)),
                "write_data": Out(stream.Signature(write_beat(beat_bits))).array(len(REGIONS)),
                "write_idle": In(1),
                "memory_fault": In(1),
                "memory_code": In(8),
                "memory_detail": In(64),
                **(CORE_PORTS if form == HOST else {}),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        value_bits, floating = VALUE_BITS[self.value], not self.value.startswith("int")
        sizes: dict[str, Any] = {"lanes": self.lanes, "value_bits": value_bits}
        whole: dict[str, Any] = {**sizes, "beat_bits": self.beat_bits, "address_width": self.address_width}
        ends: dict[str, Any] = {"value_bits": value_bits, "address_width": self.address_width}
        built = {"conversions": self.conversions}
        m.submodules.control = control = ConverterControl(
            beat_bits=self.beat_bits, counters=self.counters, **ends, **built
        )
        m.submodules.pass_plan = plan = PassPlan(sram_bytes=self.sram_bytes, **ends, **built)
        m.submodules.source_reader = reader = SourceReader(**whole, **built)
        m.submodules.decoder = decoder = Decoder(**whole, **built, floating=floating, form=self.form)
        m.submodules.cell_finder = finder = CellFinder(
            **sizes,
            divides=self.conversions.divides,
            hosted=self.form == HOST and self.conversions.divides,
            tensors=self.conversions.tensors,
        )
        # The sum of a tree is one of flags: in small adders of its own, whoever has the others.
        tree_form = "work_efficient" if self.form == HOST else self.form
        m.submodules.encoder = encoder = Encoder(**whole, **built, form=tree_form)
        m.submodules.target_writer = writer = TargetWriter(**whole, **built, burst_beats=self.burst_beats)

        # A pass leaves nothing in what the next one uses.
        m.domains.one_pass = one_pass = ClockDomain()
        m.d.comb += [one_pass.clk.eq(ClockSignal()), one_pass.rst.eq(ResetSignal() | control.following)]
        for block in (reader, decoder, finder, encoder, writer):
            block.domain = "one_pass"

        for name in ("records", "pointers", "beats"):
            connect(m, getattr(reader, name), getattr(decoder, name))
        for name in ("records", "pointers", "beats", *(TREE_WIDTHS if self.conversions.tensors else ())):
            connect(m, getattr(encoder, name), getattr(writer, name))
        connect(m, decoder.groups, finder.groups)
        connect(m, reader.read_request[1], flipped(self.read_request[1]))
        connect(m, flipped(self.read_data[1]), reader.read_data[1])
        for name in ("write_request", "write_data"):
            for n in range(1, len(REGIONS)):
                connect(m, getattr(writer, name)[n], flipped(getattr(self, name)[n]))
        settings = self.settings
        m.d.comb += [
            *(block.settings.eq(settings) for block in (control, plan)),
            *(block.settings.eq(plan.reading) for block in (reader, decoder)),
            *(block.settings.eq(plan.writing) for block in (encoder, writer)),
            plan.start.eq(self.start),
            plan.following.eq(control.following),
            *(getattr(control, name).eq(getattr(plan, name)) for name in ("reading", "encodes")),
            control.start.eq(self.start),
            reader.launch.eq(control.launch),
            writer.launch.eq(control.launch & (plan.encodes | plan.keeps)),
            *(getattr(reader, name).eq(getattr(control, name)) for name in ("record_beats", "frame_beats")),
            *(block.places.eq(control.places) for block in (decoder, encoder)),
            encoder.block_size.eq(control.block_size),
            decoder.unsorted.eq(plan.unsorted),
            *(getattr(self, name).eq(getattr(control, name)) for name in ("done", "error", "detail")),
            self.passes.eq(plan.scattered),
        ]
        _divide(m, self.conversions, plan, control, decoder, finder)
        cells = _find_blocks(m, self, plan, control, finder.cells)
        units: tuple[Unit, ...] = (writer, encoder, decoder)
        written: Any = writer.done & self.write_idle
        if self.conversions.transposes:
            m.submodules.transposer = transposer = Transposer(**whole, counters=self.counters, form=self.form)
            units = (writer, encoder, transposer, decoder)
            _choose_cells(m, plan, cells, encoder, transposer)
            records = self._join_memory(m, plan, reader, transposer, writer)
            _plan(m, settings, plan, control, transposer)
            written = written & transposer.done & records.idle
        else:
            _pass_cells(m, cells, encoder.cells)
            connect(m, reader.read_request[0], flipped(self.read_request[0]))
            connect(m, flipped(self.read_data[0]), reader.read_data[0])
            for name in ("write_request", "write_data"):
                connect(m, getattr(writer, name)[0], flipped(getattr(self, name)[0]))
        m.d.comb += control.written.eq(written)
        if self.form == HOST:
            _use_host(m, self, decoder, finder, m.submodules.transposer if self.conversions.transposes else None)
        for unit in units:
            for fault in reversed(unit.faults()):
                with m.If(fault.found):
                    m.d.comb += [
                        control.fault.eq(1),
                        control.fault_code.eq(ERROR_CODES[fault.name]),
                        control.fault_detail.eq(fault.detail),
                    ]
        with m.If(self.memory_fault):
            m.d.comb += [
                control.fault.eq(1),
                control.fault_code.eq(self.memory_code),
                control.fault_detail.eq(self.memory_detail),
            ]
        with m.If(plan.encodes & decoder.groups.valid & decoder.groups.ready):
            m.d.comb += self.counted.eq(decoder.groups.payload.count)
        return m

    def _join_memory(
        self, m: Module, plan: PassPlan, reader: SourceReader, transposer: Transposer, writer: TargetWriter
    ) -> RecordMemory:
        """Records pass client 0, or an SRAM."""
        m.submodules.record_memory = records = RecordMemory(
            sram_bytes=self.sram_bytes,
            beat_bits=self.beat_bits,
            address_width=self.address_width,
            burst_beats=self.burst_beats,
        )
        connect(m, reader.read_request[0], records.read_request)
        connect(m, records.read_data, reader.read_data[0])
        connect(m, records.memory_read_request, flipped(self.read_request[0]))
        connect(m, flipped(self.read_data[0]), records.memory_read_data)
        for name in ("write_request", "write_data"):
            connect(m, getattr(writer, name)[0], getattr(records, name)[0])
            connect(m, getattr(transposer, name), getattr(records, name)[1])
            connect(m, getattr(records, f"memory_{name}"), flipped(getattr(self, name)[0]))
        for name in ("from_sram", "to_sram", "scatters"):
            m.d.comb += getattr(records, name).eq(getattr(plan, name))
        return records


def _divide(
    m: Module, conversions: Conversions, plan: PassPlan, control: ConverterControl, decoder: Decoder, finder: CellFinder
) -> None:
    """Who needs rows and columns gets them, from a source that has them without a multiplication and a division."""
    takes_positions = is_one_of(plan.writing.formats.target, *WITH_POSITIONS, among=conversions.writes)
    gives_positions = is_one_of(plan.reading.formats.source, *WITH_POSITIONS, among=conversions.reads)
    needs_cells: Value = ~plan.encodes | ~takes_positions
    dividing = Signal()
    with m.If(finder.columns.ready):
        m.d.sync += dividing.eq(0)
    with m.If(control.launch):
        m.d.sync += dividing.eq(needs_cells & gives_positions)
    m.d.comb += [
        decoder.keyed.eq(needs_cells),
        finder.passes.eq(~(needs_cells & gives_positions)),
        finder.columns.valid.eq(dividing),
        finder.columns.payload.eq(plan.reading.columns),
    ]
    if conversions.fibers:
        with m.If(is_tensor(plan.reading, conversions.writes)):
            m.d.comb += finder.columns.payload.eq(plan.reading.depth)


def _find_blocks(m: Module, core: ConverterCore, plan: PassPlan, control: ConverterControl, cells: Any) -> Any:
    """Cells with the blocks that they lie in, or their fibers taken apart, where some conversion needs it."""
    built = core.conversions
    if not built.blocks and not built.fibers:
        return cells
    m.submodules.block_finder = blocks = BlockFinder(
        lanes=core.lanes,
        value_bits=VALUE_BITS[core.value],
        tensors=built.tensors,
        fibers=built.fibers,
        has_blocks=built.blocks,
    )
    blocks.domain = "one_pass"
    dividing = Signal(name="dividing_blocks")
    m.d.sync += dividing.eq(control.launch | (dividing & ~blocks.sides.ready))
    connect(m, cells, blocks.cells)
    m.d.comb += [
        blocks.sides.valid.eq(dividing),
        *(blocks.sides.payload[name].eq(core.settings[f"block_{name}"]) for name in ("rows", "columns")),
        *(getattr(blocks, name).eq(getattr(plan, name)) for name in ("by_row", "by_block")),
    ]
    if built.fibers:
        tensor = is_tensor(plan.reading, built.writes)
        m.d.comb += blocks.by_fiber.eq(
            tensor & is_one_of(plan.reading.formats.source, *WITH_POSITIONS, among=built.reads)
        )
        with m.If(tensor):
            m.d.comb += [
                blocks.sides.payload.rows.eq(plan.reading.columns),
                blocks.sides.payload.columns.eq(1),
            ]
    return blocks.blocks


def _use_host(m: Module, core: Any, decoder: Any, finder: Any, transposer: Any) -> None:
    """Prefix sums and divisions go to the host."""
    owners = ((decoder, "run_host"), (decoder, "place_host"), (transposer, "host"))
    ports = [getattr(owner, name) for owner, name in owners if hasattr(owner, name)]
    if ports:
        m.submodules.sum_clients = clients = SumClients(count=len(ports))
        for port, client in zip(ports, clients.clients, strict=True):
            connect(m, port, client)
        show_ports(m, core, clients, SUM_PORTS)
    if finder.hosted:
        show_ports(m, core, finder, HOST_PORTS)


def _plan(m: Module, settings: Any, plan: PassPlan, control: ConverterControl, transposer: Transposer) -> None:
    """What the plan says to control and transposer."""
    m.d.comb += [
        *(getattr(plan, name).eq(getattr(transposer, name)) for name in ("entries", "bytes")),
        transposer.launch.eq(control.launch & ~plan.encodes),
        transposer.first.eq(plan.counts),
        transposer.last.eq(plan.sorts_last),
        transposer.digit_bits.eq(settings.digits.bits),
        *(getattr(transposer, name).eq(getattr(plan, name)) for name in RECORD_OF_A_PASS),
    ]


def _pass_cells(m: Module, cells: Any, taken: Any) -> None:
    """Cells go to the encoder."""
    m.d.comb += [
        *_same(cells, taken),
        taken.valid.eq(cells.valid),
        cells.ready.eq(taken.ready),
    ]


def _choose_cells(m: Module, plan: PassPlan, cells: Any, encoder: Any, transposer: Any) -> None:
    """Cells go to the encoder in the last pass, to the transposer in all others, and to both where they are kept."""
    encodes, transposes = plan.encodes | plan.keeps, ~plan.encodes
    encoder_can, transposer_can = encoder.cells.ready | ~encodes, transposer.cells.ready | ~transposes
    m.d.comb += [
        *(part for taken in (encoder.cells, transposer.cells) for part in _same(cells, taken)),
        encoder.cells.valid.eq(cells.valid & encodes & transposer_can),
        transposer.cells.valid.eq(cells.valid & transposes & encoder_can),
        cells.ready.eq(encoder_can & transposer_can),
    ]


def _same(given: Any, taken: Any) -> list[Any]:
    """What both payloads have is the same."""
    common = [name for name in given.payload.shape().members if name in taken.payload.shape().members]
    return [taken.payload[name].eq(given.payload[name]) for name in common]


def show_ports(m: Module, outer: Any, inner: Any, members: Mapping[str, Any]) -> None:
    """Members of a block inside are those of the block."""
    for name, member in members.items():
        shown, own = getattr(outer, name), getattr(inner, name)
        m.d.comb += shown.eq(own) if member.flow is Out else own.eq(shown)


#: Members that go to the adders of a host.
SUM_PORTS = {
    "owned": In(1),
    "sum_valid": Out(1),
    "sum": Out(sum_request()),
    "sums_valid": In(1),
    "sums": In(sum_result()),
}
#: Members of a core that go to a host.
CORE_PORTS = SUM_PORTS | HOST_PORTS
RECORD_OF_A_PASS = (
    *("by_row", "by_block", "shift", "inner_bits", "column_bits"),
    *("first_bits", "second_bits", "record_bytes", "base", "space"),
)
