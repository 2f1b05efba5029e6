"""Packed records: any bit of any record lies where the layout says, and a request gets the beats and the records it asked for."""

from typing import Any

from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import data

from .models import WatchedItem
from .spec import Spec, fixed_value, free_inputs, implies, obey_streams, upto

__all__ = ["LineRangeContract", "RecordPackerContract", "SharedBeatsContract"]

WORD = 32
FLUSH_CYCLES = 12


class RecordPackerContract(Spec):
    """The solver chooses one record and one of its bits, and when the packer is flushed and restarted.

    Parameters
    ----------
    packer : RecordPacker
        Of one lane.
    most : int
        Records of a run.
    coordinate_bits : int
        0 for records as they are on chip.
    """

    def __init__(self, packer: Any, *, most: int, coordinate_bits: int) -> None:
        super().__init__()
        self.packer = packer
        self.most = most
        self.coordinate_bits = coordinate_bits

    def claims(self, m: Module) -> None:
        m.submodules.packer = packer = self.packer
        free_inputs(m, packer, but=("coordinate_bits", "plain"))
        obey_streams(m, packer)
        coordinate_bits, plain = self.coordinate_bits, not self.coordinate_bits
        word, line = packer.words.payload, packer.lines.payload
        takes, comes = packer.words.valid & packer.words.ready, packer.lines.valid & packer.lines.ready
        beat_bits = 2 * WORD
        width = beat_bits if plain else coordinate_bits + packer.value_bits
        pending, clean = Signal(), Signal(init=1)  # a flush has not ended; no word was offered since it has
        m.d.sync += [
            pending.eq(packer.flush | (pending & ~packer.flushed)),
            clean.eq((packer.flushed | clean) & ~packer.words.valid),
        ]
        m.d.comb += [
            packer.coordinate_bits.eq(coordinate_bits),
            packer.plain.eq(int(plain)),
            Assume(implies(packer.words.valid, word.count <= 1)),
            Assume(implies(packer.flush, ~pending)),
            Assume(implies(packer.restart, ~pending & clean & ~packer.words.valid & ~packer.flush)),
        ]

        record = fixed_value(m, range(self.most), "record")
        bit = fixed_value(m, range(beat_bits), "bit")
        count = Signal(range(self.most + 1))
        known, value, written = Signal(), Signal(), Signal()
        place = Signal(range(self.most * beat_bits))
        nonzero = word.line[0]
        now = Cat(nonzero.coordinate, nonzero.value)
        if not plain:
            now = Cat(nonzero.value[: packer.value_bits], nonzero.coordinate)
        m.d.comb += [
            place.eq(record * width + bit),
            Assume(bit < width),
            Assume(implies(takes, count + word.count <= self.most)),
            # Coordinates have no bits beyond theirs.
            Assume(implies(packer.words.valid & (not plain), (nonzero.coordinate >> coordinate_bits) == 0)),
        ]
        with m.If(packer.restart):
            m.d.sync += [count.eq(0), known.eq(0), written.eq(0)]
        with m.Elif(takes):
            m.d.sync += count.eq(count + word.count)
            with m.If((count == record) & (word.count != 0)):
                m.d.sync += [known.eq(1), value.eq(now.bit_select(bit, 1)), written.eq(0)]

        index, cut = (
            Signal(range(self.most + 1)),
            Signal(),
        )  # of the last beat; a flush has handed it out before its end
        begun = Signal()
        mine = comes & (line.index == place[6:])
        with m.If(mine & known & line.words.bit_select(place[5:6], 1)):
            m.d.sync += written.eq(1)
        with m.If(comes):
            m.d.sync += [begun.eq(1), index.eq(line.index)]
        with m.If(packer.restart):
            m.d.sync += begun.eq(0)
        # A beat comes twice only if the first time was in a flush.
        with m.If(comes):
            m.d.sync += cut.eq(pending)
        silent = Signal(range(FLUSH_CYCLES + 1))
        m.d.sync += silent.eq(
            Mux(pending & ~packer.flushed & (~packer.lines.valid | packer.lines.ready), silent + 1, 0)
        )
        end = count * width
        again = begun & cut & (line.index == index)
        m.d.comb += [
            Assert(implies(mine & known, line.data.bit_select(place[:6], 1) == value), "a bit is where it belongs"),
            Assert(implies(mine & ~known, ~line.data.bit_select(place[:6], 1)), "bits behind the records are 0"),
            Assert(
                implies(packer.flushed & known, written | (mine & line.words.bit_select(place[5:6], 1))),
                "a flush hands out all that was taken",
            ),
            Assert(implies(comes, line.words != 0), "a beat has something new"),
            *(
                Assert(
                    implies(comes & line.words[n], (line.index << 6) + WORD * n < end),
                    "no word behind the records is written",
                )
                for n in range(2)
            ),
            Assert(implies(comes, again | (line.index == Mux(begun, index + 1, 0))), "beats come in order"),
            Assert(implies(packer.flushed, pending), "no flush ends that was not asked for"),
            Assert(packer.idle == ~pending, "idle says that no flush is pending"),
            Assert(implies(pending, ~packer.words.ready), "no word is taken while a flush is pending"),
            Assert(packer.position == count, "the position counts what was taken"),
            Assert(silent < FLUSH_CYCLES, "a flush ends"),
            # A nonzero as it is on chip is a whole beat of one lane: no flush cuts it.
            Cover(mine & known & value & (record != 0) & (again if not plain else 1)),
            Cover(mine & known & value & (line.index == 1)),
            Cover(packer.restart & (count != 0)),
        ]


