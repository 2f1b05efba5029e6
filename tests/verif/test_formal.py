"""The formal proofs: that they are named and documented once, and that each kind of them can fail.

Each fourth fault of ``verif/formal/faults.py`` is refuted here, where that takes seconds; all are by ``make formal-faults``.
"""

import inspect
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Assert, Assume, Cover, Fragment, Module, Signal

from gen.blocks import BLOCKS, build_block, settings
from gen.design import load_design
from gen.yosys import ToolError
from rtl.buffer.tailors import TailorsBuffer
from rtl.lib.block import Block
from tests.tools import long_run, needs_tool
from verif.formal import __main__ as command
from verif.formal import prove as runner
from verif.formal.__main__ import fault_row, main, row
from verif.formal.catalogue import catalogue
from verif.formal.faults import faults, refute
from verif.formal.prove import Outcome, Proof, prove, tools
from verif.formal.spec import Spec, any_value, streams_of

ROOT = Path(__file__).parents[2]


PLANTED = faults()


@needs_tool("solver")
@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=fault.name, marks=[long_run()] if fault.long or n % 4 else [])
        for n, fault in enumerate(PLANTED)
    ],
)
def test_fault_is_refuted(tmp_path, fault):
    """By the proof that claims what it breaks, as far as that proof looks."""
    (proof,) = (proof for proof in catalogue() if proof.name == fault.place.proof)
    outcome = refute(fault, proof, tmp_path)
    assert outcome.result == "fail", outcome
    assert outcome.detail, "the failed claim is named"


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.name)
def test_fault_is_one_of_the_present_source(tmp_path, fault):
    """Its snippet is there, and the copy is still a block; the proof that must see it takes such a copy."""
    (proof,) = (proof for proof in catalogue() if proof.name == fault.place.proof)
    assert issubclass(fault.block(tmp_path), Block)
    assert "block" in inspect.signature(proof.spec).parameters
    assert fault.replacement != fault.snippet


def test_a_fault_that_no_longer_fits_the_source_is_told(tmp_path):
    fault = replace(PLANTED[0], snippet="no such line")
    with pytest.raises(ValueError, match=f"Fault {fault.name}: rtl.buffer.tailors_entries has no 'no such line'"):
        fault.block(tmp_path)


def test_a_fault_of_a_part_is_in_the_block_and_nowhere_else(tmp_path):
    fault = next(fault for fault in PLANTED if fault.name == "tailors_no_rotation")
    sizes = {"width": 1, "entries": 3}
    whole, broken = TailorsBuffer(**sizes), fault.block(tmp_path)(**sizes)
    assert rtlil.convert(broken) != rtlil.convert(whole) == rtlil.convert(TailorsBuffer(**sizes))


class Limited(Spec):
    """A register of values up to ``allowed``: claims that hold and claims that do not."""

    def __init__(self, *, claim: int = 2, allowed: int = 2, reachable: int = 2) -> None:
        super().__init__()
        self.claim, self.allowed, self.reachable = claim, allowed, reachable

    def claims(self, m: Module) -> None:
        value = any_value(m, 2, "value")
        state = Signal(2)
        m.d.sync += state.eq(value)
        m.d.comb += [Assume(value <= self.allowed), Assert(state <= self.claim), Cover(state == self.reachable)]


class Late(Limited):
    """Also something that comes after three cycles only."""

    def claims(self, m: Module) -> None:
        super().claims(m)
        count = Signal(2)
        m.d.sync += count.eq(count + 1)
        m.d.comb += Cover(count == 3)


class Bare(Spec):
    """A claim without a cover."""

    def claims(self, m: Module) -> None:
        m.d.comb += Assert(any_value(m, 2, "value") <= 3)


@needs_tool("solver")
@pytest.mark.parametrize(
    ("spec", "results"),
    [
        (Limited, ["pass", "pass"]),
        (lambda: Limited(claim=0), ["fail", "pass"]),
        (lambda: Limited(claim=0, allowed=0), ["pass", "fail"]),
        (lambda: Limited(claim=1, allowed=1, reachable=1), ["pass", "pass"]),
    ],
    ids=["true", "false", "vacuous", "assumed"],
)
@pytest.mark.parametrize("depth", [0, 3])
def test_verdicts(tmp_path, spec, results, depth):
    """A claim that holds only because nothing is allowed is told by its cover statement."""
    outcomes = prove(Proof("limited", "", spec, depth=depth, reach=0 if depth else 3), tmp_path)
    assert [outcome.mode for outcome in outcomes] == ["bmc" if depth else "prove", "cover"]
    assert [outcome.result for outcome in outcomes] == results


@needs_tool("solver")
def test_a_proof_that_takes_too_long_is_not_passed(tmp_path):
    outcomes = prove(Proof("late", "", Limited, reach=1, limit=0), tmp_path)
    assert [outcome.result for outcome in outcomes] == ["timeout", "timeout"]


@needs_tool("solver")
def test_a_bounded_proof_reaches_its_covers_as_far_as_it_looks(tmp_path):
    """A value that takes three cycles to come is beyond a proof of two."""
    runs = {depth: prove(Proof("late", "", Late, depth=depth), tmp_path) for depth in (3, 4)}
    assert {depth: [outcome.result for outcome in outcomes] for depth, outcomes in runs.items()} == {
        3: ["pass", "fail"],
        4: ["pass", "pass"],
    }


@needs_tool("solver")
def test_a_proof_without_covers_is_not_passed(tmp_path):
    _, cover = prove(Proof("bare", "", Bare, reach=3), tmp_path)
    assert (cover.result, cover.detail) == ("fail", "the spec has no cover statement")


