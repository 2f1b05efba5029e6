"""Look-ups and the streamer: what they ask for while the dispatcher waits, and what they wait for themselves."""

import numpy as np
import pytest

from sw.timing.bus import idle_bus
from sw.timing.constants import ANSWER_CYCLES, PENDING_LEAVES, PLACED_CYCLES, PLACING_CYCLES
from sw.timing.job import JOB_FIELDS, OWN, SCRATCH, SCRATCH_MERGE
from sw.timing.pace import Pace
from sw.timing.streamer import (
    LEAF_LINES,
    LEAF_READY,
    LEAVES_STREAMED,
    Streamer,
    begin_tile,
    decided,
    free_row,
    look_up,
    stream,
    streamer,
    take_leaves,
)

LATENCY, REGION = 25, 64


def pace(**changes) -> Pace:
    sizes = {
        "pes": 2,
        "radix": 4,
        "lanes": 2,
        "leaf_lines": 4,
        "queue_lines": 256,
        "short_lines": 8,
        "slot_factors": np.ones(4, np.int64),
        "scratch_slots": 8,
        "latency": LATENCY,
        "beat": 1.0,
        "fill": 60,
        "burst": 16,
        "outstanding": 16,
        "region": REGION,
    }
    return Pace(**(sizes | changes))


def jobs(*given: dict) -> np.ndarray:
    """Jobs of four leaves of one line each that all come from memory, but for what is given."""
    usual = {"kind": OWN, "leaves": 4, "selections": 4, "fetched": 4, "streamed": 4}
    return np.array([[(usual | one).get(field, 0) for field in JOB_FIELDS] for one in given], np.int64)


class Machine:
    """Look-ups and streamer of some jobs in one tile."""

    def __init__(self, *given: dict, **changes):
        self.jobs, self.pace, self.bus = jobs(*given), pace(**changes), idle_bus()
        self.front: Streamer = streamer(self.jobs, len(self.jobs), self.pace)
        self.from_memory = np.zeros(4, np.int64)

    def until(self, time: float) -> int:
        """Leaves that have been streamed by then."""
        stream(self.bus, self.front, self.jobs, time, self.pace)
        return int(self.front.state[LEAVES_STREAMED])

    def take(self, job: int, opened: float = 0.0, left: float = 0.0) -> tuple[float, int, int, int, float]:
        look_up(self.bus, self.front, self.jobs, job, self.pace)
        return take_leaves(self.bus, self.front, self.jobs, job, opened, (self.from_memory, left), self.pace)


def test_leaves_are_streamed_as_they_are_looked_up():
    """A nonzero of A in a cycle, and its leaf behind it; nobody waits for the dispatcher."""
    machine = Machine({}, {}, {})
    assert [machine.until(time) for time in (0, 1, 3, 4, 9, 100)] == [0, 1, 3, 4, 9, 12]


def test_a_row_without_a_nonzero_is_looked_at():
    machine = Machine(
        {"leaves": 0, "selections": 0, "fetched": 0, "streamed": 0}, {"kind": SCRATCH_MERGE, "selections": 0}
    )
    looked_up = [look_up(machine.bus, machine.front, machine.jobs, job, machine.pace) for job in range(2)]
    assert looked_up == [1, 1]


def test_a_leaf_is_ready_a_latency_behind_its_decision():
    machine = Machine({"streamed": 8})
    machine.until(1)
    assert machine.front.leaves[LEAF_READY, 0] == 1 + LATENCY + ANSWER_CYCLES + 2 + PLACED_CYCLES
    assert machine.front.leaves[LEAF_LINES, 0] == 0


def test_partial_rows_are_asked_for_while_the_first_nonzeros_of_a_come():
    """One in a cycle from a latency before the first nonzero of A on, whenever A's nonzeros are looked up."""
    machine = Machine({"streamed": 8}, {"streamed": 8}, partial_rows=True, outstanding=4 * LATENCY)
    assert machine.until(0) == 8
    assert machine.front.leaves[LEAF_READY, 0] == 1 + ANSWER_CYCLES + 2 + PLACED_CYCLES


def test_no_more_leaves_than_the_streamer_holds():
    """Of leaves that the dispatcher has not taken; as it takes some, as many follow."""
    machine = Machine(*[{}] * 40, region=4096, outstanding=256)
    assert machine.until(1000) == PENDING_LEAVES
    machine.take(0)
    assert machine.until(PENDING_LEAVES + 1) == PENDING_LEAVES + 1
    assert machine.until(5000) == PENDING_LEAVES + 4


