"""The buffet against a model that keeps its entries in plain order, and the Tailors buffer against the buffet."""

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal, Value

from rtl.buffer.buffet import BuffetError

from .models import ModelQueue, put_bit, taken_front
from .spec import Spec, any_value, fixed_value, free_inputs, implies, obey_streams, upto

__all__ = ["BuffetAgainstModel", "TailorsAsBuffet"]

ANSWER_LATENCY = 12  # cycles, at most, from an accepted read to its answer when no answer waits
LAG = 8  # cycles, at most, by which one of two equal buffers is behind the other


class BuffetAgainstModel(Spec):
    """A buffet of one-bit entries answers as a list does, for any sequence of operations."""

    def __init__(self, buffet: Any) -> None:
        super().__init__()
        self.buffet = buffet

    def claims(self, m: Module) -> None:
        m.submodules.buffet = buffet = self.buffet
        entries, answers = buffet.control.entries, buffet.control.queue_depth
        free_inputs(m, buffet, but=("capacity",))
        obey_streams(m, buffet)
        capacity = fixed_value(m, range(entries + 1), "capacity")
        m.d.comb += [buffet.capacity.eq(capacity), Assume(upto(capacity, 1, entries))]

        present = Signal(range(entries + 1), name="model_present")
        bits = Signal(entries, name="model_bits")
        reads = buffet.read.valid & buffet.read.ready
        updates = buffet.update.valid & buffet.update.ready
        fills = buffet.fill.valid & buffet.fill.ready
        shrinks, amount = buffet.shrink.valid, buffet.shrink.payload
        update = buffet.update.payload
        with m.If(fills):
            m.d.sync += [bits.eq(put_bit(bits, present, buffet.fill.payload)), present.eq(present + 1)]
        with m.If(updates):
            m.d.sync += bits.eq(put_bit(bits, update.index, update.data))
        with m.If(shrinks & (amount <= present)):
            m.d.sync += [bits.eq(taken_front(bits, amount)), present.eq(present - amount)]
        error = Signal(name="model_error")
        m.d.sync += error.eq(error & ~buffet.clear_error | shrinks & (amount > present))

        expected = ModelQueue(
            m,
            "expected",
            width=1,
            depth=answers,
            push=reads,
            item=bits.bit_select(buffet.read.payload, 1),
            pop=buffet.read_data.valid & buffet.read_data.ready,
        )
        silent = Signal(range(ANSWER_LATENCY + 1))
        m.d.sync += silent.eq(0)
        with m.If((expected.level != 0) & ~buffet.read_data.valid & (silent != ANSWER_LATENCY)):
            m.d.sync += silent.eq(silent + 1)
        m.d.comb += [
            Assert(implies(reads, buffet.read.payload < present), "a read waits until its entry is there"),
            Assert(implies(updates, update.index < present), "an update waits until its entry is there"),
            Assert(implies(fills, present < capacity), "a fill waits for credit"),
            Assert(~(fills & updates), "the write lane does one thing a cycle"),
            Assert(~expected.overflows, "no more reads in flight than answers kept"),
            Assert(implies(buffet.read_data.valid, expected.level != 0), "no answer without a read"),
            Assert(
                implies(buffet.read_data.valid, buffet.read_data.payload == expected.head), "the answer is the entry"
            ),
            Assert(silent != ANSWER_LATENCY, "every read is answered"),
            Assert(buffet.occupancy == present, "occupancy counts the entries"),
            Assert(buffet.credit == capacity - present, "credit and occupancy make up the capacity"),
            Assert(
                (Value.cast(buffet.error) == Value.cast(BuffetError.SHRINK_BEYOND_OCCUPANCY)) == error,
                "a Shrink of more than there is raises its error",
            ),
            Cover((present == capacity) & (capacity == entries) & answered_all(expected, reads)),
        ]


def answered_all(expected: ModelQueue, reads: Value) -> Value:
    """Something is read while the answers of all reads before it have left."""
    return reads & (expected.level == 0)


