"""Runs operands through an engine and prints the table of docs/benchmarks.md: cycles against the roofline, and stalls.

    python -m benchmarks.matrices [--config edge] [--engine rtl] [--out FOLDER] [--docs PAGE] OPERAND...

C = A x A, for rectangular A C = A x A^T. Every run is a command line of its own, so that each row can be repeated by hand.
Records stay in the output folder, and a row whose record is there already is not run again.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.operand_sets import INSTALLED, geometric_mean, name_of
from benchmarks.table_markers import ROOT, PrintedTable, benchmark_parser
from sw.operands import load

COLUMNS = (
    "operand",
    "MACs",
    "B",
    "T_i x T_j x T_k",
    "cycles",
    "model",
    "bound",
    "roofline",
    "ideal",
    "PEs",
    "bytes / compulsory",
    "B load",
    "no A",
    "lookup",
    "dispatch",
    "collect",
    "write",
)
# A mean of its own is that of the operands with more MACs than these: a run of few cycles begins and ends more than it computes.
LARGE = 100_000


def record(
    operand: str,
    config: str,
    engine: str,
    out: Path,
    settings: list[str],
    more: Sequence[str] = (),
    sources: Path = ROOT,
) -> dict[str, Any]:
    """The result record of one run, ``more`` being further words of its command; raises RuntimeError with what that said.

    ``sources``: the checkout that runs; an earlier one may not know how to leave C out.
    """
    folder = (out / operand.replace(":", "_").replace("/", "_")).resolve()  # the run has another working directory
    known = folder / "result.json"
    if not known.exists():
        command = [sys.executable, "-m", "sw", "run", operand, "--config", config, "--engine", engine]
        shape = load(operand).shape
        command += ["--out", str(folder), "--quiet", *(["--no-result"] if sources == ROOT else []), *more]
        command += ["--transpose-b"] if shape[0] != shape[1] else []
        command += [word for setting in settings for word in ("--set", setting)]
        done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{operand}: exit code {done.returncode}: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(known.read_text())
    return found


def difference(run: dict[str, Any]) -> float:
    """How far the model tier's cycles are from those of the run."""
    return float(run["model"]["cycles"] / run["cycles"] - 1)


def row(operand: str, run: dict[str, Any]) -> list[str]:
    """Cells of a run, in the order of COLUMNS; stalls as a share of all cycles."""
    counters, scheme, cycles = run["counters"], run["scheme"], run["cycles"]
    moved = run["dram_bytes"]["total"]
    compulsory = run["useful_bytes"]["total"]

    def share(*names: str) -> str:
        known = [counters[name] for name in names if name in counters]
        return f"{sum(known) / cycles:.0%}" if known else ""

    return [
        name_of(operand),
        f"{run['macs']:,}",
        {"window": "windows", "list": "list", "reuse": "reuse", "planned": "planned"}.get(
            scheme["load"], scheme["mode"]["B"]
        )
        + (" (overbooked)" if run["tiles"]["overbooked"] else ""),
        " x ".join(str(scheme[f"T_{rank}"]) for rank in "ijk"),
        f"{cycles:,}",
        f"{difference(run):+.1%}" if run.get("model") else "",
        run["bound"],
        f"{run['roofline_fraction']:.3f}",
        f"{run['ideal_fraction']:.3f}",
        f"{run['pe_utilization']:.0%}",
        f"{moved / compulsory:.2f}" if compulsory else "",
        share("phase_load_b", "stall_load"),
        share("stall_a_empty"),
        share("stall_lookup"),
        share("stall_dispatch"),
        share("stall_collect"),
        share("stall_write"),
    ]


def fractions(runs: dict[str, dict[str, Any]], of: str = "roofline") -> str:
    """The mean share of the roofline or of the ideal, and the worst with its operand."""
    shares = {name: run[f"{of}_fraction"] for name, run in runs.items()}
    worst = min(shares, key=lambda name: shares[name])
    return f"{geometric_mean(shares.values()):.2f} in the geometric mean, {shares[worst]:.2f} at worst ({worst})"


def summary(runs: dict[str, dict[str, Any]]) -> list[str]:
    """What all runs together say, of each an item."""
    said = [f"*roofline* over the {len(runs)} operands: {fractions(runs)}"]
    large = {name: run for name, run in runs.items() if run["macs"] > LARGE}
    if large:
        said.append(f"over the {len(large)} of more than {LARGE:,} MACs: {fractions(large)}")
    said.append(f"*ideal* over all of them: {fractions(runs, 'ideal')}")
    busy = [run["pe_utilization"] for run in runs.values() if run["bound"] == "compute"]
    if busy:
        said.append(f"where products bound the run, PEs are busy in {min(busy):.0%} to {max(busy):.0%} of all cycles")
    apart = {name: difference(run) for name, run in runs.items() if run.get("model")}
    if apart:
        worst = max(apart, key=lambda name: abs(apart[name]))
        mean = sum(map(abs, apart.values())) / len(apart)
        said.append(f"the model's cycles: {mean:.1%} off in the mean, {apart[worst]:+.1%} at worst ({worst})")
    return [f"- {line}" for line in said]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; returns 1 when a run failed or was wrong, or where the model's traffic is another."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("operands", nargs="*", default=INSTALLED, metavar="OPERAND")
    parser.add_argument("--config", default="edge")
    parser.add_argument("--engine", default="rtl")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", dest="settings")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    folder = options.out / "-".join([options.config, options.engine, *options.settings])
    failed, runs = False, {}
    printed.head(COLUMNS, texts=len(COLUMNS))
    for operand in options.operands:
        try:
            run = record(operand, options.config, options.engine, folder, options.settings)
        except RuntimeError as problem:
            print(problem, file=sys.stderr)
            failed = True
            continue
        failed |= not run["correct"] or not (run.get("model") or {}).get("traffic_equal", True)
        runs[name_of(operand)] = run
        printed.row(row(operand, run))
    if runs:
        printed.line()
        for said in summary(runs):
            printed.line(said)
    if not failed:
        printed.write()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
