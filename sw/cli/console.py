"""What a command says while it works: progress on a terminal, silence in a pipe, one JSON document on request."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sw.runtime.result import Progress

__all__ = ["Console"]


class Console:
    """Progress goes to standard error and only to a terminal; results go to standard output.

    Parameters
    ----------
    as_json: standard output carries the document of ``document`` and nothing else.
    quiet: neither progress nor text.

    ``seconds`` collects the wall time of each phase.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.seconds: dict[str, float] = {}

    @property
    def lively(self) -> bool:
        """Whether somebody is watching."""
        return not self.quiet and sys.stderr.isatty()

    @contextmanager
    def phase(self, name: str, text: str) -> Iterator[Progress]:
        """Times a phase; yields a function by which it tells how far it is."""
        began = time.perf_counter()
        try:
            if self.lively:
                with self._bar(text) as report:
                    yield report
            else:
                yield lambda share, note: None
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began

    @contextmanager
    def _bar(self, text: str) -> Iterator[Progress]:
        from rich.console import Console as Terminal
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[note]}", style="dim"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=Terminal(stderr=True), transient=True) as progress:
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
            _emit(json.dumps(content, indent=2, default=_plain))

    def print(self, text: str = "") -> None:
        """A line of the summary, unless there is JSON or silence."""
        if not (self.as_json or self.quiet):
            _emit(text)

    def warn(self, text: str) -> None:
        """A line on standard error that does not stop anything."""
        if not self.quiet:
            print(f"fiberloom: note: {text}", file=sys.stderr)


def _emit(text: str) -> None:
    """Prints, or goes on in silence when the reader has gone: the exit code still tells how it ended."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _plain(value: Any) -> Any:
    """NumPy scalars as Python numbers."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a JSON document")
