"""Chunks of rows that are cut along k, against chunks asked for one by one."""

import numpy as np
import pytest

from sw.timing.bus import idle_bus
from sw.timing.chunks import scan, scanned_lines
from sw.timing.constants import ANSWER_CYCLES, CHUNK_CYCLES
from sw.timing.hardware import FIRST_CHUNK_LINES, NEXT_CHUNK_LINES


def chunks_of(begin: int, last: int, row_end: int, lanes: int) -> list[int]:
    """Lines of each chunk until nonzero ``last`` is seen."""
    line, stop = begin // lanes, -(-row_end // lanes)
    found, size = [], FIRST_CHUNK_LINES
    while line <= last // lanes:
        to = min((line // size + 1) * size, stop)
        found.append(to - line)
        line, size = to, NEXT_CHUNK_LINES
    return found


@pytest.mark.parametrize("lanes", (2, 4))
def test_lines_and_later_chunks_of_a_row_are_those_of_a_scan(lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    for _ in range(500):
        begin = int(rng.integers(0, 200))
        end = begin + int(rng.integers(0, 300))
        row_end = end + int(rng.integers(0, 2)) * int(rng.integers(0, 60))
        wanted = chunks_of(begin, min(end, row_end - 1), row_end, lanes) if begin < row_end else []
        assert scanned_lines(begin, begin, end, row_end, lanes) == (max(0, len(wanted) - 2), sum(wanted))


def test_the_parts_of_a_row_sum_up_to_the_row() -> None:
    begin, end, row_end, lanes = 7, 400, 411, 2
    parts = [scanned_lines(begin, first, min(first + 64, end), row_end, lanes) for first in range(begin, end, 64)]
    assert tuple(np.sum(parts, axis=0)) == scanned_lines(begin, begin, end, row_end, lanes)


def test_a_chunk_is_asked_for_when_the_one_before_has_been_seen() -> None:
    latency = 25.0
    trip = latency + ANSWER_CYCLES + NEXT_CHUNK_LINES + CHUNK_CYCLES
    present, asked = scan(idle_bus(), 0.0, 0.0, 64, 2, latency, 1.0)
    assert asked == 2 * trip
    assert trip + latency < present < 2 * trip + 64
    # Lines wait until those before have been looked at.
    assert scan(idle_bus(), 0.0, 1000.0, 64, 2, latency, 1.0)[1] > 1000
    # Without a chunk nonzeros take a cycle each.
    assert scan(idle_bus(), 0.0, 10.0, 64, 0, latency, 1.0) == (74.0, 0.0)
