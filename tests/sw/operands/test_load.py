"""Operands from archives and by name; the values a design can hold."""

import struct
from pathlib import Path

import networkx
import numpy as np
import pytest
import scipy.sparse as sp

from sw.operands import Operand, OperandError, load, to_csr, to_design_values
from sw.operands.load import KINDS


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.uint8, bool])
def test_npz_in_every_format(tmp_path, layout, dtype):
    dense = np.array([[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]], dtype=dtype)
    path = tmp_path / "m.npz"
    sp.save_npz(path, sp.csr_array(dense).asformat(layout))
    operand = load(str(path))
    assert operand.name == "m"
    assert np.array_equal(operand.matrix.toarray(), dense)
    assert operand.nnz == 4
    assert operand.matrix.dtype == (np.float64 if np.dtype(dtype).kind == "f" else np.int64)


def test_npz_is_made_canonical(tmp_path):
    path = tmp_path / "m.npz"
    unsorted = sp.csr_array((np.array([1.0, 2, 3, 0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3))
    sp.save_npz(path, unsorted)
    matrix = load(str(path)).matrix
    assert matrix.indices.tolist() == [0, 2, 1]
    assert matrix.data.tolist() == [2, 4, 0]


def archive(path: Path, **arrays) -> str:
    np.savez(path, **arrays)
    return str(path)


GOOD = {"format": b"csr", "shape": np.array([2, 2]), "indptr": np.array([0, 1, 2]), "data": np.ones(2)}


@pytest.mark.parametrize(
    ("arrays", "complaint"),
    [
        ({"x": np.ones(3)}, "holds x: must be a file written by scipy.sparse.save_npz"),
        (GOOD | {"indices": np.array([0, 5])}, "damaged CSR matrix (indices must be < 2)"),
        (GOOD | {"indices": np.array([0, -1])}, "damaged CSR matrix (indices must be >= 0)"),
        (
            GOOD | {"indices": np.array([0, 1]), "data": np.ones(2) * 1j},
            "values are complex (complex128): must be real, integer or pattern",
        ),
        ({"format": b"coo", "shape": np.array([2, 2]), "data": np.ones(1), "row": np.array([0])}, None),
        (GOOD, None),
        (GOOD | {"indices": np.array([0, 1]), "format": b"xyz"}, None),
        (
            GOOD | {"indices": np.array([0, 1]), "data": np.full(2, 2**63, np.uint64)},
            "value 9223372036854775808 is too large: at most 9223372036854775807",
        ),
        (
            GOOD | {"indices": np.array([0.5, 1.0])},
            "damaged matrix (indices of type float64: must be integers)",
        ),
        (
            GOOD | {"indices": np.array([0, 1]), "indptr": np.array([0, 1.5, 2])},
            "damaged matrix (indptr of type float64: must be integers)",
        ),
        (
            GOOD
            | {"format": b"bsr", "shape": np.array([5, 4]), "indices": np.array([0, 1]), "data": np.ones((2, 2, 2))},
            "damaged BSR matrix (5 x 4 in blocks of 2 x 2)",
        ),
    ],
)
def test_damaged_npz(tmp_path, arrays, complaint):
    path = archive(tmp_path / "m.npz", **arrays)
    with pytest.raises(OperandError) as caught:
        load(path)
    text = str(caught.value)
    assert "\n" not in text
    if complaint:
        assert text == f"{path}: {complaint}"
    else:
        assert text.startswith(f"{path}: not a sparse matrix (")
        assert text.endswith("): must be a file written by scipy.sparse.save_npz")


@pytest.mark.parametrize("keep", [0, 10, 200, -30])
def test_truncated_npz(tmp_path, keep):
    path = tmp_path / "m.npz"
    sp.save_npz(path, sp.eye_array(100, format="csr"))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(OperandError, match=r"m\.npz: (empty file|not a complete \.npz archive|not a sparse matrix)"):
        load(str(path))


def test_flipped_bytes_never_escape(tmp_path):
    path = tmp_path / "m.npz"
    sp.save_npz(path, sp.random_array((30, 30), density=0.2, rng=np.random.default_rng(0), format="csr"))
    good = path.read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(300):
        damaged = bytearray(good)
        for position in rng.integers(0, len(good), 3):
            damaged[position] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(damaged))
        try:
            load(str(path))
        except OperandError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("order", [2, 3, 5, 8])
def test_mycielskian(order):
    expected = networkx.to_scipy_sparse_array(networkx.mycielski_graph(order), dtype=np.int64)
    operand = load(f"mycielskian:{order}")
    assert operand.name == f"mycielskian{order}"
    assert (operand.matrix != expected).nnz == 0
    assert operand.matrix.has_sorted_indices


def test_pyamg():
    operand = load("pyamg:airfoil")
    assert operand.shape == (260, 260)
    assert operand.nnz == 1682


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nowhere.mtx", "nowhere.mtx: no such file"),
        (
            "matrix.txt",
            f"matrix.txt: not an operand: must be {KINDS} (did you mean .mtx?)",
        ),
        (
            "",
            f"an operand's name is empty: must be {KINDS}",
        ),
        ("mycielskian:1", "mycielskian:1: order '1': must be a whole number from 2 to 16"),
        ("mycielskian:four", "mycielskian:four: order 'four': must be a whole number from 2 to 16"),
        ("mycielskian:40", "mycielskian:40: order '40': must be a whole number from 2 to 16"),
        (
            "pyamg:nothing",
            "pyamg:nothing: no such example: must be one of airfoil, bar, helmholtz_2D, knot, "
            "local_disc_galerkin_diffusion, recirc_flow, unit_cube, unit_square",
        ),
        (
            "pyamg:helmholtz_2D",
            "pyamg:helmholtz_2D: values are complex (complex128): must be real, integer or pattern",
        ),
        ("suitesparse:cant", "suitesparse:cant: must be suitesparse:Group/Name, as in suitesparse:Williams/cant"),
        (
            "suitesparse:../cant",
            "suitesparse:../cant: must be suitesparse:Group/Name, as in suitesparse:Williams/cant",
        ),
    ],
)
def test_refused_names(spec, message):
    with pytest.raises(OperandError) as caught:
        load(spec)
    assert str(caught.value) == message


