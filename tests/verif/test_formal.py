# amaranth: UnusedElaboratable=no
"""The formal proofs: that they are named and documented once, and that each kind of them can fail.

Faults are planted in copies of the blocks' source. A snippet that no longer occurs fails the test: rewrite the fault.
"""

import importlib.util
from pathlib import Path

import pytest

from gen.yosys import ToolError
from verif.formal.catalogue import catalogue
from verif.formal.prove import Proof, prove, tools
from verif.formal.spec_arbiter import ArbiterContract
from verif.formal.spec_tailors import TailorsAgainstModel
from verif.formal.spec_streams import QueueContract

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


def arbiter(block):
    return ArbiterContract(block(count=3))


def queue(block):
    return QueueContract(block(shape=2, depth=3), depth=3, latency=1)


#: name -> (module, class, spec, depth, source snippet, what it becomes)
TAILORS = ("rtl.buffer.tailors", "TailorsBuffer", tailors, 14)
ARBITER = ("rtl.lib.arbiter", "RoundRobinArbiter", arbiter, 8)
QUEUE = ("rtl.lib.stream", "StreamQueue", queue, 8)
FAULTS = {
    "tailors_cursor_never_wraps": (*TAILORS, "following(write_place, capacity)", "(write_place + 1)[:place_width]"),
    "tailors_offset_never_wraps": (*TAILORS, "Mux(bounded & (offset + 1 == bumped), 0, offset + 1)", "offset + 1"),
    "tailors_no_rotation": (*TAILORS, "Mux(region_full & ~below, slot, 0)", "0"),
    "tailors_read_too_early": (*TAILORS, "(distance < present)", "(distance <= present)"),
    "tailors_region_wraps_late": (*TAILORS, "inside & ~reduced[-1]", "inside & (reduced > 0)"),
    "tailors_split_keeps_all": (*TAILORS, "regular.eq(kept), ", ""),
    "tailors_backfill_has_credit": (*TAILORS, "Mux(overbooked | backfilling, 0,", "Mux(overbooked, 0,"),
    "tailors_robs_the_read": (*TAILORS, "(position == offset) | unreleased[0]", "(position == 0) | unreleased[0]"),
    "tailors_shrink_keeps_head": (*TAILORS, "m.d.sync += head.eq(moved)", "m.d.sync += head.eq(head)"),
    "tailors_pointers_of_later": (*TAILORS, "arrives_at[1].eq(arrives_at[0])", "arrives_at[1].eq(write_place)"),
    "arbiter_favours_the_lowest": (*ARBITER, "lowest_set(preferred)", "lowest_set(self.requests)"),
    "arbiter_forgets_when_unused": (*ARBITER, "self.advance & self.requests.any()", "self.requests.any()"),
    "arbiter_grants_all": (*ARBITER, "lowest_set(self.requests))", "self.requests)"),
    "queue_full_takes_more": (*QUEUE, "self.level != self.depth", "self.level <= self.depth"),
    "queue_index_never_wraps": (*QUEUE, "return Mux(index == depth - 1, 0, index + 1)", "return index + 1"),
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
