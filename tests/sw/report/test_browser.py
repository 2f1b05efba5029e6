"""Pages of the commands as a browser lays them out, at a desk, on a phone and on a dark screen.

Pictures of all go to the folder that FIBERLOOM_PICTURES names.
"""

import itertools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sw.cli.app import main
from tests.browser import SCREENS, Tab, browser
from tests.tools import needs_tool
from verif.counters import bus_beats

TINY = ("--config", "tiny", "--quiet")
PAGES = {
    "run": ("report.html", ["run", "m.npz", "--tiling", "swiftiles", "--scipy"]),
    "compare": ("comparison.html", ["compare", "m.npz"]),
    "sweep": (
        "sweep.html",
        ["sweep", "m.npz", "n.npz", "--tiling", "hyte,swiftiles", "--set", "buffer.bytes=8192,16384", "--jobs", "1"],
    ),
}  # fmt: skip
LEAST_LETTER = 9
# Of all drawn texts that are shown: chart, left, right, top, bottom, height of the letters, the text, the chart's edges.
TEXTS = """[...document.querySelectorAll('svg text')].filter(t => t.getClientRects().length).map(t => {
  const box = t.getBoundingClientRect(), chart = t.ownerSVGElement, all = chart.getBoundingClientRect();
  const letters = parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a;
  const turned = Math.abs(t.getScreenCTM().b) > 0.5;
  return [[...document.querySelectorAll('svg')].indexOf(chart), box.left, box.right, box.top, box.bottom,
          turned ? parseFloat(getComputedStyle(t).fontSize) : letters, t.textContent, all.left, all.right, all.top, all.bottom];
})"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, seed in (("m", 4), ("n", 5)):
            assert main(["data", "save", f"rmat:8:6:seed={seed}", f"{name}.npz", "--quiet"]) == 0
        for name, (_, words) in PAGES.items():
            assert main([*words, *TINY, "--out", name]) == 0
    return {name: folder / name / file for name, (file, _) in PAGES.items()}


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with browser() as shown:
        yield shown.tab()


@needs_tool("chromium")
@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_on_a_screen(tab, pages, name, screen):
    tab.show(pages[name], screen)
    if pictures := os.environ.get("FIBERLOOM_PICTURES"):
        tab.picture(Path(pictures) / f"{name}-{screen}.png")
    check_width(tab, SCREENS[screen][0])
    check_letters(tab)
    check_axes(tab)
    check_machine(tab, name)
    check_contents(tab)
    check_readers(tab)
    # Ink and paper of the screen: light letters on dark, or the reverse.
    ink, paper = tab.evaluate("['color', 'backgroundColor'].map(name => getComputedStyle(document.body)[name])")
    ink, paper = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (ink, paper))
    assert (ink > paper + 300) if SCREENS[screen][2] else (paper > ink + 300)


def check_width(tab: Tab, width: int) -> None:
    """The page does not move sideways; a table that is wider than the page does, in its box."""
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tables = tab.evaluate(
        """[...document.querySelectorAll('table')].map(table => {
          const box = table.parentElement; box.scrollLeft = 1e6;
          const end = table.getBoundingClientRect().right - box.getBoundingClientRect().right;
          const found = [table.scrollWidth > box.clientWidth, box.scrollLeft > 0, end, box.getBoundingClientRect().right];
          box.scrollLeft = 0; return found; })"""
    )
    assert tables
    for wide, moved, end, right in tables:
        assert wide == moved and end <= 1 and right <= width + 1
    if width == SCREENS["phone"][0]:
        assert any(wide for wide, *_ in tables)


def check_letters(tab: Tab) -> None:
    """Letters of charts are large enough, lie within their chart and not upon one another."""
    texts = tab.evaluate(TEXTS)
    assert texts
    for _, left, right, top, bottom, letters, text, chart_left, chart_right, chart_top, chart_bottom in texts:
        assert letters >= LEAST_LETTER, (text, letters)
        assert chart_left - 1 <= left and right <= chart_right + 1, text
        assert chart_top - 2 <= top and bottom <= chart_bottom + 2, text
    for _, group in itertools.groupby(texts, key=lambda text: text[0]):
        for one, two in itertools.combinations(group, 2):
            across = min(one[2], two[2]) - max(one[1], two[1])
            down = min(one[4], two[4]) - max(one[3], two[3])
            # Boxes of letters are higher than the letters.
            assert across <= 1 or down <= 4, (one[6], two[6])


def check_axes(tab: Tab) -> None:
    axes = tab.evaluate(
        """[...document.querySelectorAll('.x-ticks, .y-ticks')].filter(axis => axis.getClientRects().length)
        .map(axis => new Set([...axis.querySelectorAll('text')].map(text => text.textContent)).size)"""
    )
    assert axes and min(axes) >= 3


def check_machine(tab: Tab, name: str) -> None:
    """The report of a run has the architecture, each share within its unit's box."""
    words = tab.evaluate(
        """[...document.querySelectorAll('.machine text.share')].map(word => {
          const [text, box] = [word, word.previousElementSibling.previousElementSibling.previousElementSibling]
            .map(one => one.getBoundingClientRect());
          return [word.textContent, box.left <= text.left && text.right <= box.right && text.bottom <= box.bottom]; })"""
    )
    assert (len(words) >= 8) == (name == "run") and all(inside for _, inside in words), words


def check_contents(tab: Tab) -> None:
    """A list of headings whose links go to them."""
    links = tab.evaluate(
        """[...document.querySelectorAll('nav a')].map(link => [link.textContent,
        document.querySelector(link.getAttribute('href'))?.textContent])"""
    )
    assert len(links) >= 4 and all(text == title for text, title in links)
    assert len(links) == tab.evaluate("document.querySelectorAll('h2').length")
    words = tab.evaluate("[...document.querySelectorAll('abbr')].map(word => [word.title, word.tabIndex])")
    assert words and all(len(meaning) > 10 and index == 0 for meaning, index in words)


def check_readers(tab: Tab) -> None:
    """Every chart that is shown has a name with its values, and every table's heads are heads."""
    names = [name for role, name in tab.names() if role in ("image", "img")]
    shown = tab.evaluate("[...document.querySelectorAll('svg')].filter(one => one.getClientRects().length).length")
    assert len(names) == shown and all(re.search(r"\d", name) for name in names), names
    assert tab.evaluate("[...document.querySelectorAll('th')].every(head => head.scope)")


def test_the_run_behind_the_page_was_watched_whole(pages):
    """What monitors noted on the way adds up to what the hardware's own counters and the bus say at the end."""
    record = json.loads((pages["run"].parent / "result.json").read_text())
    counters, seen, cycles = record["counters"], record["activity"], record["cycles"]
    assert sum(record["pe_busy"]) == counters["pe_busy"] and len(record["pe_busy"]) == 2
    count = -(-cycles // seen["interval"])
    lengths = [min(seen["interval"], cycles - n * seen["interval"]) for n in range(count)]
    assert 64 <= count <= 129 and all(len(shares) == count for shares in seen["units"].values())

    def whole(unit: str) -> float:
        return sum(share * length for share, length in zip(seen["units"][unit], lengths, strict=True))

    beats = {way: bus_beats(counters, way) for way in ("read", "write")}
    for unit, expected in {
        "DRAM reads": beats["read"], "DRAM writes": beats["write"], "PEs": counters["pe_busy"] / 2,
        "rows of C": counters["phase_compute"], "waits for a PE": counters["stall_dispatch"],
    }.items():  # fmt: skip
        # Shares have four digits.
        assert whole(unit) == pytest.approx(expected, abs=1e-4 * cycles), unit
