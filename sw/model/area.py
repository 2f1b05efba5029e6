"""How large a design is, roughly, without synthesising it: enough to draw one axis of a trade-off."""

from typing import TYPE_CHECKING

from sw.timing.constants import BITS_A_CELL, CELLS_A_LEAF, CELLS_A_LEVEL, CELLS_A_PE, CELLS_LINE_BYTES, OTHER_CELLS

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["area_proxy"]


def area_proxy(design: "Design") -> float:
    """Area in bits of SRAM: the buffer, the memories of the processing elements, and logic cells at ``BITS_A_CELL``.

    Not an area: synthesis says that. It orders designs of one kind, and moves with buffer, elements, radix and bus.
    """
    line_bits = 8 * design.line_bytes
    radix, levels = design.pe.merge_radix, design.pe.merge_radix.bit_length() - 1
    memory = (sum(map(design.leaf_slots, range(radix))) + design.pe.queue_lines) * line_bits
    cells = CELLS_A_LEVEL[design.pe.value] * levels + CELLS_A_LEAF * radix + CELLS_A_PE
    shared_cells = OTHER_CELLS * design.line_bytes / CELLS_LINE_BYTES
    return 8 * design.buffer.bytes + design.pe.count * (memory + BITS_A_CELL * cells) + BITS_A_CELL * shared_cells
