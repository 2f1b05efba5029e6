"""Which adder and which multiplier serve a value type."""

from .common import Operator
from .fp_add import FpAdd
from .fp_multiply import FpMultiply
from .int_add import IntAdd
from .int_multiply import IntMultiply

__all__ = ["VALUES", "arithmetic"]

_OPERATORS: dict[str, tuple[type[Operator], type[Operator]]] = {
    "int32": (IntAdd, IntMultiply),
    "fp32": (FpAdd, FpMultiply),
}

#: Value types that have operators.
VALUES = tuple(_OPERATORS)


def arithmetic(value: str) -> tuple[type[Operator], type[Operator]]:
    """The adder class and the multiplier class of a value type.

    Every class can be called without arguments; its defaults are those of the machine: ``int32`` wraps, ``fp32``
    rounds to nearest even and keeps subnormals.
    """
    if value not in _OPERATORS:
        raise ValueError(f"Value type must be one of {', '.join(VALUES)}, not {value!r}")
    return _OPERATORS[value]
