"""Cycles of the hardware: no more than it has reached, and what the model tier says they are.

Operands that differ in what bounds them: rows of an element, rows longer than a job, bands, cut tiles. The simulation is
exact, so a step that makes the machine slower shows here. Figures of the real matrices are in ``docs/benchmarks.md``.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import load_design
from sw.cost.predict import predict
from sw.formats.csr import Csr
from sw.model.machine import run_model
from sw.plan.plan import plan
from sw.runtime.simulation.engine import run_rtl
from sw.scheme.scheme import Scheme
from sw.stats.workload import Workload
from tests.verif.test_end_to_end import operand, scheme
from verif.counters import check_counters

pytestmark = pytest.mark.slow

DESIGN, EDGE = load_design("tiny"), load_design("edge")


def diagonal() -> sp.csr_array:
    return sp.eye_array(2000, format="csr")


def rows_of_an_element() -> sp.csr_array:
    """None to two elements a row."""
    rng = np.random.default_rng(1)
    rows = np.repeat(np.arange(1500), rng.integers(0, 3, 1500))
    return sp.csr_array((np.ones(len(rows)), (rows, rng.integers(0, 1500, len(rows)))), shape=(1500, 1500))


def hubs() -> sp.csr_array:
    """A graph with few nodes of many edges."""
    rng = np.random.default_rng(2)
    weight = np.arange(1, 301) ** -0.8
    ends = rng.choice(300, (2, 2500), p=weight / weight.sum())
    return sp.csr_array((np.ones(2500), tuple(ends)), shape=(300, 300))


def band() -> sp.csr_array:
    return sp.csr_array(sp.diags_array([np.ones(500)] * 9, offsets=range(-4, 5), shape=(500, 500)))


def long_rows() -> sp.csr_array:
    """Four rows of two hundred elements above four hundred of four."""
    rng = np.random.default_rng(3)
    above, below = (sp.random_array((n, 400), density=d, rng=rng) for n, d in ((4, 0.5), (396, 0.01)))
    return sp.csr_array(sp.vstack([above, below]))


def long_fibers() -> sp.csr_array:
    """Rows of three elements that point to twenty rows of sixty: rows of C of more elements than the output queue holds."""
    rng = np.random.default_rng(4)
    matrix = np.zeros((400, 400))
    for row in range(20):
        matrix[row, 20 + rng.choice(380, 60, replace=False)] = 1
    for row in range(20, 400):
        matrix[row, rng.choice(20, 3, replace=False)] = 1
    return sp.csr_array(matrix)


def short_and_long() -> sp.csr_array:
    """Rows of three and of five elements in turn: a job, and two groups whose fibers wait behind the short row's."""
    rng = np.random.default_rng(5)
    counts = np.resize([3, 5], 300)
    columns = np.concatenate([np.sort(rng.choice(300, n, replace=False)) for n in counts])
    return sp.csr_array((np.ones(len(columns)), columns, np.concatenate([[0], np.cumsum(counts)])), shape=(300, 300))


def whole(matrix: Csr) -> Scheme:
    return scheme(DESIGN, (matrix.rows,) * 3)


def streamed(matrix: Csr) -> Scheme:
    return scheme(DESIGN, (matrix.rows,) * 3, streaming=True)


