"""Pipelined arithmetic on values in 32-bit words: interchangeable adders and multipliers of every value type."""

from .arithmetic import VALUES, arithmetic, in_slot
from .common import BFLOAT16, BINARY32, Format, Operator
from .fp_add import FpAdd
from .fp_multiply import FpMultiply
from .int_add import IntAdd
from .int_multiply import IntMultiply

__all__ = [
    "BFLOAT16",
    "BINARY32",
    "VALUES",
    "Format",
    "FpAdd",
    "FpMultiply",
    "IntAdd",
    "IntMultiply",
    "Operator",
    "arithmetic",
    "in_slot",
]
