"""The weight-stationary engine behind the whole machine: every cut and order, bit for bit, and the model tier beside it."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import Design, load_design
from gen.verilog import emit_design
from sw.cli.pipeline import golden_product, verify
from sw.engine_result import EngineResult
from sw.golden.stationary_product import bus_words
from sw.golden.weight_stationary import data_per_cycle
from sw.model.tier import simulate
from sw.operands import load
from sw.operands.operand import to_csr
from sw.plan.plan import plan
from sw.runtime.driver import Driver
from sw.runtime.memory_image import build_image
from sw.runtime.simulation.build import build
from sw.runtime.simulation.engine import bus_timing, observe, open_simulation, run_to_end
from sw.runtime.simulation.sources import without_head
from sw.scheme.terms import ORDERS
from tests.verif.test_end_to_end import operand, scheme
from verif.counters import check_counters

pytestmark = pytest.mark.slow

CHANGES = {
    "int32": ["pe.value=int32"],
    "fp32": ["pe.value=fp32", "pe.vector=4", "pe.count=4", "pe.acf_a=coo"],
    "bf16, A in Dense": ["pe.value=bf16", "pe.vector=2", "pe.count=3", "pe.acf_a=dense"],
    "int8, packed": [
        *("pe.value=int8", "pe.overflow=saturate", "pe.vector=1", "pe.count=1", "pe.buffer_entries=4"),
        "memory.records=packed",
    ],
}
# Of the cycles of the hardware.
CYCLES_OFF = 0.08


@pytest.fixture(scope="module", params=CHANGES)
def design(request: pytest.FixtureRequest) -> Design:
    return load_design("flex_tiny", CHANGES[request.param])


@pytest.fixture(scope="module")
def library(design: Design) -> Path:
    emitted = emit_design(design)
    sources = {name: without_head(emitted.files[name]) for name in emitted.sources}
    return build(sources, top="accelerator", data_bits=design.axi.data_bits, optimize="-O0")


def operands(
    design: Design, shape: tuple[int, int, int], densities: tuple[float, float] = (0.2, 0.2), wide: bool = False
) -> Any:
    """A and B with an empty row and an empty column; ``wide``: two columns of B are full."""
    (i, j, k), rng = shape, np.random.default_rng(7)
    a = sp.lil_array(sp.random_array((i, k), density=densities[0], rng=rng))
    b = sp.lil_array(sp.random_array((k, j), density=densities[1], rng=rng))
    if wide:
        b[:, [2, j - 1]] = 1.0
    a[min(7, i - 1)], b[:, [min(3, j - 1)]] = 0, 0
    return operand(sp.csr_array(a), design.pe.value, 1), operand(sp.csr_array(b), design.pe.value, 2)


def product(
    library: Path, design: Design, tile: tuple[int, int, int], order: str, a: Any, b: Any, **options: Any
) -> tuple[dict[str, int], EngineResult]:
    """Runs A by B, compares C bit for bit and every beat with the model; returns the counters and the model's result."""
    sides = (tile[0], min(tile[1], design.pe.count), tile[2])
    forced = scheme(design, sides, order, **options)
    planned = plan(forced, a, b, design)
    image = build_image(design, planned, poison=True)
    with open_simulation(library, image, bus_timing(design)) as simulation:
        driver = Driver(simulation)
        driver.identify(design)
        driver.load(image)
        driver.start()
        run_to_end(simulation, driver, a.nnz, lambda share, text: None, 2_000_000)
        driver.check()
        c, counters, observed = driver.result(image), driver.counters(), observe(simulation, image)
        assert simulation.statistics.clean, simulation.statistics.messages
    golden, _ = golden_product(design, forced, a, b)
    checks = verify(a, b, golden, EngineResult(c=c))
    assert all(check.correct for check in checks), [check for check in checks if not check.correct]
    assert not image.spilled(c.nnz)
    model = simulate(design, planned)
    exact = [name for name in counters if name.startswith(("read_", "write_"))]
    assert {name: counters[name] for name in exact} == {name: model.counters[name] for name in exact}
    assert check_counters(counters, observed, design=design, macs=golden.macs, model=model) == []
    # Every PE is busy in each cycle of the bus: those that carry A, and at most one without data for a tile.
    busy, rest = divmod(counters["pe_busy"], design.pe.count)
    carried = cycles_on_bus(design, sides, a, b)
    tiles = math.prod(-(-size // side) for size, side in zip((a.rows, b.columns, a.columns), sides, strict=True))
    assert not rest and carried <= busy <= carried + tiles
    return counters, model


def cycles_on_bus(design: Design, tile: tuple[int, int, int], a: Any, b: Any) -> int:
    """Cycles of the PEs' bus that carry A, where B's tile has nonzeros too: nonzeros of each row of each tile by itself; in Dense
    all places of each tile of A with a nonzero.
    """
    pe = design.pe
    most = data_per_cycle(pe.acf_a, bus_words(pe.acf_a, pe.vector), pe.vector)
    row = np.repeat(np.arange(a.rows), np.diff(a.pointers))
    steps = -(-a.columns // tile[2])
    step = a.coordinates // tile[2]
    if pe.acf_a == "dense":
        parts = np.unique(row // tile[0] * steps + step)
        rows = np.minimum(tile[0], a.rows - parts // steps * tile[0])
        cycles = rows * -(-np.minimum(tile[2], a.columns - parts % steps * tile[2]) // most)
    else:
        parts, counts = np.unique(row * steps + step, return_counts=True)
        cycles = -(-counts // most)
    of_step = np.bincount(parts % steps, cycles, steps)
    row_of_b = np.repeat(np.arange(b.rows), np.diff(b.pointers))
    columns = -(-b.columns // tile[1])
    filled = np.unique(row_of_b // tile[2] * columns + b.coordinates // tile[1])
    return int(of_step[filled // columns].sum())


KEPT: dict[str, dict[str, Any]] = {
    "B kept": {},
    "A kept, B overbooked": {"b_lines": 10, "a_lines": 40},
    "B streamed": {"streaming": True},
}
CASES = [
    (name, order)
    for name, orders in zip(KEPT, (ORDERS, ("ijk", "jki", "kij"), ("ijk", "kji")), strict=True)
    for order in orders
]


@pytest.mark.parametrize(("name", "order"), CASES)
def test_products(library: Path, design: Design, name: str, order: str) -> None:
    """All three ranks cut, j by the number of PEs; in streaming mode k is whole. Two columns overflow their buffers."""
    a, b = operands(design, (9, 5, 24), wide=True)
    side = 24 if name == "B streamed" else 11
    product(library, design, (4, 2, side), order, a, b, **KEPT[name])


def test_partial_rows_stay_on_chip(library: Path, design: Design) -> None:
    a, b = operands(design, (9, 5, 24), wide=True)
    for lines in (40, 14):
        counters, _ = product(library, design, (9, 2, 9), "jik", a, b, c_lines=lines)
        assert (counters["read_c_data"] > 0) and (counters["buffer_peak_c"] > 0)


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 9, 3), (3, 2, 70)])
def test_shapes(library: Path, design: Design, shape: tuple[int, int, int]) -> None:
    a, b = operands(design, shape, (0.6, 0.6))
    counters, _ = product(library, design, shape, "jki", a, b)
    assert counters["rows"] == shape[0] * -(-shape[1] // design.pe.count)


def test_columns_stay_in_the_pes(library: Path, design: Design) -> None:
    """While i moves, the columns are sent once, whatever memory they come from."""
    a, b = operands(design, (40, 2, 8), (0.5, 0.5))
    whole, _ = product(library, design, (40, 2, 8), "jki", a, b, streaming=True)
    parts, _ = product(library, design, (10, 2, 8), "jki", a, b, streaming=True)
    assert whole["read_b_data"] == parts["read_b_data"] > 0


def test_what_overflows_a_buffer_comes_once_more_in_each_row(library: Path, design: Design) -> None:
    """B streamed: the cost of a column that a PE cannot hold is counted in beats and in cycles."""
    a, narrow = operands(design, (12, 1, 64), (0.3, 0.02))
    _, wide = operands(design, (12, 1, 64), (0.3, 1.0))
    wide = operand(sp.csr_array(np.ones((64, 1))), design.pe.value, 2)
    fits, _ = product(library, design, (12, 1, 64), "jki", a, narrow, streaming=True)
    overflows, _ = product(library, design, (12, 1, 64), "jki", a, wide, streaming=True)
    assert fits["pe_stall_input"] == 0 < overflows["pe_stall_input"]
    assert overflows["bumped_fetches"] > 5 * wide.nnz


def test_full_columns_take_half_the_entries(library: Path, design: Design) -> None:
    """A column with a nonzero in every row of the tile goes in Dense: as many nonzeros as the buffer has entries fit.

    With one nonzero less it goes in CSC, and overflows. With one more it overflows in Dense.
    """
    entries = design.pe.buffer_entries
    for rows, gaps, fits in ((entries, 0, True), (entries, 1, False), (entries + 1, 0, False)):
        a, _ = operands(design, (12, 1, rows), (0.5, 0.5))
        values = np.ones((rows, 1))
        values[rows // 2 : rows // 2 + gaps] = 0
        b = operand(sp.csr_array(values), design.pe.value, 2)
        counters, model = product(library, design, (12, 1, rows), "jki", a, b)
        assert (counters["merged"] == b.nnz) == fits == (counters["pe_stall_input"] == 0)
        assert model.counters["merged"] == counters["merged"]


@pytest.mark.parametrize("densities", [(0.05, 0.1), (0.3, 0.05), (0.5, 0.5)])
def test_cycles(library: Path, design: Design, densities: tuple[float, float]) -> None:
    a, b = operands(design, (90, 4, 60), densities)
    counters, model = product(library, design, (90, 2, 60), "jki", a, b)
    assert model.cycles == pytest.approx(counters["cycles"], rel=CYCLES_OFF)


def test_cycles_of_long_rows_that_are_cut(library: Path, design: Design) -> None:
    """A scan for a segment's end waits for a chunk in the middle of a row."""
    a, b = operands(design, (60, 4, 120), (0.8, 0.1))
    counters, model = product(library, design, (60, 2, 30), "jik", a, b)
    assert model.cycles == pytest.approx(counters["cycles"], rel=CYCLES_OFF)


def test_convolution(library: Path, design: Design) -> None:
    """Weights by unfolded images on the hardware, and the product against a direct convolution."""
    images = load("im2col:2x5x4:3x2:padding=1:stride=2:uniform:4:20:0.5")
    weights = load("uniform:3:12:0.5")
    a, b = to_csr(weights, design.pe.value), to_csr(images, design.pe.value)
    product(library, design, (3, 2, 7), "jik", a, b)
    golden, _ = golden_product(design, scheme(design, (3, min(2, design.pe.count), 7)), a, b)
    checks = verify(a, b, golden, None, images.unfolded)
    assert all(check.correct for check in checks) and len(checks) == 3


def test_tiles_wider_than_the_array_are_refused(library: Path, design: Design) -> None:
    """By the hardware, whatever a driver writes, and before the run begins."""
    a, b = operands(design, (5, 9, 5))
    image = build_image(design, plan(scheme(design, (5, 1, 5)), a, b, design))
    with open_simulation(library, image, bus_timing(design)) as simulation:
        driver = Driver(simulation)
        driver.load(image)
        driver.write("TILE_J", design.pe.count + 1)
        driver.start()
        run_to_end(simulation, driver, a.nnz, lambda share, text: None, 100_000)
        assert (driver.error() or "").startswith("bad_tile_shape")
