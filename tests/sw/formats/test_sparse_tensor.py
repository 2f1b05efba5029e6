"""A sparse tensor becomes a CSR matrix and comes back, to the last bit."""

import numpy as np
import pytest

from sw.formats.sparse_tensor import VALUE_BITS, SparseTensor

from .tensors import drawn, small_tensors, tensor, values_of

MATRICES = dict(small_tensors(2))


def comes_back(given: SparseTensor) -> None:
    """Rows, columns and slots are those of the tensor, one entry after the other."""
    found = given.to_csr()
    assert found.shape == given.shape and found.value == given.value
    rows = [row for row in range(found.rows) for _ in range(found.pointers[row], found.pointers[row + 1])]
    assert rows == given.ids[0].tolist() and found.coordinates.tolist() == given.ids[1].tolist()
    assert np.array_equal(found.values, given.values, equal_nan=given.values.dtype.kind == "f")
    assert SparseTensor.from_csr(found).same_as(given)


@pytest.mark.parametrize("name", MATRICES)
def test_every_matrix_comes_back(name):
    comes_back(MATRICES[name])


@pytest.mark.parametrize("value", VALUE_BITS)
@pytest.mark.parametrize("zeros", [False, True], ids=["nonzeros", "stored zeros"])
@pytest.mark.parametrize(("shape", "density"), [((9, 20), 0.4), ((30, 7), 0.05), ((6, 6), 0.0), ((1, 1), 1.0)])
def test_every_value_comes_back(shape, density, zeros, value):
    """The extremes of each type are among them; a slot has the number, whatever its type."""
    given = drawn(shape, density, value, zeros=zeros)
    comes_back(given)
    kind = np.float32 if value in ("bf16", "fp32") else np.int32
    assert np.array_equal(given.to_csr().bits, given.values.astype(kind).view(np.uint32))


def test_the_widest_rows():
    """Coordinates take 32 bits; a matrix with so many columns costs no memory for them."""
    columns = 1 << 32
    given = tensor((3, columns), [0, columns - 1, 2 * columns + 5, 3 * columns - 1])
    assert given.to_csr().coordinates.tolist() == [0, columns - 1, 5, columns - 1]
    comes_back(given)


def test_three_ranks_are_no_matrix():
    cube = SparseTensor(shape=(2, 2, 2), ids=(np.zeros(1, np.int64),) * 3, values=values_of(1, "fp32"), value="fp32")
    with pytest.raises(ValueError, match="unpack"):
        cube.to_csr()
