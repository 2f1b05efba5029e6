"""Matrix Market: every form against SciPy, and every damaged file with its one line."""

import gzip
import io

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from sw.operands import OperandError, load

COORDINATE = "%%MatrixMarket matrix coordinate {} {}\n"
ARRAY = "%%MatrixMarket matrix array {} {}\n"

REAL = COORDINATE.format("real", "general")
INTEGER = COORDINATE.format("integer", "general")

ENTRIES = {
    "real": "2 1 1.5\n3 2 -2e-3\n4 1 .25\n4 3 7.\n",
    "integer": "2 1 4\n3 2 -7\n4 1 9\n4 3 9007199254740993\n",
    "pattern": "2 1\n3 2\n4 1\n4 3\n",
}


def write(folder, text: str, name: str = "m.mtx") -> str:
    path = folder / name
    path.write_bytes(text.encode())
    return str(path)


FORMS = [
    (field, symmetry)
    for field in ("real", "integer", "pattern")
    for symmetry in ("general", "symmetric", "skew-symmetric", "hermitian")
]


@pytest.mark.parametrize(("field", "symmetry"), FORMS)
def test_coordinate_forms(tmp_path, field, symmetry):
    text = COORDINATE.format(field, symmetry) + "4 4 4\n" + ENTRIES[field]
    operand = load(write(tmp_path, text))
    expected = sp.csr_array(scipy.io.mmread(io.BytesIO(text.encode()), spmatrix=False))
    assert (operand.matrix != expected).nnz == 0
    assert operand.nnz == expected.nnz == (4 if symmetry == "general" else 8)
    assert operand.matrix.dtype == (np.float64 if field == "real" else np.int64)
    assert operand.matrix.has_canonical_format
    assert operand.symmetric_expanded == (symmetry != "general")


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric", "hermitian"])
@pytest.mark.parametrize("field", ["real", "integer"])
def test_array_forms(tmp_path, field, symmetry):
    count = {"general": 9, "symmetric": 6, "hermitian": 6, "skew-symmetric": 3}[symmetry]
    text = ARRAY.format(field, symmetry) + "3 3\n" + "".join(f"{n - 2}\n" for n in range(count))
    operand = load(write(tmp_path, text))
    expected = np.asarray(scipy.io.mmread(io.BytesIO(text.encode())))
    assert np.array_equal(operand.matrix.toarray(), expected)
    assert operand.nnz == np.count_nonzero(expected)


def test_hermitian_files_may_be_complex_with_real_values(tmp_path):
    text = COORDINATE.format("complex", "hermitian") + "3 3 3\n1 1 4 0\n2 1 1.5 0\n3 2 -2e-3 -0.0\n"
    operand = load(write(tmp_path, text))
    assert operand.matrix.toarray().tolist() == [[4, 1.5, 0], [1.5, 0, -2e-3], [0, -2e-3, 0]]
    assert operand.matrix.dtype == np.float64 and operand.symmetric_expanded
    text = ARRAY.format("complex", "hermitian") + "2 2\n1 0\n2 0\n3 0\n"
    assert load(write(tmp_path, text)).matrix.toarray().tolist() == [[1, 2], [2, 3]]


@pytest.mark.parametrize("layout", ["coordinate", "array"])
def test_as_stored_keeps_the_triangle(tmp_path, layout):
    if layout == "coordinate":
        text = COORDINATE.format("real", "symmetric") + "3 3 3\n1 1 1\n2 1 2\n3 2 3\n"
        triangle = [[1, 0, 0], [2, 0, 0], [0, 3, 0]]
    else:
        text = ARRAY.format("real", "symmetric") + "2 2\n1\n2\n3\n"
        triangle = [[1, 0], [2, 3]]
    path = write(tmp_path, text)
    stored = load(path, as_stored=True)
    assert stored.matrix.toarray().tolist() == triangle
    assert not stored.symmetric_expanded
    whole = np.array(triangle) + np.tril(triangle, -1).T
    assert np.array_equal(load(path).matrix.toarray(), whole)


