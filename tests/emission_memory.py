"""Designs have most of their blocks in common, and many tests emit designs: each distinct block is converted once a process.

``remember`` makes the emitter keep what it converts. Which blocks are equal is its own rule (``gen.platform``). While a test has
something else in the place of a function, a class or a number of the hardware, nothing is kept and nothing that was is used.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache, wraps
from typing import Any

from gen import platform, verilog
from gen.platform import EmittedModule, ModuleEmitter
from gen.writer import Child
from rtl.lib.block import Block

__all__ = ["remember"]

TEXTS = 4096
KEPT: dict[Any, tuple[EmittedModule, tuple[Block, ...]]] = {}
#: What stands under each name of the hardware's modules and classes, as it was first seen.
FIRST: dict[tuple[str, str, str], Any] = {}
CHILD = re.compile(r"(?m)^  cell \\(\S+)")


def remember() -> None:
    """Changes the emitter for this process; a second call changes nothing."""
    if not hasattr(ModuleEmitter._convert, "__wrapped__"):
        _keep_conversions()
        _keep_texts()


def unchanged() -> bool:
    """Whether every name of the hardware stands for what it stood for at first."""
    return all(FIRST.setdefault(key, value) is value for key, value in _hardware())


def _hardware() -> Iterator[tuple[tuple[str, str, str], Any]]:
    for name, module in list(sys.modules.items()):
        if name == "rtl" or name.startswith("rtl."):
            for word, value in list(vars(module).items()):
                yield (name, word, ""), value
                if isinstance(value, type) and value.__module__ == name:
                    yield from (((name, word, part), content) for part, content in list(vars(value).items()))


def _keep_conversions() -> None:
    begin, add, convert = ModuleEmitter.__init__, ModuleEmitter.add, ModuleEmitter._convert

    @wraps(begin)
    def beginning(self: Any, *, thorough: bool = False) -> None:
        begin(self, thorough=thorough)
        self.keeps = not thorough and unchanged()
        self.asked = [[]]  # blocks below each of those that are being converted

    @wraps(add)
    def adding(self: Any, block: Block) -> EmittedModule:
        self.asked[-1].append(block)
        return add(self, block)

    @wraps(convert)
    def converting(self: Any, block: Block, name: str) -> EmittedModule:
        fingerprint = platform._fingerprint(block) if self.keeps else None
        key = (name, fingerprint)
        if fingerprint is not None and key in KEPT:
            module, below = KEPT[key]
            # As the conversion does: the order of the modules and what becomes of equal names depend on it.
            for child in below:
                self.add(child)
            platform._consider_used(block)
            return module
        self.asked.append([])
        try:
            module = convert(self, block, name)
        finally:
            below = tuple(self.asked.pop())
        if fingerprint is not None and all(
            (child.module_name, platform._fingerprint(child)) in KEPT for child in below
        ):
            KEPT[key] = module, below
        return module

    setattr(ModuleEmitter, "__init__", beginning)  # noqa: B010 - mypy refuses to assign to a method
    setattr(ModuleEmitter, "add", adding)  # noqa: B010 - as above
    setattr(ModuleEmitter, "_convert", converting)  # noqa: B010 - as above


def _keep_texts() -> None:
    write = verilog.write_module
    kept = lru_cache(TEXTS)(lambda text, children: write(text, dict(children)))

    @wraps(write)
    def writing(text: str, children: Mapping[str, Child]) -> Any:
        return kept(text, tuple((name, children[name]) for name in sorted({*CHILD.findall(text)} & children.keys())))

    setattr(verilog, "write_module", writing)  # noqa: B010 - mypy refuses to assign to a function of a module
