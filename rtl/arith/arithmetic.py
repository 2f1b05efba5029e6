"""Which adder and which multiplier serve a value type."""

from functools import partial
from typing import Any

from amaranth.hdl import C, Cat, Value

from .common import BFLOAT16, BINARY32, SLOT, Operator, sign_extended
from .fp_add import FpAdd
from .fp_multiply import FpMultiply
from .int_add import IntAdd
from .int_multiply import IntMultiply

__all__ = ["VALUES", "arithmetic", "in_slot", "narrowed", "value_bits", "widened"]

Maker = partial[Operator]


def _integers(**parameters: Any) -> tuple[Maker, Maker]:
    return partial(IntAdd, **parameters), partial(IntMultiply, **parameters)


def _floats(**parameters: Any) -> tuple[Maker, Maker]:
    return partial(FpAdd, **parameters), partial(FpMultiply, **parameters)


_OPERATORS: dict[str, tuple[Maker, Maker]] = {}
for _width in (8, 16, 32):
    _OPERATORS[f"int{_width}"] = _integers(width=_width)
    _OPERATORS[f"int{_width}_saturate"] = _integers(width=_width, saturate=True)
for _name, _format in (("bf16", BFLOAT16), ("fp32", BINARY32)):
    _OPERATORS[_name] = _floats(format=_format)
    _OPERATORS[f"{_name}_flush"] = _floats(format=_format, flush_subnormals=True)

#: Value types that have operators; integers wrap and subnormals are kept where the name does not say otherwise.
VALUES = tuple(_OPERATORS)


def in_slot(word: Value, value: str) -> Value:
    """The word with its unused bits replaced by constants or copies of the sign. The value is the same; synthesis keeps none of
    these bits in registers or RAM.
    """
    make_adder, _ = arithmetic(value)
    taken = make_adder.keywords
    if "width" in taken:
        return sign_extended(word[: taken["width"]])
    unused = taken["format"].unused
    return Cat(C(0, unused), word[unused:]) if unused else word


def value_bits(value: str) -> int:
    """Bits of a value of this type where it has no slot of 32."""
    make_adder, _ = arithmetic(value)
    taken = make_adder.keywords
    return int(taken["width"]) if "width" in taken else SLOT - int(taken["format"].unused)


def narrowed(word: Value, value: str) -> Value:
    """The bits of a value out of its slot: the lower ones of an integer, the upper ones of a float."""
    bits = value_bits(value)
    return word[:bits] if value.startswith("int") else word[SLOT - bits :]


def widened(bits: Value, value: str) -> Value:
    """The slot of a value out of its bits, the inverse of :func:`narrowed`."""
    width = value_bits(value)
    return sign_extended(bits[:width]) if value.startswith("int") else Cat(C(0, SLOT - width), bits[:width])


def arithmetic(value: str) -> tuple[Maker, Maker]:
    """The functions that make the adder and the multiplier of a value type.

    ``value`` is ``int8``, ``int16`` or ``int32``, which wrap, or the same with ``_saturate``; or ``bf16`` or ``fp32``,
    which keep subnormals, or the same with ``_flush``. Raises ValueError for any other.
    """
    if value not in _OPERATORS:
        raise ValueError(f"Value type must be one of {', '.join(VALUES)}, not {value!r}")
    return _OPERATORS[value]
