# amaranth: UnusedElaboratable=no
"""The formal proofs: that they are named and documented once, and that each kind of them can fail.

Faults are planted in copies of the blocks' source. A snippet that no longer occurs fails the test: rewrite the fault.
"""

import importlib.util
from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, Cover, Fragment, Module, Signal

from gen.blocks import BLOCKS, build_block, settings
from gen.design import load_design
from gen.yosys import ToolError
from rtl.buffer.buffet import Buffet
from rtl.regs.signature import DESIGN_PARAMETERS
from verif.formal import prove as runner
from verif.formal.__main__ import main, row
from verif.formal.catalogue import catalogue
from verif.formal.prove import Proof, prove, tools
from verif.formal.spec import Spec, any_value, streams_of
from verif.formal.spec_arbiter import ArbiterContract
from verif.formal.spec_axi import ReadManager, WriteManager
from verif.formal.spec_buffet import BuffetAgainstModel, TailorsAsBuffet
from verif.formal.spec_combiner import CombinerContract
from verif.formal.spec_dispatcher import DispatcherContract
from verif.formal.spec_merge import MergeContract
from verif.formal.spec_registers import RegisterPort
from verif.formal.spec_sorted import SortedJobs
from verif.formal.spec_streams import QueueContract, StreamRules
from verif.formal.spec_tailors import TailorsAgainstModel
from verif.formal.stream_proofs import present_leaf

ROOT = Path(__file__).parents[2]


def solver_missing() -> str:
    try:
        tools()
    except ToolError as error:
        return str(error)
    return ""


needs_solver = pytest.mark.skipif(bool(solver_missing()), reason=solver_missing() or "the solver is here")


def broken(folder, module, class_name, snippet, replacement):
    """A class from a copy of its source with the snippet replaced."""
    source = importlib.util.find_spec(module).loader.get_source(module)
    assert snippet in source, f"{module} has no {snippet!r}"
    path = folder / "broken.py"
    path.write_text("# amaranth: UnusedElaboratable=no\n" + source.replace(snippet, replacement))
    # Named as a sibling of the original, so that its relative imports work.
    spec = importlib.util.spec_from_file_location(f"{module.rpartition('.')[0]}.broken", path)
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return getattr(copy, class_name)


def tailors(block):
    return TailorsAgainstModel(block(width=1, entries=3, queue_depth=2))


def as_buffet(block):
    return TailorsAsBuffet(block(width=1, entries=2, queue_depth=2), Buffet(width=1, entries=2, queue_depth=2))


def buffet(block):
    return BuffetAgainstModel(block(width=1, entries=3, queue_depth=2))


def arbiter(block):
    return ArbiterContract(block(count=3))


def queue(block):
    return QueueContract(block(shape=2, depth=3), depth=3, latency=1)


def skid_rules(block):
    return StreamRules(block(shape=2))


BUS = {"data_width": 64, "address_width": 13, "id_width": 1, "outstanding": 2, "burst_beats": 4}


def read_bus(block):
    return ReadManager(block(readers=2, reader_depth=(8, 3), **BUS))


def read_client(block):
    return ReadManager(block(readers=2, reader_depth=(8, 3), **BUS), follow=0)


def write_bus(block):
    return WriteManager(block(writers=2, writer_depth=(8, 3), **BUS))


def write_client(block):
    return WriteManager(block(writers=2, writer_depth=(8, 3), **BUS), follow=0)


def registers(block):
    return RegisterPort(block(address_width=40, parameters=dict.fromkeys(DESIGN_PARAMETERS, 1)), words={})


def dispatcher(block):
    return DispatcherContract(block(elements=2, radix=2, address_width=16, slots=1))


def merge(block):
    return MergeContract(block(radix=2, jobs=2))


def sorted_jobs(block):
    return SortedJobs(block(radix=2, jobs=2), jobs=1, longest=2, within=12)


def cell_rules(block):
    return StreamRules(block(lanes=2, address_width=12), steady=("map",), held=("index",))


def lookup_rules(block):
    sizes = {"lanes": 2, "address_width": 8, "line_address_width": 4, "pending": 8}
    settings = ("streaming", "unit", "metadata_line", "pointers", "elements")
    return StreamRules(block(**sizes), steady=settings, meant={"leaves": present_leaf})


def pairs(block):
    return CombinerContract(block(value="int32"), reduces=2)


