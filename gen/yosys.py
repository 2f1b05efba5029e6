"""Yosys at arm's length: jobs go to a child process, since an error inside the library ends the process."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

__all__ = ["ToolError", "YosysError", "quoted", "run_jobs"]

WORKER = Path(__file__).with_name("yosys_worker.py")


class ToolError(Exception):
    """A tool that is missing. The text says which and how to get it."""

    exit_code = 3


class YosysError(Exception):
    """Yosys refused what we gave it: a defect of ours, not of the user's input."""


def quoted(path: Path) -> str:
    """A path as a Yosys command takes it, spaces and all."""
    return f'"{path}"'


def run_jobs(jobs: Sequence[Sequence[str]], *, workers: int | None = None) -> None:
    """Runs each job's commands in a Yosys of its own, several at a time. Raises ToolError or YosysError."""
    if importlib.util.find_spec("pyosys") is None:
        raise ToolError("Yosys is missing: pip install pyosys==0.70")
    workers = max(1, min(workers or len(os.sched_getaffinity(0)), len(jobs)))
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(_run, (jobs[n::workers] for n in range(workers))))


def _run(jobs: Sequence[Sequence[str]]) -> None:
    command = [sys.executable, "-I", str(WORKER)]
    done = subprocess.run(command, input=json.dumps(jobs), capture_output=True, text=True, check=False)
    if done.returncode:
        raise YosysError(f"Yosys failed: {done.stderr.strip() or done.stdout.strip()[-2000:]}")
