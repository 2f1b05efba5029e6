"""Runs whose A or B is converted on its way in, or C on its way out, beside runs with a pass over it.

    python -m benchmarks.overlap [--tensor A|B|C] [--config tiny] [--set FIELD=VALUE] [--docs PAGE] OPERAND...

C = A x A, for rectangular A C = A x A^T, on the RTL, the tensor in each format that the accelerator converts. Of A k is whole
and j outside; of B and C tiles are as ``auto`` cuts them, which knows conversions. Every value is verified. ``pass`` and
``overlapped`` are cycles of the whole with the one and the other, ``gain`` their ratio; ``stall`` the share of the cycles in
which the conversion is waited for; then the tensor's bytes that the bus moves.
"""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from benchmarks.table_markers import PrintedTable, benchmark_parser
from sw.cli.app import main as fiberloom
from sw.operands import load
from sw.runtime.registers import CONVERTED

COLUMNS = (
    "operand",
    "format",
    "pass",
    "overlapped",
    "gain",
    "stall",
    "bytes, pass",
    "bytes, overlapped",
    "model",
    "bytes",
)


def measured(tensor: str, operand: str, design: list[str], kind: str, converts: bool) -> dict[str, Any]:
    """The record of a run. Raises RuntimeError for one that fails."""
    shape, low = load(operand).shape, tensor.lower()
    cut = ["--T_k", str(shape[1]), "--order", "jik"] if tensor == "A" else ["--tiling", "auto"]
    words = [*cut, f"--mcf-{low}", kind, *design, "--json", "--set", f"memory.converts_{low}={str(converts).lower()}"]
    words += ["--transpose-b"] if shape[0] != shape[1] else []
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = fiberloom(["run", operand, *words])
    if code:
        raise RuntimeError(f"{operand} in {kind}: {err.getvalue().strip() or 'the result is not correct'}")
    record: dict[str, Any] = json.loads(out.getvalue())
    return record


def row(tensor: str, before: dict[str, Any], record: dict[str, Any]) -> list[str]:
    """Cells of a line of the table."""
    moved = [sum(found["dram_bytes"][tensor].values()) for found in (before, record)]
    model = record["model"]
    return [
        record["operands"]["A"]["name"],
        record["memory_formats"][tensor]["format"],
        f"{before['cycles']:,}",
        f"{record['cycles']:,}" if record["memory_formats"][tensor]["conversion"] == "overlapped" else "pass",
        f"{before['cycles'] / record['cycles']:.2f}",
        f"{record['counters']['stall_conversion'] / record['cycles']:.1%}",
        f"{moved[0]:,}",
        f"{moved[1]:,}",
        f"{model['cycles'] / record['cycles'] - 1:+.1%}",
        "equal" if model["traffic_equal"] else "DIFFERENT",
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("operands", nargs="+", metavar="OPERAND")
    parser.add_argument("--tensor", choices=("A", "B", "C"), default="A")
    parser.add_argument("--config", default="tiny")
    parser.add_argument("--set", action="append", default=[], dest="changes", metavar="FIELD=VALUE")
    given = parser.parse_args(arguments)
    printed = PrintedTable(parser, given)
    printed.head(COLUMNS, texts=2)
    design = ["--config", given.config, *(word for change in given.changes for word in ("--set", change))]
    for operand in given.operands:
        for kind in CONVERTED:
            records = (measured(given.tensor, operand, design, kind, converts) for converts in (False, True))
            printed.row(row(given.tensor, *records))
    printed.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
