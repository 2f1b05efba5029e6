"""What drives each net of a module: operators that do the same are one, a net for each field, registers with their resets."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from .names import unused
from .rtlil import Assign, Driver, Module, Net, Part, Spec, Statement, Switch, mapped, sliced, width_of
from .statements import assignments, folded, restricted, simplified, specs_read

__all__ = ["Netlist"]


class Netlist:
    """A module whose processes have become drivers.

    ``drivers``: one for each net that a process or a register drives. ``parts``: nets that were replaced by one for each
    field, and for each of these its name, lowest bit and width.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.drivers: list[Driver] = []
        self.parts: dict[str, tuple[tuple[str, int, int], ...]] = {}
        self._fuse()
        self._split()
        self._prune()
        self._widen()
        self._unify()

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
                    raise ValueError(f"RTLIL has a cell that cannot be written: {cell.kind}")
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
        kept = self._kept_whole()
        for net in list(module.nets.values()):
            if not net.fields or net.way or net.name in kept:
                continue
            found = []
            for name, low, width in net.fields:
                port = shown.get(Part(net.name, low, width))
                if port is not None and module.nets[port].way == "output":
                    module.joins = [(target, value) for target, value in module.joins if target[0].name != port]
                    module.nets[port].init = net.init[net.width - low - width : net.width - low]
                    found.append((low, width, port))
                    continue
                own = unused(f"{net.name}__{name}", module.nets)
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
                drivers.append(Driver(name, width, inner, driver.clock, driver.reset_by, reset, driver.target))
        self.drivers = drivers
        for cell in module.cells:
            cell.pins = {pin: change(spec) for pin, spec in cell.pins.items()}
        module.joins = [(change(target), change(value)) for target, value in module.joins]
        for name in pieces:
            del module.nets[name]

    def _kept_whole(self) -> set[str]:
        """Nets that are not driven as a whole by a process or a register, nor by instances."""
        nets = self.module.nets
        found = {driver.target for driver in self.drivers if driver.width != nets[driver.target].width}
        found |= {part.name for target, _ in self.module.joins for part in target}
        for cell in self.module.cells:
            if cell.kind.startswith("$"):
                found |= {part.name for pin, spec in cell.pins.items() if pin in ("Y", "Q", "DATA") for part in spec}
        return found - {driver.target for driver in self.drivers if driver.width == nets[driver.target].width}

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
