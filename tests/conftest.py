"""For every test: what a Hypothesis test may take, what Amaranth remembers, and what is said of tests that do not run."""

import gc
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from sw import plugins
from tests import amaranth_memory, emission_memory
from tests.tools import LONG_RUNS, REQUIRE_TOOLS, TOOLS, is_there, set_to_one

# How long a phase takes depends on the neighbours, and with it what is said of it: the tests of these lines ask for them.
os.environ["FIBERLOOM_PATIENCE"] = "1e9"

# A deadline measures the neighbours, not the code.
settings.register_profile("fiberloom", deadline=None)
settings.load_profile("fiberloom")

amaranth_memory.remember()
emission_memory.remember()

LEFT_OUT = "left_out"  # property of a test's report: the tool that is missing, or LONG_RUNS


@pytest.fixture(autouse=True)
def no_plugin_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that a test loads by ``--plugin`` stays in its process: the next test does not see it."""
    monkeypatch.setattr(plugins, "_loaded", {})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """What a file of tests leaves behind lives as long as the process: the garbage collector does not look at it each time."""
    yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leaves out what cannot run here, or fails it where every tool must be there."""
    if item.get_closest_marker("long_run") is not None and not set_to_one(LONG_RUNS):
        item.user_properties.append((LEFT_OUT, LONG_RUNS))
        pytest.skip(f"a long run: set {LONG_RUNS}=1")
    needed = [name for mark in item.iter_markers("needs_tool") for name in mark.args]
    for tool in (name for name in needed if not is_there(name)):
        reason = f"needs {TOOLS[tool].what}: {TOOLS[tool].install}"
        if set_to_one(REQUIRE_TOOLS):
            pytest.fail(f"{reason} ({REQUIRE_TOOLS}=1: every tool must be here)", pytrace=False)
        item.user_properties.append((LEFT_OUT, tool))
        pytest.skip(reason)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """The closing line, behind pytest's own: how many checks did not run, and how to get them."""
    yield
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and (line := closing_line(reporter.stats.get("skipped", []))):
        reporter.write_line(line)


def closing_line(skipped: list[Any]) -> str:
    """Of the reports of tests that were skipped; empty where none was."""
    why = Counter(dict(getattr(report, "user_properties", ())).get(LEFT_OUT) for report in skipped)
    parts = [f"{why[name]} for want of {tool.what} ({tool.install})" for name, tool in TOOLS.items() if why[name]]
    parts += [f"{why[LONG_RUNS]} for taking long ({LONG_RUNS}=1)"] if why[LONG_RUNS] else []
    parts += [f"{why[None]} for other reasons (pytest -rs)"] if why[None] else []
    checks = "1 check" if len(skipped) == 1 else f"{len(skipped)} checks"
    return f"{checks} did not run: {', '.join(parts)}" if skipped else ""
