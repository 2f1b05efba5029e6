"""The whole machine on whole multiplications: every inter-tile order, with and without overflow, against golden and SciPy.

The compiled simulation of `tiny` runs each case; the golden product must match bit for bit, SciPy within the summation
bound, and the model tier's traffic to the byte.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pyamg.gallery
import pytest
import scipy.sparse as sp

from gen.design import Design, load_design
from sw.formats.csr import Csr
from sw.golden.arithmetic import in_slots
from sw.golden.compare import check_against_scipy, compare_bits
from sw.golden.spgemm import multiply
from sw.model.machine import run_model
from sw.plan.plan import plan
from sw.runtime.energy import run_energy
from sw.runtime.simulation.engine import run_rtl
from sw.runtime.simulation.loader import BusTiming
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.terms import ORDERS
from tests.forced import forced
from verif.counters import check_counters

pytestmark = pytest.mark.slow

VALUES = ("int32", "fp32")
#: Without hardware for tuning, and with a reset that may begin and end between clock edges.
WITHOUT_TUNING = load_design("tiny", ["pe.value=fp32", "tuning.dynamic=false", "clock.asynchronous_reset=true"])


@pytest.fixture(scope="module", params=VALUES)
def design(request: pytest.FixtureRequest) -> Design:
    return load_design("tiny", [f"pe.value={request.param}"])


def operand(matrix: Any, value: str, seed: int = 0) -> Csr:
    """The pattern of ``matrix`` with values of the type; floating ones span magnitudes, so that the order of sums shows."""
    matrix = sp.csr_array(matrix)
    matrix.sum_duplicates()
    matrix.sort_indices()
    rng = np.random.default_rng(seed)
    if value.startswith("int"):
        bits = rng.integers(-(2**31), 2**31, matrix.nnz).astype(np.int32).view(np.uint32)
    else:
        bits = (
            (rng.normal(size=matrix.nnz) * 2.0 ** rng.integers(-12, 12, matrix.nnz)).astype(np.float32).view(np.uint32)
        )
    return Csr(
        rows=matrix.shape[0],
        columns=matrix.shape[1],
        pointers=matrix.indptr.astype(np.int64),
        coordinates=matrix.indices.astype(np.uint32),
        bits=in_slots(bits, value),
        value=value,
    )


def random_operand(rows: int, columns: int, density: float, value: str, seed: int) -> Csr:
    rng = np.random.default_rng(seed)
    return operand(sp.random_array((rows, columns), density=density, rng=rng, format="csr"), value, seed)


def scheme(
    design: Design,
    tile: tuple[int, int, int],
    order: str = "ijk",
    *,
    a_lines: int = 0,
    b_lines: int | None = None,
    c_lines: int = 0,
    keep_c: bool = True,
    streaming: bool = False,
) -> Scheme:
    """``a_lines``, ``c_lines``: partitions of A and C in buffering mode; 0 for streaming. ``streaming``: of B."""
    b_lines = b_lines or design.sram_lines - (a_lines or 16) - c_lines
    lines = {"a_lines": a_lines, "b_lines": b_lines, "c_lines": c_lines}
    return forced(design.line_bytes, order, tile, **lines, b_streams=streaming, c_stays=keep_c)


def check(design: Design, forced: Scheme, a: Csr, b: Csr, **options: Any) -> dict[str, int]:
    """Runs and compares everything; returns the counters."""
    forced = forced.clip(a.rows, b.columns, a.columns)
    forced.validate(design, a.rows, b.columns, a.columns)
    found = run_rtl(design, plan(forced, a, b, design), max_cycles=5_000_000, poison=True, **options)
    assert found.error is None and found.c is not None
    golden = multiply(a, b, design.pe.merge_radix, design.pe.arithmetic, forced)
    against_scipy = check_against_scipy(a, b, found.c, value=design.pe.arithmetic)
    for verdict in (compare_bits(golden.structural, found.c), against_scipy):
        assert verdict.correct, verdict
    model = run_model(design, plan(forced, a, b, design))
    assert found.dram_bytes == model.dram_bytes
    assert check_counters(found.counters, found.observed, design=design, macs=golden.macs, model=model) == []
    energy = [run_energy(design, of, forced, golden.structural.nnz) for of in (found, model)]
    assert energy[0] is not None and energy[0] == energy[1]
    for key in ("peak_bytes", "hits", "bumped"):
        assert found.buffer["A"][key] == model.buffer["A"][key], key
    return found.counters


# Shapes of a 45 x 60 x 52 product: whole, cut along each rank, cut along all, one coordinate at a time.
TILES = {
    "whole": (45, 52, 60),
    "i": (7, 52, 60),
    "k": (45, 52, 13),
    "j": (45, 11, 60),
    "ik": (20, 52, 25),
    "ijk": (9, 20, 17),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("tile", TILES.values(), ids=TILES.keys())
def test_every_order_and_cut(design: Design, order: str, tile: tuple[int, int, int]) -> None:
    """C leaves and re-enters wherever k is cut; rows are assembled wherever j is cut."""
    value = design.pe.value
    a, b = random_operand(45, 60, 0.1, value, 1), random_operand(60, 52, 0.12, value, 2)
    check(design, scheme(design, tile, order), a, b)


@pytest.mark.parametrize("order", ORDERS)
def test_overbooked_tiles_of_b(design: Design, order: str) -> None:
    value = design.pe.value
    a, b = random_operand(45, 60, 0.1, value, 3), random_operand(60, 52, 0.3, value, 4)
    for tile in (TILES["whole"], TILES["ik"], TILES["ijk"]):
        counters = check(design, scheme(design, tile, order, b_lines=60), a, b)
        assert counters["tiles_overbooked"] > 0 and counters["bumped_fetches"] > 0


@pytest.mark.parametrize("order", [order for order in ORDERS if order[2] == "k"])
@pytest.mark.parametrize("c_lines", [40, 160])
def test_partial_rows_stay_on_chip(design: Design, order: str, c_lines: int) -> None:
    """With the small partition some rows are spilled, with the large one none is."""
    value = design.pe.value
    a, b = random_operand(45, 60, 0.1, value, 5), random_operand(60, 52, 0.12, value, 6)
    for tile in ((20, 52, 13), (20, 15, 13)):
        counters = check(design, scheme(design, tile, order, c_lines=c_lines), a, b)
        assert counters["buffer_peak_c"] > 0


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("c_lines", [6, 80])
def test_partial_rows_come_back_through_the_partition(design: Design, order: str, c_lines: int) -> None:
    """In the small one few rows fit, so that some are read straight from memory."""
    value = design.pe.value
    a, b = random_operand(45, 60, 0.1, value, 5), random_operand(60, 52, 0.12, value, 6)
    for tile in (TILES["k"], TILES["ijk"]):
        check(design, scheme(design, tile, order, c_lines=c_lines, keep_c=False), a, b)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("tile", [(45, 52, 13), (20, 52, 25), (9, 20, 17), (45, 52, 2)], ids=str)
def test_parts_of_rows_are_joined_in_the_last_step(design: Design, order: str, tile: tuple[int, int, int]) -> None:
    """Each part leaves once and comes back once; rows of more leaves than a job takes go in steps."""
    value = design.pe.value
    a, b = random_operand(45, 60, 0.1, value, 1), random_operand(60, 52, 0.12, value, 2)
    forced = scheme(design, tile, order)
    joined = check(design, replace(forced, partial_rows="joined"), a, b)
    carried = run_model(design, plan(forced.clip(45, 52, 60), a, b, design)).counters
    for access in ("read_c_data", "write_c_data"):
        assert joined[access] < carried[access]


@pytest.mark.parametrize("lines", [8, 10, 64])
@pytest.mark.parametrize("tile", [(45, 52, 60), (20, 20, 25)], ids=str)
@pytest.mark.parametrize("keep_c", [False, True])
def test_scratch_fibers_stay_on_chip(design: Design, lines: int, tile: tuple[int, int, int], keep_c: bool) -> None:
    """Rows of many more leaves than a job takes, whole, in tiles, and beside partial rows that stay; values are as without."""
    value, line = design.pe.value, design.line_bytes
    a, b = random_operand(45, 60, 0.5, value, 1), random_operand(60, 52, 0.2, value, 2)
    forced = scheme(design, tile, "ijk", c_lines=64 + 64, keep_c=keep_c)
    spilled = check(design, forced, a, b)
    kept = check(design, replace(forced, scratch_bytes=lines * line), a, b)
    for access in ("read", "write"):
        saved = spilled[f"{access}_scratch"] - kept[f"{access}_scratch"]
        assert spilled[f"{access}_scratch"] > 0
        assert (saved > 0) == (lines >= 10)  # eight lines are no row's, and of the others a row has half
        if not keep_c:  # else partial rows have fewer lines
            assert spilled[f"{access}_c_data"] - kept[f"{access}_c_data"] == saved


@pytest.mark.parametrize("order", ORDERS)
def test_tiles_without_work_leave_no_part(design: Design, order: str) -> None:
    """Along a band most tiles have none: they are left out but for the last step's, and their positions stay unread."""
    band = operand(sp.diags_array([1.0] * 5, offsets=[-2, -1, 0, 1, 2], shape=(66, 66)), design.pe.value, 3)
    forced = scheme(design, (7, 66, 2), order)
    joined = check(design, replace(forced, partial_rows="joined"), band, band)
    carried = run_model(design, plan(forced, band, band, design)).counters
    assert joined["write_c_data"] < carried["write_c_data"] and joined["read_c_data"] < carried["read_c_data"]
    if order[2] != "k":  # else partial rows pass these tiles by as well
        assert 2 * joined["write_c_data"] < carried["write_c_data"]
        assert joined["read_c_meta"] < carried["read_c_meta"] and joined["write_c_meta"] < carried["write_c_meta"]
    check(design, replace(forced, T_j=20, partial_rows="joined"), band, band)


