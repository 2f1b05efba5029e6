"""The Verilog emitter's platform: every block below the one being converted becomes an instance of its own module."""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockSignal, Elaboratable, Instance, ResetSignal, Shape, Signal, Value
from amaranth.hdl._dsl import FSM
from amaranth.hdl._ir import PortDirection

from rtl.lib.block import Block

from .cells import CELLS, cell_parameters
from .keywords import KEYWORDS
from .ports import Member, Port, is_layout, members, ports
from .rtlil_text import cleaned, inputs_of, names_of, without_fields

__all__ = ["EmittedModule", "ModuleEmitter"]


@dataclass(frozen=True, kw_only=True)
class EmittedModule:
    """One distinct module: RTLIL text with its children as instances, and what its file's header says.

    children : module name and number of instances of each. verilog : name of the Verilog module, that of many where
    ``parameters`` tell them apart.
    """

    name: str
    block: Block
    rtlil: str
    ports: tuple[Port, ...]
    children: tuple[tuple[str, int], ...]
    verilog: str = ""
    parameters: tuple[tuple[str, int], ...] = ()

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset(port.name for port in self.ports if not port.is_input)

    def renamed(self, names: Mapping[str, str], prefix: str = "") -> "EmittedModule":
        """With other names for itself and its children. A block that has a Verilog module for all its sizes gets that.

        ``prefix``: what such a module's name begins with, as the others do.
        """
        own = cell_parameters(self.block)
        text = re.sub(
            r"(?m)^(module |  cell )\\(\S+)", lambda found: f"{found[1]}\\{names.get(found[2], found[2])}", self.rtlil
        )
        return replace(
            self,
            name=names[self.name],
            rtlil=text,
            children=tuple((names[name], count) for name, count in self.children),
            verilog=prefix + CELLS[type(self.block)] if own else names[self.name],
            parameters=own,
        )


class ModuleEmitter:
    """Converts a block and everything below it, each distinct ``module_name`` once.

    Attributes
    ----------
    modules : dict[str, EmittedModule]
        Finished modules, children before their parents.
    thorough : bool
        Convert every block, also those that look the same as one before, and compare the texts.

    Raises ValueError when two different blocks have one name, a port is zero bits wide, or a port, signal, memory or
    submodule has the name of a keyword of SystemVerilog.
    """

    def __init__(self, *, thorough: bool = False) -> None:
        self.thorough = thorough
        self.modules: dict[str, EmittedModule] = {}
        self._fingerprints: dict[str, Any] = {}

    def add(self, block: Block) -> EmittedModule:
        """The module of ``block``."""
        name = block.module_name
        known = self.modules.get(name)
        fingerprint = _fingerprint(block)
        if known is not None and not self.thorough and fingerprint is not None:
            if fingerprint == self._fingerprints[name]:
                _consider_used(block)
                return known
        module = self._convert(block, name)
        if known is None:
            self.modules[name] = module
            self._fingerprints[name] = fingerprint
            return module
        if module.rtlil != known.rtlil and without_fields(module.rtlil) == without_fields(known.rtlil):
            # The same hardware whose payload has other fields: it goes without them.
            known = self.modules[name] = replace(known, rtlil=without_fields(known.rtlil))
        elif module.rtlil != known.rtlil:
            kind = type(block).__qualname__
            raise ValueError(f"Two different blocks are both called {name}: {kind}.parameters() must tell them apart")
        return known

    def _convert(self, block: Block, name: str) -> EmittedModule:
        body = _Body(block)
        _mark_used(block)  # by way of body
        platform = _Platform(self, block)
        text = rtlil.convert(body, name=name, platform=platform, ports=body.ports, emit_src=False)
        tidy = cleaned(text, list(body.ports))
        for kept in sorted(names_of(tidy) & KEYWORDS):
            raise ValueError(f"{kept} in {name} is a keyword of SystemVerilog: a port or signal needs another name")
        return EmittedModule(
            name=name,
            block=block,
            rtlil=tidy,
            ports=ports(block),
            children=tuple(platform.children.items()),
        )


