# amaranth: UnusedElaboratable=no
"""What README and manual tell a reader to type works, and what they show as code runs."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from sw.cli.app import COMMANDS, available, build, main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def fences(page: Path, language: str) -> list[str]:
    """Code blocks of a page, also those inside lists."""
    found = re.findall(rf"(?ms)^( *)```{language}\n(.*?)^ *```", page.read_text(encoding="utf-8"))
    return [re.sub(rf"(?m)^{indent}", "", code) for indent, code in found]


def commands() -> list[Any]:
    """Every command line of Fiberloom that a page shows, by page."""
    found = []
    for page in PAGES:
        for code in fences(page, "sh"):
            for line in code.splitlines():
                words = shlex.split(line, comments=True)
                if words and Path(words[0]).name == "fiberloom":
                    found.append(pytest.param(words[1:], id=f"{page.name}: {' '.join(words[1:])}"))
    return found


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the files that the pages speak of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIBERLOOM_CACHE", str(tmp_path / "cache"))
    matrix = sp.random_array((30, 30), density=0.2, rng=np.random.default_rng(0), format="csr")
    matrix.data = np.rint(9 * matrix.data) + 1
    scipy.io.mmwrite("my.mtx", matrix)
    sp.save_npz("other.npz", matrix)
    assert main(["schedule", "my.mtx", "--quiet"]) == 0
    Path("scheme.json").write_text(Path("out/my/scheme.json").read_text())
    return tmp_path


@pytest.mark.parametrize("words", commands())
def test_commands_work(here, words, capsys):
    """Runs of the hardware go to the golden engine, and what takes minutes is parsed only."""
    if ">" in words:
        words = words[: words.index(">")]
    if words[0] in ("generate", "synth"):
        import typer

        command = typer.main.get_command(build(words[0]))
        command.commands[words[0]].make_context(words[0], list(words[1:]))
        return
    engine = [] if words[0] != "run" or "--engine" in words else ["--engine", "golden"]
    # Matrices of the pages have values that are no integers unless they say so.
    value = ["--value", "fp32"] if "my.mtx" not in words and "tiny" in words else []
    assert main([*words, *engine, *value]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out


def test_enough_commands_are_found():
    assert len(commands()) >= 12


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
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text()):
        assert "://" in target or (ROOT / target).exists(), target


def test_every_page_is_in_the_manual():
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert listed == {str(page.relative_to(ROOT / "docs")) for page in PAGES[1:]}


def test_the_scheme_that_is_shown_is_one():
    from gen.design import load_design
    from sw.tiling.scheme import Scheme

    (text,) = fences(ROOT / "docs" / "scheme_file.md", "json")
    scheme = Scheme.from_dict(json.loads(text))
    scheme.validate(load_design("tiny"), 260, 260, 260)
    assert set(json.loads(text)) == set(json.loads(scheme.to_json()))


def test_the_policy_that_is_shown_is_one():
    from gen.design import load_design
    from sw.stats.workload import Workload
    from sw.tiling.cost import predict
    from sw.tiling.protocol import Machine
    from sw.tiling.scheme import Scheme, default_partition

    code = next(code for code in fences(ROOT / "docs" / "extending.md", "python") if "def thirds" in code)
    names: dict[str, Any] = {
        "Machine": Machine, "Scheme": Scheme, "Workload": Workload, "default_partition": default_partition,
        "predict": predict, "replace": replace, "sp": sp,
    }  # fmt: skip
    exec(code, names)
    matrix = sp.random_array((40, 40), density=0.1, rng=np.random.default_rng(1), format="csr")
    scheme = names["thirds"](matrix, matrix, load_design("tiny"))
    scheme.validate(load_design("tiny"), 40, 40, 40)
    assert scheme.T_k == 14 and scheme.cycles > 0


def test_the_block_that_is_shown_works():
    from amaranth.hdl import Module
    from amaranth.lib import stream
    from amaranth.lib.wiring import In, Out
    from amaranth.sim import Simulator

    from gen.verilog import emit
    from rtl.lib.block import Block

    code = next(code for code in fences(ROOT / "docs" / "extending.md", "python") if "class Accumulator" in code)
    names: dict[str, Any] = {
        "Any": Any, "Block": Block, "In": In, "Module": Module, "Out": Out, "stream": stream, "__name__": "shown"
    }  # fmt: skip
    exec(code, names)
    dut = names["Accumulator"](width=8)

    async def bench(ctx):
        for value in (200, 100):
            ctx.set(dut.i.payload, value)
            ctx.set(dut.i.valid, 1)
            await ctx.tick()
        assert ctx.get(dut.o) == 300 % 256

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert emit(names["Accumulator"](width=8), origin="a test").sources == ["accumulator_w8.sv"]
    with pytest.raises(ValueError, match=r"^Width must be from 1 to 64, not 65$"):
        names["Accumulator"](width=65)
