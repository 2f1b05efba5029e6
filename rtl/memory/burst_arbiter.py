"""Joins the bursts of several clients, in two steps."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, ShapeLike, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.arbiter import RoundRobinArbiter
from ..lib.block import Block
from ..lib.check import check_integer
from ..lib.onehot import onehot_index, onehot_select
from ..lib.stream import StreamRegister, StreamSkid

__all__ = ["GROUP", "BurstArbiter", "clients_burst"]

GROUP = 5  # most clients that one arbiter chooses among


def clients_burst(burst: ShapeLike, clients: int) -> data.StructLayout:
    """A burst and the number of the client whose it is."""
    return data.StructLayout({"burst": burst, "client": range(max(2, clients))})


class BurstArbiter(Block):
    """Chooses the next burst: clients take turns in groups of up to ``GROUP`` neighbours, and the groups take turns.

    Each group has registers for the bursts that it has chosen. So neither choice is among many, and no path leads from
    ``chosen`` to a client. A client that keeps asking waits for at most ``GROUP`` times the number of groups bursts of
    others, and for those in its group's registers. A client alone has the registers without a choice.

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
    Two cycles; one burst a cycle, also of one client alone.
    """

    latency = 2

    def __init__(self, *, burst: ShapeLike, clients: int) -> None:
        check_integer("Clients", clients, 1, 1 << 16)
        self.burst = burst
        self.clients = clients
        self.shape = clients_burst(burst, clients)
        super().__init__(
            {"bursts": In(stream.Signature(burst)).array(clients), "chosen": Out(stream.Signature(self.shape))}
        )

    def parameters(self) -> dict[str, Any]:
        return {"n": self.clients, "w": self.shape.size}

    def build(self, platform: Any) -> Module:
        m = Module()
        if self.clients == 1:
            first, held = self._registers(m, "group0", self.burst)
            connect(m, flipped(self.bursts[0]), first)
            m.d.comb += [
                self.chosen.valid.eq(held.valid),
                self.chosen.payload.burst.eq(held.payload),
                held.ready.eq(self.chosen.ready),
            ]
            return m
        count = -(-self.clients // GROUP)
        members = [range(n * self.clients // count, (n + 1) * self.clients // count) for n in range(count)]
        groups = []
        for n, numbers in enumerate(members):
            arbiter = RoundRobinArbiter(count=len(numbers))
            m.submodules[f"arbiter{n}"] = arbiter
            group, held = self._registers(m, f"group{n}", self.shape)
            streams = [self.bursts[client] for client in numbers]
            client = Signal(range(max(2, self.clients)), name=f"client{n}")
            for k, one in enumerate(streams):
                m.d.comb += one.ready.eq(arbiter.grant[k] & group.ready)
            asked = Cat(one.valid for one in streams)
            # Chosen by number: with a one-hot choice tools copy wide gates into every bit, twice the cells.
            number = onehot_index(arbiter.grant)
            m.d.comb += [
                arbiter.requests.eq(asked),
                client.eq(number + numbers.start),
                arbiter.advance.eq(group.ready),
                group.valid.eq(asked.any()),
                group.payload.burst.eq(Array(one.payload.as_value() for one in streams)[number]),
                group.payload.client.eq(client),
            ]
            groups.append(held)
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

    @staticmethod
    def _registers(m: Module, name: str, shape: ShapeLike) -> tuple[Any, Any]:
        """A register that takes bursts, and one behind it that cuts the path back: the first's input, the second's output."""
        m.submodules[name] = first = StreamRegister(shape=shape)
        m.submodules[f"{name}_skid"] = second = StreamSkid(shape=shape)
        connect(m, first.o, second.i)
        return first.i, second.o
