"""Cycles and bytes of ``auto`` beside an earlier commit: orders of A's rows, planned places, scratch fibers on chip.

    python -m benchmarks.bytes_moved --before COMMIT [--config edge] [--set FIELD=VALUE] [--now FIELD=VALUE] [--out FOLDER]
        [--docs PAGE] OPERAND...

A row for each operand, in the model: as the earlier commit decides, at normal effort and at high effort. ``B`` is what is read of
B with its metadata at high effort, beside Belady's replacement of whole rows in B's partition and of single nonzeros in the whole
buffer. ``scratch`` is what goes to memory and back of fibers of rows that are longer than the merge radix. The sources of the
earlier commit go to the output folder. Records stay there, and a run whose record is there already is not made again.
"""

import io
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.matrices import record
from benchmarks.operand_sets import INSTALLED, geometric_mean, name_of
from benchmarks.table_markers import ROOT, PrintedTable, benchmark_parser

COLUMNS = (
    "operand",
    "cycles, before",
    "now",
    "times",
    "high effort",
    "times",
    "MB, before",
    "high effort",
    "B, before",
    "high effort",
    "over the partition's bound",
    "over MIN",
    "scratch, before",
    "high effort",
    "schedule, s, before",
    "now",
    "high effort",
    "read, s",
)


def sources(commit: str, folder: Path) -> Path:
    """Those of a commit, in the folder."""
    if not folder.exists():
        packed = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
    return folder


def b_read(run: dict[str, Any]) -> int:
    """Bytes."""
    moved: dict[str, int] = run["dram_bytes"]["B"]
    return moved["read"] + moved["metadata_read"]


def scratch(run: dict[str, Any]) -> int:
    """Bytes out and back; where nobody counts them apart they are all that is read of C, and as much is written."""
    aside = run.get("scratch_traffic")
    return aside["read"] + aside["write"] if aside else 2 * run["dram_bytes"]["C"]["read"]


def cells(operand: str, before: dict[str, Any], now: dict[str, Any], high: dict[str, Any]) -> list[str]:
    """In the order of COLUMNS."""
    least = high["least_reads_b"]
    bounds = [f"{b_read(high) / least[name]:.2f}" if least else "" for name in ("partition", "bytes")]
    return [
        name_of(operand),
        f"{before['cycles']:,}",
        *(word for run in (now, high) for word in (f"{run['cycles']:,}", f"{before['cycles'] / run['cycles']:.2f}")),
        *(f"{run['dram_bytes']['total'] / 1e6:.1f}" for run in (before, high)),
        *(f"{b_read(run) / 1e6:.1f}" for run in (before, high)),
        *bounds,
        *(f"{scratch(run) / 1e6:.1f}" for run in (before, high)),
        *(f"{run['seconds']['schedule']:.1f}" for run in (before, now, high)),
        f"{high['seconds']['load']:.1f}",
    ]


def print_means(printed: PrintedTable, kinds: Sequence[str], times: Sequence[Sequence[float]]) -> None:
    """A line for each kind of run; ``times``: how many times fewer cycles each kind took, operand by operand."""
    printed.line()
    for kind, found in zip(kinds, zip(*times, strict=True), strict=False):
        printed.line(
            f"- {kind}: {geometric_mean(found):.2f} times fewer cycles in the geometric mean over {len(found)} operands, "
            f"{min(found):.2f} at least, {max(found):.2f} at most"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; returns 1 when a run failed or was wrong."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("operands", nargs="*", default=INSTALLED, metavar="OPERAND")
    parser.add_argument("--before", metavar="COMMIT", required=True)
    parser.add_argument("--config", default="edge")
    parser.add_argument(
        "--set", action="append", default=["pe.value=fp32"], metavar="FIELD=VALUE", help="of the design"
    )
    parser.add_argument("--now", action="append", default=[], metavar="FIELD=VALUE", help="only of the present design")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench-bytes")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    earlier = sources(options.before, options.out / f"sources-{options.before}")
    now = [*options.set, *options.now]
    printed.head(COLUMNS)
    failed, times = False, []
    for operand in options.operands:
        try:
            runs = [
                record(
                    operand,
                    options.config,
                    "model",
                    options.out / "-".join([options.config, *words]),
                    own,
                    more,
                    where,
                )
                for words, where, own, more in (
                    ([options.before, *options.set], earlier, options.set, []),
                    (["normal", *now], ROOT, now, []),
                    (["high", *now], ROOT, now, ["--effort", "high"]),
                )
            ]
        except RuntimeError as problem:
            print(problem, file=sys.stderr)
            failed = True
            continue
        failed |= not all(run["correct"] for run in runs)
        printed.row(cells(operand, *runs))
        times.append([runs[0]["cycles"] / run["cycles"] for run in runs[1:]])
    print_means(printed, ("normal effort", "high effort"), times)
    if not failed:
        printed.write()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
