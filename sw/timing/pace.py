"""How fast a design is, as the simulator of jobs asks it (:mod:`sw.timing.jobs`)."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sw.formats.memory_csr import MemoryCsr
from sw.jit import njit

from .constants import (
    CONTENTION,
    FILL_CYCLES,
    FLOATING_LEVEL_CYCLES,
    FLYING_CYCLES,
    INTEGER_LEVEL_CYCLES,
    NEXT_CHAIN_CYCLES,
    PLACES_CYCLES,
    ROWS_CYCLES,
    TILE_CYCLES,
    TILE_LATENCIES,
)
from .hardware import READER_CYCLES, SCRATCH_MARGIN, SCRATCH_ROWS
from .record_beats import PITCH

__all__ = [
    "Pace",
    "TimedDesign",
    "chain_cycles",
    "flying_cycles",
    "kept_lines",
    "load_trips",
    "memory_cycles",
    "pace_of",
    "reader_cycles",
]


@njit(cache=True)
def kept_lines(scratch_lines: int) -> int:
    """Lines of each long row's fibers that stay in a ring of so many."""
    return max(0, scratch_lines - SCRATCH_MARGIN) // SCRATCH_ROWS


class TimedDesign(Protocol):
    """What has to be known of ``gen.design.Design``."""

    @property
    def lanes(self) -> int: ...
    @property
    def bus_bytes(self) -> int: ...
    @property
    def burst_lines(self) -> int: ...
    @property
    def buffer(self) -> Any:
        """``line_beats``."""

    @property
    def packed(self) -> bool: ...
    @property
    def scratch_slots(self) -> int: ...
    @property
    def memory_latency_cycles(self) -> int: ...
    @property
    def dram_bytes_per_cycle(self) -> float: ...
    @property
    def axi(self) -> Any:
        """``outstanding``."""

    @property
    def pe(self) -> Any:
        """``count``, ``merge_radix``, ``leaf_lines``, ``queue_lines``, ``value``."""

    def leaf_slots(self, leaf: int) -> int: ...
    @property
    def short_leaf_lines(self) -> int: ...


class Pace(NamedTuple):
    """A machine's sizes and cycles.

    Parameters
    ----------
    pes, radix: PEs, and leaves that one takes in a job.
    lanes, leaf_lines, queue_lines: nonzeros in a line, lines of a usual leaf, lines that wait at a PE's way out.
    short_lines: of the longest leaf in memory that is short.
    slot_factors: int64[radix], how many times the usual lines each leaf of a job has.
    scratch_slots: rows of more leaves than a job takes that may be under way.
    latency: cycles from a request of memory to its first line.
    beat: cycles that memory takes for a beat, at least 1: the bus moves one in each.
    line_beats: beats of a line on chip.
    fill: cycles from the last merged nonzero of a job to its last word.
    burst: lines of the longest burst.
    outstanding: bursts that may be read at a time.
    scratch_lines: lines of SRAM for fibers in scratch memory.
    region: lines of SRAM through which rows of B in memory pass on their way to the PEs.
    partial_rows: it is partial rows of C that pass it. Where they are is read without A's nonzeros.
    reader: cycles that an answer of memory with nonzeros takes longer, where these are packed records.
    pitch_a, pitch_b, pitch_c: of lines of A, of B, of finished rows of C in memory (:mod:`.record_beats`).
    """

    pes: int
    radix: int
    lanes: int
    leaf_lines: int
    queue_lines: int
    short_lines: int
    slot_factors: NDArray[np.int64]
    scratch_slots: int
    latency: int
    beat: float
    fill: int
    burst: int
    outstanding: int
    region: int
    partial_rows: bool = False
    scratch_lines: int = 0
    reader: int = 0
    line_beats: int = 1
    pitch_a: int = PITCH
    pitch_b: int = PITCH
    pitch_c: int = PITCH

    @property
    def kept_lines(self) -> int:
        """Lines of each long row's fibers in scratch memory that stay on chip (:mod:`rtl.accessor.scratch_ring`)."""
        return int(kept_lines(self.scratch_lines))


def pace_of(design: TimedDesign, region: int, formats: Mapping[str, MemoryCsr], scratch_lines: int = 0) -> Pace:
    """A design's pace, with so many lines for rows of B in memory and for scratch fibers, and A, B and C in these formats."""
    pe = design.pe
    level = INTEGER_LEVEL_CYCLES if pe.value.startswith("int") else FLOATING_LEVEL_CYCLES
    return Pace(
        pes=pe.count,
        radix=pe.merge_radix,
        lanes=design.lanes,
        leaf_lines=pe.leaf_lines,
        queue_lines=pe.queue_lines,
        short_lines=design.short_leaf_lines,
        slot_factors=np.array([design.leaf_slots(n) // pe.leaf_lines for n in range(pe.merge_radix)], np.int64),
        scratch_slots=design.scratch_slots,
        latency=design.memory_latency_cycles,
        beat=max(1.0, design.bus_bytes / design.dram_bytes_per_cycle),
        fill=FILL_CYCLES + level * (pe.merge_radix.bit_length() - 1),
        burst=design.burst_lines,
        outstanding=design.axi.outstanding,
        region=region,
        scratch_lines=scratch_lines,
        reader=reader_cycles(design),
        line_beats=design.buffer.line_beats,
        pitch_a=formats["A"].record_bits * design.buffer.line_beats,
        pitch_b=formats["B"].record_bits * design.buffer.line_beats,
        pitch_c=formats["C"].record_bits * design.buffer.line_beats,
    )


def reader_cycles(design: TimedDesign) -> int:
    """Cycles that an answer of memory with nonzeros takes longer on a design."""
    return READER_CYCLES if design.packed else 0


@njit(cache=True)
def flying_cycles(bursts: float, latency: int, outstanding: int) -> float:
    """Cycles of so many bursts, each under way for a ``latency`` and what the memory engine takes, so many at a time."""
    return bursts * (latency + FLYING_CYCLES) / outstanding


@njit(cache=True)
def memory_cycles(moving: float, flying: float) -> float:
    """Cycles of memory where beats keep the bus ``moving`` so long and bursts would be ``flying`` so long without the bus
    (:func:`flying_cycles`): each waits for the others' beats."""
    return float((moving**CONTENTION + flying**CONTENTION) ** (1 / CONTENTION))


def load_trips(latency: int, reader: int) -> tuple[int, int]:
    """From the load of a tile that loads what it uses to where its rows stand, and to the first of their lines."""
    places = latency + PLACES_CYCLES
    return places, places + latency + reader + ROWS_CYCLES


def chain_cycles(chains: int, latency: int) -> int:
    """What so many chains of such tiles take beside their loads and jobs; the first of them what a run's tile takes."""
    first = TILE_CYCLES + int(TILE_LATENCIES * latency) - load_trips(latency, 0)[1]
    return first + (chains - 1) * NEXT_CHAIN_CYCLES
