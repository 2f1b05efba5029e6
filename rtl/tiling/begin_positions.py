"""Where the rows of a tile begin when tiles before it were skipped, and which tiles may be."""

from typing import Any

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..regs.map import ORDERS
from ..types import COORDINATE_WIDTH
from .loop_order import rank_at

__all__ = ["POSITION_RULES", "BeginPositions"]

# Where a tile's begin positions come from when tiles before it were skipped. "once": the rank is swept once in the whole
# run, and the position array starts as a copy of the row pointers. "swept": one set of rows is swept at a time, so one
# flag knows whether the sweep has left positions. "interleaved": sweeps of many rows run side by side and start again; there
# the first tile of each later sweep is visited even if it is empty, since it leaves the positions that the others need.
#
# Streamed, a tile of A moves its rows' positions on at the last visit before another tile of these rows follows. Kept on
# chip it does so when it is loaded, so at its load it must be known that the tile will not be loaded again: with j inside k
# that holds when all its visits follow one another (j innermost, or i not cut). Otherwise positions may stay behind, which
# "once" allows. With j outside k each visit is alone, and one that finds its tile in place finds its positions too.
POSITION_RULES = {
    "A": {"ijk": "swept", "ikj": "swept", "jik": "swept", "jki": "interleaved", "kij": "once", "kji": "once"},
    "B": {"ijk": "interleaved", "ikj": "swept", "jik": "once", "jki": "once", "kij": "swept", "kji": "swept"},
}


class BeginPositions(Block):
    """Says of each tile where its begin positions come from; keeps where the sweeps over k and j have left theirs.

    Parameters
    ----------
    b_fibers : str
        The rank that numbers B's fibers, ``k`` or ``j``. With ``j``, B's rules are those of the order in which j and k have
        changed places.

    Members
    -------
    order : In(3), keep_a, tuned : In(1), extent_i, tile_i : In(COORDINATE_WIDTH)
        Of the run. ``tuned``: shapes may change on the way.
    at_begin, at_end, moves : In(3)
        Of each rank: the tile is the first one, the last one; the step behind it moves the rank.
    begin_k : In(COORDINATE_WIDTH)
        Where the tile begins along k.
    empty, skip : In(1)
        The tile's A or B part is empty; it is left out for that.
    clear, advance : In(1)
        Pulses: a run begins; the walk goes on behind this tile.
    must_visit, skippable : Out(1)
        The tile is visited even if it is empty, since it leaves positions; else it is left out. A cycle after the tile.
    from_pointers_a, from_pointers_b, partial_in, k_step, advance_a, advance_b : Out(1)
        Fields of the tile. ``k_step`` follows ``begin_k`` a cycle later.

    Timing
    ------
    One tile a cycle; ``must_visit``, ``skippable`` and ``k_step`` are registers, the other outputs are combinational.
    """

    def __init__(self, *, b_fibers: str = "k") -> None:
        if b_fibers not in ("k", "j"):
            raise ValueError(f"B's fibers must be numbered by k or j, not {b_fibers!r}")
        self.b_fibers = b_fibers
        said = ("from_pointers_a", "from_pointers_b", "partial_in", "k_step", "advance_a", "advance_b")
        super().__init__(
            {
                "order": In(3),
                **{name: In(1) for name in ("keep_a", "tuned", "joined", "empty", "skip", "clear", "advance")},
                **{name: In(3) for name in ("at_begin", "at_end", "moves")},
                **{name: In(COORDINATE_WIDTH) for name in ("extent_i", "tile_i", "begin_k")},
                **{name: Out(1) for name in ("must_visit", "skippable", *said)},
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        at_begin, at_end, moves = self.at_begin, self.at_end, self.moves
        # Ranks of B: the one along which its fibers run, and the one that numbers them.
        along, across = (1, 2) if self.b_fibers == "k" else (2, 1)
        of_b = {name: name if along == 1 else name.translate(str.maketrans("jk", "kj")) for name in ORDERS}

        def of_order(flags: list[bool]) -> Value:
            return Array(Const(int(flag), 1) for flag in flags)[self.order]

        def by_rule(operand: str, rule: str) -> Value:
            names = of_b if operand == "B" else {name: name for name in ORDERS}
            return of_order([POSITION_RULES[operand][names[name]] == rule for name in ORDERS])

        k_innermost = rank_at(2, self.order) == 2
        j_outside_k = of_order([name.index("j") < name.index("k") for name in ORDERS])
        b_reloaded = of_order([of_b[name] == "jik" for name in ORDERS])
        j_innermost = of_order([name[2] == "j" for name in ORDERS])
        i_whole = Signal()
        a_known = Signal()  # this sweep over k has left begin positions
        b_known = Signal()  # this sweep along B's fibers has left begin positions
        partial_exists = Signal()  # with k innermost: an earlier k step of this (i, j) was not skipped
        k_before = Signal(COORDINATE_WIDTH)
        k_known = Signal()
        m.d.sync += [
            i_whole.eq(self.tile_i >= self.extent_i),
            self.k_step.eq(~k_known | Mux(self.joined, self.begin_k < k_before, k_before != self.begin_k)),
            self.must_visit.eq(
                (by_rule("A", "interleaved") & at_begin[2] & ~at_begin[1] & ~at_end[2])
                | (by_rule("B", "interleaved") & at_begin[along] & ~at_begin[0] & ~at_end[along])
            ),
            self.skippable.eq((k_innermost | self.joined) & ~at_end[2]),
        ]
        a_stays = self.keep_a & (j_innermost | i_whole)
        m.d.comb += [
            self.from_pointers_a.eq(at_begin[2] | (by_rule("A", "swept") & ~a_known)),
            self.from_pointers_b.eq(at_begin[along] | (by_rule("B", "swept") & ~b_known)),
            self.partial_in.eq(Mux(k_innermost, partial_exists, ~at_begin[2]) & (~self.joined | at_end[2])),
            self.advance_a.eq(~at_end[2] & (j_outside_k | at_end[1] | a_stays)),
            # A tile of B with all fibers stays in place while i moves, unless tuning may cut it meanwhile.
            self.advance_b.eq(
                ~at_end[along] & (~b_reloaded | at_end[0] | (at_end[across] & at_begin[across] & ~self.tuned))
            ),
        ]
        with m.If(self.clear):
            m.d.sync += [partial_exists.eq(0), k_known.eq(0), a_known.eq(0), b_known.eq(0)]
        with m.If(self.advance):
            with m.If(at_end[2] & moves[2]):
                m.d.sync += a_known.eq(0)
            with m.Elif(~self.empty & self.advance_a):
                m.d.sync += a_known.eq(1)
            with m.If((at_end[along] & moves[along]) | moves[across]):
                m.d.sync += b_known.eq(0)
            with m.Elif(~self.empty & self.advance_b):
                m.d.sync += b_known.eq(1)
            with m.If(moves[0] | moves[1]):
                m.d.sync += partial_exists.eq(0)
            with m.Elif(~self.skip):
                m.d.sync += partial_exists.eq(1)
            with m.If(~self.skip):
                m.d.sync += [k_before.eq(self.begin_k), k_known.eq(1)]
        return m