# Rows of a 100-row tile of B in 120 lines of two elements: 50 lines hold its metadata, 40 are the FIFO-managed region and
# 30 are not. A tile of at most 140 elements may use the region, as long as at most 64 segments end in it.
ROOMY = [3] * 20 + [5, 0, 25, 20, 0, 30] + [0] * 74
SHORT = [3] * 20 + [0] * 5 + [1] * 30 + [0] * 5 + [1] * 34 + [0] * 6
FITS = {
    "all of the partition": (ROOMY, 0),
    "one element more": ([*ROOMY[:99], 1], 81),
    "64 segments in the region": (SHORT, 0),
    "65 segments in the region": ([*SHORT[:99], 1], 65),
}


@pytest.mark.parametrize("tile_j", [40, 30])
@pytest.mark.parametrize("lengths, bumped", FITS.values(), ids=FITS.keys())
def test_a_tile_that_fits_uses_the_fifo_managed_region(
    design: Design, lengths: list[int], bumped: int, tile_j: int
) -> None:
    """Rows whole and scanned; what does not fit by one element or by one segment clears the region."""
    value = design.pe.value
    rng = np.random.default_rng(21)
    columns = np.concatenate([np.sort(rng.choice(30, length, replace=False)) for length in lengths])
    b = operand(sp.csr_array((np.ones(len(columns)), columns, np.cumsum([0, *lengths])), shape=(100, 40)), value, 22)
    a = random_operand(30, 100, 0.3, value, 23)
    forced = scheme(design, (30, tile_j, 100), b_lines=120)
    forced = replace(forced, fifo_bytes={**forced.fifo_bytes, "B": 40 * design.line_bytes})
    counters = check(design, forced, a, b)
    assert counters["bumped_elements"] == bumped and (counters["bumped_fetches"] > 0) == (bumped > 0)


