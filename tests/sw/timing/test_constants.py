"""Numbers of the machine: those that the hardware declares are the hardware's, and each stands in one place."""

import ast
from pathlib import Path

import pytest

from sw.plan import thresholds
from sw.timing import constants, hardware

ROOT = Path(__file__).parents[3]
# Rooms that decide and count by numbers, and the files that hold them.
PLACES = ("policies", "cost", "model", "plan", "timing")
HOLDERS = {ROOT / "sw" / place for place in ("timing/constants.py", "timing/hardware.py", "plan/thresholds.py")}
# A factor of a hash, an index of a field, machines and grids of published figures that the hardware is not.
OTHERS = {
    "gather": {"LOWEST_BIT"},
    "jobs": {"OWN", "KIND"},
    "machine": {"ENTRY_BYTES"},
}


TABLES = ast.Tuple | ast.List | ast.Dict | ast.Load


def numbers(tree: ast.Module) -> list[str]:
    """Names of the module constants that are numbers, or tuples, lists and tables of them, however they are written."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            keys = {id(key) for of in ast.walk(node.value) if isinstance(of, ast.Dict) for key in of.keys}
            parts = [part for part in ast.walk(node.value) if id(part) not in keys]
            plain = all(
                isinstance(part, ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | TABLES)
                for part in parts
            )
            values = [part.value for part in parts if isinstance(part, ast.Constant)]
            if plain and values and all(isinstance(value, int | float) for value in values):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found += [target.id for target in targets if isinstance(target, ast.Name)]
    return found


def test_numbers_stand_in_one_place():
    for place in PLACES:
        files = sorted((ROOT / "sw" / place).rglob("*.py"))
        assert files
        for path in set(files) - HOLDERS:
            found = set(numbers(ast.parse(path.read_text(encoding="utf-8")))) - OTHERS.get(path.stem, set())
            assert not found, f"{path.relative_to(ROOT)}: {sorted(found)} belong into {[p.name for p in HOLDERS]}"


@pytest.mark.parametrize("holder", sorted(HOLDERS), ids=lambda path: path.stem)
def test_no_number_takes_the_name_of_another(holder):
    """Python keeps the last one in silence."""
    found = numbers(ast.parse(holder.read_text(encoding="utf-8")))
    assert found and len(found) == len(set(found)), [name for name in found if found.count(name) > 1]


def test_every_way_to_write_a_number_is_seen():
    text = (
        "A = 3\nB: float = -2.5\nC = 1 << 20\nD = (1 + 2) * 3\nE = 'x'\nF = len('x')\nG = (1, 2)\nH = {'x': (1, 2.5)}\n"
    )
    assert numbers(ast.parse(text)) == ["A", "B", "C", "D", "G", "H"]


@pytest.mark.parametrize("module", [constants, hardware, thresholds])
def test_all_are_named(module):
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    assigned = {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    assert assigned - {"__all__"} == set(module.__all__)
