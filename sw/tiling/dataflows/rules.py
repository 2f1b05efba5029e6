"""What a scheme must keep to on a design with outer-product or inner-product dataflow, and how its buffer is shared.

An outer product walks columns of A and rows of B once a visit and collects a tile of C; an inner product walks rows of A and,
for each of them, all columns of a tile of B. Partitions hold 8 bytes of metadata for each fiber of a buffered tile.
"""

from ..scheme import MINIMUM_FIFO_LINES, MINIMUM_LINES_A, TENSORS, Hardware, Scheme, SchemeError

__all__ = ["GUSTAVSON", "INNER", "OUTER", "check", "fibers", "shared"]

GUSTAVSON, OUTER, INNER = "gustavson", "outer", "inner"
# The rank along which fibers of each tensor follow one another.
FIBER_RANK = {OUTER: {"A": "k", "B": "k", "C": "i"}, INNER: {"A": "i", "B": "j", "C": "i"}}


def fibers(dataflow: str, scheme: Scheme, tensor: str) -> int:
    """Fibers of a whole tile."""
    return scheme.tile(FIBER_RANK[dataflow][tensor])


def check(scheme: Scheme, design: Hardware) -> None:
    """Raise SchemeError unless the model of the design's dataflow can run the scheme, whose sides fit the operands."""
    line, dataflow = design.line_bytes, design.pe.dataflow
    for name, sizes in (("buffer_bytes", scheme.buffer_bytes), ("fifo_bytes", scheme.fifo_bytes)):
        for tensor, size in sizes.items():
            if size % line:
                raise SchemeError(f"{name}.{tensor}", size, f"a multiple of the line size {line}")
    total = sum(scheme.buffer_bytes.values())
    if total > design.buffer.bytes:
        raise SchemeError("buffer_bytes", total, f"together at most the buffer's {design.buffer.bytes} bytes")
    absent = f"left out: only gustavson has it, and the design's pe.dataflow is {dataflow}"
    if scheme.tiles:
        raise SchemeError("tiles", scheme.tiles, absent)
    if scheme.tuning:
        raise SchemeError("tuning", True, absent)
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


def shared(design: Hardware, shares: dict[str, float]) -> tuple[dict[str, int], dict[str, int]]:
    """``(buffer_bytes, fifo_bytes)``: A, B and C get these shares of the lines, B or C what is left, and none less than legal."""
    lines = design.buffer.bytes // design.line_bytes
    least = {"A": MINIMUM_LINES_A, "B": MINIMUM_LINES_A, "C": 0}
    parts = {tensor: max(least[tensor], int(lines * shares.get(tensor, 0.0))) for tensor in TENSORS}
    largest = max(TENSORS, key=lambda tensor: parts[tensor])
    parts[largest] += lines - sum(parts.values())
    fifo = max(MINIMUM_FIFO_LINES, min(design.buffer.fifo_bytes // design.line_bytes, parts["B"] // 4))
    return (
        {tensor: count * design.line_bytes for tensor, count in parts.items()},
        {"A": MINIMUM_FIFO_LINES * design.line_bytes, "B": fifo * design.line_bytes},
    )
