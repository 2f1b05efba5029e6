"""Tables of the documentation between markers: a benchmark writes its own, and a test reads it back.

A page has ``<!-- NAME: command -->`` and ``<!-- end of NAME -->``. What stands between is written by that command and by nothing
else; :func:`stamp` says with which version and when.
"""

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from gen import __version__

__all__ = ["cells", "replaced", "stamp", "table", "write_table"]


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
