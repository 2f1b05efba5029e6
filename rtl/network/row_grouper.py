"""Row grouper: cuts the leaves of each row into groups that one PE can merge."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..types import leaf, leaf_item

__all__ = ["RowGrouper"]


class RowGrouper(Block):
    """Cuts the leaves of each row into groups of at most ``radix``, and has the groups of a long row merged.

    One leaf waits until it is known whether its group ends with it.

    ::

        LEAVES --a long row's last group--> KEEP --kept--> LEAVES
               --radix groups, and more--> WAIT --merge_begins--> MERGE --merge_done--> LEAVES

    A group goes to scratch memory when the row has another leaf behind it, or had a group before. A row without leaves is
    a group of one empty leaf. A leaf a cycle, the first one two cycles after it is taken; a row begins in the cycle in which
    the one before ends.

    Parameters
    ----------
    radix : int
        Leaves of a group at most, power of two.
    address_width : int
        Bits of a byte address.

    Members
    -------
    leaves : In(stream(leaf_item))
        The rows' leaves in order.
    with_partials : In(1), partials : In(stream(leaf))
        Each row has leaves of these before all others, up to ``last``; none where one is empty.
    groups : Out(stream(leaf))
        ``last`` ends a group. Valid, and the same, until it goes.
    scratch, long, more : Out(1)
        With the last leaf of a group: it goes to scratch memory; the row has had a group before; it has a leaf behind this
        group.
    opens : Out(1)
        A group is about to begin.
    gathers : Out(1), leads : Out(1)
        A leaf is taken; the next one to be taken is of ``partials``.
    row_ends : Out(1)
        All groups of a row have gone.
    keep : Out(1), kept : In(1)
        All groups of a long row have gone, they are to be merged; that is seen to.
    merge : Out(1), merge_begins, merge_done : In(1)
        The row's groups are to be merged into one before another comes; that begins; it is done.
    merging : Out(1)
        Between the two.
    idle : Out(1)
        No row is in progress.

    Timing
    ------
    Two cycles from a group's first leaf to its way out; one leaf a cycle.
    """

    def __init__(self, *, radix: int, address_width: int) -> None:
        self.radix = check_power_of_two("Radix", radix, 2, 1 << 12)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        one = stream.Signature(leaf(address_width))
        outputs = [
            "scratch",
            "long",
            "more",
            "opens",
            "gathers",
            "leads",
            "row_ends",
            "keep",
            "merge",
            "merging",
            "idle",
        ]
        super().__init__(
            {
                "leaves": In(stream.Signature(leaf_item(address_width))),
                "with_partials": In(1),
                "partials": In(one),
                "groups": Out(one),
                **{name: In(1) for name in ("kept", "merge_begins", "merge_done")},
                **{name: Out(1) for name in outputs},
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        radix = self.radix
        item, long, send = self.leaves.payload, self.long, self.groups.valid
        current = Signal(leaf(self.address_width))  # its `last`: the row's last leaf has been taken
        holding = Signal()
        count = Signal(range(radix + 1))  # leaves of the group in progress, the held one included
        scratch_fibers = Signal(range(radix + 1))  # fibers of the row that wait in scratch or will
        fresh = Signal(init=1)  # no leaf of a row has been taken
        leading = Signal(init=1)  # the row's leaves of `partials` have not all been taken
        stale = Signal()
        sent = Signal()
        full = Signal()
        m.d.comb += [
            sent.eq(send & self.groups.ready),
            full.eq(count[-1]),  # `radix`, a power of two: no more are counted
            self.groups.payload.eq(current),
            # Both hold whether or not a leaf goes, so that nobody waits for what is known of the next one.
            self.groups.payload.last.eq(current.last | full),
            self.scratch.eq(long | ~current.last),
            self.more.eq(~current.last),
            self.leads.eq(leading & self.with_partials),
        ]
        # A leaf that goes makes way for what is offered, taken or not: what becomes of that selects no bit but `last`.
        with m.If(self.leaves.valid & (sent | ~holding)):
            m.d.sync += current.eq(Mux(self.leads, self.partials.payload, Mux(item.present, item.leaf, 0)))
            m.d.sync += current.last.eq(current.last)

        def end_group(to_scratch: Any) -> None:
            """Offers the held leaf as the last of its group."""
            m.d.comb += send.eq(1)
            with m.If(sent):
                m.d.sync += [holding.eq(0), count.eq(0)]
                with m.If(to_scratch):
                    m.d.sync += [scratch_fibers.eq(scratch_fibers + 1), long.eq(1)]

        def end_row() -> None:
            m.d.comb += self.row_ends.eq(1)
            m.d.sync += [signal.eq(0) for signal in (count, holding, scratch_fibers, long, current.last)]
            m.d.sync += [fresh.eq(1), leading.eq(1)]

        def take_none() -> None:
            """Takes an item without a leaf; a row that ends with it and has no other becomes an empty leaf."""
            m.d.comb += self.leaves.ready.eq(1)
            m.d.sync += [current.last.eq(item.leaf.last), fresh.eq(0)]

        def take_leaf() -> None:
            m.d.comb += [self.leaves.ready.eq(1), self.gathers.eq(1)]
            m.d.sync += [current.last.eq(item.leaf.last), holding.eq(1), fresh.eq(0)]

        def hold_empty() -> None:
            m.d.sync += [current.last.eq(1), holding.eq(1)]

        with m.FSM() as fsm:
            m.d.comb += self.idle.eq(fsm.ongoing("LEAVES") & fresh & ~self.leaves.valid)
            # The PE that a row has just been given for good does not show in the choice made then.
            m.d.sync += stale.eq(fsm.ongoing("KEEP"))
            with m.State("LEAVES"):
                m.d.comb += self.opens.eq((holding | self.leaves.valid) & ~stale)
                with m.If(current.last):
                    # Some leaf is held here: of a long row, too, the group before went only when another leaf was there.
                    end_group(long)
                    with m.If(sent & long):
                        m.next = "KEEP"
                    with m.Elif(sent):
                        end_row()
                        # The next row begins at once.
                        with m.If(self.leaves.valid & ~self.with_partials):
                            with m.If(item.present):
                                take_leaf()
                                m.d.sync += count.eq(1)
                            with m.Else():
                                take_none()
                                with m.If(item.leaf.last):
                                    hold_empty()
                with m.Elif(self.leads):
                    partial = self.partials.payload
                    with m.If(self.leaves.valid & self.partials.valid):
                        with m.If(partial.length == 0):
                            m.d.comb += [self.partials.ready.eq(1), self.gathers.eq(1)]
                        with m.Elif(full):
                            end_group(1)
                            with m.If(sent & (scratch_fibers == radix - 1)):
                                m.next = "WAIT"
                        with m.Else():
                            m.d.comb += send.eq(holding)
                            with m.If(sent | ~holding):
                                m.d.comb += [self.partials.ready.eq(1), self.gathers.eq(1)]
                                m.d.sync += [holding.eq(1), count.eq(count + 1)]
                        with m.If(self.partials.ready):
                            m.d.sync += [fresh.eq(0), leading.eq(~partial.last)]
                with m.Elif(self.leaves.valid & ~item.present):
                    take_none()
                    with m.If(item.leaf.last & ~holding):
                        hold_empty()
                with m.Elif(self.leaves.valid & full):
                    # One more leaf than a group may have: the one in hand goes to scratch.
                    end_group(1)
                    with m.If(sent & (scratch_fibers == radix - 1)):
                        m.next = "WAIT"
                with m.Elif(self.leaves.valid):
                    m.d.comb += send.eq(holding)
                    with m.If(sent | ~holding):
                        take_leaf()
                        m.d.sync += count.eq(count + 1)
            with m.State("KEEP"):
                m.d.comb += self.keep.eq(1)
                with m.If(self.kept):
                    end_row()
                    m.next = "LEAVES"
            with m.State("WAIT"):
                m.d.comb += self.merge.eq(1)
                with m.If(self.merge_begins):
                    m.d.sync += scratch_fibers.eq(1)
                    m.next = "MERGE"
            with m.State("MERGE"):
                m.d.comb += self.merging.eq(1)
                with m.If(self.merge_done):
                    m.next = "LEAVES"
        return m
