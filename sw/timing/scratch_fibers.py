"""Fibers of long rows between their groups and the job that merges them: in scratch memory, or in the ring on chip."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .bus import WRITE, first_line, flow, take
from .constants import ANSWER_CYCLES, KEPT_CYCLES, KEPT_RETURN_CYCLES, LEAF_ANSWER_CYCLES, RETURN_CYCLES, WRITE_CYCLES
from .hardware import SCRATCH_MARGIN
from .pace import Pace

__all__ = ["ASKED", "ASKED_KEPT", "NEAR", "READY", "from_scratch", "no_scratch", "row_leaves", "to_scratch", "turn"]

# What is known of them: when the last word of all so far is out, and when the job that reads the newest can begin; lines in
# memory that the fibers of the row at hand ask for at first, all of them and the last one; when the last word has been written;
# lines of these fibers that stay on chip; those of them that are asked for at first, of all and of the last one.
OUT, READY, ASKED, LAST_ASKED, SENT, NEAR, ASKED_KEPT, LAST_KEPT = range(8)


@njit(cache=True, counted=False)
def to_scratch(
    bus: NDArray[Any],
    scratch: NDArray[Any],
    joins: bool,
    job: tuple[float, int, int],
    first: float,
    out: float,
    pace: Pace,
) -> float:
    """A fiber goes to scratch memory, its words out of the PE from ``first`` to ``out``; returns when it has been collected.

    ``joins``: others of its row wait there. ``job``: its words, lines that stay on chip, those that do not. Of these the last
    burst leaves when it is whole; the answer takes half a latency.
    """
    words, kept, spilled = job
    first = max(scratch[OUT], first)
    line = pace.beat * pace.line_beats
    scratch[OUT] = max(scratch[OUT] + max(0.0, words - spilled) + spilled * line, out)
    scratch[NEAR] = kept + (scratch[NEAR] if joins else 0.0)
    scratch[READY] = max(scratch[READY], scratch[OUT] + KEPT_RETURN_CYCLES)
    scratch[LAST_KEPT] = min(kept, pace.burst)
    scratch[ASKED_KEPT] = scratch[LAST_KEPT] + (scratch[ASKED_KEPT] if joins else 0.0)
    if spilled:
        time = scratch[OUT] + WRITE_CYCLES
        last = (spilled - 1) % pace.burst + 1
        if spilled > last:
            flow(bus, WRITE, first + WRITE_CYCLES, time, (spilled - last) * line)
        scratch[SENT] = take(bus, WRITE, max(scratch[SENT], time), last * line)[1]
        scratch[READY] = scratch[SENT] + pace.latency / 2 + RETURN_CYCLES
    scratch[LAST_ASKED] = min(spilled, pace.burst)
    scratch[ASKED] = scratch[LAST_ASKED] + (scratch[ASKED] if joins else 0.0)
    return float(scratch[OUT])


@njit(cache=True)
def no_scratch(rows: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Nothing in scratch memory, and the ring, float64[2, rows]: of the rows under way, the oldest first and the last one at
    hand, lines and when they leave."""
    return np.zeros(8, np.float64), np.zeros((2, rows + 1), np.float64)


@njit(cache=True)
def turn(scratch: NDArray[Any], ring: NDArray[Any], kept: int, pace: Pace) -> float:
    """When a fiber for scratch memory may leave its PE: the one before it is out, and the ring has lines for all that it keeps.

    Rows give theirs back in their order, as they leave.
    """
    time = float(scratch[OUT])
    at = 0
    while kept and at < ring.shape[1] - 1 and ring[0].sum() + kept > pace.scratch_lines - SCRATCH_MARGIN:
        time = max(time, ring[1, at]) if ring[0, at] else time
        ring[0, at] = 0.0
        at += 1
    ring[0, -1] += kept
    scratch[OUT] = time
    return time


@njit(cache=True)
def row_leaves(scratch: NDArray[Any], ring: NDArray[Any], time: float) -> None:
    """The row at hand leaves scratch memory and ring, and another one comes."""
    scratch[ASKED] = scratch[LAST_ASKED] = scratch[NEAR] = scratch[ASKED_KEPT] = scratch[LAST_KEPT] = 0.0
    ring[1, -1] = time
    for at in range(ring.shape[1] - 1):
        ring[:, at] = ring[:, at + 1]
    ring[:, -1] = 0.0


@njit(cache=True, counted=False)
def from_scratch(bus: NDArray[Any], port: NDArray[Any], scratch: NDArray[Any], time: float, pace: Pace) -> float:
    """The fibers of a long row come back, whose PE knows the last one at ``time``; returns when the first lines of all have come.

    On chip those of the last one come behind all of the others.
    """
    asked = time + LEAF_ANSWER_CYCLES
    came = 0.0
    if scratch[ASKED_KEPT]:
        came = (
            first_line(port, asked + KEPT_CYCLES - ANSWER_CYCLES, scratch[ASKED_KEPT], scratch[LAST_KEPT], 0.0, 1.0)
            - 1.0
        )
    if scratch[ASKED] and not scratch[LAST_KEPT]:
        lines, latency = (scratch[ASKED], scratch[LAST_ASKED]), pace.latency + pace.reader
        came = max(came, first_line(bus, asked, *lines, latency, pace.beat * pace.line_beats))
        came = max(came, first_line(port, asked, *lines, latency, 1.0))
    return came
