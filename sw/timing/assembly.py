"""The jobs of the assembly pass: each row's pieces, one from each j tile, are joined."""

import numpy as np
from numpy.typing import NDArray

from .constants import POINTER_CYCLES
from .job import JOB_FIELDS, MERGE_ON_THE_WAY, OWN, SCRATCH, SCRATCH_MERGE, write_job
from .record_beats import spilled_lines

__all__ = ["assembly_jobs"]


def assembly_jobs(
    lengths: NDArray[np.int64],
    begins: NDArray[np.int64],
    radix: int,
    lanes: int,
    slot_factors: NDArray[np.int64],
    kept_lines: int,
) -> tuple[NDArray[np.int64], int, int, int]:
    """Jobs in row order, for :func:`sw.timing.jobs.jobs_end`, and what they move beside the result.

    Parameters
    ----------
    lengths, begins: int64[rows, j tiles]: elements of each piece, and its first one's place in memory in elements.
    radix, lanes: of the design.
    slot_factors: int64[radix]: how many times the usual line slots each leaf of a job has.
    kept_lines: of each long row's fibers in scratch memory that stay on chip.

    Returns
    -------
    int64[jobs, fields]; lines of pieces that are read; of fibers of long rows that come back from scratch; lines written there.
    """
    full = lengths > 0
    lines = np.where(full, -(-(begins + lengths) // lanes) - begins // lanes, 0)
    pieces, read, written = int(lines.sum()), 0, 0
    pieces_of, sums = full.sum(axis=1), lengths.sum(axis=1)
    # As the leaves of a job come, empty pieces left out.
    factors = slot_factors[np.clip(full.cumsum(axis=1) - 1, 0, radix - 1)]
    own = np.zeros((len(lengths), len(JOB_FIELDS)), np.int64)
    columns = {
        "kind": OWN,
        "leaves": pieces_of,
        "merged": sums,
        "length": sums,
        "selections": int(POINTER_CYCLES * lengths.shape[1]),
        "longest": np.max(-(-lengths // factors), axis=1, initial=0),
        "steps": np.maximum(pieces_of, 1),
        "fetched": pieces_of,
        "streamed": lines.sum(axis=1),
        "widest": lengths.max(axis=1, initial=0),
        "queued": 0,  # pieces have their columns one behind the other
    }
    for name, column in columns.items():
        own[:, JOB_FIELDS.index(name)] = column
    jobs: list[NDArray[np.int64]] = []
    done = 0
    for row in map(int, np.flatnonzero(pieces_of > radix)):
        of_row, back, out = _long_row(lengths[row][full[row]], radix, lanes, kept_lines)
        jobs += [own[done:row], of_row]
        read, written, done = read + back, written + out, row + 1
    return np.concatenate([*jobs, own[done:]]), pieces, read, written


def _long_row(pieces: NDArray[np.int64], radix: int, lanes: int, kept_lines: int) -> tuple[NDArray[np.int64], int, int]:
    """The jobs of a row of more pieces than one takes; lines that come back from scratch memory, lines written there."""
    jobs = np.zeros((3 + 2 * (len(pieces) // radix), len(JOB_FIELDS)), np.int64)
    number = position = read = written = 0

    def out(size: int) -> tuple[int, int]:
        """Of a fiber that is written next: lines that go to memory, and new ones that stay."""
        spilled = int(spilled_lines(position, size, lanes, kept_lines))
        before, after = -(-position // lanes), -(-(position + size) // lanes)
        return spilled, max(0, min(after, kept_lines) - min(before, kept_lines))

    table: list[tuple[int, int]] = []  # fibers in scratch: where they begin, how long they are
    for first in range(0, len(pieces), radix):
        if len(table) == radix:
            whole = sum(size for _, size in table)
            read += sum(int(spilled_lines(at, size, lanes, kept_lines)) for at, size in table)
            lines = out(whole)
            written += lines[0]
            number = write_job(jobs, number, MERGE_ON_THE_WAY, radix, whole, whole, 0, 0, written=lines, queued=0)
            table = [(position, whole)]
            position += whole
        size = int(pieces[first : first + radix].sum())
        lines = out(size)
        written += lines[0]
        number = write_job(
            jobs, number, SCRATCH, min(radix, len(pieces) - first), size, size, radix, 0, written=lines, queued=0
        )
        table.append((position, size))
        position += size
    read += sum(int(spilled_lines(at, size, lanes, kept_lines)) for at, size in table)
    whole = int(pieces.sum())
    number = write_job(jobs, number, SCRATCH_MERGE, len(table), whole, whole, 0, 0, queued=0)
    return jobs[:number], read, written
