"""Numbers that planning, cost model, policies and model tier decide by, each once.

"Chosen" says that nothing was measured for a number: others near it do as well. Operands of docs/benchmarks.md run on `edge`.
"""

__all__ = [
    "BASE_SIDE",
    "BYPASS_CLOSE",
    "BYPASS_GAIN",
    "BYPASS_LIFE",
    "BYPASS_LINES",
    "BYPASS_NEWEST",
    "BYPASS_ROWS",
    "BYTES_A_PIECE",
    "BYTES_A_ROW",
    "COUNTS_A_MAC",
    "DRT_SIDE",
    "EARLY_SHARE",
    "EVEN_GROWTH",
    "EVEN_OVERFLOW",
    "EVEN_SAFE",
    "EVEN_SHARES",
    "EVERY_COUNT",
    "EVERY_SIDE",
    "FEWEST_OF_WIDTH",
    "FEWEST_ROWS",
    "FEWEST_RUNS",
    "FEWEST_STEPS_JOINED",
    "FEWEST_STRETCHES",
    "FEW_NUMBERS",
    "FINALISTS",
    "FINALISTS_OF_DATAFLOWS",
    "GRID_CLOSE",
    "GRID_COMPARABLE",
    "GRID_HOPELESS",
    "GRID_LOOKED_AT_FIRST",
    "GRID_MOST_TILES",
    "GRID_MOST_TILES_I",
    "GRID_OF_ANOTHER_KIND",
    "GRID_QUANTILES",
    "GRID_ROUNDS",
    "GRID_SEARCHED_WHOLE",
    "HARP_ROWS",
    "HEIGHT_FINER",
    "HEIGHT_GAIN",
    "HEIGHT_RUNS",
    "HEIGHT_STEP",
    "HEIGHT_TILES_OF_A_RUN",
    "HIGH_EFFORT",
    "IDLE_SHARE",
    "JOBS_A_GROUP",
    "JUDGED_UNITS",
    "JUDGED_UNITS_A_CYCLE",
    "KEPT_ALTERNATIVES",
    "KEPT_BITS",
    "LIST_FINER",
    "LIST_GIVEN_UP",
    "LIST_HOPELESS",
    "LOOKED_AT",
    "MANY_K_TILES",
    "MANY_MORE",
    "MOST_COUNTS",
    "MOST_ELEMENTS_IN_STRIPS",
    "MOST_IN_TABLE",
    "MOST_JUDGED_UNITS",
    "MOST_LISTS",
    "MOST_OF_B_IN_STRIPS",
    "MOST_PLANS",
    "NEARLY_ALL",
    "ON_CHIP_CLOSE",
    "OPTIMAL_BUDGET",
    "ORDER_CLEAR",
    "ORDER_GAIN",
    "ORDER_GAIN_HIGH",
    "ORDER_MOST_USERS",
    "ORDER_SHARE_OF_B",
    "PLANNED_ENTRIES",
    "PLANNED_GAIN",
    "PLANNED_LEAST",
    "PLANNED_MARGIN",
    "PSEUDO_TILES",
    "REPLAYED_GRIDS",
    "REPLAY_CLOSE",
    "ROWS_OF_WIDTH",
    "RUN_OF_ROWS",
    "SAMPLED_ENDS",
    "SAMPLED_PASSED",
    "SAMPLED_PIECES",
    "SAMPLED_ROWS",
    "SAMPLED_SHAPES",
    "SAMPLED_TILES",
    "SAMPLE_LEAST_SHARE",
    "SAMPLE_MARGIN",
    "SCRATCH_GAIN",
    "SCRATCH_SHARES",
    "SEARCHED",
    "SHAPES_A_RUN",
    "SHARES",
    "SHARE_OF_ENTRIES",
    "SIDES_ALIKE",
    "SPARE_ENTRIES",
    "SPREAD",
    "STREAMED_MARGIN",
    "STRETCH",
    "STRIP_FAR",
    "STRIP_GAIN",
    "STRIP_LEAST_SHARE",
    "STRIP_MARGIN",
    "STRIP_NARROWER_GAIN",
    "STRIP_NEAR",
    "STRIP_PLANNED",
    "STRIP_RUNS",
    "STRIP_SCRATCH",
    "STRIP_START",
    "STRIP_STEP",
    "TIE",
    "TUNING_HYSTERESIS",
    "UNITS_A_TILE",
    "UNUSED",
    "UNUSED_ENTRIES",
    "WIDEST",
    "WORTH",
]

