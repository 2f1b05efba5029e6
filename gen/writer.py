"""SystemVerilog of one module from its RTLIL: expressions where an operator has one user, registers that change under the
same conditions in one block, states and fields by their names.

What Amaranth calls by a number gets no net of its own where it can be written where it is used; a net that is left gets its name
from what it is. Every operand is as wide as its operator: there is nothing that a linter would have to be told about widths.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from .expressions import Renderer, constant, operands
from .names import unused
from .naming import Child, Naming, choice_of
from .netlist import Netlist
from .procedures import Procedures, wrapped
from .rtlil import CONTROLS, Assign, Cell, Driver, Net, Part, Spec, Switch, parse, sliced
from .statements import all_merged, switch_key

__all__ = ["Child", "Written", "write_module"]


@dataclass(frozen=True, kw_only=True)
class Written:
    """Text of a module; ``fields`` are nets that the text has in parts: for each part its name, lowest bit and width."""

    text: str
    fields: dict[str, tuple[tuple[str, int, int], ...]]


def write_module(rtlil: str, children: Mapping[str, Child]) -> Written:
    """The module of an RTLIL text. ``children`` by the name that the RTLIL has for them."""
    netlist = Netlist(parse(rtlil))
    return Written(text=_Writer(Naming(netlist, children)).write(), fields=netlist.parts)


class _Writer:
    def __init__(self, naming: Naming) -> None:
        self.naming = naming
        self.netlist = naming.netlist
        self.module = naming.module
        self.render = Renderer(
            self.module, lambda net: naming.sources.get(net) if net in naming.inlined else None, naming.name
        )
        self.procedures = Procedures(self.render, self.module.nets)

    def write(self) -> str:
        module = self.module
        legend = self._legend()
        rest = [*self._joins()]
        for cell in self.naming.instances:
            rest += ["", *self._instance(cell)]
        rest += [*self._combinational(), *self._registers(), *self._memories()]
        given = self._given("\n".join(rest))
        ports = sorted((net for net in module.nets.values() if net.way), key=lambda net: net.number)
        lines = [f"module {module.name} ("]
        for n, net in enumerate(ports):
            lines.append(f"  {net.way:<6} {self._declared(net)}{',' if n < len(ports) - 1 else ''}")
        lines += [");", *legend]
        words = set(re.findall(r"\w+", "\n".join([*rest, *given])))
        nets = [net for net in module.nets.values() if not net.way and self.naming.name(net.name) in words]
        lines += [f"  {self._declared(net)};" for net in nets if net.name not in self.naming.inlined]
        for name, memory in module.memories.items():
            hints = (name if value == "1" else f'{name} = "{value}"' for name, value in memory.hints.items())
            attribute = f"(* {', '.join(hints)} *) " if memory.hints else ""
            lines.append(f"  {attribute}logic {_range(memory.width)}{name} [0:{memory.size - 1}];")
        return "\n".join([*lines, *(["", *given] if given else []), *rest, "", "endmodule", ""])

    def _given(self, rest: str) -> list[str]:
        """What operators give to nets that something reads."""
        words = set(re.findall(r"\w+", rest))
        found: dict[str, list[str]] = {}
        ports = {net.name for net in self.module.nets.values() if net.way}
        for net in self.naming.users_first():
            if net in self.naming.inlined or not (net in ports or self.naming.name(net) in words):
                continue
            self.naming.inlined.add(net)
            text = self.render.text((Part(net, 0, self.module.nets[net].width),))
            self.naming.inlined.discard(net)
            words |= set(re.findall(r"\w+", text))
            found[net] = wrapped(f"  assign {self.naming.name(net)} = {text};")
        return [line for net in self.naming.sources if net in found for line in found[net]]

    def _declared(self, net: Net) -> str:
        registers = {driver.target for driver in self.netlist.drivers if driver.clock}
        init = f" = {self.render.named(net.name, net.init)}" if net.init and net.name in registers else ""
        return f"logic {_range(net.width)}{self.naming.name(net.name)}{init}"

    def _legend(self) -> list[str]:
        """Names of states and other values, where a net has them."""
        sets: dict[tuple[tuple[str, str], ...], list[Net]] = {}
        for net in self.module.nets.values():
            if net.names:
                sets.setdefault(tuple(sorted(net.names.items())), []).append(net)
        lines = []
        taken = {self.naming.name(net) for net in self.module.nets}
        counts = Counter(name for names in sets for _, name in names)
        for names, nets in sets.items():
            lines += ["", f"  // Values of {', '.join(self.naming.name(net.name) for net in nets)}."]
            for bits, name in names:
                base = name.upper() if counts[name] == 1 else f"{nets[0].name}_{name}".upper()
                called = unused(re.sub(r"\W", "_", base), taken)
                taken.add(called)
                lines.append(f"  localparam logic {_range(len(bits))}{called} = {constant(bits)};")
                for net in nets:
                    net.names[bits] = called
        return lines

    def _joins(self) -> list[str]:
        """Nets that are parts of others, or several of them."""
        lines = []
        for target, value in self.module.joins:
            lines += self._assign(self.render.text(target), value)
        return ["", *lines] if lines else []

    def _assign(self, target: str, value: Spec) -> list[str]:
        return wrapped(f"  assign {target} = {self.render.text(value)};")

    def _instance(self, cell: Cell) -> list[str]:
        child = self.naming.children[cell.kind]
        given = ", ".join(f".{name}({value})" for name, value in child.parameters)
        lines = [f"  {child.module} {f'#({given}) ' if given else ''}{cell.name} ("]
        outputs = {id(spec) for spec in self.naming.outputs(cell)}
        used = self._used
        # As the child's own ports: clock and reset come first.
        pins = sorted(cell.pins.items(), key=lambda pin: pin[0] not in CONTROLS)
        for n, (pin, spec) in enumerate(pins):
            unread = id(spec) in outputs and not any(part.name in used for part in spec)
            text = "" if unread else self.render.text(spec)
            lines += wrapped(f"    .{pin}({text}){',' if n < len(pins) - 1 else ''}")
        return [*lines, "  );"]

    @cached_property
    def _used(self) -> set[str]:
        """Nets that something reads; one without a name that only the pin of one instance has is read by nobody."""
        naming = self.naming
        found = {net.name for net in self.module.nets.values() if net.way}
        for spec, _ in naming.roots():
            found |= {part.name for part in spec if part.name}
        pins = Counter(part.name for cell in naming.instances for spec in cell.pins.values() for part in spec)
        others = {part.name for spec, _ in naming.roots(with_pins=False) for part in spec}
        others |= {part.name for source in naming.sources.values() for spec in operands(source) for part in spec}
        return {name for name in found if pins[name] != 1 or name in others or not name.startswith("$")}

    def _combinational(self) -> list[str]:
        """Fields of one net that ask the same conditions are one process."""
        lines: list[str] = []
        groups: dict[object, list[Driver]] = {}
        for driver in self.netlist.drivers:
            if not driver.clock:
                asked = tuple(switch_key(item) for item in driver.body if isinstance(item, Switch))
                key = (driver.field_of, asked) if driver.field_of and asked else driver.target
                groups.setdefault(key, []).append(driver)
        for group in groups.values():
            body = group[0].body
            choices = [choice_of(driver) if len(driver.body) > 1 else None for driver in group]
            if len(body) == 1 and isinstance(body[0], Assign):
                lines += ["", *self._assign(self.render.text((body[0].target,)), body[0].value)]
            elif all(choice is not None and len(choice.cases) == 1 for choice in choices):
                lines.append("")
                for driver, choice in zip(group, choices, strict=True):
                    assert choice is not None
                    lines += wrapped(f"  assign {self.naming.name(driver.target)} = {self.render.choice(choice)};")
            else:
                lines += ["", "  always_comb begin", *self.procedures.body(all_merged(group), "=", 2), "  end"]
        return lines

    def _registers(self) -> list[str]:
        """Registers that ask the same conditions change in one block."""
        registers = [driver for driver in self.netlist.drivers if driver.clock]
        groups: list[list[Driver]] = []
        asked: dict[object, list[Driver]] = {}
        for driver in registers:
            keys = [
                (driver.clock, driver.reset_by, switch_key(item)) for item in driver.body if isinstance(item, Switch)
            ]
            if not keys:
                keys = [(driver.clock, driver.reset_by, None)]
            own = [driver]
            for group in {id(asked[key]): asked[key] for key in keys if key in asked}.values():
                group += own
                own = group
                groups = [other for other in groups if other is not group]
            for other in own:
                for item in other.body:
                    if isinstance(item, Switch):
                        asked[(other.clock, other.reset_by, switch_key(item))] = own
            asked.update(dict.fromkeys(keys, own))
            groups.append(own)
        places = {id(driver): n for n, driver in enumerate(registers)}
        lines: list[str] = []
        for group in groups:
            group = sorted({id(driver): driver for driver in group}.values(), key=lambda driver: places[id(driver)])
            lines += ["", *self.procedures.block(group)]
        return lines

    def _memories(self) -> list[str]:
        lines: list[str] = []
        for cell in self.module.cells:
            if cell.kind == "$meminit_v2":
                lines += self._contents(cell)
            elif cell.kind == "$memwr_v2":
                lines += self._write_port(cell)
            elif cell.kind == "$memrd_v2" and cell.number("CLK_ENABLE"):
                if "1" in cell.parameters["TRANSPARENCY_MASK"].partition("'")[2]:
                    raise ValueError(
                        "RTLIL has a memory whose port reads what is being written, which cannot be written"
                    )
                lines += self._read_port(cell)
        return lines

    def _contents(self, cell: Cell) -> list[str]:
        width, words = cell.number("WIDTH"), cell.number("WORDS")
        data = cell.pins["DATA"]
        lines = ["", "  initial begin"]
        for n in range(words):
            lines.append(f"    {cell.parameters['MEMID']}[{n}] = {constant(sliced(data, n * width, width)[0].bits)};")
        return [*lines, "  end"]

    def _write_port(self, cell: Cell) -> list[str]:
        """Bits that are written together, under one condition each."""
        clock = self.render.text(cell.pins["CLK"])
        place = f"{cell.parameters['MEMID']}[{self.render.text(cell.pins['ADDR'])}]"
        enable, data = cell.pins["EN"], cell.pins["DATA"]
        width = cell.number("WIDTH")
        bits = [sliced(enable, n, 1) for n in range(width)]
        lines = ["", f"  always_ff @(posedge {clock}) begin"]
        low = 0
        while low < width:
            high = low
            while high < width and bits[high] == bits[low]:
                high += 1
            part = "" if high - low == width else f"[{low}]" if high - low == 1 else f"[{high - 1}:{low}]"
            text = f"{place}{part} <= {self.render.text(sliced(data, low, high - low))};"
            condition = self.render.text(bits[low])
            lines += wrapped(f"    {text}" if condition == "1'b1" else f"    if ({condition}) {text}")
            low = high
        return [*lines, "  end"]

    def _read_port(self, cell: Cell) -> list[str]:
        clock, enable = self.render.text(cell.pins["CLK"]), self.render.text(cell.pins["EN"])
        text = f"{self.render.text(cell.pins['DATA'])} <= {cell.parameters['MEMID']}[{self.render.text(cell.pins['ADDR'])}];"
        lines = wrapped(f"    {text}" if enable == "1'b1" else f"    if ({enable}) {text}")
        return ["", f"  always_ff @(posedge {clock}) begin", *lines, "  end"]


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""
