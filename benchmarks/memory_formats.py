"""Runs whose A, B and C are kept in each format that the converter reads, beside a run on the accelerator's own.

    python -m benchmarks.memory_formats [--config edge] [--docs PAGE] OPERAND...

C = A x A, for rectangular A C = A x A^T, on the RTL. Every value and every conversion is verified, bit for bit. ``kept`` is the
size of A, B and C in the format, in shares of packed CSR; ``convert`` the cycles of the three conversions; ``model`` what the
model says of all cycles. A format in which a tensor takes more than 64 MiB is left out.
"""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from benchmarks.table_markers import PrintedTable, benchmark_parser
from sw.cli.app import main as fiberloom
from sw.operands import load
from sw.runtime.converter import SOURCES


def measured(operand: str, config: str, kind: str) -> dict[str, Any] | None:
    """The record of a run, or None where a tensor takes too much. Raises RuntimeError for a run that fails."""
    shape = load(operand).shape
    words = [f"--mcf-{tensor}={kind}" for tensor in "abc"]
    # Tiles of lists would be made of a packed A by the host, and not of others.
    words += ["--config", config, "--json"] + (["--transpose-b"] if shape[0] != shape[1] else [])
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = fiberloom(["run", operand, *words])
    if code == 2 and "must take at most" in err.getvalue():
        return None
    if code:
        raise RuntimeError(f"{operand} in {kind}: {err.getvalue().strip() or 'the result is not correct'}")
    record: dict[str, Any] = json.loads(out.getvalue())
    return record


def row(record: dict[str, Any], least: int) -> list[str]:
    """Cells of a line of the table. ``least``: bits of A, B and C in the accelerator's format."""
    kept, model = record["memory_formats"], record["model"]
    bits = sum(found["bits"] for found in kept.values())
    converting = sum(found["cycles"] for found in kept.values())
    return [
        record["operands"]["A"]["name"],
        kept["A"]["format"],
        f"{bits / least:.2f}",
        f"{record['cycles'] - converting:,}",
        f"{converting:,}",
        f"{record['roofline_fraction']:.3f}",
        f"{model['cycles'] / record['cycles'] - 1:+.1%}",
        "equal" if model["traffic_equal"] else "DIFFERENT",
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("operands", nargs="+", metavar="OPERAND")
    parser.add_argument("--config", default="edge")
    given = parser.parse_args(arguments)
    printed = PrintedTable(parser, given)
    printed.head(("operand", "format", "kept", "run", "convert", "roofline", "model", "bytes"), texts=2)
    for operand in given.operands:
        least = 0
        for kind in sorted(SOURCES, key=lambda kind: kind != "csr"):
            record = measured(operand, given.config, kind)
            if record is not None:
                least = least or sum(found["bits"] for found in record["memory_formats"].values())
                printed.row(row(record, least))
    printed.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
