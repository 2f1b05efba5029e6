"""A module's RTLIL as objects: nets, cells, memories, and processes as the trees of conditions that the source has."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

__all__ = [
    "CONTROLS",
    "NO_CHECK",
    "Assign",
    "Cell",
    "Driver",
    "Memory",
    "Module",
    "Net",
    "Part",
    "Spec",
    "Statement",
    "Switch",
    "mapped",
    "parse",
    "sliced",
    "width_of",
]

_TOKEN = re.compile(r"\{|\}|\[(\d+)(?::(\d+))?\]|\S+")
_WIRE = re.compile(r"wire width (\d+)(?: (input|output) (\d+))?\s+(?:signed )?(\S+)$")
_MEMORY = re.compile(r"memory width (\d+) size (\d+) (\S+)$")
#: Clock and reset of a module, which stand before its other ports.
CONTROLS = ("clk", "rst")
#: Attribute of a memory: what a read of a word returns while that word is written does not matter.
NO_CHECK = "no_rw_check"
_FIELD = re.compile(r"(\S+)=(\d+)\+(\d+)")


@dataclass(frozen=True)
class Part:
    """Bits of a net; of a constant where ``name`` is empty, with ``bits`` as written, the highest first."""

    name: str
    low: int
    width: int
    bits: str = ""


# The lowest part first.
Spec = tuple[Part, ...]


@dataclass(frozen=True)
class Assign:
    """``target`` takes ``value``; a later assignment wins."""

    target: Part
    value: Spec


@dataclass(frozen=True)
class Switch:
    """The first case that has a pattern of the selector's value, or none at all; ``-`` is any bit."""

    selector: Spec
    cases: "tuple[tuple[tuple[str, ...], tuple[Statement, ...]], ...]"


Statement = Assign | Switch


@dataclass
class Net:
    """``way`` is "input" or "output" for a port. ``names`` are those of its values; ``fields`` name, lowest bit, width."""

    name: str
    width: int
    way: str = ""
    number: int = 0
    init: str = ""
    names: dict[str, str] = field(default_factory=dict)
    fields: tuple[tuple[str, int, int], ...] = ()


@dataclass
class Cell:
    """An operator, register, port of a memory or instance of another module."""

    kind: str
    name: str
    parameters: dict[str, str] = field(default_factory=dict)
    pins: dict[str, Spec] = field(default_factory=dict)

    def number(self, parameter: str) -> int:
        return int(self.parameters[parameter])


@dataclass
class Driver:
    """What a net gets from a process. ``clock`` where it is a register, which takes ``reset`` while ``rst`` is high.

    ``field_of``: the net that this one is a field of.
    """

    target: str
    width: int
    body: tuple[Statement, ...]
    clock: Spec = ()
    reset_by: Spec = ()
    reset: Spec = ()
    field_of: str = ""


@dataclass(frozen=True)
class Memory:
    """``size`` words of ``width`` bits, and what tools are told of them: attributes and their values as written."""

    width: int
    size: int
    hints: dict[str, str]


@dataclass
class Module:
    """One module. ``joins`` are nets that are others: target and value."""

    name: str
    nets: dict[str, Net] = field(default_factory=dict)
    memories: dict[str, Memory] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    processes: list[tuple[Statement, ...]] = field(default_factory=list)
    joins: list[tuple[Spec, Spec]] = field(default_factory=list)


def width_of(spec: Spec) -> int:
    return sum(part.width for part in spec)


def sliced(spec: Spec, low: int, width: int) -> Spec:
    """Bits of ``spec``."""
    found = []
    at = 0
    for part in spec:
        begin, end = max(low, at), min(low + width, at + part.width)
        if begin < end:
            shift = begin - at
            bits = part.bits[part.width - (end - at) : part.width - shift] if not part.name else ""
            found.append(Part(part.name, part.low + shift, end - begin, bits))
        at += part.width
    return tuple(found)