#: name -> (module, class, spec, depth, source snippet, what it becomes)
TAILORS = ("rtl.buffer.tailors", "TailorsBuffer", tailors, 14)
ARBITER = ("rtl.lib.arbiter", "RoundRobinArbiter", arbiter, 8)
QUEUE = ("rtl.lib.stream", "StreamQueue", queue, 8)
SKID = ("rtl.lib.stream", "StreamSkid", skid_rules, 6)
AS_BUFFET = ("rtl.buffer.tailors", "TailorsBuffer", as_buffet, 14)
BUFFET = ("rtl.buffer.buffet", "Buffet", buffet, 12)
READ_BUS = ("rtl.memory.read_engine", "ReadEngine", read_bus, 14)
READ_CLIENT = ("rtl.memory.read_engine", "ReadEngine", read_client, 10)
WRITE_BUS = ("rtl.memory.write_engine", "WriteEngine", write_bus, 14)
WRITE_CLIENT = ("rtl.memory.write_engine", "WriteEngine", write_client, 10)
REGISTERS = ("rtl.regs.axi_lite", "RegisterFile", registers, 12)
DISPATCHER = ("rtl.network.dispatcher", "Dispatcher", dispatcher, 20)
MERGE = ("rtl.pe.merge_tree", "MergeTree", merge, 10)
SORTED = ("rtl.pe.merge_tree", "MergeTree", sorted_jobs, 14)
CELLS = ("rtl.tiling.tile_map", "TileMap", cell_rules, 8)
LOOKUP = ("rtl.accessor.lookup", "FiberLookup", lookup_rules, 8)
PAIRS = ("rtl.pe.combiner", "PairCombiner", pairs, 10)
FAULTS = {
    "tailors_cursor_never_wraps": (*TAILORS, " & (cursor + 1 == capacity)", " & Const(0)"),
    "tailors_offset_never_wraps": (*TAILORS, "offset_wraps = next_offset == bumped", "offset_wraps = Const(0)"),
    "tailors_no_rotation": (*TAILORS, "rotation.eq(slot)", "rotation.eq(0)"),
    "tailors_read_too_early": (
        *TAILORS,
        "(position[:-1] < following) & ~wraps_below)",
        "(position[:-1] <= following) & ~wraps_below)",
    ),
    "tailors_region_wraps_late": (*TAILORS, "inside & ~rolled_in[-1]", "inside & (rolled_in > 0)"),
    "tailors_split_keeps_all": (*TAILORS, "(appending | splitting | frees)", "(appending | frees)"),
    "tailors_backfill_has_credit": (*TAILORS, "Mux(overbooked | backfilling, 0,", "Mux(overbooked, 0,"),
    "tailors_robs_the_read": (*TAILORS, "(self.read.payload == oldest)", "(self.read.payload == 0)"),
    "tailors_shrink_keeps_head": (*TAILORS, "m.d.sync += head.eq(moved)", "m.d.sync += head.eq(head)"),
    "tailors_pointers_of_later": (*TAILORS, "arrives_at[1].eq(arrives_at[0])", "arrives_at[1].eq(cursor)"),
    "arbiter_favours_the_lowest": (*ARBITER, "lowest_set(preferred)", "lowest_set(self.requests)"),
    "arbiter_forgets_when_unused": (*ARBITER, "self.advance & self.requests.any()", "self.requests.any()"),
    "arbiter_grants_all": (*ARBITER, "lowest_set(self.requests))", "self.requests)"),
    "queue_full_takes_more": (*QUEUE, "self.level != self.depth", "self.level <= self.depth"),
    "queue_index_never_wraps": (*QUEUE, "return Mux(index == depth - 1, 0, index + 1)", "return index + 1"),
    "skid_changes_its_offer": (*SKID, "self.o.ready | ~self.o.valid", "self.o.ready | ~self.o.valid | self.i.valid"),
    "as_buffet_forgets_updates": (*AS_BUFFET, "updates[1] | enters[1]", "enters[1]"),
    "buffet_head_never_wraps": (*BUFFET, "head.eq(wrapped(head + amount))", "head.eq(head + amount)"),
    "buffet_shrinks_too_far": (*BUFFET, "frees = shrinking & ~remaining[-1]", "frees = shrinking"),
    "read_one_too_many": (*READ_BUS, "(flying != self.outstanding)", "(flying != self.outstanding + 1)"),
    "read_longer_burst": (
        *READ_BUS,
        "command.i.payload.len.eq(chosen.beats - 1)",
        "command.i.payload.len.eq(chosen.beats)",
    ),
    "read_other_client": (*READ_CLIENT, "arrived & (arrived_id == n)", "arrived & (arrived_id != n)"),
    "write_last_too_late": (*WRITE_BUS, "sent == order.o.payload.beats - 1", "sent == order.o.payload.beats"),
    "write_before_command": (*WRITE_BUS, "order.i.valid.eq(bus.awvalid & bus.awready)", "order.i.valid.eq(issue)"),
    "write_behind_the_window": (*WRITE_BUS, "(last_line >= end)", "(last_line > end)"),
    "write_after_one_was_held_back": (*WRITE_BUS, "                closed.eq(1),\n", ""),
    "write_idle_too_early": (*WRITE_CLIENT, " & (pending == 0)", ""),
    "registers_forget_an_answer": (*REGISTERS, "with m.If(bus.rready):", "with m.If(~combine):"),
    "registers_answer_changes": (*REGISTERS, "(~bus.bvalid | bus.bready)", "1"),
    "dispatcher_job_too_long": (
        *DISPATCHER,
        "self.leaves.valid & (count == radix)",
        "self.leaves.valid & (count > radix)",
    ),
    "dispatcher_repeats_a_leaf": (*DISPATCHER, "holding.eq(0), count.eq(0)", "count.eq(0)"),
    "dispatcher_drops_a_leaf": (*DISPATCHER, "with m.If(sent | ~holding):", "with m.If(1):"),
    "merge_ends_with_one_leaf": (*MERGE, "begun.eq(~ends)", "begun.eq(0)"),
    "merge_pops_both": (*MERGE, "children.pop_right.eq(serve & takes_right)", "children.pop_right.eq(serve)"),
    "sorted_invents_one": (*SORTED, "noted_right.eq(right_over | (takes_right & chosen.last))", "noted_right.eq(0)"),
    "sorted_loses_the_end": (*SORTED, "job.payload <= self.radix // 2", "job.payload < self.radix // 2"),
    "tile_map_withdraws": (*CELLS, "with m.If(self.read_request.ready):", "with m.If(1):"),
    "lookup_does_not_wait": (*LOOKUP, "oldest.o.ready.eq(known & out.ready)", "oldest.o.ready.eq(known)"),
    "pairs_across_jobs": (*PAIRS, "held.valid & ~held.last & self.i.valid", "held.valid & self.i.valid"),
    "pairs_lose_the_end": (*PAIRS, "held.last | (pair & self.i.last)", "held.last"),
    "pairs_add_nothing": (*PAIRS, "Mux(summed, add.result, stage.value)", "stage.value"),
}


