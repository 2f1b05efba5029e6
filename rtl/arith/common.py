"""What the operators share: their ports, the pipeline register, floating-point formats and two bit-level helpers."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..lib.block import Block

__all__ = [
    "BFLOAT16",
    "BIAS",
    "BINARY32",
    "SLOT",
    "Float",
    "FloatOperator",
    "Format",
    "IntOperator",
    "Operator",
    "leading_zeros",
    "shift_right_sticky",
    "sign_extended",
]

SLOT = 32  # bits of the word that holds a value, whatever its type
EXPONENT = 8
BIAS = 127


class Operator(Block):
    """A binary operator on values in 32-bit words, pipelined, one result per cycle.

    A word read as ``int32`` or as binary32 is the number itself, whatever the type: an integer is sign-extended, a
    bfloat16 lies in the upper half above zeros. Only the bits of the type count in an operand; all 32 bits of a result are valid.

    Subclasses differ in what they compute and in their latency and in nothing else, so one may stand in for another.

    Members
    -------
    a, b : In(32)
        Operands, sampled at the end of every cycle in which ``advance`` is high.
    advance : In(1)
        Clock enable of the whole pipeline: while it is low nothing moves and ``result`` holds.
    result : Out(32)
        Registered. Belongs to the operands sampled ``latency`` advancing cycles earlier.

    There is no valid bit inside, and a reset does not clear the pipeline. The parent sends its own valid bit (and whatever
    else belongs to the operands) through ``latency`` registers with the same clock enable, and resets only those.
    ``result`` has no meaning before the first operands have passed.

    Timing
    ------
    ``latency`` advancing cycles; one result for each of them.
    """

    a: In(32)
    b: In(32)
    advance: In(1)
    result: Out(32)

    @property
    def latency(self) -> int:
        """Advancing cycles from the operands being sampled to their result being visible, at least 1.

        With operands presented in cycle t and ``advance`` constantly high, ``result`` holds theirs in cycle
        t + ``latency``.
        """
        raise TypeError(f"{type(self).__name__} does not state its latency")

    def _register(self, m: Module, name: str, value: Value) -> Signal:
        """``value`` delayed by one advancing cycle; not reset, because a valid bit outside guards it."""
        register = Signal(Value.cast(value).shape(), name=name, reset_less=True)
        with m.If(self.advance):
            m.d.sync += register.eq(value)
        return register


class IntOperator(Operator):
    """An operator on two's complement integers.

    Parameters
    ----------
    width : int
        Bits of an integer: 8, 16 or 32 (default).
    saturate : bool
        False (default): the low ``width`` bits of the result. True: the result clamped to -2**(width - 1) ..
        2**(width - 1) - 1.

    Timing
    ------
    As :class:`Operator`.
    """

    def __init__(self, *, width: int = 32, saturate: bool = False) -> None:
        if width not in (8, 16, 32):
            raise ValueError(f"Width must be 8, 16 or 32, not {width!r}")
        _check_flag("Saturate", saturate)
        self.width = width
        self.saturate = saturate
        super().__init__()


@dataclass(frozen=True)
class Format:
    """A floating-point format with 8 exponent bits, in the upper bits of its word. ``fraction``: bits below the leading one."""

    name: str
    fraction: int

    @property
    def significand(self) -> int:
        """Bits of a significand with its leading one."""
        return self.fraction + 1

    @property
    def unused(self) -> int:
        """Bits of the word below the number."""
        return SLOT - 1 - EXPONENT - self.fraction

    @property
    def infinity(self) -> int:
        """Magnitude of the infinities."""
        return ((1 << EXPONENT) - 1) << self.fraction

    @property
    def nan(self) -> int:
        """Magnitude of the only NaN that a result can be."""
        return self.infinity | 1 << (self.fraction - 1)

    def packed(self, magnitude: Value, sign: Value) -> Value:
        """The word that holds a number."""
        return Cat(C(0, self.unused), magnitude, sign) if self.unused else Cat(magnitude, sign)


BINARY32 = Format("binary32", 23)
BFLOAT16 = Format("bfloat16", 7)


class FloatOperator(Operator):
    """An operator on floating-point numbers.

    Parameters
    ----------
    format : Format
        ``BINARY32`` (default) or ``BFLOAT16``.
    flush_subnormals : bool
        False (default): as IEEE 754 says. True: a subnormal operand counts as a zero of its sign, and so does a result that the
        subclass calls too small.

    Timing
    ------
    As :class:`Operator`.
    """

    def __init__(self, *, format: Format = BINARY32, flush_subnormals: bool = False) -> None:
        if format not in (BINARY32, BFLOAT16):
            raise ValueError(f"Format must be BINARY32 or BFLOAT16, not {format!r}")
        _check_flag("Flush subnormals", flush_subnormals)
        self.format = format
        self.flush_subnormals = flush_subnormals
        super().__init__()


def _check_flag(what: str, flag: Any) -> None:
    if not isinstance(flag, bool):
        raise TypeError(f"{what} must be a bool, not {flag!r}")


class Float:
    """The fields of a number of some format in its word."""

    def __init__(self, slot: Value, format: Format) -> None:
        self.magnitude = slot[format.unused : SLOT - 1]
        self.fraction = slot[format.unused : format.unused + format.fraction]
        self.exponent = slot[format.unused + format.fraction : SLOT - 1]
        self.sign = slot[SLOT - 1]

    def is_tiny(self) -> Value:
        """Zero or subnormal."""
        return ~self.exponent.any()

    def is_infinite(self) -> Value:
        return self.exponent.all() & ~self.fraction.any()

    def is_nan(self) -> Value:
        return self.exponent.all() & self.fraction.any()

    def significand(self, *, flush: bool) -> Value:
        """With the leading one explicit; ``flush`` reads a subnormal as zero."""
        normal = ~self.is_tiny()
        fraction = Mux(normal, self.fraction, 0) if flush else self.fraction
        return Cat(fraction, normal)

    def scale(self) -> Value:
        """The exponent that weighs the significand: subnormals have that of the smallest normal number, 1."""
        return Cat(self.exponent[0] | self.is_tiny(), self.exponent[1:])


def sign_extended(value: Value) -> Value:
    """The word of an integer."""
    return Cat(value, value[-1].replicate(SLOT - len(value))) if len(value) < SLOT else value


def leading_zeros(m: Module, value: Value, name: str) -> Signal:
    """Number of zeros above the highest one of ``value``; its length where it has none.

    A binary tree: each node counts in the upper half of its bits, or in the lower one if the upper half is all zero.
    """
    width = len(value)
    depth = width.bit_length()
    # Ones below the value stop the count at its length.
    padded = Signal(1 << depth, name=f"{name}_of")
    m.d.comb += padded.eq(Cat(C(-1, (1 << depth) - width), value))
    counts: list[Value] = []
    for level in range(depth):
        merged: list[Value] = []
        half = 1 << level
        for index in range(len(padded) // (2 * half)):
            high_empty = ~padded[(2 * index + 1) * half : (2 * index + 2) * half].any()
            # Of the two counts below, the upper one holds unless its bits are all zero, which sets the new top bit.
            rest = [Mux(high_empty, counts[2 * index], counts[2 * index + 1])] if level else []
            count = Signal(level + 1, name=f"{name}_level{level}_{index}")
            m.d.comb += count.eq(Cat(*rest, high_empty))
            merged.append(count)
        counts = merged
    result = Signal(depth, name=name)
    m.d.comb += result.eq(counts[0])
    return result


def shift_right_sticky(m: Module, value: Value, amount: Value, name: str) -> tuple[Value, Value]:
    """``value >> amount`` and whether a one fell off at the right end.

    Largest step first, so that the bits that can still fall off halve at each step, and the sticky logic with them.
    """
    sticky: Value = C(0, 1)
    current = Signal(len(value), name=f"{name}_from")
    m.d.comb += current.eq(value)
    for step in reversed(range(len(amount))):
        distance = min(1 << step, len(current))
        shifted = Signal(len(current), name=f"{name}_by{1 << step}")
        dropped = Signal(name=f"{name}_sticky{1 << step}")
        m.d.comb += [
            shifted.eq(Mux(amount[step], current[distance:], current)),
            dropped.eq(sticky | (amount[step] & current[:distance].any())),
        ]
        current, sticky = shifted, dropped
    return current, sticky
