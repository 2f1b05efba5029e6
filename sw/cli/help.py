"""``fiberloom help``: the help of a command, or a list of names: operands, designs, tilings, formats, exit codes."""

import inspect
import sys
from collections.abc import Callable
from typing import Annotated

import typer

__all__ = ["TOPICS", "command"]

EXIT_CODES = {
    0: "done and verified",
    1: "a result differs from the golden one, or a check of generated files complains",
    2: "bad input or option",
    3: "a tool is missing or cannot be reached; the line says how to get it",
    70: "a defect of the program: a traceback",
    74: "standard output or a file cannot be written",
    130: "interrupted",
}


def _operands() -> list[tuple[str, str]]:
    from sw.operands.collections import URLS
    from sw.operands.generators import GENERATORS
    from sw.operands.load import FILES
    from sw.operands.networks import NETWORKS

    files = [
        (", ".join(FILES), "files: Matrix Market, SciPy archives, binsparse"),
        (
            ", ".join(f"{ending}:TENSOR" for ending in NETWORKS),
            "weights of a neural network; pip install 'fiberloom[pruned]'",
        ),
        ("-", "one of these on standard input"),
    ]
    named = [("pyamg:NAME", "examples of PyAMG; fiberloom data list pyamg")]
    fetched = [(f"{source}:NAME", "downloaded once, when asked for") for source in URLS if source != "frostt"]
    return [*files, *named, *fetched, *((kind.usage, kind.summary) for kind in GENERATORS.values())]


def _designs() -> list[tuple[str, str]]:
    from gen.design import design_names, load_design

    return [(name, load_design(name).description) for name in design_names()]


def _tilings() -> list[tuple[str, str]]:
    from sw.policies.registry import find_policy, policy_names

    return [(name, _first_line(find_policy(name))) for name in policy_names()]


def _formats() -> list[tuple[str, str]]:
    from sw.formats.storage import storage_format, storage_names

    found = []
    for name in storage_names():
        kind = type(storage_format(name))
        package = inspect.getdoc(sys.modules[kind.__module__]) or ""
        found.append((name, package.partition("\n")[0] or _first_line(kind)))
    return found


def _codes() -> list[tuple[str, str]]:
    return [(str(code), meaning) for code, meaning in EXIT_CODES.items()]


def _first_line(described: object) -> str:
    return (inspect.getdoc(described) or "").partition("\n")[0]


TOPICS: dict[str, tuple[str, Callable[[], list[tuple[str, str]]]]] = {
    "operands": ("What A, B and X may be", _operands),
    "designs": ("What --config takes beside a TOML file", _designs),
    "tilings": ("What --tiling takes", _tilings),
    "storage-formats": ("What --from and --to of convert take", _formats),
    "exit-codes": ("What a command ends with", _codes),
}


def command(
    topic: Annotated[str, typer.Argument(metavar="[TOPIC]", help=f"A command, or {', '.join(TOPICS)}.")] = "",
) -> int:
    """The help of a command, or of a topic: operands, designs, tilings, storage-formats, exit-codes."""
    from gen.design import did_you_mean
    from sw.operands.errors import UserError

    from .app import COMMANDS, available, main

    if topic in TOPICS:
        title, rows = TOPICS[topic]
        found = rows()
        width = min(24, max(len(name) for name, _ in found))
        print(f"{title}:\n")
        for name, meaning in found:
            print(f"  {name:<{width}}  {meaning}" if len(name) <= width else f"  {name}\n  {'':<{width}}  {meaning}")
        return 0
    if topic and topic not in available():
        names = [*available(), *TOPICS]
        what = "not in this version" if topic in COMMANDS else "no such topic"
        raise UserError(f"help {topic}: {what}: must be one of {', '.join(names)}{did_you_mean(topic, names)}")
    if not topic:
        print(f"fiberloom help COMMAND, or one of these topics: {', '.join(TOPICS)}\n")
    return main([topic, "--help"] if topic else ["--help"])
