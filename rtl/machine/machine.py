"""The machine behind the registers: run control, accessors, SRAM and memory engine around an intra-tile engine."""

from typing import Any

from amaranth.hdl import Cat, Module, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out, connect, flipped

from ..accessor.a import AccessorA
from ..accessor.b import AccessorB
from ..accessor.c import AccessorC
from ..accessor.c_regions import c_regions
from ..engine.signature import Engine
from ..lib.block import Block, digest
from ..lib.check import check_integer, check_power_of_two
from ..lib.passed import passed
from ..memory.axi4 import Axi4Signature
from ..regs.counter_list import COUNTERS
from ..storage import line_bytes
from ..tiling.run_monitor import RunMonitor
from ..tiling.scheme_check import SchemeCheck
from ..tiling.selection_gate import SelectionGate
from ..tiling.settings import scheme
from ..tiling.tuning import tune_config
from .clients import MemoryClients
from .conversion import connect_converters, conversion, converters
from .events import layout, run_events, show_events, sums
from .faults import report_faults
from .fiber_check import FiberCheck
from .fiber_places import FiberPlaces, connect_places
from .sram_ports import banked_sram, connect_sram
from .tile_control import TileControl

__all__ = ["Machine", "operand_addresses"]


def operand_addresses(address_width: int) -> data.StructLayout:
    """Byte addresses of the arrays of A and B, bus-aligned; maps are 0 when there are none."""
    arrays = data.StructLayout(dict.fromkeys(("pointers", "elements", "positions", "map"), address_width))
    return data.StructLayout({"a": arrays, "b": arrays})


