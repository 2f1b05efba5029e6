"""Faults planted in copies of the blocks' source. Each proof that is named here must refute those that are its own.

A fault is looked for with the very spec of the proof, as far as the proof looks. A snippet that no longer occurs in the source
is an error: rewrite the fault.
"""

import importlib.util
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from .prove import BMC, Outcome, Proof, run_parts

__all__ = ["Fault", "faults", "refute"]


@dataclass(frozen=True)
class Place:
    """Where faults are planted: module and class of the block, and the proof that must see them.

    ``part`` is the module of a block within it, where the snippet stands there.
    """

    proof: str
    module: str
    block: str
    part: str = ""

    @property
    def source(self) -> str:
        """The module in whose source the snippet stands."""
        return self.part or self.module


@dataclass(frozen=True)
class Fault:
    """A change of the source that breaks what a proof claims.

    Parameters
    ----------
    name: of the fault.
    place: block and proof.
    snippet, replacement: text of the block's source, and what it becomes wherever it stands.
    long: refuted after minutes, not seconds.
    """

    name: str
    place: Place
    snippet: str
    replacement: str
    long: bool = False

    def block(self, folder: Path) -> Any:
        """The class from a copy of its source with the snippet replaced; the copies are kept in the folder.

        Where the snippet stands in a part, the block's copy is as the original, but with the broken part in it.
        """
        folder.mkdir(parents=True, exist_ok=True)
        source = _text(self.place.source)
        if self.snippet not in source:
            raise ValueError(f"Fault {self.name}: {self.place.source} has no {self.snippet!r}")
        broken = _copy(self.place.source, source.replace(self.snippet, self.replacement), folder / f"{self.name}.py")
        if not self.place.part:
            return getattr(broken, self.place.block)
        whole = _copy(self.place.module, _text(self.place.module), folder / f"{self.name}_whole.py")
        for name in broken.__all__:
            if hasattr(whole, name):
                setattr(whole, name, getattr(broken, name))
        return getattr(whole, self.place.block)


def _text(module: str) -> str:
    """Source of a module."""
    found = importlib.util.find_spec(module)
    assert found is not None and found.origin is not None
    return Path(found.origin).read_text(encoding="utf-8")


def _copy(module: str, text: str, path: Path) -> ModuleType:
    """A module of this text, in a file of its own."""
    path.write_text("# amaranth: UnusedElaboratable=no\n" + text, encoding="utf-8")
    # Named as a sibling of the original, so that its relative imports work.
    spec = importlib.util.spec_from_file_location(f"{module.rpartition('.')[0]}.{path.stem}", path)
    assert spec is not None and spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy


def refute(fault: Fault, proof: Proof, folder: Path) -> Outcome:
    """Looks for an execution that breaks a claim of the proof; ``fail`` means that there is one: the fault is refuted.

    Of a proof by induction, in executions twice as long as its covers need.
    """
    depth = proof.depth or 2 * proof.reach
    sought = Proof(fault.name, fault.name, proof.spec, depth=depth, limit=proof.limit)
    (outcome,) = run_parts(sought, proof.spec(block=fault.block(folder)), [("bmc", BMC, depth)], folder)
    return outcome


