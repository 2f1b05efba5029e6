"""Hands out the parts of each row of C that earlier k steps wrote, from the positions that each of them left."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.signals import signals
from ..lib.sram import SramBank
from ..lib.stream import StreamQueue
from ..storage import WORD_BYTES
from ..types import MOST_PARTS, POSITION_WIDTH, partial_fiber, read_request

__all__ = ["RowParts"]

FOUND_AHEAD = 16


class RowParts(Block):
    """Reads the positions that several k steps left for the rows of a tile and gives each row's parts, earliest step first.

    Positions of one step lie ``stride`` words behind those of the step before, all at the same place of a line, so that a
    line has words of the same rows in each. Words count from 1: a step whose first word is 0 has not visited the tile, and no
    more of it is read. A line of each step is read, then the rows that end in it are handed out, while the next ones are
    under way::

        IDLE --start--> KEPT --the step's line before is at hand--> LINE --read--> KEPT
                        KEPT --a line of each step is read--> ROWS --they are out--> KEPT, IDLE

    Parameters
    ----------
    lanes, address_width : int
        See :class:`PairReader`.

    Members
    -------
    start : In(1)
        Pulse while ``idle``: parts of ``steps`` steps, from 1 to ``MOST_PARTS``, of ``rows`` rows are wanted; the first row
        begins at the word ``first`` of the array ``positions``. All are constant from the cycle after it until ``idle``;
        ``positions`` begins a line, and ``stride`` is a multiple of the words of a line.
    partials : Out(stream(partial_fiber))
        Parts that are not empty, up to one without ``more`` for each row; an empty one for a row without parts.
    idle : Out(1)
        Everything has been asked for, and nothing waits to be handed out.
    read_request, read_data
        A client port of the memory engine.

    Timing
    ------
    Two cycles a line, one a part; from the lines of some rows to those of the next a cycle for each step. 16 parts wait ahead.
    """

    def __init__(self, *, lanes: int, address_width: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        super().__init__(
            {
                "start": In(1),
                "first": In(POSITION_WIDTH),
                "rows": In(POSITION_WIDTH),
                "steps": In(range(MOST_PARTS + 1)),
                "stride": In(POSITION_WIDTH),
                "positions": In(address_width),
                "partials": Out(stream.Signature(partial_fiber())),
                "idle": Out(1),
                "read_request": Out(stream.Signature(read_request(address_width))),
                "read_data": In(stream.Signature(64 * lanes)),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        words = 2 * self.lanes
        shift = (words - 1).bit_length()
        # Of each step that has the tile the line at hand, behind the last word of the line before, in places without gaps.
        m.submodules.lines = lines = SramBank(depth=MOST_PARTS, width=32 * (words + 1))
        m.submodules.fibers = fibers = StreamQueue(shape=partial_fiber(), depth=FOUND_AHEAD)
        connect(m, fibers.o, flipped(self.partials))
        kept = Signal(data.ArrayLayout(32, words + 1))
        m.d.comb += kept.eq(lines.read_data)

        begun = Signal()  # the first line of each step has been read
        step = Signal(range(MOST_PARTS + 1))  # whose first line is to come, until `begun`
        place = Signal(range(MOST_PARTS + 1))  # of the step whose line is to come
        at_place = Signal(MOST_PARTS + 1, init=1)  # the same, one-hot
        present = Signal(range(MOST_PARTS + 1))  # steps that have the tile
        over = Signal()  # all steps have given a line
        rewinds = Signal()  # to the first place
        rows_end = Signal()  # those of the lines at hand are out
        at_first = Signal()  # the lines at hand are the first ones
        at_last, is_last = signals("at_last is_last")  # they are the last ones, and a cycle later
        index_of_line = Signal(POSITION_WIDTH - shift)
        through = Signal(POSITION_WIDTH)  # words from the first line's begin to the end of the last row
        valid = Signal(words)  # words that end a row; the first one of the first line ends none
        offset = self.first[:shift]
        begins = Signal()
        visited = Signal()  # the step has the tile
        line = Signal(data.ArrayLayout(32, words))
        writes = Signal()
        some = Cat(line[n].any() for n in range(words))
        m.d.comb += [
            line.eq(self.read_data.payload),
            visited.eq(begun | some.bit_select(offset, 1)),
            over.eq(Mux(begun, place == present, step == self.steps)),
            at_last.eq(index_of_line == through[shift:]),
            lines.write_address.eq(place),
            lines.write_data.eq(Cat(kept[words], line)),
            lines.write_mask.eq(writes),
            lines.read_address.eq(place),
        ]
        m.d.sync += [
            begins.eq(self.start),
            is_last.eq(at_last),
            through.eq(offset + self.rows),
            valid.eq(
                Cat(
                    ~at_first,
                    *((~at_first | (n > offset)) & (~at_last | (n <= through[:shift])) for n in range(1, words)),
                )
            ),
        ]
        with m.If(begins):
            m.d.sync += [step.eq(0), begun.eq(0), at_first.eq(1), index_of_line.eq(0)]
        with m.Elif(rows_end):
            m.d.sync += [at_first.eq(0), index_of_line.eq(index_of_line + 1)]
        with m.If(rewinds):
            m.d.sync += [place.eq(0), at_place.eq(1)]
        with m.Elif(writes & visited):
            m.d.sync += [place.eq(place + 1), at_place.eq(at_place << 1)]
        self._ask(m, begins, begun, through[shift:], writes & ~begun, step, visited)

        differ = Cat(line[n] != (line[n - 1] if n else kept[words]) for n in range(words))
        next_part, next_row, some_left, several, lowest = self._note(
            m, writes, visited, valid & differ, place, at_place
        )

        # A row's parts, one a cycle; where they lie is known a cycle later.
        index = Signal(range(words))
        found = Signal(_found(words))
        goes = Signal()
        m.d.comb += [goes.eq(~found.valid | fibers.i.ready), fibers.i.valid.eq(found.valid)]
        _locate(m, fibers.i.payload, kept, found)
        with m.If(fibers.i.ready):
            m.d.sync += found.valid.eq(0)

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(~begins & ~found.valid & (fibers.level == 0))
                with m.If(begins):
                    m.next = "KEPT"
            with m.State("KEPT"):
                m.d.comb += lines.read_enable.eq(~found.valid)
                with m.If(~found.valid):
                    m.next = "LINE"
                    with m.If(over):
                        m.d.comb += rewinds.eq(1)
                        m.d.sync += [begun.eq(1), present.eq(place)]
                        m.next = "ROWS"
            with m.State("LINE"):
                m.d.comb += [self.read_data.ready.eq(1), writes.eq(self.read_data.valid)]
                with m.If(self.read_data.valid):
                    m.d.sync += step.eq(step + 1)
                    m.next = "KEPT"
            with m.State("ROWS"):
                m.d.comb += [
                    lines.read_address.eq(lowest),
                    lines.read_enable.eq(goes),
                    next_part.eq(goes),
                    next_row.eq(goes & ~several),  # where no row ends there is no part
                ]
                with m.If(goes):
                    m.d.sync += [
                        found.valid.eq(valid.bit_select(index, 1)),
                        found.odd.eq(index[0]),
                        found.even_word.eq((index + 1) >> 1),
                        found.odd_word.eq(index >> 1),
                        found.empty.eq(~some_left),
                        found.more.eq(several),
                    ]
                with m.If(next_row):
                    m.d.sync += index.eq(index + 1)
                    with m.If(index == words - 1):
                        m.d.comb += rows_end.eq(1)
                        m.next = "KEPT"
                        with m.If(is_last):
                            m.next = "IDLE"
        return m

    def _note(
        self, m: Module, writes: Signal, visited: Signal, differ: Value, place: Signal, at_place: Signal
    ) -> tuple[Signal, Signal, Value, Value, Value]:
        """Which places have a part of each row that ends in the lines at hand, the row in front first.

        Returns what takes a part away and what a row; whether the row in front has any part and several; the first one's place.
        """
        left, *others = rows = [Signal(MOST_PARTS, name=f"parts{n}") for n in range(2 * self.lanes)]
        # Found of what the row in front will have, so that nothing is counted in the cycle in which it hands out a part.
        some, several = signals("some several")
        lowest = Signal(range(MOST_PARTS))
        next_part, next_row = signals("next_part next_row")
        # What a line says of its place comes in the cycle after it, while the place's bits are 0; `ends` is 0 in other cycles.
        told = Signal()
        ends = Signal(len(rows))
        m.d.sync += [told.eq(writes & visited), ends.eq(Mux(writes, differ, 0))]
        following = [Mux(several, left & ~(Const(1) << lowest), others[0]), *others[1:], Const(0, MOST_PARTS)]
        front = Signal(MOST_PARTS)
        m.d.comb += front.eq(following[0])
        first = _lowest(m, front)
        with m.If(next_part):
            m.d.sync += Cat(some, several, lowest).eq(Cat(*first))
        with m.Elif(told & ends[0]):
            m.d.sync += [some.eq(1), several.eq(some)]
            with m.If(~some):
                m.d.sync += lowest.eq(place - 1)  # places rise
        for n in range(MOST_PARTS):
            tells = told & at_place[n + 1]
            with m.If(next_part | tells):
                m.d.sync += left[n].eq(following[0][n] | ends[0])
            with m.If(next_row | tells):
                m.d.sync += [row[n].eq(following[k][n] | ends[k]) for k, row in enumerate(others, 1)]
        return next_part, next_row, some, several, lowest

    def _ask(
        self, m: Module, begins: Signal, begun: Signal, last: Value, tells: Value, come: Signal, visited: Signal
    ) -> None:
        """Asks for the lines of all steps, then for the next ones of those that have the tile, ahead of their use.

        ``last``: a step's last line, from 0. ``tells``: whether the step ``come`` has the tile is known, as ``visited`` says.
        """
        words = 2 * self.lanes
        shift = (words - 1).bit_length()
        line_bits = (WORD_BYTES * words - 1).bit_length()
        line = Signal(self.address_width - line_bits)  # of the first step; addresses are in lines
        address = Signal.like(line)
        origin, distance = signals("origin distance", line.shape())
        index = Signal(POSITION_WIDTH - shift)
        step, last_step = signals("step last_step", range(MOST_PARTS))
        m.d.sync += last_step.eq(self.steps - 1)
        asking = Signal()
        later = Signal()  # the first lines have been asked for
        asks, moves, ends = signals("asks moves ends")
        m.submodules.present = present = memory.Memory(shape=1, depth=MOST_PARTS, init=[])
        write, read = present.write_port(), present.read_port(domain="comb")
        m.d.comb += [
            write.en.eq(tells),
            write.addr.eq(come),
            write.data.eq(visited),
            read.addr.eq(step),
            asks.eq(~later | (begun & read.data)),
            self.read_request.valid.eq(asking & asks),
            self.read_request.payload.address.eq(Cat(Const(0, line_bits), address)),
            self.read_request.payload.beats.eq(1),
            moves.eq(asking & Mux(asks, self.read_request.ready, begun)),
            ends.eq(step == last_step),
            # One sum: where the first line lies, the same step's next one, or the next step's.
            origin.eq(Mux(begins, self.positions[line_bits:], Mux(ends, line, address))),
            distance.eq(Mux(begins, self.first[shift:], Mux(ends, 1, self.stride[shift:]))),
        ]
        with m.If(begins | moves):
            m.d.sync += [address.eq(origin + distance), step.eq(step + 1)]
        with m.If(begins | (moves & ends)):
            m.d.sync += [line.eq(origin + distance), step.eq(0), later.eq(~begins), index.eq(index + 1)]
        with m.If(moves & ends & (index == last)):
            m.d.sync += asking.eq(0)
        with m.If(begins):
            m.d.sync += [asking.eq(1), index.eq(0)]


def _found(words: int) -> data.StructLayout:
    """A row's part, or that there is none: which of the kept words it lies between. ``odd``: the odd one is the first."""
    words_of = {"even_word": range(words // 2 + 1), "odd_word": range(max(2, words // 2))}
    return data.StructLayout({"valid": 1, "odd": 1, **words_of, "empty": 1, "more": 1})


def _locate(m: Module, fiber: Any, kept: Any, found: Any) -> None:
    """A part lies between two neighbours of the kept words: one at an even place, one at an odd place."""
    words = len(kept)
    odd = found.odd
    even_word, odd_word = signals("even_word odd_word", 32)
    origin, after = signals("origin after", 32)
    m.d.comb += [
        even_word.eq(Cat(kept[n] for n in range(0, words, 2)).word_select(found.even_word, 32)),
        odd_word.eq(Cat(kept[n] for n in range(1, words, 2)).word_select(found.odd_word, 32)),
        origin.eq(Mux(odd, odd_word, even_word)),
        after.eq(Mux(odd, even_word, odd_word)),
        fiber.in_memory.eq(1),
        fiber.position.eq(origin - 1),
        fiber.more.eq(found.more),
    ]
    with m.If(~found.empty):
        m.d.comb += fiber.length.eq(after - origin)


def _lowest(m: Module, bits: Value, first: int = 0) -> tuple[Value, Value, Value]:
    """Whether any of the bits is set, whether several are, and the index of the lowest one, 0 without any.

    What is known of four bits and more has a name, with the numbers of the bits from the ``first`` on.
    """
    if len(bits) == 1:
        return bits, Const(0, 1), Const(0, 0)
    half = len(bits) // 2
    low, more_low, index_low = _lowest(m, bits[:half], first)
    high, more_high, index_high = _lowest(m, bits[half:], first + half)
    more = more_low | more_high | (low & high) if half > 1 else low & high
    found = low | high, more, Cat(Mux(low, index_low, index_high), high & ~low)
    if len(bits) < 4:
        return found
    place = f"{first}_{first + len(bits) - 1}"
    some, several, lowest = (
        Signal(len(value), name=f"{name}_{place}")
        for name, value in zip(("some", "several", "lowest"), found, strict=True)
    )
    m.d.comb += [some.eq(found[0]), several.eq(found[1]), lowest.eq(found[2])]
    return some, several, lowest
