"""A that the accelerator converts on its way in, in the whole machine: values, bytes, counters, faults."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from sw.formats.csr import Csr
from sw.golden.compare import compare_bits
from sw.golden.spgemm import multiply
from sw.plan.plan import plan
from sw.runtime.registers import CONVERTED, ErrorCode, pack_fields
from sw.runtime.simulation.engine import run_rtl
from sw.scheme.scheme import Scheme
from tests.verif.converted import Spoiled, check, converting, stored
from tests.verif.test_end_to_end import random_operand, scheme

pytestmark = pytest.mark.slow

# Cuts of a 45 x 52 x 60 product that read A in the order of its rows, and how often.
IN_ORDER = {
    "whole": ((45, 52, 60), "ijk", 1),
    "i": ((7, 52, 60), "ikj", 1),
    "j": ((45, 11, 60), "ijk", 5),
    "j outside i": ((20, 20, 60), "jik", 3),
    "j outside i, k first": ((9, 30, 60), "kji", 2),
}


def check_a(kind: str, forced: Scheme, a: Csr, b: Csr, passes: int, seed: int = 0, **options: int) -> dict[str, int]:
    """Runs with A in a format; returns the counters."""
    forced = forced.clip(a.rows, b.columns, a.columns)
    assert forced.passes_over_a(a.rows, b.columns, a.columns) == passes
    planned = stored(plan(forced, a, b, converting()), "a", kind, **options)
    return check(converting(), planned, seed)


@pytest.mark.parametrize("kind", CONVERTED)
@pytest.mark.parametrize("cut", IN_ORDER.values(), ids=IN_ORDER)
def test_every_format_and_cut(kind: str, cut: tuple[tuple[int, int, int], str, int]) -> None:
    """The bytes of A are those of its format, once a pass; nothing is written for it."""
    tile, order, passes = cut
    a, b = random_operand(45, 60, 0.08, "int32", 1), random_operand(60, 52, 0.12, "int32", 2)
    design = converting()
    counters = check_a(kind, scheme(design, tile, order), a, b, passes)
    planned = stored(plan(scheme(design, tile, order), a, b, design), "a", kind)
    assert planned.stored_a is not None
    assert counters["read_a_data"] == passes * planned.stored_a.kept.beats(design.bus_bytes)
    assert counters["write_a_meta"] == 0
    assert 0 < counters["stall_conversion"] <= counters["phase_compute"]


def rows_of(lengths: list[int], columns: int) -> Csr:
    """Rows of so many nonzeros, at their begin."""
    made = random_operand(len(lengths), columns, 0.0, "int32", 1)
    coordinates = np.concatenate([np.arange(length) for length in lengths]).astype(np.uint32)
    bits = np.random.default_rng(5).integers(1, 2**31, len(coordinates)).astype(np.uint32)
    return replace(made, pointers=np.cumsum([0, *lengths]), coordinates=coordinates, bits=bits)


@pytest.mark.parametrize("kind", CONVERTED)
@pytest.mark.parametrize(
    "lengths",
    [[0] * 9, [0, 0, 0, 5, 0, 0, 0, 0, 0], [8, 0, 0, 0, 0, 0, 0, 0, 1], [0, 1, 8, 0, 3, 8, 8, 0, 0], [1]],
    ids=["nothing", "one row", "ends", "mixed", "one place"],
)
def test_empty_rows(kind: str, lengths: list[int]) -> None:
    """Rows and tiles without a nonzero, at the begin, inside and at the end; the memory answers as it likes."""
    a, b = rows_of(lengths, max(lengths) or 8), random_operand(max(lengths) or 8, 12, 0.4, "int32", 3)
    for tile, order in (((2, 12, 8), "ijk"), ((3, 5, 8), "jik"), ((9, 5, 8), "ijk")):
        cut = scheme(converting(), tile, order).clip(a.rows, 12, a.columns)
        check_a(kind, cut, a, b, cut.passes_over_a(a.rows, 12, a.columns), seed=1)


def test_runs_with_fillers() -> None:
    """Runs of 1 to 3 bits, so that most pairs are fillers."""
    a, b = random_operand(12, 60, 0.03, "int32", 4), random_operand(60, 52, 0.12, "int32", 2)
    for bits in (1, 3):
        check_a("rlc", scheme(converting(), (5, 20, 60), "jik"), a, b, 3, run_bits=bits)


def test_a_as_the_accelerator_has_it() -> None:
    """The same build without a conversion, and k cut."""
    design = converting()
    a, b = random_operand(45, 60, 0.08, "int32", 1), random_operand(60, 52, 0.12, "int32", 2)
    for tile, order in (((7, 11, 60), "ijk"), ((9, 20, 17), "kij")):
        found = run_rtl(design, plan(scheme(design, tile, order), a, b, design), max_cycles=1_000_000)
        golden = multiply(a, b, design.pe.merge_radix, design.pe.arithmetic, scheme(design, tile, order))
        assert found.c is not None and compare_bits(golden.structural, found.c).correct
        assert found.counters["stall_conversion"] == 0


@pytest.fixture
def zvc() -> Iterator[Spoiled]:
    made = Spoiled("a", "zvc")
    yield made
    made.simulation.close()


def test_faults_of_a_mask(zvc: Spoiled) -> None:
    zvc.check_mask()


def test_wrong_registers(zvc: Spoiled) -> None:
    """What no conversion can begin with, and what no scheme reads A in."""
    zvc.check_registers()
    modes = zvc.image.registers["MODES"]
    assert zvc.run(TILE_K=10) == (ErrorCode.BAD_MODE, modes)
    assert zvc.run(TILE_J=6) == (ErrorCode.BAD_MODE, modes)  # i outside j, both cut
    kept = modes | pack_fields("MODES", a_buffering=1)
    assert zvc.run(MODES=kept) == (ErrorCode.BAD_MODE, kept)
    zvc.good()


def test_a_tile_that_the_map_leaves_out(zvc: Spoiled) -> None:
    """Its entries are nobody's: the next tile finds the first of them."""
    zvc.image.regions["a_tile_map"].data[0] ^= 0b10
    assert zvc.run() == (ErrorCode.BAD_ENTRY, int(zvc.a.pointers[4]))
    zvc.good()