class TailorsAsBuffet(Spec):
    """While nothing overflows, a Tailors buffer and a buffet of the same size give the same answers.

    Two lanes of operations, as a producer and a consumer have them: fills in one; reads, updates and shrinks, any
    sequence of them, in the other. Each operation is given to both buffers, and the lane goes on when both have taken it.
    The n-th answers of the two are taken together and compared.
    """

    def __init__(self, tailors: Any, buffet: Any) -> None:
        super().__init__()
        self.buffers = (tailors, buffet)

    def claims(self, m: Module) -> None:
        m.submodules.tailors, m.submodules.buffet = tailors, buffet = self.buffers
        entries = buffet.control.entries
        capacity = fixed_value(m, range(entries + 1), "capacity")
        fifo = fixed_value(m, range(entries + 1), "fifo_entries")
        length = fixed_value(m, len(tailors.tile_length), "tile_length")
        m.d.comb += [
            *(buffer.capacity.eq(capacity) for buffer in self.buffers),
            tailors.fifo_entries.eq(fifo),
            tailors.tile_length.eq(length),
            Assume(upto(capacity, 1, entries)),
            Assume(upto(fifo, 1, capacity)),
        ]

        filling, entry = Signal(), Signal()
        filled = self._give(m, "fill", [buffer.fill for buffer in self.buffers], filling)
        with m.If(filled | ~filling):
            m.d.sync += [filling.eq(any_value(m, 1, "next_filling")), entry.eq(any_value(m, 1, "next_entry"))]

        kinds = ("read", "update", "shrink")
        kind = Signal(range(4))  # of the consumer's operation; beyond the last of `kinds`: none
        index = Signal(range(entries))
        amount = Signal(range(entries + 1))
        bit = Signal()
        done = [
            self._give(m, name, [getattr(buffer, name) for buffer in self.buffers], kind == n)
            for n, name in enumerate(kinds)
        ]
        with m.If(Cat(*done).any() | (kind == len(kinds))):
            m.d.sync += [
                kind.eq(any_value(m, 2, "next_kind")),
                index.eq(any_value(m, range(entries), "next_index")),
                amount.eq(any_value(m, range(entries + 1), "next_amount")),
                bit.eq(any_value(m, 1, "next_bit")),
            ]
        m.d.comb += Assume(index < entries)
        rest = ~filling & (kind == len(kinds))
        answers = [buffer.read_data for buffer in self.buffers]
        taken = any_value(m, 1, "answer_taken")
        for buffer, other in zip(self.buffers, reversed(self.buffers), strict=True):
            m.d.comb += [
                buffer.fill.payload.eq(entry),
                buffer.read.payload.eq(index),
                buffer.update.payload.index.eq(index),
                buffer.update.payload.data.eq(bit),
                buffer.shrink.payload.eq(amount),
                Assume(implies(buffer.shrink.valid, amount <= buffer.occupancy)),
                buffer.read_data.ready.eq(taken & other.read_data.valid),
            ]
        both = answers[0].valid & answers[1].valid
        self._keeps_up(m, "answer", answers[0].valid ^ answers[1].valid)
        m.d.comb += [
            Assert(implies(both, answers[0].payload == answers[1].payload), "the answers are the same"),
            Assert(implies(rest, tailors.occupancy == buffet.occupancy), "as many entries"),
            Assert(implies(rest, tailors.credit == buffet.credit), "as much credit"),
            Assert(Value.cast(tailors.error) == 0, "nothing is refused"),
            Assert(Value.cast(buffet.error) == 0, "nothing is refused"),
            Cover(both & (tailors.occupancy == entries) & taken),
        ]

    def _give(self, m: Module, name: str, ports: Any, wanted: Value) -> Value:
        """Offers an operation to both ports until each has taken it once; high in the cycle that completes this."""
        taken = Signal(2, name=f"{name}_taken")
        after = Signal(2, name=f"{name}_taken_after")
        for n, port in enumerate(ports):
            m.d.comb += [port.valid.eq(wanted & ~taken[n]), after[n].eq(taken[n] | port.valid & port.ready)]
        complete = wanted & after.all()
        m.d.sync += taken.eq(Mux(complete, 0, after))
        self._keeps_up(m, name, taken.any())
        return complete

    def _keeps_up(self, m: Module, name: str, lagging: Value) -> None:
        """One buffer may be behind the other, for a few cycles: not counted are those that a Shrink takes from it, or an
        Update from a Fill.
        """
        cycles = Signal(range(LAG + 1), name=f"{name}_lag")
        stops = [buffer.shrink.valid for buffer in self.buffers]
        if name == "fill":
            stops += [buffer.update.valid for buffer in self.buffers]
        with m.If(~lagging):
            m.d.sync += cycles.eq(0)
        with m.Elif(~Cat(*stops).any() & (cycles != LAG)):
            m.d.sync += cycles.eq(cycles + 1)
        m.d.comb += Assert(cycles != LAG, f"{name}: neither buffer is far behind the other")
