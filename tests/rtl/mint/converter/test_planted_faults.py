# amaranth: UnusedElaboratable=no
"""The checks of the converter's blocks find faults planted in their sources.

Each fault replaces one snippet of a block's source; each sixth one is planted in each run, all in long ones.
"""

import pytest

from tests.rtl.mint.converter import checks
from tests.rtl.planted import assert_present, planted
from tests.tools import some_of

pytestmark = pytest.mark.plants

#: name -> (check, module, source snippet, what it becomes)
FAULTS = {
    "first_number_unmasked": (checks.check_fields, "fields", "ids[:COORDINATE_BITS] & first_mask", "ids[:COORDINATE_BITS]"),
    "last_row_is_outside": (checks.check_position_maker, "position_maker", "row >= self.rows", "row > self.rows"),
    "upper_half_of_row_lost": (checks.check_position_maker, "position_maker", "(high << half)", "(high << (half - 1))"),
    "entry_of_next_row": (checks.check_row_expander, "row_expander", "marks[k] <= entry", "marks[k] < entry"),
    "entries_twice": (checks.check_row_expander, "row_expander", "(entry >= floor) & ", ""),
    "pointers_may_fall": (checks.check_row_expander, "row_expander", "falls.any()\n", "(falls & 0).any()\n"),
    "first_pointer_unseen": (checks.check_row_expander, "row_expander", "(marks[0] != 0)", "(marks[0] == 77)"),
    "run_without_its_level": (checks.check_run_decoder, "run_decoder", "group.first[n] + 1, 0)", "group.first[n], 0)"),
    "last_place_is_outside": (checks.check_run_decoder, "run_decoder", "total > self.places", "total >= self.places"),
    "short_filler_unseen": (checks.check_run_decoder, "run_decoder", "wrong.eq(short | ends)", "wrong.eq(ends)"),
    "places_behind_the_last": (checks.check_place_scanner, "chunk_picker", "few > n for n", "few >= n for n"),
    "chunk_left_out": (checks.check_place_scanner, "chunk_picker", "~(due.any() | ends)) & ~more", "~(due.any() | ends))"),
    "ranks_begin_at_zero": (checks.check_place_scanner, "place_scanner", "taken + n + 1", "taken + n"),
    "last_values_not_awaited": (checks.check_value_matcher, "value_matcher", "self.values.valid)))", "1)))"),
    "values_behind_unseen": (checks.check_value_matcher, "value_matcher", "mismatch.eq(short | surplus)", "mismatch.eq(short)"),
    "hangs_without_values": (checks.check_value_matcher, "value_matcher", "dry.eq(stored.last)", "dry.eq(0)"),
    "same_place_twice": (checks.check_entry_filter, "entry_filter", "<= previous", "< previous"),
    "negative_zero_kept": (checks.check_entry_filter, "entry_filter", "value_bits - self.floating", "value_bits"),
    "gap_not_closed": (checks.check_entry_filter, "entry_filter", "ranks[k] == n", "k == n"),
    "row_of_a_pointer": (checks.check_row_pointers, "row_pointers", "group.rows[k] < here", "group.rows[k] <= here"),
    "one_entry_too_many": (checks.check_row_pointers, "row_pointers", "total > limit", "total > limit + 1"),
    "rows_behind_the_last": (checks.check_row_pointers, "row_pointers", "reach.eq(self.rows)", "reach.eq(self.rows - 1)"),
    "filler_of_run_itself": (checks.check_run_encoder, "run_encoder", ">> self.run_bits) + 1", ">> self.run_bits) + 2"),
    "run_from_last_value": (checks.check_run_encoder, "run_encoder", "group.positions[n] + 1)[", "group.positions[n])["),
    "next_beat_is_lost": (checks.check_beat_builder, "beat_builder", "reduce(or_, following)", "0"),
    "group_leaves_too_soon": (checks.check_beat_builder, "beat_builder", "~Cat(*beyond).any() & ", ""),
    "last_beat_whole": (checks.check_beat_builder, "beat_builder", "Mux(ends, last, whole)", "whole"),
    "beyond_the_space": (checks.check_region_writer, "regions", "beat.bytes <= space", "beat.bytes <= space + 1"),
    "address_stays": (checks.check_region_writer, "regions", "address.eq(address + (collected <<", "address.eq(address + (1 <<"),
    "flush_is_ignored": (checks.check_region_writer, "regions", "~open_ | (self.flush & ~self.beats.valid)", "~open_"),
    "flush_cuts_a_burst": (checks.check_region_writer, "regions", "(self.flush & ~self.beats.valid)", "self.flush"),
    "flush_goes_on": (checks.check_region_writer, "regions", "(self.flush & ~self.beats.valid)", "~self.beats.valid"),
    "request_too_long": (checks.check_region_reader, "regions", "left > REQUEST_BEATS", "left > 2 * REQUEST_BEATS"),
}  # fmt: skip
FAULTS |= {
    "update_after_update_is_lost": (
        checks.check_update_sram,
        "update_sram",
        "Mux(is_kept, kept, words.read_data)",
        "words.read_data",
    ),
    "word_of_no_update": (
        checks.check_update_sram,
        "update_sram",
        "same.eq(self.valid & (self.index == former))",
        "same.eq(self.index == former)",
    ),
    "count_is_not_cleared": (checks.check_digit_counter, "digit_counter", "Mux(clear, 0, ", "Mux(clear & 0, 0, "),
    "count_of_every_order": (checks.check_digit_counter, "digit_counter", "counters.valid & clear)", "counters.valid)"),
    "item_goes_twice": (checks.check_lane_router, "lane_router", "sent.eq(sent | goes)", "sent.eq(goes)"),
    "later_item_first": (
        checks.check_lane_router,
        "lane_router",
        "chosen.eq(lowest_set(own))",
        "chosen.eq(lowest_set(own[::-1])[::-1])",
    ),
    "group_leaves_early": (checks.check_lane_router, "lane_router", "~(waiting & ~goes).any()", "goes.any()"),
    "rest_of_a_record_is_lost": (
        checks.check_bucket_bank,
        "bucket_bank",
        "left.data.eq(spread[self.beat_bits :])",
        "left.data.eq(0)",
    ),
    "beat_at_its_border": (checks.check_bucket_bank, "bucket_bank", "covered[whole - 1 :]", "covered[whole:]"),
    "flushed_twice": (
        checks.check_bucket_bank,
        "bucket_bank",
        "moved != BucketOrder.APPEND",
        "moved == BucketOrder.DROP",
    ),
    "dropped_is_written": (
        checks.check_bucket_bank,
        "bucket_bank",
        "(moved == BucketOrder.FLUSH) &",
        "(moved != BucketOrder.APPEND) &",
    ),
    "address_of_the_record": (checks.check_bucket_bank, "bucket_bank", "place_of_line & ~(whole - 1)", "place_of_line"),
    "vectors_do_not_add": (
        checks.check_bucket_starts,
        "bucket_starts",
        "sums.o.payload.first, 0, left",
        "sums.o.payload.first, 0, 0",
    ),
    "old_sum_in_a_new_array": (
        checks.check_bucket_starts,
        "bucket_starts",
        "Mux(sums.o.payload.first, 0, left)",
        "left",
    ),
    "beat_without_its_base": (checks.check_beat_merger, "beat_merger", "self.base + beat.place", "beat.place"),
    "request_goes_twice": (
        checks.check_beat_merger,
        "beat_merger",
        "asked.eq(request_goes & ~data_goes)",
        "asked.eq(0)",
    ),
    "first_bank_always": (
        checks.check_beat_merger,
        "beat_merger",
        "arbiter.advance.eq(chosen.i.ready)",
        "arbiter.advance.eq(0)",
    ),
    "strobes_are_ignored": (checks.check_scratch_sram, "scratch_sram", "queue.o.payload.strobe & writes", "writes"),
    "idle_before_it_is_written": (
        checks.check_scratch_sram,
        "scratch_sram",
        "(to_write == 0) & (queue.level == 0)",
        "to_write == 0",
    ),
    "gap_between_requests": (
        checks.check_scratch_sram,
        "scratch_sram",
        "(left == 0) | ((left == 1) & goes)",
        "left == 0",
    ),
    "regions_do_not_alternate": (
        checks.check_pass_plan,
        "pass_plan",
        "odd = self.scattered[0]",
        "odd = self.scattered[1]",
    ),
    "scratch_in_the_order_of_the_source": (
        checks.check_pass_plan,
        "pass_plan",
        "Mux(from_scratch, by_columns",
        "Mux(from_scratch & 0, by_columns",
    ),
    "kept_that_does_not_fit": (
        checks.check_pass_plan,
        "pass_plan",
        "(counted <= self.region)",
        "(counted <= 4 * self.region)",
    ),
    "digit_stays": (checks.check_pass_plan, "pass_plan", "self.shift + settings.digits.bits", "self.shift"),
    "next_digit_is_the_present_one": (
        checks.check_record_router,
        "record_router",
        "self.shift + self.digit_bits)",
        "self.shift)",
    ),
    "digit_of_the_other_coordinate": (
        checks.check_record_router,
        "record_router",
        "cells.inner_rows[n], fields.first[n])",
        "cells.inner_rows[n], fields.second[n])",
    ),
    "lanes_without_a_cell_are_counted": (
        checks.check_record_router,
        "record_router",
        "self.entries.eq(self.entries + group.count)",
        "self.entries.eq(self.entries + self.lanes)",
    ),
    "sram_writes_to_memory": (
        checks.check_record_memory,
        "record_memory",
        "~self.to_sram & writes",
        "writes",
    ),
    "second_client_is_deaf": (
        checks.check_record_memory,
        "record_memory",
        "(~self.scatters, self.scatters)",
        "(~self.scatters, self.scatters & 0)",
    ),
    "buckets_are_not_flushed": (
        checks.check_transposer,
        "transposer",
        "BucketOrder.DROP, BucketOrder.FLUSH",
        "BucketOrder.DROP, BucketOrder.DROP",
    ),
    "end_is_missed": (
        checks.check_transposer,
        "transposer",
        "with m.If(router.ended):",
        "with m.If(router.ended & router.busy):",
    ),
    "space_is_ignored": (
        checks.check_transposer,
        "transposer",
        "self.first & (self.bytes > self.space)",
        "self.first & (self.bytes < 0)",
    ),
}
FAULTS |= {
    "rows_and_columns_mixed": (
        checks.check_block_finder,
        "block_finder",
        "Mux(self.by_row, cells[name][n], cells[other][n])",
        "cells[name][n]",
    ),
    "place_without_its_row": (checks.check_block_finder, "block_finder", "product.inner_rows[n] * wide + ", ""),
    "sides_mixed": (checks.check_block_finder, "block_finder", "self.sides.payload[name]", "self.sides.payload[other]"),
    "blocks_of_no_block": (checks.check_block_finder, "block_finder", "with m.If(divides):", "with m.If(1):"),
    "first_block_unseen": (checks.check_block_filler, "block_filler", "(~begun if not n else 0)", "0"),
    "block_goes_on_in_the_next_matrix": (
        checks.check_block_filler,
        "block_filler",
        "begun.eq((begun | used[0]) & ~group.last)",
        "begun.eq(begun | used[0])",
    ),
    "block_below_another": (
        checks.check_block_filler,
        "block_filler",
        "Cat(group.block_columns[n], group.block_rows[n])",
        "Cat(group.block_columns[n], group.block_columns[n])",
    ),
    "value_one_block_late": (
        checks.check_block_filler,
        "block_filler",
        "origin.eq(following - self.size)",
        "origin.eq(following)",
    ),
    "groups_begin_anew": (
        checks.check_block_filler,
        "block_filler",
        "end.eq(following + blocks_on",
        "end.eq(blocks_on",
    ),
    "head_of_another_block": (checks.check_block_filler, "block_filler", "ranks[k] == n + 1", "ranks[k] == n"),
    "places_without_the_last_group": (
        checks.check_block_filler,
        "block_filler",
        "self.places.eq(end)",
        "self.places.eq(following)",
    ),
    "ends_before_the_last_group": (
        checks.check_beat_builder,
        "beat_builder",
        "ends.eq(group.last & (left <= of_beat))",
        "ends.eq(left <= of_beat)",
    ),
    "row_inside_a_block_too_wide": (
        checks.check_record_router,
        "record_router",
        "Mux(self.by_block, self.inner_bits, COORDINATE_BITS)",
        "COORDINATE_BITS",
    ),
    "block_row_is_no_key": (
        checks.check_record_router,
        "record_router",
        "Mux(self.by_block, cells.block_rows[n], 0)",
        "0",
    ),
    "blocks_must_rise_by_row": (
        checks.check_pass_plan,
        "pass_plan",
        "(self.scatters | self.by_block) & from_scratch",
        "self.scatters & from_scratch",
    ),
    "rows_of_the_source": (checks.check_pass_plan, "pass_plan", "from_scratch | ~differs", "from_scratch"),
    "kept_in_the_other_order": (
        checks.check_pass_plan,
        "pass_plan",
        "Mux(differs, self.second_bits, self.first_bits)",
        "self.second_bits",
    ),
    "pointers_of_the_rows": (
        checks.check_pass_plan,
        "pass_plan",
        "self.writing.rows.eq(settings.grid_rows)",
        "self.writing.rows.eq(settings.rows)",
    ),
    "key_of_rows_without_columns": (
        checks.check_pass_plan,
        "pass_plan",
        'Mux(by_columns["source"], settings.grid_widths.inner, 0)',
        "settings.grid_widths.inner",
    ),
    "columns_are_in_order": (checks.check_pass_plan, "settings", "source | mixes", "mixes & ~source"),
}
FAULTS |= {
    "second_of_three_unmasked": (
        checks.check_tensor_fields,
        "fields",
        "second[:COORDINATE_BITS] & low_mask(self.second_bits, COORDINATE_BITS)",
        "second[:COORDINATE_BITS]",
    ),
    "third_not_moved": (checks.check_tensor_fields, "fields", "(second >> self.second_bits)", "(second >> 0)"),
    "third_is_cut": (
        checks.check_tensor_fields,
        "fields",
        "(2 if self.tensors else 1) * COORDINATE_BITS",
        "COORDINATE_BITS",
    ),
    "last_slice_is_outside": (
        checks.check_tensor_positions,
        "position_maker",
        "outer >= self.outers",
        "outer > self.outers",
    ),
    "slice_of_the_vector_before": (
        checks.check_tensor_positions,
        "position_maker",
        'kept(outer, f"outer{n}", 2)',
        'kept(outer, f"outer{n}", 1)',
    ),
    "slices_do_not_count": (
        checks.check_tensor_filter,
        "entry_filter",
        "vector.outers if self.tensors else",
        "vector.outers if 0 else",
    ),
    "slices_keep_their_gaps": (
        checks.check_tensor_filter,
        "entry_filter",
        '"outers")[: 3 if self.tensors else 2]',
        '"outers")[:2]',
    ),
    "fibers_of_blocks": (
        checks.check_fibers,
        "block_finder",
        "self.by_block | (self.by_fiber if self.fibers else 0)",
        "self.by_block",
    ),
    "fibers_of_every_matrix": (checks.check_fibers, "block_finder", "with m.If(self.by_fiber):", "with m.If(1):"),
    "largest_extent_is_cut": (
        checks.check_fibers,
        "block_finder",
        "COORDINATE_BITS + 1 if fibers else",
        "COORDINATE_BITS if fibers else",
    ),
    "quotient_and_rest_mixed": (
        checks.check_fibers,
        "block_finder",
        "found.outers[n].eq(rows.results.payload.quotients[n])",
        "found.outers[n].eq(rows.results.payload.remainders[n])",
    ),
    "slice_counts_its_fiber": (checks.check_tree_nodes, "tree_nodes", "item.fibers - 1", "item.fibers"),
    "fiber_begins_with_the_vector": (checks.check_tree_nodes, "tree_nodes", "vector.entries + n)", "vector.entries)"),
    "nodes_keep_their_gaps": (checks.check_tree_nodes, "tree_nodes", "(ranks[k] == n)", "(k == n)"),
    "last_pointer_is_missed": (
        checks.check_tree_nodes,
        "tree_nodes",
        "self.vectors.ready.eq(goes & (ends | ~vector.last))",
        "self.vectors.ready.eq(goes)",
    ),
    "last_pointer_of_the_node": (
        checks.check_tree_nodes,
        "tree_nodes",
        "number if is_ids or n else Mux(ends, total, number)",
        "number",
    ),
    "ids_without_an_end": (checks.check_tree_nodes, "tree_nodes", "begins.any() | last)", "begins.any())"),
    "ids_come_twice": (checks.check_tree_nodes, "tree_nodes", "Mux(ends, 0, begins", "Mux(ends, begins.any(), begins"),
    "output_that_waits_is_overrun": (
        checks.check_tree_nodes,
        "tree_nodes",
        "goes.eq(offered & Cat(*can).all())",
        "goes.eq(offered & Cat(*can).any())",
    ),
    "one_node_too_many": (checks.check_tree_nodes, "tree_nodes", "total > Cat(", "total - 1 > Cat("),
    "overflow_of_the_other_level": (
        checks.check_tree_nodes,
        "tree_nodes",
        "Mux(spills[0], totals[0], totals[1])",
        "Mux(spills[0], totals[1], totals[0])",
    ),
}


def test_faults_are_of_the_present_source():
    assert_present("mint.converter", [(module, *snippets) for _, module, *snippets in FAULTS.values()])


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(FAULTS, every=6))
def test_fault_is_found(name, tmp_path, monkeypatch):
    check, *fault = FAULTS[name]
    blocks = [".".join(block) for block in checks.CHECKS[check]]
    with planted(tmp_path, monkeypatch, "mint.converter", fault, *blocks) as classes, pytest.raises(AssertionError):
        check(*classes)
