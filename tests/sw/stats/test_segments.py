"""Scanning costs against a line-by-line walk in the manner of the hardware's scanner."""

from itertools import pairwise

import numpy as np
import pytest

from sw.stats.pattern import Pattern
from sw.stats.segments import prefix_profile, row_beats, row_lines, scan_profile
from tests.sw.stats.matrices import MATRICES

# Bits of a record: as on chip, packed, one that lines and beats share no end of, one of a bit.
WIDTHS = [64, 48, 23, 1]


def beats_of(lines, width, lanes):
    """Beats of 64 bits for each lane that hold these lines of records, each beat once."""
    first_and_last = ((line * width // 64, ((line + 1) * lanes * width - 1) // (64 * lanes)) for line in lines)
    return len({beat for first, last in first_and_last for beat in range(first, last + 1)})


def scanned(coordinates, begin, end, high, lanes):
    """Lines requested for one segment, chunk by chunk, and where the next one begins."""
    if begin == end:
        return [], begin
    stop = -(-end // lanes)
    line = begin // lanes
    asked_to = min(stop, (line // 2 + 1) * 2)
    chunks = [range(line, asked_to)]
    while True:
        here = range(max(begin, line * lanes), min(end, (line + 1) * lanes))
        beyond = [p for p in here if coordinates[p] >= high]
        if beyond or line + 1 == stop:
            return chunks, beyond[0] if beyond else end
        line += 1
        if line == asked_to:
            asked_to = min(stop, (line // 16 + 1) * 16)
            chunks.append(range(line, asked_to))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("T", "lanes"), [(1, 2), (16, 2), (16, 8), (50, 2), (50, 8), (1000, 8)])
@pytest.mark.parametrize("name", MATRICES)
def test_scan_profile_is_what_the_scanner_requests(name, T, lanes, width):
    """A beat that two chunks, or two fetches, share is read for each."""
    matrix = Pattern.of(MATRICES[name])
    uses = np.arange(matrix.rows, dtype=np.int64) % 4
    steps = -(-matrix.columns // T)
    lines, beats = np.zeros(steps), np.zeros(steps)
    segments = fetches = fetch_lines = fetch_beats = 0
    for row in range(matrix.rows):
        at, end = matrix.pointers[row], matrix.pointers[row + 1]
        for step in range(steps):
            chunks, following = scanned(matrix.coordinates, at, end, (step + 1) * T, lanes)
            lines[step] += sum(len(chunk) for chunk in chunks)
            beats[step] += sum(beats_of(chunk, width, lanes) for chunk in chunks)
            if following > at:
                segments += 1
                fetches += uses[row]
                own = range(at // lanes, (following - 1) // lanes + 1)
                fetch_lines += uses[row] * len(own)
                fetch_beats += uses[row] * beats_of(own, width, lanes)
            at = following
    found = scan_profile(matrix, T, lanes, uses, width)
    assert np.array_equal(found.lines, lines) and np.array_equal(found.beats, beats)
    assert (found.segments, found.fetches) == (segments, fetches)
    assert (found.fetch_lines, found.fetch_beats) == (fetch_lines, fetch_beats)
    assert found.by_bits.sum() == segments
    assert found.nonzeros_by_bits.sum() == matrix.nnz


def test_sampled_rows_stand_for_all(monkeypatch):
    matrix = Pattern.of(MATRICES["power_law"])
    uses = matrix.column_counts()
    whole = scan_profile(matrix, 25, 2, uses, 40)
    monkeypatch.setattr("sw.stats.segments.MOST_STEPS", 1)  # leaves the least sample, 256 of 400 rows
    sampled = scan_profile(matrix, 25, 2, uses, 40)
    assert sampled.beats.sum() == pytest.approx(whole.beats.sum(), rel=0.1)
    assert sampled.lines.sum() == pytest.approx(whole.lines.sum(), rel=0.1)
    assert sampled.segments == pytest.approx(whole.segments, rel=0.1)
    assert sampled.segments != whole.segments


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", MATRICES)
def test_prefix_keeps_rows_until_one_does_not_fit(name, width):
    matrix = Pattern.of(MATRICES[name])
    T, lanes = 10, 2
    tiles = -(-matrix.rows // T)
    capacity = np.arange(tiles, dtype=np.int64) * 7 % 40
    uses = np.arange(matrix.rows, dtype=np.int64) % 3
    pointers = matrix.pointers
    lines = [range(p // lanes, -(-q // lanes)) if q > p else range(0) for p, q in pairwise(pointers)]
    assert row_lines(matrix, lanes).tolist() == [len(row) for row in lines]
    beats = [beats_of(row, width, lanes) for row in lines]
    assert row_beats(matrix, lanes, width).tolist() == beats
    load = load_beats = bumped_uses = bumped_lines = bumped_beats = bumped_macs = over = 0
    for tile in range(tiles):
        rows = range(tile * T, min(matrix.rows, (tile + 1) * T))
        begin, kept, full = pointers[rows[0]], pointers[rows[0]], False
        for row in rows:
            full |= pointers[row + 1] - begin > capacity[tile]
            if full:
                bumped_uses += uses[row] * (len(lines[row]) > 0)
                bumped_lines += uses[row] * len(lines[row])
                bumped_beats += uses[row] * beats[row]
                bumped_macs += uses[row] * (pointers[row + 1] - pointers[row])
            else:
                kept = pointers[row + 1]
        over += full
        if kept > begin:
            own = range(begin // lanes, (kept - 1) // lanes + 1)
            load += len(own)
            load_beats += beats_of(own, width, lanes)
    found = prefix_profile(matrix, T, capacity, lanes, uses, width)
    assert found == (load, load_beats, bumped_uses, bumped_lines, bumped_beats, bumped_macs, over)
