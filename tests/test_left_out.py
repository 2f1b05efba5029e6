"""Tests that do not run: for a stated reason only, counted at the end, and red where every tool must be there."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools import LONG_RUNS, REQUIRE_TOOLS, TOOLS, needs_tool

ROOT = Path(__file__).parents[1]
# A machine that has nothing but the compiler.
BARE = """
from dataclasses import replace
from tests.tools import TOOLS

for name, tool in TOOLS.items():
    TOOLS[name] = replace(tool, here=lambda name=name: name == "compiler")
"""
TESTS = """
import pytest
from tests.tools import long_run, needs_tool

@needs_tool("icarus")
def test_icarus(): pass

@needs_tool("libpython", "icarus")
def test_bench(): pass

@needs_tool("libpython")
def test_other_bench(): pass

@needs_tool("solver")
@pytest.mark.parametrize("fault", range(3))
def test_fault(fault): pass

@needs_tool("compiler")
def test_compiled(): pass

@long_run()
@needs_tool("solver")
def test_long(): pass

def test_plain(): pass
"""


def run(folder: Path, *options: str, bare: bool = True, **variables: str) -> tuple[int, list[str]]:
    """Exit code and output of pytest on ``TESTS``."""
    (folder / "bare.py").write_text(BARE if bare else BARE.replace('name == "compiler"', "True"))
    (folder / "test_some.py").write_text(TESTS)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FIBERLOOM_", "PYTEST_"))}
    environment |= {"PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])} | variables
    arguments = ["-q", "-p", "tests.conftest", "-p", "bare", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, *arguments, *options, "test_some.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_a_bare_machine_is_told_what_did_not_run_and_how_to_get_it(tmp_path):
    code, lines = run(tmp_path, "-n", "2")
    assert code == 0
    assert re.fullmatch(r"2 passed, 7 skipped(, \d+ warnings?)? in .*", lines[-2]), lines
    assert lines[-1] == (
        "7 checks did not run: 2 for want of Python's shared library (sudo apt-get install libpython3-dev), "
        "1 for want of Icarus Verilog (sudo apt-get install iverilog), 3 for want of the solver (make setup-formal), "
        "1 for taking long (FIBERLOOM_LONG_BENCHES=1)"
    )


def test_where_every_tool_must_be_there_a_missing_one_is_red(tmp_path):
    code, lines = run(tmp_path, **{REQUIRE_TOOLS: "1"})
    assert code == 1
    assert re.match(r"2 passed, 1 skipped.*, 6 errors", lines[-2]), lines
    assert lines[-1] == "1 check did not run: 1 for taking long (FIBERLOOM_LONG_BENCHES=1)"
    assert any("needs the solver: make setup-formal (FIBERLOOM_REQUIRE_TOOLS=1" in line for line in lines)


def test_where_everything_runs_nothing_is_said(tmp_path):
    code, lines = run(tmp_path, bare=False, **{REQUIRE_TOOLS: "1", LONG_RUNS: "1"})
    assert code == 0
    assert lines[-1].startswith("9 passed")


def stub(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


# What is there; what is installed, or said not to be.
SERVERS = {
    "everything": ({"iverilog": "", "chromium": ""}, 0, "", ""),
    "bare": ({}, 1, "iverilog chromium fonts-dejavu-core libpython3.11-dev", ""),
    "no library": ({"iverilog": "", "chromium-browser": ""}, 1, "libpython3.11-dev", ""),
    "no Icarus": ({"google-chrome": ""}, 0, "iverilog", ""),
    "no browser": ({"iverilog": ""}, 0, "chromium fonts-dejavu-core", ""),
    "not root": (
        {"chromium": "", "id": "echo 1000"},
        1,
        "",
        "only root with apt-get may install it: iverilog libpython3.11-dev",
    ),
    "no network": (
        {"chromium": "", "apt-get": "exit 100"},
        0,
        "",
        "ci: apt-get update failed\nci: could not be installed: iverilog",
    ),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_installs_what_it_may(tmp_path, name):
    """The last word have the tests, so a failing installation ends nothing."""
    there, library_missing, installed, said = SERVERS[name]
    stub(tmp_path / "python", f'[ "$1" = -c ] && echo libpython3.11-dev || exit {library_missing}')
    stub(tmp_path / "id", "echo 0")
    stub(tmp_path / "apt-get", 'for last; do :; done; [ "$1" = update ] || echo "$last" >> installed')
    for tool, text in there.items():
        stub(tmp_path / tool, text)
    (tmp_path / "cat").symlink_to("/bin/cat")
    done = subprocess.run(
        ["/bin/sh", "-euc", f'. "{ROOT}/.ci/tools.sh"; install_tools "{tmp_path}/python"'],
        cwd=tmp_path,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    record = tmp_path / "installed"
    assert (record.read_text().split() if record.exists() else []) == installed.split()
    assert done.returncode == 0
    assert said in done.stderr and bool(said) == bool(done.stderr)


def test_a_server_requires_every_tool():
    script = (ROOT / ".ci" / "run").read_text()
    assert "export FIBERLOOM_REQUIRE_TOOLS" in script
    assert (
        script.index("\ninstall_tools ") < script.index("\nexport FIBERLOOM_REQUIRE_TOOLS") < script.index("    make ")
    )


def test_a_test_needs_tools_that_are_known():
    with pytest.raises(ValueError, match="not gcc15"):
        needs_tool("gcc15")
    with pytest.raises(ValueError, match="not nothing"):
        needs_tool()
    assert needs_tool(*TOOLS).mark.args == tuple(TOOLS)


def test_no_other_way_to_skip_is_used():
    """A test that asks for its tool in another way would be neither counted nor red."""
    found = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "dut":
                continue  # a port of a block
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            if name in ("skip", "skipif", "importorskip", "skipTest", "skipIf", "skipUnless", "SkipTest", "xfail"):
                found.append(f"{path.relative_to(ROOT)}: {name}")
    assert found == ["tests/conftest.py: skip"] * 2
