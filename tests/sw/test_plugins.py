"""Policies and storage formats from a user's own file: the one that the manual shows, and every mistake in one line."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import fiberloom
from sw import plugins
from sw.cli.app import main
from sw.cli.reasons import reason
from sw.formats.storage import storage_format, storage_names
from sw.formats.storage_format import through_memory
from sw.policies.registry import POLICIES, find_policy, policy_names, schedule
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from tests.sw.cost.machines import EDGE, LARGE, SERVER, SMALLEST, TINY
from tests.sw.formats.tensors import small_tensors
from tests.sw.stats.matrices import MATRICES
from tests.test_documents import ROOT, fences
from tests.tools import needs_tool

MACHINES = {"tiny": TINY, "edge": EDGE, "server": SERVER, "large": LARGE, "smallest": SMALLEST}
SHOWN = next(code for code in fences(ROOT / "docs" / "extending.md", "python") if code.startswith("# mine.py"))


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The file of the manual in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SHOWN)
    plugins.load([tmp_path / "mine.py"])
    return tmp_path / "mine.py"


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("operand", MATRICES)
def test_the_policy_that_is_shown_is_legal_everywhere(mine, operand, machine):
    A = MATRICES[operand]
    B = A if A.shape[0] == A.shape[1] else type(A)(A.T.tocsr())
    scheme = schedule("thirds", A, B, MACHINES[machine])
    scheme.validate(MACHINES[machine], A.shape[0], B.shape[1], A.shape[1])
    assert (scheme.policy, scheme.cycles >= 1) == ("thirds", True)
    assert scheme.T_k <= -(-A.shape[1] // 3)
    assert Scheme.from_json(scheme.to_json()) == scheme
    parts = schedule("thirds", A, B, MACHINES[machine], parts=1)
    assert parts.T_k >= scheme.T_k


@pytest.mark.parametrize("order", [2, 3])
def test_the_format_that_is_shown_gives_back_what_it_holds(mine, order):
    form = storage_format("positions")
    for name, given in small_tensors(order):
        layout = form.layout(given.shape, form.counts(given), given.value)
        assert through_memory(form, layout, given)[1].same_as(given), name


def test_names_come_after_the_shipped_ones(mine):
    assert policy_names() == (*POLICIES, "thirds")
    assert storage_names()[-1] == "positions"


@pytest.mark.parametrize("command", ["run", "schedule", "compare", "sweep"])
def test_help_lists_what_the_file_brings(mine, command, capsys):
    plugins._loaded.clear()
    # As in a new process: options are described when their module is loaded.
    code = f"import sys; from sw.cli.app import main; sys.exit(main(['{command}', '--help', '--plugin={mine}']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--plugin FILE.py" in done.stdout
    assert ("thirds" in done.stdout) == (command in ("run", "schedule"))


def test_a_plain_function_call_takes_it(mine):
    plugins._loaded.clear()
    A = MATRICES["noise"]
    result = fiberloom.schedule(A, config="tiny", value="fp32", tiling="thirds", plugin=mine)
    assert result.to_dict()["policy"] == "thirds"
    assert fiberloom.schedule(A, config="tiny", value="fp32", tiling="thirds").cycles == result.cycles


def test_a_sweep_runs_it_elsewhere_and_keeps_results_by_its_text(mine, monkeypatch, capsys):
    monkeypatch.setenv("FIBERLOOM_CACHE", str(mine.parent / "cache"))
    line = [
        "sweep",
        "uniform:40:40:0.1",
        "--config",
        "tiny",
        "--tiling",
        "thirds",
        "--plugin",
        "mine.py",
        "--jobs",
        "1",
        "--json",
    ]

    def cycles_and_kept():
        assert main(line) == 0, capsys.readouterr().err
        (row,) = json.loads(capsys.readouterr().out)
        return row["cycles"], row["kept"]

    first = cycles_and_kept()
    assert first[1] is False and cycles_and_kept() == (first[0], True)
    mine.write_text(SHOWN.replace("parts: int = 3", "parts: int = 20"))
    other = cycles_and_kept()
    assert other[1] is False and other[0] != first[0]


# Mistakes ------------------------------------------------------------------------------------------------------------

FUNCTION = "def f(A, B, design, *, seed=0):\n    return {1}\nPOLICIES = {{'{0}': f}}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "--plugin mine.py: must have a dictionary POLICIES, STORAGE_FORMATS, BLOCKS, DENSITIES or FORMATS"),
        ("POLICIES = [1]", "--plugin mine.py: must have a dictionary POLICIES, STORAGE_FORMATS, BLOCKS, DENSITIES or FORMATS"),
        ("import numpy\nPOLICIES = {'x': undefined}", "--plugin mine.py:2: cannot be loaded (NameError: name 'undefined' is not "
         "defined)"),
        ("POLICIES = {\n'x': (\n", "--plugin mine.py:2: cannot be loaded (SyntaxError: '(' was never closed)"),
        ("raise SystemExit(0)", "--plugin mine.py:1: cannot be loaded (SystemExit: 0)"),
        ("POLICIES = {'x': 3}", "--plugin mine.py: POLICIES['x']: must be a function of A, B, design and seed"),
        ("STORAGE_FORMATS = {'x': 3}", "--plugin mine.py: STORAGE_FORMATS['x']: must be a class with the members of a format"),
        ("POLICIES = {'a,b': print}", "--plugin mine.py: POLICIES: 'a,b': must be a name without spaces, commas, colons, +, * "
         "and brackets"),
        (FUNCTION.format("hyte", 0), "--plugin mine.py: POLICIES['hyte']: must be another name than those of uniform, prescient, "
         "swiftiles, drt, harp, hyte, d2t2, even_columns, even_squares, even_rows, optimal, auto"),
        (FUNCTION.format("x", "None"), "policy x: must return a Scheme, not NoneType"),
        (FUNCTION.format("x", "A.shape[5]"), "{folder}/mine.py:2: IndexError: tuple index out of range"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(tmp_path, monkeypatch, capsys, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(text)
    assert main(["schedule", "banded:9:1", "--config", "tiny", "--plugin", "mine.py", "--tiling", "x"]) == 2
    shown = capsys.readouterr()
    expected = message.replace("{folder}", str(tmp_path))
    assert shown.err == f"fiberloom: {expected}\n" and shown.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


def test_a_missing_file_and_a_format_without_members(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["convert", "banded:9:1", "--plugin", "none.py", "--from", "csr", "--to", "x"]) == 2
    assert capsys.readouterr().err == "fiberloom: --plugin none.py: no such file\n"
    (tmp_path / "mine.py").write_text("class X:\n    orders = (2,)\nSTORAGE_FORMATS = {'x': X}\n")
    assert main(["convert", "banded:9:1", "--plugin", "mine.py", "--from", "csr", "--to", "x"]) == 2
    assert capsys.readouterr().err == (
        "fiberloom: --plugin mine.py: STORAGE_FORMATS['x']: has no keeps_zeros, counts, layout, encode, decode: must be a "
        "storage format\n"
    )


def test_two_files_have_different_names(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(FUNCTION.format("x", 0))
    plugins.load([tmp_path / "one.py", tmp_path / "one.py"])
    with pytest.raises(plugins.PluginError, match=r"two\.py: POLICIES\['x'\]: must be another name: .*one\.py has it$"):
        plugins.load([tmp_path / "two.py"])


def test_a_name_that_is_nearly_one_is_told(mine):
    with pytest.raises(SchemeError, match=r"thirds \(did you mean thirds\?\)$"):
        find_policy("third")


def test_reasons_name_the_line_of_the_file(mine):
    text = SHOWN.replace("(I, K), J = A.shape, B.shape[1]", "(I, K), J = A.shape, B.shape[9]")
    plugins.use(
        [("mine.py", text.replace('"thirds": thirds', '"other": thirds').replace('"positions": Pos', '"p": Pos'))]
    )
    with pytest.raises(IndexError) as raised:
        schedule("other", MATRICES["noise"], MATRICES["noise"], replace(TINY))
    line = 1 + text[: text.index("B.shape[9]")].count("\n")
    assert reason(raised.value) == f"mine.py:{line}: IndexError: tuple index out of range"


def test_an_analysis_takes_its_densities_by_the_same_option(tmp_path, monkeypatch, capsys):
    """``--load`` is the older name; a file may bring policies, too."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("DENSITIES = {'mine': 3}\nPOLICIES = {'p': print}\n")
    for option in ("--plugin", "--load"):
        assert main(["analyze", "none.yaml", option, "mine.py"]) == 2
        assert capsys.readouterr().err.endswith("DENSITIES['mine']: must be a function of an entry and extents\n")


