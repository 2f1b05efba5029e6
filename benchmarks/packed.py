"""Runs operands with plain and with packed records and prints what the packing gives (docs/benchmarks.md).

    python -m benchmarks.packed [--config edge] [--value fp32 --value bf16] [--set FIELD=VALUE] [--out FOLDER] [--docs PAGE]
        OPERAND...

A row for each operand and value type, with values drawn on the operand's pattern where the type is an integer (``drawn.py``):
cycles of the RTL both ways, and shares of the roofline, each of the bytes that its run moved. ``--set`` changes fields of the
design of the packed runs alone. Records stay in the output folder, and a run whose record is there already is not made again.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.drawn import drawn
from benchmarks.matrices import difference, record
from benchmarks.operand_sets import INSTALLED, geometric_mean, name_of
from benchmarks.table_markers import ROOT, PrintedTable, benchmark_parser

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; returns 1 when a run failed or was wrong."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("operands", nargs="*", default=INSTALLED, metavar="OPERAND")
    parser.add_argument("--config", default="edge")
    parser.add_argument("--value", action="append", metavar="TYPE", help="again for more; default: fp32")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="of the packed runs' design")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench-packed")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    failed = False
    summary = []
    printed.head(COLUMNS, texts=2)
    for value in options.value or ["fp32"]:
        times, fractions, apart = [], [], {}
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
            apart[name_of(operand)] = difference(packed)
            if plain["bound"] == "dram" and plain["roofline_fraction"] >= LEAST_ROOFLINE:
                times.append(quicker)
                fractions.append(packed["roofline_fraction"])
            cells = (
                name_of(operand),
                value,
                f"{plain['cycles']:,}",
                f"{packed['cycles']:,}",
                f"{quicker:.2f}",
                f"{packed['dram_bytes']['total'] / plain['dram_bytes']['total']:.2f}",
                f"{plain['roofline_fraction']:.3f}",
                f"{packed['roofline_fraction']:.3f}",
                f"{difference(packed):+.1%}",
            )
            printed.row(cells)
        if times:
            worst = max(apart, key=lambda name: abs(apart[name]))
            share = geometric_mean(fractions)
            summary.append(
                f"- {value}, packed over plain: {geometric_mean(times):.2f} times as fast in the geometric mean over the "
                f"{len(times)} that memory bounds at {LEAST_ROOFLINE} of the roofline and more, at {share:.2f} of the "
                f"packed roofline; the model {sum(map(abs, apart.values())) / len(apart):.1%} off in the mean, "
                f"{apart[worst]:+.1%} at worst ({worst})"
            )
    for line in ["", *summary]:
        printed.line(line)
    if not failed:
        printed.write()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
