"""Densities and formats from a file of a user's own."""

import pytest

from sw.analytic.analysis import analyze
from sw.analytic.errors import SpecError
from sw.analytic.spec.extensions import load_extensions
from sw.analytic.spec.load import SHIPPED, load_spec
from tests.sw.analytic.test_spec import SPEC


def page_example() -> str:
    """The Python file that the manual shows."""
    page = (SHIPPED.parents[1] / "docs" / "analysis.md").read_text()
    return page.split("```python\n")[1].split("```")[0]


def test_a_density_and_a_format_of_ones_own(tmp_path):
    (tmp_path / "mine.py").write_text(page_example())
    spaces = "sparse_optimizations.representation_format.data_spaces.A.ranks=[{format: UOP}, {format: CCP}]"
    changes = (
        "problem.instance.densities.A={distribution: full_rows, density: 0.1}",
        f"architecture.nodes.DRAM.{spaces}",
        f"architecture.nodes.Buffer.{spaces}",
    )
    found = analyze(load_spec([SPEC], changes, load_extensions([tmp_path / "mine.py"])))
    tile = found.sparse.occupancy[1, 0]
    assert (tile.mean, tile.maximum) == (7 * 64, 7 * 64), "7 of 64 rows are full"
    coordinates, offsets = tile.ranks
    assert coordinates.mean == pytest.approx((7 * 64 + 7, 0)) and offsets.mean == (0, 65)
    assert found.sparse.computes.actual == 7 * 64 * 64


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("1 / 0", "cannot be loaded (ZeroDivisionError: division by zero)"),
        ("X = 1", "must have a dictionary DENSITIES or FORMATS"),
        ("DENSITIES = {'mine': 3}", "DENSITIES['mine']: must be a function of an entry and extents"),
        (
            "FORMATS = {'X': 3}",
            "FORMATS['X']: has no units, name, is_compressed, metadata_bits: must be a rank format",
        ),
    ],
)
def test_files_that_are_no_extensions(tmp_path, text, line):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        load_extensions([path])
    assert str(caught.value) == f"--load {path}: {line}"


def test_an_entry_that_an_extension_refuses(tmp_path):
    (tmp_path / "mine.py").write_text("DENSITIES = {'mine': lambda entry, extents: entry['share']}")
    change = "problem.instance.densities.A={distribution: mine, share: 1}"
    extensions = load_extensions([tmp_path / "mine.py"])
    with pytest.raises(
        SpecError, match="must be a density model: it has no mean, maximum, empty, occupancies, fullest, name"
    ):
        load_spec([SPEC], (change,), extensions)
    with pytest.raises(SpecError, match="share is missing"):
        load_spec([SPEC], (change.replace("share", "part"),), extensions)
