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
    check_cell_finder,
    check_row_pointers,
    check_run_encoder,
)
from tests.rtl.mint.converter.region_checks import check_region_reader, check_region_writer

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
    check_row_pointers: (("row_pointers", "RowPointers"),),
    check_run_encoder: (("run_encoder", "RunEncoder"),),
    check_beat_builder: (("beat_builder", "BeatBuilder"),),
    check_region_writer: (("regions", "RegionWriter"),),
    check_region_reader: (("regions", "RegionReader"),),
}
