"""Scratch fibers, of which some lines stay on chip and the others go to memory, when registers, bus or memory misbehave.

Every run ends, and the one after it is as good as the first. ``docs/faults.md`` says what the hardware does not see.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from rtl.accessor.scratch_ring import MARGIN, ROWS
from sw.golden.compare import compare_bits
from sw.runtime.registers import ErrorCode, field_value
from sw.runtime.simulation.loader import CHANNELS
from tests.verif.fault_bench import CASES, FaultBench, Outcome

pytestmark = pytest.mark.slow

SLVERR, DECERR = 2, 3
RESETS = 40
CHANGES = 60  # runs in which scratch memory changes
CORRUPTIONS = 40
Words = NDArray[np.uint32]


@pytest.fixture(scope="module", params=[name for name, case in CASES.items() if case.scratch_lines])
def bench(request: pytest.FixtureRequest) -> Iterator[FaultBench]:
    with FaultBench(CASES[request.param]) as made:
        yield made


@pytest.fixture(scope="module", params=[name for name, case in CASES.items() if case.scratch_lines])
def arena(request: pytest.FixtureRequest) -> Iterator[FaultBench]:
    with FaultBench(CASES[request.param], arena=True) as made:
        yield made


def run(bench: FaultBench, **registers: int) -> Outcome:
    bench.restore()
    outcome = bench.run(bench.registers | registers)
    assert outcome.ended, f"{registers}: {outcome}"
    bench.check_contained()
    return outcome


def spilled(bench: FaultBench) -> int:
    """Beats of scratch fibers that went to memory; each came back."""
    counters = bench.driver.counters()
    assert counters["write_scratch"] == counters["read_scratch"]
    return counters["write_scratch"]


def scratch_words(bench: FaultBench) -> Words:
    return bench.image.regions["c_scratch"].data.view("<u4")


def test_lines_stay_and_go_to_memory(bench: FaultBench) -> None:
    """What the other tests here disturb: without the ring more goes to memory, and with it some does."""
    assert bench.reference is not None
    some = bench.reference["write_scratch"]
    run(bench, SCRATCH_LINES=0)
    assert 0 < some < spilled(bench)


def test_any_number_of_lines_is_right(bench: FaultBench) -> None:
    """Each number that the partition has; a line more never sends more to memory."""
    registers = bench.registers
    partial = field_value("MODES", "c_buffering", registers["MODES"])  # rows have the other lines, an even number
    beats = []
    for lines in range(0, registers["C_LINES"] + 1, 1 + partial):
        outcome = run(bench, SCRATCH_LINES=lines)
        if outcome.code == ErrorCode.BAD_PARTITION and partial:
            break  # rows need the others
        assert outcome.good, f"{lines} lines: {outcome}"
        bench.check_product()
        beats.append(spilled(bench))
    none = 1 + (MARGIN + ROWS - 1) // (1 + partial)
    assert len(set(beats[:none])) == 1, "fewer lines than the margin and one of each row are as none"
    assert len(set(beats)) > 3
    assert beats == sorted(beats, reverse=True) or partial, "partial rows have what scratch fibers do not"
    bench.good_run()


def test_a_region_that_grows_by_what_it_is_told_is_enough(bench: FaultBench) -> None:
    """Lines on chip have their place in memory, too. Each error asks for more bytes, until there are enough."""
    size, asked = 0, 0
    for _ in range(200):
        outcome = run(bench, C_SCRATCH_BYTES=size)
        if outcome.good:
            break
        assert outcome.code == ErrorCode.C_SCRATCH_OVERFLOW, outcome
        assert outcome.detail > size, outcome
        size, asked = outcome.detail, asked + 1
    assert outcome.good and asked > 1
    assert size <= bench.registers["C_SCRATCH_BYTES"]
    bench.check_product()
    line = bench.design.line_bytes * bench.design.scratch_slots
    outcome = run(bench, C_SCRATCH_BYTES=size - line)
    assert (outcome.code, outcome.detail) == (ErrorCode.C_SCRATCH_OVERFLOW, size), "a line of each slot less is not"
    bench.good_run()


@pytest.mark.parametrize("write", [False, True], ids=["read", "write"])
def test_an_error_on_any_line_of_scratch_memory(bench: FaultBench, write: bool) -> None:
    """While other lines of the same rows are on chip. Lines that no run writes are not asked for either."""
    line = bench.design.line_bytes
    begin, size = bench.registers["C_SCRATCH"], bench.registers["C_SCRATCH_BYTES"]
    struck = 0
    for n, address in enumerate(range(begin, begin + size, line)):
        bench.restore()
        bench.simulation.inject(address, write=write, response=(SLVERR, DECERR)[n % 2])
        outcome = bench.run()
        assert outcome.ended, f"{address:#x}: {outcome}"
        assert bench.simulation.quiet
        bench.check_contained()
        if outcome.good:
            bench.check_product()
            continue
        struck += 1
        assert outcome.code == (ErrorCode.AXI_WRITE if write else ErrorCode.AXI_READ), outcome
        # The burst that holds the line begins at most as many lines before as a burst has.
        assert 0 <= address - outcome.detail < line * bench.design.axi.burst_beats, outcome
        if n % 3 == 0:  # a start is a reset by itself
            bench.soft_reset()
        bench.good_run()
    assert 8 < struck < size // line


@pytest.mark.parametrize("pin", [False, True], ids=["soft", "pin"])
def test_a_reset_all_over_the_run(bench: FaultBench, pin: bool) -> None:
    """Lines, places and rows in the ring are forgotten, whatever is in it."""
    assert bench.reference is not None
    cycles = bench.reference["cycles"]
    for when in range(cycles // RESETS, cycles, cycles // RESETS):
        bench.restore()
        bench.start()
        bench.simulation.run(when)
        if pin:
            bench.simulation.reset()
        else:
            bench.soft_reset()
        assert bench.simulation.quiet
        bench.check_contained()
        bench.good_run()


@pytest.mark.parametrize("channels", [*((name,) for name in CHANNELS), CHANNELS], ids="".join)
def test_a_memory_that_stalls_while_lines_are_on_chip(bench: FaultBench, channels: tuple[str, ...]) -> None:
    """Short stalls one after another, so that each meets another row: the same product, the same beats."""
    assert bench.reference is not None
    rng = random.Random("".join(channels))
    bench.restore()
    for _ in range(30):
        bench.simulation.freeze(rng.randrange(6 * bench.reference["cycles"]), rng.choice((20, 150, 400)), channels)
    outcome = bench.run()
    assert outcome.good and outcome.cycles > bench.reference["cycles"], outcome
    bench.check_product()
    assert spilled(bench) == bench.reference["write_scratch"]
    bench.good_run()


# What becomes of a coordinate in scratch memory, where columns end at `extent`.
CHANGED: dict[str, Callable[[int, int], int]] = {
    "the extent": lambda old, extent: extent,
    "far outside": lambda old, extent: 1 << 20,
    "the largest": lambda old, extent: (1 << 32) - 1,
    "0": lambda old, extent: 0,
    "the last one": lambda old, extent: extent - 1,
    "one more": lambda old, extent: old + 1,
}


@pytest.mark.parametrize("what", CHANGED)
def test_columns_that_change_in_scratch_memory(bench: FaultBench, what: str) -> None:
    """An error of the column, or another product; never a run that does not end, or a write where none may be."""
    assert bench.reference is not None
    rng = random.Random(what)
    extent = bench.b.columns
    ends: Counter[ErrorCode] = Counter()
    for _ in range(CHANGES):
        bench.restore()
        bench.start()
        bench.simulation.run(rng.randrange(bench.reference["cycles"]))
        columns = scratch_words(bench)[::2]
        written = np.flatnonzero(columns < extent)  # not what the region had before the run
        for at in rng.sample(list(written), min(3, len(written))):
            columns[at] = CHANGED[what](int(columns[at]), extent)
        outcome = bench.finish()
        assert outcome.ended, outcome
        # A column that changes may be one that others of its row had, or that none has any more: C is longer then.
        assert outcome.code in (ErrorCode.NONE, ErrorCode.BAD_ROW, ErrorCode.C_ELEMENTS_OVERFLOW), outcome
        bench.check_contained()
        ends[outcome.code] += 1
        bench.soft_reset()
    assert ends[ErrorCode.NONE] > 0, "most lines have been read by then"
    if CHANGED[what](0, extent) >= extent:
        assert ends[ErrorCode.BAD_ROW] > 0
    bench.good_run()


def test_values_that_change_in_scratch_memory_are_not_seen(bench: FaultBench) -> None:
    """As in any memory: the comparison finds them."""
    assert bench.reference is not None
    rng = random.Random("values")
    wrong = 0
    for _ in range(CHANGES):
        bench.restore()
        bench.start()
        bench.simulation.run(rng.randrange(bench.reference["cycles"]))
        scratch_words(bench)[1::2] ^= 1
        outcome = bench.finish()
        assert outcome.good, outcome
        bench.check_contained()
        wrong += not compare_bits(bench.golden, bench.image.c(bench.driver.read("C_NNZ"))).correct
    assert 0 < wrong
    bench.good_run()


def test_corrupted_registers_of_scratch_fibers(arena: FaultBench) -> None:
    """Any of those that say where scratch fibers lie: the run ends, in its window, and the next one is good."""
    names = ("SCRATCH_LINES", "C_SCRATCH", "C_SCRATCH_BYTES", "C_BASE", "C_LINES")
    ends: Counter[ErrorCode] = Counter()
    for n in range(CORRUPTIONS):
        rng = random.Random(n)
        changes = {}
        for name in rng.sample(names, rng.choice((1, 2, 3))):
            old = arena.registers[name]
            choices = (
                0,
                1,
                9,
                old ^ 1 << rng.randrange(12),
                old + rng.choice((-16, -2, -1, 1, 2, 16)),
                rng.getrandbits(9),
            )
            value = max(0, rng.choice(choices))
            changes[name] = value & ~15 if name == "C_SCRATCH" else value
        arena.restore()
        outcome = arena.run(arena.registers | changes)
        assert outcome.ended, f"corruption {n}, {changes}: {outcome}"
        arena.check_contained()
        if outcome.good and "C_SCRATCH" not in changes:
            arena.check_product()
        ends[outcome.code] += 1
        arena.soft_reset()
        arena.good_run()
    assert ends[ErrorCode.NONE] > 0 and len(ends) > 2, ends
