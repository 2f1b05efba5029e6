"""SciPy as the judge: its own arrays of COO, CSR, CSC, BSR and DIA are those of the storage formats."""

import numpy as np
import pytest
import scipy.sparse as sp

from sw.formats.csr import Csr as Matrix
from sw.formats.memory_csr import memory_csr
from sw.formats.sparse_tensor import SparseTensor
from sw.formats.storage import storage_format
from sw.formats.storage_format import Field, Layout, Region, pack
from sw.golden.arithmetic import in_slots

SHAPES = [(1, 1), (1, 9), (9, 1), (12, 8), (30, 44)]


def cases():
    rng = np.random.default_rng(3)
    for shape in SHAPES:
        for density in (0.0, 0.05, 0.4, 1.0):
            array = rng.integers(1, 100, shape) * (rng.random(shape) < density)
            yield sp.csr_array(array.astype(np.float32))


def tensor(matrix):
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return SparseTensor(
        shape=matrix.shape, ids=(rows, matrix.indices.astype(np.int64)), values=matrix.data, value="fp32"
    )


def judged(name, matrix):
    """The arrays that SciPy makes."""
    if name == "coo":
        found = matrix.tocoo()
        return {"row_ids": found.row, "col_ids": found.col, "values": found.data}
    if name in ("csr", "csc"):
        found = matrix.asformat(name)
        ids = ("row_ptrs", "col_ids") if name == "csr" else ("col_ptrs", "row_ids")
        return dict(zip((*ids, "values"), (found.indptr, found.indices, found.data), strict=True))
    if name == "dia":
        found = matrix.todia()
        order = np.argsort(found.offsets)
        return {"offsets": found.offsets[order], "diagonals": found.data[order]}
    found = matrix.tobsr((3, 4))
    found.sort_indices()
    return {"row_ptrs": found.indptr, "col_ids": found.indices, "blocks": found.data}


@pytest.mark.parametrize("name", ["coo", "csr", "csc", "bsr", "dia"])
def test_arrays_are_those_of_scipy(name):
    compared = 0
    for matrix in cases():
        if name == "bsr" and (matrix.shape[0] % 3 or matrix.shape[1] % 4):
            continue
        form = storage_format(name, **({"block": (3, 4)} if name == "bsr" else {}))
        arrays, expected = form.encode(tensor(matrix)), judged(name, matrix)
        assert set(arrays) == set(expected)
        for part, array in expected.items():
            # SciPy gives a matrix without diagonals a width of its own.
            if array.size or part != "diagonals":
                assert np.array_equal(arrays[part], array), (matrix.shape, matrix.nnz, part)
            compared += array.size
    assert compared > 100


@pytest.mark.parametrize("value", ["int8", "bf16", "int32", "fp32"])
def test_packed_records_are_csr_with_pointers_of_32_bits(value):
    for matrix in cases():
        held = Matrix.from_scipy(matrix, in_slots(matrix.data.astype(np.float32).view(np.uint32), value), value)
        form = storage_format("csr")
        own = SparseTensor.from_csr(held)
        layout = form.layout(own.shape, form.counts(own), value)
        pointers, entries = layout.regions
        wide = Region(pointers.name, pointers.count, (Field("row_ptrs", 32),))
        packed = pack(Layout(value, (wide, entries)), form.encode(own))
        memory = memory_csr(True, value, held.columns)
        words = memory.pack(held.pointers[1:].astype(np.uint32), held.coordinates, held.bits)
        assert packed["row_ptrs"].tobytes() == words["pointers"].tobytes()
        assert words["elements"].tobytes()[: entries.bytes] == packed["entries"].tobytes()
        assert not words["elements"][entries.bytes :].any()