def test_duplicates_are_summed_and_zeros_stay(tmp_path):
    text = COORDINATE.format("real", "general") + "2 3 4\n1 3 1\n1 1 5\n1 3 2\n2 2 0\n"
    matrix = load(write(tmp_path, text)).matrix
    assert matrix.indptr.tolist() == [0, 2, 3]
    assert matrix.indices.tolist() == [0, 2, 1]
    assert matrix.data.tolist() == [5, 3, 0]


def test_sums_that_stay_in_range_may_leave_it_on_the_way(tmp_path):
    text = INTEGER + "1 2 5\n1 1 9223372036854775807\n1 1 1\n1 1 -1\n1 2 -9223372036854775807\n1 2 -1\n"
    assert load(write(tmp_path, text)).matrix.data.tolist() == [2**63 - 1, -(2**63)]


def test_infinities_add_up_as_they_do(tmp_path):
    text = REAL + "1 2 4\n1 1 inf\n1 1 1e308\n1 2 inf\n1 2 -inf\n"
    data = load(write(tmp_path, text)).matrix.data
    assert data[0] == np.inf and np.isnan(data[1])


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("utf-8-sig", "UTF-8"),
        ("utf-16", "UTF-16"),
        ("utf-16-be", "UTF-16"),
        ("utf-32", "UTF-32"),
        ("utf-32-be", "UTF-32"),
    ],
)
@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
def test_a_byte_order_mark_is_named(tmp_path, encoding, name, suffix):
    mark = "\ufeff" if encoding.endswith("be") else ""
    content = (mark + REAL + "1 1 1\n1 1 3\n").encode(encoding)
    path = tmp_path / f"m{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    with pytest.raises(OperandError) as caught:
        load(str(path))
    complaint = f"begins with the byte-order mark of {name}: must be plain ASCII text, without a mark"
    assert str(caught.value) == f"{path}:1: {complaint}"


def test_compressed(tmp_path):
    text = COORDINATE.format("pattern", "symmetric") + "2 2 1\n2 1\n"
    path = tmp_path / "graph.mtx.gz"
    path.write_bytes(gzip.compress(text.encode()))
    operand = load(str(path))
    assert operand.name == "graph"
    assert operand.matrix.toarray().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    "text",
    [
        COORDINATE.format("real", "general").upper() + "1 1 1\n1 1 3\n",
        COORDINATE.format("REAL", "General") + "% a comment\n%\n\n1 1 1\n1 1 3\n",
        COORDINATE.format("real", "general") + "1 1 1\n% late comment\n\n 1\t1   3 \n\n",
        COORDINATE.format("real", "general").replace("\n", "\r\n") + "1 1 1\r\n1 1 3\r\n",
        COORDINATE.format("real", "general") + "1 1 1\n1 1 3",
        COORDINATE.format("real", "general") + "1 1 1\n1 1 +0.3E+1\n% the end",
        COORDINATE.format("integer", "general") + "1 1 1\n+1 01 3\n",
        COORDINATE.format("double", "general") + "1 1 1\n1 1 3\n",
    ],
)
def test_harmless_spellings(tmp_path, text):
    assert load(write(tmp_path, text)).matrix.toarray().tolist() == [[3]]


def test_not_a_number_and_infinity_are_values(tmp_path):
    text = COORDINATE.format("real", "general") + "1 4 4\n1 1 NaN\n1 2 inf\n1 3 -Infinity\n1 4 1\n"
    data = load(write(tmp_path, text)).matrix.data
    assert np.isnan(data[0]) and data[1:].tolist() == [np.inf, -np.inf, 1]


@pytest.mark.parametrize("size", ["0 0 0", "0 5 0", "5 0 0", "3 3 0"])
def test_no_entries(tmp_path, size):
    operand = load(write(tmp_path, COORDINATE.format("real", "general") + size + "\n"))
    assert operand.nnz == 0
    assert operand.shape == tuple(int(n) for n in size.split()[:2])


