"""When the bus moves lines: all of a design's units share it, and none of them is first."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .constants import ANSWER_CYCLES

__all__ = ["fetch", "flow", "idle_bus", "take"]

# The bus is a ring of spans of time, each of so many cycles: which span it is, and how many of its cycles are taken.
SPAN = 8.0
SPANS = 1 << 11
NUMBER, USED = range(2)


@njit(cache=True)
def idle_bus() -> NDArray[Any]:
    """A bus that has moved nothing."""
    return np.zeros((2, SPANS), np.float64)


@njit(cache=True, inline="always")
def _span(bus: NDArray[Any], number: int) -> int:
    """Where a span stands in the ring. Of one that is long over nothing is known."""
    at = number % SPANS
    if bus[NUMBER, at] != number:
        bus[NUMBER, at] = number
        bus[USED, at] = 0.0
    return at


@njit(cache=True)
def take(bus: NDArray[Any], time: float, cycles: float) -> tuple[float, float]:
    """Takes the bus from ``time`` on, as soon as it is free; returns when that begins and when it ends.

    Jobs are looked at one by one, so what one asks for may come before what an earlier one has asked for.
    """
    number = int(time / SPAN)
    begin = -1.0
    while True:
        at = _span(bus, number)
        since = max(time, number * SPAN + bus[USED, at])
        room = (number + 1) * SPAN - since
        if room > 0:
            if begin < 0:
                begin = since
            used = min(room, cycles)
            bus[USED, at] += used
            cycles -= used
            if cycles <= 0:
                return begin, since + used
        number += 1


@njit(cache=True)
def fetch(bus: NDArray[Any], time: float, lines: float, latency: float, beat: float) -> tuple[float, float]:
    """Lines are asked for; returns when the first one comes, and when the last one has."""
    begin, end = take(bus, time + latency + ANSWER_CYCLES, lines * beat)
    return begin + beat, end


@njit(cache=True)
def flow(bus: NDArray[Any], begin: float, end: float, cycles: float) -> float:
    """Lines come evenly from ``begin`` to ``end``, no faster than they are used, as far as the bus is free; returns when all have."""
    most = SPAN * min(1.0, cycles / max(1.0, end - begin))
    number = int(begin / SPAN)
    while cycles > 0:
        at = _span(bus, number)
        used = min(SPAN - bus[USED, at], most, cycles)
        bus[USED, at] += used
        cycles -= used
        number += 1
    return number * SPAN
