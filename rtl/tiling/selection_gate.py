"""Selection gate: which nonzero of A goes to the intra-tile engine, and when."""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.check import check_integer
from ..lib.stream import StreamRegister
from ..lib.unit import Fault, Unit
from ..types import COORDINATE_WIDTH, POSITION_WIDTH, part_of_one, row_part, selection

__all__ = ["SelectionGate"]


class SelectionGate(Unit):
    """Gives the engine its selections: A's nonzeros of the present tile, or the pieces of C's rows while these are assembled.

    A nonzero waits until it belongs to a row of the present tile and the fiber of B that it names can be used. Rows are
    counted only with ``back_to_back``: there A's nonzeros come without a break, and those of the next tile wait for it.

    Parameters
    ----------
    named : bool
        Selections name fibers of B, so that each waits for its own while B's part is being loaded. Else all of them wait until
        the load has ended.
    lanes : int
        Not 0, and not ``named``: as many nonzeros of a row at most come together, and the engine sees whether they are of the
        tile.

    Members
    -------
    back_to_back : In(1)
        Tiles follow one another without a break, as windows of k do. Constant during a run.
    assembling : In(1)
        Pieces are handed out, not nonzeros.
    placed : In(1), rows : In(COORDINATE_WIDTH)
        Pulse: the tile with so many rows of A can be computed from the next cycle but one on.
    loading : In(1), settled : In(POSITION_WIDTH)
        B's part is being loaded; so many of its fibers can be used already. Followed a cycle late.
    origin, width : In(COORDINATE_WIDTH)
        Without ``lanes``. The first fiber of B's part, in numbers of the selections, and how many there are.
    planned : In(1), entry_bits : In(5), entries : In(COORDINATE_WIDTH)
        With ``named``. A nonzero names in its low ``entry_bits`` one of ``entries`` entries of metadata, which its selection has,
        and above them the number of the fiber of B's part; number 0 stands for all that were there before. ``origin`` is 0.
    nonzeros, pieces : In(stream)
        A's nonzeros, selections or with ``lanes`` parts of rows, and the pieces of C's rows.
    selections : Out(stream)
        As ``nonzeros``. A nonzero is there a cycle after it was taken, a piece at once.
    looked_up : In(1)
        The engine has looked up all that it took.
    selected : Out(1)
        The nonzeros of the present tile's rows have been looked up.
    holding : Out(1)
        A nonzero waits.
    event_stall : Out(1)
        A nonzero of a row of the present tile waits for its fiber.
    wrong : Out(1), coordinate : Out(COORDINATE_WIDTH)
        Without ``lanes``. Pulse: a nonzero outside its tile, a cycle late. Where rows of A are whole ``coordinate`` is its
        column.

    Timing
    ------
    One cycle for a nonzero, none for a piece; one selection or part a cycle.
    """

    def __init__(self, *, named: bool = True, lanes: int = 0) -> None:
        self.lanes = check_integer("Lanes", lanes, 0, 64)
        if named and lanes:
            raise ValueError(f"Nonzeros that name fibers come one by one, not {lanes} together")
        self.named = bool(named)
        one = stream.Signature(row_part(lanes) if lanes else selection())
        plan = {"planned": In(1), "entry_bits": In(5), "entries": In(COORDINATE_WIDTH)}
        bounds = {"origin": In(COORDINATE_WIDTH), "width": In(COORDINATE_WIDTH)}
        found = {"wrong": Out(1), "coordinate": Out(COORDINATE_WIDTH)}
        super().__init__(
            {
                **(plan if self.named else {}),
                **({} if lanes else bounds | found),
                "back_to_back": In(1),
                "assembling": In(1),
                "placed": In(1),
                "rows": In(COORDINATE_WIDTH),
                "loading": In(1),
                "settled": In(POSITION_WIDTH),
                "nonzeros": In(one),
                "pieces": In(stream.Signature(selection())),
                "selections": Out(one),
                "looked_up": In(1),
                "selected": Out(1),
                "holding": Out(1),
                "event_stall": Out(1),
            }
        )

    def events(self) -> Mapping[str, Value]:
        return {"stall_load": self.event_stall}

    def faults(self) -> Sequence[Fault]:
        return (Fault("bad_coordinate", self.wrong, self.coordinate),) if not self.lanes else ()

    def activity(self) -> Mapping[str, Value]:
        return {"selection_gate": self.holding}

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.nonzero = nonzero = StreamRegister(shape=self.nonzeros.payload.shape())
        connect(m, flipped(self.nonzeros), nonzero.i)
        taken = nonzero.o.payload
        out = self.selections
        fiber = Signal(COORDINATE_WIDTH)  # the number of the fiber that is waited for
        if not self.lanes and not self.named:
            m.d.comb += fiber.eq(taken.index)
        if self.named:
            come = self.nonzeros.payload.index
            above = come >> self.entry_bits
            with m.If(self.planned):
                m.d.comb += nonzero.i.payload.index.eq(come & ~((~Const(0, COORDINATE_WIDTH)) << self.entry_bits))
            with m.If(nonzero.i.valid & nonzero.i.ready):
                m.d.sync += fiber.eq(Mux(self.planned, above, come))

        # Rows of the present tile whose nonzeros have not all been handed out.
        begins = Signal()  # the first cycle in which the tile is computed
        rows_left = Signal(COORDINATE_WIDTH)
        rows_open = Signal()  # rows_left != 0
        m.d.sync += begins.eq(self.placed)
        with m.If(begins):
            m.d.sync += [rows_left.eq(self.rows), rows_open.eq(1)]
        with m.Elif(nonzero.o.valid & nonzero.o.ready & taken.last):
            m.d.sync += [rows_left.eq(rows_left - 1), rows_open.eq(rows_left != 1)]
        m.d.comb += [
            self.selected.eq(self.looked_up & ~rows_open & ~begins),
            self.holding.eq(nonzero.o.valid),
        ]

        # While B's part is being loaded a nonzero waits until its fiber can be used.
        of_tile = Mux(self.back_to_back, rows_open, ~begins)
        usable = Signal()
        if self.named:
            usable_below = Signal(COORDINATE_WIDTH + 1)  # numbers of fibers, a cycle late
            m.d.sync += usable_below.eq(self.origin + self.settled)
            m.d.comb += usable.eq(~self.loading | ~taken.present | (fiber < usable_below))
        else:
            m.d.comb += usable.eq(~self.loading | ~(taken.count.any() if self.lanes else taken.present))
        with m.If(self.assembling):
            m.d.comb += [
                out.valid.eq(self.pieces.valid),
                out.payload.eq(part_of_one(self.lanes, self.pieces.payload) if self.lanes else self.pieces.payload),
                self.pieces.ready.eq(out.ready),
            ]
        with m.Else():
            m.d.comb += [
                out.valid.eq(nonzero.o.valid & of_tile & usable),
                out.payload.eq(taken),
                nonzero.o.ready.eq(out.ready & of_tile & usable),
                self.event_stall.eq(nonzero.o.valid & of_tile & ~usable),
            ]

        if not self.lanes:
            self._check(m, fiber, taken)
        return m

    def _check(self, m: Module, fiber: Value, taken: Any) -> None:
        """Whether a nonzero lies in its tile."""
        out = self.selections
        checked = Signal()
        number = Signal(COORDINATE_WIDTH)  # of the fiber, counted from the tile's first
        beyond = Signal()  # the entry, with ``planned``
        m.d.sync += [
            checked.eq(out.valid & out.payload.present & ~self.assembling),
            number.eq(fiber - self.origin),
            self.coordinate.eq(out.payload.index),
        ]
        if self.named:
            m.d.sync += beyond.eq(self.planned & (taken.index >= self.entries))
        m.d.comb += self.wrong.eq(checked & (beyond | (number >= self.width)))
