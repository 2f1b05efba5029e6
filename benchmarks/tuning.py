"""How much dynamic tuning wins back when the schedule was wrong: the table of docs/papers.md, by the model tier.

    python -m benchmarks.tuning [--config edge] [--order jki] [--json FILE] [--write docs/papers.md] OPERAND...

For each operand the best static shape of the order is searched. It is then made wrong by 2 and 4, longer and shorter, in
each dimension; each shape runs with tuning off, and on by each of three rules. ``hit rate`` is the hardware's. ``text`` is
HYTE's section 6.4 to the letter, ``cost model`` that of the simulator published with it: both are of the model alone
(:mod:`sw.model.tuning_rules`). The loss is the cycles above those of the right shape, off.
"""

import argparse
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.table_markers import stamp, write_table
from gen.design import Design, load_design
from sw.formats.csr import Csr
from sw.formats.memory_csr import ELEMENT_BYTES
from sw.model.machine import run_model
from sw.model.tuning_rules import ByCost, run_with_rule, text_rule
from sw.operands import load, to_csr
from sw.plan.plan import plan
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition
from sw.scheme.terms import BUFFERING, STREAMING
from sw.stats.pattern import Pattern
from sw.stats.workload import Workload

RULES = ("off", "hit rate", "text", "cost model")
OPERANDS = ("pyamg:airfoil", "pyamg:bar", "pyamg:knot", "pyamg:recirc_flow", "pyamg:unit_cube", "mycielskian:9")
# Factors of T_k and T_j.
WRONG = (
    (4, 1),
    (2, 1),
    (0.5, 1),
    (0.25, 1),
    (1, 4),
    (1, 2),
    (1, 0.5),
    (1, 0.25),
    (2, 2),
    (4, 4),
    (0.5, 0.5),
    (0.25, 0.25),
)


def shaped(design: Design, order: str, rows: int, side_j: int, side_k: int) -> Scheme:
    """A and C streamed, A not cut along i, so that shapes of B alone are compared."""
    buffer_bytes, fifo_bytes = default_partition(design, partial_rows=True)
    return Scheme(
        policy="benchmark",
        order=order,
        T_i=rows,
        T_j=side_j,
        T_k=side_k,
        buffer_bytes=buffer_bytes,
        fifo_bytes=fifo_bytes,
        mode={"A": STREAMING, "B": BUFFERING, "C": STREAMING},
    )


def right_shape(design: Design, order: str, matrix: Csr) -> tuple[int, int]:
    """T_j and T_k of the fewest cycles without tuning: powers of two or whole, found by climbing from a quarter."""
    most = [max(2, (n - 1).bit_length()) for n in (matrix.columns, matrix.rows)]
    known: dict[tuple[int, int], float] = {}

    def cycles(at: tuple[int, int]) -> float:
        if at not in known:
            known[at] = math.inf
            scheme = shaped(design, order, matrix.rows, 1 << at[0], 1 << at[1])
            scheme = scheme.clip(matrix.rows, matrix.columns, matrix.rows)
            try:
                scheme.validate(design, matrix.rows, matrix.columns, matrix.rows)
                known[at] = measured(design, scheme, matrix, "off")["cycles"]
            except SchemeError:
                pass
        return known[at]

    at = (max(2, most[0] - 2), max(2, most[1] - 2))
    while cycles(at) == math.inf and at[1] > 0:
        at = (at[0], at[1] - 1)
    while True:
        around = [(at[0] + j, at[1] + k) for j in (-1, 0, 1) for k in (-1, 0, 1)]
        best = min((p for p in around if 2 <= p[0] <= most[0] and 2 <= p[1] <= most[1]), key=cycles, default=at)
        if cycles(best) >= cycles(at):
            return min(1 << at[0], matrix.columns), min(1 << at[1], matrix.rows)
        at = best


def measured(
    design: Design, scheme: Scheme, matrix: Csr, rule: str, workload: Workload | None = None
) -> dict[str, int]:
    """Cycles, bytes and changes of shape; ``workload``: what the rule of the cost model asks about."""
    planned = plan(replace(scheme, tuning=rule != "off"), matrix, matrix, design)
    if rule in ("off", "hit rate"):
        result = run_model(design, planned)
    else:
        assert workload is not None
        result = run_with_rule(design, planned, text_rule if rule == "text" else ByCost(workload, design, scheme))
    assert result.dram_bytes is not None and result.cycles is not None
    moved = sum(sum(kinds.values()) for kinds in result.dram_bytes.values())
    return {"cycles": result.cycles, "bytes": moved, "changes": len(result.adjustments)}


