"""What README and manual tell a reader to type works, and what they show as code runs."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import yaml

from benchmarks.table_markers import cells, table
from sw.cli import evaluate, pipeline
from sw.cli.app import COMMANDS, available, build, main
from sw.operands import load

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def fences(page: Path, language: str) -> list[str]:
    """Code blocks of a page, also those inside lists."""
    found = re.findall(rf"(?ms)^( *)```{language}\n(.*?)^ *```", page.read_text(encoding="utf-8"))
    return [re.sub(rf"(?m)^{indent}", "", code) for indent, code in found]


def commands(page: Path) -> list[list[str]]:
    """Every command line of Fiberloom that a page shows, in order, without the program's name."""
    lines = [line for code in fences(page, "sh") for line in code.splitlines()]
    words = [shlex.split(line, comments=True) for line in lines]
    return [line[1:] for line in words if line and Path(line[0]).name == "fiberloom"]


SESSIONS = [page for page in PAGES if commands(page)]
# A reader is told to bring a matrix, but for these pages, which make what they use.
COMPLETE = ("README.md", "quick_start.md")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, and in place of the hardware, which takes minutes to build, its model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIBERLOOM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    real = pipeline.run_engine

    def engine(name, *arguments):
        return real("model" if name == "rtl" else name, *arguments)

    monkeypatch.setattr(pipeline, "run_engine", engine)
    monkeypatch.setattr(evaluate, "run_engine", engine)
    return tmp_path


def own_matrices() -> None:
    """The reader's."""
    matrix = sp.random_array((30, 30), density=0.2, rng=np.random.default_rng(0), format="csr")
    matrix.data = np.rint(9 * matrix.data) + 1
    scipy.io.mmwrite("my.mtx", matrix)
    sp.save_npz("other.npz", matrix)


def own_files(page: Path) -> None:
    """Files that the page shows: their first line is their name."""
    for code in fences(page, "python"):
        if name := re.match(r"# (\w+\.py)\n", code):
            Path(name[1]).write_text(code)


def types(words: list[str], capsys) -> str:
    """Does what one line says, and returns what it prints. What takes minutes is parsed only."""
    if words[0] in ("generate", "synth"):
        import typer

        command = typer.main.get_command(build(words[0]))
        command.commands[words[0]].make_context(words[0], list(words[1:]))
        return "parsed"
    assert main(words) == 0, (words, capsys.readouterr().err)
    printed: str = capsys.readouterr().out
    assert printed, words
    return printed


def runs_what_was_decided(file: Path) -> None:
    """The newest record is that of the scheme in the file."""
    document = json.loads(file.read_text())
    record = json.loads(max(Path("out").glob("*/result.json"), key=lambda path: path.stat().st_mtime_ns).read_text())
    same = ("policy", "order", "T_i", "T_j", "T_k", "load")
    assert {name: record["scheme"][name] for name in same} == {name: document[name] for name in same}


@pytest.mark.parametrize("page", SESSIONS, ids=lambda page: page.name)
def test_the_lines_of_a_page_work_one_after_the_other(here, page, capsys):
    """As a reader types them, in one folder: no line replaces what one of another command has left to those after it."""
    if page.name not in COMPLETE:
        own_matrices()
    own_files(page)
    left: dict[Path, tuple[str, bytes]] = {}
    for words in commands(page):
        target = None
        if ">" in words:
            words, target = words[: words.index(">")], words[-1]
        printed = types(words, capsys)
        if target is not None:
            Path(target).write_text(printed)
        for path in here.rglob("*"):
            if path.is_file() and not path.is_relative_to(here / "cache"):
                content = path.read_bytes()
                owner, before = left.get(path, (words[0], content))
                assert owner == words[0] or content == before, f"{words} replaces {path} of {owner}"
                left[path] = owner, content
        if "--scheme" in words:
            scheme = here / words[words.index("--scheme") + 1]
            assert left[scheme][0] == "schedule"
            runs_what_was_decided(scheme)
    if page.name in COMPLETE:
        assert not [path for path in paths_of_results(page) if not Path(path).exists()]
        assert paths_of_results(page)


def paths_of_results(page: Path) -> list[str]:
    """Where a page says that results are."""
    return re.findall(r"\bout/[\w./-]+\w", page.read_text(encoding="utf-8"))


def test_the_demonstration_is_no_small_matrix():
    """As large as the README says."""
    (operand,) = re.findall(r"(?m)^OPERAND \?= (\S+)$", (ROOT / "Makefile").read_text())
    assert load(operand).nnz > 10_000
    assert f"a matrix of {load(operand).nnz:,} nonzeros" in (ROOT / "README.md").read_text()


def test_numbers_of_the_readme_are_those_of_its_commands(here, capsys):
    text = (ROOT / "README.md").read_text()
    assert main(["compare", "examples/grid.mtx", "--config", "tiny", "--tiling", "uniform,auto", "--json"]) == 0
    uniform, auto = (record["cycles"] for record in json.loads(capsys.readouterr().out))
    assert f"{uniform:,} cycles with the largest tile that could not overflow, {auto:,} with `auto`" in text
    benchmarks = (ROOT / "docs" / "benchmarks.md").read_text()
    (found,) = (line for line in table(benchmarks, "matrices") if line.startswith("- *roofline*"))
    number, mean, worst = re.search(
        r"the (\d+) operands: ([\d.]+) in the geometric mean, ([\d.]+) at worst", found
    ).groups()
    said = (
        "real matrices it reaches {} of the roofline with the bytes that it moves, in the geometric mean, {} at worst"
    )
    assert f"Over {number} {said.format(mean, worst)}" in text
    bar = dict(zip(cells(benchmarks, "matrices")["operand"], cells(benchmarks, "matrices")["pyamg:bar"], strict=True))
    share = f"{100 * float(bar['roofline']):.1f} % of what its eight PEs could do at best"
    assert bar["bound"] == "compute" and f"by itself in {bar['cycles']} cycles, {share}" in text


