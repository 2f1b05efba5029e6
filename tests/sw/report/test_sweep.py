"""The page of a sweep: fronts and means against their definitions, and a page for any rows."""

import math
import random

import pytest

from sw.report.scatter import Dot, pareto, scatter
from sw.report.sweep import means, render
from sw.runtime.rows import COLUMNS, failed_row


def test_a_front_is_what_nothing_beats():
    rng = random.Random(1)
    for count in (1, 2, 5, 30):
        points = [(rng.randrange(1, 12), rng.randrange(1, 12)) for _ in range(count)]
        front = pareto(points)
        for n, (x, y) in enumerate(points):
            beaten = any((a <= x and b < y) or (a < x and b <= y) for a, b in points)
            assert beaten or (x, y) in [points[m] for m in front]
            assert not (n in front and beaten)
        assert len({points[n] for n in front}) == len(front)


@pytest.mark.parametrize("count", [1, 2, 40])
def test_dots_lie_within_the_plot(count):
    rng = random.Random(2)
    dots = [Dot(x=10 ** rng.uniform(0, 9), y=10 ** rng.uniform(3, 4), kind=n, text=f"<{n}>") for n in range(count)]
    picture = scatter(dots, "area", "cycles & more")
    assert picture.count("<circle") == count and "&lt;0&gt;" in picture and "cycles &amp; more" in picture
    for part in picture.split("<circle ")[1:]:
        x, y = (float(part.split(f'{name}="')[1].split('"')[0]) for name in ("cx", "cy"))
        assert 90 <= x <= 840 and 14 <= y <= 334


def row(a: str, tiling: str, cycles: int, traffic: int, area: float = 100.0, **more) -> dict:
    names = {"a": a, "b": a, "design": "tiny", "settings": "", "tiling": tiling, "engine": "model", "failed": False}
    counts = {"cycles": cycles, "dram_bytes": traffic, "area_proxy": area, "schedule_seconds": 0.1, "correct": True}
    counts |= {"ideal_fraction": 0.25, "roofline_fraction": 0.5, "energy_pJ": traffic and 1e6 * traffic}
    return dict.fromkeys(COLUMNS) | names | counts | more


def test_means_are_over_pairs_that_all_finished():
    rows = [
        row("a", "hyte", 100, 10), row("b", "hyte", 400, 40), row("c", "hyte", 7, 7),
        row("a", "auto", 50, 20), row("b", "auto", 200, 80),
        failed_row({"a": "c", "b": "c", "design": "tiny", "settings": "", "tiling": "auto", "engine": "model"}, "no"),
    ]  # fmt: skip
    found = {mean["tiling"]: mean for mean in means(rows)}
    assert found["hyte"]["cycles"] == pytest.approx(math.sqrt(100 * 400))
    assert found["auto"]["dram_bytes"] == pytest.approx(math.sqrt(20 * 80))
    assert found["auto"]["energy_pJ"] == pytest.approx(1e6 * math.sqrt(20 * 80))
    assert {mean["pairs"] for mean in found.values()} == {2}


def test_pages():
    rows = [
        row("a", "hyte", 100, 10, 50.0),
        row("a", "auto", 50, 20),
        row("<b>", "hyte", 5, 5, 50.0),
        row("<b>", "auto", 9, 9),
    ]
    page = render(rows, "fiberloom sweep a")
    assert page.count('<td class="n">25.0%</td><td class="n">50.0%</td>') == 2 * 2 + 2
    # Each for pages and for phones.
    assert page.count("<polyline") == 2 * 12 and "&lt;b&gt;" in page and "<b>" not in page.replace("<b></b>", "")
    failed = failed_row(
        {"a": "c", "b": "c", "design": "tiny", "settings": "", "tiling": "x", "engine": "model"}, "why not"
    )
    assert ">20</td>" in page
    assert "why not" in render([*rows, failed], "") and "<script" not in page
    # Without cycles, with one point, with a wrong one: still a page.
    assert "<polyline" not in render([row("a", "hyte", None, None)], "")
    assert "the result is not correct" in render([row("a", "hyte", 3, 3, correct=False)], "")
    many = [row(f"m{n}", "hyte", 3 + n, 3) for n in range(20)]
    assert "8 more operand pairs are in the table alone" in render(many, "")
