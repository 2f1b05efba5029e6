"""The bus packer turns A in Dense, CSR or COO into the cycles that the golden model says."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from rtl.pe.bus_packer import BusPacker
from rtl.pe.flagged_bus import Acf
from sw.golden.weight_stationary import bus_cycles, places_of
from tests.rtl.port_bench import PortBench
from tests.tools import long_run

Data = list[tuple[int, int, int]]
Shape = tuple[int, int]
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


def sent(cycles: list[dict]) -> list[list[tuple[bool, int | None]]]:
    """Words of each cycle up to the last one that is there. Before it only data of Dense may be absent, which are None."""
    seen = []
    for cycle in cycles:
        words = [
            (bool(word["metadata"]), word["payload"] if word["present"] else None)
            for word in cycle["words"][
                : max((n for n, word in enumerate(cycle["words"]) if word["present"]), default=-1) + 1
            ]
        ]
        assert all(payload is not None for flag, payload in words if flag)
        seen.append(words)
    return seen


def wanted(data: Data, dut: BusPacker, acf: Acf, shape: Shape) -> list[list[tuple[bool, int | None]]]:
    lists: Any = zip(*data, strict=True) if data else ((), (), ())
    if acf is Acf.DENSE:
        lists = places_of(*lists, shape)
    cycles = bus_cycles(*lists, acf=acf.name.lower(), words=dut.words, vector=dut.vector)
    return [up_to_the_last(cycle.words) for cycle in cycles]


def up_to_the_last(words: Sequence[tuple[bool, int | None]]) -> list[tuple[bool, int | None]]:
    """Without the places at a cycle's end that have no datum."""
    return list(words[: max(n for n, (_, payload) in enumerate(words) if payload is not None) + 1])


def drawn(rng: random.Random, acf: Acf) -> tuple[Data, Shape]:
    """Rows without data, of one and of many; adjacent rows whose columns go on; but for Dense the largest coordinates."""
    rows, width = rng.randint(1, 6), rng.randint(1, 20)
    first, origin = (0, 0) if acf is Acf.DENSE else (rng.choice([0, 2**32 - 8]), rng.choice([0, 2**32 - 24]))
    density = rng.choice([0.0, 0.1, 0.5, 1.0])
    found = [(row, k) for row in range(rows) for k in range(width) if rng.random() < density]
    return [(first + row, origin + k, rng.getrandbits(32)) for row, k in found], (rows, width)


def run(
    dut: BusPacker, acf: Acf, matrices: list[tuple[Data, Shape]], *, seed: int, chance: float = 0.6, full: bool = False
) -> int:
    """Each A comes when the one before has left; returns the cycles that all take."""
    bench = PortBench(dut, seed=seed, chance=chance)
    rng = random.Random(seed)
    taken, came = bench.feed(dut.i), bench.collect(dut.o)
    cycles = 0

    async def script(ctx):
        nonlocal cycles
        ctx.set(dut.acf, acf)
        for data, shape in matrices:
            ctx.set(dut.rows, shape[0])
            ctx.set(dut.columns, shape[1])
            taken.extend(portions(data, dut.lanes, rng, full=full))
            begin = bench.cycle
            await bench.until(ctx, lambda: bool(came) and came[-1]["last"])
            cycles += bench.cycle - begin
            assert [cycle["last"] for cycle in came] == [0] * (len(came) - 1) + [1]
            seen = sent(came)
            assert seen[: len(seen) - (seen[-1] == [])] == wanted(data, dut, acf, shape)
            came.clear()

    bench.simulate(script)
    return cycles


@pytest.mark.parametrize("chance", [1.0, 0.5])
@pytest.mark.parametrize("acf", Acf)
@pytest.mark.parametrize("size", ["figure 6", "least", "odd", pytest.param("wide", marks=long_run())])
def test_cycles_are_golden(size: str, acf: Acf, chance: float) -> None:
    rng = random.Random(f"{size} {acf}")
    run(BusPacker(**SIZES[size]), acf, [drawn(rng, acf) for _ in range(8)], seed=3, chance=chance)


def test_figure_6() -> None:
    """A of 4 x 8: A at (0, 0), B at (0, 2), C and H in rows of their own. 8, 3 and 4 cycles (section IV.B)."""
    nonzeros = {(0, 0): 0xA, (0, 2): 0xB, (1, 3): 0xC, (3, 7): 0x11}
    data = [(*place, value) for place, value in nonzeros.items()]
    words = {}
    for acf in Acf:
        dut = BusPacker(words=5, vector=4, lanes=4)
        bench = PortBench(dut, seed=1, chance=1)
        taken, came = bench.feed(dut.i), bench.collect(dut.o)

        async def script(ctx, acf=acf, bench=bench, dut=dut, taken=taken, came=came):
            for port, value in ((dut.acf, acf), (dut.rows, 4), (dut.columns, 8)):
                ctx.set(port, value)
            taken.extend(portions(data, 4, random.Random(1), full=True))
            await bench.until(ctx, lambda: bool(came) and came[-1]["last"])

        bench.simulate(script)
        words[acf] = sent(came)
    assert {acf.name: len(cycles) for acf, cycles in words.items()} == {"DENSE": 8, "CSR": 3, "COO": 4}
    assert words[Acf.DENSE] == [
        [(True, 0), (False, 0xA), (False, None), (False, 0xB)],
        [(True, 0)],
        [(True, 1), (False, None), (False, None), (False, None), (False, 0xC)],
        *[[(True, row)] for row in (1, 2, 2, 3)],
        [(True, 3), (False, None), (False, None), (False, None), (False, 0x11)],
    ]
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
    cycles = run(BusPacker(words=5, vector=4, lanes=4), acf, [(row, (1, 40 * data))], seed=1, chance=1, full=True)
    assert cycles == 40 + BusPacker.latency


def test_rows_in_dense_take_their_places_alone() -> None:
    """A row with a datum here and there, and rows without, take as many cycles as full ones, while data come as fast."""
    data = [(row, column, 5) for row in (1, 2, 5) for column in (0, 3, 4, 11)]
    cycles = run(BusPacker(words=5, vector=4, lanes=4), Acf.DENSE, [(data, (7, 12))], seed=1, chance=1, full=True)
    assert cycles == 7 * 3 + BusPacker.latency


@pytest.mark.parametrize("acf", Acf)
def test_a_reset_drops_what_is_inside(acf: Acf) -> None:
    dut = BusPacker(words=5, vector=4, lanes=4)
    bench = PortBench(dut, seed=5, chance=0.4)
    vectors, came = bench.feed(dut.i), bench.collect(dut.o)

    async def script(ctx):
        ctx.set(dut.acf, acf)
        for count in range(1, 8):
            ctx.set(dut.rows, 8)
            ctx.set(dut.columns, 100)
            vectors.extend(portions([(7, n, n) for n in range(100)], 4, random.Random(count), full=True))
            left = len(vectors) - count
            await bench.until(ctx, lambda left=left: len(vectors) <= left)
            await bench.clear(ctx)
            ctx.set(dut.rows, 1)
            ctx.set(dut.columns, 3)
            vectors.extend(portions([(0, 2, 3)], 4, random.Random(1), full=True))
            await bench.until(ctx, lambda: len(came) == 1)
            assert sent(came) == [
                {
                    Acf.DENSE: [(True, 0), (False, None), (False, None), (False, 3)],
                    Acf.CSR: [(True, 0), (True, 2), (False, 3)],
                    Acf.COO: [(True, 0), (True, 2), (False, 3)],
                }[acf]
            ]
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
