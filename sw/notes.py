"""Notes: what a user should know and what stops nothing, each matter told once in a process. Imports nothing of Fiberloom."""

import warnings
from collections.abc import Callable

__all__ = ["Say", "listen", "note", "warn"]

# Told what a note is about, and its line.
Say = Callable[[str, str], None]


def warn(about: str, text: str) -> None:
    """As Python warns: what notes do while nobody listens."""
    warnings.warn(text, RuntimeWarning, stacklevel=3)


_say: Say = warn
_told: set[str] = set()


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
