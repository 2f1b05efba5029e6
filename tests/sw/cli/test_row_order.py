"""``--row-order`` of ``run`` and ``schedule``."""

import json

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from sw.cli.app import main

TINY = ("--config", "tiny")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with two matrices: rows of ``a`` that use the same rows of ``b`` lie far apart, and these do not fit together."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(6)
    groups = rng.permutation(np.repeat(np.arange(30), 6))
    columns = (groups[:, None] * 8 + np.arange(8)).ravel()
    values = rng.integers(1, 100, len(columns))
    scipy.io.mmwrite("a.mtx", sp.coo_array((values, (np.repeat(np.arange(180), 8), columns)), shape=(180, 240)))
    scipy.io.mmwrite("b.mtx", sp.coo_array(rng.integers(1, 100, (240, 100)) * (rng.random((240, 100)) < 0.2)))


@pytest.fixture
def run(capsys):
    """Runs a command that must succeed; gives what it prints as JSON."""

    def call(command, *words):
        assert main([command, "a.mtx", "b.mtx", *TINY, "--json", *words]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def refused(capsys):
    """Runs a command that must be refused; gives its one line."""

    def call(*words):
        assert main([*words[:1], "a.mtx", "b.mtx", *TINY, *words[1:]]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    return call


@pytest.mark.parametrize("engine", ["model", "golden"])
def test_the_result_is_that_of_the_natural_order(run, engine):
    products = []
    for order in ("natural", "greedy", "rcm", "best"):
        record = run("run", "--engine", engine, "--row-order", order, "--out", order)
        assert record["correct"]
        products.append(sp.load_npz(f"{order}/C.npz"))
    for product in products[1:]:
        for name in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(product, name), getattr(products[0], name))


def test_the_best_order_is_the_quicker_one(run):
    """Of two orders that load about as much of B it may be either. No row is longer than the merge radix."""
    words = ("run", "--engine", "model", "--set", "pe.merge_radix=8", "--row-order")
    records = {order: run(*words, order) for order in ("natural", "greedy", "best")}
    assert records["best"]["scheme"]["row_order"] != "natural"
    cycles = {order: record["cycles"] for order, record in records.items()}
    assert max(cycles["best"], cycles["greedy"]) < 0.95 * cycles["natural"]
    assert cycles["best"] < 1.05 * cycles["greedy"]


def test_auto_takes_the_best_order_by_itself(run):
    """Not with another policy, sides given by hand, and where C leaves in a format whose rows lie in their order."""
    words = ("run", "--engine", "model", "--set", "pe.merge_radix=8")
    best = run(*words, "--row-order", "best")
    found = run(*words)
    assert found["scheme"]["row_order"] == best["scheme"]["row_order"] != "natural"
    assert found["cycles"] == best["cycles"]
    others = (["--tiling", "hyte"], ["--T_i", "20"], ["--mcf-c", "coo"], ["--row-order", "natural"])
    for other in others:
        assert run(*words, *other)["scheme"]["row_order"] == "natural", other


def test_tiles_that_load_all_of_b_keep_the_natural_order(monkeypatch, capsys):
    """Few long rows are cut along k: as much moves in any order, and only the natural one needs no permuted A."""
    rng = np.random.default_rng(6)
    scipy.io.mmwrite("f.mtx", sp.coo_array(rng.integers(1, 9, (32, 1500)) * (rng.random((32, 1500)) < 0.3)))
    monkeypatch.setattr("sw.plan.best_orders.best_orders", lambda a, *_, **__: {"greedy": np.arange(a.rows)[::-1]})
    assert main(["schedule", "f.mtx", "--transpose-b", *TINY, "--json"]) == 0
    scheme = json.loads(capsys.readouterr().out)
    assert (scheme["row_order"], scheme["load"]) == ("natural", "tile")


def test_high_effort_tries_every_order(run, refused):
    words = ("run", "--engine", "model", "--set", "pe.merge_radix=8")
    high = run(*words, "--effort", "high")
    orders = ("natural", "rcm", "greedy")
    least = min(run(*words, "--row-order", order)["cycles"] for order in orders)
    assert high["cycles"] <= 1.02 * least, "the model tier says which is the best, on some of the rows"
    assert run("schedule", "--effort", "high")["policy"] == "auto"
    line = refused("run", "--engine", "model", "--effort", "higher")
    assert line == "fiberloom: --effort higher: must be one of normal, high"
    line = refused("run", "--engine", "model", "--effort", "high", "--tiling", "hyte")
    assert line == "fiberloom: --effort high: must be normal with hyte"
    line = refused("run", "--engine", "model", "--effort", "high", "--T_i", "20")
    assert line == "fiberloom: --effort high: must be left out where no policy decides"


def test_a_scheme_file_says_the_order(run):
    scheme = run("schedule", "--row-order", "greedy", "--out", "kept")
    assert scheme["row_order"] == "greedy" and scheme["predicted"]["cycles"] > 0
    record = run("run", "--engine", "model", "--scheme", "kept/scheme.json")
    assert record["scheme"]["row_order"] == "greedy"
    other = run("run", "--engine", "model", "--scheme", "kept/scheme.json", "--row-order", "natural")
    assert other["scheme"]["row_order"] == "natural" and other["cycles"] > record["cycles"]


def test_sides_by_hand_go_with_an_order(run):
    for order in ("natural", "greedy"):
        scheme = run("schedule", "--T_i", "20", "--T_k", "60", "--row-order", order)
        assert (scheme["T_i"], scheme["row_order"]) == (20, order) and scheme["predicted"]["cycles"] > 0


def test_a_file_of_row_numbers(run, refused):
    order = np.random.default_rng(1).permutation(180)
    np.save("order.npy", order)
    assert run("run", "--engine", "model", "--row-order", "order.npy")["scheme"]["row_order"] == "order.npy"
    order[5] = order[6]
    np.save("order.npy", order)
    line = refused("run", "--engine", "model", "--row-order", "order.npy")
    assert line.startswith("fiberloom: --row-order order.npy: must be a permutation of 0 to 179: row ")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--row-order", "rmc"], "--row-order rmc: must be one of natural, rcm, greedy, communities or a file"),
        (["--row-order", "greedy", "--mcf-a", "rlc"], "--mcf-a rlc: its rows are in the order greedy, for "
         "which the host writes A anew: must be csr or coo"),
        (["--row-order", "greedy", "--mcf-c", "coo"], "--mcf-c coo: the rows of C are in the order greedy: must be csr"),
        (["--row-order", "rcm", "--set", "pe.dataflow=outer"],
         "--row-order rcm: must be left out: only gustavson has it, and the design's pe.dataflow is outer"),
    ],
)  # fmt: skip
def test_refused(refused, words, line):
    assert refused("run", "--engine", "model", *words) == f"fiberloom: {line}"


def test_compare_and_sweep_take_an_order_as_a_variant(capsys):
    assert main(["compare", "a.mtx", "b.mtx", *TINY, "--tiling", "hyte,hyte+greedy,hyte+best,auto+high", "--json"]) == 0
    cycles = {record["tiling"]: record["cycles"] for record in json.loads(capsys.readouterr().out)}
    assert cycles["hyte+best"] <= cycles["hyte"] and len(cycles) == 4
    words = ["sweep", "a.mtx,b.mtx", *TINY, "--tiling", "hyte+greedy", "--json", "--jobs", "1"]
    assert main(words) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["cycles"] == cycles["hyte+greedy"]


def test_one_order_alone(capsys):
    assert main(["compare", "a.mtx", "b.mtx", *TINY, "--tiling", "auto+rcm+greedy"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert (
        line
        == "fiberloom: --tiling auto+rcm+greedy: +greedy: must be the only one of natural, rcm, greedy, communities, best"
    )
