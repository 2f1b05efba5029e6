"""Chunks that a scan of cut rows takes, by hand: lines of two nonzeros, first chunks of 2 lines, later ones of 16."""

import numpy as np
import pytest

from sw.model.stationary import later_chunks


@pytest.mark.parametrize(
    ("begin", "end", "row_end", "longer", "alone"),
    [
        (0, 3, 200, 0, 0),  # line 1 shows the end
        (0, 4, 200, 1, 0),  # line 2 does, of the second chunk
        (0, 31, 200, 1, 0),  # line 15, its last one
        (0, 32, 200, 1, 1),  # line 16: a third chunk, and the row goes on
        (0, 32, 40, 1, 0),  # the row's last chunk
        (0, 64, 200, 1, 2),  # line 32: a fourth one
        (30, 34, 200, 1, 0),  # line 15 is the first chunk, line 17 in the second
        (4, 4, 4, 0, 0),  # nothing is left of the row
        (0, 4, 4, 0, 0),  # the row ends in the first chunk
    ],
)
def test_by_hand(begin, end, row_end, longer, alone):
    one = (np.array([each], np.int64) for each in (begin, end, row_end))
    assert later_chunks(*one, 2, 2, 16) == (longer, alone)