def workload_of(matrix: Csr, design: Design) -> Workload:
    pattern = Pattern(matrix.rows, matrix.columns, matrix.pointers.astype("int64"), matrix.coordinates.astype("int64"))
    return Workload(pattern, pattern, lanes=design.lanes)


def rows_of(operand: str, design: Design, order: str) -> list[dict[str, Any]]:
    """One row a schedule: the right one, then the wrong ones."""
    matrix = to_csr(load(operand), design.pe.value)
    side_j, side_k = right_shape(design, order, matrix)
    right = shaped(design, order, matrix.rows, side_j, side_k)
    base = measured(design, right, matrix, "off")
    workload = workload_of(matrix, design)
    found = []
    for factor_k, factor_j in ((1, 1), *WRONG):
        wrong = replace(
            right,
            T_j=min(matrix.columns, max(1, int(side_j * factor_j))),
            T_k=min(matrix.rows, max(1, int(side_k * factor_k))),
        )
        try:
            wrong.validate(design, matrix.rows, matrix.columns, matrix.rows)
        except SchemeError:
            continue
        if (wrong.T_j < side_j * factor_j) and factor_j > 1 or (wrong.T_k < side_k * factor_k) and factor_k > 1:
            continue  # the rank is no longer than that
        runs = {rule: measured(design, wrong, matrix, rule, workload) for rule in RULES}
        row: dict[str, Any] = {"operand": operand, "order": order, "T_k": wrong.T_k, "T_j": wrong.T_j}
        row["factors"] = (factor_k, factor_j)
        row["large"] = matrix.nnz * ELEMENT_BYTES > right.buffer_bytes["B"]
        row["cycles"] = {rule: run["cycles"] / base["cycles"] for rule, run in runs.items()}
        row["bytes"] = {rule: run["bytes"] / base["bytes"] for rule, run in runs.items()}
        row["changes"] = {rule: run["changes"] for rule, run in runs.items()}
        found.append(row)
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """By kind of error, then by operand: geometric means of cycles and bytes by each rule, and mean changes of shape."""
    tuned = RULES[1:]
    names = ["T_k, T_j", "operands", *(f"cycles: {r}" if r == "off" else r for r in RULES)]
    names += [f"bytes: {r}" if r == "off" else r for r in RULES]
    names += [f"changes: {r}" if r == tuned[0] else r for r in tuned]
    lines = [f"| {' | '.join(names)} |", "|" + " ---: |" * len(names)]

    def line(title: str, group: list[dict[str, Any]]) -> str:
        means = [
            math.exp(sum(math.log(r[what][rule]) for r in group) / len(group))
            for what in ("cycles", "bytes")
            for rule in RULES
        ]
        changes = [sum(r["changes"][rule] for r in group) / len(group) for rule in tuned]
        cells = [title, f"{len(group)}", *(f"{mean:.2f}" for mean in means), *(f"{c:.1f}" for c in changes)]
        return f"| {' | '.join(cells)} |"

    large = [r for r in rows if r["large"]] or rows  # small ones have nothing to lose
    for factors in dict.fromkeys(r["factors"] for r in large):
        group = [r for r in large if r["factors"] == factors]
        lines.append(line(f"x {factors[0]:g}, x {factors[1]:g}", group))
    wrong = [r for r in rows if r["factors"] != (1, 1)]
    lines.append(line("**wrong ones**", [r for r in wrong if r in large]))
    for operand in dict.fromkeys(r["operand"] for r in wrong):
        lines.append(line(Path(operand).name.removesuffix(".npz"), [r for r in wrong if r["operand"] == operand]))
    return "\n".join(lines)


def main() -> None:
    """Prints one table an order."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("operands", nargs="*", default=list(OPERANDS), metavar="OPERAND")
    parser.add_argument("--config", default="tiny")
    parser.add_argument("--order", action="append", help="repeatable; jki and kij without it")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables between their markers")
    parser.add_argument("--json", type=Path, help="also write every row to this file")
    arguments = parser.parse_args()
    design = load_design(arguments.config, ["pe.value=fp32"])
    everything = []
    for order in arguments.order or ["jki", "kij"]:
        rows = []
        for operand in arguments.operands:
            found = rows_of(operand, design, order)
            print(f"{order} {operand}: T_k {found[0]['T_k']}, T_j {found[0]['T_j']}", file=sys.stderr)
            rows += found
        print(f"\nOrder `{order}`, `{arguments.config}`:\n\n{table(rows)}")
        if arguments.write is not None:
            command = f"python -m benchmarks.tuning --config {arguments.config} --order {order}"
            write_table(arguments.write, f"HYTE, tuning, {order}", [*table(rows).split("\n"), "", stamp(command)])
        everything += rows
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(everything, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
