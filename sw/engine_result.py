"""What an engine gives back: the product, if it computes one, and what it counted on the way."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sw.formats.csr import Csr
from sw.tile_sizes import TileSizes

__all__ = ["EngineResult", "Progress"]

# How an engine tells how far it is: the finished share from 0 to 1 (None: unknown) and a few words.
Progress = Callable[[float | None, str], None]


@dataclass(kw_only=True)
class EngineResult:
    """What one engine (``golden``, ``model`` or ``rtl``) found out about one multiplication.

    Parameters
    ----------
    c: the result as the engine left it, stored zeros included; ``None`` when the engine computes no values (``model``).
    cycles: from start to done, in clock cycles; ``None`` when the engine has no notion of time (``golden``).
    counters: performance counters by the names of the register map in lower case (``macs``, ``pe_busy``,
        ``stall_lookup``, ...). Absent means unknown, not zero.
    dram_bytes: ``{"A": {"read": .., "write": .., "metadata_read": .., "metadata_write": ..}, "B": .., "C": ..}`` in bus
        bytes (beats times width); ``None`` when unknown.
    tiles: ``total``, ``skipped_empty``, ``overbooked``.
    buffer: ``{"A": {"peak_bytes", "mean_bytes", "hits", "bumped"}, ...}``; missing keys are unknown.
    occupancy: for the report, by buffered tensor, what its whole tiles need: one above the capacity is overbooked.
    seconds: wall time by phase: ``generate``, ``build``, ``image``, ``simulate``.
    adjustments: dynamic-tuning changes of the tile shape, ``{"tile": n, "T_i": .., "T_j": .., "T_k": ..}`` each.
    activity: how units went on over the run, ``{"interval": .., "cycles": .., "units": {name: [share, ...]}}``: the share
        of each interval in which the unit worked or waited; the last interval ends with the run. None where the engine does not
        see it.
    pe_busy: cycles in which each PE had a job; None where the engine does not see it.
    observed: what the simulation around the hardware counted itself (``verif.counters``); no part of the record.
    error: ``None``, or the hardware's error as one line (name and detail); the result is then not to be trusted.
    """

    c: Csr | None
    cycles: int | None = None
    counters: dict[str, int] = field(default_factory=dict)
    dram_bytes: dict[str, dict[str, int]] | None = None
    tiles: dict[str, int] = field(default_factory=dict)
    buffer: dict[str, dict[str, float]] = field(default_factory=dict)
    occupancy: dict[str, TileSizes] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    adjustments: list[dict[str, int]] = field(default_factory=list)
    activity: dict[str, Any] | None = None
    pe_busy: list[int] | None = None
    observed: dict[str, int] = field(default_factory=dict)
    error: str | None = None
