"""``--load`` of ``run`` and ``schedule``: how tiles keep rows of B."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from sw.cli.app import main
from sw.scheme.terms import GATHERS, LOAD_PLANNED

SMALL = ("--set", "buffer.bytes=16384", "--set", "buffer.fifo_bytes=1024")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    matrix = sp.random_array((500, 500), density=0.02, rng=rng, data_sampler=lambda size: rng.integers(1, 9, size))
    sp.save_npz("a.npz", matrix.tocsr())


@pytest.fixture
def run(capsys):
    """Runs a command that must succeed; gives what it prints as JSON."""

    def call(command: str, *words: str):
        assert main([command, "a.npz", *SMALL, "--json", *words]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def refused(capsys):
    """Runs a command that must be refused; gives its one line."""

    def call(*words: str) -> str:
        assert main([*words[:1], "a.npz", *SMALL, *words[1:]]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    return call


def test_each_rule_makes_the_same_product(run):
    products, read = [], {}
    for load in GATHERS:
        record = run("run", "--engine", "model", "--load", load, "--out", load)
        assert record["correct"] and record["scheme"]["load"] == load
        moved = record["dram_bytes"]["B"]
        read[load] = moved["read"] + moved["metadata_read"]
        assert read[load] >= record["least_reads_b"]["bytes"]
        products.append(sp.load_npz(f"{load}/C.npz"))
    for product in products[1:]:
        for name in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(product, name), getattr(products[0], name))
    assert read[LOAD_PLANNED] == min(read.values())


def test_the_height_by_hand_and_strips_of_a_file_stay(run):
    forced = run("schedule", "--load", "planned", "--T_i", "7")
    assert (forced["T_i"], forced["load"], forced["policy"]) == (7, "planned", "forced")
    forced |= {"strips": 16, "T_i": 500, "T_j": 250}
    del forced["cycles"], forced["dram_bytes"]
    with open("s.json", "w", encoding="utf-8") as file:
        json.dump(forced, file)
    assert run("run", "--engine", "model", "--scheme", "s.json")["correct"]


def test_packed_records_have_coordinates_for_entries_and_loads(run):
    packed = run("run", "--engine", "model", "--load", "planned", "--set", "memory.records=packed")
    plain = run("run", "--engine", "model", "--load", "planned")
    assert packed["correct"] and packed["dram_bytes"]["A"]["read"] < plain["dram_bytes"]["A"]["read"]


@pytest.mark.slow
def test_the_hardware_reads_what_the_model_says(capsys):
    """On `tiny`, where rows leave for others."""
    rng = np.random.default_rng(4)
    matrix = sp.random_array((150, 150), density=0.06, rng=rng, data_sampler=lambda size: rng.integers(1, 9, size))
    sp.save_npz("b.npz", matrix.tocsr())
    records = {}
    for engine in ("rtl", "model"):
        words = ["--config", "tiny", "--value", "int32", "--load", "planned", "--engine", engine, "--out", engine]
        assert main(["run", "b.npz", *words, "--json"]) == 0, capsys.readouterr().err
        records[engine] = json.loads(capsys.readouterr().out)
    found, model = records["rtl"], records["model"]
    assert found["engine"] == "rtl" and found["correct"] and found["scheme"]["load"] == "planned"
    assert found["dram_bytes"] == model["dram_bytes"]
    assert found["counters"]["bumped_fetches"] == model["counters"]["bumped_fetches"] > 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("run", "--load", "window"), "--load window: must be one of list, reuse, planned"),
        (
            ("schedule", "--load", "planned", "--T_j", "9"),
            "--T_j 9: must be J = 500 where load is planned and strips is 0",
        ),
        (
            ("schedule", "--load", "planned", "--config", "flex_tiny"),
            "--load planned: must be left out: only gustavson has it, and the design's pe.dataflow is weight_stationary",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(refused, words, line):
    assert refused(*words) == f"fiberloom: {line}"
