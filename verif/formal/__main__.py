"""``python -m verif.formal [NAME...]``: runs the proofs whose names begin so, or all, and prints a table.

Exit codes: 0 all passed; 1 one did not; 2 no proof has such a name; 3 a tool is missing; 130 interrupted.
"""

import argparse
import os
import sys
from pathlib import Path

from gen.yosys import ToolError

from .catalogue import catalogue
from .prove import Outcome, Proof, prove_all


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m verif.formal", description="Formal proofs of single blocks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginning of a proof's name; default: all")
    parser.add_argument("--list", action="store_true", help="print names and claims, run nothing")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="proofs at a time")
    parser.add_argument("--out", type=Path, default=Path("build/formal"), help="folder of logs and counterexamples")
    parser.add_argument("--markdown", action="store_true", help="also print the rows of the table in docs/formal.md")
    options = parser.parse_args()
    proofs = catalogue()
    unknown = [name for name in options.names if not any(proof.name.startswith(name) for proof in proofs)]
    if unknown:
        print(f"no proof is called {', '.join(unknown)}; see --list", file=sys.stderr)
        return 2
    chosen = [proof for proof in proofs if not options.names or proof.name.startswith(tuple(options.names))]
    if options.list:
        for proof in chosen:
            print(f"{proof.name:32} {proof.claim}")
        return 0
    print(f"{'proof':32} {'mode':6} {'engine':13} {'depth':>9} {'result':8} {'seconds':>7}", flush=True)
    try:
        outcomes = prove_all(chosen, options.out, workers=options.jobs, finished=show)
    except ToolError as error:
        print(error, file=sys.stderr)
        return ToolError.exit_code
    except KeyboardInterrupt:
        return 130
    if options.markdown:
        print(*(row(proof, [o for o in outcomes if o.proof == proof.name]) for proof in chosen), sep="\n")
    failed = [outcome for outcome in outcomes if outcome.result != "pass"]
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} runs passed; logs in {options.out}")
    return 1 if failed else 0


def show(outcome: Outcome) -> None:
    depth = str(outcome.depth) if outcome.depth else "unbounded"
    row = (
        f"{outcome.proof:32} {outcome.mode:6} {outcome.engine:13} {depth:>9} {outcome.result:8} {outcome.seconds:7.1f}"
    )
    print(f"{row}  {outcome.detail}".rstrip(), flush=True)


def row(proof: Proof, outcomes: list[Outcome]) -> str:
    """A proof and what came of its runs, as a row of the table in docs/formal.md."""
    runs = "; ".join(
        f"{mode} {depth} ({engine})" if depth else f"{mode} ({engine})" for mode, engine, depth in proof.parts()
    )
    results = "; ".join(f"{outcome.result} {outcome.seconds:.0f} s" for outcome in outcomes)
    return f"| `{proof.name}` | {proof.claim} | {runs} | {results} |"


if __name__ == "__main__":
    raise SystemExit(main())
