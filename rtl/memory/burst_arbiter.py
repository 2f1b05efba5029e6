"""Joins the bursts of several clients, in two steps."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, ShapeLike, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.arbiter import RoundRobinArbiter
from ..lib.block import Block
from ..lib.check import check_integer
from ..lib.onehot import onehot_index, onehot_select
from ..lib.stream import StreamRegister

__all__ = ["GROUP", "BurstArbiter", "clients_burst"]

GROUP = 5  # most clients that one arbiter chooses among


def clients_burst(burst: ShapeLike, clients: int) -> data.StructLayout:
    """A burst and the number of the client whose it is."""
    return data.StructLayout({"burst": burst, "client": range(max(2, clients))})


class BurstArbiter(Block):
    """Chooses the next burst: clients take turns in groups of up to ``GROUP`` neighbours, and the groups take turns.

    Each group has a register for the burst it has chosen, so that neither choice is among many. A client that keeps
    asking waits for at most ``GROUP`` times the number of groups bursts of others. A client alone
    has the register without a choice.

    Parameters
    ----------
    burst : ShapeLike
        What a burst is.
    clients : int

    Members
    -------
    bursts : In(stream(burst)).array(clients)
    chosen : Out(stream(clients_burst))
        ``payload`` may change while ``ready`` is low.

    Timing
    ------
    One cycle; one burst a cycle, also of one client alone.
    """

    latency = 1

    def __init__(self, *, burst: ShapeLike, clients: int) -> None:
        self.clients = check_integer("Clients", clients, 1, 1 << 16)
        self.burst = burst
        self.shape = clients_burst(burst, clients)
        super().__init__(
            {"bursts": In(stream.Signature(burst)).array(clients), "chosen": Out(stream.Signature(self.shape))}
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        if self.clients == 1:
            m.submodules.register = register = StreamRegister(shape=self.burst)
            (client,) = self.bursts
            m.d.comb += [
                client.ready.eq(register.i.ready),
                register.i.valid.eq(client.valid),
                register.i.payload.eq(client.payload),
                self.chosen.valid.eq(register.o.valid),
                self.chosen.payload.burst.eq(register.o.payload),
                register.o.ready.eq(self.chosen.ready),
            ]
            return m
        count = -(-self.clients // GROUP)
        members = [range(n * self.clients // count, (n + 1) * self.clients // count) for n in range(count)]
        groups = []
        for n, numbers in enumerate(members):
            arbiter = RoundRobinArbiter(count=len(numbers))
            group = StreamRegister(shape=self.shape)
            m.submodules[f"arbiter{n}"] = arbiter
            m.submodules[f"group{n}"] = group
            streams = [self.bursts[client] for client in numbers]
            client = Signal(range(max(2, self.clients)), name=f"client{n}")
            for k, one in enumerate(streams):
                m.d.comb += one.ready.eq(arbiter.grant[k] & group.i.ready)
            asked = Cat(one.valid for one in streams)
            # Chosen by number: with a one-hot choice tools copy wide gates into every bit, twice the cells.
            number = onehot_index(arbiter.grant)
            m.d.comb += [
                arbiter.requests.eq(asked),
                client.eq(number + numbers.start),
                arbiter.advance.eq(group.i.ready),
                group.i.valid.eq(asked.any()),
                group.i.payload.burst.eq(Array(one.payload.as_value() for one in streams)[number]),
                group.i.payload.client.eq(client),
            ]
            groups.append(group.o)
        m.submodules.arbiter = last = RoundRobinArbiter(count=count)
        for n, one in enumerate(groups):
            m.d.comb += one.ready.eq(last.grant[n] & self.chosen.ready)
        asked = Cat(one.valid for one in groups)
        m.d.comb += [
            last.requests.eq(asked),
            last.advance.eq(self.chosen.ready),
            self.chosen.valid.eq(asked.any()),
            self.chosen.payload.eq(onehot_select(last.grant, [one.payload for one in groups])),
        ]
        return m
