"""ExTensor with conservative, prescient and overbooked tiles: speedup, energy, streaming. Paper: Tailors, figures 7 to 10.

    python benchmarks/tailors.py [--square] [--fill 4] [--seeds 5] [--json FILE] [OPERAND]...

Z = A x A^T. With ``--fill F`` all buffers shrink or grow together until either half of the global buffer holds an F-th of the
operand's nonzeros, as 15 MiB do for the paper's larger operands (roadNet-CA: 2.9, pwtk: 5.9); ``--fill 0`` leaves the paper's
30 MiB. First table: cycles and energy by operand; ``operands`` is the time to read A and B alone, without Z's way to memory,
which all variants share. Second: OB over P by y (figure 10). OB's figures are geometric means over the seeds of its samples.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from extensor.machine import ENTRY_BYTES, ExTensor
from extensor.run import Run, run_extensor, tile_for
from extensor.tiles import Operands
from operand_sets import MIXED

from sw.operands import load
from sw.stats.pattern import Pattern

SHARES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.22, 0.3, 0.5, 0.75, 1.0)


def machine_for(nonzeros: int, fill: float) -> ExTensor:
    """The paper's machine, or one with buffers in proportion to the operand."""
    base = ExTensor()
    return base if fill == 0 else base.scaled(nonzeros / fill / base.global_entries)


def figures(run: Run, machine: ExTensor) -> dict[str, Any]:
    """What the tables need of a run."""
    read = ENTRY_BYTES * (run.accesses.dram["A"] + run.accesses.dram["B"]) / machine.dram_bytes_per_cycle
    return {
        "cycles": run.cycles,
        "operands": read,
        "energy": run.total_energy,
        "bound": run.bound,
        "streaming": run.accesses.streaming_overhead,
        "overbooked": run.accesses.overbooked,
        "bumped": run.accesses.bumped,
    }


def record(operand: str, fill: float, seeds: int, square: bool) -> dict[str, Any]:
    """All variants of one operand."""
    known = load(operand)
    a = Pattern.of(known.matrix)
    operands = Operands.of(a, Pattern.of(known.transposed().matrix))
    machine = machine_for(a.nnz, fill)
    found: dict[str, Any] = {"operand": known.name, "nnz": a.nnz, "fill": a.nnz / machine.global_entries}
    for variant in ("N", "P"):
        plain = replace(machine, tailors=False)
        found[variant] = figures(
            run_extensor(plain, tile_for(variant, plain, operands, square=square), operands), plain
        )
    found["OB"] = {}
    for y in SHARES:
        tilings = [
            tile_for("OB", machine, operands, y=y, seed=seed, square=square) for seed in range(seeds if 0 < y else 1)
        ]
        runs = {t: figures(run_extensor(machine, t, operands), machine) for t in dict.fromkeys(tilings)}
        found["OB"][str(y)] = [runs[t] for t in tilings]
    return found


def mean(values: Iterable[float]) -> float:
    """Geometric mean."""
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def overbooked(row: dict[str, Any], what: str, y: float = 0.1) -> float:
    return mean(r[what] for r in row["OB"][str(y)])


def tables(rows: list[dict[str, Any]]) -> str:
    """Speedups, energy and streaming by operand, their means, and the sweep over y."""
    ratios = (
        ("OB / N", lambda r, what: r["N"][what] / overbooked(r, what)),
        ("P / N", lambda r, what: r["N"][what] / r["P"][what]),
        ("OB / P", lambda r, what: r["P"][what] / overbooked(r, what)),
    )
    whats = ("cycles", "operands", "energy")
    heads = [f"{name}, {what}" for what in whats for name, _ in ratios]
    lines = [f"| operand | nonzeros | fill | bound | {' | '.join(heads)} | streaming | tiles over, elements |"]
    lines.append("| --- | ---: | ---: | --- |" + " ---: |" * (len(heads) + 2))
    for r in rows:
        cells = [f"{ratio(r, what):.2f}" for what in whats for _, ratio in ratios]
        many = r["OB"]["0.1"]
        streaming = sum(m["streaming"] for m in many) / len(many)
        over = [sum(m["overbooked"][level] for m in many) / len(many) for level in ("global", "pe")]
        lines.append(
            f"| {r['operand']} | {r['nnz']:,} | {r['fill']:.1f} | {many[0]['bound']} | {' | '.join(cells)} "
            f"| {streaming:.0%} | {over[0]:.0%}, {over[1]:.0%} |"
        )
    cells = [f"{mean(ratio(r, what) for r in rows):.2f}" for what in whats for _, ratio in ratios]
    streaming = sum(m["streaming"] for r in rows for m in r["OB"]["0.1"]) / sum(len(r["OB"]["0.1"]) for r in rows)
    lines.append(f"| **mean** | | | | {' | '.join(cells)} | {streaming:.0%} | |")
    lines += ["", "| y | " + " | ".join(f"{y:.0%}" for y in SHARES) + " | best of them |"]
    lines.append("| --- |" + " ---: |" * (len(SHARES) + 1))
    for what in whats:
        by = [[r["P"][what] / overbooked(r, what, y) for r in rows] for y in SHARES]
        best = mean(max(values) for values in zip(*by, strict=True))
        lines.append(f"| OB / P, {what} | " + " | ".join(f"{mean(values):.2f}" for values in by) + f" | {best:.2f} |")
    return "\n".join(lines)


def main() -> int:
    """Prints the tables; returns 1 when an operand could not be read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operands", nargs="*", default=MIXED, metavar="OPERAND")
    parser.add_argument("--fill", type=float, default=4.0, help="nonzeros over what half of the global buffer holds")
    parser.add_argument("--square", action="store_true", help="tiles grow as squares, not along k first")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="records, one a line")
    options = parser.parse_args()
    if options.fill < 0 or options.seeds < 1:
        parser.error("--fill must be at least 0 and --seeds at least 1")
    rows, failed = [], False
    for operand in options.operands:
        try:
            rows.append(record(operand, options.fill, options.seeds, options.square))
        except ValueError as problem:  # what operands complain of
            print(f"{operand}: {problem}", file=sys.stderr)
            failed = True
            continue
        print(f"{rows[-1]['operand']}: {rows[-1]['nnz']:,} nonzeros", file=sys.stderr)
        if options.json is not None:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    if rows:
        print(tables(rows))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
