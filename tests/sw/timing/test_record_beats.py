"""Beats of packed records, counted bit by bit."""

import numpy as np
import pytest

from sw.timing.record_beats import beats_of_lines, expected_beats, line_beats, record_beats

WIDTHS = pytest.mark.parametrize("width", [9, 22, 33, 46, 48, 63, 64])


def touched(begin: int, end: int, width: int, beat: int) -> int:
    """Different beats among those of each bit."""
    return len({bit // beat for bit in range(begin * width, end * width)})


@WIDTHS
@pytest.mark.parametrize("beat", [64, 128, 512])
def test_records_lie_in_the_beats_of_their_bits(width: int, beat: int) -> None:
    rng = np.random.default_rng(width)
    for begin, count in [(0, 0), (5, 0), (0, 1), (7, 1), *rng.integers(0, 90, (40, 2)).tolist()]:
        assert record_beats(begin, begin + count, width, beat) == touched(begin, begin + count, width, beat)


@WIDTHS
@pytest.mark.parametrize("lanes", [1, 2, 8])
def test_lines_are_lanes_of_records_in_beats_of_lanes(width: int, lanes: int) -> None:
    for first, count in [(0, 1), (3, 0), (3, 1), (4, 9), (17, 64)]:
        found = touched(first * lanes, (first + count) * lanes, width, 64 * lanes)
        assert beats_of_lines(first, first + count, width) == found


def test_plain_records_fill_their_beats() -> None:
    assert line_beats(64) == 1
    assert expected_beats(12.0, 5.0, 64) == 12


@WIDTHS
def test_the_expectation_is_the_mean_over_all_begins(width: int) -> None:
    lines = 5
    mean = np.mean([beats_of_lines(first, first + lines, width) for first in range(64)])
    assert expected_beats(lines, 1, width) == pytest.approx(mean)
