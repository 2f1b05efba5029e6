"""Round-robin arbiter."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from .block import Block
from .onehot import above_lowest, lowest_set

__all__ = ["RoundRobinArbiter"]


class RoundRobinArbiter(Block):
    """Grants one of several requesters a cycle. A requester that keeps requesting waits for at most ``count - 1`` other grants.

    Parameters
    ----------
    count : int
        Requesters, at least 1.

    Members
    -------
    requests : In(count)
        One bit per requester; may rise and fall freely.
    advance : In(1)
        High when this cycle's grant is used: the next search starts after the granted requester.
    grant : Out(count)
        One-hot, combinational from ``requests``; zero without a request. Does not depend on ``advance``.

    Timing
    ------
    Combinational; one grant a cycle.
    """

    def __init__(self, *, count: int) -> None:
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"Arbiter count must be a positive integer, not {count!r}")
        self.count = count
        super().__init__({"requests": In(count), "advance": In(1), "grant": Out(count)})

    def build(self, platform: Any) -> Module:
        m = Module()
        if self.count == 1:
            m.d.comb += self.grant.eq(self.requests)
            return m

        above = Signal(self.count)  # requesters above the one granted last: they come first
        preferred = Signal(self.count)
        m.d.comb += preferred.eq(self.requests & above)
        m.d.comb += self.grant.eq(Mux(preferred.any(), lowest_set(preferred), lowest_set(self.requests)))
        with m.If(self.advance & self.requests.any()):
            m.d.sync += above.eq(above_lowest(self.grant))
        return m
