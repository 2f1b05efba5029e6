"""Weight-stationary designs on the command line: runs, comparison, and what they do not take."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from sw.cli.app import main


@pytest.fixture
def operand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    matrix = sp.csr_array(np.where(rng.random((30, 30)) < 0.15, rng.integers(1, 9, (30, 30)), 0))
    sp.save_npz("a.npz", matrix)
    return "a.npz"


WORDS = ["--config", "flex_tiny", "--json"]


@pytest.mark.parametrize("engine", ["model", "golden"])
def test_run(operand, engine, capsys):
    assert main(["run", operand, *WORDS, "--engine", engine]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["correct"] and record["scheme"]["T_j"] == 2 and record["design"]["pe"]["vector"] == 2
    if engine == "model":
        assert record["cycles"] > 0 and record["energy_pJ"]["merge"] > 0
        # A and B come once at least, and pieces of C twice more.
        assert record["dram_bytes"]["total"] > record["useful_bytes"]["total"]


def test_sides_by_hand(operand, capsys):
    assert main(["run", operand, *WORDS, "--engine", "model", "--T_j", "1", "--T_k", "9", "--order", "kij"]) == 0
    scheme = json.loads(capsys.readouterr().out)["scheme"]
    assert (scheme["T_i"], scheme["T_j"], scheme["T_k"], scheme["order"]) == (30, 1, 9, "kij")
    assert main(["run", operand, *WORDS, "--engine", "model", "--T_j", "3"]) == 2
    assert "--T_j 3: must be at most 2: each PE keeps a column of B" in capsys.readouterr().err


def test_tilings_are_compared(operand, capsys):
    assert main(["compare", operand, *WORDS, "--tiling", "uniform,auto", "--engine", "model"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    by_name = {record["scheme"]["policy"]: record["cycles"] for record in (first, second)}
    assert by_name["auto"] <= by_name["uniform"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tiling", "hyte"], "--tiling hyte: must be one of uniform, auto where pe.dataflow is weight_stationary"),
        (["--tuning"], "--tuning: must be left out: only gustavson has it"),
        (["--row-order", "rcm"], "--row-order rcm: must be left out: only gustavson has it"),
    ],
)
def test_what_is_refused(operand, words, message, capsys):
    assert main(["run", operand, *WORDS, "--engine", "model", *words]) == 2
    text = capsys.readouterr().err.strip()
    assert message in text and "\n" not in text
