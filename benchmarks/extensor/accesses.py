"""What ExTensor moves between its levels, tile by tile from the real nonzeros.

Tiles of A stay in the global buffer while those of B pass (order m, n, k on the outer level; with k cut, both are loaded for
each visit and Z's tile stays). Of a tile of A each subtile goes to an element; a tile of B is then sent to all elements once for
each round of subtiles that there are more of than elements. Tiles that meet nothing are not loaded.

An overbooked tile keeps its first entries; the rest, in the order of its fibers, streams at every pass over it but the
one that loads it. An element passes over the operand that overbooks in its outer loop, so that it streams once a subtile
of the other; only where both overbook does one of them stream again for every fiber of the other.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit
from sw.stats.pattern import Index

from .machine import ENTRY_BYTES, ExTensor
from .shapes import Tiling
from .tiles import Operands, TileSet, tile_set

__all__ = ["Accesses", "Output", "accesses", "output"]


@dataclass(frozen=True)
class Output:
    """Z: ``entries`` as it leaves, ``updates`` of partial elements: one for each k step of an element that adds to one."""

    entries: int
    updates: int


@dataclass(frozen=True, kw_only=True)
class Accesses:
    """Entries moved.

    Parameters
    ----------
    dram: read for A and B, written for Z. streamed: part of A's and B's that bumped data cause.
    global_reads, global_writes: of the global buffer, A, B and Z together. restreamed: part of the reads that
        bumped data of elements cause.
    pe_writes, pe_reads: of the elements' buffers.
    tiles, overbooked, bumped: of A and B on each level, ``global`` and ``pe``: nonempty tiles, those that do not fit, and the
        share of all entries that they bump.
    """

    dram: dict[str, int]
    streamed: int
    global_reads: int
    global_writes: int
    restreamed: int
    pe_writes: int
    pe_reads: int
    tiles: dict[str, int]
    overbooked: dict[str, float]
    bumped: dict[str, float]

    @property
    def dram_bytes(self) -> int:
        return ENTRY_BYTES * sum(self.dram.values())

    @property
    def streaming_overhead(self) -> float:
        """Figure 9a: memory traffic of bumped data over what the same tiles would move if nothing overflowed."""
        return self.streamed / max(1, sum(self.dram.values()) - self.streamed)


def output(operands: Operands, tiling: Tiling) -> Output:
    """Counts Z by symbolic products."""
    step = tiling.pe_a[1]
    nonzeros = operands.nonzeros_of_z
    return Output(nonzeros + operands.rows_of_z, nonzeros if step >= operands.a.columns else operands.updates(step))


def accesses(machine: ExTensor, tiling: Tiling, operands: Operands, macs: int, z: Output) -> Accesses:
    """Counts everything that moves; ``macs`` are the effectual multiply-accumulates."""
    tiles = (tile_set(operands.a, tiling.a), tile_set(operands.bt, tiling.b))
    parts = (
        tile_set(operands.a, tiling.a, tiling.pe_a),
        tile_set(operands.bt, tiling.b, tiling.pe_b),
    )
    over = [_bumped(t.entries, machine.global_entries, machine.global_resident) for t in tiles]
    pe_over = [_bumped(p.entries, machine.pe_entries, machine.pe_resident) for p in parts]
    dram_a, dram_b, streamed = _memory(machine, tiles, parts[0], over)
    k = parts[0].k_steps
    met = np.bincount(parts[1].k, minlength=k)  # subtiles of B that a subtile of A with this k meets
    visits = _distinct(parts[1], k)  # tiles of B that they lie in
    rounds, _ = _rounds(parts[0], machine.pes)
    entries_b = np.bincount(parts[1].k, parts[1].entries, k).astype(np.int64)
    again_a = int(pe_over[0] @ np.maximum(0, met - visits)[parts[0].k])
    both = _both_bumped(*(array[o > 0] for p, o in zip(parts, pe_over, strict=True) for array in (p.k, o, p.fibers)), k)
    reads_a = int(parts[0].entries @ visits[parts[0].k]) + again_a
    reads_b = int(entries_b @ rounds)
    sent_b = int(entries_b @ np.bincount(parts[0].k, minlength=k))
    held = z.updates if tiling.pe_a[1] < operands.a.columns else 0  # partial elements wait in the global buffer
    return Accesses(
        dram={"A": dram_a, "B": dram_b, "Z": z.entries},
        streamed=streamed,
        global_reads=reads_a + reads_b + both + held,
        global_writes=dram_a + dram_b + held,
        restreamed=again_a + both,
        pe_writes=reads_a + sent_b + both,
        pe_reads=2 * macs,
        tiles={"global": sum(len(t.k) for t in tiles), "pe": sum(len(p.k) for p in parts)},
        overbooked={"global": _share(over), "pe": _share(pe_over)},
        bumped={"global": _part(over, tiles), "pe": _part(pe_over, parts)},
    )


def _bumped(entries: Index, capacity: int, resident: int) -> Index:
    return np.where(entries > capacity, entries - resident, 0)


def _share(over: list[Index]) -> float:
    return sum(int(np.count_nonzero(o)) for o in over) / max(1, sum(len(o) for o in over))


def _part(over: list[Index], tiles: tuple[TileSet, TileSet]) -> float:
    return sum(int(o.sum()) for o in over) / max(1, sum(int(t.entries.sum()) for t in tiles))


def _memory(
    machine: ExTensor, tiles: tuple[TileSet, TileSet], parts: TileSet, over: list[Index]
) -> tuple[int, int, int]:
    """Entries read of A and of B, and how many of them for bumped data."""
    k = tiles[0].k_steps
    visits_a, visits_b = (np.bincount(t.k, minlength=k) for t in (tiles[1], tiles[0]))
    of_a = visits_a[tiles[0].k]
    refetched = int(over[0] @ np.maximum(0, of_a - 1)) if k == 1 else 0
    read_a = int(tiles[0].entries @ (np.minimum(1, of_a) if k == 1 else of_a)) + refetched
    # Passes over B's tile at each visit: as many as its subtiles take rounds; A's tiles with as many are alike.
    _, passes = _rounds(parts, machine.pes)
    again_b = int(over[1] @ (passes - visits_b)[tiles[1].k])
    read_b = int(tiles[1].entries @ visits_b[tiles[1].k]) + again_b
    return read_a, read_b, refetched + again_b


def _rounds(parts: TileSet, pes: int) -> tuple[Index, Index]:
    """Rounds in which elements hold a subtile of an inner k step, and those of the outer step, over all tiles of A.

    Subtiles of a tile go to the elements k step by k step, as many at a time as there are elements.
    """
    outer_k = parts.k // parts.steps
    order = np.lexsort((parts.k, outer_k, parts.outer))
    inner, outer, tile = parts.k[order], outer_k[order], parts.outer[order]
    begins_tile = np.ones(len(order), np.bool_)
    begins_tile[1:] = (tile[1:] != tile[:-1]) | (outer[1:] != outer[:-1])
    begins = begins_tile.copy()
    begins[1:] |= inner[1:] != inner[:-1]
    starts = np.flatnonzero(begins_tile)
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(order)) - 1
    count = place[last] // pes - place[first] // pes + 1 if len(first) else np.zeros(0, np.int64)
    by_inner = np.bincount(inner[first], count, parts.k_steps).astype(np.int64)
    # A tile of B is passed over as often as the k step of it that takes the most rounds.
    by_outer = np.zeros(parts.k_steps // parts.steps, np.int64)
    if len(starts):
        most = np.maximum.reduceat(count, np.searchsorted(first, starts))
        np.add.at(by_outer, outer[starts], most)
    return by_inner, by_outer


def _distinct(parts: TileSet, k: int) -> Index:
    """Outer tiles in which each inner k step holds anything."""
    keys = np.unique(parts.outer * k + parts.k)
    return np.bincount(keys % k, minlength=k)


@njit(cache=True, nogil=True)
def _both_bumped(
    k_a: NDArray[Any],
    bumped_a: NDArray[Any],
    fibers_a: NDArray[Any],
    k_b: NDArray[Any],
    bumped_b: NDArray[Any],
    fibers_b: NDArray[Any],
    k_steps: int,
) -> int:
    """Entries that stream again where both subtiles overbook: the cheaper of the two loop orders, pair by pair."""
    first = np.zeros(k_steps + 1, np.int64)
    for k in k_b:
        first[k + 1] += 1
    first = np.cumsum(first)
    at = first[:-1].copy()
    order = np.empty(len(k_b), np.int64)
    for n in range(len(k_b)):
        order[at[k_b[n]]] = n
        at[k_b[n]] += 1
    total = 0
    for a in range(len(k_a)):
        for place in range(first[k_a[a]], first[k_a[a] + 1]):
            b = order[place]
            total += min(bumped_b[b] * (fibers_a[a] - 1), bumped_a[a] * (fibers_b[b] - 1))
    return total
