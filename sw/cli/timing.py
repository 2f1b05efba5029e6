"""Seconds that a policy takes, without those of compiling it."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sw.tiling.scheme import Scheme

__all__ = ["timed"]

# Up to this a first call may be loading of compiled code for the most part.
SHORT_SECONDS = 1.0


def timed(choose: "Callable[[], Scheme]") -> "Scheme":
    """The scheme that ``choose`` makes, with the seconds of a second call where the first one compiled or was short.

    Policies are compiled at their first use, which takes many times as long as scheduling a small operand.
    """
    from numba.core import event

    with event.install_recorder("numba:compile") as recorder:
        scheme = choose()
    if not recorder.buffer and scheme.seconds > SHORT_SECONDS:
        return scheme
    return replace(scheme, seconds=min(scheme.seconds, choose().seconds))
