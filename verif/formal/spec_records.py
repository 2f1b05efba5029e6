"""Packed records: any bit of any record lies where the layout says, and a request gets the beats and the records it asked for."""

from typing import Any

from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import data

from .models import ModelQueue, WatchedItem
from .spec import Spec, fixed_value, free_inputs, implies, obey_streams, upto

__all__ = ["LineRangeContract", "RecordPackerContract", "RecordReaderContract", "SharedBeatsContract"]

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
        twice = begun & cut & (line.index == index)
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
            Assert(implies(comes, twice | (line.index == Mux(begun, index + 1, 0))), "beats come in order"),
            Assert(implies(packer.flushed, pending), "no flush ends that was not asked for"),
            Assert(packer.idle == ~pending, "idle says that no flush is pending"),
            Assert(implies(pending, ~packer.words.ready), "no word is taken while a flush is pending"),
            Assert(packer.position == count, "the position counts what was taken"),
            Assert(silent < FLUSH_CYCLES, "a flush ends"),
            # A nonzero as it is on chip is a whole beat of one lane: no flush cuts it.
            Cover(mine & known & value & (record != 0) & (twice if not plain else 1)),
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


class RecordReaderContract(Spec):
    """The solver chooses a bit of memory, which every beat that holds it shows: every line with this bit has it.

    Parameters
    ----------
    reader : RecordReader
        Of one lane and one carry.
    coordinate_bits : int
    most : int
        Lines of a request.
    inside : int
        Requests that may be under way, and reads that the memory takes before it answers them.
    """

    def __init__(self, reader: Any, *, coordinate_bits: int, most: int, inside: int) -> None:
        super().__init__()
        self.reader = reader
        self.coordinate_bits = coordinate_bits
        self.most = most
        self.inside = inside

    def claims(self, m: Module) -> None:
        m.submodules.reader = reader = self.reader
        free_inputs(m, reader, but=("base", "coordinate_bits"))
        obey_streams(m, reader)
        base = fixed_value(m, reader.address_width - 3, "base_fixed")
        m.d.comb += [reader.base.eq(base << 3), reader.coordinate_bits.eq(self.coordinate_bits)]
        width = self.coordinate_bits + reader.value_bits
        record, bit = fixed_value(m, range(4), "record"), fixed_value(m, range(width), "bit")
        value = fixed_value(m, 1, "bit_of_memory")
        place = Signal(range(4 * width))
        watched = Signal(reader.address_width - 3)  # the beat of memory that holds the bit
        m.d.comb += [place.eq(record * width + bit), watched.eq(base + (place >> 6)), Assume(bit < width)]
        self._asks(m)
        self._answers(m, watched, place[:6], value)

        request, line = reader.request.payload, reader.lines.payload
        enters, comes = (port.valid & port.ready for port in (reader.request, reader.lines))
        seen = Signal(range(self.most + 1))  # lines of the oldest request that have come
        ends = Signal()
        due = ModelQueue(
            m, "due", width=len(Value.cast(request)), depth=self.inside, push=enters, item=Value.cast(request), pop=ends
        )
        now = data.View(request.shape(), due.head)
        at = Signal(reader.address_width)
        with m.If(comes):
            m.d.sync += seen.eq(Mux(ends, 0, seen + 1))
        m.d.comb += [
            ends.eq(comes & (seen + 1 == now.beats)),
            at.eq((now.address >> 3) + seen),
            Assume(implies(due.level == self.inside, ~reader.request.valid | ~reader.request.ready)),
        ]
        coordinate, word = line[:WORD], line[WORD:]
        packed = Cat(word[: reader.value_bits], coordinate[: self.coordinate_bits])
        mine, plain = comes & ~now.plain & (at == record), comes & now.plain & (at == watched)
        signs = word[reader.value_bits :] == word[reader.value_bits - 1].replicate(WORD - reader.value_bits)
        m.d.comb += [
            Assert(implies(comes, due.level != 0), "no line comes that was not asked for"),
            Assert(implies(mine, packed.bit_select(bit, 1) == value), "a record has the bits of memory"),
            Assert(implies(plain, line.bit_select(place[:6], 1) == value), "a plain line is a beat of memory"),
            Assert(implies(comes & ~now.plain, signs), "a value keeps its sign"),
            Assert(
                implies(comes & ~now.plain, (coordinate >> self.coordinate_bits) == 0),
                "a coordinate has no further bits",
            ),
            Assert(reader.beat == (reader.read_data.valid & reader.read_data.ready), "every beat is shown"),
            Cover(mine & now.follows & value & (record == 1) & (place >= 64)),
            Cover(plain & value & (seen != 0)),
        ]

    def _asks(self, m: Module) -> None:
        """A request follows the one before it only where that was of records and ended there."""
        port, request = self.reader.request, self.reader.request.payload
        end, known = Signal(self.reader.address_width + 1), Signal()
        with m.If(port.valid & port.ready):
            m.d.sync += [end.eq(request.address + (request.beats << 3)), known.eq(~request.plain)]
        m.d.comb += Assume(
            implies(
                port.valid,
                upto(request.beats, 1, self.most)
                & (request.address[:3] == 0)
                & (request.plain | (request.address <= 8 * 3))
                & implies(request.follows, request.plain | (known & (request.address == end))),
            )
        )

    def _answers(self, m: Module, watched: Value, place: Value, value: Value) -> None:
        """Beats of the reads in order; the beat ``watched`` has ``value`` at ``place``."""
        asks, answers = self.reader.read_request, self.reader.read_data
        item = Value.cast(asks.payload)
        given, ends = Signal(range(16)), Signal()
        reads = ModelQueue(
            m, "reads", width=len(item), depth=self.inside, push=asks.valid & asks.ready, item=item, pop=ends
        )
        oldest = data.View(asks.payload.shape(), reads.head)
        moves = answers.valid & answers.ready
        with m.If(moves):
            m.d.sync += given.eq(Mux(ends, 0, given + 1))
        number = Signal.like(watched)
        m.d.comb += [
            number.eq((oldest.address >> 3) + given),
            ends.eq(moves & (given + 1 == oldest.beats)),
            Assume(implies(answers.valid, reads.level != 0)),
            Assume(implies(reads.level == self.inside, ~asks.ready)),
            Assume(implies(answers.valid & (number == watched), answers.payload.bit_select(place, 1) == value)),
        ]
