"""Seconds that a policy takes, without those of compiling it."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sw.tiling.scheme import Scheme

__all__ = ["timed"]


def timed(choose: "Callable[[], Scheme]") -> "Scheme":
    """The scheme that ``choose`` makes, with the seconds of a second call where the first one had code to compile or load.

    That takes many times as long as scheduling a small operand, and longer where other processes compile.
    """
    from numba.core import event

    # Taken for compiling and for loading what was compiled before, and for nothing else.
    with event.install_recorder("numba:compiler_lock") as recorder:
        scheme = choose()
    if not recorder.buffer:
        return scheme
    return replace(scheme, seconds=min(scheme.seconds, choose().seconds))
