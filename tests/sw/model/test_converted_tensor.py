"""The model of tensors on their way: each pass from the first byte to the last, no pointers, nothing else of B or C moves."""

from dataclasses import replace

import pytest

from gen.design import load_design
from sw.formats.csr import Csr
from sw.golden.product import product_of
from sw.model.converted_tensor import ConvertedTensor
from sw.model.machine import run_model
from sw.model.tier import simulate
from sw.plan.kept_matrix import KeptMatrix
from sw.plan.plan import plan
from sw.plan.tiles_of_b import passes_made_over_b
from sw.runtime.registers import CONVERTED
from sw.scheme.shares import default_partition
from sw.scheme.terms import JOINED, ONLY_B, ORDERS
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
    found = ConvertedTensor("read_b_data", kept, 16, 10, beats)
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


OUT = load_design("tiny", ["memory.records=packed", "memory.converts_c=true"])
TURNED = load_design("flex_tiny", ["memory.records=packed", "memory.converts_c=true"])
# Tiles of 45 x 52 x 60.
CUTS = {
    "whole": ((45, 52, 60), "ijk", {}),
    "i": ((7, 52, 60), "ikj", {}),
    "k inside i": ((9, 52, 17), "ijk", {}),
    "k outside i": ((9, 52, 17), "kij", {}),
    "j": ((45, 13, 60), "jik", {}),
    "j inside i": ((9, 13, 60), "ijk", {}),
    "j and k": ((11, 20, 23), "jki", {}),
    "i, j and k": ((11, 20, 23), "ikj", {}),
    "B streams": ((9, 52, 60), "ijk", {"b": "streaming"}),
    "joined": ((9, 52, 17), "kij", {"partial_rows": JOINED}),
    "joined, j": ((9, 20, 17), "jki", {"partial_rows": JOINED}),
    "list": ((9, 52, 60), "ijk", {"load": "list", "mode": ONLY_B}),
    "reuse": ((9, 52, 60), "ijk", {"load": "reuse", "mode": ONLY_B}),
    "planned": ((9, 52, 60), "ijk", {"load": "planned", "mode": ONLY_B}),
    "list, one tile": ((45, 52, 60), "ijk", {"load": "list", "mode": ONLY_B}),
    "tuned": ((45, 26, 30), "ijk", {"tuning": True}),
}


def result(a, b, planned, design, kind, **options):
    return KeptMatrix.of(product_of(design.pe, a, b, planned.scheme, None).structural, kind, **options)


