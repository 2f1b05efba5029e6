"""Swiftiles against its target: the page's rows are what the command gives today, and tiles have the shape that is meant."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import swiftiles
from benchmarks.table_markers import cells
from sw.stats.pattern import Pattern

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"
NOISE = Pattern.of(sp.csr_array(sp.random_array((900, 1600), density=0.02, rng=np.random.default_rng(3))))


@pytest.mark.parametrize(
    ("size", "operand"),
    [
        ("--tiles 400", "rmat:14:16:seed=1"),
        ("--tiles 400", "banded:20000:40:density=0.5:seed=1"),
        ("--nonzeros 8192", "banded:20000:40:density=0.5:seed=1"),
        ("--nonzeros 8192", "rmat:16:8:seed=1"),
    ],
)
def test_the_page_has_the_rows_of_today(size: str, operand: str) -> None:
    found = swiftiles.estimate(operand, swiftiles.arguments().parse_args([*size.split(), operand]))
    assert found is not None and found.generated
    first, *rest = (cell.strip() for cell in swiftiles.row(found).strip("|").split("|"))
    assert cells(PAGE.read_text(encoding="utf-8"), f"swiftiles {size}")[first] == rest


@pytest.mark.parametrize("operand", ["rmat:17:2:seed=1", "banded:60000:4:density=0.5:seed=1"])
def test_the_page_has_the_variations_of_today(operand: str) -> None:
    line = swiftiles.variation(operand, 50)
    assert line is not None
    first, *rest = (cell.strip() for cell in line.strip("|").split("|"))
    assert cells(PAGE.read_text(encoding="utf-8"), "swiftiles --figure1")[first] == rest


def test_tiles_are_squares_until_a_rank_ends() -> None:
    assert swiftiles.shape(100, NOISE) == (10, 10)
    assert swiftiles.shape(900 * 1200, NOISE) == (900, 1200)
    assert swiftiles.shape(100, NOISE, k_first=True) == (100, 1)
    assert swiftiles.shape(1800, NOISE, k_first=True) == (900, 2)
    wide = Pattern.of(sp.csr_array((5000, 20)))
    assert swiftiles.shape(1600, wide) == (80, 20)


@pytest.mark.parametrize("y", [0.1, 0.3])
def test_scaling_by_all_tiles_meets_the_target_where_nonzeros_lie_evenly(y: float) -> None:
    capacity = 150.0
    first = swiftiles.scaled(NOISE, capacity, y, 0, np.random.default_rng(0))
    last = swiftiles.scaled(NOISE, capacity, y, None, np.random.default_rng(0))
    rates = [swiftiles.rate(NOISE, tile, capacity) for tile in (first, last)]
    assert abs(rates[1] - y) < 0.06 <= abs(rates[0] - y)


def test_operands_of_few_tiles_do_not_count() -> None:
    options = swiftiles.arguments().parse_args(["--nonzeros", "8192"])
    assert swiftiles.estimate("rmat:10:8:seed=1", options) is None


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--tiles", "0"], "--tiles must be at least 1, not 0"),
        (["--y", "1"], "--y must be between 0 and 1, not 1"),
        (["--figure13", "rmat:10:8"], "--figure13 needs --nonzeros"),
    ],
)
def test_bad_options_are_named(words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        swiftiles.main(words)
    assert capsys.readouterr().err.endswith(f"error: {complaint}\n")


def test_shares_of_figure_13_rise_and_the_target_is_met() -> None:
    lines = swiftiles.distributions("rmat:12:16:seed=1", 512, 0.1)
    shares = {line.split("|")[1].strip(): [float(c.strip(" %")) for c in line.split("|")[3:-1]] for line in lines[2:]}
    assert all(values == sorted(values) for values in shares.values())
    full = swiftiles.PARTS.index(1.0)
    assert shares["target, predicted"][full] >= 90 > shares["initial estimate"][full]
