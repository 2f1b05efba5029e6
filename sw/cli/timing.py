"""Seconds that the program's own code takes to compile or to load from the cache, and those that a policy takes without them."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sw.scheme.scheme import Scheme

__all__ = ["Stopwatch", "compile_seconds", "timed"]

_installing = threading.Lock()
_clock: Any = None


def compile_seconds() -> float:
    """Seconds in which Numba compiled code in this process or loaded compiled code, from the first call on."""
    global _clock
    with _installing:
        if _clock is None:
            _clock = _make_clock()
    seconds: float = _clock.seconds()
    return seconds


def _make_clock() -> Any:
    from numba.core import event

    class Clock(event.Listener):
        """Runs while any thread holds the compiler lock or waits for it."""

        def __init__(self) -> None:
            self.guard = threading.Lock()
            self.depth = 0
            self.began = 0.0
            self.spent = 0.0

        def on_start(self, event: Any) -> None:
            with self.guard:
                if self.depth == 0:
                    self.began = time.perf_counter()
                self.depth += 1

        def on_end(self, event: Any) -> None:
            with self.guard:
                if self.depth:  # one that was held before the clock was there has no begin
                    self.depth -= 1
                    if self.depth == 0:
                        self.spent += time.perf_counter() - self.began

        def seconds(self) -> float:
            with self.guard:
                return self.spent + (time.perf_counter() - self.began if self.depth else 0.0)

    clock = Clock()
    # The lock is held for compiling and for loading compiled code, and for nothing else.
    event.register("numba:compiler_lock", clock)
    return clock


class Stopwatch:
    """Laps by the clock, without the seconds that went into compiling: ``compiling`` is the sum of those."""

    def __init__(self) -> None:
        self.compiling = 0.0
        self._began, self._compiled = time.perf_counter(), compile_seconds()

    def lap(self) -> float:
        """Seconds since the last lap, or since the begin."""
        now, compiled = time.perf_counter(), compile_seconds()
        compiling = compiled - self._compiled
        spent = now - self._began - compiling
        self.compiling += compiling
        self._began, self._compiled = now, compiled
        return spent


def timed(choose: "Callable[[], Scheme]") -> "Scheme":
    """The scheme that ``choose`` makes, with the seconds of a second call where the first one had code to compile or load.

    Compiling takes many times as long as scheduling a small operand, and longer where other processes compile. The first call
    without its compiling still takes more than the decision alone.
    """
    before = compile_seconds()
    scheme = choose()
    if compile_seconds() == before:
        return scheme
    return replace(scheme, seconds=min(scheme.seconds, choose().seconds))
