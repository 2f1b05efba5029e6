"""Pipelined arithmetic on 32-bit values: interchangeable adders and multipliers for ``int32`` and ``fp32``."""

from .arithmetic import VALUES, arithmetic
from .common import Operator
from .fp_add import FpAdd
from .fp_multiply import FpMultiply
from .int_add import IntAdd
from .int_multiply import IntMultiply

__all__ = ["VALUES", "FpAdd", "FpMultiply", "IntAdd", "IntMultiply", "Operator", "arithmetic"]
