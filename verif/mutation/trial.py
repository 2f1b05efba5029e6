"""One mutant: a copy of the tree with one change, and the results of the tests."""

import compileall
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from .emitted import WHOLE
from .operators import Mutation
from .tests_of import Finished, run, run_pytest
from .watch import under_way

__all__ = ["VERDICTS", "Outcome", "snapshot", "try_mutation"]

ROOMS = ("rtl", "gen", "sw", "verif", "tests", "configs")
# Mutants with one of the last two do not count: there is no such hardware, or it is the same hardware.
VERDICTS = ("caught", "timeout", "survived", "equivalent", "invalid")
EMIT_SECONDS = 300.0
# A hang of the hardware ends by the bench's own limit on cycles; this is for benches that wait for ever.
PATIENCE = 6.0
SHORTEST_LIMIT = 90.0
BROAD_LIMIT = 900.0
RISKY = ("to_comb", "to_sync")
ASSERTION = ("AssertionError", "assert", "Failed")


@dataclass(frozen=True)
class Outcome:
    """What came of a mutant.

    Parameters
    ----------
    name, file, line, operator, before, after: as in :class:`Mutation`.
    verdict: one of ``VERDICTS``: a test failed; none failed within its time; all passed; all passed and the hardware is
        the same; the hardware cannot be built.
    test, message: which test failed, and how it said so; the test that did not end.
    seconds: what it took.
    source, tests: digests of the source file and of the tests tried, for a later run to know what is still valid.
    """

    name: str
    file: str
    line: int
    operator: str
    before: str
    after: str
    verdict: str = ""
    test: str = ""
    message: str = ""
    seconds: float = 0.0
    source: str = ""
    tests: str = ""

    @property
    def counts(self) -> bool:
        return self.verdict in VERDICTS[:3]


def snapshot(root: Path, target: Path) -> None:
    """The tree as the tests need it. Mutants are made from this, so that edits during a campaign do not reach them."""
    ignored = shutil.ignore_patterns(".pytest_cache", "*.nbc", "*.nbi")
    for folder in ROOMS:
        shutil.copytree(root / folder, target / folder, ignore=ignored, symlinks=True)
    shutil.copy2(root / "pyproject.toml", target)
    # Copies keep the times of files, so that only what was changed is compiled again.
    compileall.compile_dir(target, quiet=2)


@contextmanager
def mutated(tree: Path, mutation: Mutation) -> Iterator[tuple[Path, Path]]:
    """A copy of the tree with the mutation, and a scratch folder; both vanish."""
    with tempfile.TemporaryDirectory(prefix="fiberloom-mutant-") as folder:
        copy, scratch = Path(folder, "tree"), Path(folder, "scratch")
        scratch.mkdir()
        shutil.copytree(tree, copy, symlinks=True)
        path = copy / mutation.file
        path.write_text(mutation.apply(path.read_text()))
        yield copy, scratch


def try_mutation(
    tree: Path,
    mutation: Mutation,
    tests: Mapping[str, float],
    further: Mapping[str, float],
    wider: list[str],
    original: Callable[[str], str],
) -> Outcome:
    """Break a copy of ``tree`` and run the tests.

    Parameters
    ----------
    tests: of the block with their seconds on the unbroken hardware, in the order in which they are run.
    further: more of them for what those let pass.
    wider: slow tests for what all of these let pass.
    original: digest of the unbroken hardware of a file, or of all (:mod:`.emitted`).
    """
    begun = time.monotonic()
    fields = {name: value for name, value in asdict(mutation).items() if name not in ("edits", "column")}
    outcome = Outcome(name=mutation.name, **fields)
    with mutated(tree, mutation) as (copy, scratch):
        verdict = _hardware(copy, scratch, mutation.file, original) if mutation.operator in RISKY else ""
        if verdict:
            outcome = replace(outcome, verdict=verdict)
        else:
            outcome = _run(outcome, copy, scratch, tests, further, wider, original)
    return replace(outcome, seconds=round(time.monotonic() - begun, 1))


def _run(
    outcome: Outcome,
    copy: Path,
    scratch: Path,
    tests: Mapping[str, float],
    further: Mapping[str, float],
    wider: list[str],
    original: Callable[[str], str],
) -> Outcome:
    limit = max(SHORTEST_LIMIT, PATIENCE * sum(tests.values()))
    finished = run_pytest(copy, scratch, list(tests), limit=limit) if tests else Finished(0, [])
    if finished.failure is not None and "::" not in finished.failure["test"]:
        return replace(outcome, verdict="invalid")  # not even its import succeeds
    if finished.failure is not None and finished.failure["message"].startswith(ASSERTION):
        return _caught(outcome, finished)
    if outcome.operator not in RISKY:
        verdict = _hardware(copy, scratch, outcome.file, original)
        if verdict:
            return replace(outcome, verdict=verdict)
    hung = under_way(scratch / "tests.jsonl") if finished.code is None else ""
    if finished.failure is not None:
        return _caught(outcome, finished)
    if finished.code is None:
        return replace(outcome, verdict="timeout", test=hung)
    for more, slow in ((list(further), False), (wider, True)):
        if not more:
            continue
        limit = BROAD_LIMIT if slow else max(SHORTEST_LIMIT, PATIENCE * sum(further.values()))
        finished = run_pytest(copy, scratch, more, limit=limit, slow=slow)
        if finished.failure is not None:
            return _caught(outcome, finished)
        if finished.code is None:
            return replace(outcome, verdict="timeout", test=under_way(scratch / "tests.jsonl"))
    if finished.code != 0:
        raise RuntimeError(f"pytest ended with exit code {finished.code} on {outcome.name}")
    return replace(outcome, verdict="survived")


def _caught(outcome: Outcome, finished: Finished) -> Outcome:
    failure = finished.failure
    assert failure is not None
    return replace(outcome, verdict="caught", test=failure["test"], message=failure["message"].splitlines()[0][:160])


def _hardware(copy: Path, scratch: Path, file: str, original: Callable[[str], str]) -> str:
    """``invalid`` or ``equivalent``; empty for other hardware that can be built."""
    for part in (file, WHOLE):
        emitted = _emitted(copy, scratch, part)
        if not emitted:
            return "invalid"
        if emitted != original(part):
            return ""
    return "equivalent"


def _emitted(copy: Path, scratch: Path, file: str) -> str:
    """Digest of the hardware; empty if it cannot be built."""
    target = scratch / "digest"
    target.unlink(missing_ok=True)
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(copy)}
    run([sys.executable, "-m", "verif.mutation.emitted", file, str(target)], copy, environment, EMIT_SECONDS)
    return target.read_text() if target.exists() else ""


def original_digest(tree: Path, file: str) -> str:
    """Digest of the unbroken hardware. Raises RuntimeError when even that cannot be built."""
    with tempfile.TemporaryDirectory(prefix="fiberloom-mutant-") as scratch:
        found = _emitted(tree, Path(scratch), file)
    if not found:
        raise RuntimeError(
            f"the unbroken hardware of {file} cannot be built, or no build of verif/mutation/emitted.py has it"
        )
    return found
