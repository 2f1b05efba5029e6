"""What a campaign found, for the terminal and for the manual."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..tables import read_table
from .trial import VERDICTS, Outcome

__all__ = ["Review", "page", "review_of", "reviewed", "summary", "write_page"]

ROOT = Path(__file__).parents[2]
SURVIVORS = Path(__file__).with_name("survivors.toml")
BEGIN, END = "<!-- campaign: begin -->", "<!-- campaign: end -->"
SHOWN = 70


@dataclass(frozen=True)
class Review:
    """What somebody found out about a survivor.

    Parameters
    ----------
    equivalent: no input can tell it from the original.
    within: a piece of the source line, where the text before says too little, as a number does.
    """

    equivalent: bool
    reason: str
    within: str = ""


Reviews = dict[tuple[str, str, str, str], Review]


def reviewed(path: Path = SURVIVORS) -> Reviews:
    """Reviews by file, operator, text before and after: a line number would not outlive the next edit of the file."""
    items = read_table(path).get("survivor", [])
    return {
        (item["file"], item["operator"], item["before"], item["after"]): Review(
            item["equivalent"], item["reason"], item.get("within", "")
        )
        for item in items
    }


def review_of(outcome: Outcome, known: Reviews, root: Path = ROOT) -> Review | None:
    """The review of a survivor in the present source, if there is one."""
    review = known.get((outcome.file, outcome.operator, outcome.before, outcome.after))
    if review is not None and review.within:
        lines = (root / outcome.file).read_text().splitlines()
        if outcome.line > len(lines) or review.within not in lines[outcome.line - 1]:
            return None
    return review


def numbers(outcomes: Iterable[Outcome], known: Reviews) -> Counter[str]:
    """How many of each verdict; those reviewed as equivalent count as ``reviewed``."""
    found: Counter[str] = Counter()
    for outcome in outcomes:
        review = review_of(outcome, known)
        same = outcome.verdict == "survived" and review is not None and review.equivalent
        found["reviewed" if same else outcome.verdict] += 1
    return found


def rate(found: Counter[str]) -> float:
    """Share of the mutants that differ from the original and that a test or a time limit caught."""
    caught = found["caught"] + found["timeout"]
    return caught / max(1, caught + found["survived"])


def summary(outcomes: Sequence[Outcome], known: Reviews) -> str:
    found = numbers(outcomes, known)
    total = sum(outcome.counts for outcome in outcomes)
    return (
        f"{total} mutants: {found['caught']} caught by a test, {found['timeout']} by a time limit, "
        f"{found['survived']} survived, {found['reviewed']} are shown to be equivalent: "
        f"{100 * rate(found):.1f} % of the others caught. Passed over: {found['equivalent']} with the same RTLIL, "
        f"{found['invalid']} that cannot be built."
    )


def page(outcomes: Sequence[Outcome], known: Reviews, seed: int | None) -> str:
    """The part of docs/mutation.md that a campaign writes; without a seed they are those of several."""
    source = "Several seeds" if seed is None else f"Seed {seed}"
    lines = [
        f"{source}, {len({outcome.file for outcome in outcomes if outcome.counts})} files. {summary(outcomes, known)}",
        "",
        "| file | mutants | caught | time limit | survived | shown equivalent | caught by |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for file in sorted({outcome.file for outcome in outcomes if outcome.counts}):
        mine = [outcome for outcome in outcomes if outcome.file == file]
        found = numbers(mine, known)
        by = Counter(_short(outcome.test) for outcome in mine if outcome.verdict == "caught")
        tests = ", ".join(f"`{test}` {count}" for test, count in by.most_common())
        cells = [sum(outcome.counts for outcome in mine), *(found[v] for v in (*VERDICTS[:3], "reviewed"))]
        lines.append(f"| `{file}` | " + " | ".join(map(str, cells)) + f" | {tests} |")
    operators = sorted({outcome.operator for outcome in outcomes if outcome.counts})
    lines += ["", "| kind of change | mutants | caught | time limit | survived | shown equivalent |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for operator in operators:
        mine = [outcome for outcome in outcomes if outcome.operator == operator]
        found = numbers(mine, known)
        cells = [sum(outcome.counts for outcome in mine), *(found[v] for v in (*VERDICTS[:3], "reviewed"))]
        lines.append(f"| `{operator}` | " + " | ".join(map(str, cells)) + " |")
    left = [outcome for outcome in outcomes if outcome.verdict == "survived"]
    if left:
        lines += ["", "Survivors:", "", "| where | change | equivalent | why |", "| --- | --- | --- | --- |"]
    for outcome in sorted(left, key=lambda outcome: (outcome.file, outcome.line)):
        review = review_of(outcome, known)
        word = "not looked at" if review is None else "yes" if review.equivalent else "no"
        change = f"{outcome.operator}: {_code(outcome.before)} -> {_code(outcome.after)}"
        reason = "" if review is None else review.reason
        lines.append(f"| `{outcome.file}:{outcome.line}` | {change} | {word} | {reason} |")
    return "\n".join(lines) + "\n"


def write_page(path: Path, outcomes: Sequence[Outcome], known: Reviews, seed: int | None) -> None:
    """Replaces the campaign's part of the page. Raises ValueError where the page does not say where that is."""
    text = path.read_text()
    if BEGIN not in text or END not in text:
        raise ValueError(f"{path} should have the lines {BEGIN} and {END}")
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    path.write_text(f"{head}{BEGIN}\n{page(outcomes, known, seed)}{END}{tail}")


def _short(test: str) -> str:
    """``test_stream`` of ``tests/rtl/lib/test_stream.py::test_queue[4]``."""
    return test.split("::")[0].rsplit("/", 1)[-1].removesuffix(".py")


def _code(text: str) -> str:
    shown = text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
    return f"`{shown}`".replace("|", "\\|")
