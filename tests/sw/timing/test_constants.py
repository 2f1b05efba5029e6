"""Numbers of the machine: those that the hardware declares are the hardware's, and each stands in one place."""

import ast
from pathlib import Path

from rtl.accessor import chunk_peeker, segment_placement
from rtl.pe import gustavson
from rtl.regs.map import ORDERS as REGISTER_ORDERS
from sw.scheme.terms import ORDERS
from sw.timing import constants

ROOT = Path(__file__).parents[3]
# Rooms and files of the model and of the cost model.
PLACES = (
    "sw/model",
    "sw/timing/jobs.py",
    "sw/cost/predict.py",
    "sw/cost/traffic.py",
    "sw/cost/replay.py",
    "sw/cost/dataflows.py",
)
# Limits of the program's own memory, cells of an area model, and a figure's machine: nothing that the machine takes.
OTHERS = {
    "occupied": {"MOST_IN_TABLE"},
    "machine": {"JOBS_A_GROUP", "MOST_COUNTS", "COUNTS_A_MAC", "BYTES_A_ROW", "BYTES_A_PIECE"},
    "area": {"CELLS_A_LEAF", "CELLS_A_PE", "CELLS_BESIDE", "LINE_BYTES", "BITS_A_CELL"},
}


def numbers(tree: ast.Module) -> list[str]:
    """Names of the module constants that are numbers, however they are written."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            parts = list(ast.walk(node.value))
            plain = all(
                isinstance(part, ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop) for part in parts
            )
            if plain and all(isinstance(p.value, int | float) for p in parts if isinstance(p, ast.Constant)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found += [target.id for target in targets if isinstance(target, ast.Name)]
    return found


def test_what_the_hardware_declares_is_what_the_model_takes():
    assert constants.FIRST_CHUNK_LINES == chunk_peeker.FIRST_CHUNK_LINES
    assert constants.NEXT_CHUNK_LINES == chunk_peeker.NEXT_CHUNK_LINES
    assert constants.REMEMBERED_SEGMENTS == segment_placement.REMEMBERED_SEGMENTS
    assert constants.JOB_MARGIN == gustavson.SETTLE
    assert tuple(ORDERS) == tuple(REGISTER_ORDERS)


def test_numbers_of_the_machine_stand_in_one_place():
    for place in PLACES:
        files = [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py"))
        assert files
        for path in files:
            if "extensor" not in path.parts:
                found = set(numbers(ast.parse(path.read_text(encoding="utf-8")))) - OTHERS.get(path.stem, set())
                assert not found, f"{path.relative_to(ROOT)}: {sorted(found)} belong into sw/timing/constants.py"


def test_every_way_to_write_a_number_is_seen():
    text = "A = 3\nB: float = -2.5\nC = 1 << 20\nD = (1 + 2) * 3\nE = 'x'\nF = len('x')\nG = (1, 2)\n"
    assert numbers(ast.parse(text)) == ["A", "B", "C", "D"]


def test_all_are_named():
    tree = ast.parse(Path(constants.__file__).read_text(encoding="utf-8"))
    assigned = {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    assert assigned - {"__all__"} == set(constants.__all__)
