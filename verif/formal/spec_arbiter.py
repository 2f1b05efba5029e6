"""The round-robin arbiter: one grant at most, only to a requester, and no requester waits for long."""

from typing import Any

from amaranth.hdl import Assert, Cover, Module, Mux, Signal

from .spec import Spec, fixed_value, free_inputs, implies, upto

__all__ = ["ArbiterContract"]


class ArbiterContract(Spec):
    """Requests may rise and fall freely, and ``advance`` may come in any cycle.

    One requester, any of them, is watched: while it keeps asking, each of the others is granted at most once, so that it
    waits for at most ``count - 1`` used grants.
    """

    def __init__(self, arbiter: Any) -> None:
        super().__init__()
        self.arbiter = arbiter

    def claims(self, m: Module) -> None:
        m.submodules.arbiter = arbiter = self.arbiter
        free_inputs(m, arbiter)
        count = arbiter.count
        watched = fixed_value(m, range(count), "watched")
        asks = arbiter.requests.bit_select(watched, 1)
        granted = arbiter.grant.bit_select(watched, 1)
        passed_over = Signal(range(count + 1))
        served = Signal(count)  # requesters granted since the watched one began to request
        with m.If(~asks | granted & arbiter.advance):
            m.d.sync += [passed_over.eq(0), served.eq(0)]
        with m.Elif(arbiter.advance):
            m.d.sync += [passed_over.eq(passed_over + (passed_over != count)), served.eq(served | arbiter.grant)]
        within = upto(watched, 0, count - 1)
        m.d.comb += [
            Assert((arbiter.grant & (arbiter.grant - 1)[:count]) == 0, "at most one is granted"),
            Assert((arbiter.grant & ~arbiter.requests) == 0, "only who asks is granted"),
            Assert(implies(arbiter.requests.any(), arbiter.grant.any()), "somebody is granted when anybody asks"),
            Assert(implies(within, passed_over <= count - 1), "no more than count - 1 others go first"),
            Assert(
                implies(within & asks & ~granted & arbiter.advance, (served & arbiter.grant) == 0),
                "nobody goes twice before the watched one",
            ),
            Cover(within & (passed_over == count - 1) & granted),
            Cover(Mux(watched == count - 1, granted & arbiter.advance, 0)),
        ]