def beats_as_csr(planned, c, design, *, by_tile):
    """Beats of C's records and of its pointers where the accelerator has it: rows follow each other, in each tile or in all.

    Pointers of a tile begin and end in beats of their own.
    """
    word, bus = 4, design.bus_bytes
    step = planned.scheme.T_i if by_tile else planned.a.rows
    bits = (c.columns - 1).bit_length() + 32
    data = pointers = 0
    for first in range(0, planned.a.rows, step):
        last = min(planned.a.rows, first + step)
        begin, end = (int(c.pointers[row]) * bits for row in (first, last))
        data += 0 if begin == end else -(-end // (8 * bus)) - begin // (8 * bus)
        pointers += -(-(last + 1) * word // bus) - first * word // bus
    return data, pointers


@pytest.mark.parametrize("kind", CONVERTED)
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("densities", [(0.08, 0.12), (0.003, 0.02), (0.0, 0.12), (0.08, 0.0)], ids=str)
def test_bytes_of_c(densities, cut, kind):
    """Those of its format, once, for the records and pointers of CSR; all else moves as without, be there no nonzero, too."""
    tile, order, more = cut
    a, b = (
        random(*shape, density, seed)
        for shape, density, seed in zip(((45, 60), (60, 52)), densities, (1, 2), strict=True)
    )
    changed = replace(
        scheme(tile, order, more.get("b", "buffering")), **{name: more[name] for name in more if name != "b"}
    )
    planned = plan(changed, a, b, OUT)
    kept = result(a, b, planned, OUT, kind)
    plain, found = simulate(OUT, planned), simulate(OUT, replace(planned, stored_c=kept))
    c = product_of(OUT.pe, a, b, changed, None).structural
    # Rows of tiles of lists leave as one stream.
    data, pointers = beats_as_csr(planned, c, OUT, by_tile=tile[1] == 52 and "load" not in more)
    before, after = plain.counters, found.counters
    assert before["write_c_data"] - after["write_c_data"] == data - kept.kept.beats(OUT.bus_bytes)
    assert before["write_c_meta"] - after["write_c_meta"] == pointers
    if tile[1:] == (52, 60):
        assert after["write_c_data"] - after["write_scratch"] == kept.kept.beats(OUT.bus_bytes)
        assert after["write_c_meta"] == 0
    moved = {name for name in before if before[name] != after[name]}
    allowed = {"write_c_data", "write_c_meta", "cycles", "stall_conversion"}
    assert moved <= allowed | {name for name in moved if name.startswith(("stall", "phase", "pe_"))}, moved
    assert {t: plain.dram_bytes[t] for t in "AB"} == {t: found.dram_bytes[t] for t in "AB"}
    assert found.buffer == plain.buffer


@pytest.mark.parametrize("kind", CONVERTED)
@pytest.mark.parametrize(("tile", "order"), [((45, 2, 60), "jik"), ((9, 2, 7), "ijk"), ((9, 1, 60), "kji")], ids=str)
def test_bytes_of_c_that_columns_of_pes_make(tile, order, kind):
    """Its tiles are as wide as the PEs: rows are joined from pieces."""
    a, b = operands()
    parts, fifo = default_partition(TURNED)
    forced = replace(scheme(tile, order), buffer_bytes=parts, fifo_bytes=fifo)
    planned = plan(forced, a, b, TURNED)
    kept = result(a, b, planned, TURNED, kind)
    plain, found = simulate(TURNED, planned), simulate(TURNED, replace(planned, stored_c=kept))
    c = product_of(TURNED.pe, a, b, forced, None).structural
    data, pointers = beats_as_csr(planned, c, TURNED, by_tile=False)
    before, after = plain.counters, found.counters
    assert before["write_c_data"] - after["write_c_data"] == data - kept.kept.beats(TURNED.bus_bytes)
    assert before["write_c_meta"] - after["write_c_meta"] == pointers
    assert {t: plain.dram_bytes[t] for t in "AB"} == {t: found.dram_bytes[t] for t in "AB"}


def test_runs_with_fillers_are_bytes_of_c():
    """More pairs than nonzeros."""
    a, b = operands(0.01)
    planned = plan(scheme((9, 52, 60)), a, b, OUT)
    beats = []
    for bits in (1, 3, 32):
        kept = result(a, b, planned, OUT, "rlc", run_bits=bits)
        found = simulate(OUT, replace(planned, stored_c=kept)).counters
        assert found["write_c_data"] - found["write_scratch"] == kept.kept.beats(OUT.bus_bytes)
        beats.append(found["write_c_data"])
    assert beats[0] > beats[1]


@pytest.mark.parametrize("tile", [(45, 52, 60), (9, 52, 60)], ids=str)
def test_all_tensors(tile):
    a, b = operands()
    design = load_design("tiny", ["memory.records=packed", *(f"memory.converts_{t}=true" for t in "abc")])
    planned = plan(scheme(tile), a, b, design)
    stored = {"a": KeptMatrix.of(a, "zvc"), "b": KeptMatrix.of(b, "coo"), "c": result(a, b, planned, design, "rlc")}
    found = simulate(design, replace(planned, **{f"stored_{name}": kept for name, kept in stored.items()})).counters
    for name, kept in stored.items():
        moved = found["write_c_data"] - found["write_scratch"] if name == "c" else found[f"read_{name}_data"]
        assert moved == kept.kept.beats(design.bus_bytes)


def test_a_dense_c_takes_as_long_as_its_beats():
    """Few nonzeros, many places."""
    a, b = random(400, 20, 0.01, 5), random(20, 300, 0.02, 6)
    planned = plan(scheme((400, 300, 20)), a, b, OUT)
    kept = result(a, b, planned, OUT, "dense")
    cycles = simulate(OUT, replace(planned, stored_c=kept)).cycles
    assert cycles > max(kept.kept.beats(OUT.bus_bytes), simulate(OUT, planned).cycles)
