"""Who reads and writes memory: the client ports of the units, and the memory engine that serves them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Value
from amaranth.lib.wiring import connect

from ..engine.signature import Engine
from ..lib.unit import ReadClient, Unit, WriteClient
from ..memory.memory_engine import MemoryEngine
from ..mint.reader.record_reader import RecordReader
from ..storage import line_bytes

__all__ = ["beats", "connect_clients", "memory_engine", "readers", "record_readers", "retired", "writers", "written"]


def _ports(unit: Unit, name: str) -> list[Any]:
    """The streams of this name: one, or an array of them."""
    port: Any = getattr(unit, name)
    return [port] if hasattr(port, "valid") else list(port)


def readers(units: Sequence[Unit]) -> list[tuple[ReadClient, Any, Any]]:
    """Every read client with its streams of requests and answers, in the order of the memory engine's ports."""
    clients = [
        client
        for unit in units
        if unit.READERS
        for client in zip(unit.READERS, _ports(unit, "read_request"), _ports(unit, "read_data"), strict=True)
    ]
    return sorted(clients, key=lambda client: client[0].turn)


def writers(units: Sequence[Unit]) -> list[tuple[WriteClient, Any, Any]]:
    """Every write client with its streams of requests and data, in the order of the memory engine's ports."""
    return [
        client
        for unit in units
        if unit.WRITERS
        for client in zip(unit.WRITERS, _ports(unit, "write_request"), _ports(unit, "write_data"), strict=True)
    ]


def memory_engine(users: Sequence[Unit], *, lanes: int, burst_beats: int, **sizes: int) -> MemoryEngine:
    """A memory engine with a port for each client; ``sizes`` are those of :class:`MemoryEngine`."""
    reading, writing = readers(users), writers(users)
    return MemoryEngine(
        data_width=8 * line_bytes(lanes),
        readers=len(reading),
        writers=len(writing),
        reader_depth=tuple(client.depth for client, _, _ in reading),
        writer_depth=tuple(max(client.depth, client.bursts * burst_beats) for client, _, _ in writing),
        burst_beats=burst_beats,
        **sizes,
    )


def written(users: Sequence[Unit], memory: MemoryEngine, unit: Unit) -> Value:
    """For each write client of ``unit`` whether memory has all that it wrote."""
    names = [client.name for client, _, _ in writers(users)]
    return Cat(memory.write_idle[names.index(client.name)] for client in unit.WRITERS)


def retired(users: Sequence[Unit], memory: MemoryEngine, name: str) -> Value:
    """Whether memory has acknowledged a request of the write client ``name`` to its last byte."""
    return memory.write_retired[[client.name for client, _, _ in writers(users)].index(name)]


Readers = Mapping[str, tuple[RecordReader, ReadClient]]


def record_readers(users: Sequence[Unit], tile_engine: Engine) -> Readers:
    """For each client that reads nonzeros of A or B, by its name, what takes packed records apart for it."""
    return {
        client.name: (
            RecordReader(
                lanes=tile_engine.lanes,
                address_width=tile_engine.address_width,
                value=tile_engine.value,
                carries=tile_engine.carries if unit is tile_engine else 1,
            ),
            client,
        )
        for unit in users
        for client in unit.READERS
        if client.records
    }


def connect_clients(m: Module, units: Sequence[Unit], memory: MemoryEngine, packed: Readers) -> None:
    """Joins units and memory engine, with a reader of packed records between where there is one."""
    for n, (client, request, answer) in enumerate(readers(units)):
        if client.name in packed:
            m.submodules[f"{client.name}_records"] = reader = packed[client.name][0]
            connect(m, request, reader.request)
            connect(m, reader.lines, answer)
            connect(m, reader.read_request, memory.read_request[n])
            connect(m, memory.read_data[n], reader.read_data)
            continue
        port = memory.read_request[n]
        m.d.comb += [
            port.valid.eq(request.valid),
            request.ready.eq(port.ready),
            port.payload.address.eq(request.payload.address),
            port.payload.beats.eq(request.payload.beats),
        ]
        connect(m, memory.read_data[n], answer)
    for n, (_, request, words) in enumerate(writers(units)):
        connect(m, request, memory.write_request[n])
        connect(m, words, memory.write_data[n])


def beats(
    units: Sequence[Unit], memory: MemoryEngine, packed: Readers, assembling: Value
) -> Iterator[Mapping[str, Value]]:
    """For each client the performance counter that its beats belong to, and whether one moves."""
    for n, (client, _, _) in enumerate(readers(units)):
        beat = memory.read_beat[n]
        if client.name in packed:
            reader = packed[client.name][0]
            mixed = client.assembling or not client.counter  # some of its lines are of C
            yield {f"read_{client.records}_data": reader.beat & ~reader.plain}
            yield {"read_c_data": reader.beat & reader.plain} if mixed else {}
        elif client.assembling:
            yield {client.counter: beat & ~assembling, client.assembling: beat & assembling}
        elif client.counter:
            yield {client.counter: beat}
    for n, (written, _, _) in enumerate(writers(units)):
        yield {written.counter: memory.write_beat[n]}
