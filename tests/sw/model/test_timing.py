"""When jobs end: what one PE needs, what queues and further PEs save."""

import numpy as np
import pytest

from sw.timing.constants import FILL_LEAF_CYCLES, FILL_NONZERO_CYCLES, LINE_CYCLES, MERGE_CYCLES, PREFETCHED_LINES
from sw.timing.hardware import NEXT_CHUNK_LINES, QUEUED_NONZEROS
from sw.timing.job import JOB_FIELDS, MERGE_ON_THE_WAY, OWN, SCRATCH, SCRATCH_MERGE
from sw.timing.jobs import jobs_end
from sw.timing.pace import Pace

DESIGN = {
    "pes": 4,
    "radix": 16,
    "lanes": 2,
    "leaf_lines": 4,
    "short_lines": 8,
    "queue_lines": 256,
    "latency": 25,
    "fill": 60,
    "burst": 16,
    "outstanding": 16,
    "region": 512,
}
DESIGN |= {"scratch_slots": 64, "beat": 1.0, "slot_factors": np.ones(64, np.int64)}


def job(
    kind=OWN,
    leaves=4,
    merged=400,
    length=100,
    selections=4,
    chunks=0,
    loaded=0,
    longest=0,
    steps=0,
    kept=0,
    scanned=0,
    widest=0,
    streamed=0,
    queued=None,
):
    fetched = leaves if streamed else 0
    return [
        kind,
        leaves,
        merged,
        length,
        selections,
        chunks,
        loaded,
        longest,
        max(steps, leaves),
        fetched,
        streamed,
        kept,
        scanned,
        0,
        max(0, -(-length // DESIGN["lanes"]) - kept) if kind in (SCRATCH, MERGE_ON_THE_WAY) else 0,
        widest,
        merged if queued is None else queued,
    ]


def cycles(jobs, **changes):
    tiles = {name: changes.pop(name) for name in ("firsts", "loads", "a_beats") if name in changes}
    return jobs_end(np.array(jobs, np.int64).reshape(-1, len(JOB_FIELDS)), Pace(**(DESIGN | changes)), **tiles)


def test_nothing_takes_no_time():
    assert cycles([]) == 0


def test_one_pe_merges_one_a_cycle():
    few, many = (cycles([job()] * n, pes=1) for n in (10, 20))
    assert 4000 <= many - few <= 4000 * MERGE_CYCLES * 1.05


def test_nonzeros_of_a_take_the_bus_once_those_that_wait_are_used():
    rows = [job(merged=8, length=8)] * 400
    assert cycles(rows, a_beats=PREFETCHED_LINES) == cycles(rows)
    assert cycles(rows, a_beats=PREFETCHED_LINES + 3000) >= 400 * 4 + 3000


def test_pes_share_the_jobs():
    alone, shared = (cycles([job()] * 64, pes=n) for n in (1, 4))
    assert 3.5 < alone / shared <= 4


def test_the_bus_bounds_jobs_from_memory():
    assert cycles([job(streamed=200)] * 40) >= 40 * (200 + 50)


def test_a_leaf_gives_as_its_line_slots_are_filled_again():
    """4 slots of 2 nonzeros for 9.25 cycles; other leaves of the job come in between."""
    alone, shared = (cycles([job(leaves=1, merged=merged, length=merged, widest=800)], pes=1) for merged in (800, 1600))
    assert alone == pytest.approx(800 * 9.25 / 8, abs=100)
    assert shared == pytest.approx(1600 * MERGE_CYCLES, abs=100)


def test_leaves_of_the_same_columns_take_turns():
    apart, together = (
        cycles([job(leaves=2, merged=8000, length=length)], pes=1, queue_lines=8000) for length in (8000, 4000)
    )
    assert apart - together == pytest.approx(8000 * (MERGE_CYCLES - 1) * (1 - 2 / 16), abs=40)


def test_what_comes_from_memory_comes_by_line_slots():
    """The first 8 nonzeros at once, the others by bursts of 4, of which two are on their way: 41 cycles from one to the next."""
    alone = cycles([job(merged=80, length=80, streamed=40, longest=80)])
    resident = cycles([job(merged=80, length=80, streamed=40)])
    assert alone - resident == pytest.approx((80 - 8) * (41 + 4) / 8 - 80 * MERGE_CYCLES)


def test_a_line_store_is_empty_before_its_lines_come_from_elsewhere():
    """Jobs on chip and jobs from memory in turn pay for a latency each, which jobs from memory one after the other hide."""
    chip, memory = job(leaves=2, merged=20, length=20), job(leaves=2, merged=20, length=20, streamed=4)
    alone = {"pes": 1, "region": 0}
    apart, in_turn = cycles([chip] * 40 + [memory] * 40, **alone), cycles([chip, memory] * 40, **alone)
    asked, begins = 6 + 25, 11 + 20
    assert in_turn - apart == pytest.approx(40 * (asked + begins - 2 * 20), rel=0.3)


def test_a_job_asks_memory_when_all_lines_of_the_one_before_have_been_asked_for():
    """A leaf of 40 nonzeros on chip has line slots for 8: the next job's leaf from memory is asked for 8 nonzeros before its end.

    Without it, or where it is as short as its slots, the latency passes beside the merge.
    """
    alone = {"pes": 1, "region": 0}
    memory = job(leaves=2, merged=40, length=40, streamed=8)
    long_leaf, short_leaf = (job(leaves=8, merged=40, length=40, widest=nonzeros) for nonzeros in (40, 8))
    last_asked = [cycles([first, memory], **alone) for first in (long_leaf, short_leaf)]
    slower = max(40, 40 + (2 * 40 - 40) * (LINE_CYCLES / 8 - 1)) - 40 * (1 + (MERGE_CYCLES - 1) / 2)
    assert last_asked[0] - last_asked[1] > slower + 10


def test_a_job_asks_memory_beside_one_whose_lines_have_all_been_asked_for():
    """Both leaves of each job lie in memory, and fit their slots: the next job asks as soon as it has come."""
    alone = {"pes": 1, "region": 0, "slot_factors": np.full(64, 8, np.int64)}
    row = {"leaves": 2, "merged": 80, "length": 80, "streamed": 40, "longest": 5}
    assert cycles([job(**row, widest=40)] * 20, **alone) == cycles([job(**row)] * 20, **alone)


def test_bursts_of_a_long_leaf_wait_for_rows_that_leave():
    """Two of its bursts are on their way whatever came before it; what rows of C take of the bus holds each of them up."""
    factors = {"slot_factors": np.full(64, 8, np.int64), "pes": 1, "region": 0}
    alone = 4000 * (41 + 32) / 64
    for length, slower in ((40, 1.0), (4000, 1.15)):
        rows = [job(leaves=1, merged=4000, length=length, streamed=2000, longest=500)] * 2
        first, both = cycles(rows[:1], **factors), cycles(rows, **factors)
        assert first == pytest.approx(alone, rel=0.1)
        assert both - first == pytest.approx(slower * alone, rel=0.02)


def test_a_leaf_waits_for_lines_of_the_region():
    """Rows whose leaves come before their turn take the time of their merge, else that of the memory as well."""
    rows = [job(leaves=4, merged=24, length=6, streamed=12)] * 200
    early, some = (cycles(rows, region=lines, pes=2, radix=4) for lines in (512, 32))
    assert early <= 200 * (24 * MERGE_CYCLES + 4 * 1.4) / 2 + 200
    assert some > 1.5 * early


def test_rows_of_a_in_several_chunks_wait_for_memory():
    """A chunk is asked for when the one before has come: a latency and its lines for each, whatever is looked at meanwhile."""
    each = DESIGN["latency"] + NEXT_CHUNK_LINES
    few, many = (cycles([job(merged=10, length=5, chunks=1)] * n) for n in (40, 80))
    assert 40 * each < many - few < 40 * (each + 15)
    # As many nonzeros as come in this time hide it.
    rows = [job(leaves=1, merged=1, length=1, selections=200, steps=200)] * 40
    with_chunks = [job(leaves=1, merged=1, length=1, selections=200, steps=200, chunks=1)] * 40
    assert cycles(rows) <= cycles(with_chunks) < cycles(rows) + 2 * each


def test_scanned_lines_of_a_take_the_bus():
    rows = [job(merged=8, length=8)] * 400
    assert cycles([job(merged=8, length=8, scanned=30)] * 400, a_beats=400 * 30) >= 400 * (30 + 4)
    assert cycles(rows, a_beats=400 * 3) == cycles(rows, a_beats=PREFETCHED_LINES + 1000)


def test_elements_of_a_that_find_nothing_take_the_dispatchers_time():
    """Rows of four leaves take five cycles; of ten elements of A with four leaves ten, of two without any two."""

    def each(**of):
        rows = [job(merged=2, length=2, selections=1, **of)]
        return (cycles(rows * 400, pes=32) - cycles(rows * 200, pes=32)) / 200

    assert each() == pytest.approx(5, abs=0.1)
    assert each(steps=9) == pytest.approx(10, abs=0.1)
    assert each(leaves=1, steps=1) == pytest.approx(2, abs=0.1)


def test_a_job_waits_for_its_segments_of_b():
    assert cycles([job()]) + 900 <= cycles([job(loaded=1000)]) <= cycles([job()]) + 1000
    assert cycles([job(loaded=4)] * 40) == cycles([job()] * 40)


def test_a_long_row_holds_up_those_whose_queues_are_full():
    rows = [job(merged=40_000)] + [job(length=400)] * 40
    assert cycles(rows, queue_lines=16) > cycles(rows, queue_lines=1 << 14)


def test_rows_longer_than_the_queue_are_merged_one_after_the_other():
    """What the queue does not hold of a row is merged when the rows before it are out: two products an element, a row a time."""
    rows = [job(merged=4000, length=2000)] * 40
    held = 2 * 256
    assert cycles(rows, queue_lines=256) >= 40 * 4000 * (2000 - held) / 2000
    assert cycles(rows, queue_lines=1024) < 1.1 * 40 * 1000 * MERGE_CYCLES  # as fast as they can leave


def test_a_queue_holds_words_and_an_empty_fiber_is_one():
    """While a long row leaves, fibers of less than a word take as many places as those of a whole one."""
    full, half, empty = (
        cycles(
            [job(leaves=1, merged=4000, length=4000), *[job(leaves=1, merged=20, length=length)] * 60],
            pes=2,
            queue_lines=8,
        )
        for length in (2, 1, 0)
    )
    assert half == empty == pytest.approx(full, abs=4)


def each(jobs, **changes):
    """Cycles of each more of these jobs on one PE."""
    few, many = (cycles(jobs * n, pes=1, **changes) for n in (10, 20))
    return (many - few) / (10 * len(jobs))


def test_the_queues_of_leaves_fill_while_those_of_the_job_before_empty():
    """Where leaves have their columns one behind the other only the last leaf's queue holds anything at a job's end."""
    mixed, apart = (each([job(merged=100, length=100, queued=queued)]) for queued in (None, 0))
    assert mixed == pytest.approx(100 * (1 + (MERGE_CYCLES - 1) * 1) + FILL_LEAF_CYCLES * 5)
    assert apart - mixed == pytest.approx(3 * QUEUED_NONZEROS * FILL_NONZERO_CYCLES)


def test_many_leaves_behind_few_have_more_queues_to_fill():
    """The queues of the shorter job are too few for them; those of the longer one are enough for the next shorter one."""
    few, many, usual = (job(leaves=n, merged=12 * n, length=12 * n) for n in (2, 10, 6))
    more = QUEUED_NONZEROS * (10 - 2) * FILL_NONZERO_CYCLES + FILL_LEAF_CYCLES * (11 - 2 * 7)
    assert 2 * (each([few, many]) - each([usual])) == pytest.approx(more, abs=2)


def test_a_job_of_all_leaves_comes_while_the_one_before_merges():
    """Rows of four single nonzeros take nine cycles each on one PE of `tiny`; if each waited for a merge they would take 17."""
    assert each([job(merged=4, length=4)], radix=4) == pytest.approx(9, abs=1.5)


def test_a_job_takes_the_place_of_the_oldest_of_four():
    """Rows of one nonzero take five cycles each on one PE of `tiny`: 17 from a leaf to its merge, and three to the next job."""
    assert each([job(leaves=1, merged=1, length=1)], radix=4) == pytest.approx(5, abs=0.75)


def test_a_leaf_longer_than_the_others_is_merged_alone_at_its_end():
    even, uneven = (each([job(leaves=2, merged=900, length=450, widest=widest)]) for widest in (450, 700))
    assert uneven - even == pytest.approx((2 * 700 - 900) * (LINE_CYCLES / 8 - 1), rel=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_a_longer_queue_never_costs(seed):
    rng = np.random.default_rng(seed)
    rows = [job(merged=int(m), length=max(1, int(m) // 5)) for m in rng.integers(1, 3000, 200)]
    times = [cycles(rows, queue_lines=q) for q in (32, 64, 256, 1024)]
    assert times == sorted(times, reverse=True)


def test_fibers_of_a_long_row_are_merged_when_they_are_in_memory():
    groups = [job(SCRATCH, 16, 1600, 300)] * 3
    apart = cycles([*groups, job(OWN)])
    joined = cycles([*groups, job(SCRATCH_MERGE, 3, 900, 400, 0)])
    assert joined > apart
    assert cycles([*groups, job(MERGE_ON_THE_WAY, 3, 900, 400, 0), job(OWN)]) > apart


def test_short_jobs_wait_for_those_under_way():
    """A PE has four jobs between its leaves and its scaler, however short they are."""
    short = [job(leaves=1, merged=1, length=1, selections=1)] * 400
    alone, four = (cycles(short, pes=n, radix=64) for n in (1, 4))
    assert alone >= 400 * 26 / 4
    assert 2 * 400 <= four < alone / 2


def test_long_rows_wait_for_a_slot():
    row = [job(kind=SCRATCH, leaves=16, merged=64, length=60)] * 2
    row = [*row, job(kind=SCRATCH_MERGE, leaves=2, merged=120, length=100)]
    one, many = (cycles(row * 20, scratch_slots=n) for n in (1, 8))
    assert one > 1.5 * many
    assert cycles([job()] * 40, scratch_slots=1) == cycles([job()] * 40, scratch_slots=8)


def test_scratch_fibers_on_chip_leave_the_bus_alone_and_wait_for_lines():
    """A ring of many rows saves the bus; one with lines for a single row lets no second one begin before it has left."""

    def rows(kept):
        groups = [job(kind=SCRATCH, leaves=16, merged=640, length=600, kept=kept)] * 2
        return [*groups, job(kind=SCRATCH_MERGE, leaves=2, merged=1200, length=1000)] * 20

    spilled = cycles(rows(0), beat=4.0)
    many, few = (cycles(rows(300), beat=4.0, scratch_lines=lines) for lines in (1 << 14, 608))
    assert many < 0.8 * spilled
    assert few > 1.2 * many


def test_the_collector_moves_a_word_in_a_cycle():
    """Fibers of long rows that stay on chip and rows of C share it: groups of 200 words each, and rows of 300."""
    group = job(kind=SCRATCH, leaves=16, merged=800, length=400, kept=200)
    rows = [group, group, job(kind=SCRATCH_MERGE, leaves=2, merged=800, length=600)] * 40
    found = cycles(rows, pes=32, scratch_lines=1 << 14, queue_lines=1 << 10)
    assert 40 * (2 * 200 + 300) <= found <= 1.1 * 40 * (2 * 200 + 300)


def test_slower_memory_takes_as_much_longer():
    rows = [job(streamed=200)] * 40
    assert cycles(rows, beat=4.0) >= 4 * 39 * (200 + 50)
    assert cycles([job(merged=4000)] * 40, beat=4.0) < 1.05 * cycles([job(merged=4000)] * 40)


def test_windows_that_need_no_load_run_into_one_another():
    rows = [job()] * 64
    firsts = np.arange(8, 64, 8)
    apart = sum(cycles(rows[:8]) for _ in range(8))
    together = cycles(rows, firsts=firsts, loads=np.zeros(7, np.int64))
    assert cycles(rows) <= together < 0.85 * apart


def test_a_window_is_loaded_when_the_rows_before_the_one_in_front_are_out():
    """A long row holds up the next window but one, which loads; the next one, too, would be looked up at once."""
    short = job(merged=10, length=10)
    rows = [job(merged=5000, length=5000), *[short] * 10, *[job(merged=10, length=10, loaded=80)] * 10]
    firsts, nothing = np.array([1, 11]), np.zeros(2, np.int64)
    at_once = cycles(rows, firsts=firsts, loads=nothing)
    next_one = cycles(rows, firsts=firsts, loads=np.array([100, 0]))
    one_later = cycles(rows, firsts=firsts, loads=np.array([0, 100]))
    assert at_once <= next_one < at_once + 4 * DESIGN["latency"]
    assert one_later > next_one + 100


def test_a_window_begins_when_the_streamer_has_decided_on_the_last_leaves():
    """Rows of C that have not left hold the lines of a small region, and with them the look-ups of A and the next window."""
    row = {"merged": 20, "length": 40, "streamed": 8}
    rows = [job(**row)] * 60
    late = [*rows[:30], *[job(**row, loaded=900)] * 30]
    small, large = (
        {"region": lines, "pes": 1, "radix": 4, "firsts": np.array([30]), "loads": np.array([50])}
        for lines in (16, 512)
    )
    assert cycles(late, **small) - cycles(rows, **small) > cycles(late, **large) - cycles(rows, **large) + 50


def test_what_a_windows_rows_wait_for_counts_from_its_begin():
    rows = [job(merged=10, length=10)] * 20
    firsts, loads = np.array([10]), np.array([50])
    late = [*rows[:19], job(merged=10, length=10, loaded=900)]
    assert cycles(late, firsts=firsts, loads=loads) >= cycles(rows[:10]) - 200 + 900
