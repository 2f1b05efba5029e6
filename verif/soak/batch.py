"""The cases of one design, in a process of their own: a crash or a hang is then a finding like others."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path

from .cases import CASES_PER_DESIGN, make_case
from .compare import disagreements

__all__ = ["Result", "end_all", "run_batch", "run_one", "stream_batch"]

# After the end of the time asked for, what is still under way is broken off; whatever takes so long by then hangs.
GRACE_SECONDS = 5
HANG_SECONDS = 600
_running: "set[subprocess.Popen[str]]" = set()


@dataclass(frozen=True)
class Result:
    """What came of a case. ``problems``: a line each; ``text``: the case in words."""

    case: str
    text: str
    problems: list[str]
    seconds: float


def run_one(seed: int, number: int) -> Result:
    """One case, in this process."""
    begun = time.monotonic()
    text = "could not be made"
    try:
        case = make_case(seed, number)
        text = case.text
        problems = disagreements(case)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is what the soak is there to find)
        problems = [f"{type(error).__name__}: {error}", traceback.format_exc(limit=-4)]
    return Result(f"{seed}:{number}", text, problems, round(time.monotonic() - begun, 2))


def run_batch(seed: int, design: int, until: float) -> None:
    """The cases of a design as lines of JSON on standard output, until the time (``time.time``) is over."""
    for number in range(design * CASES_PER_DESIGN, (design + 1) * CASES_PER_DESIGN):
        if time.time() >= until:
            return
        print(json.dumps({"begun": f"{seed}:{number}"}), flush=True)
        print(json.dumps(asdict(run_one(seed, number))), flush=True)


def stream_batch(seed: int, design: int, until: float, cache: Path) -> Generator[Result, None, None]:
    """Results of :func:`run_batch` in a process of its own as they come, and one for the case in which it died."""
    command = [sys.executable, "-m", "verif.soak", "--batch", f"{seed}:{design}", "--until", str(until)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"XDG_CACHE_HOME": str(cache)},
        start_new_session=True,  # compilers that it starts end with it
    )
    assert process.stdout is not None
    _running.add(process)
    begun, at = "", time.monotonic()
    over = threading.Timer(max(0.0, until + GRACE_SECONDS - time.time()), _end, [process])
    over.daemon = True
    over.start()
    try:
        for line in process.stdout:
            item = json.loads(line)
            if "begun" in item:
                begun, at = item["begun"], time.monotonic()
            else:
                begun = ""
                yield Result(**item)
        code, seconds = process.wait(), round(time.monotonic() - at, 2)
        if code == -signal.SIGKILL and time.time() >= until:
            if seconds > HANG_SECONDS:
                yield Result(begun, "", [f"not done after {seconds} s"], seconds)
        elif code or begun:
            name = begun or f"{seed}:{design * CASES_PER_DESIGN}"
            yield Result(name, "", [f"the process ended with exit code {code}"], seconds)
    finally:
        over.cancel()
        _end(process)
        process.communicate()
        _running.discard(process)


def end_all() -> None:
    """Ends what :func:`stream_batch` started, in whichever thread."""
    for process in tuple(_running):
        _end(process)


def _end(process: "subprocess.Popen[str]") -> None:
    """With all that it started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
