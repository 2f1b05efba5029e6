"""The stream rules on the ports of every block that has streams and no larger spec of its own, and what is assumed for them."""

from collections.abc import Callable, Iterator
from typing import Any

from amaranth.hdl import Assume, Cat, Module, Mux, Signal, Value

from rtl.accessor.a import AccessorA
from rtl.accessor.b import AccessorB
from rtl.accessor.c import AccessorC
from rtl.accessor.converted_a import ConvertedA
from rtl.accessor.converted_b import ConvertedB
from rtl.accessor.converted_c import ConvertedC
from rtl.accessor.fiber_reader import READ_CLIENTS
from rtl.accessor.line_packer import LinePacker
from rtl.accessor.lookup import FiberLookup
from rtl.accessor.nonzero_reader import NonzeroReader
from rtl.accessor.row_parts import RowParts
from rtl.accessor.segment_stream import SegmentStreamer
from rtl.buffer.buffet import BuffetControl
from rtl.buffer.tailors import TailorsControl
from rtl.mint.reader.record_reader import RecordReader
from rtl.network.collector import Collector
from rtl.network.dispatcher import Dispatcher
from rtl.network.memory_fetch import MemoryFetch
from rtl.pe.bus_packer import BusPacker
from rtl.pe.column_feeder import ColumnFeeder
from rtl.pe.gustavson import GustavsonPe
from rtl.pe.row_joiner import RowJoiner
from rtl.pe.weight_stationary import WeightStationaryPe
from rtl.pe.weight_stationary_array import WeightStationaryArray
from rtl.regs.converter_map import FORMATS
from rtl.tiling.controller import TilingController
from rtl.tiling.tile_map import TileMap
from rtl.tiling.window_table import WindowTable

from .prove import Proof
from .spec import implies, upto
from .spec_streams import Answer, StreamRules

__all__ = ["present_leaf", "stream_rules"]

MEMORY_ANSWERS = (Answer("memory_read", "memory_response"),)
CLAIM = "every stream output keeps what it offers until it is taken"
ACCESSOR = {"lanes": 2, "address_width": 8, "line_address_width": 4, "burst_beats": 2}
SRAM = Answer("sram_request", "sram_response")


def beats(request: str = "read_request", data: str = "read_data", most: int = 3) -> Answer:
    """A client port of the memory engine: as many beats as were asked for."""
    return Answer(request, data, each="beats", most=most)


def present_leaf(item: Any) -> Value:
    """Position and length of an absent leaf mean nothing."""
    named = Cat(item.leaf.weight, item.leaf.unit, item.leaf.last, item.present)
    return Cat(named, Mux(item.present, Cat(item.leaf.in_memory, item.leaf.position, item.leaf.length), 0))


class AskedRules(StreamRules):
    """The stream rules of a block that is asked by a pulse: ``index`` stays as it is until ``done``, as the contract says."""

    def claims(self, m: Module) -> None:
        super().claims(m)
        block = self.block
        asked, index = Signal(), Signal.like(block.index)
        m.d.sync += [asked.eq(block.ask | (asked & ~block.done)), index.eq(block.index)]
        m.d.comb += Assume(implies(asked, block.index == index))


class FeederRules(StreamRules):
    """The stream rules of what feeds columns: a tile begins while it is idle and no PE asks for anything."""

    def claims(self, m: Module) -> None:
        super().claims(m)
        m.d.comb += Assume(implies(self.block.start, self.block.idle & ~self.block.refill.valid))


class PartsRules(StreamRules):
    """The stream rules of what finds the parts of rows: a tile begins while it is idle, and is as it is till then."""

    def claims(self, m: Module) -> None:
        super().claims(m)
        block = self.block
        m.d.comb += Assume(implies(block.start, block.idle))


def few_entries(settings: Any) -> Value:
    """Of a converter: a matrix of 4 x 4 places, dense or up to 4 entries of COO."""
    widths, source = settings.widths, settings.formats.source
    small = (settings.rows == 4) & (settings.columns == 4) & (widths.row == 2) & (widths.column == 2)
    kinds = (source == FORMATS.index("dense")) | (source == FORMATS.index("coo"))
    return small & kinds & (settings.count <= 4)


