"""ExTensor with conservative, prescient and overbooked tiles: speedup, energy, streaming. Paper: Tailors, figures 7 to 10.

    python -m benchmarks.tailors [--k-first] [--fill 4] [--pe-bytes N] [--all-tiles] [--by-fiber] [--seeds 5]
        [--only-target] [--json FILE] [--docs PAGE] [OPERAND]...

Z = A x A^T. With ``--fill F`` all buffers shrink or grow together until either half of the global buffer holds an F-th of the
operand's nonzeros, as 15 MiB do for the paper's larger operands (roadNet-CA: 2.9, pwtk: 5.9); ``--fill 0`` leaves the paper's
30 MiB. First table: cycles, memory, reads of A and B, Z, energy by operand. Second: what streams and what is reused (figure 9).
Third: OB over P by y (figure 10). OB's figures are geometric means over the seeds of its samples. Generated operands are shown
and are in no mean. ``--docs`` puts the tables between their markers.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sw.operands.errors import OperandError
from sw.stats.pattern import Pattern

from .extensor.machine import ENTRY_BYTES, ExTensor
from .extensor.run import Run, run_extensor, tile_for
from .extensor.tiles import Operands
from .extensor.work import block_cycles
from .operand_sets import MIXED
from .stand_ins import is_generated, operand
from .table_markers import stamp, write_table

SHARES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.22, 0.3, 0.5, 0.75, 1.0)
TARGET = 0.1  # the share that the paper chooses
WHATS = ("cycles", "memory", "reads", "energy")
COMMAND = "python -m benchmarks.tailors"


def machine_for(nonzeros: int, fill: float, pe_bytes: int | None = None) -> ExTensor:
    """The paper's machine, or one with buffers in proportion to the operand; ``pe_bytes`` are those of the paper's."""
    base = ExTensor() if pe_bytes is None else ExTensor(pe_bytes=pe_bytes)
    return base if fill == 0 else base.scaled(nonzeros / fill / base.global_entries)


def figures(run: Run, machine: ExTensor) -> dict[str, Any]:
    """What the tables need of a run. ``memory``: cycles that memory alone takes; ``reads``: those of A and B alone."""
    moved = run.accesses
    return {
        "cycles": run.cycles,
        "memory": run.time["dram"],
        "reads": ENTRY_BYTES * (moved.dram["A"] + moved.dram["B"]) / machine.dram_bytes_per_cycle,
        "Z": ENTRY_BYTES * moved.dram["Z"] / machine.dram_bytes_per_cycle,
        "energy": run.total_energy,
        "bound": run.bound,
        "rate": run.global_bytes_per_cycle,
        "streaming": moved.streaming_overhead,
        "overbooked": moved.overbooked,
        "bumped": moved.bumped,
        "passed": moved.passed,
        "reused": moved.reused,
    }


def record(
    name: str,
    fill: float,
    seeds: int,
    *,
    k_first: bool = False,
    shares: Sequence[float] = SHARES,
    pe_bytes: int | None = None,
    changes: dict[str, bool] | None = None,
) -> dict[str, Any]:
    """All variants of one operand; OB at each of the shares, of which TARGET must be one; ``changes`` are of ExTensor's fields.

    Raises OperandError.
    """
    known = operand(name)
    a = Pattern.of(known.matrix)
    operands = Operands.of(a, Pattern.of(known.transposed().matrix))
    machine = replace(machine_for(a.nnz, fill, pe_bytes), **(changes or {}))
    found: dict[str, Any] = {
        "operand": known.name,
        "generated": is_generated(name),
        "nnz": a.nnz,
        "fill": a.nnz / machine.global_entries,
        "OB": {},
    }

    def whole(run: Run, machine: ExTensor) -> float:
        """Cycles where a block of Z is the work of one element."""
        return max(run.time["dram"], block_cycles(machine, run.tiling, operands))

    for variant in ("N", "P"):
        plain = replace(machine, tailors=False)
        run = run_extensor(plain, tile_for(variant, plain, operands, k_first=k_first), operands)
        found[variant] = figures(run, plain) | {"blocks": whole(run, plain)}
    for y in shares:
        tilings = [
            tile_for("OB", machine, operands, y=y, seed=seed, k_first=k_first) for seed in range(seeds if 0 < y else 1)
        ]
        runs = {}
        for tiling in dict.fromkeys(tilings):
            run = run_extensor(machine, tiling, operands)
            runs[tiling] = figures(run, machine) | ({"blocks": whole(run, machine)} if y == TARGET else {})
        found["OB"][str(y)] = [runs[tiling] for tiling in tilings]
    return found


def mean(values: Iterable[float]) -> float:
    """Geometric mean."""
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def overbooked(row: dict[str, Any], what: str, y: float = TARGET) -> float:
    return mean(r[what] for r in row["OB"][str(y)])


RATIOS: dict[str, Callable[[dict[str, Any], str], float]] = {
    "OB / N": lambda row, what: row["N"][what] / overbooked(row, what),
    "P / N": lambda row, what: row["N"][what] / row["P"][what],
    "OB / P": lambda row, what: row["P"][what] / overbooked(row, what),
}


def average(row: dict[str, Any], what: str, level: str | None = None) -> float:
    """Arithmetic mean over OB's seeds."""
    return float(np.mean([r[what] if level is None else r[what][level] for r in row["OB"][str(TARGET)]]))


