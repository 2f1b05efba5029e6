"""Shares of the parts of an accelerator in its cells, beside table 3 of the HYTE paper.

    fiberloom synth --config edge --target ecp5 --out synth_edge
    python -m benchmarks.area synth_edge/synth.json

Reads what ``fiberloom synth`` wrote; memory in block RAM is told in bits.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", type=Path, metavar="SYNTH.json")
    for path in parser.parse_args(arguments).records:
        _table(json.loads(path.read_text(encoding="utf-8")))
    return 0


def _table(record: Mapping[str, Any]) -> None:
    whole = record["modules"][0]
    logic = sum(share for group, _, share in GROUPS if share is not None and group != "banked SRAM")
    print(f"\n{record['design']}, {record['target']}, Yosys {record['yosys']}\n")
    print("| part | LUT4 | flip-flops | memory bits | LUT4, share | HYTE, share | HYTE without SRAM |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    left = {column: whole[column] for column in ("luts", "flip_flops", "memory_bits")}
    for group, pattern, paper in GROUPS:
        found = [module for module in record["modules"] if re.fullmatch(f"(?:{pattern})(?:_.*)?", module["name"])]
        sums = {column: sum(module["instances"] * module[column] for module in found) for column in left}
        left = {column: left[column] - sums[column] for column in left}
        there = "" if paper is None else f"{paper}%"
        beside = "" if paper is None or group == "banked SRAM" else f"{100 * paper / logic:.1f}%"
        print(_row(group, sums, whole["luts"]) + f" {there} | {beside} |")
    print(_row("queues between them", left, whole["luts"]) + "  |  |")
    print(_row("whole", whole, whole["luts"]) + " 100% | 100% |")


def _row(label: str, sums: Mapping[str, int], luts: int) -> str:
    cells = " | ".join(f"{sums[column]:,}" for column in ("luts", "flip_flops", "memory_bits"))
    return f"| {label} | {cells} | {100 * sums['luts'] / luts:.1f}% |"


if __name__ == "__main__":
    sys.exit(main())
