"""The fiber placer on random matrices, with neighbours that stall and without."""

import random

import pytest
from amaranth.sim import Simulator

from rtl.accessor.fiber_placer import FiberPlacer
from tests.rtl.mint.streams import BEHAVIOURS, PAUSES, run

Row = list[tuple[int, int]]
Entry = tuple[int, int]
WIDEST = 1 << 32


def draw(rng: random.Random, rows: int, columns: int, longest: int) -> list[Row]:
    """Rows at random, some without a nonzero; values of 16 bits with their sign in a slot of 32."""
    found = []
    for _ in range(rows):
        size = min(columns, rng.choice([0, 0, 1, rng.randint(1, longest), longest]))
        values = (rng.randrange(-0x8000, 0x8000) & 0xFFFFFFFF for _ in range(size))
        found.append(list(zip(sorted(rng.sample(range(columns), size)), values, strict=True)))
    return found


def words_of(row: Row, lanes: int) -> list[dict]:
    """Words of a row; lanes behind its nonzeros hold anything."""
    found = []
    for begin in range(0, max(len(row), 1), lanes):
        part = row[begin : begin + lanes]
        line = [*part, *[(0xDEAD, 0xBEEF)] * (lanes - len(part))]
        lane_items = [{"coordinate": column, "value": value} for column, value in line]
        found.append({"line": lane_items, "count": len(part), "last": int(begin + lanes >= len(row))})
    return found


def seen(port: str, payload) -> tuple[list[Entry], int]:
    """Places and values of a vector, and whether it ends the matrix."""
    assert int(payload.outside) == 0
    present = int(payload.present)
    assert not present & present + 1, "from the first lane on"
    return [(int(payload.positions[n]), int(payload.values[n])) for n in range(present.bit_length())], int(payload.last)


def entries(matrix: list[Row], columns: int, keyed: int, value: str) -> list[Entry]:
    """Place and value of every nonzero, by the definition."""
    size, shift, mask = WIDEST if keyed else columns, 0 if value == "int16" else 16, 0xFFFF
    return [(n * size + column, bits >> shift & mask) for n, row in enumerate(matrix) for column, bits in row]


@pytest.mark.parametrize("keyed", [0, 1], ids=["positions", "rows and columns"])
@pytest.mark.parametrize("behaviour", [("never", "never"), *(names[1:] for names in BEHAVIOURS)], ids="-".join)
def test_places(behaviour: tuple[str, str], keyed: int) -> None:
    """Matrices of all shapes, a word a cycle where nothing stalls, and complete when the last row has come."""
    pause = dict(zip(("words", "placed"), (PAUSES[name] for name in behaviour), strict=True))
    for seed, (rows, columns, lanes, value) in enumerate(
        [
            (1, 1, 2, "int16"),
            (1, 40, 4, "bf16"),
            (30, 1, 2, "bf16"),
            (25, 30, 4, "int16"),
            (12, WIDEST, 4, "int16"),
            (9, 2**31 + 3, 1, "int16"),
        ]
    ):
        rng = random.Random(f"{behaviour} {seed}")
        matrix = draw(rng, rows, columns, 3 * lanes)
        if columns == WIDEST:
            matrix[-1] = [(0, 1), (WIDEST - 1, 2)]
        words = [word for row in matrix for word in words_of(row, lanes)]
        dut, complete = FiberPlacer(lanes=lanes, value=value), []
        found = run(
            dut,
            {"words": words},
            {"placed": len(words)},
            pause=pause,
            view=seen,
            seed=seed,
            steady={"rows": rows, "columns": columns, "keyed": keyed},
            after=lambda ctx, dut=dut, complete=complete: complete.append(ctx.get(dut.complete)),
        )
        vectors = found.items["placed"]
        assert [place for part, _ in vectors for place in part] == entries(matrix, columns, keyed, value)
        assert [len(part) for part, _ in vectors] == [word["count"] for word in words]
        assert [last for _, last in vectors] == [0] * (len(words) - 1) + [1]
        assert complete == [1]
        if behaviour == ("never", "never"):
            cycles = found.cycles
            assert cycles["placed"] == [cycle + FiberPlacer.latency for cycle in cycles["words"]]
            assert cycles["words"] == list(range(len(words)))


def test_nothing_is_taken_after_the_last_row() -> None:
    """It is complete in the cycle after the last word of the last row, and not before."""
    dut = FiberPlacer(lanes=2, value="int8")
    rows = [[(1, 5)], [], [(0, 1), (2, 3), (3, 4)]]
    words = [word for row in rows for word in words_of(row, 2)]

    async def bench(ctx):
        for name, value in (("rows", len(rows)), ("columns", 4)):
            ctx.set(getattr(dut, name), value)
        ctx.set(dut.placed.ready, 1)
        ctx.set(dut.words.valid, 1)
        for word in words:
            ctx.set(dut.words.payload, word)
            assert ctx.get(dut.words.ready) and not ctx.get(dut.complete)
            await ctx.tick()
        assert ctx.get(dut.placed.valid) and ctx.get(dut.placed.payload.last)
        for _ in range(10):
            assert ctx.get(dut.complete) and not ctx.get(dut.words.ready)
            await ctx.tick()
            assert not ctx.get(dut.placed.valid)

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


def test_it_is_complete_while_the_last_vector_waits() -> None:
    """The last row has come, whether or not it has left."""
    dut = FiberPlacer(lanes=2, value="int8")

    async def bench(ctx):
        ctx.set(dut.rows, 1)
        ctx.set(dut.columns, 4)
        ctx.set(dut.words.payload, words_of([], 2)[0])
        ctx.set(dut.words.valid, 1)
        await ctx.tick()
        for ready in (0, 0, 1):
            ctx.set(dut.placed.ready, ready)
            assert ctx.get(dut.complete) and not ctx.get(dut.words.ready) and ctx.get(dut.placed.valid)
            assert not ctx.get(dut.placed.payload.present) and ctx.get(dut.placed.payload.last)
            await ctx.tick()
        assert ctx.get(dut.complete) and not ctx.get(dut.placed.valid)

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("sizes", [{"lanes": 3}, {"lanes": 0}, {"lanes": 32}, {"value": "int7"}])
def test_wrong_parameters(sizes: dict) -> None:
    with pytest.raises(ValueError):
        FiberPlacer(**({"lanes": 4, "value": "int8"} | sizes))
