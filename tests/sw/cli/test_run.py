"""``run`` with stand-in engines: a wrong result, a hardware error, a missing package."""

import json
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import scipy.sparse as sp

from sw.cli import output
from sw.cli import run as run_module
from sw.cli.app import main
from sw.engine_result import EngineResult
from sw.golden.spgemm import multiply
from sw.operands import UserError
from sw.scheme.terms import LISTS


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Calls ``run`` with an engine function in place of the RTL."""
    monkeypatch.chdir(tmp_path)
    sp.save_npz("m.npz", sp.csr_array(np.array([[1.0, 2, 0], [0, 0, 3], [4, 0, 0]])))

    def call(engine, *more: str) -> int:
        module = ModuleType("sw.runtime.simulation.engine")
        module.run_rtl = engine  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "sw.runtime.simulation.engine", module)
        arguments = ["run", "m.npz", "--config", "tiny", "--value", "fp32", "--order", "jki", "--out", "o"]
        return main([*arguments, *more])

    return call


def honest(design, planned, progress) -> EngineResult:
    progress(0.5, "half way")
    product = multiply(planned.a, planned.b, design.pe.merge_radix, design.pe.value, planned.scheme)
    traffic = {"A": {"read": 1600}, "B": {"read": 800, "metadata_read": 16}, "C": {"write": 400}}
    return EngineResult(
        c=product.structural,
        cycles=1000,
        counters={"macs": 100, "merged": 120, "pe_busy": 100, "stall_lookup": 30},
        dram_bytes=traffic,
        tiles={"total": 3, "skipped_empty": 1, "overbooked": 0},
        seconds={"build": 1.5, "simulate": 2.5},
    )


def test_a_right_result(run, capsys):
    assert run(honest) == 0
    record = json.loads(Path("o/result.json").read_text())
    assert record["correct"] and record["cycles"] == 1000
    assert [check["name"] for check in record["checks"]] == [
        "engine against golden",
        "golden against SciPy",
        "canonical form",
    ]
    assert record["dram_bytes"]["total"] == 2816
    assert record["dram_bytes"]["A"] == {"read": 1600, "write": 0, "metadata_read": 0, "metadata_write": 0}
    assert record["seconds"]["build"] == 1.5 and record["seconds"]["simulate"] == 2.5
    energy = record["energy_pJ"]
    assert energy["dram"] == 2816 * 8 * 20 and energy["total"] == sum(
        part for name, part in energy.items() if name != "total"
    )
    out = capsys.readouterr().out
    assert "verified (rtl, " in out
    assert f"\nenergy      {energy['total'] / 1e6:,.4g} uJ: dram {energy['dram'] / energy['total']:.1%}, sram " in out


def test_tuning_is_asked_for_by_option_or_scheme(run, capsys):
    """The option wins over the file, and the record says what was."""

    def untuned(design, planned, progress) -> EngineResult:
        return replace(honest(design, planned, progress), counters={"tuning_adjustments": 7 * planned.scheme.tuning})

    for more, expected in (([], False), (["--tuning"], True), (["--no-tuning"], False)):
        assert run(untuned, *more) == 0
        record = json.loads(Path("o/result.json").read_text())
        assert record["scheme"]["tuning"] is expected and record["tuning"]["adjustments"] == 7 * expected
        assert ("7 changes of the tile shape" in capsys.readouterr().out) is expected
    assert run(untuned, "--tuning") == 0
    again = ["run", "m.npz", "--config", "tiny", "--value", "fp32", "--scheme", "o/scheme.json", "--out", "p"]
    for more, expected in (([], True), (["--no-tuning"], False)):
        assert main([*again, *more]) == 0
        assert json.loads(Path("p/result.json").read_text())["scheme"]["tuning"] is expected
    capsys.readouterr()
    assert run(untuned, "--tuning", "--set", "tuning.dynamic=false") == 2
    assert "--tuning: must be false: the design has tuning.dynamic = false" in capsys.readouterr().err


def test_a_wrong_value_is_exit_one(run, capsys):
    def wrong(*arguments) -> EngineResult:
        result = honest(*arguments)
        bits = result.c.bits.copy()
        bits[1] ^= 1
        return replace(result, c=replace(result.c, bits=bits))

    assert run(wrong) == 1
    record = json.loads(Path("o/result.json").read_text())
    assert not record["correct"]
    assert record["checks"][0]["detail"].startswith("row 0, element 1 of the row: expected column 1 value 2.0")
    out = capsys.readouterr().out
    assert "FAIL        engine against golden" in out and "NOT CORRECT" in out
    assert "Not correct" in Path("o/report.html").read_text()
    # What the engine computed is what is kept.
    assert sp.load_npz("o/C.npz").data[1] != 2.0


def test_a_missing_element_is_exit_one(run):
    def short(*arguments) -> EngineResult:
        result = honest(*arguments)
        pointers = result.c.pointers.copy()
        pointers[-1] -= 1
        c = replace(result.c, pointers=pointers, coordinates=result.c.coordinates[:-1], bits=result.c.bits[:-1])
        return replace(result, c=c)

    assert run(short) == 1


def test_a_hardware_error_is_exit_one_and_said(run, capsys):
    def broken(*arguments) -> EngineResult:
        return replace(honest(*arguments), error="c_elements_overflow: 4096 bytes needed")

    assert run(broken) == 1
    assert "hardware error: c_elements_overflow: 4096 bytes needed" in capsys.readouterr().out
    assert json.loads(Path("o/result.json").read_text())["error"] == "c_elements_overflow: 4096 bytes needed"


def test_wrong_with_json_is_still_one_document(run, capsys):
    def broken(*arguments) -> EngineResult:
        return replace(honest(*arguments), error="axi_read: address 0x10")

    assert run(broken, "--json") == 1
    assert json.loads(capsys.readouterr().out)["correct"] is False


def test_a_missing_package_is_exit_three(run, capsys):
    def homeless(*arguments) -> EngineResult:
        import no_such_simulator  # noqa: F401

        raise AssertionError

    assert run(homeless) == 3
    assert capsys.readouterr().err == "fiberloom: --engine rtl needs no_such_simulator: pip install no_such_simulator\n"


def test_a_defect_is_neither_of_the_promised_codes(run, capsys):
    def defect(*arguments) -> EngineResult:
        raise ZeroDivisionError("a bug")

    assert run(defect) == 70
    assert "Traceback" in capsys.readouterr().err


def test_interrupted(run, capsys):
    def interrupted(*arguments) -> EngineResult:
        raise KeyboardInterrupt

    assert run(interrupted, "--quiet") == 130
    line = "fiberloom: interrupted: nothing is kept; the same command starts anew\n"
    assert capsys.readouterr() == ("", line) and not Path("o").exists()


def test_files_are_written_together_or_not_at_all(tmp_path):
    def fails(path) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "one").write_text("old")
    with pytest.raises(UserError, match=r"cannot be written \(No space left on device\)$"):
        output.write_files(tmp_path, {"one": lambda path: path.write_text("new"), "two": fails})
    assert (tmp_path / "one").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


SMALL = ("--config", "edge", "--set", "buffer.bytes=16384", "--set", "buffer.fifo_bytes=1024")
BAND = ("banded:900:4", *SMALL)


@pytest.mark.parametrize("source", ["--tiling", "--scheme"])
@pytest.mark.parametrize(
    ("forced", "sides", "kept"),
    [
        ({}, None, True),
        ({"order": "kij"}, None, True),
        ({"T_i": 50}, (50, 900, 900), True),
        ({"T_j": 300}, (None, 300, 900), False),
        ({"T_k": 90, "order": "kij"}, (None, 900, 90), False),
    ],
)
def test_lists_and_what_is_given_by_hand(source, forced, sides, kept, tmp_path, capsys):
    """They go with any order and height; other sides by hand drop them, and the buffer is shared for what is then run."""
    assert main(["schedule", *BAND, "--out", str(tmp_path), "--quiet"]) == 0
    chosen = json.loads((tmp_path / "scheme.json").read_text())
    assert chosen["load"] == "list"
    given = ["auto"] if source == "--tiling" else [str(tmp_path / "scheme.json")]
    words = [word for name, value in forced.items() for word in (f"--{name}", str(value))]
    assert main(["schedule", *BAND, source, *given, *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["policy"] == ("forced" if forced else "auto")
    assert found["order"] == forced.get("order", chosen["order"])
    assert (found["load"] == "list") is kept
    if kept:
        names = ("T_j", "T_k", "buffer_bytes", "mode", "strips")
        assert [found[name] for name in names] == [chosen[name] for name in names]
        assert found["T_i"] == forced.get("T_i", chosen["T_i"])
    else:
        assert (found["T_i"], found["T_j"], found["T_k"]) == (sides[0] or chosen["T_i"], *sides[1:])
        assert (found["buffer_bytes"]["C"] > 0) is (found["T_k"] < 900)  # partial rows of C have room
    assert (
        main(["run", *BAND, source, *given, *words, "--engine", "model", "--out", str(tmp_path / "o"), "--quiet"]) == 0
    )


def test_sides_by_hand_instead_of_lists_leave_b_in_memory_where_it_does_not_fit(tmp_path, capsys):
    """Metadata of all rows of B ask for more than the partition; nothing is cut along j, so that B can stream."""
    band = ("banded:3000:4", *SMALL)
    assert main(["schedule", *band, "--out", str(tmp_path), "--quiet"]) == 0
    assert json.loads((tmp_path / "scheme.json").read_text())["load"] in LISTS
    assert (
        main(["schedule", *band, "--scheme", str(tmp_path / "scheme.json"), "--T_i", "70", "--T_k", "3000", "--json"])
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert (found["T_i"], found["T_k"], found["mode"]["B"]) == (70, 3000, "streaming")


@pytest.mark.parametrize(
    "change",
    [
        {"alternatives": [{"predicted": 5}]},
        {"alternatives": [{"predicted": None}]},
        {"alternatives": [{"cycles": "abc"}]},
        {"predicted": {"cycles": 10**400, "dram_bytes": 1}},
    ],
)
def test_what_a_report_could_not_show_is_refused_before_the_run(change, tmp_path, capsys):
    assert main(["schedule", *BAND, "--T_k", "100", "--out", str(tmp_path), "--quiet"]) == 0
    file = tmp_path / "scheme.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    folder = tmp_path / "o"
    assert main(["run", *BAND, "--scheme", str(file), "--engine", "golden", "--out", str(folder), "--quiet"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith(f"fiberloom: {file}: scheme: {next(iter(change))}")
    assert not list(folder.glob("*"))


@pytest.mark.parametrize("tiling", ["drt", "harp"])
def test_tiles_of_their_own_shapes_run_in_the_model_and_not_in_the_hardware(tiling, tmp_path, capsys):
    common = ["--config", "tiny", "--quiet"]
    assert main(["run", "mycielskian:6", "--tiling", tiling, "--out", str(tmp_path), *common]) == 2
    said = capsys.readouterr().err
    assert f"the tiles of {tiling} differ in shape, which the hardware cannot run" in said
    assert said.count("\n") == 1
    model = ["--engine", "model", *common]
    assert main(["run", "mycielskian:6", "--tiling", tiling, "--out", str(tmp_path), *model]) == 0
    assert json.loads((tmp_path / "scheme.json").read_text())["tiles"]
    file = str(tmp_path / "scheme.json")
    assert main(["run", "mycielskian:6", "--scheme", file, "--out", str(tmp_path / "again"), *model]) == 0
    first, second = (json.loads((d / "result.json").read_text()) for d in (tmp_path, tmp_path / "again"))
    assert first["cycles"] == second["cycles"]


def test_the_product_may_be_left_out(tmp_path, monkeypatch, capsys):
    """And that of an earlier run does not stay beside the new record."""
    monkeypatch.chdir(tmp_path)
    line = ["run", "banded:20:1", "--config", "tiny", "--engine", "golden", "--order", "jki", "--out", "o"]
    files = ["C.npz", "report.html", "result.json", "scheme.json"]
    for more, present in (([], files), (["--no-result"], files[1:]), ([], files)):
        assert main([*line, *more]) == 0
        assert sorted(path.name for path in Path("o").iterdir()) == present
    monkeypatch.setattr(run_module, "LARGE", 100)
    capsys.readouterr()
    assert main(line) == 0
    told = capsys.readouterr().err
    assert told == "fiberloom: note: writing about 0.0 GB to o/C.npz; --no-result leaves it out\n"
    assert main([*line, "--no-result"]) == 0 and capsys.readouterr().err == ""


def test_time_left_follows_the_share_that_is_done(monkeypatch):
    """On a terminal of the test's own; a phase without a share shows none."""
    from rich.progress import Progress

    from sw.cli.console import Console

    shown = []
    monkeypatch.setattr(Console, "lively", True)
    real = Progress.__init__

    def with_clock(self, *columns, **options):
        shown.append(columns[-1])
        real(self, *columns, **options, get_time=lambda: clock[0])
        shown.append(self)

    monkeypatch.setattr(Progress, "__init__", with_clock)
    clock = [0.0]
    with Console().phase("simulate", "Running") as report:
        column, progress = shown
        clock[0] = 30.0
        report(None, "compiling")
        assert column.render(progress.tasks[0]).plain == ""
        report(0.25, "cycles")
        assert column.render(progress.tasks[0]).plain == "90 s left"
        clock[0] = 3600.0
        report(0.5, "cycles")
        assert column.render(progress.tasks[0]).plain == "60 min left"


def test_a_long_phase_is_told_in_a_pipe(monkeypatch, capsys):
    """Once after a while, with what is known of it, and once at its end; a short one not at all, and none where it is quiet."""
    from sw.cli.console import Console, patience

    monkeypatch.setenv("FIBERLOOM_PATIENCE", "0.05")
    with Console().phase("simulate", "Running (rtl)") as report:
        report(0.5, "3 of 6 parts")
        time.sleep(0.3)
    first, last = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"fiberloom: note: Running \(rtl\) \(3 of 6 parts, about \d+ s left\)", first)
    assert re.fullmatch(r"fiberloom: note: Running \(rtl\) took \d+ s", last)
    with Console(quiet=True).phase("simulate", "Running"):
        time.sleep(0.2)
    monkeypatch.setenv("FIBERLOOM_PATIENCE", "1e9")
    with Console(as_json=True).phase("simulate", "Running"):
        time.sleep(0.1)
    assert capsys.readouterr() == ("", "")
    for text, seconds in (("x", 5.0), ("-3", 0.0), ("2.5", 2.5)):
        monkeypatch.setenv("FIBERLOOM_PATIENCE", text)
        assert patience() == seconds
