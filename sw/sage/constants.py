"""What an event costs, each number once with its source; none is fitted to a result.

Energies are those of Horowitz, "Computing's energy problem", ISSCC 2014, figure 1.1.9 (45 nm, 0.9 V), which MINT cites, too.
"""

from dataclasses import dataclass

__all__ = [
    "CLOCK_HZ",
    "MAC_PJ",
    "PROCESSORS",
    "Constants",
]

#: Of a multiplication and an addition. ``int16``: four 8-bit multiplications; ``bf16``: a 16-bit product summed in 32 bits.
MAC_PJ = {
    "int8": 0.2 + 0.1,
    "int16": 4 * 0.2 + 0.1,
    "int32": 3.1 + 0.1,
    "bf16": 1.1 + 0.9,
    "fp32": 3.7 + 0.9,
}

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
    dram_bit: 1.3 nJ for 64 bits, the lower end; MINT's 6400 32-bit additions are the same (section I).
    scratchpad_bit: 100 pJ for 64 bits of a 1 MB SRAM: the global buffer that the bus is fed from.
    accumulator_bit: 10 pJ for 64 bits of an 8 KB SRAM: a bank of the output buffer.
    pe_bit: 1 pJ for 32 bits of a register file, as EIE has it (table II there): a PE's 512 bytes.
    add_bit: 0.1 pJ for a 32-bit addition: an input of a prefix sum.
    compare_bit: an addition and the read of the stored id that is compared.
    divide: pJ of a 32-bit division or remainder: as many additions as bits.
    prefix_inputs: MINT, section VII.B: 32 inputs of the prefix sum.
    dividers: MINT, section VII.B: at most eight dividers, and as many mod units.
    sorted_entries: entries that sorter, counters and scratchpad port take: two words of the 16 of a 512-bit port each.
    memory_bits: what memory moves in a cycle; MINT names the 512-bit input bus alone, which memory keeps up with here.
    """

    dram_bit: float = 20.0
    scratchpad_bit: float = 100 / 64
    accumulator_bit: float = 10 / 64
    pe_bit: float = 1 / 32
    add_bit: float = 0.1 / 32
    compare_bit: float = 0.1 / 32 + 1 / 32
    divide: float = 32 * 0.1
    prefix_inputs: int = 32
    dividers: int = 8
    sorted_entries: int = 8
    memory_bits: float = 512.0

    def __post_init__(self) -> None:
        for name, number in vars(self).items():
            if not number > 0:
                raise ValueError(f"{name} must be above 0, not {number!r}")