J_INNERMOST = ("ikj", "kij")


@pytest.mark.parametrize("order", J_INNERMOST)
@pytest.mark.parametrize("tile", [(45, 11, 60), (45, 11, 13), (20, 11, 25), (9, 20, 17)], ids=str)
def test_tiles_of_a_stay_while_j_moves(design: Design, order: str, tile: tuple[int, int, int]) -> None:
    """Each tile of A that has work is loaded once, and then costs nothing."""
    value = design.pe.value
    a, b = random_operand(45, 60, 0.1, value, 31), random_operand(60, 52, 0.12, value, 32)
    streamed = check(design, scheme(design, tile, order), a, b)
    kept = check(design, scheme(design, tile, order, a_lines=180), a, b)
    assert kept["loads_a"] == -(-45 // tile[0]) * -(-60 // tile[2])
    assert kept["overbooked_a"] == kept["bumped_fetches_a"] == 0
    assert kept["hits_a"] == a.nnz * -(-52 // tile[1])
    assert kept["read_a_data"] * 2 < streamed["read_a_data"] and kept["read_a_meta"] < streamed["read_a_meta"]
    for name in ("read_b_data", "read_b_meta", "read_c_data", "write_c_data", "write_c_meta", "write_a_meta"):
        assert kept[name] == streamed[name], name
    assert streamed["loads_a"] == streamed["hits_a"] == streamed["buffer_peak_a"] == 0


@pytest.mark.parametrize("order", J_INNERMOST)
@pytest.mark.parametrize("a_lines", [70, 24])
def test_overbooked_tiles_of_a(design: Design, order: str, a_lines: int) -> None:
    """With the smaller partition hardly more than the metadata of 45 rows has a place."""
    value = design.pe.value
    a, b = random_operand(45, 60, 0.3, value, 33), random_operand(60, 52, 0.12, value, 34)
    for tile in ((45, 11, 60), (45, 11, 25), (20, 20, 33)):
        counters = check(design, scheme(design, tile, order, a_lines=a_lines), a, b)
        assert counters["overbooked_a"] > 0 and counters["bumped_fetches_a"] > 0
        assert counters["hits_a"] + counters["bumped_fetches_a"] == a.nnz * -(-52 // tile[1])
    both = check(design, scheme(design, (45, 26, 25), order, a_lines=a_lines, b_lines=40), a, b)
    assert both["overbooked_a"] > 0 and both["tiles_overbooked"] > 0


@pytest.mark.parametrize("order", ORDERS)
def test_kept_tiles_of_a_in_any_order(design: Design, order: str) -> None:
    """Where j is not innermost the tile is mostly not in place; the result is right all the same."""
    value = design.pe.value
    a, b = random_operand(45, 60, 0.1, value, 35), random_operand(60, 52, 0.12, value, 36)
    for tile in ((45, 11, 13), (9, 20, 17), (20, 52, 25), (45, 52, 60)):
        check(design, scheme(design, tile, order, a_lines=60), a, b)
    if order[2] == "k":
        check(design, scheme(design, (20, 15, 13), order, a_lines=60, c_lines=60), a, b)


@pytest.mark.parametrize("order", ORDERS)
def test_kept_tiles_of_a_in_bands(design: Design, order: str) -> None:
    """Tiles that only carry partial rows lie between the visits of a kept tile, and whole k steps have no work."""
    value = design.pe.value
    band = operand(sp.diags_array([1.0] * 15, offsets=range(-7, 8), shape=(120, 120)), value, 37)
    gaps = random_operand(120, 120, 0.0015, value, 38)
    for matrix in (band, gaps):
        for tile in ((120, 32, 32), (50, 32, 32), (31, 40, 9)):
            counters = check(design, scheme(design, tile, order, a_lines=100), matrix, matrix)
            assert counters["tiles_skipped"] > 0


def test_metadata_of_a_that_do_not_fit_are_an_error(design: Design) -> None:
    value = design.pe.value
    a, b = random_operand(45, 60, 0.1, value, 39), random_operand(60, 52, 0.12, value, 40)
    forced = scheme(design, (45, 11, 60), "ikj", a_lines=23)
    with pytest.raises(SchemeError, match="buffer_bytes.A"):
        forced.validate(design, 45, 52, 60)
    found = run_rtl(design, plan(forced, a, b, design), max_cycles=100_000)
    assert found.error is not None and "a_metadata_overflow" in found.error and "lines needed: 24" in found.error


def test_streaming_b(design: Design) -> None:
    value = design.pe.value
    a, b = random_operand(45, 60, 0.1, value, 7), random_operand(60, 52, 0.2, value, 8)
    for tile in (TILES["whole"], TILES["ik"]):
        check(design, scheme(design, tile, streaming=True), a, b)


def test_rows_of_more_leaves_than_one_job(design: Design) -> None:
    """Radix 4: rows of up to 60 leaves need scratch fibers, and merges of scratch fibers on the way."""
    value = design.pe.value
    a, b = random_operand(12, 60, 0.7, value, 9), random_operand(60, 52, 0.2, value, 10)
    for tile in ((12, 52, 60), (12, 13, 25)):
        counters = check(design, scheme(design, tile), a, b)
        assert counters["jobs"] > 12


def test_bands_cut_along_j_and_k(design: Design) -> None:
    """Most tiles of a band are empty: begin positions must stay right across those that are skipped."""
    value = design.pe.value
    band = operand(sp.diags_array([1.0] * 15, offsets=range(-7, 8), shape=(120, 120)), value, 11)
    for order in ORDERS:
        for tile in ((120, 32, 32), (50, 32, 32), (31, 40, 9)):
            counters = check(design, scheme(design, tile, order), band, band)
            assert counters["tiles_skipped"] > 0


def test_odd_shapes(design: Design) -> None:
    value = design.pe.value
    shapes = [
        ((1, 30), (30, 40)),
        ((30, 1), (1, 40)),
        ((30, 40), (40, 1)),
        ((1, 1), (1, 1)),
    ]
    for n, (shape_a, shape_b) in enumerate(shapes):
        a, b = (random_operand(*shape, 1.0, value, n) for shape in (shape_a, shape_b))
        check(design, scheme(design, (a.rows, b.columns, a.columns)), a, b)
        check(design, scheme(design, (7, 9, 11), "kij"), a, b)
    empty = operand(sp.csr_array((20, 30)), value)
    full = random_operand(30, 10, 1.0, value, 20)
    for tile in ((20, 10, 30), (6, 4, 7)):
        for order in ("ijk", "jki"):
            assert check(design, scheme(design, tile, order), empty, full)["macs"] == 0


def test_rough_memory(design: Design) -> None:
    """Late, reordered and interleaved answers with pauses on every channel change no bit and no byte."""
    value = design.pe.value
    a, b = random_operand(45, 60, 0.1, value, 13), random_operand(60, 52, 0.2, value, 14)
    timing = BusTiming(read_latency=90, write_latency=70, jitter=60, stall=0.3, reorder=True, seed=5)
    for tile, order in ((TILES["ijk"], "jki"), (TILES["ik"], "kij"), (TILES["whole"], "ijk")):
        check(design, scheme(design, tile, order, b_lines=60), a, b, dram=timing)
    for a_lines in (100, 24):
        check(design, scheme(design, (45, 11, 25), "ikj", a_lines=a_lines, b_lines=60), a, b, dram=timing)


@pytest.mark.parametrize("order", ["ijk", "jik", "kij"])
def test_late_acknowledgements(design: Design, order: str) -> None:
    """What a tile of a few rows writes is in memory long after its last word has left, in any order; the next one reads it."""
    value = design.pe.value
    a, b = random_operand(14, 60, 0.3, value, 13), random_operand(60, 52, 0.3, value, 14)
    timing = BusTiming(read_latency=2, write_latency=1, write_jitter=700, reorder=True, seed=3)
    for tile in ((2, 52, 20), (14, 9, 20)):
        check(design, scheme(design, tile, order, b_lines=60), a, b, dram=timing)


def test_a_real_matrix(design: Design) -> None:
    matrix = operand(pyamg.gallery.load_example("airfoil")["A"], design.pe.value, 15)
    check(design, scheme(design, (matrix.rows, matrix.columns, matrix.columns), streaming=True), matrix, matrix)
    check(design, scheme(design, (600, matrix.columns, 300), "ikj"), matrix, matrix)
    check(design, scheme(design, (300, 900, 400), "kij", a_lines=230), matrix, matrix)


def test_an_asynchronous_reset() -> None:
    """The registers are accessed as soon as the pin says that the reset is over."""
    a, b = random_operand(30, 40, 0.1, "fp32", 21), random_operand(40, 20, 0.1, "fp32", 22)
    check(WITHOUT_TUNING, scheme(WITHOUT_TUNING, (12, 20, 15)), a, b)
