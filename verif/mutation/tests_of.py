"""Which tests belong to a source file, and how long they take on the unbroken hardware."""

import ast
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..tables import read_table
from .watch import LOG_VARIABLE, read

__all__ = ["BENCHES", "Baseline", "Finished", "distances", "in_turn", "run_pytest"]

BENCHES = Path(__file__).with_name("benches.toml")
TESTS = "tests/rtl"
# With so many seconds of tests from the nearest files, those further away are not asked.
ENOUGH_SECONDS = 3.0
ARGUMENTS = ("-q", "--tb=line", "-p", "no:cacheprovider", "-p", "verif.mutation.watch", "-m")
# Tests that plant a fault of their own fail beside a mutant because its text is another.
MARKED = "not plants and not slow"
BROAD_MARKED = "not plants"


@dataclass(frozen=True)
class Finished:
    """How a run of pytest ended: its exit code (None: out of time), and the ends of its tests."""

    code: int | None
    tests: list[dict[str, Any]]

    @property
    def failure(self) -> dict[str, Any] | None:
        """The first test that failed."""
        return next((test for test in self.tests if test["outcome"] == "failed"), None)


def run_pytest(root: Path, scratch: Path, tests: Sequence[str], *, limit: float, slow: bool = False) -> Finished:
    """Runs these tests of the tree at ``root`` up to the first that fails, for at most ``limit`` seconds.

    ``scratch``: folder for the log and for what simulators build. ``slow``: also tests that are marked so.
    """
    log = scratch / "tests.jsonl"
    log.unlink(missing_ok=True)
    environment = os.environ | {
        LOG_VARIABLE: str(log),
        "XDG_CACHE_HOME": str(scratch / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(root),
        "PYTEST_ADDOPTS": "",  # of the caller's own run
    }
    arguments = (*ARGUMENTS, BROAD_MARKED if slow else MARKED)
    code = run([sys.executable, "-m", "pytest", "-x", *arguments, *tests], root, environment, limit)
    return Finished(code, read(log))


def run(command: Sequence[str], folder: Path, environment: dict[str, str], limit: float) -> int | None:
    """Exit code of a command whose output nobody reads; None if it was ended, with all that it started, at the limit."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def distances(root: Path, test: str) -> dict[str, int]:
    """How many imports lie between a test and each source file in ``rtl``; helpers beside the tests cost nothing."""
    found: dict[str, int] = {}
    queue = deque([(test, 0)])
    while queue:
        file, far = queue.popleft()
        if found.get(file, far + 1) <= far:
            continue
        found[file] = far
        for other in _imports(root, file):
            if other.startswith("rtl/"):
                queue.append((other, far + 1))
            elif other.startswith("tests/"):
                queue.appendleft((other, far))
    return {file: far for file, far in found.items() if file.startswith("rtl/")}


def _imports(root: Path, file: str) -> Iterable[str]:
    package = Path(file).parent.parts
    for node in ast.walk(ast.parse((root / file).read_text())):
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = (*base, *(node.module.split(".") if node.module else ()))
            names = [module, *((*module, alias.name) for alias in node.names)]
        else:
            continue
        for name in names:
            path = "/".join(name)
            for wanted in (f"{path}.py", f"{path}/__init__.py"):
                if (root / wanted).exists():
                    yield wanted


def in_turn(measured: Mapping[str, float]) -> list[str]:
    """Quickest first, but every test function once before the second set of parameters of any."""
    rounds: Counter[str] = Counter()
    order = []
    for test in sorted(measured, key=measured.__getitem__):
        function = test.split("[")[0]
        order.append((rounds[function], measured[test], test))
        rounds[function] += 1
    return [test for _, _, test in sorted(order)]


class Baseline:
    """Seconds of every test of the unbroken hardware, measured once for each text of the test's file.

    Parameters
    ----------
    root: of the tree. store: file that keeps the measurements.
    limit: seconds for one file of tests; those it does not reach are not used.
    """

    def __init__(self, root: Path, store: Path, *, limit: float = 240) -> None:
        self.root = root
        self.store = store
        self.limit = limit
        self.known: dict[str, dict[str, Any]] = json.loads(store.read_text()) if store.exists() else {}
        self.files = sorted(str(path.relative_to(root)) for path in (root / TESTS).rglob("test_*.py"))
        self.reach = {file: distances(root, file) for file in self.files}
        tables = read_table(BENCHES)
        self.benches: dict[str, list[str]] = tables["benches"]
        self.broad: dict[str, list[str]] = tables["broad"]

    def seconds(self, file: str, scratch: Path) -> dict[str, float]:
        """Tests of a file, or of one bench (``file::test``), that pass, with their times."""
        key = hashlib.sha256((self.root / file.split("::")[0]).read_bytes()).hexdigest()[:16]
        if self.known.get(file, {}).get("key") != key:
            finished = run_pytest(self.root, scratch, [file], limit=self.limit)
            passed = {test["test"]: test["seconds"] for test in finished.tests if test["outcome"] == "passed"}
            self.known[file] = {"key": key, "tests": passed, "failed": finished.failure}
            self.store.parent.mkdir(parents=True, exist_ok=True)
            self.store.write_text(json.dumps(self.known, indent=1))
        tests: dict[str, float] = self.known[file]["tests"]
        return tests

    def tests(self, file: str, scratch: Path, budget: float, enough: float = ENOUGH_SECONDS) -> dict[str, float]:
        """The tests of a source file in turn (:func:`in_turn`), as many as take ``budget`` seconds on the unbroken hardware.

        Those of the nearest files of tests come first, of all that are equally near in turn, and no others when they take
        ``enough`` seconds; a bench of its own, where the table has one, last.
        """
        stem = Path(file).stem
        near: dict[tuple[int, bool], list[str]] = {}
        for test, far in self.reach.items():
            if file in far:
                near.setdefault((far[file], stem not in test), []).append(test)
        chosen: dict[str, float] = {}
        for place in sorted(near):
            if sum(chosen.values()) > min(budget / 2, enough):
                break
            measured: dict[str, float] = {}
            for name in near[place]:
                measured |= self.seconds(name, scratch)
            for test in in_turn(measured):
                if sum(chosen.values()) + measured[test] <= budget or not chosen:
                    chosen[test] = measured[test]
        for bench in self.benches.get(file, []):
            chosen |= self.seconds(bench, scratch)
        return chosen

    def wider(self, file: str) -> list[str]:
        """Tests of the whole machine, for what those of the block let pass: those of the file, of its folder, of all."""
        found = self.broad.get(file) or self.broad.get(f"{Path(file).parent.as_posix()}/")
        return found or self.broad["*"]

    def digest(self, tests: Iterable[str]) -> str:
        """Of these tests and the texts of their files and helpers: another digest, another chance to be caught."""
        files = sorted({test.split("::")[0] for test in tests})
        helpers = sorted(
            str(path.relative_to(self.root))
            for folder in {str(Path(file).parent) for file in files}
            for path in (self.root / folder).glob("*.py")
            if not path.name.startswith("test_")
        )
        parts = [*sorted(tests), *((self.root / file).read_text() for file in [*files, *helpers])]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
