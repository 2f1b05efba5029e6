"""Blocks of BSR from entries that are sorted by block: where each value lies, and what the blocks are called."""

from functools import reduce
from operator import add
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.block import Block
from ...lib.check import check_power_of_two
from ...lib.counter import popcount
from ...lib.onehot import onehot_select
from ...lib.stream import StreamRegister
from ...regs.converter_map import BLOCK_BITS
from ..records import multiples_of
from .streams import COORDINATE_BITS, POSITION_BITS, block_group, cell_group, position_group

__all__ = ["BlockFiller"]


class BlockFiller(Block):
    """An entry whose block differs from that of the entry before it begins a block (MINT, figure 8e, steps 2 and 3).

    MINT keeps a flag for each block of a row of blocks, because its entries come by row. Here they come by block, so that a
    comparator for each lane tells what a flag would.

    Parameters
    ----------
    lanes : int
        Entries a cycle, power of two from 1 to 16.
    value_bits : int
        Bits of a value, 8, 16 or 32.

    Members
    -------
    size : In(25)
        Values of a block, at least 1. Constant while an entry is inside.
    entries : In(stream(block_group))
        Sorted by block row, block column and place. A group may be empty.
    heads : Out(stream(cell_group))
        Row and column of each block, in blocks; no positions, and values of 0. A group may be empty. From registers.
    values : Out(stream(position_group))
        Every entry with its place among the values of all blocks. A group may be empty. From registers.
    places : Out(65)
        Values of all blocks, when the group with ``last`` is at ``values``.

    Timing
    ------
    Two cycles, a group a cycle. One of the two outputs stops the other when it is two groups behind it.
    """

    latency = 2

    def __init__(self, *, lanes: int, value_bits: int) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 16)
        self.value_bits = check_power_of_two("Value bits", value_bits, 8, 32)
        super().__init__(
            {
                "size": In(BLOCK_BITS + 1),
                "entries": In(stream.Signature(block_group(lanes, value_bits))),
                "heads": Out(stream.Signature(cell_group(lanes, value_bits))),
                "values": Out(stream.Signature(position_group(lanes, value_bits))),
                "places": Out(POSITION_BITS + 1),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes = self.lanes
        group = self.entries.payload
        numbers = data.ArrayLayout(range(lanes + 1), lanes)
        marked_shape = data.StructLayout(
            {
                "fresh": lanes,
                "numbers": numbers,  # blocks of the group up to the entry's
                "rows": data.ArrayLayout(COORDINATE_BITS, lanes),
                "columns": data.ArrayLayout(COORDINATE_BITS, lanes),
                "places": data.ArrayLayout(BLOCK_BITS, lanes),
                "values": data.ArrayLayout(self.value_bits, lanes),
                "count": range(lanes + 1),
                "last": 1,
            }
        )
        m.submodules.marked = marked = StreamRegister(shape=marked_shape)
        m.submodules.heads = heads = StreamRegister(shape=self.heads.payload.shape())
        m.submodules.values = values = StreamRegister(shape=self.values.payload.shape())
        connect(m, heads.o, flipped(self.heads))
        connect(m, values.o, flipped(self.values))

        used = Cat(group.count > n for n in range(lanes))
        latest = Signal(2 * COORDINATE_BITS)  # block of the last entry of the groups before
        begun = Signal()
        blocks = [Cat(group.block_columns[n], group.block_rows[n]) for n in range(lanes)]
        former: list[Value] = [latest, *blocks[:-1]]
        fresh = Signal(lanes)
        m.d.comb += [
            fresh.eq(Cat(used[n] & ((blocks[n] != former[n]) | (~begun if not n else 0)) for n in range(lanes))),
            marked.i.valid.eq(self.entries.valid),
            self.entries.ready.eq(marked.i.ready),
            marked.i.payload.fresh.eq(fresh),
            *(marked.i.payload[name].eq(group[name]) for name in ("places", "values", "count", "last")),
            marked.i.payload.rows.eq(group.block_rows),
            marked.i.payload.columns.eq(group.block_columns),
            *(marked.i.payload.numbers[n].eq(popcount(fresh[: n + 1])) for n in range(lanes)),
        ]
        with m.If(marked.i.valid & marked.i.ready):
            m.d.sync += begun.eq((begun | used[0]) & ~group.last)
            with m.If(used.any()):
                m.d.sync += latest.eq(onehot_select(Cat(group.count == n + 1 for n in range(lanes)), blocks))
        self._number(m, marked.o, heads.i, values.i)
        return m

    def _number(self, m: Module, marked: Any, heads: Any, values: Any) -> None:
        """The two groups of a marked one; both leave together."""
        lanes = self.lanes
        now = marked.payload
        following = Signal(POSITION_BITS + 1)  # where the next block begins
        origin = Signal(POSITION_BITS + 1)  # where the block before it does
        multiples = [Signal(POSITION_BITS + 1, name=f"blocks_{n}") for n in range(lanes + 1)]
        m.d.comb += [
            multiple.eq(value) for multiple, value in zip(multiples, multiples_of(self.size, lanes), strict=True)
        ]
        goes = Signal()
        end = Signal(POSITION_BITS + 1)
        total = now.numbers[lanes - 1]  # lanes without an entry begin no block

        def blocks_on(number: Value, name: str) -> Value:
            found = Signal(POSITION_BITS + 1, name=name)
            chosen = Signal(lanes + 1, name=f"{name}_choice")
            m.d.comb += chosen.eq(Cat(number == n for n in range(lanes + 1)))
            m.d.comb += found.eq(onehot_select(chosen, multiples))
            return found

        ranks = [Signal(range(lanes + 1), name=f"rank{n}") for n in range(lanes)]
        m.d.comb += [rank.eq(number) for rank, number in zip(ranks, now.numbers, strict=True)]
        m.d.comb += [
            goes.eq(marked.valid & heads.ready & values.ready),
            marked.ready.eq(goes),
            heads.valid.eq(goes),
            values.valid.eq(goes),
            heads.payload.count.eq(total),
            heads.payload.last.eq(now.last),
            end.eq(following + blocks_on(total, "blocks_of_all")),
            *(values.payload[name].eq(now[name]) for name in ("values", "count", "last")),
        ]
        for n in range(lanes):
            chosen = Signal(lanes - n, name=f"chosen{n}")
            m.d.comb += [
                chosen.eq(Cat(now.fresh[k] & (ranks[k] == n + 1) for k in range(n, lanes))),
                heads.payload.rows[n].eq(onehot_select(chosen, list(now.rows)[n:])),
                heads.payload.columns[n].eq(onehot_select(chosen, list(now.columns)[n:])),
                values.payload.positions[n].eq(
                    reduce(add, (origin, blocks_on(ranks[n], f"blocks_before_{n}"), now.places[n]))
                ),
            ]
        m.d.comb += origin.eq(following - self.size)
        with m.If(goes):
            m.d.sync += following.eq(Mux(now.last, 0, end))
            with m.If(now.last):
                m.d.sync += self.places.eq(end)
