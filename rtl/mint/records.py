"""What packer and unpacker share: groups of records, checks of sizes, elastic pipeline stages."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Shape, Signal, Value
from amaranth.lib import data

__all__ = ["Stage", "check_sizes", "low_mask", "multiples_of", "record_group"]

LARGEST_BEAT = 1024
LARGEST_RECORD = 128


def record_group(lanes: int, width: int) -> data.StructLayout:
    """Up to ``lanes`` records: ``records[0]`` to ``records[count - 1]``. ``last`` ends the request or region."""
    return data.StructLayout(
        {"records": data.ArrayLayout(width, lanes), "count": range(lanes + 1), "last": 1},
    )


def check_sizes(*, beat_bits: int, lanes: int, width: int, stages: int) -> None:
    """Raises TypeError or ValueError where packer or unpacker cannot have these sizes."""
    for name, value in (("Beat", beat_bits), ("Lanes", lanes), ("Record width", width), ("Stages", stages)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} must be an integer, not {value!r}")
    if not 8 <= beat_bits <= LARGEST_BEAT or beat_bits & (beat_bits - 1):
        raise ValueError(f"Beat must be a power of two from 8 to {LARGEST_BEAT} bits, not {beat_bits!r}")
    if not 1 <= lanes <= 16 or lanes & (lanes - 1):
        raise ValueError(f"Lanes must be a power of two from 1 to 16, not {lanes!r}")
    if not 1 <= width <= min(LARGEST_RECORD, beat_bits):
        raise ValueError(f"Record width must be from 1 to {min(LARGEST_RECORD, beat_bits)} bits, not {width!r}")
    if not 1 <= stages <= 4:
        raise ValueError(f"Stages must be from 1 to 4, not {stages!r}")


def low_mask(count: Value, width: int) -> Value:
    """``width`` bits of which the lowest ``count`` are set."""
    return Cat(count > n for n in range(width))


def multiples_of(value: Value, most: int) -> list[Value]:
    """0, 1, ... ``most`` times the value, by sums and shifts: tools would take multipliers."""
    found: list[Value] = [Const(0, 1), value]
    for n in range(2, most + 1):
        half = found[n // 2] << 1
        found.append(half + value if n % 2 else half)
    return found[: most + 1]


class Stage:
    """A register of a pipeline in which each stage moves on as soon as the next one can take what it has.

    Attributes
    ----------
    valid : Signal(1); payload : of ``shape``. Registers.
    ready : Signal(1). The stage takes something in this cycle; follows ``taken`` at once.
    """

    def __init__(self, m: Module, name: str, shape: Any) -> None:
        self._m = m
        self.valid = Signal(name=f"{name}_valid")
        self.payload: Any = Signal(shape, name=name, reset_less=True)
        self.ready = Signal(name=f"{name}_ready")

    def moves(self, *, comes: Value, taken: Value) -> None:
        """``comes``: something is offered. ``taken``: what is here goes."""
        self._m.d.comb += self.ready.eq(~self.valid | taken)
        with self._m.If(self.ready):
            self._m.d.sync += self.valid.eq(comes)

    def holds(self, item: Any) -> None:
        """What the register takes: an expression, or one for each field."""
        with self._m.If(self.ready):
            if not isinstance(item, dict):
                self._m.d.sync += self.payload.eq(item)
                return
            for name, value in item.items():
                field = self.payload[name]
                if isinstance(value, list):
                    self._m.d.sync += [field[n].eq(part) for n, part in enumerate(value)]
                elif Shape.cast(Value.cast(field).shape()).width:
                    self._m.d.sync += field.eq(value)
