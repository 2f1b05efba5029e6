"""What an access or an operation costs, in picojoules: each figure once, with its source. None is fitted to a result.

But for Eyeriss' row all are of 45 nm and 0.9 V: M. Horowitz, "Computing's energy problem", ISSCC 2014, figure 1.1.9, which MINT
cites, too. SAGE's constants, the energy of every result and the analytical model read this table.
"""

from math import sqrt

__all__ = [
    "ADD_PJ",
    "COORDINATE_BITS",
    "DRAM_BIT_PJ",
    "EYERISS_DRAM",
    "EYERISS_SRAM",
    "MAC_PJ",
    "REGISTER_BIT_PJ",
    "SRAM_PJ",
    "merge_step_pj",
    "sram_pj",
]

#: Of a bit: 1.3 nJ for 64 bits, the lower end. HYTE's section 8.1 has the same; MINT's 6400 32-bit additions are it, too.
DRAM_BIT_PJ = 20.0
#: Of an access of 64 bits, by the bytes of the SRAM.
SRAM_PJ = {8 << 10: 10.0, 32 << 10: 20.0, 1 << 20: 100.0}
#: Of a bit of a register file: 1 pJ for 32 bits (EIE, ISCA 2016, table II).
REGISTER_BIT_PJ = 1 / 32
#: Of an addition, or a comparison, of 32 bits.
ADD_PJ = 0.1
#: Of a multiplication and an addition. ``int16``: four 8-bit multiplications; ``bf16``: a 16-bit product summed in 32 bits.
MAC_PJ = {
    "int8": 0.2 + 0.1,
    "int16": 4 * 0.2 + 0.1,
    "int32": 3.1 + 0.1,
    "bf16": 1.1 + 0.9,
    "fp32": 3.7 + 0.9,
}
#: Of a coordinate that a merge compares.
COORDINATE_BITS = 32

#: Of an access of 16 bits, by the kilobytes of the SRAM, and of DRAM; in units of a 16-bit MAC (Chen et al., Eyeriss, ISCA 2016,
#: table IV). The analytical model takes them as picojoules where a specification has no table, as published numbers do.
EYERISS_SRAM = {0.5: 1.0, 100.0: 6.0}
EYERISS_DRAM = 200.0


def sram_pj(size: float) -> float:
    """Of an access of 64 bits to an SRAM of so many bytes.

    It follows the square root of the size, from the largest size of the table that is no larger (the smallest for what is
    smaller still), and is never more than the next size of the table takes.
    """
    sizes = sorted(SRAM_PJ)
    begin = max((each for each in sizes if each <= size), default=sizes[0])
    limit = min((SRAM_PJ[each] for each in sizes if each > size), default=float("inf"))
    return min(limit, SRAM_PJ[begin] * sqrt(size / begin))


def merge_step_pj(value_bits: int) -> float:
    """Of a nonzero that passes one level of a merge tree: its coordinate is compared, and it goes from register to register."""
    return ADD_PJ + 2 * (COORDINATE_BITS + value_bits) * REGISTER_BIT_PJ