class LineRangeContract(Spec):
    """One request, any of those that go through, gets the beats that hold its bits.

    Parameters
    ----------
    ranges : LineRange
    most : int
        Lines of a request.
    """

    def __init__(self, ranges: Any, *, most: int) -> None:
        super().__init__()
        self.ranges = ranges
        self.most = most

    def claims(self, m: Module) -> None:
        m.submodules.ranges = ranges = self.ranges
        settings = {"base": ranges.address_width, "coordinate_bits": 6, "value_bits": 6}
        free_inputs(m, ranges, but=tuple(settings))
        obey_streams(m, ranges)
        values = {name: fixed_value(m, width, f"{name}_fixed") for name, width in settings.items()}
        m.d.comb += [getattr(ranges, name).eq(value) for name, value in values.items()]
        request, out = ranges.request.payload, ranges.ranges.payload
        line_bytes, beat_bits = 8 * ranges.lanes, 2 * WORD * ranges.lanes
        m.d.comb += [
            Assume(values["base"] % line_bytes == 0),
            Assume(upto(values["coordinate_bits"], 1, WORD) & upto(values["value_bits"], 1, WORD)),
            Assume(implies(ranges.request.valid, upto(request.beats, 1, self.most))),
        ]
        enters, leaves = (port.valid & port.ready for port in (ranges.request, ranges.ranges))
        bits = Value.cast(request)
        watched = WatchedItem(m, "watched", width=len(bits), most=ranges.latency, push=enters, item=bits, pop=leaves)
        asked = data.View(request.shape(), watched.item)
        comes = ranges.ranges.valid & watched.next
        width, begin, end = Signal(7), Signal(32), Signal(32)
        line = asked.address // line_bytes
        m.d.comb += [
            width.eq(Mux(asked.plain, 2 * WORD, values["coordinate_bits"] + values["value_bits"])),
            begin.eq(line * (width * ranges.lanes)),
            end.eq(begin + asked.beats * (width * ranges.lanes)),
        ]
        first, drop = begin // beat_bits, begin % beat_bits
        beats = (end + beat_bits - 1) // beat_bits - first
        shared = asked.follows & ~asked.plain & (drop != 0)
        address = Mux(asked.plain, 0, values["base"]) + (first + shared) * line_bytes
        wanted = {
            "address": address[: ranges.address_width],
            "reads": beats - shared,
            "beats": beats,
            "lines": asked.beats,
            "width": width,
            "drop": drop,
            "shared": shared,
            "plain": asked.plain,
            "carry": asked.carry if ranges.carries > 1 else 0,
        }
        m.d.comb += [
            *(
                Assert(implies(comes, out[name] == value), f"{name} is that of the bits")
                for name, value in wanted.items()
            ),
            Assert(~watched.overflows, "no more is taken than fits"),
            Cover(comes & shared & (out.reads == 0)),
            Cover(comes & asked.plain & (out.reads == self.most)),
        ]


class SharedBeatsContract(Spec):
    """Every beat of every request is the one that memory gives, or the last one that its carry had.

    Parameters
    ----------
    beats : SharedBeats
    most : int
        Beats of a request.
    """

    def __init__(self, beats: Any, *, most: int) -> None:
        super().__init__()
        self.beats = beats
        self.most = most

    def claims(self, m: Module) -> None:
        m.submodules.beats = block = self.beats
        free_inputs(m, block)
        obey_streams(m, block)
        request = block.requests.payload
        kept = Array(Signal(block.data_width, name=f"kept{n}") for n in range(block.carries))
        known = Array(Signal(name=f"known{n}") for n in range(block.carries))
        place, first = Signal(range(self.most + 1)), Signal()  # beats of the request that have gone
        comes, reads, ends = (port.valid & port.ready for port in (block.beats, block.read_data, block.requests))
        repeats = first & request.shared
        with m.If(comes):
            m.d.sync += [place.eq(Mux(ends, 0, place + 1)), kept[request.carry].eq(block.beats.payload)]
            m.d.sync += known[request.carry].eq(1)
        # A beat that could go and has not been offered.
        could = block.requests.valid & (repeats | block.read_data.valid)
        silent = Signal(2)
        m.d.sync += silent.eq(Mux(could & ~block.beats.valid, silent + 1, 0))
        m.d.comb += [
            first.eq(place == 0),
            Assume(implies(block.requests.valid, upto(request.beats, 1, self.most) & (request.carry < block.carries))),
            Assume(implies(block.requests.valid & repeats, known[request.carry])),
            Assert(implies(comes, block.requests.valid), "a beat goes to a request"),
            Assert(
                implies(comes & repeats, block.beats.payload == kept[request.carry]),
                "a shared beat is the carry's last",
            ),
            Assert(
                implies(comes & ~repeats, reads & (block.beats.payload == block.read_data.payload)),
                "others are memory's",
            ),
            Assert(implies(reads, comes & ~repeats), "no beat of memory is lost"),
            Assert(ends == (comes & (place + 1 == request.beats)), "a request ends with its last beat"),
            Assert(
                implies(could, block.beats.valid | (repeats & (silent < (block.carries > 1)))),
                "a beat waits for nothing else",
            ),
            Cover(comes & repeats & ends & (request.carry == block.carries - 1)),
            Cover(comes & (place == self.most - 1) & request.shared),
        ]
