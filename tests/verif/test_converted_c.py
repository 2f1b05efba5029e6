"""C that the accelerator converts on its way out, in the whole machine: values, bytes, counters, faults."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from sw.formats.csr import Csr
from sw.plan.plan import plan
from sw.runtime.registers import CONVERTED, ErrorCode
from sw.scheme.scheme import Scheme
from tests.verif.converted import Spoiled, check, converting, stored
from tests.verif.test_converted_a import rows_of
from tests.verif.test_end_to_end import random_operand, scheme

pytestmark = pytest.mark.slow

# Cuts of a 45 x 52 x 60 product: C whole, in partial rows, in pieces of rows that the assembly pass joins, and all of it.
CUTS = {
    "whole": ((45, 52, 60), "ijk"),
    "i": ((7, 52, 60), "ikj"),
    "k outside i": ((9, 52, 17), "kij"),
    "k inside i": ((9, 52, 17), "ijk"),
    "j": ((45, 13, 60), "jik"),
    "j and k": ((11, 20, 23), "jki"),
}


def check_c(kind: str, forced: Scheme, a: Csr, b: Csr, seed: int = 0, **options: int) -> dict[str, int]:
    """Runs with C in a format; returns the counters."""
    design = converting()
    forced = forced.clip(a.rows, b.columns, a.columns)
    return check(design, stored(plan(forced, a, b, design), "c", kind, **options), seed)


@pytest.mark.parametrize("kind", CONVERTED)
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_every_format_and_cut(kind: str, cut: tuple[tuple[int, int, int], str]) -> None:
    """The bytes of C are those of its format, its rows have no pointers."""
    tile, order = cut
    a, b = random_operand(45, 60, 0.12, "int32", 1), random_operand(60, 52, 0.12, "int32", 2)
    counters = check_c(kind, scheme(converting(), tile, order), a, b)
    if tile[1:] == (52, 60):
        design = converting()
        planned = stored(plan(scheme(design, tile, order), a, b, design), "c", kind)
        assert planned.stored_c is not None
        assert counters["write_c_data"] - counters["write_scratch"] == planned.stored_c.kept.beats(design.bus_bytes)
        assert counters["write_c_meta"] == 0


@pytest.mark.parametrize("kind", CONVERTED)
@pytest.mark.parametrize(
    "lengths",
    [[0] * 9, [0, 0, 0, 5, 0, 0, 0, 0, 0], [8, 0, 0, 0, 0, 0, 0, 0, 1], [0, 1, 8, 0, 3, 8, 8, 0, 0], [1]],
    ids=["nothing", "one row", "ends", "mixed", "one place"],
)
def test_empty_rows(kind: str, lengths: list[int]) -> None:
    """Rows and tiles without a nonzero, at the begin, inside and at the end; the memory answers as it likes."""
    inner = max(lengths) or 8
    a, b = rows_of(lengths, inner), random_operand(inner, 11, 0.5, "int32", 3)
    for tile, order in (((9, 11, 8), "ijk"), ((2, 11, 3), "kij"), ((4, 5, 8), "ijk")):
        check_c(kind, scheme(converting(), tile, order), a, b, seed=1)


@pytest.mark.parametrize("kind", CONVERTED)
def test_sums_that_are_zero(kind: str) -> None:
    """Products cancel: an entry of COO stays, and other formats have a zero."""
    a, b = rows_of([2, 2, 2], 2), rows_of([5, 5], 5)
    ones = np.ones(a.nnz, np.uint32)
    opposite = np.concatenate([np.full(5, 7, np.int32), np.full(5, -7, np.int32)]).view(np.uint32)
    a, b = replace(a, bits=ones), replace(b, bits=opposite)
    check_c(kind, scheme(converting(), (3, 5, 2), "ijk"), a, b)
    check_c(kind, scheme(converting(), (2, 5, 1), "kij"), a, b)


def test_runs_with_fillers() -> None:
    """Runs of 1 to 3 bits, so that most pairs are fillers; the last run has no level behind it."""
    a, b = random_operand(30, 20, 0.1, "int32", 4), random_operand(20, 52, 0.05, "int32", 2)
    for bits in (1, 3):
        check_c("rlc", scheme(converting(), (7, 52, 20), "ijk"), a, b, run_bits=bits)


@pytest.mark.parametrize(
    "kinds", [("zvc", "rlc", "coo"), ("coo", "zvc", "dense"), ("dense", "coo", "rlc")], ids="-".join
)
def test_all_tensors(kinds: tuple[str, str, str]) -> None:
    """A, B and C are converted in one run, and C is not in the next one of the same build."""
    design = converting()
    a, b = random_operand(45, 60, 0.1, "int32", 1), random_operand(60, 52, 0.12, "int32", 2)
    planned = plan(scheme(design, (9, 52, 60), "ijk").clip(45, 52, 60), a, b, design)
    for tensor, kind in zip("abc", kinds, strict=True):
        planned = stored(planned, tensor, kind)
    check(design, planned, seed=3)
    check(design, replace(planned, stored_c=None), seed=3)


@pytest.mark.parametrize(
    "changes",
    [("axi.data_bits=256", "buffer.line_beats=2", "pe.value=int8"), ("pe.value=bf16",)],
    ids=["lines of 2 beats, int8", "bf16"],
)
@pytest.mark.parametrize("kind", CONVERTED)
def test_wide_lines_and_values(changes: tuple[str, ...], kind: str) -> None:
    """Words of more elements, lines of more beats than one, and each size of a value; also where floats are -0."""
    design = converting(*changes)
    a, b = (
        random_operand(*shape, 0.12, design.pe.value, seed) for seed, shape in enumerate(((45, 60), (60, 52)), start=1)
    )
    for tile, order in (((9, 52, 60), "ijk"), ((45, 52, 11), "kij"), ((15, 17, 60), "ijk")):
        cut = scheme(design, tile, order).clip(45, 52, 60)
        check(design, stored(plan(cut, a, b, design), "c", kind), seed=4)


@pytest.fixture
def coo() -> Iterator[Spoiled]:
    made = Spoiled("c", "coo", (5, 12, 20))
    yield made
    made.simulation.close()


def test_wrong_registers(coo: Spoiled) -> None:
    """What no conversion can begin with, and a region that is too small: nothing is written behind it."""
    coo.check_registers()
    room = coo.image.registers["C_ELEMENTS_BYTES"]
    needed = -(-coo.golden.nnz * (4 + 4 + 32) // 8)
    assert room >= needed
    code, detail = coo.run(C_ELEMENTS_BYTES=16)
    assert code == ErrorCode.C_ELEMENTS_OVERFLOW and 16 < detail <= needed
    assert coo.run(C_ELEMENTS_BYTES=needed)[0] == ErrorCode.NONE
    assert coo.run(C_ELEMENTS_BYTES=needed - 1) == (ErrorCode.C_ELEMENTS_OVERFLOW, needed)
    coo.good()


def test_soft_reset_in_the_middle() -> None:
    """Between the first row and the last beat; the next run is whole."""
    made = Spoiled("c", "dense", (4, 12, 5))
    made.check_reset(90, 200, 300, 400)
    made.simulation.close()


def test_the_stall_is_what_its_monitor_counts() -> None:
    """Rows of a dense C with few nonzeros wait for beats of zeros, and the counter says how long."""
    made = Spoiled("c", "dense", (13, 12, 20))
    made.check_stall(3)
    made.simulation.close()


def test_c_as_the_accelerator_has_it() -> None:
    """The same build without a conversion."""
    design = converting()
    a, b = random_operand(45, 60, 0.08, "int32", 1), random_operand(60, 52, 0.2, "int32", 2)
    for tile, order in (((7, 11, 60), "ijk"), ((9, 20, 17), "kij"), ((45, 52, 60), "ijk")):
        assert check(design, plan(scheme(design, tile, order), a, b, design))["stall_conversion"] == 0
