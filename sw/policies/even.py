"""Even static tiles, as the simulator published with HYTE makes those that it calls Tailors, DRT and HARP.

Figures of HYTE (its section 8) compare with these, not with the methods of those papers, which ``swiftiles``, ``drt`` and
``harp`` follow. All three begin with the same tiles: columns of B with k whole, of which a tenth overflow.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from sw.cost.partial_rows import cheaper
from sw.cost.predict import predict_rows
from sw.cost.protocol import Machine
from sw.formats.memory_csr import ELEMENT_BYTES
from sw.plan.thresholds import EVEN_GROWTH, EVEN_OVERFLOW, EVEN_SAFE, EVEN_SHARES
from sw.scheme.scheme import Scheme
from sw.scheme.shares import partition_of, shared_buffer
from sw.scheme.terms import BUFFERING, ONLY_B, STREAMING
from sw.stats.largest import largest_good
from sw.stats.occupancy import occupancy
from sw.stats.pattern import Pattern
from sw.stats.workload import Workload

__all__ = ["even_columns", "even_rows", "even_squares"]


def even_columns(A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, **options: Any) -> Scheme:
    """Columns of B, k whole: wider and wider until more than a tenth of the tiles overflow. No options.

    The width is the widest of which no columns anywhere exceed a third of the buffer, times 1.0625, 1.125, 1.25 and so on; the
    first one with too many overflowing tiles is it. A stays while j moves, as far as its share goes.
    """
    width = _width(B, design)
    return _scheme("even_columns", A, B, design, seed, options, "ikj", (A.shape[0], width, A.shape[1]))


def even_squares(A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, **options: Any) -> Scheme:
    """As many tiles of B as ``even_columns`` has, cut alike along k and j, k outermost; nothing grows. No options."""
    (I, K), J = A.shape, B.shape[1]  # noqa: E741 - extents, as in the papers
    cuts = math.sqrt(-(-J // _width(B, design)))
    tile = (I, math.ceil(J / cuts), math.ceil(K / cuts))
    return _scheme("even_squares", A, B, design, seed, options, "kji", tile)


def even_rows(A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, **options: Any) -> Scheme:
    """Rows of A, as many tiles as ``even_columns`` has; B whole, loaded once, what overflows read at each use. No options."""
    (I, K), J = A.shape, B.shape[1]  # noqa: E741 - extents, as in the papers
    tiles = -(-J // _width(B, design))
    return _scheme("even_rows", A, B, design, seed, options, "kji", (math.ceil(I / tiles), J, K))


def _width(B: sp.csr_array, design: Machine) -> int:
    """Columns of a tile of ``even_columns``. A tile takes an entry for each nonzero and each column."""
    pattern = Pattern.of(B)
    J = pattern.columns
    capacity = max(2, int(EVEN_SAFE * design.buffer.bytes / ELEMENT_BYTES))
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(pattern.column_counts())])
    base = largest_good(J, lambda width: int((before[width:] - before[:-width]).max()) + width <= capacity)
    growth = EVEN_GROWTH
    while True:
        width = min(J, max(1, int(base * (1 + growth))))
        over = np.count_nonzero(occupancy(pattern, pattern.rows, width).nonempty + width > capacity)
        if width == J or over > EVEN_OVERFLOW * -(-J // width):
            return width
        growth *= 2


def _scheme(
    policy: str,
    A: sp.csr_array,
    B: sp.csr_array,
    design: Machine,
    seed: int,
    options: dict[str, Any],
    order: str,
    tile: tuple[int, int, int],
) -> Scheme:
    """B kept in its share; A too where j is innermost and cut and the metadata of its rows leave a line."""
    if options:
        raise TypeError(f"{policy} takes no options, not {', '.join(options)}")
    of_b, of_c = EVEN_SHARES[policy]
    shares = shared_buffer(design, 1 - of_b - of_c, of_c)
    of = {tensor: partition_of(design, shares, tensor) for tensor in "AB"}
    T_i, T_j, T_k = tile
    keeps_a = order.endswith("j") and T_j < B.shape[1] and of["A"].most_rows >= T_i
    scheme = Scheme(
        policy=policy,
        order=order,
        T_i=T_i,
        T_j=T_j,
        T_k=T_k if of["B"].most_rows >= T_k else min(T_k, of["B"].half_of_rows),
        buffer_bytes=shares[0],
        fifo_bytes=shares[1],
        mode=ONLY_B | {"A": BUFFERING if keeps_a else STREAMING},
    )
    workload = Workload(A, B, lanes=design.lanes, seed=seed)
    scheme, prediction = cheaper(workload, design, scheme, predict_rows)
    return replace(scheme, predicted=prediction.as_dict())
