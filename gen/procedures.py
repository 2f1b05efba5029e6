"""Processes as ``always`` blocks: conditions as the source has them, states by their names."""

import re
import textwrap
from collections.abc import Mapping, Sequence

from .expressions import Renderer
from .rtlil import Assign, Driver, Net, Part, Spec, Statement, Switch, width_of
from .statements import all_merged

__all__ = ["Procedures", "wrapped"]

WIDTH = 120
# Operators that a line is not broken at: comparisons, sums, shifts.
_TIGHT = re.compile(r" (==|!=|<|>|<=|>=|\+|-|<<|>>) ")


def wrapped(line: str) -> list[str]:
    """The line, broken where it is too long: inside as few brackets as will do, and not at a comparison, a sum or a shift."""
    if len(line) <= WIDTH:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    text = _TIGHT.sub("\0\\1\0", line.strip())
    for depth in range(4):
        whole = _wrapped(_joined(text, depth), indent)
        if max(map(len, whole)) <= WIDTH:
            return [text.replace("\0", " ") for text in whole]
    return _wrapped(line.strip(), indent)


def _joined(text: str, depth: int) -> str:
    """The text, to be broken nowhere inside more brackets than ``depth``."""
    inside, found = 0, []
    for letter in text:
        inside += (letter in "({[") - (letter in ")}]")
        found.append("\0" if letter == " " and inside > depth else letter)
    return "".join(found)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


class Procedures:
    """Lines of statements, with expressions as ``render`` writes them."""

    def __init__(self, render: Renderer, nets: Mapping[str, Net]) -> None:
        self.render = render
        self.nets = nets

    def block(self, group: Sequence[Driver]) -> list[str]:
        body = all_merged(group)
        clock = self.render.text(group[0].clock)
        lines = [f"  always_ff @(posedge {clock}) begin"]
        if not group[0].reset_by:
            return [*lines, *self.body(body, "<=", 2), "  end"]
        lines.append(f"    if ({self.render.text(group[0].reset_by)}) begin")
        for driver in group:
            text = self._assigned(Assign(Part(driver.target, 0, driver.width), driver.reset), "<=")
            lines += wrapped(f"      {text}")
        if len(body) == 1 and isinstance(body[0], Switch) and body[0].selector and self._is_chain(body[0]):
            chain = self._chain(body[0], "<=", 2, after="end else ")
            if chain[0].startswith("    end else if"):
                return [*lines, *chain, "  end"]
        if body:
            lines += ["    end else begin", *self.body(body, "<=", 3)]
        return [*lines, "    end", "  end"]

    def _assigned(self, item: Assign, operator: str) -> str:
        value = item.value
        net = self.nets[item.target.name]
        if net.names and len(value) == 1 and not value[0].name and item.target.width == net.width:
            text = self.render.named(net.name, value[0].bits)
        else:
            text = self.render.text(value)
        return f"{self.render.text((item.target,))} {operator} {text};"

    def body(self, body: Sequence[Statement], operator: str, depth: int) -> list[str]:
        lines: list[str] = []
        indent = "  " * depth
        for item in body:
            if isinstance(item, Assign):
                lines += wrapped(f"{indent}{self._assigned(item, operator)}")
            elif not item.selector:
                lines += self.body(item.cases[0][1] if item.cases else (), operator, depth)
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

    def _chain(self, item: Switch, operator: str, depth: int, after: str = "") -> list[str]:
        """If, else if, else; ``after``: what the first one stands behind."""
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
                return self.body(inner, operator, depth)
            opening = head if begins else "else" if head == "else" else f"else {head}"
            lines += wrapped(f"{indent}{after if begins else 'end '}{opening} begin")
            lines += self.body(inner, operator, depth + 1)
            if always or last:
                break
        if lines and lines[0].startswith(f"{indent}{after}if "):
            lines.append(f"{indent}end")
        return lines

    @staticmethod
    def _covers(selector: Spec, cases: Sequence[tuple[tuple[str, ...], tuple[Statement, ...]]]) -> bool:
        return len({pattern for patterns, _ in cases for pattern in patterns}) == 1 << width_of(selector)

    def _case(self, item: Switch, operator: str, depth: int) -> list[str]:
        indent = "  " * depth
        wild = any("-" in pattern for patterns, _ in item.cases for pattern in patterns)
        lines = wrapped(f"{indent}{'casez' if wild else 'case'} ({self.render.text(item.selector)})")
        selector = item.selector
        net = selector[0].name if len(selector) == 1 and selector[0].width == self.nets[selector[0].name].width else ""
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
        body = self.body(inner, operator, depth + 1)
        if len(inner) == 1 and isinstance(inner[0], Assign) and len(body) == 1:
            return wrapped(f"{indent}{label}: {body[0].strip()}")
        return [f"{indent}{label}: begin", *body, f"{indent}end"]
