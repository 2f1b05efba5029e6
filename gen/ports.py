"""Ports of a block's Verilog module: one for each member of its signature, and of a packed payload one for each field."""

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from amaranth.hdl import Shape, Value
from amaranth.lib import data
from amaranth.lib.wiring import In

from rtl.lib.block import Block

from .cells import CELLS
from .names import unused

__all__ = ["Member", "Port", "is_layout", "members", "ports"]


@dataclass(frozen=True, kw_only=True)
class Port:
    """One port, the bits of ``member`` from ``low`` on; ``codes`` are its values by name."""

    name: str
    width: int
    is_input: bool
    member: str
    low: int = 0
    codes: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Member:
    """A member of the signature: its path as a name, all of its bits, and its ports, lowest bit first."""

    name: str
    value: Value
    is_input: bool
    ports: tuple[Port, ...]

    @property
    def is_split(self) -> bool:
        """Whether its ports are fields."""
        return self.ports[0].name != self.name


# Each block is asked several times in a conversion; its signature is for life.
_known: WeakKeyDictionary[Block, tuple[Member, ...]] = WeakKeyDictionary()


def members(block: Block) -> tuple[Member, ...]:
    """Members of a block with the ports that they have in Verilog.

    A field of a structure or an element of an array is a port of its own, down to what has no parts, and is called by its
    path with ``__`` between. Parts that may overlap stay together, and so do payloads of the modules in ``CELLS``, which are
    one text whatever they carry. Raises ValueError for a member of no bits.
    """
    if block not in _known:
        _known[block] = tuple(_members(block))
    return _known[block]


def _members(block: Block) -> list[Member]:
    found = []
    taken: set[str] = set()
    flat = [("__".join(map(str, path)), member, value) for path, member, value in block.signature.flatten(block)]
    whole = type(block) in CELLS
    for name, member, value in sorted(flat, key=lambda item: is_layout(item[1].shape)):
        bits = Value.cast(value)
        if len(bits) == 0:
            raise ValueError(f"Port {name} of {block.module_name} is zero bits wide, which Verilog cannot say")
        is_input = member.flow is In
        parts = [(name, 0, len(bits), member.shape)] if whole else list(_parts(name, 0, member.shape))
        ports = []
        for part, low, width, shape in parts:
            own = unused(re.sub(r"\W", "_", part), taken)
            taken.add(own)
            ports.append(Port(name=own, width=width, is_input=is_input, member=name, low=low, codes=_codes(shape)))
        found.append(Member(name=name, value=bits, is_input=is_input, ports=tuple(ports)))
    places = {name: n for n, (name, _, _) in enumerate(flat)}
    return sorted(found, key=lambda member: places[member.name])


def ports(block: Block) -> tuple[Port, ...]:
    """All ports of a block's module but its clock and reset."""
    return tuple(port for member in members(block) for port in member.ports)


def is_layout(shape: Any) -> bool:
    """Whether a shape has parts."""
    return isinstance(shape, data.Layout) or (isinstance(shape, type) and issubclass(shape, data.Struct | data.Union))


def _parts(name: str, low: int, shape: Any) -> Iterator[tuple[str, int, int, Any]]:
    """Name, lowest bit, width and shape of each part that has no parts itself, lowest bit first."""
    layout = data.Layout.cast(shape) if is_layout(shape) else None
    if isinstance(layout, data.StructLayout | data.ArrayLayout):
        for key, field in layout:
            yield from _parts(f"{name}__{key}", low + field.offset, field.shape)
    elif width := Shape.cast(shape).width:
        yield name, low, width, shape


def _codes(shape: Any) -> tuple[tuple[int, str], ...]:
    if isinstance(shape, type) and issubclass(shape, enum.Enum):
        return tuple((item.value, item.name) for item in shape)
    return ()
