"""An engine of another kind behind the same machine: products by dot products with columns of B."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from gen import elaborate
from gen.design import Design, load_design
from gen.verilog import emit_design
from sw.formats.csr import Csr
from sw.plan.plan import plan
from sw.runtime.driver import Driver
from sw.runtime.memory_image import build_image
from sw.runtime.simulation.build import build
from sw.runtime.simulation.engine import bus_timing, open_simulation, run_to_end
from sw.runtime.simulation.sources import without_head
from sw.scheme.scheme import Scheme
from tests.rtl.engine.inner_product import InnerProductEngine
from tests.verif.test_end_to_end import scheme

SIDE = 40


@pytest.fixture(scope="module")
def design() -> Design:
    return load_design("tiny", ["tuning.dynamic=false"])


@pytest.fixture(scope="module")
def library(design: Design) -> Any:
    """The compiled simulation of that machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(elaborate.ENGINES, "gustavson", InnerProductEngine)
        emitted = emit_design(design)
    sources = {name: without_head(emitted.files[name]) for name in emitted.sources}
    assert any("inner_product_engine" in name for name in sources)
    return build(sources, top="accelerator", data_bits=design.axi.data_bits, optimize="-O0")


def symmetric_pattern(density: float, seed: int) -> sp.csr_array:
    """A matrix whose transpose has the same pattern and other values, so that both need as much memory; one row is empty."""
    rng = np.random.default_rng(seed)
    drawn = np.triu(rng.random((SIDE, SIDE)) < density)
    drawn[7] = drawn[:, 7] = False
    return sp.csr_array(np.where(drawn | drawn.T, rng.integers(-(2**31), 2**31, (SIDE, SIDE)), 0))


def csr(matrix: sp.csr_array) -> Csr:
    return Csr(
        rows=SIDE,
        columns=SIDE,
        pointers=matrix.indptr.astype(np.int64),
        coordinates=matrix.indices.astype(np.uint32),
        bits=matrix.data.astype(np.int32).view(np.uint32),
        value="int32",
    )


def product(library: Any, design: Design, forced: Scheme, a: sp.csr_array, b: sp.csr_array) -> dict[str, int]:
    """Runs A by B, which lies in memory by columns; compares C with SciPy's and returns the counters."""
    by_columns = sp.csr_array(b.T)
    by_columns.sort_indices()
    image = build_image(design, plan(forced, csr(a), csr(by_columns), design), poison=True)
    with open_simulation(library, image, bus_timing(design)) as simulation:
        driver = Driver(simulation)
        driver.identify(design)
        driver.load(image)
        driver.start()
        run_to_end(simulation, driver, a.nnz, lambda share, text: None, 2_000_000)
        driver.check()
        c, counters = driver.result(image), driver.counters()
    found = sp.csr_array((c.bits.view(np.int32).astype(np.int64), c.coordinates, c.pointers), shape=(SIDE, SIDE))
    wrapped = (a.toarray() @ b.toarray()).astype(np.int64).astype(np.int32)
    assert np.array_equal(found.toarray(), wrapped)
    pattern = (a != 0).astype(np.int64) @ (b != 0).astype(np.int64)
    assert (c.nnz, counters["macs"]) == (pattern.nnz, pattern.sum()), "what meets is stored, zero or not"
    return counters


@pytest.mark.slow
@pytest.mark.parametrize("height", [SIDE, 9])
@pytest.mark.parametrize(
    "options",
    [{}, {"streaming": True}, {"b_lines": 30}, {"a_lines": 40}],
    ids=["resident", "streaming", "overbooked", "A kept"],
)
def test_products(library: Any, design: Design, options: dict[str, Any], height: int) -> None:
    """B in its partition, from memory, some of it bumped; whole or one block of rows of A after another."""
    a, b = symmetric_pattern(0.2, 1), symmetric_pattern(0.1, 2)
    forced = scheme(design, (height, SIDE, SIDE), **options)
    counters = product(library, design, forced, a, b)
    assert counters["rows"] == SIDE
    assert (counters["tiles_overbooked"] > 0) == ("b_lines" in options)
    assert (counters["read_b_data"] > b.nnz) == bool({"streaming", "b_lines"} & set(options)), (
        "what is not resident comes again"
    )


@pytest.mark.slow
def test_it_tells_what_is_wrong_as_the_other_one_does(library: Any, design: Design) -> None:
    """A column of A beyond its tile: the machine's own checks stand before any engine."""
    a = symmetric_pattern(0.2, 1)
    forced = scheme(design, (SIDE, SIDE, SIDE))
    image = build_image(design, plan(forced, csr(a), csr(a), design), poison=True)
    with open_simulation(library, image, bus_timing(design)) as simulation:
        driver = Driver(simulation)
        driver.load(image)
        driver.write("SHAPE_K", SIDE - 1)
        driver.start()
        run_to_end(simulation, driver, a.nnz, lambda share, text: None, 2_000_000)
        assert (driver.error() or "").startswith("bad_coordinate")
