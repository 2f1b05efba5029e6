"""Chunks of rows that are cut along k, against chunks asked for one by one."""

import numpy as np
import pytest

from sw.timing.bus import idle_bus
from sw.timing.chunks import Chunks, scan, scan_cycles, scan_ports, scanned_lines
from sw.timing.constants import ANSWER_CYCLES, CHUNK_CYCLES
from sw.timing.hardware import FIRST_CHUNK_LINES, LATER_CHUNKS, NEXT_CHUNK_LINES, SCANNED_ROWS, SECOND_LINES


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
        closing = wanted[-1] if len(wanted) > 2 and begin // lanes + sum(wanted) == -(-row_end // lanes) else 0
        assert scanned_lines(begin, begin, end, row_end, lanes) == (max(0, len(wanted) - 2), sum(wanted), closing)


def test_the_parts_of_a_row_sum_up_to_the_row() -> None:
    begin, end, row_end, lanes = 7, 400, 470, 2
    parts = [scanned_lines(begin, first, min(first + 64, end), row_end, lanes) for first in range(begin, end, 64)]
    assert tuple(np.sum(parts, axis=0)) == scanned_lines(begin, begin, end, row_end, lanes)


LATENCY = 25.0
TRIP = LATENCY + ANSWER_CYCLES + CHUNK_CYCLES


def scanned(nonzeros: int, chunks: int, lines: int, *, present: float = 0.0, closing: int = 0) -> tuple[float, float]:
    """When some nonzeros of A have been looked at, and when the next later chunk may be asked for."""
    ports = scan_ports(LATENCY)
    found = scan(idle_bus(), ports, present, False, nonzeros, chunks, lines, closing, LATENCY, 1.0)
    return found, ports[2]


def test_a_chunk_is_asked_for_when_the_one_before_has_been_seen() -> None:
    present, asked = scanned(64, 2, 32)
    assert asked == 2 * (TRIP + NEXT_CHUNK_LINES)
    assert TRIP + LATENCY < present < asked + 64
    # Behind the last one of a row the next row's is asked for while there is space for its lines.
    assert scanned(64, 2, 32, closing=4)[1] < asked - TRIP / 2
    # Lines wait until those before have been looked at.
    assert scanned(64, 2, 32, present=1000.0)[1] > 1000
    # Without a chunk nonzeros take a cycle each.
    assert scanned(64, 0, 0, present=10.0)[0] == 74.0


def test_so_many_rows_have_a_chunk_under_way() -> None:
    """Rows of a line or two, and rows with a second chunk, in the latency of a far memory."""
    times = {}
    for lines in (2, 4, 18):
        ports, present = scan_ports(400.0), 0.0
        for _ in range(640):
            present = scan(idle_bus(), ports, present, True, 1, 0, lines, 0, 400.0, 1.0)
        times[lines] = present
    trip = 400.0 + ANSWER_CYCLES + CHUNK_CYCLES
    assert times[2] == pytest.approx(640 * trip / SCANNED_ROWS, rel=0.02)
    assert times[4] == pytest.approx(640 * trip / LATER_CHUNKS, rel=0.05)
    # Two whole chunks fill the queue of second ones.
    assert times[18] == pytest.approx(640 * trip * NEXT_CHUNK_LINES / SECOND_LINES, rel=0.05)
    # A whole scan, whose rows nobody holds up, says the same.
    of_scan = {
        2: Chunks(first=640), 4: Chunks(640, 640, 0, 640 * 2), 18: Chunks(640, 640, 0, 640 * NEXT_CHUNK_LINES)
    }  # fmt: skip
    for lines, chunks in of_scan.items():
        assert scan_cycles(chunks, 400.0, 1.0) == pytest.approx(times[lines], rel=0.05)
    assert scan_cycles(Chunks(1, 1, 100, 16), 400.0, 1.0) == 100 * (trip + NEXT_CHUNK_LINES)
    assert Chunks(3, 2, 4, 32).bursts == 9 and scan_cycles(Chunks(), 400.0, 1.0) == 0
