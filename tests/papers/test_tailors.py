"""ExTensor's figures: the page's rows are what the command gives today; operands that fit on chip neither gain nor lose."""

from pathlib import Path

import pytest

from benchmarks import tailors
from benchmarks.stand_ins import operand
from benchmarks.table_markers import cells
from sw.operands.errors import OperandError

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"
CHEAP = ("rmat:12:8:seed=1", "banded:4000:10:density=0.5:seed=1")


@pytest.mark.parametrize("k_first", [False, True])
@pytest.mark.parametrize("name", ["rmat:12:8:seed=1", "uniform:6000:6000:0.0005:seed=1"])
def test_a_generated_operand_that_fits_on_chip_neither_gains_nor_loses(name: str, k_first: bool) -> None:
    row = tailors.record(name, 0.2, 2, shares=(tailors.TARGET,), k_first=k_first)
    assert row["P"]["bound"] == "dram"
    assert 0.9 <= tailors.RATIOS["OB / P"](row, "cycles") <= 1.1


def test_what_the_page_says_of_both_assumptions_holds_for_a_generated_operand() -> None:
    name, shares = "rmat:12:8:seed=1", (tailors.TARGET,)
    base, every, fiber = (
        tailors.record(name, 4, 1, shares=shares, changes=changes)
        for changes in ({}, {"skips_empty": False}, {"slides": False})
    )
    assert tailors.RATIOS["OB / N"](every, "reads") > tailors.RATIOS["OB / N"](base, "reads")
    assert tailors.average(fiber, "rate") > 2 * tailors.average(base, "rate")
    assert tailors.RATIOS["OB / P"](fiber, "energy") < 1 < tailors.RATIOS["OB / P"](base, "energy")


def test_an_operand_of_uneven_tiles_is_read_less_where_it_does_not_fit() -> None:
    row = tailors.record("rmat:12:8:seed=1", 4, 2, shares=(tailors.TARGET,))
    assert tailors.RATIOS["OB / P"](row, "reads") > 1.2


@pytest.mark.parametrize("name", CHEAP)
@pytest.mark.parametrize(
    ("setting", "fill", "seeds", "pe_bytes"),
    [("--fill 4", 4, 5, None), ("--fill 0", 0, 1, None), ("--fill 4 --pe-bytes 32768", 4, 3, 32768)],
)
def test_the_page_has_the_rows_of_today(name: str, setting: str, fill: float, seeds: int, pe_bytes: int | None) -> None:
    row = tailors.record(name, fill, seeds, shares=(tailors.TARGET,), pe_bytes=pe_bytes)
    text = PAGE.read_text(encoding="utf-8")
    for line, table in ((tailors.speedups(row), ""), (tailors.reuse(row), ", reuse")):
        first, *rest = (cell.strip() for cell in line.strip("|").split("|"))
        assert cells(text, f"extensor {setting}{table}")[first] == rest


def test_roads_are_a_grid_with_some_of_its_edges() -> None:
    roads = operand("roads:30:40:0.7").matrix
    assert roads.shape == (1200, 1200) and (roads != roads.T).nnz == 0
    edges = 2 * (29 * 40 + 30 * 39)
    assert 0.65 * edges < roads.nnz < 0.75 * edges
    assert operand("roads:30:40:1").matrix.nnz == edges
    rows, columns = roads.nonzero()
    assert set(abs(rows - columns)) == {1, 40}
    with pytest.raises(ValueError, match=r"^roads:3:4: must be roads:ROWS:COLUMNS:SHARE, as in "):
        operand("roads:3:4")
    with pytest.raises(OperandError):
        operand("rmat:0:0")


def test_records_are_kept_and_not_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--fill",
        "1",
        "--seeds",
        "1",
        "--only-target",
        "--json",
        str(tmp_path / "records.jsonl"),
        "rmat:8:4:seed=1",
    ]
    assert tailors.main(words) == 0
    first = (tmp_path / "records.jsonl").read_bytes()
    shown = capsys.readouterr().out
    assert tailors.main(words) == 0
    assert (tmp_path / "records.jsonl").read_bytes() == first
    assert capsys.readouterr().out == shown
    assert "| rmat-8-4-seed1 (generated) |" in shown


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--fill", "-1"], "--fill must be at least 0 and --seeds at least 1"),
        (["--pe-bytes", "4"], "--pe-bytes must be at least 8, not 4"),
    ],
)
def test_bad_options_are_named(words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tailors.main(words)
    assert capsys.readouterr().err.endswith(f"error: {complaint}\n")


def test_an_operand_that_cannot_be_read_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert tailors.main(["rmat:nothing"]) == 1
    assert capsys.readouterr().err.startswith("rmat:nothing: ")
