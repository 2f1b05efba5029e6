"""Fetches lines for the PEs: bumped segments of B, partial and scratch fibers of C."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from ..leaf_lines import long_leaf_lines, memory_burst
from ..lib.arbiter import RoundRobinArbiter
from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.onehot import onehot_index, onehot_select
from ..lib.passed import passed
from ..lib.signals import signals
from ..lib.stream import StreamQueue, StreamRegister
from ..storage import byte_count
from ..types import fetch_request, fetch_response, record_request, scratch_places, scratch_position, sram_response
from .kept_lines import LINES, RUNS, KeptLines

__all__ = ["MemoryFetch", "leaf_carries"]


def leaf_carries(pes: int, radix: int) -> int:
    """Sequences of requests: one of each leaf of each PE."""
    return max(2, pes) * radix


class MemoryFetch(Block):
    """Fetches lines for all PEs: their requests take turns, and lines come back in request order.

    Lines of scratch fibers lie where ``places`` says: a request for the last ones of a slot that stay on chip and the first
    ones that do not is two.

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
    line_address_width, scratch_slots : int
        Bits of an SRAM line address; slots of scratch memory, power of two.
    kept_runs, kept_lines : int
        Of lines that stay on chip: runs that may wait, lines that may be on their way or wait (:class:`KeptLines`).
    packed : bool
        Bumped segments lie in memory as packed records: requests say which leaf's lines they follow.

    Members
    -------
    requests : In(stream).array(pes)
        Lines for a leaf of each PE, no more than it has room for.
    places : In(scratch_places)
        Where scratch fibers lie: of a slot from the first request for one of its row on to the last one. The region and its
        slots' size are known two cycles for each slot before.
    sram_request, sram_response
        A read port of the banked SRAM.
    responses : Out(fetch_response).array(pes)
        The lines, each to the PE that asked, in the order of its requests. They cannot be refused.
    read_request, read_data : a client port of the memory engine
    event_bumped : Out(1), event_unit : Out(1), event_scratch : Out(1)
        A line of a bumped segment, of a fiber of C has come from memory; of the latter one of a scratch fiber.
    idle : Out(1)
        Every request that was taken has been answered.

    Timing
    ------
    One request and one line a cycle; for lines of scratch fibers a request every second cycle, a cycle later than others.
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
        line_address_width: int,
        scratch_slots: int,
        kept_runs: int = RUNS,
        kept_lines: int = LINES,
        packed: bool = False,
    ) -> None:
        self.pes = check_integer("PEs", pes, 1, 1024)
        self.radix = check_power_of_two("Merge radix", radix, 2, 256)
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.leaf_lines = check_power_of_two("Leaf lines", leaf_lines, 1, 64)
        self.pending = check_integer("Pending requests", pending, 1, 4096)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 30)
        self.scratch_slots = check_power_of_two("Scratch slots", scratch_slots, 1, 1024)
        self.kept_runs = check_integer("Kept runs", kept_runs, 1, 1 << 10)
        self.kept_lines = check_integer("Kept lines", kept_lines, 1, 1 << 10)
        self.packed = bool(packed)
        self.carries = carries = leaf_carries(pes, radix) if packed else 1
        super().__init__(
            {
                "requests": In(stream.Signature(fetch_request(radix, address_width, leaf_lines))).array(pes),
                "responses": Out(fetch_response(radix, lanes)).array(pes),
                "places": In(scratch_places(address_width, line_address_width, scratch_slots)),
                "sram_request": Out(stream.Signature(line_address_width)),
                "sram_response": In(sram_response(lanes)),
                "read_request": Out(stream.Signature(record_request(address_width, carries))),
                "read_data": In(stream.Signature(64 * lanes)),
                "event_bumped": Out(1),
                "event_unit": Out(1),
                "event_scratch": Out(1),
                "idle": Out(1),
            }
        )

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
                "scratch": 1,
                "kept": 1,
            }
        )
        grant_shape = data.StructLayout({"pe": range(max(2, self.pes)), "request": shape})
        m.submodules.arbiter = arbiter = RoundRobinArbiter(count=self.pes)
        # What is worked out of a request begins at a register: its place is an adder away from the PE's own.
        m.submodules.grants = grants = StreamQueue(shape=grant_shape, depth=2)
        m.submodules.owners = owners = StreamQueue(shape=owner_shape, depth=self.pending)
        # Out of the queue's RAM into a register: no line comes so soon after its request that a cycle matters.
        m.submodules.next_owner = next_owner = StreamRegister(shape=owner_shape)
        connect(m, owners.o, next_owner.i)
        m.submodules.asked = asked = StreamQueue(shape=self.read_request.payload.shape(), depth=2)
        m.submodules.kept = kept = KeptLines(
            lanes=self.lanes,
            line_address_width=self.line_address_width,
            most=memory_burst(long_leaf_lines(self.leaf_lines)),
            runs=self.kept_runs,
            pending=self.kept_lines,
        )
        connect(m, kept.sram_request, flipped(self.sram_request))
        asking = Cat(request.valid for request in self.requests)
        m.d.comb += [
            arbiter.requests.eq(asking),
            grants.i.valid.eq(asking.any()),
            arbiter.advance.eq(grants.i.ready),
            grants.i.payload.request.eq(onehot_select(arbiter.grant, [request.payload for request in self.requests])),
            grants.i.payload.pe.eq(onehot_index(arbiter.grant)),
        ]
        for n in range(self.pes):
            m.d.comb += self.requests[n].ready.eq(arbiter.grant[n] & grants.i.ready)
        chosen, pe = grants.o.payload.request, grants.o.payload.pe
        go = Signal()
        # A request that is served in two parts waits for the second one.
        second = Signal()

        # Of a scratch fiber: which lines stay on chip, and where the others lie in memory.
        place = Signal(scratch_position(self.address_width, self.scratch_slots))
        lane_bits = (self.lanes - 1).bit_length()
        first = place.nonzero[lane_bits:]
        found = Signal()  # what follows is that of the request at the output, which was there a cycle ago
        near, crosses = signals("near crosses")
        left = Signal(chosen.lines.shape())
        line = Signal(self.line_address_width + 1)
        base = Signal(self.places.region.shape())
        m.d.comb += place.eq(chosen.position)
        m.d.sync += [
            found.eq(grants.o.valid & ~grants.o.ready),
            near.eq(first < self.places.kept),
            crosses.eq(first[: len(self.places.kept)] + chosen.lines > self.places.kept),
            left.eq(self.places.kept - first),
            line.eq(self.places.begins[place.row] + first),
            base.eq(_slot_begins(m, self.places, self.lanes, self.scratch_slots, place.row)),
        ]
        able, on_chip, splits = signals("able on_chip splits")
        m.d.comb += [
            able.eq(grants.o.valid & (found | ~chosen.scratch)),
            on_chip.eq(chosen.scratch & near & ~second),
            splits.eq(on_chip & crosses),
        ]
        lines = Mux(splits, left, Mux(second, (chosen.lines - left)[: len(left)], chosen.lines))
        offset = Mux(second, (self.places.kept << lane_bits)[: len(place.nonzero)], place.nonzero)
        position = Mux(chosen.scratch, base + offset, chosen.position)
        m.d.comb += [
            go.eq(owners.i.ready & asked.i.ready & kept.requests.ready),
            grants.o.ready.eq(go & (found | ~chosen.scratch) & ~splits),
            owners.i.valid.eq(able & asked.i.ready & kept.requests.ready),
            owners.i.payload.pe.eq(pe),
            owners.i.payload.lines.eq(lines),
            *passed(chosen, owners.i.payload, "leaf unit scratch"),
            owners.i.payload.kept.eq(on_chip),
            asked.i.valid.eq(able & owners.i.ready & kept.requests.ready & ~on_chip),
            asked.i.payload.address.eq(byte_count(position)),
            asked.i.payload.beats.eq(lines),
            asked.i.payload.plain.eq(chosen.unit),
            asked.i.payload.follows.eq(chosen.follows),
            kept.requests.valid.eq(able & owners.i.ready & asked.i.ready & on_chip),
            kept.requests.payload.line.eq(line),
            kept.requests.payload.count.eq(lines),
            *passed(self.places, kept, "base lines"),
            *passed(self, kept, "sram_response"),
            self.read_request.valid.eq(asked.o.valid),
            self.read_request.payload.eq(asked.o.payload),
            asked.o.ready.eq(self.read_request.ready),
        ]
        with m.If(able & go):
            m.d.sync += second.eq(splits)
        if self.carries > 1:
            m.d.comb += asked.i.payload.carry.eq(Cat(chosen.leaf, pe))
        self._answer(m, next_owner, kept)
        m.d.comb += self.idle.eq(~grants.o.valid & (owners.level == 0) & ~next_owner.o.valid)
        return m

    def _answer(self, m: Module, owners: StreamRegister, kept: KeptLines) -> None:
        """Lines go to their owner, who is at the output, through a register."""
        owner = owners.o.payload
        given = Signal.like(owner.lines)
        came = Signal()
        m.d.comb += [
            self.read_data.ready.eq(owners.o.valid & ~owner.kept),
            kept.line.ready.eq(owners.o.valid & owner.kept),
            came.eq(owners.o.valid & Mux(owner.kept, kept.line.valid, self.read_data.valid)),
            owners.o.ready.eq(came & (given + 1 == owner.lines)),
            self.event_bumped.eq(came & ~owner.unit),
            self.event_unit.eq(came & owner.unit & ~owner.kept),
            self.event_scratch.eq(came & owner.scratch & ~owner.kept),
        ]
        with m.If(came):
            m.d.sync += given.eq(given + 1)
            with m.If(owners.o.ready):
                m.d.sync += given.eq(0)
        came_line = Mux(owner.kept, kept.line.payload.as_value(), self.read_data.payload)
        for n in range(self.pes):
            response = self.responses[n]
            m.d.sync += response.valid.eq(came & (owner.pe == n))
            with m.If(came & (owner.pe == n)):
                m.d.sync += [response.leaf.eq(owner.leaf), response.line.eq(came_line)]


def _slot_begins(m: Module, places: Any, lanes: int, count: int, row: Value) -> Value:
    """Where a slot of scratch memory begins, as a position; known two cycles for each slot after the region is."""
    m.submodules.bases = bases = Memory(shape=places.region.shape(), depth=count, init=[])
    write = bases.write_port()
    read = bases.read_port(domain="comb")
    m.d.comb += [write.en.eq(1), read.addr.eq(row)]
    with m.If(write.addr == count - 1):
        m.d.sync += write.data.eq(places.region)
    with m.Else():
        m.d.sync += write.data.eq(write.data + places.slot_lines * lanes)
    m.d.sync += write.addr.eq(write.addr + 1)
    return read.data