@pytest.mark.parametrize(("depth", "reach"), [(0, 0), (4, 8), (8, 4)])
def test_a_proof_looks_at_some_cycles_or_at_all(depth, reach):
    with pytest.raises(ValueError, match="^Proof late: either depth or reach must be given"):
        Proof("late", "", Limited, depth=depth, reach=reach)


def test_missing_tools_are_named(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(runner.shutil, "which", lambda *_, **__: None)
    with pytest.raises(ToolError, match="yowasp-sby is missing: pip install"):
        tools()
    monkeypatch.setattr("sys.argv", ["verif.formal", "--out", str(tmp_path), "arbiter"])
    assert main() == 3
    assert "yowasp-sby is missing" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--faults"]])
def test_unknown_names_are_refused(monkeypatch, capsys, options):
    monkeypatch.setattr("sys.argv", ["verif.formal", *options, "arbiter", "nothing.such"])
    assert main() == 2
    assert "nothing.such" in capsys.readouterr().err


@needs_tool("solver")
@pytest.mark.parametrize(
    ("replacement", "code", "said"),
    [("self.requests)", 0, "1 of 1 faults refuted"), (None, 1, "not refuted: arbiter_")],
)
def test_one_command_plants_faults(monkeypatch, capsys, tmp_path, replacement, code, said):
    """A fault that changes nothing is not refuted, and the command fails."""
    fault = next(fault for fault in PLANTED if fault.name == "arbiter_grants_all")
    monkeypatch.setattr(command, "faults", lambda: [replace(fault, replacement=replacement or fault.snippet)])
    monkeypatch.setattr("sys.argv", ["verif.formal", "--faults", "--out", str(tmp_path)])
    assert main() == code
    assert said in "".join(capsys.readouterr())


def test_every_proof_stands_in_the_manual_as_it_is():
    page = (ROOT / "docs" / "formal.md").read_text(encoding="utf-8")
    rows = [line.rpartition(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    assert rows == [row(proof, []).rpartition(" | ")[0] for proof in catalogue()]


def test_every_fault_stands_in_the_manual_with_its_proof():
    page = (ROOT / "docs" / "formal.md").read_text(encoding="utf-8")
    _, _, table = page.partition("| fault | proof | refuted by | depth | seconds |\n")
    rows = [line.split(" | ")[:3] for line in table.split("\n\n")[0].splitlines()[1:]]
    none = Outcome("", "", "", 0, "", 0)
    assert rows == [fault_row(fault, none).split(" | ")[:3] for fault in PLANTED]


# The proof that claims the stream rules of each block; those of a block in a larger one are claimed of the same ports.
STREAM_PROOFS = {
    "stream_queue": "stream_queue.depth3",
    "stream_skid": "stream_skid.contract",
    "stream_register": "stream_register.contract",
    "buffet": "buffet.entries2",
    "buffet_control": "buffet_control.streams",
    "tailors": "tailors.entries2",
    "tailors_control": "tailors_control.streams",
    "memory_engine": "read_engine.client0",
    "accessor_a": "accessor_a.streams",
    "converted_a": "converted_a.streams",
    "converted_b": "converted_b.streams",
    "converted_c": "converted_c.streams",
    "accessor_b": "accessor_b.streams",
    "accessor_c": "accessor_c.streams",
    "fiber_lookup": "fiber_lookup.streams",
    "segment_streamer": "segment_streamer.streams",
    "tiling_controller": "tiling_controller.streams",
    "tile_map": "tile_map.streams",
    "window_table": "window_table.streams",
    "dispatcher": "dispatcher.streams",
    "bit_unpacker": "bit_unpacker.beyond",
    "bit_packer": "bit_packer.beyond",
    "record_packer": "record_packer.packed",
    "record_reader": "record_reader.streams",
    "line_range": "line_range.lane1",
    "shared_beats": "shared_beats.carries2",
    "restoring_divmod": "restoring_divmod.bits1",
    "reciprocal_divmod": "reciprocal_divmod.width8",
    "collector": "collector.streams",
    "memory_fetch": "memory_fetch.streams",
    "merge_tree": "merge_tree.radix4",
    "gustavson_pe": "gustavson_pe.streams",
    "prefix_sum_serial_chain": "prefix_sum.serial_chain",
    "prefix_sum_work_efficient": "prefix_sum.work_efficient",
    "prefix_sum_highly_parallel": "prefix_sum.highly_parallel",
    "sorter": "sorter.inputs4",
    "cluster_counter": "cluster_counter.inputs4",
    "block_flags": "block_flags.inputs2",
    "tree_builder": "tree_builder.inputs2",
    "bus_packer": "bus_packer.streams",
    "weight_stationary_pe": "weight_stationary_pe.streams",
    "weight_stationary_array": "weight_stationary_array.streams",
}


def test_the_stream_rules_of_every_block_are_proved():
    """A block whose stream ports are all inputs offers nothing that could change."""
    offering = set()
    for name, kind in BLOCKS.items():
        block = build_block(kind, settings(kind, [], load_design("tiny")))
        Fragment.get(block, None)  # made to be asked for its ports; Amaranth warns of blocks that nobody elaborates
        if any(produces for _, _, produces in streams_of(block)):
            offering.add(name)
    assert offering == set(STREAM_PROOFS)
    assert set(STREAM_PROOFS.values()) <= {proof.name for proof in catalogue()}


def test_names_are_unique():
    names = [proof.name for proof in catalogue()]
    assert len(names) == len(set(names))
