"""Cells of the parts of an accelerator: each block, and groups of them beside table 3 of the HYTE paper.

    fiberloom synth --config edge --target ecp5 --out synth_edge
    python -m benchmarks.area [--docs PAGE] synth_edge/synth.json

Reads what ``fiberloom synth`` wrote. Of a block its children are included; memory in block RAM is told in bits.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.table_markers import PrintedTable, benchmark_parser

#: Modules by what they are called in the table; those inside a PE are named so.
BLOCKS = (
    ("PE", "gustavson_pe"),
    ("merge tree, in a PE", "merge_tree"),
    ("leaf buffer, in a PE", "leaf_buffer"),
    ("combiner cascade, in a PE", "combiner_cascade"),
    ("scaler, in a PE", "scaler"),
    *(
        (name.replace("_", " "), name)
        for name in (
            "banked_sram",
            "memory_engine",
            "accessor_a",
            "accessor_b",
            "accessor_c",
            "tiling_controller",
            "tuning_unit",
            "run_control",
            "register_file",
            "counter_bank",
            "dispatcher",
            "collector",
            "fiber_lookup",
            "segment_streamer",
            "memory_fetch",
            "fiber_check",
        )
    ),
    ("whole accelerator", "accelerator"),
)
#: Group, modules in it, and its share of the area in HYTE table 3 (28 nm, SRAM by CACTI), in percent.
GROUPS: tuple[tuple[str, str, float | None], ...] = (
    ("tiling control", "tiling_controller|run_control|tuning_unit|assembly_pass|selection_gate|run_monitor", 0.6),
    ("accessors", "accessor_[abc]|fiber_lookup|segment_streamer", 3.1),
    ("banked SRAM", "banked_sram", 73.3),
    ("elements", "gustavson_pe", 20.3),
    ("network", "dispatcher|collector|memory_fetch|coordinate_check(?!.*_r1)", 2.7),
    ("memory engine", "memory_engine", None),
    ("registers, counters", "register_file|counter_bank|reset_control", None),
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("records", nargs="+", type=Path, metavar="SYNTH.json")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    for path in options.records:
        record = json.loads(path.read_text(encoding="utf-8"))
        printed.line(f"{record['design']}, {record['target']}, Yosys {record['yosys']}:\n")
        _blocks(printed, record["modules"])
        printed.line()
        _groups(printed, record["modules"])
    printed.write()
    return 0


def _blocks(printed: PrintedTable, modules: Sequence[Mapping[str, Any]]) -> None:
    """A row for each of ``BLOCKS`` that the design has."""
    by = {module["name"]: module for module in modules}
    printed.head(("block", "copies", "LUT4 each", "flip-flops each", "memory bits each", "share of all LUT4"))
    for label, name in BLOCKS:
        if (found := by.get(name)) is not None:
            share = found["instances"] * found["luts"] / by["accelerator"]["luts"]
            counts = [f"{found[column]:,}" for column in ("instances", "luts", "flip_flops", "memory_bits")]
            printed.row((label, *counts, f"{share:.1%}"))


def _groups(printed: PrintedTable, modules: Sequence[Mapping[str, Any]]) -> None:
    """Sums beside the paper's shares."""
    whole = modules[0]
    logic = sum(share for group, _, share in GROUPS if share is not None and group != "banked SRAM")
    printed.head(("part", "LUT4", "flip-flops", "memory bits", "LUT4, share", "HYTE, share", "HYTE without SRAM"))
    left = {column: whole[column] for column in ("luts", "flip_flops", "memory_bits")}

    def row(label: str, sums: Mapping[str, int], *paper: str) -> None:
        counts = [f"{sums[column]:,}" for column in left]
        printed.row((label, *counts, f"{sums['luts'] / whole['luts']:.1%}", *paper))

    for group, pattern, share in GROUPS:
        found = [module for module in modules if re.fullmatch(f"(?:{pattern})(?:_.*)?", module["name"])]
        sums = {column: sum(module["instances"] * module[column] for module in found) for column in left}
        left = {column: left[column] - sums[column] for column in left}
        there = "" if share is None else f"{share}%"
        row(group, sums, there, "" if share is None or group == "banked SRAM" else f"{share / logic:.1%}")
    row("queues between them", left, "", "")
    row("whole", whole, "100%", "100%")


if __name__ == "__main__":
    sys.exit(main())