TAILORS = Place("tailors.entries3", "rtl.buffer.tailors", "TailorsBuffer")
REGION, ENTRIES, PLACES, PRESENCE = (
    replace(TAILORS, part=f"rtl.buffer.{part}")
    for part in ("fifo_region", "tailors_entries", "tailors_places", "tailors_lookup")
)
ARBITER = Place("arbiter.count3", "rtl.lib.arbiter", "RoundRobinArbiter")
QUEUE = Place("stream_queue.depth3", "rtl.lib.stream", "StreamQueue")
DEEP_QUEUE = Place("deep_queue.contract", "rtl.lib.deep_queue", "DeepQueue")
SKID = Place("stream_skid.contract", "rtl.lib.stream", "StreamSkid")
READ_ADDRESSES = Place("read_engine.addresses", "rtl.memory.read_engine", "ReadEngine")
WRITE_ADDRESSES = Place("write_engine.addresses", "rtl.memory.write_engine", "WriteEngine")
AS_BUFFET = Place("tailors.as_buffet2", "rtl.buffer.tailors", "TailorsBuffer")
# Three entries: a cursor that wraps by itself at a power of two does not at this one.
CURSOR = replace(AS_BUFFET, proof="tailors.as_buffet3", part=ENTRIES.part)
BUFFET = Place("buffet.entries3", "rtl.buffer.buffet", "Buffet")
READ_BUS = Place("read_engine.bus", "rtl.memory.read_engine", "ReadEngine")
READ_CLIENT = Place("read_engine.client0", "rtl.memory.read_engine", "ReadEngine")
READ_SMALL_CLIENT = Place("read_engine.client1", "rtl.memory.read_engine", "ReadEngine")
WRITE_BUS = Place("write_engine.bus", "rtl.memory.write_engine", "WriteEngine")
WRITE_BEATS, WRITE_WINDOW = (replace(WRITE_BUS, part=f"rtl.memory.{part}") for part in ("beat_sender", "window_guard"))
WRITE_CLIENT = Place("write_engine.client0", "rtl.memory.write_engine", "WriteEngine", part="rtl.memory.write_client")
REGISTERS = Place("registers.bus", "rtl.regs.axi_lite", "RegisterFile")
DISPATCHER = Place("dispatcher.contract", "rtl.network.dispatcher", "Dispatcher", part="rtl.network.row_grouper")
MERGE = Place("merge_tree.radix2", "rtl.pe.merge_tree", "MergeTree")
SORTED = Place("merge_tree.sorted2", "rtl.pe.merge_tree", "MergeTree")
CELLS = Place("tile_map.streams", "rtl.tiling.tile_map", "TileMap")
LOOKUP = Place("fiber_lookup.streams", "rtl.accessor.lookup", "FiberLookup")
PAIRS = Place("pair_combiner.contract", "rtl.pe.combiner", "PairCombiner")
UNPACKER = Place("bit_unpacker.beyond", "rtl.mint.bit_unpacker", "BitUnpacker")
PLANNER = replace(UNPACKER, part="rtl.mint.step_planner")
PACKER = Place("bit_packer.beyond", "rtl.mint.bit_packer", "BitPacker")
RECORDS = Place("record_packer.packed", "rtl.mint.record_packer", "RecordPacker")
PLAIN_RECORDS = replace(RECORDS, proof="record_packer.plain")
READER = Place("record_reader.lane1", "rtl.mint.reader.record_reader", "RecordReader")
RANGES = Place("line_range.lane1", "rtl.mint.reader.line_range", "LineRange")
ONE_CARRY = Place("shared_beats.carries1", "rtl.mint.reader.shared_beats", "SharedBeats")
CARRIES = replace(ONE_CARRY, proof="shared_beats.carries2")
JOINER = Place("part_joiner.parts4", "rtl.memory.line_parts", "PartJoiner")
SPLITTER = Place("line_splitter.parts4", "rtl.memory.line_parts", "LineSplitter")
RESTORING = Place("restoring_divmod.bits1", "rtl.mint.divmod", "RestoringDivmod")
RECIPROCAL = Place("reciprocal_divmod.width8", "rtl.mint.divmod", "ReciprocalDivmod")
CHAIN = Place("prefix_sum.serial_chain8", "rtl.mint.prefix_sum.serial_chain", "SerialChainSum")
TREES = Place("prefix_sum.work_efficient", "rtl.mint.prefix_sum.work_efficient", "WorkEfficientSum")
DOUBLING = Place("prefix_sum.highly_parallel8", "rtl.mint.prefix_sum.highly_parallel", "HighlyParallelSum")
SORTER = Place("sorter.inputs4", "rtl.mint.sorter", "Sorter")
RUNS = Place("cluster_counter.inputs8", "rtl.mint.cluster_counter", "ClusterCounter")
TREE = Place("tree_builder.inputs2", "rtl.mint.tree_builder", "TreeBuilder")
FLAGS = Place("block_flags.inputs2", "rtl.mint.block_flags", "BlockFlags")

# A client may ask for two beats more than its queue holds.
TWO_BEATS_MORE = (
    "            credit_limit=depth,\n            credit_init=depth,\n",
    "            credit_limit=depth + 2,\n            credit_init=depth + 2,\n",
)

