"""Lines of several beats: each beat is where it belongs in its line, and a line ends with its last beat."""

from typing import Any

from amaranth.hdl import Assert, Cat, Cover, Module, Mux, Signal, Value

from .models import WatchedItem
from .spec import Spec, fixed_value, free_inputs, implies, obey_streams

__all__ = ["LineSplitterContract", "PartJoinerContract"]


class PartJoinerContract(Spec):
    """The solver chooses a place in a line; the beats there, of any line, are those that were given.

    Parameters
    ----------
    joiner : PartJoiner
    """

    def __init__(self, joiner: Any) -> None:
        super().__init__()
        self.joiner = joiner

    def claims(self, m: Module) -> None:
        m.submodules.joiner = joiner = self.joiner
        free_inputs(m, joiner)
        obey_streams(m, joiner)
        comes, leaves = (port.valid & port.ready for port in (joiner.beats, joiner.lines))
        place, chosen = Signal(range(joiner.parts)), fixed_value(m, range(joiner.parts), "place_fixed")
        beat, kept, ends = joiner.beats.payload, Signal(joiner.beat_bits), Signal()
        m.d.comb += ends.eq(comes & (beat.last | (place == joiner.parts - 1)))
        with m.If(comes):
            m.d.sync += place.eq(Mux(ends, 0, place + 1))
        with m.If(comes & (place == chosen)):
            m.d.sync += kept.eq(beat.beat)
        item = Cat(place >= chosen, Mux(place == chosen, beat.beat, kept))
        watched = WatchedItem(m, "watched", width=len(item), most=1, push=ends, item=item, pop=leaves)
        mine = joiner.lines.valid & watched.next
        shown = joiner.lines.payload.word_select(chosen, joiner.beat_bits)
        m.d.comb += [
            Assert(implies(mine & watched.item[0], shown == watched.item[1:]), "a beat is at its place in its line"),
            Assert(joiner.lines.valid == (watched.level != 0), "a line is there from its last beat until it is taken"),
            Assert(~watched.overflows, "no line is lost"),
            Assert(implies(joiner.lines.ready, joiner.beats.ready), "beats wait for nothing but lines"),
            Cover(mine & watched.item[0] & (chosen == joiner.parts - 1) & (watched.item[1:] == 1) & ends),
            Cover(mine & ~watched.item[0] & leaves),
        ]


class LineSplitterContract(Spec):
    """Beats are those of the line that is offered, in order; requests are of all beats of their lines.

    Parameters
    ----------
    splitter : LineSplitter
    """

    def __init__(self, splitter: Any) -> None:
        super().__init__()
        self.splitter = splitter

    def claims(self, m: Module) -> None:
        m.submodules.splitter = splitter = self.splitter
        free_inputs(m, splitter)
        obey_streams(m, splitter)
        parts, bits = splitter.parts, splitter.beat_bits
        line_bytes = parts * bits // 8
        line, beat = splitter.lines.payload, splitter.write_data.payload
        sent, taken = (port.valid & port.ready for port in (splitter.write_data, splitter.lines))
        gone = Signal(range(parts))  # beats of the line
        with m.If(sent):
            m.d.sync += gone.eq(Mux(gone == parts - 1, 0, gone + 1))
        request, asked = splitter.request, splitter.write_request
        bit, byte = fixed_value(m, range(bits), "bit"), fixed_value(m, range(bits // 8), "byte")
        m.d.comb += [
            Assert(splitter.write_data.valid == splitter.lines.valid, "a line's beats are there when it is"),
            Assert(beat.data.bit_select(bit, 1) == line.data.bit_select(gone * bits + bit, 1), "data are the line's"),
            Assert(
                beat.strobe.bit_select(byte, 1) == line.strobe.bit_select(gone * (bits // 8) + byte, 1),
                "strobes are the line's",
            ),
            Assert(taken == (sent & (gone == parts - 1)), "a line is taken with its last beat"),
            Assert((asked.valid == request.valid) & (asked.ready == request.ready), "requests go through"),
            Assert(
                asked.payload.address == request.payload.address // line_bytes * line_bytes,
                "a request begins with a line",
            ),
            Assert(
                asked.payload.beats == (Value.cast(request.payload.beats) * parts)[: len(asked.payload.beats)],
                "a request is of whole lines",
            ),
            Cover(taken & (line.strobe == 1)),
        ]
