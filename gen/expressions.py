"""Operators of RTLIL as expressions of SystemVerilog: each operand as wide as its operator, parentheses where needed."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from .rtlil import Cell, Module, Part, Spec, sliced, width_of

__all__ = ["Choice", "Read", "Renderer", "Source", "can_slice", "constant", "cut_operands", "needs_name", "operands"]

# How tightly what is written holds together.
ATOM, UNARY, TIMES, PLUS, SHIFT, LESS, EQUAL, AND, XOR, OR, BOTH, EITHER, PICK = range(13, 0, -1)
_BINARY = {
    "$add": ("+", PLUS),
    "$sub": ("-", PLUS),
    "$mul": ("*", TIMES),
    "$and": ("&", AND),
    "$xor": ("^", XOR),
    "$or": ("|", OR),
    "$eq": ("==", EQUAL),
    "$ne": ("!=", EQUAL),
    "$lt": ("<", LESS),
    "$le": ("<=", LESS),
    "$gt": (">", LESS),
    "$ge": (">=", LESS),
}
_LOGICAL = {"$and": ("&&", BOTH), "$or": ("||", EITHER)}
_SHIFTS = {"$sshr": ">>>", "$shl": "<<", "$shr": ">>", "$shift": ">>"}
_REDUCE = {"$reduce_or": "|", "$reduce_bool": "|", "$reduce_and": "&", "$reduce_xor": "^"}
_COMPARE = {"$eq", "$ne", "$lt", "$le", "$gt", "$ge"}
# The lower bits of what these give depend on the lower bits of their operands alone, or each bit on its own.
_LOW = {"$add", "$sub", "$mul", "$neg"}
_BITWISE = {"$and", "$or", "$xor", "$not", "$mux"}
# Written without parentheses next to themselves.
_CHAINS = {"&&", "||", "&", "|", "^", "+"}
_LONGEST_DECIMAL = 32

Text = tuple[str, int]


@dataclass(frozen=True)
class Choice:
    """One of several values by a selector: pattern and value, the first that fits; ``rest`` else."""

    selector: Spec
    cases: tuple[tuple[str, Spec], ...]
    rest: Spec

    @property
    def operands(self) -> list[Spec]:
        return [self.selector, *(value for _, value in self.cases), self.rest]


@dataclass(frozen=True)
class Read:
    """A word of a memory, read at once."""

    memory: str
    address: Spec


Source = Cell | Choice | Read


def constant(bits: str) -> str:
    width = len(bits)
    if set(bits) - {"0", "1"}:
        return f"{width}'b{bits}"
    value = int(bits, 2)
    if width == 1:
        return f"1'b{value}"
    if width <= _LONGEST_DECIMAL and value < 1 << 16 or value == 0:
        return f"{width}'d{value}"
    return f"{width}'h{value:x}"


def can_slice(source: Source, low: int) -> bool:
    """Whether a part of the value, from bit ``low`` on, can be written as an expression."""
    if isinstance(source, Choice):
        return True
    if isinstance(source, Read):
        return True
    return source.kind in _BITWISE or (low == 0 and source.kind in _LOW)


def cut_operands(source: Source) -> list[Spec]:
    """Operands of which only lower bits are written where only lower bits of the result are."""
    if isinstance(source, Read):
        return []
    if isinstance(source, Choice):
        return [*(value for _, value in source.cases), source.rest]
    return [source.pins[pin] for pin in "AB" if pin in source.pins] if source.kind in _LOW | _BITWISE else []


def operands(source: Source) -> list[Spec]:
    if isinstance(source, Choice):
        return source.operands
    if isinstance(source, Read):
        return [source.address]
    return [spec for pin, spec in source.pins.items() if pin != "Y"]


def needs_name(source: Source) -> list[Spec]:
    """Operands that are extended with their sign: their highest bit is written again and again."""
    if not isinstance(source, Cell) or source.kind == "$mux":
        return []
    wide = source.number("Y_WIDTH")
    found = []
    for pin in "AB":
        spec = source.pins.get(pin, ())
        if spec and source.parameters.get(f"{pin}_SIGNED") == "1" and width_of(spec) < wide:
            found.append(spec)
    return found


class Renderer:
    """Writes sigspecs. ``inlined`` gives what a net without a name of its own is; other nets go by ``name``."""

    def __init__(self, module: Module, inlined: Callable[[str], Source | None], name: Callable[[str], str]) -> None:
        self.module = module
        self.inlined = inlined
        self.name = name

    def text(self, spec: Spec) -> str:
        return self.spec(spec)[0]

    def spec(self, spec: Spec) -> Text:
        """An expression as wide as ``spec``."""
        if not spec:
            return "1'b0", ATOM
        top = spec[-1]
        if len(spec) > 1 and not top.name and set(top.bits) == {"0"}:
            return self._wide(spec[:-1], width_of(spec))
        if len(spec) == 1:
            return self._part(spec[0])
        pieces: list[str] = []
        at = len(spec) - 1
        while at >= 0:
            run = at
            while run > 0 and spec[run - 1] == spec[at] and spec[at].name:
                run -= 1
            text = self._part(spec[at])[0]
            pieces.append(f"{{{at - run + 1}{{{text}}}}}" if run < at else text)
            at = run - 1
        if len(pieces) == 1:
            return pieces[0], ATOM
        return "{" + ", ".join(pieces) + "}", ATOM

    def named(self, net: str, bits: str) -> str:
        """A constant as a value of a net: by its name where it has one."""
        known = self.module.nets.get(net)
        return known.names.get(bits, constant(bits)) if known is not None else constant(bits)

    def _wide(self, spec: Spec, width: int) -> Text:
        """Extended with zeros."""
        have = width_of(spec)
        if have == 0:
            return constant("0" * width), ATOM
        if all(not part.name for part in spec):
            return constant("".join(part.bits for part in reversed(spec)).rjust(width, "0")), ATOM
        text, level = self.spec(spec)
        if have == width:
            return text, ATOM
        # Tools differ in how wide they take an operator in a cast: only what is plain is cast.
        plain = level == ATOM and (text.startswith("{") or re.fullmatch(r"\w+(\[\w+(:\d+)?\])?", text))
        # Yosys takes the sign before a cast for one of its width.
        return (f"{width}'({text})", UNARY) if plain else (f"{{{constant('0' * (width - have))}, {text}}}", ATOM)

    def _operand(self, spec: Spec, width: int, signed: bool = False) -> Text:
        """Cut off or extended to ``width`` bits."""
        have = width_of(spec)
        if have == width:
            return self.spec(spec)
        if have > width:
            return self._cut(spec, width)
        if not signed or not spec:
            return self._wide(spec, width)
        if all(not part.name for part in spec):
            bits = "".join(part.bits for part in reversed(spec))
            return constant(bits.rjust(width, bits[0])), ATOM
        sign = self.text(sliced(spec, have - 1, 1))
        return f"{{{{{width - have}{{{sign}}}}}, {self.text(spec)}}}", ATOM

    def _cut(self, spec: Spec, width: int) -> Text:
        return self.spec(sliced(spec, 0, width))

    def _part(self, part: Part) -> Text:
        if not part.name:
            return constant(part.bits), ATOM
        source = self.inlined(part.name)
        if source is not None:
            return self._source(source, part.low, part.width)
        name = self.name(part.name)
        width = self.module.nets[part.name].width
        if part.width == width:
            return name, ATOM
        place = f"{part.low}" if part.width == 1 else f"{part.low + part.width - 1}:{part.low}"
        return f"{name}[{place}]", ATOM

    def _source(self, source: Source, low: int, width: int) -> Text:
        """Bits of an operator's result."""
        if isinstance(source, Choice):
            return self._choice(source, low, width)
        if isinstance(source, Read):
            text = f"{source.memory}[{self.text(source.address)}]"
            if width == self.module.memories[source.memory].width:
                return text, ATOM
            return text + (f"[{low}]" if width == 1 else f"[{low + width - 1}:{low}]"), ATOM
        kind, pins = source.kind, source.pins
        if kind == "$mux":
            picked = [self.spec(sliced(pins[pin], low, width)) for pin in "BA"]
            return self._pick(self.spec(pins["S"]), *picked)
        a, b = pins["A"], pins.get("B", ())
        signed = source.parameters.get("A_SIGNED") == "1"
        if kind in _BITWISE:
            a, b = (sliced(self._extended(x, source.number("Y_WIDTH")), low, width) for x in (a, b))
            if kind == "$not":
                return self.inverse(self.spec(a)) if width == 1 else (f"~{self._held(self.spec(a), ATOM)}", UNARY)
            operator, level = _LOGICAL[kind] if width == 1 and kind in _LOGICAL else _BINARY[kind]
            return self._joined(operator, level, self.spec(a), self.spec(b))
        if kind in _COMPARE:
            return self._compared(kind, a, b, signed)
        if kind in _REDUCE:
            if width_of(a) == 1:
                return self.spec(a)
            return f"{_REDUCE[kind]}{self._held(self.spec(a), ATOM)}", UNARY
        if kind in _SHIFTS:
            return self._shifted(kind, a, b, signed, width)
        if kind == "$neg":
            return f"-{self._held(self._operand(a, width, signed), ATOM)}", UNARY
        if kind in _LOW:
            operator, level = _BINARY[kind]
            return self._joined(operator, level, self._operand(a, width, signed), self._operand(b, width, signed))
        raise ValueError(f"RTLIL has a cell that cannot be written: {kind}")

    @staticmethod
    def _extended(spec: Spec, width: int) -> Spec:
        missing = width - width_of(spec)
        return (*spec, Part("", 0, missing, "0" * missing)) if missing > 0 else spec

    def _compared(self, kind: str, a: Spec, b: Spec, signed: bool) -> Text:
        width = max(width_of(a), width_of(b))
        operator, level = _BINARY[kind]
        bits = "".join(part.bits for part in reversed(b)).rjust(width, "0")
        if kind in ("$eq", "$ne") and all(not part.name for part in b) and not signed:
            named = len(a) == 1 and a[0].name in self.module.nets and self.module.nets[a[0].name].names
            if width == 1 and not named:
                text = self.spec(a)
                wanted = (bits == "1") == (kind == "$eq")
                return text if wanted else self.inverse(text)
            whole = a[0].name if len(a) == 1 and a[0].width == self.module.nets[a[0].name].width else ""
            if whole and self.inlined(whole) is None:
                return f"{self.name(whole)} {operator} {self.named(whole, bits)}", level
        texts = [self._operand(x, width, signed) for x in (a, b)]
        if signed and kind not in ("$eq", "$ne"):
            texts = [(f"$signed({text})", ATOM) for text, _ in texts]
        return self._joined(operator, level, *texts)

    def _shifted(self, kind: str, a: Spec, b: Spec, signed: bool, width: int) -> Text:
        """The writer sees to it that no result is narrower than what is shifted to the right."""
        if kind == "$sshr":
            by = self._held(self.spec(b), SHIFT + 1)
            return f"$unsigned($signed({self._operand(a, width, signed)[0]}) >>> {by})", ATOM
        left = self._held(self._operand(a, width, signed), SHIFT)
        return f"{left} {_SHIFTS[kind]} {self._held(self.spec(b), SHIFT + 1)}", SHIFT

    def _choice(self, choice: Choice, low: int, width: int) -> Text:
        text = self.spec(sliced(choice.rest, low, width))
        for pattern, value in reversed(choice.cases):
            text = self._pick(self.matches(choice.selector, pattern), self.spec(sliced(value, low, width)), text)
        return text

    def matches(self, selector: Spec, pattern: str) -> Text:
        """Whether the selector is as the pattern says."""
        terms = []
        at = 0
        bits = pattern[::-1]
        if "-" not in pattern and len(selector) == 1:
            whole = (Part("", 0, len(pattern), pattern),)
            return self._compared("$eq", selector, whole, False)
        for part in selector:
            run = 0
            while run < part.width:
                begin = run
                if bits[at + run] == "-":
                    run += 1
                    continue
                while run < part.width and bits[at + run] != "-":
                    run += 1
                want = bits[at + begin : at + run][::-1]
                have = sliced((part,), begin, run - begin)
                terms.append(self._compared("$eq", have, (Part("", 0, len(want), want),), False))
            at += part.width
        if not terms:
            return "1'b1", ATOM
        text = terms[0]
        for term in terms[1:]:
            text = self._joined("&&", BOTH, text, term)
        return text

    def _pick(self, condition: Text, yes: Text, no: Text) -> Text:
        if "1'b0" in (yes[0], no[0]) or yes[0] == "1'b1":
            return self._logic(condition, yes, no)
        return f"{self._held(condition, PICK + 1)} ? {self._held(yes, PICK + 1)} : {self._held(no, PICK)}", PICK

    def _logic(self, condition: Text, yes: Text, no: Text) -> Text:
        """A choice of one bit, one side of which is constant."""
        if yes[0] == "1'b0":
            condition, yes, no = self.inverse(condition), no, yes
        if no[0] == "1'b0":
            return condition if yes[0] == "1'b1" else self._joined("&&", BOTH, condition, yes)
        return self._joined("||", EITHER, condition, no)

    def _joined(self, operator: str, level: int, left: Text, right: Text) -> Text:
        """Two operands; more parentheses than the rules ask for where few know the rules."""
        least = UNARY if level in (AND, XOR, OR, TIMES) else TIMES if level == PLUS else PLUS
        if level in (BOTH, EITHER):
            least = EQUAL
        chained = level if level not in (LESS, EQUAL) else ATOM
        first = left[0] if left[1] == chained or left[1] >= least else f"({left[0]})"
        joins = right[1] == level and operator in _CHAINS
        return f"{first} {operator} {right[0] if joins or right[1] >= least else f'({right[0]})'}", level

    def choice(self, choice: Choice) -> str:
        return self._choice(choice, 0, width_of(choice.rest))[0]

    def bracketed(self, text: Text) -> str:
        """As an operand of && and ||."""
        return self._held(text, EQUAL)

    def inverse(self, text: Text) -> Text:
        """Not so."""
        if text[1] == UNARY and text[0].startswith("!"):
            inner = text[0][1:]
            return inner, ATOM
        for one, other in ((" == ", " != "), (" != ", " == ")):
            if text[1] == EQUAL and text[0].count(one) == 1 and other not in text[0]:
                return text[0].replace(one, other), EQUAL
        return f"!{self._held(text, ATOM)}", UNARY

    @staticmethod
    def _held(text: Text, level: int) -> str:
        return text[0] if text[1] >= level else f"({text[0]})"
