"""A memory that makes a buffer wait, for the proofs of buffer controllers."""

from typing import Any

from amaranth.hdl import Assume, Module, Signal
from amaranth.lib.wiring import Component, Out, connect, flipped

from rtl.lib.sram import SramBank

from .spec import any_value, implies

__all__ = ["OnSlowMemory"]


class OnSlowMemory(Component):
    """A buffer controller with a memory that refuses reads and writes as it likes, but not for long.

    Parameters
    ----------
    control : BuffetControl or TailorsControl
        Its members without ``base`` and the memory side are this component's.
    refusals : int
        Cycles in a row, at most, in which a request is not taken.
    """

    def __init__(self, control: Any, *, refusals: int) -> None:
        self.control = control
        self.refusals = refusals
        members = dict(control.signature.members)
        super().__init__({name: members[name] for name in members if name != "base" and not name.startswith("memory_")})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.control = control = self.control
        m.submodules.memory = memory = SramBank(depth=1 << control.address_width, width=control.width)
        for name, port in (("read", control.memory_read), ("write", control.memory_write)):
            refused = Signal(range(self.refusals + 2), name=f"{name}_refused")
            m.d.comb += [
                port.ready.eq(any_value(m, 1, f"{name}_granted")),
                Assume(implies(refused == self.refusals, port.ready)),
            ]
            with m.If(port.valid & ~port.ready):
                m.d.sync += refused.eq(refused + 1)
            with m.Else():
                m.d.sync += refused.eq(0)
        answering = Signal()
        m.d.sync += answering.eq(memory.read_enable)
        m.d.comb += [
            memory.read_enable.eq(control.memory_read.valid & control.memory_read.ready),
            memory.read_address.eq(control.memory_read.payload),
            control.memory_response.valid.eq(answering),
            control.memory_response.data.eq(memory.read_data),
            memory.write_mask.eq(control.memory_write.valid & control.memory_write.ready),
            memory.write_address.eq(control.memory_write.payload.address),
            memory.write_data.eq(control.memory_write.payload.data),
        ]
        for name, member in self.signature.members.items():
            outer, inner = getattr(self, name), getattr(control, name)
            if member.is_signature:
                connect(m, flipped(outer), inner)
            else:
                m.d.comb += outer.eq(inner) if member.flow is Out else inner.eq(outer)
        return m
