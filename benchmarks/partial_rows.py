"""Partial rows of C carried from k step to k step, beside those that the last step joins (docs/papers.md).

    python -m benchmarks.partial_rows [--config edge] [--steps 2 8 32] [--out FOLDER] [--docs PAGE] OPERAND...

Both in the model, order ``kij``, i and j whole, so that only the rule differs; ``auto`` keeps k whole. Records stay in the
output folder, and a run whose record is there already is not made again.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.matrices import record
from benchmarks.operand_sets import INSTALLED, name_of
from benchmarks.table_markers import ROOT, PrintedTable, benchmark_parser
from sw.operands import load

COLUMNS = (
    "operand",
    "k steps",
    "cycles, carried",
    "joined",
    "ratio",
    "C in MB, carried",
    "joined",
    "ratio",
    "joined over `auto`",
)
RULES = ("carried", "joined")


def run(operand: str, options: argparse.Namespace, *words: str) -> dict[str, Any]:
    """A record of the model tier. Raises RuntimeError for a run that failed, or whose result is wrong."""
    folder = options.out / "-".join([options.config, *(word.strip("-") for word in words)])
    found = record(operand, options.config, "model", folder, [], words)
    if not found["correct"]:
        raise RuntimeError(f"{operand} {' '.join(words)}: the result is wrong")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("operands", nargs="*", default=INSTALLED, metavar="OPERAND")
    parser.add_argument("--config", default="edge")
    parser.add_argument("--steps", nargs="+", type=int, default=[2, 8, 32])
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench-partial-rows")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    printed.head(COLUMNS)
    try:
        for operand in options.operands:
            inner = load(operand).shape[1]
            best = run(operand, options)
            for steps in options.steps:
                cut = ("--order", "kij", "--T_k", str(-(-inner // steps)), "--partial-rows")
                carried, joined = (run(operand, options, *cut, rule) for rule in RULES)
                moved = [sum(found["dram_bytes"]["C"].values()) for found in (carried, joined)]
                printed.row(
                    (
                        name_of(operand),
                        str(steps),
                        f"{carried['cycles']:,}",
                        f"{joined['cycles']:,}",
                        f"{carried['cycles'] / joined['cycles']:.2f}",
                        *(f"{size / 1e6:.1f}" for size in moved),
                        f"{moved[0] / moved[1]:.2f}",
                        f"{joined['cycles'] / best['cycles']:.2f}",
                    )
                )
    except RuntimeError as problem:
        print(problem, file=sys.stderr)
        return 1
    printed.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
