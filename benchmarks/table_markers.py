"""Tables of the documentation between markers: a benchmark writes its own, and a test reads it back.

A page has ``<!-- NAME: command -->`` and ``<!-- end of NAME -->``. What stands between is written by that command and by nothing
else; :func:`stamp` says with which version and when. A benchmark of one table has its command line from
:func:`benchmark_parser` and prints through :class:`PrintedTable`.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

from gen import __version__

__all__ = ["PrintedTable", "benchmark_parser", "cells", "replaced", "stamp", "table", "write_table"]

ROOT = Path(__file__).resolve().parent.parent


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
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{Path(file).stem}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--docs", type=Path, metavar="PAGE", help="where the table is put between its markers")
    parser.add_argument(
        "--part", metavar="WORD", help="tells the table from others of the same command with other operands"
    )
    return parser


def _words(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Iterator[str]:
    """Options of a command that differ from their defaults, in the parser's order. Files are left out: no row depends on them."""
    for action in parser._actions:
        value = getattr(options, action.dest, action.default)
        if not action.option_strings or action.type is Path or value in (action.default, None):
            continue
        flag = action.option_strings[0]
        if action.nargs == 0:
            yield flag
        elif not isinstance(value, (list, tuple)):
            yield from (flag, str(value))
        elif isinstance(action, argparse._AppendAction):
            yield from (word for one in value for word in (flag, str(one)))
        else:
            yield from (flag, *map(str, value))


class PrintedTable:
    """Lines that are printed as they are found and, where ``--docs`` names a page, stand there between markers in the end.

    Their name is the module and the options that differ from what they are without a word: ``packed --value bf16``. A page
    without these markers ends the command at once, not after its runs.
    """

    def __init__(self, parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
        words = list(_words(parser, options))
        self.name = " ".join([parser.prog.rpartition(".")[2], *words])
        self.page: Path | None = options.docs
        self.lines: list[str] = []
        if self.page is None:
            return
        path = self.page.resolve()
        page = path.relative_to(ROOT) if path.is_relative_to(ROOT) else self.page
        given = [action for action in parser._actions if not action.option_strings]
        named = any(getattr(options, action.dest) != action.default for action in given)
        self.command = " ".join([parser.prog, *words, "--docs", page.as_posix(), *(["OPERAND..."] if named else [])])
        try:
            table(path.read_text(encoding="utf-8"), self.name)
        except (OSError, ValueError) as problem:
            parser.error(f"--docs {self.page}: {problem}")

    def line(self, text: str = "") -> None:
        print(text, flush=True)
        self.lines.append(text)

    def row(self, cells: Iterable[str]) -> None:
        self.line(f"| {' | '.join(cells)} |")

    def head(self, columns: Sequence[str], texts: int = 1) -> None:
        """Names of columns; numbers in all but the first ``texts`` stand to the right."""
        self.row(columns)
        self.row(["---"] * texts + ["---:"] * (len(columns) - texts))

    def write(self) -> None:
        """Puts the lines and their stamp into the page, if there is one."""
        if self.page is not None:
            write_table(self.page, self.name, [*self.lines, "", stamp(self.command)])
