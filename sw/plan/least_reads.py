"""What must be read of B while A's rows have their turns in the order of a plan: the bounds beside what a run reads."""

import numpy as np

from sw.formats.memory_csr import ELEMENT_BYTES, MemoryCsr
from sw.scheme.terms import GUSTAVSON, Hardware
from sw.stats.pattern import Pattern
from sw.stats.replacement import least_nonzeros, least_whole_rows
from sw.stats.segments import row_beats

from .plan import Matrix, Plan
from .records import tensor_formats

__all__ = ["least_reads"]


def least_reads(planned: Plan[Matrix], design: Hardware) -> dict[str, int] | None:
    """Bytes of B that an optimal buffer reads; None where rows of A have more than one turn, since k or j is cut.

    ``bytes``: with the whole buffer for B and any nonzero of it by itself, in records of the design. No plan in which each row of
    A has one turn, in this order, reads less. ``whole_rows``: one row after the other, in bus beats, with its pointers; each
    takes lines of its own and an entry of metadata, and those stay that as many rows of A use as there are PEs. A tile that is
    a range of B's rows is read as one run, whose rows share beats: it may read less.
    """
    scheme, a, b = planned.scheme, planned.a, planned.b
    cut = scheme.strips or scheme.T_j < b.columns or (scheme.T_k < a.columns and not scheme.gathers)
    if design.pe.dataflow != GUSTAVSON or cut:
        return None
    rows_of_a, rows_of_b = (Pattern(m.rows, m.columns, m.pointers, m.coordinates.astype(np.int64)) for m in (a, b))
    lanes, beats = design.lanes, design.buffer.line_beats
    record = tensor_formats(design, a.columns, b.columns)["B"].record_bits
    lengths, capacity = rows_of_b.row_lengths, design.buffer.bytes // ELEMENT_BYTES
    nonzeros = least_nonzeros(rows_of_a, lengths, capacity)
    used = lengths > 0
    costs = row_beats(rows_of_b, lanes, record * beats) * (design.line_bytes // beats) + 2 * MemoryCsr.word_bytes * used
    whole = least_whole_rows(rows_of_a, -(-lengths // lanes) * lanes + used, costs, capacity, design.pe.count)
    return {"bytes": -(-nonzeros * record // 8), "whole_rows": whole}
