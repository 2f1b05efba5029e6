"""Runs the smoke bench of a generated folder under Icarus or Verilator."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .smoke import BENCH, BENCH_TOP, BUILD_FLAGS, NETLIST
from .verilator import environment, verilator
from .verilog import FILE_LIST
from .yosys import ToolError

__all__ = ["SIMULATORS", "smoke"]

# A bench of some thousand cycles needs no fast code.
_QUICKLY = ("-MAKEFLAGS", "OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0")
_QUIET = ("-Wno-fatal", "-Wno-lint", "-Wno-style")


def smoke(
    folder: Path, simulator: str, runs: Sequence[Sequence[str]] = ((),)
) -> list[subprocess.CompletedProcess[str]]:
    """Builds the bench and runs it once with each of the lists of arguments: what it printed, and its exit code, 0 for PASS.

    A build that fails is the only entry. Raises ToolError when the simulator, or for Verilator the C++ compiler, is missing.
    """
    folder = folder.resolve()
    with tempfile.TemporaryDirectory(prefix="fiberloom-smoke-") as scratch:
        build, program = SIMULATORS[simulator](Path(scratch))
        built = _run(folder, build, environment(build[0]) if simulator == "verilator" else None)
        return [built] if built.returncode else [_run(folder, [*program, *arguments], None) for arguments in runs]


def _run(folder: Path, command: list[str], variables: dict[str, str] | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


def _icarus(scratch: Path) -> tuple[list[str], list[str]]:
    compiler, runner = shutil.which("iverilog"), shutil.which("vvp")
    if compiler is None or runner is None:
        raise ToolError("Icarus Verilog is missing: apt install iverilog")
    target = str(scratch / "smoke.vvp")
    return [compiler, "-g2012", "-s", BENCH_TOP, "-o", target, NETLIST, BENCH], [runner, "-n", target]


def _verilator(scratch: Path) -> tuple[list[str], list[str]]:
    tool = verilator()
    if shutil.which("g++") is None:
        raise ToolError("Verilator needs a C++ compiler, which is missing: apt install g++")
    mode = ("--binary", "--timing", "-j", "2", "--top-module", BENCH_TOP, "--Mdir", str(scratch))
    return [tool, *mode, *_QUIET, *BUILD_FLAGS, *_QUICKLY, "-f", FILE_LIST, BENCH], [str(scratch / f"V{BENCH_TOP}")]


SIMULATORS = {"icarus": _icarus, "verilator": _verilator}
