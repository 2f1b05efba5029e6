"""The wheel's files, installed where nobody may write, run by another user whose home cannot be written either."""

import json
import os
import shutil
import site
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tools import another_user, needs_tool

pytestmark = needs_tool("another user")

ROOT = Path(__file__).parents[1]
MATRIX = "%%MatrixMarket matrix coordinate integer general\n3 3 4\n1 1 1\n2 2 2\n3 1 3\n3 3 4\n"
GOLDEN = ("--config", "tiny", "--engine", "golden", "--order", "jki")
# Where compiling is not the subject.
UNCOMPILED = {"NUMBA_DISABLE_JIT": "1"}
CODE = "compiled code cannot be kept ("

Run = Callable[..., subprocess.CompletedProcess[str]]


def unpack_wheel(folder: Path) -> None:
    """Builds the wheel as ``pip install`` does, and puts its files into the folder."""
    with tempfile.TemporaryDirectory() as built:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", built]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = Path(built).iterdir()
        shutil.unpack_archive(wheel, folder, "zip")


@pytest.fixture(scope="module")
def installed() -> Iterator[Path]:
    """A folder that everybody may read, with `site`, which nobody may write, and `home`, likewise."""
    folder = Path(tempfile.mkdtemp(prefix="fiberloom-installed-"))
    try:
        unpack_wheel(folder / "site")
        (folder / "home").mkdir()
        for path in [folder, *folder.rglob("*")]:
            readable = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
            path.chmod(readable | 0o111 if path.is_dir() else readable)
        yield folder
    finally:
        for path in [folder, *(path for path in folder.rglob("*") if path.is_dir())]:
            path.chmod(0o755)
        shutil.rmtree(folder)


