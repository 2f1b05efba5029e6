"""Words of a scheme, as a file of one says them."""

__all__ = [
    "BUFFERING",
    "B_BY_COLUMNS",
    "CARRIED",
    "EXPLICIT_ORDER",
    "GATHERS",
    "GUSTAVSON",
    "INNER",
    "JOINED",
    "LISTS",
    "LOAD_LIST",
    "LOAD_PLANNED",
    "LOAD_REUSE",
    "LOAD_TILE",
    "LOAD_USED",
    "LOAD_WINDOW",
    "MOST_STEPS",
    "MOST_STRIPS",
    "ONLY_B",
    "ORDERS",
    "OUTER",
    "STREAMING",
    "TENSORS",
    "WEIGHT_STATIONARY",
    "Hardware",
]

from typing import Any, Protocol

from sw.timing.hardware import MOST_PARTS, ORDERS

TENSORS = ("A", "B", "C")
STREAMING, BUFFERING = "streaming", "buffering"
# Partial rows of C: each k step takes all of them along; each writes those that it makes, and the last one joins them.
CARRIED, JOINED = "carried", "joined"
# What a tile loads of B: all of it; the rows that it uses, which stay for the tiles after it; of these rows those that are used
# again in time, while the others go by; the same, at places planned for each of them; the rows that it uses for itself alone.
LOAD_TILE, LOAD_LIST, LOAD_REUSE, LOAD_PLANNED, LOAD_USED = "tile", "list", "reuse", "planned", "used"
# Of these, where tiles keep rows for one another: those that hardware runs, and all.
LISTS = (LOAD_LIST, LOAD_REUSE)
GATHERS = (*LISTS, LOAD_PLANNED)
# Read, not written: tiles said which range of k they span.
LOAD_WINDOW = "window"
GUSTAVSON, OUTER, INNER, WEIGHT_STATIONARY = "gustavson", "outer", "inner", "weight_stationary"
# Of these, those whose fibers of B are its columns, so that B lies in memory by columns.
B_BY_COLUMNS = (INNER, WEIGHT_STATIONARY)
# Modes where B's rows are gathered, or tiles are explicit; the order of explicit tiles.
ONLY_B = {"A": STREAMING, "B": BUFFERING, "C": STREAMING}
EXPLICIT_ORDER = "jki"
# In which A's rows are met, beside a file of the user's (:mod:`sw.plan.row_order`).
NATURAL = "natural"
COMMUNITIES = "communities"
ROW_ORDERS = (NATURAL, "rcm", "greedy", COMMUNITIES)
# Tiles along k where parts of rows are joined: those that leave parts, and the last.
MOST_STEPS = MOST_PARTS + 1
# Of a row of C.
MOST_STRIPS = 4096


class Hardware(Protocol):
    """What a scheme has to know of ``gen.design.Design``."""

    @property
    def lanes(self) -> int: ...
    @property
    def line_bytes(self) -> int: ...
    @property
    def packed(self) -> bool: ...
    @property
    def buffer(self) -> Any: ...
    @property
    def tuning(self) -> Any: ...
    @property
    def pe(self) -> Any: ...
