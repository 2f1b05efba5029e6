"""Every tiling policy on every operand in the model tier: cycles, traffic, scheduling seconds, regret.

    python -m benchmarks.tilings [--config edge] [--policy hyte]... [--json FILE] [--docs PAGE] [OPERAND]...

C = A x A, or A x A^T where A is not square. Each policy schedules a small operand first, so that no code is compiled or
loaded in the seconds that are noted. Records stay in the JSON file, line by line, and a pair of operand and policy
that is there is not run again. An operand on which some policy has not run is in the table of predictions alone.
``static``: policies whose schemes the hardware can run.
"""

import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.operand_sets import INSTALLED, geometric_mean, name_of
from benchmarks.table_markers import PrintedTable, benchmark_parser
from gen.design import Design, load_design
from sw.model.judge import judge
from sw.model.machine import run_model
from sw.model.shaped import run_shaped
from sw.operands import load, to_csr
from sw.plan.plan import plan
from sw.policies.registry import POLICIES, schedule

# Left out unless asked for: the conservative tile of a sparse operand is orders of magnitude too small, every scheme is many.
LEFT_OUT = ("uniform", "optimal")
# Scheduled before any other: its policies use most of their code on it.
FIRST = "rmat:9:8"
# What the hardware cannot run, and `auto` where it may choose that too.
VARIANTS = {"auto, uneven": ("auto", {"uneven": True})}
UNEVEN = ("drt", "harp", *VARIANTS)


def record(
    operand: str, policies: Iterable[str], design: Design, known: dict[tuple[str, str], Any]
) -> list[dict[str, Any]]:
    """Rows of one operand, new ones run."""
    wanted = [p for p in policies if (operand, p) not in known]
    if not wanted:
        return []
    began = time.perf_counter()
    matrix = load(operand)
    seconds = time.perf_counter() - began
    pair = (matrix, matrix if matrix.shape[0] == matrix.shape[1] else matrix.transposed())
    a, b = (to_csr(m, design.pe.value) for m in pair)
    b = a if pair[0] is pair[1] else b
    found = []
    for policy in wanted:
        name, settings = VARIANTS.get(policy, (policy, {}))
        scheme = schedule(name, pair[0].matrix, pair[1].matrix, design, judge=judge(design), **settings)
        began = time.perf_counter()
        result = (run_shaped if scheme.uneven else run_model)(design, plan(scheme, a, b, design))
        assert result.dram_bytes is not None and result.cycles is not None
        found.append(
            {
                "operand": operand,
                "nnz": a.nnz,
                "macs": result.counters["macs"],
                "policy": policy,
                "tile": [scheme.T_i, scheme.T_j, scheme.T_k],
                "order": scheme.order,
                "mode": scheme.mode,
                "tiles": len(scheme.tiles),
                "cycles": result.cycles,
                "bytes": sum(sum(kinds.values()) for kinds in result.dram_bytes.values()),
                "predicted": scheme.predicted,
                "schedule_seconds": scheme.seconds,
                "load_seconds": seconds,
                "model_seconds": time.perf_counter() - began,
            }
        )
    return found