@needs_solver
@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_refuted(tmp_path, name):
    module, class_name, spec, depth, snippet, replacement = FAULTS[name]
    block = broken(tmp_path, module, class_name, snippet, replacement)
    (outcome,) = prove(Proof(name, "", lambda: spec(block), depth=depth), tmp_path)
    assert outcome.result == "fail", outcome
    assert outcome.detail, "the failed claim is named"


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


@needs_solver
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
    outcomes = prove(Proof("limited", "", spec, depth=depth, reach=3), tmp_path)
    assert [outcome.mode for outcome in outcomes] == ["bmc" if depth else "prove", "cover"]
    assert [outcome.result for outcome in outcomes] == results


@needs_solver
def test_a_proof_that_takes_too_long_is_not_passed(tmp_path):
    (outcome,) = prove(Proof("late", "", Limited, limit=0), tmp_path)
    assert outcome.result == "timeout"


def test_missing_tools_are_named(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(runner.shutil, "which", lambda *_, **__: None)
    with pytest.raises(ToolError, match="yowasp-sby is missing: pip install"):
        tools()
    monkeypatch.setattr("sys.argv", ["verif.formal", "--out", str(tmp_path), "arbiter"])
    assert main() == 3
    assert "yowasp-sby is missing" in capsys.readouterr().err


def test_unknown_names_are_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["verif.formal", "arbiter", "nothing.such"])
    assert main() == 2
    assert "nothing.such" in capsys.readouterr().err


def test_every_proof_stands_in_the_manual_as_it_is():
    page = (ROOT / "docs" / "formal.md").read_text(encoding="utf-8")
    rows = [line.rpartition(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    assert rows == [row(proof, []).rpartition(" | ")[0] for proof in catalogue()]


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
    "accessor_b": "accessor_b.streams",
    "accessor_c": "accessor_c.streams",
    "fiber_lookup": "fiber_lookup.streams",
    "segment_streamer": "segment_streamer.streams",
    "tiling_controller": "tiling_controller.streams",
    "tile_map": "tile_map.streams",
    "window_table": "window_table.streams",
    "dispatcher": "dispatcher.streams",
    "collector": "collector.streams",
    "memory_fetch": "memory_fetch.streams",
    "merge_tree": "merge_tree.radix4",
    "gustavson_pe": "gustavson_pe.streams",
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
