"""`fiberloom sweep` as its users meet it: one table, results kept by content, interruptions and failures survived."""

import dataclasses
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import scipy.sparse as sp

from gen.design import Design
from sw.cli.app import main
from sw.cli.console import duration
from sw.cli.memory_formats import MemoryFormats
from sw.cli.points import ROOMS, Point, code_version, find_operands, tasks, variations
from sw.cli.results import Store
from sw.cli.worker import _command
from sw.operands import UserError
from sw.runtime.rows import COLUMNS
from sw.sources import SOURCES
from tests.sw.cli.clusters import local_cluster
from tests.sw.cli.terminal import shown_on

ROOT = Path(__file__).parents[3]
FAST = ("--config", "tiny", "--tiling", "swiftiles,prescient")
COMMON: dict = {
    "seed": 0, "budget": None, "most_tiles": 9, "transpose_a": False, "transpose_b": False, "as_stored": False,
}  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIBERLOOM_CACHE", str(tmp_path / "cache"))
    sp.save_npz("a.npz", sp.csr_array(np.diag(np.arange(1, 41))))
    return tmp_path


@pytest.fixture
def rows(here, capsys):
    """Runs a sweep that must succeed; gives the rows that it printed and what it said on the side."""

    def call(*words: str) -> tuple[list[dict], str]:
        assert main(["sweep", *words, "--json"]) == 0, capsys.readouterr().err
        out, err = capsys.readouterr()
        return json.loads(out), err

    return call


