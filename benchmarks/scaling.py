"""How long policies and the model tier take on matrices from 10^5 to 10^8 nonzeros, in processor time, and how that grows.

    python -m benchmarks.scaling [--config edge] [--kind rmat banded] [--most 1e8] [--json FILE] [--plot FILE.svg]

Each size is a process of its own, which makes the matrix, writes it as Matrix Market, reads that, lets every policy choose a
scheme for A x A, and runs the model tier on the last one. Reading is left out above ``--most-read`` nonzeros, the model tier
above ``--most-macs``. Records stay in the JSON file, line by line, and a size that is there is not run again. The exponent
is that of a power law fitted to the sizes of 10^6 nonzeros and more, below which constant costs show.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.table_markers import PrintedTable, benchmark_parser

KINDS: dict[str, Callable[[float], str]] = {
    # 16 edges a node, about an eighth of them drawn twice.
    "rmat": lambda nonzeros: f"rmat:{round(math.log2(nonzeros / 16))}:16",
    # 17 elements a row.
    "banded": lambda nonzeros: f"banded:{round(nonzeros / 17)}:8",
}
POLICIES = ("prescient", "swiftiles", "hyte", "d2t2", "auto")
FITTED_FROM = 9e5


def measure(operand: str, config: str, most_read: float, most_macs: float) -> dict[str, Any]:
    """One size: processor seconds of every step, peak memory in MiB."""
    import scipy.io

    from gen.design import load_design
    from sw.model.judge import judge
    from sw.model.machine import run_model
    from sw.operands import load, to_csr
    from sw.plan.plan import plan
    from sw.policies.registry import schedule
    from sw.stats.workload import Workload

    design = load_design(config, ["pe.value=fp32"])
    warm = load(
        "uniform:3000:3000:0.003"
    ).matrix  # compiled kernels come from their cache here, not in what is measured
    for policy in POLICIES:
        schedule(policy, warm, warm, design, judge=judge(design))
    matrix = load(operand).matrix
    seconds: dict[str, float] = {}
    if matrix.nnz <= most_read:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "operand.mtx"
            scipy.io.mmwrite(path, matrix)
            began = time.process_time()
            load(str(path))
            seconds["reading"] = time.process_time() - began
    for policy in POLICIES:
        began = time.process_time()
        scheme = schedule(policy, matrix, matrix, design, judge=judge(design))
        seconds[policy] = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    macs = Workload(matrix, matrix, lanes=design.lanes).effmac
    found = {
        "operand": operand,
        "rows": matrix.shape[0],
        "nnz": matrix.nnz,
        "macs": macs,
        "scheduling_mib": peak / 1024,
    }
    if macs <= most_macs:
        csr = to_csr(load(operand), design.pe.value)
        began = time.process_time()
        run_model(design, plan(scheme, csr, csr, design))
        seconds["model"] = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found | {"seconds": seconds, "mib": peak / 1024}


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """Slope of the straight line through the logarithms; None for fewer than three sizes."""
    points = [p for p in points if p[0] >= FITTED_FROM]
    if len(points) < 3:
        return None
    x, y = np.log(np.array(points)).T
    return float(np.polyfit(x, y, 1)[0])


def table(rows: list[dict[str, Any]]) -> str:
    """A row for each size, and the exponents."""
    steps = ("reading", *POLICIES, "model")
    lines = [
        f"| operand | nonzeros | MACs | {' | '.join(steps)} | scheduling, MiB | all, MiB |",
        "| --- " + "| ---: " * (len(steps) + 4) + "|",
    ]
    for r in rows:
        taken = [f"{r['seconds'][s]:.2f}" if s in r["seconds"] else "" for s in steps]
        sizes = f"{r['nnz']:,} | {r['macs']:,.0f}"
        lines.append(
            f"| {r['operand']} | {sizes} | {' | '.join(taken)} | {r['scheduling_mib']:,.0f} | {r['mib']:,.0f} |"
        )
    for kind in KINDS:
        own = [r for r in rows if r["operand"].startswith(kind)]
        slopes = [exponent([(r["nnz"], r["seconds"][s]) for r in own if s in r["seconds"]]) for s in steps]
        shown = ["" if slope is None else f"{slope:.2f}" for slope in slopes]
        lines.append(f"| **{kind}, exponent** | | | {' | '.join(shown)} | | |")
    return "\n".join(lines)


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Processor seconds over nonzeros on logarithmic axes, one picture for each kind."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams |= {"svg.hashsalt": "fiberloom", "svg.fonttype": "none"}
    kinds = [kind for kind in KINDS if any(r["operand"].startswith(kind) for r in rows)]
    figure, axes = pyplot.subplots(1, len(kinds), figsize=(5 * len(kinds), 4), sharey=True, squeeze=False)
    for axis, kind in zip(axes[0], kinds, strict=True):
        own = [r for r in rows if r["operand"].startswith(kind)]
        for step in ("reading", *POLICIES, "model"):
            points = [(r["nnz"], r["seconds"][step]) for r in own if step in r["seconds"]]
            slope = exponent(points)
            label = step if slope is None else f"{step}, {slope:.2f}"
            axis.loglog(*zip(*points, strict=True), marker="o", markersize=3, label=label)
        axis.set(title=kind, xlabel="nonzeros")
        axis.grid(True, which="major", alpha=0.3)
        axis.legend(fontsize="small", title="step, exponent", title_fontsize="small")
    axes[0][0].set_ylabel("processor seconds")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; returns 1 when a size failed."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("--config", default="edge")
    parser.add_argument("--kind", nargs="+", choices=tuple(KINDS), default=list(KINDS))
    parser.add_argument("--most", type=float, default=1e8, help="nonzeros of the largest")
    parser.add_argument("--most-read", type=float, default=2e7, help="nonzeros of the largest that is read from a file")
    parser.add_argument(
        "--most-macs", type=float, default=5e8, help="effectual MACs of the largest run of the model tier"
    )
    parser.add_argument("--json", type=Path, help="records so far and new ones, one a line")
    parser.add_argument("--plot", type=Path, help="an SVG file to write (needs matplotlib)")
    parser.add_argument("--one", metavar="OPERAND", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measure(options.one, options.config, options.most_read, options.most_macs)))
        return 0
    printed = PrintedTable(parser, options)
    rows: list[dict[str, Any]] = []
    if options.json is not None and options.json.exists():
        rows = [json.loads(line) for line in options.json.read_text(encoding="utf-8").splitlines()]
    limits = ["--config", options.config, "--most-read", str(options.most_read), "--most-macs", str(options.most_macs)]
    failed = False
    for kind in options.kind:
        for half_decade in range(10, round(2 * math.log10(options.most)) + 1):
            operand = KINDS[kind](10 ** (half_decade / 2))
            if any(r["operand"] == operand for r in rows):
                continue
            command = [sys.executable, __file__, "--one", operand, *limits]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                last = done.stderr.strip().splitlines()[-1:] or [f"ended by signal {-done.returncode}"]
                print(f"{operand}: {last[0]}", file=sys.stderr)
                failed = True
                continue
            rows.append(json.loads(done.stdout))
            print(f"{operand}: {rows[-1]['seconds']}", file=sys.stderr)
            if options.json is not None:
                with options.json.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    printed.line(table(rows))
    if not failed:
        printed.write()
    if options.plot is not None:
        plot(rows, options.plot)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
