"""Tiling controller: walks the tiles in any inter-tile order and says of each where it begins and what changed."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.block import Block
from ..types import COORDINATE_WIDTH, LINE_WIDTH, POSITION_WIDTH, SLOT_WIDTH, read_request, tile
from .loop_order import ORDERS, LoopStep, rank_at, step
from .tile_map import TileMap
from .tuning import Change, tune_config
from .window_table import WindowTable

__all__ = ["POSITION_RULES", "TilingController", "tiling"]

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


def tiling(address_width: int) -> data.StructLayout:
    """The scheme as the registers hold it: shapes, tile shapes (at least 1), tile counts, order, tile maps, whether A is kept.

    ``windows``: ``a_map`` is a table of windows (:class:`.window_table.WindowTable`), one for each tile along i; ``room``: lines
    of B's partition for their rows and metadata.
    """
    return data.StructLayout(
        {
            "extent": data.ArrayLayout(COORDINATE_WIDTH, 3),
            "tile": data.ArrayLayout(COORDINATE_WIDTH, 3),
            "tiles": data.ArrayLayout(COORDINATE_WIDTH, 3),
            "order": 3,
            "a_map": address_width,
            "b_map": address_width,
            "keep_a": 1,
            "windows": 1,
            "room": COORDINATE_WIDTH,
        }
    )


# From the place of a tile to all that is said of it: where it ends, whether that is the edge, what is left of it.
SETTLE_CYCLES = 3
# From a window to what is wrong with it, a sum or a comparison a cycle.
WINDOW_CYCLES = 6


class TilingController(Block):
    """Begin, T and Change for each tile (HYTE section 6.2), with ragged edges cut and empty tiles left out.

    A tile whose A or B part is empty (by the tile maps, bit ``it * tiles_k + kt`` and ``kt * tiles_j + jt``) adds nothing.
    With k innermost it is skipped; otherwise, and always in the last k step, it is announced with ``carry`` set, since
    partial rows must move on with the others of their k step and each row of C must end. Begin positions stay right
    across skipped tiles (``POSITION_RULES``); the position arrays start as copies of the row pointers.

    With ``config.windows`` k is not cut in steps: each tile along i spans a window of k of its own, which holds all that its rows
    have. One without a coordinate is an empty tile. Rows of B that the window has together with those before it stay in place, as
    the table says; entries of metadata follow one another in a ring. A window is ``bad`` that is longer than a tile or than
    the ring, reaches beyond the shape, would keep what is not there or puts rows outside the partition.

    With ``tuning`` and ``tune.enable`` shapes change on the way. After each announced tile the controller waits until it is
    ``placed``, asks for a decision if B's part was loaded and is no ragged one, and goes on. A rank takes its new side when
    it moves. Sides are the scheme's times a power of two; counts in ``config.tiles`` and the tile maps are of cells with
    the smallest sides, ``config.tile >> tune.level``.

    Parameters
    ----------
    lanes : int
        64-bit elements in a beat, power of two.
    address_width : int
        Bits of a byte address.
    tuning : bool
        The hardware for it is there, and the members below.

    Members
    -------
    config : In(tiling)
        Constant from ``start`` until the last tile has been taken.
    start : In(1)
        Begins with the first tile.
    tiles : Out(stream)
        ``last`` is set on the final one, which is never skipped.
    read_request : Out(stream).array(2), read_data : In(stream).array(2)
        Client ports of the memory engine. 0: A's map, with ``config.windows`` the table of windows; 1: B's map.
    event_tile, event_skip : Out(1)
        A tile has been visited; its A or B part is empty.
    bad_window : Out(1), window_index : Out(COORDINATE_WIDTH)
        This window is not legal; the walk does not go on.
    tune : In(tune_config)
        Constant from ``start`` on.
    placed, loaded : In(1)
        Pulse: the tile announced last can be computed; with it, whether B's part has just been loaded.
    decide : Out(1), decided : In(1), change : In(ArrayLayout(Change, 2))
        Pulse: a decision is wanted; pulse: what becomes of T_j and T_k.
    side : Out(ArrayLayout(COORDINATE_WIDTH, 3)), movable : Out(2), halvable : Out(2)
        For the decision: the present shape; bit 0 for j, 1 for k: a change would be made and keeps tiles aligned; the
        side is not the smallest one.
    walked_j : Out(COORDINATE_WIDTH)
        Tiles along j, valid when the last tile has been taken.
    event_adjust : Out(1)
        The shape changes.
    """

    def __init__(self, *, lanes: int, address_width: int, tuning: bool = False) -> None:
        self.lanes = lanes
        self.address_width = address_width
        self.tuning = bool(tuning)
        members = {
            "tune": In(tune_config()),
            "placed": In(1),
            "loaded": In(1),
            "decide": Out(1),
            "decided": In(1),
            "change": In(data.ArrayLayout(Change, 2)),
            "side": Out(data.ArrayLayout(COORDINATE_WIDTH, 3)),
            "movable": Out(2),
            "halvable": Out(2),
            "walked_j": Out(COORDINATE_WIDTH),
            "event_adjust": Out(1),
        }
        super().__init__(
            {
                **(members if self.tuning else {}),
                "config": In(tiling(address_width)),
                "start": In(1),
                "tiles": Out(stream.Signature(tile())),
                "read_request": Out(stream.Signature(read_request(address_width))).array(2),
                "read_data": In(stream.Signature(64 * lanes)).array(2),
                "event_tile": Out(1),
                "event_skip": Out(1),
                "bad_window": Out(1),
                "window_index": Out(COORDINATE_WIDTH),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return {"l": self.lanes, "a": self.address_width} | ({"t": 1} if self.tuning else {})

    def build(self, platform: Any) -> Module:
        m = Module()
        config = self.config
        maps = {"lanes": self.lanes, "address_width": self.address_width, "ranged": self.tuning}
        m.submodules.a_map = a_map = TileMap(**maps)
        m.submodules.b_map = b_map = TileMap(**maps)
        m.submodules.window_table = table = WindowTable(lanes=self.lanes, address_width=self.address_width)
        connect(m, flipped(self.read_request[1]), b_map.read_request)
        connect(m, flipped(self.read_data[1]), b_map.read_data)
        # A's map and the windows are never asked for in the same run.
        request, answer = self.read_request[0], self.read_data[0]
        m.d.comb += [
            request.valid.eq(a_map.read_request.valid | table.read_request.valid),
            request.payload.eq(Mux(config.windows, table.read_request.payload, a_map.read_request.payload)),
            a_map.read_request.ready.eq(request.ready),
            table.read_request.ready.eq(request.ready),
            a_map.read_data.valid.eq(answer.valid & ~config.windows),
            table.read_data.valid.eq(answer.valid & config.windows),
            a_map.read_data.payload.eq(answer.payload),
            table.read_data.payload.eq(answer.payload),
            answer.ready.eq(Mux(config.windows, table.read_data.ready, a_map.read_data.ready)),
        ]

        begin = [Signal(COORDINATE_WIDTH, name=f"begin_{r}") for r in "ijk"]
        change = [Signal(2, name=f"change_{r}") for r in "ijk"]
        index = [Signal(COORDINATE_WIDTH, name=f"index_{r}") for r in "ijk"]
        a_row = Signal(POSITION_WIDTH)  # it * tiles_k
        b_row = Signal(POSITION_WIDTH)  # kt * tiles_j
        c_row = Signal(POSITION_WIDTH)  # jt * (I + tiles_i)

        # The present shape, in coordinates and in cells of the tile maps, and what b_row moves on by.
        side: list[Value] = [config.tile[r] for r in range(3)]
        cells: list[Value] = [Const(1, 1) for _ in range(3)]
        b_stride: Value = config.tiles[1]
        tuned: Value = Const(0, 1)
        if self.tuning:
            side = [config.tile[0], *(Signal(COORDINATE_WIDTH, name=f"side_{r}") for r in "jk")]
            cells = [Const(1, 1), *(Signal(COORDINATE_WIDTH, name=f"cells_{r}") for r in "jk")]
            b_stride = Signal(POSITION_WIDTH)
            tuned = self.tune.enable

        # What follows from the place of the tile is worked out in SETTLE, a sum or a comparison a cycle.
        next_begin = [Signal(COORDINATE_WIDTH + 1, name=f"next_begin_{r}") for r in "ijk"]
        next_index = [Signal(COORDINATE_WIDTH, name=f"next_index_{r}") for r in "ijk"]
        left = [Signal(COORDINATE_WIDTH, name=f"left_{r}") for r in "ijk"]  # coordinates from the tile's first one on
        size = [Signal(COORDINATE_WIDTH, name=f"size_{r}") for r in "ijk"]
        at_begin = [Signal(name=f"at_begin_{r}") for r in "ijk"]
        at_end = [Signal(name=f"at_end_{r}") for r in "ijk"]
        moves = LoopStep(moves=[Signal(name=f"moves_{r}") for r in "ijk"], last=Signal(name="is_last"))
        stepped = step(config.order, at_end)
        settled = Signal(range(max(SETTLE_CYCLES, WINDOW_CYCLES)))
        for r in range(3):
            m.d.sync += [
                next_begin[r].eq(begin[r] + side[r]),
                next_index[r].eq(index[r] + cells[r]),
                left[r].eq(config.extent[r] - begin[r]),
                at_begin[r].eq(begin[r] == 0),
                at_end[r].eq((next_begin[r] >= config.extent[r]) | (config.windows if r == 2 else 0)),
                size[r].eq(Mux(at_end[r], left[r], side[r])),
                moves.moves[r].eq(stepped.moves[r]),
            ]
        m.d.sync += moves.last.eq(stepped.last)

        innermost = rank_at(2, config.order)
        k_innermost = innermost == 2
        a_rule = POSITION_RULES["A"]
        b_rule = POSITION_RULES["B"]

        def of_order(flags: list[bool]) -> Value:
            return Array(Const(int(flag), 1) for flag in flags)[config.order]

        j_outside_k = of_order([name.index("j") < name.index("k") for name in ORDERS])
        b_reloaded = of_order([name == "jik" for name in ORDERS])
        j_innermost = of_order([name[2] == "j" for name in ORDERS])
        i_whole = Signal()
        m.d.sync += i_whole.eq(config.tile[0] >= config.extent[0])
        a_stays = config.keep_a & (j_innermost | i_whole)
        a_single = of_order([a_rule[name] == "swept" for name in ORDERS])
        b_single = of_order([b_rule[name] == "swept" for name in ORDERS])
        a_forced = of_order([a_rule[name] == "interleaved" for name in ORDERS])
        b_forced = of_order([b_rule[name] == "interleaved" for name in ORDERS])
        a_known = Signal()  # this sweep over k has left begin positions
        b_known = Signal()  # this sweep over j has left begin positions

        partial_exists = Signal()  # with k innermost: an earlier k step of this (i, j) was not skipped
        k_before = Signal(COORDINATE_WIDTH)
        k_known = Signal()
        k_step = Signal()
        row_in_c = Signal(COORDINATE_WIDTH)
        position_index = Signal(POSITION_WIDTH)
        c_stride = Signal(COORDINATE_WIDTH)
        a_index = Signal(POSITION_WIDTH)
        b_index = Signal(POSITION_WIDTH)
        empty = Signal()
        skip = Signal()
        must = Signal()
        out = self.tiles.payload
        spanned = Signal(data.StructLayout({"begin": COORDINATE_WIDTH, "size": COORDINATE_WIDTH}))
        m.d.sync += [spanned.begin.eq(begin[2]), spanned.size.eq(size[2])]
        with m.If(config.windows):
            m.d.sync += [spanned.begin.eq(table.window.begin), spanned.size.eq(table.window.size)]
        for r, name in enumerate("ijk"):
            m.d.comb += [
                out[f"begin_{name}"].eq(spanned.begin if r == 2 else begin[r]),
                out[f"size_{name}"].eq(spanned.size if r == 2 else size[r]),
                out[f"change_{name}"].eq(change[r]),
            ]
        beyond = self._ring(m, table.window)
        m.d.comb += self.window_index.eq(index[0])
        m.d.comb += [
            must.eq(
                (a_forced & at_begin[2] & ~at_begin[1] & ~at_end[2])
                | (b_forced & at_begin[1] & ~at_begin[0] & ~at_end[1])
            ),
            skip.eq(empty & k_innermost & ~at_end[2]),
            out.from_pointers_a.eq(at_begin[2] | (a_single & ~a_known)),
            out.from_pointers_b.eq(at_begin[1] | (b_single & ~b_known)),
            out.last_k.eq(at_end[2]),
            out.whole_j.eq(at_end[1] & at_begin[1]),
            out.whole_k.eq(at_end[2] & at_begin[2]),
            out.carry.eq(empty),
            out.partial_in.eq(Mux(k_innermost, partial_exists, ~at_begin[2])),
            out.k_step.eq(k_step),
            out.advance_a.eq(~at_end[2] & (j_outside_k | at_end[1] | a_stays)),
            # A tile of B that spans k stays in place while i moves, unless tuning may cut it meanwhile.
            out.advance_b.eq(~at_end[1] & (~b_reloaded | at_end[0] | (out.whole_k & ~tuned))),
            out.last.eq(moves.last),
            out.position_index.eq(position_index),
        ]
        m.d.sync += [
            k_step.eq(~k_known | (k_before != begin[2])),
            row_in_c.eq(begin[0] + index[0]),
            position_index.eq(c_row + row_in_c),
            c_stride.eq(config.extent[0] + config.tiles[0]),
            a_index.eq(a_row + index[2]),
            b_index.eq(b_row + index[1]),
        ]
        advance = Signal()
        full = Signal()  # neither j nor k is cut short at the edge
        m.d.comb += [
            a_map.map.eq(Mux(config.windows, 0, config.a_map)),
            b_map.map.eq(Mux(config.windows, 0, config.b_map)),  # its tiles are none of these
            table.table.eq(config.a_map),
            table.index.eq(index[0]),
            a_map.index.eq(a_index),
            b_map.index.eq(b_index),
        ]
        if self.tuning:
            cells_left = [Signal(COORDINATE_WIDTH, name=f"cells_left_{r}") for r in "ijk"]
            cells_to_end = [Signal(COORDINATE_WIDTH, name=f"cells_to_end_{r}") for r in "ijk"]
            for r in range(3):
                m.d.sync += [
                    cells_to_end[r].eq(config.tiles[r] - index[r]),
                    cells_left[r].eq(Mux(at_end[r], cells_to_end[r], cells[r])),
                ]
            m.d.comb += [
                a_map.rows.eq(1),
                a_map.columns.eq(cells_left[2]),
                a_map.stride.eq(config.tiles[2]),
                b_map.rows.eq(cells_left[2]),
                b_map.columns.eq(cells_left[1]),
                b_map.stride.eq(config.tiles[1]),
            ]
        with m.FSM():
            with m.State("IDLE"):
                for r in range(3):
                    m.d.sync += [begin[r].eq(0), index[r].eq(0), change[r].eq(2)]
                m.d.sync += [a_row.eq(0), b_row.eq(0), c_row.eq(0), partial_exists.eq(0), k_known.eq(0)]
                m.d.sync += [a_known.eq(0), b_known.eq(0)]
                m.d.comb += [a_map.clear.eq(1), b_map.clear.eq(1), table.clear.eq(1)]
                m.d.sync += settled.eq(0)
                with m.If(self.start):
                    m.next = "SETTLE"
            with m.State("SETTLE"):
                m.d.sync += settled.eq(settled + 1)
                with m.If(settled == SETTLE_CYCLES - 1):
                    m.d.sync += settled.eq(0)
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += [a_map.ask.eq(1), b_map.ask.eq(1), table.ask.eq(config.windows)]
                m.next = "WAIT"
            with m.State("WAIT"):
                m.d.sync += empty.eq(((a_map.known & ~a_map.occupied) | (b_map.known & ~b_map.occupied)) & ~must)
                with m.If(a_map.done & b_map.done):
                    m.next = "OFFER"
                    with m.If(config.windows):
                        m.next = "WINDOW"
            with m.State("WINDOW"):
                with m.If(table.done):
                    m.d.sync += settled.eq(settled + 1)
                with m.If(settled == WINDOW_CYCLES - 1):
                    m.d.sync += [settled.eq(0), empty.eq(table.window.size == 0)]
                    m.next = "OFFER"
                    with m.If(beyond):
                        m.next = "BAD"
            with m.State("BAD"):
                m.d.comb += self.bad_window.eq(1)
            with m.State("OFFER"):
                m.d.comb += self.tiles.valid.eq(~skip)
                with m.If(skip | self.tiles.ready):
                    m.d.comb += [advance.eq(~tuned | skip), self.event_tile.eq(1), self.event_skip.eq(empty)]
                    m.next = "SETTLE"
                    if self.tuning:
                        with m.If(tuned & ~skip):
                            m.next = "PLACED"
                    with m.If(moves.last):
                        m.next = "IDLE"
            if self.tuning:
                with m.State("PLACED"):
                    with m.If(self.placed):
                        m.next = "ADVANCE"
                        with m.If(self.loaded & full):
                            m.d.comb += self.decide.eq(1)
                            m.next = "DECIDED"
                with m.State("DECIDED"):
                    with m.If(self.decided):
                        m.next = "ADVANCE"
                with m.State("ADVANCE"):
                    m.d.comb += advance.eq(1)
                    m.next = "SETTLE"
        with m.If(advance):
            for r in range(3):
                with m.If(moves.moves[r]):
                    m.d.sync += [
                        begin[r].eq(Mux(at_end[r], 0, next_begin[r])),
                        index[r].eq(Mux(at_end[r], 0, next_index[r])),
                        change[r].eq(Mux(at_end[r], 2, 1)),
                    ]
                with m.Else():
                    m.d.sync += change[r].eq(0)
            for r, row, stride in (
                (0, a_row, config.tiles[2]),
                (2, b_row, b_stride),
                (1, c_row, c_stride),
            ):
                with m.If(moves.moves[r]):
                    m.d.sync += row.eq(Mux(at_end[r], 0, row + stride))
            with m.If(at_end[2] & moves.moves[2]):
                m.d.sync += a_known.eq(0)
            with m.Elif(~empty & out.advance_a):
                m.d.sync += a_known.eq(1)
            with m.If((at_end[1] & moves.moves[1]) | moves.moves[2]):
                m.d.sync += b_known.eq(0)
            with m.Elif(~empty & out.advance_b):
                m.d.sync += b_known.eq(1)
            with m.If(moves.moves[0] | moves.moves[1]):
                m.d.sync += partial_exists.eq(0)
            with m.Elif(~skip):
                m.d.sync += partial_exists.eq(1)
            with m.If(~skip):
                m.d.sync += [k_before.eq(begin[2]), k_known.eq(1)]
        if self.tuning:
            whole_i = at_end[0] & at_begin[0]
            ragged = [at_end[r] & ~at_begin[r] & (next_begin[r] != config.extent[r]) for r in range(3)]
            self._tune(m, of_order, ragged, at_end, whole_i, moves, advance, full, side, cells, b_stride)
        return m

    def _ring(self, m: Module, found: Any) -> Signal:
        """Where the window's rows of B are; returns whether something is wrong with it, ``WINDOW_CYCLES`` after it was read."""
        config, out = self.config, self.tiles.payload.ring
        lane_bits = (self.lanes - 1).bit_length()
        # What the windows so far have left: rows from `first` to before `end`, the first in entry `slot` of `metadata` lines.
        first = Signal(COORDINATE_WIDTH)
        end = Signal(COORDINATE_WIDTH + 1)
        slot = Signal(SLOT_WIDTH)
        metadata = Signal(LINE_WIDTH)
        keeps = Signal()
        later = Signal(COORDINATE_WIDTH + 1)  # how far behind `first` the window begins; negative is large
        window_end = Signal(COORDINATE_WIDTH + 1)
        kept_end = Signal(COORDINATE_WIDTH + 1)
        ring = Signal(LINE_WIDTH)
        entries = Signal(LINE_WIDTH + lane_bits)
        slots = Signal(SLOT_WIDTH + 1)
        longest = Signal(SLOT_WIDTH + 1)
        taken = Signal(LINE_WIDTH + 2)
        wrapped = Signal(SLOT_WIDTH + 1)
        wrong = Signal(6)
        beyond = Signal()
        m.d.sync += [
            keeps.eq(found.kept != 0),
            later.eq(found.begin - first),
            window_end.eq(found.begin + found.size),
            kept_end.eq(found.begin + found.kept),
            longest.eq(found.size + self.lanes),
            # Two cycles after the window.
            ring.eq(Mux(keeps, metadata, found.metadata)),
            slots.eq(slot + later[:SLOT_WIDTH]),
            wrong[0].eq((window_end > config.extent[2]) | (found.size > config.tile[2])),
            wrong[1].eq(found.kept > found.size),
            wrong[2].eq(keeps & later[COORDINATE_WIDTH]),
            wrong[3].eq(keeps & (kept_end > end)),
            # Three and four.
            entries.eq(ring << lane_bits),
            taken.eq(ring + found.line + found.lines),
            wrong[4].eq(longest > entries),
            wrong[5].eq(taken > config.room),
            wrapped.eq(slots - entries),
            beyond.eq((found.size != 0) & wrong.any() | wrong[0]),
        ]
        m.d.comb += [
            out.kept.eq(found.kept),
            out.line.eq(found.line),
            out.lines.eq(found.lines),
            out.metadata.eq(ring),
            # Where a chain begins, the ring's entries and the FIFO-managed region may move.
            out.ahead.eq(found.ahead & keeps),
            out.slot.eq(Mux(keeps, Mux(wrapped[SLOT_WIDTH], slots, wrapped), 0)),
        ]
        with m.If(self.start):
            m.d.sync += end.eq(0)
        with m.Elif(config.windows & self.tiles.valid & self.tiles.ready & (found.size != 0)):
            m.d.sync += [first.eq(found.begin), slot.eq(out.slot), metadata.eq(ring)]
            with m.If(~keeps | (window_end > end)):
                m.d.sync += end.eq(window_end)
        return beyond

    def _tune(
        self,
        m: Module,
        of_order: Callable[[list[bool]], Value],
        ragged: list[Value],
        at_end: list[Signal],
        whole_i: Value,
        moves: LoopStep,
        advance: Signal,
        full: Signal,
        side: list[Any],
        cells: list[Any],
        b_stride: Any,
    ) -> None:
        """What the present tile may become, and the change of each rank when it moves."""
        config, out = self.config, self.tiles.payload
        wanted = [Signal(Change, name=f"wanted_{r}") for r in "jk"]
        tile_j = Signal(COORDINATE_WIDTH)
        cut = {"i": ~whole_i, "j": ~out.whole_j, "k": ~out.whole_k}

        def cut_outside(rank: str) -> Value:
            """A rank that ``order`` has outside ``rank`` is cut."""
            others = [other for other in "ijk" if other != rank]
            outside = {o: of_order([name.index(o) < name.index(rank) for name in ORDERS]) for o in others}
            return (outside[others[0]] & cut[others[0]]) | (outside[others[1]] & cut[others[1]])

        # Cuts along j must be the same for all partial rows, so j may change only where it is swept once. A tile has been
        # looked up by the time these are asked for, so that registers hold them.
        m.d.sync += [
            self.movable[0].eq(cut["j"] & ~cut_outside("j")),
            self.movable[1].eq(cut["k"] | cut_outside("k")),
            full.eq(1),
        ]
        for n, r in enumerate((1, 2)):
            m.d.sync += self.halvable[n].eq(cells[r] != 1)
            with m.If(ragged[r]):
                m.d.sync += full.eq(0)
        m.d.comb += [self.side[r].eq(side[r]) for r in range(3)]

        def scale(what: Any, change: Value) -> None:
            with m.Switch(change):
                with m.Case(Change.DOUBLE):
                    m.d.sync += what.eq(what << 1)
                with m.Case(Change.HALVE):
                    m.d.sync += what.eq(what >> 1)

        with m.If(self.decided):
            m.d.sync += [wanted[n].eq(self.change[n]) for n in range(2)]
        with m.If(advance):
            with m.If(moves.moves[1]):
                m.d.sync += tile_j.eq(Mux(at_end[1], 0, tile_j + 1))
            for n, r in enumerate((1, 2)):
                with m.If(moves.moves[r]):
                    m.d.sync += wanted[n].eq(Change.STAY)
                    scale(side[r], wanted[n])
                    scale(cells[r], wanted[n])
                    if r == 2:
                        scale(b_stride, wanted[n])
                    with m.If(wanted[n] != Change.STAY):
                        m.d.comb += self.event_adjust.eq(1)
        with m.If(self.event_tile):
            m.d.sync += self.walked_j.eq(tile_j + 1)
        with m.If(self.start):
            level = [Mux(self.tune.enable, self.tune.level[n], 0) for n in range(2)]
            m.d.sync += [wanted[n].eq(Change.STAY) for n in range(2)]
            m.d.sync += [tile_j.eq(0), b_stride.eq(config.tiles[1] << level[1])]
            for n, r in enumerate((1, 2)):
                m.d.sync += [side[r].eq(config.tile[r]), cells[r].eq(1 << level[n])]
