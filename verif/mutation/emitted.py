"""``python -m verif.mutation.emitted FILE TARGET``: writes a digest of the RTLIL of blocks that contain the file's hardware.

With ``whole`` as the file, of a whole accelerator: a few small builds may leave out what only that uses. Fails where the
hardware cannot be built: two drivers of one signal, a combinational loop, operands that do not fit. Where the digests of
two trees differ, so does their hardware; equal ones speak for these builds.
"""

import hashlib
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from gen.blocks import FORMATS
from gen.design import load_design
from gen.elaborate import accelerator
from gen.verilog import converted

from .tests_of import distances

__all__ = ["BUILDS", "WHOLE", "blocks", "digest", "own_blocks"]

WHOLE = "whole"

ROOT = Path(__file__).resolve().parents[2]
SIZES = {"lanes": 2, "address_width": 40, "line_address_width": 7, "burst_beats": 8}
ENGINE = {"data_width": 64, "address_width": 32, "outstanding": 4, "burst_beats": 16, "reader_depth": 32}
PE = {"lanes": 2, "leaf_lines": 2, "line_address_width": 10, "address_width": 40, "queue_lines": 2}
CONVERTER = {"data_width": 128, "address_width": 32, "outstanding": 4, "burst_beats": 16, "value": "int8"}
CONVERTED = {"beat_bits": 128, "address_width": 40, "value": "int32", "form": "work_efficient"}
STATIONARY = {"pes": 2, "lanes": 2, "address_width": 40, "line_address_width": 6, "scratch_slots": 2}
# Small builds of the blocks at the top of each room: class, parameters of each build, a parameter that is a block by a function.
BUILDS: dict[str, tuple[dict[str, Any], ...]] = {
    "rtl.pe.gustavson.GustavsonPe": ({**PE, "value": "int32", "radix": 4}, {**PE, "value": "fp32", "radix": 2}),
    "rtl.pe.bus_packer.BusPacker": ({"words": 9, "vector": 4, "lanes": 3},),
    "rtl.pe.weight_stationary_array.WeightStationaryArray": (
        {"pes": 2, "words": 6, "vector": 2, "entries": 8, "value": "int16"},
        {"pes": 1, "words": 3, "vector": 1, "entries": 4, "value": "fp32"},
        {"pes": 1, "words": 6, "vector": 4, "entries": 8, "value": "int8"},
    ),
    "rtl.arith.fp_add.FpAdd": ({"flush_subnormals": True}, {}, {"format": FORMATS["bfloat16"]}),
    "rtl.arith.fp_multiply.FpMultiply": ({"flush_subnormals": True}, {}, {"format": FORMATS["bfloat16"]}),
    "rtl.arith.int_add.IntAdd": ({}, {"saturate": True}, {"width": 8, "saturate": True}),
    "rtl.arith.int_multiply.IntMultiply": ({}, {"saturate": True}, {"width": 16}, {"width": 8, "saturate": True}),
    "rtl.buffer.buffet.Buffet": ({"width": 16, "entries": 8},),
    "rtl.buffer.tailors.TailorsBuffer": ({"width": 16, "entries": 8, "index_width": 5},),
    "rtl.buffer.banked_sram.BankedSram": (
        {"lines": 32, "banks": 4, "lanes": 2, "read_ports": 3, "write_ports": 2},
        {"lines": 16, "banks": 1, "lanes": 3, "read_ports": 2, "write_ports": 2},
    ),
    "rtl.lib.stream.StreamQueue": (
        {"shape": 9, "depth": 5},
        {"shape": 9, "depth": 5, "block_memory": True},
        {"shape": 3, "depth": 2},
        {"shape": 3, "depth": 1},
    ),
    "rtl.lib.stream.StreamSkid": ({"shape": 8},),
    "rtl.lib.stream.StreamRegister": ({"shape": 8},),
    "rtl.engine.weight_stationary.WeightStationaryEngine": (
        {**STATIONARY, "radix": 4, "leaf_lines": 2, "queue_lines": 4, "value": "int32", "vector": 2, "entries": 8},
        {
            **STATIONARY,
            "radix": 4,
            "leaf_lines": 2,
            "queue_lines": 4,
            "value": "int8",
            "vector": 1,
            "entries": 4,
            "acf": "dense",
        },
    ),
    "rtl.accessor.a.AccessorA": (SIZES, {**SIZES, "parts": True}),
    "rtl.accessor.converted_a.ConvertedA": (CONVERTED, {**CONVERTED, "lanes": 2}),
    "rtl.accessor.converted_b.ConvertedB": (
        {**CONVERTED, "lanes": 4},
        {**CONVERTED, "beat_bits": 256, "value": "int8", "lanes": 4},
    ),
    "rtl.accessor.converted_c.ConvertedC": (
        {**CONVERTED, "lanes": 2, "burst_beats": 4},
        {**CONVERTED, "lanes": 4, "burst_beats": 8, "value": "bf16"},
    ),
    "rtl.converter.Converter": tuple(
        {**CONVERTER, "style": style, "counters": 16, "sram_bytes": 512} for style in ("m", "mr")
    ),
    "rtl.accessor.b.AccessorB": ({**SIZES, "quadrants": True},),
    "rtl.accessor.c.AccessorC": ({**SIZES, "scratch_slots": 2}, {**SIZES, "scratch_slots": 2, "converts": True}),
    "rtl.accessor.lookup.FiberLookup": ({"lanes": 2, "address_width": 40, "line_address_width": 6, "pending": 8},),
    "rtl.memory.memory_engine.MemoryEngine": ({**ENGINE, "readers": 3, "writers": 2},),
    "rtl.mint.reader.record_reader.RecordReader": (
        {"lanes": 2, "address_width": 40, "value": "bf16"},
        {"lanes": 1, "address_width": 32, "value": "int8", "carries": 5},
    ),
    "rtl.mint.record_packer.RecordPacker": ({"lanes": 2, "value": "int16"},),
    "rtl.mint.prefix_sum.serial_chain.SerialChainSum": ({"inputs": 4, "width": 4, "sum_width": 8},),
    "rtl.mint.prefix_sum.work_efficient.WorkEfficientSum": ({"inputs": 8, "width": 4, "sum_width": 8},),
    "rtl.mint.prefix_sum.highly_parallel.HighlyParallelSum": ({"inputs": 4, "width": 4},),
    "rtl.mint.sorter.Sorter": ({"inputs": 4, "key_width": 4, "payload_width": 4},),
    "rtl.mint.cluster_counter.ClusterCounter": ({"inputs": 8, "key_width": 4},),
    "rtl.mint.block_flags.BlockFlags": ({"inputs": 4, "columns": 8},),
    "rtl.mint.tree_builder.TreeBuilder": ({"inputs": 4, "width": 3, "count_bits": 8},),
    "rtl.network.collector.Collector": ({"pes": 3, "lanes": 2, "depth": 4, "scratch_slots": 2},),
    "rtl.network.dispatcher.Dispatcher": ({"pes": 3, "radix": 4, "address_width": 40, "scratch_slots": 2},),
    "rtl.network.memory_fetch.MemoryFetch": (
        {"pes": 3, "radix": 4, "lanes": 2, "address_width": 40, "leaf_lines": 4, "pending": 8}
        | {"line_address_width": 7, "scratch_slots": 2},
    ),
    "rtl.reset_control.ResetControl": ({},),
    "rtl.tiling.assembly.AssemblyPass": ({},),
    "rtl.tiling.run_control.RunControl": (
        {
            "check": lambda: (check := import_module("rtl.tiling.scheme_check")).SchemeCheck(
                lanes=2, sram_lines=64, offsets={name: 4 * n for n, name in enumerate(check.NAMED)}, tuning=True
            )
        },
    ),
    "rtl.tiling.controller.TilingController": ({"lanes": 2, "address_width": 40, "tuning": True},),
}


