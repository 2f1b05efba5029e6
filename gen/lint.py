"""Verilator's -Wall over generated Verilog, with the waivers of ``lint_waivers.vlt``."""

import subprocess
from pathlib import Path

from .verilator import environment, verilator

__all__ = ["WAIVERS", "lint"]

WAIVERS = Path(__file__).with_name("lint_waivers.vlt")


def lint(folder: Path, top: str, sources: list[str]) -> list[str]:
    """Warnings and errors on the files of a folder, one text each; empty when there are none."""
    tool = verilator()
    command = [tool, "--lint-only", "-Wall", "--top-module", top, str(WAIVERS.resolve()), *sources]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace", check=False, env=environment(tool)
    )
    if not done.returncode:
        return []
    complaints = done.stderr.replace("\n%", "\0%").split("\0")
    return [text.strip() for text in complaints if text.strip() and "Exiting due to" not in text] or [
        done.stderr.strip()
    ]
