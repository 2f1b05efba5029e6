"""binsparse files: what is written is read back, what the specification shows is read, what is damaged is refused."""

import json
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.sparse as sp

from sw.operands import OperandError, load
from sw.operands.binsparse import write_binsparse


def write(path, descriptor: Any, **arrays) -> str:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array)
        if descriptor is not None:
            text = descriptor if isinstance(descriptor, str) else json.dumps({"binsparse": descriptor})
            file.attrs["binsparse"] = text
    return str(path)


def types(values: str = "float64", *names: str) -> dict[str, str]:
    return dict.fromkeys(names or ("pointers_to_1", "indices_1"), "uint64") | {"values": values}


@pytest.mark.parametrize("layout", ["CSR", "CSC", "COO"])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("ones", [False, True])
def test_round_trip(tmp_path, layout, symmetric, ones):
    matrix = sp.random_array((40, 40), density=0.1, rng=np.random.default_rng(3), format="csr")
    matrix = sp.csr_array(matrix + matrix.T) if symmetric else matrix
    matrix.sort_indices()
    if ones:
        matrix.data[:] = 1
    path = tmp_path / "m.bsp.h5"
    write_binsparse(path, matrix, layout, symmetric=symmetric)
    operand = load(str(path))
    assert operand.name == "m" and operand.symmetric_expanded == symmetric
    assert (operand.matrix != matrix).nnz == 0 and operand.nnz == matrix.nnz
    with h5py.File(path) as file:
        descriptor = json.loads(file.attrs["binsparse"])["binsparse"]
        assert descriptor["format"] == layout and descriptor["shape"] == [40, 40]
        assert descriptor["data_types"]["values"] == ("iso[float64]" if ones else "float64")
        assert descriptor["number_of_stored_values"] == len(file["indices_1"])
        assert len(file["values"]) == (1 if ones else len(file["indices_1"]))
        for name, kind in descriptor["data_types"].items():
            assert str(file[name].dtype) == kind.removeprefix("iso[").removesuffix("]")


@pytest.mark.parametrize(
    ("kind", "value"),
    [("int8", -128), ("int32", -(2**31)), ("uint8", 200), ("uint64", 2**53 + 1), ("int64", 2**63 - 1)],
)
def test_mirror_images_of_narrow_integers(tmp_path, kind, value):
    path = write(
        tmp_path / "skew.h5",
        {
            "format": "COO", "shape": [3, 3], "structure": "skew_symmetric_lower",
            "data_types": types(kind, "indices_0", "indices_1"),
        },
        indices_0=[2], indices_1=[0], values=np.array([value], kind),
    )  # fmt: skip
    matrix = load(path).matrix
    assert matrix.dtype == np.int64 and matrix.data.tolist() == [-value, value]


def test_the_integer_without_a_mirror_image(tmp_path):
    path = write(
        tmp_path / "skew.h5",
        {
            "format": "COO", "shape": [3, 3], "structure": "skew_symmetric_lower",
            "data_types": types("int64", "indices_0", "indices_1"),
        },
        indices_0=[1, 2], indices_1=[0, 0], values=np.array([1, -(2**63)]),
    )  # fmt: skip
    with pytest.raises(OperandError, match=r"skew\.h5: row 3, column 1: value -9223372036854775808: its mirror image"):
        load(path)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (4, 4), (1, 1)])
@pytest.mark.parametrize("layout", ["CSR", "CSC", "COO"])
def test_empty_matrices(tmp_path, shape, layout):
    write_binsparse(tmp_path / "e.h5", sp.csr_array(shape), layout)
    operand = load(str(tmp_path / "e.h5"))
    assert operand.shape == shape and operand.nnz == 0


