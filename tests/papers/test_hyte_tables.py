"""Tables of HYTE in the documentation: two cheap rows of each are made anew."""

from pathlib import Path

import pytest

import benchmarks.hyte as hyte
from benchmarks import tuning
from benchmarks.stand_ins import operand
from benchmarks.table_markers import cells, table
from gen.design import load_design

PAGE = (Path(__file__).parents[2] / "docs" / "papers.md").read_text(encoding="utf-8")
CHEAP = ("rmat:10:8:seed=1", "pyamg:unit_cube")
# That overflow small buffers: others' cheap rows do not say anything there.
CHEAP_OF = {"harp": ("stencil:150x150", "box:14x14x14")}
BY_OPERAND = ("harp", "policies", "energy", "steps", "inner", "outer", "samples", "sizes", "shapes", "orders")


def marked(text: str) -> str:
    return f"<!-- x: y -->\n{text}\n<!-- end of x -->"


def timeless(text: str, name: str, row: str) -> dict[str, str]:
    """A row's cells by the table's head, without those that are seconds of this machine or follow from them."""
    head = table(text, name)[0].strip("|").split("|")[1:]
    found = dict(zip((h.strip() for h in head), cells(text, name)[row], strict=True))
    return {title: cell for title, cell in found.items() if "offline" not in title and "host" not in title}


def rows(section: str) -> hyte.Rows:
    kind = "policies" if section == "energy" else section
    found = {}
    for name in CHEAP_OF.get(section, CHEAP):
        bench = hyte.Bench(name)
        found[bench.operand.name] = {point: make() for point, make in hyte.points(kind, bench, 3)}
    return found


@pytest.mark.parametrize("section", BY_OPERAND)
def test_two_rows_of_the_page(section: str) -> None:
    made = rows(section)
    text = marked(hyte.table(section, made))
    assert len(made) == 2
    for name in made:
        assert timeless(text, "x", name) == timeless(PAGE, f"HYTE, {section}", name)


@pytest.mark.parametrize("section", ["buffers", "chips"])
def test_two_rows_of_a_sweep(section: str) -> None:
    made = rows(section)
    text = marked(hyte.table(section, made))
    for name in made:
        row = f"{name}: over even_columns"
        assert cells(text, "x")[row] == cells(PAGE, f"HYTE, {section}")[row]


@pytest.mark.parametrize("order", ["jki", "kij"])
def test_two_rows_of_tuning(order: str) -> None:
    design = load_design("edge", ["pe.value=fp32"])
    for name in ("pyamg:airfoil", "pyamg:unit_cube"):
        text = marked(tuning.table(tuning.rows_of(name, design, order)))
        assert cells(text, "x")[name] == cells(PAGE, f"HYTE, tuning, {order}")[name]


def test_stencils_are_those_of_a_grid() -> None:
    """Each point and its neighbours, counted one by one."""
    for name, near in (("stencil:4x3", lambda d: sum(d) <= 1), ("box:4x3x2", lambda d: max(d) <= 1)):
        matrix = operand(name).matrix.toarray()
        sides = [int(n) for n in name.split(":")[1].split("x")]
        points = [()]
        for side in sides:
            points = [(*p, x) for p in points for x in range(side)]
        for r, p in enumerate(points):
            for c, q in enumerate(points):
                assert (matrix[r, c] != 0) == near([abs(a - b) for a, b in zip(p, q, strict=True)])


def test_energy_is_the_papers_constants() -> None:
    run = {"bytes": {"A": 500, "B": 250, "C": 250}, "cycles": 2000, "offline": 3.0}
    assert hyte.joules(run) == pytest.approx((8000 * 20e-12, 2e-6 * 10.55, 25.5))
