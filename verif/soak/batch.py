"""The cases of one design, in a process of their own: a crash or a hang is then a finding like others."""

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path

from .cases import CASES_PER_DESIGN, make_case
from .compare import disagreements

__all__ = ["Result", "run_batch", "run_one", "stream_batch"]

# What a case may take after the end of the time asked for; a build is not broken off for it.
GRACE_SECONDS = 300


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
    begun = ""
    try:
        for line in process.stdout:
            item = json.loads(line)
            if "begun" in item:
                begun = item["begun"]
            else:
                begun = ""
                yield Result(**item)
        code = process.wait(max(1.0, until + GRACE_SECONDS - time.time()))
        if code or begun:
            name = begun or f"{seed}:{design * CASES_PER_DESIGN}"
            yield Result(name, "", [f"the process ended with exit code {code}"], 0.0)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