def test_the_specifications_iso_example(tmp_path):
    path = write(
        tmp_path / "iso.h5",
        {"format": "CSR", "shape": [5, 5], "data_types": types("iso[int8]")},
        pointers_to_1=np.array([0, 1, 3, 3, 5, 6], np.uint64),
        indices_1=np.array([3, 1, 4, 1, 2, 3], np.uint64),
        values=np.array([7], np.int8),
    )
    expected = [[0, 0, 0, 7, 0], [0, 7, 0, 0, 7], [0, 0, 0, 0, 0], [0, 7, 7, 0, 0], [0, 0, 0, 7, 0]]
    assert load(path).matrix.toarray().tolist() == expected


def test_the_specifications_symmetric_example(tmp_path):
    path = write(
        tmp_path / "sym.h5",
        {"format": "CSR", "shape": [5, 5], "structure": "symmetric_lower", "data_types": types("int8")},
        pointers_to_1=np.array([0, 1, 3, 5, 7, 9], np.uint64),
        indices_1=np.array([0, 0, 1, 0, 2, 1, 3, 2, 4], np.uint64),
        values=np.array([1, 2, 9, 7, 2, 2, 3, 3, 7], np.int8),
    )
    expected = [[1, 2, 7, 0, 0], [2, 9, 0, 2, 0], [7, 0, 2, 0, 3], [0, 2, 0, 3, 0], [0, 0, 3, 0, 7]]
    whole, stored = load(path), load(path, as_stored=True)
    assert whole.matrix.toarray().tolist() == expected and whole.symmetric_expanded
    assert stored.matrix.toarray().tolist() == np.tril(expected).tolist() and not stored.symmetric_expanded


def test_skew_and_hypersparse_and_by_column(tmp_path):
    path = write(
        tmp_path / "skew.h5",
        {"format": "COOC", "shape": [3, 3], "structure": "skew_symmetric_upper",
         "data_types": types("uint8", "indices_0", "indices_1")},
        indices_0=np.array([1, 2]), indices_1=np.array([0, 0]), values=np.array([4, 5], np.uint8),
    )  # fmt: skip
    assert load(path).matrix.toarray().tolist() == [[0, 4, 5], [-4, 0, 0], [-5, 0, 0]]
    path = write(
        tmp_path / "dcsc.h5",
        {"format": "DCSC", "shape": [3, 90], "data_types": types("bint8", "indices_0", "pointers_to_1", "indices_1")},
        indices_0=np.array([7, 80]), pointers_to_1=np.array([0, 1, 3]), indices_1=np.array([2, 0, 1]),
        values=np.array([1, 0, 2], np.uint8),
    )  # fmt: skip
    matrix = load(path).matrix
    assert matrix[2, 7] == 1 and matrix[1, 80] == 1 and matrix[0, 80] == 0 and matrix.nnz == 3


GOOD = {"format": "CSR", "shape": [2, 2], "data_types": types()}
ARRAYS = {"pointers_to_1": np.array([0, 1, 2]), "indices_1": np.array([0, 1]), "values": np.ones(2)}


