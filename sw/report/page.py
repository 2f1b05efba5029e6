"""Shared by all pages: templates, contents list, words with their meanings, and the colours that plots on their own need too."""

import re
from pathlib import Path
from typing import Any

import jinja2

from .charts import short

__all__ = ["MEANINGS", "PALETTE", "page"]

FOLDER = Path(__file__).parent
# For a plot that stands alone, on white.
PALETTE = (FOLDER / "chart.css").read_text(encoding="utf-8")
# Pages with fewer headings are seen at a glance.
LEAST_LISTED = 4
# Meanings as in the manual's glossary, which a test compares.
MEANINGS = {
    "bumped": "a segment of an overbooked tile that stays in memory and is streamed at each use",
    "compulsory bytes": "what every tiling moves: each used nonzero and pointer once",
    "effectual MAC": "one multiplication of two nonzeros that meet, with its addition",
    "FIFO-managed region": "the part of B's partition through which bumped segments stream",
    "ideal": "the roofline with the compulsory bytes",
    "inter-tile order": "the nesting of i, j and k over tiles, outermost first",
    "overbooked": "a tile that is larger than its partition",
    "partition": "the lines of the buffer that belong to A, to B or to C",
    "regret": "cycles over those of the best tiling, less one",
    "roofline": "the least cycles for the products and the bytes of a run",
}


# A word with its meaning as a tooltip.
TERM = """{% macro term(text, word) %}<abbr tabindex="0" title="{{ meanings[word or text] }}">{{ text }}</abbr>{% endmacro %}"""


def page(template: str, **values: Any) -> str:
    """A page of this folder's templates, with a list of its headings where it has several.

    Filters: for numbers ``count``, ``microjoules``, ``percent``, ``short``, ``signed``; for words ``term``.
    """
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters["count"] = lambda number: "unknown" if number is None else f"{number:,.0f}"
    made.filters["microjoules"] = lambda energy: "unknown" if energy is None else f"{energy / 1e6:,.4g}"
    made.filters["percent"] = lambda share: "unknown" if share is None else f"{share:.1%}"
    made.filters["short"] = lambda number: "unknown" if number is None else short(number)
    made.filters["signed"] = lambda share: "unknown" if share is None else f"{share:+.1%}"
    made.globals["meanings"] = MEANINGS
    macro: Any = made.from_string(TERM).module
    made.filters["term"] = lambda text, word=None: macro.term(text, word)
    return _with_contents(made.get_template(template).render(**values))


def _with_contents(text: str) -> str:
    """Gives each heading a name, and lists them above the first one."""
    parts = re.split(r"<h2>(.*?)</h2>", text)
    titles = [re.sub(r"<[^>]*>", "", title) for title in parts[1::2]]
    if len(titles) < LEAST_LISTED:
        return text
    links = "".join(f'<li><a href="#part-{n}">{title}</a></li>' for n, title in enumerate(titles))
    found = [parts[0], f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n']
    for n, (title, body) in enumerate(zip(parts[1::2], parts[2::2], strict=True)):
        found += [f'<h2 id="part-{n}">{title}</h2>', body]
    return "".join(found)
