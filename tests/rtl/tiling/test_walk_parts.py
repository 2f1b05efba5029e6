"""The parts of the tiling controller alone: the loop nest, what sweeps leave behind, the ring of windows, shapes, the steps."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator

from rtl.regs.map import ORDERS
from rtl.tiling.begin_positions import POSITION_RULES, BeginPositions
from rtl.tiling.controller import TilingController
from rtl.tiling.shape_changes import Change
from rtl.tiling.tile_occupancy import TileOccupancy
from rtl.tiling.tile_shape import TileShape
from rtl.tiling.tile_walk import TileWalk
from rtl.tiling.walk_sequence import WalkSequence
from rtl.tiling.window_ring import WindowRing


def simulate(dut, bench):
    top = Module()
    top.submodules.dut = dut
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def nest(order, extent, tile):
    """Tile indices along i, j, k in the order of the walk."""
    counts = [-(-extent[r] // tile[r]) for r in range(3)]
    ranks = ["ijk".index(name) for name in order]
    for n in range(counts[0] * counts[1] * counts[2]):
        place = [0, 0, 0]
        for rank in reversed(ranks):
            n, place[rank] = divmod(n, counts[rank])
        yield place, counts


@pytest.mark.parametrize("order", ORDERS)
def test_the_walk_is_the_loop_nest(order):
    dut = TileWalk()
    extent, tile = (7, 5, 9), (3, 5, 2)

    async def bench(ctx):
        for name, value in (("extent", extent), ("side", tile), ("cells", (1, 1, 1))):
            ctx.set(getattr(dut, name), list(value))
        ctx.set(dut.order, ORDERS.index(order))
        for place, counts in nest(order, extent, tile):
            if place == [0, 0, 0]:
                ctx.set(dut.tiles, counts)
                ctx.set(dut.b_stride, counts[1])
                ctx.set(dut.clear, 1)
                await ctx.tick()
                ctx.set(dut.clear, 0)
            await ctx.tick().repeat(dut.latency)
            i, j, k = place
            begin = [place[r] * tile[r] for r in range(3)]
            assert [ctx.get(dut.begins[r]) for r in range(3)] == begin
            assert [ctx.get(dut.index[r]) for r in range(3)] == place
            assert [ctx.get(dut.size[r]) for r in range(3)] == [min(tile[r], extent[r] - begin[r]) for r in range(3)]
            ends = [place[r] == counts[r] - 1 for r in range(3)]
            assert [ctx.get(dut.at_begin) >> r & 1 for r in range(3)] == [place[r] == 0 for r in range(3)]
            assert [ctx.get(dut.at_end) >> r & 1 for r in range(3)] == ends
            assert ctx.get(dut.last) == all(ends)
            assert ctx.get(dut.a_index) == i * counts[2] + k and ctx.get(dut.b_index) == k * counts[1] + j
            assert ctx.get(dut.position_index) == j * (extent[0] + counts[0]) + begin[0] + i
            ctx.set(dut.advance, 1)
            await ctx.tick()
            ctx.set(dut.advance, 0)

    simulate(dut, bench)


@pytest.mark.parametrize("keep_a", [0, 1])
@pytest.mark.parametrize("order", ORDERS)
def test_begin_positions_are_those_that_a_visited_tile_left(order, keep_a):
    """A tile takes positions from an array only where a visited tile of the same sweep moved them on, or, with "once",
    where the array began as the row pointers; a partial row comes in only where an earlier k step was not skipped."""
    dut = BeginPositions()
    rng = random.Random(f"{order} {keep_a}")
    extent, tile = (6, 6, 6), (2, 2, 2)
    seen = set()

    async def bench(ctx):
        ctx.set(dut.order, ORDERS.index(order))
        ctx.set(dut.keep_a, keep_a)
        ctx.set(dut.extent_i, extent[0])
        ctx.set(dut.tile_i, tile[0])
        for _ in range(4):
            ctx.set(dut.clear, 1)
            await ctx.tick()
            ctx.set(dut.clear, 0)
            left_a, left_b, partial, k_of_before = set(), set(), set(), None
            for (i, j, k), counts in nest(order, extent, tile):
                place = (i, j, k)
                ends = [place[r] == counts[r] - 1 for r in range(3)]
                ranks = ["ijk".index(name) for name in order]
                moves = [all(ends[inner] for inner in ranks[ranks.index(r) + 1 :]) for r in range(3)]
                for name, flags in (("at_begin", [p == 0 for p in place]), ("at_end", ends), ("moves", moves)):
                    ctx.set(getattr(dut, name), sum(flag << r for r, flag in enumerate(flags)))
                ctx.set(dut.begin_k, tile[2] * k)
                ctx.set(dut.empty, 0)
                await ctx.tick()
                must = ctx.get(dut.must_visit)
                empty = rng.random() < 0.5 and not must
                ctx.set(dut.empty, empty)
                assert ctx.get(dut.skippable) == (order[2] == "k" and not ends[2])
                skips = empty and ctx.get(dut.skippable)
                ctx.set(dut.skip, skips)
                assert ctx.get(dut.k_step) == (k_of_before != k) or skips
                if not empty:
                    for operand, sweep, rank in (("a", i, k), ("b", k, j)):
                        rule = POSITION_RULES[operand.upper()][order]
                        pointers = ctx.get(getattr(dut, f"from_pointers_{operand}"))
                        left = left_a if operand == "a" else left_b
                        seen.add((operand, rule, bool(pointers)))
                        if rank == 0:
                            assert pointers
                        elif rule == "swept":
                            assert pointers == (sweep not in left)
                        else:
                            assert not pointers
                    if ctx.get(dut.advance_a):
                        left_a.add(i)
                    if ctx.get(dut.advance_b):
                        left_b.add(k)
                if order[2] == "k":
                    assert ctx.get(dut.partial_in) == ((i, j) in partial)
                else:
                    assert ctx.get(dut.partial_in) == (k != 0)
                if not skips:
                    partial.add((i, j))
                    k_of_before = k
                if moves[2] and ends[2]:
                    left_a.clear()
                if (moves[1] and ends[1]) or moves[2]:
                    left_b.clear()
                if moves[0] or moves[1]:
                    partial.clear()
                ctx.set(dut.advance, 1)
                await ctx.tick()
                ctx.set(dut.advance, 0)

    simulate(dut, bench)
    assert len(seen) >= 3


@pytest.mark.parametrize("lanes", [2, 8])
def test_windows_follow_each_other_in_the_ring(lanes):
    dut = WindowRing(lanes=lanes)
    rng = random.Random(lanes)
    extent, tile_k, capacity = 400, 40, 90
    assert dut.latency == 6

    async def bench(ctx):
        for port, value in ((dut.extent_k, extent), (dut.tile_k, tile_k), (dut.capacity, capacity)):
            ctx.set(port, value)
        reasons = set()
        for _ in range(6):
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            first = end = entry = 0
            metadata = 0
            for number in range(25):
                chains = number > 0 and rng.random() < 0.7
                begin = rng.randrange(first, end) if chains and end > first else rng.randrange(extent - 5)
                size = rng.choice([rng.randrange(1, tile_k), rng.randrange(1, tile_k), tile_k + 1])
                size = min(size, extent - begin + rng.choice([0, 0, 0, 3]))
                kept = min(size, end - begin) if chains and first <= begin < end else 0
                kept += rng.choice([0] * 9 + [1]) if kept else 0
                lines = rng.randrange(30)
                line = rng.choice([0, 10, 60])
                given = metadata if kept else rng.choice([tile_k // lanes + 3, tile_k // lanes + 9, 2])
                word = {"begin": begin, "size": size, "kept": kept, "line": line, "lines": lines}
                ctx.set(dut.window, word | {"metadata": given if not kept else rng.randrange(9), "early": 1})
                await ctx.tick().repeat(dut.latency)
                entries = given * lanes
                wrong = {
                    "shape": begin + size > extent,
                    "tile": size > tile_k,
                    "kept": kept > size,
                    "absent": bool(kept) and (begin < first or begin + kept > end),
                    "ring": size + lanes > entries,
                    "partition": given + line + lines > capacity,
                }
                assert ctx.get(dut.bad) == any(wrong.values()), wrong
                reasons |= {name for name, value in wrong.items() if value}
                if any(wrong.values()):
                    continue
                at = (entry + begin - first) % entries if kept else 0
                ring = ctx.get(dut.ring)
                assert (ring.entry, ring.metadata, ring.kept) == (at, given, kept)
                assert (ring.line, ring.lines, ring.early) == (line, lines, bool(kept))
                ctx.set(dut.taken, 1)
                await ctx.tick()
                ctx.set(dut.taken, 0)
                end = max(end, begin + size) if kept else begin + size
                first, entry, metadata = begin, at, given
        assert reasons == {"shape", "tile", "kept", "absent", "ring", "partition"}

    simulate(dut, bench)


@pytest.mark.parametrize("lanes", [2, 8])
def test_windows_of_planned_places(lanes):
    """A window keeps nothing of the one before: any begin and any metadata may follow, and lines are rows, not lines."""
    dut = WindowRing(lanes=lanes)
    rng = random.Random(lanes)
    extent, tile_k, capacity = 400, 40, 90
    reasons = set()
    legal = 0

    async def bench(ctx):
        nonlocal legal
        for port, value in ((dut.extent_k, extent), (dut.tile_k, tile_k), (dut.capacity, capacity), (dut.planned, 1)):
            ctx.set(port, value)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        for _ in range(250):
            begin, size = rng.randrange(extent), rng.choice([0, rng.randrange(1, tile_k), tile_k, tile_k + 1])
            kept, line = rng.choice([0, 1, 1, 1, 3, size + 1]), rng.choice([0, 0, 0, 5, capacity])
            metadata = rng.choice(
                [-(-size // lanes), -(-size // lanes), max(0, size - 1) // lanes, capacity, capacity + 1]
            )
            early, lines = rng.getrandbits(1), rng.choice([0, size, 1000, 65535])
            word = {"begin": begin, "size": size, "kept": kept, "line": line, "lines": lines}
            ctx.set(dut.window, word | {"metadata": metadata, "early": early})
            await ctx.tick().repeat(dut.latency)
            wrong = {"shape": begin + size > extent, "tile": size > tile_k}
            if size:
                wrong |= {"kept": kept > size, "entries": size > metadata * lanes}
                wrong["partition"] = metadata + line > capacity
            assert ctx.get(dut.bad) == any(wrong.values()), (word, wrong)
            if sum(wrong.values()) == 1:
                reasons.add(next(name for name, value in wrong.items() if value))
            if not any(wrong.values()):
                legal += 1
                ring = ctx.get(dut.ring)
                assert (ring.entry, ring.kept, ring.metadata) == (0, kept, metadata)
                assert (ring.line, ring.lines, ring.early) == (line, lines, early)
                ctx.set(dut.taken, 1)
                await ctx.tick()
                ctx.set(dut.taken, 0)

    simulate(dut, bench)
    assert reasons == {"shape", "tile", "kept", "entries", "partition"} and legal > 20


def test_a_side_changes_when_its_rank_moves():
    dut = TileShape()

    async def bench(ctx):
        ctx.set(dut.tile, [8, 16, 32])
        ctx.set(dut.tiles, [2, 12, 40])
        ctx.set(dut.extent, [16, 190, 1270])
        ctx.set(dut.order, ORDERS.index("ijk"))
        ctx.set(dut.tune, {"enable": 1, "level": [1, 2]})
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)

        def state():
            sides = [ctx.get(dut.side[r]) for r in range(3)]
            return sides, [ctx.get(dut.cells[r]) for r in range(3)], ctx.get(dut.b_stride)

        assert state() == ([8, 16, 32], [1, 2, 4], 12 * 4)
        ctx.set(dut.decided, 1)
        ctx.set(dut.change, [Change.DOUBLE, Change.HALVE])
        await ctx.tick()
        ctx.set(dut.decided, 0)
        ctx.set(dut.moves, 0b100)
        ctx.set(dut.advance, 1)
        assert ctx.get(dut.event_adjust)
        await ctx.tick()
        assert state() == ([8, 16, 16], [1, 2, 2], 12 * 2)
        assert not ctx.get(dut.event_adjust), "each change is made once"
        ctx.set(dut.moves, 0b110)
        assert ctx.get(dut.event_adjust)
        await ctx.tick()
        ctx.set(dut.advance, 0)
        assert state() == ([8, 32, 16], [1, 4, 2], 12 * 2)
        ctx.set(dut.visited, 1)
        await ctx.tick()
        assert ctx.get(dut.walked_j) == 2
        # A ragged tile: fewer cells are left than a side has.
        ctx.set(dut.index, [0, 10, 4])
        ctx.set(dut.at_end, 0b010)
        ctx.set(dut.next_begin, [8, 192, 64])
        await ctx.tick().repeat(2)
        assert ctx.get(dut.columns_j) == 2 and ctx.get(dut.columns_k) == 2 and not ctx.get(dut.full)
        # j is cut, and i outside it: T_j may not change; k may.
        assert ctx.get(dut.movable) == 0b10 and ctx.get(dut.halvable) == 0b11

    simulate(dut, bench)


@pytest.mark.parametrize("tuning", [False, True])
def test_steps_of_tiles(tuning):
    dut = WalkSequence(tuning=tuning)

    async def bench(ctx):
        async def run(count):
            seen = []
            for _ in range(count):
                names = [
                    name for name in ("clear", "ask", "offer", "visited", "advance") if ctx.get(getattr(dut, name))
                ]
                seen.append(" ".join(names))
                await ctx.tick()
            return seen

        assert await run(2) == ["clear"] * 2
        ctx.set(dut.start, 1)
        ctx.set(dut.done, 1)
        ctx.set(dut.taken, 1)
        assert await run(6) == ["clear", "", "", "", "ask", ""]
        ctx.set(dut.start, 0)
        assert await run(6) == ["offer visited advance", "", "", "", "ask", ""]
        # An empty tile is skipped where it may be, one that must be visited is not empty.
        ctx.set(dut.part_empty, 1)
        assert await run(6) == ["offer visited advance", "", "", "", "ask", ""] and ctx.get(dut.empty)
        ctx.set(dut.skippable, 1)
        assert await run(6) == ["offer visited advance", "", "", "", "ask", ""] and ctx.get(dut.empty)
        assert await run(6) == ["visited advance", "", "", "", "ask", ""] and ctx.get(dut.skip)
        ctx.set(dut.must_visit, 1)
        assert await run(6) == ["visited advance", "", "", "", "ask", ""] and not ctx.get(dut.empty)
        ctx.set(dut.skippable, 0)
        # With a window: seven cycles more; one that is not legal stops the walk.
        ctx.set(dut.gathered, 1)
        ctx.set(dut.window_done, 1)
        seen = await run(13)
        assert seen == ["offer visited advance", "", "", "", "ask", "", *[""] * 6, "offer visited advance"]
        ctx.set(dut.gathered, 0)
        if tuning:
            ctx.set(dut.tuned, 1)
            assert await run(6) == ["", "", "", "ask", "", "offer visited"]
            assert await run(3) == [""] * 3, "waits until the tile is placed"
            ctx.set(dut.placed, 1)
            assert await run(2) == ["", "advance"]
            ctx.set(dut.placed, 0)
            assert (await run(6))[-1] == "offer visited"
            for port in (dut.placed, dut.loaded, dut.full):
                ctx.set(port, 1)
            assert ctx.get(dut.decide)
            assert await run(4) == [""] * 4, "waits for the decision"
            ctx.set(dut.decided, 1)
            assert await run(2) == ["", "advance"]
            ctx.set(dut.tuned, 0)
        ctx.set(dut.last, 1)
        ctx.set(dut.gathered, 1)
        ctx.set(dut.bad, 1)
        await run(14)
        assert ctx.get(dut.bad_window)
        assert await run(20) == [""] * 20 and ctx.get(dut.bad_window)

    simulate(dut, bench)


def test_the_last_tile_ends_the_walk():
    dut = WalkSequence()

    async def bench(ctx):
        for port in (dut.start, dut.done, dut.taken, dut.last):
            ctx.set(port, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        await ctx.tick().repeat(5)
        assert ctx.get(dut.offer)
        await ctx.tick()
        for _ in range(10):
            assert ctx.get(dut.clear) and not ctx.get(dut.offer)
            await ctx.tick()

    simulate(dut, bench)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WindowRing(lanes=3), "Lanes must be a power of two from 2 to 64, not 3"),
        (
            lambda: TileOccupancy(lanes=1, address_width=40, ranged=False),
            "Lanes must be a power of two from 2 to 64, not 1",
        ),
        (
            lambda: TileOccupancy(lanes=2, address_width=4, ranged=True),
            "Address width must be an integer from 8 to 64, not 4",
        ),
        (lambda: TilingController(lanes=5, address_width=40), "Lanes must be a power of two from 2 to 64, not 5"),
        (lambda: TilingController(lanes=2, address_width=65), "Address width must be an integer from 8 to 64, not 65"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        make()


@pytest.mark.parametrize("order", ORDERS)
def test_columns_of_b_begin_where_rows_do_with_j_and_k_changed(order):
    """The same walk with j and k in each other's place says the same of B, whose fibers are then its columns."""
    rng = random.Random(order)
    top = Module()
    top.submodules.rows = rows = BeginPositions()
    top.submodules.columns = columns = BeginPositions(b_fibers="j")

    async def bench(ctx):
        ctx.set(rows.order, ORDERS.index(order))
        ctx.set(columns.order, ORDERS.index(order.translate(str.maketrans("jk", "kj"))))
        seen = set()
        for _ in range(400):
            for name in ("empty", "skip", "clear", "advance"):
                bit = int(rng.random() < (0.03 if name == "clear" else 0.5))
                ctx.set(getattr(rows, name), bit)
                ctx.set(getattr(columns, name), bit)
            for name in ("at_begin", "at_end", "moves"):
                i, j, k = (rng.getrandbits(1) for _ in range(3))
                ctx.set(getattr(rows, name), i | j << 1 | k << 2)
                ctx.set(getattr(columns, name), i | k << 1 | j << 2)
            said = [(ctx.get(dut.from_pointers_b), ctx.get(dut.advance_b)) for dut in (rows, columns)]
            assert said[0] == said[1]
            seen.add(said[0])
            await ctx.tick()
        assert len(seen) > 2

    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