def test_tensor_is_refused(tmp_path):
    path = tmp_path / "t.tns"
    path.write_text("1 1 1 1.0\n")
    with pytest.raises(OperandError) as caught:
        load(str(path))
    assert str(caught.value) == (
        f"{path}: a tensor: operands must be matrices (.mtx, .mtx.gz, .npz or a data-set name)"
    )


def test_folder_is_refused(tmp_path):
    path = tmp_path / "m.mtx"
    path.mkdir()
    with pytest.raises(OperandError, match=r"is a folder"):
        load(str(path))


# Values -------------------------------------------------------------------------------------------------------------


def operand(values, dtype=np.float64) -> Operand:
    return Operand(name="m", source="m.mtx", matrix=sp.csr_array(np.array([values, values], dtype=dtype)))


def test_values_as_int32():
    matrix = operand([2**31 - 1, -(2**31), 5], np.int64)
    assert to_design_values(matrix, "int32")[:3].tolist() == [0x7FFFFFFF, 0x80000000, 5]
    assert to_design_values(operand([3.0, -4.0]), "int32").tolist() == [3, 0xFFFFFFFC] * 2


def test_values_as_fp32():
    matrix = operand([0.1, -1.0, np.inf, np.nan, 1e-45, 1e-60])
    expected = [struct.unpack("<I", struct.pack("<f", 0.1))[0], 0xBF800000, 0x7F800000, 0x7FC00000, 1, 0]
    assert to_design_values(matrix, "fp32")[:6].tolist() == expected


@pytest.mark.parametrize(("value", "bits"), [("int8", 8), ("int16", 16)])
def test_values_as_narrow_integers(value, bits):
    half = 1 << (bits - 1)
    converted = to_csr(operand([half - 1, -half, -1, 5]), value)
    assert converted.bits[:4].tolist() == [half - 1, 2**32 - half, 2**32 - 1, 5]
    assert converted.values[:4].tolist() == [half - 1, -half, -1, 5]
    assert converted.to_scipy().dtype == np.dtype(value)


def test_values_as_bf16():
    """In the upper half; rounded once: a number just beside a tie is not taken for one."""
    numbers = [1.0, -2.5, 0.1, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-40, 1 + 3 * 2.0**-8 - 2.0**-40]
    words = [0x3F80, 0xC020, 0x3DCD, 0x3F80, 0x3F82, 0x3F81, 0x3F81]
    numbers += [np.inf, np.nan, 2.0**-133, 2.0**-134, 2.0**-134 + 2.0**-170, -(2.0**-140), 2.0**128 - 2.0**120]
    words += [0x7F80, 0x7FC0, 1, 0, 1, 0x8000, 0x7F7F]
    converted = to_csr(operand(numbers), "bf16")
    assert [f"{word:08x}" for word in converted.bits[: len(words)]] == [f"{word << 16:08x}" for word in words]
    assert converted.values.dtype == converted.to_scipy().dtype == np.float32


