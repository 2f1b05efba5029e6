"""Figure 4 of MINT: expected sizes and drawn ones, the paper's checkpoint, the bound, the curves, the diagrams."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from benchmarks.formats import STARS, layouts, over_columns, over_density
from sw.formats import compactness
from sw.formats.array_checks import FormatError
from sw.formats.compactness import COMPARED, expected_bits, expected_counts, smallest
from sw.formats.sparse_tensor import SparseTensor
from sw.formats.storage import storage_format, storage_names
from sw.formats.storage_format import LARGEST_ARRAYS, require_bound, through_memory
from sw.report.curves import Curve, Panel, curves

from .tensors import drawn, tensor

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("density", [0.0, 0.002, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("name", COMPARED)
def test_expected_sizes_are_those_of_drawn_matrices(name, density):
    shape = (700, 900)
    given = drawn(shape, density)
    form = storage_format(name)
    exact = form.layout(shape, form.counts(given), "fp32").bits
    assert expected_bits(name, shape, density, "fp32") == pytest.approx(exact, rel=0.04)
    assert set(expected_counts(name, shape, density)) == set(form.counts(given))


def test_a_single_value_far_from_the_first_place():
    # 1.21 values are expected in the paper's most sparse matrix; on average half of the places lie before one of them.
    assert expected_counts("rlc", (11_000, 11_000), 1e-8)["pairs"] == pytest.approx(121e6 / 32 / 2, rel=0.6)
    form = storage_format("rlc")
    last = SparseTensor(
        shape=(11_000, 11_000),
        ids=(np.array([10_999]), np.array([10_999])),
        values=np.ones(1, np.float32),
        value="fp32",
    )
    assert form.counts(last) == {"pairs": -(-121_000_000 // 32)}


def test_the_paper_checkpoint():
    found = [smallest((11_000, 11_000), density, "fp32") for density in STARS]
    assert dict(zip(STARS, found, strict=True)) == {1e-8: "coo", 0.1: "rlc", 0.5: "zvc", 1.0: "dense"}


@pytest.mark.parametrize(("name", "density"), [("bsr", 0.1), ("rlc", 1.5), ("rlc", -0.1)])
def test_what_has_no_expected_size_is_refused(name, density):
    with pytest.raises(ValueError, match=r"^(Format must be one of dense, |Density must be from 0 to 1, not )"):
        expected_counts(name, (5, 5), density)


def test_the_curves_are_one_picture():
    panels = [over_density("fp32"), over_columns()]
    for panel in panels:
        assert [curve.name for curve in panel.curves] == list(COMPARED)
        assert all(y == 1 for _, y in panel.curves[COMPARED.index("csr")].points)
    picture = ElementTree.fromstring(curves(panels))
    titles = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == 2 * list(COMPARED)
    with pytest.raises(ValueError, match="above 0"):
        curves([Panel(title="", x_name="", y_name="", curves=[Curve(name="a", points=[(0, 1)])], y_range=(1, 2))])


def test_a_curve_has_a_gap_where_it_leaves_the_picture():
    line = Curve(name="a", points=[(1, 2), (2, 3), (4, 50), (8, 3), (16, 2)])
    text = curves([Panel(title="t", x_name="x", y_name="y", curves=[line], y_range=(1, 10))])
    (path,) = re.findall(r'<path d="([^"]+)"[^>]*><title>', text)
    assert re.sub(r"[^ML]", "", path) == "MLML"


def test_the_manual_shows_these_layouts():
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"(?ms)^## `(\w+)`$.*?^```text\n(.*?)\n```$", page))
    made = dict(part.split("\n", 1) for part in layouts().split("\n\n\n"))
    assert set(made) == set(storage_names()) and shown == made


def test_the_bound_is_met_before_an_array_is_made():
    for name, shape in (
        ("dense", (1 << 16, 1 << 16)),
        ("csr", (1 << 32, 2)),
        ("csc", (2, 1 << 32)),
        ("ell", (1 << 32, 2)),
    ):
        form = storage_format(name)
        far = tensor(shape, [0])
        layout = form.layout(shape, form.counts(far), "fp32")
        with pytest.raises(FormatError, match=r"^arrays of [0-9,]+ bytes: must be at most 2,147,483,648$"):
            through_memory(form, layout, far)
    form = storage_format("coo")
    most = LARGEST_ARRAYS // 20
    require_bound(form.layout((9, 9), {"nnz": most}, "fp32"))
    with pytest.raises(FormatError):
        require_bound(form.layout((9, 9), {"nnz": most + 1}, "fp32"))


def test_runs_of_a_hypersparse_matrix_are_refused_at_once():
    # 10^7 values at a density of 10^-3 are some 3 x 10^8 pairs.
    count = 10**7
    positions = np.arange(count, dtype=np.uint64) * np.uint64(1000)
    given = SparseTensor.from_positions((100_000, 100_000), positions, np.ones(count, np.float32), "fp32")
    form = storage_format("rlc")
    layout = form.layout(given.shape, form.counts(given), "fp32")
    assert layout.regions[0].count == 1 + 32 * (count - 1)
    with pytest.raises(FormatError, match="must be at most"):
        through_memory(form, layout, given)


@pytest.mark.parametrize("density", [1e-9, 1e-7, 1e-5, 1e-3, 0.3])
def test_fillers_of_large_tensors_are_those_of_the_sum(density, monkeypatch):
    """Term by term, and as an integral where there are too many terms."""
    shape, span = (5_000, 6_000), 8
    one_by_one = expected_counts("rlc", shape, density, span - 1)
    monkeypatch.setattr(compactness, "MOST_TERMS", 1000)
    assert expected_counts("rlc", shape, density, span - 1)["pairs"] == pytest.approx(
        one_by_one["pairs"], abs=1, rel=1e-5
    )


def test_csf_is_counted_where_slices_hold_something():
    assert expected_counts("csf", (4, 5, 6), 1.0) == {"ids_0": 4, "ids_1": 20, "nnz": 120}
    assert expected_counts("csf", (2, 2, 1), 0.5) == {"ids_0": round(2 * 3 / 4), "ids_1": 2, "nnz": 2}
