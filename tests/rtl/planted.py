"""Faults planted in the hardware's sources: blocks of a copy in which one snippet of one module is another."""

import importlib
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import rtl

__all__ = ["Fault", "assert_present", "planted"]

#: Module of the part, source snippet, what it becomes.
Fault = tuple[str, str, str]


def faulty(path: Path, snippet: str, replacement: str) -> str:
    """A block's source with a fault. A snippet that does not occur once fails the test: the fault has to be rewritten."""
    text = path.read_text()
    assert text.count(snippet) == 1, f"{snippet!r} occurs {text.count(snippet)} times in {path.stem}"
    return text.replace(snippet, replacement)


def assert_present(part: str, faults: Iterable[Fault]) -> None:
    """Each fault is one of the present source of a ``part`` of rtl, also of those that long runs alone plant."""
    for module, snippet, replacement in faults:
        assert faulty(Path(rtl.__file__).parent / part.replace(".", "/") / f"{module}.py", snippet, replacement)


@contextmanager
def planted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, part: str, fault: Fault | None, *blocks: str
) -> Iterator[list[type]]:
    """The ``blocks`` (``module.Class``) of a ``part`` of rtl (``pe``, ``mint.converter``), with the fault in them, or none.

    The copy is forgotten afterwards.
    """
    monkeypatch.syspath_prepend(folder)
    package = "planted"
    shutil.copytree(Path(rtl.__file__).parent, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    if fault is not None:
        module, snippet, replacement = fault
        path = folder / package / part.replace(".", "/") / f"{module}.py"
        path.write_text(faulty(path, snippet, replacement))
    importlib.invalidate_caches()
    try:
        names = [block.split(".") for block in blocks]
        yield [getattr(importlib.import_module(f"{package}.{part}.{module}"), kind) for module, kind in names]
    finally:
        for module in [module for module in sys.modules if module.split(".")[0] == package]:
            del sys.modules[module]