def named(row: dict[str, Any]) -> str:
    return f"{row['operand']} (generated)" if row["generated"] else str(row["operand"])


def speedups(row: dict[str, Any]) -> str:
    """A row of the first table."""
    cells = [f"{ratio(row, what):.2f}" for ratio in RATIOS.values() for what in WHATS]
    many = row["OB"][str(TARGET)]
    share = average(row, "Z") / mean(r["memory"] for r in many)
    return (
        f"| {named(row)} | {row['nnz']:,} | {row['fill']:.2f} | {many[0]['bound']} | {' | '.join(cells)} "
        f"| {share:.0%} | {average(row, 'rate'):.0f} | {RATIOS['OB / P'](row, 'blocks'):.2f} |"
    )


def reuse(row: dict[str, Any]) -> str:
    """A row of the second table."""
    cells = [f"{average(row, what, level):.1%}" for what in ("overbooked", "bumped") for level in ("global", "pe")]
    for level in ("global", "pe"):
        passes = any(r["passed"][level] for r in row["OB"][str(TARGET)])
        cells.append(f"{average(row, 'reused', level):.1%}" if passes else "-")
    return f"| {named(row)} | {average(row, 'streaming'):.1%} | {' | '.join(cells)} |"


def speedup_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Figures 7 and 8."""
    heads = " | ".join(f"{name}, {what}" for name in RATIOS for what in WHATS)
    lines = [f"| operand | nonzeros | fill | bound | {heads} | Z | bytes a cycle | OB / P, whole blocks |"]
    lines.append("| --- | ---: | ---: | --- |" + " ---: |" * (len(RATIOS) * len(WHATS) + 3))
    lines += [speedups(row) for row in rows]
    if counted := [row for row in rows if not row["generated"]]:
        cells = [f"{mean(ratio(row, what) for row in counted):.2f}" for ratio in RATIOS.values() for what in WHATS]
        whole = mean(RATIOS["OB / P"](row, "blocks") for row in counted)
        lines.append(f"| **mean of {len(counted)}** | | | | {' | '.join(cells)} | | | {whole:.2f} |")
    return lines


def reuse_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Figures 9a and 9b, and how what is bumped and what is reused go together."""
    levels = "global buffer | elements"
    lines = [f"| operand | streaming | tiles over: {levels} | bumped: {levels} | reused: {levels} |"]
    lines.append("| --- |" + " ---: |" * 7)
    lines += [reuse(row) for row in rows]
    counted = [row for row in rows if not row["generated"]]
    if not counted:
        return lines
    lines.append(
        f"| **mean of {len(counted)}** | {np.mean([average(r, 'streaming') for r in counted]):.1%} |" + " |" * 6
    )
    for level, name in (("global", "global buffer"), ("pe", "elements")):
        passed = [r for r in counted if any(run["passed"][level] for run in r["OB"][str(TARGET)])]
        pairs = np.array([(average(r, "bumped", level), average(r, "reused", level)) for r in passed])
        if len(pairs) > 2 and pairs.std(axis=0).all():
            found = np.corrcoef(pairs.T)[0, 1]
            lines.append(f"| **correlation over {len(pairs)}, {name}** | {found:.2f} |" + " |" * 6)
    return lines