def test_large_integers_are_rounded_to_bf16_once():
    """float64 would take the number one above a tie for the tie."""
    for base, sign in ((2**62, 1), (2**53, 1), (-(2**62), -1)):
        half = abs(base) >> 8
        matrix = operand([base, base + sign * half, base + sign * (half + 1), base + sign * 3 * half], np.int64)
        exact = [base, base, base + sign * 2 * half, base + sign * 4 * half]
        assert to_csr(matrix, "bf16").values[:4].astype(np.float64).tolist() == exact


def test_every_nan_becomes_the_canonical_one():
    matrix = operand([1.0])
    matrix.matrix.data[:] = np.array([0xFFF0000000000001, 0x7FF8000000000123], np.uint64).view(np.float64)
    assert to_design_values(matrix, "fp32").tolist() == [0x7FC00000] * 2


INTEGERS = "int32 designs need integers (use --value fp32)"
RANGE = "is out of range: int32 holds -2147483648 to 2147483647"
SINGLE = "fp32 holds magnitudes up to 3.402823e+38"


@pytest.mark.parametrize(
    ("values", "dtype", "value", "message"),
    [
        ([1, 2.5], np.float64, "int32", "value 2.5 at row 1, column 2 is not an integer: " + INTEGERS),
        ([1, np.nan], np.float64, "int32", "value nan at row 1, column 2 is not a number: " + INTEGERS),
        ([1, np.inf], np.float64, "int32", "value inf at row 1, column 2 " + RANGE),
        ([1, 2**31], np.int64, "int32", "value 2147483648 at row 1, column 2 " + RANGE),
        ([1, 128], np.int64, "int8", "value 128 at row 1, column 2 is out of range: int8 holds -128 to 127"),
        ([1, -32769.0], np.float64, "int16", "value -32769.0 at row 1, column 2 is out of range: int16 holds "
         "-32768 to 32767"),
        ([1, 0.5], np.float64, "int8", "value 0.5 at row 1, column 2 is not an integer: int8 designs need integers "
         "(use --value fp32)"),
        ([0, 3.4e38], np.float64, "bf16", "value 3.4e+38 at row 1, column 2 is out of range: bf16 holds magnitudes up "
         "to 3.389531e+38"),
        ([0, -1e300], np.float64, "fp32", "value -1e+300 at row 1, column 2 is out of range: " + SINGLE),
    ],
)  # fmt: skip
def test_values_refused(values, dtype, value, message):
    with pytest.raises(OperandError) as caught:
        to_design_values(operand(values, dtype), value)
    assert str(caught.value) == f"m.mtx: {message}"


def test_row_of_a_refused_value_skips_empty_rows():
    matrix = sp.csr_array((np.array([0.5]), np.array([0]), np.array([0, 0, 0, 1, 1])), shape=(4, 1))
    with pytest.raises(OperandError, match=r"at row 3, column 1 is not"):
        to_design_values(Operand(name="m", source="m", matrix=matrix), "int32")


def test_to_csr_and_back():
    matrix = operand([0.0, 1.5, 0.0, 2.5])
    converted = to_csr(matrix, "fp32")
    assert converted.pointers.tolist() == [0, 2, 4]
    assert converted.coordinates.tolist() == [1, 3, 1, 3]
    assert (converted.to_scipy() != matrix.matrix).nnz == 0


def test_many_empty_rows_are_refused_before_they_are_held(tmp_path, monkeypatch):
    """A wide matrix is small until it is transposed; a long one has its pointers from the start."""
    monkeypatch.setattr("os.sysconf", lambda name: {"SC_PAGE_SIZE": 1 << 20, "SC_PHYS_PAGES": 8}[name])
    message = r"needs about 0\.0 GiB to hold, this machine has 0\.0 GiB$"
    (tmp_path / "wide.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 900000 1\n1 1 1\n")
    wide = load(str(tmp_path / "wide.mtx"))
    with pytest.raises(OperandError, match=rf"wide\.mtx: {message}"):
        wide.transposed()
    sp.save_npz(tmp_path / "long.npz", sp.coo_array(([1.0], ([0], [0])), shape=(900_000, 2)))
    with pytest.raises(OperandError, match=rf"long\.npz: {message}"):
        load(str(tmp_path / "long.npz"))


def test_transposed():
    matrix = sp.csr_array(np.array([[1, 0, 2], [0, 0, 3]]))
    turned = Operand(name="m", source="m.mtx", matrix=matrix).transposed()
    assert turned.name == "m^T" and turned.source == "m.mtx (transposed)"
    assert turned.matrix.toarray().tolist() == [[1, 0], [0, 0], [2, 3]]
    assert turned.matrix.has_sorted_indices
