"""A page for each module of a generated folder: what it is, its parameters, ports, timing, children and area."""

import inspect
from collections import Counter
from collections.abc import Sequence

from amaranth.hdl import Value

from rtl.lib.block import Block

from .docstrings import BlockText, block_text, member_meaning
from .platform import EmittedModule, Port
from .rtlil_text import inputs_of
from .synth import Synthesis
from .verilog import Verilog

__all__ = ["PAGES", "pages"]

PAGES = "docs/blocks"
_PINS = {"clk": "Clock.", "rst": "Synchronous reset, active high."}


def pages(verilog: Verilog, *, origin: str, area: Synthesis | None = None) -> dict[str, str]:
    """Markdown by relative path, an index among it. ``area`` is a synthesis of the same hardware."""
    modules = {module.name: module for module in verilog.modules}
    classes = {type(module.block).__name__: type(module.block) for module in verilog.modules}
    users: dict[str, list[str]] = {}
    instances: Counter[str] = Counter({verilog.top: 1})
    for module in reversed(verilog.modules):  # parents before children
        for child, number in module.children:
            users.setdefault(child, []).append(module.name)
            instances[child] += number * instances[module.name]
    found = {}
    rows = []
    for name in sorted(modules):
        module = modules[name]
        text = block_text(type(module.block))
        others = [block_text(classes[mention]) for mention in text.mentions if mention in classes]
        escaped = _escaped(module, verilog.files[f"{name}.sv"])
        found[f"{PAGES}/{name}.md"] = _page(
            module, text, others, users.get(name, []), instances[name], origin, area, escaped
        )
        rows.append(f"| [{name}]({name}.md) | {instances[name]} | {_cell(text.summary)} |")
    head = ["# Blocks", "", origin, "", f"The top is [{verilog.top}]({verilog.top}.md).", ""]
    index = [*head, "| module | instances | what it is |", "| --- | --- | --- |", *rows, ""]
    return {f"{PAGES}/index.md": "\n".join(index)} | found


def _page(
    module: EmittedModule,
    text: BlockText,
    others: Sequence[BlockText],
    users: Sequence[str],
    instances: int,
    origin: str,
    area: Synthesis | None,
    escaped: frozenset[str],
) -> str:
    kind = type(module.block)
    lines = [
        f"# {module.name}",
        "",
        text.prose,
        "",
        f"Verilog: `rtl/{module.name}.sv`. Source: `{kind.__module__}`, class",
    ]
    lines[-1] += f" `{kind.__qualname__}`. {origin}"
    lines += _parameters(module.block, text, others)
    lines += _ports(module, [text, *others], escaped)
    # A buffer around a controller says once for both how it behaves.
    wrapped = "members are those of" in text.prose
    lines += _timing(module.block, [text, *others] if wrapped else [text])
    if area is not None:
        lines += _area(module.name, area)
    if module.children:
        lines += ["", "## Instances", ""]
        lines += [f"- {number} x [{child}]({child}.md)" for child, number in module.children]
    if users:
        lines += ["", f"Used {instances} times, in " + ", ".join(f"[{name}]({name}.md)" for name in users) + "."]
    return "\n".join([*lines, ""])


def _parameters(block: Block, text: BlockText, others: Sequence[BlockText]) -> list[str]:
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
        # A port that is there only with a flag of its name says that the flag is set.
        value = isinstance(value, Value) or getattr(value, "name", value)
        shown = f"`{value}`" if isinstance(value, int | str | tuple) else ""
        meaning = next((found.parameters[name] for found in [text, *others] if found.parameters.get(name)), "")
        lines.append(f"| `{name}` | {shown} | {_cell(meaning)} |")
    return lines


def _escaped(module: EmittedModule, verilog: str) -> frozenset[str]:
    """Ports whose names are keywords of SystemVerilog, which Yosys then writes as escaped identifiers."""
    return frozenset(port.name for port in module.ports if f"\\{port.name} " in verilog)


def _ports(module: EmittedModule, texts: Sequence[BlockText], escaped: frozenset[str]) -> list[str]:
    lines = ["", "## Ports", "", "| port | direction | bits | meaning |", "| --- | --- | --- | --- |"]
    present = inputs_of(module.rtlil)
    lines += [f"| `{pin}` | in | 1 | {meaning} |" for pin, meaning in _PINS.items() if pin in present]
    shown = {port.name: f"\\{port.name}" if port.name in escaped else port.name for port in module.ports}
    explained = ""
    for port in module.ports:
        name, meaning = member_meaning(port.name, texts)
        direction = "in" if port.is_input else "out"
        # Words stand with the first port of a member.
        words = _cell(meaning) if name != explained else ""
        if port.codes:
            words = f"{words} {', '.join(f'{code} `{called.lower()}`' for code, called in port.codes)}.".strip()
        lines.append(f"| `{shown[port.name]}` | {direction} | {port.width} | {words} |")
        explained = name
    if escaped:
        example = next(shown[port.name] for port in module.ports if port.name in escaped)
        lines += [
            "",
            "A port with `\\` has the name of a SystemVerilog keyword: an escaped identifier, which ends with a space.",
            f"Connect it as `.{example} (net)`.",
        ]
    packed = [port for port in module.ports if port.fields]
    if packed:
        lines += ["", "### Fields", "", "| port | bits | field |", "| --- | --- | --- |"]
        lines += [f"| `{shown[port.name]}` | {bits} | `{name}` |" for port in packed for bits, name in _fields(port)]
    return lines


def _fields(port: Port) -> list[tuple[str, str]]:
    return [(f"{low + width - 1}:{low}" if width > 1 else f"{low}", name) for name, low, width in port.fields]


def _timing(block: Block, texts: Sequence[BlockText]) -> list[str]:
    latency = getattr(block, "latency", None)
    lines = [f"`latency`: {latency} cycles."] if isinstance(latency, int) else []
    lines += [text.timing for text in texts if text.timing][:1]
    body = "\n\n".join(lines)
    return ["", "## Timing", "", body] if body else []


def _area(name: str, area: Synthesis) -> list[str]:
    module = next(module for module in area.modules if module.name == name)
    kinds = {kind: count for kind, count in area.kinds(module.total).items() if count or kind == "flip_flops"}
    columns = {"cells": sum(module.total.values()), **kinds, "memory_bits": module.memory_bits, "depth": module.depth}
    return [
        "",
        "## Area",
        "",
        f"One instance with its children, Yosys {area.yosys}, target {area.target}; depth is the longest path within the",
        "module, in cells.",
        "",
        "| " + " | ".join(column.replace("_", " ") for column in columns) + " |",
        "| " + " | ".join("---" for _ in columns) + " |",
        "| " + " | ".join(f"{value:,}" for value in columns.values()) + " |",
    ]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
