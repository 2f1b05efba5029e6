"""Planned places for rows of B beside lists, and beside what an optimal buffer would read (docs/tilings.md).

    python -m benchmarks.bounds [--config edge] [--order natural --order greedy] [--set FIELD=VALUE] [--out FOLDER] [--docs PAGE]
        OPERAND...

A row for each operand and order of A's rows, MB of DRAM and cycles in the model: with lists, the better of ``list`` and
``reuse``, and with ``planned``. "MIN row by row" is Belady's replacement of whole rows, in the planned run. Records stay in
the output folder, and a run whose record is there already is not made again.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.operand_sets import INSTALLED, geometric_mean, name_of
from benchmarks.row_order import in_order
from benchmarks.table_markers import ROOT, PrintedTable, benchmark_parser

COLUMNS = (
    "operand, order",
    "B, lists",
    "B, `planned`",
    "MIN row by row",
    "all, lists",
    "all, `planned`",
    "cycles, lists",
    "cycles, `planned`",
    "ratio",
)
LISTS = ("list", "reuse")
PLANNED = "planned"


def cells(name: str, kept: str, lists: dict[str, Any], planned: dict[str, Any]) -> list[str]:
    """In the order of COLUMNS; ``kept``: which of LISTS the one run has."""
    b = [run["dram_bytes"]["B"] for run in (lists, planned)]
    read = [f"{(moved['read'] + moved['metadata_read']) / 1e6:.1f}" for moved in b]
    least = planned["least_reads_b"]
    return [
        name,
        f"{read[0]} (`{kept}`)",
        read[1],
        f"{least['whole_rows'] / 1e6:.1f}" if least else "",
        *(f"{run['dram_bytes']['total'] / 1e6:.1f}" for run in (lists, planned)),
        *(f"{run['cycles']:,}" for run in (lists, planned)),
        f"{lists['cycles'] / planned['cycles']:.2f}",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; returns 1 when a run failed or was wrong."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("operands", nargs="*", default=INSTALLED, metavar="OPERAND")
    parser.add_argument("--config", default="edge")
    parser.add_argument("--engine", default="model")
    parser.add_argument("--order", action="append", help="again for more; default: natural and greedy")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="of the design")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench-bounds")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    orders = options.order or ["natural", "greedy"]
    failed = False
    ratios: dict[str, list[float]] = {order: [] for order in orders}
    printed.head(COLUMNS)
    for operand, order in ((operand, order) for operand in options.operands for order in orders):
        try:
            runs = {load: in_order(operand, order, options, load) for load in (*LISTS, PLANNED)}
        except RuntimeError as problem:
            print(problem, file=sys.stderr)
            failed = True
            continue
        failed |= not all(run["correct"] for run in runs.values())
        planned = runs[PLANNED]
        kept = min(LISTS, key=lambda load: runs[load]["cycles"])
        printed.row(cells(f"{name_of(operand)}, {order}", kept, runs[kept], planned))
        ratios[order].append(runs[kept]["cycles"] / planned["cycles"])
    means = ", ".join(f"{geometric_mean(found):.2f} in {order} order" for order, found in ratios.items())
    printed.line()
    printed.line(f"Geometric mean of the ratios of cycles: {means}.")
    if not failed:
        printed.write()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
