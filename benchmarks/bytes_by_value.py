"""Cycles and bytes of ``auto`` with packed records beside an earlier commit with nonzeros of 8 bytes, by value type.

    python -m benchmarks.bytes_by_value --before COMMIT [--config edge] [--value TYPE] [--set FIELD=VALUE] [--out FOLDER]
        [--docs PAGE] OPERAND...

A row for each operand, in the model: cycles as the earlier commit decides, whose nonzeros take 8 bytes whatever their values
need; then for each value type how many times fewer the present commit takes with packed records, and its share of the bytes.
``--set`` changes fields of the packed design. Records stay in the output folder, and a run whose record is there already is not
made again.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.bytes_moved import print_means, sources
from benchmarks.drawn import drawn
from benchmarks.matrices import record
from benchmarks.operand_sets import INSTALLED, name_of
from benchmarks.table_markers import ROOT, PrintedTable, benchmark_parser

VALUES = ("fp32", "bf16", "int8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; returns 1 when a run failed or was wrong."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("operands", nargs="*", default=INSTALLED, metavar="OPERAND")
    parser.add_argument("--before", metavar="COMMIT", required=True)
    parser.add_argument("--config", default="edge")
    parser.add_argument(
        "--value", action="append", metavar="TYPE", help=f"again for more; default: {', '.join(VALUES)}"
    )
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="of the packed design")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench-bytes")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    values = options.value or list(VALUES)
    earlier, plain = sources(options.before, options.out / f"sources-{options.before}"), ["pe.value=fp32"]
    printed.head(("operand", "8 bytes", *(word for value in values for word in (value, "times", "bytes"))))
    failed, times = False, []
    for operand in options.operands:
        try:
            folder = options.out / "-".join([options.config, options.before, *plain])
            before = record(operand, options.config, "model", folder, plain, [], earlier)
            packed = []
            for value in values:
                changes = [f"pe.value={value}", "memory.records=packed", *options.set]
                folder = options.out / "-".join([options.config, "normal", *changes])
                packed.append(record(drawn(operand, value, options.out), options.config, "model", folder, changes))
        except RuntimeError as problem:
            print(problem, file=sys.stderr)
            failed = True
            continue
        failed |= not all(run["correct"] for run in (before, *packed))
        fewer = [before["cycles"] / run["cycles"] for run in packed]
        shares = [run["dram_bytes"]["total"] / before["dram_bytes"]["total"] for run in packed]
        of_values = zip(packed, fewer, shares, strict=True)
        printed.row(
            [
                name_of(operand),
                f"{before['cycles']:,}",
                *(word for run, by, share in of_values for word in (f"{run['cycles']:,}", f"{by:.2f}", f"{share:.2f}")),
            ]
        )
        times.append(fewer)
    print_means(printed, values, times)
    if not failed:
        printed.write()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
