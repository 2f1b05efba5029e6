"""The value types and their modes in the whole machine: the compiled simulation of `tiny` against golden and SciPy.

Every type goes through a product that is cut so that partial rows leave and come back, and through rows of more leaves
than a job takes.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import Design, load_design
from sw.formats.csr import Csr
from sw.golden.arithmetic import in_slots
from sw.golden.spgemm import multiply
from sw.scheme.terms import LOAD_PLANNED
from tests.tools import long_run
from tests.verif.test_end_to_end import TILES, check, scheme
from tests.verif.test_lists import listed

pytestmark = pytest.mark.slow

TYPES = {
    "int8": ["pe.value=int8"],
    "int8_saturate": ["pe.value=int8", "pe.overflow=saturate"],
    "int16": ["pe.value=int16"],
    "int16_saturate": ["pe.value=int16", "pe.overflow=saturate"],
    "int32_saturate": ["pe.value=int32", "pe.overflow=saturate"],
    "bf16": ["pe.value=bf16"],
    "bf16_flush": ["pe.value=bf16", "pe.subnormals=flush"],
    "fp32_flush": ["pe.value=fp32", "pe.subnormals=flush"],
}


#: Each has a simulation of its own: without long runs, one mode of integers and one of floating point. The plain modes of int8,
#: bf16 and fp32 are those of test_packed.py.
SHORT = ("int16_saturate", "fp32_flush")


@pytest.fixture(scope="module", params=[pytest.param(n, marks=[] if n in SHORT else long_run()) for n in TYPES])
def design(request: pytest.FixtureRequest) -> Design:
    made = load_design("tiny", TYPES[request.param])
    assert made.pe.arithmetic == request.param
    return made


def values(design: Design, count: int, rng: np.random.Generator) -> np.ndarray:
    """Slots whose products and sums overflow here and there, in floating point also become subnormal or NaN."""
    if design.pe.value.startswith("int"):
        bits = int(design.pe.value[3:])
        # As many small magnitudes as large ones.
        numbers = rng.integers(-(2**31), 2**31, count) >> rng.integers(32 - bits, 32, count)
        return in_slots(numbers.astype(np.int32).view(np.uint32), design.pe.value)
    scale = rng.choice([0, 0, 0, 0, -63, 63, -130, 100], count) + rng.integers(-6, 6, count)
    numbers = (rng.normal(size=count) * 2.0**scale).astype(np.float32)
    numbers[rng.random(count) < 0.2] = 1
    return in_slots(numbers.view(np.uint32), design.pe.value)


def operand(design: Design, rows: int, columns: int, density: float, seed: int) -> Csr:
    rng = np.random.default_rng(seed)
    matrix = sp.random_array((rows, columns), density=density, rng=rng, format="csr")
    matrix.sort_indices()
    return Csr.from_scipy(matrix, values(design, matrix.nnz, rng), design.pe.value)


@pytest.mark.parametrize("order", ["ijk", "kij"])
def test_partial_rows_leave_and_come_back(design: Design, order: str) -> None:
    a, b = operand(design, 45, 60, 0.1, 1), operand(design, 60, 52, 0.2, 2)
    for tile in (TILES["whole"], TILES["k"], TILES["ijk"]):
        check(design, scheme(design, tile, order, b_lines=60), a, b)
    check(design, scheme(design, TILES["k"], order, c_lines=80, keep_c=False), a, b)


def test_rows_of_more_leaves_than_one_job(design: Design) -> None:
    a, b = operand(design, 12, 60, 0.7, 9), operand(design, 60, 52, 0.3, 10)
    for tile in ((12, 52, 60), (12, 13, 25)):
        assert check(design, scheme(design, tile), a, b)["jobs"] > 12


def test_rows_of_b_at_planned_places(design: Design) -> None:
    a, b = operand(design, 45, 60, 0.1, 1), operand(design, 60, 52, 0.2, 2)
    assert check(design, listed(design, a, 52, 4, b_lines=60, load=LOAD_PLANNED), a, b)["bumped_fetches"] > 0


def test_the_operands_tell_the_modes_apart(design: Design) -> None:
    """The other mode of the same type gives another product, so that hardware with the wrong one would be noticed."""
    a, b = operand(design, 45, 60, 0.1, 1), operand(design, 60, 52, 0.2, 2)
    value = design.pe.value
    other = "_saturate" if value.startswith("int") else "_flush"
    plain, special = (multiply(a, b, 4, name, scheme(design, TILES["whole"])) for name in (value, value + other))
    assert np.count_nonzero(plain.structural.bits != special.structural.bits) > 20
    assert (plain.structural.bits != 0).any() and (special.structural.bits != 0).any()
