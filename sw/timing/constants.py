"""What the hardware takes, in cycles and in cells: each number once, with what it is of.

Numbers that the hardware declares are in :mod:`.hardware`, which is generated.

The model tier and the cost model read them. Numbers without another word were fitted: they are those with which the model's
cycles come nearest to the RTL's over the operands of docs/benchmarks.md on `edge` and those of tests/verif/test_cycles.py on
`tiny`, one phase after the other.
"""

__all__ = [
    "ANSWER_CYCLES",
    "ARRAY_CYCLES",
    "ARRAY_ROWS",
    "ASSEMBLY_CYCLES",
    "BITS_A_CELL",
    "BUFFERED_CYCLES",
    "BUFFERED_LINES",
    "CELLS_A_LEAF",
    "CELLS_A_LEVEL",
    "CELLS_A_PE",
    "CELLS_LINE_BYTES",
    "CHUNK_ANSWER_CYCLES",
    "CHUNK_CYCLES",
    "CHUNK_CYCLES_OF_ROWS",
    "CHUNK_END_CYCLES",
    "COLUMNS_LOADED_CYCLES",
    "COLUMN_CYCLES",
    "COLUMN_REQUEST_CYCLES",
    "COLUMN_WORD_CYCLES",
    "CONTENTION",
    "EMPTY_CYCLES",
    "FIBER_CYCLES",
    "FILL_CYCLES",
    "FILL_LEAF_CYCLES",
    "FILL_NONZERO_CYCLES",
    "FIRST_CYCLES",
    "FIRST_LINE_CYCLES",
    "FIRST_NONZERO_CYCLES",
    "FLOATING_LEVEL_CYCLES",
    "FLYING_CYCLES",
    "IDLE_ROW_CYCLES",
    "INTEGER_LEVEL_CYCLES",
    "KEPT_COLUMN_CYCLES",
    "KEPT_CYCLES",
    "KEPT_RETURN_CYCLES",
    "LEAF_ANSWER_CYCLES",
    "LEVEL_CYCLES",
    "LINE_CYCLES",
    "LOOKUP_REQUEST_CYCLES",
    "LOOK_UP_CYCLES",
    "MANY_LEAVES",
    "MEMORY_CYCLES",
    "MEMORY_PART_CYCLES",
    "MERGE_CYCLES",
    "MOST_OVERLAPPED",
    "NEXT_BURST_CYCLES",
    "NEXT_CHAIN_CYCLES",
    "NEXT_CHUNK_CYCLES",
    "NEXT_TILE_CYCLES",
    "NEXT_TILE_GAIN",
    "OTHER_CELLS",
    "PARTIAL_CYCLES",
    "PARTS_LINE_CYCLES",
    "PART_CYCLES",
    "PASSING_CYCLES",
    "PENDING_LEAVES",
    "PHASE_CYCLES",
    "PIECE_CYCLES",
    "PLACED_CYCLES",
    "PLACES_CYCLES",
    "PLACING_CYCLES",
    "POINTER_CYCLES",
    "POSITION_CYCLES",
    "PREFETCHED_LINES",
    "QUEUED_CYCLES",
    "RETURN_CYCLES",
    "ROUND_TRIPS",
    "ROUND_TRIPS_OF_A",
    "ROWS_CYCLES",
    "ROW_LEAVES_CYCLES",
    "ROW_REQUEST_CYCLES",
    "SCANNED_NONZERO_CYCLES",
    "SETTLE_CYCLES",
    "SLOT_CYCLES",
    "SPAN",
    "SPANS",
    "START_CYCLES",
    "STATIONARY_TILE_CYCLES",
    "TABLE_CYCLES",
    "TAKES_CYCLES",
    "TILE_BEGIN_CYCLES",
    "TILE_CYCLES",
    "TILE_LATENCIES",
    "TILE_TRIPS_OF_DATAFLOWS",
    "UNPACKED_CYCLES",
    "VISIT_CYCLES",
    "WRITE_CYCLES",
    "WRITTEN_CYCLES",
]

