"""Charts on a page and on a phone: letters keep their size, nothing is cut off, axes have at least three numbers."""

import itertools
import math
import random
import re
from functools import partial

import pytest

from sw.report.charts import LETTER, NARROW, WIDE, bars, both, occupancy, ticks
from sw.report.page import FOLDER
from sw.report.scatter import Dot, scatter
from sw.tile_sizes import TileSizes

LONG = "B lookup waits for a fiber that is being loaded"
ROWS = [(LONG, [("k0", 3.0, "cycles")], "1,234,567 (12.3%)"), ("short", [("k1", 1e6, "a"), ("k2", 2e6, "b")], "3 M")]


def texts(picture: str) -> list[tuple[float, float, str]]:
    """Left and right end of each horizontal text, and the text; letters are taken as half as wide as they are high, and a bit."""
    found = []
    for attributes, text in re.findall(r"<text ([^>]*)>([^<]*)</text>", picture):
        if "rotate" in attributes:
            continue
        x = float(re.search(r'\bx="([\d.-]+)"', attributes)[1])
        wide = len(text) * LETTER
        anchor = (re.findall(r'text-anchor="(\w+)"', attributes) or ["start"])[0]
        left = {"start": x, "middle": x - wide / 2, "end": x - wide}[anchor]
        found.append((left, left + wide, text))
    return found


def pictures(width: int) -> dict[str, str]:
    rng = random.Random(1)
    dots = [Dot(x=10 ** rng.uniform(2, 7), y=10 ** rng.uniform(3, 4), kind=n, text=f"dot {n}") for n in range(30)]
    return {
        "bars": bars(ROWS, "label", width),
        "occupancy": occupancy(TileSizes(7904).add([rng.randrange(1, 8000) for _ in range(700)]), "label", width),
        "few tiles": occupancy(TileSizes(8).add([3, 4, 9]), "label", width),
        "scatter": scatter(dots, "area", "cycles", width),
        "one dot": scatter(dots[:1], "area", "cycles", width),
    }


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("name", pictures(WIDE))
def test_nothing_is_cut_off_and_letters_keep_their_size(name, width):
    picture = pictures(width)[name]
    # Drawn in pixels: on a screen of that width a letter is as high as the style sheet says.
    assert re.search(r'viewBox="0 0 ([\d.]+) ', picture)[1] == str(width) and f"max-width:{width}px" in picture
    for left, right, text in texts(picture):
        assert -1 <= left and right <= width + 1, text
    for x, wide in re.findall(r'<rect class="\w+" x="([\d.]+)" y="[\d.-]+" width="([\d.]+)"', picture):
        assert float(x) + float(wide) <= width + 1


def test_a_phone_is_no_narrower_than_its_charts():
    style = (FOLDER / "page.css").read_text() + (FOLDER / "chart.css").read_text()
    assert NARROW <= 360 and "font: 12px" in style
    assert ".narrow { display: none; }" in style
    assert re.search(
        r"@media \(max-width: 40rem\) \{.*\.wide \{ display: none; \} \.narrow \{ display: block; \}", style
    )
    shown = both(partial(bars, ROWS, "label"))
    assert shown.count("<svg") == 2 and shown.index('class="wide"') < shown.index('class="narrow"')


@pytest.mark.parametrize("seed", range(40))
def test_every_axis_has_three_numbers(seed):
    rng = random.Random(seed)
    low = 10 ** rng.uniform(0, 9)
    spread = rng.choice([1.0, 1.0001, 1.02, 1.2, 3.0, 1e3, 1e6])
    dots = [Dot(x=low * rng.uniform(1, spread), y=low / 7 * rng.uniform(1, spread), kind=0, text="") for _ in range(9)]
    for width in (WIDE, NARROW):
        picture = scatter(dots, "x", "y", width)
        lines = re.findall(r'<line class="axis" x1="([\d.]+)" x2="([\d.]+)"', picture)
        upright = sum(begin == end for begin, end in lines)
        assert upright >= 3 and len(lines) - upright >= 3
        along, beside = (
            re.findall(rf'<text class="value" x="([\d.]+)" y="[\d.]+" text-anchor="{anchor}">([^<]+)<', picture)
            for anchor in ("middle", "end")
        )
        for numbers, least in ((beside, 3), (along, 3 if width == WIDE else 2)):
            assert len({text for _, text in numbers}) == len(numbers) >= least, numbers
        halves = [(float(x), len(text) * LETTER / 2) for x, text in along]
        assert all(x + half <= y - other for (x, half), (y, other) in itertools.pairwise(halves))


def test_small_numbers_of_an_axis_keep_their_decimals():
    dots = [Dot(x=x, y=y, kind=0, text="") for x, y in ((0.004, 0.1), (0.3, 2.0))]
    numbers = re.findall(r'<text class="value"[^>]*>([^<]+)<', scatter(dots, "x", "y"))
    assert {"0.1", "0.2", "0.5", "1", "2", "0.01"} <= set(numbers) and "0" not in numbers


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1.08), (0, 8536), (1000, 1001), (3.2, 3.9), (1e9, 1.05e9), (0.01, 0.011)]
)
def test_ticks_are_round_and_at_least_three(low, high):
    found = ticks(low, high)
    assert 3 <= len(found) <= 12 and all(low <= tick * (1 + 1e-9) and tick <= high * (1 + 1e-9) for tick in found)
    steps = [b - a for a, b in zip(found, found[1:], strict=False)]
    assert max(steps) == pytest.approx(min(steps))
    digits = steps[0] / 10 ** math.floor(math.log10(steps[0]) + 1e-9)
    assert any(digits == pytest.approx(digit) for digit in (1, 2, 2.5, 5))


def test_readers_of_screens_get_the_values():
    assert f'aria-label="label: {LONG} 1,234,567 (12.3%); short 3 M"' in bars(ROWS, "label")
    told = occupancy(TileSizes(8).add([3, 9]), "Occupancy of B tiles")
    assert 'aria-label="Occupancy of B tiles: 2 tiles, the largest 9 bytes, 1 above the 8 that fit"' in told
    dots = [Dot(x=1, y=2, kind=0, text="one <x>"), Dot(x=3, y=4, kind=0, text="two")]
    assert 'aria-label="y over x: one &lt;x&gt;; two"' in scatter(dots, "x", "y")


@pytest.mark.parametrize("page", ["report", "comparison", "sweep"])
def test_wide_tables_scroll_by_touch_and_by_key(page):
    template = (FOLDER / f"{page}.html.j2").read_text()
    assert template.count("<table>") == template.count('<div class="scroll" tabindex="0" role="region"')
