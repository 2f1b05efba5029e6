"""What must be read of B while A's rows have their turns in the order of a plan: the bounds beside what a run reads."""

import numpy as np

from sw.formats.memory_csr import ELEMENT_BYTES, MemoryCsr
from sw.scheme.terms import GUSTAVSON, LOAD_PLANNED, Hardware
from sw.stats.pattern import Index, Pattern
from sw.stats.replacement import least_nonzeros, least_whole_rows
from sw.stats.segments import row_beats

from .plan import Matrix, Plan
from .records import tensor_formats

__all__ = ["least_reads", "read_by_rows", "read_once"]


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
    lengths, entries = b.row_lengths, b.row_lengths > 0
    nonzeros = (design.buffer.bytes if capacity is None else capacity) // ELEMENT_BYTES
    sizes = -(-lengths // design.lanes) * design.lanes + entries
    return least_whole_rows(a, sizes, _row_bytes(a, b, design, words), nonzeros, design.pe.count)


def read_once(a: Pattern, b: Pattern, design: Hardware) -> int:
    """Bytes of the rows of B that are used, each read once: :func:`read_by_rows` with room for all of them, in any order."""
    return int(_row_bytes(a, b, design)[np.unique(a.coordinates)].sum())


def _row_bytes(a: Pattern, b: Pattern, design: Hardware, words: int = 2) -> Index:
    """Of each row of B in bus beats, with so many words that say where it lies; 0 for one without nonzeros."""
    lanes, beats = design.lanes, design.buffer.line_beats
    record = tensor_formats(design, a.columns, b.columns)["B"].record_bits
    beat_bytes = design.line_bytes // beats
    found: Index = row_beats(b, lanes, record * beats) * beat_bytes + words * MemoryCsr.word_bytes * (b.row_lengths > 0)
    return found
