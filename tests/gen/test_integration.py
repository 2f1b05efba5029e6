"""What puts generated hardware into somebody's design: names of one's own, an instance, IP-XACT, constraints, a driver in C."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from gen.blocks import BLOCKS, block_kind, settings
from gen.design import load_design
from gen.folder import write_folder
from gen.lint import lint
from gen.place import measure
from gen.ports import Port
from gen.products import block_products, products
from gen.smoke import BENCH
from gen.verilator import environment, verilator
from rtl.regs.map import REGISTERS
from sw.cli.app import main
from sw.cli.smoke import smoke_run
from sw.runtime.simulation.c_driver import drive
from tests.tools import needs_tool

TINY = load_design("tiny")
QUIET = ("-Wno-UNUSEDSIGNAL", "-Wno-UNDRIVEN", "-Wno-DECLFILENAME")


@pytest.fixture(scope="module")
def design_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("design")
    write_folder(folder, products(TINY, smoke_run(TINY), name="chip"))
    return folder


def block_texts(name: str, called: str | None = None) -> tuple[str, dict[str, str]]:
    kind = block_kind(name)
    return block_products(kind, settings(kind, [], TINY), name=called, design=TINY)


def modules(texts: dict[str, str]) -> set[str]:
    """Of the hardware: a bench is nobody's part."""
    return {found for path, text in texts.items() if path != BENCH for found in re.findall(r"(?m)^module (\w+)", text)}


def test_two_named_blocks_share_no_module(tmp_path):
    both = [block_texts("stream_fork" if "stream_fork" in BLOCKS else "tailors", name) for name in ("one", "two")]
    (top_a, a), (top_b, b) = both
    assert (top_a, top_b) == ("one", "two") and modules(a) and not modules(a) & modules(b)
    assert all(module == "one" or module.startswith("one_") for module in modules(a))
    write_folder(tmp_path, a)
    assert lint(tmp_path, "one", a["files.f"].split()) == []


@pytest.mark.parametrize("name", ["", "1a", "a b", "module", "x" * 41, "é"])
def test_a_name_that_is_none_is_refused(name, tmp_path, capsys):
    assert main(["generate", "--block", "tailors", "--name", name, "--out", str(tmp_path / "o")]) == 2
    assert f"--name {name}: must be a letter or _" in capsys.readouterr().err and not (tmp_path / "o").exists()