# Around a tile --------------------------------------------------------------------------------------------------------
# In which the controller looks a tile up, but for what it waits for (``rtl.tiling.walk_sequence``).
LOOK_UP_CYCLES = 6
# From `start` to the first tile, beyond the latency of the first line of the tile map: the scheme is checked and divided.
START_CYCLES = 51
# Beside the load of a tile that nothing is computed beside, beyond the memory's own latency.
PHASE_CYCLES = 40
# Before and after a tile's rows: what no transfer hides, and how many latencies, two of reads and half of one of writes.
TILE_CYCLES = 59
TILE_LATENCIES = 2.5
# What a tile of a grid takes beside a latency of memory, in which its bits of the maps are looked up, less than the first one.
NEXT_TILE_GAIN = 40
# Of tiles that load the rows of B that they use, in traces of crosses of 300 rows on `tiny` with latencies of 25 and 100 cycles:
# from the last look at a nonzero of A to the load of the next tile, where that need not wait; from the begin of a tile to that of
# the next one at the soonest, beside the latency in which the next one's entry of the table comes; from the last word of a tile
# to the load of the next one, where they do not run into one another.
NEXT_TILE_CYCLES = 16.0
TABLE_CYCLES = 23
NEXT_CHAIN_CYCLES = 4
# From such a load to where its rows stand, and from there to their first lines, beside a latency each.
PLACES_CYCLES = 6
ROWS_CYCLES = 16
# What the cost model takes for a visit of a grid's tile, and for its waits for memory: B's pointers and nonzeros, A's, the last
# write; fewer where A's tile is in place. Of the RTL on `tiny` and `edge` with all ranks cut.
VISIT_CYCLES = 40
ROUND_TRIPS = 5
ROUND_TRIPS_OF_A = 2
# The same of outer and inner products, which fetch both tiles at once.
TILE_TRIPS_OF_DATAFLOWS = 2

# B and A on their way -------------------------------------------------------------------------------------------------
# From the lines of a row of B to its use.
SETTLE_CYCLES = 10
# Lines of A that come before its first row has been looked up.
PREFETCHED_LINES = 200
# Of a row that is cut along k: from a chunk's last line to the request of the next one, and from its first line to the unroller.
# Fitted to rows of 2,048 nonzeros on `edge` with hardly a nonzero of C, so that nothing else moves.
CHUNK_CYCLES = 5
# More cycles for a row of A that is cut along k: one at each chunk's end.
CHUNK_END_CYCLES = 2

# A job ----------------------------------------------------------------------------------------------------------------
# Of a request of lines in the memory engine, beside the memory's latency: there and back.
ANSWER_CYCLES = 5
# From a burst's grant to its last beat, beside the memory's latency: as long it is one of those that may be outstanding.
FLYING_CYCLES = 9.5
# How sharply the larger of two bounds, of the bus and of the bursts that may be under way, decides: the exponent of the norm that
# joins them. Of 3,000 rows of 7,700 scattered nonzeros on `tiny`, all of B streamed, with latencies of 5 to 400 ns.
CONTENTION = 5.5
# The bus is looked at in spans of so many cycles, of which so many are remembered. Chosen: shorter than most bursts.
SPAN = 8.0
SPANS = 2048
# From the last leaf of a job to the request of its lines, and from a line to the first merged nonzero.
LEAF_ANSWER_CYCLES = 6
UNPACKED_CYCLES = 11
# From that request to the first line where all lines stay on chip, beside the lines of fibers that come before.
KEPT_CYCLES = 6
# Leaves in the streamer; before it twice as many wait as a job has at most.
PENDING_LEAVES = 64
# From the last line of a streamed leaf to the dispatcher; the same of a leaf that its PE reads itself, and from the end of a
# row to the placement of a leaf in its lines.
PLACED_CYCLES = 6
PLACING_CYCLES = 4
# From the last word of a fiber to the last burst that writes it, and from the answer to that of a fiber in scratch memory to the
# first leaf of the job that merges it; from the last word to that leaf where all lines stay on chip. These and KEPT_CYCLES are of
# waveforms of full blocks of 8 and 16 rows on `tiny`.
WRITE_CYCLES = 8
RETURN_CYCLES = 12
KEPT_RETURN_CYCLES = 8
# Of the bus, what lines that come ahead of their turn and rows that leave take at most from those who wait for it.
MOST_OVERLAPPED = 0.75
# From the last nonzero of a burst of a leaf to that of the next one, which is asked for then, beside the memory's latency and
# the burst itself.
SLOT_CYCLES = 16.0
# From a job's last leaf to its first merged nonzero, where the PE has nothing else to do, and each level of the merge.
FIRST_CYCLES = 9.0
LEVEL_CYCLES = 2.75
# While the merge fills, where the job before has just ended: for each leaf, and once more; for each nonzero of the queues of its
# leaves but the first ones. The queues of the job before empty meanwhile, which saves as many cycles. What those of jobs before
# that one save gets less by the third number with each nonzero that has been merged since. Of 400 rows on one PE of `tiny` with
# up to 64 leaves of 3, 6 and 12 nonzeros, as many in each row or in every other one (docs/history.md).
FILL_LEAF_CYCLES = 0.75
FILL_NONZERO_CYCLES = 0.57
EMPTY_CYCLES = 2.85
# For each nonzero that the queues of a job's other leaves hold at its end: what their emptying saves at most of the next fill.
# Of 400 rows of 3 to 13 leaves on one PE of `tiny`, whose columns are scattered or lie one behind the other.
QUEUED_CYCLES = 2
# Of a merged nonzero, where no two leaves have a column in common, or a job has so many leaves. It is one cycle where a few
# leaves have the same columns. Of 300 rows of 1 to 64 leaves of 48 nonzeros each on one PE, scattered or in the same columns.
MERGE_CYCLES = 1.04
MANY_LEAVES = 16
# From a line of a leaf that is used up to the next line in its slot, where that is on chip: of single leaves of 48 nonzeros with
# 2, 4 and 8 slots.
LINE_CYCLES = 9.25
# From the last merged nonzero of a job to its last word: scaler and packer, and each level of combiners: floating-point, integer.
FILL_CYCLES = 7
FLOATING_LEVEL_CYCLES = 6
INTEGER_LEVEL_CYCLES = 3
# Before the queues of a job's leaves have room for those of the next one its PE has let go of these, and takes others.
TAKES_CYCLES = 5
# From a job's last merged nonzero to the next job in its place. Of waveforms of rows of one nonzero on one PE of `tiny`.
PASSING_CYCLES = 3.0
# Cycles of the dispatcher for a row without a nonzero in a tile, as it is built.
IDLE_ROW_CYCLES = 2
# Cycles for each row and j tile in which its two pointers are read.
POINTER_CYCLES = 2.5
# Cycles for each line of positions in which the parts of rows of one k step are found, as its block is built.
PARTS_LINE_CYCLES = 2

