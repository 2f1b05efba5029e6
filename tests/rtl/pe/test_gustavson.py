"""The Gustavson PE against its golden model, bit for bit, in every kind of surroundings."""

import random
import subprocess

import pytest
from amaranth.back import verilog

from gen.verilator import environment, verilator
from rtl.leaf_lines import long_leaf_lines
from rtl.pe.gustavson import GustavsonPe
from tests.rtl.pe.bench import AFTER, Conditions, PeBench
from tests.rtl.pe.jobs import changing_sources, empty_job, mixed_jobs, random_job, segment
from tests.tools import some_of

COMMON = {"line_address_width": 14, "address_width": 40}
DESIGNS = {
    "r2": {"radix": 2, "lanes": 2, "value": "int32", "leaf_lines": 1, "queue_lines": 1, "jobs": 2},
    "r2_wide": {"radix": 2, "lanes": 8, "value": "fp32", "leaf_lines": 2, "queue_lines": 2},
    "r4": {"radix": 4, "lanes": 2, "value": "fp32", "leaf_lines": 4, "queue_lines": 4},
    "r4_wide": {"radix": 4, "lanes": 8, "value": "int32", "leaf_lines": 1, "queue_lines": 3, "sram_pending": 3},
    "r4_int8": {"radix": 4, "lanes": 2, "value": "int8_saturate", "leaf_lines": 2, "queue_lines": 4},
    "r8_bf16": {"radix": 8, "lanes": 4, "value": "bf16_flush", "leaf_lines": 2, "queue_lines": 4},
    "r16": {"radix": 16, "lanes": 2, "value": "int32", "leaf_lines": 2, "queue_lines": 4, "jobs": 8},
    "r16_wide": {"radix": 16, "lanes": 8, "value": "fp32", "leaf_lines": 2, "queue_lines": 4},
    "r64": {"radix": 64, "lanes": 2, "value": "fp32", "leaf_lines": 4, "queue_lines": 4},
    "r64_wide": {"radix": 64, "lanes": 8, "value": "int32", "leaf_lines": 2, "queue_lines": 4},
}
CONDITIONS = {
    "nothing_in_the_way": Conditions(),
    "sram_far": Conditions(sram_latency=1),
    "sram_near_and_busy": Conditions(sram_latency=5, sram_grant=0.4),
    "memory_slow": Conditions(fetch_latency=(2, 60), fetch_grant=0.3),
    "output_blocked": Conditions(fiber=0.15),
    "input_slow": Conditions(leaves=0.1),
    "all_at_once": Conditions(0.5, 0.6, 4, 0.4, (1, 40), 0.5),
}

# Lines from SRAM are on their way for longer than those from memory.
SRAM_FAR = Conditions(sram_latency=40, fetch_latency=(1, 1))


def sizes(design: str) -> dict:
    return {**COMMON, **DESIGNS[design]}


@pytest.fixture(scope="module", params=DESIGNS)
def built(request):
    bench = PeBench(GustavsonPe(**sizes(request.param)))
    yield bench
    bench.model.close()


@pytest.fixture
def bench(built):
    built.reset()
    return built


def products(jobs):
    return sum(len(one.leaf.values) for job in jobs for one in job if one.leaf.weight is not None)


def nonzeros(jobs):
    return sum(len(one.leaf.values) for job in jobs for one in job)


@pytest.mark.parametrize("conditions", CONDITIONS)
def test_every_kind_of_job(bench, conditions):
    rng = bench.rng = random.Random(f"{bench.dut.module_name} {conditions}")
    jobs = mixed_jobs(rng, bench.dut.value, bench.dut.radix, 60 if bench.dut.radix > 16 else 150, memory=0.4)
    bench.run(jobs, CONDITIONS[conditions])
    assert (bench.macs, bench.merged) == (products(jobs), nonzeros(jobs))