def test_entries_out_of_place() -> None:
    """Of COO: columns and rows beyond the matrix, and two entries in the wrong order. Of RLC: a filler at the end."""
    made = Spoiled("a", "coo", (13, 5, 20), "jik")
    records = made.image.regions["a_elements"].data
    width = 32 + 5 + 4
    nonzeros = made.a.nnz

    def written(at: int, bits: int, value: int) -> None:
        spread = np.unpackbits(records, bitorder="little")
        spread[at : at + bits] = [value >> n & 1 for n in range(bits)]
        records[:] = np.packbits(spread, bitorder="little")

    written(7 * width + 32 + 4, 5, 31)
    assert made.run() == (ErrorCode.BAD_ENTRY, 7)
    made.good()
    written(9 * width + 32, 4, 15)
    assert made.run() == (ErrorCode.BAD_ENTRY, 9)
    written((nonzeros - 1) * width + 32, 4, 0)
    assert made.run() == (ErrorCode.BAD_ENTRY_ORDER, nonzeros - 1)
    made.good()
    made.simulation.close()
    made = Spoiled("a", "rlc")
    count = made.image.registers["COUNT"]
    made.image.regions["a_elements"].data.view(np.uint8)[((count - 1) * 37) // 8 :] = 0
    assert made.run() == (ErrorCode.BAD_RUN, count - 1)
    made.good()
    made.simulation.close()


def test_soft_reset_in_the_middle() -> None:
    """Between launch and the last pass; the next run is whole."""
    made = Spoiled("a", "zvc", (4, 5, 20), "jik")
    made.check_reset(90, 130, 200, 400)
    made.simulation.close()


def test_the_stall_is_what_its_monitor_counts() -> None:
    """A dense A with few nonzeros keeps the engine waiting, and the counter says how long."""
    made = Spoiled("a", "dense", (13, 12, 20))
    made.check_stall(20)
    made.simulation.close()