def share_table(rows: Sequence[dict[str, Any]], shares: Sequence[float]) -> list[str]:
    """Figure 10."""
    lines = ["| y | " + " | ".join(f"{y:.0%}" for y in shares) + " | best of them |"]
    lines.append("| --- |" + " ---: |" * (len(shares) + 1))
    counted = [row for row in rows if not row["generated"]] or rows
    for what in (*WHATS, "streaming"):
        if what == "streaming":
            by = [[float(np.mean([r[what] for r in row["OB"][str(y)]])) for row in counted] for y in shares]
            lines.append("| streaming | " + " | ".join(f"{np.mean(values):.1%}" for values in by) + " | |")
            continue
        by = [[row["P"][what] / overbooked(row, what, y) for row in counted] for y in shares]
        best = mean(max(values) for values in zip(*by, strict=True))
        lines.append(f"| OB / P, {what} | " + " | ".join(f"{mean(values):.2f}" for values in by) + f" | {best:.2f} |")
    return lines


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operands", nargs="*", default=MIXED, metavar="OPERAND")
    parser.add_argument("--fill", type=float, default=4.0, help="nonzeros over what half of the global buffer holds")
    parser.add_argument("--k-first", action="store_true", help="tiles grow along k first, not as squares")
    parser.add_argument("--pe-bytes", type=int, help="an element's buffer of an operand, before it is scaled")
    parser.add_argument("--all-tiles", action="store_true", help="pairs of tiles that meet nothing are loaded as well")
    parser.add_argument("--by-fiber", action="store_true", help="what B's subtiles bump streams for each fiber of A's")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only-target", action="store_true", help="no sweep over y")
    parser.add_argument("--json", type=Path, help="records, one a line; those that it has are not made again")
    parser.add_argument("--docs", type=Path, metavar="PAGE", help="where the tables are put between their markers")
    return parser


def kept(path: Path | None) -> dict[str, dict[str, Any]]:
    """Records of an earlier run by the name that was asked for."""
    if path is None or not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {found["asked"]: found for found in map(json.loads, lines)}


def main(words: Sequence[str] | None = None) -> int:
    """Prints the tables; returns 1 when an operand could not be read."""
    parser = arguments()
    options = parser.parse_args(words)
    if options.fill < 0 or options.seeds < 1:
        parser.error("--fill must be at least 0 and --seeds at least 1")
    if options.pe_bytes is not None and options.pe_bytes < ENTRY_BYTES:
        parser.error(f"--pe-bytes must be at least {ENTRY_BYTES}, not {options.pe_bytes}")
    shares = (TARGET,) if options.only_target else SHARES
    setting = f"--fill {options.fill:g}" + " --k-first" * options.k_first
    setting += f" --pe-bytes {options.pe_bytes}" if options.pe_bytes else ""
    changes = {"skips_empty": not options.all_tiles, "slides": not options.by_fiber}
    setting += " --all-tiles" * options.all_tiles + " --by-fiber" * options.by_fiber
    rows, failed, known = [], False, kept(options.json)
    for name in options.operands:
        asked = f"{name} {setting} --seeds {options.seeds}" + " --only-target" * options.only_target
        if asked not in known:
            try:
                known[asked] = record(
                    name,
                    options.fill,
                    options.seeds,
                    k_first=options.k_first,
                    shares=shares,
                    pe_bytes=options.pe_bytes,
                    changes=changes,
                )
            except (OperandError, ValueError) as problem:
                print(f"{name}: {problem}", file=sys.stderr)
                failed = True
                continue
            if options.json is not None:
                with options.json.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(known[asked] | {"asked": asked}) + "\n")
        rows.append(known[asked])
        print(speedups(rows[-1]), file=sys.stderr, flush=True)
    tables = {"": speedup_table(rows), ", reuse": reuse_table(rows)} if rows else {}
    if rows and not options.only_target:
        tables[", by y"] = share_table(rows, shares)
    for name, table in tables.items():
        lines = [*table, "", stamp(f"{COMMAND} {setting}")]
        print("\n".join([*lines, ""]))
        if options.docs is not None:
            write_table(options.docs, f"extensor {setting}{name}", lines)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