def test_named_jobs(bench):
    value, radix, lanes = bench.dut.value, bench.dut.radix, bench.dut.lanes
    rng = bench.rng = random.Random(3)
    jobs = [
        empty_job(rng, value),
        [segment(rng, value, [0xFFFFFFFF])],
        [segment(rng, value, [0], unit=True)],
        empty_job(rng, value),
        empty_job(rng, value),
        # Fibers that end in every lane of a word.
        *([segment(rng, value, list(range(n)), in_memory=n % 3 == 1)] for n in range(1, 2 * lanes + 2)),
        # Runs of every length.
        *([segment(rng, value, [7, 0xFFFFFFFF]) for _ in range(n)] for n in range(1, radix + 1)),
        # All leaves the same, all leaves apart, in and against leaf order.
        [segment(rng, value, list(range(9))) for _ in range(radix)],
        [segment(rng, value, [3 * n, 3 * n + 1]) for n in range(radix)],
        [segment(rng, value, [3 * n, 3 * n + 1]) for n in reversed(range(radix))],
        # Nothing but units; a partial fiber from memory before segments of B.
        [segment(rng, value, list(range(n, n + 40, n + 1)), unit=True, in_memory=True) for n in range(radix)],
        [segment(rng, value, list(range(100)), unit=n == 0, in_memory=n == 0) for n in range(radix)],
    ]
    bench.run(jobs)
    assert (bench.macs, bench.merged) == (products(jobs), nonzeros(jobs))


def test_memory_does_not_overtake_the_sram(bench):
    rng = bench.rng = random.Random(13)
    bench.run(changing_sources(rng, bench.dut.value, bench.dut.lanes), SRAM_FAR)


def test_many_jobs_back_to_back(bench):
    rng = bench.rng = random.Random(5)
    jobs = []
    for _ in range(400):
        leaves = rng.randint(1, min(4, bench.dut.radix))
        job = random_job(rng, bench.dut.value, leaves=leaves, longest=2, span=4)
        jobs.append(job if rng.random() < 0.9 else empty_job(rng, bench.dut.value))
    bench.run(jobs)


def test_reset_in_the_middle(bench):
    rng = bench.rng = random.Random(7)
    for stop in (1, 40, 97, 200, 411):
        jobs = mixed_jobs(rng, bench.dut.value, bench.dut.radix, 40, memory=0.5)
        bench.run(jobs, CONDITIONS["all_at_once"], limit=stop)
        bench.reset()
        assert not bench.model.peek("busy")
        bench.run(mixed_jobs(rng, bench.dut.value, bench.dut.radix, 15, memory=0.5), CONDITIONS["all_at_once"])
        bench.reset()


def test_an_element_a_cycle(bench):
    """A long fiber, and many leaves, flow at an element a cycle; a job costs at most its leaves and some cycles."""
    value, radix, lanes = bench.dut.value, bench.dut.radix, bench.dut.lanes
    rng = bench.rng = random.Random(11)
    bench.run([empty_job(rng, value)])
    # One leaf alone needs line slots for the way to the SRAM and back.
    if (bench.dut.leaf_lines - 1) * lanes >= 8 and bench.dut.queue_lines > 1:
        cycles = bench.run([[segment(rng, value, list(range(600)))]], Conditions(sram_latency=3))
        assert cycles <= 600 + 2 * radix + bench.dut.latency + 30
    if bench.dut.leaf_lines > 1 and bench.dut.queue_lines > 1:
        jobs = [random_job(rng, value, leaves=radix, longest=16, span=100) for _ in range(12)]
        elements = sum(len(one.leaf.values) for job in jobs for one in job)
        cycles = bench.run(jobs)
        assert cycles <= elements + len(jobs) * (2 * radix + 20) + bench.dut.latency
        assert cycles <= 1.6 * elements + bench.dut.latency + 2 * radix


def test_few_long_leaves_hide_the_latency_of_memory(bench):
    """A job's first leaves have slots for it: two fibers of scratch memory come nearly as fast as they are merged."""
    value = bench.dut.value
    rng = bench.rng = random.Random(17)
    bench.run([empty_job(rng, value)])
    jobs = [[segment(rng, value, list(range(n, 800, 2)), in_memory=True) for n in range(2)]]
    cycles = bench.run(jobs, Conditions(fetch_latency=(60, 60)))
    # All slots of both leaves in each round trip, where that is less than an element a cycle. The bench answers a line in one
    # to two cycles, so that a burst of either leaf adds to the latency of the other.
    round_trips = 800 / (2 * long_leaf_lines(bench.dut.leaf_lines) * bench.dut.lanes)
    assert cycles <= max(1.25 * 800, 110 * round_trips) + 2 * bench.dut.radix + bench.dut.latency + 150


