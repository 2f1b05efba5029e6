"""Bands in the whole machine, tiles along i that keep rows of B for those after them: against golden, SciPy and the model."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import Design
from sw.formats.csr import Csr
from sw.plan.plan import plan
from sw.runtime.memory_image import build_image
from sw.runtime.registers import field_value
from sw.runtime.simulation.loader import BusTiming
from sw.scheme.scheme import Scheme
from sw.scheme.terms import ORDERS
from tests.verif.test_end_to_end import check, design, operand, random_operand, scheme

pytestmark = pytest.mark.slow
__all__ = ["design"]  # the fixture


def windowed(
    design: Design, columns: int, inner: int, T_i: int, *, order: str = "ijk", b_lines: int | None = None
) -> Scheme:
    """Tiles of ``T_i`` rows that load what they use."""
    return replace(scheme(design, (T_i, columns, inner), order, b_lines=b_lines), load="list")


def band(rows: int, columns: int, width: int, value: str, seed: int, filled: float = 1.0) -> Csr:
    """Each row's elements within ``width`` of where the diagonal is, all of them or a share."""
    rng = np.random.default_rng(seed)
    matrix = np.zeros((rows, columns), np.int8)
    for row in range(rows):
        middle = row * columns // rows
        low, high = max(0, middle - width), min(columns, middle + width + 1)
        matrix[row, low:high] = rng.random(high - low) < filled
    return operand(matrix, value, seed)


def is_listed(design: Design, forced: Scheme, a: Csr, b: Csr) -> bool:
    """Whether the hardware reads a list of rows; it needs none where windows are ranges of k."""
    return bool(field_value("MODES", "listed", build_image(design, plan(forced, a, b, design)).registers["MODES"]))