@pytest.mark.parametrize(
    ("descriptor", "arrays", "complaint"),
    [
        (None, {}, "an HDF5 file without a binsparse descriptor (an attribute `binsparse` of its root)"),
        ("{", {}, "its binsparse descriptor is not JSON ("),
        ("[]", {}, "its binsparse descriptor is not a JSON object"),
        ({"format": "BSR"}, {}, "binsparse format 'BSR': must be one of CSR, CSC, DCSR, DCSC, COO, COOR, COOC"),
        ({"format": {"level": "dense"}}, {}, "a custom binsparse format: must be one of CSR, "),
        ({"shape": [2]}, {}, "binsparse shape [2]: must be two whole numbers, rows and columns"),
        ({"shape": [2, -2]}, {}, "binsparse shape [2, -2]: must be two whole numbers, rows and columns"),
        ({"data_types": {}}, {}, "binsparse data_types: must say the types of pointers_to_1, indices_1, values"),
        ({"data_types": types("complex[float64]")}, {}, "values are complex[float64]: must be one of uint8, "),
        ({"data_types": types("float32")}, {}, "dataset values is float64, its descriptor says float32"),
        ({"data_types": types("iso[float64]")}, {}, "values has 2 entries: must have 1"),
        ({"structure": "hermitian_lower"}, {}, "binsparse structure 'hermitian_lower': must be one of symmetric_lower, "),
        ({"structure": "symmetric_lower", "shape": [2, 3]}, {}, "symmetric_lower of 2 x 3: must be square"),
        ({"structure": "skew_symmetric_lower"}, {}, "skew_symmetric_lower with values on the diagonal: they are zero"),
        ({"structure": "symmetric_upper"}, {"indices_1": np.array([0, 0])},
         "symmetric_upper with an element at row 1, column 0: must be in the other triangle"),
        ({"number_of_stored_values": 3}, {}, "truncated: 2 of 3 stored values"),
        ({"fill": True}, {"fill_value": np.ones(1)}, "fill_value: must be 0 ("),
        ({}, {"values": np.ones(3)}, "values has 3 entries: must have 2"),
        ({}, {"values": np.ones((2, 1))}, "dataset values is float64 (2, 1): must be a vector of whole numbers"),
        ({}, {"indices_1": np.array([0, 2])}, "indices_1 holds 2: must be from 0 to 1"),
        ({}, {"indices_1": np.array([-1, 1])}, "indices_1 holds -1: must be from 0 to 1"),
        ({}, {"indices_1": np.array([0.0, 1.0])}, "dataset indices_1 is float64 (2,): must be a vector of whole numbers"),
        ({}, {"pointers_to_1": np.array([0, 2])}, "pointers_to_1 has 2 entries: must have 3"),
        ({}, {"pointers_to_1": np.array([0, 3, 2])}, "pointers_to_1 must rise from 0 to 2, the number of stored values"),
        ({"shape": [1, 2]}, {"pointers_to_1": np.array([0, 2]), "indices_1": np.array([1, 1])},
         "1 coordinates are there twice: must be distinct"),
        ({}, {"values": None}, "has no dataset values"),
    ],
)  # fmt: skip
def test_damaged_files_are_one_line(tmp_path, descriptor, arrays, complaint):
    merged = {name: array for name, array in (ARRAYS | arrays).items() if array is not None}
    path = write(tmp_path / "m.h5", GOOD | descriptor if isinstance(descriptor, dict) else descriptor, **merged)
    with pytest.raises(OperandError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: {complaint}") and "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"no hdf5"])
def test_no_hdf5_at_all(tmp_path, content):
    path = tmp_path / "m.h5"
    path.write_bytes(content)
    with pytest.raises(OperandError, match=r"m\.h5: not a complete HDF5 file \("):
        load(str(path))


def test_truncated_and_flipped_files_never_escape(tmp_path):
    path = tmp_path / "m.h5"
    write_binsparse(path, sp.random_array((30, 30), density=0.2, rng=np.random.default_rng(0), format="csr"))
    good = path.read_bytes()
    rng = np.random.default_rng(1)
    for trial in range(120):
        damaged = bytearray(good)
        for position in rng.integers(0, len(good), 3):
            damaged[position] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(damaged[: len(good) - 40 * trial % len(good)]))
        try:
            load(str(path))
        except OperandError as error:
            assert "\n" not in str(error)


def test_what_cannot_be_written(tmp_path):
    lopsided = sp.csr_array(np.triu(np.ones((3, 3))))
    with pytest.raises(ValueError, match=r"^A matrix must be symmetric to be stored as one triangle$"):
        write_binsparse(tmp_path / "m.h5", lopsided, symmetric=True)
    with pytest.raises(ValueError, match=r"^Layout must be one of CSR, CSC, COO, not 'BSR'$"):
        write_binsparse(tmp_path / "m.h5", lopsided, "BSR")
