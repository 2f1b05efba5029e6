"""Notes: what a user should know and what stops nothing, each matter told once in a process. Details: what is done, where
somebody asked for it. Imports nothing of Fiberloom."""

import sys
import warnings
from collections.abc import Callable

__all__ = ["Say", "detail", "detailed", "listen", "note", "want_details", "warn"]

# Told what a note is about, and its line.
Say = Callable[[str, str], None]


def warn(about: str, text: str) -> None:
    """As Python warns: what notes do while nobody listens."""
    warnings.warn(text, RuntimeWarning, stacklevel=3)


_say: Say = warn
_told: set[str] = set()
_detailed = False


def listen(say: Say) -> None:
    """From now on notes go to ``say``, those that were told before once more."""
    global _say
    _say = say
    _told.clear()


def note(about: str, text: str) -> None:
    """Tells one line, unless there was one about the same matter."""
    if about not in _told:
        _told.add(about)
        _say(about, text)


def want_details(wanted: bool) -> None:
    """Whether :func:`detail` tells anything from now on; not at the begin."""
    global _detailed
    _detailed = wanted


def detailed() -> bool:
    """Whether details are wanted."""
    return _detailed


def detail(text: str, *, once: bool = False) -> None:
    """Tells a line on standard error, where details are wanted; ``once``: unless that line was told before."""
    if _detailed and not (once and text in _told):
        _told.add(text)
        print(f"fiberloom: {text}", file=sys.stderr, flush=True)
