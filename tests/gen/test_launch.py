"""``verilator`` and ``yosys`` as ``make setup`` leaves them, in a checkout whose path has a space."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gen.blocks import block_kind, settings
from gen.design import load_design
from gen.folder import write_folder
from gen.products import block_products

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def commands(tmp_path_factory) -> Path:
    """A folder of commands with the launchers, in what looks like a checkout."""
    checkout = tmp_path_factory.mktemp("check") / "a checkout"
    folder = checkout / ".venv" / "bin"
    folder.mkdir(parents=True)
    for room in ("gen", "rtl"):
        (checkout / room).symlink_to(ROOT / room)
    (folder / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / "python").chmod(0o755)
    spec = importlib.util.spec_from_file_location("make_venv", ROOT / ".ci/make_venv.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.write_launchers(str(folder))
    return folder


def run(commands: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """As after `. .venv/bin/activate`: no other Verilator or Yosys comes before."""
    path = os.pathsep.join([str(commands), os.environ["PATH"]])
    return subprocess.run(
        words, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def block(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("block") / "a block"
    kind = block_kind("stream_queue")
    write_folder(folder, block_products(kind, settings(kind, [], load_design("tiny")))[1])
    return folder


def test_the_lint_line_of_a_folder_s_readme_works_as_printed(commands, block):
    (line,) = [part for part in (block / "README.md").read_text().split("`") if part.startswith("verilator --lint")]
    done = run(commands, block, *line.split())
    assert done.returncode == 0, done.stderr
    (block / "broken.sv").write_text("module broken(input a); assign b = a; endmodule\n")
    assert run(commands, block, "verilator", "--lint-only", "-Wall", "broken.sv").returncode != 0


@pytest.mark.slow
def test_the_makefile_of_a_folder_finds_verilator(commands, block):
    done = run(commands, block, "make", "-C", "tb", "verilator")
    assert done.returncode == 0 and "PASS: stream_queue" in done.stdout, done.stdout + done.stderr


def test_yosys_reads_files_and_runs_commands(commands, block):
    done = run(commands, block, "yosys", "-q", "-l", "log.txt", "-p", "synth; stat", "tb/netlist.v")
    assert done.returncode == 0 and "stream_queue" in (block / "log.txt").read_text(), done.stderr
    (block / "script.ys").write_text("read_verilog tb/netlist.v\nhierarchy -check -top stream_queue\n")
    assert run(commands, block, "yosys", "-s", "script.ys").returncode == 0
    assert run(commands, block, "yosys", "-p", "no_such_command").returncode != 0
    assert run(commands, block, "yosys", "-V").stdout.startswith("Yosys 0.")
