"""When the bus moves lines: all units of a design share it, and reads and writes take turns where both wait."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .constants import ANSWER_CYCLES, SPAN, SPANS

__all__ = ["READ", "WRITE", "fetch", "first_line", "flow", "idle_bus", "take"]

# The bus is a ring of spans of time. What is known of each: cycles taken for reads and for writes, which span it is, all cycles
# taken of it.
READ, WRITE, NUMBER, USED = range(4)


@njit(cache=True)
def idle_bus() -> NDArray[Any]:
    """A bus that has moved nothing."""
    return np.zeros((4, SPANS), np.float64)


@njit(cache=True, counted=False, inline="always")
def _span(bus: NDArray[Any], number: int) -> int:
    """Where a span stands in the ring. Of one that is long over nothing is known."""
    at = number % SPANS
    if bus[NUMBER, at] != number:
        bus[READ, at] = bus[WRITE, at] = bus[USED, at] = 0.0
        bus[NUMBER, at] = number
    return at


@njit(cache=True, counted=False, inline="always")
def _use(bus: NDArray[Any], at: int, kind: int, most: float, delayed: float) -> tuple[float, float]:
    """Takes up to ``most`` cycles of a span; returns how many, and how many of the bus are ``delayed`` after that.

    What is free, or half of the span: what the other direction had taken of that comes later, as do those ``delayed`` before.
    """
    free = SPAN - bus[USED, at]
    used = max(0.0, min(most, max(free, SPAN / 2 - bus[kind, at])))
    bus[kind, at] += used
    delayed += used - min(free, used)
    bus[USED, at] += min(free, used)
    rest = min(delayed, SPAN - bus[USED, at])
    bus[USED, at] += rest
    return used, delayed - rest


@njit(cache=True, counted=False)
def take(bus: NDArray[Any], kind: int, time: float, cycles: float) -> tuple[float, float]:
    """Takes the bus from ``time`` on, as soon as it is free; returns when that begins and when it ends.

    Jobs are looked at one by one, so what one asks for may come before what an earlier one has asked for.
    """
    number = int(time / SPAN)
    begin, end, delayed = -1.0, time, 0.0
    while cycles > 0 or delayed > 0:
        at = _span(bus, number)
        since = max(time, number * SPAN + min(bus[USED, at], SPAN / 2 + bus[kind, at]))
        if delayed == 0 and since >= (number + 1) * SPAN:  # nothing is left of this span
            number += 1
            continue
        used, delayed = _use(bus, at, kind, min(cycles, max(0.0, (number + 1) * SPAN - since)), delayed)
        if used > 0:
            if begin < 0:
                begin = since
            end = since + used
            cycles -= used
        number += 1
    return (begin if begin >= 0 else time), end


@njit(cache=True, counted=False)
def fetch(bus: NDArray[Any], time: float, lines: float, latency: float, beat: float) -> tuple[float, float]:
    """Lines are asked for; returns when the first one comes, and when the last one has."""
    begin, end = take(bus, READ, time + latency + ANSWER_CYCLES, lines * beat)
    return begin + beat, end


@njit(cache=True, counted=False)
def first_line(bus: NDArray[Any], time: float, lines: float, last: float, latency: float, line: float) -> float:
    """When the first of the ``last`` of so many lines comes that are asked for at ``time``; a ``line`` takes the bus so long.

    A PE asks when it has all leaves of a job; the last one's lines come behind those of the others.
    """
    _, end = fetch(bus, time, lines - last, latency, line)
    return float(take(bus, READ, end, last * line)[0] + line)


@njit(cache=True, counted=False)
def flow(bus: NDArray[Any], kind: int, begin: float, end: float, cycles: float) -> float:
    """Lines come evenly from ``begin`` to ``end`` as far as the bus is free; returns when all have.

    Lines that are read come no faster than they are used; those that are written wait.
    """
    rate = SPAN * min(1.0, cycles / max(1.0, end - begin))
    number = int(begin / SPAN)
    most, delayed = rate, 0.0
    while cycles > 0 or delayed > 0:
        at = _span(bus, number)
        if delayed == 0 and most == rate and cycles > rate and bus[USED, at] <= SPAN - rate:
            # Nearly always there is room for all of it: :func:`_use` would say the same.
            bus[kind, at] += rate
            bus[USED, at] += rate
            cycles -= rate
        else:
            used, delayed = _use(bus, at, kind, min(most, cycles), delayed)
            cycles -= used
            most = rate + (most - used) * (kind == WRITE)
        number += 1
    return number * SPAN
