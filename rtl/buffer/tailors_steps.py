"""The steps of a Tailors buffer's rare operations: a Shrink, and the OWFill that splits or dissolves the region."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..lib.block import Block

__all__ = ["TailorsSteps", "tailors_step", "tailors_verb"]


def tailors_step() -> data.StructLayout:
    """The present step of a rare operation, one-hot; :class:`TailorsSteps` draws their order."""
    return data.StructLayout(
        dict.fromkeys(("calm", "examine", "shrink", "place", "aim", "look", "turn", "give_way"), 1)
    )


def tailors_verb() -> data.StructLayout:
    """What an accepted Fill or OWFill does, at most one.

    ``fill`` appends. ``split``: the first OWFill puts the FIFO-managed region in the place of regular entries. ``rotate``:
    a later one goes round in it. ``dissolve``: one gives up the region and is the first to extend the regular entries again;
    ``backfill``: so does one more.
    """
    return data.StructLayout(dict.fromkeys(("fill", "split", "rotate", "dissolve", "backfill"), 1))


class TailorsSteps(Block):
    """Gives each rare operation its cycles, so that it shares adders with the others and its flags are registered.

    ::

        CALM --> EXAMINE --> SHRINK --> CALM                   a Shrink: is it legal? then it happens
        CALM --> PLACE --> AIM --> LOOK --> TURN --> CALM      an OWFill: finds the region, puts the tail there,
                                    ^        |                 looks whether the read at the port would lose its
                                    GIVE_WAY <                 entry, turns the buffer; or the read may go first

    Members
    -------
    shrink, turn : In(1)
        A Shrink is wanted; else an OWFill that turns the buffer: it becomes overbooked, or ceases to be. Looked at in CALM.
    yields : In(1)
        The read at the port goes first. Looked at in TURN.
    advance : In(1)
        Operations can be accepted. Looked at in TURN.
    step : Out(tailors_step)
        The present step, from registers.
    turn_done : Out(1)
        The OWFill is accepted in this cycle.
    shut : Out(1)
        No read and no update goes: EXAMINE, SHRINK, LOOK and TURN. Registered.
    updates_turn : Out(1)
        An update is looked at in this cycle instead of a read: every second cycle that is not shut, but not in GIVE_WAY.
        Registered.

    Timing
    ------
    A Shrink takes 3 cycles with the one in CALM, an OWFill that turns the buffer 5, and 3 more each time it gives way.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "shrink": In(1),
                "turn": In(1),
                "yields": In(1),
                "advance": In(1),
                "step": Out(tailors_step(), init={"calm": 1}),
                "turn_done": Out(1),
                "shut": Out(1),
                "updates_turn": Out(1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        step = self.step
        opens = Signal()  # reads and updates may go in the next cycle
        gives_way = Signal()  # the next step is GIVE_WAY
        m.d.comb += [
            gives_way.eq(step.turn & self.yields),
            self.turn_done.eq(step.turn & self.advance & ~self.yields),
            opens.eq(step.calm & ~self.shrink | step.shrink | step.place | self.turn_done),
        ]
        m.d.sync += [self.shut.eq(~opens & ~gives_way), self.updates_turn.eq(~self.updates_turn & opens)]
        m.d.sync += step.eq(0)
        with m.If(step.calm & self.shrink):
            m.d.sync += step.examine.eq(1)
        with m.If(step.examine):
            m.d.sync += step.shrink.eq(1)
        with m.If(step.calm & ~self.shrink & self.turn):
            m.d.sync += step.place.eq(1)
        with m.If(step.place):
            m.d.sync += step.aim.eq(1)
        with m.If(step.aim | step.give_way):
            m.d.sync += step.look.eq(1)
        with m.If(step.look | step.turn & ~self.turn_done & ~self.yields):
            m.d.sync += step.turn.eq(1)
        with m.If(gives_way):
            m.d.sync += step.give_way.eq(1)
        with m.If(step.calm & ~self.shrink & ~self.turn | step.shrink | self.turn_done):
            m.d.sync += step.calm.eq(1)
        return m