@pytest.mark.parametrize("block", ["tailors", "stream_queue" if "stream_queue" in BLOCKS else "buffet"])
def test_an_instance_is_connected_to_all_ports(block, tmp_path):
    top, texts = block_texts(block)
    write_folder(tmp_path, texts)
    (tmp_path / "around.sv").write_text("module around;\n" + texts["docs/instance.sv"] + "endmodule\n")
    files = [*texts["files.f"].split(), "around.sv"]
    tool = verilator()
    # Warnings on pins that are missing, or as wide as something else, stay errors.
    command = [tool, "--lint-only", "-Wall", *QUIET, "--top-module", "around", "lint/waivers.vlt", *files]
    done = subprocess.run(command, cwd=tmp_path, env=environment(tool), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    broken = re.sub(r"(?m)^ +\.\w+__valid .*\n", "", texts["docs/instance.sv"], count=1)
    (tmp_path / "around.sv").write_text("module around;\n" + broken + "endmodule\n")
    done = subprocess.run(command, cwd=tmp_path, env=environment(tool), capture_output=True, text=True, check=False)
    assert "PINMISSING" in done.stderr


def test_a_block_has_the_clock_of_its_design():
    _, texts = block_texts("tailors")
    sdc = texts["constraints/block.sdc"]
    assert "create_clock -name clk -period 4.000 [get_ports clk]" in sdc
    assert "create_clock -name clk -period 4.000" in texts["constraints/block.xdc"]
    named = set(re.findall(r"\w+", " ".join(re.findall(r"get_ports \{(.*?)\}", sdc, re.DOTALL))))
    header = re.search(r"(?s)^module \w+ \((.*?)\);", texts["rtl/tailors_buffer.sv"], re.MULTILINE)[1]
    ports = set(re.findall(r"(?m)^  (?:input|output) +logic (?:\[\d+:0\] )?(\w+)", header))
    assert named == ports - {"clk"} and "rst" in ports


@needs_tool("ipyxact")
def test_another_tool_reads_the_component(design_folder):
    from ipyxact.ipyxact import Component

    found = Component()
    found.load(str(design_folder / "component.xml"))
    assert (found.vendor, found.library, found.name) == ("fiberloom", "accelerator", "chip")
    text = (design_folder / "rtl/chip.sv").read_text()
    header = re.search(r"(?s)^module chip \((.*?)\);", text, re.MULTILINE)[1]
    ports = re.findall(r"(?m)^  (input|output) +logic (?:\[(\d+):0\] )?(\w+)", header)
    listed = [
        (
            {"in": "input", "out": "output"}[port.wire.direction],
            str(int(port.wire.vectors.vector[0].left)) if port.wire.vectors else "",
            port.name,
        )
        for port in found.model.ports.port
    ]
    assert sorted(listed) == sorted(ports)
    assert [bus.name for bus in found.busInterfaces.busInterface] == ["s_axil", "m_axi"]
    block = found.memoryMaps.memoryMap[0].addressBlock[0]
    words = [(name, offset) for register in REGISTERS for name, offset in register.words]
    assert [(register.name, int(register.addressOffset)) for register in block.register] == words
    fields = sum(len(register.field) for register in block.register)
    assert fields >= sum(len(register.fields) for register in REGISTERS)
    files = [file.name for file in found.fileSets.fileSet[0].file]
    assert all((design_folder / file).is_file() for file in files) and files[-2] == "rtl/chip.sv"


@needs_tool("compiler")
def test_the_driver_in_c_finds_the_result_right_and_wrong(design_folder, tmp_path):
    (passed,) = drive(design_folder, TINY)
    assert re.fullmatch(r"PASS: 10 x 12 by 12 x 16 \(int32\) in \d+ cycles, \d+ words compared", passed)
    wrong = tmp_path / "sw"
    wrong.mkdir()
    for file in (design_folder / "sw").iterdir():
        (wrong / file.name).write_bytes(file.read_bytes())
    header = wrong / "fiberloom_example.h"
    text = header.read_text()
    begin = text.index("example_c[")
    # A row pointer that is not the one.
    header.write_text(text[:begin] + text[begin:].replace("{\n    0x0, ", "{\n    0x1, ", 1))
    assert drive(tmp_path, TINY) == ["FAIL: a row pointer of C is 0x0, not 0x1"]
    header.write_text(text.replace("/* TILE_I */", "/* */").replace("0, UINT64_C(0xa)}", "0, UINT64_C(0x0)}", 1))
    (said,) = drive(tmp_path, TINY)
    assert said.startswith("FAIL: error ")


@needs_tool("compiler")
def test_the_driver_is_a_program_for_linux_too(design_folder, tmp_path):
    command = ["cc", "-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-DFIBERLOOM_MAIN"]
    source = str(design_folder / "sw/fiberloom_example.c")
    subprocess.run([*command, "-o", str(tmp_path / "example"), source], check=True)
    done = subprocess.run([str(tmp_path / "example")], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "ADDRESS-OF-REGISTERS ADDRESS-OF-MEMORY" in done.stderr


def test_area_is_in_the_readme_of_a_named_block():
    kind = block_kind("tailors")
    values = settings(kind, ["entries=8", "width=4"], TINY)
    _, texts = block_products(kind, values, "generic", name="mine", design=TINY)
    readme = " ".join(texts["README.md"].split())
    found = re.search(
        r"target generic: ([\d,]+) cells \(.*longest path within a module is (\d+) cells, in `mine_\w+`", readme
    )
    figures = json.loads(texts["area.json"])
    assert figures["modules"][0]["name"] == "mine" and figures["placed"] is None
    assert "Place and route is for the target ecp5 alone." in readme
    assert found and figures["modules"][0]["cells"] == int(found[1].replace(",", ""))
    assert int(found[1].replace(",", "")) > 100 and int(found[2]) > 1
    assert re.search(r"(?m)^\| [\d,]+ \|", texts["docs/blocks/mine.md"]) and found[1] in texts["docs/blocks/mine.md"]


@needs_tool("nextpnr")
def test_a_clock_is_what_place_and_route_reached():
    kind = block_kind("tailors")
    values = settings(kind, ["entries=8", "width=4"], TINY)
    _, texts = block_products(kind, values, "ecp5", name="mine", design=TINY)
    placed = json.loads(texts["area.json"])["placed"]
    # More than a register and a LUT on each side of a wire cannot be, and less than a path of 20 LUTs would be odd.
    assert 50 < placed["mhz"] < 500 and placed["path"] and placed["reason"] is None
    assert placed["cells"]["LUT4"] > 50 and placed["cells"]["FF"] > 50
    assert f"Clock: {placed['mhz']} MHz, reached by place and route for {placed['device']}" in " ".join(
        texts["README.md"].split()
    )


def test_why_there_is_no_clock_is_said(monkeypatch):
    """A module that is too large is not tried, and one is not placed without the tool."""
    for cells in ({"LUT4": 90_000}, {"LUT4": 1, "CCU2C": 50_000}):
        entry = measure("any", {}, cells)
        assert entry["mhz"] is None and re.fullmatch(r"it does not fit: .* of 83,640 LUTs", entry["reason"]), entry
    monkeypatch.setattr("gen.place.NEXTPNR", "no-such-tool")
    entry = measure("any", {}, {"LUT4": 1})
    assert entry["reason"] == "no-such-tool is missing: pip install 'fiberloom[pnr]'"
    kind = block_kind("int_add")
    _, texts = block_products(kind, settings(kind, [], TINY), "ecp5", design=TINY)
    readme = " ".join(texts["README.md"].split())
    assert "reached no clock: no-such-tool is missing: pip install 'fiberloom[pnr]'." in readme
    assert json.loads(texts["area.json"])["placed"]["mhz"] is None


def test_ports_of_one_bit_have_no_range():
    from gen.instance import instance

    ports = [Port(name=name, width=width, is_input=way, member=name) for name, width, way in
             (("clk", 1, True), ("wide", 8, False))]  # fmt: skip
    text = instance("top", ports, "origin")
    assert "  logic clk;" in text and "  logic [7:0] wide;" in text and ".clk  (clk),\n      .wide (wide)\n" in text
