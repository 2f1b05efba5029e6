"""``generate`` and ``synth`` as their users meet them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gen import products as generator
from gen.yosys import YosysError, run_jobs
from sw.cli.app import main

ROOT = Path(__file__).parents[3]


def test_generate_tells_its_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["generate", "--config", "tiny", "--out", "a folder", "--seed", "3", "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert err == "" and (document["design"], document["top"]) == ("tiny", "accelerator")
    sizes = {Path(entry["path"]): entry["bytes"] for entry in document["files"]}
    on_disk = {path.relative_to(tmp_path): path for path in (tmp_path / "a folder").rglob("*") if path.is_file()}
    assert sizes == {name: path.stat().st_size for name, path in on_disk.items()}
    names = {str(path.relative_to("a folder")) for path in sizes}
    assert names >= {
        "files.f", "manifest.json", "fiberloom.core", "design.json", "lint/waivers.vlt", "constraints/accelerator.sdc",
        "constraints/accelerator.xdc", "sw/fiberloom_regs.h", "docs/registers.md", "rtl/accelerator.sv",
        "docs/blocks/index.md", "docs/blocks/accelerator.md", "tb/smoke_tb.sv", "tb/netlist.v", "tb/Makefile",
    }  # fmt: skip


def test_generate_writes_a_block_alone(tmp_path, capsys):
    words = ["generate", "--config", "tiny", "--block", "tailors", "--param", "width=16", "--param", "entries=64"]
    assert main([*words, "--param", "release=true", "--out", str(tmp_path), "--lint", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["block"], document["warnings"]) == ("tailors", [])
    assert document["parameters"] == {"width": 16, "entries": 64, "queue_depth": 8, "release": True}
    top = "tailors_buffer"
    assert document["top"] == top
    on_disk = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert on_disk == {str(Path(entry["path"]).relative_to(tmp_path)) for entry in document["files"]}
    assert {"files.f", "manifest.json", "tailors.core", f"rtl/{top}.sv", f"docs/blocks/{top}.md"} <= on_disk
    assert not [name for name in on_disk if name.startswith("sw")]
    assert {name for name in on_disk if name.startswith("tb/")} == {
        "tb/Makefile", "tb/netlist.v", "tb/smoke_expected.hex", "tb/smoke_stimulus.hex", "tb/smoke_tb.sv"
    }  # fmt: skip
    assert json.loads((tmp_path / "manifest.json").read_text())["top"] == top
    core = (tmp_path / "tailors.core").read_text()
    assert re.findall(r"(?m)^      - (rtl/.*)$", core) == (tmp_path / "files.f").read_text().split()


def test_area_of_a_block_stands_on_its_page(tmp_path):
    assert main(["generate", "--block", "int_add", "--area", "ecp5", "--out", str(tmp_path), "--quiet"]) == 0
    page = (tmp_path / "docs/blocks/int_add.md").read_text()
    (row,) = re.findall(r"(?m)^\| cells \|.*\n.*\n\| (.*) \|$", page)
    assert int(row.split(" | ")[0]) > 0 and "target ecp5" in page


def test_blocks_are_listed(capsys):
    assert main(["generate", "--list-blocks", "--config", "tiny", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (tailors,) = [entry for entry in document["blocks"] if entry["name"] == "tailors"]
    assert tailors["parameters"][0] == {
        "name": "width", "type": "integer", "default": 32, "allowed": "an integer between 1 and 4096"
    }  # fmt: skip
    assert main(["generate", "--block", "help", "--config", "tiny"]) == 0
    assert "    radix = 4: a power of two between 2 and 256\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--block", "tailor"], r"--block tailor: must be one of .* \(did you mean tailors\?\)"),
        (["--block", "buffet", "--param", "depth=1"],
         r"--param depth=1: buffet has no parameter 'depth': it has width, entries, queue_depth"),
        (["--block", "buffet", "--param", "width=wide"], r"--param width=wide: must be an integer between 1 and 4096"),
        (["--block", "buffet", "--param", "width"], r"--param width: must be NAME=VALUE"),
        (["--block", "tailors", "--param", "index_width=3"],
         r"--block tailors: Index width must be at least 9 for 256 entries, not 3"),
        (["--param", "width=1"], r"--param width=1: only with --block"),
        (["--smoke", "questa"], r"--smoke questa: must be one of icarus, verilator, driver"),
        (["--block", "buffet", "--param", "width=3", "--param", "width=5"],
         r"--param width=5: width may be given once: there is width=3 before it"),
        (["--area", "asic"], r"--area asic: must be one of generic, ecp5, xilinx, ice40"),
    ],
)  # fmt: skip
def test_what_generate_refuses(tmp_path, capsys, words, complaint):
    assert main(["generate", *words, "--out", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()
    assert out == "" and re.fullmatch(f"fiberloom: {complaint}\n", err), err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--block", "help", "--param", "x=1"], "--param x=1: not with --block help"),
        (["--list-blocks", "--block", "nosuch"], "--block nosuch: not with --list-blocks"),
        (["--list-blocks", "--lint"], "--lint: not with --list-blocks"),
        (["--list-blocks", "--area", "ecp5"], "--area ecp5: not with --list-blocks"),
        (["--list-blocks", "--smoke", "icarus"], "--smoke icarus: not with --list-blocks"),
        (["--list-blocks", "--out", "x"], "--out x: not with --list-blocks"),
    ],
)
def test_a_list_takes_nothing_that_makes_blocks(capsys, words, complaint):
    assert main(["generate", *words]) == 2
    assert capsys.readouterr() == ("", f"fiberloom: {complaint}, which lists the blocks and makes none\n")


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_block_takes_the_place_of_a_design_and_files_of_others_stay(tmp_path):
    alone, mixed = tmp_path / "alone", tmp_path / "mixed"
    for own in ("rtl/my_top.sv", "docs/blocks/mine.md", "notes/mine.txt"):
        (mixed / own).parent.mkdir(parents=True, exist_ok=True)
        (mixed / own).write_text("mine")
    block = ["generate", "--block", "stream_skid", "--quiet", "--out"]
    assert main(["generate", "--config", "tiny", "--quiet", "--out", str(mixed)]) == 0
    assert (mixed / "tb").is_dir() and (mixed / "fiberloom.core").exists()
    assert main([*block, str(mixed)]) == main([*block, str(alone)]) == 0
    found = contents(mixed)
    assert [found.pop(own) for own in ("rtl/my_top.sv", "docs/blocks/mine.md", "notes/mine.txt")] == ["mine"] * 3
    assert found == contents(alone)
    assert {path.name for path in mixed.iterdir()} - {path.name for path in alone.iterdir()} == {"notes"}


def test_generate_names_what_is_in_the_way_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pw/manifest.json").mkdir(parents=True)
    assert main(["generate", "--block", "stream_skid", "--out", "pw"]) == 2
    assert capsys.readouterr().err == "fiberloom: --out pw: cannot be written (pw/manifest.json is a folder)\n"
    assert [path.name for path in (tmp_path / "pw").rglob("*")] == ["manifest.json"]


def test_generate_writes_all_or_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(generator, "products", lambda *arguments: {"rtl/a.sv": "new", "blocked/b": "new"})
    (tmp_path / "out/rtl").mkdir(parents=True)
    (tmp_path / "out/rtl/a.sv").write_text("old")
    (tmp_path / "out/blocked").write_text("a file where a folder should be")
    assert main(["generate", "--config", "tiny", "--out", "out"]) == 2
    assert capsys.readouterr().err == "fiberloom: --out out: cannot be written (out/blocked is not a folder)\n"
    assert (tmp_path / "out/rtl/a.sv").read_text() == "old"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["blocked", "rtl"]


def test_folders_are_checked_before_the_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gen.synth.synthesise", lambda *arguments: pytest.fail("worked before looking"))
    (tmp_path / "file").write_text("")
    assert main(["synth", "--config", "tiny", "--out", "file/folder"]) == 2
    assert capsys.readouterr().err == "fiberloom: --out file/folder: cannot be written (Not a directory)\n"


def children(parent: int) -> list[int]:
    """Processes below a process, which may have a session of their own."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent:
                found += [int(entry.name), *children(int(entry.name))]
    return found


def runs(process: int) -> bool:
    """Whether it is there and has not ended: nobody may be there to collect an orphan's exit code."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_an_interrupted_synthesis_ends_with_all_its_workers(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-m", "sw", "synth", "--config", "tiny", "--out", "o"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background jobs ignore interrupts, and so would their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        deadline = time.monotonic() + 60
        workers: list[int] = []
        # A worker and what it forked.
        while len(workers) < 2 and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
            workers = children(child.pid)
        assert len(workers) >= 2
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
    finally:
        child.kill()
        child.communicate()
    line = "fiberloom: interrupted: nothing is kept; the same command starts anew\n"
    assert (child.returncode, out, err) == (130, "", line)
    assert list(tmp_path.iterdir()) == []
    deadline = time.monotonic() + 60
    while any(map(runs, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(runs, workers))


def test_finished_jobs_are_counted():
    counts: list[int] = []
    run_jobs([["help"]] * 3, workers=2, finished=counts.append)
    assert counts == [1, 2, 3]


def test_one_failing_job_stops_the_others():
    with pytest.raises(YosysError, match="No such command: no_such_command"):
        run_jobs([["help"], ["no_such_command"], ["help"]], workers=2)