@pytest.fixture
def work() -> Iterator[Path]:
    """A folder in which everybody may work."""
    folder = Path(tempfile.mkdtemp(prefix="fiberloom-work-"))
    folder.chmod(0o777)
    (folder / "m.mtx").write_text(MATRIX)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def run(installed, work) -> Run:
    """Runs the installed command as another user, whose environment has what it needs and `more`."""
    who = another_user()
    assert who is not None
    packages = [*site.getsitepackages(), sysconfig.get_path("purelib")]

    def call(*words: str, folder: Path = work, **more: str) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join([str(installed / "site"), *dict.fromkeys(packages)])
        known = {"PATH": os.environ["PATH"], "HOME": str(installed / "home"), "PYTHONPATH": paths, "TMPDIR": str(work)}
        known |= {"FIBERLOOM_PATIENCE": os.environ["FIBERLOOM_PATIENCE"]}
        done = subprocess.run(
            [*who, sys.executable, "-m", "fiberloom", *words], cwd=folder, env=known | more,
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return call


def test_the_installed_files_are_run(run, installed, work):
    """And not those of the checkout; the other user can write neither beside them nor at home."""
    probe = (
        "import sw.cli.app as app, os; print(app.__file__); print(os.access({!r}, os.W_OK), os.access({!r}, os.W_OK))"
    )
    code = probe.format(str(installed / "site/fiberloom/sw"), str(installed / "home"))
    (work / "probe.py").write_text(f"from fiberloom.rooms import find_rooms\nfind_rooms()\n{code}\n")
    paths = {"PYTHONPATH": str(installed / "site"), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [*(another_user() or []), sys.executable, "probe.py"],
        cwd=work,
        env=paths,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{installed}/site/fiberloom/sw/cli/app.py\nFalse False\n"
    assert run("--version").returncode == 0


def test_programs_import_the_installed_files(installed, work):
    """Functions run, types are told, and nothing is written."""
    assert (installed / "site/fiberloom/py.typed").is_file()
    code = (
        "import fiberloom, sw.cli.run\n"
        "result = fiberloom.run('m.mtx', config='tiny', engine='golden', order='jki')\n"
        "print(fiberloom.__version__, fiberloom.__file__, sw.cli.run.__file__, result.correct, result.C.nnz)\n"
    )
    (work / "probe.py").write_text(f"import fiberloom.rooms\nfiberloom.rooms.find_rooms()\n{code}")
    paths = os.pathsep.join([str(installed / "site"), *site.getsitepackages(), sysconfig.get_path("purelib")])
    done = subprocess.run(
        [*(another_user() or []), sys.executable, "probe.py"], cwd=work, capture_output=True, text=True, check=True,
        env={"PYTHONPATH": paths, "PATH": os.environ["PATH"], "HOME": str(installed / "home")} | UNCOMPILED,
    )  # fmt: skip
    version, *rest = done.stdout.split()
    site_files = f"{installed}/site/fiberloom"
    assert rest == [f"{site_files}/__init__.py", f"{site_files}/sw/cli/run.py", "True", "4"]
    assert (installed / "site" / f"fiberloom-{version}.dist-info").is_dir()
    assert sorted(path.name for path in work.iterdir()) == ["m.mtx", "probe.py"] and done.stderr == ""


def test_code_is_compiled_without_a_cache_and_that_is_said_once(run, installed, work):
    """Several functions are compiled for this; one line says that none of them is kept."""
    done = run("data", "describe", "m.mtx", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["product"]["macs"] == 5
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"fiberloom: note: {CODE}{installed}/site/fiberloom/sw, {installed}/home/.cache: ")
    assert line.endswith("every run compiles anew; NUMBA_CACHE_DIR names another place")


@pytest.mark.parametrize("place", ["a file", "nowhere", "no home"])
def test_odd_places_are_no_place(run, installed, place):
    odd = {
        "a file": {"XDG_CACHE_HOME": str(installed / "site/fiberloom/rooms.py"), "NUMBA_CACHE_DIR": "/dev/null"},
        "nowhere": {"HOME": "/nonexistent", "NUMBA_CACHE_DIR": "/proc/none", "FIBERLOOM_CACHE": "/dev/null/x"},
        "no home": {"HOME": "", "XDG_CACHE_HOME": ""},
    }[place]
    done = run("run", "m.mtx", *GOLDEN, "--out", "o", **odd, **UNCOMPILED)
    assert (done.returncode, done.stderr) == (0, "") and "verified" in done.stdout


def test_every_engine_and_command_starts(run, work):
    """Nothing is compiled, so nothing is to be said: all goes to --out alone."""
    for words in (
        ("run", "m.mtx", "--config", "tiny", "--engine", "model", "--order", "jki", "--out", "model"),
        ("schedule", "m.mtx", "--config", "tiny", "--order", "jki", "--out", "scheme"),
        ("generate", "--block", "stream_skid", "--out", "block"),
        ("data", "list", "pyamg:*"),
    ):
        done = run(*words, **UNCOMPILED)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert sorted(path.name for path in work.iterdir()) == ["block", "m.mtx", "model", "scheme"]


def test_a_sweep_goes_on_without_a_place_for_results(run, installed, work):
    words = ("sweep", "m.mtx", "--config", "tiny", "--engine", "golden", "--tiling", "uniform,swiftiles", "--jobs", "2")
    done = run(*words, "--out", "o", **UNCOMPILED)
    assert done.returncode == 0 and done.stdout.splitlines()[0] == "points      2: 2 run, 0 kept from before, 0 failed"
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"fiberloom: note: {installed}/home/.cache/fiberloom/results: cannot keep results (")
    assert sorted(path.name for path in work.iterdir()) == ["m.mtx", "o"]


def test_what_must_be_kept_is_refused_in_one_line(run, installed, work):
    done = run("data", "fetch", "snap:ca-GrQc", **UNCOMPILED)
    assert (done.returncode, done.stdout) == (2, "")
    place = f"{installed}/home/.cache/fiberloom/snap"
    assert done.stderr.startswith(f"fiberloom: snap:ca-GrQc: cannot keep the download in {place} (Permission denied): ")
    done = run("run", "m.mtx", *GOLDEN, folder=installed / "home", **UNCOMPILED)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1
    assert [path.name for path in work.iterdir()] == ["m.mtx"]


def test_the_wheel_holds_the_product_alone(installed: Path) -> None:
    """No benches, proofs or mutants; one package, so that other people's `gen` and `sw` are theirs."""
    assert {path.name for path in (installed / "site").iterdir()} - {"fiberloom"} == {
        path.name for path in (installed / "site").glob("fiberloom-*.dist-info")
    }
    assert {path.name for path in (installed / "site" / "fiberloom").iterdir() if path.is_dir()} == {
        "rtl",
        "gen",
        "sw",
        "configs",
    }