def few_places(settings: Any) -> Value:
    """Of a converter: a matrix of 2 x 4 places, whatever it becomes; runs of one bit."""
    widths = settings.widths
    small = (settings.rows == 2) & (settings.columns == 4) & (widths.row == 1) & (widths.column == 2)
    return small & (widths.target_run == 1) & (settings.formats.source == FORMATS.index("csr"))


def rules(make: Callable[..., Any], sizes: dict[str, Any], **assumed: Any) -> Callable[..., StreamRules]:
    """Makes the spec; ``block`` replaces ``make``, where faults are planted."""
    return lambda block=make: StreamRules(block(**sizes), **assumed)


def stream_rules() -> Iterator[Proof]:
    """Proofs; ``depth`` where no invariant was found in reasonable time."""
    yield from _rules_of_parts()
    yield from _rules_of_reader()
    yield from _rules_of_network()
    yield from _rules_of_accessors()
    yield from _rules_of_conversion()
    yield from _rules_of_stationary()


def _rules_of_parts() -> Iterator[Proof]:
    """Of a packer, of buffers and of what reads tile maps and windows."""
    yield Proof(
        "line_packer.streams",
        f"LinePacker: {CLAIM}, or until a flush or restart",
        rules(LinePacker, {"lanes": 2}, withdraw=("flush", "restart")),
        reach=8,
    )
    yield Proof(
        "line_packer_apart.streams",
        f"LinePacker, of fibers that may have lines of their own: {CLAIM}, or until a flush or restart",
        rules(
            LinePacker,
            {"lanes": 2, "has_apart": True},
            withdraw=("flush", "restart"),
            steady=("apart",),
            held=("line",),
        ),
        reach=8,
    )
    yield Proof(
        "buffet_control.streams",
        f"BuffetControl over any memory that answers when asked: {CLAIM}",
        rules(BuffetControl, {"width": 2, "entries": 4, "queue_depth": 2}, answers=MEMORY_ANSWERS),
        reach=10,
    )
    yield Proof(
        "tailors_control.streams",
        f"TailorsControl over any memory that answers when asked: {CLAIM}",
        rules(TailorsControl, {"width": 2, "entries": 4, "queue_depth": 2}, answers=MEMORY_ANSWERS),
        reach=10,
    )
    yield Proof(
        "tile_map.streams",
        f"TileMap, of single cells: {CLAIM}",
        rules(TileMap, {"lanes": 2, "address_width": 12}, steady=("map",), held=("index",), answers=[beats()]),
        depth=12,
    )
    yield Proof(
        "tile_map_ranged.streams",
        f"TileMap, of rectangles: {CLAIM}",
        rules(
            TileMap,
            {"lanes": 2, "address_width": 12, "ranged": True},
            steady=("map", "stride"),
            withdraw=("ask",),
            answers=[beats()],
        ),
        depth=12,
    )
    yield Proof(
        "window_table.streams",
        f"WindowTable: {CLAIM}",
        lambda: AskedRules(WindowTable(lanes=2, address_width=12), steady=("table_address",), answers=[beats()]),
        depth=12,
    )


def _rules_of_reader() -> Iterator[Proof]:
    yield Proof(
        "record_reader.streams",
        f"RecordReader, int8, records of any bits: {CLAIM}",
        rules(
            RecordReader,
            {"lanes": 1, "address_width": 8, "value": "int8", "pending": 2},
            steady=("base", "coordinate_bits"),
            within={
                "request": lambda port: upto(port.payload.beats, 1, 3),
                "coordinate_bits": lambda port: upto(port, 1, 32),
            },
            answers=[beats()],
        ),
        depth=14,
    )


