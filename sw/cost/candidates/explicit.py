"""What policies share whose tiles have shapes of their own: buffer shares, and the scheme made of a list of tiles."""

from dataclasses import replace

from sw.cost.protocol import Machine
from sw.cost.shaped import predict_shaped
from sw.scheme.scheme import Scheme
from sw.scheme.shares import MINIMUM_FIFO_LINES, MINIMUM_LINES_A
from sw.scheme.terms import BUFFERING, LOAD_TILE, STREAMING
from sw.stats.workload import Workload

__all__ = ["scheme_of_tiles", "shared_buffer"]


def shared_buffer(design: Machine, share_a: float, share_c: float) -> tuple[dict[str, int], dict[str, int]]:
    """``(buffer_bytes, fifo_bytes)`` for these shares of A and C, the rest for B; no share below what is legal."""
    line = design.line_bytes
    lines = design.buffer.bytes // line
    lines_a = max(MINIMUM_LINES_A, int(lines * share_a))
    lines_c = max(0, min(int(lines * share_c), lines - lines_a - MINIMUM_FIFO_LINES - 2))
    lines_b = lines - lines_a - lines_c
    fifo_b = max(MINIMUM_FIFO_LINES, min(design.buffer.fifo_bytes // line, lines_b // 4))
    return (
        {"A": lines_a * line, "B": lines_b * line, "C": lines_c * line},
        {"A": MINIMUM_FIFO_LINES * line, "B": fifo_b * line},
    )


def scheme_of_tiles(
    policy: str,
    workload: Workload,
    design: Machine,
    parts: tuple[dict[str, int], dict[str, int]],
    tiles: list[list[int]],
    load: str = LOAD_TILE,
) -> Scheme:
    """A scheme of these tiles, A and C streaming, B kept; with its prediction where tiles are loaded whole."""
    sides = [max(t[r + 1] - t[r] for t in tiles) for r in (0, 2, 4)]
    scheme = Scheme(
        policy=policy,
        order="jki",
        T_i=sides[0],
        T_j=sides[1],
        T_k=sides[2],
        buffer_bytes=parts[0],
        fifo_bytes=parts[1],
        mode={"A": STREAMING, "B": BUFFERING, "C": STREAMING},
        tiles=tiles,
        load=load,
    )
    if load == LOAD_TILE:
        return replace(scheme, predicted=predict_shaped(workload, design, scheme).as_dict())
    return scheme