def tables(rows: list[dict[str, Any]], mhz: float) -> list[str]:
    """Cycles by operand and policy over the best static one; geometric means, with and without scheduling; regret."""
    policies = [p for p in (*POLICIES, *VARIANTS) if any(r["policy"] == p for r in rows)]
    operands = list(dict.fromkeys(r["operand"] for r in rows))
    by = {(r["operand"], r["policy"]): r for r in rows}
    operands = [o for o in operands if all((o, p) in by for p in policies)]
    static = [p for p in policies if p not in UNEVEN]
    best = {o: min(by[o, p]["cycles"] for p in static) for o in operands}
    lines = [
        f"| operand | nonzeros | best static, cycles | {' | '.join(policies)} |",
        "| --- " * (len(policies) + 3) + "|",
    ]
    for o in operands:
        over = [f"{by[o, p]['cycles'] / best[o]:.2f}" for p in policies]
        lines.append(f"| {name_of(o)} | {by[o, policies[0]]['nnz']:,} | {best[o]:,} | {' | '.join(over)} |")

    def row(title: str, values: Iterable[str]) -> None:
        lines.append(f"| {title} | | | {' | '.join(values)} |")

    row(
        "**cycles, geometric mean**",
        (f"{geometric_mean(by[o, p]['cycles'] / best[o] for o in operands):.3f}" for p in policies),
    )
    fewest = {o: min(by[o, p]["bytes"] for p in static) for o in operands}
    row(
        "bytes over the fewest",
        (f"{geometric_mean(by[o, p]['bytes'] / fewest[o] for o in operands):.3f}" for p in policies),
    )
    row("worst regret", (f"{max(by[o, p]['cycles'] / best[o] - 1 for o in operands):.0%}" for p in policies))
    row("best or within 3 %", (f"{sum(by[o, p]['cycles'] <= 1.03 * best[o] for o in operands)}" for p in policies))
    row("scheduling, s", (f"{geometric_mean(by[o, p]['schedule_seconds'] for o in operands):.2f}" for p in policies))
    row(
        "scheduling over loading",
        (
            f"{geometric_mean(by[o, p]['schedule_seconds'] / max(1e-3, by[o, p]['load_seconds']) for o in operands):.1f}"
            for p in policies
        ),
    )

    def whole(o: str, p: str) -> float:
        return float(by[o, p]["cycles"] / mhz / 1e6 + by[o, p]["schedule_seconds"])

    quickest = {o: min(whole(o, p) for p in static) for o in operands}
    row("run and scheduling", (f"{geometric_mean(whole(o, p) / quickest[o] for o in operands):.2f}" for p in policies))
    return lines


def prediction_table(rows: list[dict[str, Any]], policies: Iterable[str]) -> list[str]:
    """What schemes record as predicted over the model's cycles, by policy: mean and worst error, and where that is."""
    lines = ["| policy | operands | mean | at worst | on |", "| --- | --- | --- | --- | --- |"]
    for policy in policies:
        off = {name_of(r["operand"]): r["predicted"]["cycles"] / r["cycles"] - 1 for r in rows if r["policy"] == policy}
        if off:
            worst = max(off, key=lambda name: abs(off[name]))
            each = sum(abs(error) for error in off.values()) / len(off)
            lines.append(f"| {policy} | {len(off)} | {each:.1%} | {off[worst]:+.1%} | {worst} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the tables; returns 1 when an operand could not be read or run."""
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("operands", nargs="*", default=INSTALLED, metavar="OPERAND")
    parser.add_argument("--config", default="edge")
    parser.add_argument("--policy", action="append", help="repeatable; all but uniform and optimal without it")
    parser.add_argument("--json", type=Path, help="records so far and new ones, one a line")
    options = parser.parse_args(arguments)
    printed = PrintedTable(parser, options)
    policies = options.policy or [p for p in (*POLICIES, *VARIANTS) if p not in LEFT_OUT]
    for policy in policies:
        if policy not in (*POLICIES, *VARIANTS):
            parser.error(f"--policy {policy}: must be one of {', '.join((*POLICIES, *VARIANTS))}")
    design = load_design(options.config, ["pe.value=fp32"])
    rows: list[dict[str, Any]] = []
    if options.json is not None and options.json.exists():
        rows = [json.loads(line) for line in options.json.read_text(encoding="utf-8").splitlines()]
    failed = False
    record(FIRST, policies, design, {})
    for operand in options.operands:
        known = {(r["operand"], r["policy"]): r for r in rows}
        try:
            new = record(operand, policies, design, known)
        except ValueError as problem:  # what operands and schemes complain of
            print(f"{operand}: {problem}", file=sys.stderr)
            failed = True
            continue
        rows += new
        for r in new:
            print(
                f"{name_of(operand)} {r['policy']}: {r['cycles']:,} in {r['schedule_seconds']:.2f} s", file=sys.stderr
            )
        if options.json is not None and new:
            with options.json.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(r) + "\n" for r in new)
    wanted = [r for r in rows if r["operand"] in options.operands and r["policy"] in policies]
    names = ", ".join(dict.fromkeys(name_of(r["operand"]) for r in wanted))
    said = "What schemes record as predicted, over the cycles of the model, on"
    for line in (*tables(wanted, design.clock.mhz), "", f"{said} {names}:", "", *prediction_table(wanted, policies)):
        printed.line(line)
    if not failed:
        printed.write()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
