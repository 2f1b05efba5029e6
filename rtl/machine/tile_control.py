"""Which tile is worked on: run control, the walk over the tiles, tuning of their shapes, the assembly pass."""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.check import check_integer
from ..lib.passed import passed
from ..lib.unit import Fault, Unit
from ..tiling.assembly import AssemblyPass
from ..tiling.controller import TilingController
from ..tiling.run_control import RunControl
from ..tiling.scheme_check import SchemeCheck
from ..tiling.tuning import TuningUnit
from ..types import COORDINATE_WIDTH, quadrant_counts, read_request, selection, tile

__all__ = ["TileControl"]

# Members that are those of run control.
GIVEN = (
    "scheme tune start misaligned misaligned_offset load_idle load_a_idle rows_left selected quiet fault fault_detail"
)
TOLD = "placed present loading_b assembling restart_rows phase running done error detail event_loaded event_loaded_a"
# Places of the sides in the controller's shape.
SIDES = ((1, "side_j"), (2, "side_k"))


class TileControl(Unit):
    """Takes a scheme, sends each of its tiles to the accessors in order, and in the end the pieces of rows to the engine.

    Parameters
    ----------
    check : SchemeCheck
        As :class:`RunControl`.
    address_width, line_address_width : int
        Bits of a byte address; of an SRAM line address, 1 to 32.

    Members
    -------
    scheme, tune : In, a_map, b_map : In(address_width)
        Constant from ``start`` to ``done``; maps are byte addresses.
    load, load_a, compute_a, compute_c : Out(stream), and other members of their names
        As :class:`RunControl`.
    pieces : Out(stream), pieces_left : Out(1)
        As :class:`AssemblyPass`'s ``selections`` and ``busy``.
    read_request, read_data : client ports of the memory engine
        As :class:`TilingController`.
    moved : Out(1)
        A tile has been visited.
    bad_window : Out(1), window_index : Out(COORDINATE_WIDTH)
        As :class:`TilingController`.
    counted : Out
        What each performance counter adds, by its name in lower case.
    quadrant_counts : In, side_j, side_k : Out(COORDINATE_WIDTH)
        With ``tuning``: nonzeros of the quadrants of the tile that accessor B has loaded; its shape.

    Timing
    ------
    Of run control and the controller: a tile is announced as soon as the walk knows it and the one before allows.
    """

    READERS = TilingController.READERS

    def __init__(self, *, check: SchemeCheck, address_width: int, line_address_width: int) -> None:
        self.line_address_width = check_integer("Line address width", line_address_width, 1, COORDINATE_WIDTH)
        self.run_control = RunControl(check=check)
        self.lanes = lanes = check.lanes
        self.tuning = check.tuning
        self.address_width = address_width
        self.controller = TilingController(
            tuning=self.tuning, lanes=lanes, address_width=address_width, b_fibers=check.b_fibers
        )
        self.steps = {**self.run_control.events(), **self.controller.events()}
        members = self.run_control.signature.members
        tuned = {
            "quadrant_counts": In(quadrant_counts()),
            "side_j": Out(COORDINATE_WIDTH),
            "side_k": Out(COORDINATE_WIDTH),
        }
        super().__init__(
            {
                **{name: members[name] for name in f"{GIVEN} {TOLD}".split()},
                **(tuned if self.tuning else {}),
                "a_map": In(address_width),
                "b_map": In(address_width),
                "load": Out(stream.Signature(tile())),
                "load_a": Out(stream.Signature(tile())),
                "compute_a": Out(stream.Signature(tile())),
                "compute_c": Out(stream.Signature(tile())),
                "pieces": Out(stream.Signature(selection())),
                "pieces_left": Out(1),
                "read_request": Out(stream.Signature(read_request(address_width))).array(2),
                "read_data": In(stream.Signature(64 * lanes)).array(2),
                "moved": Out(1),
                "bad_window": Out(1),
                "window_index": Out(COORDINATE_WIDTH),
                "counted": Out(data.StructLayout(dict.fromkeys(self.steps, 1))),
            }
        )

    def parameters(self) -> dict[str, Any]:
        own = {"address_width": self.address_width, "line_address_width": self.line_address_width}
        return self.run_control.parameters() | own

    def events(self) -> Mapping[str, Value]:
        return {name: self.counted[name] for name in self.steps}

    def faults(self) -> Sequence[Fault]:
        return (Fault("bad_window", self.bad_window, self.window_index),)

    def activity(self) -> Mapping[str, Value]:
        return {"assembly_pass": self.pieces_left}

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.run_control = control = self.run_control
        m.submodules.tiling_controller = controller = self.controller
        m.submodules.assembly_pass = assembly = AssemblyPass()
        want, settings = self.scheme, controller.settings
        connect(m, controller.tiles, control.tiles)
        connect(m, assembly.selections, flipped(self.pieces))
        for name in ("load", "load_a", "compute_a", "compute_c"):
            connect(m, getattr(control, name), flipped(getattr(self, name)))
        for n in range(2):
            connect(m, controller.read_request[n], flipped(self.read_request[n]))
            connect(m, flipped(self.read_data[n]), controller.read_data[n])
        m.d.comb += [
            *passed(self, control, GIVEN),
            *passed(control, self, TOLD),
            *passed(controller, self, "bad_window window_index"),
            controller.start.eq(control.walk),
            *passed(want, settings, "extent tile order gathered planned joined"),
            *passed(self, settings, "a_map b_map"),
            settings.tiles.eq(control.tiles_per_rank),
            settings.keep_a.eq(want.buffering.a),
            settings.capacity.eq(want.b.lines - want.fifo_b),
            assembly.rows.eq(want.extent[0]),
            assembly.tile_rows.eq(want.tile[0]),
            assembly.tiles_i.eq(control.tiles_per_rank[0]),
            assembly.tiles_j.eq(controller.walked_j if self.tuning else control.tiles_per_rank[1]),
            assembly.start.eq(control.assemble),
            self.pieces_left.eq(assembly.busy),
            self.moved.eq(controller.event_tile),
            *(self.counted[name].eq(step) for name, step in self.steps.items()),
        ]
        if self.tuning:
            # Counters of the tile just loaded -> decision -> controller.
            m.submodules.tuning_unit = unit = TuningUnit(lanes=self.lanes, line_address_width=self.line_address_width)
            m.d.comb += [
                *passed(self, controller, "tune"),
                *passed(control, controller, "placed"),
                controller.loaded.eq(control.event_loaded),
                controller.decided.eq(unit.done),
                controller.change.eq(unit.change),
                *(getattr(sink, name).eq(controller.side[n]) for sink in (self, unit) for n, name in SIDES),
                unit.start.eq(controller.decide),
                unit.counts.eq(self.quadrant_counts),
                unit.extent_j.eq(want.extent[1]),
                unit.extent_k.eq(want.extent[2]),
                *passed(controller, unit, "movable halvable"),
                unit.lines.eq(want.b.lines),
                unit.fifo_lines.eq(want.fifo_b),
            ]
        return m
