"""Schemes that keep rows of B for the tiles after: windows (:mod:`.windows`) and lists (:mod:`.lists`) of any height.

``auto`` climbs to a good height (:mod:`.heights`); ``optimal`` runs many.
"""

from collections.abc import Iterator

from sw.stats.pattern import Index, Pattern
from sw.stats.workload import Workload

from .cost import Prediction, predict
from .lists import ListError
from .protocol import Machine
from .ring import MOST_LINES, metadata_lines
from .scheme import BUFFERING, LOAD_LIST, LOAD_WINDOW, STREAMING, Scheme, SchemeError, default_partition
from .windows import boxes, steady, windows_of

__all__ = ["FEWEST_ROWS", "kept_room", "kept_scheme", "kept_windows", "listed", "windowed"]

# Fewer rows of A than twice these are one tile; windows that `optimal` tries have more.
FEWEST_ROWS = 8
FEWEST_WINDOW_ROWS = 16
# Tiles along i: from two on, so many times as many each time.
MOST_WINDOWS = 4096
FINER = 2**0.5
MOST_LISTS = 1 << 14
# No smaller tiles of lists are tried when so many in a row have been worse than the best by this factor.
HOPELESS = 1.2
GIVEN_UP = 2

Candidate = tuple[Scheme, Prediction]


def kept_room(work: Workload, design: Machine) -> int:
    """Lines for rows of B and their metadata; 0 where no tiles keep rows: A has few rows or none, or the buffer no partition."""
    if work.I < 2 * FEWEST_ROWS or work.a.nnz == 0:
        return 0
    try:
        parts, fifo = default_partition(design)
    except SchemeError:
        return 0
    return int(min((parts["B"] - fifo["B"]) // design.line_bytes, MOST_LINES))


def kept_windows(a: Pattern, work: Workload, T_i: int, room: int, lanes: int) -> Index | None:
    """Windows of k of the rows ``a``, ``T_i`` to a tile; None where there are none, or they leave no room for a line of data."""
    found = steady(windows_of(a.pointers, a.coordinates, T_i), work.b.pointers, room, lanes)
    longest = int((found[:, 1] - found[:, 0]).max())
    return None if longest == 0 or metadata_lines(longest, lanes) >= room else found


def kept_scheme(policy: str, work: Workload, design: Machine, T_i: int, windows: Index | None) -> Scheme:
    """With these windows, or with lists. Raises SchemeError where the buffer has no default partition."""
    parts, fifo = default_partition(design)
    return Scheme(
        policy=policy,
        order="ijk",
        T_i=T_i,
        T_j=work.J,
        T_k=work.K if windows is None else int((windows[:, 1] - windows[:, 0]).max()),
        buffer_bytes=parts,
        fifo_bytes=fifo,
        mode={"A": STREAMING, "B": BUFFERING, "C": STREAMING},
        tiles=[] if windows is None else boxes(windows, T_i, (work.I, work.J)),
        load=LOAD_LIST if windows is None else LOAD_WINDOW,
    )


def windowed(policy: str, work: Workload, design: Machine) -> list[Candidate]:
    """Schemes of windows with what they cost, the cheapest first; they are not validated, and carry the policy's name.

    Empty where there is no room (:func:`kept_room`), and where even few rows of A span so much of k that metadata leave none.
    """
    room = kept_room(work, design)
    found: list[Candidate] = []
    for T_i in _heights(work.I, MOST_WINDOWS, FINER, FEWEST_WINDOW_ROWS) if room else ():
        windows = kept_windows(work.a, work, T_i, room, design.lanes)
        if windows is not None:
            scheme = kept_scheme(policy, work, design, T_i, windows)
            found.append((scheme, predict(work, design, scheme)))
    return sorted(found, key=_cycles)


def listed(policy: str, work: Workload, design: Machine) -> list[Candidate]:
    """Schemes with lists and what they cost, the cheapest first; they are not validated, and carry the policy's name.

    Empty where there is no room (:func:`kept_room`), and where even few rows of A use more rows of B than it has for metadata.
    """
    if not kept_room(work, design):
        return []
    found: dict[int, Candidate] = {}

    def cost(T_i: int) -> float:
        if T_i not in found:
            scheme = kept_scheme(policy, work, design, T_i, None)
            try:
                found[T_i] = scheme, predict(work, design, scheme)
            except ListError:
                return float("inf")
        return _cycles(found[T_i])

    best, worse = float("inf"), 0
    for T_i in _heights(work.I, MOST_LISTS, 2, FEWEST_ROWS):
        cycles = cost(T_i)
        # Tiles that are too large are worse, too: these do not count.
        worse = worse + 1 if cycles > HOPELESS * best else 0
        best = min(best, cycles)
        if worse == GIVEN_UP:
            break
    if found:
        middle = min(found, key=lambda T_i: _cycles(found[T_i]))
        for T_i in (middle * 3 // 4, middle * 3 // 2):
            if FEWEST_ROWS <= T_i < work.I:
                cost(T_i)
    return sorted(found.values(), key=_cycles)


def _heights(rows: int, most: int, finer: float, fewest: int) -> Iterator[int]:
    """Rows of a tile, tall ones first."""
    tiles, before = 2.0, 0
    while tiles <= min(most, rows / fewest):
        T_i = -(-rows // round(tiles))
        if T_i != before:
            yield T_i
        tiles, before = tiles * finer, T_i


def _cycles(candidate: Candidate) -> float:
    return float(candidate[1].cycles)
