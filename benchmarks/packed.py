"""Runs operands with plain and with packed records and prints what the packing gives (docs/benchmarks.md).

    python benchmarks/packed.py [--config edge] [--value fp32 --value bf16] [--set FIELD=VALUE] [--out FOLDER] OPERAND...

A row for each operand and value type, with values drawn on the operand's pattern where the type is an integer (``drawn.py``):
cycles of the RTL both ways, and shares of the roofline, each of the bytes that its run moved. ``--set`` changes fields of the
design of the packed runs alone. Records stay in the output folder, and a run whose record is there already is not made again.
"""

import argparse
import math
import sys
from pathlib import Path

from drawn import drawn
from matrices import OPERANDS, ROOT, difference, record

COLUMNS = (
    "operand",
    "value",
    "plain",
    "packed",
    "times",
    "bytes, packed / plain",
    "roofline, plain",
    "packed",
    "model",
)
# What "times" is averaged over: operands whose plain run memory bounds, at so much of its roofline and more.
LEAST_ROOFLINE = 0.9


def mean(numbers: list[float]) -> float:
    """Geometric mean."""
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def main() -> int:
    """Prints the table; returns 1 when a run failed or was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operands", nargs="*", default=OPERANDS)
    parser.add_argument("--config", default="edge")
    parser.add_argument("--value", action="append", metavar="TYPE", help="again for more; default: fp32")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="of the packed runs' design")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench-packed")
    options = parser.parse_args()
    failed = False
    summary = []
    print("| " + " | ".join(COLUMNS) + " |\n| --- | --- |" + " ---: |" * (len(COLUMNS) - 2), flush=True)
    for value in options.value or ["fp32"]:
        times, fractions, apart = [], [], []
        for operand in options.operands:
            try:
                plain, packed = (
                    record(
                        drawn(operand, value, options.out),
                        options.config,
                        "rtl",
                        options.out / "-".join([options.config, value, records, *changes]),
                        [f"pe.value={value}", f"memory.records={records}", *changes],
                    )
                    for records, changes in (("plain", []), ("packed", options.set))
                )
            except RuntimeError as problem:
                print(problem, file=sys.stderr)
                failed = True
                continue
            failed |= not (plain["correct"] and packed["correct"])
            quicker = plain["cycles"] / packed["cycles"]
            apart.append(abs(difference(packed)))
            if plain["bound"] == "dram" and plain["roofline_fraction"] >= LEAST_ROOFLINE:
                times.append(quicker)
                fractions.append(packed["roofline_fraction"])
            cells = (
                Path(operand).stem if "/" in operand else operand,
                value,
                f"{plain['cycles']:,}",
                f"{packed['cycles']:,}",
                f"{quicker:.2f}",
                f"{packed['dram_bytes']['total'] / plain['dram_bytes']['total']:.2f}",
                f"{plain['roofline_fraction']:.3f}",
                f"{packed['roofline_fraction']:.3f}",
                f"{difference(packed):+.1%}",
            )
            print("| " + " | ".join(cells) + " |", flush=True)
        if times:
            summary.append(
                f"{value}: {mean(times):.2f} times as fast in geometric mean over {len(times)} that memory bounds at "
                f"{LEAST_ROOFLINE} and more, {mean(fractions):.3f} of the packed roofline; model {sum(apart) / len(apart):.1%} "
                f"off in mean, {max(apart):.1%} at worst"
            )
    print("\n" + "\n".join(summary))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