BLOCK = next(code for code in fences(ROOT / "docs" / "extending.md", "python") if code.startswith("# accumulator.py"))


@needs_tool("icarus")
def test_the_block_that_is_shown_is_generated_from_its_file(tmp_path, monkeypatch, capsys):
    """As the manual types it: Verilog without warnings, and a bench that passes."""
    monkeypatch.chdir(tmp_path)
    Path("accumulator.py").write_text(BLOCK)
    (line,) = [
        line for code in fences(ROOT / "docs" / "extending.md", "sh") for line in code.splitlines() if "accum" in line
    ]
    assert main([*line.split()[1:], "--lint"]) == 0
    assert "checked     PASS: accumulator, 512 cycles" in capsys.readouterr().out
    assert "module accumulator (" in Path("out/accumulator/rtl/accumulator.sv").read_text()
    assert main(["generate", "--plugin", "accumulator.py", "--list-blocks", "--config", "tiny"]) == 0
    assert "accumulator: Adds up what comes in, modulo 2**width\n    width = " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "change", "message"),
    [
        ([], ("", ""), "--block accumulator: needs --param width=VALUE"),
        (["--param", "width=65"], ("", ""), "--block accumulator: Width must be from 1 to 64, not 65"),
        (["--param", "wide=6"], ("", ""), "--param wide=6: accumulator has no parameter 'wide': it has width"),
        ([], ('{"accumulator"', '{"tailors"'),
         "BLOCKS['tailors']: must be another name: Fiberloom has a block of that one"),
        ([], (": Accumulator}", ": dict}"), "BLOCKS['accumulator']: must be a class that derives from rtl.lib.block.Block"),
        ([], ("width: int)", "width: float)"), "BLOCKS['accumulator']: width: must be of the type int or bool"),
    ],
)  # fmt: skip
def test_mistakes_with_a_block_of_ones_own_are_one_line(tmp_path, monkeypatch, capsys, words, change, message):
    monkeypatch.chdir(tmp_path)
    file = f"own_{abs(hash((message, *change)))}.py"
    Path(file).write_text(BLOCK.replace(*change) if change[0] else BLOCK)
    assert main(["generate", "--plugin", file, "--block", "accumulator", *words]) == 2
    assert capsys.readouterr().err == f"fiberloom: {message}\n" and not Path("out").exists()
