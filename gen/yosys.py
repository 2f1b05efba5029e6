"""Yosys at arm's length: jobs go to child processes, since an error inside the library ends the process."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

__all__ = ["ToolError", "YosysError", "quoted", "run_jobs"]

WORKER = Path(__file__).with_name("yosys_worker.py")


class ToolError(Exception):
    """A tool that is missing. The text says which and how to get it."""

    exit_code = 3


class YosysError(Exception):
    """Yosys refused its input: a defect of Fiberloom, not of the user's input."""


def quoted(path: Path) -> str:
    """A path as a Yosys command takes it, spaces and all."""
    return f'"{path}"'


def run_jobs(
    jobs: Sequence[Sequence[str]], *, workers: int | None = None, finished: Callable[[int], None] | None = None
) -> None:
    """Runs each job's commands in a Yosys of its own, several at a time.

    ``finished`` is called with the number of finished jobs after each one, from any thread. An interrupt ends all jobs.
    Raises ToolError or YosysError.
    """
    if importlib.util.find_spec("pyosys") is None:
        raise ToolError("Yosys is missing: pip install pyosys==0.70")
    workers = max(1, min(workers or len(os.sched_getaffinity(0)), len(jobs)))
    crew = _Crew(finished or (lambda count: None))
    with ThreadPoolExecutor(workers) as pool:
        try:
            list(pool.map(crew.work, (jobs[n::workers] for n in range(workers))))
        except BaseException:
            crew.dismiss()
            raise


class _Crew:
    """Worker processes that can be stopped together."""

    def __init__(self, finished: Callable[[int], None]) -> None:
        self._finished = finished
        self._count = 0
        self._lock = Lock()
        self._dismissed = False
        self._processes: list[subprocess.Popen[str]] = []

    def work(self, jobs: Sequence[Sequence[str]]) -> None:
        """One worker's jobs, in its own process; it prints a line for each finished job."""
        with tempfile.TemporaryFile("w+") as complaints:
            with self._lock:
                if self._dismissed:
                    return
                process = subprocess.Popen(
                    [sys.executable, "-I", str(WORKER)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=complaints,
                    encoding="utf-8",
                    errors="replace",
                    # A group of its own: the worker forks, and all of it must end together.
                    start_new_session=True,
                )
                self._processes.append(process)
            with process:
                assert process.stdin is not None and process.stdout is not None
                try:
                    process.stdin.write(json.dumps(jobs))
                    process.stdin.close()
                except BrokenPipeError:
                    pass  # it has ended already, and its output says why
                for _ in process.stdout:
                    with self._lock:
                        self._count += 1
                        self._finished(self._count)
            if process.returncode and not self._dismissed:
                complaints.seek(0)
                raise YosysError(f"Yosys failed: {complaints.read()[-2000:].strip() or process.returncode}")

    def dismiss(self) -> None:
        """Ends every worker and the processes that it forked."""
        with self._lock:
            self._dismissed = True
            for process in self._processes:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
