"""Packs fibers into lines: without gaps between them, or each into lines of its own."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_power_of_two
from ..types import POSITION_WIDTH, fiber_word

__all__ = ["LinePacker", "packed_line"]


def packed_line(lanes: int) -> data.StructLayout:
    """A line of a packed run: its index in the run, its elements, and which lanes hold."""
    return data.StructLayout({"index": POSITION_WIDTH, "data": 64 * lanes, "mask": lanes})


class LinePacker(Block):
    """Concatenates the elements of fiber words; up to a line of them a cycle.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, a power of two up to 64.
    has_apart : bool
        Fibers may have lines of their own: there are ``apart`` and ``line``.

    Members
    -------
    words : In(stream)
        Elements from lane 0. ``ready`` follows ``lines.ready`` when the word completes a line, or with ``apart`` a fiber.
    apart : In(1), line : In(POSITION_WIDTH)
        Each fiber begins a line, which is ``line`` with its first word, and nothing else lies in its last one. Constant from
        ``restart`` to ``restart``, and then no fiber is empty and nothing is to be flushed.
    lines : Out(stream)
        Completed lines, in order. Combinational from ``words``. A line that waits is withdrawn by ``flush`` (it comes
        again behind what was held) and by ``restart``.
    position, after : Out(POSITION_WIDTH)
        Elements packed since ``restart``, and with the word at hand, which mean nothing with ``apart``.
    flush : In(1)
        Pulse: hands out what is held of a line that is not complete. The same line comes again later, its mask then
        naming the lanes that are new.
    flushed : Out(1)
        High for the cycle in which a flush ends.
    restart : In(1)
        Pulse: forget everything and begin at position 0. Not while a flush is pending.
    idle : Out(1)
        No flush is pending.

    Timing
    ------
    Combinational from ``words`` to ``lines``; one word a cycle. With ``apart`` a cycle more for a fiber whose last word fills a
    line and begins another.
    """

    def __init__(self, *, lanes: int, has_apart: bool = False) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.has_apart = bool(has_apart)
        super().__init__(
            {
                "words": In(stream.Signature(fiber_word(lanes))),
                **({"apart": In(1), "line": In(POSITION_WIDTH)} if self.has_apart else {}),
                "lines": Out(stream.Signature(packed_line(lanes))),
                **dict.fromkeys(("position", "after"), Out(POSITION_WIDTH)),
                "flush": In(1),
                "flushed": Out(1),
                "restart": In(1),
                "idle": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        shift = (lanes - 1).bit_length()

        # What there is of the line in progress, never its last lane; lanes below `written` went out in an earlier flush.
        held = [Signal(64, name=f"held{n}", reset_less=True) for n in range(lanes - 1)]
        written = Signal(range(lanes))
        flushing = Signal()

        word, out = self.words.payload, self.lines
        lane = self.position[:shift]
        line = Signal(POSITION_WIDTH)  # index of the line that the word begins in
        rotated = [Signal(64, name=f"rotated{n}") for n in range(lanes)]  # the word's, each in its lane of a line
        # Free lanes of the line in progress but one. Whether a word is ready follows from these: `lane` has hundreds of readers.
        rest = Signal(range(lanes), init=lanes - 1)
        crosses = Signal()
        take = Signal()
        leaves = Signal()  # a line, with this word
        m.d.comb += [
            crosses.eq(word.count > rest),
            line.eq(self.position[shift:]),
            self.after.eq(Cat(lane, line) + word.count),
            leaves.eq(crosses),
            take.eq(self.words.valid & self.words.ready),
            self.words.ready.eq(~flushing & (~leaves | out.ready)),
            out.payload.index.eq(line),
            self.idle.eq(~flushing),
        ]
        moved = [word.line.as_value().word_select(n, 64) for n in range(lanes)]
        for bit in range(shift):
            moved = [Mux(lane[bit], moved[n - (1 << bit)], moved[n]) for n in range(lanes)]
        m.d.comb += [rotated[n].eq(moved[n]) for n in range(lanes)]
        for n, before in enumerate([*held, Const(0, 64)]):
            # In a flush nothing depends on the word: it may change.
            m.d.comb += out.payload.data.word_select(n, 64).eq(Mux((n < lane) | flushing, before, rotated[n]))
        for n in range(lanes - 1):
            with m.If(take & (crosses | (n >= lane))):
                m.d.sync += held[n].eq(rotated[n])
        with m.If(flushing):
            m.d.comb += out.valid.eq(lane != written)
            for n in range(lanes):
                m.d.comb += out.payload.mask[n].eq((n >= written) & (n < lane))
            with m.If((lane == written) | out.ready):
                m.d.comb += self.flushed.eq(1)
                m.d.sync += [flushing.eq(0), written.eq(lane)]
        with m.Else():
            m.d.comb += out.valid.eq(self.words.valid & leaves)
            for n in range(lanes):
                m.d.comb += out.payload.mask[n].eq(n >= written)
        with m.If(take):
            m.d.sync += [self.position.eq(self.after), rest.eq(~self.after[:shift])]
            with m.If(crosses):
                m.d.sync += written.eq(0)
        with m.If(self.flush):
            m.d.sync += flushing.eq(1)
        if self.has_apart:
            self._part(m, line, take, leaves, flushing, written, rest)
        with m.If(self.restart):
            m.d.sync += [self.position.eq(0), rest.eq(lanes - 1), written.eq(0)]
        return m

    def _part(
        self, m: Module, line: Signal, take: Signal, leaves: Signal, flushing: Signal, written: Signal, rest: Signal
    ) -> None:
        """Fibers in lines of their own: the first word says which line, the last one hands out what there is of it."""
        lanes, out = self.lanes, self.lines
        shift = (lanes - 1).bit_length()
        begins = Signal(init=1)
        ends = Signal()
        total = Signal(range(2 * lanes))
        m.d.comb += [
            ends.eq(self.apart & self.words.payload.last),
            total.eq(self.position[:shift] + self.words.payload.count),
        ]
        with m.If(self.apart & begins & ~flushing):
            m.d.comb += line.eq(self.line)
        with m.If(ends & ~flushing):
            m.d.comb += leaves.eq(1)
            for n in range(lanes):
                m.d.comb += out.payload.mask[n].eq(n < total)
        with m.If(self.apart & take):
            m.d.sync += begins.eq(ends)
            with m.If(ends):
                # The lanes beyond a whole line follow in a line of their own.
                m.d.sync += flushing.eq(total > lanes)
                with m.If(total < lanes):
                    m.d.sync += [self.position[:shift].eq(0), rest.eq(lanes - 1)]
        with m.If(self.apart & flushing & out.ready):
            m.d.sync += [self.position[:shift].eq(0), rest.eq(lanes - 1), written.eq(0)]
        with m.If(self.restart):
            m.d.sync += begins.eq(1)
