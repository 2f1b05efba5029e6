# amaranth: UnusedElaboratable=no
"""Tiling controller against the model's walk: six orders, ragged edges, empty tiles, maps in memory, windows of k."""

import itertools
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from rtl.tiling.controller import ORDERS, TilingController
from sw.model.walk import TileWalk
from tests.rtl.accessor.clients import ClientMemory, patient

A_MAP, B_MAP = 0x100, 0x800
LANES = 2
TOP = 2**32 - 1


def run(
    extent: tuple[int, int, int],
    tile: tuple[int, int, int],
    order: str,
    density: float,
    maps: bool = True,
    keep_a: bool = False,
    windows: Any = None,
    bad: int | None = None,
) -> None:
    """``windows``: begin and end of each; ``bad``: the first that is not legal, where the walk has to end."""
    rng = np.random.default_rng(hash((extent, tile)) % 2**32)
    tiles = tuple(-(-n // t) for n, t in zip(extent, tile, strict=True))
    tiles_k = 1 if windows is not None else tiles[2]
    occupied_a = rng.random((tiles[0], tiles_k)) < density
    occupied_b = rng.random((tiles_k, tiles[1])) < density
    if not maps:
        occupied_a[:], occupied_b[:] = True, True
    memory = ClientMemory(0x1000, 8 * LANES, seed=1)
    memory.store(A_MAP, np.packbits(occupied_a.ravel(), bitorder="little"))
    memory.store(B_MAP, np.packbits(occupied_b.ravel(), bitorder="little"))
    dut = TilingController(lanes=LANES, address_width=40)
    sides = tile
    if windows is not None:
        windows = np.array(windows, np.int64)
        memory.store(A_MAP, np.array([[begin, end - begin] for begin, end in windows], np.uint32))
        sides = (*tile[:2], extent[2])
    walk = TileWalk(extent, sides, order, occupied_a, occupied_b, beat_bits=64 * LANES, keep_a=keep_a, windows=windows)
    expected = list(itertools.takewhile(lambda tile: tile.index_i != bad, walk))
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    for n in range(2):
        sim.add_testbench(memory.reader(dut.read_request[n], dut.read_data[n], n), background=True)

    async def bench(ctx: Any) -> None:
        config = {
            "extent": list(extent),
            "tile": list(tile),
            "tiles": list(tiles),
            "order": ORDERS.index(order),
            "a_map": A_MAP if maps else 0,
            "b_map": B_MAP if maps else 0,
            "keep_a": keep_a,
            "windows": windows is not None,
        }
        ctx.set(dut.config, config)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        before = None
        for number, want in enumerate(expected):
            for _ in patient(5000):
                go = memory.random.random() < 0.7
                ctx.set(dut.tiles.ready, go)
                _, _, valid, got = await ctx.tick().sample(dut.tiles.valid, dut.tiles.payload)
                if valid and go:
                    break
            ctx.set(dut.tiles.ready, 0)
            seen = {
                "i": got.begin_i, "j": got.begin_j, "k": got.begin_k,
                "size_i": got.size_i, "size_j": got.size_j, "size_k": got.size_k,
                "carry": bool(got.carry), "partial_in": bool(got.partial_in), "k_step": bool(got.k_step),
                "from_pointers_a": bool(got.from_pointers_a), "from_pointers_b": bool(got.from_pointers_b),
                "last_k": bool(got.last_k), "advance_a": bool(got.advance_a), "advance_b": bool(got.advance_b),
            }  # fmt: skip
            assert seen == {name: getattr(want, name) for name in seen}, f"tile {number}"
            assert got.position_index == want.index_j * (extent[0] + tiles[0]) + want.i + want.index_i
            assert got.last == (number == len(expected) - 1 and bad is None)
            assert got.whole_j == (sides[1] >= extent[1]) and got.whole_k == (sides[2] >= extent[2])
            if before is not None and (walk.empty == 0 or windows is not None):
                for rank in "ijk" if windows is None else "i":
                    old, new = getattr(before, rank), getattr(want, rank)
                    assert got[f"change_{rank}"] == (0 if old == new else 2 if new == 0 else 1)
            before = want
        ctx.set(dut.tiles.ready, 1)
        for _ in patient(5000) if bad is not None else range(50):
            if ctx.get(dut.bad_window):
                break
            assert not ctx.get(dut.tiles.valid), "a tile too many"
            await ctx.tick()
        for _ in range(50):
            assert ctx.get(dut.bad_window) == (bad is not None) and not ctx.get(dut.tiles.valid)
            assert bad in (None, ctx.get(dut.window_index))
            await ctx.tick()

    sim.add_testbench(bench)
    sim.run()
    if maps:
        assert {"A": memory.beats_read.get(0, 0), "B": memory.beats_read.get(1, 0)} == walk.map_beats


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("density", [1.0, 0.6, 0.1])
def test_walk(order: str, density: float) -> None:
    run((10, 13, 7), (4, 5, 3), order, density)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("tile", [(10, 13, 7), (1, 1, 1), (10, 4, 100), (3, 13, 2)])
def test_shapes(order: str, tile: tuple[int, int, int]) -> None:
    run((3, 4, 5) if tile == (1, 1, 1) else (10, 13, 7), tile, order, 0.8)


def test_without_maps_nothing_is_skipped() -> None:
    run((9, 9, 9), (4, 4, 4), "jik", 1.0, maps=False)


def test_maps_longer_than_a_beat() -> None:
    run((40, 6, 60), (2, 3, 2), "kij", 0.3)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("tile", [(4, 5, 3), (10, 5, 3)])
def test_walk_with_a_kept(order: str, tile: tuple[int, int, int]) -> None:
    run((10, 13, 7), tile, order, 0.6, keep_a=True)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("extent_i", [1, 4, 10, 33])
def test_windows(order: str, extent_i: int) -> None:
    """Windows at random, empty ones and neighbours that are the same; the last tile along i is ragged or not."""
    rng = np.random.default_rng(extent_i)
    windows = [sorted(rng.integers(0, 21, 2).tolist()) for _ in range(-(-extent_i // 4))]
    for index in range(len(windows)):
        kind = rng.random()
        if kind < 0.25:
            windows[index] = [windows[index][0]] * 2
        elif index and kind < 0.5:
            windows[index] = windows[index - 1]
    # B's map says that nothing is there, and does not count.
    run((extent_i, 6, 20), (4, 6, 20), order, 0.0, windows=windows)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("empty", [(), (0,), (2,), (0, 1, 2)])
def test_windows_without_a_coordinate(order: str, empty: tuple[int, ...]) -> None:
    windows = [(3, 3) if index in empty else (5 * index, 5 * index + 7) for index in range(3)]
    run((10, 9, 20), (4, 100, 7), order, 1.0, windows=windows)


@pytest.mark.parametrize("extent_k", [20, TOP])
def test_windows_at_the_limits(extent_k: int) -> None:
    """As long as a tile, up to the last coordinate; an empty one behind it."""
    windows = [(extent_k - 7, extent_k), (0, 7), (extent_k - 1, extent_k), (extent_k, extent_k)]
    run((10, 9, extent_k), (3, 9, 7), "ijk", 1.0, windows=windows)


@pytest.mark.parametrize("extent_k", [20, TOP])
def test_windows_of_all_of_k(extent_k: int) -> None:
    run((10, 9, extent_k), (5, 9, extent_k), "jik", 1.0, windows=[(0, extent_k), (1, extent_k)])


@pytest.mark.parametrize(("order", "at"), [("ijk", 0), ("jki", 2), ("kij", 3)])
@pytest.mark.parametrize(
    "wrong", [(0, 8), (12, 20), (14, 21), (20, 21), (21, 21), (TOP - 1, TOP + 2), (TOP, TOP + TOP), (0, TOP)]
)
def test_bad_windows(order: str, at: int, wrong: tuple[int, int]) -> None:
    """Too long, beyond the shape, or so that its end does not fit a word; tiles before it come as ever."""
    windows = [(13, 20), (4, 4), (0, 7), (13, 20)]
    windows[at] = wrong
    run((10, 9, 20), (3, 9, 7), order, 1.0, windows=windows, bad=at)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("tile_i", [4, 10])
def test_positions_move_on_at_the_load_of_a_kept_tile(order: str, tile_i: int) -> None:
    """By the definition: the load of a stay after which the tile never comes back advances, no other load does.

    Nothing is skipped, so that the walk alone says which visits load.
    """
    full = np.ones((3, 3), np.bool_), np.ones((3, 3), np.bool_)
    visits = list(TileWalk((10, 13, 7), (tile_i, 5, 3), order, *full, beat_bits=128, keep_a=True))
    j_inside_k = order.index("j") > order.index("k")
    in_place = None
    for number, visit in enumerate(visits):
        tile = (visit.i, visit.k)
        if tile == in_place:
            continue
        in_place = tile
        stay = visits[number:]
        length = next((n for n, later in enumerate(stay) if (later.i, later.k) != tile), len(stay))
        returns = j_inside_k and any((later.i, later.k) == tile for later in stay[length:])
        assert visit.advance_a == (not visit.last_k and not returns), (visit, returns)
