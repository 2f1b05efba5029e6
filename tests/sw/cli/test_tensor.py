"""`fiberloom tensor` as its users meet it: tiles, exact and predicted traffic, files, values, mistakes."""

import json
from pathlib import Path

import numpy as np
import pytest

from sw.cli.app import main

SMALL = ("tensor:30:25:20:900:exponent=0.7", "--density", "0.05", "--buffer", "1000")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIBERLOOM_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("kernel", ["ttm", "mttkrp"])
def test_every_tiling_with_exact_traffic_and_checked_values(kernel, capsys):
    assert main(["tensor", kernel, *SMALL, "--verify", "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert err == "" and not Path("out").exists()
    assert [entry["policy"] for entry in document["tilings"]] == ["uniform", "prescient", "d2t2"]
    names = set("ABX" if kernel == "ttm" else "ABCX")
    for entry in document["tilings"]:
        assert entry["correct"] is True and entry["largest_tile_bytes"] <= 1000
        exact = entry["exact"]
        assert exact["total"] == sum(exact[name] for name in names)
        assert set(exact) == names | {"total", "visits", "macs"} == set(entry["predicted"])
    assert document["tilings"][0]["over_uniform"] == 1
    assert document["tilings"][2]["over_uniform"] > 1.5
    assert document["operands"]["B"]["shape"] == ([20, 30] if kernel == "ttm" else [25, 30])


def test_the_table_and_the_files(capsys):
    assert main(["tensor", "mttkrp", *SMALL, "--tiling", "d2t2,uniform", "--out", "o"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "mttkrp      X[i,j] = sum over k, l of A[i,k,l] * B[k,j] * C[l,j], walked i, k, l, j"
    assert (
        lines[5].split()[:2] == ["tiling", "T_i"] and lines[6].startswith("d2t2 ") and lines[7].startswith("uniform ")
    )
    assert sorted(path.name for path in Path("o").iterdir()) == [
        "scheme-d2t2.json",
        "scheme-uniform.json",
        "tensor.json",
    ]
    scheme = json.loads(Path("o/scheme-uniform.json").read_text())
    assert scheme["order"] == "iklj" and scheme["tile"] == {"i": 4, "k": 4, "l": 4, "j": 4}


@pytest.mark.parametrize("kernel", ["ttm", "mttkrp"])
def test_where_nothing_moves_there_is_no_share_to_tell(kernel, capsys):
    """A random matrix of one place holds nothing."""
    assert main(["tensor", kernel, "tensor:1:1:1:1", "--buffer", "2000", "--verify"]) == 0
    out, err = capsys.readouterr()
    rows = [line.split() for line in out.splitlines() if line.startswith(("uniform", "prescient", "d2t2"))]
    assert err == "" and [row[8] for row in rows] == ["0"] * 3
    assert all(len(row) == 11 for row in rows)  # neither prediction nor gain


def test_matrices_of_ones_own_and_ranks(tmp_path, capsys):
    np.savez("t.npz", coords=np.argwhere(np.ones((3, 4, 5))), values=np.ones(60), shape=np.array([3, 4, 5]))
    assert main(["tensor", "ttm", "t.npz", "dense:K:7", "--ranks", "3,1,2", "--json", "--verify"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["operands"]["A"]["shape"] == [5, 3, 4] and document["operands"]["B"]["shape"] == [4, 7]
    # One tile holds each of them, so that each moves once: values, coordinates and segments of dense trees.
    exact = document["tilings"][2]["exact"]
    assert exact["macs"] == 60 * 7 and exact["visits"] == 1
    assert exact["A"] == 4 * (2 * 60 + 2 * 15 + 2 * 5 + 4) and exact["B"] == 4 * (2 * 28 + 2 * 4 + 3)
    assert exact["X"] == 4 * (2 * 105 + 2 * 15 + 2 * 5 + 4)


def test_what_a_tensor_is_like(capsys):
    assert main(["data", "describe", "tensor:60:50:40:3000", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["shape"] == [60, 50, 40] and record["nnz"] == 3000


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("spmm", SMALL[0]), "spmm: must be one of ttm, mttkrp"),
        (("ttm", *SMALL, "--tiling", "drt"), "--tiling drt: must be one of uniform, prescient, d2t2 for tensors"),
        (("ttm", SMALL[0], "--buffer", "39"), "--buffer 39: must be at least 40 bytes, which one element takes"),
        (("ttm", SMALL[0], "dense:9:9"), "dense:9:9: 9 x 9: must be 20 x 9, ranks lk"),
        (("mttkrp", SMALL[0], "dense:K:9", "dense:K:8"), "dense:K:8: 20 x 8: must be 20 x 9, ranks lj"),
        (("ttm", SMALL[0], "dense:K:9", "dense:K:9"), "dense:K:9: ttm has one matrix"),
        (("ttm", SMALL[0], "--ranks", "1,x"), "--ranks 1,x: must be three numbers from 1, as in 1,2,4"),
        (("ttm", SMALL[0], "--density", "0"), "--density 0.0: must be above 0 and at most 1"),
        (("ttm", "pyamg:airfoil"), "pyamg:airfoil: not a tensor: must be"),
        (("ttm", "tensor:900:900:900:9000", "--verify"), "--verify: "),
    ],
)
def test_mistakes_are_one_line(words, complaint, capsys):
    assert main(["tensor", *words, "--quiet"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"fiberloom: {complaint}") and err.count("\n") == 1
    assert not list(Path().rglob("*.json"))


def test_too_many_tiles_are_left_unchecked(monkeypatch, capsys):
    assert main(["tensor", "ttm", *SMALL, "--json"]) == 0
    visits = [entry["exact"]["visits"] for entry in json.loads(capsys.readouterr().out)["tilings"]]
    assert min(visits) == visits[2] < visits[1]
    monkeypatch.setattr("sw.cli.tensor.MOST_VISITS", visits[2])
    assert main(["tensor", "ttm", *SMALL, "--verify", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)["tilings"]
    assert [entry["correct"] for entry in entries] == [None, None, True]
    assert entries[0]["check"].startswith(f"not computed: {visits[0]:,} products of tiles")


def test_a_wrong_value_is_exit_code_1(monkeypatch, capsys):
    monkeypatch.setattr("sw.tensor.golden.same_values", lambda *_: (False, "3 elements DIFFER"))
    assert main(["tensor", "ttm", *SMALL, "--tiling", "uniform", "--verify", "--out", "o"]) == 1
    assert "FAIL        uniform: 3 elements DIFFER" in capsys.readouterr().out
