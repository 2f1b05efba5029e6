"""What ExTensor moves between its levels, tile by tile from the real nonzeros.

Tiles of A stay in the global buffer while those of B pass (order m, n, k on the outer level; with k cut, both are loaded for
each visit and Z's tile stays). Pairs of subtiles go to elements. Of a tile of A as many subtiles at a time as there are elements
stay in them, each in several where they are fewer, while the subtiles of the tile of B pass and are shared among those; so a tile
of B is sent once for each round of subtiles that there are more of than elements. Tiles that meet nothing are not loaded.

An overbooked tile keeps its first entries; the rest, in the order of its fibers, streams at every pass over it but the
one that loads it. A subtile of B slides through its element as through a buffet: as many of its fibers as fit meet all of A's
subtile, then shrinks free them for the next (section 3.3.2). So it is sent once, and A's subtile is passed over once for each
buffer's worth of B's.
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
    passed: entries that passes over tiles other than the loading ones take on each level; what did not stream was reused.
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
    passed: dict[str, int]

    @property
    def dram_bytes(self) -> int:
        return ENTRY_BYTES * sum(self.dram.values())

    @property
    def streaming_overhead(self) -> float:
        """Figure 9a: reads of A and B for bumped data over what the same tiles would read if nothing overflowed."""
        return self.streamed / max(1, self.dram["A"] + self.dram["B"] - self.streamed)

    @property
    def reused(self) -> dict[str, float]:
        """Figure 9b: share of the entries that passes find where an earlier pass left them, by level; 1 without passes."""
        gone = {"global": self.streamed, "pe": self.restreamed}
        return {level: 1 - gone[level] / max(1, passed) for level, passed in self.passed.items()}


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
    k = parts[0].k_steps
    groups = -(-parts[1].entries // machine.pe_entries)  # that a subtile of B passes in
    passes = np.bincount(parts[1].k, groups, k).astype(np.int64)
    visits = _distinct(parts[1], k)  # tiles of B that they lie in
    rounds, most, elements = _rounds(parts[0], machine.pes)
    dram_a, dram_b, streamed, passed = _memory(tiles, most, over)
    entries_b = np.bincount(parts[1].k, parts[1].entries, k).astype(np.int64)
    copies = _copies(parts[0].k, elements, *_subtiles_by_visit(parts[1], k))
    repeats = passes[parts[0].k] - copies  # of A's subtile, over all its elements
    again_a = int(pe_over[0] @ repeats)
    reads_a = int(parts[0].entries @ visits[parts[0].k]) + again_a
    reads_b = int(entries_b @ rounds)
    sent_b = int(entries_b @ np.bincount(parts[0].k, minlength=k))
    held = z.updates if tiling.pe_a[1] < operands.a.columns else 0  # partial elements wait in the global buffer
    return Accesses(
        dram={"A": dram_a, "B": dram_b, "Z": z.entries},
        streamed=streamed,
        global_reads=reads_a + reads_b + held,
        global_writes=dram_a + dram_b + held,
        restreamed=again_a,
        pe_writes=int(parts[0].entries @ copies) + again_a + sent_b,
        pe_reads=2 * macs,
        tiles={"global": sum(len(t.k) for t in tiles), "pe": sum(len(p.k) for p in parts)},
        overbooked={"global": _share(over), "pe": _share(pe_over)},
        bumped={"global": _part(over, tiles), "pe": _part(pe_over, parts)},
        passed={"global": passed, "pe": int(parts[0].entries @ repeats)},
    )


def _bumped(entries: Index, capacity: int, resident: int) -> Index:
    return np.where(entries > capacity, entries - resident, 0)


def _share(over: list[Index]) -> float:
    return sum(int(np.count_nonzero(o)) for o in over) / max(1, sum(len(o) for o in over))


def _part(over: list[Index], tiles: tuple[TileSet, TileSet]) -> float:
    return sum(int(o.sum()) for o in over) / max(1, sum(int(t.entries.sum()) for t in tiles))


def _memory(tiles: tuple[TileSet, TileSet], passes: Index, over: list[Index]) -> tuple[int, int, int, int]:
    """Entries read of A and of B, how many of them for bumped data, and those that later passes take.

    ``passes`` over B's tiles by k step, over all visits: as many at each as its subtiles take rounds.
    """
    k = tiles[0].k_steps
    visits_a, visits_b = (np.bincount(t.k, minlength=k) for t in (tiles[1], tiles[0]))
    of_a = visits_a[tiles[0].k]
    later_a = np.maximum(0, of_a - 1) if k == 1 else np.zeros(len(of_a), np.int64)
    refetched = int(over[0] @ later_a)
    read_a = int(tiles[0].entries @ (of_a - later_a)) + refetched
    later_b = (passes - visits_b)[tiles[1].k]
    again_b = int(over[1] @ later_b)
    read_b = int(tiles[1].entries @ visits_b[tiles[1].k]) + again_b
    return read_a, read_b, refetched + again_b, int(tiles[0].entries @ later_a + tiles[1].entries @ later_b)


def _rounds(parts: TileSet, pes: int) -> tuple[Index, Index, Index]:
    """Rounds in which elements hold a subtile of an inner k step, those of the outer step, and elements for each subtile.

    The first two are sums over all tiles of A. Subtiles of a tile go to the elements k step by k step, as many at a time as there
    are elements; those of a round that is not full go to several elements each.
    """
    outer_k = parts.k // parts.steps
    order = np.lexsort((parts.k, outer_k, parts.outer))
    inner, outer, tile = parts.k[order], outer_k[order], parts.outer[order]
    begins_tile = np.ones(len(order), np.bool_)
    begins_tile[1:] = (tile[1:] != tile[:-1]) | (outer[1:] != outer[:-1])
    begins = begins_tile.copy()
    begins[1:] |= inner[1:] != inner[:-1]
    starts = np.flatnonzero(begins_tile)
    sizes = np.diff(np.append(starts, len(order)))
    place = np.arange(len(order)) - np.repeat(starts, sizes)
    elements = np.empty(len(order), np.int64)
    elements[order] = pes // np.minimum(pes, np.repeat(sizes, sizes) - place // pes * pes)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(order)) - 1
    count = place[last] // pes - place[first] // pes + 1 if len(first) else np.zeros(0, np.int64)
    by_inner = np.bincount(inner[first], count, parts.k_steps).astype(np.int64)
    # A tile of B is passed over as often as the k step of it that takes the most rounds.
    by_outer = np.zeros(parts.k_steps // parts.steps, np.int64)
    if len(starts):
        most = np.maximum.reduceat(count, np.searchsorted(first, starts))
        np.add.at(by_outer, outer[starts], most)
    return by_inner, by_outer, elements


def _distinct(parts: TileSet, k: int) -> Index:
    """Outer tiles in which each inner k step holds anything."""
    keys = np.unique(parts.outer * k + parts.k)
    return np.bincount(keys % k, minlength=k)


def _subtiles_by_visit(parts: TileSet, k: int) -> tuple[Index, Index]:
    """Where each inner k step begins in the second array: the nonempty subtiles of B in each outer tile that has any."""
    width = int(parts.outer.max(initial=0)) + 1
    keys, counts = np.unique(parts.k * width + parts.outer, return_counts=True)
    return np.searchsorted(keys // width, np.arange(k + 1)), counts.astype(np.int64)


@njit(cache=True, nogil=True)
def _copies(
    k_of: NDArray[Any], elements: NDArray[Any], begins: NDArray[Any], subtiles: NDArray[Any]
) -> NDArray[np.int64]:
    """Elements that each subtile of A is written to, over all visits: no more than there are subtiles of B for it."""
    copies = np.zeros(len(k_of), np.int64)
    for a in range(len(k_of)):
        for visit in range(begins[k_of[a]], begins[k_of[a] + 1]):
            copies[a] += min(elements[a], subtiles[visit])
    return copies
