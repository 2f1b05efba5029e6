"""Linear-feedback shift registers: counts that are compared for equality alone, without an adder."""

from amaranth.hdl import Cat, Value

from .check import check_integer

__all__ = ["LFSR_TAPS", "lfsr_next", "lfsr_width"]

#: For each width the taps beside the last bit: with them the register goes through all values but one.
LFSR_TAPS = {
    2: (0,),
    3: (1,),
    4: (2,),
    5: (2,),
    6: (4,),
    7: (5,),
    8: (3, 4, 5),
    9: (4,),
    10: (6,),
    11: (8,),
    12: (0, 3, 5),
    13: (0, 2, 3),
    14: (0, 2, 4),
    15: (13,),
    16: (3, 12, 14),
    17: (13,),
    18: (10,),
}


def lfsr_width(steps: int) -> int:
    """Bits of a register that has another value after each of 1 to ``steps`` steps, ``steps`` below 2**18 - 1."""
    check_integer("Steps of a shift register", steps, 0, (1 << max(LFSR_TAPS)) - 2)
    return max(2, (steps + 1).bit_length())


def lfsr_next(value: Value) -> Value:
    """The value after this one, of the same width: the inverted parity of the taps goes in at bit 0.

    From 0 on a value comes again after ``2**width - 1`` steps. The one with all bits set never comes.
    """
    last = value[len(value) - 1]
    return Cat(~(last ^ Cat(value[tap] for tap in LFSR_TAPS[len(value)]).xor()), value)[: len(value)]
