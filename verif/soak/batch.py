"""The cases of one design, in a process of their own: a crash or a hang is then a finding like others."""

import contextlib
import json
import math
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field

from .cases import CASES_PER_DESIGN, make_case
from .run import library_for, run_case
from .schemes import KINDS
from .tally import Tags, tags_of, with_verdict

__all__ = ["Built", "Result", "end_all", "run_batch", "run_one", "stream_batch", "words_of"]

# After the end of the time asked for, what is still under way is broken off.
GRACE_SECONDS = 5
# A case that takes so much time of a processor hangs, however busy the machine is.
HANG_SECONDS = 600
_running: "set[subprocess.Popen[str]]" = set()


@dataclass(frozen=True)
class Result:
    """What came of a case. ``problems``: a line each; ``text``: the case in words; ``tags``: the same to be counted."""

    case: str
    text: str
    problems: list[str]
    seconds: float
    cycles: int = 0
    tags: Tags = field(default_factory=dict)


@dataclass(frozen=True)
class Built:
    """A design that is compiled, now or before. ``number``: of the seed; ``design``: its fields."""

    number: int
    seconds: float
    design: dict[str, object]


def words_of(schemes: Sequence[str]) -> list[str]:
    """The option that draws these schemes alone; nothing where all are drawn."""
    return [] if tuple(schemes) == KINDS else [word for kind in schemes for word in ("--scheme", kind)]


def run_one(seed: int, number: int, schemes: Sequence[str] = KINDS) -> Result:
    """One case, in this process."""
    begun = time.monotonic()
    text, cycles, tags = "could not be made", 0, Tags()
    try:
        case = make_case(seed, number, schemes)
        text, tags = case.text, tags_of(case)
        verdict = run_case(case, library_for(case))
        problems, cycles, tags = verdict.problems, verdict.cycles, with_verdict(tags, verdict)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is what the soak is there to find)
        problems = [f"{type(error).__name__}: {error}", traceback.format_exc(limit=-4)]
    return Result(f"{seed}:{number}", text, problems, round(time.monotonic() - begun, 2), cycles, tags)


def run_batch(seed: int, design: int, seconds: float, until: float, schemes: Sequence[str] = KINDS) -> None:
    """The cases of a design as lines of JSON on standard output.

    ``seconds``: how long from when it is compiled, one case at least; ``until``: when all is over (``time.time``).
    """
    first = design * CASES_PER_DESIGN
    print(json.dumps({"begun": f"{seed}:{first}"}), flush=True)
    begun = time.time()
    case = make_case(seed, first, schemes)
    library_for(case)
    built = Built(design, round(time.time() - begun, 1), case.design.model_dump(mode="json"))
    print(json.dumps({"built": asdict(built)}), flush=True)
    until = min(until, time.time() + seconds)
    for number in range(first, first + CASES_PER_DESIGN):
        if time.time() >= until:
            return
        print(json.dumps({"begun": f"{seed}:{number}"}), flush=True)
        _allow(HANG_SECONDS)
        print(json.dumps(asdict(run_one(seed, number, schemes))), flush=True)


def _allow(seconds: float) -> None:
    """The system ends this process with SIGXCPU when it has taken so much more time of a processor."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), hard))


def stream_batch(
    seed: int, design: int, seconds: float, until: float, schemes: Sequence[str] = KINDS
) -> Generator[Result | Built, None, None]:
    """Results of :func:`run_batch` in a process of its own as they come, and one for the case in which it died."""
    command = [sys.executable, "-m", "verif.soak", "--batch", f"{seed}:{design}"]
    command += ["--seconds", str(seconds), "--until", str(until), *words_of(schemes)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
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
                continue
            begun = ""
            yield Built(**item["built"]) if "built" in item else Result(**item)
        code, spent = process.wait(), round(time.monotonic() - at, 2)
        if code == -signal.SIGXCPU:
            yield Result(begun, "", [f"not done after {HANG_SECONDS} s of a processor"], spent)
        elif (code or begun) and not (code == -signal.SIGKILL and time.time() >= until):
            name = begun or f"{seed}:{design * CASES_PER_DESIGN}"
            yield Result(name, "", [f"the process ended with exit code {code}"], spent)
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
