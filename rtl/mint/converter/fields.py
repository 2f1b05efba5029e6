"""Takes records apart into their fields and puts them together: a value, and above it two whole numbers of run-time width."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In

from ...lib.check import check_integer, check_power_of_two
from ..pipeline import StreamPipeline
from ..records import low_mask, record_group
from .streams import COORDINATE_BITS, ENTRY_BITS, field_group, record_bits

__all__ = ["FieldJoiner", "FieldSplitter", "KeyJoiner"]

WIDTH = range(COORDINATE_BITS + 1)


class FieldPipeline(StreamPipeline):
    """What splitter and joiner share: sizes, and the widths of the two whole numbers.

    Parameters
    ----------
    lanes : int
        Records a cycle, power of two from 1 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.

    Timing
    ------
    Two cycles, a group a cycle.
    """

    latency = 2

    def __init__(
        self,
        *,
        lanes: int,
        value_bits: int,
        splits: bool,
        tensors: bool = False,
        others: Mapping[str, In] | None = None,
    ) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        check_integer("Record bits", 2 * COORDINATE_BITS + value_bits, 1, ENTRY_BITS)
        self.tensors = bool(tensors)
        sides = record_group(lanes, record_bits(self.tensors)), field_group(lanes, value_bits, self.tensors)
        taken, given = sides if splits else reversed(sides)
        widths = ("first_bits",) if splits and not tensors else ("first_bits", "second_bits")
        super().__init__(taken=taken, given=given, others={**{name: In(WIDTH) for name in widths}, **(others or {})})

    def _pass_ends(self, m: Module, advance: Signal) -> None:
        """``count`` and ``last`` go along with their group."""
        count = self._register(m, advance, self.i.payload.count, "count")
        last = self._register(m, advance, self.i.payload.last, "last")
        with m.If(advance):
            m.d.sync += [self.o.payload.count.eq(count), self.o.payload.last.eq(last)]


class FieldSplitter(FieldPipeline):
    """Takes records apart: a value in the low bits, then ``first_bits``, then ``second_bits``.

    Parameters
    ----------
    lanes, value_bits : int
        See :class:`FieldPipeline`.
    tensors : bool
        Records have a third number.

    Members
    -------
    i : In(stream(record_group)), o : Out(stream(field_group))
        As :class:`rtl.mint.pipeline.StreamPipeline`. Bits of a record above its width are 0: the last number ends there.
    first_bits : In(range(33)), second_bits : In(range(33))
        The latter with ``tensors``. Constant while a record is inside.

    Timing
    ------
    Two cycles, a group a cycle.
    """

    def __init__(self, *, lanes: int, value_bits: int, tensors: bool = False) -> None:
        super().__init__(lanes=lanes, value_bits=value_bits, splits=True, tensors=tensors)

    def build(self, platform: Any) -> Module:
        m = Module()
        advance, _ = self._handshakes(m)
        first_mask = low_mask(self.first_bits, COORDINATE_BITS)
        for n in range(self.lanes):
            record = Value.cast(self.i.payload.records[n])
            value, ids = record[: self.value_bits], record[self.value_bits :]
            value = self._register(m, advance, value, f"value{n}")
            first = self._register(m, advance, ids[:COORDINATE_BITS] & first_mask, f"first{n}")
            others = (ids >> self.first_bits)[: (2 if self.tensors else 1) * COORDINATE_BITS]
            second = self._register(m, advance, others, f"second{n}")
            if self.tensors:
                third = (second >> self.second_bits)[:COORDINATE_BITS]
                second = second[:COORDINATE_BITS] & low_mask(self.second_bits, COORDINATE_BITS)
                with m.If(advance):
                    m.d.sync += self.o.payload.third[n].eq(third)
            with m.If(advance):
                m.d.sync += [
                    self.o.payload.values[n].eq(value),
                    self.o.payload.first[n].eq(first),
                    self.o.payload.second[n].eq(second),
                ]
        self._pass_ends(m, advance)
        return m


class FieldJoiner(FieldPipeline):
    """The inverse of :class:`FieldSplitter`.

    Parameters
    ----------
    lanes, value_bits : int
        See :class:`FieldPipeline`.

    Members
    -------
    i : In(stream(field_group)), o : Out(stream(record_group))
        Bits of a number above its width are dropped.
    bare : In(1)
        Records have no value: the first number has their low bits.
    first_bits, second_bits : In(range(33))
        Constant while a record is inside.

    Timing
    ------
    Two cycles, a group a cycle.
    """

    def __init__(self, *, lanes: int, value_bits: int) -> None:
        super().__init__(lanes=lanes, value_bits=value_bits, splits=False, others={"bare": In(1)})

    def build(self, platform: Any) -> Module:
        m = Module()
        advance, _ = self._handshakes(m)
        first_mask = low_mask(self.first_bits, COORDINATE_BITS)
        second_mask = low_mask(self.second_bits, COORDINATE_BITS)
        for n in range(self.lanes):
            group = self.i.payload
            value = self._register(m, advance, group.values[n], f"value{n}")
            first = self._register(m, advance, group.first[n] & first_mask, f"first{n}")
            second = self._register(m, advance, group.second[n] & second_mask, f"second{n}")
            ids = (second << self.first_bits) | first
            with m.If(advance):
                m.d.sync += self.o.payload.records[n].eq(Mux(self.bare, ids, Cat(value, ids))[:ENTRY_BITS])
        self._pass_ends(m, advance)
        return m


class KeyJoiner(FieldPipeline):
    """Joins three whole numbers, the first in the low bits, the value in the high ones: a key of which any digit can be taken.

    Parameters
    ----------
    lanes : int
        See :class:`FieldPipeline`. A value has as many bits as a coordinate.

    Members
    -------
    i : In(stream(field_group)), o : Out(stream(record_group))
        Bits of a number above its width are dropped.
    first_bits, second_bits : In(range(33))
        Constant while a record is inside.

    Timing
    ------
    Two cycles, a group a cycle.
    """

    def __init__(self, *, lanes: int) -> None:
        super().__init__(lanes=lanes, value_bits=COORDINATE_BITS, splits=False)

    def build(self, platform: Any) -> Module:
        m = Module()
        advance, _ = self._handshakes(m)
        first_mask = low_mask(self.first_bits, COORDINATE_BITS)
        second_mask = low_mask(self.second_bits, COORDINATE_BITS)
        for n in range(self.lanes):
            second = self.i.payload.second[n] & second_mask
            upper = ((self.i.payload.values[n] << self.second_bits) | second)[: ENTRY_BITS - COORDINATE_BITS]
            rest = self._register(m, advance, upper, f"rest{n}")
            first = self._register(m, advance, self.i.payload.first[n] & first_mask, f"first{n}")
            with m.If(advance):
                m.d.sync += self.o.payload.records[n].eq(Cat((rest << self.first_bits) | first)[:ENTRY_BITS])
        self._pass_ends(m, advance)
        return m
