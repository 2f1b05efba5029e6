"""Tiles of B that are converted on their way in: whether each finds room, and how often B is read from its begin to its end."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sw.formats.distinct import distinct
from sw.scheme.scheme import Scheme
from sw.scheme.terms import Hardware

from .gather import Rows
from .placement import placement

if TYPE_CHECKING:
    from .plan import Matrix, Plan

__all__ = ["every_tile_fits", "passes_made_over_b", "passes_over"]


def every_tile_fits(scheme: Scheme, b: Rows, design: Hardware) -> bool:
    """No load bumps a row. ``scheme``: buffers B, whose tiles have whole rows."""
    begins, ends = _tiles(scheme, b)
    partition = scheme.partition("B", design)
    # Rows that do not reach the FIFO-managed region stay, whatever their lengths.
    full = np.flatnonzero(b.pointers[ends] - b.pointers[begins] > partition.capacity(int(ends[0])).regular)
    for begin, end in zip(begins[full], ends[full], strict=True):
        lengths = np.diff(b.pointers[begin : end + 1])
        if placement(lengths, partition.capacity(len(lengths)))[1] < len(lengths):
            return False
    return True


def passes_over(tensor: str, scheme: Scheme, extent: tuple[int, int, int], b: Rows, design: Hardware) -> int:
    """How often the accelerator reads ``A`` or ``B``, or writes ``C``, at most where it converts it on its way.

    0 where it cannot.

    ``extent``: I, J, K.
    """
    if tensor == "A":
        return scheme.passes_over_a(*extent)
    if tensor == "C":
        return scheme.passes_over_c
    times = scheme.passes_over_b(*extent)
    return times if times and every_tile_fits(scheme, b, design) else 0


def passes_made_over_b(planned: "Plan[Matrix]") -> int:
    """How often B is read in the run. Tiles without work load nothing, and what is in the partition is not loaded again."""
    scheme, a, b = planned.scheme, planned.a, planned.b
    begins, ends = _tiles(scheme, b)
    occupied = b.pointers[ends] > b.pointers[begins]
    tile_i = np.repeat(np.arange(a.rows, dtype=np.int64) // scheme.T_i, np.diff(a.pointers))
    tiles = distinct(tile_i * len(begins) + a.coordinates.astype(np.int64) // scheme.T_k)
    loaded = tiles % len(begins)
    loaded = loaded[occupied[loaded]]
    if not len(loaded):
        return 0
    k_rises_once = scheme.order.index("k") < scheme.order.index("i")
    return 1 if k_rises_once else 1 + int(np.count_nonzero(np.diff(loaded) < 0))


def _tiles(scheme: Scheme, b: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first row of B of each tile, and the one behind its last."""
    rows = len(b.pointers) - 1
    begins = np.arange(0, rows, min(scheme.T_k, rows), dtype=np.int64)
    return begins, np.append(begins[1:], rows)
