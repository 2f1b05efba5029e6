"""Outer and inner products, many elements and large buffers from the command line."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from sw.cli.app import main


@pytest.fixture
def operand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIBERLOOM_CACHE", str(tmp_path / "cache"))
    matrix = sp.random_array((300, 300), density=0.03, rng=np.random.default_rng(0), format="csr")
    matrix.data = np.rint(9 * matrix.data) + 1
    sp.save_npz("a.npz", matrix)
    return "a.npz"


@pytest.mark.parametrize("dataflow", ["outer", "inner"])
def test_run_in_the_model(operand, dataflow, capsys):
    assert main(["run", operand, "--set", f"pe.dataflow={dataflow}", "--engine", "model", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["correct"]
    assert found["cycles"] == sum(value for name, value in found["counters"].items() if name.startswith("cycles_"))
    assert main(["run", operand, "--set", f"pe.dataflow={dataflow}", "--engine", "model", "--T_k", "70", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scheme"]["T_k"] == 70


def test_no_hardware_runs_them(operand, capsys):
    assert main(["run", operand, "--set", "pe.dataflow=outer", "--engine", "rtl"]) == 2
    message = "--engine rtl: the design edge (pe.dataflow = outer) is for model and golden"
    assert capsys.readouterr().err.strip().endswith(message)
    assert main(["generate", "--set", "pe.dataflow=inner", "--out", "hardware"]) == 2
    assert "has no hardware" in capsys.readouterr().err


@pytest.mark.parametrize("dataflow", ["gustavson", "outer", "inner"])
def test_sweep_over_hytes_machines(operand, dataflow, capsys):
    """8 to 128 elements and 1 to 64 MiB, as in HYTE's figures 10 and 11; more never costs cycles for one scheme space."""
    words = ["sweep", operand, "--config", "server", "--set", f"pe.dataflow={dataflow}", "--tiling", "hyte,swiftiles"]
    words += ["--set", "pe.count=8,32,128", "--set", "buffer.bytes=1048576,67108864", "--jobs", "1", "--json"]
    assert main(words) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 12
    assert not any(row["failed"] for row in rows)
    assert all(row["correct"] for row in rows)
    for settings in {row["settings"].split("=")[-1] for row in rows}:
        cycles = [row["cycles"] for row in rows if row["settings"].endswith(settings) and row["tiling"] == "hyte"]
        assert cycles == sorted(cycles, reverse=True)


def test_compare_tells_what_cannot_be_chosen(operand, capsys):
    words = ["compare", operand, "--set", "pe.dataflow=inner", "--tiling", "hyte,d2t2", "--out", "x"]
    assert main(words) == 0
    text = capsys.readouterr()
    assert "d2t2: " in text.err
    assert "pe.dataflow is inner" in text.err
