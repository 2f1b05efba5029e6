"""The page of all figures has what the manual's tables have, and says so where one is missing."""

from pathlib import Path

import pytest

from benchmarks.paper_figures import DOCS, FIGURES, Cell, cell, rows
from benchmarks.table_markers import table


@pytest.mark.parametrize("paper", FIGURES)
def test_the_page_has_the_numbers_of_the_tables(paper: str) -> None:
    page = (DOCS / "paper_figures.md").read_text(encoding="utf-8")
    assert [line for line in table(page, f"figures of {paper}") if line.startswith("|")] == rows(paper)


def test_every_row_says_something() -> None:
    assert {paper: len(figures) > 9 for paper, figures in FIGURES.items()} == dict.fromkeys(FIGURES, True)
    assert all(figure.sentence.endswith(".") for figures in FIGURES.values() for figure in figures)


PAGE = """# Page
## First
| name | a | b |
| --- | ---: | ---: |
| x | 1 | 2 |
### Below
| name | c |
| --- | ---: |
| x / y | 3 |
| x | y | 4 |
## Second
| name | a |
| --- | ---: |
| x | 5 |
<!-- kept: command -->
| name | a |
| --- | ---: |
| x | 6 |
<!-- end of kept -->
"""


def test_a_cell_is_found_by_its_place(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")
    found = [
        cell(Cell("page.md", *where), tmp_path)
        for where in (("First", "x", "b"), ("Second", "x", "a"), ("kept", "x", "a"))
    ]
    assert found == ["2", "5", "6"]
    assert cell(Cell("page.md", "", "x", "a"), tmp_path) == "1"
    assert cell(Cell("page.md", "First", "x", "c"), tmp_path) == "y"
    with pytest.raises(ValueError, match="^docs/page.md, Second: there is no row x with b$"):
        cell(Cell("page.md", "Second", "x", "b"), tmp_path)
    with pytest.raises(ValueError, match="^there are no markers and no heading Third$"):
        cell(Cell("page.md", "Third", "x", "b"), tmp_path)
