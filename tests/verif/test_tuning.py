"""Dynamic tuning on the whole machine: golden, model and hardware decide alike, whatever the schedule had said.

Each run of the compiled simulation of `tiny` is compared with the golden product for the tiles of the golden walk, bit for
bit (`fp32` values span magnitudes, so that another cut shows), and with the model tier: traffic to the byte, tiles visited
and skipped, changes of shape.
"""

from typing import Any

import numpy as np
import pyamg.gallery
import pytest
import scipy.sparse as sp

from gen.design import Design, load_design
from sw.formats.csr import Csr
from sw.golden.compare import check_against_scipy, compare_bits
from sw.golden.partition import Partition
from sw.golden.spgemm import multiply
from sw.golden.tuned_walk import tuned_walk
from sw.model.machine import run_model
from sw.plan.plan import plan
from sw.runtime.simulation.engine import run_rtl
from sw.scheme.scheme import Scheme
from sw.scheme.terms import ORDERS
from tests.forced import forced
from tests.verif.test_end_to_end import WITHOUT_TUNING
from verif.counters import check_counters

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def design() -> Design:
    return load_design("tiny", ["pe.value=fp32"])


def operand(matrix: Any, seed: int) -> Csr:
    matrix = sp.csr_array(matrix)
    matrix.sum_duplicates()
    matrix.sort_indices()
    rng = np.random.default_rng(seed)
    values = rng.normal(size=matrix.nnz) * 2.0 ** rng.integers(-12, 12, matrix.nnz)
    return Csr.from_scipy(matrix, values.astype(np.float32).view(np.uint32), "fp32")


def random_operand(rows: int, columns: int, density: float, seed: int) -> Csr:
    return operand(sp.random_array((rows, columns), density=density, rng=np.random.default_rng(seed)), seed)


def uneven(seed: int) -> Csr:
    """120 x 100 with dense, sparse and empty regions."""
    rng = np.random.default_rng(seed)
    densities = ((0.5, 0.01), (0.0, 0.1), (0.02, 0.7))
    return operand(
        sp.block_array([[sp.random_array((40, 50), density=d, rng=rng) for d in row] for row in densities]), seed
    )


def scheme(
    design: Design,
    order: str,
    tile: tuple[int, int, int],
    *,
    b_lines: int,
    a_lines: int = 0,
    c_lines: int = 0,
    tuning: bool = True,
) -> Scheme:
    lines = {"a_lines": a_lines, "b_lines": b_lines, "c_lines": c_lines}
    return forced(design.line_bytes, order, tile, **lines, c_stays=order[2] == "k", tuning=tuning)


def check(design: Design, forced: Scheme, a: Csr, b: Csr) -> dict[str, int]:
    """Runs and compares everything; returns the counters."""
    forced = forced.clip(a.rows, b.columns, a.columns)
    forced.validate(design, a.rows, b.columns, a.columns)
    found = run_rtl(design, plan(forced, a, b, design), max_cycles=5_000_000, poison=True)
    assert found.error is None and found.c is not None
    lines, fifo = (size["B"] // design.line_bytes for size in (forced.buffer_bytes, forced.fifo_bytes))
    tile = (forced.T_i, forced.T_j, forced.T_k)
    walk = tuned_walk(tile, forced.order, a, b, Partition(lines=lines, fifo_lines=fifo, lanes=design.lanes))
    golden = multiply(a, b, design.pe.merge_radix, design.pe.value, forced, walk)
    for verdict in (compare_bits(golden.structural, found.c), check_against_scipy(a, b, found.c)):
        assert verdict.correct, verdict
    model = run_model(design, plan(forced, a, b, design))
    assert [(c["tile"], c["T_j"], c["T_k"]) for c in model.adjustments] == walk.adjustments
    assert found.dram_bytes == model.dram_bytes
    assert check_counters(found.counters, found.observed, design=design, macs=golden.macs, model=model) == []
    return found.counters


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("factor", [0.25, 0.5, 1, 2, 4])
@pytest.mark.parametrize("rank", "jk")
def test_wrong_schedules(design: Design, order: str, factor: float, rank: str) -> None:
    """One side too long or too short by 2 or 4, in every order, with i cut and not."""
    a, b = random_operand(45, 120, 0.1, 1), uneven(2)
    side = {"j": 24, "k": 32}
    side[rank] = int(side[rank] * factor)
    changes = 0
    for tile_i in (45, 20):
        counters = check(design, scheme(design, order, (tile_i, side["j"], side["k"]), b_lines=200), a, b)
        changes += counters["tuning_adjustments"]
    assert changes > 0


@pytest.mark.parametrize("order", ORDERS)
def test_kept_tiles_of_a_and_c(design: Design, order: str) -> None:
    a, b = random_operand(45, 120, 0.1, 3), uneven(4)
    for tile in ((45, 100, 30), (20, 24, 120), (45, 12, 16)):
        for a_lines, c_lines in ((100, 0), (60, 60), (0, 60)):
            check(design, scheme(design, order, tile, a_lines=a_lines, c_lines=c_lines, b_lines=150), a, b)


@pytest.mark.parametrize("order", ORDERS)
def test_whole_sides_and_bands(design: Design, order: str) -> None:
    """A schedule that cuts nothing; tiles that are mostly empty."""
    a, b = random_operand(45, 120, 0.05, 5), random_operand(120, 100, 0.3, 6)
    for tile in ((45, 100, 120), (20, 100, 120), (45, 100, 60), (45, 50, 120)):
        check(design, scheme(design, order, tile, b_lines=180), a, b)
    band = operand(sp.diags_array([1.0] * 15, offsets=range(-7, 8), shape=(120, 120)), 7)
    for tile in ((120, 32, 32), (50, 16, 64), (31, 40, 9)):
        counters = check(design, scheme(design, order, tile, b_lines=120), band, band)
        assert counters["tiles_skipped"] > 0


def test_off_means_off(design: Design) -> None:
    """With tuning off the machine takes the cycles of one that has no hardware for it, however that is reset."""
    a, b = random_operand(45, 120, 0.1, 8), uneven(9)
    for order in ("jki", "kij"):
        forced = scheme(design, order, (20, 24, 32), b_lines=200, tuning=False)
        one, other = (
            run_rtl(each, plan(forced, a, b, each), max_cycles=5_000_000) for each in (design, WITHOUT_TUNING)
        )
        one.counters.pop("tuning_adjustments")
        other.counters.pop("tuning_adjustments")
        assert one.counters == other.counters and one.dram_bytes == other.dram_bytes


def test_hardware_without_tuning_refuses_it(design: Design) -> None:
    a, b = random_operand(45, 120, 0.1, 8), uneven(9)
    forced = scheme(design, "jki", (45, 24, 32), b_lines=200)
    found = run_rtl(WITHOUT_TUNING, plan(forced, a, b, WITHOUT_TUNING), max_cycles=100_000)
    assert found.error is not None and "bad_mode" in found.error


@pytest.mark.parametrize("order", ["jki", "kij"])
@pytest.mark.parametrize("factors", [(2, 1), (4, 1), (1, 4), (0.5, 0.5)])
def test_a_real_matrix(design: Design, order: str, factors: tuple[float, float]) -> None:
    matrix = operand(pyamg.gallery.load_example("airfoil")["A"], 15)
    sides = (int(64 * factors[0]), int(64 * factors[1]))
    counters = check(design, scheme(design, order, (matrix.rows, *sides), b_lines=200), matrix, matrix)
    assert counters["tuning_adjustments"] > 0
