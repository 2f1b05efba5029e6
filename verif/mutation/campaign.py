"""Many mutants, several at a time; what was found is kept after each, so that an interrupted campaign goes on."""

import hashlib
import json
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from .choose import candidates
from .operators import Mutation
from .tests_of import Baseline
from .trial import Outcome, original_digest, try_mutation

__all__ = ["Campaign", "load"]


class Campaign:
    """Mutants of a tree, file after file in turns, until enough of them count.

    Parameters
    ----------
    tree: snapshot of the source. folder: where results and baseline are kept.
    files: the source files that are broken. seed: of the choice.
    budget: seconds of tests for one mutant, measured on the unbroken hardware.
    further: seconds of tests for one that those let pass, these included; 0 for none.
    broad: also run slow tests of the whole machine on what the block's own tests let pass.
    report: told of each outcome, and whether it was remembered.
    """

    def __init__(
        self,
        tree: Path,
        folder: Path,
        files: Iterable[str],
        *,
        seed: int,
        budget: float,
        further: float = 0.0,
        broad: bool,
        report: Callable[[Outcome, bool], None],
    ) -> None:
        self.tree = tree
        self.folder = folder
        self.texts = {file: (tree / file).read_text() for file in files}
        self.seed = seed
        self.budget = budget
        self.further = further
        self.broad = broad
        self.report = report
        self.baseline = Baseline(tree, folder / "baseline.json")
        self.known = load(folder / "results.jsonl")
        self.stop = threading.Event()
        self._lock = threading.Lock()
        self._tests: dict[str, tuple[dict[str, float], dict[str, float]]] = {}
        self._originals: dict[str, str] = {}

    def run(self, count: int, workers: int) -> list[Outcome]:
        """Outcomes of the first ``count`` mutants that count, and of those that were passed over on the way."""
        waiting = {file: iter(found) for file, found in candidates(self.texts, self.seed).items()}
        outcomes: list[Outcome] = []
        with ThreadPoolExecutor(workers) as pool:
            try:
                while waiting and (missing := count - sum(outcome.counts for outcome in outcomes)) > 0:
                    turn = list(waiting)[:missing]
                    for file, found in zip(turn, pool.map(self._next, (waiting[file] for file in turn)), strict=True):
                        outcomes += found
                        if not found or not found[-1].counts:
                            del waiting[file]
            except KeyboardInterrupt:
                self.stop.set()
                raise
        return outcomes

    def one(self, name: str) -> Outcome:
        """The mutant of this name, whatever is known of it. Raises KeyError."""
        for found in candidates(self.texts, self.seed).values():
            for mutation in found:
                if mutation.name == name:
                    return self._try(mutation)
        raise KeyError(name)

    def still_valid(self) -> list[Outcome]:
        """What is known of mutants of the present source, whichever seed or call they came from."""
        return [
            outcome
            for outcome in self.known.values()
            if outcome.file in self.texts and outcome.source == self._source(outcome.file)
        ]

    def _next(self, mutations: Iterable[Mutation]) -> list[Outcome]:
        """Goes on until one counts."""
        found: list[Outcome] = []
        for mutation in mutations:
            if self.stop.is_set():
                break
            remembered = self._remembered(mutation)
            outcome = remembered or self._try(mutation)
            self.report(outcome, remembered is not None)
            found.append(outcome)
            if outcome.counts:
                break
        return found

    def _remembered(self, mutation: Mutation) -> Outcome | None:
        """What an earlier campaign found, if the file is the same and, for one not caught, so are the tests."""
        outcome = self.known.get(mutation.name)
        if outcome is None or outcome.source != self._source(mutation.file):
            return None
        if outcome.verdict in ("survived", "timeout") and outcome.tests != self._digest(mutation.file):
            return None
        return outcome

    def _try(self, mutation: Mutation) -> Outcome:
        file = mutation.file
        tests, further = self._tests_of(file)
        wider = self._wider(file, tests)
        outcome = try_mutation(self.tree, mutation, tests, further, wider, self._original)
        outcome = Outcome(**{**asdict(outcome), "source": self._source(file), "tests": self._digest(file)})
        with self._lock:
            self.known[outcome.name] = outcome
            with (self.folder / "results.jsonl").open("a") as store:
                store.write(json.dumps(asdict(outcome)) + "\n")
        return outcome

    def _original(self, part: str) -> str:
        with self._lock:
            if part not in self._originals:
                self._originals[part] = original_digest(self.tree, part)
            return self._originals[part]

    def _tests_of(self, file: str) -> tuple[dict[str, float], dict[str, float]]:
        """The first tests of a file, and those for what these let pass."""
        with self._lock:
            if file not in self._tests:
                with tempfile.TemporaryDirectory(prefix="fiberloom-mutant-") as scratch:
                    first = self.baseline.tests(file, Path(scratch), self.budget)
                    every = self.baseline.tests(file, Path(scratch), self.further, self.further) if self.further else {}
                self._tests[file] = first, {test: every[test] for test in every if test not in first}
            return self._tests[file]

    def _source(self, file: str) -> str:
        return hashlib.sha256(self.texts[file].encode()).hexdigest()[:16]

    def _digest(self, file: str) -> str:
        first, further = self._tests_of(file)
        tests: Sequence[str] = [*first, *further]
        return self.baseline.digest([*tests, *self._wider(file, tests)])

    def _wider(self, file: str, tests: Collection[str]) -> list[str]:
        """Tests of the whole machine: on demand, for what has none of its own, and for what the table names."""
        return self.baseline.wider(file) if self.broad or not tests or file in self.baseline.broad else []


def load(store: Path) -> dict[str, Outcome]:
    """The latest outcome of each mutant in a results file."""
    lines = store.read_text().splitlines() if store.exists() else []
    outcomes = [Outcome(**json.loads(line)) for line in lines]
    return {outcome.name: outcome for outcome in outcomes}
