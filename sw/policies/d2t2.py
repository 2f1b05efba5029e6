"""D2T2: tile shapes from a probabilistic model of traffic, tile sizes from the largest tile. Paper: D2T2, sections 4, 5."""

from dataclasses import dataclass, replace
from typing import Any

import scipy.sparse as sp

from sw.cost.partial_rows import cheaper
from sw.cost.predict import predict_rows
from sw.cost.protocol import Machine
from sw.cost.tile_traffic import TrafficModel
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.shares import MINIMUM_LINES_A, default_partition, partition_of
from sw.scheme.terms import BUFFERING, ORDERS, STREAMING
from sw.stats.d2t2 import tile_statistics
from sw.stats.occupancy import occupancy
from sw.stats.pattern import Pattern
from sw.stats.workload import Workload

__all__ = ["KEEP", "OUTPUTS", "d2t2"]

# Whether tiles of A have a place of their own: what the model finds better, always as in the paper, or never.
KEEP = ("best", "both", "b")
OUTPUTS = ("carried", "stored")
# The orders of the paper's evaluation.
PAPERS_ORDERS = ("ikj", "ijk")


def d2t2(
    A: sp.csr_array,
    B: sp.csr_array,
    design: Machine,
    *,
    seed: int = 0,
    order: str | None = None,
    tile: int | None = None,
    keep: str = "best",
    output: str = "carried",
    correlated: bool = True,
    **options: Any,
) -> Scheme:
    """Searches the reorder factor RF for the least predicted traffic, each shape grown by its TileFactor.

    The paper chooses the shape among tiles of the conservative size and grows the winner. Here all shapes are grown before
    they are compared: what a k step costs on this machine depends on how many there are left.

    Parameters
    ----------
    order: inter-tile order, which the paper takes as given; the better of the two that it evaluates, ``ikj`` and
        ``ijk``, when not given.
    tile: side T of the square tiles that the statistics are taken from; the largest power of two whose dense tile
        fits (the conservative tile) when not given.
    keep: ``both`` gives A and B half of the buffer each and ties T_i to T_j, as in the paper; ``b`` streams A, which then
        need not be cut along i; ``best`` lets the traffic model choose.
    output: ``carried`` counts partial results as this machine moves them, ``stored`` as the paper's does
        (:class:`sw.cost.tile_traffic.TrafficModel`).
    correlated: use Corrs and TileCorrs; without them the model counts on no reuse of partial results (section 6.7).
    """
    if options:
        raise TypeError(f"d2t2 does not take the option {', '.join(options)}")
    if order is not None and order not in ORDERS:
        raise SchemeError("option order", order, f"one of {', '.join(ORDERS)}")
    if keep not in KEEP:
        raise SchemeError("option keep", keep, f"one of {', '.join(KEEP)}")
    if output not in OUTPUTS:
        raise SchemeError("option output", output, f"one of {', '.join(OUTPUTS)}")
    if tile is not None and (isinstance(tile, bool) or not isinstance(tile, int) or tile < 1):
        raise SchemeError("option tile", tile, "an integer of at least 1")
    a, b = Pattern.of(A), Pattern.of(B)
    workload = Workload(A, B, lanes=design.lanes, seed=seed)
    divisions = _divisions(design, keep)
    extent = (a.rows, b.columns, a.columns)
    found: list[tuple[float, int, tuple[int, int, int], _Division, str]] = []
    for division in divisions:
        side = min(tile or division.conservative(), 1 << (max(extent) - 1).bit_length())
        model = TrafficModel(
            tile_statistics(a, side, seed=seed),
            tile_statistics(b, side, shifts=side, seed=seed),
            correlated,
            output == "carried",
        )
        for shape in _shapes(division, extent, side):
            if shape == extent and not _fits(a, b, division):
                continue
            sized = _sized(a, b, division, shape)
            for way in (order,) if order else PAPERS_ORDERS:
                found.append(
                    (model.predict(sized, way, keep_a=division.keeps_a).total, len(found), sized, division, way)
                )
    _, _, (T_i, T_j, T_k), division, way = min(found)
    scheme = Scheme(
        policy="d2t2",
        order=way,
        T_i=T_i,
        T_j=T_j,
        T_k=T_k,
        buffer_bytes=division.buffer_bytes,
        fifo_bytes=division.fifo_bytes,
        mode={"A": BUFFERING if division.keeps_a else STREAMING, "B": BUFFERING, "C": STREAMING},
    )
    scheme, prediction = cheaper(workload, design, scheme, predict_rows)
    return replace(scheme, predicted=prediction.as_dict())


