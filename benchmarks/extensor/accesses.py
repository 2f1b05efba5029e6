"""What ExTensor moves between its levels, tile by tile from the real nonzeros.

The output stays on both levels, as in ExTensor. Tiles of A stay in the global buffer while those of B pass (order m, n, k on the
outer level; with k cut, both are loaded for each visit and Z's tile stays). In a visit each element takes a block of Z, a pair of
panels of subtiles, and gets the pairs of subtiles along k one by one; a subtile of A stays where k is not cut. Elements stand in
a grid: a subtile goes to all elements of its row or column at once, and a tile is passed over once for each round of the grid
(:class:`Grid`). Tiles that meet nothing are not loaded.

An overbooked tile keeps its first entries; the rest, in the order of its fibers, streams at every pass over it but the one that
loads it. A subtile of B slides through its element as through a buffet: as many of its fibers as fit meet all of A's subtile,
then shrinks free them for the next (section 3.3.2). So it is sent once for each pair, and A's subtile is passed over once for
each buffer's worth of B's.
"""

from dataclasses import dataclass

import numpy as np

from sw.stats.pattern import Index

from .machine import ENTRY_BYTES, ExTensor
from .shapes import Tiling
from .tiles import Operands, TileSet, tile_set

__all__ = ["Accesses", "Grid", "Output", "accesses", "output"]


@dataclass(frozen=True)
class Output:
    """Z: ``entries`` as it leaves, ``updates`` of partial elements: one for each outer k step that adds to one."""

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
    step = tiling.a[1]
    nonzeros = operands.nonzeros_of_z
    return Output(nonzeros + operands.rows_of_z, nonzeros if step >= operands.a.columns else operands.updates(step))


