"""``python -m verif.soak``: random designs on random operands, for as long as asked.

Exit codes: 0 everything agreed; 1 something did not; 3 a tool is missing; 130 interrupted.
"""

import argparse
import json
import os
import secrets
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import count
from pathlib import Path

from verif.fastsim.build import ToolMissing, compiler, verilator

from . import batch
from .batch import Result
from .cases import CASES_PER_DESIGN, design_of

OUT = Path("build/soak")
REPORT_SECONDS = 15.0


class Soak:
    """Batches side by side until the time is over. ``results``: file that failures are appended to."""

    def __init__(self, seed: int, seconds: float, out: Path) -> None:
        self.seed = seed
        self.until = time.time() + seconds
        self.out = out
        self.results = out / "failures.jsonl"
        self.cases = 0
        self.designs = 0
        self.failures: list[Result] = []
        self.stop = threading.Event()
        self._numbers = count()
        self._lock = threading.Lock()
        self._shown = time.monotonic()

    def run(self, workers: int) -> None:
        """Raises KeyboardInterrupt after everything that was started has ended."""
        self.out.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(self._work) for _ in range(workers)]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                self.stop.set()
                batch.end_all()
                raise

    def _work(self) -> None:
        while not self.stop.is_set() and time.time() < self.until:
            with self._lock:
                number = next(self._numbers)
            results = batch.stream_batch(self.seed, number, self.until, (self.out / "cache").resolve())
            tried = 0
            try:
                for result in results:
                    if self.stop.is_set():
                        break
                    self._note(result)
                    tried += 1
            finally:
                results.close()
            with self._lock:
                self.designs += tried > 0

    def _note(self, result: Result) -> None:
        with self._lock:
            self.cases += 1
            if result.problems:
                self.failures.append(result)
                with self.results.open("a") as store:
                    store.write(json.dumps(asdict(result)) + "\n")
                show(result)
            elif time.monotonic() - self._shown > REPORT_SECONDS:
                self._shown = time.monotonic()
                left = max(0.0, self.until - time.time())
                print(f"{self.cases} cases, {len(self.failures)} failed, {left:.0f} s left", flush=True)

    def summary(self) -> str:
        verdict = "all agreed" if not self.failures else f"{len(self.failures)} failed, see {self.results}"
        return f"seed {self.seed}: {self.cases} cases on {self.designs} designs, {verdict}"


def show(result: Result) -> None:
    """A failure, with the command that repeats it."""
    print(f"FAILED {result.case}: {result.text}")
    for problem in result.problems:
        print("    " + problem.replace("\n", "\n    "))
    print(f"    again: python -m verif.soak --case {result.case}", flush=True)


def again(name: str) -> int:
    """Repeats one case and tells all about it."""
    seed, number = map(int, name.split(":"))
    print(design_of(seed, number // CASES_PER_DESIGN).model_dump_json(indent=2))
    result = batch.run_one(seed, number)
    if result.problems:
        show(result)
        return 1
    print(f"{result.case}: {result.text}\nall agreed, {result.seconds} s")
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m verif.soak", description="Random designs on random operands.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, help="default: a new one, which is printed")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="designs at a time")
    parser.add_argument("--case", metavar="SEED:N", help="repeat one case")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of failures and of what was compiled")
    parser.add_argument("--batch", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.batch:
        seed, design = map(int, options.batch.split(":"))
        batch.run_batch(seed, design, options.until)
        return 0
    if options.case:
        return again(options.case)
    try:
        verilator(), compiler()
    except ToolMissing as missing:
        print(missing, file=sys.stderr)
        return ToolMissing.exit_code
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    soak = Soak(seed, 60 * options.minutes, options.out)
    print(f"seed {seed}: {options.minutes:g} minutes, {options.jobs} designs at a time", flush=True)
    try:
        soak.run(options.jobs)
    except KeyboardInterrupt:
        print(f"interrupted; {soak.summary()}")
        return 130
    print(soak.summary())
    return 1 if soak.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
