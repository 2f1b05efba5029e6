"""SystemVerilog of one module from its RTLIL: expressions where an operator has one user, registers that change under the
same conditions in one block, states and fields by their names.

What Amaranth calls by a number gets no net of its own where it can be written where it is used; a net that is left gets its name
from what it is. Every operand is as wide as its operator: there is nothing that a linter would have to be told about widths.
"""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .expressions import Choice, Read, Renderer, Source, can_slice, constant, cut_operands, needs_name, operands
from .keywords import KEYWORDS
from .rtlil import Assign, Cell, Driver, Module, Net, Part, Spec, Statement, Switch, mapped, parse, sliced, width_of
from .statements import assignments, folded, merged, restricted, simplified, specs_read, switch_key

__all__ = ["Child", "Written", "write_module"]

WIDTH = 120
# Operators in one expression, at most; and in one that is written at each of its uses.
LONGEST = 12
REPEATED = 1
# Characters of a name made of two.
LONGEST_NAME = 32
# Values that a choice may have to be written as an expression.
FEW = 4
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*$")
_WORDS = {
    "$add": "sum", "$sub": "difference", "$mul": "product", "$neg": "negative", "$and": "both", "$or": "either",
    "$xor": "differs", "$not": "inverse", "$eq": "equal", "$ne": "unequal", "$lt": "below", "$le": "at_most",
    "$gt": "above", "$ge": "at_least", "$mux": "choice", "$shl": "shifted", "$shr": "shifted", "$sshr": "shifted",
    "$shift": "part",
    "$reduce_or": "any", "$reduce_and": "all", "$reduce_xor": "parity", "$reduce_bool": "any",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Child:
    """What an instance is of: the module's name, its outputs, and the values of its parameters."""

    module: str
    outputs: frozenset[str]
    parameters: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Written:
    """Text of a module; ``fields`` are nets that the text has in parts: for each part its name, lowest bit and width."""

    text: str
    fields: dict[str, tuple[tuple[str, int, int], ...]]


def write_module(rtlil: str, children: Mapping[str, Child]) -> Written:
    """The module of an RTLIL text. ``children`` by the name that the RTLIL has for them."""
    writer = _Writer(parse(rtlil), children)
    return Written(text=writer.write(), fields=writer.parts)


class _Writer:
    def __init__(self, module: Module, children: Mapping[str, Child]) -> None:
        self.module = module
        self.children = children
        self.sources: dict[str, Source] = {}
        self.drivers: list[Driver] = []
        self.parts: dict[str, tuple[tuple[str, int, int], ...]] = {}
        self.names: dict[str, str] = {}
        self.inlined: set[str] = set()
        self.render = Renderer(module, lambda net: self.sources.get(net) if net in self.inlined else None, self._name)
        self.instances = [cell for cell in module.cells if not cell.kind.startswith("$")]
        self._fuse()
        self._split()
        self._prune()
        self._widen()
        self._unify()
        self._find_sources()
        self._decide()
        self._name_rest()

    # What drives what.

    def _fuse(self) -> None:
        """Processes become drivers; those that only feed a register become that register's."""
        reads = Counter(part.name for spec in self._all_reads() for part in spec)
        processes: dict[str, tuple[Statement, ...]] = {}
        for body in self.module.processes:
            target = next(iter(assignments(body))).target.name
            processes[target] = simplified(body)
        for cell in self.module.cells:
            if cell.kind != "$dff":
                if cell.kind in ("$adff", "$sdff"):
                    self.drivers.append(self._asynchronous(cell))
                continue
            (q,), d = cell.pins["Q"], cell.pins["D"]
            fed = d[0].name if len(d) == 1 and d[0].low == 0 else ""
            found = processes.get(fed)
            net = self.module.nets[q.name]
            if found is not None and reads[fed] == 1 and net.way != "input" and fed.startswith("$"):
                assert self.module.nets[fed].width == q.width == net.width
                del processes[fed]
                self.module.nets.pop(fed)
                body = restricted(found, q.name, 0, q.width)
                if body and isinstance(body[0], Assign) and body[0].value == (q,) and body[0].target == q:
                    body = body[1:]
            else:
                body = (Assign(q, d),)
            self.drivers.append(self._with_reset(q, body, cell.pins["CLK"]))
        for target, body in processes.items():
            width = self.module.nets[target].width
            body = folded(body, target, width)
            itself = any(part.name == target for spec in specs_read(body) for part in spec)
            self.drivers += self._apart(target, width, body) if itself else [Driver(target, width, body)]

    def _all_reads(self) -> Iterable[Spec]:
        for body in self.module.processes:
            yield from specs_read(body)
        for cell in self.module.cells:
            yield from (
                spec for pin, spec in cell.pins.items() if pin not in ("Y", "Q", "DATA") or "memwr" in cell.kind
            )
        for _, value in self.module.joins:
            yield value

    def _asynchronous(self, cell: Cell) -> Driver:
        raise ValueError(f"RTLIL has a cell that cannot be written: {cell.kind}")

    @staticmethod
    def _with_reset(q: Part, body: tuple[Statement, ...], clock: Spec) -> Driver:
        last = body[-1] if body else None
        if (
            isinstance(last, Switch)
            and len(last.selector) == 1
            and last.selector[0].name == "rst"
            and len(last.cases) == 1
        ):
            patterns, inner = last.cases[0]
            if patterns == ("1",) and len(inner) == 1 and isinstance(inner[0], Assign) and inner[0].target == q:
                return Driver(q.name, q.width, body[:-1], clock, last.selector, inner[0].value)
        return Driver(q.name, q.width, body, clock)

    def _apart(self, target: str, width: int, body: tuple[Statement, ...]) -> list[Driver]:
        """A net some of whose bits depend on others, each group of bits that is assigned together by itself."""
        edges = sorted(
            {edge for item in assignments(body) for edge in (item.target.low, item.target.low + item.target.width)}
        )
        for item in body:
            if isinstance(item, Assign):
                for part in item.value:
                    if part.name == target:
                        edges = list(range(width + 1))
        found = []
        for low, high in zip(edges, edges[1:], strict=False):
            inner = folded(restricted(body, target, low, high - low), target, high - low)
            found.append(Driver(target, high - low, self._moved(inner, low)))
        return found

    def _moved(self, body: Sequence[Statement], by: int) -> tuple[Statement, ...]:
        found: list[Statement] = []
        for item in body:
            if isinstance(item, Assign):
                place = item.target
                found.append(Assign(Part(place.name, place.low + by, place.width), item.value))
            else:
                cases = tuple((patterns, self._moved(inner, by)) for patterns, inner in item.cases)
                found.append(Switch(item.selector, cases))
        return tuple(found)

    def _split(self) -> None:
        """Nets with fields become a net for each field, with the name of a port that shows the field."""
        module = self.module
        pieces: dict[str, list[tuple[int, int, str]]] = {}
        shown = {value[0]: target[0].name for target, value in module.joins if len(value) == 1}
        whole = {driver.target for driver in self.drivers if driver.width == module.nets[driver.target].width}
        for net in list(module.nets.values()):
            if not net.fields or net.way or net.name not in whole:
                continue
            found = []
            for name, low, width in net.fields:
                port = shown.get(Part(net.name, low, width))
                if port is not None and module.nets[port].way == "output":
                    module.joins = [(target, value) for target, value in module.joins if target[0].name != port]
                    module.nets[port].init = net.init[net.width - low - width : net.width - low]
                    found.append((low, width, port))
                    continue
                own = _unused(f"{net.name}__{name}", module.nets)
                init = net.init[net.width - low - width : net.width - low]
                module.nets[own] = Net(own, width, init=init)
                found.append((low, width, own))
            pieces[net.name] = found
            self.parts[net.name] = tuple((name, low, width) for low, width, name in found)

        def change(spec: Spec) -> Spec:
            if not any(part.name in pieces for part in spec):
                return spec
            found: list[Part] = []
            for part in spec:
                if part.name not in pieces:
                    found.append(part)
                    continue
                for low, width, name in pieces[part.name]:
                    begin, end = max(low, part.low), min(low + width, part.low + part.width)
                    if begin < end:
                        found.append(Part(name, begin - low, end - begin))
            return tuple(found)

        drivers = []
        for driver in self.drivers:
            body = mapped(driver.body, change)
            if driver.target not in pieces:
                drivers.append(Driver(driver.target, driver.width, body, driver.clock, driver.reset_by, driver.reset))
                continue
            for low, width, name in pieces[driver.target]:
                inner = folded(restricted(body, name, low, width), name, width)
                reset = sliced(driver.reset, low, width)
                drivers.append(Driver(name, width, inner, driver.clock, driver.reset_by, reset))
        self.drivers = drivers
        for cell in module.cells:
            cell.pins = {pin: change(spec) for pin, spec in cell.pins.items()}
        module.joins = [(change(target), change(value)) for target, value in module.joins]
        for name in pieces:
            del module.nets[name]

    def _prune(self) -> None:
        """Leaves out fields of nets that nothing reads."""
        count = -1
        while count != len(self.drivers):
            count = len(self.drivers)
            read = {net.name for net in self.module.nets.values() if net.way}
            for cell in self.module.cells:
                read |= {part.name for pin, spec in cell.pins.items() if pin != "Y" for part in spec}
            for _, value in self.module.joins:
                read |= {part.name for part in value}
            for driver in self.drivers:
                read |= {part.name for spec in specs_read(driver.body) for part in spec if part.name != driver.target}
            self.drivers = [driver for driver in self.drivers if driver.target in read]

    def _widen(self) -> None:
        """What is shifted to the right keeps its width, and its users take the part that they want."""
        nets = self.module.nets
        wide: dict[str, str] = {}
        for cell in self.module.cells:
            if cell.kind in ("$shr", "$sshr", "$shift") and width_of(cell.pins["A"]) > cell.number("Y_WIDTH"):
                (y,) = cell.pins["Y"]
                if not y.name.startswith("$"):
                    self.module.joins.append(((y,), (Part(f"${y.name}", 0, y.width),)))
                    wide[f"${y.name}"] = f"${y.name}$wide"
                else:
                    wide[y.name] = f"{y.name}$wide"
                own = list(wide.values())[-1]
                width = width_of(cell.pins["A"])
                nets[own] = Net(own, width)
                cell.pins["Y"] = (Part(own, 0, width),)
                cell.parameters["Y_WIDTH"] = str(width)
        self._replace(wide)

    def _replace(self, names: Mapping[str, str]) -> None:
        """Lets everything read other nets."""

        def change(spec: Spec) -> Spec:
            if not any(part.name in names for part in spec):
                return spec
            return tuple(Part(names.get(part.name, part.name), part.low, part.width, part.bits) for part in spec)

        for cell in self.module.cells:
            cell.pins = {pin: spec if pin == "Y" else change(spec) for pin, spec in cell.pins.items()}
        for driver in self.drivers:
            driver.body = mapped(driver.body, change)
        self.module.joins = [(target, change(value)) for target, value in self.module.joins]
        for name in names:
            self.module.nets.pop(name, None)

    def _unify(self) -> None:
        """Operators that do the same become one."""
        while True:
            same: dict[str, str] = {}
            known: dict[object, str] = {}
            kept = []
            for cell in self.module.cells:
                y = cell.pins.get("Y")
                if y is None or not cell.kind.startswith("$") or not y[0].name.startswith("$"):
                    kept.append(cell)
                    continue
                inputs = tuple((pin, spec) for pin, spec in cell.pins.items() if pin != "Y")
                first = known.setdefault((cell.kind, tuple(cell.parameters.items()), inputs), y[0].name)
                if first == y[0].name:
                    kept.append(cell)
                else:
                    same[y[0].name] = first
            if not same:
                return
            self.module.cells = kept
            self._replace(same)

    # What is written where it is used.

    def _find_sources(self) -> None:
        """Nets without a name that an operator, a small choice or a memory drives."""
        for cell in self.module.cells:
            y = cell.pins.get("Y")
            if y is not None and cell.kind.startswith("$"):
                self.sources[y[0].name] = cell
            if cell.kind == "$memrd_v2" and cell.number("CLK_ENABLE") == 0:
                self.sources[cell.pins["DATA"][0].name] = Read(cell.parameters["MEMID"], cell.pins["ADDR"])
        kept = []
        for driver in self.drivers:
            choice = self._choice(driver) if driver.target.startswith("$") and not driver.clock else None
            if choice is None:
                kept.append(driver)
            else:
                self.sources[driver.target] = choice
        self.drivers = kept

    @staticmethod
    def _choice(driver: Driver) -> Choice | None:
        whole = Part(driver.target, 0, driver.width)
        first, *others = driver.body
        if not isinstance(first, Assign) or first.target != whole:
            return None
        if not others:
            return Choice((), (), first.value)
        if len(others) > 1 or not isinstance(others[0], Switch):
            return None
        cases: list[tuple[str, Spec]] = []
        for patterns, inner in others[0].cases:
            value = first.value
            if len(inner) > 1 or (inner and (not isinstance(inner[0], Assign) or inner[0].target != whole)):
                return None
            if inner and isinstance(inner[0], Assign):
                value = inner[0].value
            cases += [(pattern, value) for pattern in patterns or ("-" * width_of(others[0].selector),)]
        rest = first.value
        # The last one of all that there are, and what fits always, needs no question.
        full = all("-" not in pattern for pattern, _ in cases) and len(cases) == 1 << width_of(others[0].selector)
        if cases and (full or set(cases[-1][0]) <= {"-"}):
            rest = cases.pop()[1]
        return Choice(others[0].selector, tuple(cases), rest) if len(cases) < FEW else None

    def _roots(self) -> Iterable[tuple[Spec, bool]]:
        """What statements read; whether they take a part of it."""
        for driver in self.drivers:
            yield from ((spec, False) for spec in specs_read(driver.body))
            yield driver.clock, True
            yield driver.reset_by, True
        for cell in self.module.cells:
            if cell.kind == "$memwr_v2":
                yield cell.pins["ADDR"], False
                yield cell.pins["DATA"], False
                yield cell.pins["EN"][:1], False
                yield cell.pins["CLK"], True
            elif cell.kind == "$memrd_v2" and cell.number("CLK_ENABLE"):
                yield from ((cell.pins[pin], False) for pin in ("ADDR", "EN"))
            elif not cell.kind.startswith("$"):
                yield from ((spec, False) for spec in cell.pins.values())
        for net, source in self.sources.items():
            if not net.startswith("$"):
                yield from ((spec, False) for spec in operands(source))
        for _, value in self.module.joins:
            yield value, False

    def _decide(self) -> None:
        """Which nets are written as expressions: those with one use, and those that are short."""
        nets = self.module.nets
        order = self._users_first()
        costs: dict[str, int] = {}
        for net in reversed(order):
            inner = {part.name for spec in operands(self.sources[net]) for part in spec if part.name in self.sources}
            costs[net] = 1 + sum(costs.get(name, 0) for name in inner if name.startswith("$"))
        uses: Counter[str] = Counter()
        parts: set[str] = set()
        cut: set[str] = set()
        driven = {part.name for cell in self.instances for spec in self._outputs(cell) for part in spec}

        def use(spec: Spec, times: int, keep: bool = False) -> None:
            for part in spec:
                source = self.sources.get(part.name)
                if source is None:
                    continue
                uses[part.name] += times
                if keep or part.width < nets[part.name].width:
                    (parts if keep or not can_slice(source, part.low) else cut).add(part.name)

        for spec, keep in self._roots():
            use(spec, 1, keep)
        for net in order:
            source = self.sources[net]
            times = 1
            if net.startswith("$"):
                short = costs[net] <= REPEATED and not isinstance(source, Choice)
                if net not in parts and net not in driven and (uses[net] == 1 or short) and costs[net] <= LONGEST:
                    self.inlined.add(net)
                    times = uses[net]
                for spec in operands(source):
                    use(spec, times)
            for spec in cut_operands(source):
                if net in cut or width_of(spec) > nets[net].width:
                    for part in spec:
                        if part.name in self.sources:
                            (cut if can_slice(self.sources[part.name], part.low) else parts).add(part.name)
            for spec in needs_name(source):
                use(spec, 0, True)
        for net in order:
            for spec in needs_name(self.sources[net]):
                self.inlined -= {part.name for part in spec}

    def _users_first(self) -> list[str]:
        """Nets with a source, each before those that it is made of."""
        seen: set[str] = set()
        done: list[str] = []
        for root in self.sources:
            stack = [(root, False)]
            while stack:
                net, leave = stack.pop()
                if leave:
                    done.append(net)
                elif net not in seen:
                    seen.add(net)
                    stack.append((net, True))
                    inner = (part.name for spec in operands(self.sources[net]) for part in spec)
                    stack += [(name, False) for name in inner if name in self.sources]
        return done[::-1]

    def _outputs(self, cell: Cell) -> list[Spec]:
        outputs = self.children[cell.kind].outputs
        return [spec for pin, spec in cell.pins.items() if pin in outputs]

    def _name(self, net: str) -> str:
        return self.names.get(net, net)

    def _name_rest(self) -> None:
        """Names for nets that have none, from what drives them."""
        taken = {net for net in self.module.nets if not net.startswith("$")}
        taken |= set(self.module.memories) | {cell.name for cell in self.instances} | KEYWORDS
        pins = {
            spec[0].name: (cell, pin) for cell in self.instances for pin, spec in cell.pins.items() if len(spec) == 1
        }
        for net in reversed(self._users_first()):
            if net.startswith("$") and net not in self.inlined:
                self._give(net, self._described(self.sources[net]), taken)
        for cell in self.module.cells:
            if cell.kind == "$memrd_v2":
                self._give(cell.pins["DATA"][0].name, f"{cell.parameters['MEMID']}specs_read", taken)
        for net in self.module.nets:
            if net.startswith("$") and net not in self.inlined and net not in self.names:
                driver = next((driver for driver in self.drivers if driver.target == net), None)
                if net in pins:
                    base = f"{pins[net][0].name}__{pins[net][1]}"
                elif driver is not None and driver.clock:
                    base = f"{self._first(specs_read(driver.body))}_register"
                else:
                    switches = [item.selector for item in driver.body if isinstance(item, Switch)] if driver else []
                    base = f"{self._first(switches)}_choice"
                self._give(net, base, taken)

    def _give(self, net: str, base: str, taken: set[str]) -> None:
        if net.startswith("$") and net not in self.names:
            self.names[net] = _unused(re.sub(r"_+$", "", base.lstrip("_")) or "value", taken)
            taken.add(self.names[net])

    def _described(self, source: Source) -> str:
        if isinstance(source, Read):
            return f"{source.memory}specs_read"
        if isinstance(source, Choice):
            return f"{self._first([source.selector, *operands(source)])}_choice"
        specs = [source.pins["S"]] if source.kind == "$mux" else operands(source)
        if source.kind in ("$and", "$or"):
            joined = f"{self._first(specs[:1])}_{source.kind[1:]}_{self._first(specs[1:])}"
            if len(joined) <= LONGEST_NAME:
                return joined
        return f"{self._first(specs)}_{_WORDS.get(source.kind, 'value')}"

    def _first(self, specs: Iterable[Spec]) -> str:
        """The name that an expression begins with."""
        for spec in specs:
            for part in reversed(spec):
                if not part.name:
                    continue
                name = self._name(part.name)
                if not name.startswith("$"):
                    return name.removesuffix("__valid")
                source = self.sources.get(part.name)
                if source is not None:
                    return self._first(operands(source))
        return "constant"

    # Text.

    def write(self) -> str:
        module = self.module
        legend = self._legend()
        rest = [*self._joins()]
        for cell in self.instances:
            rest += ["", *self._instance(cell)]
        rest += [*self._combinational(), *self._registers(), *self._memories()]
        given = self._given("\n".join(rest))
        ports = sorted((net for net in module.nets.values() if net.way), key=lambda net: net.number)
        lines = [f"module {module.name} ("]
        for n, net in enumerate(ports):
            lines.append(f"  {net.way:<6} {self._declared(net)}{',' if n < len(ports) - 1 else ''}")
        lines += [");", *legend]
        words = set(re.findall(r"\w+", "\n".join([*rest, *given])))
        nets = [net for net in module.nets.values() if not net.way and self._name(net.name) in words]
        lines += [f"  {self._declared(net)};" for net in nets if net.name not in self.inlined]
        for name, (width, size) in module.memories.items():
            lines.append(f"  logic {_range(width)}{name} [0:{size - 1}];")
        return "\n".join([*lines, *(["", *given] if given else []), *rest, "", "endmodule", ""])

    def _given(self, rest: str) -> list[str]:
        """What operators give to nets that something reads."""
        words = set(re.findall(r"\w+", rest))
        found: dict[str, list[str]] = {}
        ports = {net.name for net in self.module.nets.values() if net.way}
        for net in self._users_first():
            if net in self.inlined or not (net in ports or self._name(net) in words):
                continue
            self.inlined.add(net)
            text = self.render.text((Part(net, 0, self.module.nets[net].width),))
            self.inlined.discard(net)
            words |= set(re.findall(r"\w+", text))
            found[net] = _wrapped(f"  assign {self._name(net)} = {text};")
        return [line for net in self.sources if net in found for line in found[net]]

    def _declared(self, net: Net) -> str:
        registers = {driver.target for driver in self.drivers if driver.clock}
        init = f" = {self._value(net, net.init)}" if net.init and net.name in registers else ""
        return f"logic {_range(net.width)}{self._name(net.name)}{init}"

    def _value(self, net: Net, bits: str) -> str:
        return self.render.named(net.name, bits)

    def _legend(self) -> list[str]:
        """Names of states and other values, where a net has them."""
        sets: dict[tuple[tuple[str, str], ...], list[Net]] = {}
        for net in self.module.nets.values():
            if net.names:
                sets.setdefault(tuple(sorted(net.names.items())), []).append(net)
        lines = []
        taken = {self._name(net) for net in self.module.nets}
        counts = Counter(name for names in sets for _, name in names)
        for names, nets in sets.items():
            lines += ["", f"  // Values of {', '.join(self._name(net.name) for net in nets)}."]
            for bits, name in names:
                base = name.upper() if counts[name] == 1 else f"{nets[0].name}_{name}".upper()
                called = _unused(re.sub(r"\W", "_", base), taken)
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
        return _wrapped(f"  assign {target} = {self.render.text(value)};")

    def _instance(self, cell: Cell) -> list[str]:
        child = self.children[cell.kind]
        given = ", ".join(f".{name}({value})" for name, value in child.parameters)
        lines = [f"  {child.module} {f'#({given}) ' if given else ''}{cell.name} ("]
        outputs = {id(spec) for spec in self._outputs(cell)}
        used = self._used()
        pins = list(cell.pins.items())
        for n, (pin, spec) in enumerate(pins):
            unread = id(spec) in outputs and not any(part.name in used for part in spec)
            text = "" if unread else self.render.text(spec)
            lines += _wrapped(f"    .{pin}({text}){',' if n < len(pins) - 1 else ''}")
        return [*lines, "  );"]

    def _used(self) -> set[str]:
        """Nets that something reads."""
        if not hasattr(self, "_used_nets"):
            found = {net.name for net in self.module.nets.values() if net.way}
            for spec, _ in self._roots():
                found |= {part.name for part in spec if part.name}
            counts = Counter(part.name for cell in self.instances for spec in cell.pins.values() for part in spec)
            others = {part.name for spec, _ in self._roots_but_pins() for part in spec}
            self._used_nets = {
                name for name in found if counts[name] != 1 or name in others or not name.startswith("$")
            }
        return self._used_nets

    def _roots_but_pins(self) -> Iterable[tuple[Spec, bool]]:
        instances, self.module.cells = self.module.cells, [c for c in self.module.cells if c.kind.startswith("$")]
        try:
            found = list(self._roots())
        finally:
            self.module.cells = instances
        found += [(spec, False) for source in self.sources.values() for spec in operands(source)]
        return found

    def _combinational(self) -> list[str]:
        lines: list[str] = []
        for driver in self.drivers:
            if driver.clock:
                continue
            body = driver.body
            choice = self._choice(driver) if len(body) > 1 else None
            if len(body) == 1 and isinstance(body[0], Assign):
                lines += ["", *self._assign(self.render.text((body[0].target,)), body[0].value)]
            elif choice is not None and len(choice.cases) == 1:
                lines += ["", *_wrapped(f"  assign {self._name(driver.target)} = {self.render.choice(choice)};")]
            else:
                lines += ["", "  always_comb begin", *self._body(body, "=", 2), "  end"]
        return lines

    def _registers(self) -> list[str]:
        """Registers that ask the same conditions change in one block."""
        registers = [driver for driver in self.drivers if driver.clock]
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
            lines += ["", *self._block(group)]
        return lines

    def _block(self, group: Sequence[Driver]) -> list[str]:
        body: tuple[Statement, ...] = ()
        for driver in group:
            body = merged(body, driver.body)
        clock = self.render.text(group[0].clock)
        lines = [f"  always_ff @(posedge {clock}) begin"]
        if not group[0].reset_by:
            return [*lines, *self._body(body, "<=", 2), "  end"]
        lines.append(f"    if ({self.render.text(group[0].reset_by)}) begin")
        for driver in group:
            text = self._assigned(Assign(Part(driver.target, 0, driver.width), driver.reset), "<=")
            lines += _wrapped(f"      {text}")
        if body:
            lines += ["    end else begin", *self._body(body, "<=", 3)]
        return [*lines, "    end", "  end"]

    def _assigned(self, item: Assign, operator: str) -> str:
        value = item.value
        net = self.module.nets[item.target.name]
        if net.names and len(value) == 1 and not value[0].name and item.target.width == net.width:
            text = self._value(net, value[0].bits)
        else:
            text = self.render.text(value)
        return f"{self.render.text((item.target,))} {operator} {text};"

    def _body(self, body: Sequence[Statement], operator: str, depth: int) -> list[str]:
        lines: list[str] = []
        indent = "  " * depth
        for item in body:
            if isinstance(item, Assign):
                lines += _wrapped(f"{indent}{self._assigned(item, operator)}")
            elif not item.selector:
                lines += self._body(item.cases[0][1] if item.cases else (), operator, depth)
            elif self._is_chain(item):
                lines += self._chain(item, operator, depth)
            else:
                lines += self._case(item, operator, depth)
        return lines

    @staticmethod
    def _is_chain(item: Switch) -> bool:
        """Whether each case asks for one bit of its own, as If and Elif do, or there is only one that does anything."""
        if all(sum(bit != "-" for bit in pattern) <= 1 for patterns, _ in item.cases for pattern in patterns or ("-",)):
            return True
        doing = [(patterns, inner) for patterns, inner in item.cases if inner]
        exclusive = all("-" not in pattern for patterns, _ in item.cases for pattern in patterns)
        return len(doing) == 1 and exclusive and len(doing[0][0]) == 1

    def _chain(self, item: Switch, operator: str, depth: int) -> list[str]:
        indent = "  " * depth
        lines: list[str] = []
        cases = list(item.cases)
        while cases and not cases[-1][1]:
            cases.pop()
        exclusive = all(patterns and "-" not in "".join(patterns) for patterns, _ in cases)
        if exclusive:
            cases = [case for case in cases if case[1]]
        full = exclusive and len(cases) > 1 and self._covers(item.selector, cases)
        before: list[str] = []
        for n, (patterns, inner) in enumerate(cases):
            always = not patterns or all(set(pattern) <= {"-"} for pattern in patterns)
            texts = [] if always else [self.render.matches(item.selector, pattern) for pattern in patterns]
            condition = (
                " || ".join(self.render.bracketed(text) for text in texts)
                if len(texts) > 1
                else (texts or [("", 0)])[0][0]
            )
            if not inner:
                before.append(
                    self.render.bracketed(self.render.inverse(texts[0])) if len(texts) == 1 else f"!({condition})"
                )
                continue
            last = full and n == len(cases) - 1
            if before:
                own = [] if always else [self.render.bracketed(texts[0]) if len(texts) == 1 else f"({condition})"]
                condition, always = " && ".join([*before, *own]), False
            head = "else" if (always or last) else f"if ({condition})"
            begins = not lines
            if begins and (always or last):
                lines += self._body(inner, operator, depth)
                break
            opening = (
                f"{indent}{head} begin" if begins else f"{indent}end else {'' if head == 'else' else head + ' '}begin"
            )
            lines += _wrapped(opening)
            lines += self._body(inner, operator, depth + 1)
            if always or last:
                break
        if lines and lines[-1] != f"{indent}end" and any(line.startswith(f"{indent}if ") for line in lines):
            lines.append(f"{indent}end")
        elif lines and lines[0].startswith(f"{indent}if "):
            lines.append(f"{indent}end")
        return lines

    @staticmethod
    def _covers(selector: Spec, cases: Sequence[tuple[tuple[str, ...], tuple[Statement, ...]]]) -> bool:
        return len({pattern for patterns, _ in cases for pattern in patterns}) == 1 << width_of(selector)

    def _case(self, item: Switch, operator: str, depth: int) -> list[str]:
        indent = "  " * depth
        wild = any("-" in pattern for patterns, _ in item.cases for pattern in patterns)
        lines = _wrapped(f"{indent}{'casez' if wild else 'case'} ({self.render.text(item.selector)})")
        selector = item.selector
        net = (
            selector[0].name
            if len(selector) == 1 and selector[0].width == self.module.nets[selector[0].name].width
            else ""
        )
        rest: tuple[Statement, ...] | None = None
        for patterns, inner in item.cases:
            if not patterns or all(set(pattern) <= {"-"} for pattern in patterns):
                rest = inner
                break
        for patterns, inner in item.cases:
            if not patterns or all(set(pattern) <= {"-"} for pattern in patterns):
                break
            if not inner and not rest and not wild:
                continue
            labels = ", ".join(
                f"{len(pattern)}'b{pattern.replace('-', '?')}" if wild else self.render.named(net, pattern)
                for pattern in patterns
            )
            lines += self._labelled(labels, inner, operator, depth + 1)
        if (
            rest is not None
            or wild
            or not self._covers(item.selector, item.cases)
            or not all(inner for _, inner in item.cases)
        ):
            lines += self._labelled("default", rest or (), operator, depth + 1)
        return [*lines, f"{indent}endcase"]

    def _labelled(self, label: str, inner: Sequence[Statement], operator: str, depth: int) -> list[str]:
        indent = "  " * depth
        if not inner:
            return [f"{indent}{label}: ;"]
        body = self._body(inner, operator, depth + 1)
        if len(inner) == 1 and isinstance(inner[0], Assign) and len(body) == 1:
            return _wrapped(f"{indent}{label}: {body[0].strip()}")
        return [f"{indent}{label}: begin", *body, f"{indent}end"]

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
            lines += _wrapped(f"    {text}" if condition == "1'b1" else f"    if ({condition}) {text}")
            low = high
        return [*lines, "  end"]

    def _read_port(self, cell: Cell) -> list[str]:
        clock, enable = self.render.text(cell.pins["CLK"]), self.render.text(cell.pins["EN"])
        text = f"{self.render.text(cell.pins['DATA'])} <= {cell.parameters['MEMID']}[{self.render.text(cell.pins['ADDR'])}];"
        lines = _wrapped(f"    {text}" if enable == "1'b1" else f"    if ({enable}) {text}")
        return ["", f"  always_ff @(posedge {clock}) begin", *lines, "  end"]


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""


def _unused(name: str, taken: Iterable[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def _wrapped(line: str) -> list[str]:
    if len(line) <= WIDTH:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line.strip(),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
