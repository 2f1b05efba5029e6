"""``python -m verif.mutation``: breaks the hardware, one change at a time, and shows which tests notice.

Exit codes: 0 done; 1 the single mutant of ``--mutant`` survived; 2 no file or mutant has such a name; 130 interrupted
(what was found is kept, the same command goes on).
"""

import argparse
import os
import shlex
import sys
import tempfile
from pathlib import Path

from .campaign import Campaign
from .report import reviewed, summary, write_page
from .trial import Outcome, snapshot

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m verif.mutation", description="Mutation tests of the hardware.")
    parser.add_argument("blocks", nargs="*", metavar="FILE", help="beginning of a path below rtl/; default: all")
    parser.add_argument("--mutants", type=int, default=200, help="how many that count")
    parser.add_argument("--seed", type=int, default=1, help="of the choice")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="mutants at a time")
    parser.add_argument("--seconds", type=float, default=20, help="of tests for each, on the unbroken hardware")
    parser.add_argument("--further", type=float, default=90, help="seconds of tests for what those let pass")
    parser.add_argument("--broad", action="store_true", help="whole-machine tests for what the block's own let pass")
    parser.add_argument("--mutant", metavar="NAME", help="only this one, afresh")
    parser.add_argument("--out", type=Path, default=Path("build/mutation"), help="folder of results")
    parser.add_argument("--report", action="store_true", help="break nothing; what is known of the present source")
    parser.add_argument("--page", type=Path, help="also write the page of the manual, docs/mutation.md")
    options = parser.parse_args()
    files = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "rtl").rglob("*.py"))]
    wanted = tuple(f"rtl/{name.removeprefix('rtl/')}" for name in options.blocks)
    if options.mutant:
        wanted = (options.mutant.split(":")[0],)
    files = [file for file in files if not wanted or file.startswith(wanted)]
    if not files:
        print(f"no file of rtl/ is called {' or '.join(wanted)}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fiberloom-mutation-") as tree:
        snapshot(ROOT, Path(tree))
        campaign = Campaign(
            Path(tree),
            options.out,
            files,
            seed=options.seed,
            budget=options.seconds,
            further=options.further,
            broad=options.broad,
            report=show,
        )
        try:
            if options.mutant:
                outcome = campaign.one(options.mutant)
                show(outcome, False)
                return int(outcome.verdict == "survived")
            outcomes = campaign.still_valid() if options.report else campaign.run(options.mutants, options.jobs)
        except KeyError:
            print(f"no mutant is called {options.mutant}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            return 130
    known = reviewed()
    print(summary(outcomes, known))
    if options.page:
        write_page(options.page, outcomes, known, None if options.report else options.seed)
    return 0


def show(outcome: Outcome, remembered: bool) -> None:
    where = f"{outcome.file}:{outcome.line}"
    change = f"{outcome.operator}: {outcome.before} -> {outcome.after}"
    told = "known" if remembered else f"{outcome.seconds:.0f} s"
    print(f"{outcome.verdict:10} {told:>6} {where:36} {change[:150]}  {outcome.test}".rstrip(), flush=True)
    if outcome.verdict in ("survived", "timeout"):
        print(f"           again: python -m verif.mutation --mutant {shlex.quote(outcome.name)}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
