"""Cycles: those of the compute units, or of the level whose bandwidth is too small."""

from dataclasses import dataclass
from math import ceil

from ..architecture import Architecture, Storage
from ..mapping import Mapping
from ..sparse.counts import Accesses, Counters
from ..sparse.occupancy import Occupancy
from ..sparse.step import SparseTraffic
from .capacity import Use

__all__ = ["Cycles", "count_cycles"]


@dataclass(frozen=True)
class Cycles:
    """total: the slowest of compute units and levels. Nothing is added for filling, draining or conflicts."""

    total: int
    compute: int
    levels: tuple[int, ...]


def count_cycles(mapping: Mapping, architecture: Architecture, sparse: SparseTraffic, uses: dict[int, Use]) -> Cycles:
    """uses: instances in use, by level; -1: the compute units."""
    done = sparse.computes.actual + sparse.computes.gated
    compute = ceil(done / uses[-1].busiest) if uses[-1].busiest else 0
    levels = tuple(
        _level_cycles(mapping, storage, level, sparse, uses[level], compute)
        for level, storage in enumerate(architecture.levels)
    )
    return Cycles(max(compute, *levels), compute, levels)


def _level_cycles(mapping: Mapping, storage: Storage, level: int, sparse: SparseTraffic, use: Use, compute: int) -> int:
    if not compute:
        return 0
    read = write = 0.0
    for number in range(len(mapping.problem.tensors)):
        if (level, number) not in sparse.counters:
            continue
        counters, tile = sparse.counters[level, number], sparse.occupancy[level, number]
        share = use.mean[number] / use.maximum if use.maximum else 1.0
        read += ceil(_words(counters, tile, ("reads",), storage.word_bits) * share) / compute
        write += ceil(_words(counters, tile, ("fills", "updates"), storage.word_bits) * share) / compute
    slowdown = 1.0
    for demand, bandwidth in (
        (read, storage.read_bandwidth),
        (write, storage.write_bandwidth),
        (read + write, storage.shared_bandwidth),
    ):
        if bandwidth is not None and demand > bandwidth:
            slowdown = min(slowdown, bandwidth / demand)
    return ceil(compute / slowdown)


def _words(counters: Counters, tile: Occupancy, actions: tuple[str, ...], word_bits: int) -> int:
    """Words that pass a port: gated ones still take their cycle."""

    def passed(accesses: Accesses) -> int:
        return accesses.actual + accesses.gated

    bits = 0
    for action in actions:
        for rank, accesses in zip(tile.ranks, counters.formats[action], strict=True):
            bits += passed(accesses.metadata) * rank.bits[0] + passed(accesses.payload) * rank.bits[1]
    return sum(passed(counters.data(action)) for action in actions) + bits // word_bits
