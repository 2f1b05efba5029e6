"""Which orders of A's rows are worth a prediction: those in which an optimal buffer reads the least of B."""

import numpy as np

from sw.formats.csr import Csr
from sw.scheme.terms import COMMUNITIES, NATURAL, ROW_ORDERS, Hardware
from sw.stats.pattern import Index, Pattern

from .communities import communities_here
from .least_reads import read_by_rows, read_once
from .row_order import in_order, row_order
from .thresholds import ORDER_CLEAR, ORDER_GAIN, ORDER_GAIN_HIGH

__all__ = ["best_orders"]


def best_orders(
    a: Csr | Pattern, b: Csr | Pattern, design: Hardware, *, every: bool = False
) -> dict[str, Index | None]:
    """The orders worth a prediction: the one in which an optimal buffer reads the least of B, and the natural one near it.

    Orders are made, the quick ones first, while another one may read less. ``every``: all that read less than the natural
    one. Without the library of ``communities`` that one is none of them.
    """
    rows_of_a, rows_of_b = (Pattern(m.rows, m.columns, m.pointers, m.coordinates.astype(np.int64)) for m in (a, b))
    gain = ORDER_GAIN_HIGH if every else ORDER_GAIN
    once = read_once(rows_of_a, rows_of_b, design)
    made: dict[str, Index | None] = {NATURAL: None}
    reads = {NATURAL: read_by_rows(rows_of_a, rows_of_b, design)}
    known = [name for name in ROW_ORDERS if name not in made and (name != COMMUNITIES or communities_here())]
    for name in known if once < gain * reads[NATURAL] else []:
        if once >= ORDER_GAIN_HIGH * min(reads.values()) and not every:
            break
        made[name] = row_order(name, rows_of_a, rows_of_b, design)
        reads[name] = read_by_rows(in_order(rows_of_a, made[name]), rows_of_b, design)
    fewer = sorted((name for name in made if reads[name] < gain * reads[NATURAL]), key=lambda name: reads[name])
    chosen = [NATURAL, *(fewer if every else fewer[:1])]
    if not every and fewer and reads[fewer[0]] < ORDER_CLEAR * reads[NATURAL]:
        chosen.remove(NATURAL)
    return {name: made[name] for name in chosen}
