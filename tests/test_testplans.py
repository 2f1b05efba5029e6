"""Testplans: every intention names tests that exist, and every bench test is named by an intention."""

import ast
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PLANS = sorted((ROOT / "verif" / "testplans").glob("*.toml"))
BENCHES = sorted((ROOT / "verif" / "benches").glob("bench_*.py"))


def functions(path: Path) -> set[str]:
    """Names of test functions: pytest's by their prefix, cocotb's by their decorator."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_bench = any("cocotb.test" in ast.unparse(decorator) for decorator in node.decorator_list)
            if node.name.startswith("test_") or is_bench:
                found.add(node.name)
    return found


def missing_tests(plan: dict, root: Path = ROOT) -> list[str]:
    """Tests that a plan names and that are not there."""
    missing = []
    for intention in plan["intention"]:
        for test in intention["tests"]:
            file, _, name = test.partition("::")
            path = root / file
            if not path.is_file() or name not in functions(path):
                missing.append(test)
    return missing


def test_there_are_plans():
    assert len(PLANS) >= 5


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_plan_is_whole_and_its_tests_exist(path):
    plan = tomllib.loads(path.read_text(encoding="utf-8"))
    assert {"block", "intention"} <= set(plan) <= {"block", "blocks", "bins", "excused", "intention"}
    assert plan["block"] == path.stem
    assert all(isinstance(meaning, str) and meaning for meaning in plan.get("bins", {}).values())
    names = [intention["name"] for intention in plan["intention"]]
    assert len(set(names)) == len(names)
    for intention in plan["intention"]:
        assert set(intention) == {"name", "what", "source", "tests"}, intention["name"]
        assert all(intention[key] for key in intention), intention["name"]
    assert not missing_tests(plan)


@pytest.mark.parametrize("bench", BENCHES, ids=lambda path: path.stem)
def test_bench_tests_are_intended(bench):
    named = {
        test
        for path in PLANS
        for intention in tomllib.loads(path.read_text(encoding="utf-8"))["intention"]
        for test in intention["tests"]
    }
    file = bench.relative_to(ROOT).as_posix()
    assert functions(bench) and {f"{file}::{name}" for name in functions(bench)} <= named


def test_missing_tests_are_seen(tmp_path):
    (tmp_path / "test_it.py").write_text("def test_there(): ...\n@cocotb.test()\nasync def bench(dut): ...\n")
    tests = ["test_it.py::test_there", "test_it.py::bench", "test_it.py::test_gone", "test_other.py::test_there"]
    assert missing_tests({"intention": [{"tests": tests}]}, tmp_path) == tests[2:]
