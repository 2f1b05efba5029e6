"""The accelerator: AXI4-Lite registers on one side, an AXI4 burst manager on the other, the machine between them."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import ClockDomain, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from .engine.signature import Engine
from .lib.block import Block
from .lib.reset_synchronizer import ResetSynchronizer
from .machine.conversion import connect_conversion
from .machine.machine import Machine
from .memory.axi4 import Axi4Signature, connect_flat, flat_members
from .regs.axi_lite import Axi4LiteSignature, RegisterFile
from .regs.counters import CounterBank
from .regs.map import ADDRESS_BITS, CONVERSION, REGISTERS, value_code
from .reset_control import ResetControl

__all__ = ["Accelerator"]

OFFSETS = {register.key: register.offset for register in REGISTERS}


class Accelerator(Block):
    """Registers, machine and counters behind the pins, with the resets of both.

    Parameters
    ----------
    tile_engine : Callable[..., Engine]
        Makes the intra-tile engine, from the parameters of :class:`Engine`.
    pes : int
        Processing elements.
    radix : int
        Leaves of a merge job at most, power of two from 2 to 256.
    lanes : int
        64-bit elements in a line (SRAM word), power of two.
    line_beats : int
        Beats of the bus that make a line: 1, 2, 4 or 8.
    sram_lines, banks : int
        Lines of the banked SRAM, a multiple of ``banks``; its banks, power of two.
    address_width : int
        Bits of a byte address.
    leaf_lines, queue_lines : int
        Of each processing element: line slots of a leaf, power of two; words of its output queue.
    scratch_slots : int
        Rows of more than ``radix`` leaves that may be under way, power of two.
    outstanding, burst_beats : int
        Bursts in flight in each direction; beats of the longest one, power of two.
    value : str
        Value type, one of ``arith.VALUES``.
    tuning : bool
        Tile shapes can be tuned during a run.
    packed : bool
        Nonzeros of A, B and C lie in memory as packed records.
    conversion_form : str
        Network of the prefix sums of what converts tensors on their way.
    converts : str
        Tensors that are converted on their way in, or C out, with ``packed`` alone: some of "abc", in this order. With "b", B's
        fibers are its rows.
    fifo_lines : int
        Default size of the FIFO-managed region, shown to the driver.
    asynchronous_reset : bool
        ``aresetn`` may change at any time, and acts two cycles later.

    Members
    -------
    aclk : In(1), aresetn : In(1)
        Clock of everything; reset, active low, synchronous to ``aclk`` unless ``asynchronous_reset``.
    irq : Out(1)
        Level; a run has ended.
    s_axil_* : AXI4-Lite subordinate, 32-bit data, 12-bit address.
    m_axi_* : AXI4 manager, ``64 * lanes // line_beats`` bits of data.

    Timing
    ------
    That of a run follows from scheme and operands (``docs/timing.md``); registers as :class:`RegisterFile`.
    """

    def __init__(
        self,
        *,
        tile_engine: Callable[..., Engine],
        pes: int,
        radix: int,
        lanes: int,
        sram_lines: int,
        banks: int,
        address_width: int,
        leaf_lines: int,
        queue_lines: int,
        scratch_slots: int,
        outstanding: int,
        burst_beats: int,
        value: str,
        fifo_lines: int,
        line_beats: int = 1,
        tuning: bool = False,
        packed: bool = False,
        converts: str = "",
        conversion_form: str = "",
        asynchronous_reset: bool = False,
    ) -> None:
        if converts and not packed:
            raise ValueError(f"Tensors are converted where records are packed alone: converts is {converts!r}")
        self.fifo_lines = fifo_lines
        self.asynchronous_reset = asynchronous_reset
        self.machine = Machine(
            tile_engine=tile_engine(
                pes=pes,
                radix=radix,
                lanes=lanes,
                address_width=address_width,
                line_address_width=(sram_lines - 1).bit_length(),
                leaf_lines=leaf_lines,
                queue_lines=queue_lines,
                scratch_slots=scratch_slots,
                value=value,
                packed=packed,
            ),
            sram_lines=sram_lines,
            banks=banks,
            outstanding=outstanding,
            burst_beats=burst_beats,
            line_beats=line_beats,
            offsets=OFFSETS,
            tuning=tuning,
            converts=converts,
            conversion_form=conversion_form,
        )
        memory = self.machine.memory
        bus = Axi4Signature(data_width=memory.data_width, address_width=address_width, id_width=memory.id_width)
        registers = Axi4LiteSignature(data_width=32, address_width=ADDRESS_BITS)
        super().__init__(
            {
                "aclk": In(1),
                "aresetn": In(1),
                "irq": Out(1),
                **flat_members("s_axil", registers, manager=False),
                **flat_members("m_axi", bus, manager=True),
            }
        )

    @property
    def module_name(self) -> str:
        return "accelerator"

    def build(self, platform: Any) -> Module:
        m = Module()
        machine = self.machine
        tile_engine, aw = machine.tile_engine, machine.address_width
        converts = "".join(machine.converters)
        # `sync` is reset before each run; `registers` only by the pin.
        m.domains.sync = machine_domain = ClockDomain()
        m.domains.registers = registers_domain = ClockDomain()

        m.submodules.register_file = registers = RegisterFile(
            address_width=aw,
            parameters={
                "PES": tile_engine.pes,
                "MERGE_RADIX": tile_engine.radix,
                "LANES": machine.lanes,
                "SRAM_LINES": machine.sram_lines,
                "BANKS": machine.banks,
                "ADDRESS_WIDTH": aw,
                "VALUE_TYPE": value_code(tile_engine.value),
                "FIFO_LINES": self.fifo_lines,
                "BURST_BEATS": machine.burst_beats,
                "OUTSTANDING": machine.outstanding,
                "DYNAMIC_TUNING": int(machine.tuning),
                "PACKED": int(tile_engine.packed) | sum(2 << "abc".index(tensor) for tensor in converts),
            },
            converts=converts,
        )
        m.submodules.reset_control = reset = ResetControl()
        widths = {name.upper(): len(Value.cast(machine.events[name])) for name in machine.steps}
        m.submodules.counter_bank = counters = CounterBank(increments=widths)
        for block in (registers, reset, counters):
            block.domain = "registers"
        m.submodules.machine = machine

        power_on = Signal()
        if self.asynchronous_reset:
            m.submodules.reset_synchronizer = synchronizer = ResetSynchronizer()
            synchronizer.domain = "registers"
            m.d.comb += [synchronizer.reset_in.eq(~self.aresetn), power_on.eq(synchronizer.reset_out)]
        else:
            m.d.comb += power_on.eq(~self.aresetn)
        m.d.comb += [
            machine_domain.clk.eq(self.aclk),
            registers_domain.clk.eq(self.aclk),
            registers_domain.rst.eq(power_on),
            machine_domain.rst.eq(power_on | reset.machine_reset),
            self.irq.eq(registers.irq),
        ]
        connect_flat(m, self, "s_axil", registers.bus)
        connect_flat(m, self, "m_axi", machine.bus)
        if self.asynchronous_reset:
            # The manager sees the end of the reset two cycles before the registers do: it waits for them.
            with m.If(power_on):
                m.d.comb += [getattr(self, f"s_axil_{channel}ready").eq(0) for channel in ("ar", "aw", "w")]

        settings = registers.settings
        m.d.comb += [
            reset.start.eq(registers.start),
            reset.soft_reset.eq(registers.soft_reset),
            reset.bus_busy.eq(machine.bus_busy),
            reset.machine_done.eq(machine.done),
            machine.start.eq(reset.machine_start),
            machine.halt.eq(reset.halt),
            registers.busy.eq(reset.busy),
            registers.done.eq(reset.done),
            registers.error_code.eq(machine.error),
            registers.error_detail.eq(machine.detail),
            registers.results.c_nnz.eq(machine.stored),
            registers.results.waiting.eq(machine.waiting),
            counters.read.eq(registers.counter_read),
            counters.number.eq(registers.counter_number),
            registers.counter.eq(counters.count),
            counters.events.eq(machine.events),
            counters.clear.eq(reset.machine_start),
            # What still moves in a machine that an error has stopped belongs to no run.
            counters.enable.eq(~machine.done),
        ]
        scheme, tune, regions = machine.scheme, machine.tune, machine.regions
        for r, rank in enumerate("ijk"):
            m.d.comb += [scheme.extent[r].eq(settings[f"shape_{rank}"]), scheme.tile[r].eq(settings[f"tile_{rank}"])]
        m.d.comb += scheme.order.eq(settings.order)
        m.d.comb += [scheme.joined.eq(settings.modes.joined), scheme.part_words.eq(settings.part_words)]
        m.d.comb += [scheme.gathered.eq(settings.modes.windows), scheme.by_list.eq(settings.modes.listed)]
        m.d.comb += [scheme.planned.eq(settings.modes.planned), scheme.entry_bits.eq(settings.modes.entry_bits)]
        m.d.comb += [scheme.fifo_b.eq(settings.fifo_lines_b), tune.enable.eq(settings.tuning.enable)]
        m.d.comb += scheme.scratch.eq(settings.scratch_lines)
        m.d.comb += [tune.level[n].eq(settings.tuning[f"level_{rank}"]) for n, rank in enumerate("jk")]
        for tensor in "abc":
            m.d.comb += [
                scheme[tensor].base.eq(settings[f"{tensor}_base"]),
                scheme[tensor].lines.eq(settings[f"{tensor}_lines"]),
                scheme.buffering[tensor].eq(settings.modes[f"{tensor}_buffering"]),
                scheme.coordinates[tensor].eq(settings.coordinates[tensor]),
            ]

        for tensor in converts:
            told = [settings[name.lower()] for name in CONVERSION[tensor]]
            m.d.comb += connect_conversion(machine.conversion[tensor], *told)

        # Addresses: all must be multiples of the line size.
        aligned_bits = (8 * machine.lanes - 1).bit_length()
        addresses: dict[str, Any] = {}
        for tensor in "ab":
            arrays = machine.operands[tensor]
            for name in ("pointers", "elements", "positions"):
                addresses[f"{tensor}_{name}"] = arrays[name]
            addresses[f"{tensor}_tile_map"] = arrays.map
        for name in ("pointers", "elements", "finished", "partial0", "partial1", "tile_positions", "scratch"):
            addresses[f"c_{name}"] = regions[name]
        addresses |= {name: getattr(machine, name) for name in ("write_begin", "write_end")}
        for name, target in addresses.items():
            m.d.comb += target.eq(settings[name])
            with m.If(settings[name][:aligned_bits] != 0):
                m.d.comb += [machine.misaligned.eq(1), machine.misaligned_offset.eq(OFFSETS[name])]
        top = (1 << aw) - 1
        for name in ("elements", "finished", "partial", "scratch"):
            capacity = settings[f"c_{name}_bytes"]
            m.d.comb += regions[f"{name}_bytes"].eq(Mux(capacity[aw:].any(), top, capacity[:aw]))
        return m
