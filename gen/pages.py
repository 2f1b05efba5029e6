"""A page for each module of a generated folder: what it is, its parameters, ports, timing, children and area."""

import inspect
from collections import Counter
from collections.abc import Sequence

from amaranth.hdl import Value

from rtl.lib.block import Block

from .docstrings import BlockText, block_text, member_meaning
from .platform import EmittedModule
from .rtlil_text import inputs_of
from .synth import Synthesis
from .verilog import Verilog

__all__ = ["PAGES", "pages"]

PAGES = "docs/blocks"
_PINS = {"clk": "Clock.", "rst": "Synchronous reset, active high."}


def pages(verilog: Verilog, *, origin: str, area: Synthesis | None = None) -> dict[str, str]:
    """Markdown by relative path, an index among it. ``area`` is a synthesis of the same hardware."""
    builds: dict[str, list[EmittedModule]] = {}
    for module in verilog.modules:
        builds.setdefault(module.verilog, []).append(module)
    called = {module.name: module.verilog for module in verilog.modules}
    classes = {type(module.block).__name__: type(module.block) for module in verilog.modules}
    users: dict[str, list[str]] = {}
    instances: Counter[str] = Counter({verilog.modules[-1].name: 1})
    for module in reversed(verilog.modules):  # parents before children
        for child, number in module.children:
            users.setdefault(called[child], []).append(module.verilog)
            instances[child] += number * instances[module.name]
    found = {}
    rows = []
    for name, alike in sorted(builds.items()):
        module = alike[0]
        count = sum(instances[build.name] for build in alike)
        text = block_text(type(module.block))
        others = [block_text(classes[mention]) for mention in text.mentions if mention in classes]
        lines = _page(alike, text, others, origin, area)
        children = Counter[str]()
        for child, number in module.children:
            children[called[child]] += number
        if children:
            lines += ["", "## Instances", ""]
            lines += [f"- {number} x [{child}]({child}.md)" for child, number in children.items()]
        if name in users:
            parents = ", ".join(f"[{user}]({user}.md)" for user in dict.fromkeys(users[name]))
            lines += ["", f"Used {count} times, in {parents}."]
        found[f"{PAGES}/{name}.md"] = "\n".join([*lines, ""])
        rows.append(f"| [{name}]({name}.md) | {count} | {_cell(text.summary)} |")
    head = ["# Blocks", "", origin, "", f"The top is [{verilog.top}]({verilog.top}.md).", ""]
    index = [*head, "| module | instances | what it is |", "| --- | --- | --- |", *rows, ""]
    return {f"{PAGES}/index.md": "\n".join(index)} | found


def _page(
    builds: Sequence[EmittedModule],
    text: BlockText,
    others: Sequence[BlockText],
    origin: str,
    area: Synthesis | None,
) -> list[str]:
    module = builds[0]
    kind = type(module.block)
    lines = [
        f"# {module.verilog}",
        "",
        text.prose,
        "",
        f"Verilog: `rtl/{module.verilog}.sv`. Source: `{kind.__module__}`, class",
    ]
    lines[-1] += f" `{kind.__qualname__}`. {origin}"
    lines += _parameters(module.block, text, others, here=len(builds) == 1)
    if module.parameters:
        lines += _verilog_parameters(builds)
    lines += _ports(builds, [text, *others])
    # A buffer around a controller says once for both how it behaves.
    wrapped = "members are those of" in text.prose
    lines += _timing(module.block, [*others, text] if wrapped else [text]) if len(builds) == 1 else []
    return lines + (_area(builds, area) if area is not None else [])


def _verilog_parameters(builds: Sequence[EmittedModule]) -> list[str]:
    names = list(dict.fromkeys(name for build in builds for name, _ in build.parameters))
    sets = sorted({tuple(dict(build.parameters).get(name, 0) for name in names) for build in builds})
    lines = ["", "### In Verilog", "", "| " + " | ".join(f"`{name}`" for name in names) + " |"]
    return [
        *lines,
        "| " + " | ".join("---" for _ in names) + " |",
        *("| " + " | ".join(map(str, x)) + " |" for x in sets),
    ]