# Weight-stationary PEs -------------------------------------------------------------------------------------------------
# Of waveforms of `flex_tiny`, without latencies of memory; what is fitted says so. From a tile's begin to its first line
# of pointers; more where positions are read, too.
FIRST_LINE_CYCLES = 8
POSITION_CYCLES = 4
# Of a request of lines, beside the memory's latency; of a chunk of a row that is scanned.
MEMORY_CYCLES = 1
CHUNK_ANSWER_CYCLES = 6
# From the pointer of a row to the request of its lines, and from these to its nonzeros.
ROW_REQUEST_CYCLES = 15
FIRST_NONZERO_CYCLES = 7
# From the first pointer to the first chunk of a row that is scanned; from a chunk to the request of the next one; from the line
# that leaves room to a burst of a later one; from a chunk to nonzeros.
CHUNK_CYCLES_OF_ROWS = 6
NEXT_CHUNK_CYCLES = 9
NEXT_BURST_CYCLES = 4
SCANNED_NONZERO_CYCLES = 11
# From the first nonzero of A to the request of where columns are; from there to the request of a column; from lines to a
# word.
LOOKUP_REQUEST_CYCLES = 7
COLUMN_REQUEST_CYCLES = 7
COLUMN_WORD_CYCLES = 3
# From the first nonzero of A to the first word of a column that is on chip, and from the last one to the bus; from the
# last line of B's load to the first look at it.
KEPT_COLUMN_CYCLES = 12
COLUMNS_LOADED_CYCLES = 13
# From the place of a partial row in memory to its first nonzero, beside a latency.
PARTIAL_CYCLES = 10
# Of a fiber that is read by itself, one more where it has something (rtl.accessor.nonzero_reader).
FIBER_CYCLES = 2
# From the bus of the array to its joiner. Fitted: lines of first chunks that are between where they wait and the bus;
# cycles of the bus for which A's nonzeros are there while the bus waits; rows that the array has while the joiner waits.
ARRAY_CYCLES = 15
BUFFERED_LINES = 4
BUFFERED_CYCLES = 5
ARRAY_ROWS = 4
# From a row's last nonzero on the bus to the burst that writes it, from the answer to that to the next tile, and that
# one's begin.
ROW_LEAVES_CYCLES = 32
WRITTEN_CYCLES = 9
TILE_BEGIN_CYCLES = 3
# Before the first piece of a row of C, beside a latency of memory; from the request of a piece to its first nonzero,
# beside another.
ASSEMBLY_CYCLES = 18
PIECE_CYCLES = 7
# From the request of a part of a column that overflows its PE's buffer to its first word, with what comes between its
# last word and the next request; more beside memory's latency where it is there.
PART_CYCLES = 14
MEMORY_PART_CYCLES = 6
# What the cost model takes: around a tile's rows, as TILE_CYCLES; from the first nonzero of A to the first word of a
# column, and from the last word of the last column to the bus.
STATIONARY_TILE_CYCLES = 75
COLUMN_CYCLES = 20

# Area -----------------------------------------------------------------------------------------------------------------
# Logic cells (LUTs and flip-flops) of a design with 64 leaves and lines of 128 bits on ECP5, `fiberloom synth --target ecp5`:
# a cascade of adders and a merge tree grow with the levels, leaf buffers with the leaves, the rest stays. Levels of narrow
# types are in the proportion that they have in PEs synthesised in one piece.
CELLS_A_LEVEL = {"fp32": 1870, "bf16": 1110, "int32": 1020, "int16": 600, "int8": 460}
CELLS_A_LEAF = 49
CELLS_A_PE = 5200
# Outside the PEs: registers, accessors, memory engine, banked SRAM's ports; nearly all of it moves lines.
OTHER_CELLS = 121_000
CELLS_LINE_BYTES = 16
# Bits of SRAM that take the room of a logic cell.
BITS_A_CELL = 6
