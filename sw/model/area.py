"""How large a design is, roughly, without synthesising it: enough to draw one axis of a trade-off."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["area_proxy"]

# Logic cells (LUTs and flip-flops) of a design with 64 leaves and lines of 128 bits on ECP5, `fiberloom synth --target ecp5`:
# a cascade of adders and a merge tree grow with the levels, leaf buffers with the leaves, the rest stays. Levels of narrow
# types are in the proportion that they have in elements synthesised in one piece.
CELLS_A_LEVEL = {"fp32": 1870, "bf16": 1110, "int32": 1020, "int16": 600, "int8": 460}
CELLS_A_LEAF = 49
CELLS_A_PE = 2750
# Outside the elements: registers, accessors, memory engine, banked SRAM's ports; nearly all of it moves lines.
CELLS_BESIDE = 105_000
LINE_BYTES = 16
# Bits of SRAM that take the room of a logic cell.
BITS_A_CELL = 6


def area_proxy(design: "Design") -> float:
    """Area in bits of SRAM: the buffer, the memories of the processing elements, and logic cells at ``BITS_A_CELL``.

    Not an area: synthesis says that. It orders designs of one kind, and moves with buffer, elements, radix and bus.
    """
    line_bits = 8 * design.line_bytes
    radix, levels = design.pe.merge_radix, design.pe.merge_radix.bit_length() - 1
    memory = (sum(map(design.leaf_slots, range(radix))) + design.pe.queue_lines) * line_bits
    cells = CELLS_A_LEVEL[design.pe.value] * levels + CELLS_A_LEAF * radix + CELLS_A_PE
    beside = CELLS_BESIDE * design.line_bytes / LINE_BYTES
    return 8 * design.buffer.bytes + design.pe.count * (memory + BITS_A_CELL * cells) + BITS_A_CELL * beside
