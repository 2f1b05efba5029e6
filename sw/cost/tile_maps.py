"""What a walk reads of the tile maps: bits that say which tiles of A and of B hold anything."""

from math import gcd

import numpy as np
from numpy.typing import NDArray

__all__ = ["map_lines"]

# The ranks along and across each map: bits of a row of tiles follow one another.
RANKS = {"A": "ik", "B": "kj"}


def map_lines(order: str, counts: tuple[int, int, int], bits: int) -> dict[str, int]:
    """Bus lines that a whole walk reads of each map, exactly.

    Each tile asks for its bit of both maps, empty tiles too; the line that was read last is kept. So it is the order and the
    counts that decide, not the operands.

    Parameters
    ----------
    order: ranks, outermost first. counts: tiles along i, j, k. bits: of a bus line.
    """
    tiles = dict(zip("ijk", counts, strict=True))
    return {tensor: _lines(order, tiles, ranks, bits) for tensor, ranks in RANKS.items()}


def _lines(order: str, tiles: dict[str, int], ranks: str, bits: int) -> int:
    strides = {ranks[0]: tiles[ranks[1]], ranks[1]: 1}
    outer, inner = (rank for rank in order if rank in ranks)
    (idle,) = (rank for rank in order if rank not in ranks)  # the map's bit stays while this one moves
    # A run is one sweep of the inner rank. How it lies in its lines comes again after so many runs.
    runs, step, span = tiles[outer], strides[outer], strides[inner] * (tiles[inner] - 1)
    first = np.arange(min(runs, bits // gcd(step, bits)), dtype=np.int64) * (step % bits) % bits
    lines = np.full(len(first), tiles[inner]) if strides[inner] >= bits else (first + span) // bits + 1
    if order[1] == idle:  # each run once for each tile of the idle rank; one of a single line stays in place
        lines = np.where(lines > 1, lines * tiles[idle], lines)
    joined = (first + span) // bits == (first + step) // bits  # ends in the line in which the next one begins
    found = _all_runs(lines, runs) - _all_runs(joined.astype(np.int64), runs - 1)
    if order[0] == idle:
        repeats = found - ((runs - 1) * step + span < bits)
        found += (tiles[idle] - 1) * repeats
    return found


def _all_runs(each: NDArray[np.int64], runs: int) -> int:
    """Sum over so many runs, of which the first ones are given and come again."""
    periods, rest = divmod(runs, len(each))
    return periods * int(each.sum()) + int(each[:rest].sum())
