"""Energy: counts of accesses to rows, times the energy of each action."""

from collections.abc import Sequence
from functools import lru_cache
from math import ceil

import numpy as np

from sw.energy import EYERISS_DRAM, EYERISS_SRAM

from ..architecture import Architecture, Compute, Storage
from ..densities.many import Many, of_many
from ..nests import Nests
from ..problem import Workload
from ..sparse.counts import Counters
from ..sparse.occupancy import Occupancy
from ..sparse.step import SparseTraffic
from ..values import Count, Real
from .capacity import Use

__all__ = ["energies", "reference_energy", "tensor_energy"]

# Actions of a table that stand for an action of the analysis, the first that the table has. Where accesses are gated or skipped
# dialect v0.3 falls back to what an idle cycle or the real action costs; v0.4 takes them as free.
READ = ("random_read", "read")
FILL = ("random_fill", "random_write", "fill", "write")
UPDATE = ("random_update", "random_write", "update", "write")
METADATA_READ = ("random_metadata_read", "metadata_read")
METADATA_WRITE = ("random_metadata_fill", "random_metadata_write", "metadata_fill", "metadata_write")
NAMES = {"reads": READ, "fills": FILL, "updates": UPDATE}
WRITTEN = {"reads": "read", "fills": "write", "updates": "write"}
MULTIPLY = ("mac_random", "mult_random", "mac", "mult", "compute")

# Where rounding up to whole rows adds more than this share, the distribution of occupancies counts the rows.
ROUNDING = 0.01


def reference_energy(storage: Storage) -> float:
    """Energy of a row without a table, pJ."""
    width = storage.word_bits * storage.block
    if storage.is_dram:
        return EYERISS_DRAM * width / 16
    if not storage.words:
        return 0.0
    kilobytes = width * ceil(storage.words / storage.block) / (8 * 1024)
    (small_kb, small), (large_kb, large) = EYERISS_SRAM.items()
    slope = (large - small) / (large_kb - small_kb)
    return (small + slope * (kilobytes - small_kb)) * width / 16


def energies(
    workload: Workload,
    nests: Nests,
    architecture: Architecture,
    sparse: SparseTraffic,
    uses: dict[int, Use],
    cycles: Count,
) -> tuple[dict[str, Real], dict[tuple[int, int], Real]]:
    """Energy of each component, pJ: the compute units, then levels, innermost first; and of each tensor at one instance of a
    level, by ``(level, tensor)``."""
    compute, computes = architecture.compute, sparse.computes
    found: dict[str, Real] = {
        compute.name: computes.actual * _multiply(compute)
        + computes.gated * _multiply(compute, ("mac_gated", "mult_gated", "compute_gated"), idle=architecture)
        + computes.skipped
        * _multiply(
            compute,
            ("mac_skipped", "mult_skipped", "compute_skipped", "mac_gated", "mult_gated", "compute_gated"),
            idle=architecture,
        )
    }
    ones: dict[tuple[int, int], Real] = {}
    by_position = {(lanes.level, lanes.tensor) for lanes in sparse.lanes}
    for level, storage in enumerate(architecture.levels):
        if storage.is_spatial:
            continue
        total: Real = storage.leak_pj * cycles * uses[level].maximum if storage.leak_pj else 0.0
        for number, tensor in enumerate(nests.problem.tensors):
            if (level, number) in sparse.counters:
                one = ones[level, number] = tensor_energy(
                    architecture,
                    storage,
                    sparse.counters[level, number],
                    sparse.occupancy[level, number],
                    of_many(workload.density(tensor)),
                    tensor.extents(nests.box(level)),
                    by_position=(level, number) in by_position,
                )
                total = total + one * uses[level].mean[number]
        found[storage.name] = total
    return found, ones


def tensor_energy(
    architecture: Architecture,
    storage: Storage,
    counters: Counters,
    tile: Occupancy,
    density: Many,
    extents: tuple[Count, ...],
    *,
    by_position: bool = False,
) -> Real:
    """Energy of one tensor at one instance, pJ. by_position: lanes take its nonzeros in whole rows, wherever a tile begins."""
    scale = 1.0 if by_position else _row_scale(storage, tile, density, extents)
    total: Real = 0.0
    for action in NAMES:
        accesses, costs = counters.data(action), _row_costs(architecture, storage, action)
        rows: Real = 0.0
        for number, each in zip((accesses.actual, accesses.gated, accesses.skipped), costs, strict=True):
            if each and not accesses.is_none:
                rows = rows + (number if storage.block == 1 else np.ceil(number / storage.block)) * each
        total = total + (rows if isinstance(scale, float) and scale == 1.0 else rows * scale)
        total = total + _format_energy(architecture, storage, counters, tile, action)
    total = total + counters.decompressions * storage.energies.get("decompression_count", 0.0)
    return total + counters.compressions * storage.energies.get("compression_count", 0.0)


