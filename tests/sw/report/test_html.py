"""The page: whole, self-contained, and honest about what it does not know."""

import html.parser
import re
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from sw.engine_result import EngineResult
from sw.golden.spgemm import multiply
from sw.operands import Operand, to_csr
from sw.report.charts import bars, occupancy, short
from sw.report.html import render
from sw.report.spy import SIDE, density, png, spy
from sw.runtime.result import result_record
from sw.scheme.scheme import Scheme
from sw.tile_sizes import TileSizes

SECONDS = {"load": 0.5, "compile": 61.25, "schedule": 0.25, "verify": 1.0}
OTHER = {"order": "kij", "T_i": 5, "T_j": 6, "T_k": 7, "predicted": {"cycles": 1234, "dram_bytes": 5678}}


@pytest.fixture
def page(design):
    def make(result: EngineResult | None, *, name: str = "grid", engine: str = "rtl") -> str:
        return make_page(design, result, name, engine)

    return make


def make_page(
    design, result: EngineResult | None, name: str, engine: str, model: EngineResult | None = None, **changes
) -> str:
    rng = np.random.default_rng(0)
    operand = Operand(
        name=name, source=f"{name}.mtx", matrix=sp.random_array((50, 50), density=0.1, rng=rng, format="csr")
    )
    a = to_csr(operand, "fp32")
    scheme = Scheme(
        policy="uniform", order="jki", T_i=50, T_j=20, T_k=10, buffer_bytes={"A": 256, "B": 7936, "C": 0},
        fifo_bytes={"A": 64, "B": 64}, mode={"A": "streaming", "B": "buffering", "C": "streaming"},
        predicted={"cycles": 700, "dram_bytes": 9000},
        alternatives=[OTHER],
    )  # fmt: skip
    scheme = replace(scheme, **changes)
    product = multiply(a, a, 4, "fp32", scheme)
    record = result_record(
        engine=engine, engine_result=result or EngineResult(c=product.structural), design=design, scheme=scheme,
        operands={"A": operand, "B": operand}, product=product, checks=[], seconds=SECONDS, command="fiberloom run grid.mtx",
        model=model,
    )  # fmt: skip
    return render(record, scheme=scheme, operands={"A": operand, "B": operand}, c=product.canonical, result=result)


@pytest.fixture
def full(traffic) -> EngineResult:
    return EngineResult(
        c=None,
        cycles=1000,
        counters={
            "macs": 1234,
            "merged": 2000,
            "pe_busy": 1200,
            "pe_stall_input": 200,
            "phase_load_b": 100,
            "stall_dispatch": 300,
        },
        dram_bytes=traffic,
        tiles={"total": 15, "skipped_empty": 2, "overbooked": 1},
        buffer={"B": {"peak_bytes": 4000, "mean_bytes": 3000.5, "hits": 10, "bumped": 3}},
        occupancy={"B": TileSizes(7936).add([100, 9000, 300])},
    )