def child(here: Path, *words: str, **streams) -> subprocess.Popen:
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    return subprocess.Popen(
        [sys.executable, "-m", "sw", "sweep", *words], cwd=here, env=os.environ | {"PYTHONPATH": path, "TERM": "xterm"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **streams,
    )  # fmt: skip


def without_times(table: list[dict]) -> list[dict]:
    return [row | {"schedule_seconds": 0.0, "kept": False} for row in table]


def test_one_table_and_a_page(here, rows, capsys, monkeypatch):
    words = ("a.npz", "rmat:6:4:seed=1", *FAST, "--set", "buffer.bytes=8192,16384", "--jobs", "2")
    assert main(["sweep", *words, "--out", "o"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.splitlines()[0] == "points      8: 8 run, 0 kept from before, 0 failed"
    assert out.splitlines()[-1] == "written     o/sweep.parquet, o/sweep.html"
    assert sorted(path.name for path in Path("o").iterdir()) == ["sweep.html", "sweep.parquet"]
    table = pyarrow.parquet.read_table("o/sweep.parquet")
    assert table.column_names == list(COLUMNS)
    found = table.to_pylist()
    assert [(row["a"], row["settings"], row["tiling"]) for row in found] == [
        (a, f"buffer.bytes={size}", tiling)
        for a in ("a.npz", "rmat:6:4:seed=1")
        for size in (8192, 16384)
        for tiling in ("swiftiles", "prescient")
    ]
    assert all(row["correct"] and not row["failed"] and row["cycles"] > 0 for row in found)
    # Each row is the run of its point.
    command = ["run", "rmat:6:4:seed=1", "--config", "tiny", "--set", "buffer.bytes=16384", "--engine", "model"]
    assert main([*command, "--tiling", "prescient", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (found[-1]["cycles"], found[-1]["dram_bytes"]) == (record["cycles"], record["dram_bytes"]["total"])
    energy = {
        "total" if name == "energy_pJ" else name[10:]: found[-1][name] for name in found[-1] if "energy_pJ" in name
    }
    assert energy == record["energy_pJ"]
    assert found[-1]["nnz_c"] == record["nnz_c"] and found[-1]["macs"] == record["macs"]
    page = Path("o/sweep.html").read_text()
    assert "<script" not in page and "http" not in page and page.count("<polyline") >= 3

    # What was run is not run again, under other names as well, and a wider sweep runs what is new.
    shutil.copy("a.npz", "other.npz")
    monkeypatch.setattr("sw.cli.executors.ProcessPoolExecutor", None)
    again, err = rows("other.npz", "rmat:6:4:seed=1", *FAST, "--set", "buffer.bytes=16384,8192")
    assert err == "" and all(row["kept"] for row in again) and again[0]["a"] == "other.npz"
    assert {row["key"] for row in again} == {row["key"] for row in found}


def test_formats_are_axes(here, rows, capsys):
    """Every combination, each as `run` has it; bits of a run where something is kept in rlc. What cannot be says why."""
    words = ("rmat:6:4:seed=1", "--config", "tiny", "--tiling", "hyte,harp", "--jobs", "1", "--value", "int16")
    formats = ("--mcf-a", "csr,rlc", "--mcf-b", "zvc", "--run-bits", "2", "--run-bits", "7")
    found, err = rows(*words, *formats)
    assert [(row["settings"], row["mcf_a"], row["mcf_b"], row["mcf_c"], row["run_bits"]) for row in found[::2]] == [
        ("mcf-a=csr", "csr", "zvc", None, None),
        ("mcf-a=rlc run-bits=2", "rlc", "zvc", None, 2),
        ("mcf-a=rlc run-bits=7", "rlc", "zvc", None, 7),
    ]
    assert [row["failed"] for row in found] == [False, False, False, True, False, True]
    reason = "--mcf-a rlc: harp makes tiles of lists of rows, for which the host writes A anew: must be csr or coo"
    assert {row["error"] for row in found if row["failed"]} == {reason}
    assert err == (
        f"fiberloom: note: 2 points fail in one way, the first of them tiny mcf-a=rlc run-bits=2 harp rmat:6:4:seed=1: {reason}\n"
    )
    assert len({row["key"] for row in found}) == len(found)
    for row, options in ((found[0], ("--mcf-a", "csr")), (found[4], ("--mcf-a", "rlc", "--run-bits", "7"))):
        command = ["run", *words[:3], "--tiling", "hyte", "--value", "int16", "--engine", "model", "--json"]
        assert main([*command, "--mcf-b", "zvc", *options]) == 0
        record = json.loads(capsys.readouterr().out)
        kept = record["memory_formats"]
        assert row["cycles"] == record["cycles"] and row["dram_bytes"] == record["dram_bytes"]["total"]
        assert row["conversion_cycles"] == sum(of["cycles"] for of in kept.values()) > 0
        assert row["energy_pJ_conversion"] == record["energy_pJ"]["conversion"] > 0
        assert row["conversion_bytes"] == sum(sum(of["dram_bytes"].values()) for of in kept.values()) > 0
    again, _ = rows(*words, *formats)
    assert [row["kept"] for row in again] == [not row["failed"] for row in found]


def test_formats_that_contradict_a_design_are_rows_that_say_so(here, rows):
    words = ("a.npz", "--config", "tiny", "--tiling", "hyte", "--set", "memory.records=plain,packed", "--jobs", "1")
    found, _ = rows(*words, "--mcf-c", "coo,zvc")
    assert [row["error"] for row in found] == [
        "--mcf-c coo: --set memory.records=plain says otherwise: must be memory.records=packed",
        "--mcf-c zvc: --set memory.records=plain says otherwise: must be memory.records=packed",
        None,
        None,
    ]


def test_the_command_of_a_point_repeats_it(here):
    """Design and formats with every field that was given, those that vary and those that do not."""
    formats = MemoryFormats.combinations(["rlc"], None, ["coo"], ["4"])
    (varied,) = variations(["tiny"], ["pe.count=4"], "int8", formats)
    (task,) = tasks([varied], ["hyte+tuning"], ["golden"], [("a.npz", None)], **COMMON)
    assert task.point is not None and varied.settings == ""
    assert _command(task.point) == (
        f"fiberloom run {Path('a.npz').resolve()} --config tiny --set pe.count=4 --value int8 --mcf-a rlc --mcf-c coo "
        "--run-bits 4 --engine golden --tiling hyte --seed 0 --tuning"
    )


def test_failing_points_are_told_and_stop_nothing(here, rows):
    Path("bad.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n")
    sp.save_npz("half.npz", sp.csr_array([[0.5]]))
    words = ("a.npz", "bad.mtx", "none.npz", "half.npz", "a.npz,half.npz")
    found, err = rows(*words, "--config", "tiny", "--tiling", "swiftiles", "--set", "pe.count=2,500", "--jobs", "2")
    assert [row["failed"] for row in found] == [False] + 9 * [True]
    complaints = {(row["a"], row["b"], row["settings"]): row["error"] for row in found if row["failed"]}
    assert complaints["a.npz", "a.npz", "pe.count=500"].startswith("--set pe.count=500: must be ")
    assert complaints["bad.mtx", "bad.mtx", "pe.count=2"].endswith(
        "bad.mtx:3: row 3 is out of range: allowed are 1 to 2"
    )
    assert complaints["none.npz", "none.npz", "pe.count=2"] == "none.npz: no such file"
    assert "is not an integer: int32 designs need integers" in complaints["half.npz", "half.npz", "pe.count=2"]
    assert "columns of A must equal rows of B" in complaints["a.npz", "half.npz", "pe.count=2"]
    # Nine failures in five ways, each said once.
    range_line, file_line, *others = [line.removeprefix("fiberloom: note: ") for line in err.splitlines()]
    assert range_line.startswith(
        "4 points fail in one way, the first of them tiny pe.count=500 swiftiles a.npz: --set "
    )
    assert file_line == "2 points fail in one way, the first of them tiny pe.count=2 swiftiles: none.npz: no such file"
    assert len(others) == 3 and all(line.startswith("tiny pe.count=2 swiftiles ") for line in others)
    # Failures are not kept: once the cause is gone the point runs.
    Path("bad.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n2 1 1\n")
    found, _ = rows("bad.mtx", "--config", "tiny", "--tiling", "swiftiles", "--jobs", "1")
    assert not found[0]["failed"] and not found[0]["kept"]


def test_nothing_that_can_be_run_is_two(here, capsys):
    assert main(["sweep", "none.npz", *FAST, "--quiet", "--out", "o"]) == 2
    line = "2 points fail in one way, the first of them tiny swiftiles: none.npz: no such file"
    assert capsys.readouterr().err == f"fiberloom: no point could be run: {line}\n"
    assert not Path("o").exists()


def test_one_way_to_fail_is_one_line(here, capsys, monkeypatch):
    """Names and numbers differ, the reason does not."""
    for number in range(7):
        sp.save_npz(f"half{number}.npz", sp.csr_array(np.diag([1.0, 2.0, 0.5 + number])))
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    words = [f"half{number}.npz" for number in range(7)]
    more = ("--tiling", "swiftiles,prescient,uniform", "--set", "pe.count=2,4,8", "--jobs", "1", "--out", "new/o")
    assert main(["sweep", *words, "--config", "tiny", *more]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.startswith(
        "fiberloom: no point could be run: 63 points fail in one way, the first of them tiny pe.count=2 "
    )
    assert "half0.npz: value 0.5 at row 3, column 3 is not an integer" in err
    assert not Path("new").exists()


def test_results_that_cannot_be_kept_stop_nothing(here, rows, monkeypatch):
    monkeypatch.setenv("FIBERLOOM_CACHE", str(here / "a.npz"))
    found, err = rows("a.npz", *FAST, "--jobs", "1")
    assert [row["failed"] for row in found] == [False, False] and err.count("\n") == 1
    assert "a.npz/results: cannot keep results (Not a directory): the next sweep runs them again" in err


def test_an_interrupt_keeps_what_is_finished(here, rows):
    many = [f"rmat:9:8:seed={n}" for n in range(40)]
    process = child(here, *many, *FAST, "--jobs", "2", "--out", "o", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 120
        while len(list((here / "cache").rglob("*.json"))) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, out) == (130, b"")
    finished = {path.stem for path in (here / "cache/results").rglob("*.json")}
    partial = pyarrow.parquet.read_table("o/sweep.parquet").to_pylist()
    assert 3 <= len(finished) < 80 and {row["key"] for row in partial} == finished
    kept = f"{len(finished)} of 80 points are kept in {here}/cache/results; the same command goes on from there"
    assert err.decode() == f"fiberloom: interrupted: {kept}\n"
    assert not list((here / "cache").rglob(".partial-*"))
    # The same command goes on where it stopped.
    found, _ = rows(*many[:10], *FAST, "--jobs", "2", "--out", "o")
    assert {row["key"] for row in found if row["kept"]} == finished & {row["key"] for row in found}


def test_a_cluster_does_the_same_and_survives_a_killed_worker(here, rows):
    many = [f"rmat:8:6:seed={n}" for n in range(12)]
    with local_cluster(here) as started:
        workers = started.start_workers(2)
        process = child(here, *many, *FAST, "--cluster", started.address, "--json", stdout=subprocess.PIPE)
        try:
            deadline = time.monotonic() + 120
            while not list((here / "cache").rglob("*.json")) and time.monotonic() < deadline:
                time.sleep(0.01)
            workers[0].kill()
            out, _ = process.communicate(timeout=120)
        finally:
            process.kill()
            process.communicate()
        assert process.returncode == 0
    remote = json.loads(out)
    assert len(remote) == 24 and not any(row["failed"] for row in remote)
    local, _ = rows(*many[:3], *FAST, "--fresh", "--jobs", "2")
    assert without_times(local) == without_times(remote[:6])
    kept, _ = rows(*many, *FAST)
    assert all(row["kept"] for row in kept)


def test_progress_only_on_a_terminal(here):
    master, slave = pty.openpty()
    process = child(here, "a.npz", *FAST, "--jobs", "1", "--json", stdout=subprocess.PIPE, stderr=slave)
    os.close(slave)
    shown = shown_on(master)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and len(json.loads(out)) == 2
    assert b"Sweeping" in shown and b" of 2" in shown and b" left" in shown


def test_times_as_a_person_says_them():
    assert [duration(seconds) for seconds in (3.4, 99, 600, 7200)] == ["3 s", "99 s", "10 min", "2.0 h"]


# What a result is kept under ------------------------------------------------------------------------------------------


def points(here, *operands: str, config: str = "tiny", settings=(), tilings=("hyte",), **more):
    common = COMMON | more
    designs = variations([config], list(settings), None)
    return [task.point for task in tasks(designs, list(tilings), ["model"], find_operands(operands), **common)]


def test_keys_follow_content(here):
    (one,) = points(here, "a.npz")
    shutil.copy("a.npz", "b.npz")
    shutil.copy(ROOT / "configs/tiny.toml", "tiny.toml")
    assert points(here, "b.npz")[0].key == one.key == points(here, "a.npz", config="tiny.toml")[0].key
    different = [
        *points(here, "pyamg:airfoil", "mycielskian:4", "rmat:4:4", "rmat:4:4:seed=1", "a.npz,b.npz"),
        *points(here, "a.npz", settings=["pe.count=2,4"]),
        *points(here, "a.npz", tilings=("auto", "hyte+tuning")),
        *points(here, "a.npz", seed=1),
        *points(here, "a.npz", budget=3),
        *points(here, "a.npz", transpose_b=True),
        *points(here, "a.npz", transpose_a=True),
        *points(here, "a.npz,dense:K:4"),
        replace(one, formats=("zvc", None, None, None)),
        replace(one, version="another"),
        replace(one, engine="golden"),
    ]
    keys = [point.key for point in different]
    # Two elements are the default of `tiny`.
    assert len(set(keys)) == len(keys) and keys.count(one.key) == 1
    sp.save_npz("a.npz", sp.csr_array(np.eye(41)))
    assert points(here, "a.npz")[0].key != one.key


# Fields that say what things are called; of B it also counts whether there is one.
NAMES = {"config", "settings", "words", "a", "b"}
LEAF_OF_DESIGN_WITHOUT_EFFECT = ("description",)


def other(value):
    """Another value of the same kind."""
    kinds = {bool: lambda v: not v, int: lambda v: v + 1, float: lambda v: v + 1, str: lambda v: v + "x"}
    kinds |= {tuple: lambda v: (*v, "x"), list: lambda v: [*v, "x"], type(None): lambda v: 7}
    return kinds[type(value)](value)


def leaves(document, path=()):
    """Path and value of everything in nested objects that is no object."""
    for name, value in document.items():
        yield from leaves(value, (*path, name)) if isinstance(value, dict) else [((*path, name), value)]


def changed(document, path):
    """A copy in which the leaf at ``path`` is another."""
    name, *rest = path
    return document | {name: changed(document[name], rest) if rest else other(document[name])}


def test_every_field_of_a_point_counts_but_names(here):
    """The fields are those of the class, so that a new one is in the key or among the names."""
    (one,) = points(here, "a.npz,a.npz")
    fields = [field.name for field in dataclasses.fields(Point)]
    assert set(fields) > NAMES
    keys = {"": one.key}
    for name in fields:
        value = getattr(one, name)
        if isinstance(value, dict):
            continue  # the design, below
        # A file of another path with the same text is the same, of other text another.
        changed_to = (("mine.py", "POLICIES = {}"),) if name == "plugins" else other(value)
        varied = [replace(one, **{name: changed_to})]
        if name == "budget":  # none, and two numbers, are three
            varied.append(replace(one, budget=8))
        for number, point in enumerate(varied):
            if name in NAMES:
                assert point.key == one.key, name
            else:
                keys[f"{name} {number}"] = point.key
    elsewhere = [replace(one, plugins=((path, "text"),)).key for path in ("a.py", "b.py")]
    assert elsewhere[0] == elsewhere[1]
    keys["square"] = replace(one, b=None).key
    keys["swapped"] = replace(one, digests=("p", "q")).key
    keys["the other way"] = replace(one, digests=("q", "p")).key
    assert [name for name in fields if isinstance(getattr(one, name), dict)] == ["design"]
    design = list(leaves(one.design))
    assert len(design) > 20 and {path[0] for path, _ in design} == set(Design.model_fields)
    for path, _ in design:
        key = replace(one, design=changed(one.design, path)).key
        if path == LEAF_OF_DESIGN_WITHOUT_EFFECT:
            assert key == one.key
        else:
            keys[".".join(path)] = key
    again: dict[str, list[str]] = {}
    for name, key in keys.items():
        again.setdefault(key, []).append(name)
    assert [names for names in again.values() if len(names) > 1] == []


def test_operands_are_loaded_anew_where_any_of_their_fields_differs(here):
    """A worker keeps a pair of operands from point to point."""
    (one,) = points(here, "a.npz,a.npz")
    for name in ("digests", "transpose_a", "transpose_b", "as_stored"):
        assert replace(one, **{name: other(getattr(one, name))}).pair != one.pair, name
    assert replace(one, b=None).pair != one.pair
    kept = {"design", "formats", "tiling", "engine", "seed", "budget", "most_tiles", "version", "plugins"} | NAMES
    for name in kept - {"design", "plugins"}:
        assert replace(one, **{name: other(getattr(one, name))}).pair == one.pair, name
    assert kept | {"digests", "transpose_a", "transpose_b", "as_stored"} == {f.name for f in dataclasses.fields(Point)}


def test_every_source_that_makes_a_result_is_in_the_version():
    """Of the rooms' files only what tells or shows results, and the list of data sets, may be left out."""
    shown = {".c", ".css", ".j2", ".tsv", ".vlt", ".md"}
    for room in {room for rooms in ROOMS.values() for room in rooms}:
        files = [path for path in (ROOT / room).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        left_out = {path.suffix for path in files if not any(path.match(pattern) for pattern in SOURCES)}
        assert left_out <= shown, room


def test_the_version_is_that_of_the_source(tmp_path, monkeypatch):
    known = code_version("model")
    assert known == code_version("golden") != code_version("rtl") and known.startswith("0.")
    monkeypatch.setattr("sw.cli.points.ROOMS", {"model": ("gen",)})
    code_version.cache_clear()
    assert code_version("model") != known
    code_version.cache_clear()


def test_operands_by_pattern(here):
    shutil.copy("a.npz", "b.npz")
    Path("c,d.npz").write_bytes(Path("a.npz").read_bytes())
    assert find_operands(["*.npz", "a.npz"]) == [("a.npz", None), ("b.npz", None), ("c,d.npz", None)]
    assert find_operands(["a.npz,b.npz", "c,d.npz"]) == [("a.npz", "b.npz"), ("c,d.npz", None)]
    assert ("pyamg:airfoil", None) in find_operands(["pyamg:*"])
    with pytest.raises(UserError, match=r"^suitesparse:\*: matches no operand$"):
        find_operands(["suitesparse:*"])


def test_designs_by_pattern(here):
    assert [found.config for found in variations(["*"], [], None)] == [
        "edge", "extensor", "flex", "flex_edge", "flex_tiny", "sage", "server", "tiny",
    ]  # fmt: skip
    assert [found.config for found in variations(["t*,edge", "tiny"], [], None)] == ["tiny", "edge"]
    found = variations(["tiny"], ["pe.count=2,4", "buffer.bytes=8192", "pe.count=8"], "fp32")
    assert [varied.settings for varied in found] == ["pe.count=2", "pe.count=4", "pe.count=8"]
    assert [varied.design.pe.count for varied in found] == [2, 4, 8]
    assert {varied.design.pe.value for varied in found} == {"fp32"}


def test_kept_results(here):
    store = Store(here / "kept")
    assert store.get("abc") is None
    store.put("abc", {"cycles": 3})
    store.put("abc", {"cycles": 4})
    (path,) = (path for path in (here / "kept").rglob("*") if path.is_file())
    assert path == here / "kept/ab/abc.json" and store.get("abc") == {"cycles": 4}
    # A damaged one is as good as none.
    whole = path.read_text()
    for text in ("", '{"half": ', "[]", "\xff", "{}", whole.replace("4", "5"), whole[:-1]):
        path.write_text(text, encoding="latin-1")
        assert store.get("abc") is None


def test_a_damaged_kept_result_is_run_again(here, rows):
    words = ("a.npz", "--config", "tiny", "--tiling", "hyte")
    once, _ = rows(*words)
    (kept,) = (path for path in (here / "cache").rglob("*.json") if path.parent.parent.name == "results")
    for text in ("{}", '{"design": 3}'):
        kept.write_text(text)
        again, _ = rows(*words)
        assert [row["kept"] for row in again] == [False] and again[0]["cycles"] == once[0]["cycles"]
    assert [row["kept"] for row in rows(*words)[0]] == [True]


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        ((), "Missing argument 'A[,B]...'.", 2),
        (("*.mtx",), "*.mtx: matches no operand", 2),
        (("a.npz", "--config", "none"), "--config none: no such design: must be one of edge, ", 2),
        (("a.npz", "--config", "x*"), "--config x*: matches no design: must be one of edge, ", 2),
        (("a.npz", "--set", "pe.count"), "--set pe.count: must be SECTION.FIELD=VALUE,...", 2),
        (
            ("a.npz", "--config", "tiny", "--set", "pe.count=3,x"),
            "--set pe.count=x: must be an integer between 1 and ",
            2,
        ),
        (("a.npz", "--config", "tiny", "--set", "pe.value=int32,7"), "--set pe.value=7: must be one of 'int8', ", 2),
        (("a.npz", "--config", "tiny", "--set", "clock.mhz=100,fast"), "--set clock.mhz=fast: must be a number ", 2),
        (
            ("a.npz", "--value", "int32", "--set", "pe.value=int32,fp32"),
            "--value int32: --set pe.value=fp32 says otherwise",
            2,
        ),
        (("a.npz", "--out", ""), "--out '': must be the name of a folder (. is the current one)", 2),
        (("a.npz", "--set", "pe.cont=2,4"), "--set pe.cont=2: no such field: must be one of dataflow, ", 2),
        (("a.npz,", "--config", "tiny"), "'a.npz,': the name of an operand is empty: must be A or A,B", 2),
        ((",a.npz", "--config", "tiny"), "',a.npz': the name of an operand is empty: must be A or A,B", 2),
        (("",), "'': the name of an operand is empty: must be A or A,B", 2),
        (("a.npz", "--tiling", "optimal", "--budget", "0"), "--budget 0: must be at least 1", 2),
        (("a.npz", "--tiling", "magic"), "--tiling magic: must be one of uniform, ", 2),
        (("a.npz", "--engine", "model,fpga"), "--engine fpga: must be one of rtl, model, golden", 2),
        (("a.npz", "--mcf-a", "csr,bsr"), "--mcf-a bsr: must be one of dense, coo, csr, rlc, zvc, csc", 2),
        (("a.npz", "--mcf-b", "coo,"), "--mcf-b : must be one of dense, coo, csr, rlc, zvc, csc", 2),
        (("a.npz", "--mcf-b", "rlc", "--run-bits", "3,x"), "--run-bits x: must be whole numbers from 1 to 32", 2),
        (("a.npz", "--mcf-b", "rlc", "--run-bits", "3,33"), "--run-bits 33: Bits of a run must be from 1 to 32", 2),
        (("a.npz", "--mcf-b", "coo,zvc", "--run-bits", "3"), "--run-bits 3: is of rlc: must be left out where ", 2),
        (("a.npz", "--run-bits", "3"), "--run-bits 3: is of rlc: must be left out where ", 2),
        (
            ("a.npz", "--mcf-a", "coo", "--set", "memory.records=plain"),
            "--mcf-a coo: --set memory.records=plain says otherwise: must be memory.records=packed",
            2,
        ),
        (("a.npz", "--jobs", "0"), "--jobs 0: must be from 1 to 1024", 2),
        (("a.npz", "--jobs", "2", "--cluster", "x"), "--jobs 2: must be left out with --cluster", 2),
        (("a.npz", "--seed", "-1"), "--seed -1: must be at least 0", 2),
        (("a.npz", "--out", "a.npz"), "--out a.npz: cannot be written (File exists)", 2),
        (("a.npz", "--cluster", "tcp://127.0.0.1:9"), "--cluster tcp://127.0.0.1:9: no Dask scheduler answers (", 3),
        (("a.npz", "--cluster", "nonsense://"), "--cluster nonsense://: no Dask scheduler answers (", 3),
    ],
)
def test_mistakes_are_one_line(here, capsys, monkeypatch, words, message, code):
    monkeypatch.setattr("sw.cli.cluster.CONNECT_SECONDS", 1)
    assert main(["sweep", *words, "--quiet"]) == code
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith(f"fiberloom: {message}")


def test_without_pyarrow_is_three(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["sweep", "a.npz"]) == 3
    assert capsys.readouterr().err == "fiberloom: sweep needs pyarrow for its table: pip install 'fiberloom[sweep]'\n"
