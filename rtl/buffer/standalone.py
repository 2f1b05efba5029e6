"""A buffer controller together with a memory of its own."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import Out, connect, flipped

from ..lib.block import Block
from ..lib.sram import SramBank

__all__ = ["StandaloneBuffer"]


class StandaloneBuffer(Block):
    """Base of the buffers that bring their own memory: the controller's ports without ``base`` and the memory side.

    Parameters
    ----------
    control : Block
        The controller; its attributes ``width`` and ``entries`` size the memory, its members ``base``, ``memory_read``,
        ``memory_response`` and ``memory_write`` stay inside.

    Timing
    ------
    ``latency`` cycles from a read to its answer; that of the controller with the memory's.
    """

    def __init__(self, control: Block) -> None:
        if not isinstance(control, Block):
            raise TypeError(f"A buffer's controller must be a block, not {control!r}")
        self.control = control
        members = dict(control.signature.members)
        super().__init__({name: members[name] for name in members if name != "base" and not name.startswith("memory_")})

    def parameters(self) -> dict[str, Any]:
        return self.control.parameters()

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.control = control = self.control
        m.submodules.memory = memory = SramBank(depth=control.entries, width=control.width)
        answering = Signal()
        m.d.sync += answering.eq(control.memory_read.valid)
        m.d.comb += [
            control.memory_read.ready.eq(1),
            memory.read_enable.eq(control.memory_read.valid),
            memory.read_address.eq(control.memory_read.payload),
            control.memory_response.valid.eq(answering),
            control.memory_response.data.eq(memory.read_data),
            control.memory_write.ready.eq(1),
            memory.write_mask.eq(control.memory_write.valid),
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
