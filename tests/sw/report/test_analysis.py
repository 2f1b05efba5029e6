"""The page of an analysis: its pictures say what the record says."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sw.analytic.analysis import Analysis, analyze
from sw.analytic.spec.load import load_spec
from sw.report.analysis import render
from sw.report.roofline import Port, port_roofline


def page_of(name: str, *changes: str) -> tuple[Analysis, str]:
    analysis = analyze(load_spec([Path(name)], changes))
    return analysis, render(analysis, "fiberloom analyze <x>")


def pictures(page: str, label: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(text) for text in re.findall(r"<svg .*?</svg>", page, re.S) if label in text]


def lengths(picture: ElementTree.Element) -> dict[str, float]:
    """What segments of bars are said to be."""
    told = [str(bar.findtext("title")).rpartition(": ") for bar in picture.iter("rect")]
    return {name: float(number.replace(",", "")) for name, _, number in told}


@pytest.mark.parametrize("name", ["sparse_product", "scnn", "eyeriss", "extensor"])
def test_bars_add_up_to_the_record(name):
    analysis, page = page_of(name)
    energy = lengths(pictures(page, "Energy by component")[0])
    for component, whole in analysis.energy.items():
        own = sum(size for text, size in energy.items() if re.match(rf"{component}[.,]", text))
        assert own == pytest.approx(whole, abs=4)
    traffic = lengths(pictures(page, "Traffic by level")[0])
    for (level, number), counters in analysis.sparse.counters.items():
        storage, tensor = analysis.spec.architecture.levels[level], analysis.spec.workload.problem.tensors[number]
        skipped = (counters.reads.skipped + counters.updates.skipped) * analysis.uses[level].mean[number]
        assert traffic.get(f"{storage.name}.{tensor.name}, skipped", 0) == pytest.approx(skipped, abs=1)
    assert "analyze &lt;x&gt;" in page and page.count('class="nest"') == len(analysis.spec.architecture.levels) + 1


def test_a_level_that_limits_lies_on_its_roof():
    """DRAM is so slow that it sets the pace: its dot has no distance from its line."""
    analysis, page = page_of("sparse_product", "architecture.nodes.DRAM.attributes.read_bandwidth=0.5")
    assert analysis.cycles.total > analysis.cycles.compute
    attained = analysis.sparse.computes.actual / analysis.cycles.total
    text = next(str(each.findtext("title")) for each in pictures(page, "in a cycle over")[0].iter("circle"))
    assert text.startswith("DRAM reads: ")
    intensity = float(text.split()[2])
    assert intensity * 0.5 == pytest.approx(attained, rel=2e-3)


def test_dots_lie_under_their_roofs():
    for name in ("sparse_product", "scnn", "dstc"):
        _, page = page_of(name)
        for dot in pictures(page, "in a cycle over")[0].iter("circle"):
            assert 90 <= float(dot.attrib["cx"]) <= 840 and 14 <= float(dot.attrib["cy"]) <= 334


def test_nothing_to_show():
    ports = [Port(name="DRAM", words=0, bandwidth=2)]
    assert (
        port_roofline(ports, 5, 5, 1) is None
        and port_roofline([Port(name="DRAM", words=3, bandwidth=None)], 0, 5, 1) is None
    )
