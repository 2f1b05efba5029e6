"""The bench of a block's folder: it passes on the block as it was generated, and notices when that is another one."""

import os
import re
from pathlib import Path

import pytest

from gen.block_bench import Recording, record
from gen.blocks import block_kind, build_block, settings
from gen.design import load_design
from gen.folder import write_folder
from gen.fusesoc import block_core
from gen.products import block_products
from gen.readme import block_readme
from gen.simulate import smoke
from gen.smoke import BENCH, NETLIST
from tests.tools import needs_tool

TINY = load_design("tiny")
# Arithmetic, hand-written queues over a memory, a memory with rows behind its last one, and streams that depend on each other.
BLOCKS = ("int_add", "stream_queue", "collector", "tailors", "dispatcher")


def recording(name: str, *given: str) -> Recording:
    kind = block_kind(name)
    values = settings(kind, list(given), TINY)
    return record(lambda: build_block(kind, values))


def folder(place: Path, name: str, *given: str) -> Path:
    kind = block_kind(name)
    write_folder(place, block_products(kind, settings(kind, list(given), TINY), design=TINY)[1])
    return place


def bits(found: Recording, name: str) -> list[int]:
    """What a port has in each cycle."""
    for ports, words in ((found.inputs, found.driven), (found.outputs, found.answered)):
        low = 0
        for port in ports:
            if port.name == name:
                return [word >> low & (1 << port.width) - 1 for word in words]
            low += port.width
    raise KeyError(name)


def test_neighbours_keep_to_the_rules_of_streams_and_see_a_queue():
    """What has been offered stays until it is taken; what comes out is what went in, and in each episode anew."""
    found = recording("stream_queue", "width=32", "depth=5")
    ports = ("i__valid", "i__ready", "i__payload", "o__valid", "o__ready", "o__payload", "level")
    inside: list[int] = []
    before = (0, 0, 0)
    moved = 0
    for reset, *now in zip(found.reset, *(bits(found, port) for port in ports), strict=True):
        i_valid, i_ready, i_payload, o_valid, o_ready, o_payload, level = now
        if reset:
            inside = []
            before = (0, 0, 0)
            continue
        if before[0] and not before[1]:
            assert (i_valid, i_payload) == (1, before[2])
        assert level == len(inside) and i_ready == (level < 5) and o_valid == (level > 0)
        if o_valid:
            assert o_payload == inside[0]
            if o_ready:
                inside.pop(0)
                moved += 1
        if i_valid and i_ready:
            inside.append(i_payload)
        before = (i_valid, i_ready, i_payload)
    assert sum(found.reset) == 4 and moved > 100
    assert found.moving >= 36, "most bits of the queue's outputs are seen as 0 and as 1"


def test_a_recording_is_the_same_each_time_and_leaves_out_what_is_undefined():
    first, second = recording("banked_sram", "lines=16"), recording("banked_sram", "lines=16")
    assert first == second
    # Whoever reads a line that nothing was written to gets what was there: such answers are not compared, most are.
    place = [port.name for port in first.outputs].index("read_response__0__line__0__value")
    cycles = len(first.reset) - sum(first.reset)
    assert cycles * 0.9 < sum(mask >> place & 1 for mask in first.checked) < cycles


@pytest.mark.parametrize("name", BLOCKS)
@needs_tool("icarus")
def test_the_bench_passes_and_a_broken_block_fails(tmp_path, name):
    """Every output inverted by itself, one after the other, is noticed in its own name."""
    place = folder(tmp_path / "a folder", name)
    (done,) = smoke(place, "icarus")
    assert done.returncode == 0 and re.match(rf"PASS: {name}, 512 cycles, \d+ values", done.stdout), done.stdout
    bench = (place / BENCH).read_text()
    for port in re.findall(r'compare\("(\w+)"', bench)[:6]:
        # At the module's border: as a wrong wire, or a block that answers wrongly.
        broken = re.sub(rf"(\.{port} +\()(answered\[[\d:]+\])(\))", r"\1inverted\3", bench)
        low, high = sorted(map(int, re.search(rf"\.{port} +\(answered\[(\d+):(\d+)\]", bench).groups()))
        wire = f"  wire [{high - low}:0] inverted;\n  assign answered[{high}:{low}] = ~inverted;\n\n"
        (place / BENCH).write_text(broken.replace(f"  {_top(place)} dut", f"{wire}  {_top(place)} dut"))
        (done,) = smoke(place, "icarus")
        assert done.returncode != 0 and "FAIL: cycle" in done.stdout and f"  {port} is 0x" in done.stdout, done.stdout


def _top(place: Path) -> str:
    return re.search(r"^  (\w+) dut \($", (place / BENCH).read_text(), re.M)[1]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("stream_queue", r" \+ ", " - "),
        ("int_add", r" \+ ", " - "),
        ("dispatcher", r" == ", " != "),
    ],
)
@needs_tool("icarus")
def test_a_change_inside_the_block_is_noticed(tmp_path, name, old, new):
    place = folder(tmp_path, name)
    text = (place / NETLIST).read_text()
    changed = re.sub(old, new, text, count=1)
    assert changed != text, text
    (place / NETLIST).write_text(changed)
    (done,) = smoke(place, "icarus")
    assert done.returncode != 0 and "FAIL: cycle" in done.stdout, done.stdout


@pytest.mark.slow
def test_the_makefile_runs_the_bench_under_verilator(tmp_path, monkeypatch):
    """The Verilog itself and no netlist of it: that of the folder, and with an image that is not there.

    Some systems have Python as ``python3`` alone.
    """
    (tmp_path / "python").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    place = folder(tmp_path / "folder", "stream_queue")
    good, bad = smoke(place, "verilator", [[], ["+expected=none.hex"]])
    assert good.returncode == 0 and "PASS: stream_queue, 512 cycles" in good.stdout, good.stdout
    assert bad.returncode != 0 and "none.hex is not the bench's" in bad.stdout, bad.stdout
    text = (place / "rtl/stream_queue.sv").read_text()
    (place / "rtl/stream_queue.sv").write_text(text.replace("read_index + INDEX'(1)", "read_index + INDEX'(2)"))
    (done,) = smoke(place, "verilator")
    assert done.returncode != 0 and "FAIL: cycle" in done.stdout, done.stdout


def test_a_core_without_a_bench_says_nothing_of_one():
    """The converter's: it has its own clock, and takes minutes to simulate in its source."""
    core = block_core("converter", "x", sources=["rtl/x.sv"], top="converter", waivers="lint/waivers.vlt", bench=False)
    page = block_readme("converter", "x", "y", "converter", False, False, "")
    assert "tb/" not in core + page
    assert "tb/smoke_tb.sv" in block_readme("x", "x", "y", "x", False, True, "")
