"""The combiner cascade alone, in Amaranth's simulator: the shape of every sum, ends of jobs, gaps, stalls."""

import random

import numpy as np
import pytest
from amaranth.sim import Simulator

from rtl.pe.combiner import CombinerCascade
from rtl.pe.packer import FiberPacker
from sw.golden.arithmetic import in_slots
from sw.golden.pe import reduce_run


def run_cascade(radix, value, jobs, *, gap=0.0, stall=0.0, seed=0):
    """Jobs are lists of (coordinate, value); an empty one is void. Returns the jobs that come out."""
    rng = random.Random(seed)
    dut = CombinerCascade(radix=radix, value=value)
    sequence = []
    for job in jobs:
        sequence += [(c, v, n == len(job) - 1, False) for n, (c, v) in enumerate(job)] or [(0, 0, True, True)]
    out, current = [], []

    async def bench(ctx):
        nonlocal current
        waiting = list(reversed(sequence))
        cycles = 0
        while len(out) < len(jobs):
            cycles += 1
            assert cycles < 1000 + 20 * len(sequence), "the cascade is stuck"
            advance = rng.random() >= stall
            offer = waiting and rng.random() >= gap
            nonzero = {
                "valid": 0,
                "coordinate": rng.getrandbits(32),
                "value": rng.getrandbits(32),
                "last": 1,
                "void": 0,
            }
            if offer:
                coordinate, number, last, void = waiting[-1]
                nonzero = {"valid": 1, "coordinate": coordinate, "value": number, "last": last, "void": void}
            ctx.set(dut.i, nonzero)
            ctx.set(dut.advance, advance)
            if advance:
                if offer:
                    waiting.pop()
                got = ctx.get(dut.o)
                if got.valid:
                    if not got.void:
                        current.append((got.coordinate, got.value))
                    if got.last:
                        out.append(current)
                        current = []
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return out


def reduced(job, radix, value):
    runs = {}
    for coordinate, number in job:
        runs.setdefault(coordinate, []).append(np.uint32(number))
    return [(coordinate, int(reduce_run(run, radix, value))) for coordinate, run in runs.items()]


def words(rng, value, count):
    if value.startswith("int"):
        return [rng.getrandbits(32) for _ in range(count)]
    return [int(np.float32(rng.uniform(-1, 1)).view(np.uint32)) for _ in range(count)]


@pytest.mark.parametrize(
    ("radix", "value"), [(2, "int32"), (8, "int32"), (8, "fp32"), (4, "int8_saturate"), (4, "bf16")]
)
@pytest.mark.parametrize(("gap", "stall"), [(0.0, 0.0), (0.6, 0.0), (0.0, 0.5), (0.4, 0.4)])
def test_sums_have_the_defined_shape(radix, value, gap, stall):
    rng = random.Random(radix)
    jobs = [[], []]
    for length in range(1, radix + 1):
        jobs.append([(7, number) for number in words(rng, value, length)])
    for _ in range(12):
        job = []
        for coordinate in sorted(rng.sample(range(50), rng.randint(0, 5))):
            job += [(coordinate, number) for number in words(rng, value, rng.randint(1, radix))]
        jobs.append(job)
    got = run_cascade(radix, value, jobs, gap=gap, stall=stall)
    # What lies in bits that the type does not use neither counts nor comes out, where nothing is added too.
    jobs = [[(coordinate, in_slots(np.array(number, np.uint32), value)) for coordinate, number in job] for job in jobs]
    assert got == [reduced(job, radix, value) for job in jobs]


def test_equal_coordinates_of_two_jobs_are_not_added():
    assert run_cascade(4, "int32", [[(3, 1)], [(3, 2)], [(3, 4), (3, 8)], [(3, 16)]]) == [
        [(3, 1)],
        [(3, 2)],
        [(3, 12)],
        [(3, 16)],
    ]


def test_refuses_impossible_parameters():
    with pytest.raises(ValueError, match=r"^Merge radix must be a power of two from 2 to 256, not 7$"):
        CombinerCascade(radix=7, value="int32")
    with pytest.raises(ValueError, match=r"^Output queue must hold a positive number of lines, not 0$"):
        FiberPacker(lanes=2, queue_lines=0)