def test_enough_commands_are_found():
    assert sum(len(commands(page)) for page in PAGES) >= 12 and len(SESSIONS) >= 6


def test_pages_promise_no_command_that_is_not_there():
    missing = set(COMMANDS) - set(available())
    for page in PAGES:
        promised = re.findall(r"fiberloom (\w+)", page.read_text(encoding="utf-8"))
        assert not missing & set(promised), page.name


def test_makefile_targets_of_the_pages_exist():
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    for page in PAGES:
        for target in re.findall(r"`make ([a-z-]+)`", page.read_text(encoding="utf-8")):
            assert target in targets, f"{page.name}: make {target}"


def test_links_of_the_readme_lead_somewhere():
    for page in PAGES[:2]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert "://" in target or (ROOT / target).exists(), target


def test_every_page_is_in_the_manual():
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert listed == {str(page.relative_to(ROOT / "docs")) for page in PAGES[2:]}


READERS = {
    "Use": "For users",
    "Understand": "For architects",
    "Hardware": "For hardware engineers",
    "Maintain": "For maintainers",
}


def readers() -> dict[str, str]:
    """The reader of each page, by the part of the manual that it stands in."""
    found: dict[str, str] = {}
    part = ""
    for line in (ROOT / "mkdocs.yml").read_text().splitlines():
        if group := re.match(r"  - ([A-Z][a-z]+):$", line):
            part = group[1]
        elif page := re.search(r": (\S+\.md)$", line):
            found[page[1]] = READERS[part]
    return found


def test_every_page_names_its_reader():
    """Title, an empty line, and then who reads the page and what it is for."""
    assert set(readers().values()) == set(READERS.values())
    for page, reader in readers().items():
        title, empty, first = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()[:3]
        assert title.startswith("# ") and not empty, page
        assert first.startswith(f"{reader}: ") and len(first) > len(reader) + 30, page


def test_no_list_of_the_manual_is_long():
    """Pages stand in groups: no part lists more than ten side by side."""
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert [name for part in nav for name in part] == list(READERS)

    def longest(entries: list[Any]) -> int:
        below = [longest(inner) for entry in entries for inner in entry.values() if isinstance(inner, list)]
        return max([len(entries), *below])

    assert longest(nav) <= 10


def test_the_citation_is_of_this_version():
    from gen import __version__

    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (cited["version"], cited["license"]) == (__version__, "MIT") and cited["cff-version"] == "1.2.0"
    assert cited["title"].startswith("Fiberloom") and cited["authors"] and cited["message"]


def test_templates_ask_for_what_a_report_needs():
    templates = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"))
    assert len(templates) == 3
    for template in templates:
        _, head, body = template.read_text().split("---\n")
        assert set(yaml.safe_load(head)) == {"name", "about"} and body.count("**") >= 4
    assert "fiberloom doctor --json" in (ROOT / ".github" / "ISSUE_TEMPLATE" / "defect.md").read_text()


def test_the_scheme_that_is_shown_is_one():
    from gen.design import load_design
    from sw.scheme.scheme import Scheme

    (text,) = fences(ROOT / "docs" / "scheme_file.md", "json")
    scheme = Scheme.from_dict(json.loads(text))
    scheme.validate(load_design("tiny"), 260, 260, 260)
    assert set(json.loads(text)) == set(json.loads(scheme.to_json()))


def test_the_design_that_is_shown_is_one(tmp_path):
    from gen.design import load_design

    (text,) = fences(ROOT / "docs" / "design_file.md", "toml")
    (tmp_path / "mine.toml").write_text(text)
    design = load_design(tmp_path / "mine.toml")
    assert (design.pe.count, design.memory.records, design.name) == (4, "packed", "mine")
    assert design.buffer == load_design("edge").buffer


def test_the_block_that_is_shown_works():
    from amaranth.sim import Simulator

    from gen.docstrings import block_text
    from gen.verilog import emit

    code = next(code for code in fences(ROOT / "docs" / "extending.md", "python") if "class Accumulator" in code)
    names: dict[str, Any] = {"__name__": "shown"}
    exec(code, names)
    dut = names["Accumulator"](width=8)

    async def bench(ctx):
        for value in (200, 100):
            ctx.set(dut.i.payload, value)
            ctx.set(dut.i.valid, 1)
            await ctx.tick()
        assert ctx.get(dut.o) == 300 % 256

    text = block_text(names["Accumulator"])
    assert text.timing and all(text.members[port] for port in "io") and text.parameters["width"]
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert emit(names["Accumulator"](width=8), origin="a test").sources == ["accumulator.sv"]
    with pytest.raises(ValueError, match=r"^Width must be from 1 to 64, not 65$"):
        names["Accumulator"](width=65)
