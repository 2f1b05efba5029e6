"""What a test may need that a machine may not have: how it is found, and how to get it.

A test that needs such a thing says so by ``needs_tool``; one that takes long by ``long_run``, a family of tests by ``some_of``.
``conftest.py`` leaves both out where it must, and counts them. There is no other way to skip a test.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest

__all__ = [
    "LONG_RUNS",
    "REQUIRE_TOOLS",
    "TOOLS",
    "Tool",
    "another_user",
    "is_there",
    "long_run",
    "needs_tool",
    "some_of",
]

#: Set to 1: a tool that is not there makes tests fail that need it.
REQUIRE_TOOLS = "FIBERLOOM_REQUIRE_TOOLS"
#: Set to 1: long runs are made, too.
LONG_RUNS = "FIBERLOOM_LONG_BENCHES"
NOBODY = 65534


def libpython() -> bool:
    from sw.runtime.simulation.build import ToolMissing
    from verif.runner import libpython

    try:
        libpython()
    except ToolMissing:
        return False
    return True


def solver() -> bool:
    from gen.yosys import ToolError
    from verif.formal.prove import tools

    try:
        tools()
    except ToolError:
        return False
    return True


def icarus() -> bool:
    return all(shutil.which(name) is not None for name in ("iverilog", "vvp"))


def placer() -> bool:
    from gen.place import nextpnr
    from gen.yosys import ToolError

    try:
        nextpnr()
    except ToolError:
        return False
    return True


def compiler() -> bool:
    return any(shutil.which(name) is not None for name in ("cc", "gcc", "g++"))


def another_user() -> list[str] | None:
    """What a command begins with to be run by somebody without rights: `nobody` where that can be chosen.

    None where there is no way.

    The tests' own interpreter may lie in a folder that is closed to others: then `nobody` may read everything as well.
    """
    if os.geteuid() != 0:
        return []
    tool = shutil.which("setpriv")
    if tool is None:
        return None
    plain = [tool, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    reading = [*plain, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    # Without the right to read it an interpreter may come up as another one: what it starts is what counts.
    probe = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import numpy'], check=True)"
    for words in (plain, reading):
        if not subprocess.run([*words, sys.executable, "-c", probe], capture_output=True, check=False).returncode:
            return words
    return None


@dataclass(frozen=True)
class Tool:
    """What it is, how to get it, whether it is here."""

    what: str
    install: str
    here: Callable[[], bool]


def browser() -> bool:
    from tests.browser import program

    return program() is not None


TOOLS = {
    "chromium": Tool("a browser", "sudo apt-get install chromium", browser),
    "libpython": Tool("Python's shared library", "sudo apt-get install libpython3-dev", libpython),
    "icarus": Tool("Icarus Verilog", "sudo apt-get install iverilog", icarus),
    "nextpnr": Tool("place and route for ECP5", "make setup", placer),
    "solver": Tool("the solver", "make setup-formal", solver),
    "another user": Tool(
        "a way to run Python as another user", "sudo apt-get install util-linux", lambda: another_user() is not None
    ),
    "compiler": Tool("a C compiler", "sudo apt-get install gcc", compiler),
    "pandas": Tool("pandas", "make setup", lambda: find_spec("pandas") is not None),
    "communities": Tool(
        "scikit-network", "pip install 'fiberloom[communities]'", lambda: find_spec("sknetwork") is not None
    ),
    "pruned": Tool(
        "onnx and safetensors",
        "pip install 'fiberloom[pruned]'",
        lambda: all(find_spec(name) is not None for name in ("ml_dtypes", "onnx", "safetensors")),
    ),
    "ipyxact": Tool("ipyxact", "make setup", lambda: find_spec("ipyxact") is not None),
    "scikit-learn": Tool("scikit-learn", "make setup", lambda: find_spec("sklearn") is not None),
    "sparse": Tool("pydata/sparse", "make setup", lambda: find_spec("sparse") is not None),
}


@cache
def is_there(name: str) -> bool:
    return TOOLS[name].here()


def needs_tool(*names: str) -> pytest.MarkDecorator:
    """Marks a test that cannot run without these of ``TOOLS``."""
    unknown = set(names) - set(TOOLS)
    if unknown or not names:
        raise ValueError(f"A test needs some of {', '.join(TOOLS)}, not {', '.join(sorted(unknown)) or 'nothing'}")
    return pytest.mark.needs_tool(*names)


def long_run() -> pytest.MarkDecorator:
    """Marks a test that is left out unless long runs are asked for."""
    return pytest.mark.long_run


def some_of(values: Iterable[Any], *, every: int) -> list[Any]:
    """Parameters of a test, of which each ``every``-th one runs always, from the first on; the others are long runs."""
    return [pytest.param(value, marks=[long_run()] if n % every else []) for n, value in enumerate(values)]


def set_to_one(variable: str) -> bool:
    return os.environ.get(variable) == "1"
