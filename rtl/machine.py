"""The machine behind the registers: controller, accessors, SRAM, network, processing elements and memory engine."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out, connect, flipped

from .accessor.a import AccessorA
from .accessor.b import AccessorB
from .accessor.c import AccessorC, c_regions
from .accessor.fiber_reader import READ_CLIENTS
from .accessor.lookup import FiberLookup
from .accessor.segment_stream import SegmentStreamer
from .buffer.banked_sram import BankedSram
from .lib.block import Block
from .lib.counter import popcount
from .lib.stream import StreamQueue, StreamRegister
from .memory.axi4 import Axi4Signature
from .memory.memory_engine import MemoryEngine
from .network.collector import Collector
from .network.dispatcher import Dispatcher
from .network.fiber_check import FiberCheck
from .network.memory_fetch import MemoryFetch
from .pe.gustavson import GustavsonPe
from .regs.counter_list import COUNTERS
from .regs.map import ERRORS
from .tiling.assembly import AssemblyPass
from .tiling.controller import TilingController
from .tiling.run_control import Phase, RunControl, scheme
from .tiling.tuning import TuningUnit, tune_config
from .tiling.watchdog import Watchdog
from .types import COORDINATE_WIDTH

__all__ = ["Machine", "operand_addresses"]

ERROR_CODES = {error.name: error.code for error in ERRORS}
COUNTER_NAMES = tuple(counter.name.lower() for counter in COUNTERS)

# Client ports of the memory engine, in order: who reads and writes through them, and how deep a reader's queue is in
# beats. Streams that move whole tiles hide the memory's latency; words come four or more to a beat.
READERS = {
    "a_positions": 16,
    "a_pointers": 16,
    "a_elements": 64,
    "a_elements_second": 32,
    "a_elements_later": 16,
    "b_positions": 16,
    "b_pointers": 16,
    "b_elements": 64,
    "b_elements_second": 32,
    "b_elements_later": 16,
    "lookup": 64,
    "fetch": 128,
    "c_positions": 16,
    "a_map": 2,
    "b_map": 2,
    "b_streamed": 128,
    "c_streamed": 128,
}
ELEMENT_CLIENTS = tuple(name for name in READ_CLIENTS if name.startswith("elements"))
WRITERS = ("a_positions", "b_positions", "c_rows", "c_partials", "c_scratch", "c_positions")


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
        ``int32`` or ``fp32``.
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
        per_pe = range(pes + 1)
        widths: dict[str, Any] = dict.fromkeys(COUNTER_NAMES, 1)
        widths |= dict.fromkeys(("macs", "pe_busy", "pe_stall_input", "pe_stall_output"), per_pe)
        widths |= {"bumped_elements": 32, "bumped_fetches": 32, "sram_read_conflicts": range(pes + 4)}
        widths |= {"bumped_elements_a": 32, "hits_a": range(lanes + 1), "bumped_fetches_a": range(lanes + 1)}
        widths |= {f"buffer_peak_{tensor}": self.line_address_width + 1 for tensor in "abc"}
        widths |= {f"read_{tensor}_{kind}": 3 for tensor in "abc" for kind in ("data", "meta")}
        widths |= {"write_c_data": 2, "jobs": 2, "leaves": 2}
        self.event_layout = data.StructLayout({name: widths[name] for name in COUNTER_NAMES})
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
        return {"p": self.pes, "r": self.radix, "l": self.lanes, "s": self.sram_lines, "v": self.value} | (
            {"t": 1} if self.tuning else {}
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        lanes, aw, law = self.lanes, self.address_width, self.line_address_width
        sizes = {"lanes": lanes, "address_width": aw}
        bursts = {**sizes, "burst_beats": self.burst_beats}

        m.submodules.run_control = control = RunControl(
            lanes=lanes, sram_lines=self.sram_lines, offsets=self.offsets, tuning=self.tuning
        )
        m.submodules.tiling_controller = controller = TilingController(tuning=self.tuning, **sizes)
        m.submodules.assembly_pass = assembly = AssemblyPass()
        m.submodules.accessor_a = a = AccessorA(line_address_width=law, **bursts)
        m.submodules.accessor_b = b = AccessorB(line_address_width=law, quadrants=self.tuning, **bursts)
        m.submodules.accessor_c = c = AccessorC(line_address_width=law, slots=self.scratch_slots, **bursts)
        m.submodules.fiber_lookup = lookup = FiberLookup(line_address_width=law, **sizes)
        # The leaves of the next rows are at hand when an element gets free, however long A's elements took.
        leaves = 2 * self.radix
        m.submodules.leaf_queue = leaf_queue = StreamQueue(
            shape=lookup.leaves.payload.shape(), depth=leaves, block_memory=leaves > 16
        )
        m.submodules.segment_streamer = streamer = SegmentStreamer(line_address_width=law, **sizes)
        m.submodules.partial_streamer = reentry = SegmentStreamer(line_address_width=law, **sizes)
        m.submodules.dispatcher = dispatcher = Dispatcher(
            elements=self.pes, radix=self.radix, address_width=aw, slots=self.scratch_slots
        )
        m.submodules.collector = collector = Collector(
            elements=self.pes, lanes=lanes, depth=4 * self.pes, slots=self.scratch_slots
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
        connect(m, flipped(self.bus), engine.bus)

        # The tile in progress is what run control offers to the accessors.
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
        if self.tuning:
            self._tune(m, control, controller, b)
        connect(m, controller.tiles, control.tiles)
        connect(m, control.load, b.tile)
        connect(m, control.load_a, a.load)
        connect(m, control.compute_a, a.tile)
        connect(m, control.compute_c, c.tile)

        # Selections -> leaves -> jobs -> fibers.
        m.d.comb += [
            lookup.streaming.eq(~self.scheme.buffering.b | assembling),
            lookup.unit.eq(assembling),
            lookup.metadata_line.eq(self.scheme.b.base + self.scheme.b.lines - 1),
            lookup.pointers.eq(
                Mux(
                    assembling,
                    self.regions.tile_positions,
                    self.operands.b_pointers + (present.begin_k << 2),
                )
            ),
            lookup.elements.eq(Mux(assembling, self.regions.finished, self.operands.b_elements)),
        ]
        m.submodules.selections = selections = StreamRegister(shape=a.selections.payload.shape())
        connect(m, a.selections, selections.i)
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
            there = Signal()
            m.d.comb += [
                there.eq(~control.loading_b | ~chosen.present | (chosen.index < b.settled)),
                lookup.selections.valid.eq(selections.o.valid & there),
                lookup.selections.payload.eq(chosen),
                selections.o.ready.eq(lookup.selections.ready & there),
                stall_load.eq(selections.o.valid & ~there),
            ]
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
        for n, pe in enumerate(pes):
            connect(m, dispatcher.jobs[n], pe.leaves)
            connect(m, pe.sram_request, sram.read_request[n])
            m.d.comb += pe.sram_response.eq(sram.read_response[n])
            connect(m, pe.fetch_request, fetch.requests[n])
            m.d.comb += pe.fetch_response.eq(fetch.responses[n])
            connect(m, pe.fiber, collector.fibers[n])
        for n in range(2):
            # A and B are loaded one after the other.
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

        # Memory clients.
        readers = [(unit, n) for unit in (a, b) for n in range(len(READ_CLIENTS))]
        requests = [unit.read_request[n] for unit, n in readers]
        answers = [unit.read_data[n] for unit, n in readers]
        requests += [lookup.read_request, fetch.read_request, c.read_request]
        answers += [lookup.read_data, fetch.read_data, c.read_data]
        requests += [controller.read_request[n] for n in range(2)]
        answers += [controller.read_data[n] for n in range(2)]
        requests += [streamer.read_request, reentry.read_request]
        answers += [streamer.read_data, reentry.read_data]
        for n, (request, answer) in enumerate(zip(requests, answers, strict=True)):
            connect(m, request, engine.read_request[n])
            connect(m, engine.read_data[n], answer)
        writers = [(a.write_request, a.write_data), (b.write_request, b.write_data)]
        writers += [(c.write_request[n], c.write_data[n]) for n in range(4)]
        for n, (write_request, write_data) in enumerate(writers):
            connect(m, write_request, engine.write_request[n])
            connect(m, write_data, engine.write_data[n])
        all_written = Signal()
        m.d.comb += [
            c.written.eq(sum(engine.write_idle[2 + n] << n for n in range(4))),
            c.scratch_retired.eq(engine.write_retired[WRITERS.index("c_scratch")]),
            all_written.eq(1),
            engine.halt.eq(self.halt),
            engine.write_begin.eq(self.write_begin),
            engine.write_end.eq(self.write_end),
            self.bus_busy.eq(engine.busy),
        ]
        for idle in engine.write_idle:
            with m.If(~idle):
                m.d.comb += all_written.eq(0)

        # Who is still at work.
        idle_units = [
            a.idle,
            b.idle,
            lookup.idle & ~assembly.busy & ~selections.o.valid,
            leaf_queue.level == 0,
            streamer.idle,
            reentry.idle,
            dispatcher.idle,
            collector.idle,
            fetch.idle,
            c.drained,
            all_written,
            ~popcount([pe.busy for pe in pes]).any(),
        ]
        idle = Signal(len(idle_units))
        for n, unit in enumerate(idle_units):
            m.d.comb += idle[n].eq(unit)
        m.d.comb += [
            control.quiet.eq(idle.all()),
            control.load_idle.eq(b.idle),
            control.load_a_idle.eq(a.idle),
            control.rows_done.eq(c.rows_left == 0),
            self.waiting.eq(control.phase.as_value() | (~idle << 3)),
            self.done.eq(control.done),
            self.error.eq(control.error),
            self.detail.eq(control.detail),
            self.stored.eq(c.stored),
        ]

        # What can go wrong on the way.
        m.submodules.watchdog = watchdog = Watchdog()
        moves = [port.valid & port.ready for port in (*sram.read_request, *sram.write)]
        m.d.comb += watchdog.running.eq((control.phase != Phase.IDLE) & (control.phase != Phase.DONE))
        m.d.sync += watchdog.moved.eq(
            engine.busy | controller.event_tile | Cat(moves).any() | Cat(pe.event_mac for pe in pes).any()
        )
        chosen = lookup.selections
        selected = Signal()
        selected_index = Signal(COORDINATE_WIDTH)
        m.d.sync += [
            selected.eq(chosen.valid & chosen.payload.present & ~assembling),
            selected_index.eq(chosen.payload.index),
        ]
        m.submodules.fiber_check = fibers = FiberCheck(lanes=lanes)
        m.d.comb += [
            fibers.moved.eq(collector.collected.valid & collector.collected.ready),
            fibers.word.eq(collector.collected.payload.word),
            fibers.kind.eq(collector.collected.payload.scratch),
            fibers.low.eq(Mux(assembling, 0, present.begin_j)),
            fibers.high.eq(Mux(assembling, self.scheme.extent[1], present.begin_j + present.size_j)),
        ]
        with m.If(engine.error.valid):
            m.d.comb += control.fault_detail.eq(engine.error.address)
            with m.If(engine.error.outside):
                m.d.comb += control.fault.eq(ERROR_CODES["write_outside"])
            with m.Elif(engine.error.write):
                m.d.comb += control.fault.eq(ERROR_CODES["axi_write"])
            with m.Else():
                m.d.comb += control.fault.eq(ERROR_CODES["axi_read"])
        with m.Elif(selected & (selected_index >= present.size_k)):
            m.d.comb += [control.fault.eq(ERROR_CODES["bad_coordinate"]), control.fault_detail.eq(selected_index)]
        with m.Elif(fibers.wrong):
            m.d.comb += [control.fault.eq(ERROR_CODES["bad_row"]), control.fault_detail.eq(fibers.coordinate)]
        with m.Elif(watchdog.expired):
            m.d.comb += [control.fault.eq(ERROR_CODES["stalled"]), control.fault_detail.eq(self.waiting)]
        with m.Elif(c.overflow.any()):
            m.d.comb += control.fault_detail.eq(c.needed)
            for n, name in reversed(tuple(enumerate(("c_elements", "c_partial", "c_scratch")))):
                with m.If(c.overflow[n]):
                    m.d.comb += control.fault.eq(ERROR_CODES[f"{name}_overflow"])

        self._count(
            m,
            control,
            controller,
            a,
            b,
            lookup,
            leaf_queue,
            streamer,
            reentry,
            dispatcher,
            collector,
            fetch,
            c,
            sram,
            engine,
            pes,
            stall_load,
        )
        return m

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

    def _count(
        self,
        m: Module,
        control: Any,
        controller: Any,
        a: Any,
        b: Any,
        lookup: Any,
        leaf_queue: Any,
        streamer: Any,
        reentry: Any,
        dispatcher: Any,
        collector: Any,
        fetch: Any,
        c: Any,
        sram: Any,
        engine: Any,
        pes: list[Any],
        stall_load: Signal,
    ) -> None:
        """Shows the counters what happens."""
        events = self.events
        reader = {name: engine.read_beat[n] for n, name in enumerate(READERS)}
        writer = {name: engine.write_beat[n] for n, name in enumerate(WRITERS)}
        running = (control.phase != Phase.IDLE) & (control.phase != Phase.DONE)
        computing = control.phase == Phase.COMPUTE
        found = lookup.leaves
        bumped_leaf = (
            found.valid & found.ready & found.payload.present & found.payload.leaf.in_memory & ~found.payload.leaf.unit
        )
        assembling = control.assembling
        steps: dict[str, Any] = {
            "cycles": running,
            "macs": popcount([pe.event_mac for pe in pes]),
            "jobs": dispatcher.event_job,
            "rows": dispatcher.event_row & ~assembling,
            "leaves": dispatcher.event_leaf,
            "tiles_total": controller.event_tile,
            "tiles_skipped": controller.event_skip,
            "tiles_overbooked": control.event_loaded & (b.bumped_elements != 0),
            "bumped_elements": Mux(control.event_loaded, b.bumped_elements, 0),
            "bumped_fetches": Mux(bumped_leaf, found.payload.leaf.length, 0),
            "pe_busy": popcount([pe.busy for pe in pes]),
            "pe_stall_input": popcount([pe.event_stall_input for pe in pes]),
            "pe_stall_output": popcount([pe.event_stall_output for pe in pes]),
            "sram_read_conflicts": sram.read_conflicts,
            "read_a_data": popcount([reader[f"a_{name}"] for name in ELEMENT_CLIENTS]),
            "read_a_meta": popcount([reader["a_positions"], reader["a_pointers"], reader["a_map"]]),
            "read_b_data": popcount(
                [
                    *(reader[f"b_{name}"] for name in ELEMENT_CLIENTS),
                    reader["b_streamed"] & ~assembling,
                    fetch.event_bumped,
                ]
            ),
            "read_b_meta": popcount(
                [reader["b_positions"], reader["b_pointers"], reader["b_map"], reader["lookup"] & ~assembling]
            ),
            "read_c_data": popcount([fetch.event_unit, reader["c_streamed"], reader["b_streamed"] & assembling]),
            "read_c_meta": popcount([reader["c_positions"], reader["lookup"] & assembling]),
            "write_a_meta": writer["a_positions"],
            "write_b_meta": writer["b_positions"],
            "write_c_data": popcount([writer["c_rows"], writer["c_partials"], writer["c_scratch"]]),
            "write_c_meta": writer["c_positions"],
            "stall_load": stall_load,
            "phase_load_b": (control.phase == Phase.LOAD_B) & ~control.loading_a,
            "phase_load_a": control.loading_a,
            "phase_compute": computing,
            "phase_drain": control.phase == Phase.DRAIN,
            "stall_a_empty": computing
            & ~lookup.selections.valid
            & ~lookup.leaves.valid
            & ~leaf_queue.o.valid
            & ~stall_load,
            "stall_lookup": computing & lookup.event_stall,
            "stall_dispatch": dispatcher.event_stall,
            "stall_collect": collector.event_stall,
            "stall_write": c.event_stall,
            "loads_a": control.event_loaded_a,
            "overbooked_a": control.event_loaded_a & (a.bumped_elements != 0),
            "bumped_elements_a": Mux(control.event_loaded_a, a.bumped_elements, 0),
            "hits_a": a.event_resident,
            "bumped_fetches_a": a.event_bumped,
            "buffer_peak_a": a.occupied,
            "buffer_peak_b": b.occupied + streamer.occupied,
            "buffer_peak_c": c.occupied + reentry.occupied,
            "tuning_adjustments": controller.event_adjust if self.tuning else 0,
        }
        for name, step in steps.items():
            m.d.comb += events[name].eq(step)
