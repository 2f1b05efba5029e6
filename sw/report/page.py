"""Shared by all pages: the template environment and the style sheet, whose colours plots on their own need too."""

from pathlib import Path

import jinja2

from .charts import short

__all__ = ["PALETTE", "environment"]

FOLDER = Path(__file__).parent
# For a plot that stands alone, on white.
PALETTE = (FOLDER / "chart.css").read_text(encoding="utf-8")


def environment() -> jinja2.Environment:
    """Templates of this folder, with the filters for numbers: ``count``, ``microjoules``, ``percent``, ``short``, ``signed``."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters["count"] = lambda number: "unknown" if number is None else f"{number:,.0f}"
    made.filters["microjoules"] = lambda energy: "unknown" if energy is None else f"{energy / 1e6:,.4g}"
    made.filters["percent"] = lambda share: "unknown" if share is None else f"{share:.1%}"
    made.filters["short"] = lambda number: "unknown" if number is None else short(number)
    made.filters["signed"] = lambda share: "unknown" if share is None else f"{share:+.1%}"
    return made
