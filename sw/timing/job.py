"""A job as the simulator of jobs knows it: which leaves one PE merges at a time (``docs/architecture.md``)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.jit import njit

from .chunks import NOT_SCANNED, Scanned

__all__ = [
    "CHUNKS",
    "CLOSING",
    "FETCHED",
    "JOB_FIELDS",
    "KEPT",
    "KIND",
    "LEAVES",
    "LENGTH",
    "LOADED",
    "LONGEST",
    "MERGED",
    "MERGE_ON_THE_WAY",
    "ONE_TILE",
    "OWN",
    "QUEUED",
    "SCANNED",
    "SCRATCH",
    "SCRATCH_MERGE",
    "SELECTIONS",
    "SPILLED",
    "STEPS",
    "STREAMED",
    "WIDEST",
    "write_job",
]

# What is known of a job, in the order of a row of ``jobs``: kind, leaves, nonzeros merged, nonzeros of its fiber, cycles in
# which A's nonzeros were looked at for it, chunks of A's row that were asked for only when the one before had been seen, the
# cycle in which the last of its segments of B is in the partition, nonzeros of the longest leaf that comes from memory (an n-th
# of them where it has n times the usual line slots), cycles less one in which the dispatcher is at it: a leaf in each, but no
# more nonzeros of A than it gets; leaves that come from memory, but for fibers from scratch, and their lines; lines of its
# fiber, one for scratch memory, that stay on chip and that no fiber of the row had begun; lines of A that are asked for in
# chunks for it, and of the last of its chunks behind the second one, where that is the row's last; lines of its fiber that go to
# scratch memory; nonzeros of the longest leaf whose lines are on chip when its PE asks for them; nonzeros that the queues of its
# other leaves hold when the last nonzero of all enters its queue.
JOB_FIELDS = (
    "kind",
    "leaves",
    "merged",
    "length",
    "selections",
    "chunks",
    "loaded",
    "longest",
    "steps",
    "fetched",
    "streamed",
    "kept",
    "scanned",
    "closing",
    "spilled",
    "widest",
    "queued",
)
(
    KIND,
    LEAVES,
    MERGED,
    LENGTH,
    SELECTIONS,
    CHUNKS,
    LOADED,
    LONGEST,
    STEPS,
    FETCHED,
    STREAMED,
    KEPT,
    SCANNED,
    CLOSING,
    SPILLED,
    WIDEST,
    QUEUED,
) = range(len(JOB_FIELDS))
# A row's only job; a group of a long row; the fibers of a long row, merged to make room; merged at last.
OWN, SCRATCH, MERGE_ON_THE_WAY, SCRATCH_MERGE = range(4)
ONE_TILE = np.zeros(0, np.int64)


@njit(cache=True, counted=False)
def write_job(
    jobs: NDArray[Any],
    number: int,
    kind: int,
    leaves: int,
    merged: int,
    length: int,
    selections: int,
    longest: int,
    of_a: Scanned = NOT_SCANNED,
    examined: int = 0,
    fetched: int = 0,
    streamed: int = 0,
    written: tuple[int, int] = (0, 0),
    widest: int = 0,
    queued: int = -1,
) -> int:
    """Writes a job down, its segments of B loaded from the begin; returns the number of the next one.

    ``examined``: nonzeros of A of which ``leaves`` had something in B; the dispatcher waits for the others as well.
    ``fetched``, ``streamed``: leaves that come from memory, and their lines.
    ``of_a``: chunks and lines of A (:func:`.chunks.scanned_lines`).
    ``written``: lines of its fiber, one for scratch memory, that go there, and those that stay on chip and are new.
    ``queued``: without it nothing is known of the columns of its leaves.
    """
    jobs[number, KIND] = kind
    jobs[number, LEAVES] = leaves
    jobs[number, MERGED] = merged
    jobs[number, LENGTH] = length
    jobs[number, SELECTIONS] = selections
    jobs[number, CHUNKS], jobs[number, SCANNED], jobs[number, CLOSING] = of_a
    jobs[number, LOADED] = 0
    jobs[number, LONGEST] = longest
    jobs[number, STEPS] = max(leaves, examined - 1, 1)
    jobs[number, FETCHED] = fetched
    jobs[number, STREAMED] = streamed
    jobs[number, SPILLED], jobs[number, KEPT] = written
    jobs[number, WIDEST] = widest
    jobs[number, QUEUED] = merged if queued < 0 else queued
    return number + 1
