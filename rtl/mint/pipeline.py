"""What blocks that take one vector a cycle share: two streams and one clock enable for all stages between them."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, ShapeLike, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Member, Out

from ..lib.block import Block

__all__ = ["StreamPipeline"]


class StreamPipeline(Block):
    """A stream in, a stream out and ``latency`` registers between them, which move together or stand still together.

    Subclasses say their latency and what the stages compute. The last stage is the register of ``o.payload``.

    Members
    -------
    i : In(stream), o : Out(stream)
        ``o.valid`` and ``o.payload`` come straight from registers. ``i.ready`` follows ``o.ready`` at once: everything moves
        unless something at the output waits. A :class:`rtl.lib.stream.StreamSkid` cuts that path.

    Timing
    ------
    ``latency`` cycles; one item a cycle.
    """

    def __init__(self, *, taken: ShapeLike, given: ShapeLike, others: Mapping[str, Member] | None = None) -> None:
        """``others``: members beside the two streams."""
        super().__init__({"i": In(stream.Signature(taken)), "o": Out(stream.Signature(given)), **(others or {})})

    @property
    def latency(self) -> int:
        """Cycles in which the stages move, from an item at ``i`` to its result at ``o``; at least 1."""
        raise TypeError(f"{type(self).__name__} does not state its latency")

    def _handshakes(self, m: Module) -> tuple[Signal, Signal]:
        """Drives ``i.ready`` and ``o.valid``; returns the clock enable, and whether an item is before the last stage."""
        advance = Signal()
        m.d.comb += [advance.eq(self.o.ready | ~self.o.valid), self.i.ready.eq(advance)]
        arrives = self.i.valid
        for stage in range(1, self.latency):
            valid = Signal(name=f"valid{stage}")
            with m.If(advance):
                m.d.sync += valid.eq(arrives)
            arrives = valid
        with m.If(advance):
            m.d.sync += self.o.valid.eq(arrives)
        return advance, arrives

    def _register(self, m: Module, advance: Signal, value: Any, name: str) -> Any:
        """``value`` delayed by one stage; not reset, because the valid bits guard it."""
        register = Signal(value.shape(), name=name, reset_less=True)
        with m.If(advance):
            m.d.sync += register.eq(value)
        return register