@pytest.mark.parametrize(("order", "T_i"), [*((order, 16) for order in ORDERS), ("ijk", 1), ("ijk", 7), ("ijk", 60)])
def test_bands(design: Design, order: str, T_i: int) -> None:
    value = design.pe.value
    a, b = band(60, 80, 6, value, 1), random_operand(80, 50, 0.1, value, 2)
    forced = windowed(design, 50, 80, T_i, order=order)
    assert not is_listed(design, forced, a, b)
    counters = check(design, forced, a, b)
    assert counters["tiles_total"] == -(-60 // T_i)
    assert counters["read_c_meta"] == 0, "no partial rows come back"


def shapes(value: str) -> dict[str, Csr]:
    """Left operands whose windows are of a kind each."""
    steps = np.zeros((40, 64), np.int8)
    for tile in range(5):  # windows beside each other, and the last again at the front
        steps[8 * tile : 8 * tile + 8, 16 * (tile % 4) : 16 * (tile % 4) + 16] = 1
    gaps = steps.copy()
    gaps[8:24] = 0
    same = np.zeros((40, 64), np.int8)
    same[:, [5, 20]] = 1
    grown = np.zeros((40, 64), np.int8)  # windows that begin alike and end elsewhere
    for tile in range(5):
        grown[8 * tile : 8 * tile + 8, 3 : 8 + 10 * tile] = 1
    alone = np.zeros((40, 64), np.int8)
    alone[17, 63] = 1
    return {
        "beside each other": operand(steps, value, 1),
        "empty tiles": operand(gaps, value, 2),
        "the same again": operand(same, value, 3),
        "grown": operand(grown, value, 4),
        "shrunk": operand(grown[::-1], value, 5),
        "one element at the end": operand(alone, value, 6),
        "nothing": operand(np.zeros((40, 64), np.int8), value, 7),
        "scattered": random_operand(40, 64, 0.05, value, 8),
    }


@pytest.mark.parametrize("name", list(shapes("int32")))
def test_kinds_of_windows(design: Design, name: str) -> None:
    value = design.pe.value
    a, b = shapes(value)[name], random_operand(64, 33, 0.15, value, 9)
    counters = check(design, windowed(design, 33, 64, 8), a, b)
    empty = int((np.diff(a.pointers[::8]) == 0).sum())
    assert counters["tiles_skipped"] == empty


def test_the_same_window_is_loaded_once(design: Design) -> None:
    value = design.pe.value
    a, b = shapes(value)["the same again"], random_operand(64, 33, 0.15, value, 9)
    once, often = (check(design, windowed(design, 33, 64, T_i), a, b)["read_b_data"] for T_i in (40, 8))
    assert once == often > 0


@pytest.mark.parametrize(("T_i", "b_lines"), [(4, 110), (4, 90), (9, 130), (1, 80)])
def test_rows_of_a_band_are_read_once(design: Design, T_i: int, b_lines: int) -> None:
    """What the next windows have too stays in place while data and entries go round the partition many times."""
    value = design.pe.value
    a, b = band(300, 300, 5, value, 13), random_operand(300, 90, 0.06, value, 14)
    forced = windowed(design, 90, 300, T_i, b_lines=b_lines)
    assert not is_listed(design, forced, a, b)
    counters = check(design, forced, a, b)
    loads = -(-300 // T_i)
    assert counters["tiles_overbooked"] == 0
    assert counters["read_b_data"] <= -(-b.nnz // design.lanes) + loads, "but for lines that two loads share"
    assert counters["read_b_meta"] <= -(-300 // (2 * design.lanes)) + 2 * loads
    assert b.nnz > 5 * b_lines * design.lanes, "the partition is filled again and again"


def test_chains_that_begin_anew(design: Design) -> None:
    """Windows to and fro: what is kept, what is reloaded and another ring of entries take turns."""
    value = design.pe.value
    rng = np.random.default_rng(15)
    dense = np.zeros((240, 200), np.int8)
    for tile in range(60):
        begin = int(abs((9 * tile) % 320 - 160)) // 2 + int(rng.integers(0, 12))
        dense[4 * tile : 4 * tile + 4, begin : begin + int(rng.integers(4, 50))] = 1
    a, b = operand(dense * (rng.random(dense.shape) < 0.4), value, 16), random_operand(200, 70, 0.1, value, 17)
    for b_lines in (40, 90):
        counters = check(design, windowed(design, 70, 200, 4, b_lines=b_lines), a, b)
        assert counters["bumped_fetches"] > 0 or b_lines == 90


@pytest.mark.parametrize("b_lines", [24, 40, 90])
def test_overbooked_windows(design: Design, b_lines: int) -> None:
    value = design.pe.value
    a, b = band(60, 60, 5, value, 3), random_operand(60, 52, 0.3, value, 4)
    counters = check(design, windowed(design, 52, 60, 12, b_lines=b_lines), a, b)
    assert counters["tiles_overbooked"] > 0 and counters["bumped_fetches"] > 0


@pytest.mark.parametrize("filled", [0.2, 0.5])
def test_bands_with_gaps(design: Design, filled: float) -> None:
    value = design.pe.value
    a, b = band(60, 80, 6, value, 1, filled), random_operand(80, 50, 0.1, value, 2)
    check(design, windowed(design, 50, 80, 8), a, b)


@pytest.mark.parametrize("timing", [BusTiming(read_latency=300), BusTiming(jitter=60, stall=0.4, reorder=True, seed=3)])
def test_slow_and_rough_memory(design: Design, timing: BusTiming) -> None:
    value = design.pe.value
    a, b = band(50, 50, 6, value, 7), random_operand(50, 50, 0.2, value, 8)
    check(design, windowed(design, 50, 50, 9), a, b, dram=timing)


def test_rows_of_more_leaves_than_a_job_takes(design: Design) -> None:
    value = design.pe.value
    dense = np.zeros((20, 60), np.int8)
    dense[:, 10:50] = 1
    a, b = operand(dense, value, 9), random_operand(60, 25, 0.2, value, 10)
    check(design, windowed(design, 25, 60, 5), a, b)


def widened(matrix: Csr) -> Csr:
    """With one element far from the others of its row."""
    pattern = sp.csr_array((np.ones(matrix.nnz), matrix.coordinates, matrix.pointers), (matrix.rows, matrix.columns))
    pattern = sp.lil_array(pattern)
    pattern[2, matrix.columns - 1] = 1
    return operand(pattern, matrix.value, 1)


@pytest.mark.parametrize("change", [widened, lambda matrix: matrix])
def test_one_element_outside_makes_a_list(design: Design, change: Callable[[Csr], Csr]) -> None:
    value = design.pe.value
    a, b = change(band(30, 50, 4, value, 5)), random_operand(50, 20, 0.2, value, 6)
    forced = windowed(design, 20, 50, 10)
    assert is_listed(design, forced, a, b) is (change is widened)
    check(design, forced, a, b)
