"""Schemes that keep rows of B for the tiles after: windows (:mod:`.windows`) and lists (:mod:`.lists`) of many heights.

``auto`` climbs to a good height (:mod:`.heights`); ``optimal`` runs all of them.
"""

from collections.abc import Iterator
from dataclasses import replace

from sw.stats.workload import Workload

from .cost import Prediction, predict
from .lists import ListError
from .protocol import Machine
from .ring import MOST_LINES, metadata_lines
from .scheme import BUFFERING, LOAD_LIST, LOAD_WINDOW, STREAMING, Scheme, SchemeError, default_partition
from .windows import boxes, steady, windows_of

__all__ = ["FEWEST_ROWS", "listed", "windowed"]

FEWEST_ROWS = 16
FEWEST_LISTED_ROWS = 8
# Tiles along i: from two on, so many times as many each time.
MOST_WINDOWS = 4096
FINER = 2**0.5
MOST_LISTS = 1 << 14
# No smaller tiles of lists are tried when so many in a row have been worse than the best by this factor.
HOPELESS = 1.2
GIVEN_UP = 2

Candidate = tuple[Scheme, Prediction]


def windowed(policy: str, work: Workload, design: Machine) -> list[Candidate]:
    """Schemes of windows with what they cost, the cheapest first; they are not validated.

    Empty where the design's buffer has no default partition, where A has fewer than two times ``FEWEST_ROWS`` rows or no
    elements, and where even few rows of A span so much that metadata leave no room for a line of data. Raises nothing of
    its own.

    Parameters
    ----------
    policy: name that the schemes carry.
    work: the operands, A of I x K and B of K x J.
    """
    base = _base(policy, work, design)
    if base is None:
        return []
    room = min((base.buffer_bytes["B"] - base.fifo_bytes["B"]) // design.line_bytes, MOST_LINES)
    found: list[Candidate] = []
    for T_i in _heights(work, MOST_WINDOWS, FINER, FEWEST_ROWS):
        spans = windows_of(work.a.pointers, work.a.coordinates, T_i)
        windows = steady(spans, work.b.pointers, room, design.lanes)
        T_k = int((windows[:, 1] - windows[:, 0]).max())
        if T_k and metadata_lines(T_k, design.lanes) < room:
            tiles = boxes(windows, T_i, (work.I, work.J))
            scheme = replace(base, T_i=T_i, T_k=T_k, load=LOAD_WINDOW, tiles=tiles)
            found.append((scheme, predict(work, design, scheme)))
    return sorted(found, key=_cycles)


def listed(policy: str, work: Workload, design: Machine) -> list[Candidate]:
    """Schemes with lists and what they cost, the cheapest first; they are not validated.

    Empty where the design's buffer has no default partition, where A has fewer than two times ``FEWEST_LISTED_ROWS`` rows or
    no elements, and where even few rows of A use more rows of B than there is room for their metadata. Raises nothing of
    its own.

    Parameters
    ----------
    policy: name that the schemes carry.
    work: the operands, A of I x K and B of K x J.
    """
    base = _base(policy, work, design)
    if base is None:
        return []
    found: dict[int, Candidate] = {}

    def cost(T_i: int) -> float:
        if T_i not in found:
            scheme = replace(base, T_i=T_i, load=LOAD_LIST)
            try:
                found[T_i] = scheme, predict(work, design, scheme)
            except ListError:
                return float("inf")
        return _cycles(found[T_i])

    best, worse = float("inf"), 0
    for T_i in _heights(work, MOST_LISTS, 2, FEWEST_LISTED_ROWS):
        cycles = cost(T_i)
        # Tiles that are too large are worse, too: these do not count.
        worse = worse + 1 if cycles > HOPELESS * best else 0
        best = min(best, cycles)
        if worse == GIVEN_UP:
            break
    if found:
        middle = min(found, key=lambda T_i: _cycles(found[T_i]))
        for T_i in (middle * 3 // 4, middle * 3 // 2):
            if FEWEST_LISTED_ROWS <= T_i < work.I:
                cost(T_i)
    return sorted(found.values(), key=_cycles)


def _base(policy: str, work: Workload, design: Machine) -> Scheme | None:
    """One tile with B in the buffer, which the heights are of; None where there can be none."""
    try:
        parts, fifo = default_partition(design)
    except SchemeError:
        return None
    return Scheme(
        policy=policy,
        order="ijk",
        T_i=work.I,
        T_j=work.J,
        T_k=work.K,
        buffer_bytes=parts,
        fifo_bytes=fifo,
        mode={"A": STREAMING, "B": BUFFERING, "C": STREAMING},
    )


def _heights(work: Workload, most: int, finer: float, fewest: int) -> Iterator[int]:
    """Rows of a tile, tall ones first: none where A has no elements, or fewer rows than two of the lowest tiles."""
    tiles, before = 2.0, 0
    while work.a.nnz and tiles <= min(most, work.I / fewest):
        T_i = -(-work.I // round(tiles))
        if T_i != before:
            yield T_i
        tiles, before = tiles * finer, T_i


def _cycles(candidate: Candidate) -> float:
    return float(candidate[1].cycles)
