"""Schemes whose tiles load the rows of B that they use (:mod:`.lists`): how many rows of A a tile should take."""

from sw.stats.workload import Workload

from .cost import Prediction, predict
from .lists import ListError
from .protocol import Machine
from .scheme import BUFFERING, LOAD_LIST, STREAMING, Scheme, SchemeError, default_partition

__all__ = ["listed"]

# Tiles along i that are tried: from two up to as many as leave each so many rows, twice as many each time.
FEWEST_ROWS = 8
MOST_TILES = 1 << 14
# No smaller tiles are tried when so many in a row have been worse than the best by this factor.
HOPELESS = 1.2
GIVEN_UP = 2
KEPT = 3


def listed(policy: str, work: Workload, design: Machine, *, most: int | None = KEPT) -> list[tuple[Scheme, Prediction]]:
    """Schemes with lists and what they cost, the most promising first; they are not validated.

    Empty where the design's buffer has no default partition, where A has fewer than two times ``FEWEST_ROWS`` rows or no
    elements, and where even few rows of A use more rows of B than there is room for their metadata. Raises nothing of its own.

    Parameters
    ----------
    policy: name that the schemes carry.
    work: the operands, A of I x K and B of K x J.
    most: schemes at most; None for all.
    """
    try:
        parts, fifo = default_partition(design)
    except SchemeError:
        return []
    found: dict[int, tuple[Scheme, Prediction]] = {}

    def cost(T_i: int) -> float:
        if T_i not in found:
            scheme = Scheme(
                policy=policy,
                order="ijk",
                T_i=T_i,
                T_j=work.J,
                T_k=work.K,
                buffer_bytes=parts,
                fifo_bytes=fifo,
                mode={"A": STREAMING, "B": BUFFERING, "C": STREAMING},
                load=LOAD_LIST,
            )
            try:
                found[T_i] = scheme, predict(work, design, scheme)
            except ListError:
                return float("inf")
        return float(found[T_i][1].cycles)

    best, worse, tiles = float("inf"), 0, 2
    while work.a.nnz and worse < GIVEN_UP and tiles <= min(MOST_TILES, work.I // FEWEST_ROWS):
        cycles = cost(-(-work.I // tiles))
        # Tiles that are too large are worse, too: these do not count.
        worse = worse + 1 if cycles > HOPELESS * best else 0
        best = min(best, cycles)
        tiles *= 2
    if found:
        middle = min(found, key=lambda T_i: found[T_i][1].cycles)
        for T_i in (middle * 3 // 4, middle * 3 // 2):
            if FEWEST_ROWS <= T_i < work.I:
                cost(T_i)

    return sorted(found.values(), key=lambda candidate: candidate[1].cycles)[:most]
