"""The numbers that the hardware declares, as the software reads them: ``sw/timing/hardware.py``."""

import inspect
from pathlib import Path

from rtl import types
from rtl.accessor import (
    chunk_peeker,
    fiber_reader,
    nonzero_reader,
    scratch_ring,
    segment_placement,
    segment_scanner,
    whole_rows,
)
from rtl.mint.reader.line_range import LineRange
from rtl.mint.reader.record_reader import RecordReader
from rtl.pe import bumped_walk, gustavson, leaf_unpacker
from rtl.regs.map import ORDERS
from rtl.tiling.window_table import window

from .headers import python_tuple

__all__ = ["FACTS_FILE", "hardware_facts"]

FACTS_FILE = Path(__file__).resolve().parent.parent / "sw" / "timing" / "hardware.py"


def hardware_facts() -> str:
    """Text of ``sw/timing/hardware.py``: plain literals, so that no model needs the hardware library."""
    jobs = inspect.signature(gustavson.GustavsonPe.__init__).parameters["jobs"].default
    reader = RecordReader(lanes=2, address_width=32, value="fp32")
    # name: (value, what it is, where it is declared)
    facts = {
        "ENTRY_BYTES": (window().size // 8, "Bytes of an entry of the table of windows", "rtl.tiling.window_table"),
        "FIRST_CHUNK_LINES": (
            chunk_peeker.FIRST_CHUNK_LINES,
            "Lines that a scan for a segment's end asks for at first",
            "rtl.accessor.chunk_peeker",
        ),
        "JOB_MARGIN": (
            gustavson.SETTLE,
            "A PE takes its next job two lines of leaves and so many cycles before the end of the one before",
            "rtl.pe.gustavson",
        ),
        "LATER_CHUNKS": (
            segment_scanner.LATER_AHEAD,
            "Rows whose second chunks are under way",
            "rtl.accessor.segment_scanner",
        ),
        "LATER_LINES": (
            fiber_reader.READ_DEPTHS[fiber_reader.READ_CLIENTS.index("elements_later")],
            "Lines of third and later chunks that are asked for and not looked at, in two bursts",
            "rtl.accessor.fiber_reader",
        ),
        "MAXIMUM_ELEMENTS": (2**types.POSITION_WIDTH - 1, "Elements that a position can number", "rtl.types"),
        "MOST_LINES": (2**types.LINE_WIDTH - 1, "Lines of B's partition that an entry can name", "rtl.types"),
        "MOST_LISTED_ENTRIES": (
            2**types.LISTED_ENTRY_WIDTH,
            "Entries of metadata among which a list of rows can name one",
            "rtl.types",
        ),
        "MOST_PARTS": (types.MOST_PARTS, "Parts of a row of C that the last k step joins to its own", "rtl.types"),
        "NEXT_CHUNK_LINES": (
            chunk_peeker.NEXT_CHUNK_LINES,
            "Lines of the chunks after it",
            "rtl.accessor.chunk_peeker",
        ),
        "ORDERS": (ORDERS, "Inter-tile orders, outermost first; the index is the value of ORDER", "rtl.regs.map"),
        "PEEKED_FIRST_LINES": (
            segment_scanner.FIRST_LINES,
            "Lines of first chunks that have been looked at and wait for their row",
            "rtl.accessor.segment_scanner",
        ),
        "PEEKED_LINES": (
            chunk_peeker.WAITING_LINES,
            "Lines of second chunks that have been looked at and wait for their row",
            "rtl.accessor.chunk_peeker",
        ),
        "QUEUED_LINES": (
            fiber_reader.READ_DEPTHS[fiber_reader.READ_CLIENTS.index("elements")],
            "Lines of rows that are asked for ahead of their use",
            "rtl.accessor.fiber_reader",
        ),
        "QUEUED_NONZEROS": (leaf_unpacker.SLOTS, "Nonzeros in the queue of a leaf", "rtl.pe.leaf_unpacker"),
        "READER_CYCLES": (
            LineRange.latency + 1 + reader.latency,
            "Cycles of a reader of packed records, from a request to memory's and from a beat to its line",
            "rtl.mint.reader.record_reader",
        ),
        "READ_FIBERS": (
            nonzero_reader.FIBERS,
            "Fibers that a weight-stationary design reads at a time",
            "rtl.accessor.nonzero_reader",
        ),
        "REGION_PARTS": (
            bumped_walk.REGION_PARTS,
            "The FIFO-managed region is one of so many parts of a weight-stationary PE's buffer, at least one nonzero",
            "rtl.pe.bumped_walk",
        ),
        "REMEMBERED_SEGMENTS": (
            segment_placement.REMEMBERED_SEGMENTS,
            "Segments that a B tile may have in the FIFO-managed region while it fits",
            "rtl.accessor.segment_placement",
        ),
        "SCANNED_ROWS": (
            inspect.signature(segment_scanner.SegmentScanner.__init__).parameters["rows"].default,
            "Rows whose first chunks are under way",
            "rtl.accessor.segment_scanner",
        ),
        "SCRATCH_MARGIN": (
            scratch_ring.MARGIN,
            "Lines of the ring for scratch fibers that no row takes",
            "rtl.accessor.scratch_ring",
        ),
        "SCRATCH_ROWS": (
            scratch_ring.ROWS,
            "Long rows that the other lines are enough for",
            "rtl.accessor.scratch_ring",
        ),
        "SECOND_LINES": (
            fiber_reader.READ_DEPTHS[fiber_reader.READ_CLIENTS.index("elements_second")],
            "Lines of second chunks that are asked for and not looked at",
            "rtl.accessor.fiber_reader",
        ),
        "UNDER_WAY": (jobs, "Jobs that a PE has under way", "rtl.pe.gustavson"),
        "WHOLE_ROWS": (
            whole_rows.ROWS_UNDER_WAY,
            "Rows that are asked for ahead of their use where k is whole",
            "rtl.accessor.whole_rows",
        ),
    }
    lines = [
        '"""What the hardware declares. Generated by ``python -m gen.derived``, do not edit."""',
        "",
        "__all__ = [",
        *(f'    "{name}",' for name in facts),
        "]",
        "",
    ]
    for name, (value, what, where) in facts.items():
        text = python_tuple(value) if isinstance(value, tuple) else value
        lines += [f"# {what} ({where}).", f"{name} = {text}"]
    return "\n".join([*lines, ""])
