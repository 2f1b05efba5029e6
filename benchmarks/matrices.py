"""Runs operands through an engine and prints the table of docs/benchmarks.md: cycles against the roofline, and stalls.

    python benchmarks/matrices.py [--config edge] [--engine rtl] [--out FOLDER] OPERAND...

Every run is a command line of its own, so that each row can be repeated by hand. Records stay in the output folder, and a
row whose record is there already is not run again.
"""

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Real matrices that install with the package, and an exactly generated one.
OPERANDS = (
    "pyamg:airfoil",
    "pyamg:bar",
    "pyamg:knot",
    "pyamg:recirc_flow",
    "pyamg:unit_cube",
    "pyamg:local_disc_galerkin_diffusion",
    "mycielskian:9",
)
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
    "kcycles/s",
)


def record(
    operand: str, config: str, engine: str, out: Path, settings: list[str], more: Sequence[str] = ()
) -> dict[str, Any]:
    """The result record of one run, ``more`` being further words of its command; raises RuntimeError with what that said."""
    folder = out / operand.replace(":", "_").replace("/", "_")
    known = folder / "result.json"
    if not known.exists():
        command = [sys.executable, "-m", "sw", "run", operand, "--config", config, "--engine", engine]
        command += [
            "--out",
            str(folder),
            "--quiet",
            *(word for setting in settings for word in ("--set", setting)),
            *more,
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
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

    seconds = run["seconds"]["simulate"]
    return [
        Path(operand).stem if "/" in operand else operand,
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
        f"{cycles / seconds / 1000:.0f}" if seconds else "",
    ]


def main() -> int:
    """Prints the table; returns 1 when a run failed or was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operands", nargs="*", default=OPERANDS)
    parser.add_argument("--config", default="edge")
    parser.add_argument("--engine", default="rtl")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", dest="settings")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench")
    options = parser.parse_args()
    failed = False
    fractions = []
    apart = []
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + " --- |" * len(COLUMNS), flush=True)
    for operand in options.operands:
        folder = options.out / f"{options.config}-{options.engine}"
        try:
            run = record(operand, options.config, options.engine, folder, options.settings)
        except RuntimeError as problem:
            print(problem, file=sys.stderr)
            failed = True
            continue
        failed |= not run["correct"]
        fractions.append(run["roofline_fraction"])
        if run.get("model"):
            apart.append(abs(difference(run)))
        print("| " + " | ".join(row(operand, run)) + " |", flush=True)
    if fractions:
        mean = math.exp(sum(map(math.log, fractions)) / len(fractions))
        print(f"\nroofline_fraction: {mean:.3f} in geometric mean over {len(fractions)}, {min(fractions):.3f} at worst")
    if apart:
        print(f"model: {sum(apart) / len(apart):.1%} from the cycles of the runs in mean, {max(apart):.1%} at worst")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
