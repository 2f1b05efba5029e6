"""A design as a specification: read back, and beside counts that SciPy makes of the same operands."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import Design, load_design
from sw.analytic.analysis import Analysis, analyze
from sw.analytic.design_comparison import compare
from sw.analytic.design_operands import told
from sw.analytic.design_spec import PARTITION, design_sections, require_export
from sw.analytic.errors import SpecError
from sw.analytic.result import record
from sw.analytic.spec.load import load_spec
from sw.analytic.spec.write_spec import spec_text
from sw.engine_result import EngineResult
from sw.scheme.errors import SchemeError
from sw.scheme.hardware_scheme import HardwareScheme

SIDE = 50
STREAMS = {"A": "streaming", "B": "buffering", "C": "streaming"}


@pytest.fixture(scope="module")
def design() -> Design:
    return load_design("tiny", ["buffer.bytes=16384"])


def matrix(seed: int, share: float = 0.1) -> sp.csr_array:
    random = np.random.default_rng(seed)
    return sp.csr_array((random.random((SIDE, SIDE)) < share).astype(np.float32))


def scheme(order: str, i: int, j: int, k: int, **changes: object) -> HardwareScheme:
    whole = HardwareScheme(
        order=order,
        T_i=i,
        T_j=j,
        T_k=k,
        buffer_bytes={"A": 4096, "B": 8192, "C": 4096},
        fifo_bytes={"A": 64, "B": 512},
        mode=STREAMS,
    )
    return replace(whole, **changes)


def analysis(
    folder: Path, design: Design, found: HardwareScheme, kind: str, a: sp.csr_array, b: sp.csr_array
) -> Analysis:
    """Of the specification as a file that is read back."""
    names = told(kind, a, b, "data")
    for name, own in names.files.items():
        sp.save_npz(folder / name, own)
    path = folder / "design.yaml"
    shape = (a.shape[0], b.shape[1], a.shape[1])
    path.write_text(spec_text(design_sections(design, found, shape, names.densities)), encoding="utf-8")
    return analyze(load_spec([path]))


def rows(found: Analysis) -> dict[tuple[str, str, str], float]:
    """What a comparison takes of an analysis."""
    nothing = dict.fromkeys(("read", "write", "metadata_read", "metadata_write"), 0)
    counted = EngineResult(
        cycles=0,
        counters={"macs": 0},
        dram_bytes={tensor: dict(nothing) for tensor in "ABC"},
        buffer={tensor: {"hits": 0, "bumped": 0} for tensor in "AB"},
        c=None,
    )
    return {(row.level, row.tensor, row.quantity): row.analysis for row in compare(found, counted)}


TILES = [
    ("ijk", 50, 50, 50, STREAMS),
    ("jki", 50, 25, 10, STREAMS),
    ("kij", 7, 13, 11, STREAMS),
    ("ikj", 20, 30, 15, STREAMS | {"A": "buffering"}),
    ("ijk", 16, 20, 25, STREAMS | {"C": "buffering"}),
    ("ijk", 50, 50, 50, STREAMS | {"B": "streaming"}),
    ("jik", 1, 1, 50, STREAMS),
    ("jik", 50, 50, 1, STREAMS),
]


@pytest.mark.parametrize("tiles", TILES, ids=lambda tiles: "-".join(map(str, tiles[:4])))
def test_known_data_gives_the_multiplications_of_scipy(tmp_path, design, tiles):
    order, i, j, k, mode = tiles
    a, b = matrix(1), matrix(2, 0.15)
    found = analysis(tmp_path, design, scheme(order, i, j, k, mode=mode), "actual", a, b)
    macs = int((a.sum(axis=0) * b.sum(axis=1)).sum())
    assert abs(found.sparse.computes.actual - macs) <= 1
    if mode["B"] == "buffering":
        assert rows(found)[PARTITION["B"], "B", "words used"] == pytest.approx(macs, abs=2)
    assert record(found)["valid"]


def test_one_tile_moves_each_tensor_once(tmp_path, design):
    """Records of two words, and a pointer for each row and one more."""
    a, b = matrix(3), matrix(4)
    found = rows(analysis(tmp_path, design, scheme("ijk", SIDE, SIDE, SIDE), "actual", a, b))
    product = sp.csr_array(a @ b)
    for tensor, own, quantity in (("A", a, "bytes moved"), ("B", b, "bytes moved"), ("C", product, "bytes written")):
        assert found["DRAM", tensor, quantity] == pytest.approx(8 * own.nnz + 4 * (SIDE + 1), rel=0.1), tensor


def test_columns_in_two_tiles_read_a_twice(tmp_path, design):
    a, b = matrix(3), matrix(4)
    whole, halves = (
        rows(analysis(tmp_path, design, scheme("jik", SIDE, j, SIDE), "uniform", a, b)) for j in (SIDE, SIDE // 2)
    )
    assert halves["DRAM", "A", "bytes moved"] == pytest.approx(2 * whole["DRAM", "A", "bytes moved"], rel=0.01)
    # Of each row in each half: its begin and its end, the begin that is written for the other half, half of a beat of 16 bytes.
    rows_of_halves = 2 * (SIDE + 1)
    more = rows_of_halves * (4 * (3 * 2 - 2) / 2 + 8) - 4 * (SIDE + 1)
    assert halves["DRAM", "B", "bytes moved"] == pytest.approx(whole["DRAM", "B", "bytes moved"] + more, rel=0.02)


@pytest.mark.parametrize("kind", ["uniform", "actual"])
def test_a_partition_that_is_too_small_fetches_the_rest_at_each_use(tmp_path, design, kind):
    """What stays is what the scheme's partition holds; the rest is fetched as often as A has a nonzero for its row."""
    a, b = matrix(5, 0.2), matrix(6, 0.3)
    small = scheme("ijk", SIDE, SIDE, SIDE, buffer_bytes={"A": 256, "B": 4096, "C": 0})
    found = analysis(tmp_path, design, small, kind, a, b)
    capacity = small.partition("B", design).capacity(SIDE)
    assert b.nnz > capacity.limit
    uses = int((a.sum(axis=0) * b.sum(axis=1)).sum())
    expected = uses * (b.nnz - capacity.regular) / b.nnz - (b.nnz - capacity.regular)
    refetched = rows(found)[PARTITION["B"], "B", "words refetched"]
    assert refetched == pytest.approx(expected, rel=0.1)


