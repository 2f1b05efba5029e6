"""Several signals in one statement, each with its name."""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Signal

__all__ = ["signals"]


def signals(names: str, shape: Any = 1, **options: Any) -> Iterator[Signal]:
    """A signal for each of these names, all of one shape.

    Amaranth finds the name of a signal that is assigned alone. Of several in one statement it depends on the version of Python
    which names are found, and the Verilog has numbers in place of the others.
    """
    return (Signal(shape, name=name, **options) for name in names.split())
