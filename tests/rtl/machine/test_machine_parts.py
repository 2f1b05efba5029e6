"""The parts of the machine alone: tile control, what an engine is told of a tile, the check of its fibers, joined loads."""

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from rtl.engine.gustavson import GustavsonEngine
from rtl.machine.fiber_check import FiberCheck
from rtl.machine.fiber_places import FiberPlaces
from rtl.machine.machine import Machine
from rtl.machine.sram_ports import LoadSwitch, banked_sram
from rtl.machine.tile_control import TileControl
from rtl.regs.map import ORDERS
from rtl.tiling.run_control import Phase
from rtl.tiling.scheme_check import NAMED, SchemeCheck
from tests.rtl.port_bench import PortBench
from verif.benches.walk import Walk

OFFSETS = {name: 0x40 + 4 * n for n, name in enumerate(NAMED)}
CHECK = {"lanes": 2, "sram_lines": 256, "offsets": OFFSETS}
CONTROL = {"address_width": 32, "line_address_width": 8}


def scheme(extent: tuple[int, ...], tile: tuple[int, ...], order: str, *, kept_b: bool = True) -> dict[str, Any]:
    return {
        "extent": list(extent),
        "tile": list(tile),
        "order": list(ORDERS).index(order),
        "buffering": {"a": 0, "b": kept_b, "c": 0},
        "a": {"base": 0, "lines": 16},
        "b": {"base": 16, "lines": 120},
        "c": {"base": 136, "lines": 40},
        "fifo_b": 8,
    }


def tile_control(*, tuning: bool = False, **sizes: int) -> TileControl:
    return TileControl(check=SchemeCheck(**CHECK, tuning=tuning), **CONTROL | sizes)


class Accessors:
    """Stand-ins for the accessors and the engine: they take tiles by chance and are busy for some cycles."""

    def __init__(self, dut: TileControl, want: dict[str, Any], *, seed: int, chance: float) -> None:
        self.dut = dut
        self.want = want
        self.random = Random(seed)
        self.bench = PortBench(dut, seed=seed, chance=chance)
        self.loads, self.computed, self.rows, self.pieces = (
            self.bench.collect(port) for port in (dut.load, dut.compute_c, dut.compute_a, dut.pieces)
        )
        self.load_busy = self.work_left = 0
        self.counted: dict[str, int] = {}
        self.done = self.error = 0
        self.phases: Counter[int] = Counter()
        self._seen = [0, 0]

    def run(self, tune: dict[str, Any] | None = None, quadrants: list[int] | None = None) -> None:
        dut, random = self.dut, self.random

        def each(ctx: Any) -> None:
            ctx.set(dut.scheme, self.want)
            ctx.set(dut.start, self.bench.cycle == 2)
            ctx.set(dut.load_a_idle, 1)
            if tune is not None:
                ctx.set(dut.tune, tune)
                ctx.set(dut.quadrant_counts, quadrants)
            now = [len(self.loads), len(self.computed) + len(self.pieces)]
            # Busy from the cycle after a tile was taken on.
            self.load_busy = random.randrange(1, 9) if now[0] > self._seen[0] else max(0, self.load_busy - 1)
            self.work_left = random.randrange(1, 12) if now[1] > self._seen[1] else max(0, self.work_left - 1)
            self._seen = now
            ctx.set(dut.load_idle, self.load_busy == 0)
            ctx.set(dut.rows_left, self.work_left)
            ctx.set(dut.quiet, self.work_left == 0 and self.load_busy == 0 and not ctx.get(dut.pieces_left))
            self.phases[ctx.get(dut.phase)] += 1
            for name in dut.steps:
                self.counted[name] = self.counted.get(name, 0) + ctx.get(dut.counted[name])
            self.done, self.error = ctx.get(dut.done), ctx.get(dut.error)

        self.bench.run(lambda: bool(self.done), each=each)


