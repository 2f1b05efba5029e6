"""Cycles: those of the compute units, or of the level whose bandwidth is too small."""

from dataclasses import dataclass

import numpy as np

from ..architecture import Architecture, Storage
from ..nests import Nests
from ..sparse.counts import Accesses, Counters
from ..sparse.occupancy import Occupancy
from ..sparse.step import SparseTraffic
from ..values import Batched, Count, Real
from .capacity import Use

__all__ = ["Cycles", "count_cycles", "port_words"]


@dataclass(frozen=True)
class Cycles(Batched):
    """total: the slowest of compute units and levels. Nothing is added for filling, draining or conflicts."""

    total: Count
    compute: Count
    levels: tuple[Count, ...]


def count_cycles(nests: Nests, architecture: Architecture, sparse: SparseTraffic, uses: dict[int, Use]) -> Cycles:
    """uses: instances in use, by level; -1: the compute units."""
    done, units = sparse.computes.actual + sparse.computes.gated, uses[-1].busiest
    compute = np.where(units > 0, np.ceil(done / np.where(units > 0, units, 1.0)), 0.0)
    levels = tuple(
        _level_cycles(nests, storage, level, sparse, uses[level], compute)
        for level, storage in enumerate(architecture.levels)
    )
    total: Count = compute
    for each in levels:
        total = total if each is compute else np.maximum(total, each)
    return Cycles(total, compute, levels)


def _level_cycles(nests: Nests, storage: Storage, level: int, sparse: SparseTraffic, use: Use, compute: Count) -> Count:
    bandwidths = (storage.read_bandwidth, storage.write_bandwidth, storage.shared_bandwidth)
    if bandwidths == (None, None, None):
        return compute
    read: Real = 0.0
    write: Real = 0.0
    some = np.maximum(compute, 1.0)
    for number in range(len(nests.problem.tensors)):
        if (level, number) not in sparse.counters:
            continue
        counters, tile = sparse.counters[level, number], sparse.occupancy[level, number]
        share = np.where(use.maximum > 0, use.mean[number] / np.where(use.maximum > 0, use.maximum, 1.0), 1.0)
        read = read + np.ceil(port_words(counters, tile, ("reads",), storage.word_bits) * share) / some
        write = write + np.ceil(port_words(counters, tile, ("fills", "updates"), storage.word_bits) * share) / some
    slowdown: Real = 1.0
    for demand, bandwidth in zip((read, write, read + write), bandwidths, strict=True):
        if bandwidth is not None:
            slows = np.asarray(demand) > bandwidth
            slowdown = np.where(slows, np.minimum(slowdown, bandwidth / np.where(slows, demand, 1.0)), slowdown)
    with np.errstate(divide="ignore", invalid="ignore"):  # no bandwidth at all
        return np.where(compute > 0, np.ceil(compute / slowdown), 0.0)


def port_words(counters: Counters, tile: Occupancy, actions: tuple[str, ...], word_bits: int) -> Count:
    """Words that pass a port: gated ones still take their cycle."""

    def passed(accesses: Accesses) -> Count:
        return accesses.actual + accesses.gated

    bits: Count = 0
    for action in actions:
        for rank, accesses in zip(tile.ranks, counters.formats[action], strict=True):
            for words, width in zip((accesses.metadata, accesses.payload), rank.bits, strict=True):
                if not words.is_none and width:
                    bits = bits + passed(words) * width
    data = sum(passed(counters.data(action)) for action in actions)
    return data if isinstance(bits, int) and not bits else data + np.floor(bits / word_bits)
