"""What reads move, against a walk over every line and beat."""

import numpy as np
import pytest

from sw.formats.memory_csr import CSR32, MemoryCsr
from sw.model.reads import Reads

LANES = 4
FIRST, NEXT = 2, 16  # lines of chunks of a scan
LINE_BEATS = (1, 2, 4)
NAMED = {"plain": CSR32, "fp32": MemoryCsr(9, "fp32"), "int8": MemoryCsr(17, "int8"), "bf16": MemoryCsr(32, "bf16")}
FORMS = pytest.mark.parametrize("form", NAMED.values(), ids=NAMED)


@pytest.fixture(params=LINE_BEATS, ids=[f"{beats} beats a line" for beats in LINE_BEATS])
def line_beats(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def beats_of(lines: set[int], width: int, line_beats: int) -> set[int]:
    """Beats that hold these lines of records."""
    line, beat = LANES * width, 64 * LANES // line_beats
    return {bit // beat for number in lines for bit in range(number * line, (number + 1) * line)}


def reads(form: MemoryCsr, line_beats: int) -> Reads:
    return Reads(LANES, line_beats, dict.fromkeys("ABC", form))


def rows(seed: int, gaps: bool, longest: int = 17) -> tuple[np.ndarray, np.ndarray]:
    """Begins and ends of rows that rise, some of them empty, with gaps or without."""
    rng = np.random.default_rng(seed)
    lengths = rng.choice([0, 1, 2, 3, longest], 50)
    between = rng.choice([0, 0, 1, 2, 9], 50) if gaps else np.zeros(50, np.int64)
    begin = np.cumsum(lengths + between) - lengths
    return begin, begin + lengths


@FORMS
@pytest.mark.parametrize("seed", range(5))
def test_runs_read_each_beat_once_but_behind_gaps(form: MemoryCsr, line_beats: int, seed: int) -> None:
    begin, end = rows(seed, gaps=True)
    runs: list[set[int]] = []
    for first, last in zip(begin, end, strict=True):
        lines = set(range(first // LANES, (last - 1) // LANES + 1)) if last > first else set()
        if runs and lines and min(lines) <= max(runs[-1]) + 1:
            runs[-1] |= lines
        elif lines:
            runs.append(lines)
    wanted = sum(len(beats_of(run, form.record_bits, line_beats)) for run in runs)
    assert reads(form, line_beats).run_beats("b", begin, end) == wanted


@FORMS
def test_whole_rows_are_one_run_up_to_the_first_that_stays(form: MemoryCsr, line_beats: int) -> None:
    begin, end = rows(7, gaps=False)
    pointers = np.r_[begin, end[-1]]
    for resident in (None, 20, 0):
        counter = reads(form, line_beats)
        counter.rows("b", pointers, (0, 50), True, True, False, begin, end, resident)
        stop = end[-1] if resident is None else pointers[resident]
        lines = set(range(-(-stop // LANES)))
        assert counter.beats["read_b_data"] == len(beats_of(lines, form.record_bits, line_beats))


@FORMS
def test_a_scan_reads_the_beats_of_each_chunk(form: MemoryCsr, line_beats: int) -> None:
    rng = np.random.default_rng(3)
    begin, end = rows(11, gaps=False, longest=40 * LANES)
    pointers = np.r_[begin, end[-1]]
    cut = begin + rng.integers(0, end - begin + 1)
    wanted, chunks = 0, []
    for first, stop, row_end in zip(begin, cut, end, strict=True):
        if first == row_end:
            continue
        chunks.append([])
        line, last = first // LANES, -(-row_end // LANES)
        shown, size = -1, FIRST
        while shown < (stop // LANES if stop < row_end else last - 1):
            chunk = min((line // size + 1) * size, last)
            wanted += len(beats_of(set(range(line, chunk)), form.record_bits, line_beats))
            chunks[-1].append(chunk - line)
            line, shown, size = chunk, chunk - 1, NEXT
    counter = reads(form, line_beats)
    counter.rows("a", pointers, (0, 50), False, True, False, begin, cut)
    assert counter.beats["read_a_data"] == wanted
    second = [row[1] for row in chunks if len(row) > 1]
    later = sum(max(0, len(row) - 2) for row in chunks)
    assert counter.chunks == (len(chunks), len(second), later, sum(second))
    assert counter.bursts == sum(map(len, chunks)) and second and later
    counter.rows("a", pointers, (0, 50), True, True, False, begin, end)
    assert counter.chunks.bursts == 0


@FORMS
def test_a_result_is_written_in_whole_lines(form: MemoryCsr, line_beats: int) -> None:
    for begin, count in [(0, 0), (3, 0), (0, 1), (5, 40)]:
        bits = range(begin * form.record_bits, (begin + count) * form.record_bits)
        lines = {bit // (64 * LANES) for bit in bits}
        assert reads(form, line_beats).result_beats(begin, count) == line_beats * len(lines)


def test_words_come_in_whole_lines(line_beats: int) -> None:
    counter = reads(CSR32, line_beats)
    for first, count in [(0, 0), (7, 1), (7, 2), (3, 40)]:
        lines = {word // (2 * LANES) for word in range(first, first + count)}
        assert counter.word_beats(first, count) == line_beats * len(lines)
