"""Order-3 tensors from files and from their names; what is wrong with one is one line."""

import gzip

import numpy as np
import pytest

from sw.operands import OperandError, load
from sw.operands.load_tensor import is_tensor, load_tensor


def test_the_shape_and_count_of_a_name_are_exact():
    for exponent in (0, 0.5, 1.5):
        tensor = load_tensor(f"tensor:40:30:20:700:exponent={exponent}:seed=3")
        assert tensor.shape == (40, 30, 20) and tensor.nnz == len(np.unique(tensor.coordinates, axis=0)) == 700
        assert np.all(tensor.coordinates >= 0) and np.all(tensor.coordinates < tensor.shape)
        assert np.array_equal(tensor.coordinates, np.unique(tensor.coordinates, axis=0))  # sorted
        again = load_tensor(f"tensor:40:30:20:700:exponent={exponent}:seed=3")
        assert np.array_equal(again.coordinates, tensor.coordinates) and np.array_equal(again.values, tensor.values)
    assert not np.array_equal(load_tensor("tensor:40:30:20:700").coordinates, tensor.coordinates)


def test_an_exponent_makes_first_slices_fuller():
    counts = [
        np.bincount(load_tensor(f"tensor:100:100:100:5000:exponent={e}").coordinates[:, 0], minlength=100)
        for e in (0, 1)
    ]
    assert counts[0].max() < 90 and counts[1][0] > 400 and np.all(counts[1][:3] > counts[1][50:].max())


def test_a_full_tensor():
    assert load_tensor("tensor:3:4:5:60").coordinates.tolist() == np.argwhere(np.ones((3, 4, 5))).tolist()


@pytest.mark.parametrize("values", ["values", "data"])
def test_archives(tmp_path, values):
    coords = np.array([[2, 0, 1], [0, 3, 4], [2, 0, 1], [0, 0, 0]], np.int32)
    stored = coords if values == "values" else coords.T
    path = tmp_path / "t.npz"
    np.savez(path, coords=stored, shape=np.array([3, 4, 5]), **{values: np.array([1.5, 2, 3, -1], np.float32)})
    tensor = load_tensor(str(path))
    assert tensor.shape == (3, 4, 5)
    assert tensor.coordinates.tolist() == [[0, 0, 0], [0, 3, 4], [2, 0, 1]] and tensor.values.tolist() == [-1, 2, 4.5]


def test_frostt_files_and_the_ranks_that_are_kept(tmp_path):
    path = tmp_path / "t.tns"
    path.write_text("1 1 2 1 5\n3 1 1 2 7\n1 2 2 2 -2\n")
    tensor = load_tensor(str(path), (3, 0, 2))
    assert tensor.shape == (2, 3, 2)
    assert tensor.coordinates.tolist() == [[0, 0, 1], [1, 0, 1], [1, 2, 0]] and tensor.values.tolist() == [5, -2, 7]
    merged = load_tensor(str(path), (0, 2, 1)).coordinates.tolist()
    assert merged == [[0, 1, 0], [0, 1, 1], [2, 0, 0]]
    dropped = load_tensor(str(path), (2, 0, 1))
    assert dropped.nnz == 3 and dropped.values.sum() == 10


@pytest.mark.parametrize(
    ("spec", "ranks", "complaint"),
    [
        ("tensor:4:4:4:65", None, "NONZEROS 65: must be at most 64, the places there are"),
        ("tensor:4:4:4", None, "must be tensor:I:J:L:NONZEROS"),
        ("tensor:9:9:9:600:exponent=4", None, "600 different places are too many for this exponent"),
        ("tensor:9:9:9:6:slope=4", None, "option 'slope': must be one of exponent, seed, values"),
        ("tensor:4:4:4:9", (0, 1), "2 ranks: must be 3"),
        ("tensor:4:4:4:9", (0, 1, 3), "ranks 1,2,4: must be different ones from 1 to 3"),
        ("tensor:4:4:4:9", (0, 1, 1), "ranks 1,2,2: must be different ones from 1 to 3"),
        ("a.mtx", None, "not a tensor: must be .tns, .tns.gz, .npz, frostt:NAME or a generator (tensor)"),
        ("none.npz", None, "none.npz: no such file"),
        ("none.tns", None, "none.tns: no such file"),
        ("flat.tns", None, "2 ranks: must be 3: say which three to keep"),
        ("matrix.npz", None, "not a tensor: must hold coords, values (or data) and shape"),
        ("wild.npz", None, "coordinates lie outside the shape 2 x 2 x 2"),
        ("odd.npz", None, "coords are int64 (2, 3): must be 3 x 5 numbers"),
        ("noise.npz", None, "not a NumPy archive"),
    ],
)
def test_mistakes_are_one_line(tmp_path, monkeypatch, spec, ranks, complaint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flat.tns").write_text("1 2 3.5\n")
    (tmp_path / "noise.npz").write_bytes(b"noise")
    np.savez("matrix.npz", indices=np.arange(3))
    np.savez("wild.npz", coords=np.array([[0, 0, 2]]), values=np.ones(1), shape=np.array([2, 2, 2]))
    np.savez("odd.npz", coords=np.zeros((2, 3), np.int64), values=np.ones(5), shape=np.array([2, 2, 2]))
    with pytest.raises(OperandError) as caught:
        load_tensor(spec, ranks)
    assert complaint in str(caught.value) and "\n" not in str(caught.value)


def test_tensors_are_no_operands():
    assert is_tensor("tensor:4:4:4:9") and is_tensor("frostt:nips") and is_tensor("x.tns.gz") and not is_tensor("x.npz")
    with pytest.raises(OperandError, match="^tensor:4:4:4:9: a tensor: operands must be matrices"):
        load("tensor:4:4:4:9")


@pytest.mark.parametrize("suffix", [".tns", ".tns.gz"])
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "# of two\n1 1 1 1.7e308\n\n2 1 1 1\n1 1 1 1.7e308 # again\n",
            ":5: coordinates 1, 1, 1: value 1.7e+308: the sum of the 2 values there, 3.400000e+308, is out of range: "
            "float64 holds magnitudes up to 1.797693e+308",
        ),
        ("1 1 1 inf\n1 1 2 1e400\n", ":2: value 1e400 is out of range: float64 holds magnitudes up to 1.797693e+308"),
    ],
)
def test_values_that_leave_the_range(tmp_path, suffix, text, complaint):
    path = tmp_path / f"t{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    with pytest.raises(OperandError) as caught:
        load_tensor(str(path))
    assert str(caught.value) == f"{path}{complaint}"


def test_integers_of_archives_that_leave_the_range(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, coords=np.array([[0, 1, 2]] * 2), shape=np.array([3, 4, 5]), values=np.array([2**63 - 1, 1]))
    with pytest.raises(OperandError) as caught:
        load_tensor(str(path))
    assert str(caught.value) == (
        f"{path}: coordinates 1, 2, 3: value 1: the sum of the 2 values there, 9223372036854775808, is out of range: "
        "int64 holds -9223372036854775808 to 9223372036854775807"
    )
    np.savez(path, coords=np.zeros((1, 3), int), shape=np.array([3, 4, 5]), values=np.array([2**63], np.uint64))
    with pytest.raises(OperandError, match="value 9223372036854775808 is too large: at most 9223372036854775807"):
        load_tensor(str(path))