# Of papers -----------------------------------------------------------------------------------------------------------
# Side of the subtile that shapes start from before they grow along k and then j: ExTensor's PE tiles.
BASE_SIDE = 128
# Side of DRT's micro-tiles, rows of HARP's pseudo-tiles (HYTE, section 2).
DRT_SIDE = 32
HARP_ROWS = 32
# Shares of the buffer for A, B and C (HYTE, table 2). Tailors leaves its shares open: those of ExTensor with DRT, whose
# machine it also is.
SHARES = {"drt": (0.05, 0.45, 0.5), "harp": (0.045, 0.91, 0.045), "tailors": (0.05, 0.45, 0.5)}

# Of the simulator published with HYTE: a safe tile takes this share of the buffer, the first larger one is larger by this, so
# many of the tiles may overflow; shares of B and of C, the rest is A's.
EVEN_SAFE = 0.33
EVEN_GROWTH = 1 / 16
EVEN_OVERFLOW = 0.1
EVEN_SHARES = {"even_columns": (0.5, 0.05), "even_squares": (0.4, 0.05), "even_rows": (0.9, 0.05)}

# Rows of B on chip ----------------------------------------------------------------------------------------------------
# What an order of A's rows takes to be B's share of the buffer: what lists leave to its nonzeros. Chosen.
ORDER_SHARE_OF_B = 0.85
# An order is worth a prediction where an optimal buffer reads less than this share of what it reads in the natural one: on the
# operands of the cycle table none above it was chosen. At high effort it may read little less. Chosen.
ORDER_GAIN = 0.9
ORDER_GAIN_HIGH = 0.99
# `--effort high`: so many times what judging costs at normal effort. Chosen.
HIGH_EFFORT = 8
# Below this share the natural order is not worth one. Chosen.
ORDER_CLEAR = 0.75
# Rows of B that more rows of A use do not tell these from one another, and would touch all of them when they come or go. Chosen.
ORDER_MOST_USERS = 1024
# Entries of metadata beyond those that rows of mean length need to fill the partition. Chosen.
SPARE_ENTRIES = 1.15
# Rows that go by, for each that stays. Found on wing, cvxqp3, p2p-Gnutella31, cage10.
BYPASS_ROWS = 1.0
# By prediction, where the model tier does not look: it sees too little of what many short fetches wait for. Found on wing.
BYPASS_GAIN = 0.06
# The same of rows with places of their own, whose predictions are up to 15 % low.
PLANNED_GAIN = 0.1
# They are looked at where rows of B that are read once more take this share of all bytes. Chosen.
PLANNED_LEAST = 0.03
# By the model tier planned places win by so much, which is 2 % too low on delaunay_n15, 3 % on cvxqp3 and 6 % on wing.
PLANNED_MARGIN = 0.02
# The same of B streamed, which is 5 % too low in the mean of 20 operands on `tiny`, and 1 % too high on five of `edge`.
STREAMED_MARGIN = 0.05
# A row is taken to stay until this share of the partition has been loaded anew. Found on the same: 0.5 to 1.
BYPASS_LIFE = 0.7
# Lines of the shortest row that goes by: the fetches of shorter ones take longer than their bytes. Found on wing and cvxqp3.
BYPASS_LINES = 3
# What the newest tile counts in the mean of what tiles load. Chosen.
BYPASS_NEWEST = 0.1
# Entries for rows whose lines are planned, for each that rows of mean length take.
PLANNED_ENTRIES = 1.15
# A plan is made anew, with fewer entries, where it has left this share of them unused; so many plans at most. Chosen.
UNUSED_ENTRIES = 0.15
MOST_PLANS = 3
# Rows and free runs that a search for the cheapest lines looks at: all of them save 1 to 2 % more bytes and take ten times as
# long (loc-Brightkite, copter2).
LOOKED_AT = 64
# What a row is worth is a number of lines and a fraction of so many parts.
WORTH = 1 << 20
# A tile is loaded beside the one before if the rows of both take at most this share of the lines: between rows of unequal lengths
# some are lost. Chosen.
EARLY_SHARE = 0.95
# A tile of strips ends early rather than use more than this share of the entries that B's partition could hold, so that a few
# full rows of A do not leave the metadata of all tiles without room. Chosen.
SHARE_OF_ENTRIES = 4
# Fewer numbers than this are sorted by insertion. Chosen.
FEW_NUMBERS = 12