def test_random_round_trip(tmp_path):
    rng = np.random.default_rng(3)
    matrix = sp.random_array((200, 300), density=0.05, rng=rng, format="csr")
    path = tmp_path / "random.mtx"
    scipy.io.mmwrite(path, matrix, precision=17)
    got = load(str(path)).matrix
    assert np.array_equal(got.indices, matrix.indices) and np.array_equal(got.indptr, matrix.indptr)
    assert np.array_equal(got.data, matrix.data)


DAMAGED = {
    "empty": ("", "M: empty file: a Matrix Market file begins with '%%MatrixMarket matrix ...'"),
    "blank": ("\n \n", "M: empty file: a Matrix Market file begins with '%%MatrixMarket matrix ...'"),
    "other": ("hello\n", "M:1: not a Matrix Market file: begins with 'hello', must begin with '%%MatrixMarket'"),
    "banner": (
        "%%MatrixMarket matrix coordinate real\n1 1 0\n",
        "M:1: banner '%%MatrixMarket matrix coordinate real' is not '%%MatrixMarket matrix <coordinate|array> "
        "<real|integer|pattern> <general|symmetric|skew-symmetric|hermitian>'",
    ),
    "vector": (
        "%%MatrixMarket vector coordinate real general\n1 1 0\n",
        "M:1: banner '%%MatrixMarket vector coordinate real general' is not '%%MatrixMarket matrix <coordinate|array> "
        "<real|integer|pattern> <general|symmetric|skew-symmetric|hermitian>'",
    ),
    "layout": (
        "%%MatrixMarket matrix sparse real general\n1 1 0\n",
        "M:1: format 'sparse': must be coordinate or array",
    ),
    "complex": (
        COORDINATE.format("complex", "general") + "1 1 1\n1 1 1 0\n",
        "M:1: field 'complex': must be real, integer or pattern (the accelerator holds one number a value)",
    ),
    "imaginary part": (
        COORDINATE.format("complex", "hermitian") + "2 2 2\n1 1 1 0\n2 1 1 0.5\n",
        "M: imaginary part 0.5: must be 0 (the accelerator holds one real number a value)",
    ),
    "imaginary nan": (
        ARRAY.format("complex", "hermitian") + "1 1\n1 nan\n",
        "M: imaginary part nan: must be 0 (the accelerator holds one real number a value)",
    ),
    "complex line": (
        COORDINATE.format("complex", "hermitian") + "2 2 1\n1 1 1\n",
        "M:3: '1 1 1': must be 4 fields (row, column, real part, imaginary part)",
    ),
    "field": (COORDINATE.format("quaternion", "general"), "M:1: field 'quaternion': must be real, integer or pattern"),
    "symmetry": (
        COORDINATE.format("real", "upper"),
        "M:1: symmetry 'upper': must be one of general, symmetric, skew-symmetric, hermitian",
    ),
    "pattern array": (
        ARRAY.format("pattern", "general") + "1 1\n1\n",
        "M:1: an array of pattern: a pattern needs the coordinate format",
    ),
    "no size": (REAL + "% only a comment\n", "M:3: ends before the size line"),
    "size words": (REAL + "2 x 1\n", "M:2: size line '2 x 1': must be 3 numbers (rows, columns and entries)"),
    "entries negative": (REAL + "2 2 -1\n", "M:2: size line '2 2 -1': rows, columns and entries must be at least 0"),
    "rows negative": (REAL + "%\n-2 2 1\n", "M:3: size line '-2 2 1': rows, columns and entries must be at least 0"),
    "array negative": (
        ARRAY.format("real", "general") + "2 -2\n",
        "M:2: size line '2 -2': rows and columns must be at least 0",
    ),
    "size fraction": (REAL + "2 2.0 1\n", "M:2: size line '2 2.0 1': must be 3 numbers (rows, columns and entries)"),
    "size count": (REAL + "%\n2 2\n", "M:3: size line '2 2': must be 3 numbers (rows, columns and entries)"),
    "array size": (ARRAY.format("real", "general") + "2\n", "M:2: size line '2': must be 2 numbers (rows and columns)"),
    "too wide": (REAL + "2 4294967296 0\n", "M:2: shape 2 x 4294967296: at most 4294967295 rows and columns"),
    "not square": (
        COORDINATE.format("real", "symmetric") + "2 3 0\n",
        "M:2: a symmetric matrix of 2 x 3: must be square",
    ),
    "row": (REAL + "2 2 1\n3 1 5\n", "M:3: row 3 is out of range: allowed are 1 to 2"),
    "row zero": (REAL + "2 2 2\n1 1 5\n0 1 5\n", "M:4: row 0 is out of range: allowed are 1 to 2"),
    "column": (REAL + "2 2 1\n2 7 5\n", "M:3: column 7 is out of range: allowed are 1 to 2"),
    "huge column": (
        REAL + "2 2 1\n2 99999999999999999999 5\n",
        "M:3: column 99999999999999999999 is out of range: allowed are 1 to 2",
    ),
    "no rows": (REAL + "0 2 1\n1 1 5\n", "M:3: row 1 is out of range: the matrix has none"),
    "index": (REAL + "2 2 1\n1.5 1 5\n", "M:3: index '1.5': must be a whole number from 1"),
    "negative": (REAL + "2 2 1\n-1 1 5\n", "M:3: index '-1': must be a whole number from 1"),
    "short line": (REAL + "2 2 1\n1 1\n", "M:3: '1 1': must be 3 fields (row, column, value)"),
    "long line": (REAL + "2 2 1\n1 1 1 1\n", "M:3: '1 1 1 1': must be 3 fields (row, column, value)"),
    "pattern value": (
        COORDINATE.format("pattern", "general") + "2 2 1\n1 1 7\n",
        "M:3: '1 1 7': must be 2 fields (row, column)",
    ),
    "value": (REAL + "2 2 1\n1 1 abc\n", "M:3: value 'abc': must be a real number"),
    "fortran": (REAL + "2 2 1\n1 1 1d3\n", "M:3: value '1d3': must be a real number"),
    "exponent": (REAL + "2 2 1\n1 1 1e\n", "M:3: value '1e': must be a real number"),
    "dot": (REAL + "2 2 1\n1 1 .\n", "M:3: value '.': must be a real number"),
    "fraction": (
        COORDINATE.format("integer", "general") + "2 2 1\n1 1 3.5\n",
        "M:3: value '3.5': must be an integer",
    ),
    "int64": (
        COORDINATE.format("integer", "general") + "2 2 1\n1 1 9223372036854775808\n",
        "M:3: value 9223372036854775808 is out of range: int64 holds -9223372036854775808 to 9223372036854775807",
    ),
    "float64": (
        REAL + "2 2 3\n1 1 inf\n% of two\n\n1 2 1e400\n2 2 1\n",
        "M:6: value 1e400 is out of range: float64 holds magnitudes up to 1.797693e+308",
    ),
    "array float64": (
        ARRAY.format("real", "general") + "1 2\n-inf\n-2e308\n",
        "M:4: value -2e308 is out of range: float64 holds magnitudes up to 1.797693e+308",
    ),
    "integers that add up": (
        INTEGER + "1 2 4\n1 1 9223372036854775807\n1 2 3\n% late\n1 1 9223372036854775807\n1 2 4\n",
        "M:6: row 1, column 1: value 9223372036854775807: the sum of the 2 values there, 18446744073709551614, is out of range: "
        "int64 holds -9223372036854775808 to 9223372036854775807",
    ),
    "negative integers that add up": (
        INTEGER + "2 2 3\n2 1 -9223372036854775808\n2 1 5\n2 1 -6\n",
        "M:5: row 2, column 1: value -6: the sum of the 3 values there, -9223372036854775809, is out of range: "
        "int64 holds -9223372036854775808 to 9223372036854775807",
    ),
    "reals that add up": (
        REAL + "2 2 3\n1 1 1.7e308\n2 2 1\n1 1 1.7e308\n",
        "M:5: row 1, column 1: value 1.7e+308: the sum of the 2 values there, 3.400000e+308, is out of range: "
        "float64 holds magnitudes up to 1.797693e+308",
    ),
    "a triangle that adds up": (
        COORDINATE.format("integer", "symmetric") + "3 3 3\n3 3 1\n2 1 9223372036854775807\n2 1 1\n",
        "M:5: row 1, column 2: value 1: the sum of the 2 values there, 9223372036854775808, is out of range: "
        "int64 holds -9223372036854775808 to 9223372036854775807",
    ),
    "skew integer": (
        COORDINATE.format("integer", "skew-symmetric") + "3 3 2\n2 1 4\n3 1 -9223372036854775808\n",
        "M:4: value -9223372036854775808: its mirror image is out of range: "
        "int64 holds -9223372036854775808 to 9223372036854775807",
    ),
    "skew array": (
        ARRAY.format("integer", "skew-symmetric") + "3 3\n1\n%\n-9223372036854775808\n2\n",
        "M:5: value -9223372036854775808: its mirror image is out of range: "
        "int64 holds -9223372036854775808 to 9223372036854775807",
    ),
    "truncated": (REAL + "2 2 3\n1 1 5\n1 2 5\n", "M: truncated: 2 entries of the 3 promised on line 2"),
    "cut inside": (REAL + "2 2 2\n1 1 5\n1 2", "M:4: '1 2': must be 3 fields (row, column, value)"),
    "huge promise": (
        REAL + "2 2 99999999999999999999\n1 1 5\n",
        "M: truncated: 1 entries of the 99999999999999999999 promised on line 2",
    ),
    "surplus": (REAL + "2 2 1\n1 1 5\n1 2 5\n", "M:4: more entries than the 1 promised on line 2"),
    "array short": (
        ARRAY.format("real", "general") + "2 2\n1\n2\n3\n",
        "M: truncated: 3 values of the 4 promised on line 2",
    ),
    "array long": (
        ARRAY.format("real", "symmetric") + "2 2\n1\n2\n3\n4\n",
        "M:6: more values than the 3 promised on line 2",
    ),
    "array line": (ARRAY.format("real", "general") + "1 2\n1 2\n", "M:3: '1 2': must be 1 fields (value)"),
    "skew diagonal": (
        COORDINATE.format("real", "skew-symmetric") + "2 2 1\n1 1 5\n",
        "M: a skew-symmetric file with entries on the diagonal: they are zero and must not be stored",
    ),
    "both triangles": (
        COORDINATE.format("real", "symmetric") + "3 3 2\n3 1 5\n1 3 5\n",
        "M: a symmetric file with entries (3, 1) and (1, 3): only one triangle may be stored",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged(tmp_path, name):
    text, message = DAMAGED[name]
    path = write(tmp_path, text)
    with pytest.raises(OperandError) as caught:
        load(path)
    assert str(caught.value) == message.replace("M:", f"{path}:", 1)
    assert caught.value.exit_code == 2


def test_comment_lines_count_as_lines(tmp_path):
    path = write(tmp_path, REAL + "% one\n2 2 2\n% two\n\n1 1 5\n1 9 5\n")
    with pytest.raises(OperandError, match=r":7: column 9 is out of range: allowed are 1 to 2$"):
        load(path)


def test_broken_compression(tmp_path):
    whole = gzip.compress((REAL + "2 2 1\n1 1 1\n" * 50).encode())
    for content in (b"not gzip", whole[: len(whole) // 2], whole[:-6]):
        path = tmp_path / "m.mtx.gz"
        path.write_bytes(content)
        with pytest.raises(OperandError, match=r"m\.mtx\.gz: not a complete gzip file \(.+\)$"):
            load(str(path))


def test_beyond_the_memory_of_the_machine(tmp_path):
    path = write(tmp_path, ARRAY.format("real", "general") + "4000000000 4000000000\n1\n")
    with pytest.raises(OperandError, match=r"truncated: 1 values of the 16000000000000000000 promised on line 2$"):
        load(path)
    path = write(tmp_path, COORDINATE.format("real", "general") + "4294967295 4294967295 1\n1 1 1\n")
    from sw.operands import memory

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory.os, "sysconf", lambda name: 2**17)
        with pytest.raises(OperandError, match=r"needs about 64\.0 GiB to hold, this machine has 16\.0 GiB$"):
            load(path)
