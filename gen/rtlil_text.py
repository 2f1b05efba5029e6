"""Cleans Amaranth's RTLIL before it becomes Verilog: no net that repeats another, nothing that is not read."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from .keywords import KEYWORDS
from .rtlil import CONTROLS, NO_CHECK

__all__ = ["cleaned", "for_synthesis", "inputs_of", "names_of", "without_fields"]

# Names of nets: public ones begin with a backslash and may have brackets of their own, `\line[0].value`.
_NAME = re.compile(r"\\[^\s\[\]{}]+(?:\[[^\s\]]*\][^\s\[\]{}]*)*|\$\d+")
_WIRE = re.compile(r"  wire width (\d+)(?: (input|output) \d+)?\s+(?:signed )?(\S+)$")
_WHOLE = re.compile(r"(\\\S+)(?: \[(\d+)(?::0)?\])?$")
_FIELD = re.compile(r"\s*connect (\\[^\s.\[\]]+)([.\[]\S+) (\\\S+) \[(\d+)(?::(\d+))?\]$")
# The net at a pin, whole or from bit 0 to the one that is given.
_PIN = re.compile(r"(?m)^    connect \\(\S+) (\\\S+)(?: \[(\d+)(?::0)?\])?$")
_MEMORY_PORT = re.compile(r"(?ms)^  cell \$memrd_v2 .*?^  end$")
_NO_CHECK = re.compile(rf"(?m)^  attribute \\{NO_CHECK} .*\n(?:  attribute .*\n)*  memory .* (\S+)$")
_MODULE = re.compile(r"(?m)^(?=(?:attribute .*\n)*module )")
# Output pins of cells that can be removed when nothing reads them.
_OUTPUTS = {"\\Y", "\\Q", "\\DATA"}
_KEPT_CELLS = {"$memwr_v2", "$meminit_v2", "$print", "$check", "$assert", "$assume", "$cover"}


@dataclass
class _Item:
    """A declaration, cell, process or connection with its attributes. ``drives`` and ``reads`` are names of nets."""

    lines: list[str]
    drives: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    wire: str | None = None
    is_port: bool = False
    removable: bool = False


def inputs_of(text: str) -> set[str]:
    """Names of the input ports of a module's RTLIL."""
    wires = (_WIRE.match(line) for line in text.splitlines())
    return {match[3][1:] for match in wires if match and match[2] == "input"}


def names_of(text: str) -> set[str]:
    """Names of the nets, memories and cells in a module's RTLIL that have one."""
    return set(re.findall(r"(?m)^  (?:wire|memory|cell) .*\\(\S+)$", text))


def without_fields(text: str) -> str:
    """A module's RTLIL whose nets have no fields."""
    return re.sub(r"(?m)^  attribute \\fields .*\n", "", text)


def cleaned(text: str, ports: Sequence[str] = ()) -> str:
    """The same hardware with its ports in the order of ``ports``, clock and reset first, and these things gone:

    - names of struct fields and other nets that repeat part of a net: Verilog would carry hundreds of them, and two
      blocks that differ in such names alone would be two modules;
    - cells, registers and processes that nothing reads;
    - initial contents of memories that are all zero: nothing may rely on them, and large ones would fill files.

    Where a register goes by the name of the pin that it is connected to (``storage__addr``), its own (``index``) comes
    back. A net at a pin of an instance is called after both, ``queue__i__valid``; all names are plain identifiers. What
    fields a net has stands in its attribute ``fields``: name, lowest bit and width of each.
    """
    order = {f"\\{name}": n for n, name in enumerate((*CONTROLS, *ports))}
    return "".join(_cleaned_module(part, order) for part in _MODULE.split(text) if part.strip())


def _cleaned_module(text: str, order: dict[str, int]) -> str:
    head, _, body = text.partition("module ")
    name, _, body = body.partition("\n")
    if not name:
        return ""
    attributes = [line for line in head.splitlines() if not line.startswith("attribute \\generator")]
    items = [item for item in _items(body) if not _is_zero_memory(item)]
    _restore_names(items)
    fields = _fields(items)
    items = _without_unread(items)
    for item in items:
        if item.wire in fields and not item.is_port:
            item.lines.insert(-1, f'  attribute \\fields "{fields[item.wire]}"')
    _rename(items)
    ports = sorted((item for item in items if item.is_port), key=lambda item: order.get(item.wire or "", len(order)))
    for number, item in enumerate(ports, start=1):  # Yosys orders number 0 last
        item.lines[-1] = re.sub(r"(input|output) \d+ ", rf"\1 {number} ", item.lines[-1])
    rest = [item for item in items if not item.is_port]
    lines = [line for item in (*ports, *rest) for line in item.lines]
    return "\n".join([*attributes, f"module {name}", *lines, "end", ""])


