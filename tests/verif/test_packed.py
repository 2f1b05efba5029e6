"""Packed records in the whole machine: what the plain ones are tested with, and what only packed ones have."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.drawn import drawn
from gen.design import Design, load_design
from sw.formats.csr import Csr
from sw.golden.compare import compare_bits
from sw.golden.spgemm import multiply
from sw.operands import load, to_csr
from sw.plan.plan import plan
from sw.runtime.memory_image import build_image
from sw.runtime.registers import ErrorCode, field_value, pack_fields
from sw.runtime.simulation.engine import run_rtl
from sw.scheme.terms import GATHERS, LOAD_PLANNED
from tests.tools import long_run
from tests.verif import test_lists, test_strips, test_windows
from tests.verif.fault_bench import CASES, FaultBench
from tests.verif.test_end_to_end import (
    check,
    operand,
    random_operand,
    scheme,
    test_bands_cut_along_j_and_k,
    test_every_order_and_cut,
    test_kept_tiles_of_a_in_any_order,
    test_late_acknowledgements,
    test_odd_shapes,
    test_overbooked_tiles_of_a,
    test_overbooked_tiles_of_b,
    test_partial_rows_come_back_through_the_partition,
    test_partial_rows_stay_on_chip,
    test_rough_memory,
    test_rows_of_more_leaves_than_one_job,
    test_streaming_b,
)
from verif.stored import stored_nonzeros

pytestmark = pytest.mark.slow

# Run here with packed records.
__all__ = [
    "test_bands_cut_along_j_and_k",
    "test_every_order_and_cut",
    "test_kept_tiles_of_a_in_any_order",
    "test_late_acknowledgements",
    "test_odd_shapes",
    "test_overbooked_tiles_of_a",
    "test_overbooked_tiles_of_b",
    "test_partial_rows_come_back_through_the_partition",
    "test_partial_rows_stay_on_chip",
    "test_rough_memory",
    "test_rows_of_more_leaves_than_one_job",
    "test_streaming_b",
]
test_list_orders = test_lists.test_every_order
test_lists_overbooked = test_lists.test_overbooked
test_lists_at_planned_places = test_lists.test_planned_places
test_lists_of_kinds = test_lists.test_kinds_of_operands
test_strip_widths = test_strips.test_widths
test_strips_overbooked = test_strips.test_overbooked
test_bands = test_windows.test_bands
test_windows_of_kinds = test_windows.test_kinds_of_windows
test_windows_overbooked = test_windows.test_overbooked_windows
test_windows_rough = test_windows.test_slow_and_rough_memory

PACKED = "memory.records=packed"


@pytest.fixture(scope="module", params=["int8", pytest.param("bf16", marks=long_run()), "fp32"])
def design(request: pytest.FixtureRequest) -> Design:
    return load_design("tiny", [f"pe.value={request.param}", PACKED])


def spread(matrix: Csr, columns: int, step: int) -> Csr:
    """The same nonzeros in ``columns`` columns, ``step`` apart from the last one back."""
    last = np.int64(columns - 1)
    kept = last - step * (matrix.columns - 1 - matrix.coordinates.astype(np.int64))
    return Csr(
        rows=matrix.rows,
        columns=columns,
        pointers=matrix.pointers,
        coordinates=kept.astype(np.uint32),
        bits=matrix.bits,
        value=matrix.value,
    )


@pytest.mark.parametrize("columns", [2, 3, 4, 5, (1 << 16) - 1, 1 << 16, (1 << 31) + 1, (1 << 32) - 1])
def test_coordinates_of_any_width(design: Design, columns: int) -> None:
    """The last column of B is used, and with it every bit of a coordinate of B and C."""
    narrow = random_operand(40, min(columns, 30), 0.3, design.pe.value, 8)
    a, b = random_operand(30, 40, 0.2, design.pe.value, 7), spread(narrow, columns, max(1, columns // 40))
    forced = scheme(design, (30, columns, 40)).clip(a.rows, b.columns, a.columns)
    registers = build_image(design, plan(forced, a, b, design)).registers
    assert field_value("COORDINATES", "b", registers["COORDINATES"]) == (columns - 1).bit_length()
    found = run_rtl(design, plan(forced, a, b, design), max_cycles=5_000_000, poison=True)
    assert found.error is None and found.c is not None
    golden = multiply(a, b, design.pe.merge_radix, design.pe.arithmetic, forced)
    assert compare_bits(golden.structural, found.c).correct
    assert found.c.coordinates.max() == columns - 1


def test_columns_of_a_hold_an_entry_and_a_load(design: Design) -> None:
    """Where rows of B have planned places A's records are as wide as these need."""
    value = design.pe.value
    a, b = test_lists.clustered(100, 90, value, 3), random_operand(90, 70, 0.12, value, 4)
    planned = plan(test_lists.listed(design, a, 70, 6, b_lines=60, load=LOAD_PLANNED), a, b, design)
    image, made = build_image(design, planned), planned.rows_of_b
    assert made is not None
    loads = int((made.windows[:, 1] - made.fresh).max())
    entry_bits = field_value("MODES", "entry_bits", image.registers["MODES"])
    assert field_value("COORDINATES", "a", image.registers["COORDINATES"]) == entry_bits + loads.bit_length()
    (columns, _) = stored_nonzeros(image, "a")[: a.nnz].T
    assert columns.max() >> entry_bits == loads


