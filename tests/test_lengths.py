"""Functions fit a screen or two and classes a few: in the hardware, the generator, the software and the verification."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("rtl", "gen", "sw", "verif")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LONGEST_FUNCTION = 120
LONGEST_CLASS = 250


def lengths(text: str) -> Iterator[tuple[str, int, int]]:
    """Name and lines of each function and class, and how many lines it may have."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            assert node.end_lineno is not None
            most = LONGEST_CLASS if isinstance(node, ast.ClassDef) else LONGEST_FUNCTION
            yield node.name, node.end_lineno - node.lineno + 1, most


@pytest.mark.parametrize("room", ROOMS)
def test_functions_and_classes_fit_a_few_screens(room: str) -> None:
    found = {
        f"{path.relative_to(ROOT).as_posix()}::{name}": (length, most)
        for path in sorted((ROOT / room).rglob("*.py"))
        for name, length, most in lengths(path.read_text(encoding="utf-8"))
    }
    assert {name: length for name, (length, most) in found.items() if length > most} == {}
    assert len(found) > 200


def test_what_is_too_long_is_seen() -> None:
    body = "\n".join(f"    a{n} = {n}" for n in range(300))
    for head, most in (("def long():", 120), ("async def long():", 120), ("class Long:", 250)):
        assert [(length > limit, limit) for _, length, limit in lengths(f"{head}\n{body}")] == [(True, most)]
