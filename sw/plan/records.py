"""How A, B and C of a plan lie in memory."""

from typing import TYPE_CHECKING

from sw.formats.memory_csr import MemoryCsr, memory_csr

from .plan import Matrix, Plan

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["record_formats"]


def record_formats(planned: Plan[Matrix], design: "Design") -> dict[str, MemoryCsr]:
    """The format of each tensor. Coordinates of A are columns, or places where tiles load what they use of B."""
    found = planned.rows_of_b
    inner = planned.a.columns if found is None else max(1, len(found.lines))
    columns = {"A": inner, "B": planned.b.columns, "C": planned.b.columns}
    return {tensor: memory_csr(design.packed, design.pe.value, size) for tensor, size in columns.items()}
