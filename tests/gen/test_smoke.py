"""The smoke bench of a generated folder: passes on good hardware, tells what differs and what is waited for."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gen.design import load_design
from gen.folder import write_folder
from gen.products import products
from gen.simulate import smoke
from gen.verilator import environment, verilator
from sw.cli.smoke import smoke_run
from sw.runtime.smoke import smoke_case
from tests.gen.designs import SMALLEST
from tests.tools import needs_tool


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    design = load_design("tiny")
    place = tmp_path_factory.mktemp("a folder")
    write_folder(place, products(design, smoke_run(design)))
    words = (place / "tb/smoke_expected.hex").read_text().splitlines()
    words[20] = f"{int(words[20], 16) ^ 1:08x}"
    (place / "broken.hex").write_text("\n".join(words) + "\n")
    return place


def check(folder: Path, simulator: str) -> None:
    good, broken, short = smoke(folder, simulator, [[], ["+expected=broken.hex"], ["+budget=60"]])
    assert re.search(r"(?m)^PASS: 10 x 12 by 12 x 16 \(int32\) in \d+ cycles, \d+ words compared$", good.stdout)
    assert good.returncode == 0 and "FAIL" not in good.stdout
    assert broken.returncode != 0 and "PASS" not in broken.stdout
    assert re.search(
        r"element 4 of C, its value, differs:\n  found 0x\w+, expected 0x\w+\nFAIL: 1 words differ\n", broken.stdout
    )
    assert short.returncode != 0 and "PASS" not in short.stdout
    assert (
        "FAIL: waited 60 cycles for the interrupt that ends the run\n  phase: waiting for the next tile\n"
        in short.stdout
    )


@needs_tool("icarus")
def test_bench_under_icarus(folder):
    check(folder, "icarus")


@pytest.mark.slow
def test_bench_under_verilator(folder):
    """Verilator reads the very files that are synthesised, and takes a minute to compile them."""
    check(folder, "verilator")


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("tiny", []),
        ("tiny", ["pe.value=fp32"]),
        ("tiny", ["pe.value=bf16"]),
        ("tiny", ["pe.value=int8", "pe.overflow=saturate"]),
        ("edge", []),
        ("server", []),
        ("tiny", SMALLEST),
        ("flex_tiny", []),
        ("flex_edge", []),
        ("flex", []),
        ("flex", ["axi.data_bits=128", "buffer.bytes=352", "buffer.fifo_bytes=64", "buffer.banks=1"]),
    ],
    ids=lambda given: given if isinstance(given, str) else " ".join(given),
)
def test_every_design_has_a_run_of_several_tiles(name, changes):
    design = load_design(name, changes)
    case = smoke_case(design)
    i, j, k = case.scheme.tiles_per_rank(case.a.rows, case.b.columns, case.a.columns)
    assert i >= 2 and j >= 2 and k >= 3
    assert case.product.macs > 100 and case.product.structural.nnz > 50
    assert (case.a.pointers[1:] == case.a.pointers[:-1]).any(), "a row of A is empty"


def test_core_has_a_target_for_it(folder):
    core = (folder / "fiberloom.core").read_text()
    for path in re.findall(r"(?m)^      - (tb/\S+?):", core):
        assert (folder / path).exists()
    assert core.count("copyto: tb/") == 2 and "    toplevel: smoke_tb\n" in core


@pytest.mark.slow
def test_the_makefile_of_the_folder_builds_with_the_verilator_of_the_project(folder, tmp_path):
    """As whoever got the folder types it, where make can build: in no path with a space. The flags make the compiler quick."""
    moved = shutil.copytree(folder, tmp_path / "moved")
    tool = verilator()
    command = ["make", "-C", "tb", "verilator", f"VERILATOR={tool}"]
    quick = "VERILATOR_FLAGS=-MAKEFLAGS 'OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0'"
    done = subprocess.run(
        [*command, quick], cwd=moved, env=environment(tool), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS: 10 x 12 by 12 x 16 (int32)" in done.stdout
    assert "%Warning" not in done.stdout + done.stderr


def test_the_readme_says_what_the_identity_registers_hold(folder):
    text = (folder / "README.md").read_text()
    for row in (
        "| `ID` | 0x464c4f4d |",
        "| `PES` | 2 |",
        "| `MERGE_RADIX` | 4 |",
        "| `LANES` | 2 |",
        "| `SRAM_LINES` | 512 |",
    ):
        assert row in text
    named = set(re.findall(r"`((?:rtl|docs|sw|lint|constraints|tb)/[\w./]*)`", text)) | {"files.f", "manifest.json"}
    assert all((folder / name).exists() for name in named)
