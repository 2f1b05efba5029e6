"""Names that `docs/glossary.md` replaces by the field's words: how often each still stands in the code, which may only fall.

``python -m tests.test_names`` prints the present counts, to lower the limits by.
"""

import io
import re
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("rtl", "gen", "sw", "verif")

# Uses of the whole word as an identifier, over all rooms. Lower a limit with the uses; never raise one.
LIMITS = {
    "again": 0,
    "ahead": 0,
    "behind": 0,
    "beside": 1,
    "element": 0,
    "elements": 8,
    "engine": 69,
    "heights": 0,
    "held": 46,
    "judge": 27,
    "judging": 0,
    "late": 3,
    "listed": 2,
    "looked_at": 0,
    "machine": 71,
    "room": 3,
    "slot": 38,
    "slots": 5,
    "there": 0,
    "turned": 0,
    "turning": 0,
    "turns": 0,
    "windows": 75,
    "work": 15,
}


def identifiers(source: str) -> Counter[str]:
    """Names of Python code and how often each stands there; text in strings and comments is not code."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.NAME)


def words_of(room: str) -> set[str]:
    """Identifiers, and texts of one word: members of structs and fields of files are named by these."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / room).rglob("*.py")]
    return {name for text in sources for name in identifiers(text)} | {
        word for text in sources for word in re.findall(r"""["'](\w+)["']""", text)
    }


def uses() -> Counter[str]:
    """The names of all rooms."""
    total: Counter[str] = Counter()
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            total += identifiers(path.read_text(encoding="utf-8"))
    return total


def risen(counts: Counter[str]) -> list[str]:
    """A line for each name that stands more often than its limit."""
    return [
        f"{name}: {counts[name]} uses, at most {limit}: see docs/glossary.md for the word to use"
        for name, limit in LIMITS.items()
        if counts[name] > limit
    ]


def glossary() -> list[tuple[str, tuple[str, ...], str]]:
    """A word, the rooms of one of its columns and a name that stands there, for every name of the code."""
    rows = []
    for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 4:
            for cell, rooms in ((cells[2], ("rtl",)), (cells[3], ("sw", "gen", "verif"))):
                rows += [(cells[0], rooms, name) for name in re.findall(r"`(\w+)`", cell)]
    return rows


def missing(rows: list[tuple[str, tuple[str, ...], str]]) -> list[str]:
    """A line for each name that is in none of its rooms."""
    names = {room: words_of(room) for room in ROOMS}
    return [f"{word}: {name}" for word, rooms, name in rows if not any(name in names[room] for room in rooms)]


def test_names_of_the_glossary_are_in_the_code():
    rows = glossary()
    assert len(rows) > 60
    assert missing(rows) == []
    assert missing([*rows, ("nothing", ("rtl",), "no_such_name")]) == ["nothing: no_such_name"]


def test_whole_names_of_code_are_counted():
    counts = identifiers('work = 1  # work\nprint("work", work_items, work)\n')
    assert counts["work"] == 2 and counts["work_items"] == 1 and counts["print"] == 1


def test_a_name_that_stands_more_often_is_reported():
    full = Counter(LIMITS)
    assert risen(full) == []
    assert risen(full + Counter(["work"])) == [
        f"work: {LIMITS['work'] + 1} uses, at most {LIMITS['work']}: see docs/glossary.md for the word to use"
    ]


def test_names_without_a_meaning_of_their_own_do_not_spread():
    assert risen(uses()) == []


if __name__ == "__main__":
    present = uses()
    print("\n".join(f'    "{name}": {present[name]},' for name in LIMITS))
