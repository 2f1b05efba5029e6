"""Which nets of a module are written as expressions where they are used, and the names of those that are not."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .expressions import Choice, Read, Source, can_slice, cut_operands, needs_name, operands
from .keywords import KEYWORDS
from .names import unused
from .netlist import Netlist
from .rtlil import Assign, Cell, Driver, Part, Spec, Switch, width_of
from .statements import specs_read

__all__ = ["Child", "Naming", "choice_of"]

# Operators in one expression, at most; and in one that is written at each of its uses.
LONGEST = 12
REPEATED = 1
# Characters of a name made of two.
LONGEST_NAME = 32
# Values that a choice may have to be written as an expression.
FEW = 4
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


def choice_of(driver: Driver) -> Choice | None:
    """What a driver does as a choice among a few values of the whole net; None where it is more than that."""
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


def _same_operator(source: Source, other: Source) -> bool:
    """Whether both are of one operator whose terms may stand in any order."""
    if not isinstance(source, Cell) or not isinstance(other, Cell):
        return False
    return source.kind == other.kind and source.kind in ("$or", "$and", "$xor")


class Naming:
    """``sources``: what each net is that an operator, a small choice or a memory gives; ``inlined``: those that have no name."""

    def __init__(self, netlist: Netlist, children: Mapping[str, Child]) -> None:
        self.netlist = netlist
        self.module = netlist.module
        self.children = children
        self.instances = [cell for cell in self.module.cells if not cell.kind.startswith("$")]
        self.sources: dict[str, Source] = {}
        self.inlined: set[str] = set()
        self._names: dict[str, str] = {}
        self._find_sources()
        self._decide()
        self._name_rest()

    def _find_sources(self) -> None:
        """Nets without a name that an operator, a small choice or a memory drives."""
        for cell in self.module.cells:
            y = cell.pins.get("Y")
            if y is not None and cell.kind.startswith("$"):
                self.sources[y[0].name] = cell
            if cell.kind == "$memrd_v2" and cell.number("CLK_ENABLE") == 0:
                self.sources[cell.pins["DATA"][0].name] = Read(cell.parameters["MEMID"], cell.pins["ADDR"])
        kept = []
        for driver in self.netlist.drivers:
            choice = choice_of(driver) if driver.target.startswith("$") and not driver.clock else None
            if choice is None:
                kept.append(driver)
            else:
                self.sources[driver.target] = choice
        self.netlist.drivers = kept

    def roots(self, *, with_pins: bool = True) -> Iterable[tuple[Spec, bool]]:
        """What statements read, and instances ``with_pins``; whether they take a part of it."""
        for driver in self.netlist.drivers:
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
            elif with_pins and not cell.kind.startswith("$"):
                yield from ((spec, False) for spec in cell.pins.values())
        for net, source in self.sources.items():
            if not net.startswith("$"):
                yield from ((spec, False) for spec in operands(source))
        for _, value in self.module.joins:
            yield value, False

    def _decide(self) -> None:
        """Which nets are written as expressions: those with one use, and those that are short."""
        nets = self.module.nets
        order = self.users_first()
        costs = self._costs(order)
        uses: Counter[str] = Counter()
        parts: set[str] = set()
        cut: set[str] = set()
        driven = {part.name for cell in self.instances for spec in self.outputs(cell) for part in spec}

        def use(spec: Spec, times: int, keep: bool = False) -> None:
            for part in spec:
                source = self.sources.get(part.name)
                if source is None:
                    continue
                uses[part.name] += times
                if keep or part.width < nets[part.name].width:
                    (parts if keep or not can_slice(source, part.low) else cut).add(part.name)

        for spec, keep in self.roots():
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

    def _costs(self, order: Sequence[str]) -> dict[str, int]:
        """Operators of each net's expression. A chain of one operator, as an OR of many, counts as the longest of its terms."""
        specs = [spec for source in self.sources.values() for spec in operands(source)]
        readers = Counter(part.name for spec in (*specs, *(spec for spec, _ in self.roots())) for part in spec)
        costs: dict[str, int] = {}
        for net in reversed(order):
            source = self.sources[net]
            inner = {part.name for spec in operands(source) for part in spec if part.name.startswith("$")}
            chain = {
                name
                for name in inner & costs.keys()
                if readers[name] == 1 and _same_operator(source, self.sources[name])
            }
            own = 1 + sum(costs.get(name, 0) for name in inner - chain)
            costs[net] = max([own, *(costs[name] for name in chain)])
        return costs

    def users_first(self) -> list[str]:
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

    def outputs(self, cell: Cell) -> list[Spec]:
        outputs = self.children[cell.kind].outputs
        return [spec for pin, spec in cell.pins.items() if pin in outputs]

    def name(self, net: str) -> str:
        return self._names.get(net, net)

    def _name_rest(self) -> None:
        """Names for nets that have none, from what drives them."""
        taken = {net for net in self.module.nets if not net.startswith("$")}
        taken |= set(self.module.memories) | {cell.name for cell in self.instances} | KEYWORDS
        pins = {
            spec[0].name: (cell, pin) for cell in self.instances for pin, spec in cell.pins.items() if len(spec) == 1
        }
        for net in reversed(self.users_first()):
            if net.startswith("$") and net not in self.inlined:
                self._give(net, self._described(self.sources[net]), taken)
        for cell in self.module.cells:
            if cell.kind == "$memrd_v2":
                self._give(cell.pins["DATA"][0].name, f"{cell.parameters['MEMID']}_read", taken)
        for net in self.module.nets:
            if net.startswith("$") and net not in self.inlined and net not in self._names:
                driver = next((driver for driver in self.netlist.drivers if driver.target == net), None)
                if net in pins:
                    base = f"{pins[net][0].name}__{pins[net][1]}"
                elif driver is not None and driver.clock:
                    base = f"{self._first(specs_read(driver.body))}_register"
                else:
                    switches = [item.selector for item in driver.body if isinstance(item, Switch)] if driver else []
                    base = f"{self._first(switches)}_choice"
                self._give(net, base, taken)

    def _give(self, net: str, base: str, taken: set[str]) -> None:
        if net.startswith("$") and net not in self._names:
            self._names[net] = unused(re.sub(r"_+$", "", base.lstrip("_")) or "value", taken)
            taken.add(self._names[net])

    def _described(self, source: Source) -> str:
        if isinstance(source, Read):
            return f"{source.memory}_read"
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
                name = self.name(part.name)
                if not name.startswith("$"):
                    return name.removesuffix("__valid")
                source = self.sources.get(part.name)
                if source is not None:
                    return self._first(operands(source))
        return "constant"
