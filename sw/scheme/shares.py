"""How the lines of the buffer are shared between A, B and C."""

from gen.design import MINIMUM_FIFO_LINES, MINIMUM_LINES_A
from sw.golden.partition import Partition

from .errors import SchemeError
from .terms import TENSORS, Hardware

__all__ = [
    "MINIMUM_FIFO_LINES",
    "MINIMUM_LINES_A",
    "Shares",
    "default_partition",
    "partition_of",
    "rest_to_largest",
    "shared_buffer",
]

# Enough that every element has a partial row and the next one is on its way.
REENTRY_SHARE = 16
# Of B's lines the FIFO-managed region takes one in so many at most.
FIFO_SHARE = 4

Shares = tuple[dict[str, int], dict[str, int]]


def partition_of(design: Hardware, shares: Shares, tensor: str) -> Partition:
    """The tensor's partition; that of A and of C has no FIFO-managed region."""
    line = design.line_bytes
    fifo = shares[1]["B"] // line if tensor == "B" else 0
    return Partition(lines=shares[0][tensor] // line, fifo_lines=fifo, lanes=design.lanes)


def _shares(design: Hardware, lines: dict[str, int]) -> Shares:
    """``(buffer_bytes, fifo_bytes)``. B's FIFO-managed region is the design's, but never more than a quarter of the partition."""
    line = design.line_bytes
    fifo = max(MINIMUM_FIFO_LINES, min(design.buffer.fifo_bytes // line, lines["B"] // FIFO_SHARE))
    parts = {tensor: lines[tensor] * line for tensor in TENSORS}
    return parts, {"A": MINIMUM_FIFO_LINES * line, "B": fifo * line}


def default_partition(
    design: Hardware, *, lines_a: int = MINIMUM_LINES_A, lines_c: int | None = None, partial_rows: bool = False
) -> Shares:
    """A and C get what is asked for, B the rest. Raises SchemeError where that leaves too little.

    With ``partial_rows``, where k is cut, C has a sixteenth of the buffer unless ``lines_c`` says otherwise: partial rows
    in memory re-enter through it.
    """
    lines = design.buffer.bytes // design.line_bytes
    if lines_c is None:
        spare = max(0, lines - lines_a - MINIMUM_FIFO_LINES - 2)
        lines_c = min(lines // REENTRY_SHARE, spare) if partial_rows else 0
    given = {"A": lines_a, "B": lines - lines_a - lines_c, "C": lines_c}
    found = _shares(design, given)
    least_b = found[1]["B"] // design.line_bytes + 2
    if lines_a < MINIMUM_LINES_A or lines_c < 0 or given["B"] < least_b:
        allowed = f"at least {MINIMUM_LINES_A} lines for A and {least_b} for B out of {lines}"
        raise SchemeError("buffer_bytes", (lines_a, given["B"], lines_c), allowed)
    return found


def shared_buffer(design: Hardware, share_a: float, share_c: float) -> Shares:
    """These shares of A and C, the rest for B; no share below what is legal."""
    lines = design.buffer.bytes // design.line_bytes
    lines_a = max(MINIMUM_LINES_A, int(lines * share_a))
    lines_c = max(0, min(int(lines * share_c), lines - lines_a - MINIMUM_FIFO_LINES - 2))
    return _shares(design, {"A": lines_a, "B": lines - lines_a - lines_c, "C": lines_c})


def rest_to_largest(design: Hardware, shares: dict[str, float]) -> Shares:
    """These shares of A, B and C, none less than legal, and what is left over for the largest of them."""
    lines = design.buffer.bytes // design.line_bytes
    least = {"A": MINIMUM_LINES_A, "B": MINIMUM_LINES_A, "C": 0}
    parts = {tensor: max(least[tensor], int(lines * shares.get(tensor, 0.0))) for tensor in TENSORS}
    largest = max(TENSORS, key=lambda tensor: parts[tensor])
    parts[largest] += lines - sum(parts.values())
    return _shares(design, parts)
