"""Jobs of the assembly pass."""

import numpy as np

from sw.timing.assembly import assembly_jobs
from sw.timing.job import JOB_FIELDS, MERGE_ON_THE_WAY, OWN, SCRATCH, SCRATCH_MERGE

RADIX, LANES = 2, 2
FACTORS = np.array([4, 1], np.int64)


def jobs_of(lengths, kept=0):
    lengths = np.array(lengths, np.int64)
    begins = np.cumsum(lengths).reshape(lengths.shape) - lengths
    jobs, pieces, read, written = assembly_jobs(lengths, begins, RADIX, LANES, FACTORS, kept)
    return [dict(zip(JOB_FIELDS, map(int, job), strict=True)) for job in jobs], pieces, read, written


def test_a_row_of_few_pieces_is_one_job():
    (job,), pieces, read, written = jobs_of([[8, 0, 6]])
    assert (job["kind"], job["leaves"], job["merged"], job["length"]) == (OWN, 2, 14, 14)
    assert job["longest"] == 6, "the first leaf has four times the line slots, the empty piece is no leaf"
    assert (pieces, read, written) == (7, 0, 0)


def test_rows_without_elements_are_jobs_too():
    found, pieces, *_ = jobs_of([[0, 0], [0, 0]])
    assert [job["leaves"] for job in found] == [0, 0]
    assert pieces == 0


def test_a_row_of_more_pieces_goes_through_scratch():
    found, pieces, read, written = jobs_of([[1, 0, 0, 0, 0], [2, 2, 2, 2, 2], [4, 0, 0, 0, 0]])
    kinds = [job["kind"] for job in found]
    assert kinds == [OWN, SCRATCH, SCRATCH, MERGE_ON_THE_WAY, SCRATCH, SCRATCH_MERGE, OWN]
    assert [job["merged"] for job in found] == [1, 4, 4, 8, 2, 10, 4]
    assert pieces == 1 + 5 * 2 + 3  # those of the second and third row begin within a line
    assert (read, written) == (4 + 5, 2 + 2 + 4 + 1)


def test_the_first_lines_of_a_row_stay_on_chip():
    """Fibers of 4, 4, 8 and 2 nonzeros lie in lines 0-1, 2-3, 4-7 and 8 of the slot: three stay, the fourth is spilled."""
    found, _, read, written = jobs_of([[2, 2, 2, 2, 2]], kept=3)
    assert [job["kept"] for job in found] == [2, 1, 0, 0, 0]
    assert (read, written) == (1 + 5, 1 + 4 + 1)
