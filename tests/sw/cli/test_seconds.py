"""Where a command's time went: phases add up, and compiling the program's own code is none of them.

The clock is moved by hand, by so much that the real seconds of a test do not count beside it.
"""

import importlib
import json
import re
import time
from pathlib import Path
from typing import Any

import numba.core.event as event
import pytest

from sw.cli import pipeline
from sw.cli.app import main
from sw.cli.timing import Stopwatch, compile_seconds
from sw.policies import registry

COMPILING, WORKING = 1e9, 1e6
# More than any phase really takes.
NEARLY = 1e5
RUN = ["run", "mycielskian:4", "--config", "tiny", "--out", "o"]


class Clock:
    """``time.perf_counter`` that can be put forward."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.real = time.perf_counter

    def __call__(self) -> float:
        return self.real() + self.ahead

    def work(self, function: Any) -> Any:
        """The function with compiling and work before it."""

        def slow(*arguments: Any, **options: Any) -> Any:
            event.start_event("numba:compiler_lock")
            self.ahead += COMPILING
            event.end_event("numba:compiler_lock")
            self.ahead += WORKING
            return function(*arguments, **options)

        return slow


@pytest.fixture
def clock(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = Clock()
    monkeypatch.setattr(time, "perf_counter", made)
    return made


def seconds() -> dict[str, float]:
    found: dict[str, float] = json.loads(Path("o/result.json").read_text())["seconds"]
    return found


def near(expected: float) -> Any:
    return pytest.approx(expected, abs=NEARLY)


def test_an_engine_that_compiles(clock, monkeypatch, capsys):
    monkeypatch.setattr(pipeline, "run_engine", clock.work(pipeline.run_engine))
    assert main([*RUN, "--engine", "model"]) == 0
    assert seconds() == {name: near({"compile": COMPILING, "simulate": WORKING}.get(name, 0.0)) for name in seconds()}
    last = capsys.readouterr().out.splitlines()[-1]
    told = re.fullmatch(r"verified \(model, ([\d.]+) s, ([\d.]+) of them to compile\); see o/report.html", last)
    assert told, last
    assert [float(number) for number in told.groups()] == [near(COMPILING + WORKING), near(COMPILING)]


@pytest.mark.parametrize("engine", ["golden", "model"])
def test_a_policy_that_compiles_is_not_slow_to_decide(clock, monkeypatch, capsys, engine):
    """Neither by the record nor by the scheme nor on the page."""
    monkeypatch.setattr(registry, "find_policy", lambda name, dataflow="gustavson": clock.work(real))
    real = importlib.import_module("sw.policies.swiftiles").swiftiles
    assert main([*RUN, "--engine", engine, "--tiling", "swiftiles"]) == 0
    assert (seconds()["compile"], seconds()["schedule"]) == (near(COMPILING), near(WORKING))
    assert json.loads(Path("o/scheme.json").read_text())["seconds"] == near(WORKING)
    (decided,) = re.findall(r"decided in ([\d.]+) s", Path("o/report.html").read_text())
    assert float(decided) == near(WORKING)


def test_the_ideal_stands_beside_the_roofline(clock, capsys):
    assert main([*RUN, "--engine", "model"]) == 0
    record = json.loads(Path("o/result.json").read_text())
    shares = f"{record['ideal_fraction']:.1%} of the ideal, {record['roofline_fraction']:.1%} of the {record['bound']} roofline"
    assert f", {shares}; " in capsys.readouterr().out


@pytest.mark.parametrize("command", ["run", "schedule"])
def test_the_help_names_every_policy(command, monkeypatch, capsys):
    """Those of the registry, whatever they are."""
    assert main([command, "--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert f"auto without it: {', '.join(registry.POLICIES)}." in words


def test_scheduling_counts_for_the_whole_time(clock, monkeypatch, capsys):
    monkeypatch.setattr(registry, "find_policy", lambda name, dataflow="gustavson": clock.work(real))
    real = importlib.import_module("sw.policies.swiftiles").swiftiles
    assert main([*RUN, "--engine", "golden", "--tiling", "swiftiles"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert float(re.findall(r"\(golden, ([\d.]+) s", last)[0]) == near(COMPILING + WORKING)


def test_compare_counts_compiling_apart(clock, monkeypatch, capsys):
    monkeypatch.setattr("sw.cli.evaluate.run_engine", clock.work(pipeline.run_engine))
    assert main(["compare", "mycielskian:4", "--config", "tiny", "--tiling", "swiftiles", "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert (record["seconds"]["compile"], record["seconds"]["simulate"]) == (near(COMPILING), near(WORKING))


def test_an_engine_s_own_split_is_kept_and_made_whole():
    parts = {"generate": 2.0, "build": 3.0, "simulate": 1.0}
    assert pipeline.engine_seconds(7.5, parts) == parts | {"simulate": 2.5}
    assert pipeline.engine_seconds(4.0, parts) == parts
    assert pipeline.engine_seconds(4.0, {}) == {"simulate": 4.0}


def test_laps_of_several_threads_compiling_are_their_union(clock):
    watch, before = Stopwatch(), compile_seconds()
    event.start_event("numba:compiler_lock")
    clock.ahead += COMPILING
    event.start_event("numba:compiler_lock")
    clock.ahead += COMPILING
    assert compile_seconds() - before == near(2 * COMPILING)
    event.end_event("numba:compiler_lock")
    event.end_event("numba:compiler_lock")
    clock.ahead += WORKING
    assert watch.lap() == near(WORKING) and watch.compiling == near(2 * COMPILING)
