"""Into how many strips (:mod:`sw.plan.strips`) rows of C should be cut, and how many strips a tile should take.

Only rows longer than an output queue gain, and only where they keep bus and elements waiting. As few strips as bring the longest
row into a queue come first, then twice as many, since elements crowd in some columns; each is a replay
(:mod:`sw.cost.replay`), of some rows where there are many.
"""

from dataclasses import replace

from sw.cost.predict import Prediction, predict, predict_gathered, strips_workload
from sw.cost.protocol import Machine
from sw.cost.sampling import rows_of, runs_of
from sw.plan.gather import RowPlanError
from sw.plan.plan import plan
from sw.plan.records import tensor_formats
from sw.plan.strips import Strips, cut_strips
from sw.plan.thresholds import (
    MANY_MORE,
    MOST_ELEMENTS_IN_STRIPS,
    MOST_OF_B_IN_STRIPS,
    SEARCHED,
    STRIP_GAIN,
    STRIP_LEAST_SHARE,
    STRIP_MARGIN,
    STRIP_NARROWER_GAIN,
    STRIP_NEAR,
    STRIP_PLANNED,
    STRIP_RUNS,
    STRIP_SCRATCH,
    STRIP_START,
    STRIP_STEP,
)
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.terms import GATHERS, LISTS, MOST_STRIPS
from sw.stats.workload import Workload

from .resident import kept_capacity, kept_scheme
from .tile_height import moves_more

__all__ = ["best_strips"]


def best_strips(
    policy: str,
    workload: Workload,
    design: Machine,
    so_far: Prediction,
    *,
    judged: bool = False,
    thorough: bool = False,
) -> list[tuple[Scheme, Prediction]]:
    """The scheme with strips of the fewest predicted cycles; not validated. Empty where none promises anything.

    Parameters
    ----------
    policy: name that the scheme carries.
    so_far: of the best scheme without strips.
    judged: the model tier looks at both, so that strips need not be better by a margin.
    thorough: they are looked at also where nothing waits, for the fibers of long rows that would not go through memory.
    """
    capacity = kept_capacity(workload, design)
    queue = design.pe.queue_lines * design.lanes
    if (
        capacity == 0
        or workload.b.nnz > MOST_OF_B_IN_STRIPS
        or not _worth(workload, design, so_far, queue, 1.0 if judged else STRIP_NEAR, thorough)
    ):
        return []
    part = _part(workload)
    best: tuple[int, int] | None = None  # T_j, strips of a tile
    least = float("inf")
    most = min(-(-2 * workload.J // queue), MOST_STRIPS)
    count = max(2, -(-int(workload.row_nonzeros.max()) // queue))
    while count <= most:
        T_j = -(-workload.J // count)
        try:
            cut = cut_strips(part.a, part.b, part.J, T_j)
        except SchemeError:
            break
        if len(cut.coordinates) * workload.a.nnz > MOST_ELEMENTS_IN_STRIPS * part.a.nnz:
            break
        found = _height(policy, part, design, cut, T_j)
        if found is None or found[1].cycles > (1 - STRIP_NARROWER_GAIN) * least:
            break
        best, least = (T_j, found[0]), found[1].cycles
        count *= 2
    planned = moves_more(workload, design, so_far)
    enough = so_far.cycles * part.effmac / (STRIP_PLANNED if planned else 1)
    if best is None or least * workload.effmac > enough:
        return []
    loads = GATHERS if planned else LISTS
    schemes = [replace(_scheme(policy, workload, design, *best), load=load) for load in loads]
    try:
        made = [(scheme, predict(workload, design, scheme)) for scheme in schemes]
    except SchemeError:  # some tile beyond the part uses too much
        return []
    most = (1 - (0 if judged else STRIP_MARGIN)) * so_far.cycles
    return sorted((c for c in made if c[1].cycles <= most), key=lambda c: c[1].cycles)[:1]


def _part(workload: Workload) -> Workload:
    """Runs of rows where there are many, with all of B."""
    if workload.a.nnz <= MANY_MORE * SEARCHED:
        return workload
    run = max(1, workload.I * SEARCHED // (STRIP_RUNS * workload.a.nnz))
    rows = rows_of(workload.a, runs_of(workload.I, STRIP_RUNS * run, run))
    return Workload(rows, workload.b, lanes=workload.lanes, statistics=workload.statistics, seed=workload.seed)


def _worth(workload: Workload, design: Machine, so_far: Prediction, queue: int, near: float, thorough: bool) -> bool:
    """Whether long rows are many, and the best scheme takes more than ``near`` times as long as its MACs and its traffic need.

    What B moves more than once does not count as needed: strips may save it. With ``thorough`` the best scheme may also move many
    fibers of rows with more nonzeros than the merge radix: in a strip fewer of them meet.
    """
    formats = tensor_formats(design, workload.K, workload.J)
    refetched = max(0, so_far.traffic["b_data"] - formats["B"].sizes(0, workload.b.nnz)["elements"])
    bound = max((so_far.dram_bytes - refetched) / design.dram_bytes_per_cycle, workload.effmac / design.pe.count)
    once = formats["C"].sizes(0, int(workload.row_nonzeros.sum()))["elements"]
    long_fibers = so_far.traffic["c_data"] - once
    if so_far.cycles <= near * bound and not (thorough and long_fibers > STRIP_SCRATCH * so_far.dram_bytes):
        return False
    return float(workload.row_macs[workload.row_nonzeros > queue].sum()) > STRIP_LEAST_SHARE * workload.effmac


def _scheme(policy: str, workload: Workload, design: Machine, T_j: int, strips: int) -> Scheme:
    return replace(kept_scheme(policy, workload, design, workload.I), T_j=T_j, strips=strips)


def _height(policy: str, workload: Workload, design: Machine, cut: Strips, T_j: int) -> tuple[int, Prediction] | None:
    """Strips of a tile: up from ``STRIP_START``, or down from there. None where even one strip uses too much of B."""

    def predicted(strips: int) -> Prediction | None:
        try:
            scheme = _scheme(policy, workload, design, T_j, strips)
            planned = plan(scheme, workload.a, workload.b, design, strips=cut, with_places=False)
        except RowPlanError:
            return None
        return predict_gathered(strips_workload(workload, planned), design, planned)

    strips = max(1, min(STRIP_START, workload.I))
    found = predicted(strips)
    if found is None:
        return None
    for up in (True, False):
        began = strips
        while True:
            other = strips * STRIP_STEP if up else strips // STRIP_STEP
            step = predicted(other) if 1 <= other <= workload.I else None
            if step is None or step.cycles > (1 - STRIP_GAIN) * found.cycles:
                break
            strips, found = other, step
        if strips != began:
            break
    return strips, found
