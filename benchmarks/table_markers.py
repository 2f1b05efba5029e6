"""Tables of the documentation between markers: a benchmark writes its own, and a test reads it back.

A page has ``<!-- NAME: command -->`` and ``<!-- end of NAME -->``. What stands between is written by that command and by nothing
else; :func:`stamp` says with which version and when. A benchmark of one table has its command line from
:func:`benchmark_parser` and prints through :class:`PrintedTable`.
"""

import argparse
import io
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from datetime import datetime, timezone
from pathlib import Path

from gen import __version__

__all__ = ["PrintedTable", "benchmark_parser", "cells", "replaced", "stamp", "table", "write_table"]

ROOT = Path(__file__).resolve().parent.parent
# In place of what is measured: the files of a table have no address that a reader could use.
OPERANDS = "OPERAND..."


def _parts(text: str, name: str) -> tuple[str, str, str]:
    """What stands before the end of the first marker, between both, and from the second on."""
    opening, end = f"<!-- {name}: ", f"<!-- end of {name} -->"
    before, found, rest = text.partition(opening)
    command, closed, rest = rest.partition(" -->\n")
    between, ended, after = rest.partition(end)
    if not found or not closed or not ended or "\n" in command:
        raise ValueError(f"there is no {opening}command --> with {end} after it")
    return f"{before}{opening}{command}{closed}", between, f"{end}{after}"


def table(text: str, name: str) -> list[str]:
    """The lines between the markers of ``name``, without the empty ones around them. Raises ValueError without markers."""
    return _parts(text, name)[1].strip("\n").split("\n")


def cells(text: str, name: str) -> dict[str, list[str]]:
    """The rows between the markers by their first cell: the cells after it. Of rows that begin alike the first one counts."""
    found: dict[str, list[str]] = {}
    for line in table(text, name):
        if line.startswith("|"):
            first, *rest = (cell.strip() for cell in line.strip("|").split("|"))
            found.setdefault(first, rest)
    return found


def replaced(text: str, name: str, lines: Sequence[str]) -> str:
    """The text with ``lines`` between the markers of ``name``. Raises ValueError where it has no such markers."""
    before, _, after = _parts(text, name)
    return "\n".join((f"{before}", *lines, "", after))


def write_table(page: Path, name: str, lines: Sequence[str]) -> None:
    """Puts lines between the markers of a page. Raises ValueError that names the page where it has none."""
    try:
        text = replaced(page.read_text(encoding="utf-8"), name, lines)
    except ValueError as problem:
        raise ValueError(f"{page}: {problem}") from None
    page.write_text(text, encoding="utf-8")


def stamp(command: str) -> str:
    """The line below a table: what wrote it, with which version, on which day."""
    return f"*`{command}`, version {__version__}, {datetime.now(timezone.utc):%-d %B %Y}.*"


def benchmark_parser(file: str, description: str | None) -> argparse.ArgumentParser:
    """The command line of the benchmark in ``file``, with ``--docs``."""
    path = Path(file)
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{path.parent.name if path.stem == '__main__' else path.stem}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--docs", type=Path, metavar="PAGE", help="where the table is put between its markers")
    parser.add_argument(
        "--group", metavar="WORD", help="tells the table from others of the same command with other operands"
    )
    return parser


def _words(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Iterator[str]:
    """The part of a command, OPERANDS for operands, and options that differ from their defaults, in the parser's order. Files are
    left out: no row depends on them."""
    for action in parser._actions:
        value = getattr(options, action.dest, action.default)
        if action.choices is not None and not action.option_strings:
            yield value
            if isinstance(action.choices, dict):
                yield from _words(action.choices[value], options)
        elif action.type is Path or value in (action.default, None, []):
            continue
        elif not action.option_strings:
            yield OPERANDS
        elif action.metavar == "OPERAND":
            yield f"{action.option_strings[0]} {OPERANDS}"
        elif action.nargs == 0:
            yield action.option_strings[0]
        elif isinstance(action, argparse._AppendAction):
            yield from (word for one in value for word in (action.option_strings[0], str(one)))
        else:
            yield from (action.option_strings[0], *map(str, value if action.nargs else [value]))


class PrintedTable:
    """Lines that are printed as they are found and, where ``--docs`` names a page, stand there between markers in the end.

    Their name is the module and the options that differ from what they are without a word: ``packed --value bf16``. A page
    without these markers ends the command at once, not after its runs. part: one of those that a command of several makes.
    """

    def __init__(self, parser: argparse.ArgumentParser, options: argparse.Namespace, part: str | None = None) -> None:
        words = list(_words(parser, options))
        if part is not None:
            words = [part, *(word for word in words if word != OPERANDS)]
        self.name = " ".join([parser.prog.rpartition(".")[2], *(word for word in words if not word.endswith(OPERANDS))])
        self.page: Path | None = options.docs
        self.lines: list[str] = []
        if self.page is None:
            return
        path = self.page.resolve()
        page = path.relative_to(ROOT) if path.is_relative_to(ROOT) else self.page
        quoted = [word if word.endswith(OPERANDS) else shlex.quote(word) for word in words]
        self.command = " ".join([parser.prog, "--docs", page.as_posix(), *quoted])
        try:
            table(path.read_text(encoding="utf-8"), self.name)
        except (OSError, ValueError) as problem:
            parser.error(f"--docs {self.page}: {problem}")

    def line(self, text: str = "") -> None:
        print(text, flush=True)
        self.lines += text.split("\n")

    def row(self, cells: Iterable[str]) -> None:
        self.line(f"| {' | '.join(cells)} |")

    def head(self, columns: Sequence[str], texts: int = 1) -> None:
        """Names of columns; numbers in all but the first ``texts`` stand to the right."""
        self.row(columns)
        self.row(["---"] * texts + ["---:"] * (len(columns) - texts))

    @contextmanager
    def printing(self) -> Iterator[None]:
        """What is printed meanwhile are lines of the table."""
        with redirect_stdout(io.StringIO()) as printed:
            yield
        self.line(printed.getvalue().strip("\n"))

    def write(self) -> None:
        """Puts the lines and their stamp into the page, if there is one."""
        if self.page is not None:
            write_table(self.page, self.name, [*self.lines, "", stamp(self.command)])