@pytest.mark.parametrize(("order", "chance"), [("ijk", 1.0), ("jki", 0.4), ("kij", 0.7)])
@pytest.mark.parametrize("tile", [(4, 9, 11), (3, 4, 11), (2, 5, 4)])
def test_every_tile_in_order_and_then_the_pieces(tile: tuple[int, int, int], order: str, chance: float) -> None:
    extent = (7, 9, 11)
    dut = tile_control()
    machine = Accessors(dut, scheme(extent, tile, order), seed=1, chance=chance)
    machine.run()
    counts = [-(-n // t) for n, t in zip(extent, tile, strict=True)]
    everything = np.ones((20, 20), bool)
    walk = Walk(extent, tile, order, everything, everything)
    tiles = machine.rows
    assert [wrong for got in tiles for wrong in walk.check(got)] == []
    assert walk.ended and machine.error == 0
    # Accessor C has a tile more: all rows, while C is assembled.
    assert machine.computed[: len(tiles)] == tiles
    assembled = [
        tuple(got[name] for name in ("begin_i", "size_i", "last_k", "partial_in"))
        for got in machine.computed[len(tiles) :]
    ]
    assert assembled == ([(0, extent[0], 1, 0)] if counts[1] > 1 else [])
    # The part of B that is in place is not loaded anew.
    places = [(got["begin_k"], got["begin_j"]) for got in tiles]
    assert [(got["begin_k"], got["begin_j"]) for got in machine.loads] == [
        place for n, place in enumerate(places) if not n or place != places[n - 1]
    ]
    pieces = [
        {"index": j * (extent[0] + counts[0]) + i + i // tile[0], "weight": 0, "present": 1, "last": j == counts[1] - 1}
        for i in range(extent[0])
        for j in range(counts[1])
    ]
    assert machine.pieces == (pieces if counts[1] > 1 else [])
    assert machine.counted["tiles_total"] == len(tiles) == np.prod(counts)
    assert machine.counted["tiles_skipped"] == machine.counted["loads_a"] == 0
    cycles = {phase: machine.phases[phase.value] for phase in (Phase.LOAD_B, Phase.COMPUTE, Phase.DRAIN)}
    assert all(cycles.values())
    counted = [machine.counted[f"phase_{name}"] for name in ("load_b", "compute", "drain")]
    assert counted == list(cycles.values())
    # No tile of A is loaded: every other cycle of the run passes between tiles.
    between = machine.counted["cycles"] - sum(counted)
    assert machine.counted["phase_next_tile"] == between > 0 == machine.counted["phase_load_a"]


def test_a_wrong_scheme_ends_before_the_first_tile() -> None:
    machine = Accessors(tile_control(), scheme((7, 9, 11), (2, 0, 4), "ijk"), seed=2, chance=1.0)
    machine.run()
    assert machine.error and not machine.computed and not machine.loads


@pytest.mark.parametrize("nonzeros", [1, 60])
def test_tuned_tiles_cover_everything_once(nonzeros: int) -> None:
    """Few nonzeros make tiles larger, many make them smaller; every triple of coordinates is in one tile."""
    extent, tile = (2, 24, 40), (2, 6, 10)
    dut = tile_control(tuning=True)
    machine = Accessors(dut, scheme(extent, tile, "jki"), seed=3, chance=0.7)
    machine.run({"enable": 1, "level": [1, 1]}, [nonzeros] * 4)
    assert machine.error == 0
    cover = np.zeros(extent, int)
    sides = set()
    for got in machine.rows:
        i, j, k = (slice(got[f"begin_{rank}"], got[f"begin_{rank}"] + got[f"size_{rank}"]) for rank in "ijk")
        cover[i, j, k] += 1
        sides.add(got["size_j"] * got["size_k"])
    assert (cover == 1).all()
    assert machine.counted["tuning_adjustments"] > 0
    assert (max(sides) > 60) == (nonzeros == 1) and (min(sides) < 60) == (nonzeros == 60)


@pytest.mark.parametrize("lanes", [2, 4])
def test_what_an_engine_is_told(lanes: int) -> None:
    random = Random(lanes)
    law = 8
    dut = FiberPlaces(lanes=lanes, address_width=32, line_address_width=law)

    async def bench(ctx: Any) -> None:
        for _ in range(400):
            names = ("gathered", "planned", "buffering_b", "buffering_c", "assembling")
            flags = {name: random.getrandbits(1) for name in names}
            words = {
                name: random.randrange(1 << 20)
                for name in ("pointers", "elements", "tile_positions", "finished", "first_fiber", "begin_k")
            }
            words |= {"entry": random.randrange(1 << 20), "metadata_lines": random.randrange(60)}
            words |= {"fifo_lines": random.randrange(20), "fifo_base": random.randrange(256)}
            b = {"base": random.randrange(100), "lines": random.randrange(1, 120)}
            c = {"base": random.randrange(100), "lines": random.randrange(120)}
            words["scratch_lines"] = random.randrange(c["lines"] + 1)
            for name, value in (flags | words | {"b": b, "c": c}).items():
                ctx.set(getattr(dut, name), value)
            table = ctx.get(dut.fiber_table)
            pieces = flags["assembling"]
            assert table.unit == pieces
            assert table.streaming == (pieces or not flags["buffering_b"])
            assert table.metadata_line == b["base"] + b["lines"] - 1
            ring = flags["gathered"] and not flags["planned"] and not pieces
            wanted = (words["entry"], lanes * words["metadata_lines"], words["begin_k"]) if ring else (0, 0, 0)
            assert (table.entry, table.entries, table.origin) == wanted
            assert table.pointers == (
                words["tile_positions"] if pieces else words["pointers"] + 4 * words["first_fiber"]
            )
            assert table.elements == (words["finished"] if pieces else words["elements"])
            b_region, c_region = ctx.get(dut.b_region), ctx.get(dut.c_region)
            whole = pieces or not flags["buffering_b"]
            assert (b_region.base, b_region.lines) == (
                (b["base"], b["lines"]) if whole else (words["fifo_base"], words["fifo_lines"])
            )
            of_rows = c["lines"] - words["scratch_lines"]
            assert (c_region.base, c_region.lines) == (c["base"], 0 if flags["buffering_c"] else of_rows)
            rows, scratch = ctx.get(dut.c_rows), ctx.get(dut.c_scratch)
            assert (rows.base, rows.lines) == (c["base"], of_rows)
            assert (scratch.base, scratch.lines) == (c["base"] + of_rows, words["scratch_lines"])
            await ctx.delay(1e-9)

    simulator = Simulator(dut)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("lanes", [2, 4])
def test_columns_of_fibers(lanes: int) -> None:
    """Right fibers pass, whole or of a tile; one that has a wrong column is told, two cycles after its line.

    Lines of a row's fiber and of one for scratch memory come in any order.
    """
    random = Random(lanes)
    dut = FiberCheck(lanes=lanes)
    begin, size, columns = 100, 40, 300
    seen = {"right": 0, "wrong": 0, "alternates": 0}

    def drawn(low: int, high: int) -> tuple[list[int], bool]:
        """A fiber, and whether it is right."""
        fiber = sorted(random.sample(range(low, high), random.randrange(0, 12)))
        if not fiber or random.random() < 0.7:
            return fiber, True
        place = random.randrange(len(fiber))
        worse = [fiber[place - 1]] if place else []
        worse += [high, *([low - 1] if low else [])] if place in (0, len(fiber) - 1) else []
        fiber[place] = random.choice(worse or [fiber[place - 1]])
        rises = all(one < other for one, other in zip(fiber, fiber[1:], strict=False))
        return fiber, rises and low <= fiber[0] and fiber[-1] < high

    async def bench(ctx: Any) -> None:
        for _ in range(250):
            whole = random.random() < 0.4
            low, high = (0, columns) if whole else (begin, begin + size)
            fibers = [drawn(low, high), drawn(low, high)]
            right = fibers[0][1] and fibers[1][1]
            for name, value in {"begin_j": begin, "size_j": size, "columns": columns, "assembling": whole}.items():
                ctx.set(getattr(dut, name), value)
            left = [[fiber[n : n + lanes] for n in range(0, len(fiber), lanes)] or [[]] for fiber, _ in fibers]
            told, before = [], 0
            while left[0] or left[1]:
                scratch = random.randrange(2) if left[0] and left[1] else int(bool(left[1]))
                seen["alternates"] += bool(left[before]) and scratch != before
                before = scratch
                piece = left[scratch].pop(0)
                line = [{"coordinate": c, "value": 0} for c in (*piece, *[7] * lanes)[:lanes]]
                word = {"line": line, "count": len(piece), "last": not left[scratch]}
                for moved in (*[0] * random.randrange(2), 1):
                    # What does not move says nothing.
                    ctx.set(dut.word, word)
                    ctx.set(dut.scratch, scratch if moved else random.getrandbits(1))
                    ctx.set(dut.moved, moved)
                    told.append(ctx.get(dut.wrong))
                    await ctx.tick()
            ctx.set(dut.moved, 0)
            for _ in range(3):
                told.append(ctx.get(dut.wrong))
                await ctx.tick()
            assert any(told) == (not right), fibers
            seen["right" if right else "wrong"] += 1

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    assert min(seen.values()) > 40


def test_look_up_has_priority_at_the_sram() -> None:
    engine = GustavsonEngine(
        pes=3, radix=4, lanes=2, address_width=40, line_address_width=6, leaf_lines=2, queue_lines=4, scratch_slots=2,
        value="int32",
    )  # fmt: skip
    assert banked_sram(engine, lines=64, banks=4).priority == engine.sram_priority
    asked: set[int] = set()

    async def bench(ctx: Any) -> None:
        ctx.set(engine.fiber_table.metadata_line, 5)
        ctx.set(engine.selections.valid, 1)
        ctx.set(engine.selections.payload.present, 1)
        for _ in range(4):
            await ctx.tick()
            asked.update(n for n, port in enumerate(engine.sram_request) if ctx.get(port.valid))

    simulator = Simulator(engine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert asked == {engine.sram_priority}


@pytest.mark.parametrize("chance", [0.4, 1.0])
def test_loads_of_one_unit_at_a_time(chance: float) -> None:
    random = Random(5)
    dut = LoadSwitch(lanes=1, line_address_width=6)
    bench = PortBench(dut, seed=5, chance=chance)
    feeds = [bench.feed(dut.a), bench.feed(dut.b)]
    # A write of A's takes the place of B's that waits.
    writes = bench.collect(dut.write, steady=False)
    expected: list[dict[str, Any]] = []
    both = [0]

    def drawn(count: int) -> list[dict[str, Any]]:
        return [
            {
                "line": [{"coordinate": random.getrandbits(32), "value": random.getrandbits(32)}],
                "mask": random.getrandbits(1),
                "address": random.randrange(64),
            }
            for _ in range(count)
        ]

    both_waiting = drawn(18)

    def each(ctx: Any) -> None:
        # Where both have a write, A's goes and B's waits.
        if ctx.get(dut.a.valid):
            assert not ctx.get(dut.b.ready)
            assert ctx.get(dut.write.payload.as_value()) == ctx.get(dut.a.payload.as_value())
            both[0] += ctx.get(dut.b.valid)
        if len(writes) == len(expected):
            if len(writes) > 150:
                feeds[0].extend(both_waiting[:9])
                feeds[1].extend(both_waiting[9:])
                expected.extend(both_waiting)
                return
            turn = random.randrange(2)
            some = drawn(random.randrange(1, 9))
            feeds[turn].extend(some)
            expected.extend(some)

    bench.run(lambda: len(writes) > 200, each=each)
    alone = [write for write in expected if write not in both_waiting]
    assert [write for write in writes if write not in both_waiting] == alone
    together = [write for write in writes if write in both_waiting]
    for own in (both_waiting[:9], both_waiting[9:]):
        assert [write for write in together if write in own][:9] == own
    assert both[0] > 5


@pytest.mark.parametrize(
    ("block", "sizes", "error", "message"),
    [
        (tile_control, {"line_address_width": 0}, ValueError, "^Line address width must be an integer from "),
        (TileControl, CONTROL | {"check": 3}, TypeError, "^Run control's check must be a SchemeCheck, not 3$"),
        (
            FiberPlaces,
            {"lanes": 1, "address_width": 32, "line_address_width": 8},
            ValueError,
            "^Lanes must be a power of two from 2 to 64, not 1$",
        ),
        (FiberCheck, {"lanes": 0}, ValueError, "^Lanes must be a power of two from 1 to 64, not 0$"),
        (
            LoadSwitch,
            {"lanes": 1, "line_address_width": 33},
            ValueError,
            "^Line address width must be an integer from ",
        ),
        (
            Machine,
            {"tile_engine": 5, "sram_lines": 8, "banks": 2, "outstanding": 2, "burst_beats": 4, "offsets": OFFSETS},
            TypeError,
            "^The machine's engine must be an Engine, not 5$",
        ),
    ],
)
def test_wrong_parameters(block: Any, sizes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        block(**sizes)
