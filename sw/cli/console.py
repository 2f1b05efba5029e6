"""The output of a command: progress on a terminal, a line for what takes long in a pipe, one JSON document on request."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

# Nothing that loads SciPy or Numba, which some commands do without.
from sw import notes
from sw.names import as_text

if TYPE_CHECKING:
    from sw.engine_result import Progress

__all__ = ["Console", "duration", "json_text", "patience", "plain_text"]

PATIENCE = 5.0


class Console:
    """Progress goes to standard error, where that is no terminal as a line for each long phase; results go to standard output.

    Parameters
    ----------
    as_json: standard output carries the document of ``document`` and nothing else.
    quiet: neither progress nor text.
    began: when the command began, by ``time.perf_counter``; now without it.

    Members
    -------
    compiled: seconds that went into compiling the program's own code so far (:func:`.timing.compile_seconds`), where a command
        sets it. They are then counted apart from the phases that they fall into; else they are part of the phases.
    words: of the command line, for reports; None for those of this process.

    ``seconds`` collects the wall time of each phase; together with ``compile`` they add up to all of it.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False, began: float | None = None) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.began = time.perf_counter() if began is None else began
        self.compiled: Callable[[], float] = lambda: 0.0
        self.words: list[str] | None = None
        self.seconds: dict[str, float] = {}
        notes.listen(lambda about, text: self.warn(text))

    @property
    def elapsed(self) -> float:
        """Seconds since the command began."""
        return time.perf_counter() - self.began

    @property
    def lively(self) -> bool:
        """Whether progress is shown: standard error is a terminal, and no line of details would cut through it."""
        return not self.quiet and sys.stderr.isatty() and not notes.detailed()

    @contextmanager
    def phase(self, name: str, text: str) -> "Iterator[Progress]":
        """Times a phase; yields a function that reports its progress."""
        began, before = time.perf_counter(), self.compiled()
        try:
            if self.lively:
                with self._bar(text) as report:
                    yield report
            elif notes.detailed():
                notes.detail(text)
                yield self._steps()
            else:
                with self._lines(text) as report:
                    yield report
        finally:
            compiling = self.compiled() - before
            spent = time.perf_counter() - began
            self.spend(name, spent - compiling)
            if compiling:
                self.spend("compile", compiling)
            part = f", {compiling:.2f} s of them to compile or load Fiberloom's own loops" if compiling else ""
            notes.detail(f"{text} took {spent:.2f} s{part}")

    def spend(self, name: str, seconds: float) -> None:
        """Counts seconds to a phase."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def _steps(self) -> "Progress":
        """Tells each step of a phase as it begins, and of the way through one each tenth."""
        last = ["", -1]

        def report(share: float | None, note: str) -> None:
            now = [note, -1] if share is None else ["", int(10 * share)]
            if now != last:
                last[:] = now
                notes.detail("  " + (note if share is None else f"{share:4.0%} {note}"))

        return report

    @contextmanager
    def _lines(self, text: str) -> "Iterator[Progress]":
        """Says what a phase does once it takes longer than people wait without a word, and at its end how long it took."""
        began = time.perf_counter()
        last: list[tuple[float | None, str]] = [(None, "")]
        said = threading.Event()

        def say() -> None:
            said.set()
            share, note = last[0]
            left = (time.perf_counter() - began) * (1 - share) / share if share else None
            details = [note] if note else []
            details += [f"about {duration(round(left))} left"] if left is not None else []
            self.warn(f"{text} ({', '.join(details)})" if details else text)

        timer = threading.Timer(patience(), say)
        timer.daemon = True
        if not self.quiet:
            timer.start()
        try:
            yield lambda share, note: last.__setitem__(0, (share, note))
        finally:
            timer.cancel()
            if said.is_set():
                self.warn(f"{text} took {duration(round(time.perf_counter() - began))}")

    @contextmanager
    def _bar(self, text: str) -> "Iterator[Progress]":
        from rich.console import Console as Terminal
        from rich.progress import (
            BarColumn,
            Progress,
            ProgressColumn,
            SpinnerColumn,
            Task,
            TextColumn,
            TimeElapsedColumn,
        )
        from rich.text import Text

        class Left(ProgressColumn):
            """What the share that is done took, for the rest; nothing where the share is unknown."""

            def render(self, task: Task) -> Text:
                if not task.total or not task.completed or task.elapsed is None:
                    return Text("")
                left = task.elapsed * (task.total - task.completed) / task.completed
                return Text(f"{duration(round(left))} left", style="dim")

        terminal = Terminal(stderr=True)
        columns = (
            SpinnerColumn("dots" if terminal.encoding.startswith("utf") else "line"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[note]}", style="dim"),
            TimeElapsedColumn(),
            Left(),
        )
        with Progress(*columns, console=terminal, transient=True) as progress:
            task = progress.add_task(text, total=None, note="")

            def report(share: float | None, note: str) -> None:
                if share is None:
                    progress.update(task, note=note)
                else:
                    progress.update(task, total=1.0, completed=share, note=note)

            yield report

    def document(self, content: object) -> None:
        """Prints the JSON document, if one was asked for."""
        if self.as_json:
            print(json_text(content), flush=True)

    def print(self, text: str = "") -> None:
        """A line of the summary, unless the output is JSON or quiet."""
        if not (self.as_json or self.quiet):
            print(text, flush=True)

    def warn(self, text: str) -> None:
        """A line on standard error that does not stop anything."""
        if not self.quiet:
            print(f"fiberloom: note: {text}", file=sys.stderr)


def patience() -> float:
    """Seconds after which a phase is told of where no progress is shown: ``$FIBERLOOM_PATIENCE``, else 5."""
    try:
        return min(max(0.0, float(os.environ["FIBERLOOM_PATIENCE"])), threading.TIMEOUT_MAX)
    except (KeyError, ValueError):
        return PATIENCE


def duration(seconds: float) -> str:
    """As a person would say it: 0.113 ms, 40 s, 12 min, 3.5 h."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def plain_text(content: Any) -> Any:
    """A document whose names are text: JSON has no other."""
    if isinstance(content, str):
        return as_text(content)
    if isinstance(content, dict):
        return {plain_text(name): plain_text(value) for name, value in content.items()}
    return [plain_text(value) for value in content] if isinstance(content, list | tuple) else content


def json_text(content: object) -> str:
    """The document as it is printed."""
    return json.dumps(plain_text(content), indent=2, default=_plain)


def _plain(value: Any) -> Any:
    """NumPy scalars as Python numbers."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a JSON document")
