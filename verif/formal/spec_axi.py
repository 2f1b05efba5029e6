"""The memory engine's two halves as AXI4 managers: the rules of the bus, and every beat to the client that it is for."""

from typing import Any

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Module, Mux, Signal, Value

from .models import ModelQueue, WatchedItem
from .spec import Spec, any_value, free_inputs, implies, obey_streams

__all__ = ["ReadManager", "WriteManager"]

PAGE_BYTES = 4096
SLVERR_BIT = 1  # set in SLVERR and DECERR, not in OKAY
REQUEST_BITS = 3  # of the beats of a request, where requests are followed
LINE_BITS = 4  # of the bus line that a request begins at, there
CARRY_BIT = 32  # of an address: requests that begin below and end above are met where addresses reach so far


def keeps_offer(m: Module, name: str, valid: Value, ready: Value, payload: Value) -> None:
    """VALID, once high, stays high and its payload as it is until READY."""
    offered, before = Signal(name=f"{name}_offered"), Signal(len(payload), name=f"{name}_before")
    m.d.sync += [offered.eq(valid & ~ready), before.eq(payload)]
    m.d.comb += Assert(implies(offered, valid & (payload == before)), f"{name} keeps what it offers")


def legal_command(m: Module, block: Any, channel: str, clients: int) -> tuple[Value, Value, Value, Value]:
    """The rules of an address channel; returns (handshake, id, address, len)."""
    bus = block.bus
    valid, ready, ident, address, length, size, burst = (
        Value.cast(getattr(bus, channel + name)) for name in ("valid", "ready", "id", "addr", "len", "size", "burst")
    )
    others = Cat(getattr(bus, channel + "cache"), getattr(bus, channel + "prot"))
    line_bytes = block.data_width // 8
    keeps_offer(m, channel, valid, ready, Cat(ident, address, length, size, burst, others))
    last = (address % PAGE_BYTES) + (length + 1) * line_bytes
    m.d.comb += [
        Assert(implies(valid, last <= PAGE_BYTES), "no burst crosses 4 KiB"),
        Assert(implies(valid, length < block.burst_beats), "no burst is longer than was asked for"),
        Assert(implies(valid, size == line_bytes.bit_length() - 1), "beats are as wide as the bus"),
        Assert(implies(valid, burst == 1), "addresses rise"),
        Assert(implies(valid, address % line_bytes == 0), "addresses are aligned"),
        Assert(implies(valid, ident < clients), "the identifier is a client's"),
    ]
    return valid & ready, ident, address, length


def one_bit_data(m: Module, value: Value) -> None:
    """Lets the lowest bit of a data input be anything and ties the others to 0: what happens to one happens to all."""
    m.d.comb += value.eq(AnySeq(1))