FAULTS: dict[str, tuple[Place, str, str]] = {
    "tailors_cursor_never_wraps": (CURSOR, " & (self.tail + 1 == capacity)", " & (self.tail != self.tail)"),
    "tailors_offset_never_wraps": (REGION, "offset_wraps = next_offset == bumped", "offset_wraps = Const(0)"),
    "tailors_no_rotation": (PLACES, "rotation.eq(self.fifo_place)", "rotation.eq(0)"),
    "tailors_read_too_early": (
        PRESENCE,
        "comes = position[:-1] < self.following",
        "comes = position[:-1] <= self.following",
    ),
    "tailors_region_wraps_late": (PLACES, "in_region & ~rolled_in[-1]", "in_region & (rolled_in > 0)"),
    "tailors_split_keeps_all": (ENTRIES, "(append | verb.split | self.frees)", "(append | self.frees)"),
    "tailors_backfill_has_credit": (TAILORS, "Mux(overbooked | backfilling, 0,", "Mux(overbooked, 0,"),
    "tailors_robs_the_read": (PRESENCE, "(self.read_index == self.oldest)", "(self.read_index == 0)"),
    "tailors_shrink_keeps_head": (ENTRIES, "self.head.eq(moved)", "self.head.eq(self.head)"),
    "tailors_pointers_of_later": (PLACES, "arrives_at[1].eq(arrives_at[0])", "arrives_at[1].eq(self.tail)"),
    "arbiter_favours_the_lowest": (ARBITER, "lowest_set(preferred)", "lowest_set(self.requests)"),
    "arbiter_forgets_when_unused": (ARBITER, "self.advance & self.requests.any()", "self.requests.any()"),
    "arbiter_grants_all": (ARBITER, "lowest_set(self.requests))", "self.requests)"),
    "queue_full_takes_more": (QUEUE, "self.i.ready.eq(~full)", "self.i.ready.eq(1)"),
    "queue_index_never_wraps": (QUEUE, "return Mux(index == depth - 1, 0, index + 1)", "return index + 1"),
    "skid_changes_its_offer": (SKID, "self.o.ready | ~self.o.valid", "self.o.ready | ~self.o.valid | self.i.valid"),
    "as_buffet_forgets_updates": (replace(AS_BUFFET, part=PLACES.part), "updates[1] | enters[1]", "enters[1]"),
    "buffet_head_never_wraps": (BUFFET, "head.eq(wrapped(head + amount))", "head.eq(head + amount)"),
    "buffet_shrinks_too_far": (BUFFET, "frees = shrinking & ~remaining[-1]", "frees = shrinking"),
    "read_one_too_many": (READ_BUS, "(flying != self.outstanding)", "(flying != self.outstanding + 1)"),
    "read_longer_burst": (
        READ_BUS,
        "command.i.payload.len.eq(chosen.beats - 1)",
        "command.i.payload.len.eq(chosen.beats)",
    ),
    "read_other_client": (READ_CLIENT, "arrived & (arrived_id == n)", "arrived & (arrived_id != n)"),
    "write_last_too_late": (WRITE_BEATS, "last.eq(left == 2)", "last.eq(left == 1)"),
    "write_before_command": (
        WRITE_BUS,
        "sender.bursts.valid.eq(bus.awvalid & bus.awready)",
        "sender.bursts.valid.eq(issue)",
    ),
    "write_behind_the_window": (WRITE_WINDOW, "(last_line >= self.end_line)", "(last_line > self.end_line)"),
    "write_after_one_was_held_back": (WRITE_WINDOW, "                self.closed.eq(1),\n", ""),
    "write_idle_too_early": (WRITE_CLIENT, " & (pending == 0)", ""),
    "read_address_loses_a_carry": (
        READ_ADDRESSES,
        "command.i.payload.line.eq(chosen.line)",
        "command.i.payload.line.eq(chosen.line[:29])",
    ),
    "write_address_loses_a_carry": (
        WRITE_ADDRESSES,
        "bus.awaddr.eq(present.burst.line << self.line_shift)",
        "bus.awaddr.eq((present.burst.line << self.line_shift)[:32])",
    ),
    "registers_forget_an_answer": (REGISTERS, "with m.If(bus.rready):", "with m.If(~combine):"),
    "registers_answer_changes": (REGISTERS, "(~bus.bvalid | bus.bready)", "1"),
    "dispatcher_job_too_long": (
        DISPATCHER,
        "full.eq(count[-1])",
        "full.eq(count[-1] & count[0])",
    ),
    "dispatcher_repeats_a_leaf": (DISPATCHER, "holding.eq(0), count.eq(0)", "count.eq(0)"),
    "dispatcher_drops_a_leaf": (DISPATCHER, "with m.If(sent | ~holding):", "with m.If(1):"),
    "merge_ends_with_one_leaf": (MERGE, "begun.eq(~ends)", "begun.eq(0)"),
    "merge_pops_both": (MERGE, "children.pop_right.eq(serve & takes_right)", "children.pop_right.eq(serve)"),
    "sorted_invents_one": (SORTED, "noted_right.eq(right_over | (takes_right & chosen.last))", "noted_right.eq(0)"),
    "sorted_loses_the_end": (SORTED, "job.payload <= self.radix // 2", "job.payload < self.radix // 2"),
    "tile_map_withdraws": (CELLS, "with m.If(self.read_request.ready):", "with m.If(1):"),
    "lookup_does_not_wait": (LOOKUP, "oldest.o.ready.eq(known & out.ready)", "oldest.o.ready.eq(known)"),
    "pairs_across_jobs": (PAIRS, "held.valid & ~held.last & self.i.valid", "held.valid & self.i.valid"),
    "pairs_lose_the_end": (PAIRS, "held.last | (pair & self.i.last)", "held.last"),
    "pairs_add_nothing": (PAIRS, "Mux(summed, add.result, stage.value)", "stage.value"),
    "unpacker_takes_too_many": (PLANNER, "now.beyond & ~end[beat]", "now.beyond"),
    "unpacker_frees_what_is_needed": (PLANNER, "beyond & plan.last)", "beyond)"),
    "packer_drops_the_rest": (PACKER, "Mux(now.emits, window[self.beat_bits :], filled)", "Mux(now.emits, 0, filled)"),
    "records_lose_a_cut_beat": (RECORDS, "beat.data | Mux(first, kept, 0)", "beat.data"),
    "records_keep_old_bits": (RECORDS, "Mux(first, kept, 0)", "kept"),
    "records_go_on_from_0": (RECORDS, "payload.start.eq(next_bit)", "payload.start.eq(0)"),
    "records_miscount_a_cut_beat": (
        RECORDS,
        "with m.Else():\n                m.d.sync += index",
        "with m.If(1):\n                m.d.sync += index",
    ),
    "records_end_a_flush_early": (RECORDS, "(gone & beat.last) | nothing", "gone | nothing"),
    "records_taken_in_a_flush": (RECORDS, "packer.groups.ready & opened & ~flushing", "packer.groups.ready & opened"),
    "records_plain_halves_change_places": (
        PLAIN_RECORDS,
        "Cat(nonzero.coordinate, nonzero.value), packed",
        "Cat(nonzero.value, nonzero.coordinate), packed",
    ),
    "reader_takes_every_beat_anew": (
        READER,
        "asked.i.payload.beats.eq(want.reads)",
        "asked.i.payload.beats.eq(want.beats)",
    ),
    "reader_begins_with_the_beat": (READER, "records.drop.eq(want.drop)", "records.drop.eq(0)"),
    "reader_kind_of_the_next": (
        READER,
        "groups.valid & groups.ready & groups.payload.last",
        "groups.valid & groups.ready",
    ),
    "reader_cuts_a_coordinate": (READER, "record, record[bits:])", "record, record[bits : bits + 28])"),
    "ranges_share_a_whole_beat": (RANGES, "item.follows & (drop != 0)", "item.follows"),
    "ranges_read_what_is_shared": (RANGES, '"reads": beats - shared', '"reads": beats'),
    "ranges_end_too_late": (RANGES, "item.length + (RECORD_WIDTH - 1)", "item.length + RECORD_WIDTH"),
    "ranges_plain_from_the_base": (RANGES, "Mux(item.plain, 0, self.base)", "self.base"),
    "shared_beat_out_of_memory": (ONE_CARRY, "Mux(repeats, kept, self.read_data.payload)", "self.read_data.payload"),
    "shared_beat_of_another_time": (ONE_CARRY, "with m.If(keeps):", "with m.If(self.read_data.valid):"),
    "shared_beat_eats_one": (
        ONE_CARRY,
        "self.requests.valid & ~repeats & self.beats.ready",
        "self.requests.valid & self.beats.ready",
    ),
    "shared_beat_of_another_carry": (
        CARRIES,
        "bank.write_address.eq(self.requests.payload.carry)",
        "bank.write_address.eq(0)",
    ),
    "shared_beat_too_early": (CARRIES, "known.eq(self.requests.valid & ~keeps)", "known.eq(self.requests.valid)"),
    "joiner_misses_a_last_beat": (JOINER, "beat.last | (index == self.parts - 1)", "index == self.parts - 1"),
    "joiner_goes_on_within_a_line": (JOINER, "& ~ends.replicate(len(index))", ""),
    "joiner_loses_a_line": (JOINER, "self.beats.ready.eq(~full | self.lines.ready)", "self.beats.ready.eq(1)"),
    "splitter_takes_a_line_too_early": (SPLITTER, "index == self.parts - 1)),", "index == self.parts - 2)),"),
    "splitter_strobes_of_the_first": (SPLITTER, "line.strobe.word_select(index,", "line.strobe.word_select(0,"),
    "splitter_asks_for_too_few": (
        SPLITTER,
        "beats << (parts - 1).bit_length()",
        "beats << (parts // 2 - 1).bit_length()",
    ),
    "divides_by_zero": (RESTORING, "known.eq(self.divisor.payload != 0)", "known.eq(1)"),
    "reciprocal_is_not_corrected": (RECIPROCAL, "one_more = ~less[-1]", "one_more = Const(0, 1)"),
    "sums_chain_misses_the_last": (CHAIN, "range(1, inputs)", "range(1, inputs - 1)"),
    "sums_tree_misses_a_block": (TREES, "reversed(strides[:-1])", "reversed(strides[:-2])"),
    "sums_double_from_too_far": (DOUBLING, "range(stride, inputs)", "range(stride + 1, inputs)"),
    "sorter_moves_equal_keys": (SORTER, "Cat(item.lane, item.key, ~item.present)", "Cat(item.key, ~item.present)"),
    "sorter_takes_absent_for_present": (SORTER, "Cat(item.lane, item.key, ~item.present)", "Cat(item.lane, item.key)"),
    "sorter_skips_a_merge": (SORTER, "            distance //= 2", "            distance //= 4"),
    "runs_through_absent_lanes": (RUNS, "here.present & before.present & ", ""),
    "runs_lose_their_tail": (RUNS, "~other[level], other[level])", "~other[level])"),
    "flags_of_the_row_before": (FLAGS, "Mux(self.o.payload.last, 0, self.o.payload.flags)", "self.o.payload.flags"),
    "flags_forget_in_a_pause": (FLAGS, "m.If(advance & arrives)", "m.If(advance)"),
    "flags_fresh_twice": (FLAGS, " & ~repeats[lane]", ""),
    "tree_of_the_tensor_before": (TREE, "(vector.count != 0)) & ~vector.last", "(vector.count != 0))"),
    "tree_fiber_goes_on_in_another": (
        TREE,
        "here[self.width :] != before[self.width :]",
        "item.j != before[self.width :][: self.width]",
    ),
    "tree_a_place_twice": (TREE, "(here <= before)", "(here < before)"),
    "tree_flags_run_off": (TREE, "with m.If(sums.i.ready):", "with m.If(1):"),
    "read_room_for_two_more": (READ_SMALL_CLIENT, *TWO_BEATS_MORE),
    "deep_queue_overtakes": (DEEP_QUEUE, "(spill.level == 0) & back.i.ready", "(spill.level == 0)"),
    "deep_queue_takes_twice": (DEEP_QUEUE, "self.i.valid & ~(straight & front.i.ready)", "self.i.valid"),
}
#: Refuted after minutes: by `make formal-faults` alone.
LONG = frozenset(
    ("tailors_cursor_never_wraps", "tailors_no_rotation", "tailors_region_wraps_late", "tailors_backfill_has_credit")
)


def faults() -> list[Fault]:
    """All of them; their names are unique."""
    return [Fault(name, *planted, long=name in LONG) for name, planted in FAULTS.items()]
