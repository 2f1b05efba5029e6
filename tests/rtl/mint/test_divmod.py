# amaranth: UnusedElaboratable=no
"""Divide and mod: both forms, every pair of 8 bits, hard pairs at full width, pauses, divisors one after the other."""

import random

import pytest
from amaranth.sim import Simulator

from rtl.mint.divmod import ReciprocalDivmod, RestoringDivmod
from sw.golden.mint_bits import divided
from tests.rtl.mint.streams import PAUSES, run

FORMS = {
    "restoring": RestoringDivmod,
    "restoring_two_bits": lambda **sizes: RestoringDivmod(bits_per_stage=2, **sizes),
    "reciprocal": ReciprocalDivmod,
}


def divide_all(dut, work, *, limit=100_000):
    """``work``: divisors, each with its vectors. Returns the results of each."""
    found = []

    async def bench(ctx):
        cycle = 0

        async def tick():
            nonlocal cycle
            ctx.set(dut.results.ready, 1)
            if ctx.get(dut.results.valid) and ctx.get(dut.results.ready):
                payload = ctx.get(dut.results.payload)
                quotients, remainders = payload["quotients"], payload["remainders"]
                found[-1].append([(quotients[n], remainders[n]) for n in range(dut.lanes)])
            cycle += 1
            assert cycle < limit, "stuck"
            await ctx.tick()

        for divisor, vectors in work:
            ctx.set(dut.divisor.payload, divisor)
            ctx.set(dut.divisor.valid, 1)
            while not ctx.get(dut.divisor.ready):
                await tick()
            found.append([])
            await tick()
            ctx.set(dut.divisor.valid, 0)
            for vector in vectors:
                ctx.set(dut.dividends.payload, vector)
                ctx.set(dut.dividends.valid, 1)
                while not ctx.get(dut.dividends.ready):
                    await tick()
                await tick()
            ctx.set(dut.dividends.valid, 0)
            while len(found[-1]) < len(vectors):
                await tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return found


def check(dut, work):
    found = divide_all(dut, work)
    for (divisor, vectors), results in zip(work, found, strict=True):
        for vector, result in zip(vectors, results, strict=True):
            assert result == [divided(dividend, divisor) for dividend in vector], (divisor, vector)


@pytest.mark.parametrize("form", FORMS)
def test_every_pair_of_8_bits(form):
    dut = FORMS[form](lanes=32, width=8, divisor_width=8)
    vectors = [list(range(n, n + 32)) for n in range(0, 256, 32)]
    check(dut, [(divisor, vectors) for divisor in range(1, 256)])


