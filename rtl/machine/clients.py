"""Who reads and writes memory: the client ports of the units, and the memory engine that serves them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Value
from amaranth.lib.wiring import connect

from ..engine.signature import Engine
from ..lib.passed import connected
from ..lib.unit import ReadClient, Unit, WriteClient
from ..memory.line_parts import LineJoiner, LineSplitter
from ..memory.memory_engine import MemoryEngine
from ..mint.reader.record_reader import RecordReader
from ..storage import line_bytes

__all__ = ["MemoryClients", "readers", "writers"]


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


class MemoryClients:
    """The units that use memory, the memory engine that serves them, and the readers of packed records between them.

    users : in the order of their ports. tile_engine : one of them; it says whether nonzeros lie in memory as packed records.
    line_beats : beats of the bus that make a line. burst_beats, sizes : those of :class:`MemoryEngine`.
    """

    def __init__(
        self, users: Sequence[Unit], tile_engine: Engine, *, line_beats: int, burst_beats: int, **sizes: int
    ) -> None:
        self.readers, self.writers = readers(users), writers(users)
        self.line_beats = line_beats
        beat_bits = 8 * line_bytes(tile_engine.lanes) // line_beats
        self.memory = MemoryEngine(
            data_width=beat_bits,
            address_width=tile_engine.address_width,
            readers=len(self.readers),
            writers=len(self.writers),
            reader_depth=tuple(client.depth for client, _, _ in self.readers),
            writer_depth=tuple(max(client.depth, client.bursts * burst_beats) for client, _, _ in self.writers),
            burst_beats=burst_beats,
            **sizes,
        )
        # By the name of the client that reads nonzeros of A or B through it.
        self.record_readers = {
            client.name: RecordReader(
                lanes=tile_engine.lanes,
                beat_bits=beat_bits,
                address_width=tile_engine.address_width,
                value=tile_engine.value,
                carries=tile_engine.carries if unit is tile_engine else 1,
            )
            for unit in users
            for client in unit.READERS
            if client.records and tile_engine.packed
        }

    def written(self, unit: Unit) -> Value:
        """For each write client of ``unit`` whether memory has all that it wrote."""
        names = [client.name for client, _, _ in self.writers]
        return Cat(self.memory.write_idle[names.index(client.name)] for client in unit.WRITERS)

    def retired(self, name: str) -> Value:
        """Whether memory has acknowledged a request of the write client ``name`` to its last byte."""
        return self.memory.write_retired[[client.name for client, _, _ in self.writers].index(name)]

    def connect(self, m: Module, operands: Any, coordinates: Any) -> None:
        """Joins units and memory engine. ``operands``: where the arrays of A and B lie; ``coordinates``: bits of theirs."""
        m.submodules.memory_engine = memory = self.memory
        for n, (client, request, answer) in enumerate(self.readers):
            if client.name not in self.record_readers:
                self._read_lines(m, client, (request, answer), (memory.read_request[n], memory.read_data[n]))
                continue
            m.submodules[f"{client.name}_records"] = reader = self.record_readers[client.name]
            connect(m, request, reader.request)
            connect(m, reader.lines, answer)
            connect(m, reader.read_request, memory.read_request[n])
            connect(m, memory.read_data[n], reader.read_data)
            m.d.comb += [
                reader.base.eq(operands[client.records].elements),
                reader.coordinate_bits.eq(coordinates[client.records]),
            ]
        for n, (writing, request, words) in enumerate(self.writers):
            self._write_lines(m, writing, (request, words), (memory.write_request[n], memory.write_data[n]))

    def _read_lines(self, m: Module, client: ReadClient, unit: tuple[Any, Any], port: tuple[Any, Any]) -> None:
        """Joins a unit's streams of requests and lines to those of a port of the memory engine."""
        (request, lines), (read_request, read_data) = unit, port
        if self.line_beats == 1 or client.beats:
            m.d.comb += connected(request, read_request)
            connect(m, read_data, lines)
            return
        m.submodules[f"{client.name}_joiner"] = joiner = LineJoiner(**self._parts)
        m.d.comb += connected(request, joiner.request)
        connect(m, joiner.lines, lines)
        connect(m, joiner.read_request, read_request)
        connect(m, read_data, joiner.read_data)

    def _write_lines(self, m: Module, client: WriteClient, unit: tuple[Any, Any], port: tuple[Any, Any]) -> None:
        """Joins a unit's streams of requests and lines with strobes to those of a port of the memory engine."""
        (request, lines), (write_request, write_data) = unit, port
        if self.line_beats == 1 or client.beats:
            connect(m, request, write_request)
            connect(m, lines, write_data)
            return
        m.submodules[f"{client.name}_splitter"] = splitter = LineSplitter(**self._parts)
        connect(m, request, splitter.request)
        connect(m, lines, splitter.lines)
        connect(m, splitter.write_request, write_request)
        connect(m, splitter.write_data, write_data)

    @property
    def _parts(self) -> dict[str, int]:
        """Parameters of what joins and splits lines."""
        sizes = {"beat_bits": self.memory.data_width, "address_width": self.memory.address_width}
        return sizes | {"parts": self.line_beats}

    def beats(self, assembling: Value) -> Iterator[Mapping[str, Value]]:
        """For each client the performance counter that its beats belong to, and whether one moves."""
        for n, (client, _, _) in enumerate(self.readers):
            beat = self.memory.read_beat[n]
            if client.name in self.record_readers:
                reader = self.record_readers[client.name]
                mixed = client.assembling or not client.counter  # some of its lines are of C
                yield {f"read_{client.records}_data": reader.beat & ~reader.plain}
                yield {"read_c_data": reader.beat & reader.plain} if mixed else {}
            elif client.assembling:
                yield {client.counter: beat & ~assembling, client.assembling: beat & assembling}
            elif client.counter:
                yield {client.counter: beat}
        for n, (client, _, _) in enumerate(self.writers):
            yield {name: self.memory.write_beat[n] for name in (client.counter, client.part) if name}
