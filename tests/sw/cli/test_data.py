"""`fiberloom data` as its users meet it."""

import json
import sys

import networkx
import numpy as np
import pytest
import scipy.sparse as sp

from sw.cli.app import main
from sw.operands import load
from sw.operands.load_tensor import is_tensor, load_tensor


@pytest.fixture
def answer(tmp_path, monkeypatch, capsys):
    """Runs a command that must succeed; gives what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIBERLOOM_CACHE", str(tmp_path / "cache"))

    def call(*words: str) -> str:
        assert main(["data", *words]) == 0, capsys.readouterr().err
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return call


def test_names_are_listed_by_source(answer, tmp_path):
    text = answer("list")
    assert [line for line in text.splitlines() if not line.startswith(" ")] == [
        "suitesparse", "snap", "frostt", "pyamg", "generators",
    ]  # fmt: skip
    assert "suitesparse:Williams/cant            62,451 x 62,451               4,007,383" in text
    document = json.loads(answer("list", "--json"))
    assert set(document) == {"suitesparse", "snap", "frostt", "pyamg", "generators"}
    assert {"name": "pyamg:airfoil"} in document["pyamg"]
    for generator in document["generators"]:
        assert (load_tensor if is_tensor(generator["example"]) else load)(generator["example"]).nnz
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("Williams/c", ["suitesparse:Williams/cant", "suitesparse:Williams/consph", "suitesparse:Williams/cop20k_A"]),
        ("snap:com-*", ["snap:com-amazon", "snap:com-dblp", "snap:com-orkut", "snap:com-youtube"]),
        ("CANT", ["suitesparse:Williams/cant"]),
        ("nothing-of-this-name", []),
    ],
)
def test_a_pattern_filters(answer, pattern, found):
    document = json.loads(answer("list", pattern, "--json"))
    assert [entry["name"] for entries in document.values() for entry in entries] == found
    assert ("no name matches" in answer("list", pattern)) == (not found)


def test_a_kept_file_is_marked(answer, tmp_path):
    folder = tmp_path / "cache/suitesparse/Williams"
    folder.mkdir(parents=True)
    (folder / "cant.mtx").write_text("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n")
    assert "4,007,383  (kept)" in answer("list", "cant")
    assert "cant.mtx (58 bytes, sha256 not recorded)" in answer("fetch", "suitesparse:Williams/cant")


def test_a_matrix_is_described(answer, tmp_path):
    squares = sum(degree**2 for _, degree in networkx.mycielski_graph(5).degree)
    assert json.loads(answer("describe", "mycielskian:5", "--json"))["product"]["macs"] == squares
    text = answer("describe", "pyamg:airfoil")
    assert text.splitlines() == [
        "name        airfoil (pyamg:airfoil)",
        "shape       260 x 260",
        "nonzeros    1,682, density 0.0249, 260 on the diagonal",
        *text.splitlines()[3:8],
        "A x A       11,300 effectual MACs, 4,462 elements of C, 2.53 MACs each",
    ]
    sp.save_npz(tmp_path / "e.npz", sp.csr_array((3, 4)))
    assert "A x A^T     0 effectual MACs, 0 elements of C" in answer("describe", "e.npz")
    (tmp_path / "s.mtx").write_text("%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1\n2 1 3\n")
    assert "2 x 2, of a triangle that the other was added to\nnonzeros    3," in answer("describe", "s.mtx")
    assert "nonzeros    2," in answer("describe", "s.mtx", "--as-stored")


def test_a_tensor_is_described(answer, tmp_path):
    (tmp_path / "t.tns").write_text("# a tensor\n1 1 1 1.5\n1 2 3 2\n4 2 3 1\n")
    document = json.loads(answer("describe", "t.tns", "--json"))
    assert (document["shape"], document["nnz"], document["order"]) == ([4, 2, 3], 3, 3)
    assert [rank["slice_nnz"]["most"] for rank in document["ranks"]] == [2, 2, 2]
    assert "shape       4 x 2 x 3" in answer("describe", "t.tns")


@pytest.mark.parametrize("name", ["x.mtx", "x.mtx.gz", "x.npz", "x.h5", "x.bsp.h5"])
def test_what_is_saved_reads_the_same(answer, tmp_path, name):
    answer("save", "pyamg:airfoil", name)
    whole = load("pyamg:airfoil").matrix
    assert (load(str(tmp_path / name)).matrix != whole).nnz == 0
    answer("save", "rmat:6:4:values=real", name, "--quiet")
    assert np.array_equal(load(str(tmp_path / name)).matrix.data, load("rmat:6:4:values=real").matrix.data)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_one_triangle_is_saved(answer, tmp_path):
    for name in ("x.mtx", "x.h5"):
        answer("save", "mycielskian:6", name, "--symmetric")
        operand = load(str(tmp_path / name))
        assert operand.symmetric_expanded and (operand.matrix != load("mycielskian:6").matrix).nnz == 0


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (("lift",), "No such command 'lift'.", 2),
        (("fetch",), "Missing argument 'NAME...'.", 2),
        (
            ("fetch", "pyamg:bar"),
            "pyamg:bar: nothing to fetch: must be one of suitesparse:NAME, snap:NAME, frostt:NAME",
            2,
        ),
        (("fetch", "suitesparse:cant"), "suitesparse:cant: must be suitesparse:Group/Name, as in ", 2),
        (("fetch", "snap:a/../b"), "snap:a/../b: must be snap:NAME, as in snap:soc-Epinions1", 2),
        (("fetch", "suitesparse:No/such"), "suitesparse:No/such: cannot reach http://127.0.0.1:9/No/such.tar.gz (", 3),
        (("list", "--update"), "suitesparse: cannot reach http://127.0.0.1:9/ssstats.csv (", 3),
        (("describe", "none.mtx"), "none.mtx: no such file", 2),
        (("describe", "none.tns"), "none.tns: no such file", 2),
        (("describe", "bad.tns"), "bad.tns: not a FROSTT tensor: coordinates must be whole numbers from 1", 2),
        (("describe", "rmat:3"), "rmat:3: must be rmat:SCALE:EDGES[", 2),
        (("save", "pyamg:bar", "x.txt"), "x.txt: must end in one of .mtx, .mtx.gz, .npz, .h5, .hdf5", 2),
        (("save", "pyamg:bar", "x.h5", "--format", "BSR"), "--format BSR: must be one of CSR, CSC, COO", 2),
        (("save", "pyamg:bar", "x.mtx", "--format", "CSC"), "--format CSC: must be left out for .mtx", 2),
        (("save", "pyamg:bar", "x.npz", "--symmetric"), "x.npz: a .npz file has no symmetric form", 2),
        (("save", "rmat:4:4", "x.h5", "--symmetric"), "rmat:4:4: is not symmetric: must be written without", 2),
        (("save", "rmat:4:4", "/proc/x.mtx"), "/proc/x.mtx: cannot be written (", 2),
        (("save", "rmat:4:4", "nodir/x.mtx"), "nodir/x.mtx: cannot be written (there is no folder nodir)", 2),
        (("save", "rmat:4:4", ""), "'': must be the name of a file", 2),
        (("save", "rmat:4:4", "bad.tns/x.h5"), "bad.tns/x.h5: cannot be written (File exists)", 2),
    ],
)
def test_mistakes_are_one_line(tmp_path, monkeypatch, capsys, words, message, code):
    from sw.operands import collections

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIBERLOOM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setitem(collections.URLS, "suitesparse", "http://127.0.0.1:9/{group}/{name}.tar.gz")
    monkeypatch.setattr(collections, "INDEX_URL", "http://127.0.0.1:9/ssstats.csv")
    (tmp_path / "bad.tns").write_text("0 1 1.0\n")
    assert main(["data", *words]) == code
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith(f"fiberloom: {message}")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache") == ["bad.tns"]
    assert not (tmp_path / "cache").exists()


def test_a_file_that_needs_a_package_is_named_as_typed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "here").mkdir()
    assert main(["data", "save", "rmat:4:4", "here/x.h5"]) == 3
    line = "fiberloom: here/x.h5: binsparse files need h5py: pip install h5py\n"
    assert capsys.readouterr() == ("", line) and list((tmp_path / "here").iterdir()) == []
