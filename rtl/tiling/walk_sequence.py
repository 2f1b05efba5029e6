"""The steps of one tile after the other: its place settles, it is looked up, offered, and with tuning decided upon."""

from typing import Any

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from .tile_walk import TileWalk
from .window_ring import WindowRing

__all__ = ["WalkSequence"]


class WalkSequence(Block):
    """Takes the tiles of a run one by one: settles where each lies, asks whether it is empty, offers it, goes on.

    ::

        IDLE --> SETTLE --> ASK --> WAIT --> [WINDOW] --> OFFER --> SETTLE      a tile that is taken
                                     |          |           |
                                     |         BAD          +--> PLACED --> [DECIDED] --> ADVANCE --> SETTLE
                                     +--> SKIP --> SETTLE                       a tile that is left out

    Parameters
    ----------
    tuning : bool
        The last row of steps, and the members ``tuned``, ``placed``, ``loaded``, ``full``, ``decided`` and ``decide``.

    Members
    -------
    start : In(1)
        Pulse in IDLE: begins with the first tile.
    gathered : In(1)
        Each tile has a window of its own. Constant during a run.
    done, part_empty, must_visit, skippable : In(1)
        WAIT: the tile was looked up; a part of it is empty; it is to be visited even so; else it is left out.
    window_done, window_empty, bad : In(1)
        WINDOW: the window was read; it has no coordinate; ``WindowRing.latency`` cycles later: it is not legal.
    taken, last : In(1)
        OFFER: the tile is taken; no tile follows.
    tuned, placed, loaded, full, decided : In(1)
        Shapes are tuned. PLACED: the tile can be computed, and B's part was loaded and is not ragged, so that a decision is
        wanted. DECIDED: the decision is there.
    clear, ask, offer, visited, advance, decide : Out(1)
        To do in this cycle: forget the run before; look the tile up; offer it; count it; go on to the next one; decide.
    empty, skip : Out(1)
        The tile adds nothing; it is left out. From registers.
    bad_window : Out(1)
        The walk does not go on.

    Timing
    ------
    6 cycles a tile whose maps answer at once, 7 more with a window, 2 more with tuning.
    """

    def __init__(self, *, tuning: bool = False) -> None:
        self.tuning = bool(tuning)
        inputs = ["start", "gathered", "done", "part_empty", "must_visit", "skippable", "window_done"]
        inputs += ["window_empty", "bad", "taken", "last"]
        outputs = ["clear", "ask", "offer", "visited", "advance", "empty", "skip", "bad_window"]
        if self.tuning:
            inputs += ["tuned", "placed", "loaded", "full", "decided"]
            outputs += ["decide"]
        super().__init__({**{name: In(1) for name in inputs}, **{name: Out(1) for name in outputs}})

    def build(self, platform: Any) -> Module:
        m = Module()
        tuned: Value = self.tuned if self.tuning else Const(0, 1)
        adds_nothing = self.part_empty & ~self.must_visit
        # Most of the controller waits for `advance` and `ask`: registers tell the steps that lead to them.
        goes_on = Signal()  # SKIP or ADVANCE
        m.d.sync += [goes_on.eq(0), self.offer.eq(0), self.ask.eq(0)]
        m.d.comb += self.advance.eq(goes_on | (self.offer & self.taken & ~tuned))
        settled = Signal(range(max(TileWalk.latency, WindowRing.latency)))
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.clear.eq(1)
                m.d.sync += settled.eq(0)
                with m.If(self.start):
                    m.next = "SETTLE"
            with m.State("SETTLE"):
                m.d.sync += settled.eq(settled + 1)
                with m.If(settled == TileWalk.latency - 1):
                    m.d.sync += [settled.eq(0), self.ask.eq(1)]
                    m.next = "ASK"
            with m.State("ASK"):
                m.next = "WAIT"
            with m.State("WAIT"):
                m.d.sync += [self.empty.eq(adds_nothing), self.skip.eq(adds_nothing & self.skippable)]
                with m.If(self.done):
                    with m.If(self.gathered):
                        m.next = "WINDOW"
                    with m.Elif(adds_nothing & self.skippable):
                        m.d.sync += goes_on.eq(1)
                        m.next = "SKIP"
                    with m.Else():
                        m.d.sync += self.offer.eq(1)
                        m.next = "OFFER"
            with m.State("SKIP"):
                m.d.comb += self.visited.eq(1)
                m.next = "SETTLE"
            with m.State("WINDOW"):
                with m.If(self.window_done):
                    m.d.sync += settled.eq(settled + 1)
                with m.If(settled == WindowRing.latency - 1):
                    m.d.sync += [settled.eq(0), self.empty.eq(self.window_empty), self.offer.eq(~self.bad)]
                    m.next = "OFFER"
                    with m.If(self.bad):
                        m.next = "BAD"
            with m.State("BAD"):
                m.d.comb += self.bad_window.eq(1)
            with m.State("OFFER"):
                m.d.sync += self.offer.eq(~self.taken)
                with m.If(self.taken):
                    m.d.comb += self.visited.eq(1)
                    m.next = "SETTLE"
                    if self.tuning:
                        with m.If(tuned):
                            m.next = "PLACED"
                    with m.If(self.last):
                        m.next = "IDLE"
            if self.tuning:
                with m.State("PLACED"):
                    with m.If(self.placed):
                        with m.If(self.loaded & self.full):
                            m.d.comb += self.decide.eq(1)
                            m.next = "DECIDED"
                        with m.Else():
                            m.d.sync += goes_on.eq(1)
                            m.next = "ADVANCE"
                with m.State("DECIDED"):
                    with m.If(self.decided):
                        m.d.sync += goes_on.eq(1)
                        m.next = "ADVANCE"
                with m.State("ADVANCE"):
                    m.next = "SETTLE"
        return m
