"""Every memory format gives back what it packed, bit for bit where it says so, and its words are as long as the hardware's."""

import numpy as np
import pytest

from rtl import storage
from rtl.arith.arithmetic import value_bits
from rtl.types import Element
from sw.formats.array_checks import FormatError
from sw.formats.csr import Csr
from sw.formats.memory_csr import CSR32, ELEMENT_BYTES, MemoryCsr, memory_csr
from sw.formats.sparse_tensor import VALUE_BITS

PACKED = [MemoryCsr(coordinate_bits, value) for coordinate_bits in (1, 6, 13, 31, 32) for value in VALUE_BITS]
FORMATS = pytest.mark.parametrize("form", [CSR32, *PACKED], ids=lambda form: f"{form.coordinate_bits}-{form.value}")


def words(form, count, rng):
    """Words of random values of the format's type: integers with their sign, the upper half of a bf16."""
    drawn = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    drawn[: min(count, 2)] = (0, 0xFFFFFFFF)[: min(count, 2)]
    if form.value == "bf16":
        return drawn & np.uint32(0xFFFF0000)
    away = 32 - form.value_bits
    return (drawn.astype(np.int32) << away >> away).astype(np.uint32)


def drawn(form, rows, columns, seed=3, density=0.3):
    rng = np.random.default_rng(seed)
    columns = min(columns, 1 << form.coordinate_bits)
    present = rng.random((rows, columns)) < density
    present[rows // 2] = False
    bits = words(form, np.count_nonzero(present), rng)
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
    assert {name: array.nbytes for name, array in arrays.items()} == form.sizes(matrix.rows, matrix.nnz)
    poison = np.full(24, 0xA5, np.uint8)
    return {name: np.concatenate([array.view(np.uint8), poison]) for name, array in arrays.items()}


def packed_bit_by_bit(form, matrix):
    """The array of records, one bit of it after the other, and zeros to the end of its last word."""
    stream = []
    for coordinate, word in zip(matrix.coordinates.tolist(), matrix.bits.tolist(), strict=True):
        value = word >> 16 if form.value == "bf16" else word
        fields = [(value, form.value_bits), (coordinate, form.coordinate_bits)]
        for word, bits in reversed(fields) if form is CSR32 else fields:
            stream += [word >> n & 1 for n in range(bits)]
    stream += [0] * (-len(stream) % 32)
    return bytes(sum(bit << n for n, bit in enumerate(stream[p : p + 8])) for p in range(0, len(stream), 8))


@FORMATS
@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (20, 33)])
def test_what_is_packed_is_unpacked(form, shape):
    matrix = drawn(form, *shape)
    pointers, coordinates, bits = form.unpack(in_memory(form, matrix), matrix.rows, matrix.nnz)
    assert np.array_equal(pointers, matrix.pointers) and pointers.dtype == np.int64
    assert np.array_equal(coordinates, matrix.coordinates) and np.array_equal(bits, matrix.bits)
    begins, ends = form.row_ranges(matrix)
    assert np.array_equal(begins, pointers[:-1]) and np.array_equal(ends, pointers[1:])


@FORMATS
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_records_lie_bit_after_bit(form, density):
    matrix = drawn(form, 9, 30, seed=5, density=density)
    assert density == 0.0 or matrix.nnz > 3
    assert in_memory(form, matrix)["elements"][:-24].tobytes() == packed_bit_by_bit(form, matrix)


@FORMATS
def test_the_largest_coordinate_and_value_are_kept(form):
    """They fill all bits of their fields; the next larger coordinate is refused."""
    largest = (1 << form.coordinate_bits) - 1
    bits = np.array([0xFFFF0000 if form.value == "bf16" else 0xFFFFFFFF, 0], np.uint32)
    ends, coordinates = np.array([2], np.uint32), np.array([largest, largest], np.uint32)
    arrays = {name: array.view(np.uint8) for name, array in form.pack(ends, coordinates, bits).items()}
    _, found, values = form.unpack(arrays, 1, 2)
    assert found.tolist() == [largest, largest] and values.tolist() == bits.tolist()
    if form.coordinate_bits < 32:
        with pytest.raises(ValueError, match=f"^Field of {form.coordinate_bits} bits must be below {largest + 1}, "):
            form.pack(ends, coordinates + np.uint32(1), bits)


def test_a_column_count_says_the_bits_of_a_coordinate():
    found = [
        memory_csr(True, "int8", columns).coordinate_bits for columns in (1, 2, 3, 256, 257, (1 << 32) - 1, 1 << 32)
    ]
    assert found == [0, 1, 2, 8, 9, 32, 32]
    assert memory_csr(False, "int8", 2).record_bits == 64 and memory_csr(True, "bf16", 1 << 32).record_bits == 48


def test_a_nonzero_is_as_long_as_the_hardware_has_it():
    assert storage.ELEMENT_BYTES == Element.as_shape().size // 8 == ELEMENT_BYTES == CSR32.record_bits // 8
    assert storage.byte_count(5) == 5 * ELEMENT_BYTES and storage.element_count(48) == 48 // ELEMENT_BYTES
    assert storage.line_address(4096, 3, 4) == 4096 + 3 * 4 * ELEMENT_BYTES
    assert 1 << storage.position_width(32) == storage.element_count(1 << 32)
    assert {value: value_bits(value) for value in VALUE_BITS} == VALUE_BITS


@FORMATS
def test_a_position_is_as_long_as_the_hardware_has_it(form):
    assert form.word_bytes == storage.WORD_BYTES
    assert storage.word_address(4096, 3) == 4096 + 3 * form.word_bytes and storage.word_index(40) == 10


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
