"""Buffet and Tailors buffer against models that keep their entries in plain order."""

from typing import Any

from amaranth.hdl import Assert, Assume, Const, Cover, Module, Mux, Shape, Signal, Value

from rtl.buffer.tailors import TailorsError

from .models import ModelQueue, put_bit, taken_front
from .spec import Spec, fixed_value, free_inputs, implies, obey_streams, upto

__all__ = ["TailorsAgainstModel"]

ANSWER_LATENCY = 12  # cycles, at most, from an accepted read to its answer when no answer waits


class TailorsAgainstModel(Spec):
    """A Tailors buffer of one-bit entries does what the operations mean, for any sequence of them.

    The model holds the buffet-managed entries and those of the FIFO-managed region in two rows of bits, oldest first, and
    follows the paper's section 3.3 operation by operation; it knows no addresses. An operation counts when the buffer
    accepts it. Compared are the answers of every read, the counts, the FIFO offset and the named TailorsError.
    Legal and illegal operations come in any order; the configuration is any one that is allowed.

    Parameters
    ----------
    buffer : TailorsBuffer
        With entries of one bit and without ``release``.
    setting : tuple[int, int, int], optional
        Capacity, entries of the FIFO-managed region and tile length. Default: any that are allowed, at the same time.
    backfill : bool
        Executions are long enough for a backfill, where the setting has one: it has a cover.
    """

    def __init__(self, buffer: Any, *, setting: tuple[int, int, int] | None = None, backfill: bool = True) -> None:
        super().__init__()
        self.buffer = buffer
        self.setting = setting
        self.backfill = backfill

    def claims(self, m: Module) -> None:
        m.submodules.buffer = buffer = self.buffer
        sizes = buffer.control
        entries, index_width, answers = sizes.entries, sizes.index_width, sizes.queue_depth
        free_inputs(m, buffer, but=("capacity", "fifo_entries", "tile_length"))
        obey_streams(m, buffer)
        widths = (range(entries + 1), range(entries + 1), index_width)
        names = ("capacity", "fifo_entries", "tile_length")
        if self.setting is None:
            capacity, fifo, length = (fixed_value(m, width, name) for width, name in zip(widths, names, strict=True))
        else:
            capacity, fifo, length = (
                Const(value, Shape.cast(width)) for value, width in zip(self.setting, widths, strict=True)
            )
        m.d.comb += [
            buffer.capacity.eq(capacity),
            buffer.fifo_entries.eq(fifo),
            buffer.tile_length.eq(length),
            Assume(upto(capacity, 1, entries)),
            Assume(upto(fifo, 1, capacity)),
        ]
        model = _Model(m, buffer, (capacity, fifo, length))
        error = model.follow()
        self._compare(m, model, error, answers)

    def _compare(self, m: Module, model: "_Model", error: Signal, answers: int) -> None:
        buffer = self.buffer
        answered = buffer.read_data.valid & buffer.read_data.ready
        expected = ModelQueue(
            m,
            "expected",
            width=1,
            depth=answers,
            push=model.reads & ~model.read_beyond,
            item=model.read_bit,
            pop=answered,
        )
        silent = Signal(range(ANSWER_LATENCY + 1))
        m.d.sync += silent.eq(0)
        with m.If((expected.level != 0) & ~buffer.read_data.valid & (silent != ANSWER_LATENCY)):
            m.d.sync += silent.eq(silent + 1)
        # The entry that a waiting read asks for, if this OWFill makes it go.
        index = buffer.read.payload
        waiting = buffer.read.valid & ~buffer.read.ready & model.read_there
        goes = Signal()
        m.d.comb += goes.eq(
            model.overwrites
            & (
                (model.splits & (index >= model.kept))
                | (model.backfills & model.overbooked & (index >= model.regular))
                | (
                    model.overbooked
                    & ~model.backfills
                    & (model.region == model.fifo)
                    & (index == model.regular + model.offset)
                )
            )
        )
        m.d.comb += [
            # The buffer accepts no operation that the model could not do.
            Assert(implies(model.reads, model.read_there | model.read_beyond), "a read waits until its entry is there"),
            Assert(
                implies(model.updates, model.update_there | model.update_beyond),
                "an update waits until its entry is there",
            ),
            Assert(
                implies(
                    model.fills & ~(model.overbooked & ~model.shrunk),
                    ~model.full & ~model.overbooked & ~model.backfilling,
                ),
                "a fill waits for credit",
            ),
            Assert(
                ~(waiting & goes & ~(buffer.shrink.valid & (model.splits | model.backfills))),
                "an OWFill waits for the read at the port that it would rob, unless a Shrink changes what that asks for",
            ),
            Assert(~expected.overflows, "no more reads in flight than answers kept"),
            Assert(implies(buffer.read_data.valid, expected.level != 0), "no answer without a read"),
            Assert(
                implies(buffer.read_data.valid, buffer.read_data.payload == expected.head), "the answer is the entry"
            ),
            Assert(silent != ANSWER_LATENCY, "every read is answered"),
            Assert(buffer.occupancy == model.regular + model.region, "occupancy counts the entries"),
            Assert(
                buffer.credit == Mux(model.overbooked | model.backfilling, 0, model.capacity - model.regular),
                "credit and occupancy make up the capacity",
            ),
            Assert(buffer.overbooked == model.overbooked, "overbooked"),
            Assert(
                implies(model.overbooked, buffer.fifo_offset == model.offset),
                "the FIFO offset is the oldest entry's position",
            ),
            Assert(
                Value.cast(buffer.error) == Value.cast(error), "an illegal operation raises its error, a legal one none"
            ),
        ]
        # What the setting lets happen: only a tile with an end begins anew, and only behind a kept part that shrinks is
        # there room to fill again.
        ends, keeps = True, True
        if self.setting is not None:
            ends, keeps = self.setting[2] != 0, self.setting[1] < self.setting[0]
        m.d.comb += Cover(
            model.overbooked
            & answered
            & ((model.bounded & (model.offset == 0)) if ends else (model.offset > model.fifo))
        )
        if ends and keeps and self.backfill:
            m.d.comb += Cover(model.backfilling)


