"""Scanning costs against a line-by-line walk in the manner of the hardware's scanner."""

import numpy as np
import pytest

from sw.stats.pattern import Pattern
from sw.stats.segments import prefix_profile, row_lines, scan_profile
from tests.sw.stats.matrices import MATRICES


def scanned_beats(coordinates, begin, end, high, lanes):
    """Bus lines requested for one segment, and where the next one begins."""
    if begin == end:
        return 0, begin
    stop = -(-end // lanes)
    line = begin // lanes
    asked_to = min(stop, (line // 2 + 1) * 2)
    while True:
        here = range(max(begin, line * lanes), min(end, (line + 1) * lanes))
        beyond = [p for p in here if coordinates[p] >= high]
        if beyond or line + 1 == stop:
            return asked_to - begin // lanes, beyond[0] if beyond else end
        line += 1
        if line == asked_to:
            asked_to = min(stop, (line // 16 + 1) * 16)


@pytest.mark.parametrize("lanes", [2, 8])
@pytest.mark.parametrize("T", [1, 16, 50, 1000])
@pytest.mark.parametrize("name", MATRICES)
def test_scan_profile_is_what_the_scanner_requests(name, T, lanes):
    matrix = Pattern.of(MATRICES[name])
    uses = np.arange(matrix.rows, dtype=np.int64) % 4
    steps = -(-matrix.columns // T)
    beats = np.zeros(steps)
    segments = fetches = lines = 0
    for row in range(matrix.rows):
        at, end = matrix.pointers[row], matrix.pointers[row + 1]
        for step in range(steps):
            cost, following = scanned_beats(matrix.coordinates, at, end, (step + 1) * T, lanes)
            beats[step] += cost
            if following > at:
                segments += 1
                fetches += uses[row]
                lines += uses[row] * ((following - 1) // lanes - at // lanes + 1)
            at = following
    found = scan_profile(matrix, T, lanes, uses)
    assert np.array_equal(found.beats, beats)
    assert (found.segments, found.fetches, found.fetch_lines) == (segments, fetches, lines)
    assert found.by_bits.sum() == segments
    assert found.nonzeros_by_bits.sum() == matrix.nnz


def test_sampled_rows_stand_for_all(monkeypatch):
    matrix = Pattern.of(MATRICES["power_law"])
    uses = matrix.column_counts()
    whole = scan_profile(matrix, 25, 2, uses)
    monkeypatch.setattr("sw.stats.segments.MOST_STEPS", 1)  # leaves the least sample, 256 of 400 rows
    sampled = scan_profile(matrix, 25, 2, uses)
    assert sampled.beats.sum() == pytest.approx(whole.beats.sum(), rel=0.1)
    assert sampled.segments == pytest.approx(whole.segments, rel=0.1)
    assert sampled.segments != whole.segments


@pytest.mark.parametrize("name", MATRICES)
def test_prefix_keeps_rows_until_one_does_not_fit(name):
    matrix = Pattern.of(MATRICES[name])
    T, lanes = 10, 2
    tiles = -(-matrix.rows // T)
    capacity = np.arange(tiles, dtype=np.int64) * 7 % 40
    uses = np.arange(matrix.rows, dtype=np.int64) % 3
    lines = row_lines(matrix, lanes)
    load = bumped_lines = bumped_macs = over = 0
    for tile in range(tiles):
        rows = range(tile * T, min(matrix.rows, (tile + 1) * T))
        begin, kept, full = matrix.pointers[rows[0]], matrix.pointers[rows[0]], False
        for row in rows:
            full |= matrix.pointers[row + 1] - begin > capacity[tile]
            if full:
                bumped_lines += uses[row] * lines[row]
                bumped_macs += uses[row] * (matrix.pointers[row + 1] - matrix.pointers[row])
            else:
                kept = matrix.pointers[row + 1]
        over += full
        if kept > begin:
            load += (kept - 1) // lanes - begin // lanes + 1
    assert prefix_profile(matrix, T, capacity, lanes, uses) == (load, bumped_lines, bumped_macs, over)
