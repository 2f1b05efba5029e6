"""The format converter: AXI4-Lite registers on one side, an AXI4 burst manager on the other."""

from typing import Any

from amaranth.hdl import ClockDomain, Module
from amaranth.lib.wiring import In, Out

from .lib.block import Block
from .memory.axi4 import Axi4Signature, connect_flat, flat_members
from .mint.converter.conversions import conversions_named
from .mint.converter.cores import ConverterCores
from .mint.host.host_array import HostArray, HostCompute
from .regs.axi_lite import RegisterBank
from .regs.converter_map import IDENTITY, REGISTERS, VERSION
from .regs.map import value_code
from .regs.register import ADDRESS_BITS
from .regs.signature import Axi4LiteSignature
from .reset_control import ResetControl

__all__ = ["Converter", "ConverterRegisters"]


class ConverterRegisters(RegisterBank):
    """AXI4-Lite subordinate with every register of ``rtl/regs/converter_map.py``.

    Parameters
    ----------
    address_width : int
        Bits of a memory address, 1 to 64.
    constants : Mapping[str, int]
        Value of each constant register that does not follow from the map.

    Members are those of :class:`rtl.regs.axi_lite.RegisterBank`.

    Timing
    ------
    As :class:`rtl.regs.axi_lite.RegisterBank`.
    """

    def __init__(self, *, address_width: int, constants: dict[str, int]) -> None:
        fixed = {"ID": IDENTITY, "VERSION": VERSION, "ADDRESS_WIDTH": address_width}
        super().__init__(registers=REGISTERS, address_width=address_width, constants=fixed | constants)


class Converter(Block):
    """Converts a matrix in memory from one storage format to another: a register map, an interrupt, a bus.

    Parameters
    ----------
    data_width : int
        Bits of a bus beat, power of two from 128 to 1024.
    lane_bits : int
        Bits of a beat for each lane, 16 or 32. A lane converts an entry a cycle; there are at most 16.
    address_width : int
        Bits of a byte address, 13 to 64.
    outstanding, burst_beats : int
        Bursts in flight in each direction; beats of the longest one, power of two.
    value : str
        Value type, one of :data:`rtl.regs.map.VALUE_TYPES`.
    style : str
        ``m``: one converter for all conversions; ``b``: one for each, at one register map and memory engine; ``mr``: as ``m``,
        with the adders and dividers of a host that is built along.
    conversions : str
        Those that it is built for, see :func:`rtl.mint.converter.conversions.conversions_named`. All others are refused.
    prefix_sum : str
        Network of the prefix sums, one of :data:`rtl.mint.prefix_sum.FORMS`.
    counters : int
        Counters of the transposition, power of two from 16 to 65536: a pass sorts by log2 of them bits of a row or column number.
    sram_bytes : int
        Bytes of the SRAM in which entries are transposed that fit, power of two from 512 to 2^24.

    Members
    -------
    aclk : In(1), aresetn : In(1)
        Clock of everything; reset, active low, synchronous to ``aclk``.
    irq : Out(1)
        Level; a run has ended.
    s_axil_* : AXI4-Lite subordinate, 32-bit data, 12-bit address.
    m_axi_* : AXI4 manager, ``data_width`` bits of data.
    host_* : In ``mr``, as :class:`rtl.mint.host.host_array.HostCompute`: what the host computes between runs.

    Timing
    ------
    ``docs/blocks/converter.md`` has measured runs; registers as :class:`rtl.regs.axi_lite.RegisterBank`.
    """

    def __init__(
        self,
        *,
        data_width: int,
        address_width: int,
        outstanding: int,
        burst_beats: int,
        value: str,
        style: str = "m",
        conversions: str = "all",
        prefix_sum: str = "work_efficient",
        counters: int = 1024,
        sram_bytes: int = 65536,
        lane_bits: int = 32,
    ) -> None:
        self.core = ConverterCores(
            style=style,
            conversions=conversions_named(conversions),
            beat_bits=data_width,
            address_width=address_width,
            outstanding=outstanding,
            burst_beats=burst_beats,
            value=value,
            form=prefix_sum,
            counters=counters,
            sram_bytes=sram_bytes,
            lane_bits=lane_bits,
        )
        registers = Axi4LiteSignature(data_width=32, address_width=ADDRESS_BITS)
        bus = Axi4Signature(data_width=data_width, address_width=address_width, id_width=self.core.memory.id_width)
        super().__init__(
            {
                "aclk": In(1),
                "aresetn": In(1),
                "irq": Out(1),
                **flat_members("s_axil", registers, manager=False),
                **flat_members("m_axi", bus, manager=True),
                **(flat_members("host", HostCompute(), manager=False) if style == "mr" else {}),
            }
        )

    @property
    def module_name(self) -> str:
        return "converter"

    def build(self, platform: Any) -> Module:
        m = Module()
        core, sizes = self.core, self.core.core
        # `sync` is reset before each run; `registers` only by the pin.
        m.domains.sync = machine_domain = ClockDomain()
        m.domains.registers = registers_domain = ClockDomain()
        m.submodules.register_file = registers = ConverterRegisters(
            address_width=sizes.address_width,
            constants={
                "BEAT_BYTES": sizes.beat_bits // 8,
                "LANES": sizes.lanes,
                "COUNTERS": sizes.counters,
                "SRAM_BYTES": sizes.sram_bytes,
                "VALUE_TYPE": value_code(sizes.value),
            },
        )
        m.submodules.reset_control = reset = ResetControl()
        registers.domain = reset.domain = "registers"
        m.submodules.core = core
        connect_flat(m, self, "s_axil", registers.bus)
        connect_flat(m, self, "m_axi", core.bus)
        if core.style == "mr":
            # Runs do not reset the host.
            m.submodules.host_array = host = HostArray(form=core.form)
            host.domain = "registers"
            connect_flat(m, self, "host", host.compute)
            for name, member in core.host_ports.items():
                inner, outer = getattr(host, name), getattr(core, name)
                m.d.comb += inner.eq(outer) if member.flow is Out else outer.eq(inner)
        beat_place = (sizes.beat_bits // 8 - 1).bit_length()
        m.d.comb += [
            machine_domain.clk.eq(self.aclk),
            registers_domain.clk.eq(self.aclk),
            registers_domain.rst.eq(~self.aresetn),
            machine_domain.rst.eq(~self.aresetn | reset.machine_reset),
            self.irq.eq(registers.irq),
            reset.start.eq(registers.start),
            reset.soft_reset.eq(registers.soft_reset),
            reset.bus_busy.eq(core.bus_busy),
            reset.machine_done.eq(core.done),
            core.start.eq(reset.machine_start),
            core.halt.eq(reset.halt),
            core.settings.eq(registers.settings),
            registers.busy.eq(reset.busy),
            registers.done.eq(reset.done),
            registers.error_code.eq(core.error),
            registers.error_detail.eq(core.detail),
            registers.results.entries.eq(core.entries),
            registers.counters.passes.eq(core.passes),
            registers.counters.cycles.eq(core.cycles),
            registers.counters.read_bytes.eq(core.read_beats << beat_place),
            registers.counters.written_bytes.eq(core.written_beats << beat_place),
        ]
        return m
