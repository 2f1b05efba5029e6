"""``python -m verif.coverage [FOLDER]``: joins what the benches hit into one report.

The folder is the one that ``FIBERLOOM_COVERAGE_FOLDER`` named when the benches ran. Exit codes: 0 every bin was hit or is
excused; 1 one was not, or a testplan with bins had no whole run; 2 there is nothing in the folder.
"""

import argparse
import sys
from pathlib import Path

from .collected import runs
from .page import problems, report, summary, write_page
from .plans import plans

FOLDER = Path("build/coverage")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m verif.coverage", description="Joins the coverage of the benches.")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="what the benches wrote")
    parser.add_argument("--page", type=Path, help="also write the page of the manual, docs/coverage.md")
    parser.add_argument("--full", action="store_true", help="print every bin, not the totals alone")
    options = parser.parse_args()
    found, known = runs(options.folder), plans()
    if not found:
        print(f"no bench has written to {options.folder}; see make coverage", file=sys.stderr)
        return 2
    print(report(known, found) if options.full else summary(known, found))
    if options.page:
        write_page(options.page, known, found)
    wrong = problems(known, found)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
