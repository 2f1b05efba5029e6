"""Who reads and writes memory: the client ports of the units, and the memory engine that serves them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Value
from amaranth.lib.wiring import connect

from ..lib.unit import ReadClient, Unit, WriteClient
from ..memory.memory_engine import MemoryEngine
from ..storage import line_bytes

__all__ = ["beats", "connect_clients", "memory_engine", "readers", "retired", "writers", "written"]


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


def connect_clients(m: Module, units: Sequence[Unit], memory: MemoryEngine) -> None:
    """Joins units and memory engine."""
    for n, (_, request, answer) in enumerate(readers(units)):
        connect(m, request, memory.read_request[n])
        connect(m, memory.read_data[n], answer)
    for n, (_, request, words) in enumerate(writers(units)):
        connect(m, request, memory.write_request[n])
        connect(m, words, memory.write_data[n])


def beats(units: Sequence[Unit], memory: MemoryEngine, assembling: Value) -> Iterator[Mapping[str, Value]]:
    """For each client the performance counter that its beats belong to, and whether one moves."""
    for n, (client, _, _) in enumerate(readers(units)):
        beat = memory.read_beat[n]
        if client.assembling:
            yield {client.counter: beat & ~assembling, client.assembling: beat & assembling}
        elif client.counter:
            yield {client.counter: beat}
    for n, (written, _, _) in enumerate(writers(units)):
        yield {written.counter: memory.write_beat[n]}