def test_uniform_operands_are_told_by_their_number(design):
    a, b = matrix(7), matrix(8)
    densities = told("uniform", a, b, "").densities
    assert densities["A"] == {"distribution": "uniform", "density": a.nnz / SIDE**2}
    expected = 1 - (1 - a.nnz * b.nnz / SIDE**4) ** SIDE
    assert densities["C"]["density"] == pytest.approx(expected)


@pytest.mark.parametrize("joined", [False, True])
def test_partial_results_move_as_much_as_the_one_that_is_told(joined):
    """All but the last are written and read, the last is written; parts that are joined are read and written once more."""
    a, b = matrix(7), matrix(8)

    def moved(sizes: list[float]) -> float:
        writes, reads = sum(sizes) + joined * sizes[-1], sum(sizes[:-1]) + joined * sizes[-1]
        return min(sizes[-1], (writes + reads) / (2 * len(sizes) - 1))

    for step in (10, 20, 49):
        ends = [*range(step, SIDE, step), SIDE]
        parts = [sp.csr_array(a[:, :end] @ b[:end]) for end in ends]
        wanted = moved([part.nnz for part in parts])
        found = told("actual", a, b, "x", step, joined=joined).files["x-C.npz"]
        assert found.nnz == min((part.nnz for part in parts), key=lambda number: abs(number - wanted))
        assert any((abs(found - (part != 0).astype(np.float32))).nnz == 0 for part in parts)
        shares = [1 - (1 - a.nnz * b.nnz / SIDE**4) ** end for end in ends]
        share = told("uniform", a, b, "", step, joined=joined).densities["C"]["density"]
        assert share == pytest.approx(moved(shares))


def test_a_partial_result_of_a_band():
    band = sp.csr_array(sp.diags_array([np.ones(SIDE - abs(k)) for k in range(-3, 4)], offsets=range(-3, 4)))
    whole, half = (told("banded", band, band, "", step).densities["C"]["band_width"] for step in (None, SIDE // 5))
    assert whole == 6 and 2 < half < 6


def test_a_band_has_as_many_nonzeros(design):
    band = sp.csr_array(sp.diags_array([np.ones(SIDE - abs(k)) for k in range(-3, 4)], offsets=range(-3, 4)))
    densities = told("banded", band, band, "").densities
    assert [densities[tensor]["band_width"] for tensor in "ABC"] == [3, 3, 6]
    with pytest.raises(SpecError, match="A is 4 x 5: must be square"):
        told("banded", sp.csr_array((4, 5)), band, "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"load": "list"}, "scheme: load = 'list': must be tile, to be analysed"),
        ({"tuning": True}, "scheme: tuning = True: must be false, to be analysed"),
        ({"row_order": "rcm"}, "scheme: row_order = 'rcm': must be natural, to be analysed"),
        ({"tiles": [[0, 50, 0, 50, 0, 50]]}, "scheme: tiles = .*: must be left out, to be analysed"),
    ],
)
def test_what_has_no_words_is_refused_by_name(design, changes, message):
    with pytest.raises(SchemeError, match=message):
        require_export(design, scheme("jki", SIDE, SIDE, SIDE, **changes))


def test_other_dataflows_are_refused():
    outer = load_design("tiny", ["pe.dataflow=outer"])
    with pytest.raises(SchemeError, match="pe.dataflow = 'outer': must be gustavson"):
        require_export(outer, scheme("ijk", SIDE, SIDE, SIDE))


def test_errors_are_shares_of_what_was_counted(tmp_path, design):
    found = analysis(tmp_path, design, scheme("ijk", SIDE, SIDE, SIDE), "uniform", matrix(1), matrix(2))
    moved = partial(dict, read=1000, write=0, metadata_read=100, metadata_write=0)
    result = EngineResult(
        cycles=2 * found.cycles.total,
        counters={"macs": 1},
        dram_bytes={tensor: moved() for tensor in "ABC"},
        buffer={"A": {"hits": 0, "bumped": 0}, "B": {"hits": 10, "bumped": 5}},
        c=None,
    )
    by_name = {(row.level, row.tensor, row.quantity): row for row in compare(found, result)}
    assert by_name["design", "", "cycles"].error == pytest.approx(-0.5)
    assert by_name["DRAM", "A", "bytes moved"].counted == 1100
    assert by_name[PARTITION["B"], "B", "words used"].counted == 15
    assert by_name["DRAM", "C", "bytes written"].error is None