def _parameters(block: Block, text: BlockText, others: Sequence[BlockText], *, here: bool) -> list[str]:
    names = [name for name in inspect.signature(type(block).__init__).parameters if name not in ("self", "control")]
    if not names:
        return []
    # A block around a controller leaves its parameters there.
    holders = [block, *(item for item in vars(block).values() if isinstance(item, Block))]
    lines = ["", "## Parameters", "", "| parameter | here | meaning |", "| --- | --- | --- |"]
    for name in names:
        value = next(
            (getattr(found, key) for found in holders for key in (name, f"with_{name}") if hasattr(found, key)), None
        )
        # A port that exists only with a flag of its name shows that the flag is set.
        value = isinstance(value, Value) or getattr(value, "name", value)
        shown = f"`{value}`" if here and isinstance(value, int | str | tuple) else ""
        meaning = next((found.parameters[name] for found in [text, *others] if found.parameters.get(name)), "")
        lines.append(f"| `{name}` | {shown} | {_cell(meaning)} |")
    return lines


def _ports(builds: Sequence[EmittedModule], texts: Sequence[BlockText]) -> list[str]:
    module = builds[0]
    lines = ["", "## Ports", "", "| port | direction | bits | meaning |", "| --- | --- | --- | --- |"]
    present = inputs_of(module.rtlil)
    lines += [f"| `{pin}` | in | 1 | {meaning} |" for pin, meaning in _PINS.items() if pin in present]
    explained = ""
    for port in module.ports:
        name, meaning = member_meaning(port.name, texts)
        direction = "in" if port.is_input else "out"
        # The text stands with the first port of a member.
        words = _cell(meaning) if name != explained else ""
        if port.codes:
            words = f"{words} {', '.join(f'{code} `{called.lower()}`' for code, called in port.codes)}.".strip()
        widths = {other.width for build in builds for other in build.ports if other.name == port.name}
        bits = str(port.width) if len(widths) == 1 else f"{min(widths)} to {max(widths)}"
        lines.append(f"| `{port.name}` | {direction} | {bits} | {words} |")
        explained = name
    return lines


def _timing(block: Block, texts: Sequence[BlockText]) -> list[str]:
    latency = getattr(block, "latency", None)
    lines = [f"`latency`: {latency} cycles."] if isinstance(latency, int) else []
    lines += [text.timing for text in texts if text.timing][:1]
    body = "\n\n".join(lines)
    return ["", "## Timing", "", body] if body else []


def _area(builds: Sequence[EmittedModule], area: Synthesis) -> list[str]:
    found = {module.name: module for module in area.modules}
    lines = [
        "",
        "## Area",
        "",
        f"One instance with its children, Yosys {area.yosys}, target {area.target}; depth is the longest path within the",
        "module, in cells.",
        "",
    ]
    every = [(build, found[build.name]) for build in builds]
    kinds = [
        kind for kind in area.kinds({}) if kind == "flip_flops" or any(area.kinds(m.total)[kind] for _, m in every)
    ]
    names = [name for name, _ in builds[0].parameters] if len(builds) > 1 else []
    columns = [*names, "cells", *kinds, "memory_bits", "depth"]
    lines += ["| " + " | ".join(column.replace("_", " ") for column in columns) + " |", "|" + " --- |" * len(columns)]
    for build, module in every:
        counts = [area.kinds(module.total)[kind] for kind in kinds]
        own = [dict(build.parameters).get(name, 0) for name in names]
        values = [*own, sum(module.total.values()), *counts, module.memory_bits, module.depth]
        lines.append("| " + " | ".join(f"{value:,}" for value in values) + " |")
    return lines


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
