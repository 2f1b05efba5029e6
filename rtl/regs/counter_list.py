"""Performance counters of the accelerator, in register order.

The one list: registers, counter bank, Python names, C header and documentation all follow it. Append at the end only,
so that offsets stay as they are.
"""

from dataclasses import dataclass

__all__ = ["COUNTERS", "Counter"]


@dataclass(frozen=True)
class Counter:
    """One 64-bit counter: ``name`` in capitals, ``unit`` of one count, and what it counts.

    A ``peak`` counter keeps the largest value of its input; any other adds up.
    """

    name: str
    unit: str
    description: str
    peak: bool = False


COUNTERS: tuple[Counter, ...] = (
    Counter("CYCLES", "cycles", "Clock cycles from start to done."),
    Counter("MACS", "MACs", "Effectual multiply-accumulates (scaled products)."),
    Counter("JOBS", "jobs", "Merge jobs given to PEs."),
    Counter("ROWS", "rows", "Tile rows finished, empty ones included."),
    Counter("LEAVES", "leaves", "Leaves (fiber segments) merged, partial results included."),
    Counter("TILES_TOTAL", "tiles", "Tiles visited, skipped ones included."),
    Counter("TILES_SKIPPED", "tiles", "Tiles skipped because their A or B part is empty."),
    Counter("TILES_OVERBOOKED", "tiles", "B tiles with more data than their partition holds."),
    Counter("BUMPED_ELEMENTS", "nonzeros", "Nonzeros of B tiles that did not fit and stayed in memory."),
    Counter("BUMPED_FETCHES", "nonzeros", "Bumped nonzeros of B streamed from memory at use."),
    Counter("PE_BUSY", "PE cycles", "Cycles with work, over all PEs."),
    Counter("PE_STALL_INPUT", "PE cycles", "Cycles in which a merge waits for data, over all PEs."),
    Counter("PE_STALL_OUTPUT", "PE cycles", "Cycles in which a finished nonzero waits to leave, over all PEs."),
    Counter("SRAM_READ_CONFLICTS", "requests", "SRAM read requests that lost their bank in a cycle."),
    Counter("READ_A_DATA", "beats", "Bus beats read: nonzeros of A."),
    Counter("READ_A_META", "beats", "Bus beats read: pointers, begin positions and tile map of A."),
    Counter("READ_B_DATA", "beats", "Bus beats read: nonzeros of B."),
    Counter("READ_B_META", "beats", "Bus beats read: pointers, begin positions and tile map of B."),
    Counter("READ_C_DATA", "beats", "Bus beats read: partial C and scratch fibers."),
    Counter("READ_C_META", "beats", "Bus beats read: pointers and positions of C."),
    Counter("WRITE_A_META", "beats", "Bus beats written: begin positions of A."),
    Counter("WRITE_B_META", "beats", "Bus beats written: begin positions of B."),
    Counter("WRITE_C_DATA", "beats", "Bus beats written: final, partial and scratch nonzeros of C."),
    Counter("WRITE_C_META", "beats", "Bus beats written: pointers and positions of C."),
    Counter("PHASE_LOAD_B", "cycles", "Cycles in which a B tile is loaded or waits for room, before its first row."),
    Counter("PHASE_COMPUTE", "cycles", "Cycles in which rows of A are processed."),
    Counter("PHASE_DRAIN", "cycles", "Cycles in which results in flight are waited for."),
    Counter("STALL_A_EMPTY", "cycles", "Cycles in which the B lookup waits for nonzeros of A."),
    Counter("STALL_LOOKUP", "cycles", "Cycles in which the B lookup takes no nonzero of A: too many are in flight."),
    Counter("STALL_DISPATCH", "cycles", "Cycles in which a job waits for a free PE."),
    Counter("STALL_COLLECT", "cycles", "Cycles in which the collector waits for the PE whose turn it is."),
    Counter("STALL_WRITE", "cycles", "Cycles in which a word of C waits for the C accessor."),
    Counter("BUFFER_PEAK_A", "lines", "Most SRAM lines in use at once in the A partition.", peak=True),
    Counter("BUFFER_PEAK_B", "lines", "Most SRAM lines in use at once in the B partition.", peak=True),
    Counter(
        "BUFFER_PEAK_C",
        "lines",
        "Most SRAM lines in use at once in the C partition, without scratch fibers.",
        peak=True,
    ),
    Counter("PHASE_LOAD_A", "cycles", "Cycles in which an A tile is loaded."),
    Counter("LOADS_A", "tiles", "A tiles put into their partition."),
    Counter("OVERBOOKED_A", "tiles", "A tiles with more data than their partition holds."),
    Counter("BUMPED_ELEMENTS_A", "nonzeros", "Nonzeros of A tiles that did not fit and stayed in memory."),
    Counter("HITS_A", "nonzeros", "Nonzeros of A read from their partition."),
    Counter("BUMPED_FETCHES_A", "nonzeros", "Bumped nonzeros of A streamed from memory at a visit."),
    Counter("TUNING_ADJUSTMENTS", "changes", "Changes of the tile shape by dynamic tuning."),
    Counter("STALL_LOAD", "cycles", "Cycles in which the B lookup waits for a fiber that is being loaded."),
    Counter("PHASE_NEXT_TILE", "cycles", "Cycles in which the scheme is checked or the next tile is waited for."),
    Counter(
        "STALL_CONVERSION",
        "cycles",
        "Cycles in which a conversion has no nonzero, or lets a row of C wait.",
    ),
    Counter(
        "MERGED",
        "nonzeros",
        "Nonzeros merged, partial rows and scratch fibers too; A's at stationary columns.",
    ),
    Counter("READ_SCRATCH", "beats", "Bus beats read: scratch fibers; READ_C_DATA counts them too."),
    Counter("WRITE_SCRATCH", "beats", "Bus beats written: scratch fibers; WRITE_C_DATA counts them too."),
)
