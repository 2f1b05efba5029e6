"""Base class of every block: one stable module name per class and parameter set."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from amaranth.hdl import DomainRenamer, Elaboratable
from amaranth.lib import wiring

__all__ = ["Block", "digest"]


def digest(values: Mapping[str, Any]) -> str:
    """Eight hexadecimal digits that stand for these values in a module's name, where they are too many for it."""
    text = ",".join(f"{name}={value}" for name, value in sorted(values.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


class Block(wiring.Component):
    """A hardware block that knows its own module name.

    Subclasses implement :meth:`build` where an ordinary component implements ``elaborate``. When a platform offers
    ``instance_of(block)`` (the Verilog emitter does) and it returns something, that stands in for the block's own
    hardware, so that each distinct block becomes one Verilog module. Simulation and formal runs see the hierarchy whole.

    Attributes
    ----------
    module_name : str
        Class name in snake case followed by every parameter that :meth:`parameters` names.
    """

    def parameters(self) -> dict[str, Any]:
        """Parameters that distinguish one build of this class from another; keys become part of the module name."""
        return {}

    @property
    def module_name(self) -> str:
        base = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()
        parts = [f"{key}{value}" for key, value in self.parameters().items()]
        return re.sub(r"[^A-Za-z0-9_]", "_", "_".join([base, *parts]))

    def build(self, platform: Any) -> Elaboratable:
        """The block's hardware."""
        raise TypeError(f"{type(self).__name__} does not say how it is built")

    domain: str = "sync"  # what the block's clock domain is called where it is used

    def elaborate(self, platform: Any) -> Elaboratable:
        stand_in = getattr(platform, "instance_of", None)
        if stand_in is not None:
            instance = stand_in(self)
            if instance is not None:
                return instance
        hardware = self.build(platform)
        return hardware if self.domain == "sync" else DomainRenamer(self.domain)(hardware)
