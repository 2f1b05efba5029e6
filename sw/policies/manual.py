"""Sides given by hand: whole ranks where no side is given, B's tile outermost so that it is loaded once."""

from sw.cost.candidates.of_shares import scheme_of_shares
from sw.cost.candidates.stationary import stationary_scheme
from sw.cost.protocol import Machine
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition, partition_of
from sw.scheme.terms import BUFFERING, GUSTAVSON, ONLY_B, OUTER, STREAMING, WEIGHT_STATIONARY

__all__ = ["manual"]

POLICY = "forced"


def manual(
    design: Machine, shape: tuple[int, int, int], sides: tuple[int | None, int | None, int | None], order: str | None
) -> Scheme:
    """The scheme with these sides of ``shape`` = (I, J, K); it looks at no operand.

    On a weight-stationary design j is cut to as many columns as there are PEs, and B is kept where k is cut.
    Else B is kept where its metadata leave a line or j is cut. Of an outer or inner product what its dataflow walks poorly gets
    the buffer, where that is legal.
    """
    i, j, k = (min(side or limit, limit) for side, limit in zip(sides, shape, strict=True))
    order = order or "jki"
    if design.pe.dataflow == WEIGHT_STATIONARY:
        # A tile is as wide as the array where nobody says otherwise; tiles of B are cut out of columns where k is.
        kept = {"B"} if k < shape[2] else set()
        return stationary_scheme(POLICY, design, shape, order, (i, sides[1] or design.pe.count, k), kept)
    if design.pe.dataflow != GUSTAVSON:
        first, tile = "C" if design.pe.dataflow == OUTER else "B", {"i": i, "j": j, "k": k}
        found = scheme_of_shares(POLICY, design, order, tile, {first: 1.0}, {first})
        found = found or scheme_of_shares(POLICY, design, order, tile, {first: 1.0}, set())
        assert found is not None  # nothing kept is always legal
        return found
    shares = default_partition(design, partial_rows=k < shape[2])
    keeps = k <= partition_of(design, shares, "B").most_rows or j < shape[1]
    return Scheme(
        policy=POLICY,
        order=order,
        T_i=i,
        T_j=j,
        T_k=k,
        buffer_bytes=shares[0],
        fifo_bytes=shares[1],
        mode=ONLY_B | {"B": BUFFERING if keeps else STREAMING},
    )
