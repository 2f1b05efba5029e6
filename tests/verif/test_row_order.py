"""A's rows in another order, in the whole machine: C is what it is in the natural one, whatever the tiles."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gen.design import Design, load_design
from sw.cli.pipeline import golden_product
from sw.formats.csr import Csr
from sw.golden.compare import check_against_scipy, compare_bits
from sw.model.machine import run_model
from sw.plan.plan import plan
from sw.plan.row_order import in_order
from sw.runtime.simulation.engine import run_rtl
from sw.scheme.scheme import Scheme
from sw.scheme.terms import LOAD_LIST, LOAD_PLANNED
from tests.verif.test_end_to_end import TILES, random_operand, scheme
from tests.verif.test_end_to_end import check as check_untuned
from tests.verif.test_lists import clustered, listed
from tests.verif.test_strips import strips

pytestmark = pytest.mark.slow

ORDERS = ("rcm", "greedy", "file")


@pytest.fixture(scope="module", params=["plain", "packed"])
def design(request: pytest.FixtureRequest) -> Design:
    return load_design("tiny", ["pe.value=fp32", f"memory.records={request.param}"])


@pytest.fixture(params=ORDERS)
def order(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An order by name, or a file with any one of 64 rows."""
    if request.param != "file":
        return str(request.param)
    np.save(tmp_path / "order.npy", np.random.default_rng(8).permutation(64))
    return str(tmp_path / "order.npy")


def shuffled(design: Design) -> tuple[Csr, Csr]:
    """A whose neighbours in use lie far apart, and B."""
    value = design.pe.value
    return clustered(64, 80, value, 1), random_operand(80, 50, 0.12, value, 2)


@pytest.mark.parametrize("tile", [TILES["whole"], TILES["k"], TILES["ijk"]], ids=["whole", "k", "ijk"])
def test_tiles(design: Design, order: str, tile: tuple[int, int, int]) -> None:
    a, b = shuffled(design)
    for forced in (scheme(design, tile, "jki"), scheme(design, tile, "jik", c_lines=160)):
        check_untuned(design, replace(forced, row_order=order), a, b)


def test_lists_and_strips(design: Design, order: str) -> None:
    a, b = shuffled(design)
    of_lists = [listed(design, a, 50, 8, b_lines=80, load=load) for load in (LOAD_LIST, LOAD_PLANNED)]
    for forced in (*of_lists, strips(design, a, b, 8, 13, 80)):
        check_untuned(design, replace(forced, row_order=order), a, b)


def test_tuned_tiles(design: Design, order: str) -> None:
    """Which tiles are empty follows from the order, and with that where k is cut: golden meets the rows in it as well."""
    a, b = shuffled(design)
    whole = scheme(design, (16, 25, 20), "jki", b_lines=100)
    tuned = replace(whole, tuning=True, row_order=order).clip(a.rows, b.columns, a.columns)
    product, changes = golden_product(design, tuned, a, b)
    planned = plan(tuned, a, b, design)
    found = run_rtl(design, planned, max_cycles=5_000_000, poison=True)
    assert found.error is None and found.c is not None
    for verdict in (compare_bits(product.structural, found.c), check_against_scipy(a, b, product.canonical)):
        assert verdict.correct, verdict
    model = run_model(design, planned)
    assert found.dram_bytes == model.dram_bytes
    assert len(changes) == found.counters["tuning_adjustments"] > 0


def test_fewer_rows_of_b_are_loaded(design: Design) -> None:
    """Rows that use the same rows of B lie far apart in the natural order, and come one after the other in the greedy one."""
    value = design.pe.value
    a, b = clustered(200, 90, value, 3), random_operand(90, 70, 0.2, value, 4)
    a = in_order(a, np.random.default_rng(1).permutation(a.rows))
    read = {
        name: check_untuned(design, _listed(design, a, name), a, b)["read_b_data"] for name in ("natural", "greedy")
    }
    assert read["greedy"] < 0.7 * read["natural"], read


def _listed(design: Design, a: Csr, order: str) -> Scheme:
    return replace(listed(design, a, 70, 8, b_lines=120), row_order=order)