def test_bursts_under_way_are_limited():
    """The third burst is asked for when the first has come."""
    first = 1 + LATENCY + ANSWER_CYCLES + 1
    machine = Machine({}, outstanding=2)
    assert [machine.until(time) for time in (first - 1, first, first + 1)] == [2, 3, 4]


def test_lines_of_a_row_are_free_when_it_has_left():
    """Rows of a quarter of the region: the fifth waits for the first one while the dispatcher has leaves to go on with."""
    machine = Machine(*[{"streamed": REGION // 4}] * 6)
    assert machine.until(500) == 16
    for job in range(3):
        machine.take(job)
    assert machine.until(500) == 16
    free_row(machine.front, 0, 600)
    assert machine.until(600 + PLACING_CYCLES - 1) == 16
    assert machine.until(600 + PLACING_CYCLES) == 17
    assert machine.until(600 + PLACING_CYCLES + 3) == 20


def test_no_row_is_waited_for_where_the_dispatcher_has_taken_all_leaves():
    """The fifth row finds no lines: its PE reads them. It is decided behind the last leaf that was taken."""
    machine = Machine(*[{"streamed": REGION // 4}] * 6)
    assert machine.until(500) == 16
    taken = max(machine.take(job)[0] for job in range(4))
    assert machine.until(500) == 20
    assert machine.front.leaves[LEAF_READY, 16] == taken + 1 + PLACING_CYCLES
    assert machine.front.leaves[LEAF_LINES, 16] == REGION // 16


def test_when_the_last_leaf_of_a_job_is_decided_on():
    """A leaf in a cycle; the fifth job's wait for the first row's lines."""
    machine = Machine(*[{"streamed": REGION // 4}] * 6)
    machine.until(500)
    machine.take(2)
    free_row(machine.front, 0, 600)
    machine.until(700)
    assert [decided(machine.front, job) for job in (0, 3, 4)] == [4, 16, 600 + PLACING_CYCLES + 3]


def test_groups_of_a_long_row_share_their_lines():
    """They are free when the row has left, behind its last job."""
    group = {"kind": SCRATCH, "streamed": REGION // 2}
    machine = Machine(group, group, {"kind": SCRATCH_MERGE, "fetched": 0, "streamed": 0}, {})
    assert machine.until(500) == 8
    for job in range(2):
        assert machine.take(job)[1] == 0
    free_row(machine.front, 2, 600)
    assert machine.until(700) == 12


def test_a_row_longer_than_the_region_is_read_by_its_pe():
    """Three leaves find lines, and the PE asks for the first ones of the fourth, half of the slots of a leaf."""
    machine = Machine({"streamed": 4 * 20})
    taken, direct, asked, last_asked, _ = machine.take(0)
    assert (direct, asked, last_asked) == (20, 2, 2)
    assert taken == pytest.approx(1 + LATENCY + ANSWER_CYCLES + 60 + PLACED_CYCLES + 1)


def test_lines_of_the_sram_leave_a_line_store_before_it_asks_memory():
    """The fourth leaf finds no lines in the region. Its store waits where the job before left lines of the SRAM."""
    machine = Machine({"streamed": 4 * 20}, {"streamed": 4 * 70})
    assert machine.take(0, left=300.0)[4] == 300.0
    assert machine.from_memory.tolist() == [0, 0, 0, 1]
    machine.from_memory[:] = 1
    assert machine.take(1, left=400.0)[4] == 0.0
    assert machine.from_memory.all()


def test_leaves_wait_for_their_pe_behind_the_first():
    machine = Machine({})
    assert machine.take(0, opened=400)[0] == 402


def test_a_tile_is_looked_up_when_it_has_begun():
    """Leaves of the next tile are not streamed before, and its rows of B come as much later as its load is slower."""
    machine = Machine({}, {"loaded": 30})
    begin_tile(machine.front, 0, 1, 0.0, 1.0)
    assert machine.until(1000) == 4
    begin_tile(machine.front, 1, 2, 1000.0, 1.5)
    assert look_up(machine.bus, machine.front, machine.jobs, 1, machine.pace) == 1000 + 1.5 * 30
    assert machine.until(1011) == 4
    assert machine.until(1100) == 8