class Balance(html.parser.HTMLParser):
    """Every element that is opened is closed, in order."""

    VOID = frozenset({"meta"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        """``<rect/>`` opens nothing."""

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> at {self.getpos()}"


@pytest.mark.parametrize("which", ["golden", "full", "no traffic", "error"])
def test_well_formed_and_self_contained(page, full, which):
    results = {
        "full": full,
        "no traffic": EngineResult(c=None, cycles=5),
        "error": EngineResult(c=None, error="axi_read"),
    }
    text = page(results.get(which))
    parser = Balance()
    parser.feed(text)
    assert parser.open == []
    assert (
        "<script" not in text
        and "http://" not in text
        and "https://" not in text
        and "url(" not in text.replace("url(#", "")
    )
    sources = [source for source in re.findall(r'href="([^"]*)"', text) if not source.startswith("#part-")]
    assert all(source.startswith("data:image/png;base64,") for source in sources)


def plain(text: str) -> str:
    """Without the tooltips of words."""
    return re.sub(r"</?abbr[^>]*>", "", text)


def test_shows_what_the_run_found(page, full):
    text = plain(page(full))
    for piece in (
        "grid", "Verified", "jki", "50 &times; 20 &times; 10", "1,000", "15 tiles, 2 skipped as empty, 1 overbooked",
        "1,234", "5,678", "job waits for a free PE", "waiting for data", "fiberloom run grid.mtx", "1 &times; 5 tiles",
        "predicted by the policy", "prefers-color-scheme: dark", "compulsory", "&micro;J", "Energy by component: DRAM ",
    ):  # fmt: skip
        assert piece in text, piece
    # Each chart for pages and for phones.
    assert text.count('class="over"') == 2 * 1 and text.count('class="fits"') == 2 * 2


def beaten(text: str) -> dict[str, list[list[str]]]:
    """Rows of the tables of alternatives, by heading."""
    found = {}
    for heading, body in re.findall(r"<h3>Alternatives it beat ([^<]*)</h3>.*?<tbody>(.*?)</tbody>", text, re.DOTALL):
        rows = re.findall(r"<tr>(.*?)</tr>", body)
        found[heading] = [[re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<td.*?</td>", row)] for row in rows]
    return found


def test_only_what_was_beaten_is_an_alternative(design):
    """By the same measure: what was run in the model tier is compared there, whatever had been predicted of it."""
    modes = {"A": "streaming", "B": "streaming", "C": "streaming"}
    kept = modes | {"A": "buffering", "B": "buffering"}
    shape = {"order": "ijk", "T_i": 50, "T_j": 50, "T_k": 50, "dram_bytes": 9}
    others = [
        shape | {"mode": kept, "cycles": 300, "judged_cycles": 950},
        shape | {"mode": modes, "cycles": 5000, "judged_cycles": 850},
        shape | {"mode": modes, "cycles": 699},
        shape | {"mode": modes, "cycles": 710},
        shape | {"mode": kept, "cycles": 720, "load": "list"},
        shape | {"mode": kept, "cycles": 730, "T_j": 20, "load": "list"},
        shape | {"mode": kept, "cycles": 740, "windows": 9},
    ]
    predicted = {"cycles": 700, "dram_bytes": 9000, "judged_cycles": 900}
    tables = beaten(make_page(design, None, "grid", "golden", predicted=predicted, alternatives=others))
    mine = ["jki", "50", "20", "10", "tile", "B"]
    assert tables == {
        "in the model tier": [[*mine, "900", "9,000"], ["ijk", "50", "50", "50", "tile", "A, B", "950", "9"]],
        "by prediction": [
            [*mine, "700", "9,000"],
            ["ijk", "50", "50", "50", "tile", "none", "710", "9"],
            ["ijk", "50", "50", "50", "list", "A, B", "720", "9"],
            ["ijk", "50", "20", "50", "list, in strips", "A, B", "730", "9"],
            ["ijk", "50", "50", "50", "window", "A, B", "740", "9"],
        ],
    }
    unbeaten = make_page(design, None, "grid", "golden", alternatives=[shape | {"mode": modes, "cycles": 1}])
    assert beaten(unbeaten) == {} and "no alternatives" in unbeaten


def test_what_tiles_load_is_told(design):
    listed = {"load": "list", "strips": 8, "T_i": 50, "T_j": 20, "T_k": 50, "order": "ijk", "alternatives": []}
    text = make_page(design, None, "grid", "golden", **listed)
    assert "a list of the rows of B that it uses" in text and "(list)" in text and "strips of 20 columns" in text
    assert "its tile of B, whole" in make_page(design, None, "grid", "golden")


def test_the_ideal_stands_beside_the_roofline(page, full):
    cards = re.findall(r"<div><b>([^<]*)</b><span>([^<]*)</span></div>", plain(page(full)))
    shares = [(share, words.split(",")[0]) for share, words in cards if words.startswith("of the ")]
    assert [words for _, words in shares] == ["of the ideal", "of the compute roofline"]


def test_seconds_add_up_and_compiling_is_told_apart(page, full):
    text = page(full)
    assert "decided in 0.25 s" in text
    (line,) = re.findall(r'<tr><th scope="row">seconds</th><td>([^<]*)<', text)
    parts, _, whole = line.partition(" = ")
    spent = dict(part.split() for part in parts.split(" + "))
    assert float(spent["compile"]) == 61.25
    assert sum(map(float, spent.values())) == pytest.approx(float(whole)) == pytest.approx(sum(SECONDS.values()))


def test_words_mean_what_the_glossary_says():
    from sw.report.page import FOLDER, MEANINGS

    lines = (Path(__file__).parents[3] / "docs" / "glossary.md").read_text().splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| ")]
    glossary = {row[0].removeprefix("| "): row[1].rstrip(" |") for row in rows}
    for word, meaning in MEANINGS.items():
        assert glossary[word] == meaning
    used = "".join(template.read_text() for template in FOLDER.glob("*.j2"))
    named = set(re.findall(r"\| term\('([^']*)'\)", used)) | set(re.findall(r"'([^']*)' \| term }}", used))
    assert named == set(MEANINGS)


@pytest.mark.parametrize("equal", [True, False])
def test_the_model_stands_beside_the_hardware(design, full, equal):
    traffic = full.dram_bytes if equal else full.dram_bytes | {"B": {"read": 64}}
    text = make_page(design, full, "grid", "rtl", EngineResult(c=None, cycles=800, dram_bytes=traffic))
    assert "trace-driven model" in text and "800 (80.0%)" in text
    assert ("equal for each tensor and kind" in text) is equal
    assert ("DIFFERS" in text) is not equal


def test_golden_page_says_what_it_lacks(page):
    text = page(None, engine="golden")
    assert "computes values only" in text
    assert "DRAM traffic" not in text and "PE utilization" not in text


def test_names_cannot_break_the_page(page, full):
    text = page(full, name='<b onmouseover="x">&')
    assert "<b onmouseover" not in text
    assert "&lt;b onmouseover" in text


def test_spy_density_counts_every_element():
    rng = np.random.default_rng(1)
    for shape in ((10, 10), (1000, 30), (30, 1000), (1, 5000), (5000, 1), (201, 199)):
        matrix = sp.random_array(shape, density=0.05, rng=rng, format="csr")
        cells = density(matrix)
        assert cells.sum() == matrix.nnz and max(cells.shape) <= SIDE and min(cells.shape) >= 1
    small = sp.csr_array(np.array([[1, 0, 2], [0, 0, 3]]))
    assert density(small).tolist() == [[1, 0, 1], [0, 0, 1]]


def test_spy_draws_the_grid_and_survives_emptiness():
    matrix = sp.csr_array((40, 40))
    assert spy(matrix, "A", (10, 40), "ik").count('class="tile"') == 3
    assert spy(matrix, "A", (40, 1), "ik").count('class="tile"') == 39
    assert spy(sp.csr_array((1000, 1000)), "A", (1, 1000), "ik").count('class="tile"') == 0


def test_png_is_a_png():
    shade = np.array([[0, 255], [7, 8], [9, 10]], np.uint8)
    data = png(shade)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert data[16:24] == b"\0\0\0\2\0\0\0\3"
    start = data.index(b"IDAT") + 4
    length = int.from_bytes(data[start - 8 : start - 4], "big")
    assert zlib.decompress(data[start : start + length]) == b"\0\x00\xff\0\x07\x08\0\x09\x0a"


def test_bars_share_one_scale():
    text = bars([("one", [("a", 50, "x")], "50"), ("two", [("a", 60, "x"), ("b", 40, "y")], "100")], "label")
    widths = [float(width) for width in re.findall(r'width="([\d.]+)"', text)]
    assert widths[1] + widths[2] == pytest.approx(2 * widths[0], abs=0.2)


def test_many_tiles_are_gathered_without_losing_the_largest():
    sizes = [1] * 10000
    sizes[7777] = 50
    text = occupancy(TileSizes(10).add(sizes), "label")
    assert text.count("<rect") < 500
    assert text.count('class="over"') == 1


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (999999, "999,999"), (1234567, "1.23 M"), (5e9, "5 G")])
def test_short_numbers(number, text):
    assert short(number) == text


def test_a_time_is_given_only_for_a_clock_that_place_and_route_reached(tmp_path):
    from gen.design import load_design
    from sw.cli.app import main
    from sw.report.comparison import clock_text

    (tmp_path / "placed.toml").write_text('base = "tiny"\n[clock]\nmhz = 50\npart = "some part"\n')
    for config, is_timed in (("tiny", False), (str(tmp_path / "placed.toml"), True)):
        out = tmp_path / ("placed" if is_timed else "asked")
        line = ["run", "banded:40:2", "--engine", "model", "--order", "jki", "--out", str(out), "--quiet"]
        assert main([*line, "--config", config]) == 0
        page = plain((out / "report.html").read_text())
        assert ("<span>at 50 MHz on some part</span>" in page) == is_timed
        assert ("so no time is given" in page) == (not is_timed)
        assert page.index("of the ideal, with") < page.index("roofline, with the bytes moved")
    clocks = [load_design(config).model_dump()["clock"] for config in ("tiny", tmp_path / "placed.toml")]
    assert [clock_text(clock) for clock in clocks] == [
        "250 MHz, asked for and reached by no place and route",
        "50 MHz, reached by place and route on some part",
    ]


def test_scipy_is_timed_in_the_same_run_when_asked(tmp_path, capsys):
    import json

    from sw.cli.app import main

    line = ["run", "banded:400:9", "--engine", "model", "--config", "tiny", "--value", "fp32", "--order", "ijk"]
    for more in ([], ["--scipy"]):
        assert main([*line, *more, "--out", str(tmp_path / "o")]) == 0
        out = capsys.readouterr().out
        record = json.loads((tmp_path / "o/result.json").read_text())
        page = (tmp_path / "o/report.html").read_text()
        assert bool(more) == ("SciPy       " in out) == ("Time beside SciPy" in page)
    mhz = record["cycles"] / record["scipy_seconds"] / 1e6
    assert f"{mhz:,.3g} MHz take as long" in out and f"take as long at {mhz:.3g} MHz" in page
    # A clock that nothing has reached makes no time of the run.
    assert 0 < record["scipy_seconds"] < 60 and "this run at" not in page


def test_scipy_seconds_are_a_median():
    from sw.runtime.scipy_time import scipy_seconds

    ones = sp.csr_array(np.eye(3))
    # The third run ends behind the second that is enough.
    ticks = iter([0.0, 0.5, 1.0, 1.1, 2.0, 2.7, 3.0])
    assert scipy_seconds(ones, ones, lambda: next(ticks)) == pytest.approx(0.5)
    assert list(ticks) == [3.0]
