"""Wiring between blocks whose members have the same names."""

from collections.abc import Iterator
from typing import Any

__all__ = ["asked", "passed"]


def passed(source: Any, sink: Any, names: str) -> Iterator[Any]:
    """Assignments that pass members of ``source`` on to the inputs of ``sink`` with the same names, parted by spaces."""
    return (getattr(sink, name).eq(getattr(source, name)) for name in names.split())


def asked(source: Any, sink: Any) -> Iterator[Any]:
    """Assignments that join two streams of which ``sink`` has all fields of ``source``, and leaves the others 0."""
    yield from (sink.valid.eq(source.valid), source.ready.eq(sink.ready))
    yield from (sink.payload[name].eq(source.payload[name]) for name in source.payload.shape().members)
