"""``generate`` and ``synth`` as their users meet them."""

import json
import os
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
    stale = tmp_path / "a folder/rtl/of_an_earlier_design.sv"
    stale.parent.mkdir(parents=True)
    stale.write_text("module of_an_earlier_design; endmodule\n")
    assert main(["generate", "--config", "tiny", "--out", "a folder", "--seed", "3", "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert err == "" and (document["design"], document["top"]) == ("tiny", "accelerator")
    sizes = {Path(entry["path"]): entry["bytes"] for entry in document["files"]}
    on_disk = {path.relative_to(tmp_path): path for path in (tmp_path / "a folder").rglob("*") if path.is_file()}
    assert sizes == {name: path.stat().st_size for name, path in on_disk.items()}
    assert not stale.exists()
    names = {str(path.relative_to("a folder")) for path in sizes}
    assert names >= {
        "files.f", "manifest.json", "fiberloom.core", "design.json", "constraints/accelerator.sdc",
        "constraints/accelerator.xdc", "sw/fiberloom_regs.h", "docs/registers.md", "rtl/accelerator.sv",
    }  # fmt: skip


def test_generate_writes_all_or_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(generator, "products", lambda design: {"rtl/a.sv": "new", "blocked/b": "new"})
    (tmp_path / "out/rtl").mkdir(parents=True)
    (tmp_path / "out/rtl/a.sv").write_text("old")
    (tmp_path / "out/blocked").write_text("a file where a folder should be")
    assert main(["generate", "--config", "tiny", "--out", "out"]) == 2
    assert capsys.readouterr().err == "fiberloom: --out out: cannot be written (File exists)\n"
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
    assert (child.returncode, out, err) == (130, "", "")
    assert list((tmp_path / "o").iterdir()) == []
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
