"""Runs the examples, scripts with cells, and writes each as a Jupyter notebook with its outputs and as a page of the manual.

``python -m benchmarks.notebooks`` rewrites ``examples/*.ipynb`` and ``docs/notebooks/*.md``. Cells begin at ``# %%``; what a cell
prints is its output.
"""

import argparse
import contextlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Cell", "cells", "executed", "notebook", "page"]

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
PAGES = ROOT / "docs" / "notebooks"
MARK = "# %%"
PROSE = " [markdown]"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Prose in Markdown, or code and what it prints."""

    prose: bool
    text: str
    printed: str = ""


def cells(script: str) -> list[Cell]:
    """The cells of a script in the percent format."""
    found = []
    for part in ("\n" + script).split(f"\n{MARK}")[1:]:
        head, _, body = part.partition("\n")
        if head == PROSE:
            lines = [line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines()]
            found.append(Cell(prose=True, text="\n".join(lines)))
        else:
            found.append(Cell(prose=False, text=body.strip()))
    return found


def executed(given: Sequence[Cell], name: str) -> list[Cell]:
    """The cells with what they print, run one after the other as one program. What one raises is not caught."""
    program: dict[str, object] = {"__name__": "__main__"}
    found = []
    for number, cell in enumerate(given):
        printed = io.StringIO()
        if not cell.prose:
            with contextlib.redirect_stdout(printed):
                exec(compile(cell.text, f"{name}, cell {number}", "exec"), program)
        found.append(Cell(prose=cell.prose, text=cell.text, printed=printed.getvalue()))
    return found


def notebook(done: Sequence[Cell]) -> str:
    """The cells as a notebook of format 4.5."""
    found = []
    count = 0
    for number, cell in enumerate(done):
        entry: dict[str, object] = {
            "id": f"cell-{number}",
            "metadata": {},
            "source": cell.text.splitlines(keepends=True),
        }
        if cell.prose:
            entry["cell_type"] = "markdown"
        else:
            count += 1
            printed = {"name": "stdout", "output_type": "stream", "text": cell.printed.splitlines(keepends=True)}
            entry |= {"cell_type": "code", "execution_count": count, "outputs": [printed] if cell.printed else []}
        found.append(dict(sorted(entry.items())))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    document = {
        "cells": found,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def page(done: Sequence[Cell], name: str) -> str:
    """The cells as a page of the manual."""
    title, _, rest = done[0].text.partition("\n")
    parts = [f"{title}\n\nFor users: the notebook `examples/{name}.ipynb`, with what it prints.\n{rest}".rstrip()]
    for cell in done[1:]:
        parts.append(cell.text if cell.prose else f"```py\n{cell.text}\n```")
        if cell.printed:
            parts.append(f"```text\n{cell.printed.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the examples and write them as notebooks and pages.")
    parser.add_argument("names", nargs="*", help="examples; all of them without")
    parser.add_argument("--notebooks", type=Path, default=EXAMPLES, help="folder for the notebooks")
    parser.add_argument("--pages", type=Path, default=PAGES, help="folder for the pages")
    options = parser.parse_args()
    for name in options.names or sorted(path.stem for path in EXAMPLES.glob("*.py")):
        done = executed(cells((EXAMPLES / f"{name}.py").read_text(encoding="utf-8")), name)
        for folder, file, text in (
            (options.notebooks, f"{name}.ipynb", notebook(done)),
            (options.pages, f"{name}.md", page(done, name)),
        ):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
