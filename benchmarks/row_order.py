"""Runs operands with A's rows in several orders and prints what these give (docs/benchmarks.md).

    python benchmarks/row_order.py [--config edge] [--engine model] [--order rcm --order greedy] [--out FOLDER] OPERAND...

A row for each operand: cycles in the natural order and in the others, how many times as fast the best of them is, and the bytes
that it moves. ``schedule`` is seconds to choose tiles, the order among them: natural, and best. Records stay in the output
folder, and a run whose record is there already is not made again.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from matrices import OPERANDS, ROOT, difference, record
from packed import mean

NATURAL = "natural"


def in_orders(operand: str, orders: Iterable[str], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The record of a run for each order; raises RuntimeError with what a run said that failed."""
    return {
        order: record(
            operand,
            options.config,
            options.engine,
            options.out / "-".join([options.config, options.engine, order, *options.set]),
            options.set,
            ["--row-order", order],
        )
        for order in orders
    }


def main() -> int:
    """Prints the table; returns 1 when a run failed or was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operands", nargs="*", default=OPERANDS)
    parser.add_argument("--config", default="edge")
    parser.add_argument("--engine", default="model")
    parser.add_argument("--order", action="append", help="again for more; default: rcm and greedy")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="of the design")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench-row-order")
    options = parser.parse_args()
    orders = [NATURAL, *(options.order or ["rcm", "greedy"])]
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
    print("| " + " | ".join(columns) + " |\n| --- |" + " ---: |" * (len(columns) - 1), flush=True)
    failed, times = False, []
    for operand in options.operands:
        try:
            runs = in_orders(operand, orders, options)
        except RuntimeError as problem:
            print(problem, file=sys.stderr)
            failed = True
            continue
        failed |= not all(run["correct"] for run in runs.values())
        plain, best = runs[NATURAL], min(runs.values(), key=lambda run: run["cycles"])
        times.append(plain["cycles"] / best["cycles"])
        cells = [
            Path(operand).stem if "/" in operand else operand,
            *(f"{run['cycles']:,}" for run in runs.values()),
            f"{times[-1]:.2f}",
            f"{best['dram_bytes']['total'] / plain['dram_bytes']['total']:.2f}",
            *(f"{run['ideal_fraction']:.2f}" for run in (plain, best)),
            *(f"{run['seconds']['schedule']:.1f}" for run in (plain, best)),
            *([f"{difference(best):+.1%}"] if options.engine == "rtl" else []),
        ]
        print("| " + " | ".join(cells) + " |", flush=True)
    if times:
        print(
            f"\n{mean(times):.2f} times as fast in geometric mean over {len(times)} operands, {min(times):.2f} at least"
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
