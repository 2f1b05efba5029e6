"""Who reads and writes memory: the client ports of the memory engine and the units behind them."""

from amaranth.hdl import Module
from amaranth.lib.wiring import connect

from ..accessor.fiber_reader import READ_CLIENTS
from .units import Units

__all__ = ["ELEMENT_CLIENTS", "READERS", "WRITERS", "connect_clients"]

# Client ports of the memory engine, in order: who reads and writes through them, and how deep a reader's queue is in
# beats. Streams that move whole tiles hide the memory's latency; words come four or more to a beat.
READERS = {
    "a_positions": 16,
    "a_pointers": 16,
    "a_elements": 128,
    "a_elements_second": 32,
    "a_elements_later": 16,
    "b_positions": 16,
    "b_pointers": 16,
    "b_elements": 128,
    "b_elements_second": 32,
    "b_elements_later": 16,
    "lookup": 64,
    "fetch": 128,
    "c_positions": 16,
    "a_map": 2,
    "b_map": 2,
    "b_streamed": 128,
    "c_streamed": 128,
}
ELEMENT_CLIENTS = tuple(name for name in READ_CLIENTS if name.startswith("elements"))
WRITERS = ("a_positions", "b_positions", "c_rows", "c_partials", "c_scratch", "c_positions")


def connect_clients(m: Module, units: Units) -> None:
    """Joins units and engine, in the order of :data:`READERS` and :data:`WRITERS`."""
    a, b, c, engine = units.a, units.b, units.c, units.engine
    readers = [(unit, n) for unit in (a, b) for n in range(len(READ_CLIENTS))]
    requests = [unit.read_request[n] for unit, n in readers]
    answers = [unit.read_data[n] for unit, n in readers]
    requests += [units.lookup.read_request, units.fetch.read_request, c.read_request]
    answers += [units.lookup.read_data, units.fetch.read_data, c.read_data]
    requests += [units.controller.read_request[n] for n in range(2)]
    answers += [units.controller.read_data[n] for n in range(2)]
    requests += [units.streamer.read_request, units.reentry.read_request]
    answers += [units.streamer.read_data, units.reentry.read_data]
    for n, (request, answer) in enumerate(zip(requests, answers, strict=True)):
        connect(m, request, engine.read_request[n])
        connect(m, engine.read_data[n], answer)
    writers = [(a.write_request, a.write_data), (b.write_request, b.write_data)]
    writers += [(c.write_request[n], c.write_data[n]) for n in range(4)]
    for n, (write_request, write_data) in enumerate(writers):
        connect(m, write_request, engine.write_request[n])
        connect(m, write_data, engine.write_data[n])
    m.d.comb += [
        c.written.eq(sum(engine.write_idle[2 + n] << n for n in range(4))),
        c.scratch_retired.eq(engine.write_retired[WRITERS.index("c_scratch")]),
    ]
