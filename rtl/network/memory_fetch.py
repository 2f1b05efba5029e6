"""Fetches lines from memory for the PEs: bumped segments of B, partial and scratch fibers of C."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.arbiter import RoundRobinArbiter
from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.stream import StreamQueue
from ..storage import byte_count
from ..types import fetch_request, fetch_response, long_leaf_lines, memory_burst, record_request

__all__ = ["MemoryFetch", "leaf_carries"]


def leaf_carries(pes: int, radix: int) -> int:
    """Sequences of requests: one of each leaf of each PE."""
    return max(2, pes) * radix


class MemoryFetch(Block):
    """Fetches lines from memory for all PEs: their requests take turns, and lines come back in request order.

    Parameters
    ----------
    pes : int
        Number of PEs.
    radix : int
        Leaves of a job at most.
    lanes : int
        Nonzeros in a line, power of two.
    address_width : int
        Bits of a byte address.
    leaf_lines : int
        Line slots of each leaf in its PE, as :class:`GustavsonPe`: they bound a request's lines.
    pending : int
        Requests that may be under way.
    packed : bool
        Bumped segments lie in memory as packed records: requests say which leaf's lines they follow.

    Members
    -------
    requests : In(stream).array(pes)
        Lines of memory for a leaf of each PE, no more than it has room for.
    responses : Out(fetch_response).array(pes)
        The lines, each to the PE that asked, in the order of its requests. They cannot be refused.
    read_request, read_data : a client port of the memory engine
    event_bumped : Out(1), event_unit : Out(1)
        A line of a bumped segment, of a fiber of C has come.
    idle : Out(1)
        Every request that was taken has been answered.

    Timing
    ------
    One request and one line a cycle.
    """

    def __init__(
        self,
        *,
        pes: int,
        radix: int,
        lanes: int,
        address_width: int,
        leaf_lines: int,
        pending: int,
        packed: bool = False,
    ) -> None:
        check_integer("PEs", pes, 1, 1024)
        check_power_of_two("Merge radix", radix, 2, 256)
        check_power_of_two("Lanes", lanes, 1, 64)
        check_integer("Address width", address_width, 8, 64)
        check_power_of_two("Leaf lines", leaf_lines, 1, 64)
        check_integer("Pending requests", pending, 1, 4096)
        self.pes = pes
        self.radix = radix
        self.lanes = lanes
        self.address_width = address_width
        self.leaf_lines = leaf_lines
        self.pending = pending
        self.carries = carries = leaf_carries(pes, radix) if packed else 1
        super().__init__(
            {
                "requests": In(stream.Signature(fetch_request(radix, address_width, leaf_lines))).array(pes),
                "responses": Out(fetch_response(radix, lanes)).array(pes),
                "read_request": Out(stream.Signature(record_request(address_width, carries))),
                "read_data": In(stream.Signature(64 * lanes)),
                "event_bumped": Out(1),
                "event_unit": Out(1),
                "idle": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {
            "p": self.pes,
            "r": self.radix,
            "l": self.lanes,
            "a": self.address_width,
            "n": self.leaf_lines,
            "d": self.pending,
        } | ({"c": self.carries} if self.carries > 1 else {})

    def build(self, platform: Any) -> Module:
        m = Module()
        shape = fetch_request(self.radix, self.address_width, self.leaf_lines)
        count = range(memory_burst(long_leaf_lines(self.leaf_lines)) + 1)
        owner_shape = data.StructLayout(
            {
                "pe": range(max(2, self.pes)),
                "leaf": range(self.radix),
                "lines": count,
                "unit": 1,
            }
        )
        m.submodules.arbiter = arbiter = RoundRobinArbiter(count=self.pes)
        m.submodules.owners = owners = StreamQueue(shape=owner_shape, depth=self.pending)
        m.submodules.asked = asked = StreamQueue(shape=self.read_request.payload.shape(), depth=2)
        chosen = Signal(shape)
        pe = Signal(range(max(2, self.pes)))
        go = Signal()
        for n in range(self.pes):
            m.d.comb += arbiter.requests[n].eq(self.requests[n].valid)
            m.d.comb += self.requests[n].ready.eq(arbiter.grant[n] & go)
            with m.If(arbiter.grant[n]):
                m.d.comb += [chosen.eq(self.requests[n].payload), pe.eq(n)]
        m.d.comb += [
            go.eq(owners.i.ready & asked.i.ready),
            arbiter.advance.eq(go),
            owners.i.valid.eq(arbiter.grant.any() & asked.i.ready),
            owners.i.payload.pe.eq(pe),
            owners.i.payload.leaf.eq(chosen.leaf),
            owners.i.payload.lines.eq(chosen.lines),
            owners.i.payload.unit.eq(chosen.unit),
            asked.i.valid.eq(arbiter.grant.any() & owners.i.ready),
            asked.i.payload.address.eq(byte_count(chosen.position)),
            asked.i.payload.beats.eq(chosen.lines),
            asked.i.payload.plain.eq(chosen.unit),
            asked.i.payload.follows.eq(chosen.follows),
            self.read_request.valid.eq(asked.o.valid),
            self.read_request.payload.eq(asked.o.payload),
            asked.o.ready.eq(self.read_request.ready),
        ]
        if self.carries > 1:
            m.d.comb += asked.i.payload.carry.eq(Cat(chosen.leaf, pe))
        # Lines go to their owner through a register.
        given = Signal(count)
        owner = owners.o.payload
        came = Signal()
        m.d.comb += [
            self.read_data.ready.eq(owners.o.valid),
            came.eq(self.read_data.valid & owners.o.valid),
            owners.o.ready.eq(came & (given + 1 == owner.lines)),
            self.event_bumped.eq(came & ~owner.unit),
            self.event_unit.eq(came & owner.unit),
            self.idle.eq(owners.level == 0),
        ]
        with m.If(came):
            m.d.sync += given.eq(given + 1)
            with m.If(owners.o.ready):
                m.d.sync += given.eq(0)
        for n in range(self.pes):
            response = self.responses[n]
            m.d.sync += response.valid.eq(came & (owner.pe == n))
            with m.If(came & (owner.pe == n)):
                m.d.sync += [response.leaf.eq(owner.leaf), response.line.eq(self.read_data.payload)]
        return m
