"""Schemes whose tiles load the rows of B that they use (:mod:`sw.plan.gather`), of any height.

``auto`` climbs to a good height (:mod:`.tile_height`); ``optimal`` runs many.
"""

from collections.abc import Iterator

from sw.cost.predict import Prediction, predict
from sw.cost.protocol import Machine
from sw.plan.gather import RowPlanError
from sw.plan.thresholds import FEWEST_ROWS, LIST_FINER, LIST_GIVEN_UP, LIST_HOPELESS, MOST_LISTS
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition
from sw.scheme.terms import LISTS, LOAD_LIST, ONLY_B
from sw.stats.workload import Workload
from sw.timing.hardware import MOST_LINES

__all__ = ["FEWEST_ROWS", "kept_capacity", "kept_scheme", "listed_schemes"]


Candidate = tuple[Scheme, Prediction]


def kept_capacity(workload: Workload, design: Machine) -> int:
    """Lines for rows of B and their metadata; 0 where no tiles keep rows: A has few rows or none, or the buffer no partition."""
    if workload.I < 2 * FEWEST_ROWS or workload.a.nnz == 0:
        return 0
    try:
        parts, fifo = default_partition(design)
    except SchemeError:
        return 0
    return int(min((parts["B"] - fifo["B"]) // design.line_bytes, MOST_LINES))


def kept_scheme(policy: str, workload: Workload, design: Machine, T_i: int, load: str = LOAD_LIST) -> Scheme:
    """``load``: one of ``LISTS``. Raises SchemeError where the buffer has no default partition."""
    parts, fifo = default_partition(design)
    return Scheme(
        policy=policy,
        order="ijk",
        T_i=T_i,
        T_j=workload.J,
        T_k=workload.K,
        buffer_bytes=parts,
        fifo_bytes=fifo,
        mode=dict(ONLY_B),
        load=load,
    )


def listed_schemes(policy: str, workload: Workload, design: Machine) -> list[Candidate]:
    """Schemes with lists and what they cost, the cheapest first; they are not validated, and carry the policy's name.

    Empty where there is no capacity (:func:`kept_capacity`), and where even few rows of A use more rows of B
    than it has for metadata.
    """
    if not kept_capacity(workload, design):
        return []
    found: dict[int, Candidate] = {}

    def cost(T_i: int) -> float:
        if T_i not in found:
            schemes = [kept_scheme(policy, workload, design, T_i, load) for load in LISTS]
            try:
                found[T_i] = min(((scheme, predict(workload, design, scheme)) for scheme in schemes), key=_cycles)
            except RowPlanError:
                return float("inf")
        return _cycles(found[T_i])

    best, worse = float("inf"), 0
    for T_i in _heights(workload.I):
        cycles = cost(T_i)
        # Tiles that are too large are worse, too: these do not count.
        worse = worse + 1 if cycles > LIST_HOPELESS * best else 0
        best = min(best, cycles)
        if worse == LIST_GIVEN_UP:
            break
    if found:
        middle = min(found, key=lambda T_i: _cycles(found[T_i]))
        for T_i in (middle * 3 // 4, middle * 3 // 2):
            if FEWEST_ROWS <= T_i < workload.I:
                cost(T_i)
    return sorted(found.values(), key=_cycles)


def _heights(rows: int) -> Iterator[int]:
    """Rows of a tile, tall ones first."""
    tiles, before = 2, 0
    while tiles <= min(MOST_LISTS, rows / FEWEST_ROWS):
        T_i = -(-rows // tiles)
        if T_i != before:
            yield T_i
        tiles, before = tiles * LIST_FINER, T_i


def _cycles(candidate: Candidate) -> float:
    return float(candidate[1].cycles)
