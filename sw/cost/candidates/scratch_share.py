"""How much of the buffer fibers of long rows should have that would go through memory else, at the expense of rows of B.

A few shares are tried, up from the smallest until cycles rise; each is a replay (:mod:`sw.cost.replay`).
"""

from dataclasses import replace

from sw.cost.passes import Passes
from sw.cost.predict import Prediction, predict, predict_whole
from sw.cost.protocol import Machine
from sw.plan.thresholds import SCRATCH_GAIN, SCRATCH_SHARES
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.terms import GUSTAVSON
from sw.stats.workload import Workload

__all__ = ["with_scratch"]

Candidate = tuple[Scheme, Prediction]


def with_scratch(workload: Workload, design: Machine, best: Candidate, passes: Passes) -> Candidate | None:
    """The scheme with scratch fibers on chip, and its prediction; None where that gains nothing.

    ``best``: one that leaves k whole, and j, but in strips. Others get None, and so do operands without long rows.
    ``passes``: its prediction counts those before and after the run.
    """
    scheme, prediction = best
    whole = scheme.tiles_per_rank(workload.I, workload.J, workload.K) == (1, 1, 1)
    long = int(workload.a.row_lengths.max(initial=0)) > design.pe.merge_radix
    if design.pe.dataflow != GUSTAVSON or not long or not (scheme.gathers or whole) or scheme.scratch_bytes:
        return None
    least, found = (1 - SCRATCH_GAIN) * prediction.cycles, None
    line = design.line_bytes
    for share in SCRATCH_SHARES:
        size = int(share * design.buffer.bytes) // line * line
        parts = scheme.buffer_bytes
        other = replace(
            scheme, buffer_bytes=parts | {"B": parts["B"] - size, "C": parts["C"] + size}, scratch_bytes=size
        )
        try:
            if parts["B"] - size < scheme.fifo_bytes["B"]:
                break
            other.validate(design, workload.I, workload.J, workload.K)
            predicted = (predict if scheme.gathers else predict_whole)(workload, design, other)
        except SchemeError:  # B has too little
            break
        predicted = predicted.plus(passes.over(other))
        if found is not None and predicted.cycles > found[1].cycles:
            break
        if predicted.cycles < least:
            least, found = (1 - SCRATCH_GAIN) * predicted.cycles, (other, predicted)
    return found
