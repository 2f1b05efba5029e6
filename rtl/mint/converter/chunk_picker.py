"""Cuts beats into chunks of places and leaves out those that are empty."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_power_of_two
from ...lib.onehot import above_lowest, lowest_set, onehot_index, onehot_select
from ...lib.stream import StreamRegister
from .streams import POSITION_BITS

__all__ = ["CHUNK", "ChunkPicker", "place_chunk"]

#: Places of which a prefix sum finds the occupied ones together.
CHUNK = 64


def place_chunk(value_bits: int, values: int) -> data.StructLayout:
    """``CHUNK`` places from ``position`` on: which are occupied, and the values of the first ``values`` of them."""
    return data.StructLayout(
        {
            "position": POSITION_BITS,
            "flags": CHUNK,
            "values": data.ArrayLayout(value_bits, values),
            "last": 1,
        }
    )


class ChunkPicker(Block):
    """Cuts beats into chunks of up to ``CHUNK`` places and leaves out those without a value.

    Parameters
    ----------
    beat_bits, value_bits : int
    floating : bool
        See :class:`rtl.mint.converter.place_scanner.PlaceScanner`.

    Members
    -------
    beats, dense, places, excess
        See :class:`rtl.mint.converter.place_scanner.PlaceScanner`.
    chunks : Out(stream(place_chunk))
        From registers; only the one with ``last`` may be empty.

    Timing
    ------
    One cycle; a beat a cycle, or one of its chunks that have a value.
    """

    latency = 1

    def __init__(self, *, beat_bits: int, value_bits: int, floating: bool) -> None:
        self.beat_bits = check_power_of_two("Beat bits", beat_bits, 64, 1024)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        self.floating = bool(floating)
        self.values = beat_bits // value_bits
        self.chunk_values = min(CHUNK, self.values)
        super().__init__(
            {
                "beats": In(stream.Signature(beat_bits)),
                "dense": In(1),
                "places": In(POSITION_BITS + 1),
                "chunks": Out(stream.Signature(place_chunk(value_bits, self.chunk_values))),
                "excess": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.chunks = chunks = StreamRegister(shape=self.chunks.payload.shape())
        connect(m, chunks.o, flipped(self.chunks))
        beat = self.beats.payload
        compared = self.value_bits - self.floating
        values = [beat[n * self.value_bits :][: self.value_bits] for n in range(self.values)]
        number = self.beat_bits // CHUNK
        width = self.chunk_values

        # Places that are left, those of this beat among them: what lies behind the last one is no place.
        done = Signal(POSITION_BITS + 1)  # places of the beats before
        left = Signal(POSITION_BITS + 1)
        begun = Signal()
        now = Mux(begun, left, self.places)
        of_beat = Mux(self.dense, self.values, self.beat_bits)
        few = Signal(range(self.beat_bits + 1))
        ends = Signal()
        m.d.comb += [ends.eq(now <= of_beat), few.eq(Mux(ends, now, of_beat))]
        inside = Cat(few > n for n in range(self.beat_bits))

        nonzero = Cat(value[:compared].any() for value in values) & inside[: self.values]
        dense = Cat(
            Cat(nonzero[n * width : (n + 1) * width], Const(0, CHUNK - width))
            if n * width < self.values
            else Const(0, CHUNK)
            for n in range(number)
        )
        flags = Signal(self.beat_bits)
        m.d.comb += flags.eq(Mux(self.dense, dense, beat & inside))
        occupied = Cat(flags[n * CHUNK :][:CHUNK].any() for n in range(number))
        rest = Signal(number, init=(1 << number) - 1)  # chunks of the beat at hand that are to be looked at
        due = occupied & rest
        chosen = lowest_set(due)
        more = (due & above_lowest(due)).any()
        m.d.comb += [
            chunks.i.valid.eq(self.beats.valid & (due.any() | ends)),
            chunks.i.payload.flags.eq(onehot_select(chosen, [flags[n * CHUNK :][:CHUNK] for n in range(number)])),
            chunks.i.payload.last.eq(ends & ~more),
            chunks.i.payload.position.eq(
                done + Mux(self.dense, onehot_index(chosen) * width, onehot_index(chosen) * CHUNK)
            ),
            self.beats.ready.eq((chunks.i.ready | ~(due.any() | ends)) & ~more),
        ]
        for n in range(width):
            sources = [values[k * width + n] if k * width < self.values else Const(0, 1) for k in range(number)]
            m.d.comb += chunks.i.payload.values[n].eq(onehot_select(chosen, sources))
        with m.If(chunks.i.valid & chunks.i.ready):
            m.d.sync += rest.eq(above_lowest(due))
        with m.If(self.beats.valid & self.beats.ready):
            m.d.sync += [
                rest.eq(~0),
                begun.eq(~ends),
                left.eq(now - of_beat),
                done.eq(Mux(ends, 0, done + of_beat)),
            ]
        with m.If(self.beats.valid & ~self.dense & (beat & ~inside & self._padding(ends, few)).any()):
            m.d.sync += self.excess.eq(1)
        return m

    def _padding(self, ends: Value, few: Value) -> Value:
        """Bits behind the last place that are still in its byte: bytes behind it are none of the mask's."""
        return Cat(ends & (((few + 7) >> 3) > n // 8) for n in range(self.beat_bits))
