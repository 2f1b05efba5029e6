"""Conversions of a run's tensors: what the model says of them against the compiled converter, and what lies in memory."""

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import load_design
from sw.formats.csr import Csr
from sw.formats.storage import storage_format
from sw.golden.arithmetic import in_slots
from sw.runtime.conversion import Sides, estimated_departure, expected_conversion, golden_image
from sw.runtime.converter import SOURCES
from sw.runtime.simulation.converter import converter_library, run_converter

DESIGN = load_design("tiny", ["memory.records=packed"])


def matrix(rows, columns, density, seed, zeros=False):
    rng = np.random.default_rng(seed)
    array = sp.csr_array(rng.integers(1, 1 << 31, (rows, columns)) * (rng.random((rows, columns)) < density))
    if zeros:
        array.data[::3] = 0
    return Csr.from_scipy(array, in_slots(array.data.astype(np.uint32), DESIGN.pe.value), DESIGN.pe.value)


# Larger than half of the SRAM, a row, a column, a value, none, all, more columns than counters.
MATRICES = {
    "random": matrix(200, 170, 0.1, 1),
    "row": matrix(1, 300, 0.3, 2),
    "column": matrix(300, 1, 0.3, 3),
    "value": matrix(1, 1, 1.0, 4),
    "empty": matrix(40, 30, 0.0, 5),
    "full": matrix(30, 40, 1.0, 6),
    "wide": matrix(20, 3000, 0.05, 7),
    "stored zeros": matrix(60, 50, 0.2, 8, zeros=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("leaves", [False, True], ids=["enters", "leaves"])
@pytest.mark.parametrize("kind", [kind for kind in SOURCES if kind != "csr"])
def test_the_model_knows_what_a_conversion_moves(kind, leaves):
    """Every byte; cycles to a sixth and what a start takes."""
    form, library = storage_format(kind), converter_library(DESIGN)
    for name, given in MATRICES.items():
        stored = given if form.keeps_zeros or leaves else given.without_zeros()
        sides = Sides.of(stored, kind, form, own="csr", leaves=leaves)
        image, wanted = golden_image(DESIGN, sides)
        run = run_converter(DESIGN, image, library=library)
        assert run.error is None, name
        for region, data in image.written().items():
            assert np.array_equal(data, wanted[region]), (name, region)
        expected = expected_conversion(DESIGN, sides)
        assert (expected.read_bytes, expected.written_bytes, expected.passes) == (
            run.read_bytes,
            run.written_bytes,
            run.passes,
        ), name
        assert abs(expected.cycles - run.cycles) <= run.cycles / 6 + 150, (name, expected.cycles, run.cycles)


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize(
    ("shape", "density"), [((300, 400), 0.01), ((90, 70), 0.3), ((20, 3000), 0.04), ((2000, 90), 0.05)]
)
def test_what_c_takes_is_known_from_its_nonzeros(kind, shape, density):
    """Bytes and cycles of its way out before it is known, with runs of any length."""
    c = matrix(*shape, density, 3)
    for options in ({"run_bits": 2}, {"run_bits": 7}) if kind == "rlc" else ({},):
        form = storage_format(kind, **options)
        expected = expected_conversion(DESIGN, Sides.of(c, kind, form, own="csr", leaves=True))
        found = estimated_departure(DESIGN, kind, form, shape, c.nnz)
        assert found.read_bytes == pytest.approx(expected.read_bytes, rel=0.01)
        assert found.written_bytes == pytest.approx(expected.written_bytes, rel=0.03)
        assert found.cycles == pytest.approx(expected.cycles, rel=0.03) and found.passes == expected.passes


def test_sizes_need_no_arrays():
    """A dense matrix of 2^60 places has a size, though nobody can hold it."""
    rows = np.zeros((1 << 20) + 1, np.int64)
    rows[-1] = 1
    far = Csr(
        rows=1 << 20,
        columns=1 << 32,
        pointers=rows,
        coordinates=np.array([5], np.uint32),
        bits=np.array([1], np.uint32),
        value="int32",
    )
    found = expected_conversion(DESIGN, Sides.of(far, "dense", storage_format("dense"), own="csr", leaves=False))
    assert found.read_bytes == 4 << 52
