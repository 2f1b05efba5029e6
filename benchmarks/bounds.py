"""What is read of B beside what an optimal buffer would read (docs/benchmarks.md).

    python benchmarks/bounds.py [--config edge] [--engine model] [--order best] [--set FIELD=VALUE] [--out FOLDER] OPERAND...

A row for each operand, in MB: what is read of B and the two bounds of it (Belady's replacement of single nonzeros, and of whole
rows; none where k or j is cut), in the natural order of A's rows and in another; what is read again of C, which is fibers that
wait in scratch memory where C streams; all bytes. Records stay in the output folder, and a run whose record is there already is
not made again.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from matrices import OPERANDS, ROOT
from row_order import NATURAL, in_orders


def parts(run: dict[str, Any]) -> list[str]:
    """MB: B as it is, and its bounds."""
    moved, least = run["dram_bytes"]["B"], run["least_reads_b"]
    bounds = [f"{size / 1e6:.1f}" for size in least.values()] if least else ["", ""]
    return [f"{(moved['read'] + moved['metadata_read']) / 1e6:.1f}", *bounds]


def main() -> int:
    """Prints the table; returns 1 when a run failed or was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operands", nargs="*", default=OPERANDS)
    parser.add_argument("--config", default="edge")
    parser.add_argument("--engine", default="model")
    parser.add_argument("--order", default="best", help="beside the natural one")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="of the design")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench-bounds")
    options = parser.parse_args()
    bounds = ["B", "single nonzeros", "whole rows"]
    columns = ["operand", *bounds, f"B, {options.order}", *bounds[1:], "C again", "total", f"total, {options.order}"]
    print("| " + " | ".join(columns) + " |\n| --- |" + " ---: |" * (len(columns) - 1), flush=True)
    failed = False
    for operand in options.operands:
        try:
            runs = in_orders(operand, (NATURAL, options.order), options)
        except RuntimeError as problem:
            print(problem, file=sys.stderr)
            failed = True
            continue
        natural, other = runs[NATURAL], runs[options.order]
        failed |= not natural["correct"] or not other["correct"]
        cells = [
            Path(operand).stem if "/" in operand else operand,
            *parts(natural),
            *parts(other),
            f"{natural['dram_bytes']['C']['read'] / 1e6:.1f}",
            *(f"{run['dram_bytes']['total'] / 1e6:.1f}" for run in (natural, other)),
        ]
        print("| " + " | ".join(cells) + " |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