@lru_cache(maxsize=1024)
def _row_costs(architecture: Architecture, storage: Storage, action: str) -> tuple[float, float, float]:
    """Of a row that is accessed, gated, skipped."""
    real, word = NAMES[action], WRITTEN[action]
    names = (f"gated_{action[:-1]}", f"gated_{word}")
    return (
        _entry(storage, real, reference_energy(storage)),
        _idle(storage, names, real, architecture),
        _idle(storage, (f"skipped_{action[:-1]}", f"skipped_{word}", *names), real, architecture),
    )


@lru_cache(maxsize=1024)
def _format_costs(architecture: Architecture, storage: Storage, action: str) -> tuple[float, float, float]:
    """Of a row of format data. In dialect v0.3 a skipped metadata read costs what a real one does."""
    word = WRITTEN[action]
    real = METADATA_READ if word == "read" else METADATA_WRITE
    gated = _idle(storage, (f"gated_metadata_{word}",), real, architecture, idle="metadata_idle")
    before = () if word == "read" else ("gated_metadata_write",)
    skipped = _idle(storage, (f"skipped_metadata_{word}", *before), real, architecture, idle="metadata_idle")
    if architecture.conventions.idle_is_free:
        skipped = _idle(storage, (f"skipped_metadata_{word}", f"gated_metadata_{word}"), real, architecture)
    return _entry(storage, real, 0.0), gated, skipped


def _format_energy(
    architecture: Architecture, storage: Storage, counters: Counters, tile: Occupancy, action: str
) -> Real:
    """Rows of format data."""
    if not storage.metadata_width or not tile.ranks:
        return 0.0
    total: Real = 0.0
    for kind, each in zip(("actual", "gated", "skipped"), _format_costs(architecture, storage, action), strict=True):
        bits: Real = 0.0
        for rank, accesses in zip(tile.ranks, counters.formats[action], strict=True):
            for words, width in zip((accesses.metadata, accesses.payload), rank.bits, strict=True):
                if each and width and not words.is_none:
                    bits = bits + getattr(words, kind) * width
        total = total + np.ceil(bits / storage.metadata_width) * each
    return total


def _entry(storage: Storage | Compute, names: Sequence[str], default: float) -> float:
    return next((storage.energies[name] for name in names if name in storage.energies), default)


def _idle(
    storage: Storage, names: Sequence[str], real: Sequence[str], architecture: Architecture, *, idle: str = "idle"
) -> float:
    if architecture.conventions.idle_is_free:
        return _entry(storage, names, 0.0)
    return _entry(storage, (*names, idle, *real), 0.0)


def _multiply(compute: Compute, names: Sequence[str] = (), *, idle: Architecture | None = None) -> float:
    if idle is None:
        return _entry(compute, MULTIPLY, (compute.word_bits / 16) ** 2)
    return _entry(compute, (*names, *(() if idle.conventions.idle_is_free else ("idle",)), *MULTIPLY), 0.0)


def _row_scale(storage: Storage, tile: Occupancy, density: Many, extents: tuple[Count, ...]) -> Real:
    """Rows of compressed tiles, which begin in a row of their own, against those of one dense stream of nonzeros."""
    if not tile.is_compressed or storage.block == 1:
        return 1.0
    tenths = np.maximum(0.1, np.floor(tile.density * 10) / 10)
    rounds = (tile.density < 1.0) & (tile.mean > 0) & ((storage.block - 1) / 2 / (tile.size * tenths) > ROUNDING)
    if not np.any(rounds):
        return 1.0
    few = tuple(np.broadcast_to(extent, np.shape(rounds))[rounds] for extent in extents)
    scale = np.ones(np.shape(rounds))
    scale[rounds] = density.rows(few, storage.block) * storage.block / density.mean(few)
    return scale
