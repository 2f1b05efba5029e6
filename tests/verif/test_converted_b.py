"""B that the accelerator converts on its way into its partition, in the whole machine: values, bytes, counters, faults."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from sw.formats.csr import Csr
from sw.golden.compare import compare_bits
from sw.golden.spgemm import multiply
from sw.plan.plan import plan
from sw.plan.tiles_of_b import every_tile_fits, passes_made_over_b
from sw.runtime.registers import CONVERTED, ErrorCode, pack_fields
from sw.runtime.simulation.engine import run_rtl
from sw.scheme.scheme import Scheme
from tests.verif.converted import Spoiled, check, converting, stored
from tests.verif.test_converted_a import rows_of
from tests.verif.test_end_to_end import random_operand, scheme

pytestmark = pytest.mark.slow

# Cuts of a 45 x 52 x 60 product in which tiles have whole rows of B, and how often these come.
IN_ORDER = {
    "whole": ((45, 52, 60), "ijk", 1),
    "i": ((7, 52, 60), "ikj", 1),
    "k": ((45, 52, 17), "jik", 1),
    "k outside i": ((9, 52, 17), "kij", 1),
    "k inside i": ((9, 52, 17), "ijk", 5),
    "k inside i, by single rows": ((23, 52, 1), "jik", 2),
}


def check_b(kind: str, forced: Scheme, a: Csr, b: Csr, seed: int = 0, **options: int) -> tuple[dict[str, int], int]:
    """Runs with B in a format; returns the counters and the beats of a pass."""
    design = converting()
    forced = forced.clip(a.rows, b.columns, a.columns)
    assert every_tile_fits(forced, b, design)
    planned = stored(plan(forced, a, b, design), "b", kind, **options)
    assert planned.stored_b is not None
    counters, beats = check(design, planned, seed), planned.stored_b.kept.beats(design.bus_bytes)
    assert counters["read_b_data"] == passes_made_over_b(planned) * beats
    return counters, beats


@pytest.mark.parametrize("kind", CONVERTED)
@pytest.mark.parametrize("cut", IN_ORDER.values(), ids=IN_ORDER)
def test_every_format_and_cut(kind: str, cut: tuple[tuple[int, int, int], str, int]) -> None:
    """The bytes of B are those of its format, once a pass; no pointers are read, and no positions written."""
    tile, order, passes = cut
    a, b = random_operand(45, 60, 0.12, "int32", 1), random_operand(60, 52, 0.12, "int32", 2)
    counters, beats = check_b(kind, scheme(converting(), tile, order), a, b)
    assert counters["read_b_data"] == passes * beats
    assert counters["write_b_meta"] == 0
    assert counters["stall_conversion"] > 0


@pytest.mark.parametrize("kind", CONVERTED)
@pytest.mark.parametrize(
    "lengths",
    [[0] * 9, [0, 0, 0, 5, 0, 0, 0, 0, 0], [8, 0, 0, 0, 0, 0, 0, 0, 1], [0, 1, 8, 0, 3, 8, 8, 0, 0], [1]],
    ids=["nothing", "one row", "ends", "mixed", "one place"],
)
def test_empty_rows(kind: str, lengths: list[int]) -> None:
    """Rows and tiles without a nonzero, at the begin, inside and at the end; the memory answers as it likes."""
    rows = len(lengths)
    a, b = random_operand(12, rows, 0.4, "int32", 3), rows_of(lengths, max(lengths) or 8)
    for tile, order in (((12, 8, 2), "ijk"), ((5, 8, 3), "ijk"), ((5, 8, 9), "jik"), ((12, 8, 1), "kji")):
        check_b(kind, scheme(converting(), tile, order), a, b, seed=1)


@pytest.mark.parametrize("kind", CONVERTED)
def test_tiles_that_a_does_not_use(kind: str) -> None:
    """Columns of A are empty: tiles at the begin, in the middle and at the end are not loaded, and their entries left out."""
    a, b = random_operand(20, 60, 0.3, "int32", 1), random_operand(60, 30, 0.3, "int32", 2)
    used = np.array([12 <= k < 24 or 30 <= k < 48 for k in a.coordinates])
    pointers = np.concatenate([[0], np.cumsum(used)])[a.pointers]
    a = replace(a, pointers=pointers, coordinates=a.coordinates[used], bits=a.bits[used])
    for tile, order in (((20, 30, 6), "ijk"), ((6, 30, 6), "ijk"), ((6, 30, 12), "kij")):
        check_b(kind, scheme(converting(), tile, order), a, b, seed=2)


def test_runs_with_fillers() -> None:
    """Runs of 1 to 3 bits, so that most pairs are fillers."""
    a, b = random_operand(12, 60, 0.1, "int32", 4), random_operand(60, 52, 0.03, "int32", 2)
    for bits in (1, 3):
        check_b("rlc", scheme(converting(), (5, 52, 20), "ijk"), a, b, run_bits=bits)


@pytest.mark.parametrize("kinds", [("zvc", "rlc"), ("coo", "zvc"), ("dense", "coo")], ids="-".join)
def test_both_operands(kinds: tuple[str, str]) -> None:
    """A and B are converted in one run, and each alone in the same build."""
    design = converting()
    a, b = random_operand(45, 60, 0.1, "int32", 1), random_operand(60, 52, 0.12, "int32", 2)
    planned = plan(scheme(design, (9, 52, 60), "ijk").clip(45, 52, 60), a, b, design)
    with_a = stored(planned, "a", kinds[0])
    for one in (stored(with_a, "b", kinds[1]), with_a, stored(planned, "b", kinds[1]), planned):
        check(design, one, seed=3)


@pytest.mark.parametrize(
    "changes",
    [("axi.data_bits=256", "buffer.line_beats=2", "pe.value=int8"), ("pe.value=bf16",)],
    ids=["lines of 2 beats, int8", "bf16"],
)
@pytest.mark.parametrize("kinds", [("zvc", "rlc"), ("coo", "dense")], ids="-".join)
def test_wide_lines_and_values(changes: tuple[str, ...], kinds: tuple[str, str]) -> None:
    """Groups of more entries, lines of more groups than one, and each size of a value."""
    design = converting(*changes)
    a, b = (
        random_operand(*shape, 0.12, design.pe.value, seed).without_zeros()
        for seed, shape in enumerate(((45, 60), (60, 52)), start=1)
    )
    for tile, order in (((9, 52, 60), "ijk"), ((45, 52, 11), "kij"), ((15, 52, 17), "ijk")):
        cut = scheme(design, tile, order).clip(45, 52, 60)
        planned = stored(plan(cut, a, b, design), "b", kinds[1])
        check(design, stored(planned, "a", kinds[0]) if tile[2] == 60 else planned, seed=4)


def test_b_as_the_accelerator_has_it() -> None:
    """The same build without a conversion, and j cut, and rows that are bumped."""
    design = converting()
    a, b = random_operand(45, 60, 0.08, "int32", 1), random_operand(60, 52, 0.4, "int32", 2)
    for tile, order in (((7, 11, 60), "ijk"), ((9, 20, 17), "kij"), ((45, 52, 60), "ijk")):
        found = run_rtl(design, plan(scheme(design, tile, order), a, b, design), max_cycles=1_000_000)
        golden = multiply(a, b, design.pe.merge_radix, design.pe.arithmetic, scheme(design, tile, order))
        assert found.c is not None and compare_bits(golden.structural, found.c).correct
        assert found.counters["stall_conversion"] == 0


@pytest.fixture
def zvc() -> Iterator[Spoiled]:
    made = Spoiled("b", "zvc", (13, 12, 5))
    yield made
    made.simulation.close()


def test_faults_of_a_mask(zvc: Spoiled) -> None:
    zvc.check_mask()


def test_wrong_registers(zvc: Spoiled) -> None:
    """What no conversion can begin with, what no scheme reads B in, and a partition that is too small."""
    zvc.check_registers()
    modes = zvc.image.registers["MODES"]
    assert zvc.run(TILE_J=6) == (ErrorCode.BAD_MODE, modes)
    streamed = modes & ~pack_fields("MODES", b_buffering=1)
    assert zvc.run(MODES=streamed) == (ErrorCode.BAD_MODE, streamed)
    # Fifteen nonzeros or so and five entries in as few lines as there can be.
    lines = 4
    assert zvc.run(B_LINES=lines, FIFO_LINES_B=0) == (ErrorCode.BAD_PLACE, 0)
    zvc.good()


def test_entries_out_of_place() -> None:
    """Of COO: columns and rows beyond the matrix, and two entries in the wrong order. Of RLC: a filler at the end."""
    made = Spoiled("b", "coo", (5, 12, 7))
    records = made.image.regions["b_elements"].data
    width = 32 + 4 + 5
    nonzeros = made.b.nnz

    def written(at: int, bits: int, value: int) -> None:
        spread = np.unpackbits(records, bitorder="little")
        spread[at : at + bits] = [value >> n & 1 for n in range(bits)]
        records[:] = np.packbits(spread, bitorder="little")

    written(7 * width + 32 + 5, 4, 15)
    assert made.run() == (ErrorCode.BAD_ENTRY, 7)
    made.good()
    written(9 * width + 32, 5, 31)
    assert made.run() == (ErrorCode.BAD_ENTRY, 9)
    written((nonzeros - 1) * width + 32, 5, 0)
    assert made.run() == (ErrorCode.BAD_ENTRY_ORDER, nonzeros - 1)
    made.good()
    made.simulation.close()
    made = Spoiled("b", "rlc")
    count = made.image.registers["COUNT_B"]
    made.image.regions["b_elements"].data.view(np.uint8)[((count - 1) * 37) // 8 :] = 0
    assert made.run() == (ErrorCode.BAD_RUN, count - 1)
    made.good()
    made.simulation.close()


def test_soft_reset_in_the_middle() -> None:
    """Between launch and the last pass; the next run is whole."""
    made = Spoiled("b", "zvc", (4, 12, 5))
    made.check_reset(90, 130, 200, 400)
    made.simulation.close()


def test_the_stall_is_what_its_monitor_counts() -> None:
    """A dense B with few nonzeros keeps the loader waiting, and the counter says how long."""
    made = Spoiled("b", "dense", (13, 12, 20))
    made.check_stall(20)
    made.simulation.close()