def parse(text: str) -> Module:
    """The one module of an RTLIL text."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    head = next(n for n, line in enumerate(lines) if line.startswith("module "))
    return _Parser(lines, head).module


def _plain(name: str) -> str:
    return name.removeprefix("\\")


class _Parser:
    def __init__(self, lines: list[str], head: int) -> None:
        self.lines = lines
        self.at = head + 1
        self.module = Module(_plain(lines[head].split()[1]))
        attributes: dict[str, str] = {}
        while (line := self._next()) != "end":
            word, _, rest = line.partition(" ")
            if word == "attribute":
                name, _, value = rest.partition(" ")
                attributes[_plain(name)] = value.strip('"')
                continue
            if word == "wire":
                self._wire(line, attributes)
            elif word == "memory":
                match = _MEMORY.match(line)
                assert match is not None
                hints = {name: value for name, value in attributes.items() if name in (NO_CHECK, "ram_style")}
                self.module.memories[_plain(match[3])] = Memory(int(match[1]), int(match[2]), hints)
            elif word == "cell":
                self._cell(rest)
            elif word == "process":
                self.module.processes.append(self._body())
            elif word == "connect":
                self.module.joins.append(self._specs(rest))
            attributes = {}

    def _next(self) -> str:
        self.at += 1
        return self.lines[self.at - 1]

    def _wire(self, line: str, attributes: dict[str, str]) -> None:
        match = _WIRE.match(line)
        if match is None:
            raise ValueError(f"RTLIL has a wire that cannot be read: {line}")
        names = {name.removeprefix("enum_value_"): value for name, value in attributes.items() if "enum_value_" in name}
        fields = tuple(
            (name, int(low), int(width)) for name, low, width in _FIELD.findall(attributes.get("fields", ""))
        )
        init = attributes.get("init", "").partition("'")[2]
        net = Net(_plain(match[4]), int(match[1]), match[2] or "", int(match[3] or 0), init, names, fields)
        self.module.nets[net.name] = net

    def _cell(self, rest: str) -> None:
        kind, name = rest.split()
        cell = Cell(_plain(kind), _plain(name))
        while (line := self._next()) != "end":
            word, key, value = line.split(" ", 2)
            if word == "parameter":
                cell.parameters[_plain(key)] = _plain(value.strip('"').replace("\\\\", "\\"))
            elif word == "connect":
                cell.pins[_plain(key)] = self._spec(value)
        self.module.cells.append(cell)

    def _body(self) -> tuple[Statement, ...]:
        """Statements up to the line that closes them, which is left to be read only where it opens the next case."""
        found: list[Statement] = []
        while not (line := self._next()).startswith(("end", "case")):
            word, _, rest = line.partition(" ")
            if word == "assign":
                target, value = self._specs(rest)
                at = 0
                for part in target:
                    found.append(Assign(part, sliced(value, at, part.width)))
                    at += part.width
            elif word == "switch":
                selector = self._spec(rest)
                cases = []
                line = self._next()
                while line != "end":
                    patterns = tuple(
                        item.partition("'")[2] for item in line.removeprefix("case").replace(",", " ").split()
                    )
                    cases.append((patterns, self._body()))
                    self.at -= 1
                    line = self._next()
                found.append(Switch(selector, tuple(cases)))
        return tuple(found)

    def _spec(self, text: str) -> Spec:
        return next(self._read(text))

    def _specs(self, text: str) -> tuple[Spec, Spec]:
        read = self._read(text)
        return next(read), next(read)

    def _read(self, text: str) -> Iterator[Spec]:
        parts: list[Part] = []
        depth = 0
        for match in _TOKEN.finditer(text):
            token = match[0]
            if token == "{":
                if parts:
                    yield tuple(parts)
                    parts = []
                depth += 1
            elif token == "}":
                depth -= 1
                yield tuple(reversed(parts))
                parts = []
            elif match[1] is not None:
                high, low = int(match[1]), int(match[2] or match[1])
                parts[-1] = Part(parts[-1].name, parts[-1].low + low, high - low + 1)
            else:
                if depth == 0 and parts:
                    yield tuple(parts)
                    parts = []
                parts.append(self._part(token))
        if parts:
            yield tuple(parts)

    def _part(self, token: str) -> Part:
        if token[0].isdigit():
            bits = token.partition("'")[2] if "'" in token else f"{int(token):032b}"
            return Part("", 0, len(bits), bits)
        name = _plain(token)
        return Part(name, 0, self.module.nets[name].width)


def mapped(body: tuple[Statement, ...], change: Callable[[Spec], Spec]) -> tuple[Statement, ...]:
    """The statements with ``change`` made to all that they read."""
    return tuple(
        Assign(item.target, change(item.value))
        if isinstance(item, Assign)
        else Switch(change(item.selector), tuple((patterns, mapped(inner, change)) for patterns, inner in item.cases))
        for item in body
    )