def blocks(file: str) -> list[Callable[[], Any]]:
    """What is converted for a source file: the small builds that contain it, else a whole accelerator."""
    found: list[Callable[[], Any]] = []
    if file == WHOLE:
        return [lambda: accelerator(load_design("tiny", ["pe.value=fp32"]))]
    for path, builds in BUILDS.items():
        module, name = path.rsplit(".", 1)
        if file in distances(ROOT, module.replace(".", "/") + ".py"):
            found += [partial(_built, getattr(import_module(module), name), build) for build in builds]
    return found or blocks(WHOLE)


def _built(block: Callable[..., Any], sizes: dict[str, Any]) -> Any:
    return block(**{name: size() if callable(size) else size for name, size in sizes.items()})


def digest(file: str) -> str:
    """Of the RTLIL of all these blocks. Raises LookupError where none of them has a block of the file: no mutant would differ."""
    modules = [module for build in blocks(file) for module in converted(build())[1].values()]
    if (own := own_blocks(file)) and not any(isinstance(module.block, own) for module in modules):
        names = ", ".join(block.__name__ for block in own)
        raise LookupError(f"{file}: no build has {names}; BUILDS of verif/mutation/emitted.py needs one")
    return hashlib.sha256("\0".join(module.rtlil for module in modules).encode()).hexdigest()[:16]


def own_blocks(file: str) -> tuple[type, ...]:
    """Blocks that the file defines."""
    if file == WHOLE:
        return ()
    block: type = import_module("rtl.lib.block").Block
    module = import_module(file.removesuffix(".py").replace("/", "."))
    found = (one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__)
    return tuple(one for one in found if issubclass(one, block))


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(digest(sys.argv[1]))