def _rules_of_network() -> Iterator[Proof]:
    """Of what stands between accessors and PEs, and of the tiling controller."""
    yield Proof(
        "collector.streams",
        f"Collector: {CLAIM}",
        rules(Collector, {"pes": 2, "lanes": 1, "depth": 2, "scratch_slots": 2}),
        depth=12,
    )
    yield Proof(
        "memory_fetch.streams",
        f"MemoryFetch: {CLAIM}",
        rules(
            MemoryFetch,
            {
                "pes": 2,
                "radix": 2,
                "lanes": 1,
                "address_width": 8,
                "leaf_lines": 2,
                "pending": 2,
                "line_address_width": 2,
                "scratch_slots": 2,
                "kept_runs": 2,
                "kept_lines": 4,
            },
            steady=("places",),
            answers=[SRAM],
        ),
        reach=10,
    )
    yield Proof(
        "dispatcher.streams",
        f"Dispatcher of 2 PEs, radix 2, with partial fibers, PEs that stay ready for a whole job: {CLAIM}",
        rules(
            Dispatcher,
            {"pes": 2, "radix": 2, "address_width": 8, "scratch_slots": 1},
            steady=("with_partials", "columns", "partial_region"),
            patient=("jobs.0", "jobs.1"),
        ),
        depth=12,
    )
    yield Proof(
        "fiber_lookup.streams",
        f"FiberLookup: {CLAIM}",
        rules(
            FiberLookup,
            {"lanes": 2, "address_width": 8, "line_address_width": 4, "pending": 8},
            steady=("streaming", "unit", "metadata_line", "entry", "entries", "origin", "pointers", "elements"),
            answers=[SRAM, beats()],
            meant={"leaves": present_leaf},
        ),
        depth=12,
    )
    yield Proof(
        "segment_streamer.streams",
        f"SegmentStreamer: {CLAIM}",
        rules(
            SegmentStreamer,
            {"lanes": 2, "address_width": 8, "line_address_width": 3, "leaf_lines": 1, "pending": 2, "rows": 2},
            steady=("base", "lines", "units", "origin"),
            answers=[beats()],
        ),
        depth=12,
    )
    yield Proof(
        "tiling_controller.streams",
        f"TilingController: {CLAIM}",
        rules(
            TilingController,
            {"lanes": 2, "address_width": 8},
            steady=("settings",),
            answers=[beats(f"read_request.{n}", f"read_data.{n}") for n in range(2)],
        ),
        depth=20,
    )


def _rules_of_accessors() -> Iterator[Proof]:
    """Of the accessors, of what finds parts of rows for one, and of a PE."""
    settings = ("base", "lines", "pointers", "positions", "elements")
    reads = [beats(f"read_request.{n}", f"read_data.{n}") for n in range(len(READ_CLIENTS))]
    yield Proof(
        "accessor_a.streams",
        f"AccessorA: {CLAIM}",
        rules(AccessorA, ACCESSOR, steady=("buffering", *settings), answers=[SRAM, *reads]),
        depth=21,
    )
    yield Proof(
        "accessor_a_parts.streams",
        f"AccessorA that hands out parts of rows: {CLAIM}",
        rules(AccessorA, {**ACCESSOR, "parts": True}, steady=("buffering", *settings), answers=[SRAM, *reads]),
        depth=21,
    )
    yield Proof(
        "accessor_b.streams",
        f"AccessorB: {CLAIM}",
        rules(AccessorB, ACCESSOR, steady=("fifo_lines", *settings), answers=reads),
        depth=18,
    )
    yield Proof(
        "accessor_c.streams",
        f"AccessorC: {CLAIM}",
        rules(
            AccessorC,
            {**ACCESSOR, "scratch_slots": 2},
            steady=("buffering", "base", "lines", "scratch_base", "scratch_lines", "regions", "whole_rows"),
            answers=[SRAM, beats()],
        ),
        depth=10,
    )
    yield Proof(
        "row_parts.streams",
        f"RowParts, up to 3 rows and steps: {CLAIM}",
        lambda block=RowParts: PartsRules(
            block(lanes=1, address_width=8),
            steady=("first", "rows", "steps", "stride", "positions"),
            within={
                "rows": lambda port: upto(port, 1, 3),
                "steps": lambda port: upto(port, 1, 3),
                "stride": lambda port: port[0] == 0,
            },
            answers=[beats()],
        ),
        depth=20,
    )
    yield Proof(
        "gustavson_pe.streams",
        f"GustavsonPe, radix 2: {CLAIM}",
        rules(
            GustavsonPe,
            {
                "radix": 2,
                "lanes": 2,
                "line_address_width": 3,
                "address_width": 16,
                "value": "int32",
                "leaf_lines": 1,
                "queue_lines": 1,
                "jobs": 2,
                "sram_pending": 2,
            },
            answers=[SRAM, Answer("fetch_request", "fetch_response", each="lines", most=3)],
        ),
        depth=20,
    )


