"""What must be read of B while A's rows have their turns in the order of a plan: the bounds beside what a run reads."""

import numpy as np

from sw.formats.memory_csr import ELEMENT_BYTES, MemoryCsr
from sw.scheme.terms import GUSTAVSON, LOAD_PLANNED, Hardware
from sw.stats.pattern import Pattern
from sw.stats.replacement import least_nonzeros, least_whole_rows
from sw.stats.segments import row_beats

from .plan import Matrix, Plan
from .records import tensor_formats

__all__ = ["least_reads", "read_by_rows"]


def least_reads(planned: Plan[Matrix], design: Hardware) -> dict[str, int] | None:
    """Bytes of B that an optimal buffer reads; None where rows of A have more than one turn, since k or j is cut.

    ``bytes``: with the whole buffer for B and any nonzero of it by itself, in records of the design. No plan in which each row of
    A has one turn, in this order, reads less. ``whole_rows``: :func:`read_by_rows`. ``partition``: the same in the part of the
    buffer that the scheme gives B, each row with the words that the list of planned places has of it. A tile that is a range of
    B's rows is read as one run, whose rows share beats: it may read less than both.
    """
    scheme, a, b = planned.scheme, planned.a, planned.b
    cut = scheme.strips or scheme.T_j < b.columns or (scheme.T_k < a.columns and not scheme.gathers)
    if design.pe.dataflow != GUSTAVSON or cut:
        return None
    rows_of_a, rows_of_b = (Pattern(m.rows, m.columns, m.pointers, m.coordinates.astype(np.int64)) for m in (a, b))
    record = tensor_formats(design, a.columns, b.columns)["B"].record_bits
    nonzeros = least_nonzeros(rows_of_a, rows_of_b.row_lengths, design.buffer.bytes // ELEMENT_BYTES)
    return {
        "bytes": -(-nonzeros * record // 8),
        "whole_rows": read_by_rows(rows_of_a, rows_of_b, design),
        "partition": read_by_rows(
            rows_of_a,
            rows_of_b,
            design,
            capacity=scheme.buffer_bytes["B"] * scheme.buffers("B"),
            words=2 + (scheme.load == LOAD_PLANNED),
        ),
    }


def read_by_rows(a: Pattern, b: Pattern, design: Hardware, *, capacity: int | None = None, words: int = 2) -> int:
    """Bytes of B that are read one row after the other, in bus beats, each with so many ``words`` that say where it lies.

    Each row takes lines of its own and an entry of metadata, and those stay that as many rows of A use as there are PEs.
    ``capacity``: bytes for them; the whole buffer without it. The order in which they leave is Belady's.
    """
    lanes, beats = design.lanes, design.buffer.line_beats
    record = tensor_formats(design, a.columns, b.columns)["B"].record_bits
    lengths, entries = b.row_lengths, b.row_lengths > 0
    costs = row_beats(b, lanes, record * beats) * (design.line_bytes // beats) + words * MemoryCsr.word_bytes * entries
    nonzeros = (design.buffer.bytes if capacity is None else capacity) // ELEMENT_BYTES
    return least_whole_rows(a, -(-lengths // lanes) * lanes + entries, costs, nonzeros, design.pe.count)