def hard(rng, width, divisor):
    """Dividends beside multiples of the divisor, at both ends, and any."""
    most = (1 << width) - 1
    multiple = divisor * rng.randint(0, most // divisor)
    near = [multiple, multiple - 1, multiple + 1, most // divisor * divisor, most // divisor * divisor - 1]
    return [min(max(n, 0), most) for n in (*near, 0, 1, most, most - 1, divisor - 1, divisor, rng.getrandbits(width))]


@pytest.mark.parametrize(
    ("width", "divisor_width"), [(64, 33), (64, 64), (33, 1), (37, 18), (36, 36), (2, 2), (19, 19)]
)
@pytest.mark.parametrize("form", FORMS)
def test_hard_pairs(form, width, divisor_width):
    dut = FORMS[form](lanes=2, width=width, divisor_width=divisor_width)
    rng = random.Random(f"{form} {width}")
    top = (1 << divisor_width) - 1
    divisors = {1, 2, 3, top, top - 1, (top >> 1) + 1, top >> 1, *(rng.randint(1, top) for _ in range(4))}
    work = []
    for divisor in sorted(min(max(d, 1), top) for d in divisors):
        dividends = [n for _ in range(2) for n in hard(rng, width, divisor)]
        work.append((divisor, [dividends[n : n + 2] for n in range(0, len(dividends), 2)]))
    check(dut, work)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("idle", "stall"), [("often", "never"), ("never", "often"), ("seldom", "seldom")])
def test_any_behaviour_of_the_neighbours(form, idle, stall):
    dut = FORMS[form](lanes=3, width=16, divisor_width=9)
    rng = random.Random(f"{form} {idle} {stall}")
    vectors = [[rng.getrandbits(16) for _ in range(3)] for _ in range(60)]
    result = run(
        dut,
        {"divisor": [321], "dividends": vectors},
        {"results": len(vectors)},
        pause={"dividends": PAUSES[idle], "results": PAUSES[stall]},
        view=lambda port, item: [(item["quotients"][n], item["remainders"][n]) for n in range(3)],
    )
    assert result.items["results"] == [[divided(n, 321) for n in vector] for vector in vectors]


@pytest.mark.parametrize("form", FORMS)
def test_a_vector_a_cycle(form):
    dut = FORMS[form](lanes=1, width=20, divisor_width=20)
    result = run(dut, {"divisor": [77], "dividends": [[n * 12345] for n in range(50)]}, {"results": 50})
    first = result.cycles["divisor"][0] + dut.load_latency
    assert result.cycles["dividends"] == list(range(first, first + 50))
    assert result.cycles["results"] == [cycle + dut.latency for cycle in result.cycles["dividends"]]


@pytest.mark.parametrize("form", FORMS)
def test_a_divisor_waits_for_the_vectors_inside(form):
    """Vectors that were taken before a divisor are divided by the one before it, those after it by the new one."""
    dut = FORMS[form](lanes=1, width=12, divisor_width=12)
    rng = random.Random(form)
    vectors = [[rng.getrandbits(12)] for _ in range(80)]
    result = run(
        dut,
        {"divisor": [7, 4095, 1, 100], "dividends": vectors},
        {"results": 80},
        pause={"divisor": lambda rng: rng.random() < 0.98, "results": PAUSES["seldom"]},
        view=lambda port, item: (item["quotients"][0], item["remainders"][0]),
    )
    divisors, loads = [7, 4095, 1, 100], result.cycles["divisor"]
    assert len(loads) == 4
    for (dividend,), cycle, found in zip(vectors, result.cycles["dividends"], result.items["results"], strict=True):
        divisor = divisors[sum(load < cycle for load in loads) - 1]
        assert found == divided(dividend, divisor)
    by = [sum(load < cycle for load in loads) for cycle in result.cycles["dividends"]]
    assert len(set(by)) > 1, "vectors met one divisor only"


@pytest.mark.parametrize("form", FORMS)
def test_divisor_zero_is_an_error(form):
    dut = FORMS[form](lanes=1, width=8, divisor_width=8)

    async def load(ctx, divisor):
        ctx.set(dut.divisor.payload, divisor)
        ctx.set(dut.divisor.valid, 1)
        await ctx.tick().until(dut.divisor.ready)
        ctx.set(dut.divisor.valid, 0)

    async def bench(ctx):
        ctx.set(dut.dividends.valid, 1)
        ctx.set(dut.results.ready, 1)
        ctx.set(dut.dividends.payload, [99])
        assert not ctx.get(dut.dividends.ready) and not ctx.get(dut.error)
        for divisor in (0, 5, 0, 0, 9):
            await load(ctx, divisor)
            assert ctx.get(dut.error) == (divisor == 0)
            waited = 0
            while waited < 40 and not ctx.get(dut.dividends.ready):
                waited += 1
                await ctx.tick()
            assert waited == (40 if divisor == 0 else dut.load_latency - 1)

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("after", [5, 16, 30])
def test_reset_in_the_middle(form, after):
    dut = FORMS[form](lanes=1, width=12, divisor_width=7)
    vectors = [[n * 37] for n in range(40)]
    result = run(
        dut,
        {"divisor": [19], "dividends": vectors},
        {"results": 40},
        reset_after=after,
        view=lambda port, item: (item["quotients"][0], item["remainders"][0]),
    )
    assert result.items["results"] == [divided(vector[0], 19) for vector in vectors]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lanes": 0}, "Lanes must be from 1 to 64, not 0"),
        ({"width": 65}, "Dividend width must be from 2 to 64 bits, not 65"),
        ({"width": 1}, "Dividend width must be from 2 to 64 bits, not 1"),
        ({"width": 32, "divisor_width": 33}, "Divisor width must be from 1 to 32 bits, not 33"),
        ({"divisor_width": 0}, "Divisor width must be from 1 to 64 bits, not 0"),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_refuses_impossible_parameters(form, parameters, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        FORMS[form](**parameters)


def test_refuses_other_numbers_of_bits():
    with pytest.raises(ValueError, match="^Bits of a stage must be 1 or 2, not 3$"):
        RestoringDivmod(bits_per_stage=3)
    with pytest.raises(TypeError, match="^Lanes must be an integer, not '8'$"):
        ReciprocalDivmod(lanes="8")
