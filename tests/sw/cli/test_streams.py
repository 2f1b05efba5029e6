"""Standard output and error that are full, closed or cannot show a name; names in any encoding, any locale."""

import ast
import contextlib
import io
import json
import os
import select
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.parquet
import pytest

from sw.cli.streams import Output
from sw.names import SHOWN, shell_line, shown

ROOT = Path(__file__).parents[3]
MATRIX = "%%MatrixMarket matrix coordinate integer general\n3 3 4\n1 1 1\n2 2 2\n3 1 3\n3 3 4\n"
# The golden product and tiles by hand: next to nothing to compile, and here not even that.
GOLDEN = ("--config", "tiny", "--engine", "golden", "--order", "jki")
UNWRITABLE = 74
FULL = "fiberloom: standard output: cannot be written (No space left on device)\n"
CLOSED = "fiberloom: standard output: cannot be written (it is closed)\n"
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
LOCALES = {"utf-8": {"PYTHONUTF8": "1"}, "ascii": ASCII, "ascii streams": {"PYTHONIOENCODING": "ascii"}}


def fiberloom(folder: Path, *words: str | bytes, redirect: str = "", **more: str) -> subprocess.CompletedProcess[bytes]:
    """Runs a command by way of a shell, which can close its streams."""
    variables = {name: text for name, text in os.environ.items() if name not in ("PYTHONUNBUFFERED", "LC_ALL")}
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    return subprocess.run(
        ["sh", "-c", f'exec "$0" -m sw "$@" {redirect}', sys.executable, *words],
        cwd=folder, env=variables | {"PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1"} | more,
        capture_output=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture
def here(tmp_path):
    (tmp_path / "m.mtx").write_text(MATRIX)
    return tmp_path


# Streams ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [("data", "list"), ("data", "list", "--json"), ("--help",), ("run", "-h"), ("--version",)]
)
@pytest.mark.parametrize(("redirect", "line"), [("> /dev/full", FULL), (">&-", CLOSED)])
def test_what_cannot_be_printed_is_one_line(here, words, redirect, line):
    done = fiberloom(here, *words, redirect=redirect)
    assert (done.returncode, done.stderr.decode()) == (UNWRITABLE, line)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(("redirect", "line"), [("> /dev/full", FULL), (">&-", CLOSED)])
def test_a_run_that_cannot_be_printed_is_written_all_the_same(here, redirect, line, unbuffered):
    done = fiberloom(here, "run", "m.mtx", *GOLDEN, "--out", "o", redirect=redirect, PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stderr.decode()) == (UNWRITABLE, line)
    # Nothing that was meant for standard output went into a file that got its number.
    assert json.loads((here / "o/result.json").read_text())["correct"] is True
    assert sorted(path.name for path in (here / "o").iterdir()) == [
        "C.npz",
        "report.html",
        "result.json",
        "scheme.json",
    ]


def test_who_prints_nothing_needs_no_output(here):
    done = fiberloom(here, "run", "m.mtx", *GOLDEN, "--out", "o", "--quiet", redirect=">&-")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("redirect", ["2>&-", "2> /dev/full", "2>&- <&-", ">&- 2>&- <&-", "> /dev/full 2> /dev/full"])
def test_a_complaint_that_nobody_hears_keeps_its_code(here, redirect):
    done = fiberloom(here, "run", "none.mtx", redirect=redirect)
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", b"")


def test_both_closed_still_runs(here):
    done = fiberloom(here, "run", "m.mtx", *GOLDEN, "--out", "o", redirect=">&- 2>&- <&-")
    assert done.returncode == UNWRITABLE and (here / "o/report.html").exists()


def test_a_wrong_result_is_worth_more_than_the_output(here):
    code = (
        "import sys; from sw.cli import data; from sw.cli.app import main\n"
        "import typer\n"
        "def wrong(*arguments): print('text'); raise typer.Exit(1)\n"
        "data._matching = wrong\n"
        "sys.exit(main(['data', 'list']))\n"
    )
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, FULL)


def test_a_reader_that_goes_is_no_error(here):
    done = fiberloom(here, "data", "list", redirect="| head -n 1")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"suitesparse\n", b"")


