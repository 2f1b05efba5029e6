"""Tile loads: brings those parts of a tile into the SRAM that are not resident, A's part first."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from ..lib.block import Block

__all__ = ["TileLoads"]


class TileLoads(Block):
    """Has those parts of each tile loaded that are not in the SRAM. One load at a time: they share the SRAM's write ports.

    B's load is one of::

        NONE --load_b--> BESIDE --idle_b--> NONE       rows are computed meanwhile
             --load_b--> FIRST  --placed--> NONE       with ``first``: before anything is computed

    Parameters
    ----------
    tuning : bool
        There is ``first``: the counts of B's part decide what the next tile is.

    Members
    -------
    active : In(1)
        The tile is in its loading phase. All other inputs but ``idle_*``, ``resident_*``, ``take_*`` and ``allowed`` are
        constant meanwhile. The first such cycle is for comparing; a cycle at least parts two phases.
    want_a, want_b : In(1)
        The tile has a part that is kept in the SRAM.
    resident_a, resident_b : In(1)
        The part is there or on its way, from the second cycle on.
    idle_a, idle_b : In(1)
        The accessor has nothing to do.
    allowed : In(1)
        B's part may be loaded.
    first : In(1)
        B's part is waited for.
    load_a, load_b : Out(1), take_a, take_b : In(1)
        The load is offered; it is taken.
    compare : Out(1)
        Residency is looked at in this cycle.
    placed : Out(1)
        Pulse, the phase's last cycle: the tile can be computed. The second cycle at the earliest.
    loading_a, loading_b : Out(1)
        A's part is being loaded; B's is, while rows are computed.
    event_loaded, event_loaded_a : Out(1)
        Pulse: B's part, A's part has been loaded.

    Timing
    ------
    At least two cycles a tile; one load at a time.
    """

    def __init__(self, *, tuning: bool = False) -> None:
        self.tuning = bool(tuning)
        inputs = ["active", "allowed"] + (["first"] if self.tuning else [])
        outputs = ["compare", "placed", "event_loaded", "event_loaded_a"]
        for part in "ab":
            inputs += [f"{name}_{part}" for name in ("want", "resident", "idle", "take")]
            outputs += [f"{name}_{part}" for name in ("load", "loading")]
        super().__init__({**{name: In(1) for name in inputs}, **{name: Out(1) for name in outputs}})

    def build(self, platform: Any) -> Module:
        m = Module()
        compared = Signal()
        fresh_a = Signal()  # A's part was loaded for this tile
        begins = Signal()  # B's load begins, and with it what is computed meanwhile
        m.d.sync += compared.eq(self.active)
        m.d.comb += [
            self.compare.eq(~compared),
            begins.eq(self.load_b & self.take_b),
            self.event_loaded_a.eq(self.placed & fresh_a),
        ]
        with m.If(self.active & compared):
            with m.If(self.want_a & ~(self.resident_a & self.idle_a)):
                m.d.comb += [self.loading_a.eq(1), self.load_a.eq(~self.resident_a)]
            with m.Elif(self.want_b & ~(self.resident_b & self.idle_b)):
                m.d.comb += [
                    self.load_b.eq(~self.resident_b & self.allowed & ~self.loading_b),
                    self.placed.eq(begins & ~self.first if self.tuning else begins),
                ]
            with m.Else():
                m.d.comb += self.placed.eq(1)
        with m.If(self.load_a & self.take_a):
            m.d.sync += fresh_a.eq(1)
        with m.If(self.placed):
            m.d.sync += fresh_a.eq(0)
        with m.FSM():
            with m.State("NONE"):
                with m.If(begins):
                    m.next = "BESIDE"
                    if self.tuning:
                        with m.If(self.first):
                            m.next = "FIRST"
            with m.State("BESIDE"):
                m.d.comb += self.loading_b.eq(1)
                with m.If(self.idle_b):
                    m.d.comb += self.event_loaded.eq(1)
                    m.next = "NONE"
            if self.tuning:
                with m.State("FIRST"):
                    with m.If(self.placed):
                        m.d.comb += self.event_loaded.eq(1)
                        m.next = "NONE"
        return m
