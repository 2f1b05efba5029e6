"""Wiring between blocks whose members have the same names."""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Mux, Value

__all__ = ["chosen", "connected", "passed"]


def passed(source: Any, sink: Any, names: str) -> Iterator[Any]:
    """Assignments that pass members of ``source`` on to the inputs of ``sink`` with the same names, parted by spaces."""
    return (getattr(sink, name).eq(getattr(source, name)) for name in names.split())


def connected(source: Any, sink: Any) -> Iterator[Any]:
    """Assignments that join two streams by the fields that both have; others of ``sink`` are 0."""
    yield from (sink.valid.eq(source.valid), source.ready.eq(sink.ready))
    both = [name for name in source.payload.shape().members if name in sink.payload.shape().members]
    yield from (sink.payload[name].eq(source.payload[name]) for name in both)


def chosen(which: Any, one: Any, other: Any, sink: Any) -> Iterator[Any]:
    """Assignments that hand on the stream ``one`` where ``which`` is 1, else ``other``."""
    payload = (Value.cast(source.payload) for source in (one, other))
    yield from (sink.valid.eq(Mux(which, one.valid, other.valid)), Value.cast(sink.payload).eq(Mux(which, *payload)))
    yield from (one.ready.eq(sink.ready & which), other.ready.eq(sink.ready & ~which))
