"""Overbooked tiles: what does not fit is left outside and fetched at each use (Tailors, MICRO 2023, section 3)."""

from collections.abc import Mapping as Table
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..architecture import Architecture
from ..dataflow.traffic import Traffic
from ..densities.many import each_once
from ..densities.protocol import Density
from ..nests import Nests
from ..problem import Workload
from ..values import Batched, Count, Real
from .counts import Accesses, Counters
from .occupancy import Occupancy

__all__ = ["Overbooked", "bumped", "refetch"]


@dataclass
class Overbooked(Batched):
    """Tiles of a tensor that may be larger than what a level has for them.

    capacity: words for one of its tiles. share: of the tiles that do not fit. bumped: expected words of a tile that are left
    outside, of one that fits none. refetched: words that one instance fetches once more.
    """

    capacity: Count
    share: Real
    bumped: Real
    refetched: Count = 0


def bumped(
    workload: Workload, nests: Nests, architecture: Architecture, occupancy: Table[tuple[int, int], Occupancy]
) -> dict[tuple[int, int], Overbooked]:
    """By ``(level, tensor)``. A tile that fits stays whole; of another so much stays as is there beside the words that a part
    of the level takes, through which the others stream. Refuses mappings without a word for it."""
    found = {}
    for level, storage in enumerate(architecture.levels):
        number = next((n for n, t in enumerate(nests.problem.tensors) if t.name == storage.overbooks), None)
        if number is None or (level, number) not in occupancy or storage.usable_words is None:
            continue
        others: Count = sum(
            tile.maximum for (other, tensor), tile in occupancy.items() if other == level and tensor != number
        )
        capacity = np.broadcast_to(storage.usable_words - others, nests.count)
        least = storage.fifo_words + 1
        told = f"at least {least:,}: fifo_words {storage.fifo_words:,} and a word that stays"
        nests.refuse(
            capacity < least,
            level,
            f"words for tiles of {storage.overbooks}",
            partial(_too_few, capacity, told),
        )
        tile, tensor = occupancy[level, number], nests.problem.tensors[number]
        density = workload.density(tensor)
        share, outside = each_once(
            (np.maximum(capacity, least), *tensor.extents(nests.box(level))),
            partial(_outside_of, density if tile.is_compressed else None, storage.fifo_words),
        )
        found[level, number] = Overbooked(capacity, share, outside)
    return found


def _too_few(capacity: NDArray[Any], told: str, number: int) -> tuple[str, str]:
    """What a mapping has, and what is allowed."""
    return f"{int(capacity[number]):,}", told


def _outside_of(density: Density | None, fifo: int, row: tuple[int, ...]) -> tuple[float, float]:
    """``row``: the capacity, then the extents of a tile."""
    return _outside(density, row[0], fifo, row[1:])


def _outside(density: Density | None, capacity: int, fifo: int, extents: tuple[int, ...]) -> tuple[float, float]:
    """Probability that a tile does not fit, and expected words that are left outside."""
    if density is None:
        size = int(np.prod(extents))
        k, probability = np.array([size]), np.array([1.0])
    else:
        k, probability = density.occupancies(extents)
    over = k > capacity
    return float(probability[over].sum()), float(((k[over] - (capacity - fifo)) * probability[over]).sum())


def refetch(
    nests: Nests,
    overbooked: Table[tuple[int, int], Overbooked],
    occupancy: Table[tuple[int, int], Occupancy],
    traffic: Table[tuple[int, int], Traffic],
    counters: Table[tuple[int, int], Counters],
) -> None:
    """Counts what is fetched once more: each use of a bumped word but the first, with its format data."""
    for (level, number), found in overbooked.items():
        own, tile, outer = counters[level, number], occupancy[level, number], nests.outer_keeper(number, level)
        if outer is None:
            continue
        words = tile.mean * tile.arrives
        share = found.bumped / np.where(words > 0, words, 1.0)
        uses = own.reads.actual + own.reads.gated
        found.refetched = np.floor(np.maximum(0.0, uses - own.fills.actual) * np.minimum(1.0, share))
        more = found.refetched / np.where(own.fills.actual > 0, own.fills.actual, 1.0)
        for rank in own.formats["fills"]:
            _add(rank.metadata, np.floor(rank.metadata.actual * more))
            _add(rank.payload, np.floor(rank.payload.actual * more))
        _add(own.fills, found.refetched)
        dense = traffic[level, number].fills
        parent = counters[outer, number]
        ratio = traffic[outer, number].reads / np.where(dense > 0, dense, 1.0)
        outside = np.floor(found.refetched * ratio * tile.arrives)
        before = parent.reads.actual
        more = outside / np.where(before > 0, before, 1.0)
        for rank in parent.formats["reads"][: len(own.formats["fills"])]:
            _add(rank.metadata, np.floor(rank.metadata.actual * more))
            _add(rank.payload, np.floor(rank.payload.actual * more))
        _add(parent.reads, outside)


def _add(accesses: Accesses, words: Count) -> None:
    if not accesses.is_none:
        accesses.actual = accesses.actual + words