# Searches by replay ---------------------------------------------------------------------------------------------------
# Operands of many more nonzeros are searched on so many, in runs of rows: a replay of 10^5 takes milliseconds.
SEARCHED = 3 << 15
MANY_MORE = 1.5
# Fewer rows of A than twice these are one tile. Chosen.
FEWEST_ROWS = 8
# Tile height: a step has to save this share for the climb to go on; steps at first, and around the best then; runs of rows, and
# tiles that a run has at least. The climb ends within 6 % of the best of all heights on tests/sw/cost/test_replay.py's operands.
HEIGHT_GAIN = 0.005
HEIGHT_STEP = 2.0
HEIGHT_FINER = 2**0.5
HEIGHT_RUNS = 3
HEIGHT_TILES_OF_A_RUN = 3
# Lists of every height: tiles along i from two on, so many times as many each time; no more are tried when so many in a row have
# been worse than the best by this factor. Chosen.
MOST_LISTS = 1 << 14
LIST_FINER = 2
LIST_HOPELESS = 1.2
LIST_GIVEN_UP = 2
# Strips: none where the best scheme is so near its bound, or long rows have less than this share of the MACs. Chosen.
STRIP_NEAR = 1.02
STRIP_LEAST_SHARE = 0.05
# Unless fibers of long rows in memory take this share of all bytes. Chosen; 0.4 on sx-mathoverflow.
STRIP_SCRATCH = 0.05
# And they are predicted to take so much less: 20 % on sx-mathoverflow, where it is true, 8 % on email-Enron, where it is not.
STRIP_FAR = 0.1
# Of what strips with lists take, planned places may leave so much: 0.87 on sx-mathoverflow.
STRIP_PLANNED = 0.8
# Shares of the buffer for fibers of long rows, and by how much each has to be better than what was found before: cycles have one
# valley, which is flat on graphs with hubs. Chosen.
SCRATCH_SHARES = (1 / 16, 1 / 8, 3 / 16, 1 / 4, 3 / 8)
SCRATCH_GAIN = 0.001
# By how much strips have to be better: of graphs with hubs a replay says less than 6 % too much in their favour.
STRIP_MARGIN = 0.07
# Strips of a tile to begin with; a step up or down has to save this share, twice as many strips of a row that one; runs. Chosen.
STRIP_START = 16
STRIP_STEP = 2
STRIP_GAIN = 0.005
STRIP_NARROWER_GAIN = 0.03
STRIP_RUNS = 8

# Grids ----------------------------------------------------------------------------------------------------------------
# Spaces up to this many shapes are searched whole; in larger ones shapes inside another feasible one are left out (HYTE, 5.2).
GRID_SEARCHED_WHOLE = 64
# So much above the limit the best of every second power of two may be before those between are looked at. Chosen.
GRID_HOPELESS = 1.5
# Schemes costed before the finest shape that may still win is known. Chosen.
GRID_LOOKED_AT_FIRST = 4
# Where i is cut, tiles of A are looked for along its diagonal: no finer than this along i or k, counts within 8 times. Chosen.
GRID_MOST_TILES_I = 128
# Of outer and inner products: finer cuts multiply what each visit costs by itself. Chosen.
GRID_MOST_TILES = 1 << 16
# So much worse than the best other scheme the bound, and the prediction, of a grid may be before it is not looked at.
GRID_COMPARABLE = 1.05
# The same where the best other scheme is one tile or a streamed B, whose prediction is of another kind than a grid's: of 75 grids
# evaluated on 62 operands and three designs none that was predicted to be slower than these was faster.
GRID_OF_ANOTHER_KIND = 1.6
# The best of another kind that leaves j and k whole goes before the model tier too, up to this factor above the best: on `tiny`
# 200 rows of 4 scattered nonzeros are predicted 4.5 % too fast with B streamed, 1.1 % with B resident.
REPLAY_CLOSE = 1.05
# Up to this factor above the best it is also tried with scratch fibers on chip. Chosen: the list of geom, predicted 0.1 % better
# than one tile, takes 1 % longer; reuse of c-41, predicted worse than planned places by more, takes 2.8 % longer.
ON_CHIP_CLOSE = 1.01
# The same where rows go by: what many fetches wait for is predicted up to 12 % too short (wing).
BYPASS_CLOSE = 1.15
# Candidates up to this factor above the best prediction go before the model tier. Chosen.
GRID_CLOSE = 1.35
# Of so many grids rows of tiles are replayed, before any is judged: 0.02 to 0.6 s each. Chosen.
REPLAYED_GRIDS = 12
# Rounds of looking for better sides around the best. Chosen.
GRID_ROUNDS = 3
# Shares of tiles that may overflow at the sizes taken from occupancies (Swiftiles' scaling). Chosen.
GRID_QUANTILES = (0.0, 0.1, 0.3)
# Bits of a side that matter: 32 steps from a power of two to the next. Chosen.
KEPT_BITS = 6
# Of weight-stationary PEs: the side along k from which on columns overflow is looked for up to one part of so many. Chosen.
SIDES_ALIKE = 32
# Where one tile holds B: so much of B may be of no use before that tile is not the answer. Chosen.
UNUSED = 0.05

