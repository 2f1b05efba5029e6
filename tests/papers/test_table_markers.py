"""Tables between markers: written there alone, read back as they were, and refused where a page has no markers."""

from pathlib import Path

import pytest

from benchmarks.table_markers import PrintedTable, benchmark_parser, cells, replaced, stamp, table, write_table
from gen import __version__

PAGE = "a\n<!-- one: make x -->\nold\n<!-- end of one -->\nb\n<!-- one more: make y -->\n<!-- end of one more -->\nc\n"
LINES = ["| operand | cycles |", "| --- | ---: |", "| x | 7 |"]


def test_a_table_goes_between_its_markers_alone() -> None:
    text = replaced(PAGE, "one", LINES)
    assert text.startswith("a\n<!-- one: make x -->\n\n| operand | cycles |\n")
    assert text.endswith("| x | 7 |\n\n<!-- end of one -->\n" + PAGE.partition("<!-- end of one -->\n")[2])
    assert table(text, "one") == LINES
    assert replaced(text, "one", LINES) == text
    assert table(replaced(text, "one more", ["y"]), "one more") == ["y"]


def test_rows_are_found_by_their_first_cell() -> None:
    text = replaced(PAGE, "one", [*LINES, "", "| x | of a second table |", "no row"])
    assert cells(text, "one") == {"operand": ["cycles"], "---": ["---:"], "x": ["7"]}


def test_a_page_is_written_or_left_as_it_was(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    write_table(page, "one", LINES)
    assert table(page.read_text(encoding="utf-8"), "one") == LINES
    before = page.read_bytes()
    with pytest.raises(
        ValueError, match=r"page\.md: there is no <!-- two: command --> with <!-- end of two --> after it$"
    ):
        write_table(page, "two", LINES)
    assert page.read_bytes() == before


@pytest.mark.parametrize(
    "text", ["<!-- one: x -->\n", "<!-- end of one --><!-- one: x -->\n", "<!-- one: x\n -->\n<!-- end of one -->"]
)
def test_half_a_pair_of_markers_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="^there is no <!-- one: "):
        table(text, "one")


def test_a_stamp_says_what_when_and_with_which_version() -> None:
    assert stamp("make x").startswith(f"*`make x`, version {__version__}, ")


def printed(words: list[str], page: Path | None = None) -> PrintedTable:
    parser = benchmark_parser("benchmarks/stripes.py", "Stripes.")
    parser.add_argument("operands", nargs="*", default=("x", "y"))
    parser.add_argument("--config", default="edge")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--sides", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--json", type=Path)
    return PrintedTable(parser, parser.parse_args([*words, *(["--docs", str(page)] if page else [])]))


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ([], "stripes"),
        (["--config", "edge", "z"], "stripes"),
        (["--json", "kept.jsonl", "--errors"], "stripes --errors"),
        (["--set", "a=1", "--sides", "3", "4", "--set", "b=2"], "stripes --set a=1 --set b=2 --sides 3 4"),
    ],
)
def test_a_table_is_named_by_what_makes_its_rows(words: list[str], name: str) -> None:
    assert printed(words).name == name


def test_what_is_printed_stands_in_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- stripes --errors: x -->\n<!-- end of stripes --errors -->\n", encoding="utf-8")
    made = printed(["--errors", "/secret/folder/z.npz"], page)
    made.head(["operand", "of", "cycles"], texts=2)
    made.row(["z", "y", "7"])
    assert table(page.read_text(encoding="utf-8"), made.name) == [""]
    made.write()
    rows = ["| operand | of | cycles |", "| --- | --- | ---: |", "| z | y | 7 |"]
    assert capsys.readouterr().out.splitlines() == rows
    command = f"python -m benchmarks.stripes --docs {page} OPERAND... --errors"
    assert table(page.read_text(encoding="utf-8"), made.name) == [*rows, "", stamp(command)]


def test_a_page_without_markers_is_told_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing", encoding="utf-8")
    for file in (page, tmp_path / "none.md"):
        with pytest.raises(SystemExit):
            printed([], file)
        assert f"error: --docs {file}: " in capsys.readouterr().err