@dataclass(frozen=True)
class _Division:
    """How the buffer is shared between A and B, and what their tiles may hold."""

    design: Machine
    keeps_a: bool
    buffer_bytes: dict[str, int]
    fifo_bytes: dict[str, int]

    def capacity(self, tensor: str, rows: int) -> int:
        """Nonzeros of a tile with so many rows; not positive where its metadata leave no line."""
        return partition_of(self.design, (self.buffer_bytes, self.fifo_bytes), tensor).resident(rows)

    def conservative(self) -> int:
        """Side of the largest square tile of a power of two that fits even if it is dense."""
        side = 1
        while all(self.capacity(t, 2 * side) >= 4 * side * side for t in ("A", "B") if t == "B" or self.keeps_a):
            side *= 2
        return side

    def legal(self, shape: tuple[int, int, int]) -> bool:
        T_i, _, T_k = shape
        return self.capacity("B", T_k) > 0 and (not self.keeps_a or self.capacity("A", T_i) > 0)


def _divisions(design: Machine, keep: str) -> list[_Division]:
    """The buffer splits to choose from; a buffer too small to share leaves A streaming."""
    divisions = []
    lines = design.buffer.bytes // design.line_bytes
    if keep in ("best", "both"):
        try:
            parts = default_partition(design, lines_a=max(MINIMUM_LINES_A, lines * 15 // 32), partial_rows=True)
            divisions.append(_Division(design, True, *parts))
        except SchemeError:
            pass
    if keep in ("best", "b") or not divisions:
        divisions.append(_Division(design, False, *default_partition(design, partial_rows=True)))
    return [division for division in divisions if division.legal((1, 1, 1))] or divisions[-1:]


def _shapes(division: _Division, extent: tuple[int, int, int], side: int) -> list[tuple[int, int, int]]:
    """Shapes of section 5.2: {i: T x RF, k: T / RF}, {k: T / RF, j: T x RF} for RF in powers of two; square ones first."""
    I, J, K = extent  # noqa: E741 - extents, as in the papers
    shapes = {(I, J, K): None} if division.legal((I, J, K)) else {}  # an operand that fits as it is needs no tiles
    for power in sorted(range(-side.bit_length(), side.bit_length() + 1), key=abs):
        long, short = (side << power, side >> power) if power >= 0 else (side >> -power, side << -power)
        long, short = max(1, long), max(1, short)
        shape = (min(I, long) if division.keeps_a else I, min(J, long), min(K, short))
        if division.legal(shape):
            shapes[shape] = None
    return list(shapes) or [(1 if division.keeps_a else I, 1, 1)]


def _fits(a: Pattern, b: Pattern, division: _Division) -> bool:
    """Whether both operands fit whole."""
    return b.nnz <= division.capacity("B", b.rows) and (not division.keeps_a or a.nnz <= division.capacity("A", a.rows))


def _sized(a: Pattern, b: Pattern, division: _Division, shape: tuple[int, int, int]) -> tuple[int, int, int]:
    """Size by TileFactor (section 5.2.1): as many of the largest tiles as fit lie beside one another in one tile.

    The long sides grow first, T_i with A's factor and T_j with B's. What B's cannot use because its rank has ended makes
    T_k longer, as far as A's tile, if kept, fits too.
    """
    T_i, T_j, T_k = shape
    I, J, K = a.rows, b.columns, a.columns  # noqa: E741 - extents, as in the papers
    largest_b = max(1, occupancy(b, T_k, T_j).largest)
    largest_a = max(1, occupancy(a, T_i, T_k).largest) if division.keeps_a else 0
    factor = max(1, division.capacity("B", T_k) // largest_b)
    grown_j = min(factor, -(-J // T_j))
    T_j = min(J, T_j * grown_j)
    grown_k = 1
    while T_k * grown_k < K and grown_j * (grown_k + 1) * largest_b <= division.capacity("B", T_k * (grown_k + 1)):
        if division.keeps_a and (grown_k + 1) * largest_a > division.capacity("A", T_i):
            break
        grown_k += 1
    if division.keeps_a:
        low, high = 1, max(1, -(-I // T_i))
        while low < high:  # the metadata of A's rows take room too
            middle = (low + high + 1) // 2
            if middle * grown_k * largest_a <= division.capacity("A", min(I, T_i * middle)):
                low = middle
            else:
                high = middle - 1
        T_i = min(I, T_i * low)
    return T_i, T_j, min(K, T_k * grown_k)
