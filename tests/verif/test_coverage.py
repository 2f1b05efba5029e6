"""The coverage of the benches: what counts as reached, what is told of it, and that every block is in a testplan."""

import json
from pathlib import Path

import pytest

from gen.blocks import BLOCKS
from verif.coverage import Coverage, merge, plan, plans
from verif.coverage.__main__ import main
from verif.coverage.collected import Run, keep, runs
from verif.coverage.page import BEGIN, END, problems, summary, write_page
from verif.coverage.plans import Plan

ROOT = Path(__file__).parents[2]
QUEUE = Plan("queue", ("fifo",), {"full": "it was full", "late": "it came late"}, {"small": {"late": "too small"}})


def test_what_was_not_hit_is_told_unless_it_is_excused():
    assert QUEUE.problems("large", {"full": 3, "late": 1}) == []
    assert QUEUE.problems("large", {"full": 3, "late": 0}) == ["coverage bin late was never hit: it came late"]
    assert QUEUE.problems("small", {"full": 3}) == []


def test_an_excuse_that_is_not_needed_is_told():
    assert QUEUE.problems("small", {"full": 1, "late": 2}) == ["coverage bin late is excused for small but was hit"]


def test_an_excuse_for_nothing_is_refused(tmp_path):
    (tmp_path / "it.toml").write_text('block = "it"\n[bins]\nfull = "was full"\n[excused.small]\nempty = "never"\n')
    with pytest.raises(ValueError, match="^Testplan it excuses small from empty, which it does not have$"):
        plan("it", tmp_path)


def test_hits_add_up_over_the_tests_of_a_run(tmp_path, monkeypatch):
    monkeypatch.setenv("FIBERLOOM_COVERAGE", str(tmp_path / "hits.json"))
    coverage = Coverage("queue", {"full": "", "late_left": "", "late_right": ""})
    coverage.hit("full")
    coverage.hit("full", when=False)
    coverage.save()
    coverage.cross({"late": True}, {"left": True, "right": False})
    coverage.save()
    record = json.loads((tmp_path / "hits.json").read_text())
    assert record == {"plan": "queue", "hits": {"full": 1, "late_left": 1, "late_right": 0}}
    with pytest.raises(ValueError, match="has no coverage bin 'empty'"):
        coverage.hit("empty")
    with pytest.raises(ValueError, match="cannot be added"):
        merge([record, {"plan": "other", "hits": {}}])


def test_runs_are_joined(tmp_path):
    made = [
        Run("queue", "large", "verilator", 7, True, {"full": 3, "late": 1}),
        Run("queue", "large", "icarus", 2, False, {"full": 1, "late": 0}),
        Run("queue", "small", "verilator", 7, True, {"full": 1, "late": 0}),
    ]
    for run in made:
        keep(tmp_path, run)
    assert sorted(runs(tmp_path), key=str) == sorted(made, key=str)
    assert problems([QUEUE], made) == []
    assert summary([QUEUE], made) == (
        "1 testplans with 2 bins, 2 builds, 3 runs of 16 tests: 4 bins asked for over all builds, 1 excused, 0 missed."
    )
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_page(page, [QUEUE], made)
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert "| `full` | it was full | 3 / 1 | 1 |" in text
    assert "| `late` | it came late | 1 / not asked | excused |" in text
    assert "`small` is excused from `late`: too small." in text


def test_a_plan_that_no_whole_run_was_made_for_is_told():
    part = Run("queue", "large", "icarus", 2, False, {"full": 1, "late": 0})
    assert problems([QUEUE], [part]) == ["queue: no whole run"]
    missed = Run("queue", "large", "verilator", 7, True, {"full": 0, "late": 1})
    assert problems([QUEUE], [missed]) == ["large (verilator): coverage bin full was never hit: it was full"]


def test_the_command_says_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["verif.coverage", str(tmp_path)])
    assert main() == 2
    assert "make coverage" in capsys.readouterr().err
    keep(tmp_path, Run("buffet", "buffet", "verilator", 1, True, {"full": 1}))
    assert main() == 1
    assert "coverage bin illegal was never hit" in capsys.readouterr().out


def test_every_block_has_bins():
    asked = [block for plan in plans() if plan.bins for block in plan.blocks]
    assert sorted(asked) == sorted(set(asked)), "a block is in two plans"
    assert set(asked) == set(BLOCKS)


def test_every_bin_stands_in_the_manual():
    page = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    missing = [
        f"{plan.name}: {name}"
        for plan in plans()
        for name, meaning in plan.bins.items()
        if f"| `{name}` | {meaning} |" not in page
    ]
    assert not missing, "make coverage writes the page anew"
    assert "**missed**" not in page
