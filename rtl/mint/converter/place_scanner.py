"""Finds the places that hold a value: in the mask of ZVC, or among the values of a dense matrix."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_power_of_two
from ...lib.onehot import onehot_index, onehot_select
from ...lib.stream import StreamRegister
from ..host.hosted_sum import HOST, host_member, make_sum
from ..host.signature import SUM_LANES
from .chunk_picker import CHUNK, ChunkPicker
from .streams import POSITION_BITS, position_group

__all__ = ["PlaceScanner"]


class PlaceScanner(Block):
    """Positions of the occupied places, ``lanes`` a cycle, by a prefix sum over a bit for each place.

    A place of a mask is occupied where its bit is 1, one of a dense matrix where its value is not 0.

    Parameters
    ----------
    beat_bits : int
        Bits of a beat, power of two from 64 to 1024.
    lanes : int
        Positions a cycle, power of two from 1 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.
    floating : bool
        The sign bit does not count where a value is compared with zero.
    form : str
        Network of the prefix sum, one of :data:`rtl.mint.host.hosted_sum.HOSTED`.

    Members
    -------
    beats : In(stream(beat_bits))
        Bits of the mask or values, each place in its turn, from the lowest bit of a beat on.
    dense : In(1), places : In(65)
        Values, not a mask; how many places there are, at least 1. Constant while a beat is inside.
    found : Out(stream(position_group))
        From registers. ``values`` mean something in a dense matrix alone. Only the group with ``last`` may be empty.
    excess : Out(1)
        The mask has a 1 behind its last place, in the same byte. Stays until the reset.
    host : Out(SumPort)
        Where ``form`` is ``host``.

    Timing
    ------
    ``latency`` cycles. A beat a cycle, or in each cycle a chunk of ``CHUNK`` places that has a value, or ``lanes`` positions
    of a chunk.
    """

    def __init__(self, *, beat_bits: int, lanes: int, value_bits: int, floating: bool, form: str) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self._picker = ChunkPicker(beat_bits=beat_bits, value_bits=value_bits, floating=floating)
        self.beat_bits = beat_bits
        self.value_bits = value_bits
        self.floating = bool(floating)
        self.form = form
        self._ranks = make_sum(form, inputs=CHUNK, width=1, sum_width=CHUNK.bit_length())
        super().__init__(
            {
                "beats": In(stream.Signature(beat_bits)),
                "dense": In(1),
                "places": In(POSITION_BITS + 1),
                "found": Out(stream.Signature(position_group(lanes, value_bits))),
                "excess": Out(1),
                **host_member(form),
            }
        )

    @property
    def latency(self) -> int:
        return self._picker.latency + self._ranks.latency + 1

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.picker = picker = self._picker
        m.submodules.ranks = ranks = self._ranks
        m.submodules.found = found = StreamRegister(shape=self.found.payload.shape())
        connect(m, flipped(self.beats), picker.beats)
        connect(m, found.o, flipped(self.found))
        chunks = picker.chunks
        m.d.comb += [
            picker.dense.eq(self.dense),
            picker.places.eq(self.places),
            self.excess.eq(picker.excess),
            ranks.i.valid.eq(chunks.valid),
            chunks.ready.eq(ranks.i.ready),
            ranks.i.payload.first.eq(1),
            *(ranks.i.payload.values[n].eq(chunks.payload.flags[n]) for n in range(CHUNK)),
        ]
        along: Any = data.View(chunks.payload.shape(), ranks.carry(m, Value.cast(chunks.payload)))
        if self.form == HOST:
            connect(m, ranks.host, flipped(self.host))
            m.d.comb += ranks.short.eq(self.dense & (self._picker.chunk_values <= SUM_LANES))

        # Lane n gets the place whose rank is the n-th of those that are left.
        lanes, values = self.lanes, self._picker.chunk_values
        taken = Signal(range(CHUNK + 1))
        total = ranks.o.payload.sums[CHUNK - 1]
        left = Signal.like(total)
        done = Signal()
        group = found.i.payload
        m.d.comb += [
            left.eq(total - taken),
            done.eq(left <= lanes),
            found.i.valid.eq(ranks.o.valid),
            ranks.o.ready.eq(found.i.ready & done),
            group.count.eq(Mux(done, left, lanes)),
            group.last.eq(along.last & done),
        ]
        for n in range(lanes):
            place = Signal(CHUNK, name=f"place{n}")
            wanted = (taken + n + 1)[: len(total)]
            m.d.comb += [
                place.eq(Cat(along.flags[k] & (ranks.o.payload.sums[k] == wanted) for k in range(CHUNK))),
                group.positions[n].eq(along.position + onehot_index(place)),
                group.values[n].eq(onehot_select(place[:values], [along.values[k] for k in range(values)])),
            ]
        with m.If(found.i.valid & found.i.ready):
            m.d.sync += taken.eq(Mux(done, 0, taken + lanes))
        return m
