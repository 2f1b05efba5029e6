"""Work for executors under test; a module of its own, so that other processes find it."""

import os
import signal
import time
from pathlib import Path
from typing import Any


def echo(item: Any) -> dict[str, Any]:
    """The item and who had it, after a moment."""
    time.sleep(0.05)
    return {"record": {"item": item, "pid": os.getpid()}}


def die(item: Any) -> dict[str, Any]:
    """Some items end their process."""
    if item == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return echo(item)


def linger(item: str) -> dict[str, Any]:
    """Writes its process id to the file and a child's beside it, then takes long; an empty name is done at once."""
    if not item:
        return {"record": {}}
    import subprocess

    child = subprocess.Popen(["sleep", "600"])
    Path(item).write_text(f"{os.getpid()} {child.pid}\n")
    time.sleep(600)
    return {"record": {}}


def compile_something(item: Any) -> dict[str, Any]:
    """When this process began and ended to hold Numba's lock."""
    from sw.cli.compiling import one_compiler_at_a_time

    one_compiler_at_a_time()
    one_compiler_at_a_time()
    from numba.core.compiler_lock import global_compiler_lock

    with global_compiler_lock:
        with global_compiler_lock:
            begun = time.monotonic()
            time.sleep(0.1)
        ended = time.monotonic()
    return {"record": {"pid": os.getpid(), "begun": begun, "ended": ended}}
