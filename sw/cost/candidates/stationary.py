"""Schemes of weight-stationary designs, from sides and what is kept on chip."""

from sw.cost.protocol import Machine
from sw.scheme.scheme import Scheme
from sw.scheme.shares import MINIMUM_FIFO_LINES, MINIMUM_LINES_A, Shares, default_partition
from sw.scheme.terms import BUFFERING, STREAMING, TENSORS

__all__ = ["stationary_scheme"]


def stationary_scheme(
    policy: str,
    design: Machine,
    extent: tuple[int, int, int],
    order: str,
    tile: tuple[int, int, int],
    kept: set[str],
) -> Scheme:
    """The scheme with these sides, cut to ``extent`` = (I, J, K), and these tensors kept on chip. It may not be legal."""
    i, j, k = (min(side, size) for side, size in zip(tile, extent, strict=True))
    lines = design.buffer.bytes // design.line_bytes
    shares = _shares(design, lines, cut=k < extent[2], kept=kept)
    return Scheme(
        policy=policy,
        order=order,
        T_i=i,
        T_j=j,
        T_k=k,
        buffer_bytes=shares[0],
        fifo_bytes=shares[1],
        mode={tensor: BUFFERING if tensor in kept else STREAMING for tensor in TENSORS},
    )


def _shares(design: Machine, lines: int, *, cut: bool, kept: set[str]) -> Shares:
    """Half of the buffer for A where it is kept, and half of the rest for C where that is."""
    lines_a = lines // 2 if "A" in kept else MINIMUM_LINES_A
    lines_c = 0
    if "C" in kept:
        lines_c = (lines - lines_a) // 4 * 2
    elif cut:
        lines_c = min(lines // 16, lines - lines_a - MINIMUM_FIFO_LINES - 2)
    return default_partition(design, lines_a=lines_a, lines_c=lines_c)