def _rules_of_conversion() -> Iterator[Proof]:
    """Of A and B on their way in, and of C on its way out."""
    sizes = {"beat_bits": 128, "address_width": 13, "value": "int8", "form": "serial_chain"}
    steady = ("enable", "allowed", "modes", "settings")
    answers = [beats(f"read_request.{n}", f"read_data.{n}") for n in range(len(ConvertedA.READERS))]
    yield Proof(
        "converted_a.streams",
        f"ConvertedA, int8: {CLAIM}",
        rules(ConvertedA, sizes, steady=steady, answers=answers),
        depth=12,
    )
    yield Proof(
        "converted_b.streams",
        f"ConvertedB, int8, of 4 x 4 places, dense or in COO: {CLAIM}",
        rules(
            ConvertedB,
            {**sizes, "lanes": 2},
            steady=steady,
            answers=answers,
            within={"settings": few_entries},
        ),
        depth=22,
    )
    yield Proof(
        "converted_c.streams",
        f"ConvertedC, int8, of 2 x 4 places: {CLAIM}",
        rules(
            ConvertedC,
            {**sizes, "lanes": 2, "burst_beats": 1},
            steady=("settings",),
            within={"settings": few_places},
        ),
        depth=22,
    )


def _rules_of_stationary() -> Iterator[Proof]:
    """Of the weight-stationary array and what feeds it."""
    pe = {"words": 3, "vector": 1, "entries": 4, "region": 2, "index_width": 3, "value": "int8"}
    yield Proof(
        "bus_packer.streams",
        f"BusPacker, 5 words, 2 MACs: {CLAIM}",
        rules(
            BusPacker,
            {"words": 5, "vector": 2, "lanes": 2},
            steady=("acf", "rows", "columns"),
            within={"i": lambda port: upto(port.payload.count, 0, 2), "acf": lambda port: upto(Value.cast(port), 0, 2)},
        ),
        reach=10,
    )
    yield Proof(
        "weight_stationary_pe.streams",
        f"WeightStationaryPe of one MAC: {CLAIM}",
        rules(WeightStationaryPe, pe),
        depth=28,
    )
    yield Proof(
        "weight_stationary_array.streams",
        f"WeightStationaryArray of 2 PEs of one MAC: {CLAIM}",
        rules(WeightStationaryArray, {"pes": 2, **pe}),
        depth=28,
    )
    sizes = {"lanes": 2, "address_width": 8, "line_address_width": 4}
    yield Proof(
        "nonzero_reader.streams",
        f"NonzeroReader: {CLAIM}",
        rules(NonzeroReader, sizes, steady=("plain",), answers=[SRAM, beats()]),
        depth=14,
    )
    feeder = {"pes": 2, "entries": 4, "region": 2, "address_width": 8}
    yield Proof(
        "column_feeder.streams",
        f"ColumnFeeder of 2 PEs: {CLAIM}",
        lambda block=ColumnFeeder: FeederRules(
            block(**feeder), steady=("columns", "begin_j", "begin_k", "size_k"), answers=[Answer("wanted", "leaves")]
        ),
        depth=14,
    )
    yield Proof(
        "row_joiner.streams",
        f"RowJoiner of 2 PEs: {CLAIM}",
        rules(RowJoiner, {"pes": 2, "lanes": 2, "value": "int8"}),
        depth=14,
    )