def test_the_first_of_many_rows_of_b_alone_is_used(design: Design) -> None:
    """There is no list then, and one bit says so."""
    value = design.pe.value
    first = np.zeros((4, 5), np.int8)
    first[[0, 2], 0] = 1
    a, b = operand(first, value, 1), random_operand(5, 6, 0.7, value, 2)
    for rule in GATHERS:
        check(design, test_lists.listed(design, a, 6, 4, load=rule), a, b)


def test_fewer_bytes_are_read_and_written(design: Design) -> None:
    """Each nonzero once, in as many bits as a record has, and what the beats at both ends hold besides."""
    value, lanes = design.pe.value, design.lanes
    a, b = random_operand(60, 300, 0.2, value, 1), random_operand(300, 64, 0.2, value, 2)
    counters = check(design, scheme(design, (60, 64, 300), streaming=True), a, b)
    width = 9 + {"int8": 8, "bf16": 16, "fp32": 32}[value]
    least = -(-a.nnz * width // (64 * lanes))
    assert least <= counters["read_a_data"] <= least + 60
    # Rows of as many leaves as a job takes: no part of a row of C is written before the row.
    a, b = random_operand(60, 4, 0.8, value, 3), random_operand(4, 64, 0.5, value, 4)
    whole = scheme(design, (60, 64, 4))
    nnz = multiply(a, b, design.pe.merge_radix, design.pe.arithmetic, whole).structural.nnz
    assert check(design, whole, a, b)["write_c_data"] == -(-nnz * (width - 3) // (64 * lanes))


@pytest.mark.parametrize("name", ["mycielskian:6", "rmat:6:4:seed=2", "banded:60:4"])
def test_every_number_of_a_byte(name: str, tmp_path: Path) -> None:
    """Values from -128 to 127 on the pattern of an operand that has ones: signs and sums that wrap, in records of 14 bits."""
    known = load(drawn(name, "int8", tmp_path))
    numbers = known.matrix.data
    assert (numbers != 0).all() and numbers.min() < -100 and numbers.max() > 100
    assert known.matrix.nnz == load(name).matrix.nnz and (known.matrix.indices == load(name).matrix.indices).all()
    a, design = to_csr(known, "int8"), load_design("tiny", ["pe.value=int8", PACKED])
    size = a.rows
    for tile, order in (((size, size, size), "ijk"), ((size // 2, size // 3, size // 2), "kij")):
        check(design, scheme(design, tile, order), a, a)


@pytest.mark.parametrize(
    "design",
    [
        pytest.param(load_design("tiny", ["pe.value=int16", "axi.data_bits=256", PACKED]), id="256 bits"),
        pytest.param(load_design("tiny", ["pe.value=bf16", "buffer.line_beats=4", PACKED]), id="4 beats a line"),
        pytest.param(
            load_design("tiny", ["pe.value=fp32", "buffer.line_beats=2"]), id="2 plain beats a line", marks=long_run()
        ),
        pytest.param(load_design("edge", [PACKED]), id="edge", marks=long_run()),
    ],
)
def test_wider_beats_and_more_leaves(design: Design) -> None:
    """Four lanes; and 8 PEs of 64 leaves, each of which has a beat of its own that it shares with its next request."""
    value = design.pe.value
    a, b = random_operand(40, 90, 0.15, value, 5), random_operand(90, 110, 0.3, value, 6)
    for tile, order in (((40, 110, 90), "ijk"), ((17, 40, 38), "kij")):
        check(design, scheme(design, tile, order, streaming=order == "ijk"), a, b)
    # Rows of B that do not fit are fetched by the leaves.
    assert check(design, scheme(design, (40, 110, 90), b_lines=60), a, b)["bumped_fetches"] > 0


@pytest.fixture(scope="module")
def bench() -> FaultBench:
    return FaultBench(CASES["all ranks cut"], records="packed").__enter__()


@pytest.mark.parametrize("tensor", "abc")
@pytest.mark.parametrize("bits", [0, 33, 63])
def test_bits_of_a_coordinate_are_as_many_as_columns_need(bench: FaultBench, tensor: str, bits: int) -> None:
    """Others are an error that says what the register holds; nothing is read or written."""
    bench.restore()
    held = bench.registers["COORDINATES"]
    fields = {name: field_value("COORDINATES", name, held) for name in "abc"} | {tensor: bits}
    wrong = pack_fields("COORDINATES", **fields)
    outcome = bench.run(bench.registers | {"COORDINATES": wrong})
    assert outcome.ended and outcome.code == ErrorCode.BAD_COORDINATES
    assert outcome.detail == fields["a"] | fields["b"] << 6 | fields["c"] << 12
    bench.check_contained()
    bench.soft_reset()
    bench.good_run()


@pytest.mark.parametrize(("tensor", "code"), [("a", ErrorCode.BAD_COORDINATE), ("b", ErrorCode.BAD_ROW)])
def test_a_column_out_of_shape_is_an_error(bench: FaultBench, tensor: str, code: ErrorCode) -> None:
    """A coordinate that its record has bits for, and the shape no column."""
    bench.restore()
    name, extent = {"a": ("SHAPE_K", 18), "b": ("SHAPE_J", 16)}[tensor]
    nonzeros = stored_nonzeros(bench.image, tensor)
    assert nonzeros[:, 0].max() >= extent - 1
    # Shorter by a column than the operand: its last one is outside.
    outcome = bench.run(bench.registers | {name: extent - 1})
    assert outcome.ended and outcome.code == code, outcome
    bench.check_contained()
    bench.soft_reset()