def test_cycles_count_from_a_leaf_in_the_first_cycle(bench):
    """The PE is ready at once: all cycles of the run count but those behind the last word."""
    value = bench.dut.value
    rng = bench.rng = random.Random(19)
    bench.run([empty_job(rng, value)])
    before = bench.model.cycles
    cycles = bench.run([[segment(rng, value, [3, 5]) for _ in range(2)]])
    assert cycles == bench.model.cycles - before - AFTER


def test_work_does_not_depend_on_coordinates(bench):
    value, radix = bench.dut.value, bench.dut.radix
    cycles = []
    for stretch in (1, 0x1000001):
        bench.reset()
        rng = bench.rng = random.Random(13)
        bench.run([empty_job(rng, value)])
        jobs = [[segment(rng, value, [stretch * (n + 3 * i) for i in range(40)]) for n in range(min(radix, 5))]]
        cycles.append(bench.run(jobs))
    assert cycles[0] == cycles[1]


def test_waits_are_told(bench):
    rng = bench.rng = random.Random(17)
    job = [segment(rng, bench.dut.value, list(range(64)), in_memory=True)]
    bench.run([job], Conditions(fetch_latency=(50, 50)))
    assert bench.stalls >= 40
    assert bench.fetched_lines >= 64 // bench.dut.lanes


@pytest.mark.slow
@pytest.mark.parametrize("design", some_of(["r4", "r16_wide"], every=2))
def test_long_random_run(design):
    bench = PeBench(GustavsonPe(**sizes(design)))
    rng = bench.rng
    total = 0
    for _ in range(60):
        now = Conditions(
            leaves=rng.choice((1, 0.5, 0.1)),
            sram_grant=rng.choice((1, 0.5, 0.2)),
            sram_latency=rng.randint(1, 6),
            fetch_grant=rng.choice((1, 0.3)),
            fetch_latency=rng.choice(((1, 1), (5, 5), (1, 80))),
            fiber=rng.choice((1, 0.8, 0.3)),
        )
        jobs = mixed_jobs(rng, bench.dut.value, bench.dut.radix, 120, memory=rng.choice((0, 0.2, 1)))
        total += bench.run(jobs, now)
    assert total > 50_000
    bench.model.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"radix": 3}, r"^Merge radix must be a power of two from 2 to 256, not 3$"),
        ({"radix": 512}, r"^Merge radix must be a power of two from 2 to 256, not 512$"),
        ({"lanes": 1}, r"^Lanes must be a power of two from 2 to 64, not 1$"),
        ({"leaf_lines": 0}, r"^Lines of a leaf must be a power of two from 1 to 64, not 0$"),
        ({"value": "fp16"}, r"^Value type must be one of int8, int8_saturate, .*, not 'fp16'$"),
        ({"line_address_width": 0}, r"^Line address width must be a positive integer, not 0$"),
        ({"address_width": 8}, r"^Address width must be from 16 to 64, not 8$"),
        ({"jobs": 1}, r"^Jobs under way must be a power of two from 2 to 16, not 1$"),
    ],
)
def test_refuses_impossible_parameters(change, message):
    with pytest.raises(ValueError, match=message):
        GustavsonPe(**{**sizes("r4"), **change})


@pytest.mark.parametrize("design", ["r2", "r4", "r64_wide"])
def test_verilog_elaborates(design, tmp_path):
    tool = verilator()
    source = tmp_path / "pe.v"
    source.write_text(verilog.convert(GustavsonPe(**sizes(design)), name="pe", emit_src=False))
    # What Amaranth's manner of writing Verilog brings about; anything else is ours.
    waived = ("DECLFILENAME", "PROCASSINIT", "UNUSEDSIGNAL", "WIDTHEXPAND", "WIDTHTRUNC")
    command = [tool, "--lint-only", "-Wall", *(f"-Wno-{name}" for name in waived), "--top-module", "pe", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(tool))
    assert done.returncode == 0, done.stdout + done.stderr
