"""Every check of a block of the converter, and the classes that it takes: a faulty one can be given in their place."""

from tests.rtl.mint.converter.decoding import (
    check_entry_filter,
    check_fields,
    check_place_scanner,
    check_position_maker,
    check_row_expander,
    check_run_decoder,
    check_value_matcher,
)
from tests.rtl.mint.converter.encoding import (
    check_beat_builder,
    check_block_filler,
    check_block_finder,
    check_cell_finder,
    check_row_pointers,
    check_run_encoder,
)
from tests.rtl.mint.converter.growing import (
    check_fibers,
    check_tensor_cells,
    check_tensor_fields,
    check_tensor_filter,
    check_tensor_positions,
    check_tree_nodes,
)
from tests.rtl.mint.converter.region_checks import check_region_reader, check_region_writer
from tests.rtl.mint.converter.transposing import (
    check_beat_merger,
    check_bucket_bank,
    check_bucket_starts,
    check_digit_counter,
    check_lane_router,
    check_pass_plan,
    check_record_memory,
    check_record_router,
    check_scratch_sram,
    check_transposer,
    check_update_sram,
)

#: Name of a check -> modules and classes that it takes.
CHECKS = {
    check_fields: (("fields", "FieldSplitter"), ("fields", "FieldJoiner")),
    check_position_maker: (("position_maker", "PositionMaker"),),
    check_row_expander: (("row_expander", "RowExpander"),),
    check_run_decoder: (("run_decoder", "RunDecoder"),),
    check_place_scanner: (("place_scanner", "PlaceScanner"),),
    check_value_matcher: (("value_matcher", "ValueMatcher"),),
    check_entry_filter: (("entry_filter", "EntryFilter"),),
    check_cell_finder: (("cell_finder", "CellFinder"),),
    check_block_finder: (("block_finder", "BlockFinder"),),
    check_block_filler: (("block_filler", "BlockFiller"),),
    check_row_pointers: (("row_pointers", "RowPointers"),),
    check_run_encoder: (("run_encoder", "RunEncoder"),),
    check_beat_builder: (("beat_builder", "BeatBuilder"),),
    check_tensor_fields: (("fields", "FieldSplitter"),),
    check_tensor_positions: (("position_maker", "PositionMaker"),),
    check_tensor_filter: (("entry_filter", "EntryFilter"),),
    check_tensor_cells: (("cell_finder", "CellFinder"),),
    check_fibers: (("block_finder", "BlockFinder"),),
    check_tree_nodes: (("tree_nodes", "TreeNodes"),),
    check_region_writer: (("regions", "RegionWriter"),),
    check_region_reader: (("regions", "RegionReader"),),
    check_update_sram: (("update_sram", "UpdateSram"),),
    check_digit_counter: (("digit_counter", "DigitCounter"),),
    check_lane_router: (("lane_router", "LaneRouter"),),
    check_bucket_bank: (("bucket_bank", "BucketBank"),),
    check_bucket_starts: (("bucket_starts", "BucketStarts"),),
    check_beat_merger: (("beat_merger", "BeatMerger"),),
    check_scratch_sram: (("scratch_sram", "ScratchSram"),),
    check_record_memory: (("record_memory", "RecordMemory"),),
    check_record_router: (("record_router", "RecordRouter"),),
    check_pass_plan: (("pass_plan", "PassPlan"),),
    check_transposer: (("transposer", "Transposer"),),
}
