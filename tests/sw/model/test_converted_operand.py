"""The model of B on its way in: each pass over it from its first byte to its last, no pointers, nothing written."""

from dataclasses import replace

import pytest

from gen.design import load_design
from sw.formats.csr import Csr
from sw.model.converted_tensor import ConvertedTensor
from sw.model.machine import run_model
from sw.plan.kept_matrix import KeptMatrix
from sw.plan.plan import plan
from sw.plan.tiles_of_b import passes_made_over_b
from sw.runtime.registers import CONVERTED
from sw.scheme.terms import ORDERS
from tests.sw.plan.test_tiles_of_b import random, scheme

TINY = load_design("tiny", ["memory.records=packed", "memory.converts_a=true", "memory.converts_b=true"])
SHAPE = 45, 52, 60


def operands(density=0.08) -> tuple[Csr, Csr]:
    return random(SHAPE[0], SHAPE[2], density, 1), random(SHAPE[2], SHAPE[1], 0.12, 2)


@pytest.mark.parametrize("kind", CONVERTED)
@pytest.mark.parametrize("order", ORDERS)
def test_bytes_of_every_order(order, kind):
    """B's are those of its format, once a pass; all other tensors move as without."""
    a, b = operands()
    planned = plan(scheme((9, 52, 17), order), a, b, TINY)
    kept = KeptMatrix.of(b, kind)
    plain, found = run_model(TINY, planned), run_model(TINY, replace(planned, stored_b=kept))
    passes = passes_made_over_b(planned)
    assert passes == (5 if order.index("i") < order.index("k") else 1)
    assert found.counters["read_b_data"] == passes * kept.kept.beats(TINY.bus_bytes)
    # Bits of the map: one line, 5 x 4 and 4 x 1 tiles.
    assert found.counters["read_b_meta"] == TINY.buffer.line_beats < plain.counters["read_b_meta"]
    assert found.counters["write_b_meta"] == 0
    assert {t: plain.dram_bytes[t] for t in "AC"} == {t: found.dram_bytes[t] for t in "AC"}
    for name in ("macs", "merged", "jobs", "leaves", "tiles_total", "tiles_skipped", "bumped_elements"):
        assert plain.counters[name] == found.counters[name]
    assert found.buffer == plain.buffer


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("density", [0.0, 0.003, 0.01])
def test_tiles_without_work(order, density):
    """A pass that has no tile of B to load is not made; one that has some is read to its end."""
    a, b = operands(density)
    planned = plan(scheme((9, 52, 17), order), a, b, TINY)
    kept = KeptMatrix.of(b, "zvc")
    found = run_model(TINY, replace(planned, stored_b=kept))
    assert found.counters["read_b_data"] == passes_made_over_b(planned) * kept.kept.beats(TINY.bus_bytes)


def test_both_operands():
    a, b = operands()
    planned = plan(scheme((9, 52, 60)), a, b, TINY)
    both = replace(planned, stored_a=KeptMatrix.of(a, "rlc"), stored_b=KeptMatrix.of(b, "coo"))
    found = run_model(TINY, both).counters
    assert found["read_a_data"] == both.stored_a.kept.beats(TINY.bus_bytes)
    assert found["read_b_data"] == both.stored_b.kept.beats(TINY.bus_bytes)


def test_beats_come_with_the_rows():
    """Those of rows before a tile, and of what is left of the pass before."""
    b = random(10, 30, 0.4, 3)
    kept, beats = KeptMatrix.of(b, "dense"), {"read_b_data": 0}
    found = ConvertedTensor("b", kept, 16, 10, beats)
    whole = kept.kept.beats(16)
    assert [found.stream(rows) for rows in ((2, 4), (4, 5), (0, 5), (5, 10))] == [
        whole * 4 // 10,
        whole * 5 // 10 - whole * 4 // 10,
        whole - whole * 5 // 10 + whole * 5 // 10,
        whole - whole * 5 // 10,
    ]
    found.end_pass()
    assert found.passes == 2 and beats["read_b_data"] == 2 * whole


def test_a_load_takes_as_long_as_its_beats():
    """Dense values of a B with few nonzeros are more beats than its records."""
    a, b = random(20, 400, 0.02, 5), random(400, 50, 0.004, 6)
    planned = plan(scheme((20, 50, 400)), a, b, TINY)
    kept = KeptMatrix.of(b, "dense")
    cycles = run_model(TINY, replace(planned, stored_b=kept)).cycles
    assert cycles > max(kept.kept.beats(TINY.bus_bytes), run_model(TINY, planned).cycles)
