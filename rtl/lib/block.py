"""Base class of every block: one stable module name per class and parameter set."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from amaranth.hdl import DomainRenamer, Elaboratable
from amaranth.lib import wiring

__all__ = ["Block", "Digest", "base_name", "digest"]


class Digest(str):
    """Digits that stand for values: they tell blocks apart, and are for nobody to read."""


def base_name(block: "Block") -> str:
    """The class's name in snake case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(block).__name__).lower()


def digest(values: Mapping[str, Any]) -> Digest:
    """Eight hexadecimal digits that stand for these values, where they are too many for a name."""
    text = ",".join(f"{name}={value}" for name, value in sorted(values.items()))
    return Digest(hashlib.sha256(text.encode()).hexdigest()[:8])


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
        """Parameters that distinguish one build of this class from another; keys become part of the module name."""
        return {}

    @property
    def module_name(self) -> str:
        parts = [f"{key}{value}" for key, value in self.parameters().items()]
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
