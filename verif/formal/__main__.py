"""``python -m verif.formal [NAME...]``: runs the proofs whose names begin so, or all, and prints a table.

With ``--faults``: plants the faults whose names begin so, or all, and sees whether each is refuted by its proof.

Exit codes: 0 all passed, or were refuted; 1 one did not; 2 no proof or fault has such a name; 3 a tool is missing; 130
interrupted.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from gen.yosys import ToolError

from .catalogue import catalogue
from .faults import Fault, faults, refute
from .prove import Outcome, Proof, prove, several

Named = TypeVar("Named", Proof, Fault)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m verif.formal", description="Formal proofs of single blocks.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="beginning of a proof's or a fault's name; default: all"
    )
    parser.add_argument("--faults", action="store_true", help="plant faults, which the proofs must refute")
    parser.add_argument("--list", action="store_true", help="print names and claims, run nothing")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="runs at a time")
    parser.add_argument("--out", type=Path, default=Path("build/formal"), help="folder of logs and counterexamples")
    parser.add_argument("--markdown", action="store_true", help="also print the rows of the table in docs/formal.md")
    options = parser.parse_args()
    try:
        return plant(options) if options.faults else verify(options)
    except ToolError as error:
        print(error, file=sys.stderr)
        return ToolError.exit_code
    except KeyboardInterrupt:
        return 130


def verify(options: argparse.Namespace) -> int:
    """Runs proofs."""
    chosen = select(catalogue(), options.names, "proof")
    if chosen is None:
        return 2
    if options.list:
        print(*(f"{proof.name:32} {proof.claim}" for proof in chosen), sep="\n")
        return 0
    outcomes = run([partial(prove, proof, options.out) for proof in chosen], "proof", options.jobs)
    if options.markdown:
        print(*(row(proof, [o for o in outcomes if o.proof == proof.name]) for proof in chosen), sep="\n")
    failed = [outcome for outcome in outcomes if outcome.result != "pass"]
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} runs passed; logs in {options.out}")
    return 1 if failed else 0


def plant(options: argparse.Namespace) -> int:
    """Plants faults."""
    chosen = select(faults(), options.names, "fault")
    if chosen is None:
        return 2
    if options.list:
        print(*(f"{fault.name:32} {fault.place.proof}" for fault in chosen), sep="\n")
        return 0
    proofs = {proof.name: proof for proof in catalogue()}
    jobs = [partial(refuted, fault, proofs[fault.place.proof], options.out) for fault in chosen]
    outcomes = run(jobs, "fault", options.jobs)
    if options.markdown:
        print(*map(fault_row, chosen, outcomes), sep="\n")
    missed = [outcome.proof for outcome in outcomes if outcome.result != "fail"]
    print(f"{len(outcomes) - len(missed)} of {len(outcomes)} faults refuted; logs in {options.out}")
    if missed:
        print(f"not refuted: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


def refuted(fault: Fault, proof: Proof, folder: Path) -> list[Outcome]:
    return [refute(fault, proof, folder)]


def select(items: Sequence[Named], names: Sequence[str], kind: str) -> list[Named] | None:
    """Those whose names begin so; None, and a message, where none does."""
    unknown = [name for name in names if not any(item.name.startswith(name) for item in items)]
    if unknown:
        print(f"no {kind} is called {', '.join(unknown)}; see --list", file=sys.stderr)
        return None
    return [item for item in items if not names or item.name.startswith(tuple(names))]


def run(jobs: Sequence[Callable[[], list[Outcome]]], kind: str, workers: int) -> list[Outcome]:
    print(f"{kind:32} {'mode':6} {'solver':13} {'depth':>9} {'result':8} {'seconds':>7}", flush=True)
    return several(jobs, workers=workers, finished=show)


def show(outcome: Outcome) -> None:
    depth = str(outcome.depth) if outcome.depth else "unbounded"
    row = (
        f"{outcome.proof:32} {outcome.mode:6} {outcome.solver:13} {depth:>9} {outcome.result:8} {outcome.seconds:7.1f}"
    )
    print(f"{row}  {outcome.detail}".rstrip(), flush=True)


def row(proof: Proof, outcomes: list[Outcome]) -> str:
    """A proof and what came of its runs, as a row of the table in docs/formal.md."""
    runs = "; ".join(
        f"{mode} {depth} ({solver})" if depth else f"{mode} ({solver})" for mode, solver, depth in proof.parts()
    )
    results = "; ".join(f"{outcome.result} {outcome.seconds:.0f} s" for outcome in outcomes)
    return f"| `{proof.name}` | {proof.claim} | {runs} | {results} |"


def fault_row(fault: Fault, outcome: Outcome) -> str:
    """A planted fault and how it was refuted, as a row of the table in docs/formal.md."""
    when = "`make formal-faults`" if fault.long else "CI"
    return f"| {fault.name} | `{fault.place.proof}` | {when} | {outcome.depth} | {outcome.seconds:.0f} s |"


if __name__ == "__main__":
    raise SystemExit(main())
