"""Runs operands with A's rows in several orders and prints what these give (docs/benchmarks.md).

    python -m benchmarks.row_order [--config edge] [--engine model] [--order greedy] [--out FOLDER] [--docs PAGE]
        OPERAND...

A row for each operand: cycles in the natural order and in the others, how many times as fast the best of them is, and the bytes
that it moves. ``schedule`` is seconds to choose tiles, the order among them: natural, and best. Records stay in the output
folder, and a run whose record is there already is not made again.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.matrices import difference, record
from benchmarks.operand_sets import INSTALLED, geometric_mean, name_of
from benchmarks.table_markers import ROOT, PrintedTable, benchmark_parser
from sw.scheme.terms import NATURAL, ROW_ORDERS


def in_order(operand: str, order: str, options: argparse.Namespace, load: str | None = None) -> dict[str, Any]:
    """The record of a run, ``load``: by which rule rows of B stay; raises RuntimeError with what a run said that failed."""
    words = [options.config, options.engine, order, *([load] if load else []), *options.set]
    more = ["--row-order", order, *(["--load", load] if load else [])]
    return record(operand, options.config, options.engine, options.out / "-".join(words), options.set, more)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; returns 1 when a run failed or was wrong."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("operands", nargs="*", default=INSTALLED, metavar="OPERAND")
    parser.add_argument("--config", default="edge")
    parser.add_argument("--engine", default="model")
    parser.add_argument("--order", action="append", help="again for more; default: all that are made")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="of the design")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench-row-order")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    orders = [NATURAL, *(options.order or ROW_ORDERS[1:])]
    columns = [
        "operand",
        *orders,
        "times",
        "bytes, best / natural",
        "ideal, natural",
        "best",
        "schedule, natural",
        "best",
    ]
    columns += ["model"] * (options.engine == "rtl")
    printed.head(columns)
    failed, times = False, []
    for operand in options.operands:
        try:
            runs = {order: in_order(operand, order, options) for order in orders}
        except RuntimeError as problem:
            print(problem, file=sys.stderr)
            failed = True
            continue
        failed |= not all(run["correct"] for run in runs.values())
        plain, best = runs[NATURAL], min(runs.values(), key=lambda run: run["cycles"])
        times.append(plain["cycles"] / best["cycles"])
        cells = [
            name_of(operand),
            *(f"{run['cycles']:,}" for run in runs.values()),
            f"{times[-1]:.2f}",
            f"{best['dram_bytes']['total'] / plain['dram_bytes']['total']:.2f}",
            *(f"{run['ideal_fraction']:.2f}" for run in (plain, best)),
            *(f"{run['seconds']['schedule']:.1f}" for run in (plain, best)),
            *([f"{difference(best):+.1%}"] if options.engine == "rtl" else []),
        ]
        printed.row(cells)
    if times:
        printed.line()
        printed.line(
            f"The best order is {geometric_mean(times):.2f} times as fast as the natural one in the geometric mean over "
            f"{len(times)} operands, {min(times):.2f} at least, {max(times):.2f} at most."
        )
    if not failed:
        printed.write()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
