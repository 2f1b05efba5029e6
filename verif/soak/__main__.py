"""``python -m verif.soak``: random designs on random operands, for as long as asked.

Exit codes: 0 everything agreed; 1 something did not; 2 an option that cannot be; 3 a tool is missing; 4 the time was over before
any case was run; 130 interrupted.
"""

import argparse
import json
import os
import secrets
import shlex
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import count
from pathlib import Path

from sw.runtime.simulation.build import ToolMissing, cache_folder, compiler, verilator

from . import batch
from .batch import Built, Result
from .cases import CASES_PER_DESIGN
from .designs import design_of
from .schemes import KINDS
from .tally import Tally

OUT = Path("build/soak")
REPORT_SECONDS = 15.0
# Each design has so large a share of the time for its cases, beside that of compiling it: an hour is for a dozen at least.
SHARES = 36
LEAST_SECONDS = 20.0
NOTHING_RUN = 4


class Soak:
    """Batches side by side until the time is over. Everything is kept in ``out``: each case, and failures once more."""

    def __init__(self, seed: int, seconds: float, out: Path, schemes: Sequence[str] = KINDS) -> None:
        self.seed = seed
        self.schemes = schemes
        self.seconds = seconds
        self.until = time.time() + seconds
        self.failed = out / "failures.jsonl"
        self.kept = out / f"cases-{seed}.jsonl"
        self.cases = 0
        self.built: dict[int, Built] = {}
        self.designs: set[int] = set()
        self.failures: list[Result] = []
        self.tally = Tally()
        self.stop = threading.Event()
        self._numbers = count()
        self._lock = threading.Lock()
        self._shown = time.monotonic()

    def run(self, workers: int) -> None:
        """Raises KeyboardInterrupt after everything that was started has ended."""
        self.kept.parent.mkdir(parents=True, exist_ok=True)
        self.kept.write_text(
            json.dumps(
                {"run": {"seed": self.seed, "seconds": self.seconds, "jobs": workers, "schemes": list(self.schemes)}}
            )
            + "\n"
        )
        share = max(LEAST_SECONDS, self.seconds * workers / SHARES)
        try:
            with ThreadPoolExecutor(workers) as pool:
                futures = [pool.submit(self._work, share) for _ in range(workers)]
                try:
                    for future in futures:
                        future.result()
                except BaseException:
                    self.stop.set()
                    batch.end_all()
                    raise
        finally:
            self._keep({"summary": self.summary(), "counts": self.tally.as_dict()})

    def _work(self, share: float) -> None:
        while not self.stop.is_set() and time.time() < self.until:
            with self._lock:
                number = next(self._numbers)
            results = batch.stream_batch(self.seed, number, share, self.until, self.schemes)
            try:
                for result in results:
                    if self.stop.is_set():
                        break
                    self._note(number, result)
            finally:
                results.close()

    def _note(self, number: int, result: Result | Built) -> None:
        with self._lock:
            if isinstance(result, Built):
                self.built[number] = result
                self._keep({"built": asdict(result)})
                return
            self.cases += 1
            self.designs.add(number)
            self.tally.add(result.tags)
            self._keep(asdict(result))
            if result.problems:
                self.failures.append(result)
                with self.failed.open("a") as store:
                    store.write(json.dumps(asdict(result)) + "\n")
                show(result, self.schemes)
            elif time.monotonic() - self._shown > REPORT_SECONDS:
                self._shown = time.monotonic()
                left = max(0.0, self.until - time.time())
                print(f"{self.cases} cases, {len(self.failures)} failed, {left:.0f} s left", flush=True)

    def _keep(self, item: dict[str, object]) -> None:
        with self.kept.open("a") as store:
            store.write(json.dumps(item) + "\n")

    def summary(self) -> str:
        verdict = "all agreed" if not self.failures else f"{len(self.failures)} failed, see {self.failed}"
        if not self.cases:
            verdict = "nothing was compared"
        return f"seed {self.seed}: {self.cases} cases on {len(self.designs)} designs, {verdict}"

    def why_nothing(self) -> str:
        """One line for a soak without a case."""
        builds = f"{len(self.built)} designs were compiled" if self.built else "no design was compiled"
        return (
            f"no case was run: {builds} in {self.seconds:.0f} s; give it more time (--minutes), or fewer designs at a time "
            "(--jobs)"
        )


def show(result: Result, schemes: Sequence[str] = KINDS) -> None:
    """A failure, with the command that repeats it."""
    print(f"FAILED {result.case}: {result.text}")
    for problem in result.problems:
        print("    " + problem.replace("\n", "\n    "))
    print(
        "    again: " + shlex.join(["python", "-m", "verif.soak", "--case", result.case, *batch.words_of(schemes)]),
        flush=True,
    )


def replay(seed: int, number: int, schemes: Sequence[str] = KINDS) -> int:
    """Repeats one case and tells all about it."""
    print(design_of(seed, number // CASES_PER_DESIGN).model_dump_json(indent=2))
    result = batch.run_one(seed, number, schemes)
    if result.problems:
        show(result, schemes)
        return 1
    print(f"{result.case}: {result.text}\n{json.dumps(result.tags)}\nall agreed, {result.seconds} s")
    return 0


def named(text: str) -> tuple[int, int]:
    """``SEED:N`` as two numbers."""
    seed, colon, number = text.partition(":")
    if not colon or not seed.isdecimal() or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: must be SEED:NUMBER, two numbers of at least 0")
    return int(seed), int(number)


def above_zero(text: str) -> float:
    """A number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}: must be a number above 0")
    return value


def counted(text: str) -> int:
    """A whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number of at least 0")
    return int(text)


def jobs(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number of at least 1")
    return int(text)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m verif.soak", description="Random designs on random operands.")
    parser.add_argument("--minutes", type=above_zero, default=10.0)
    parser.add_argument("--seed", type=counted, help="default: a new one, which is printed")
    parser.add_argument("--jobs", type=jobs, default=len(os.sched_getaffinity(0)), help="designs at a time")
    parser.add_argument("--case", type=named, metavar="SEED:N", help="repeat one case")
    parser.add_argument(
        "--scheme", action="append", choices=KINDS, help="draw this kind of scheme alone; more than once: these"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder of cases, failures and what was compiled")
    parser.add_argument("--batch", type=named, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    schemes = tuple(options.scheme or KINDS)
    if options.batch:
        seed, design = options.batch
        batch.run_batch(seed, design, options.seconds, options.until, schemes)
        return 0
    # Batches and compilers inherit it.
    os.environ["XDG_CACHE_HOME"] = str((options.out / "cache").resolve())
    try:
        verilator(), compiler()
    except ToolMissing as missing:
        print(missing, file=sys.stderr)
        return ToolMissing.exit_code
    if options.case:
        seed, number = options.case
        return replay(seed, number, schemes)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    soak = Soak(seed, 60 * options.minutes, options.out, schemes)
    print(
        f"seed {seed}: {options.minutes:g} minutes, {options.jobs} designs at a time; builds are kept in {cache_folder()}",
        flush=True,
    )
    try:
        soak.run(options.jobs)
    except KeyboardInterrupt:
        print(f"interrupted; {soak.summary()}")
        return 130
    if not soak.cases:
        print(f"{soak.summary()}\n{soak.why_nothing()}", file=sys.stderr)
        return NOTHING_RUN
    print(f"{soak.tally.table()}\n{soak.summary()}; every case is in {soak.kept}")
    return 1 if soak.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