def _items(body: str) -> Iterator[_Item]:
    """Takes a module's body apart."""
    lines = [line for line in body.splitlines() if line.strip()]
    at = 0
    while lines[at] != "end":
        begin = at
        while lines[at].startswith("  attribute "):
            at += 1
        word = lines[at].split()[0]
        first = at
        if word in ("cell", "process"):
            while lines[at] != "  end":
                at += 1
        at += 1
        yield _item(word, lines[begin:at], lines[first:at])


def _item(word: str, lines: list[str], body: list[str]) -> _Item:
    item = _Item(lines)
    if word == "wire":
        match = _WIRE.match(body[0])
        if match is None:
            raise ValueError(f"RTLIL has a wire that cannot be read: {body[0]}")
        item.wire, item.is_port = match[3], match[2] is not None
    elif word == "connect":
        target, *values = _NAME.findall(body[0])
        item.drives, item.reads, item.removable = {target}, set(values), True
    elif word == "process":
        for line in body[1:]:
            names = _NAME.findall(line)
            if line.strip().startswith("assign "):
                item.drives.add(names[0])
                names = names[1:]
            item.reads.update(names)
        item.reads -= item.drives
        item.removable = True
    elif word == "cell":
        kind = body[0].split()[1]
        item.removable = kind.startswith("$") and kind not in _KEPT_CELLS
        for line in body[1:-1]:
            pin, _, value = line.strip().removeprefix("connect ").partition(" ")
            if line.startswith("    connect "):
                is_output = item.removable and pin in _OUTPUTS
                (item.drives if is_output else item.reads).update(_NAME.findall(value))
    return item


def for_synthesis(text: str) -> str:
    """The same modules, with what the attribute ``no_rw_check`` says of a memory said at its ports, where Yosys looks for it.

    A synchronous port need not return the old word where it meets a write of the same word.
    """
    return "".join(_MEMORY_PORT.sub(_unchecked(part), part) for part in _MODULE.split(text))


def _unchecked(module: str) -> Callable[[re.Match[str]], str]:
    """What becomes of a port of a module's memories."""
    names = set(_NO_CHECK.findall(module))

    def port(match: re.Match[str]) -> str:
        cell = match[0]
        memory = re.search(r'parameter \\MEMID "\\(.*)"', cell)
        if memory is None or memory[1] not in names or "parameter \\CLK_ENABLE 1" not in cell:
            return cell
        return re.sub(r"(COLLISION_X_MASK (\d+)')0+", lambda mask: mask[1] + "1" * int(mask[2]), cell)

    return port


def _is_zero_memory(item: _Item) -> bool:
    if not item.lines[0].startswith("  cell $meminit_v2 "):
        return False
    data = next(line for line in item.lines if line.startswith("    connect \\DATA "))
    return set(data.split("'")[-1]) <= {"0"}


def _without_unread(items: list[_Item]) -> list[_Item]:
    """Keeps what an output port, a memory or an instance depends on, and the nets between."""
    drivers: dict[str, list[_Item]] = {}
    for item in items:
        for name in item.drives:
            drivers.setdefault(name, []).append(item)
    ports = {item.wire for item in items if item.is_port}
    pending = [item for item in items if item.wire is None and (not item.removable or item.drives & ports)]
    alive = {id(item) for item in pending}
    while pending:
        for name in pending.pop().reads:
            for driver in drivers.get(name, ()):
                if id(driver) not in alive:
                    alive.add(id(driver))
                    pending.append(driver)
    kept = [item for item in items if item.wire is not None or id(item) in alive]
    named = {name for item in kept for name in item.drives | item.reads}
    return [item for item in kept if item.wire is None or item.is_port or item.wire in named]


