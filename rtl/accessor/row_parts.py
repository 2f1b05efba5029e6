"""Hands out the parts of each row of C that earlier k steps wrote, from the positions that each of them left."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..lib.onehot import above_lowest, lowest_set, onehot_index
from ..lib.sram import SramBank
from ..lib.stream import StreamQueue
from ..storage import WORD_BYTES, word_address
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
        ``stride`` is a multiple of the words of a line.
    partials : Out(stream(partial_fiber))
        Parts that are not empty, up to one without ``more`` for each row; an empty one for a row without parts.
    idle : Out(1)
        Everything has been asked for, and nothing waits to be handed out.
    read_request, read_data
        A client port of the memory engine.

    Timing
    ------
    Two cycles a line, one a part; 16 parts wait ahead.
    """

    def __init__(self, *, lanes: int, address_width: int) -> None:
        check_power_of_two("Lanes", lanes, 1, 64)
        check_integer("Address width", address_width, 8, 64)
        self.lanes = lanes
        self.address_width = address_width
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

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "a": self.address_width}

    def build(self, platform: Any) -> Module:
        m = Module()
        words = 2 * self.lanes
        shift = (words - 1).bit_length()
        # Of each step the line at hand, behind the last word of the line before.
        m.submodules.lines = lines = SramBank(depth=MOST_PARTS, width=32 * (words + 1))
        m.submodules.fibers = fibers = StreamQueue(shape=partial_fiber(), depth=FOUND_AHEAD)
        connect(m, fibers.o, flipped(self.partials))
        kept = Signal(data.ArrayLayout(32, words + 1))
        m.d.comb += kept.eq(lines.read_data)

        begun = Signal()  # the first line of each step has been read
        present = Signal(MOST_PARTS)  # steps that have the tile
        wanted = Signal(MOST_PARTS)  # steps of which a line is to come
        blocks = Signal(POSITION_WIDTH)  # lines of a step that are left, with the one at hand
        place = Signal(signed(POSITION_WIDTH + 1))  # of the line's first word among those of the tile
        valid = Signal(words)  # words that end a row
        offset = self.first[:shift]
        m.d.sync += valid.eq(Cat((place + n > 0) & (place + n <= self.rows) for n in range(words)))
        begins = Signal()
        m.d.sync += begins.eq(self.start)
        self._ask(m, begins, begun, present)

        # What a line says of its step: which rows have a part.
        step = Signal(range(MOST_PARTS))
        parts = [Signal(MOST_PARTS, name=f"parts{n}") for n in range(words)]
        line = Signal(data.ArrayLayout(32, words))
        visited = Signal()  # the step has the tile
        m.d.comb += [
            step.eq(onehot_index(lowest_set(wanted))),
            line.eq(self.read_data.payload),
            visited.eq(begun | (self.read_data.payload.word_select(offset, 32) != 0)),
            lines.write_address.eq(step),
            lines.write_data.eq(Cat(kept[words], line)),
            lines.read_address.eq(step),
        ]

        # A row's parts, one a cycle; where they lie is known a cycle later.
        index = Signal(range(words))
        left = Signal(MOST_PARTS)  # of the row
        several = Signal()
        found = Signal(data.StructLayout({"valid": 1, "index": range(words), "empty": 1, "more": 1}))
        goes = Signal()
        fiber = fibers.i.payload
        origin = Signal(32)
        m.d.comb += [
            several.eq((left & above_lowest(left)).any()),
            goes.eq(~found.valid | fibers.i.ready),
            fibers.i.valid.eq(found.valid),
            origin.eq(kept.as_value().word_select(found.index, 32)),
            fiber.in_memory.eq(1),
            fiber.position.eq(origin - 1),
            fiber.more.eq(found.more),
        ]
        with m.If(~found.empty):
            m.d.comb += fiber.length.eq(kept.as_value()[32:].word_select(found.index, 32) - origin)
        with m.If(fibers.i.ready):
            m.d.sync += found.valid.eq(0)

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(~begins & ~found.valid & (fibers.level == 0))
                m.d.sync += [
                    place.eq(-offset),
                    blocks.eq((offset + self.rows + words) >> shift),
                    wanted.eq((1 << self.steps) - 1),
                    present.eq(0),
                    begun.eq(0),
                ]
                with m.If(begins):
                    m.next = "KEPT"
            with m.State("KEPT"):
                m.d.comb += lines.read_enable.eq(~found.valid)
                m.d.sync += left.eq(parts[0])
                with m.If(~found.valid):
                    m.next = "LINE"
                    with m.If(~wanted.any()):
                        m.d.sync += begun.eq(1)
                        m.next = "ROWS"
            with m.State("LINE"):
                m.d.comb += [self.read_data.ready.eq(1), lines.write_mask.eq(self.read_data.valid)]
                with m.If(self.read_data.valid):
                    m.d.sync += [wanted.eq(wanted & ~lowest_set(wanted)), present.bit_select(step, 1).eq(visited)]
                    for n, mask in enumerate(parts):
                        m.d.sync += mask.bit_select(step, 1).eq(
                            visited & valid[n] & (line[n] != (kept[words] if n == 0 else line[n - 1]))
                        )
                    m.next = "KEPT"
            with m.State("ROWS"):
                m.d.comb += [
                    lines.read_address.eq(onehot_index(lowest_set(left))),
                    lines.read_enable.eq(goes),
                ]
                row = valid.bit_select(index, 1)
                with m.If(goes):
                    m.d.sync += [
                        found.valid.eq(row),
                        found.index.eq(index),
                        found.empty.eq(~left.any()),
                        found.more.eq(several),
                        left.eq(Mux(row & several, left & ~lowest_set(left), Array(parts)[(index + 1)[: len(index)]])),
                    ]
                    with m.If(~row | ~several):
                        m.d.sync += index.eq(index + 1)
                        with m.If(index == words - 1):
                            m.d.sync += [wanted.eq(present), place.eq(place + words), blocks.eq(blocks - 1)]
                            m.d.sync += [mask.eq(0) for mask in parts]
                            m.next = "KEPT"
                            with m.If(blocks == 1):
                                m.next = "IDLE"
        return m

    def _ask(self, m: Module, begins: Signal, begun: Signal, present: Signal) -> None:
        """Asks for the lines of all steps, then for the next ones of those that have the tile, ahead of their use."""
        words = 2 * self.lanes
        line_bytes = WORD_BYTES * words
        line = Signal(self.address_width)  # of the first step
        address = Signal(self.address_width)
        step = Signal(range(MOST_PARTS + 1))
        later = Signal()  # the first lines have been asked for
        left = Signal(POSITION_WIDTH)  # lines of a step that are still to be asked for
        asks = Signal()
        shift = (words - 1).bit_length()
        line_bits = (line_bytes - 1).bit_length()
        base = Cat(Const(0, line_bits), word_address(self.positions, self.first)[line_bits:])
        m.d.comb += [
            asks.eq(~later | (begun & (present >> step)[0])),
            self.read_request.valid.eq((left != 0) & asks),
            self.read_request.payload.address.eq(address),
            self.read_request.payload.beats.eq(1),
        ]
        with m.If((left != 0) & Mux(asks, self.read_request.ready, begun)):
            m.d.sync += [step.eq(step + 1), address.eq(address + (self.stride << 2))]
            with m.If(step + 1 == self.steps):
                m.d.sync += [step.eq(0), later.eq(1), left.eq(left - 1)]
                m.d.sync += [line.eq(line + line_bytes), address.eq(line + line_bytes)]
        with m.If(begins):
            m.d.sync += [
                later.eq(0),
                line.eq(base),
                address.eq(base),
                step.eq(0),
                left.eq((self.first[:shift] + self.rows + words) >> shift),
            ]
