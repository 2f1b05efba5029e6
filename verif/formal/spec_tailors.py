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
        sizes = buffer.parameters()
        entries, index_width, answers = sizes["e"], sizes["i"], sizes["q"]
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

        # The model's state, in the words of sw/golden/tailors.py.
        count = range(entries + 1)
        regular = Signal(count, name="model_regular")
        region = Signal(count, name="model_region")
        kept_bits = Signal(entries, name="model_kept_bits")
        region_bits = Signal(entries, name="model_region_bits")
        offset = Signal(index_width, name="model_offset")
        bumped = Signal(index_width, name="model_bumped")
        overbooked = Signal(name="model_overbooked")
        bounded = Signal(name="model_bounded")
        shrunk = Signal(name="model_shrunk")
        backfilling = Signal(name="model_backfilling")
        full = regular == capacity
        kept = (capacity - fifo)[: len(regular)]

        def located(index: Value, name: str) -> tuple[Signal, Signal, Signal]:
            """Where index is: (it is stored, it is beyond the tile, its bit)."""
            stored, beyond, bit = (
                Signal(name=f"{name}_stored"),
                Signal(name=f"{name}_beyond"),
                Signal(name=f"{name}_bit"),
            )
            position = Signal(index_width, name=f"{name}_position")
            distance = Signal(index_width, name=f"{name}_distance")
            m.d.comb += [
                position.eq(index - regular),
                distance.eq(Mux(bounded & (position < offset), position + bumped - offset, position - offset)),
            ]
            with m.If(index < regular):
                m.d.comb += [stored.eq(1), bit.eq(kept_bits.bit_select(index[: len(regular)], 1))]
            with m.Elif(overbooked):
                m.d.comb += [
                    beyond.eq(bounded & (position >= bumped)),
                    stored.eq(~beyond & (distance < region)),
                    bit.eq(region_bits.bit_select(distance[: len(regular)], 1)),
                ]
            return stored, beyond, bit

        reads = buffer.read.valid & buffer.read.ready
        updates = buffer.update.valid & buffer.update.ready
        fills = buffer.fill.valid & buffer.fill.ready
        overwrites = buffer.overwrite.valid & buffer.overwrite.ready
        shrinks = buffer.shrink.valid & buffer.shrink.ready
        amount = buffer.shrink.payload
        read_there, read_beyond, read_bit = located(buffer.read.payload, "read")
        update_there, update_beyond, _ = located(buffer.update.payload.index, "update")

        # What each accepted operation does, in the order of the golden model's functions.
        raised = Signal(len(TailorsError))

        def fail(code: Any) -> Any:
            return raised[code.value].eq(1)

        newest = Signal(index_width, name="model_newest_plus_one")  # position that the next OWFill brings
        m.d.comb += newest.eq(
            Mux(bounded & (offset + region >= bumped), offset + region - bumped, (offset + region)[:index_width])
        )
        with m.If(reads & read_beyond | updates & update_beyond):
            m.d.comb += fail(TailorsError.INDEX_BEYOND_TILE)
        place = (buffer.update.payload.index - regular)[:index_width]
        distance = Signal(index_width, name="update_place")
        m.d.comb += distance.eq(Mux(bounded & (place < offset), place + bumped - offset, place - offset))
        with m.If(updates & update_there):
            with m.If(buffer.update.payload.index < regular):
                m.d.sync += kept_bits.eq(put_bit(kept_bits, buffer.update.payload.index, buffer.update.payload.data))
            with m.Else():
                m.d.sync += region_bits.eq(put_bit(region_bits, distance, buffer.update.payload.data))
        with m.If(fills):
            with m.If(overbooked & ~shrunk):
                m.d.comb += fail(TailorsError.FILL_WHILE_OVERBOOKED)
            with m.Else():
                m.d.sync += [kept_bits.eq(put_bit(kept_bits, regular, buffer.fill.payload)), regular.eq(regular + 1)]
        backfills = Signal()
        splits = Signal()
        entry = buffer.overwrite.payload
        with m.If(overwrites):
            with m.If(overbooked & bounded & shrunk & (newest == 0)):
                m.d.comb += backfills.eq(1)
                m.d.sync += [overbooked.eq(0), shrunk.eq(0), region.eq(0), offset.eq(0)]
            with m.Elif(overbooked & (region == fifo)):
                m.d.sync += [
                    region_bits.eq(put_bit(region_bits >> 1, fifo - 1, entry)),
                    offset.eq(Mux(bounded & (offset + 1 == bumped), 0, offset + 1)),
                ]
            with m.Elif(overbooked):
                m.d.sync += [region_bits.eq(put_bit(region_bits, region, entry)), region.eq(region + 1)]
            with m.Elif(backfilling & ~full):
                m.d.comb += backfills.eq(1)
            with m.Elif(~full):
                m.d.comb += fail(TailorsError.OVERWRITE_BEFORE_FULL)
            with m.Elif(~backfilling & upto(length, 1, capacity)):
                m.d.comb += fail(TailorsError.OVERWRITE_OF_FITTING_TILE)
            with m.Else():
                m.d.comb += splits.eq(1)
        with m.If(backfills):
            m.d.sync += [
                kept_bits.eq(put_bit(kept_bits, regular, entry)),
                regular.eq(regular + 1),
                bumped.eq(bumped - 1),
                backfilling.eq(bumped != 1),
            ]
        with m.If(splits):
            m.d.sync += [
                bumped.eq(Mux(backfilling, bumped + fifo, length - kept)),
                bounded.eq(backfilling | (length != 0)),
                regular.eq(kept),
                region.eq(1),
                region_bits.eq(entry),
                offset.eq(fifo),
                overbooked.eq(1),
                backfilling.eq(0),
            ]
        with m.If(shrinks):
            with m.If(overbooked & (amount == regular + region)):
                m.d.sync += [regular.eq(0), region.eq(0), overbooked.eq(0), shrunk.eq(0)]
            with m.Elif(amount > regular):
                m.d.comb += fail(TailorsError.SHRINK_BEYOND_OCCUPANCY)
            with m.Else():
                m.d.sync += [kept_bits.eq(taken_front(kept_bits, amount)), regular.eq(regular - amount)]
                with m.If(overbooked & (amount != 0)):
                    m.d.sync += shrunk.eq(1)

        error = Signal(TailorsError, name="model_error")
        with m.If(buffer.clear_error):
            m.d.sync += error.eq(TailorsError.NONE)
        with m.If((error == TailorsError.NONE) | buffer.clear_error):
            for code in reversed(list(TailorsError)[1:]):
                with m.If(raised[code.value]):
                    m.d.sync += error.eq(code)

        answered = buffer.read_data.valid & buffer.read_data.ready
        expected = ModelQueue(
            m, "expected", width=1, depth=answers, push=reads & ~read_beyond, item=read_bit, pop=answered
        )
        silent = Signal(range(ANSWER_LATENCY + 1))
        m.d.sync += silent.eq(0)
        with m.If((expected.level != 0) & ~buffer.read_data.valid & (silent != ANSWER_LATENCY)):
            m.d.sync += silent.eq(silent + 1)

        # The entry that a waiting read asks for, if this OWFill makes it go.
        index = buffer.read.payload
        waiting = buffer.read.valid & ~buffer.read.ready & read_there
        goes = Signal()
        m.d.comb += goes.eq(
            overwrites
            & (
                (splits & (index >= kept))
                | (backfills & overbooked & (index >= regular))
                | (overbooked & ~backfills & (region == fifo) & (index == regular + offset))
            )
        )

        m.d.comb += [
            # The buffer accepts no operation that the model could not do.
            Assert(implies(reads, read_there | read_beyond), "a read waits until its entry is there"),
            Assert(implies(updates, update_there | update_beyond), "an update waits until its entry is there"),
            Assert(
                implies(fills & ~(overbooked & ~shrunk), ~full & ~overbooked & ~backfilling), "a fill waits for credit"
            ),
            Assert(
                ~(waiting & goes & ~(buffer.shrink.valid & (splits | backfills))),
                "an OWFill waits for the read at the port that it would rob, unless a Shrink changes what that asks for",
            ),
            Assert(~expected.overflows, "no more reads in flight than answers kept"),
            Assert(implies(buffer.read_data.valid, expected.level != 0), "no answer without a read"),
            Assert(
                implies(buffer.read_data.valid, buffer.read_data.payload == expected.head), "the answer is the entry"
            ),
            Assert(silent != ANSWER_LATENCY, "every read is answered"),
            Assert(buffer.occupancy == regular + region, "occupancy counts the entries"),
            Assert(
                buffer.credit == Mux(overbooked | backfilling, 0, capacity - regular),
                "credit and occupancy make up the capacity",
            ),
            Assert(buffer.overbooked == overbooked, "overbooked"),
            Assert(implies(overbooked, buffer.fifo_offset == offset), "the FIFO offset is the oldest entry's position"),
            Assert(
                Value.cast(buffer.error) == Value.cast(error), "an illegal operation raises its error, a legal one none"
            ),
        ]
        # What the setting lets happen: only a tile with an end begins anew, and only behind a kept part that shrinks is
        # there room to fill again.
        ends, keeps = True, True
        if self.setting is not None:
            ends, keeps = self.setting[2] != 0, self.setting[1] < self.setting[0]
        m.d.comb += Cover(overbooked & answered & ((bounded & (offset == 0)) if ends else (offset > fifo)))
        if ends and keeps and self.backfill:
            m.d.comb += Cover(backfilling)
