"""The coverage report: each bin of each testplan, how often each build's benches hit it, and what is excused."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from .collected import Run
from .plans import Plan

__all__ = ["BEGIN", "END", "problems", "report", "summary", "write_page"]

BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"


def problems(plans: Iterable[Plan], runs: Sequence[Run]) -> list[str]:
    """What is missing, a line each: bins that a whole run left, plans that no whole run was made for."""
    found = []
    for plan in plans:
        mine = [run for run in runs if run.plan == plan.name and run.whole]
        if plan.bins and not mine:
            found.append(f"{plan.name}: no whole run")
        found += [
            f"{run.build} ({run.simulator}): {text}" for run in mine for text in plan.problems(run.build, run.hits)
        ]
    return found


def summary(plans: Sequence[Plan], runs: Sequence[Run]) -> str:
    """The totals in one line; a bin counts once a build."""
    with_bins = [plan for plan in plans if plan.bins]
    builds = {(run.plan, run.build) for run in runs if run.whole}
    asked = [(plan, build) for plan in with_bins for name, build in builds if name == plan.name]
    excused = sum(len(plan.excuses(build)) for plan, build in asked)
    return (
        f"{len(with_bins)} testplans with {sum(len(plan.bins) for plan in with_bins)} bins, {len(builds)} builds, "
        f"{len(runs)} runs of {sum(run.tests for run in runs)} tests: {sum(len(plan.bins) for plan, _ in asked)} bins asked "
        f"for over all builds, {excused} excused, {len(problems(plans, runs))} missed."
    )


def report(plans: Sequence[Plan], runs: Sequence[Run]) -> str:
    """Totals, and a table a plan: a row a bin, a column a build with the hits of each simulator."""
    parts = [summary(plans, runs)]
    for plan in plans:
        mine = [run for run in runs if run.plan == plan.name]
        if plan.bins:
            parts.append(_table(plan, mine))
    return "\n\n".join(parts)


def _table(plan: Plan, runs: Sequence[Run]) -> str:
    builds = sorted({run.build for run in runs})
    simulators = sorted({run.simulator for run in runs}, reverse=True)
    lines = [f"### {plan.name}", ""]
    if plan.blocks:
        lines += [f"Blocks: {', '.join(f'`{block}`' for block in plan.blocks)}.", ""]
    lines += [
        f"| bin | the situation | {' | '.join(f'`{build}`' for build in builds)} |",
        f"| --- | --- |{' --- |' * len(builds)}",
    ]
    for name, meaning in plan.bins.items():
        cells = [_cell(plan, name, build, simulators, runs) for build in builds]
        lines.append(f"| `{name}` | {meaning} | {' | '.join(cells)} |")
    for build in builds:
        for name, reason in plan.excuses(build).items():
            lines += ["", f"`{build}` is excused from `{name}`: {reason}."]
    return "\n".join(lines)


def _cell(plan: Plan, name: str, build: str, simulators: Sequence[str], runs: Sequence[Run]) -> str:
    if name in plan.excuses(build):
        return "excused"
    counts = []
    for simulator in simulators:
        for run in runs:
            if (run.build, run.simulator) == (build, simulator):
                count = run.hits.get(name, 0)
                counts.append(str(count) if count else "**missed**" if run.whole else "not asked")
    return " / ".join(dict.fromkeys(counts))


def write_page(page: Path, plans: Sequence[Plan], runs: Sequence[Run]) -> None:
    """Put the report between the page's two marks."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{report(plans, runs)}\n{END}{after}", encoding="utf-8")