def _fields(items: list[_Item]) -> dict[str, str]:
    """Fields of nets that consist of nothing else, as name=low+width each, the lowest first."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for item in items:
        match = _FIELD.match(item.lines[-1])
        if match is not None and match[1] == match[3]:
            low = int(match[5] or match[4])
            found.setdefault(match[1], {})[match[2]] = (low, int(match[4]) - low + 1)
    widths = {item.wire: _width(item) for item in items if item.wire}
    texts = {}
    for net, parts in found.items():
        inner = {path: at for path, at in parts.items() if not any(_within(other, path) for other in parts)}
        ordered = sorted((low, width, path) for path, (low, width) in inner.items())
        end = 0
        for low, width, _ in ordered:
            end = low + width if low == end else -1
        if end == widths[net] and len(ordered) > 1:
            names = [re.sub(r"\W+", "__", path).strip("_") for _, _, path in ordered]
            texts[net] = " ".join(f"{name}={low}+{width}" for name, (low, width, _) in zip(names, ordered, strict=True))
    return texts


def _within(path: str, outer: str) -> bool:
    return path != outer and path.startswith(outer) and path[len(outer)] in ".["


def _rename(items: list[_Item]) -> None:
    """Gives nets that are connected to a pin of an instance, and names that are no identifiers, a better name."""
    widths = {item.wire: _width(item) for item in items if item.wire and not item.is_port}
    wanted: dict[str, str] = {}
    taken = names_of("\n".join(line for item in items for line in item.lines)) | set(CONTROLS)
    for item in items:
        head = re.match(r"  (cell \\\S+|memory width \d+ size \d+) \\(\w*\$\S*)$", item.lines[0])
        if head is not None:
            name = _free(head[2], taken)
            item.lines[0] = f"  {head[1]} \\{name}"
            for other in items if head[1].startswith("memory") else ():
                other.lines = [line.replace(f'"\\\\{head[2]}"', f'"\\\\{name}"') for line in other.lines]
    for item in items:
        match = re.match(r"  cell (\\\S+) \\(\S+)$", item.lines[0])
        if match is None:
            continue
        for pin, net, high in _PIN.findall("\n".join(item.lines[1:])):
            if (
                net in widths
                and net.partition("$")[0] == f"\\{pin}"
                and int(high or widths[net] - 1) == widths[net] - 1
            ):
                wanted[net] = f"{match[2]}__{pin}"
    swap = {}
    for net in widths:
        plain = net.removeprefix("\\")
        better = wanted.get(net, plain)
        if net.startswith("\\") and (better != plain or not re.fullmatch(r"[A-Za-z]\w*", plain)):
            swap[net] = f"\\{_free(better, taken)}"
    for item in items if swap else ():
        if (item.drives | item.reads | {item.wire}) & swap.keys():
            item.lines = [_renamed(line, swap) for line in item.lines]


def _free(wanted: str, taken: set[str]) -> str:
    """A plain identifier like ``wanted`` that is not taken yet."""
    base = re.sub(r"\W+", "_", wanted.partition("$")[0] or wanted).strip("_") or "value"
    name, number = base, 2
    while name in taken or name in KEYWORDS:
        name, number = f"{base}_{number}", number + 1
    taken.add(name)
    return name


def _restore_names(items: list[_Item]) -> None:
    """A net named after a submodule's pin, aliased by a plain name that nothing reads, takes the plain name."""
    wires = {item.wire: item for item in items if item.wire}
    read = {name for item in items for name in item.reads}
    swap: dict[str, str] = {}
    for item in items:
        if not item.lines[0].startswith("connect "):
            continue
        plain, value = item.lines[0].removeprefix("connect ").split(" ", 1)
        match = _WHOLE.match(value)
        if not match or plain in read or plain in swap or match[1] in swap:
            continue
        pin = match[1]
        if wires[plain].is_port or wires[pin].is_port or _is_derived(plain) or not _is_derived(pin):
            continue
        width = int(_width(wires[pin]))
        if _width(wires[plain]) == width and int(match[2] or 0) == width - 1:
            swap |= {pin: plain, plain: pin}
    for item in items if swap else ():
        if (item.drives | item.reads | {item.wire}) & swap.keys():
            item.lines = [_renamed(line, swap) for line in item.lines]
            item.drives = {swap.get(name, name) for name in item.drives}
            item.reads = {swap.get(name, name) for name in item.reads}
            item.wire = swap.get(item.wire, item.wire) if item.wire else None


def _renamed(line: str, swap: dict[str, str]) -> str:
    """The line with nets renamed; pins, parameters and names of cells are not nets."""
    if line.startswith(("    parameter ", "  cell ", "  attribute ")):
        return line
    pin = re.match(r"    connect \S+ ", line)
    at = pin.end() if pin else 0
    return line[:at] + _NAME.sub(lambda found: swap.get(found[0], found[0]), line[at:])


def _width(item: _Item) -> int:
    match = _WIRE.match(item.lines[-1])
    return int(match[1]) if match else 0


def _is_derived(name: str) -> bool:
    """Named by Amaranth after a port of a submodule or a field of a struct."""
    return "__" in name or "." in name or "[" in name