def test_a_pipe_that_does_not_wait_gets_everything(monkeypatch):
    """As another program may leave it: a full pipe refuses instead of waiting."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    filled = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            filled += os.write(writer, b"x" * 4096)
    found: list[bytes] = []
    reads = threading.Thread(target=lambda: found.extend(iter(lambda: os.read(reader, 1 << 16), b"")))
    wait = select.select

    def waited(*streams):
        if not reads.is_alive():
            reads.start()
        return wait(*streams)

    monkeypatch.setattr("select.select", waited)
    output = Output(writer)
    with io.BufferedWriter(output) as stream:
        stream.write(b"y" * 300_000)
    os.close(writer)
    reads.join()
    os.close(reader)
    assert output.error is None and b"".join(found) == b"x" * filled + b"y" * 300_000


# Names ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize(
    ("name", "text"),
    [("matrice_é_日本".encode(), "matrice_é_日本"), (b"caf\xe9", "caf\\xe9"), (b"a'\xff b", "a'\\xff b")],
)
def test_any_name_in_any_locale(tmp_path, name, text, locale):
    """Text, JSON, pages and tables name the operand; they are UTF-8 in every locale, and the folder is the one asked for."""
    (Path(os.fsdecode(tmp_path)) / os.fsdecode(name + b".mtx")).write_text(MATRIX)
    words = (b"run", name + b".mtx", *GOLDEN, b"--out", b"o-" + name)
    done = fiberloom(tmp_path, *words, **LOCALES[locale])
    assert (done.returncode, done.stderr) == (0, b"")
    folder = tmp_path / os.fsdecode(b"o-" + name)
    record = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert record["operands"]["A"]["name"] == text and record["operands"]["A"]["source"] == f"{text}.mtx"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert text.replace("'", "&#39;") in page
    printed = done.stdout.decode()
    if locale == "utf-8":
        assert f"C = A x B   {text} (3 x 3" in printed and f"see o-{text}/report.html" in printed
    else:
        assert (
            printed.isascii() and f"C = A x B   {text.encode('ascii', 'backslashreplace').decode()} (3 x 3" in printed
        )
    # The command of the report runs as it stands.
    again = subprocess.run(
        ["bash", "-c", f"printf %s {shell_words(record['command'])[2]}"], capture_output=True, check=True
    )
    assert again.stdout == name + b".mtx"


def shell_words(command: str) -> list[str]:
    """The words of a shell command, quotes and all."""
    import re

    return re.findall(r"(?:\$?'[^']*'|\"[^\"]*\"|\\.|[^\s'\"])+", command)


@pytest.mark.parametrize("locale", ["utf-8", "ascii"])
def test_other_commands_take_such_names(tmp_path, locale):
    name = os.fsdecode(b"caf\xe9")
    (tmp_path / f"{name}.mtx").write_text(MATRIX)
    more = LOCALES[locale] | {"FIBERLOOM_CACHE": os.fsdecode(os.fsencode(tmp_path) + b"/k\xe9pt")}
    common = ("--config", "tiny", "--out", f"o-{name}")
    commands = {
        ("schedule", f"{name}.mtx", *common, "--order", "jki"): "scheme.json",
        ("compare", f"{name}.mtx", *common, "--engine", "golden", "--tiling", "uniform"): "comparison.html",
        ("sweep", f"{name}.mtx", *common, "--engine", "golden", "--tiling", "uniform", "--jobs", "1"): "sweep.html",
    }
    for words, file in commands.items():
        done = fiberloom(tmp_path, *words, **more)
        assert (done.returncode, done.stderr) == (0, b""), words
        assert "caf\\xe9" in (tmp_path / f"o-{name}" / file).read_text(encoding="utf-8") or words[0] == "schedule"
    with (tmp_path / f"o-{name}" / "sweep.parquet").open("rb") as stream:
        (row,) = pyarrow.parquet.read_table(stream).to_pylist()
    assert row["a"] == "caf\\xe9.mtx" and row["correct"]
    done = fiberloom(tmp_path, "data", "save", f"{name}.mtx", f"{name}.npz", **more)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().startswith("caf\\xe9.npz: 3 x 3, 4 elements")
    done = fiberloom(tmp_path, "data", "describe", f"none-{name}.mtx", "--json", **more)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"fiberloom: none-caf\\xe9.mtx: no such file\n"


def test_names_as_they_are_shown():
    assert shown("plain") == "plain" and shown("é日本") == "é日本"
    assert shown(os.fsdecode(b"caf\xe9")) == "caf\\xe9"
    # UTF-8 under a locale that cannot read it.
    assert shown("é".encode().decode("ascii", "surrogateescape")) == "é"
    for odd in ("\ud800", "\udce9\ud800", "a\udc00"):
        shown(odd).encode()
    assert "é\udce9日".encode("ascii", SHOWN) == b"\\xe9\\xe9\\u65e5"
    assert "é\udce9".encode("utf-8", SHOWN).decode() == "é\\xe9"
    assert shell_line(["run", "a b", os.fsdecode(b"'\xe9\\")]) == "run 'a b' $'\\x27\\xe9\\x5c'"


FOLDERS = ("fiberloom", "gen", "sw", "sw/runtime/simulation")


@pytest.mark.parametrize(
    "path", [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))], ids=str
)
def test_every_file_and_tool_has_its_encoding(path):
    """The locale's is nobody's: what is read and written is UTF-8, and so is what tools say."""
    guessed = []
    for call in (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)):
        called = getattr(call.func, "attr", getattr(call.func, "id", ""))
        named = {word.arg for word in call.keywords}
        texts = [str(word.value) for word in call.args if isinstance(word, ast.Constant)]
        binary = any("b" in text and len(text) <= 3 for text in texts)
        reads = called in ("read_text", "write_text") or (
            called == "open"
            and not binary
            and ast.unparse(call.func) not in ("os.open", "tarfile.open", "gzip.open", "archive.zip.open")
        )
        if (reads and "encoding" not in named) or "text" in named & {"text"} and called in ("run", "Popen"):
            guessed.append(f"line {call.lineno}: {ast.unparse(call)[:60]}")
    assert not guessed
