"""A bus shown as single ports: each carries its own signal, in its own direction."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib.wiring import Component, Out
from amaranth.sim import Simulator

from rtl.memory.axi4 import Axi4Signature, connect_flat, flat_members

BUS = Axi4Signature(data_width=32, address_width=16, id_width=3)


class Inner(Component):
    bus: Out(BUS)

    def elaborate(self, platform: Any) -> Module:
        return Module()


class Shown(Component):
    def __init__(self) -> None:
        self.inner = Inner()
        super().__init__(flat_members("m_axi", BUS, manager=True))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.inner = self.inner
        connect_flat(m, self, "m_axi", self.inner.bus)
        return m


def test_every_signal_passes() -> None:
    dut = Shown()

    async def test(ctx: Any) -> None:
        for name, member in BUS.members.items():
            inside, outside = getattr(dut.inner.bus, name), getattr(dut, f"m_axi_{name}")
            source, target = (inside, outside) if member.flow is Out else (outside, inside)
            assert ctx.get(target) == 0
            ctx.set(source, 1)
            assert ctx.get(target) == 1, name

    sim = Simulator(dut)
    sim.add_testbench(test)
    sim.run()
