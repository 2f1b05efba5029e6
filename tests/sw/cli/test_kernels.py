"""Kernels of two operands other than A x A, as users ask for them: dense factors, features, first steps of searches."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from sw.cli.app import main
from sw.cli.pipeline import load_operands
from sw.operands import im2col, load

RUN = ("--config", "tiny", "--engine", "model", "--json")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A graph of 90 nodes, and 12 features of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIBERLOOM_CACHE", str(tmp_path / "cache"))
    assert main(["data", "save", "uniform:90:90:0.05:seed=3", "s.npz", "--quiet"]) == 0
    assert main(["data", "save", "uniform:90:12:0.2:seed=4", "f.npz", "--quiet"]) == 0
    return SimpleNamespace(s=load("s.npz").matrix, f=load("f.npz").matrix)


# Words of the command, and what must come out of the graph S and the features F.
KERNELS = {
    "F^T x F": (("f.npz", "--transpose-a"), lambda s, f: f.T @ f),
    "F x D": (("f.npz", "dense:K:7:seed=1"), lambda s, f: f @ load("dense:12:7:seed=1").matrix),
    "F^T x D": (("f.npz", "dense:K:7", "--transpose-a"), lambda s, f: f.T @ load("dense:90:7").matrix),
    "D x S": (("dense:5:K", "s.npz"), lambda s, f: load("dense:5:90").matrix @ s),
    "F^T x S": (
        ("sources:K:8:seed=2", "s.npz", "--transpose-a"),
        lambda s, f: load("sources:90:8:seed=2").matrix.T @ s,
    ),
    "F^T x S^T": (("f.npz", "s.npz", "--transpose-a", "--transpose-b"), lambda s, f: f.T @ s.T),
}


@pytest.mark.parametrize("name", KERNELS)
def test_run_gives_the_kernels_product(here, capsys, name):
    words, product = KERNELS[name]
    expected = product(here.s, here.f).toarray()
    for engine in ("golden", "model"):
        assert main(["run", *words, *RUN, "--engine", engine, "--value", "int32", "--out", "o"]) == 0
        record = json.loads(capsys.readouterr().out)
        assert record["correct"] and np.array_equal(sp.load_npz("o/C.npz").toarray(), expected)


@pytest.mark.slow
@pytest.mark.parametrize("tiles", [(), ("--T_i", "5", "--T_j", "6", "--T_k", "11", "--order", "kij")])
@pytest.mark.parametrize("name", KERNELS)
def test_the_hardware_gives_the_kernels_product(here, capsys, name, tiles):
    words, product = KERNELS[name]
    assert main(["run", *words, *RUN, "--engine", "rtl", "--value", "int32", "--out", "o", *tiles]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["correct"] and record["model"]["traffic_equal"]
    assert np.array_equal(sp.load_npz("o/C.npz").toarray(), product(here.s, here.f).toarray())


def test_every_command_knows_the_transposes_and_open_sizes(here, capsys):
    words = ("sources:K:8", "s.npz", "--transpose-a", "--config", "tiny", "--json")
    assert main(["schedule", *words, "--tiling", "hyte"]) == 0
    assert json.loads(capsys.readouterr().out)["T_i"] <= 8
    assert main(["compare", *words, "--tiling", "hyte,harp"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert [record["operands"]["A"]["rows"] for record in compared] == [8, 8]
    assert main(["sweep", "sources:K:8,s.npz", *words[2:], "--tiling", "hyte", "-j", "1"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["correct"] and row["cycles"] == compared[0]["cycles"]


def test_a_dense_factor_is_held_as_any_other(here, capsys):
    assert main(["run", "s.npz", "dense:K:16", *RUN]) == 0
    record = json.loads(capsys.readouterr().out)
    b = record["operands"]["B"]
    assert (b["rows"], b["cols"], b["nnz"]) == (90, 16, 90 * 16)
    assert record["macs"] == here.s.nnz * 16


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("dense:K:4",), "dense:K:4: K stands for a size of the other operand: there is no B"),
        (("dense:4:K", "dense:K:4"), "dense:4:K: K stands for a size of the other operand: B leaves it open too"),
        (("s.npz", "dense:12:K"), "A is 90 x 90 and B is 12 x 90: columns of A must equal rows of B"),
        (("f.npz", "s.npz"), "A is 90 x 12 and B is 90 x 90: columns of A must equal rows of B"),
    ],
)
def test_mistakes(here, capsys, words, complaint):
    assert main(["run", *words, *RUN]) == 2
    assert complaint in capsys.readouterr().err


def test_without_b_each_transpose_is_of_a_as_it_is_given(here):
    graph = here.s.toarray()
    pair = load_operands("s.npz", None, transpose_a=True, transpose_b=True, as_stored=False)
    assert np.array_equal(pair["A"].matrix.toarray(), graph.T) and np.array_equal(pair["B"].matrix.toarray(), graph.T)
    pair = load_operands("s.npz", None, transpose_a=True, transpose_b=False, as_stored=False)
    assert np.array_equal(pair["A"].matrix.toarray(), graph.T) and np.array_equal(pair["B"].matrix.toarray(), graph)


def test_convolution(tmp_path, monkeypatch, capsys):
    """Weights by unfolded images; the check is one that unfolding alone can fail."""
    monkeypatch.chdir(tmp_path)
    images = "im2col:3x6x5:3x2:stride=2:padding=1:uniform:6:30:0.5"
    words = ["--config", "flex_tiny", "--engine", "golden", "--json"]
    assert main(["run", "uniform:4:18:0.5", images, *words]) == 0
    record = json.loads(capsys.readouterr().out)
    check = record["checks"][-1]
    assert check["name"] == "golden against direct convolution" and check["correct"] and check["compared"] > 50
    assert record["operands"]["B"]["cols"] == 2 * 3 * 3

    def mirrored(given, window, source, unfold=im2col._unfold):
        matrix = unfold(given, window, source).toarray()
        return sp.csr_array(matrix.reshape(3, 3, 2, -1)[:, ::-1].reshape(matrix.shape))

    monkeypatch.setattr(im2col, "_unfold", mirrored)
    assert main(["run", "uniform:4:18:0.5", images, *words]) == 1
    record = json.loads(capsys.readouterr().out)
    assert [one["correct"] for one in record["checks"]] == [True, True, False]