# Before the model tier ------------------------------------------------------------------------------------------------
# Schemes that it runs at most: `auto`'s, the same of outer and inner products, and `optimal`'s.
FINALISTS = 2
FINALISTS_OF_DATAFLOWS = 6
OPTIMAL_BUDGET = 200
# Shapes that `optimal` predicts for each scheme that it may run, the least bound first. Chosen.
SHAPES_A_RUN = 5
# Up to this size of a rank `optimal` looks at every side; up to this one at every count of tiles.
EVERY_SIDE = 16
EVERY_COUNT = 300
# Effort of all runs together, in MACs: a floor, so much for each cycle of the best prediction, and a ceiling of some seconds: a
# sample of the rows says enough of an operand whose run takes longer. What visiting a tile costs beside its MACs and rows.
JUDGED_UNITS = 1 << 25
JUDGED_UNITS_A_CYCLE = 2
MOST_JUDGED_UNITS = 1 << 28
UNITS_A_TILE = 1 << 16
# Rows are sampled in runs of this many, so that what neighbours share stays together, and so many runs at least; tiles that load
# what they use in stretches of so many. Chosen.
RUN_OF_ROWS = 32
FEWEST_RUNS = 4
STRETCH = 8
FEWEST_STRETCHES = 2
# From this share on a sample saves too little; below this one it says too little; by how much a scheme has to be better on one.
NEARLY_ALL = 0.5
SAMPLE_LEAST_SHARE = 0.02
SAMPLE_MARGIN = 0.05
# Of schemes that leave j and k whole: predictions that are no further apart tie, and the one that moves fewer bytes wins. Chosen
# on a mesh of 400 rows on `tiny`: 31,944 cycles with B streamed, 31,965 with a list and 37 % fewer bytes.
TIE = 0.001
# Rows of the pseudo-tiles that super-tiles are made of, where these may compete. Chosen.
PSEUDO_TILES = (8, 32)
# Alternatives that a scheme of `hyte` names.
KEPT_ALTERNATIVES = 5
# Tiles whose rows are replayed for the prediction of a scheme that is recorded, rows of all of them in runs of RUN_OF_ROWS, rows
# of a tile that are replayed twice for what it takes to fill and to empty the PEs, and rows of C of which the pieces are joined;
# tiles without work that carry rows along. Of tiles with shapes of their own more are replayed: they differ more.
# Multiples of the golden ratio's fraction, modulo 1, lie evenly.
SAMPLED_TILES = 16
SAMPLED_SHAPES = 64
SAMPLED_ROWS = 4096
SAMPLED_ENDS = 64
SAMPLED_PIECES = 512
SAMPLED_PASSED = 4
SPREAD = 0.6180339887498949
# Sampled nonzeros of C from which on those of a tile's columns say in what width its products meet, rows that this is sought for,
# and the widest in tiles: products of one row of B never meet, so that a few long ones make more of C than chance would in the
# tile's own width. Found on c-41 and hangGlider_3 with `drt` on `edge`.
FEWEST_OF_WIDTH = 32
ROWS_OF_WIDTH = 2048
WIDEST = 1024
# Rows that only the dispatcher sees are replayed, too, up to so many for each of the others. Found on p2p-Gnutella31 with `drt`.
IDLE_SHARE = 16

# Steps of k from which on partial rows may be joined. Two move as much either way: what the first one leaves comes back once.
FEWEST_STEPS_JOINED = 3

# Of tuning that asks the cost model: another shape is taken if so many times its cost is less. HYTE's published simulator.
TUNING_HYSTERESIS = 1.1

# Memory of the program ------------------------------------------------------------------------------------------------
# Beyond these B is not cut into strips at all, and A not into so many elements: what planning needs in memory follows them.
MOST_OF_B_IN_STRIPS = 1 << 24
MOST_ELEMENTS_IN_STRIPS = 1 << 26
# Jobs of a tile beside one for each row: up to so many for each `merge_radix` elements of A, groups and merges on the way.
JOBS_A_GROUP = 6
# So many counts of a row's elements after a k step are kept at least, and so many for each effectual MAC.
MOST_COUNTS = 1 << 24
COUNTS_A_MAC = 4
# K tiles from which on the model forgets where segments of A began in tiles before. Chosen.
MANY_K_TILES = 64
# What the tables of a run of the model take for each row, and for each row and j tile: about as much as was measured.
BYTES_A_ROW = 160
BYTES_A_PIECE = 64
# Tiles that a table of empty ones may have: a byte for each of them.
MOST_IN_TABLE = 1 << 24
