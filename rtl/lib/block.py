"""Base class of every block: one stable module name per class and parameter set."""

import hashlib
import inspect
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from amaranth.hdl import DomainRenamer, Elaboratable, Shape, ShapeCastable
from amaranth.lib import wiring

__all__ = ["Block", "Digest", "base_name", "constructor_defaults", "digest", "suffix"]


class Digest(str):
    """Digits that stand for values: they tell blocks apart, and are for nobody to read."""


def base_name(block: "Block") -> str:
    """The class's name in snake case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(block).__name__).lower()


def digest(values: Mapping[str, Any]) -> Digest:
    """Eight hexadecimal digits that stand for these values, where they are too many for a name."""
    text = ",".join(f"{name}={value}" for name, value in sorted(values.items()))
    return Digest(hashlib.sha256(text.encode()).hexdigest()[:8])


def suffix(name: str, value: int | str) -> str:
    """A parameter as part of a module name: ``depth4``, ``value_fp32``, ``tuning`` where it is True."""
    if value is True:
        return name
    return f"{name}_{value}" if isinstance(value, str) else f"{name}{int(value)}"


@cache
def constructor_defaults(kind: type) -> dict[str, Any]:
    """Parameters of the constructor with their defaults, those that it hands on to a base class as well."""
    found: dict[str, Any] = {}
    for base in kind.__mro__:
        if "__init__" not in vars(base):
            continue
        taken = [*inspect.signature(vars(base)["__init__"]).parameters.values()][1:]
        rest = [each for each in taken if each.kind is each.VAR_KEYWORD]
        found |= {each.name: each.default for each in taken if each not in rest and each.name not in found}
        if not rest:
            break
    return found


def _plain(name: str, value: Any) -> int | str:
    """What stands for a parameter's value in a module name."""
    if isinstance(value, int):
        return value
    if isinstance(value, (Shape, ShapeCastable, range)):
        return Shape.cast(value).width
    if isinstance(value, Mapping):
        return digest(value)
    if isinstance(value, tuple):
        return f"{len(value)}x{value[0]}" if len(set(value)) == 1 else "_".join(map(str, value))
    word = getattr(value, "name", value)
    if not isinstance(word, str):
        raise TypeError(f"{name} = {value!r} has no place in a module name: the block needs parameters() of its own")
    return word


class Block(wiring.Component):
    """A hardware block that knows its own module name.

    Subclasses implement :meth:`build` where an ordinary component implements ``elaborate``. A platform may offer
    ``instance_of(block)``; the Verilog emitter does. What it returns takes the place of the block's own hardware, so that each
    distinct block becomes one Verilog module. Simulation and formal runs see the whole hierarchy.

    Attributes
    ----------
    module_name : str
        Class name in snake case followed by every parameter that :meth:`parameters` names: equal for equal blocks alone.
        In the Verilog of a design only those parameters stand that differ there.
    """

    def parameters(self) -> dict[str, Any]:
        """Parameters that distinguish one build of this class from another; they become part of the module name.

        Those of the constructor that the block keeps under their own names, but for those with their default value.
        """
        defaults, ports = constructor_defaults(type(self)), self.signature.members
        kept = {name: getattr(self, name) for name in defaults if name not in ports and hasattr(self, name)}
        return {name: _plain(name, value) for name, value in kept.items() if value != defaults[name]}

    @property
    def module_name(self) -> str:
        parts = [suffix(name, value) for name, value in self.parameters().items()]
        return re.sub(r"[^A-Za-z0-9_]", "_", "_".join([base_name(self), *parts]))

    def build(self, platform: Any) -> Elaboratable:
        """The block's hardware."""
        raise TypeError(f"{type(self).__name__} does not say how it is built")

    domain: str = "sync"  # name of the block's clock domain in its parent

    def elaborate(self, platform: Any) -> Elaboratable:
        stand_in = getattr(platform, "instance_of", None)
        if stand_in is not None:
            instance = stand_in(self)
            if instance is not None:
                return instance
        hardware = self.build(platform)
        return hardware if self.domain == "sync" else DomainRenamer(self.domain)(hardware)