@dataclass(frozen=True)
class Grid:
    """Elements as ``rows`` x ``columns``, each with a block of Z; passes over a tile of A and of B in a visit.

    Of all such grids the one of the fewest passes. A is passed over once where its subtiles stay in their elements.
    """

    rows: int
    columns: int
    passes_a: int
    passes_b: int

    @classmethod
    def of(cls, machine: ExTensor, tiling: Tiling) -> "Grid":
        m, n = -(-tiling.a[0] // tiling.pe_a[0]), -(-tiling.b[0] // tiling.pe_b[0])
        stays = tiling.pe_a[1] >= tiling.a[1]
        grids = []
        for rows in range(1, min(machine.pes, m) + 1):
            columns = min(n, machine.pes // rows)
            grids.append(cls(rows, columns, 1 if stays else -(-n // columns), -(-m // rows)))
        return min(grids, key=lambda grid: grid.passes_a + grid.passes_b)


def accesses(machine: ExTensor, tiling: Tiling, operands: Operands, macs: int, z: Output) -> Accesses:
    """Counts everything that moves; ``macs`` are the effectual multiply-accumulates."""
    tiles = (tile_set(operands.a, tiling.a), tile_set(operands.bt, tiling.b))
    parts = (
        tile_set(operands.a, tiling.a, tiling.pe_a),
        tile_set(operands.bt, tiling.b, tiling.pe_b),
    )
    over = [_bumped(t.entries, machine.global_entries, machine.global_resident) for t in tiles]
    pe_over = [_bumped(p.entries, machine.pe_entries, machine.pe_resident) for p in parts]
    grid = Grid.of(machine, tiling)
    dram_a, dram_b, streamed, passed = _memory(tiles, grid, over)
    if not machine.skips_empty:
        dram_a, dram_b = (n + more for n, more in zip((dram_a, dram_b), _unmet(tiles), strict=True))
    k = parts[0].k_steps
    subtiles_a, subtiles_b = (np.bincount(p.k, minlength=k) for p in parts)
    visits_a, visits_b = (_distinct(p, k) for p in parts)  # tiles of A and of B that they lie in
    copies = subtiles_b[parts[0].k]  # elements that a subtile of A is written to, over all visits
    if parts[0].steps == 1:
        copies = _staying(parts[1], k, grid.columns)[parts[0].k]
    # Buffers' worths that a subtile of B passes in, and passes over A's subtile but the loading ones, over all its elements.
    groups = -(-parts[1].entries // machine.pe_entries) if machine.slides else np.ones(len(parts[1].k), np.int64)
    repeats = np.bincount(parts[1].k, groups, k).astype(np.int64)[parts[0].k] - copies
    again_a = int(pe_over[0] @ repeats)
    restreamed_b = 0 if machine.slides else _by_fiber(parts, pe_over, k)
    reads_a = grid.passes_a * int(parts[0].entries @ visits_b[parts[0].k]) + again_a
    reads_b = grid.passes_b * int(parts[1].entries @ visits_a[parts[1].k]) + restreamed_b
    held = z.updates if tiling.a[1] < operands.a.columns else 0  # partial elements wait in the global buffer
    return Accesses(
        dram={"A": dram_a, "B": dram_b, "Z": z.entries},
        streamed=streamed,
        global_reads=reads_a + reads_b + held,
        global_writes=dram_a + dram_b + held,
        restreamed=again_a + restreamed_b,
        pe_writes=int(parts[0].entries @ copies)
        + again_a
        + restreamed_b
        + int(parts[1].entries @ subtiles_a[parts[1].k]),
        pe_reads=2 * macs,
        tiles={"global": sum(len(t.k) for t in tiles), "pe": sum(len(p.k) for p in parts)},
        overbooked={"global": _share(over), "pe": _share(pe_over)},
        bumped={"global": _part(over, tiles), "pe": _part(pe_over, parts)},
        passed={"global": passed, "pe": int(parts[0].entries @ repeats) + restreamed_b},
    )


def _bumped(entries: Index, capacity: int, resident: int) -> Index:
    return np.where(entries > capacity, entries - resident, 0)


def _share(over: list[Index]) -> float:
    return sum(int(np.count_nonzero(o)) for o in over) / max(1, sum(len(o) for o in over))


def _part(over: list[Index], tiles: tuple[TileSet, TileSet]) -> float:
    return sum(int(o.sum()) for o in over) / max(1, sum(int(t.entries.sum()) for t in tiles))


def _memory(tiles: tuple[TileSet, TileSet], grid: Grid, over: list[Index]) -> tuple[int, int, int, int]:
    """Entries read of A and of B, how many of them for bumped data, and those that all passes but the loading ones take."""
    k = tiles[0].k_steps
    visits_a, visits_b = (np.bincount(other.k, minlength=k)[own.k] for own, other in (tiles, tiles[::-1]))
    loads = np.minimum(1, visits_a) if k == 1 else visits_a, visits_b
    later = visits_a * grid.passes_a - loads[0], visits_b * (grid.passes_b - 1)
    streamed = [int(o @ n) for o, n in zip(over, later, strict=True)]
    read_a, read_b = (int(t.entries @ n) + s for t, n, s in zip(tiles, loads, streamed, strict=True))
    return read_a, read_b, sum(streamed), sum(int(t.entries @ n) for t, n in zip(tiles, later, strict=True))


def _unmet(tiles: tuple[TileSet, TileSet]) -> list[int]:
    """Entries of A and of B that are read for visits in which they meet nothing. Where k is whole, A is read once anyway."""
    k = tiles[0].k_steps
    more = []
    for own, other in (tiles, tiles[::-1]):
        visits = np.bincount(other.k, minlength=k)[own.k]
        count = other.all_tiles // k
        once = k == 1 and own is tiles[0]
        more.append(int(own.entries @ (np.maximum(0, 1 - visits) if once else count - visits)))
    return more


def _by_fiber(parts: tuple[TileSet, TileSet], over: list[Index], k: int) -> int:
    """What subtiles of B stream for each fiber but the first of those of A, where both overbook."""
    fibers = np.bincount(parts[0].k, np.where(over[0] > 0, parts[0].fibers - 1, 0), k).astype(np.int64)
    return int(over[1] @ fibers[parts[1].k])


def _distinct(parts: TileSet, k: int) -> Index:
    """Outer tiles in which each inner k step holds anything."""
    keys = np.unique(parts.outer * k + parts.k)
    return np.bincount(keys % k, minlength=k)


def _staying(parts: TileSet, k: int, columns: int) -> Index:
    """Elements that a subtile of A of each k step stays in, over all visits: a grid's row, or as many as there are of B's."""
    keys, counts = np.unique(parts.outer * k + parts.k, return_counts=True)
    return np.bincount(keys % k, np.minimum(counts, columns), k).astype(np.int64)
