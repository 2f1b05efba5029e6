"""Decides what a Fill or OWFill does in a Tailors buffer: the verbs of the paper, or an error."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from .release_count import release_state
from .sizes import check_buffer, check_index
from .tailors_steps import tailors_verb

__all__ = ["TailorsVerbs"]


class TailorsVerbs(Block):
    """Names the verb of the Fill or OWFill that is accepted in this cycle, and refuses those that the paper does not allow.

    Parameters
    ----------
    entries : int
        Largest capacity, at least 2.
    index_width : int
        Bits of a tile index; ``2**index_width`` exceeds ``entries``.

    Members
    -------
    fill, overwrite : In(1), fill_ready, overwrite_ready : Out(1)
        Handshake of both. A Fill goes before an OWFill of the same cycle.
    accepts : In(1)
        This cycle has the memory's write port for one of them.
    calm, turn_done : In(1)
        No rare operation is in a step of its own; the OWFill that turns the buffer is accepted.
    capacity, tile_length : In
        Constant while entries are present.
    no_credit : In(1)
        All entries of the buffer are regular ones.
    overbooked, shrunk, backfilling, full, ends : In(1)
        Of :class:`FifoRegion`.
    asked_first : In(1)
        The read at the port asks for the least recent entry of the region.
    released : In(release_state)
        What the consumer needs no longer.
    verb : Out(tailors_verb)
        Of this cycle.
    turn : Out(1)
        The OWFill at the port is to turn the buffer.
    refused : Out({fill, early, late})
        Accepted in this cycle and dropped: a Fill while overbooked, an OWFill before the buffer is full, one of a tile that
        fits.

    Timing
    ------
    Combinational: one Fill or OWFill a cycle.
    """

    latency = 0

    def __init__(self, *, entries: int, index_width: int) -> None:
        check_buffer(entries)
        check_index(entries, index_width)
        self.entries = entries
        self.index_width = index_width
        flags = ("overbooked", "shrunk", "backfilling", "full", "ends", "no_credit", "asked_first")
        super().__init__(
            {
                **{name: In(1) for name in ("fill", "overwrite", "accepts", "calm", "turn_done")},
                "capacity": In(range(entries + 1)),
                "tile_length": In(index_width),
                **{name: In(1) for name in flags},
                "released": In(release_state()),
                "fill_ready": Out(1),
                "overwrite_ready": Out(1),
                "verb": Out(tailors_verb()),
                "turn": Out(1),
                "refused": Out(data.StructLayout({"fill": 1, "early": 1, "late": 1})),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        verb, refused, released = self.verb, self.refused, self.released
        overbooked, backfilling, no_credit = self.overbooked, self.backfilling, self.no_credit
        fits = Signal()
        fills = Signal()
        overwrites = Signal()  # an OWFill that does not turn the buffer
        m.d.comb += [
            fits.eq((self.tile_length != 0) & (self.tile_length <= self.capacity) & ~backfilling),
            self.turn.eq(
                self.overwrite
                & Mux(overbooked, self.ends & ~released.part, no_credit & ~fits & ~released.part_of_region)
            ),
            self.fill_ready.eq(self.accepts & self.calm & Mux(overbooked, ~self.shrunk, ~no_credit & ~backfilling)),
            fills.eq(self.fill & self.fill_ready),
            overwrites.eq(self.overwrite & self.accepts & self.calm & ~fills),
            verb.fill.eq(fills & ~overbooked),
            verb.split.eq(self.turn_done & ~overbooked),
            verb.rotate.eq(overwrites & overbooked & ~self.ends & ~((self.asked_first | released.none) & self.full)),
            verb.dissolve.eq(self.turn_done & overbooked),
            verb.backfill.eq(overwrites & ~overbooked & ~no_credit & backfilling),
            refused.fill.eq(fills & overbooked),
            refused.early.eq(overwrites & ~overbooked & ~no_credit & ~backfilling),
            refused.late.eq(overwrites & ~overbooked & no_credit & fits),
            self.overwrite_ready.eq(self.turn_done | verb.rotate | verb.backfill | refused.early | refused.late),
        ]
        return m
