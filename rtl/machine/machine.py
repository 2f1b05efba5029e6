"""The machine behind the registers: controller, accessors, SRAM, network, processing elements and memory engine."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out, connect, flipped

from ..accessor.a import AccessorA
from ..accessor.b import AccessorB
from ..accessor.c import AccessorC, c_regions
from ..accessor.lookup import FiberLookup
from ..accessor.segment_stream import SegmentStreamer
from ..buffer.banked_sram import BankedSram
from ..lib.block import Block, digest
from ..lib.counter import popcount
from ..lib.stream import StreamQueue, StreamRegister
from ..memory.axi4 import Axi4Signature
from ..memory.memory_engine import MemoryEngine
from ..network.collector import Collector
from ..network.dispatcher import Dispatcher
from ..network.memory_fetch import MemoryFetch
from ..pe.gustavson import GustavsonPe
from ..tiling.assembly import AssemblyPass
from ..tiling.controller import TilingController
from ..tiling.run_control import RunControl, scheme
from ..tiling.tuning import TuningUnit, tune_config
from ..types import COORDINATE_WIDTH
from .clients import READERS, WRITERS, connect_clients
from .events import event_layout, show_events
from .faults import find_faults
from .units import Units

__all__ = ["ROWS_OF_AN_ELEMENT", "Machine", "operand_addresses"]

# Rows under way for each element: so many short ones are merged while a long one holds up those behind it, which leave in
# row order.
ROWS_OF_AN_ELEMENT = 32


def operand_addresses(address_width: int) -> data.StructLayout:
    """Byte addresses of the arrays of A and B, bus-aligned; maps are 0 when there are none."""
    names = ("pointers", "elements", "positions", "map")
    return data.StructLayout({f"{tensor}_{name}": address_width for tensor in "ab" for name in names})


class Machine(Block):
    """One accelerator without its registers (design: intra-tile dataflow ``gustavson``).

    Parameters
    ----------
    pes, radix, lanes, sram_lines, banks, address_width, leaf_lines, queue_lines, scratch_slots, outstanding,
    burst_beats : int
    value : str
        Value type, one of ``arith.VALUES``.
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
    done : Out(1), error : Out(8), detail : Out(64), stored : Out(32), waiting : Out(32)
        How the run ended; elements of C; phase and which units are not idle.
    events : Out
        What each performance counter adds this cycle, by its name in lower case.
    """

    def __init__(
        self,
        *,
        pes: int,
        radix: int,
        lanes: int,
        sram_lines: int,
        banks: int,
        address_width: int,
        leaf_lines: int,
        queue_lines: int,
        scratch_slots: int,
        outstanding: int,
        burst_beats: int,
        value: str,
        offsets: dict[str, int],
        tuning: bool = False,
    ) -> None:
        self.tuning = bool(tuning)
        self.pes = pes
        self.radix = radix
        self.lanes = lanes
        self.sram_lines = sram_lines
        self.banks = banks
        self.address_width = address_width
        self.leaf_lines = leaf_lines
        self.queue_lines = queue_lines
        self.scratch_slots = scratch_slots
        self.outstanding = outstanding
        self.burst_beats = burst_beats
        self.value = value
        self.offsets = offsets
        self.line_address_width = (sram_lines - 1).bit_length()
        self.engine = MemoryEngine(
            data_width=64 * lanes,
            address_width=address_width,
            readers=len(READERS),
            writers=len(WRITERS),
            outstanding=outstanding,
            burst_beats=burst_beats,
            reader_depth=tuple(READERS.values()),
        )
        self.event_layout = event_layout(pes=pes, lanes=lanes, line_address_width=self.line_address_width)
        super().__init__(
            {
                "scheme": In(scheme()),
                "operands": In(operand_addresses(address_width)),
                "regions": In(c_regions(address_width)),
                "tune": In(tune_config()),
                "start": In(1),
                "halt": In(1),
                "bus_busy": Out(1),
                "write_begin": In(address_width),
                "write_end": In(address_width),
                "bus": Out(
                    Axi4Signature(data_width=64 * lanes, address_width=address_width, id_width=self.engine.id_width)
                ),
                "misaligned": In(1),
                "misaligned_offset": In(12),
                "done": Out(1),
                "error": Out(8),
                "detail": Out(64),
                "stored": Out(32),
                "waiting": Out(32),
                "events": Out(self.event_layout),
            }
        )

    def parameters(self) -> dict[str, Any]:
        sizes = {"p": self.pes, "r": self.radix, "l": self.lanes, "s": self.sram_lines, "v": self.value}
        others = ("banks", "address_width", "leaf_lines", "queue_lines", "scratch_slots", "outstanding", "burst_beats")
        rest = {name: getattr(self, name) for name in others} | self.offsets
        return sizes | ({"t": 1} if self.tuning else {}) | {"c": digest(rest)}

    def build(self, platform: Any) -> Module:
        m = Module()
        units = self._make(m)
        control, engine = units.control, units.engine
        self._configure(m, units)
        if self.tuning:
            self._tune(m, control, units.controller, units.b)
        stall_load = self._select(m, units)
        self._stream(m, units)
        self._merge(m, units)
        self._store(m, units)
        connect_clients(m, units)
        connect(m, flipped(self.bus), engine.bus)
        m.d.comb += [
            engine.halt.eq(self.halt),
            engine.write_begin.eq(self.write_begin),
            engine.write_end.eq(self.write_end),
            self.bus_busy.eq(engine.busy),
            self.done.eq(control.done),
            self.error.eq(control.error),
            self.detail.eq(control.detail),
            self.stored.eq(units.c.stored),
        ]
        self._watch(m, units)
        find_faults(m, units, extent_j=self.scheme.extent[1], waiting=self.waiting)
        show_events(m, units, self.events, stall_load=stall_load, tuning=self.tuning)
        return m

    def _make(self, m: Module) -> Units:
        lanes, aw, law = self.lanes, self.address_width, self.line_address_width
        sizes = {"lanes": lanes, "address_width": aw}
        bursts = {**sizes, "burst_beats": self.burst_beats}
        rows = ROWS_OF_AN_ELEMENT * self.pes
        m.submodules.run_control = control = RunControl(
            lanes=lanes, sram_lines=self.sram_lines, offsets=self.offsets, tuning=self.tuning
        )
        m.submodules.tiling_controller = controller = TilingController(tuning=self.tuning, **sizes)
        m.submodules.assembly_pass = assembly = AssemblyPass()
        m.submodules.accessor_a = a = AccessorA(line_address_width=law, **bursts)
        m.submodules.accessor_b = b = AccessorB(line_address_width=law, quadrants=self.tuning, **bursts)
        m.submodules.accessor_c = c = AccessorC(line_address_width=law, slots=self.scratch_slots, **bursts)
        m.submodules.fiber_lookup = lookup = FiberLookup(line_address_width=law, **sizes)
        m.submodules.selections = selections = StreamRegister(shape=a.selections.payload.shape())
        # The leaves of the next rows are at hand when an element gets free, however long A's elements took.
        leaves = 2 * self.radix
        m.submodules.leaf_queue = leaf_queue = StreamQueue(
            shape=lookup.leaves.payload.shape(), depth=leaves, block_memory=leaves > 16
        )
        m.submodules.segment_streamer = streamer = SegmentStreamer(line_address_width=law, rows=rows, **sizes)
        m.submodules.partial_streamer = reentry = SegmentStreamer(line_address_width=law, rows=rows, **sizes)
        m.submodules.dispatcher = dispatcher = Dispatcher(
            elements=self.pes, radix=self.radix, address_width=aw, slots=self.scratch_slots
        )
        m.submodules.collector = collector = Collector(
            elements=self.pes, lanes=lanes, depth=ROWS_OF_AN_ELEMENT * self.pes, slots=self.scratch_slots
        )
        m.submodules.memory_fetch = fetch = MemoryFetch(
            elements=self.pes, radix=self.radix, leaf_lines=self.leaf_lines, pending=64, **sizes
        )
        m.submodules.banked_sram = sram = BankedSram(
            lines=self.sram_lines, banks=self.banks, lanes=lanes, read_ports=self.pes + 3, write_ports=6
        )
        m.submodules.memory_engine = engine = self.engine
        pes = []
        for n in range(self.pes):
            pe = GustavsonPe(
                radix=self.radix,
                lanes=lanes,
                line_address_width=law,
                address_width=aw,
                value=self.value,
                leaf_lines=self.leaf_lines,
                queue_lines=self.queue_lines,
            )
            m.submodules[f"pe{n}"] = pe
            pes.append(pe)
        return Units(
            control=control,
            controller=controller,
            assembly=assembly,
            a=a,
            b=b,
            c=c,
            selections=selections,
            lookup=lookup,
            leaf_queue=leaf_queue,
            streamer=streamer,
            reentry=reentry,
            dispatcher=dispatcher,
            collector=collector,
            fetch=fetch,
            sram=sram,
            engine=engine,
            pes=tuple(pes),
        )

    def _configure(self, m: Module, units: Units) -> None:
        """What the units are told of the scheme, and the tile that run control gives them."""
        control, controller, assembly = units.control, units.controller, units.assembly
        a, b, c = units.a, units.b, units.c
        present = control.compute_c.payload
        assembling = control.assembling
        m.d.comb += [
            control.scheme.eq(self.scheme),
            control.start.eq(self.start),
            control.misaligned.eq(self.misaligned),
            control.misaligned_offset.eq(self.misaligned_offset),
            controller.start.eq(control.walk),
            controller.config.extent.eq(self.scheme.extent),
            controller.config.tile.eq(self.scheme.tile),
            controller.config.tiles.eq(control.tiles_per_rank),
            controller.config.order.eq(self.scheme.order),
            controller.config.a_map.eq(self.operands.a_map),
            controller.config.b_map.eq(self.operands.b_map),
            controller.config.keep_a.eq(self.scheme.buffering.a),
            controller.config.windows.eq(self.scheme.windows),
            controller.config.room.eq(self.scheme.b.lines - self.scheme.fifo_b),
            assembly.rows.eq(self.scheme.extent[0]),
            assembly.tile_rows.eq(self.scheme.tile[0]),
            assembly.tiles_i.eq(control.tiles_per_rank[0]),
            assembly.tiles_j.eq(controller.walked_j if self.tuning else control.tiles_per_rank[1]),
            control.tune.eq(self.tune),
            assembly.start.eq(control.assemble),
            a.pointers.eq(self.operands.a_pointers),
            a.positions.eq(self.operands.a_positions),
            a.elements.eq(self.operands.a_elements),
            a.buffering.eq(self.scheme.buffering.a),
            a.base.eq(self.scheme.a.base),
            a.lines.eq(self.scheme.a.lines),
            b.windows.eq(self.scheme.windows),
            b.listed.eq(self.scheme.listed),
            b.pointers.eq(self.operands.b_pointers),
            b.positions.eq(self.operands.b_positions),
            b.elements.eq(self.operands.b_elements),
            b.base.eq(self.scheme.b.base),
            b.lines.eq(self.scheme.b.lines),
            b.fifo_lines.eq(self.scheme.fifo_b),
            c.regions.eq(self.regions),
            c.whole_rows.eq(present.whole_j | assembling),
            c.restart.eq(control.restart_rows),
        ]
        connect(m, controller.tiles, control.tiles)
        connect(m, control.load, b.tile)
        connect(m, control.load_a, a.load)
        connect(m, control.compute_a, a.tile)
        connect(m, control.compute_c, c.tile)

    def _select(self, m: Module, units: Units) -> Signal:
        """Elements of A -> leaves. Returns whether a selection waits for its fiber of B to be loaded."""
        control, assembly, lookup = units.control, units.assembly, units.lookup
        a, b, selections = units.a, units.b, units.selections
        present = control.compute_c.payload
        assembling = control.assembling
        ringed = self.scheme.windows & ~assembling
        m.d.comb += [
            lookup.streaming.eq(~self.scheme.buffering.b | assembling),
            lookup.unit.eq(assembling),
            lookup.metadata_line.eq(self.scheme.b.base + self.scheme.b.lines - 1),
            lookup.slot.eq(Mux(ringed, present.ring.slot, 0)),
            lookup.slots.eq(Mux(ringed, present.ring.metadata << (self.lanes - 1).bit_length(), 0)),
            lookup.origin.eq(Mux(ringed, present.begin_k, 0)),
            lookup.pointers.eq(
                Mux(
                    assembling,
                    self.regions.tile_positions,
                    self.operands.b_pointers + (present.begin_k << 2),
                )
            ),
            lookup.elements.eq(Mux(assembling, self.regions.finished, self.operands.b_elements)),
        ]
        connect(m, a.selections, selections.i)
        # With windows A's elements come without a break: those of the next tile wait until it is the present one.
        left = Signal(COORDINATE_WIDTH)  # rows of the present tile
        due = Signal()
        placed = Signal()  # the first cycle in which it is computed
        m.d.sync += placed.eq(control.placed)
        row_passes = selections.o.valid & selections.o.ready & selections.o.payload.last
        with m.If(placed):
            m.d.sync += [left.eq(control.load.payload.size_i), due.eq(1)]
        with m.Elif(row_passes):
            m.d.sync += [left.eq(left - 1), due.eq(left != 1)]
        opened = Mux(self.scheme.windows, due, ~placed)
        m.d.comb += control.selected.eq(lookup.idle & ~due & ~placed)
        settled = Signal(COORDINATE_WIDTH + 1)  # fibers before this one can be used; a cycle late
        m.d.sync += settled.eq(lookup.origin + b.settled)
        stall_load = Signal()
        with m.If(assembling):
            m.d.comb += [
                lookup.selections.valid.eq(assembly.selections.valid),
                lookup.selections.payload.eq(assembly.selections.payload),
                assembly.selections.ready.eq(lookup.selections.ready),
            ]
        with m.Else():
            # While B's part is being loaded, a selection waits until its fiber is there.
            chosen = selections.o.payload
            loaded, there = Signal(), Signal()
            m.d.comb += [
                loaded.eq(~control.loading_b | ~chosen.present | (chosen.index < settled)),
                there.eq(opened & loaded),
                lookup.selections.valid.eq(selections.o.valid & there),
                lookup.selections.payload.eq(chosen),
                selections.o.ready.eq(lookup.selections.ready & there),
                stall_load.eq(selections.o.valid & opened & ~loaded),
            ]
        return stall_load

    def _stream(self, m: Module, units: Units) -> None:
        """Leaves that lie in memory pass the SRAM on their way to the dispatcher."""
        control, b, c, collector, dispatcher = units.control, units.b, units.c, units.collector, units.dispatcher
        lookup, leaf_queue, streamer, reentry = units.lookup, units.leaf_queue, units.streamer, units.reentry
        present = control.compute_c.payload
        assembling = control.assembling
        connect(m, lookup.leaves, leaf_queue.i)
        connect(m, leaf_queue.o, streamer.leaves)
        connect(m, streamer.streamed, dispatcher.leaves)
        finished = collector.collected
        row_done = Signal()
        in_region = Signal()
        m.d.comb += [
            row_done.eq(finished.valid & finished.ready & finished.payload.word.last & ~finished.payload.scratch),
            # While C is assembled, B's tiles are not needed any more.
            in_region.eq(self.scheme.buffering.b & ~assembling),
            streamer.base.eq(Mux(in_region, b.fifo_base, self.scheme.b.base)),
            streamer.lines.eq(Mux(in_region, self.scheme.fifo_b, self.scheme.b.lines)),
            streamer.units.eq(assembling),
            streamer.row_done.eq(row_done),
        ]
        # Partial rows that re-enter from memory, one for each row of the tile, pass C's partition where C is streamed.
        partial = c.partials.payload
        reentering = reentry.leaves.payload
        back = reentry.streamed.payload.leaf
        m.d.comb += [
            reentry.base.eq(self.scheme.c.base),
            reentry.lines.eq(Mux(self.scheme.buffering.c, 0, self.scheme.c.lines)),
            reentry.units.eq(1),
            reentry.origin.eq(c.partial_region << 3),
            reentry.row_done.eq(row_done & present.partial_in & ~assembling),
            reentry.leaves.valid.eq(c.partials.valid),
            c.partials.ready.eq(reentry.leaves.ready),
            reentering.present.eq(1),
            reentering.leaf.unit.eq(1),
            reentering.leaf.last.eq(1),
            reentering.leaf.in_memory.eq(partial.in_memory),
            reentering.leaf.position.eq(partial.position),
            reentering.leaf.length.eq(partial.length),
            dispatcher.partials.valid.eq(reentry.streamed.valid),
            reentry.streamed.ready.eq(dispatcher.partials.ready),
            dispatcher.partials.payload.in_memory.eq(back.in_memory),
            dispatcher.partials.payload.position.eq(back.position),
            dispatcher.partials.payload.length.eq(back.length),
        ]

    def _merge(self, m: Module, units: Units) -> None:
        """Leaves -> jobs -> fibers."""
        control, c, collector, dispatcher = units.control, units.c, units.collector, units.dispatcher
        lookup, fetch, sram = units.lookup, units.fetch, units.sram
        present = control.compute_c.payload
        connect(m, c.scratch_results, dispatcher.scratch_results)
        m.d.comb += [
            dispatcher.merged_out.eq(collector.merged_out),
            dispatcher.with_partials.eq(present.partial_in),
            dispatcher.columns.eq(present.size_j),
            dispatcher.partial_region.eq(c.partial_region),
            dispatcher.scratch_region.eq(self.regions.scratch >> 3),
        ]
        connect(m, dispatcher.tickets, collector.tickets)
        connect(m, sram.read_request[self.pes], lookup.sram_request)
        m.d.comb += lookup.sram_response.eq(sram.read_response[self.pes])
        for n, pe in enumerate(units.pes):
            connect(m, dispatcher.jobs[n], pe.leaves)
            connect(m, pe.sram_request, sram.read_request[n])
            m.d.comb += pe.sram_response.eq(sram.read_response[n])
            connect(m, pe.fetch_request, fetch.requests[n])
            m.d.comb += pe.fetch_response.eq(fetch.responses[n])
            connect(m, pe.fiber, collector.fibers[n])

    def _store(self, m: Module, units: Units) -> None:
        """Ports of the SRAM, and fibers -> C."""
        a, b, c, collector = units.a, units.b, units.c, units.collector
        sram, streamer, reentry = units.sram, units.streamer, units.reentry
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
        connect(m, streamer.sram_write, sram.write[4])
        connect(m, reentry.sram_write, sram.write[5])
        connect(m, a.sram_request, sram.read_request[self.pes + 2])
        m.d.comb += a.sram_response.eq(sram.read_response[self.pes + 2])
        connect(m, c.sram_request, sram.read_request[self.pes + 1])
        m.d.comb += c.sram_response.eq(sram.read_response[self.pes + 1])
        m.d.comb += [
            c.collected.valid.eq(collector.collected.valid),
            c.collected.payload.eq(collector.collected.payload.word),
            c.scratch.eq(collector.collected.payload.scratch),
            c.first.eq(collector.collected.payload.first),
            c.slot.eq(collector.collected.payload.slot),
            c.bound.eq(collector.collected.payload.bound),
            c.buffering.eq(self.scheme.buffering.c),
            c.base.eq(self.scheme.c.base),
            c.lines.eq(self.scheme.c.lines),
            collector.collected.ready.eq(c.collected.ready),
        ]

    def _watch(self, m: Module, units: Units) -> None:
        """Who is still at work."""
        control, a, b, c, lookup = units.control, units.a, units.b, units.c, units.lookup
        assembly, collector, dispatcher, fetch = units.assembly, units.collector, units.dispatcher, units.fetch
        idle_units = [
            a.idle,
            b.idle,
            lookup.idle & ~assembly.busy & ~units.selections.o.valid,
            units.leaf_queue.level == 0,
            units.streamer.idle,
            units.reentry.idle,
            dispatcher.idle,
            collector.idle,
            fetch.idle,
            c.drained,
            Cat(*units.engine.write_idle).all(),
            ~popcount([pe.busy for pe in units.pes]).any(),
        ]
        idle = Signal(len(idle_units))
        for n, unit in enumerate(idle_units):
            m.d.comb += idle[n].eq(unit)
        m.d.comb += [
            control.quiet.eq(idle.all()),
            control.load_idle.eq(b.idle),
            control.load_a_idle.eq(a.idle),
            control.rows_left.eq(c.rows_left),
            self.waiting.eq(control.phase.as_value() | (~idle << 3)),
        ]

    def _tune(self, m: Module, control: Any, controller: Any, b: Any) -> None:
        """Counters of the tile just loaded -> decision -> controller."""
        m.submodules.tuning_unit = unit = TuningUnit(lanes=self.lanes, line_address_width=self.line_address_width)
        m.d.comb += [
            controller.tune.eq(self.tune),
            controller.placed.eq(control.placed),
            controller.loaded.eq(control.event_loaded),
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
