"""What an event costs; none is fitted to a result. Energies are those of :mod:`sw.energy`, rates have their source here."""

from dataclasses import dataclass

from sw.energy import ADD_PJ, DRAM_BIT_PJ, REGISTER_BIT_PJ, SRAM_PJ

__all__ = [
    "CLOCK_HZ",
    "PROCESSORS",
    "Constants",
]

#: MINT, section VII.B: the converter is placed and routed at 1 GHz.
CLOCK_HZ = 1e9
#: MINT, section VII.B: processors whose libraries convert, by bytes a second of their memory and watts: an Intel Core i9-9820X,
#: an NVIDIA Titan RTX.
PROCESSORS = {"cpu": (85e9, 165.0), "gpu": (672e9, 280.0)}


@dataclass(frozen=True, kw_only=True)
class Constants:
    """Energies in pJ and rates in items a cycle.

    Parameters
    ----------
    dram_bit: of memory.
    scratchpad_bit: of a 1 MB SRAM: the global buffer that the bus is fed from.
    accumulator_bit: of an 8 KB SRAM: a bank of the output buffer.
    pe_bit: of a register file: a PE's 512 bytes.
    add_bit: of an addition: an input of a prefix sum.
    compare_bit: an addition and the read of the stored id that is compared.
    divide: pJ of a 32-bit division or remainder: as many additions as bits.
    prefix_inputs: MINT, section VII.B: 32 inputs of the prefix sum.
    dividers: MINT, section VII.B: at most eight dividers, and as many mod units.
    sorted_entries: entries that sorter, counters and scratchpad port take: two words of the 16 of a 512-bit port each.
    memory_bits: what memory moves in a cycle; MINT names the 512-bit input bus alone, which memory keeps up with here.
    """

    dram_bit: float = DRAM_BIT_PJ
    scratchpad_bit: float = SRAM_PJ[1 << 20] / 64
    accumulator_bit: float = SRAM_PJ[8 << 10] / 64
    pe_bit: float = REGISTER_BIT_PJ
    add_bit: float = ADD_PJ / 32
    compare_bit: float = ADD_PJ / 32 + REGISTER_BIT_PJ
    divide: float = 32 * ADD_PJ
    prefix_inputs: int = 32
    dividers: int = 8
    sorted_entries: int = 8
    memory_bits: float = 512.0

    def __post_init__(self) -> None:
        for name, number in vars(self).items():
            if not number > 0:
                raise ValueError(f"{name} must be above 0, not {number!r}")
