"""One pass of a radix sort: entries go to memory by a digit of their key, and the next digit is counted."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import enum, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.check import check_integer, check_power_of_two
from ...lib.signals import signals
from ...lib.unit import Fault, Unit
from ...regs.converter_map import POINTER_BITS
from ...types import write_beat, write_request
from ..host.hosted_sum import HOST, host_member
from .beat_merger import BeatMerger
from .bucket_bank import ENTRY_BYTES, BucketBank, BucketOrder
from .bucket_starts import BucketStarts
from .digit_counter import DigitCounter
from .record_router import RecordRouter
from .streams import BYTES_BITS, COORDINATE_BITS, KEY_BITS, block_group

__all__ = ["BANKS", "Transposer"]

#: Banks of counters and of buckets; a power of two.
BANKS = 8
#: What a router reads of the settings of a pass.
ROUTED = (
    *("launch", "first", "last", "by_row", "by_block", "digit_bits", "shift", "inner_bits", "column_bits"),
    *("first_bits", "second_bits", "record_bytes"),
)


class _State(enum.Enum, shape=3):
    IDLE = 0
    CLEAR = 1
    TAKE = 2
    DRAIN = 3
    FLUSH = 4
    SCAN = 5


class Transposer(Unit):
    """Entries become records in buckets, one for each value of a digit of their new row, or of the block that they lie in::

        cells --> record router --+--> bucket banks --> merger --> write client      digit of this pass
                                  +--> digit counters                                digit of the next pass
                                         +--> starts --> bucket banks                at the end of a pass

    A pass keeps the order of entries inside a bucket, so that after the last digit they are sorted (MINT, figure 8c, with a
    digit in place of the column). The first pass writes nothing: it clears what the SRAMs have and counts.

    Parameters
    ----------
    beat_bits : int
        Bits of a beat, power of two from 128 to 1024.
    lanes : int
        Entries of a group, power of two from 2 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.
    address_width : int
        Bits of a byte address.
    counters : int
        Buckets of a pass at most, power of two from 16 to 65536.
    form : str
        Network of the prefix sum, one of :data:`rtl.mint.host.hosted_sum.HOSTED`.

    Members
    -------
    launch : In(1)
        Pulse: a pass begins. The following are constant from then on:
    first : In(1), last : In(1)
        The pass only counts; nothing is counted.
    by_row, by_block : In(1), shift : In(7), inner_bits, column_bits : In(range(33))
        See :class:`rtl.mint.converter.record_router.RecordRouter`.
    digit_bits : In(range(17))
        Bits of a digit, up to log2 of ``counters``.
    first_bits, second_bits : In(range(33)), record_bytes : In(range(13))
        Widths of new row and new column in a record, and its bytes: all bits of it are of the two and of the value.
    base : In(address_width), space : In(64)
        Where records are written; bytes of all of them at most.
    cells : In(stream(block_group))
    write_request, write_data : Out(stream)
        A client port of the memory engine.
    done : Out(1)
        All of the pass has been handed to the memory engine.
    entries : Out(40), bytes : Out(64)
        What the first pass counted.
    overflow : Out(1)
        ``bytes`` exceed ``space``. It stays until the reset, and the pass does not end.
    host : Out(SumPort)
        Where ``form`` is ``host``.

    Timing
    ------
    A bank takes an entry a cycle. Vectors of ``BANKS`` buckets a cycle before the first pass and between passes.
    """

    def __init__(
        self, *, beat_bits: int, lanes: int, value_bits: int, address_width: int, counters: int, form: str
    ) -> None:
        self.beat_bits = check_power_of_two("Beat bits", beat_bits, 128, 1024)
        self.lanes = check_power_of_two("Lanes", lanes, 2, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        self.address_width = check_integer("Address width", address_width, 13, 64)
        self.counters = check_power_of_two("Counters", counters, 2 * BANKS, 1 << 16)
        self.form = form
        self.most_bits = counters.bit_length() - 1
        width = In(range(COORDINATE_BITS + 1))
        super().__init__(
            {
                "launch": In(1),
                "first": In(1),
                "last": In(1),
                "by_row": In(1),
                "by_block": In(1),
                "digit_bits": In(range(17)),
                "shift": In(KEY_BITS),
                "inner_bits": width,
                "column_bits": width,
                "first_bits": width,
                "second_bits": width,
                "record_bytes": In(range(ENTRY_BYTES + 1)),
                "base": In(address_width),
                "space": In(64),
                "cells": In(stream.Signature(block_group(lanes, value_bits))),
                "write_request": Out(stream.Signature(write_request(address_width))),
                "write_data": Out(stream.Signature(write_beat(beat_bits))),
                "done": Out(1),
                "entries": Out(POINTER_BITS),
                "bytes": Out(64),
                "overflow": Out(1),
                **host_member(form),
            }
        )

    def faults(self) -> Sequence[Fault]:
        return (Fault("scratch_overflow", self.overflow, self.bytes),)

    def build(self, platform: Any) -> Module:
        m = Module()
        depth = self.counters // BANKS
        m.submodules.merger = merger = BeatMerger(
            banks=BANKS, beat_bits=self.beat_bits, address_width=self.address_width
        )
        m.submodules.starts = starts = BucketStarts(banks=BANKS, width=BYTES_BITS, form=self.form)
        banks, counters = [], []
        for n in range(BANKS):
            m.submodules[f"bank{n}"] = bank = BucketBank(depth=depth, beat_bits=self.beat_bits)
            m.submodules[f"counter{n}"] = counter = DigitCounter(
                depth=depth, width=BYTES_BITS, step_width=len(self.record_bytes)
            )
            m.d.comb += [bank.record_bytes.eq(self.record_bytes), counter.step.eq(self.record_bytes)]
            connect(m, bank.beats, merger.beats[n])
            banks.append(bank)
            counters.append(counter)
        if self.form == HOST:
            connect(m, starts.host, flipped(self.host))
        m.d.comb += merger.base.eq(self.base)
        connect(m, merger.write_request, flipped(self.write_request))
        connect(m, merger.write_data, flipped(self.write_data))

        state = Signal(_State)
        m.submodules.router = router = RecordRouter(
            lanes=self.lanes, value_bits=self.value_bits, banks=BANKS, most_bits=self.most_bits
        )
        connect(m, flipped(self.cells), router.cells)
        m.d.comb += [
            *(getattr(router, name).eq(getattr(self, name)) for name in ROUTED),
            self.entries.eq(router.entries),
            self.bytes.eq(router.bytes),
        ]
        busy = Cat(*(bank.busy for bank in banks), *(counter.busy for counter in counters), merger.busy).any()
        swept, begun = self._sweep(m, state, busy, banks, counters, starts, router)
        m.d.comb += self.done.eq((state == _State.IDLE) & ~self.launch)
        with m.Switch(state):
            with m.Case(_State.IDLE):
                with m.If(self.launch):
                    m.d.sync += state.eq(Mux(self.first, _State.CLEAR, _State.TAKE))
            with m.Case(_State.CLEAR):
                with m.If(swept & ~busy):
                    m.d.sync += state.eq(_State.TAKE)
            with m.Case(_State.TAKE):
                with m.If(router.ended):
                    m.d.sync += state.eq(_State.DRAIN)
            with m.Case(_State.DRAIN):
                with m.If(self.first & (self.bytes > self.space)):
                    m.d.sync += self.overflow.eq(1)
                with m.Elif(~router.busy & ~busy):
                    m.d.sync += state.eq(Mux(self.first, _State.SCAN, _State.FLUSH))
            with m.Case(_State.FLUSH):
                with m.If(swept & ~busy):
                    m.d.sync += state.eq(Mux(self.last, _State.IDLE, _State.SCAN))
            with m.Case(_State.SCAN):
                with m.If(begun & ~busy):
                    m.d.sync += state.eq(_State.IDLE)
        return m

    def _sweep(
        self,
        m: Module,
        state: Signal,
        busy: Value,
        banks: Sequence[BucketBank],
        counters: Sequence[DigitCounter],
        starts: BucketStarts,
        router: RecordRouter,
    ) -> tuple[Signal, Signal]:
        """Orders of banks and counters. Whether all buckets were swept, and whether all have begun."""
        depth = self.counters // BANKS
        vectors = Signal(range(depth + 1))
        whole = (Const(1, 1) << self.digit_bits) >> (BANKS.bit_length() - 1)
        m.d.comb += vectors.eq(Mux(whole == 0, 1, whole))
        index, known, placed = signals("index known placed", range(depth + 1))
        swept, begun = signals("swept begun")
        clears, scans, flushes = state == _State.CLEAR, state == _State.SCAN, state == _State.FLUSH
        m.d.comb += [swept.eq(index == vectors), begun.eq(placed == vectors)]

        # All banks get an order of a sweep at once.
        banks_can = Cat(bank.orders.ready for bank in banks).all()
        counters_can = Cat(counter.orders.ready for counter in counters).all()
        can = (banks_can | scans) & (counters_can | flushes)
        sweeps = (clears | scans | flushes) & ~swept & can
        counted = Cat(counter.counts.valid for counter in counters).all()
        m.d.comb += [
            starts.sizes.valid.eq(counted & scans),
            starts.sizes.payload.first.eq(known == 0),
            starts.starts.ready.eq(banks_can),
        ]
        for n, (bank, counter) in enumerate(zip(banks, counters, strict=True)):
            m.d.comb += [
                starts.sizes.payload.values[n].eq(counter.counts.payload),
                counter.counts.ready.eq((counted & starts.sizes.ready) | clears),
                counter.orders.payload.index.eq(Mux(clears | scans, index, router.digits[n].payload.index)),
                counter.orders.payload.clear.eq(clears | scans),
                bank.orders.payload.index.eq(index),
                bank.orders.payload.record.eq(starts.starts.payload[n]),
            ]
            with m.If(clears | scans):
                m.d.comb += counter.orders.valid.eq(sweeps)
            with m.Else():
                m.d.comb += [
                    counter.orders.valid.eq(router.digits[n].valid),
                    router.digits[n].ready.eq(counter.orders.ready),
                ]
            with m.If(clears | flushes):
                m.d.comb += [
                    bank.orders.valid.eq(sweeps),
                    bank.orders.payload.kind.eq(Mux(clears, BucketOrder.DROP, BucketOrder.FLUSH)),
                ]
            with m.Elif(scans):
                m.d.comb += [
                    bank.orders.valid.eq(starts.starts.valid & banks_can),
                    bank.orders.payload.kind.eq(BucketOrder.BEGIN),
                    bank.orders.payload.index.eq(placed),
                ]
            with m.Else():
                m.d.comb += [
                    bank.orders.valid.eq(router.records[n].valid),
                    router.records[n].ready.eq(bank.orders.ready),
                    bank.orders.payload.kind.eq(BucketOrder.APPEND),
                    bank.orders.payload.index.eq(router.records[n].payload.index),
                    bank.orders.payload.record.eq(router.records[n].payload.item),
                ]
        with m.If(~(clears | scans | flushes) | (flushes & swept & ~busy)):  # a scan may follow at once
            m.d.sync += [index.eq(0), known.eq(0), placed.eq(0)]
        with m.Elif(sweeps):
            m.d.sync += index.eq(index + 1)
        with m.If(starts.sizes.valid & starts.sizes.ready):
            m.d.sync += known.eq(known + 1)
        with m.If(starts.starts.valid & starts.starts.ready):
            m.d.sync += placed.eq(placed + 1)
        return swept, begun
