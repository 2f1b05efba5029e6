"""Every memory format gives back what it packed, and its words are as long as the hardware's."""

import numpy as np
import pytest

from gen.design import ELEMENT_BYTES
from rtl import storage
from rtl.types import Element
from sw.formats.array_checks import FormatError
from sw.formats.csr import Csr
from sw.formats.memory_csr import CSR32

FORMATS = pytest.mark.parametrize("form", [CSR32], ids=["csr32"])


def drawn(rows, columns, seed=3):
    rng = np.random.default_rng(seed)
    present = rng.random((rows, columns)) < 0.3
    present[rows // 2] = False
    bits = rng.integers(0, 1 << 32, np.count_nonzero(present), dtype=np.uint32)
    return Csr(
        rows=rows,
        columns=columns,
        pointers=np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int64),
        coordinates=np.nonzero(present)[1].astype(np.uint32),
        bits=bits,
        value="int32",
    )


def in_memory(form, matrix):
    """Bytes of each array, with others behind them."""
    arrays = form.pack(form.row_ranges(matrix)[1], matrix.coordinates, matrix.bits)
    assert tuple(arrays) == form.arrays
    assert {name: words.nbytes for name, words in arrays.items()} == form.sizes(matrix.rows, matrix.nnz)
    poison = np.full(24, 0xA5, np.uint8)
    return {name: np.concatenate([words.view(np.uint8), poison]) for name, words in arrays.items()}


@FORMATS
@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (20, 33)])
def test_what_is_packed_is_unpacked(form, shape):
    matrix = drawn(*shape)
    pointers, coordinates, bits = form.unpack(in_memory(form, matrix), matrix.rows, matrix.nnz)
    assert np.array_equal(pointers, matrix.pointers) and pointers.dtype == np.int64
    assert np.array_equal(coordinates, matrix.coordinates) and np.array_equal(bits, matrix.bits)
    begins, ends = form.row_ranges(matrix)
    assert np.array_equal(begins, pointers[:-1]) and np.array_equal(ends, pointers[1:])


@FORMATS
def test_element_is_as_long_as_the_hardware_has_it(form):
    assert form.element_bytes == storage.ELEMENT_BYTES == ELEMENT_BYTES == Element.as_shape().size // 8
    assert form.word_bytes == storage.WORD_BYTES
    assert storage.byte_count(5) == 5 * form.element_bytes and storage.element_count(48) == 48 // form.element_bytes
    assert storage.line_address(4096, 3, 4) == 4096 + 3 * 4 * form.element_bytes
    assert storage.word_address(4096, 3) == 4096 + 3 * form.word_bytes and storage.word_index(40) == 10
    assert 1 << storage.position_width(32) == storage.element_count(1 << 32)


def test_csr32_is_pointers_and_pairs_of_words():
    arrays = CSR32.pack(np.array([2, 2, 3], np.uint32), np.array([1, 4, 0], np.uint32), np.array([7, 8, 9], np.uint32))
    assert arrays["pointers"].view(np.uint32).tolist() == [0, 2, 2, 3]
    assert arrays["elements"].view(np.uint32).tolist() == [1, 7, 4, 8, 0, 9]


@pytest.mark.parametrize(
    ("pointers", "found"),
    [([0, 3, 2], "last 2, 1 falls"), ([1, 2, 3], "first 1, last 3, 0 falls"), ([0, 1, 2], "first 0, last 2, 0 falls")],
)
def test_pointers_that_are_no_rise_are_refused(pointers, found):
    arrays = {"pointers": np.array(pointers, "<u4").view(np.uint8), "elements": np.zeros(24, np.uint8)}
    with pytest.raises(FormatError, match=f"not a rise from 0 to 3: .*{found}$"):
        CSR32.unpack(arrays, 2, 3)
