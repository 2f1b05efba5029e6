"""The machine behind the registers: run control, accessors, SRAM and memory engine around an intra-tile engine."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out, connect, flipped

from ..accessor.a import AccessorA
from ..accessor.b import AccessorB
from ..accessor.c import AccessorC, c_regions
from ..accessor.coordinate_check import CoordinateCheck
from ..buffer.banked_sram import BankedSram
from ..engine.signature import Engine
from ..lib.block import Block, digest
from ..lib.unit import Fault, Unit
from ..memory.axi4 import Axi4Signature
from ..memory.memory_engine import MemoryEngine
from ..storage import element_count, word_address
from ..tiling.assembly import AssemblyPass
from ..tiling.controller import TilingController
from ..tiling.run_control import Phase, RunControl
from ..tiling.run_monitor import RunMonitor
from ..tiling.selection_gate import SelectionGate
from ..tiling.settings import scheme
from ..tiling.tuning import TuningUnit, tune_config
from .clients import beats, connect_clients, readers, writers
from .events import layout, show_events, sums
from .faults import report_faults

__all__ = ["Machine", "operand_addresses"]


def operand_addresses(address_width: int) -> data.StructLayout:
    """Byte addresses of the arrays of A and B, bus-aligned; maps are 0 when there are none."""
    names = ("pointers", "elements", "positions", "map")
    return data.StructLayout({f"{tensor}_{name}": address_width for tensor in "ab" for name in names})


class Machine(Block):
    """Runs one tile scheme from start to end; the accelerator without its registers::

        RunControl <- TilingController            AssemblyPass --+
            |                                                    v
            +--> AccessorA --> nonzeros of A ----------> SelectionGate --> engine --> fibers --> AccessorC
            +--> AccessorB --> B's part of the tile in the SRAM --------------^  ^----- partial rows ---+

    Everything that reads or writes memory does so through the memory engine.

    Parameters
    ----------
    tile_engine : Engine
        What computes the tiles.
    sram_lines, banks, outstanding, burst_beats : int
    tuning : bool
        Tile shapes can be tuned during a run.
    offsets : dict[str, int]
        As :class:`RunControl`.

    Members
    -------
    scheme, operands, regions : In
        Constant from ``start`` to ``done``.
    tune : In(tune_config)
        As the scheme.
    start : In(1)
    halt : In(1), bus_busy : Out(1), write_begin, write_end : In(address_width)
        As the memory engine's; the window is constant like the scheme.
    bus : Out(Axi4Signature)
    done : Out(1), error : Out(8), detail : Out(64), stored : Out(32), waiting : Out
        How the run ended; elements of C; the fields of WAITING.
    events : Out
        What each performance counter adds this cycle, by its name in lower case.
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
        tuning: bool = False,
    ) -> None:
        self.tile_engine = tile_engine
        self.tuning = bool(tuning)
        self.sram_lines = sram_lines
        self.banks = banks
        self.outstanding = outstanding
        self.burst_beats = burst_beats
        self.offsets = offsets
        self.lanes = lanes = tile_engine.lanes
        self.address_width = aw = tile_engine.address_width
        self.line_address_width = law = tile_engine.line_address_width
        bursts = {"lanes": lanes, "address_width": aw, "burst_beats": burst_beats, "line_address_width": law}
        self.control = RunControl(
            lanes=lanes, sram_lines=sram_lines, offsets=offsets, tuning=self.tuning, b_fibers=tile_engine.B_FIBERS
        )
        self.controller = TilingController(tuning=self.tuning, lanes=lanes, address_width=aw)
        self.assembly = AssemblyPass()
        self.b_fibers = b_fibers = tile_engine.B_FIBERS
        self.gate = SelectionGate(named=b_fibers == "k")
        self.a = AccessorA(**bursts)
        self.b = AccessorB(quadrants=self.tuning, fibers=b_fibers, **bursts)
        self.c = AccessorC(scratch_slots=tile_engine.scratch_slots, **bursts)
        self.sram = BankedSram(
            lines=sram_lines,
            banks=banks,
            lanes=lanes,
            read_ports=tile_engine.sram_reads + 2,
            write_ports=4 + tile_engine.SRAM_WRITES,
        )
        users = self._users
        self.memory = MemoryEngine(
            data_width=64 * lanes,
            address_width=aw,
            readers=len(readers(users)),
            writers=len(writers(users)),
            outstanding=outstanding,
            burst_beats=burst_beats,
            reader_depth=tuple(client.depth for client, _, _ in readers(users)),
        )
        self.monitor = RunMonitor()
        self.steps = self._steps()
        bus = Axi4Signature(data_width=64 * lanes, address_width=aw, id_width=self.memory.id_width)
        super().__init__(
            {
                "scheme": In(scheme()),
                "operands": In(operand_addresses(aw)),
                "regions": In(c_regions(aw)),
                "tune": In(tune_config()),
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
        rest = {name: getattr(self, name) for name in ("banks", "outstanding", "burst_beats")} | self.offsets
        rest |= {"engine": self.tile_engine.module_name}
        return {"s": self.sram_lines} | ({"t": 1} if self.tuning else {}) | {"c": digest(rest)}

    @property
    def _users(self) -> Sequence[Unit]:
        """Who uses memory."""
        return (self.a, self.b, self.tile_engine, self.c, self.controller)

    def _steps(self) -> dict[str, Value]:
        """What each performance counter adds: what the units say, and what two of them say together."""
        control, a, b, assembling = self.control, self.a, self.b, self.control.assembling
        computing = control.phase == Phase.COMPUTE
        masks = {
            "rows": ~assembling,
            "stall_a_empty": computing & ~self.gate.event_stall,
            "stall_lookup": computing,
        }
        counted = {
            name: step & masks[name] if name in masks else step for name, step in self.tile_engine.events().items()
        }
        joined = {
            "tiles_overbooked": control.event_loaded & (b.bumped_elements != 0),
            "bumped_elements": Mux(control.event_loaded, b.bumped_elements, 0),
            "overbooked_a": control.event_loaded_a & (a.bumped_elements != 0),
            "bumped_elements_a": Mux(control.event_loaded_a, a.bumped_elements, 0),
            # Fibers of C stream through all of B's partition when they are assembled: its tiles are done with.
            "buffer_peak_b": Mux(assembling, 0, b.occupied),
        }
        units = (control, self.controller, self.gate, a, b, self.c, self.sram)
        return sums([*(unit.events() for unit in units), counted, joined, *beats(self._users, self.memory, assembling)])

    def build(self, platform: Any) -> Module:
        m = Module()
        m.submodules.run_control = self.control
        m.submodules.tiling_controller = self.controller
        m.submodules.assembly_pass = self.assembly
        m.submodules.accessor_a = self.a
        m.submodules.accessor_b = self.b
        m.submodules.accessor_c = self.c
        m.submodules.selection_gate = self.gate
        m.submodules.engine = self.tile_engine
        m.submodules.banked_sram = self.sram
        m.submodules.memory_engine = memory = self.memory
        m.submodules.run_monitor = self.monitor
        self._control(m)
        self._configure(m)
        if self.tuning:
            self._tune(m)
        self._compute(m)
        self._join_sram(m)
        self._watch(m)
        connect_clients(m, self._users, memory)
        connect(m, flipped(self.bus), memory.bus)
        m.d.comb += [
            memory.halt.eq(self.halt),
            memory.write_begin.eq(self.write_begin),
            memory.write_end.eq(self.write_end),
            self.bus_busy.eq(memory.busy),
            self.done.eq(self.control.done),
            self.error.eq(self.control.error),
            self.detail.eq(self.control.detail),
            self.stored.eq(self.c.stored),
            self.waiting.eq(self.monitor.waiting),
        ]
        show_events(m, self.steps, self.events)
        return m

    def _control(self, m: Module) -> None:
        """What the walk over the tiles is told of the scheme, and the tiles on their way to the accessors."""
        control, controller, assembly = self.control, self.controller, self.assembly
        want, settings = self.scheme, controller.settings
        m.d.comb += [
            control.scheme.eq(want),
            control.tune.eq(self.tune),
            control.start.eq(self.start),
            control.misaligned.eq(self.misaligned),
            control.misaligned_offset.eq(self.misaligned_offset),
            control.load_idle.eq(self.b.idle),
            control.load_a_idle.eq(self.a.idle),
            control.rows_left.eq(self.c.rows_left),
            control.selected.eq(self.gate.selected),
            control.quiet.eq(self.monitor.quiet),
            controller.start.eq(control.walk),
            settings.extent.eq(want.extent),
            settings.tile.eq(want.tile),
            settings.tiles.eq(control.tiles_per_rank),
            settings.order.eq(want.order),
            settings.a_map.eq(self.operands.a_map),
            settings.b_map.eq(self.operands.b_map),
            settings.keep_a.eq(want.buffering.a),
            settings.gathered.eq(want.gathered),
            settings.capacity.eq(want.b.lines - want.fifo_b),
            assembly.rows.eq(want.extent[0]),
            assembly.tile_rows.eq(want.tile[0]),
            assembly.tiles_i.eq(control.tiles_per_rank[0]),
            assembly.tiles_j.eq(controller.walked_j if self.tuning else control.tiles_per_rank[1]),
            assembly.start.eq(control.assemble),
        ]
        connect(m, controller.tiles, control.tiles)
        connect(m, control.load, self.b.tile)
        connect(m, control.load_a, self.a.load)
        connect(m, control.compute_a, self.a.tile)
        connect(m, control.compute_c, self.c.tile)

    def _configure(self, m: Module) -> None:
        """What the accessors are told of the scheme."""
        a, b, c, want = self.a, self.b, self.c, self.scheme
        for tensor, accessor in (("a", a), ("b", b)):
            m.d.comb += [
                getattr(accessor, name).eq(self.operands[f"{tensor}_{name}"])
                for name in ("pointers", "positions", "elements")
            ]
        for tensor, accessor in (("a", a), ("b", b), ("c", c)):
            m.d.comb += [accessor.base.eq(want[tensor].base), accessor.lines.eq(want[tensor].lines)]
        m.d.comb += [
            a.buffering.eq(want.buffering.a),
            b.gathered.eq(want.gathered),
            b.by_list.eq(want.by_list),
            b.fifo_lines.eq(want.fifo_b),
            c.buffering.eq(want.buffering.c),
            c.regions.eq(self.regions),
            c.whole_rows.eq(self.control.present.whole_j | self.control.assembling),
            c.restart.eq(self.control.restart_rows),
        ]

    def _compute(self, m: Module) -> None:
        """Nonzeros of A -> selections -> engine -> fibers of C; what the engine is told of the tile."""
        control, gate, tile_engine, b, c = self.control, self.gate, self.tile_engine, self.b, self.c
        want, present, assembling, fiber_table = (
            self.scheme,
            control.present,
            control.assembling,
            tile_engine.fiber_table,
        )
        ringed = want.gathered & ~assembling
        in_region = want.buffering.b & ~assembling
        out = tile_engine.fibers
        connect(m, self.a.selections, gate.nonzeros)
        connect(m, self.assembly.selections, gate.pieces)
        connect(m, gate.selections, tile_engine.selections)
        connect(m, c.partials, tile_engine.partials)
        connect(m, c.scratch_results, tile_engine.scratch_results)
        m.d.comb += [
            gate.back_to_back.eq(want.gathered),
            gate.assembling.eq(assembling),
            gate.placed.eq(control.placed),
            gate.rows.eq(present.size_i),
            gate.loading.eq(control.loading_b),
            gate.settled.eq(b.settled),
            gate.origin.eq(fiber_table.origin),
            gate.width.eq(present.size_k),
            gate.looked_up.eq(tile_engine.looked_up),
            tile_engine.tile.eq(present),
            tile_engine.assembling.eq(assembling),
            # While C is assembled the pieces of its rows are looked up instead of fibers of B.
            fiber_table.streaming.eq(~want.buffering.b | assembling),
            fiber_table.unit.eq(assembling),
            fiber_table.metadata_line.eq(want.b.base + want.b.lines - 1),
            fiber_table.entry.eq(Mux(ringed, present.ring.entry, 0)),
            fiber_table.entries.eq(Mux(ringed, present.ring.metadata << (self.lanes - 1).bit_length(), 0)),
            fiber_table.origin.eq(Mux(ringed, present.begin_k, 0)),
            fiber_table.pointers.eq(
                Mux(
                    assembling,
                    self.regions.tile_positions,
                    word_address(self.operands.b_pointers, present[f"begin_{self.b_fibers}"]),
                )
            ),
            fiber_table.elements.eq(Mux(assembling, self.regions.finished, self.operands.b_elements)),
            # B's tiles are not needed any more then.
            tile_engine.b_region.base.eq(Mux(in_region, b.fifo_base, want.b.base)),
            tile_engine.b_region.lines.eq(Mux(in_region, want.fifo_b, want.b.lines)),
            tile_engine.c_region.base.eq(want.c.base),
            tile_engine.c_region.lines.eq(Mux(want.buffering.c, 0, want.c.lines)),
            tile_engine.partial_region.eq(c.partial_region),
            tile_engine.scratch_region.eq(element_count(self.regions.scratch)),
            c.collected.valid.eq(out.valid),
            c.collected.payload.eq(out.payload.word),
            out.ready.eq(c.collected.ready),
            *(getattr(c, name).eq(out.payload[name]) for name in ("scratch", "first", "slot", "bound")),
        ]

    def _join_sram(self, m: Module) -> None:
        """Ports of the SRAM: the engine's, then C's and A's for reading; loads, C's and the engine's for writing."""
        a, b, c, sram, tile_engine = self.a, self.b, self.c, self.sram, self.tile_engine
        reading = [(tile_engine.sram_request[n], tile_engine.sram_response[n]) for n in range(tile_engine.sram_reads)]
        reading += [(c.sram_request, c.sram_response), (a.sram_request, a.sram_response)]
        for n, (request, response) in enumerate(reading):
            connect(m, request, sram.read_request[n])
            m.d.comb += response.eq(sram.read_response[n])
        for n in range(2):
            # One of them is loaded at a time.
            for unit in (a, b):
                mine = a.sram_write[n].valid if unit is a else ~a.sram_write[n].valid
                with m.If(mine):
                    m.d.comb += [
                        sram.write[n].valid.eq(unit.sram_write[n].valid),
                        sram.write[n].payload.eq(unit.sram_write[n].payload),
                        unit.sram_write[n].ready.eq(sram.write[n].ready),
                    ]
            connect(m, c.sram_write[n], sram.write[2 + n])
        for n in range(tile_engine.SRAM_WRITES):
            connect(m, tile_engine.sram_write[n], sram.write[4 + n])

    def _watch(self, m: Module) -> None:
        """Who is at work, and what can go wrong."""
        control, monitor, memory, tile_engine, c = self.control, self.monitor, self.memory, self.tile_engine, self.c
        present, assembling, out = control.present, control.assembling, tile_engine.fibers
        m.submodules.coordinate_check = check = CoordinateCheck(lanes=self.lanes)
        word = out.payload.word
        names = [client.name for client, _, _ in writers(self._users)]
        moves = [port.valid & port.ready for port in (*self.sram.read_request, *self.sram.write)]
        monitor.watch(m, (self.a, self.b, c, self.gate, self.assembly, memory, tile_engine))
        m.d.comb += [
            monitor.phase.eq(control.phase),
            monitor.running.eq(control.running),
            monitor.moved.eq(
                memory.busy | self.controller.event_tile | Cat(moves).any() | tile_engine.events()["macs"].any()
            ),
            check.moved.eq(out.valid & out.ready),
            check.line.eq(word.line),
            check.mask.eq(Cat(word.count > n for n in range(self.lanes))),
            check.last.eq(word.last),
            check.kind.eq(out.payload.scratch),
            check.low.eq(Mux(assembling, 0, present.begin_j)),
            check.high.eq(Mux(assembling, self.scheme.extent[1], present.begin_j + present.size_j)),
            c.written.eq(Cat(memory.write_idle[names.index(client.name)] for client in c.WRITERS)),
            c.scratch_retired.eq(memory.write_retired[names.index("c_scratch")]),
        ]
        units = (memory, self.gate, self.a, self.b, check, self.controller, monitor, c)
        wrong = Fault("bad_row", check.wrong, check.coordinate)
        report_faults(m, control, [f for unit in units for f in ((wrong,) if unit is check else unit.faults())])

    def _tune(self, m: Module) -> None:
        """Counters of the tile just loaded -> decision -> controller."""
        controller, b = self.controller, self.b
        m.submodules.tuning_unit = unit = TuningUnit(lanes=self.lanes, line_address_width=self.line_address_width)
        m.d.comb += [
            controller.tune.eq(self.tune),
            controller.placed.eq(self.control.placed),
            controller.loaded.eq(self.control.event_loaded),
            controller.decided.eq(unit.done),
            controller.change.eq(unit.change),
            b.side_j.eq(controller.side[1]),
            b.side_k.eq(controller.side[2]),
            unit.start.eq(controller.decide),
            unit.counts.eq(b.quadrant_counts),
            unit.side_j.eq(controller.side[1]),
            unit.side_k.eq(controller.side[2]),
            unit.extent_j.eq(self.scheme.extent[1]),
            unit.extent_k.eq(self.scheme.extent[2]),
            unit.movable.eq(controller.movable),
            unit.halvable.eq(controller.halvable),
            unit.lines.eq(self.scheme.b.lines),
            unit.fifo_lines.eq(self.scheme.fifo_b),
        ]
