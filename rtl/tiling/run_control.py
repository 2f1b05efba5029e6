"""Run control: checks the scheme, then takes each tile through loading, computing and draining."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib import data, enum, stream
from amaranth.lib.wiring import In, Out

from ..lib.passed import passed
from ..lib.signals import signals
from ..lib.steady import SteadyFor
from ..lib.unit import Unit
from ..regs.map import PHASES
from ..types import COORDINATE_WIDTH, tile
from .overwrite_gate import OverwriteGate
from .resident_parts import ResidentParts
from .scheme_check import SchemeCheck
from .settings import scheme
from .tile_counts import TileCounts
from .tile_loads import TileLoads
from .tuning import tune_config

__all__ = ["Phase", "RunControl"]

# Cycles that everything must have been quiet before what was written counts as being in memory: longer than any
# register on the way between two units that both look idle.
QUIET_CYCLES = 6
# Cycles in which the nonzeros must have been looked up before the next window: two more than what tells of it needs.
SELECTED_CYCLES = 3


# What the machine is doing, for counters and for a driver that asks why nothing happens. LOAD_B is the phase of A's tile, too,
# where that is kept.
Phase = enum.Enum("Phase", {name.upper(): number for number, name in enumerate(PHASES)})


class RunControl(Unit):
    """One tile at a time: load the parts of buffered operands that are not in place, compute, wait until C is in memory.

    Rows are computed while B's part is still being loaded: what is not there yet is waited for fiber by fiber. Only where
    tile shapes are tuned the load comes first, as its counts decide what the next tile is.

    Windows of k run into one another: their rows of A and of C follow each other in memory, so accessors A and C take all
    rows of the run as one tile, and the next window begins when the last nonzero of A of this one has been looked up, while its
    rows are still being merged. What it loads may go where rows of B lie that no tile uses any more: with ``ring.early`` the
    rows of C of all tiles before this one have to be out by then, else those of this one, too.

    Parameters
    ----------
    check : SchemeCheck
        What no run can begin with; whether tile shapes may change between tiles.

    Members
    -------
    scheme : In
        Constant from ``start`` to ``done``.
    start : In(1)
        Pulse: the run begins.
    tiles_per_rank : Out(ArrayLayout(3))
        Tile counts, valid from the start of the walk on; where shapes are tuned those of the smallest tiles.
    tune : In(tune_config)
        The register. ``enable`` is an error without ``tuning``.
    placed : Out(1)
        Pulse: the present tile can be computed.
    walk : Out(1)
        Pulse: the tiling controller begins.
    tiles : In(stream)
        From the tiling controller.
    load, load_a, compute_a, compute_c : Out(stream)
        The tile for accessors B and A to load, for A and C to work on.
    present : Out(tile)
        The tile that is being loaded or computed.
    loading_b : Out(1)
        The present tile's B part is being loaded while rows are computed.
    load_idle, load_a_idle : In(1)
        Accessor B, A has nothing to do.
    assemble : Out(1), assembling : Out(1)
        Pulse: the assembly pass begins; it is running.
    restart_rows : Out(1)
        Pulse with ``assemble``: accessor C appends rows from the begin of their region again.
    quiet : In(1)
        Nothing is in flight anywhere.
    rows_left : In(COORDINATE_WIDTH)
        Rows of its tile that accessor C does not have yet.
    selected : In(1)
        With windows: the nonzeros of A of the present tile's rows have been looked up.
    phase : Out(Phase)
        What the machine is doing now.
    running, done : Out(1), error : Out(8), detail : Out(64)
        A run is in progress; it has ended, with which error.
    fault : In(8), fault_detail : In(64)
        An error that a unit reports. Nonzero ends the run.
    loading_a : Out(1)
        In the loading phase: an A tile is being loaded.
    event_loaded, event_loaded_a : Out(1)
        A B tile, an A tile has been loaded. What its accessor says of it holds.
    misaligned : In(1), misaligned_offset : In(12)
        An address register does not hold a multiple of the line size: which one.

    Timing: the walk begins after :class:`TileCounts`; tiles are ``QUIET_CYCLES`` quiet cycles apart, windows are closer.
    """

    def __init__(self, *, check: SchemeCheck) -> None:
        if not isinstance(check, SchemeCheck):
            raise TypeError(f"Run control's check must be a SchemeCheck, not {check!r}")
        self.check = check
        self.tuning, self.lanes = check.tuning, check.lanes
        self.sram_lines, self.offsets = check.sram_lines, check.offsets
        super().__init__(
            {
                "scheme": In(scheme()),
                "tune": In(tune_config()),
                "placed": Out(1),
                "start": In(1),
                "tiles_per_rank": Out(data.ArrayLayout(COORDINATE_WIDTH, 3)),
                "walk": Out(1),
                "tiles": In(stream.Signature(tile())),
                "load": Out(stream.Signature(tile())),
                "load_a": Out(stream.Signature(tile())),
                "compute_a": Out(stream.Signature(tile())),
                "compute_c": Out(stream.Signature(tile())),
                "present": Out(tile()),
                "load_idle": In(1),
                "load_a_idle": In(1),
                "rows_left": In(COORDINATE_WIDTH),
                "selected": In(1),
                "assemble": Out(1),
                "assembling": Out(1),
                "restart_rows": Out(1),
                "quiet": In(1),
                "phase": Out(Phase),
                "running": Out(1),
                "done": Out(1),
                "error": Out(8),
                "detail": Out(64),
                "fault": In(8),
                "fault_detail": In(64),
                "misaligned": In(1),
                "misaligned_offset": In(12),
                "loading_a": Out(1),
                "loading_b": Out(1),
                "event_loaded": Out(1),
                "event_loaded_a": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        return self.check.parameters()

    def events(self) -> Mapping[str, Value]:
        loading, computing, draining = (self.phase == phase for phase in (Phase.LOAD_B, Phase.COMPUTE, Phase.DRAIN))
        return {
            "cycles": self.running,
            "phase_next_tile": self.running & ~loading & ~computing & ~draining,
            "phase_load_a": self.loading_a,
            "phase_load_b": loading & ~self.loading_a,
            "phase_compute": computing,
            "phase_drain": draining,
            "loads_a": self.event_loaded_a,
        }

    def build(self, platform: Any) -> Module:
        m = Module()
        want, present, phase = self.scheme, self.present, self.phase
        m.d.comb += self.running.eq((phase != Phase.IDLE) & (phase != Phase.DONE))
        m.submodules.counts = counts = TileCounts(tuning=self.tuning)
        m.submodules.check = check = self.check
        m.submodules.settled = settled = SteadyFor(cycles=QUIET_CYCLES)
        m.submodules.selected = selected = SteadyFor(cycles=SELECTED_CYCLES)
        m.submodules.resident = resident = ResidentParts(tuning=self.tuning)
        m.submodules.gate = gate = OverwriteGate()
        m.submodules.loads = loads = TileLoads(tuning=self.tuning)
        m.d.comb += [
            *passed(want, counts, "extent tile"),
            self.tiles_per_rank.eq(counts.tiles),
            *passed(self, check, "scheme tune misaligned misaligned_offset"),
            settled.condition.eq(self.quiet),
            selected.condition.eq(self.selected & (phase == Phase.COMPUTE)),
            *passed(present, resident, "begin_i begin_j begin_k size_k"),
            *passed(want, resident, "gathered"),
            resident.kept.eq(present.ring.kept),
            *passed(loads, resident, "compare"),
            resident.load_a.eq(loads.load_a & loads.take_a),
            resident.load_b.eq(loads.load_b & loads.take_b),
            gate.rows.eq(want.extent[0]),
            *passed(self, gate, "rows_left"),
            *passed(present, gate, "begin_i"),
            gate.next.eq(self.tiles.valid & self.tiles.ready),
            gate.earlier.eq(present.ring.early),
            gate.loading.eq(loads.active),
            loads.active.eq(phase == Phase.LOAD_B),
            loads.allowed.eq(~want.gathered | gate.open),
            loads.want_a.eq(want.buffering.a & ~present.carry),
            loads.want_b.eq(want.buffering.b & ~present.carry),
            *passed(resident, loads, "resident_a resident_b"),
            loads.idle_a.eq(self.load_a_idle),
            loads.idle_b.eq(self.load_idle),
            loads.take_a.eq(self.load_a.ready),
            loads.take_b.eq(self.load.ready),
            self.load_a.valid.eq(loads.load_a),
            self.load.valid.eq(loads.load_b),
            *passed(loads, self, "placed loading_a loading_b event_loaded event_loaded_a"),
        ]
        if self.tuning:
            m.d.comb += [
                *passed(self, counts, "tune"),
                *passed(present, resident, "size_j"),
                loads.first.eq(self.tune.enable),
            ]
        m.d.comb += [port.payload.eq(present) for port in (self.load, self.load_a, self.compute_a, self.compute_c)]
        with m.If(want.gathered):
            # Once for all rows; the first tile's are the first ones.
            m.d.comb += [port.payload.size_i.eq(want.extent[0]) for port in (self.compute_a, self.compute_c)]
            m.d.comb += [self.compute_a.payload.begin_k.eq(0), self.compute_a.payload.carry.eq(0)]

        a_taken, c_taken = signals("a_taken c_taken")  # the accessor has the tile
        with m.Switch(phase):
            with m.Case(Phase.IDLE):
                with m.If(self.start):
                    m.d.comb += counts.start.eq(1)
                    m.d.sync += phase.eq(Phase.CHECK)
            with m.Case(Phase.CHECK):
                # The check takes fewer cycles than the division.
                with m.If(counts.done):
                    with m.If(check.error != 0):
                        m.d.sync += [self.error.eq(check.error), self.detail.eq(check.detail), phase.eq(Phase.DONE)]
                    with m.Else():
                        m.d.comb += self.walk.eq(1)
                        m.d.sync += phase.eq(Phase.NEXT_TILE)
            with m.Case(Phase.NEXT_TILE):
                with m.If(self.tiles.valid):
                    m.d.comb += self.tiles.ready.eq(1)
                    m.d.sync += [present.eq(self.tiles.payload), phase.eq(Phase.LOAD_B)]
                    m.d.sync += [taken.eq(taken & want.gathered) for taken in (a_taken, c_taken)]
            with m.Case(Phase.LOAD_B):
                with m.If(loads.placed):
                    m.d.sync += phase.eq(Phase.COMPUTE)
            with m.Case(Phase.COMPUTE):
                for port, taken in ((self.compute_a, a_taken), (self.compute_c, c_taken)):
                    m.d.comb += port.valid.eq(~taken)
                    with m.If(port.ready):
                        m.d.sync += taken.eq(1)
                with m.If(a_taken & c_taken):
                    with m.If(self.rows_left == 0):
                        m.d.sync += phase.eq(Phase.DRAIN)
                    with m.If(want.gathered & ~present.last & selected.steady):
                        m.d.sync += phase.eq(Phase.NEXT_TILE)
            with m.Case(Phase.DRAIN):
                with m.If(settled.steady):
                    with m.If(~present.last):
                        m.d.sync += phase.eq(Phase.NEXT_TILE)
                    with m.Elif(self.assembling | present.whole_j):
                        m.d.sync += phase.eq(Phase.DONE)
                    with m.Else():
                        m.d.sync += phase.eq(Phase.ASSEMBLE)
            with m.Case(Phase.ASSEMBLE):
                # One more tile for accessor C, all rows, final, whole; accessor A has had its last one.
                m.d.comb += [self.assemble.eq(1), self.restart_rows.eq(1)]
                m.d.sync += [
                    self.assembling.eq(1),
                    c_taken.eq(0),
                    phase.eq(Phase.COMPUTE),
                    present.begin_i.eq(0),
                    present.size_i.eq(want.extent[0]),
                    present.last_k.eq(1),
                    present.partial_in.eq(0),
                    present.k_step.eq(0),
                ]
            with m.Case(Phase.DONE):
                m.d.comb += self.done.eq(1)
        with m.If((self.fault != 0) & self.running):
            m.d.sync += [self.error.eq(self.fault), self.detail.eq(self.fault_detail), phase.eq(Phase.DONE)]
        return m
