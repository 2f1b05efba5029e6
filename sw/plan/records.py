"""How A, B and C lie in memory."""

from sw.formats.memory_csr import MemoryCsr, memory_csr
from sw.scheme.terms import B_BY_COLUMNS, Hardware

from .plan import Matrix, Plan

__all__ = ["record_formats", "tensor_formats"]


def tensor_formats(design: Hardware, inner: int, columns: int) -> dict[str, MemoryCsr]:
    """The format of each tensor. Coordinates of A are below ``inner``, those of C below ``columns``; B's as it lies."""
    sizes = {"A": inner, "B": inner if design.pe.dataflow in B_BY_COLUMNS else columns, "C": columns}
    return {tensor: memory_csr(design.packed, design.pe.value, size) for tensor, size in sizes.items()}


def record_formats(planned: Plan[Matrix], design: Hardware) -> dict[str, MemoryCsr]:
    """The formats of a plan. Coordinates of A are columns, or say where rows of B are where tiles load what they use."""
    found = planned.rows_of_b
    inner = planned.a.columns if found is None else found.coordinates
    if found is not None and found.rows is None:
        inner = max(inner, min(2, planned.a.columns))  # there is no list: the hardware counts all rows
    return tensor_formats(design, inner, planned.b.columns)
