"""Finding one's way: topics of help, completion, the name that was meant, operands from standard input."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from sw.cli.app import COMPLETION, main
from sw.cli.help import EXIT_CODES, TOPICS
from sw.formats.storage import storage_names
from sw.operands import OperandError, load
from sw.operands.generators import GENERATORS
from sw.operands.identity import fingerprint
from sw.policies.registry import POLICIES

ROOT = Path(__file__).parents[3]


def said(capsys, *words: str, code: int = 0) -> str:
    assert main(list(words)) == code
    shown = capsys.readouterr()
    return shown.err if code else shown.out


# Help ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "names"),
    [
        ("operands", [".mtx", "-", *GENERATORS]),
        ("designs", ["tiny", "edge", "server", "extensor"]),
        ("tilings", POLICIES),
        ("storage-formats", storage_names()),
        ("exit-codes", [str(code) for code in EXIT_CODES]),
    ],
)
def test_a_topic_lists_its_names_with_a_meaning_each(topic, names, capsys):
    lines = said(capsys, "help", topic).splitlines()
    assert lines[0].endswith(":") and not lines[1]
    for name in names:
        place = next(n for n, line in enumerate(lines) if line[2:].startswith(name))
        # Beside the name, or below where that is long.
        meaning = lines[place].strip().removeprefix(name) if "  " in lines[place].strip() else lines[place + 1]
        assert len(meaning.strip()) > 5, name


def test_exit_codes_are_those_of_the_manual():
    text = (ROOT / "docs" / "command_line.md").read_text()
    table = text[text.index("## Exit codes") :]
    assert set(re.findall(r"(?m)^\| (\d+) \|", table)) == {str(code) for code in EXIT_CODES}


def test_help_of_a_command_is_its_own(capsys):
    assert said(capsys, "help", "schedule") == said(capsys, "schedule", "--help")
    everything = said(capsys, "help")
    assert everything.endswith(said(capsys, "--help")) and all(topic in everything for topic in TOPICS)
    assert said(capsys, "data").startswith("Usage: fiberloom data ")


# The name that was meant -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("rnu", "x"), "run"),
        (("help", "operand"), "operands"),
        (("run", "x", "--engin", "model"), "--engine"),
        (("run", "banded:9:1", "--engine", "modle"), "model"),
        (("run", "banded:9:1", "--config", "egde"), "edge"),
        (("run", "banded:9:1", "--engine", "model", "--value", "fp23"), "fp32"),
        (("run", "banded:9:1", "--engine", "model", "--set", "pe.cuont=3"), "count"),
        (("schedule", "banded:9:1", "--tiling", "hite"), "hyte"),
        (("schedule", "banded:9:1", "--mcf-a", "csrr"), "csr"),
        (("compare", "banded:9:1", "--tiling", "swiftile"), "swiftiles"),
        (("sweep", "banded:9:1", "--engine", "modell"), "model"),
        (("convert", "banded:9:1", "--from", "csr", "--to", "denes"), "dense"),
        (("generate", "--smoke", "icaruss"), "icarus"),
        (("generate", "--block", "tailor"), "tailors"),
        (("synth", "--target", "ecp4"), "ecp5"),
        (("tensor", "mtkrp", "x"), "mttkrp"),
        (("run", "pyamg:arfoil", "--engine", "model"), "airfoil"),
        (("run", "bandedd:9:1", "--engine", "model"), "banded"),
        (("run", "banded:9:1:sead=1", "--engine", "model"), "seed"),
        (("run", "suitesparse:williams/CANT", "--engine", "model"), "suitesparse:Williams/cant"),
        (("run", "./grid.mxt.mtx", "--engine", "model"), "grid.mtx"),
    ],
    ids=" ".join,
)
def test_mistyped_names_are_told_the_nearest(words, meant, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.mtx").write_text("")
    text = said(capsys, *words, code=2)
    assert text.endswith(f" (did you mean {meant}?)\n") and text.count("\n") == 1


def test_nothing_is_guessed_where_nothing_is_near(capsys):
    assert "did you mean" not in said(capsys, "zzz", code=2) + said(capsys, "run", "qqq.mtx", code=2)


# Completion ----------------------------------------------------------------------------------------------------------


def completions(line: str) -> list[str]:
    """What a shell is offered after this line."""
    words = line.split(" ")
    asked = {COMPLETION: "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        [sys.executable, "-m", "sw"], cwd=ROOT, env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("fiberloom co", ["compare", "convert"]),
        ("fiberloom run --transpose", ["--transpose-a", "--transpose-b"]),
        ("fiberloom run --tiling swiftiles,h", ["swiftiles,harp", "swiftiles,hyte"]),
        ("fiberloom run --engine m", ["model"]),
        ("fiberloom run --config e", ["edge", "extensor"]),
        ("fiberloom data f", ["fetch"]),
        ("fiberloom nothing --", []),
    ],
)
def test_a_shell_completes_commands_options_and_values(line, offered):
    assert completions(line)[: len(offered)] == offered


# Standard input ------------------------------------------------------------------------------------------------------


def described(content: bytes) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "sw", "data", "describe", "-", "--json"],
        cwd=ROOT, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, input=content, capture_output=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("form", ["mtx", "mtx.gz", "npz"])
def test_a_file_of_any_form_comes_from_standard_input(form, tmp_path):
    matrix = sp.random_array((8, 5), density=0.4, rng=np.random.default_rng(1), format="csr")
    path = tmp_path / f"m.{form}"
    if form == "npz":
        sp.save_npz(path, matrix)
    else:
        scipy.io.mmwrite(tmp_path / "m.mtx", matrix)
        path.write_bytes(
            gzip.compress((tmp_path / "m.mtx").read_bytes()) if form == "mtx.gz" else (tmp_path / "m.mtx").read_bytes()
        )
    code, out, err = described(path.read_bytes())
    assert (code, err) == (0, "")
    record = json.loads(out)
    assert (record["name"], record["source"], record["nnz"]) == ("stdin", "standard input", matrix.nnz)
    assert (record["rows"], record["cols"]) == (8, 5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "standard input: is empty: must be a matrix"),
        (b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 x\n", "standard input:3: value 'x': must be a real number"),
        (b"hello", "standard input:1: not a Matrix Market file: begins with 'hello', must begin with '%%MatrixMarket'"),
        (b"PK\x03\x04", "standard input: not a complete .npz archive: must be a file written by scipy.sparse.save_npz"),
    ],
)  # fmt: skip
def test_mistakes_on_standard_input_are_one_line(content, message):
    assert described(content) == (2, "", f"fiberloom: {message}\n")


def test_standard_input_is_read_once(capsys):
    assert said(capsys, "compare", "-", "-", code=2) == (
        "fiberloom: -: A is standard input, too, which can be read once only: leave B out for A x A\n"
    )
    with pytest.raises(OperandError, match="^-: must be a file or a name: standard input can be read once only$"):
        fingerprint("-")


def test_standard_input_may_be_closed_or_a_terminal(monkeypatch):
    class Terminal:
        buffer = None

    for stream in (None, Terminal()):
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(OperandError, match=r"^-: standard input is closed: must be a matrix, as in cat"):
            load("-")
    Terminal.buffer = type("", (), {"isatty": lambda self: True})()
    with pytest.raises(OperandError, match=r"^-: standard input is a terminal: must be a matrix, as in cat"):
        load("-")


# The sample ----------------------------------------------------------------------------------------------------------


def test_the_sample_matrix_is_a_five_point_laplacian():
    operand = load(str(ROOT / "examples" / "grid.mtx"))

    def line(n: int) -> sp.sparray:
        return sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])

    assert operand.symmetric_expanded and operand.nnz == 5860
    assert (operand.matrix != sp.kronsum(line(40), line(30), format="csr")).nnz == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["run", "x.mtx", "--T_k", "many"], "--T_k many: must be a whole number"),
        (["run", "x.mtx", "--seed", "1.5"], "--seed 1.5: must be a whole number"),
        (["sweep", "x.mtx", "--jobs", "-"], "--jobs -: must be a whole number"),
    ],
)
def test_what_is_no_number_is_named(line, said, capsys):
    assert main(line) == 2
    assert capsys.readouterr().err == f"fiberloom: {said}\n"