class Machine(Block):
    """Runs one tile scheme from start to end; the accelerator without its registers::

        TileControl -- pieces of rows, while C is assembled -----+
            |                                                    v
            +--> AccessorA --> nonzeros of A ----------> SelectionGate --> engine --> fibers --> AccessorC
            +--> AccessorB --> B's part of the tile in the SRAM --------------^  ^----- partial rows ---+

    Everything that reads or writes memory does so through the memory engine.

    Parameters
    ----------
    tile_engine : Engine
        What computes the tiles.
    sram_lines, banks : int
        Lines of the SRAM, a multiple of its banks.
    line_beats, outstanding, burst_beats : int
        Beats of the bus that make a line: 1, 2, 4 or 8; as :class:`MemoryEngine`.
    tuning : bool
        Tile shapes can be tuned during a run.
    converts : str, conversion_form : str
        Tensors that are converted on their way in, or C out, some of "abc"; as :class:`ConvertedOperand`.
    offsets : dict[str, int]
        As :class:`SchemeCheck`.

    Members
    -------
    scheme, operands, regions : In
        Constant from ``start`` to ``done``.
    tune : In(tune_config), conversion : In(conversion)
        As the scheme; there is the other where operands can be converted, for each of these.
    start : In(1)
    halt : In(1), bus_busy : Out(1), write_begin, write_end : In(address_width)
        As the memory engine's; the window is constant like the scheme.
    bus : Out(Axi4Signature)
    done : Out(1), error : Out(8), detail : Out(64), stored : Out(32), waiting : Out
        How the run ended; elements of C, or its records where it is converted; the fields of WAITING.
    events : Out
        What each performance counter adds this cycle, by its name in lower case.

    Timing
    ------
    That of a run follows from the scheme and the operands (``docs/timing.md``).
    """

    def __init__(
        self,
        *,
        tile_engine: Engine,
        sram_lines: int,
        banks: int,
        outstanding: int,
        burst_beats: int,
        offsets: dict[str, int],
        line_beats: int = 1,
        tuning: bool = False,
        converts: str = "",
        conversion_form: str = "",
    ) -> None:
        if not isinstance(tile_engine, Engine):
            raise TypeError(f"The machine's engine must be an Engine, not {tile_engine!r}")
        self.sram_lines = check_integer("SRAM lines", sram_lines, 2, 1 << 30)
        self.line_beats = check_power_of_two("Beats of a line", line_beats, 1, min(8, burst_beats))
        self.tile_engine = tile_engine
        self.tuning = bool(tuning)
        self.banks = banks
        self.outstanding = outstanding
        self.burst_beats = burst_beats
        self.offsets = offsets
        self.lanes = lanes = tile_engine.lanes
        self.address_width = aw = tile_engine.address_width
        law = tile_engine.line_address_width
        sizes = {"lanes": lanes, "address_width": aw, "line_address_width": law}
        bursts = sizes | {"burst_beats": burst_beats // line_beats}  # units count lines
        b_fibers = tile_engine.B_FIBERS
        check = SchemeCheck(
            lanes=lanes,
            sram_lines=sram_lines,
            offsets=offsets,
            tuning=self.tuning,
            b_fibers=b_fibers,
            packed=tile_engine.packed,
            most_columns=tile_engine.most_columns,
        )
        self.control = TileControl(check=check, address_width=aw, line_address_width=law)
        self.gate = SelectionGate(named=b_fibers == "k", lanes=lanes if tile_engine.PARTS else 0)
        self.a = AccessorA(**bursts, parts=tile_engine.PARTS)
        self.b = AccessorB(quadrants=self.tuning, fibers=b_fibers, converts="b" in converts, **bursts)
        packed = tile_engine.value if tile_engine.packed else None
        own = {"packed": packed, "joins": b_fibers == "k", "converts": "c" in converts}
        self.c = AccessorC(scratch_slots=tile_engine.scratch_slots, **own, **bursts)
        self.sram = banked_sram(tile_engine, lines=sram_lines, banks=banks)
        beat_bits = 8 * line_bytes(lanes) // line_beats
        made = {"beat_bits": beat_bits, "address_width": aw, "value": tile_engine.value, "form": conversion_form}
        self.converters = converters(converts, group=self.gate.lanes, lanes=lanes, burst_beats=burst_beats, **made)
        users = (self.a, self.b, tile_engine, self.c, self.control, *self.converters.values())
        sizes_of_bus = {"line_beats": line_beats, "outstanding": outstanding, "burst_beats": burst_beats}
        self.clients = MemoryClients(users, tile_engine, **sizes_of_bus)
        self.memory = self.clients.memory
        self.monitor = RunMonitor()
        self.places = FiberPlaces(**sizes)
        self.check = FiberCheck(lanes=lanes)
        self.steps = _steps(self)
        bus = Axi4Signature(data_width=self.memory.data_width, address_width=aw, id_width=self.memory.id_width)
        told = data.StructLayout({tensor: conversion(tensor) for tensor in self.converters})
        super().__init__(
            {
                "scheme": In(scheme()),
                "operands": In(operand_addresses(aw)),
                "regions": In(c_regions(aw)),
                "tune": In(tune_config()),
                **({"conversion": In(told)} if self.converters else {}),
                "start": In(1),
                "halt": In(1),
                "bus_busy": Out(1),
                "write_begin": In(aw),
                "write_end": In(aw),
                "bus": Out(bus),
                "misaligned": In(1),
                "misaligned_offset": In(12),
                "done": Out(1),
                "error": Out(8),
                "detail": Out(64),
                "stored": Out(32),
                "waiting": Out(len(self.monitor.waiting)),
                "events": Out(layout(self.steps)),
            }
        )

    def parameters(self) -> dict[str, Any]:
        rest = self.offsets | {n: getattr(self, n) for n in ("banks", "outstanding", "burst_beats", "line_beats")}
        rest |= {"engine": self.tile_engine.module_name}
        rest |= {"converters": {name: unit.form for name, unit in self.converters.items()}} if self.converters else {}
        return {"sram_lines": self.sram_lines} | ({"tuning": True} if self.tuning else {}) | {"rest": digest(rest)}

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.tile_control = control = self.control
        m.submodules.accessor_a = self.a
        m.submodules.accessor_b = self.b
        m.submodules.accessor_c = self.c
        m.submodules.selection_gate = self.gate
        m.submodules.engine = self.tile_engine
        m.submodules.banked_sram = self.sram
        m.submodules.run_monitor = self.monitor
        self._control(m)
        _configure(m, self)
        self._compute(m)
        self._watch(m)
        self.clients.connect(m, self.operands, self.scheme.coordinates)
        connect_sram(m, self.sram, self.tile_engine, self.a, self.b, self.c)
        connect(m, flipped(self.bus), self.memory.bus)
        m.d.comb += [
            *passed(self, self.memory, "halt write_begin write_end"),
            *passed(control, self, "done error detail"),
            *passed(self.monitor, self, "waiting"),
            self.bus_busy.eq(self.memory.busy),
        ]
        show_events(m, self.steps, self.events)
        return m

    def _control(self, m: Module) -> None:
        """What the walk over the tiles is told, and the tiles on their way to the accessors."""
        control, a, b, c = self.control, self.a, self.b, self.c
        m.d.comb += [
            *passed(self, control, "scheme tune start misaligned misaligned_offset"),
            control.a_map.eq(self.operands.a.map),
            control.b_map.eq(self.operands.b.map),
            *passed(self.gate, control, "selected"),
            *passed(self.monitor, control, "quiet"),
            *passed(c, control, "rows_left"),
            control.load_idle.eq(b.idle),
            control.load_a_idle.eq(a.idle),
        ]
        connect(m, control.load, b.tile)
        connect(m, control.load_a, a.load)
        connect(m, control.compute_c, c.tile)
        if self.tuning:
            m.d.comb += [*passed(control, b, "side_j side_k"), *passed(b, control, "quadrant_counts")]

    def _compute(self, m: Module) -> None:
        """Nonzeros of A -> selections -> engine -> fibers of C; what the engine is told of the tile."""
        control, gate, tile_engine, b, c = self.control, self.gate, self.tile_engine, self.b, self.c
        want, present, out = self.scheme, control.present, tile_engine.fibers
        m.submodules.fiber_places = places = self.places
        connect_places(m, places, want, control, b, self.regions, tile_engine.B_FIBERS)
        connect_converters(m, self, self.converters)
        connect(m, control.pieces, gate.pieces)
        connect(m, gate.selections, tile_engine.selections)
        connect(m, c.partials, tile_engine.partials)
        connect(m, c.scratch_results, tile_engine.scratch_results)
        m.d.comb += [
            gate.back_to_back.eq(want.gathered),
            *passed(control, gate, "assembling placed"),
            gate.rows.eq(present.size_i),
            gate.loading.eq(control.loading_b),
            *passed(b, gate, "settled"),
            *passed(tile_engine, gate, "looked_up"),
            tile_engine.tile.eq(present),
            *passed(control, tile_engine, "assembling"),
            *passed(places, tile_engine, "fiber_table b_region c_region"),
            *passed(c, tile_engine, "partial_region scratch_open scratch_places"),
            *passed(tile_engine, c, "merged_out"),
            c.collected.valid.eq(out.valid),
            c.collected.payload.eq(out.payload.word),
            out.ready.eq(c.collected.ready),
            *passed(out.payload, c, "scratch first slot bound"),
        ]
        if not gate.lanes:
            m.d.comb += [gate.origin.eq(places.fiber_table.origin), gate.width.eq(present.size_k)]
        if gate.named:
            m.d.comb += gate.entries.eq(present.ring.metadata << (self.lanes - 1).bit_length())
            m.d.comb += passed(want, gate, "planned entry_bits")

    def _watch(self, m: Module) -> None:
        """Who is at work, and what can go wrong."""
        control, monitor, memory, tile_engine, c = self.control, self.monitor, self.memory, self.tile_engine, self.c
        m.submodules.fiber_check = check = self.check
        out = tile_engine.fibers
        moves = [port.valid & port.ready for port in (*self.sram.read_request, *self.sram.write)]
        monitor.watch(m, (self.a, self.b, c, self.gate, control, memory, tile_engine, *self.converters.values()))
        m.d.comb += [
            *passed(control, monitor, "phase running"),
            monitor.moved.eq(memory.busy | control.moved | Cat(moves).any() | tile_engine.events()["macs"].any()),
            check.moved.eq(out.valid & out.ready),
            *passed(out.payload, check, "word scratch"),
            *passed(control.present, check, "begin_j size_j"),
            check.columns.eq(self.scheme.extent[1]),
            *passed(control, check, "assembling"),
            c.written.eq(self.clients.written(c)),
            c.scratch_retired.eq(self.clients.retired("c_scratch")),
        ]
        units = (
            memory,
            self.gate,
            self.a,
            self.b,
            self.tile_engine,
            check,
            control,
            *self.converters.values(),
            monitor,
            c,
        )
        report_faults(m, control, [fault for unit in units for fault in unit.faults()])


def _steps(owner: Machine) -> dict[str, Value]:
    """What each performance counter adds: what the units say, and what two of them say together."""
    control, gate, a, b = owner.control, owner.gate, owner.a, owner.b
    said = [unit.events() for unit in (control, gate, a, b, owner.c, owner.sram)]
    together = [*run_events(control, gate, a, b, owner.tile_engine, owner.line_beats)]
    if owner.converters:
        stalled = [unit.stalled for unit in owner.converters.values()]
        together.append({"stall_conversion": Cat(stalled).any() if len(stalled) > 1 else stalled[0]})
    return sums(COUNTERS, [*said, *together, *owner.clients.beats(control.assembling)])


def _configure(m: Module, owner: Machine) -> None:
    """What the accessors are told of the scheme."""
    a, b, c, want = owner.a, owner.b, owner.c, owner.scheme
    for tensor, accessor in (("a", a), ("b", b)):
        # Places of packed records count from the begin of their array, which their reader knows.
        begin = "" if owner.tile_engine.packed else "elements"
        m.d.comb += passed(owner.operands[tensor], accessor, f"pointers positions {begin}")
    if owner.tile_engine.packed:
        m.d.comb += c.coordinate_bits.eq(want.coordinates.c)
    for tensor, unit in (("a", a), ("b", b)):
        m.d.comb += passed(want[tensor], unit, "base lines")
    m.d.comb += passed(owner.places.c_rows, c, "base lines")
    m.d.comb += [c.scratch_base.eq(owner.places.c_scratch.base), c.scratch_lines.eq(owner.places.c_scratch.lines)]
    m.d.comb += [
        a.buffering.eq(want.buffering.a),
        *passed(want, b, "gathered by_list planned"),
        b.fifo_lines.eq(want.fifo_b),
        c.buffering.eq(want.buffering.c),
        *(passed(want, c, "joined part_words") if c.joins else ()),
        *passed(owner, c, "regions"),
        c.whole_rows.eq(owner.control.present.whole_j | owner.control.assembling),
        c.restart.eq(owner.control.restart_rows),
    ]
