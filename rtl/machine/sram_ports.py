"""Who reads and writes the SRAM: the ports of the units, and the banked SRAM that serves them."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect

from ..buffer.banked_sram import BankedSram
from ..engine.signature import Engine
from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..types import sram_write

__all__ = ["LoadSwitch", "banked_sram", "connect_sram"]


class LoadSwitch(Block):
    """Joins the writes of accessors A and B, of which one loads at a time. A's go first.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two from 1 to 64.
    line_address_width : int
        Bits of an SRAM line address, 1 to 32.

    Members
    -------
    a, b : In(stream)
        Writes of a unit each.
    write : Out(stream)
        A's write where there is one, else B's.

    Timing
    ------
    Combinational; one write a cycle.
    """

    latency = 0

    def __init__(self, *, lanes: int, line_address_width: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 32)
        port = stream.Signature(sram_write(lanes, line_address_width))
        super().__init__({"a": In(port), "b": In(port), "write": Out(port)})

    def build(self, platform: Any) -> Module:
        m = Module()
        for one, chosen in ((self.a, self.a.valid), (self.b, ~self.a.valid)):
            with m.If(chosen):
                m.d.comb += [
                    self.write.valid.eq(one.valid),
                    self.write.payload.eq(one.payload),
                    one.ready.eq(self.write.ready),
                ]
        return m


def banked_sram(tile_engine: Engine, *, lines: int, banks: int) -> BankedSram:
    """An SRAM with ports for the engine and the accessors."""
    return BankedSram(
        lines=lines,
        banks=banks,
        lanes=tile_engine.lanes,
        read_ports=tile_engine.sram_reads + 2,
        write_ports=4 + tile_engine.SRAM_WRITES,
        priority=tile_engine.sram_priority,
    )


def connect_sram(m: Module, sram: BankedSram, tile_engine: Engine, a: Any, b: Any, c: Any) -> None:
    """Joins units and SRAM: the engine, then accessors C and A read; loads, C and the engine write."""
    loads = []
    for n in range(2):
        load = LoadSwitch(lanes=tile_engine.lanes, line_address_width=tile_engine.line_address_width)
        m.submodules[f"load_switch{n}"] = load
        connect(m, a.sram_write[n], load.a)
        connect(m, b.sram_write[n], load.b)
        loads.append(load.write)
    reading = [(tile_engine.sram_request[n], tile_engine.sram_response[n]) for n in range(tile_engine.sram_reads)]
    reading += [(unit.sram_request, unit.sram_response) for unit in (c, a)]
    for n, (request, response) in enumerate(reading):
        connect(m, request, sram.read_request[n])
        m.d.comb += response.eq(sram.read_response[n])
    for n, write in enumerate((*loads, *c.sram_write, *tile_engine.sram_write)):
        connect(m, write, sram.write[n])
