"""Wiring between blocks whose members have the same names."""

from collections.abc import Iterator
from typing import Any

__all__ = ["passed"]


def passed(source: Any, sink: Any, names: str) -> Iterator[Any]:
    """Assignments that pass members of ``source`` on to the inputs of ``sink`` with the same names, parted by spaces."""
    return (getattr(sink, name).eq(getattr(source, name)) for name in names.split())
