"""Tiling controller: walks the tiles in any inter-tile order and says of each where it begins and how large it is."""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import passed
from ..lib.unit import Fault, ReadClient, Unit
from ..types import COORDINATE_WIDTH, read_request, tile
from .begin_positions import POSITION_RULES, BeginPositions
from .settings import tiling
from .shape_changes import Change
from .tile_occupancy import TileOccupancy
from .tile_shape import TileShape
from .tile_walk import TileWalk
from .tuning import tune_config
from .walk_sequence import WalkSequence
from .window_ring import WindowRing

__all__ = ["POSITION_RULES", "TilingController", "tiling"]


class TilingController(Unit):
    """Begin and T for each tile (HYTE section 6.2), with ragged edges cut and empty tiles left out.

    A tile whose A or B part is empty (by the tile maps, bit ``it * tiles_k + kt`` and ``kt * tiles_j + jt``) adds nothing.
    With k innermost it is skipped; otherwise, and always in the last k step, it is announced with ``carry`` set, since
    partial rows must move on with the others of their k step and each row of C must end. Begin positions stay right
    across skipped tiles (``POSITION_RULES``); the position arrays start as copies of the row pointers.

    With ``settings.gathered`` k is not cut in steps: each tile along i spans a window of k of its own, which holds all
    that its rows have. One without a coordinate is an empty tile. Rows of B that the window has together with those
    before it stay in place, as the table says; entries of metadata follow one another in a ring. A window is ``bad``
    that is longer than a tile or than the ring, reaches beyond the shape, would keep what is not there or puts rows
    outside the partition.

    With ``tuning`` and ``tune.enable`` shapes change on the way. After each announced tile the controller waits until it is
    ``placed``, asks for a decision if B's part was loaded and is no ragged one, and goes on. A rank takes its new side when
    it moves. Sides are the scheme's times a power of two; counts in ``settings.tiles`` and the tile maps are of cells with
    the smallest sides, ``settings.tile >> tune.level``.

    Parameters
    ----------
    lanes : int
        Nonzeros in a beat, power of two.
    address_width : int
        Bits of a byte address.
    tuning : bool
        The hardware for it is there, and the members below.

    Members
    -------
    settings : In(tiling)
        Constant from ``start`` until the last tile has been taken.
    start : In(1)
        Begins with the first tile.
    tiles : Out(stream)
        ``last`` is set on the final one, which is never skipped.
    read_request : Out(stream).array(2), read_data : In(stream).array(2)
        Client ports of the memory engine. 0: A's map, with ``settings.gathered`` the table of windows; 1: B's map.
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

    Timing
    ------
    Three cycles from a tile that was taken to the next one's place, one to read the maps and at least two for their answer;
    empty tiles that are left out take as long.
    """

    READERS = (ReadClient("a_map", 2, "read_a_meta", turn=2), ReadClient("b_map", 2, "read_b_meta", turn=2))

    def __init__(self, *, lanes: int, address_width: int, tuning: bool = False, b_fibers: str = "k") -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 2, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.tuning = bool(tuning)
        self.b_fibers = b_fibers
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
                "settings": In(tiling(address_width)),
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

    def events(self) -> Mapping[str, Value]:
        adjusts = {"tuning_adjustments": self.event_adjust} if self.tuning else {}
        return {"tiles_total": self.event_tile, "tiles_skipped": self.event_skip, **adjusts}

    def faults(self) -> Sequence[Fault]:
        return (Fault("bad_window", self.bad_window, self.window_index),)

    def build(self, platform: Any) -> Module:
        m = Module()
        settings, out = self.settings, self.tiles.payload
        sizes = {"lanes": self.lanes, "address_width": self.address_width}
        m.submodules.walk = walk = TileWalk()
        m.submodules.positions = positions = BeginPositions(b_fibers=self.b_fibers)
        m.submodules.occupancy = occupancy = TileOccupancy(**sizes, ranged=self.tuning)
        m.submodules.window_ring = ring = WindowRing(lanes=self.lanes)
        m.submodules.steps = sequence = WalkSequence(tuning=self.tuning)
        for n in range(2):
            connect(m, flipped(self.read_request[n]), occupancy.read_request[n])
            connect(m, flipped(self.read_data[n]), occupancy.read_data[n])
        m.d.comb += [
            *passed(settings, walk, "extent tiles order"),
            walk.whole_k.eq(settings.gathered),
            *passed(sequence, walk, "clear advance"),
            *passed(settings, occupancy, "gathered a_map b_map"),
            *passed(walk, occupancy, "a_index b_index"),
            occupancy.index.eq(walk.index[0]),
            *passed(sequence, occupancy, "ask clear"),
            *passed(settings, positions, "order keep_a joined"),
            *passed(walk, positions, "at_begin at_end moves"),
            positions.extent_i.eq(settings.extent[0]),
            positions.tile_i.eq(settings.tile[0]),
            positions.begin_k.eq(walk.begins[2]),
            *passed(sequence, positions, "empty skip clear advance"),
            *passed(settings, ring, "capacity planned"),
            *passed(occupancy, ring, "window"),
            ring.extent_k.eq(settings.extent[2]),
            ring.tile_k.eq(settings.tile[2]),
            ring.start.eq(self.start),
            ring.taken.eq(settings.gathered & self.tiles.valid & self.tiles.ready),
            *passed(self, sequence, "start"),
            *passed(settings, sequence, "gathered"),
            *passed(occupancy, sequence, "done window_done"),
            *passed(positions, sequence, "must_visit skippable"),
            *passed(ring, sequence, "bad"),
            *passed(walk, sequence, "last"),
            sequence.part_empty.eq(occupancy.empty),
            sequence.window_empty.eq(occupancy.window.size == 0),
            sequence.taken.eq(self.tiles.ready),
            self.tiles.valid.eq(sequence.offer),
            self.event_tile.eq(sequence.visited),
            self.event_skip.eq(sequence.visited & sequence.empty),
            self.bad_window.eq(sequence.bad_window),
            self.window_index.eq(walk.index[0]),
        ]
        if self.tuning:
            m.submodules.shape = shape = TileShape()
            m.d.comb += [
                *passed(settings, shape, "extent tile tiles order"),
                *passed(walk, shape, "index at_begin at_end moves next_begin"),
                *passed(self, shape, "tune start decided change"),
                *passed(sequence, shape, "visited advance"),
                sequence.tuned.eq(self.tune.enable),
                positions.tuned.eq(self.tune.enable),
                *passed(self, sequence, "placed loaded decided"),
                *passed(shape, sequence, "full"),
                self.decide.eq(sequence.decide),
                *passed(shape, walk, "side cells b_stride"),
                *passed(shape, occupancy, "columns_j columns_k"),
                occupancy.tiles_j.eq(settings.tiles[1]),
                occupancy.tiles_k.eq(settings.tiles[2]),
                *passed(shape, self, "side movable halvable walked_j event_adjust"),
            ]
        else:
            m.d.comb += [walk.side.eq(settings.tile), walk.b_stride.eq(settings.tiles[1])]
            m.d.comb += [walk.cells[r].eq(1) for r in range(3)]

        # What is said of the tile.
        at_begin, at_end = walk.at_begin, walk.at_end
        span_k = Signal(data.StructLayout({"begin": COORDINATE_WIDTH, "size": COORDINATE_WIDTH}))
        m.d.sync += [span_k.begin.eq(walk.begins[2]), span_k.size.eq(walk.size[2])]
        with m.If(settings.gathered):
            m.d.sync += [span_k.begin.eq(occupancy.window.begin), span_k.size.eq(occupancy.window.size)]
        m.d.comb += [
            *(out[f"begin_{name}"].eq(walk.begins[r]) for r, name in enumerate("ij")),
            *(out[f"size_{name}"].eq(walk.size[r]) for r, name in enumerate("ij")),
            out.begin_k.eq(span_k.begin),
            out.size_k.eq(span_k.size),
            *passed(positions, out, "from_pointers_a from_pointers_b partial_in k_step advance_a advance_b"),
            *passed(walk, out, "last position_index"),
            *passed(ring, out, "ring"),
            out.last_j.eq(at_end[1]),
            out.last_k.eq(at_end[2]),
            out.whole_j.eq(at_end[1] & at_begin[1]),
            out.whole_k.eq(at_end[2] & at_begin[2]),
            out.carry.eq(sequence.empty),
            out.step.eq(walk.index[2]),
        ]
        return m