class _Body(Elaboratable):
    """A block's hardware in its own domain ``sync``, whatever that domain is called where the block is used.

    ``ports`` by name: members of the block's signature; signals of their own for the fields of those that have fields.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self.ports: dict[str, tuple[Value, PortDirection]] = {}
        self._split: list[tuple[Member, list[Signal]]] = []
        for member in members(block):
            direction = PortDirection.Input if member.is_input else PortDirection.Output
            signals: list[Any] = [member.value]
            if member.is_split:
                signals = [Signal(port.width, name=port.name) for port in member.ports]
                self._split.append((member, signals))
            self.ports |= {port.name: (own, direction) for port, own in zip(member.ports, signals, strict=True)}

    def elaborate(self, platform: Any) -> Elaboratable:
        hardware = self.block.build(platform)
        for member, signals in self._split:
            # In one piece each: the nets of the fields are then the ports themselves.
            fields = Cat(*signals)
            hardware.d.comb += member.value.eq(fields) if member.is_input else fields.eq(member.value)
        for fsm in vars(hardware).get("_generated", {}).values():
            _name_states(fsm)
        return hardware


def _name_states(fsm: Any) -> None:
    """Lets the states of an FSM go by their names in RTLIL, as values of an enumeration do."""
    if isinstance(fsm, FSM) and len(fsm.state):
        for name, code in fsm.encoding.items():
            fsm.state.attrs[f"enum_value_{code:0{len(fsm.state)}b}"] = name


class _Platform:
    """The platform that blocks see while one module is converted."""

    def __init__(self, emitter: ModuleEmitter, root: Block) -> None:
        self.emitter = emitter
        self.root = root
        self.children: dict[str, int] = {}

    def instance_of(self, block: Block) -> Instance | None:
        """The instance that stands for ``block``; None for the block being converted."""
        if block is self.root:
            return None
        module = self.emitter.add(block)
        self.children[module.name] = self.children.get(module.name, 0) + 1
        connections: list[tuple[str, str, Any]] = [
            ("i" if port.is_input else "o", port.name, member.value[port.low : port.low + port.width])
            for member in members(block)
            for port in member.ports
        ]
        # A module has a clock or a reset only if something in it is clocked or reset.
        present = inputs_of(module.rtlil)
        if "clk" in present:
            connections.append(("i", "clk", ClockSignal(block.domain)))
        if "rst" in present:
            connections.append(("i", "rst", ResetSignal(block.domain)))
        return Instance(module.name, *connections)


def _mark_used(block: Block) -> None:
    """Amaranth's own notes of an elaboration."""
    block._MustUse__used = True


def _consider_used(block: Block) -> None:
    """Keeps Amaranth from warning about blocks that are not elaborated because an equal one was."""
    _mark_used(block)
    for content in vars(block).values():
        for item in content if isinstance(content, list | tuple) else [content]:
            if isinstance(item, Block):
                _consider_used(item)


_PLAIN = (int, str, bytes, float, bool, type(None), enum.Enum, type)


def _fingerprint(value: Any) -> Any:
    """The parameters that a block was built from, comparable; None where they are unknown."""
    if isinstance(value, Block):
        own = set(value.signature.members)
        held = []
        for name, content in sorted(vars(value).items()):
            # Amaranth keeps the signature, and whether and where a block was used, under mangled names.
            if name in own or name.startswith(("_Component__", "_MustUse__")):
                continue
            part = _fingerprint(content)
            if part is None:
                return None
            held.append((name, part))
        pins = tuple((port.name, port.width) for port in ports(value))
        return (type(value), pins, tuple(held))
    if isinstance(value, _PLAIN):
        return (type(value), value)
    if isinstance(value, tuple | list):
        parts = [_fingerprint(item) for item in value]
        return None if None in parts else (type(value), tuple(parts))
    if isinstance(value, dict):
        return _fingerprint(list(value.items()))
    if isinstance(value, Shape) or is_layout(value):
        return (type(value), repr(value))
    return None
