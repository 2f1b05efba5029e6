"""A search on a Dask cluster finds what one process finds."""

import json

import pytest

from sw.cli.app import main
from sw.cli.search_cluster import portions_of
from tests.sw.cli.clusters import local_cluster

SMALL = [f"problem.instance.{name}=4" for name in "MNK"]
SEARCH = ["analyze", "sparse_product", "--map", "--json"]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with local_cluster(tmp_path_factory.mktemp("dask")) as started:
        started.start_workers(1)
        yield started.address


@pytest.mark.parametrize(
    "words", [["--evaluations", "5100"], [*(word for text in SMALL for word in ("--set", text))]], ids=["climbs", "all"]
)
def test_the_same_is_found(address, capsys, words):
    found = []
    for where in (["--jobs", "1"], ["--cluster", address]):
        assert main([*SEARCH, *words, *where]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["search"].pop("seconds") > 0
        found.append(document)
    assert found[0] == found[1] and found[0]["search"]["valid"] > 50


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (["--map", "--jobs", "2"], 2, "--jobs 2: must be left out with --cluster, which has the workers it has"),
        (["--map", "--load", "mine.py"], 2, "--cluster tcp://127.0.0.1:9: must not stand with --load"),
        ([], 2, "--cluster: needs --map"),
        (["--map"], 3, "--cluster tcp://127.0.0.1:9: no Dask scheduler answers ("),
    ],
)
def test_mistakes(capsys, monkeypatch, words, code, line):
    monkeypatch.setattr("sw.cli.cluster.CONNECT_SECONDS", 1)
    assert main(["analyze", "sparse_product", *words, "--cluster", "tcp://127.0.0.1:9"]) == code
    printed = capsys.readouterr()
    assert printed.err.startswith(f"fiberloom: {line}") and printed.err.count("\n") == 1 and not printed.out


def test_a_share_that_fails_is_told():
    def fails(share):
        raise ValueError(f"no such mapping: {share}")

    assert portions_of((fails, 3)) == {"error": "ValueError: no such mapping: 3"}
