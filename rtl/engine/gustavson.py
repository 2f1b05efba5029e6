"""Gustavson engine: rows of C are merged from the fibers of B that the nonzeros of A's rows select and scale."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import connect, flipped

from ..accessor.lookup import FiberLookup
from ..accessor.segment_stream import SegmentStreamer
from ..lib.counter import popcount
from ..lib.passed import connected, passed
from ..lib.stream import StreamQueue
from ..lib.unit import ReadClient
from ..network.collector import Collector
from ..network.dispatcher import Dispatcher
from ..network.memory_fetch import MemoryFetch, leaf_carries
from ..pe.gustavson import GustavsonPe
from ..storage import byte_count
from .signature import Engine

__all__ = ["ROWS_OF_A_PE", "GustavsonEngine"]

# Rows under way for each PE: so many short ones are merged while a long one holds up those behind it, which leave in
# row order.
ROWS_OF_A_PE = 32
# Requests of the PEs for lines of memory that are under way.
FETCHES = 64


class GustavsonEngine(Engine):
    """Computes rows of C from fibers of B (design: intra-tile dataflow ``gustavson``).

    ::

        selections -> FiberLookup -> leaves -> SegmentStreamer --> Dispatcher -> GustavsonPe x pes -> Collector -> fibers
                                            partials -> SegmentStreamer -->|          ^
                                            scratch_results -------------->|          +-- MemoryFetch

    A selection becomes a leaf: a fiber of B and what it is scaled by. Leaves that lie in memory are streamed into
    ``b_region`` ahead of their use, partial rows into ``c_region``. A row's leaves make a merge job for a free PE,
    or several where they are more than ``radix``; fibers leave in row order. Which fibers of a long row come back from
    scratch memory the dispatcher says.

    Ports of the SRAM: a PE each, the lookup and the memory fetch behind them, for reading; B's streamer and that of partial rows
    for writing.

    Timing
    ------
    One selection and one leaf a cycle; each PE takes one nonzero a cycle (:class:`GustavsonPe`).
    """

    READERS = (
        ReadClient("lookup", 64, "read_b_meta", assembling="read_c_meta", turn=1),
        ReadClient("fetch", 128, turn=1, records="b"),
        ReadClient("b_streamed", 128, "read_b_data", assembling="read_c_data", turn=3, records="b"),
        ReadClient("c_streamed", 128, "read_c_data", turn=3),
    )
    ACTIVITY = (
        "b_lookup",
        "leaf_queue",
        "b_streamer",
        "c_reentry",
        "dispatcher",
        "collector",
        "memory_fetch",
        "processing_elements",
    )
    SRAM_WRITES = 2

    @property
    def sram_reads(self) -> int:
        return self.pes + 2

    @property
    def sram_priority(self) -> int:
        # Every leaf waits for the look-up, and its entries lie side by side in one bank; PEs have lines to go on with.
        return self.pes

    @property
    def carries(self) -> int:
        return leaf_carries(self.pes, self.radix) if self.packed else 1

    @property
    def event_widths(self) -> Mapping[str, int]:
        single = (
            "rows",
            "stall_a_empty",
            "stall_lookup",
            "stall_dispatch",
            "stall_collect",
            # Lines of packed records are not beats: their readers count.
            "read_scratch",
            *(() if self.packed else ("read_b_data", "read_c_data")),
        )
        of_pes = ("macs", "merged", "pe_busy", "pe_stall_input", "pe_stall_output")
        lines = self.line_address_width + 1
        return {
            **dict.fromkeys(single, 1),
            **dict.fromkeys(of_pes, self.pes.bit_length()),
            "jobs": 2,
            "leaves": 2,
            "bumped_fetches": 32,
            "buffer_peak_b": lines,
            "buffer_peak_c": lines,
        }

    def build(self, platform: Any) -> Module:
        m = Module()
        sizes = {"lanes": self.lanes, "address_width": self.address_width}
        law, rows = self.line_address_width, ROWS_OF_A_PE * self.pes
        m.submodules.fiber_lookup = lookup = FiberLookup(line_address_width=law, **sizes)
        # The leaves of the next rows are at hand when a PE gets free, however long the nonzeros of A took.
        leaves = 2 * self.radix
        m.submodules.leaf_queue = leaf_queue = StreamQueue(
            shape=lookup.leaves.payload.shape(), depth=leaves, block_memory=leaves > 16
        )
        of_region = {"line_address_width": law, "leaf_lines": self.leaf_lines, "rows": rows}
        m.submodules.segment_streamer = streamer = SegmentStreamer(**of_region, **sizes)
        m.submodules.partial_streamer = reentry = SegmentStreamer(**of_region, **sizes)
        m.submodules.dispatcher = dispatcher = Dispatcher(
            pes=self.pes, radix=self.radix, address_width=self.address_width, scratch_slots=self.scratch_slots
        )
        m.submodules.collector = collector = Collector(
            pes=self.pes, lanes=self.lanes, depth=rows, scratch_slots=self.scratch_slots
        )
        m.submodules.memory_fetch = fetch = MemoryFetch(
            pes=self.pes,
            radix=self.radix,
            leaf_lines=self.leaf_lines,
            pending=FETCHES,
            packed=self.packed,
            line_address_width=law,
            scratch_slots=self.scratch_slots,
            **sizes,
        )
        readers = (lookup, fetch, streamer, reentry)
        for n, client in enumerate(readers):
            m.d.comb += connected(client.read_request, self.read_request[n])
            connect(m, client.read_data, flipped(self.read_data[n]))
        for n, client in enumerate((streamer, reentry)):
            connect(m, client.sram_write, flipped(self.sram_write[n]))
        pes = [self._pe(m, n, dispatcher, fetch, collector) for n in range(self.pes)]

        connect(m, flipped(self.selections), lookup.selections)
        connect(m, lookup.sram_request, flipped(self.sram_request[self.pes]))
        connect(m, fetch.sram_request, flipped(self.sram_request[self.pes + 1]))
        connect(m, lookup.leaves, leaf_queue.i)
        connect(m, leaf_queue.o, streamer.leaves)
        connect(m, streamer.streamed, dispatcher.leaves)
        connect(m, flipped(self.scratch_results), dispatcher.scratch_results)
        connect(m, dispatcher.tickets, collector.tickets)
        connect(m, collector.collected, flipped(self.fibers))
        row_done = Signal()
        word = self.fibers.payload
        m.d.comb += [
            *(getattr(lookup, name).eq(self.fiber_table[name]) for name in self.fiber_table.shape().members),
            lookup.sram_response.eq(self.sram_response[self.pes]),
            self.looked_up.eq(lookup.idle),
            row_done.eq(self.fibers.valid & self.fibers.ready & word.word.last & ~word.scratch),
            streamer.base.eq(self.b_region.base),
            streamer.lines.eq(self.b_region.lines),
            streamer.units.eq(self.assembling),
            streamer.row_done.eq(row_done),
            dispatcher.merged_out.eq(collector.merged_out),
            dispatcher.with_partials.eq(self.tile.partial_in),
            dispatcher.columns.eq(self.tile.size_j),
            dispatcher.partial_region.eq(self.partial_region),
            fetch.places.eq(self.scratch_places),
            fetch.sram_response.eq(self.sram_response[self.pes + 1]),
            *passed(self, collector, "scratch_open"),
            self.merged_out.eq(collector.merged_out),
        ]
        self._reenter(m, reentry, dispatcher, row_done)
        busy = popcount([pe.busy for pe in pes])
        leaves_out = lookup.leaves
        leaf = leaves_out.payload.leaf
        bumped = leaves_out.valid & leaves_out.ready & leaves_out.payload.present & leaf.in_memory & ~leaf.unit
        shown = {
            "b_lookup": ~lookup.idle,
            "leaf_queue": leaf_queue.level != 0,
            "b_streamer": ~streamer.idle,
            "c_reentry": ~reentry.idle,
            "dispatcher": ~dispatcher.idle,
            "collector": ~collector.idle,
            "memory_fetch": ~fetch.idle,
            "processing_elements": busy.any(),
        }
        m.d.comb += [self.active[name].eq(value) for name, value in shown.items()]
        counted = {
            "macs": popcount([pe.event_mac for pe in pes]),
            "merged": popcount([pe.event_merged for pe in pes]),
            "jobs": dispatcher.event_job,
            "rows": dispatcher.event_row,
            "leaves": dispatcher.event_leaf,
            "bumped_fetches": Mux(bumped, leaf.length, 0),
            "pe_busy": busy,
            "pe_stall_input": popcount([pe.event_stall_input for pe in pes]),
            "pe_stall_output": popcount([pe.event_stall_output for pe in pes]),
            "read_b_data": fetch.event_bumped,
            "read_c_data": fetch.event_unit,
            "read_scratch": fetch.event_scratch,
            "stall_a_empty": ~self.selections.valid & ~leaves_out.valid & ~leaf_queue.o.valid,
            "stall_lookup": lookup.event_stall,
            "stall_dispatch": dispatcher.event_stall,
            "stall_collect": collector.event_stall,
            "buffer_peak_b": streamer.occupied,
            "buffer_peak_c": reentry.occupied,
        }
        m.d.comb += [self.counted[name].eq(value) for name, value in counted.items() if name in self.event_widths]
        return m

    def _pe(self, m: Module, n: int, dispatcher: Dispatcher, fetch: MemoryFetch, collector: Collector) -> GustavsonPe:
        """PE ``n`` between dispatcher and collector, with its ways to SRAM and memory."""
        pe = GustavsonPe(
            radix=self.radix,
            lanes=self.lanes,
            line_address_width=self.line_address_width,
            address_width=self.address_width,
            value=self.value,
            leaf_lines=self.leaf_lines,
            queue_lines=self.queue_lines,
        )
        m.submodules[f"pe{n}"] = pe
        connect(m, dispatcher.jobs[n], pe.leaves)
        connect(m, pe.sram_request, flipped(self.sram_request[n]))
        connect(m, pe.fetch_request, fetch.requests[n])
        connect(m, pe.fiber, collector.fibers[n])
        m.d.comb += [pe.sram_response.eq(self.sram_response[n]), pe.fetch_response.eq(fetch.responses[n])]
        return pe

    def _reenter(self, m: Module, reentry: SegmentStreamer, dispatcher: Dispatcher, row_done: Signal) -> None:
        """Partial rows from memory pass ``c_region``, one for each row of the tile."""
        partial = self.partials.payload
        row = reentry.leaves.payload
        back = reentry.streamed
        m.d.comb += [
            reentry.base.eq(self.c_region.base),
            reentry.lines.eq(self.c_region.lines),
            reentry.units.eq(1),
            reentry.origin.eq(byte_count(self.partial_region)),
            reentry.row_done.eq(row_done & self.tile.partial_in & ~self.assembling),
            reentry.leaves.valid.eq(self.partials.valid),
            self.partials.ready.eq(reentry.leaves.ready),
            row.present.eq(1),
            row.leaf.unit.eq(1),
            row.leaf.last.eq(~partial.more),
            dispatcher.partials.valid.eq(back.valid),
            back.ready.eq(dispatcher.partials.ready),
            dispatcher.partials.payload.more.eq(~back.payload.leaf.last),
        ]
        for name in ("in_memory", "position", "length"):
            m.d.comb += [
                row.leaf[name].eq(partial[name]),
                dispatcher.partials.payload[name].eq(back.payload.leaf[name]),
            ]
