"""Runs every cocotb bench on small builds of its block, under Verilator and under Icarus.

A small block is compiled by Verilator in the time of its whole bench under Icarus: there Verilator is a long run.
``FIBERLOOM_LONG_BENCHES=1`` adds these, larger builds and longer stimuli. ``FIBERLOOM_COVERAGE_FOLDER`` names a folder in which
each run leaves what it hit of its testplan, under both simulators (``make coverage``).
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from gen.design import Design, load_design
from gen.elaborate import accelerator, converter
from rtl.accessor.a import AccessorA
from rtl.accessor.b import AccessorB
from rtl.accessor.c import AccessorC
from rtl.accessor.converted_a import ConvertedA
from rtl.accessor.converted_b import ConvertedB
from rtl.accessor.converted_c import ConvertedC
from rtl.accessor.lookup import FiberLookup
from rtl.accessor.row_parts import RowParts
from rtl.accessor.segment_stream import SegmentStreamer
from rtl.arith.common import BFLOAT16
from rtl.arith.fp_add import FpAdd
from rtl.arith.fp_multiply import FpMultiply
from rtl.arith.int_add import IntAdd
from rtl.arith.int_multiply import IntMultiply
from rtl.buffer.banked_sram import BankedSram
from rtl.buffer.buffet import Buffet
from rtl.buffer.tailors import TailorsBuffer
from rtl.engine.gustavson import GustavsonEngine
from rtl.engine.weight_stationary import WeightStationaryEngine
from rtl.lib.arbiter import RoundRobinArbiter
from rtl.lib.stream import StreamQueue, StreamRegister, StreamSkid
from rtl.memory.memory_engine import MemoryEngine
from rtl.mint.bit_packer import BitPacker
from rtl.mint.bit_unpacker import BitUnpacker
from rtl.mint.block_flags import BlockFlags
from rtl.mint.cluster_counter import ClusterCounter
from rtl.mint.divmod import ReciprocalDivmod, RestoringDivmod
from rtl.mint.host.host_array import HostArray
from rtl.mint.prefix_sum import FORMS
from rtl.mint.reader.line_range import LineRange
from rtl.mint.reader.record_reader import RecordReader
from rtl.mint.reader.shared_beats import SharedBeats
from rtl.mint.record_packer import RecordPacker
from rtl.mint.sorter import Sorter
from rtl.mint.tree_builder import TreeBuilder
from rtl.network.collector import Collector
from rtl.network.dispatcher import Dispatcher
from rtl.network.memory_fetch import MemoryFetch
from rtl.pe.bus_packer import BusPacker
from rtl.pe.combiner import CombinerCascade, PairCombiner
from rtl.pe.gustavson import GustavsonPe
from rtl.pe.merge_tree import MergeTree
from rtl.pe.weight_stationary_array import WeightStationaryArray
from rtl.regs.axi_lite import RegisterFile
from rtl.regs.counters import CounterBank
from rtl.regs.signature import DESIGN_PARAMETERS
from rtl.tiling.assembly import AssemblyPass
from rtl.tiling.controller import TilingController
from rtl.tiling.run_control import RunControl
from rtl.tiling.scheme_check import NAMED, SchemeCheck
from rtl.tiling.tile_map import TileMap
from rtl.tiling.tuning import TuningUnit
from rtl.tiling.window_table import WindowTable
from sw.runtime.simulation.sources import accelerator_sources, converter_sources
from tests.rtl.engine.inner_product import InnerProductEngine
from tests.tools import LONG_RUNS, long_run, needs_tool, set_to_one
from tests.verif.simulators import NEEDS
from verif.coverage.collected import COLLECT, Run, keep
from verif.runner import SIMULATORS, run_bench, verilog_of

LONG = set_to_one(LONG_RUNS)


@dataclass(frozen=True)
class Entry:
    """A bench and the build of the block that it runs on."""

    bench: str
    block: Callable[[], Any]
    environment: dict[str, str] = field(default_factory=dict)
    long: bool = False
    # The block's Verilog, where it is that of a whole design, which is kept: other tests simulate the same.
    verilog: Callable[[], dict[str, str]] | None = None
    # Tests that Icarus runs unless runs may be long: it takes ten seconds for what Verilator does in one.
    icarus: str | None = None


PAIRS = {"FIBERLOOM_PAIRS": "200000" if LONG else "2000"}


def pe(value: str, **sizes: int) -> GustavsonPe:
    return GustavsonPe(value=value, line_address_width=10, address_width=40, queue_lines=2, **sizes)


def stationary(value: str, **sizes: int) -> WeightStationaryArray:
    return WeightStationaryArray(value=value, vector=4, entries=8, region=4, index_width=8, **sizes)


def whole(value: str) -> Design:
    return load_design("tiny", [f"pe.value={value}"])


def engine() -> MemoryEngine:
    return MemoryEngine(
        data_width=64, address_width=32, readers=3, writers=2, outstanding=4, burst_beats=16, reader_depth=32
    )


def registers() -> RegisterFile:
    return RegisterFile(address_width=40, parameters=dict.fromkeys(DESIGN_PARAMETERS, 40))


def counters() -> CounterBank:
    widths = {"MACS": 8, "PE_BUSY": 30, "BUFFER_PEAK_A": 12, "BUFFER_PEAK_B": 3}
    return CounterBank(increments=widths, width=34)


def run_control(**sizes: bool) -> RunControl:
    offsets = {name: 0x40 + 4 * n for n, name in enumerate(NAMED)}
    return RunControl(check=SchemeCheck(lanes=2, sram_lines=64, offsets=offsets, **sizes))


CONVERTED_C = {"beat_bits": 128, "address_width": 40}
ACCESSOR = {"lanes": 2, "address_width": 40, "line_address_width": 7, "burst_beats": 8}
ENGINE = {
    "pes": 2,
    "radix": 4,
    "lanes": 2,
    "address_width": 40,
    "line_address_width": 6,
    "leaf_lines": 2,
    "queue_lines": 4,
    "scratch_slots": 2,
    "value": "int32",
}

ENTRIES = {
    "stream_queue": Entry("bench_stream_queue", lambda: StreamQueue(shape=16, depth=4)),
    "stream_queue_odd": Entry("bench_stream_queue", lambda: StreamQueue(shape=9, depth=5, block_memory=True)),
    "stream_skid": Entry("bench_stream_queue", lambda: StreamSkid(shape=8)),
    "stream_register": Entry("bench_stream_queue", lambda: StreamRegister(shape=8)),
    "fp_add": Entry("bench_arith", FpAdd, PAIRS),
    "fp_multiply": Entry("bench_arith", FpMultiply, PAIRS),
    "fp_add_flush": Entry("bench_arith", lambda: FpAdd(flush_subnormals=True), PAIRS, long=True),
    "fp_multiply_flush": Entry("bench_arith", lambda: FpMultiply(flush_subnormals=True), PAIRS, long=True),
    "fp_add_bf16": Entry("bench_arith", lambda: FpAdd(format=BFLOAT16), PAIRS, long=True),
    "fp_multiply_bf16": Entry("bench_arith", lambda: FpMultiply(format=BFLOAT16), PAIRS, long=True),
    "int_add_int8": Entry("bench_arith", lambda: IntAdd(width=8, saturate=True), PAIRS, long=True),
    "int_multiply_int16": Entry("bench_arith", lambda: IntMultiply(width=16), PAIRS, long=True),
    "int_add": Entry("bench_arith", IntAdd, PAIRS),
    "int_multiply": Entry("bench_arith", lambda: IntMultiply(saturate=True), PAIRS),
    "banked_sram": Entry(
        "bench_banked_sram", lambda: BankedSram(lines=32, banks=4, lanes=2, read_ports=3, write_ports=2, priority=1)
    ),
    "banked_sram_one_bank": Entry(
        "bench_banked_sram", lambda: BankedSram(lines=16, banks=1, lanes=3, read_ports=2, write_ports=2)
    ),
    "gustavson_pe_int32": Entry("bench_gustavson_pe", lambda: pe("int32", radix=4, lanes=2, leaf_lines=2)),
    "gustavson_pe_fp32": Entry(
        "bench_gustavson_pe",
        lambda: pe("fp32", radix=8, lanes=4, leaf_lines=1),
        icarus=r"idle=random|reset",
    ),
    "collector": Entry("bench_collector", lambda: Collector(pes=3, lanes=2, depth=4, scratch_slots=2)),
    "dispatcher": Entry("bench_dispatcher", lambda: Dispatcher(pes=3, radix=4, address_width=40, scratch_slots=2)),
    "dispatcher_small": Entry(
        "bench_dispatcher", lambda: Dispatcher(pes=1, radix=2, address_width=40, scratch_slots=1), long=True
    ),
    "memory_fetch": Entry(
        "bench_memory_fetch",
        lambda: MemoryFetch(
            pes=3, radix=4, lanes=2, address_width=40, leaf_lines=4, pending=8, line_address_width=7, scratch_slots=2
        ),
    ),
    "buffet": Entry("bench_buffet", lambda: Buffet(width=16, entries=8)),
    "tailors": Entry("bench_tailors", lambda: TailorsBuffer(width=16, entries=8, index_width=5)),
    "memory_engine": Entry("bench_memory_engine", engine),
    "regs": Entry("bench_regs", registers, icarus=r"stalls=True|_run|reset"),
    "accelerator_int32": Entry(
        "bench_accelerator",
        lambda: accelerator(whole("int32")),
        {"FIBERLOOM_VALUE": "int32"},
        verilog=lambda: accelerator_sources(whole("int32")),
        icarus=r"overbooked|soft.*60|a_elements.*SLVERR",
    ),
    "accelerator_fp32": Entry(
        "bench_accelerator",
        lambda: accelerator(whole("fp32")),
        {"FIBERLOOM_VALUE": "fp32"},
        verilog=lambda: accelerator_sources(whole("fp32")),
        icarus=r"windows",
    ),
    "gustavson_engine": Entry(
        "bench_engine", lambda: GustavsonEngine(**ENGINE), icarus=r"=random/streaming=False|reset"
    ),
    "inner_product_engine": Entry("bench_engine", lambda: InnerProductEngine(**ENGINE), {"FIBERLOOM_B_FIBERS": "j"}),
    "weight_stationary_engine": Entry(
        "bench_stationary_engine",
        lambda: WeightStationaryEngine(**ENGINE | {"pes": 3}, vector=2, entries=8),
        icarus=r"random.*bumped|columns|pieces.*random|reset",
    ),
    "weight_stationary_engine_dense": Entry(
        "bench_stationary_engine",
        lambda: WeightStationaryEngine(**ENGINE | {"pes": 2}, vector=4, entries=8, acf="dense"),
        icarus=r"random.*bumped|without_data|reset",
    ),
    "fiber_lookup": Entry(
        "bench_fiber_lookup", lambda: FiberLookup(lanes=2, address_width=40, line_address_width=6, pending=8)
    ),
    "tiling_controller": Entry(
        "bench_tiling_controller",
        lambda: TilingController(lanes=2, address_width=40),
        icarus=r"every_order|every_shape.*random|=j.*random|reset",
    ),
    "run_control": Entry("bench_run_control", run_control),
    "run_control_tuning": Entry("bench_run_control", lambda: run_control(tuning=True)),
    "accessor_a": Entry(
        "bench_accessor_a", lambda: AccessorA(**ACCESSOR), icarus=r"random/kept=True/rows_outside=True|skipped|reset"
    ),
    "accessor_a_parts": Entry(
        "bench_accessor_a",
        lambda: AccessorA(**ACCESSOR, parts=True),
        icarus=r"random/kept=True/rows_outside=False|reset",
    ),
    "converted_a": Entry(
        "bench_converted_a",
        lambda: ConvertedA(beat_bits=128, address_width=40, value="int32", form="work_efficient"),
        icarus=r"kind=zvc/backpressure=random|faults",
    ),
    "converted_b": Entry(
        "bench_converted_b",
        lambda: ConvertedB(beat_bits=256, address_width=40, value="int32", form="work_efficient", lanes=4),
        icarus=r"kind=(zvc|coo)/backpressure=random|faults|not_converted",
    ),
    "converted_b_two": Entry(
        "bench_converted_b",
        lambda: ConvertedB(beat_bits=128, address_width=40, value="int16", form="serial_chain", lanes=4),
        icarus=r"kind=rlc/backpressure=random|=dense/backpressure=none",
    ),
    "converted_c": Entry(
        "bench_converted_c",
        lambda: ConvertedC(**CONVERTED_C, lanes=2, burst_beats=4, value="int32", form="work_efficient"),
        icarus=r"matrix/kind=(zvc|coo)/backpressure=random|rows_are_flushed/kind=(rlc|dense).*random|afterwards|rooms",
    ),
    "converted_c_four": Entry(
        "bench_converted_c",
        lambda: ConvertedC(**CONVERTED_C, lanes=4, burst_beats=8, value="bf16", form="serial_chain"),
        icarus=r"matrix/kind=(rlc|dense)/backpressure=random|shapes/kind=coo|runs|columns|a_word|wrong|reset.*coo",
    ),
    "accessor_b": Entry("bench_accessor_b", lambda: AccessorB(**ACCESSOR), icarus=r"random/lines=18|list.*none|reset"),
    "accessor_c": Entry("bench_accessor_c", lambda: AccessorC(scratch_slots=4, **ACCESSOR)),
    "row_parts": Entry("bench_row_parts", lambda: RowParts(lanes=2, address_width=40)),
    "row_parts_one_lane": Entry("bench_row_parts", lambda: RowParts(lanes=1, address_width=16)),
    "assembly": Entry("bench_assembly", AssemblyPass),
    "arbiter": Entry("bench_arbiter", lambda: RoundRobinArbiter(count=5)),
    "counter_bank": Entry("bench_counter_bank", counters),
    "tuning_unit": Entry("bench_tuning_unit", lambda: TuningUnit(lanes=2, line_address_width=9)),
    "tile_map": Entry("bench_tile_map", lambda: TileMap(lanes=2, address_width=40)),
    "tile_map_ranged": Entry(
        "bench_tile_map", lambda: TileMap(lanes=2, address_width=40, ranged=True), icarus=r"=0.02/|without|forgotten"
    ),
    "window_table": Entry("bench_window_table", lambda: WindowTable(lanes=2, address_width=40)),
    "merge_tree": Entry("bench_merge_tree", lambda: MergeTree(radix=8, jobs=4)),
    "merge_tree_two": Entry("bench_merge_tree", lambda: MergeTree(radix=2, jobs=2)),
    "pair_combiner": Entry("bench_combiner", lambda: PairCombiner(value="int32")),
    "combiner_cascade_int32": Entry("bench_combiner", lambda: CombinerCascade(radix=4, value="int32")),
    "combiner_cascade_fp32": Entry(
        "bench_combiner", lambda: CombinerCascade(radix=8, value="fp32"), {"FIBERLOOM_VALUE": "fp32"}
    ),
    "converter": Entry(
        "bench_converter",
        lambda: converter(load_design("tiny")),
        verilog=lambda: converter_sources(load_design("tiny")),
        icarus="nothing_stored|trees.*calm|soft_reset",
    ),
    "bit_unpacker": Entry("bench_bit_unpacker", lambda: BitUnpacker(beat_bits=64, lanes=4, width=40)),
    "bit_packer": Entry("bench_bit_packer", lambda: BitPacker(beat_bits=64, lanes=4, width=40)),
    "record_packer": Entry("bench_record_packer", lambda: RecordPacker(lanes=2, value="bf16")),
    "record_packer_one_lane": Entry("bench_record_packer", lambda: RecordPacker(lanes=1, value="int32_saturate")),
    "record_reader": Entry(
        "bench_record_reader", lambda: RecordReader(lanes=2, address_width=24, value="bf16", pending=4)
    ),
    "record_reader_carries": Entry(
        "bench_record_reader",
        lambda: RecordReader(lanes=1, address_width=40, value="int32_saturate", carries=5, pending=8),
    ),
    "line_range": Entry("bench_line_range", lambda: LineRange(lanes=2, address_width=40)),
    "line_range_carries": Entry("bench_line_range", lambda: LineRange(lanes=8, address_width=20, carries=5)),
    "shared_beats": Entry("bench_shared_beats", lambda: SharedBeats(data_width=64)),
    "shared_beats_carries": Entry("bench_shared_beats", lambda: SharedBeats(data_width=16, carries=5)),
    "divmod_restoring": Entry(
        "bench_divmod", lambda: RestoringDivmod(lanes=2, width=24, divisor_width=12, bits_per_stage=2)
    ),
    "divmod_reciprocal": Entry("bench_divmod", lambda: ReciprocalDivmod(lanes=2, width=40, divisor_width=33)),
    "prefix_sum_serial_chain": Entry("bench_prefix_sum", lambda: FORMS["serial_chain"](inputs=8, width=8)),
    "prefix_sum_work_efficient": Entry(
        "bench_prefix_sum", lambda: FORMS["work_efficient"](inputs=16, width=5, sum_width=9)
    ),
    "prefix_sum_highly_parallel": Entry(
        "bench_prefix_sum", lambda: FORMS["highly_parallel"](inputs=4, width=12, sum_width=40)
    ),
    "sorter": Entry("bench_sorter", lambda: Sorter(inputs=8, key_width=4, payload_width=8)),
    "block_flags": Entry("bench_block_flags", lambda: BlockFlags(inputs=4, columns=8)),
    "bus_packer": Entry("bench_bus_packer", lambda: BusPacker(words=9, vector=4, lanes=3)),
    "weight_stationary_int32": Entry(
        "bench_weight_stationary", lambda: stationary("int32", pes=3, words=6), icarus="reset_in_the_middle"
    ),
    "weight_stationary_fp32": Entry(
        "bench_weight_stationary", lambda: stationary("fp32", pes=2, words=9), icarus="reset_in_the_middle"
    ),
    "tree_builder": Entry("bench_tree_builder", lambda: TreeBuilder(inputs=4, width=3)),
    "host_array": Entry("bench_host_array", lambda: HostArray(form="work_efficient")),
    "cluster_counter": Entry("bench_cluster_counter", lambda: ClusterCounter(inputs=8, key_width=4)),
    "segment_streamer": Entry(
        "bench_segment_streamer",
        lambda: SegmentStreamer(lanes=2, address_width=40, line_address_width=6, leaf_lines=1, pending=8, rows=8),
    ),
}


@lru_cache(maxsize=1)
def emitted(name: str) -> tuple[Any, dict[str, str]]:
    """A block and its Verilog: the runs under both simulators follow each other, and the Verilog takes long to write."""
    entry = ENTRIES[name]
    block = entry.block()
    if entry.verilog is None:
        sources, top = verilog_of(block)
    else:
        sources = entry.verilog()
        top = block.module_name
    return block, {**sources, "top": top}


def runs() -> list[Any]:
    """Name and simulator of each run."""
    found = []
    for name, entry in ENTRIES.items():
        small = entry.icarus is None and not os.environ.get(COLLECT)
        for simulator in SIMULATORS:
            long = entry.long or (small and simulator == "verilator")
            marks = [needs_tool(*NEEDS[simulator]), *([long_run()] if long else [])]
            found.append(pytest.param(name, simulator, marks=marks, id=f"{name}-{simulator}"))
    return found


@pytest.mark.parametrize(("name", "simulator"), runs())
def test_bench(name: str, simulator: str) -> None:
    entry = ENTRIES[name]
    only = entry.icarus if simulator == "icarus" and not LONG else None
    block, verilog = emitted(name)
    result = run_bench(
        verilog, entry.bench, like=block, simulator=simulator, environment=entry.environment, only=only, build=name
    )
    if folder := os.environ.get(COLLECT):
        keep(Path(folder), Run(result.plan, name, simulator, len(result.passed), only is None, result.hits))
    assert not result.problems, "\n".join(result.problems)
    assert result.passed
    assert result.plan, "a bench collects bins"
