"""What a scheme must keep to on a design with outer-product or inner-product dataflow.

An outer product walks columns of A and rows of B once a visit and collects a tile of C; an inner product walks rows of A and,
for each of them, all columns of a tile of B. Partitions hold 8 bytes of metadata for each fiber of a buffered tile.
"""

from .errors import SchemeError
from .hardware_scheme import HardwareScheme
from .rules import check_plain_tiles, check_shares
from .shares import MINIMUM_FIFO_LINES, MINIMUM_LINES_A
from .terms import INNER, OUTER, TENSORS, Hardware

__all__ = ["check", "fibers"]

# The rank along which fibers of each tensor follow one another.
FIBER_RANK = {OUTER: {"A": "k", "B": "k", "C": "i"}, INNER: {"A": "i", "B": "j", "C": "i"}}


def fibers(dataflow: str, scheme: HardwareScheme, tensor: str) -> int:
    """Fibers of a whole tile."""
    return scheme.tile(FIBER_RANK[dataflow][tensor])


def check(scheme: HardwareScheme, design: Hardware) -> None:
    """Raise SchemeError unless the model of the design's dataflow can run the scheme, whose sides fit the operands."""
    line, dataflow = design.line_bytes, design.pe.dataflow
    check_shares(scheme, design)
    check_plain_tiles(scheme, dataflow)
    for tensor in "AB":
        least = (MINIMUM_LINES_A if tensor == "A" else MINIMUM_FIFO_LINES) * line
        if scheme.buffer_bytes[tensor] < least:
            raise SchemeError(f"buffer_bytes.{tensor}", scheme.buffer_bytes[tensor], f"at least {least}")
        least, most = MINIMUM_FIFO_LINES * line, scheme.buffer_bytes[tensor]
        if not least <= scheme.fifo_bytes[tensor] <= most:
            raise SchemeError(
                f"fifo_bytes.{tensor}", scheme.fifo_bytes[tensor], f"from {least} to the partition's {most}"
            )
    for tensor in TENSORS:
        if scheme.buffers(tensor):
            count = fibers(dataflow, scheme, tensor)
            region = scheme.fifo_bytes["B"] if tensor == "B" else 0
            needed = (-(-count // design.lanes) + 1) * line + region
            if scheme.buffer_bytes[tensor] < needed:
                allowed = f"at least {needed}: metadata of {count} fibers at 8 bytes, a line"
                raise SchemeError(f"buffer_bytes.{tensor}", scheme.buffer_bytes[tensor], allowed)
