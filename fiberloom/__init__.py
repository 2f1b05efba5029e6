"""Fiberloom: generator of tiled sparse tensor accelerators, and its commands as functions.

The work is in the rooms ``rtl``, ``gen`` and ``sw``, which are loaded when a function is called.
"""

from .api import analyze, compare, convert, formats, generate, load, run, schedule
from .errors import InputError, MissingToolError
from .results import Comparison, Ranking, Result

__all__ = [
    "Comparison",
    "InputError",
    "MissingToolError",
    "Ranking",
    "Result",
    "__version__",
    "analyze",
    "compare",
    "convert",
    "formats",
    "generate",
    "load",
    "run",
    "schedule",
]

__version__: str


def __getattr__(name: str) -> str:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .rooms import find_rooms

    find_rooms()
    from gen import __version__

    return __version__
