"""Faults planted in the hardware's sources: blocks of a copy in which one snippet of one module is another."""

import importlib
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import rtl

__all__ = ["Fault", "planted"]

#: Module of the part, source snippet, what it becomes.
Fault = tuple[str, str, str]


@contextmanager
def planted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, part: str, fault: Fault | None, *blocks: str
) -> Iterator[list[type]]:
    """The ``blocks`` (``module.Class``) of a ``part`` of rtl (``pe``, ``mint.converter``), with the fault in them, or none.

    A snippet that does not occur once fails the test: the fault has to be rewritten. The copy is forgotten afterwards.
    """
    monkeypatch.syspath_prepend(folder)
    package = "planted"
    shutil.copytree(Path(rtl.__file__).parent, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    if fault is not None:
        module, snippet, replacement = fault
        path = folder / package / part.replace(".", "/") / f"{module}.py"
        text = path.read_text()
        assert text.count(snippet) == 1, f"{snippet!r} occurs {text.count(snippet)} times in {module}"
        path.write_text(text.replace(snippet, replacement))
    importlib.invalidate_caches()
    try:
        names = [block.split(".") for block in blocks]
        yield [getattr(importlib.import_module(f"{package}.{part}.{module}"), kind) for module, kind in names]
    finally:
        for module in [module for module in sys.modules if module.split(".")[0] == package]:
            del sys.modules[module]
