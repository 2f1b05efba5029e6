"""Operands at the edges of what a matrix can be give right answers in every engine that needs no hardware."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from sw.cli.app import main


def drawn(rows: int, columns: int, density: float) -> sp.csr_array:
    """Integers from -9 to 9: right for both value types, and sums that cancel."""
    rng = np.random.default_rng(rows * 1000 + columns)
    matrix = sp.random_array((rows, columns), density=density, rng=rng, format="csr")
    matrix.data = rng.integers(-9, 10, matrix.nnz).astype(float)
    return matrix


def with_full_row_and_column() -> sp.csr_array:
    dense = drawn(30, 30, 0.05).toarray()
    dense[7, :] = dense[:, 11] = 1
    return sp.csr_array(dense)


def with_empty_rows_and_columns() -> sp.csr_array:
    dense = drawn(50, 50, 0.1).toarray()
    dense[10:20, :] = 0
    dense[:, 30:40] = 0
    return sp.csr_array(dense)


# A, B (None: A again), and more options.
CASES = {
    "no nonzeros": (sp.csr_array((40, 40)), None, []),
    "one empty element": (sp.csr_array((1, 1)), None, []),
    "one element": (sp.csr_array(np.array([[3.0]])), None, []),
    "row times column": (drawn(1, 50, 0.5), drawn(50, 1, 0.5), []),
    "column times row": (drawn(50, 1, 1.0), drawn(1, 50, 1.0), []),
    "full row and column": (with_full_row_and_column(), None, []),
    "dense": (drawn(90, 90, 1.0), None, []),
    "empty rows and columns": (with_empty_rows_and_columns(), None, []),
    "all cancels": (sp.csr_array(np.array([[1.0, -1.0]])), sp.csr_array(np.array([[1.0, 2.0], [1.0, 2.0]])), []),
    "nothing meets": (sp.csr_array(np.eye(4, k=0)[:, :2] @ np.eye(2, 4)), sp.csr_array(np.eye(4, k=-2)), []),
    "only zeros are stored": (sp.csr_array((np.zeros(3), ([0, 1, 2], [0, 1, 2])), shape=(3, 3)), None, []),
    "times its transpose": (drawn(20, 70, 0.2), None, ["--transpose-b"]),
    "its transpose times it": (drawn(70, 20, 0.2), None, ["--transpose-a"]),
    "both transposed": (drawn(30, 40, 0.2), drawn(50, 30, 0.2), ["--transpose-a", "--transpose-b"]),
    "rectangular": (drawn(37, 53, 0.2), drawn(53, 91, 0.1), []),
    "short and wide": (drawn(5, 1000, 0.2), drawn(1000, 3, 0.2), []),
    "A is empty": (sp.csr_array((5, 7)), drawn(7, 9, 0.5), []),
    "B is empty": (drawn(5, 7, 0.5), sp.csr_array((7, 9)), []),
}
TILED = ["--T_i", "7", "--T_j", "16", "--T_k", "11", "--order", "kji"]


@pytest.mark.parametrize("value", ["int32", "fp32"])
@pytest.mark.parametrize("engine", ["golden", "model"])
@pytest.mark.parametrize("case", CASES)
def test_right_answers(tmp_path, monkeypatch, capsys, case, engine, value):
    monkeypatch.chdir(tmp_path)
    a, b, more = CASES[case]
    sp.save_npz("a.npz", a)
    operands = ["a.npz"]
    if b is not None:
        sp.save_npz("b.npz", b)
        operands.append("b.npz")
    right = a if b is None else b
    left, right = a.T if "--transpose-a" in more else a, right.T if "--transpose-b" in more else right
    expected = (left @ right).toarray()
    for tiles in ([], TILED, [*TILED, "--tuning"]):
        options = ["--config", "edge", "--engine", engine, "--value", value, "--json", "--out", "o"]
        assert main(["run", *operands, *more, *options, *tiles]) == 0
        record = json.loads(capsys.readouterr().out)
        c = sp.load_npz("o/C.npz")
        assert record["scheme"]["tuning"] is ("--tuning" in tiles)
        assert record["correct"] and np.array_equal(c.toarray(), expected)
        assert c.shape == expected.shape and c.nnz == np.count_nonzero(expected) == record["nnz_c"]
        if engine == "model":
            assert record["cycles"] >= record["roofline_cycles"]