class _Model:
    """Entries of the buffer in plain order, and what each accepted operation does to them, in the words of sw/golden/tailors.py.

    Parameters
    ----------
    m: the module of the spec, which holds the model. buffer: whose operations it follows.
    setting: capacity, entries of the FIFO-managed region and tile length.
    """

    def __init__(self, m: Module, buffer: Any, setting: tuple[Value, Value, Value]) -> None:
        self.m, self.buffer = m, buffer
        self.capacity, self.fifo, self.length = setting
        entries = buffer.control.entries
        self.index_width = buffer.control.index_width
        count = range(entries + 1)
        self.regular = Signal(count, name="model_regular")
        self.region = Signal(count, name="model_region")
        self.kept_bits = Signal(entries, name="model_kept_bits")
        self.region_bits = Signal(entries, name="model_region_bits")
        self.offset = Signal(self.index_width, name="model_offset")
        self.bumped = Signal(self.index_width, name="model_bumped")
        self.overbooked = Signal(name="model_overbooked")
        self.bounded = Signal(name="model_bounded")
        self.shrunk = Signal(name="model_shrunk")
        self.backfilling = Signal(name="model_backfilling")
        self.full = self.regular == self.capacity
        self.kept = (self.capacity - self.fifo)[: len(self.regular)]
        self.reads = buffer.read.valid & buffer.read.ready
        self.updates = buffer.update.valid & buffer.update.ready
        self.fills = buffer.fill.valid & buffer.fill.ready
        self.overwrites = buffer.overwrite.valid & buffer.overwrite.ready
        self.shrinks = buffer.shrink.valid & buffer.shrink.ready
        self.amount = buffer.shrink.payload
        self.read_there, self.read_beyond, self.read_bit = self.located(buffer.read.payload, "read")
        self.update_there, self.update_beyond, _ = self.located(buffer.update.payload.index, "update")
        self.raised = Signal(len(TailorsError))
        self.newest = Signal(self.index_width, name="model_newest_plus_one")  # position that the next OWFill brings
        self.backfills = Signal()
        self.splits = Signal()
        self.entry = buffer.overwrite.payload

    def follow(self) -> Signal:
        """Makes the model do what each accepted operation does, in the order of the golden model's functions; its error."""
        m, buffer = self.m, self.buffer
        m.d.comb += self.newest.eq(
            Mux(
                self.bounded & (self.offset + self.region >= self.bumped),
                self.offset + self.region - self.bumped,
                (self.offset + self.region)[: self.index_width],
            )
        )
        self._update_and_fill()
        self._overwrite()
        self._shrink()
        self.error = Signal(TailorsError, name="model_error")
        with m.If(buffer.clear_error):
            m.d.sync += self.error.eq(TailorsError.NONE)
        with m.If((self.error == TailorsError.NONE) | buffer.clear_error):
            for code in reversed(list(TailorsError)[1:]):
                with m.If(self.raised[code.value]):
                    m.d.sync += self.error.eq(code)
        return self.error

    def located(self, index: Value, name: str) -> tuple[Signal, Signal, Signal]:
        """Where index is: (it is stored, it is beyond the tile, its bit)."""
        m = self.m
        stored, beyond, bit = (
            Signal(name=f"{name}_stored"),
            Signal(name=f"{name}_beyond"),
            Signal(name=f"{name}_bit"),
        )
        position = Signal(self.index_width, name=f"{name}_position")
        distance = Signal(self.index_width, name=f"{name}_distance")
        m.d.comb += [
            position.eq(index - self.regular),
            distance.eq(
                Mux(
                    self.bounded & (position < self.offset),
                    position + self.bumped - self.offset,
                    position - self.offset,
                )
            ),
        ]
        with m.If(index < self.regular):
            m.d.comb += [stored.eq(1), bit.eq(self.kept_bits.bit_select(index[: len(self.regular)], 1))]
        with m.Elif(self.overbooked):
            m.d.comb += [
                beyond.eq(self.bounded & (position >= self.bumped)),
                stored.eq(~beyond & (distance < self.region)),
                bit.eq(self.region_bits.bit_select(distance[: len(self.regular)], 1)),
            ]
        return stored, beyond, bit

    def _fail(self, code: Any) -> Any:
        return self.raised[code.value].eq(1)

    def _update_and_fill(self) -> None:
        m, buffer = self.m, self.buffer
        with m.If(self.reads & self.read_beyond | self.updates & self.update_beyond):
            m.d.comb += self._fail(TailorsError.INDEX_BEYOND_TILE)
        place = (buffer.update.payload.index - self.regular)[: self.index_width]
        distance = Signal(self.index_width, name="update_place")
        m.d.comb += distance.eq(
            Mux(self.bounded & (place < self.offset), place + self.bumped - self.offset, place - self.offset)
        )
        with m.If(self.updates & self.update_there):
            with m.If(buffer.update.payload.index < self.regular):
                m.d.sync += self.kept_bits.eq(
                    put_bit(self.kept_bits, buffer.update.payload.index, buffer.update.payload.data)
                )
            with m.Else():
                m.d.sync += self.region_bits.eq(put_bit(self.region_bits, distance, buffer.update.payload.data))
        with m.If(self.fills):
            with m.If(self.overbooked & ~self.shrunk):
                m.d.comb += self._fail(TailorsError.FILL_WHILE_OVERBOOKED)
            with m.Else():
                m.d.sync += [
                    self.kept_bits.eq(put_bit(self.kept_bits, self.regular, buffer.fill.payload)),
                    self.regular.eq(self.regular + 1),
                ]

    def _overwrite(self) -> None:
        m = self.m
        with m.If(self.overwrites):
            with m.If(self.overbooked & self.bounded & self.shrunk & (self.newest == 0)):
                m.d.comb += self.backfills.eq(1)
                m.d.sync += [self.overbooked.eq(0), self.shrunk.eq(0), self.region.eq(0), self.offset.eq(0)]
            with m.Elif(self.overbooked & (self.region == self.fifo)):
                m.d.sync += [
                    self.region_bits.eq(put_bit(self.region_bits >> 1, self.fifo - 1, self.entry)),
                    self.offset.eq(Mux(self.bounded & (self.offset + 1 == self.bumped), 0, self.offset + 1)),
                ]
            with m.Elif(self.overbooked):
                m.d.sync += [
                    self.region_bits.eq(put_bit(self.region_bits, self.region, self.entry)),
                    self.region.eq(self.region + 1),
                ]
            with m.Elif(self.backfilling & ~self.full):
                m.d.comb += self.backfills.eq(1)
            with m.Elif(~self.full):
                m.d.comb += self._fail(TailorsError.OVERWRITE_BEFORE_FULL)
            with m.Elif(~self.backfilling & upto(self.length, 1, self.capacity)):
                m.d.comb += self._fail(TailorsError.OVERWRITE_OF_FITTING_TILE)
            with m.Else():
                m.d.comb += self.splits.eq(1)
        with m.If(self.backfills):
            m.d.sync += [
                self.kept_bits.eq(put_bit(self.kept_bits, self.regular, self.entry)),
                self.regular.eq(self.regular + 1),
                self.bumped.eq(self.bumped - 1),
                self.backfilling.eq(self.bumped != 1),
            ]
        with m.If(self.splits):
            m.d.sync += [
                self.bumped.eq(Mux(self.backfilling, self.bumped + self.fifo, self.length - self.kept)),
                self.bounded.eq(self.backfilling | (self.length != 0)),
                self.regular.eq(self.kept),
                self.region.eq(1),
                self.region_bits.eq(self.entry),
                self.offset.eq(self.fifo),
                self.overbooked.eq(1),
                self.backfilling.eq(0),
            ]

    def _shrink(self) -> None:
        m = self.m
        with m.If(self.shrinks):
            with m.If(self.overbooked & (self.amount == self.regular + self.region)):
                m.d.sync += [self.regular.eq(0), self.region.eq(0), self.overbooked.eq(0), self.shrunk.eq(0)]
            with m.Elif(self.amount > self.regular):
                m.d.comb += self._fail(TailorsError.SHRINK_BEYOND_OCCUPANCY)
            with m.Else():
                m.d.sync += [
                    self.kept_bits.eq(taken_front(self.kept_bits, self.amount)),
                    self.regular.eq(self.regular - self.amount),
                ]
                with m.If(self.overbooked & (self.amount != 0)):
                    m.d.sync += self.shrunk.eq(1)
