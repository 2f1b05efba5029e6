"""The bus packer turns A in Dense, CSR or COO into the cycles that the golden model says."""

import random

import pytest

from rtl.pe.bus_packer import BusPacker
from rtl.pe.flagged_bus import Acf
from sw.golden.weight_stationary import bus_cycles
from tests.rtl.port_bench import PortBench

Data = list[tuple[int, int, int]]
SIZES = {
    "figure 6": {"words": 5, "vector": 4, "lanes": 2},
    "least": {"words": 3, "vector": 1, "lanes": 1},
    "wide": {"words": 16, "vector": 8, "lanes": 8},
    "odd": {"words": 9, "vector": 8, "lanes": 3},
}


def portions(data: Data, lanes: int, rng: random.Random, *, full: bool = False) -> list[dict]:
    """A in portions of any size, perhaps of none; the last one ends it, with data or without."""
    vectors = []
    at = 0
    while at < len(data) or not vectors or not vectors[-1]["last"]:
        part = data[at : at + (lanes if full else rng.randint(0, lanes))]
        at += len(part)
        items = [{"row": row, "column": column, "value": value} for row, column, value in part]
        noise = [{name: rng.getrandbits(32) for name in ("row", "column", "value")} for _ in range(lanes - len(part))]
        ends = at == len(data) and (full or rng.random() < 0.5)
        vectors.append({"last": int(ends), "count": len(part), "items": items + noise})
    return vectors


def sent(cycles: list[dict]) -> list[list[tuple[bool, int]]]:
    """Words that are there; they come before those that are not."""
    seen = []
    for cycle in cycles:
        present = [bool(word["present"]) for word in cycle["words"]]
        assert present == sorted(present, reverse=True)
        seen.append([(bool(word["metadata"]), word["payload"]) for word in cycle["words"] if word["present"]])
    return seen


def wanted(data: Data, dut: BusPacker, acf: Acf) -> list[list[tuple[bool, int]]]:
    rows, columns, values = zip(*data, strict=True) if data else ((), (), ())
    cycles = bus_cycles(rows, columns, values, acf=acf.name.lower(), words=dut.words, vector=dut.vector)
    return [list(cycle.words) for cycle in cycles]


def drawn(rng: random.Random, acf: Acf) -> Data:
    """Rows without data, of one and of many; adjacent rows whose columns go on; the largest coordinates."""
    rows, width = rng.randint(0, 6), rng.randint(1, 20)
    first, origin = rng.choice([0, 2**32 - 8]), rng.choice([0, 2**32 - 24])
    density = rng.choice([0.1, 0.5, 1.0])
    found = [(row, k) for row in range(rows) for k in range(width) if acf is Acf.DENSE or rng.random() < density]
    return [(first + row, origin + k, rng.getrandbits(32)) for row, k in found]


def run(dut: BusPacker, acf: Acf, matrices: list[Data], *, seed: int, chance: float = 0.6, full: bool = False) -> int:
    bench = PortBench(dut, seed=seed, chance=chance)
    rng = random.Random(seed)
    bench.feed(dut.i, [vector for data in matrices for vector in portions(data, dut.lanes, rng, full=full)])
    came = bench.collect(dut.o)
    cycles = bench.run(
        lambda: sum(cycle["last"] for cycle in came) == len(matrices), each=lambda ctx: ctx.set(dut.acf, acf)
    )
    for data in matrices:
        end = next(n for n, cycle in enumerate(came) if cycle["last"]) + 1
        seen, came[:end] = sent(came[:end]), []
        assert seen[: len(seen) - (seen[-1] == [])] == wanted(data, dut, acf)
    assert came == []
    return cycles


@pytest.mark.parametrize("chance", [1.0, 0.5])
@pytest.mark.parametrize("acf", Acf)
@pytest.mark.parametrize("size", SIZES)
def test_cycles_are_golden(size: str, acf: Acf, chance: float) -> None:
    rng = random.Random(f"{size} {acf}")
    run(BusPacker(**SIZES[size]), acf, [drawn(rng, acf) for _ in range(8)], seed=3, chance=chance)


def test_figure_6() -> None:
    """A of 4 x 8: A at (0, 0), B at (0, 2), C and H in rows of their own. 8, 3 and 4 cycles (section IV.B)."""
    nonzeros = {(0, 0): 0xA, (0, 2): 0xB, (1, 3): 0xC, (3, 7): 0x11}
    dense = [(row, column, nonzeros.get((row, column), 0)) for row in range(4) for column in range(8)]
    sparse = [(*place, value) for place, value in nonzeros.items()]
    words = {}
    for acf, data in ((Acf.DENSE, dense), (Acf.CSR, sparse), (Acf.COO, sparse)):
        dut = BusPacker(words=5, vector=4, lanes=4)
        bench = PortBench(dut, seed=1, chance=1)
        bench.feed(dut.i, portions(data, 4, random.Random(1), full=True))
        came = bench.collect(dut.o)
        bench.run(
            lambda came=came: bool(came) and came[-1]["last"],
            each=lambda ctx, dut=dut, acf=acf: ctx.set(dut.acf, acf),
        )
        words[acf] = sent(came)
    assert {acf.name: len(cycles) for acf, cycles in words.items()} == {"DENSE": 8, "CSR": 3, "COO": 4}
    assert words[Acf.DENSE][0] == [(True, 0), (False, 0xA), (False, 0), (False, 0xB), (False, 0)]
    assert words[Acf.CSR] == [
        [(True, 0), (True, 0), (False, 0xA), (True, 2), (False, 0xB)],
        [(True, 1), (True, 3), (False, 0xC)],
        [(True, 3), (True, 7), (False, 0x11)],
    ]
    assert words[Acf.COO][1] == [(True, 0), (True, 2), (False, 0xB)]


@pytest.mark.parametrize(("acf", "data"), [(Acf.DENSE, 4), (Acf.CSR, 2), (Acf.COO, 1)])
def test_a_cycle_a_cycle(acf: Acf, data: int) -> None:
    """With neither side pausing every cycle has a whole one."""
    row = [(0, n, n) for n in range(40 * data)]
    cycles = run(BusPacker(words=5, vector=4, lanes=4), acf, [row], seed=1, chance=1, full=True)
    assert cycles == 40 + BusPacker.latency


def test_a_reset_drops_what_is_inside() -> None:
    dut = BusPacker(words=5, vector=4, lanes=4)
    bench = PortBench(dut, seed=5, chance=0.4)
    vectors, came = bench.feed(dut.i), bench.collect(dut.o)

    async def script(ctx):
        ctx.set(dut.acf, Acf.CSR)
        for count in range(1, 8):
            vectors.extend(portions([(7, n, n) for n in range(100)], 4, random.Random(count), full=True))
            left = len(vectors) - count
            await bench.until(ctx, lambda left=left: len(vectors) <= left)
            await bench.clear(ctx)
            vectors.extend(portions([(1, 2, 3)], 4, random.Random(1), full=True))
            await bench.until(ctx, lambda: len(came) == 1)
            assert sent(came) == [[(True, 1), (True, 2), (False, 3)]]
            came.clear()

    bench.simulate(script)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"words": 2}, r"^Bus words must be an integer from 3 to 64, not 2$"),
        ({"vector": 3}, r"^Vector must be a power of two from 1 to 32, not 3$"),
        ({"lanes": 0}, r"^Lanes must be an integer from 1 to 32, not 0$"),
    ],
)
def test_refuses_impossible_parameters(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BusPacker(**{"words": 5, "vector": 4, "lanes": 4, **sizes})