def halves(matrix: Csr) -> Scheme:
    return scheme(DESIGN, (-(-matrix.rows // 2),) * 3)


def lists(matrix: Csr) -> Scheme:
    """Tiles of 8 rows, in a partition that holds a few of them."""
    tiles = scheme(DESIGN, (8, matrix.rows, matrix.rows), b_lines=160)
    return replace(tiles, load="list")


def tall_lists(matrix: Csr) -> Scheme:
    """Tiles that take all of the partition: each is loaded when the one before is done, beside its own rows."""
    tiles = scheme(DESIGN, (16, matrix.rows, matrix.rows), b_lines=160)
    return replace(tiles, load="list")


def strips(matrix: Csr) -> Scheme:
    """Rows of C in strips of a hundred columns, all of the partition for B."""
    tiles = scheme(DESIGN, (4, 100, matrix.rows))
    return replace(tiles, load="list")


def whole_lists(matrix: Csr) -> Scheme:
    """The same with strips as wide as C: whole rows."""
    tiles = scheme(DESIGN, (8, matrix.rows, matrix.rows))
    return replace(tiles, load="list")


def windows(matrix: Csr) -> Scheme:
    """Lists, as they are read from a scheme that says a range of k for each tile."""
    given = json.loads(lists(matrix).to_json())
    spans = [[i, min(matrix.rows, i + 8), 0, matrix.rows, 0, matrix.rows] for i in range(0, matrix.rows, 8)]
    return Scheme.from_dict(given | {"load": "window", "tiles": spans})


CASES = {
    "diagonal, streamed": (diagonal, streamed, 10_110),
    "rows of an element, streamed": (rows_of_an_element, streamed, 6_807),
    "hubs, whole": (hubs, whole, 89_916),
    "hubs, streamed": (hubs, streamed, 99_318),
    "hubs, cut": (hubs, halves, 164_563),
    # All of its rows have more nonzeros than the merge radix, and a request for a scratch fiber takes two cycles.
    "band, whole": (band, whole, 79_178),
    "band, streamed": (band, streamed, 69_524),
    "band, cut": (band, halves, 102_800),
    "band, lists": (band, lists, 66_883),
    "band, tall lists": (band, tall_lists, 72_039),
    "band, windows": (band, windows, 66_883),
    "rows of an element, lists": (rows_of_an_element, lists, 22_673),
    "long rows, whole": (long_rows, whole, 67_170),
    "long rows, cut": (long_rows, halves, 88_598),
    "short and long rows, whole": (short_and_long, whole, 23_617),
    "short and long rows, streamed": (short_and_long, streamed, 25_443),
    "long fibers, whole": (long_fibers, whole, 77_717),
    "long fibers, lists": (long_fibers, whole_lists, 97_771),
    "long fibers, strips": (long_fibers, strips, 87_808),
}


@pytest.mark.parametrize("case", CASES)
def test_cycles(case: str) -> None:
    make, tiling, reached = CASES[case]
    matrix = operand(make(), DESIGN.pe.value)
    forced = tiling(matrix).clip(matrix.rows, matrix.rows, matrix.rows)
    forced.validate(DESIGN, matrix.rows, matrix.rows, matrix.rows)
    planned = plan(forced, matrix, matrix, DESIGN)
    found, model = run_rtl(DESIGN, planned), run_model(DESIGN, planned)
    assert found.error is None
    assert found.dram_bytes == model.dram_bytes
    assert check_counters(found.counters, found.observed, design=DESIGN, model=model) == []
    assert found.cycles <= 1.02 * reached
    assert model.cycles == pytest.approx(found.cycles, rel=0.15)


@pytest.mark.parametrize("nonzeros", [200, 1000])
def test_rows_that_are_cut_along_k_wait_for_their_chunks(nonzeros: int) -> None:
    """Of long rows with next to nothing in C: each later chunk is asked for when the one before has come."""
    rng = np.random.default_rng(6)
    rows, extent = 12_000 // nonzeros, 2000
    columns = np.concatenate([np.sort(rng.choice(extent, nonzeros, replace=False)) for _ in range(rows)])
    long = sp.csr_array((np.ones(rows * nonzeros), columns, nonzeros * np.arange(rows + 1)), shape=(rows, extent))
    narrow = sp.csr_array((np.ones(extent), rng.integers(0, 4, extent), np.arange(extent + 1)), shape=(extent, 4))
    a, b = operand(long, EDGE.pe.value), operand(narrow, EDGE.pe.value)
    cycles = {}
    for tile in (extent, extent // 2):
        forced = scheme(EDGE, (rows, 4, tile)).clip(rows, 4, extent)
        planned = plan(forced, a, b, EDGE)
        found, model = run_rtl(EDGE, planned), run_model(EDGE, planned)
        assert found.error is None and found.dram_bytes == model.dram_bytes
        assert model.cycles == pytest.approx(found.cycles, rel=0.1)
        cycles[tile] = found.cycles
    # The hardware pays for the cut, so that a model without these waits would not pass.
    assert cycles[extent // 2] > 1.2 * cycles[extent]


@pytest.mark.parametrize("outstanding", [16, 64])
def test_a_scan_waits_for_far_memory(outstanding: int) -> None:
    """Rows cut along k and j, memory a hundred cycles away: as many chunks come at a time as may be under way."""
    far = load_design("edge", ["dram.latency_ns=400", f"axi.outstanding={outstanding}"])
    matrix = operand(band(), far.pe.value)
    forced = scheme(far, (250, 250, 250), c_lines=0, keep_c=False).clip(500, 500, 500)
    planned = plan(forced, matrix, matrix, far)
    found, model = run_rtl(far, planned), run_model(far, planned)
    near = run_model(EDGE, plan(forced, matrix, matrix, EDGE))
    assert found.error is None and found.dram_bytes == model.dram_bytes
    assert model.cycles == pytest.approx(found.cycles, rel=0.15)
    assert found.cycles > 1.3 * near.cycles


@pytest.mark.parametrize("nanoseconds", [100, 400])
def test_rows_behind_one_that_waits_for_its_second_chunk_are_looked_at(nanoseconds: int) -> None:
    """Rows of B that are cut along j, as many lines of them held as to hide the latency: 11 % slower with 16 at 100 ns."""
    far = load_design("tiny", ["pe.value=fp32", f"dram.latency_ns={nanoseconds}"])
    rng, rows, each = np.random.default_rng(2), 256, 9
    columns = np.concatenate([np.sort(rng.choice(rows, each, replace=False)) for _ in range(rows)])
    scattered = sp.csr_array((np.ones(rows * each), columns, each * np.arange(rows + 1)), shape=(rows, rows))
    # Four rows of A use the last row of B, so that its load is all that takes time.
    last = sp.csr_array((np.ones(4), np.full(4, rows - 1), np.arange(5)), shape=(4, rows))
    a, b = operand(last, "fp32"), operand(scattered, "fp32")
    planned = plan(scheme(far, (4, rows // 2, rows)).clip(4, rows, rows), a, b, far)
    found, model = run_rtl(far, planned), run_model(far, planned)
    assert found.error is None and found.dram_bytes == model.dram_bytes
    assert model.cycles == pytest.approx(found.cycles, rel=0.05)


@pytest.mark.parametrize(
    ("rows", "nonzeros", "tile", "load"),
    [(1000, 2600, 35, "planned"), (1400, 1600, 150, "planned"), (1400, 1600, 60, "list")],
    ids=["leaves hold the next tile up", "its load does", "its load in a list does"],
)
def test_a_tile_begins_beside_the_one_before(rows: int, nonzeros: int, tile: int, load: str) -> None:
    """Scattered rows of few nonzeros. A's are there long before; what the streamer holds up is looked up later."""
    rng = np.random.default_rng(11)
    places = rng.integers(0, rows, (2, nonzeros))
    pattern = sp.csr_array((np.ones(nonzeros), tuple(places)), shape=(rows, rows))
    design = load_design("tiny", ["pe.value=fp32"])
    matrix = operand(pattern, design.pe.value)
    forced = replace(scheme(design, (tile, rows, rows)), load=load)
    planned = plan(forced, matrix, matrix, design)
    found, model = run_rtl(design, planned), run_model(design, planned)
    predicted = predict(Workload(pattern, pattern, lanes=design.lanes), design, forced)
    assert found.error is None and found.dram_bytes == model.dram_bytes
    assert model.cycles == pytest.approx(found.cycles, rel=0.05)
    assert predicted.cycles == pytest.approx(found.cycles, rel=0.06)