def small_requests(m: Module, block: Any, *, anywhere: bool) -> None:
    """Requests of fewer than ``2**REQUEST_BITS`` beats, from any of the first ``2**LINE_BITS`` bus lines, or from any line."""
    shift = (block.data_width // 8).bit_length() - 1
    for request in block.request:
        m.d.comb += [
            request.valid.eq(AnySeq(1)),
            request.payload.address.eq(AnySeq(block.address_width - shift if anywhere else LINE_BITS) << shift),
            request.payload.beats.eq(AnySeq(REQUEST_BITS)),
        ]


class Outstanding:
    """Bursts given to the bus and not yet ended, of one identifier: their lengths and addresses, oldest first."""

    def __init__(
        self, m: Module, name: str, depth: int, push: Value, length: Value, address: Value, pop: Value
    ) -> None:
        item = Cat(length, address)
        self.queue = ModelQueue(m, name, width=len(item), depth=depth, push=push, item=item, pop=pop)
        self.any = self.queue.level != 0
        self.length = self.queue.head[: len(length)]
        self.address = self.queue.head[len(length) :]


def total(levels: list[Any]) -> Value:
    result: Value = Const(0, 1)
    for level in levels:
        result = result + level
    return result


class FollowsRequests:
    """The bursts of one client are its requests cut in pieces: in order, without gaps, nothing more, nothing less.

    One requested beat, any of them, is watched: the burst that asks for it asks for its address.
    """

    def __init__(self, m: Module, block: Any, client: int, issued: Value, address: Value, length: Value) -> None:
        request = block.request[client].payload
        shift = (block.data_width // 8).bit_length() - 1
        accepted = block.request[client].valid & block.request[client].ready & (request.beats != 0)
        beats = Mux(issued, length + 1, 0)
        # Beats requested and not asked for: of one request being cut and of the bursts behind it.
        waiting = Signal(7, name=f"client{client}_waiting")
        m.d.sync += waiting.eq(waiting + Mux(accepted, request.beats[:REQUEST_BITS], 0) - beats)
        chosen, gone = Signal(name=f"client{client}_chosen"), Signal(name=f"client{client}_gone")
        before = Signal(8, name=f"client{client}_before")
        line = Signal(len(address) - shift, name=f"client{client}_line")
        offset = any_value(m, REQUEST_BITS, f"client{client}_offset")
        asked_for = chosen & ~gone & (before < beats)
        begin = Signal(len(address), name=f"client{client}_begin")  # of the request
        with m.If(accepted & ~chosen & AnySeq(1) & (offset < request.beats)):
            m.d.sync += [
                chosen.eq(1),
                before.eq(waiting - beats + offset),
                line.eq(request.address[shift:] + offset),
                begin.eq(request.address),
            ]
        with m.Elif(chosen & ~gone):
            m.d.sync += [gone.eq(asked_for), before.eq(before - beats)]
        m.d.comb += [
            Assert(implies(issued, beats <= waiting), "bursts ask for no more than the requests"),
            Assert(~waiting[-1], "requests wait for those before them"),
            Assert(implies(asked_for, ((address >> shift) + before)[: len(line)] == line), "every beat at its address"),
        ]
        if len(address) > CARRY_BIT:
            m.d.comb += Cover(asked_for & (address[CARRY_BIT:] != begin[CARRY_BIT:]))
        self.waits = waiting != 0


class ReadManager(Spec):
    """The read engine on a bus whose subordinate keeps the rules and answers in any order of identifiers.

    Parameters
    ----------
    memory_engine : ReadEngine
        Small.
    follow : int, optional
        Client of which is said also that its bursts are its requests cut in pieces and its data the beats with its
        identifier, in order. Then requests are short.
    anywhere : bool
        They begin at any line of the address space, not near address 0 alone; that one crosses 2^32 is then what is covered.
    """

    def __init__(self, memory_engine: Any, *, follow: int | None = None, anywhere: bool = False) -> None:
        super().__init__()
        self.memory_engine = memory_engine
        self.follow = follow
        self.anywhere = anywhere

    def claims(self, m: Module) -> None:
        m.submodules.memory_engine = memory_engine = self.memory_engine
        bus = memory_engine.bus
        free_inputs(m, memory_engine, but=("bus", "request") if self.follow is not None else ("bus",))
        if self.follow is not None:
            small_requests(m, memory_engine, anywhere=self.anywhere)
        one_bit_data(m, bus.rdata)
        m.d.comb += [Value.cast(getattr(bus, name)).eq(AnySeq(width)) for name, width in _inputs(bus, "ar", "r")]
        obey_streams(m, memory_engine)
        issued, ident, address, length = legal_command(m, memory_engine, "ar", memory_engine.readers)

        beat = bus.rvalid & bus.rready
        waiting = []
        for n in range(1 << len(bus.rid)):
            mine = beat & (bus.rid == n)
            burst = Outstanding(
                m, f"id{n}", memory_engine.outstanding, issued & (ident == n), length, address, mine & bus.rlast
            )
            done = Signal(8, name=f"id{n}_beats")
            with m.If(mine):
                m.d.sync += done.eq(Mux(bus.rlast, 0, done + 1))
            m.d.comb += [
                Assume(implies(bus.rvalid & (bus.rid == n), burst.any & (bus.rlast == (done == burst.length)))),
                Assert(~burst.queue.overflows, "no more bursts than may be outstanding"),
            ]
            waiting.append(burst)
            if n == self.follow:
                FollowsRequests(m, memory_engine, n, issued & (ident == n), address, length)
                port = memory_engine.data[n]
                taken = port.valid & port.ready
                inside = WatchedItem(
                    m,
                    f"data{n}",
                    width=1,
                    most=memory_engine.reader_depth[n],
                    push=mine,
                    item=bus.rdata[0],
                    pop=taken,
                )
                m.d.comb += [
                    Assert(implies(port.valid, inside.level != 0), "no data that did not come"),
                    Assert(
                        implies(port.valid & inside.next, port.payload[0] == inside.item),
                        "data in order, to its client",
                    ),
                    Assert(
                        implies(inside.level == memory_engine.reader_depth[n], ~mine), "room was kept for what comes"
                    ),
                ]
                if not self.anywhere:
                    # Nothing could come that has no room before as much as there is room for is there.
                    m.d.comb += Cover(inside.level == memory_engine.reader_depth[n])
        count = total([burst.queue.level for burst in waiting])
        errors = Signal(2)  # error responses, two cycles on their way to the report
        m.d.sync += errors.eq(Cat(beat & bus.rresp[SLVERR_BIT], errors[0]))
        m.d.comb += [
            Assert(bus.rready, "what comes is always taken"),
            Assert(count <= memory_engine.outstanding, "no more bursts than may be outstanding"),
            Assert(implies(~memory_engine.busy, ~bus.arvalid & (count == 0)), "not busy: nothing on the bus"),
            Assert(memory_engine.error.valid == errors[1], "an error response is reported, nothing else is"),
        ]
        if not self.anywhere:
            watched = memory_engine.readers - 1 if self.follow is None else self.follow
            m.d.comb += [
                Cover((count == memory_engine.outstanding) & beat & bus.rlast & (bus.rid == watched)),
                Cover(issued & (length == memory_engine.burst_beats - 1)),
            ]
        halted = Signal()
        m.d.sync += halted.eq(memory_engine.halt & ~memory_engine.busy)
        m.d.comb += Assert(implies(halted & memory_engine.halt, ~memory_engine.busy), "a halted engine stays quiet")


def _inputs(bus: Any, command: str, answer: str) -> list[tuple[str, int]]:
    """The inputs of a manager's bus beside data, and their widths."""
    names = [f"{command}ready", *(["wready"] if command == "aw" else [])]
    names += [f"{answer}{name}" for name in ("valid", "id", "resp")] + (["rlast"] if answer == "r" else [])
    return [(name, len(Value.cast(getattr(bus, name)))) for name in names]


class WriteManager(Spec):
    """The write engine on a bus whose subordinate keeps the rules and acknowledges in any order of identifiers.

    Parameters
    ----------
    memory_engine : WriteEngine
        Small.
    follow : int, optional
        Client of which is said also that its bursts are its requests cut in pieces and that its data come on the bus in
        order, once. Then requests are short.
    anywhere : bool
        They begin at any line of the address space, not near address 0 alone; that one crosses 2^32 is then what is covered.
    """

    def __init__(self, memory_engine: Any, *, follow: int | None = None, anywhere: bool = False) -> None:
        super().__init__()
        self.memory_engine = memory_engine
        self.follow = follow
        self.anywhere = anywhere

    def claims(self, m: Module) -> None:
        m.submodules.memory_engine = memory_engine = self.memory_engine
        bus = memory_engine.bus
        driven = ("bus", "data", "window_begin", "window_end")
        free_inputs(m, memory_engine, but=(*driven, "request") if self.follow is not None else driven)
        if self.follow is not None:
            small_requests(m, memory_engine, anywhere=self.anywhere)
        for port in memory_engine.data:
            m.d.comb += port.valid.eq(AnySeq(1))
            one_bit_data(m, port.payload.data)
            one_bit_data(m, port.payload.strobe)
        m.d.comb += [Value.cast(getattr(bus, name)).eq(AnySeq(width)) for name, width in _inputs(bus, "aw", "b")]
        obey_streams(m, memory_engine)
        issued, ident, address, length = legal_command(m, memory_engine, "aw", memory_engine.writers)
        if self.follow is None:
            self._window(m)
        keeps_offer(m, "w", bus.wvalid, bus.wready, Cat(bus.wdata[0], bus.wstrb[0], bus.wlast))

        # W: the bursts in the order of their commands.
        moves = bus.wvalid & bus.wready
        ends = moves & bus.wlast
        item = Cat(length, ident)
        order = ModelQueue(
            m, "order", width=len(item), depth=memory_engine.outstanding, push=issued, item=item, pop=ends
        )
        sent = Signal(8)  # beats of the oldest burst
        with m.If(moves):
            m.d.sync += sent.eq(Mux(bus.wlast, 0, sent + 1))
        client = order.head[len(length) :]
        acknowledged = bus.bvalid & bus.bready
        counts = []
        for n in range(1 << len(bus.bid)):
            mine = acknowledged & (bus.bid == n)
            complete = Signal(range(memory_engine.outstanding + 2), name=f"id{n}_complete")
            m.d.sync += complete.eq(complete + (ends & (client == n)) - mine)
            counts.append(complete)
            m.d.comb += Assume(implies(bus.bvalid & (bus.bid == n), complete != 0))
            if n == self.follow:
                self._client(m, n, issued & (ident == n), address, length, moves & (client == n), mine, complete)
        count = total([order.level, *counts])
        errors = Signal(2)
        m.d.sync += errors.eq(Cat(acknowledged & bus.bresp[SLVERR_BIT], errors[0]))
        m.d.comb += [
            Assert(~order.overflows, "no more bursts than may be outstanding"),
            Assert(implies(bus.wvalid, order.level != 0), "data follow their command"),
            Assert(implies(bus.wvalid, bus.wlast == (sent == order.head[: len(length)])), "WLAST on the last beat"),
            Assert(bus.bready, "what comes is always taken"),
            Assert(count <= memory_engine.outstanding, "no more bursts than may be outstanding"),
            Assert(
                implies(~memory_engine.busy, ~bus.awvalid & ~bus.wvalid & (count == 0)), "not busy: nothing on the bus"
            ),
            Assert(
                (memory_engine.error.valid & ~memory_engine.error.outside) == errors[1],
                "an error response is reported, nothing else is",
            ),
        ]
        if not self.anywhere:
            m.d.comb += [
                Cover((count == memory_engine.outstanding) & acknowledged & (bus.bid == memory_engine.writers - 1)),
                Cover(ends & (order.head[: len(length)] == memory_engine.burst_beats - 1)),
            ]
        halted = Signal()
        m.d.sync += halted.eq(memory_engine.halt & ~memory_engine.busy)
        m.d.comb += Assert(implies(halted & memory_engine.halt, ~memory_engine.busy), "a halted engine stays quiet")

    def _window(self, m: Module) -> None:
        """Any window; nothing outside it reaches the bus, and what does not is said once."""
        memory_engine, bus = self.memory_engine, self.memory_engine.bus
        width = len(memory_engine.window_begin)
        begin, end = AnyConst(width), AnyConst(width)
        burst_end = Signal(width + 1)  # the burst on offer
        told = Signal()
        outside = memory_engine.error.valid & memory_engine.error.outside
        m.d.sync += told.eq(told | outside)
        m.d.comb += [
            memory_engine.window_begin.eq(begin),
            memory_engine.window_end.eq(end),
            Assume((begin[: memory_engine.line_shift] == 0) & (end[: memory_engine.line_shift] == 0)),
            burst_end.eq(bus.awaddr + ((bus.awlen + 1) << memory_engine.line_shift)),
            Assert(
                implies(bus.awvalid, (bus.awaddr >= begin) & ((end == 0) | (burst_end <= end))),
                "no write outside the window",
            ),
            Assert(implies(told, ~outside & ~bus.awvalid), "after a burst was held back nothing is written"),
            Cover(outside),
        ]

    def _client(
        self,
        m: Module,
        n: int,
        issued: Value,
        address: Value,
        length: Value,
        moves: Value,
        acknowledged: Value,
        complete: Value,
    ) -> None:
        memory_engine, bus = self.memory_engine, self.memory_engine.bus
        follows = FollowsRequests(m, memory_engine, n, issued, address, length)
        port = memory_engine.data[n]
        taken = port.valid & port.ready
        item = Cat(port.payload.data[0], port.payload.strobe[0])
        inside = WatchedItem(
            m, f"data{n}", width=2, most=memory_engine.writer_depth[n] + 2, push=taken, item=item, pop=moves
        )
        m.d.comb += [
            Assert(implies(moves, inside.level != 0), "no data that were not given"),
            Assert(
                implies(moves & inside.next, Cat(bus.wdata[0], bus.wstrb[0]) == inside.item),
                "data in order, from their client",
            ),
            Assert(~inside.overflows, "no more data inside than fit"),
            Assert(
                implies(memory_engine.idle[n], ~follows.waits & (inside.level == 0) & (complete == 0)),
                "idle: everything is in memory",
            ),
        ]
        answered = Signal(name=f"client{n}_answered")
        with m.If(acknowledged):
            m.d.sync += answered.eq(1)
        if not self.anywhere:
            m.d.comb += Cover(answered & memory_engine.idle[n])
