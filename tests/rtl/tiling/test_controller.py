"""Tiling controller against the model's walk: six orders, ragged edges, empty tiles, maps in memory, windows of k.

And against what ``verif/benches/walk.py`` says of each tile by the contract alone: a mistake that model and hardware share
does not pass.
"""

import itertools
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator

from rtl.regs.map import ORDERS
from rtl.tiling.controller import TilingController
from sw.model.walk import TileWalk
from tests.rtl.accessor.clients import ClientMemory, patient
from verif.benches.walk import Ring, Walk, WindowWalk

A_MAP, B_MAP = 0x100, 0x800
LANES = 2
TOP = 2**32 - 1
MOST_LINES = 2**16 - 1  # that a field of a window holds
MOST_ROWS = 5000  # of windows whose rows are followed one by one
Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Window:
    """An entry of the table: ``size`` coordinates from ``begin`` on, ``kept`` of them in place, the others in ``lines`` lines."""

    begin: int
    size: int
    kept: int = 0
    metadata: int = 0
    line: int = 0
    lines: int = 0
    early: int = 0

    def words(self) -> tuple[int, int]:
        """As memory holds it."""
        places = self.kept << 24 | self.early << 47 | self.metadata << 48
        return self.begin | self.line << 32 | self.lines << 48, self.size | places


def anew(begin: int, size: int, lanes: int = LANES, **fields: int) -> Window:
    """A window that begins a chain, in the smallest ring that it may have."""
    return Window(begin, size, **{"metadata": -(-size // lanes) + 1} | fields)


@dataclass
class Chain:
    """What windows that follow one another leave in place: ``rows``; the row ``origin`` began the chain and has entry 0."""

    lanes: int
    extent: int
    tile: int
    capacity: int
    rows: range = range(0)
    origin: int = 0
    metadata: int = 0

    def legal(self, window: Window) -> bool:
        if window.begin + window.size > self.extent:
            return False
        if not window.size:
            return True
        kept = range(window.begin, window.begin + window.kept)
        metadata = self.metadata if kept else window.metadata
        there = not kept or (kept[0] in self.rows and kept[-1] in self.rows and kept[-1] < window.begin + window.size)
        # Beside the lines that its entries take there is one more, which newest and oldest never share.
        entries_fit = -(-window.size // self.lanes) + 1 <= metadata
        return (
            window.size <= self.tile
            and there
            and entries_fit
            and window.line + window.lines + metadata <= self.capacity
        )

    def take(self, window: Window) -> dict[str, int] | None:
        """Where the rows of a legal window are; of one without a coordinate nothing is said."""
        if not window.size:
            return None
        end = window.begin + window.size
        if window.kept:
            end = max(end, self.rows.stop)
        else:
            self.origin, self.metadata = window.begin, window.metadata
        self.rows = range(window.begin, end)
        entry = (window.begin - self.origin) % (self.metadata * self.lanes)
        said = {"kept": window.kept, "line": window.line, "lines": window.lines}
        # Where a chain begins anew its entries move: that is never ahead.
        said |= {"early": int(window.early and window.kept > 0)}
        return said | {"entry": entry, "metadata": self.metadata}


def draw(rng: np.random.Generator, chain: Chain, count: int) -> list[Window]:
    """Legal windows: chains of all lengths in rings of all sizes, with windows between them that have no coordinate."""

    def number(low: int, high: int) -> int:
        """Either end is as likely as all between."""
        kind = rng.random()
        return low if kind < 0.2 else high if kind < 0.5 else int(rng.integers(low, high + 1))

    windows: list[Window] = []
    for _ in range(count):
        garbage = {name: int(rng.integers(0, MOST_LINES + 1)) for name in ("kept", "metadata", "line", "lines")}
        longest = min(chain.tile, (chain.metadata - 1) * chain.lanes)
        kind, rows = rng.random(), chain.rows
        if kind < 0.15:
            window = Window(number(0, chain.extent), 0, **garbage)
        elif kind < 0.3 or not rows:
            most = (chain.capacity - 1) * chain.lanes
            size = number(1, min(chain.tile, chain.extent, most))
            metadata = min(chain.capacity, -(-size // chain.lanes) + 1 + number(0, 2))
            window = Window(number(0, chain.extent - size), size, 0, metadata)
        else:
            begin = number(rows.start, rows.stop - 1)
            kept = number(1, min(rows.stop - begin, longest))
            # In a chain the entry's own word on metadata does not count.
            window = Window(begin, number(kept, min(longest, chain.extent - begin)), kept, garbage["metadata"])
        if window.size:
            space = chain.capacity - (chain.metadata if window.kept else window.metadata)
            line = number(0, space)
            window = replace(window, line=line, lines=number(0, space - line), early=number(0, 1))
        assert chain.legal(window)
        chain.take(window)
        windows.append(window)
    return windows


@dataclass(frozen=True, kw_only=True)
class Case:
    """A walk; ``bad``: the first window that is not legal, where it has to end, ``cut``: a reset after so many tiles."""

    extent: Triple
    tile: Triple
    order: str
    density: float = 1.0
    maps: bool = True
    keep_a: bool = False
    joined: bool = False
    windows: list[Window] | None = None
    capacity: int = 64
    bad: int | None = None
    cut: int | None = None


class Walks:
    """Takes walks one after the other and compares each tile; a reset only where a walk has not come to its end."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.memory = ClientMemory(0x1000, 8 * lanes, seed=1)
        self.dut = TilingController(lanes=lanes, address_width=40)
        self.reset = Signal()

    def run(self, cases: Iterable[Case]) -> None:
        sim = Simulator(ResetInserter(self.reset)(self.dut))
        sim.add_clock(1e-8)
        for n in range(2):
            reader = self.memory.reader(self.dut.read_request[n], self.dut.read_data[n], n)
            sim.add_testbench(reader, background=True)

        async def bench(ctx: Any) -> None:
            for case in cases:
                await self.walk(ctx, case)

        sim.add_testbench(bench)
        sim.run()

    async def walk(self, ctx: Any, case: Case) -> None:
        dut, memory, extent, tile, order = self.dut, self.memory, case.extent, case.tile, case.order
        rng = np.random.default_rng(hash((extent, tile)) % 2**32)
        tiles = tuple(-(-n // t) for n, t in zip(extent, tile, strict=True))
        tiles_k = 1 if case.windows is not None else tiles[2]
        occupied_a = rng.random((tiles[0], tiles_k)) < case.density
        occupied_b = rng.random((tiles_k, tiles[1])) < case.density
        if not case.maps:
            occupied_a[:], occupied_b[:] = True, True
        memory.store(A_MAP, np.packbits(occupied_a.ravel(), bitorder="little"))
        memory.store(B_MAP, np.packbits(occupied_b.ravel(), bitorder="little"))
        sides, spans = tile, None
        places: list[dict[str, int] | None] = []
        if case.windows is not None:
            assert A_MAP + 16 * len(case.windows) <= B_MAP
            memory.store(A_MAP, np.array([window.words() for window in case.windows], np.uint64))
            sides = (*tile[:2], extent[2])
            spans = np.array([(window.begin, window.begin + window.size) for window in case.windows], np.int64)
            chain = Chain(self.lanes, extent[2], tile[2], case.capacity)
            for number, window in enumerate(case.windows[: case.bad]):
                assert chain.legal(window), f"window {number}"
                places.append(chain.take(window))
            assert case.bad is None or not chain.legal(case.windows[case.bad])
        walk = TileWalk(
            extent,
            sides,
            order,
            occupied_a,
            occupied_b,
            64 * self.lanes,
            keep_a=case.keep_a,
            windows=spans,
            joins=case.joined,
        )
        expected = list(itertools.takewhile(lambda tile: tile.index_i != case.bad, walk))
        config = {
            "extent": list(extent),
            "tile": list(tile),
            "tiles": list(tiles),
            "order": ORDERS.index(order),
            "a_map": A_MAP if case.maps else 0,
            "b_map": B_MAP if case.maps else 0,
            "keep_a": case.keep_a,
            "joined": case.joined,
            "gathered": case.windows is not None,
            "capacity": case.capacity,
        }
        judge = self.judge(case, occupied_a, occupied_b)
        memory.beats_read.clear()
        ctx.set(dut.settings, config)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        for number, want in enumerate(expected[: case.cut]):
            got = await self.offered(ctx)
            seen = {
                "i": got.begin_i, "j": got.begin_j, "k": got.begin_k,
                "size_i": got.size_i, "size_j": got.size_j, "size_k": got.size_k,
                "carry": bool(got.carry), "partial_in": bool(got.partial_in), "k_step": bool(got.k_step),
                "from_pointers_a": bool(got.from_pointers_a), "from_pointers_b": bool(got.from_pointers_b),
                "last_k": bool(got.last_k), "advance_a": bool(got.advance_a), "advance_b": bool(got.advance_b),
            }  # fmt: skip
            assert seen == {name: getattr(want, name) for name in seen}, f"tile {number}"
            assert got.last_j == (want.j + want.size_j == extent[1]), f"tile {number}"
            assert got.position_index == want.index_j * (extent[0] + tiles[0]) + want.i + want.index_i
            assert got.last == (number == len(expected) - 1 and case.bad is None)
            assert got.whole_j == (sides[1] >= extent[1]) and got.whole_k == (sides[2] >= extent[2])
            assert judge is None or judge.check(record(got)) == [], f"tile {number}"
            if places and (place := places[want.index_i]) is not None:
                assert {name: got.ring[name] for name in place} == place, f"window {want.index_i}"
        if case.cut is not None:
            # Somewhere on the way to the next tile, but not while memory owes an answer.
            for _ in range(int(rng.integers(0, 4))):
                await ctx.tick()
            await self.start_anew(ctx)
            return
        assert judge is None or judge.ended
        ctx.set(dut.tiles.ready, 1)
        for _ in patient(5000) if case.bad is not None else range(50):
            if ctx.get(dut.bad_window):
                break
            assert not ctx.get(dut.tiles.valid), "a tile too many"
            await ctx.tick()
        for _ in range(50):
            assert ctx.get(dut.bad_window) == (case.bad is not None) and not ctx.get(dut.tiles.valid)
            assert case.bad in (None, ctx.get(dut.window_index))
            await ctx.tick()
        if case.maps:
            assert {"A": memory.beats_read.get(0, 0), "B": memory.beats_read.get(1, 0)} == walk.map_lines
        if case.bad is not None:
            await self.start_anew(ctx)

    def judge(self, case: Case, occupied_a: Any, occupied_b: Any) -> Walk | WindowWalk | None:
        """What follows the walk by the contract alone. None for windows so long that to follow each row takes minutes."""
        if case.windows is None:
            settings = {"keep_a": case.keep_a, "joined": case.joined}
            return Walk(case.extent, case.tile, case.order, occupied_a, occupied_b, **settings)
        if any(window.size > MOST_ROWS for window in case.windows):
            return None
        ring = Ring(self.lanes, case.extent[2], case.tile[2], case.capacity)
        walk = WindowWalk(case.extent, case.tile, [asdict(window) for window in case.windows], ring)
        assert walk.bad == case.bad
        return walk

    async def offered(self, ctx: Any) -> Any:
        """The next tile, taken after a while in which it stays as it is."""
        before = None
        for _ in patient(5000):
            go = self.memory.random.random() < 0.7
            ctx.set(self.dut.tiles.ready, go)
            _, _, valid, got = await ctx.tick().sample(self.dut.tiles.valid, self.dut.tiles.payload)
            assert before is None or (valid and got.as_bits() == before), "a tile that waits has changed"
            before = got.as_bits() if valid else None
            if valid and go:
                break
        ctx.set(self.dut.tiles.ready, 0)
        return got

    async def start_anew(self, ctx: Any) -> None:
        ctx.set(self.reset, 1)
        await ctx.tick()
        ctx.set(self.reset, 0)


def record(got: Any) -> dict[str, Any]:
    """A tile's fields as numbers."""
    ring = {name: int(got.ring[name]) for name in ("kept", "entry", "line", "lines", "metadata", "early")}
    fields = [name for name, _ in got.shape() if name != "ring"]
    return {name: int(got[name]) for name in fields} | {"ring": ring}


def run(extent: Triple, tile: Triple, order: str, density: float = 1.0, *, lanes: int = LANES, **case: Any) -> None:
    """One walk alone."""
    Walks(lanes).run([Case(extent=extent, tile=tile, order=order, density=density, **case)])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("density", [1.0, 0.6, 0.1])
def test_walk(order: str, density: float) -> None:
    run((10, 13, 7), (4, 5, 3), order, density)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("density", [1.0, 0.6, 0.1])
@pytest.mark.parametrize("keep_a", [False, True])
def test_walk_with_parts_that_are_joined(order: str, density: float, keep_a: bool) -> None:
    """Tiles without work are left out but for those of the last k step, which have the parts; k steps have numbers."""
    run((10, 13, 17), (4, 5, 3), order, density, keep_a=keep_a, joined=True)


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
@pytest.mark.parametrize("lanes", [2, 8])
def test_windows(order: str, lanes: int) -> None:
    """Chains at random; the last tile along i is ragged or not. One walk leaves nothing behind for the next."""
    rng = np.random.default_rng(lanes)
    cases = []
    for count, extent_k, tile_k, capacity in (
        (1, 20, 9, 9),
        (3, 20, 20, 20),
        (9, 50, 8, 12),
        (40, 300, 25, 40),
        (60, 90, 6, 9),
    ):
        windows = draw(rng, Chain(lanes, extent_k, tile_k, capacity), count)
        extent = 4 * count - int(rng.integers(4)), 6, extent_k
        # B's map says that nothing is there, and does not count.
        cases.append(
            Case(extent=extent, tile=(4, 6, tile_k), order=order, density=0.0, windows=windows, capacity=capacity)
        )
        if count == 9:
            cases.append(Case(extent=(10, 6, 7), tile=(4, 6, 3), order=order, density=0.6))
    Walks(lanes).run(cases)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("empty", [(), (0,), (2,), (0, 1, 2)])
def test_windows_without_a_coordinate(order: str, empty: tuple[int, ...]) -> None:
    windows = [Window(3, 0) if index in empty else anew(5 * index, 7) for index in range(3)]
    run((10, 9, 20), (4, 100, 7), order, windows=windows)


@pytest.mark.parametrize("lanes", [2, 16])
def test_rings_that_go_round(lanes: int) -> None:
    """In the smallest ring and in one a line larger; windows a row, a line and all but a row apart."""
    cases = []
    for size in (1, 3 * lanes - 1, 3 * lanes):
        steps = {(0, 0), (0, 1), (0, size - 1), (1, lanes), (1, size - 1)}
        for spare, step in sorted((spare, step) for spare, step in steps if step < size):
            metadata = -(-size // lanes) + 1 + spare
            windows = [anew(7, size, lanes, metadata=metadata)]
            windows += [Window(7 + n * step, size, size - step) for n in range(1, 40)]
            extent = len(windows), 9, windows[-1].begin + size
            cases.append(Case(extent=extent, tile=(1, 9, size), order="ijk", windows=windows, capacity=metadata))
    Walks(lanes).run(cases)


@pytest.mark.parametrize("extent_k", [20, TOP])
def test_windows_at_the_limits(extent_k: int) -> None:
    """As long as a tile, up to the last coordinate; an empty one behind it."""
    windows = [anew(extent_k - 7, 7), anew(0, 7), anew(extent_k - 1, 1), Window(extent_k, 0)]
    windows += [anew(extent_k - 9, 7), Window(extent_k - 7, 7, 5), Window(extent_k - 1, 1, 1)]
    run((20, 9, extent_k), (3, 9, 7), "ijk", windows=windows)


@pytest.mark.parametrize("extent_k", [20, TOP])
def test_windows_of_all_of_k(extent_k: int) -> None:
    """Each as long as the largest ring allows, where k is longer."""
    size = min(extent_k, (MOST_LINES - 1) * LANES)
    windows = [anew(0, size), Window(1, size - 1, size - 1), anew(extent_k - size, size)]
    run((15, 9, extent_k), (5, 9, extent_k), "jik", windows=windows, capacity=MOST_LINES)


@pytest.mark.parametrize("lanes", [2, 16])
def test_the_largest_numbers(lanes: int) -> None:
    """All fields that a legal window may fill to the last bit; entries in the last line of the largest ring."""
    size = (MOST_LINES - 1) * lanes
    first = Window(TOP - 2 * size, size, 0, MOST_LINES, MOST_LINES, MOST_LINES)
    later = [Window(first.begin + n, size, size - n, 0, MOST_LINES, MOST_LINES) for n in (1, size // 2)]
    again = [Window(first.begin + size - 1, size, size // 2), Window(TOP - size, size, size - 1), Window(TOP - 1, 1, 1)]
    case = Case(
        extent=(6, 9, TOP), tile=(1, 9, TOP), order="kji", windows=[first, *later, *again], capacity=3 * MOST_LINES
    )
    # A walk does not go on where the sum of the lines, or the end of what is kept, is one too large.
    short = replace(case, capacity=3 * MOST_LINES - 1, bad=0)
    wrong = replace(case, windows=[first, *later, *again[:2], Window(TOP - 1, 1, 2**24 - 1)], bad=5)
    longer = replace(case, windows=[replace(first, size=size + 1)] * 6, bad=0)
    longest = replace(case, windows=[replace(first, begin=0, size=2**24 - 1)] * 6, bad=0)
    before = replace(case, windows=[first, replace(later[0], begin=0)] * 3, bad=1)
    Walks(lanes).run([case, short, wrong, longer, longest, before])


@pytest.mark.parametrize(("order", "at"), [("ijk", 0), ("jki", 2), ("kij", 3)])
def test_bad_windows(order: str, at: int) -> None:
    """Too long, beyond the shape, or so that its end does not fit a word; tiles before it come as ever."""
    cases = []
    for begin, size in ((0, 8), (12, 9), (14, 7), (20, 1), (TOP - 1, 3), (TOP, 7), (TOP, 2**24 - 1), (0, 2**24 - 1)):
        windows = [anew(13, 7), Window(4, 0), anew(0, 7), anew(13, 7)]
        windows[at] = Window(begin, size, 0, MOST_LINES)
        cases.append(
            Case(extent=(10, 9, 20), tile=(3, 9, 7), order=order, windows=windows, capacity=MOST_LINES, bad=at)
        )
    # One without a coordinate has a place, too.
    for begin in (21, 27, TOP):
        windows = [anew(13, 7), Window(4, 0), anew(0, 7), anew(13, 7)]
        windows[at] = Window(begin, 0)
        cases.append(Case(extent=(10, 9, 20), tile=(3, 9, 7), order=order, windows=windows, bad=at))
    Walks(LANES).run(cases)


def borders(lanes: int) -> dict[str, tuple[list[Window], Window, Window]]:
    """Windows that come before, one that is just legal, one that is not; k is 40 ``lanes``, a tile 10, there are 20 lines."""
    n = lanes
    first = Window(5 * n, 6 * n, 0, 8, 2, 5)
    moved = Window(7 * n, 6 * n, 4 * n)
    inside = Window(6 * n, 2 * n, 2 * n)
    nothing = Window(39 * n, 0, 3, 1, MOST_LINES, MOST_LINES)
    other = Window(8 * n, n, 0, 5)
    return {
        "extent": ([first], Window(30 * n, 10 * n, 0, 11), Window(30 * n + 1, 10 * n, 0, 11)),
        "extent, kept": ([Window(33 * n, 6 * n, 0, 9)], Window(36 * n, 4 * n, n), Window(36 * n, 4 * n + 1, n)),
        "extent, empty": ([first], Window(40 * n, 0), Window(40 * n + 1, 0)),
        "tile": ([first], Window(0, 10 * n, 0, 12), Window(0, 10 * n + 1, 0, 12)),
        "tile, kept": (
            [Window(0, 10 * n, 0, 12)],
            Window(n, 10 * n, 9 * n),
            Window(n, 10 * n + 1, 9 * n),
        ),
        "more kept than there are": ([first], Window(5 * n, n, n), Window(5 * n, n, n + 1)),
        "begin": ([first], Window(5 * n, 2 * n, 1), Window(5 * n - 1, 2 * n, 1)),
        "begin, after a move": ([first, moved], Window(7 * n, n, 1), Window(7 * n - 1, n, 1)),
        "begin, after a new chain": ([first, other], Window(8 * n, n, 1), Window(8 * n - 1, n, 1)),
        "end": ([first], Window(8 * n, 4 * n, 3 * n), Window(8 * n, 4 * n, 3 * n + 1)),
        "end, last row": ([first], Window(11 * n - 1, n, 1), Window(11 * n, n, 1)),
        "end, after a move": ([first, moved], Window(12 * n, 2 * n, n), Window(12 * n, 2 * n, n + 1)),
        "end, after a window inside": ([first, inside], Window(10 * n, 2 * n, n), Window(10 * n, 2 * n, n + 1)),
        "end, after a new chain": ([first, other], Window(8 * n, 2 * n, n), Window(8 * n, 2 * n, n + 1)),
        "end, after an empty one": ([first, nothing], Window(8 * n, 4 * n, 3 * n), Window(8 * n, 4 * n, 3 * n + 1)),
        "begin, after an empty one": ([first, nothing], Window(5 * n, 2 * n, 1), Window(5 * n - 1, 2 * n, 1)),
        "nothing there": ([nothing], Window(0, 1, 0, 2), Window(0, 1, 1, 2)),
        "nothing there at all": ([], Window(0, n, 0, 2), Window(0, n, n, 2)),
        "ring": ([first], Window(0, 3 * n, 0, 4), Window(0, 3 * n + 1, 0, 4)),
        "ring, one line less": ([first], Window(0, 3 * n - 1, 0, 4), Window(0, 3 * n - 1, 0, 3)),
        "ring, none": ([first], Window(0, 1, 0, 2), Window(0, 1, 0, 0)),
        # In a chain that of its first window counts, whatever the entry says.
        "ring, kept": ([first], Window(6 * n, 7 * n, 1, 0), Window(6 * n, 7 * n + 1, 1, MOST_LINES)),
        "ring, after a move": ([first, moved], Window(8 * n, 7 * n, 1, 0), Window(8 * n, 7 * n + 1, 1, 20)),
        "ring, after a new chain": ([first, other], Window(8 * n, 4 * n, 1, 0), Window(8 * n, 4 * n + 1, 1, 20)),
        "ring, after an empty one": ([first, nothing], Window(6 * n, 7 * n, 1, 0), Window(6 * n, 7 * n + 1, 1, 20)),
        "room, line": ([first], Window(0, n, 0, 4, 10, 6), Window(0, n, 0, 4, 11, 6)),
        "room, lines": ([first], Window(0, n, 0, 4, 10, 6), Window(0, n, 0, 4, 10, 7)),
        "room, metadata": ([first], Window(0, n, 0, 4, 10, 6), Window(0, n, 0, 5, 10, 6)),
        "room, only metadata": ([first], Window(0, n, 0, 20), Window(0, n, 0, 21)),
        "room, kept": ([first], Window(6 * n, n, n, MOST_LINES, 5, 7), Window(6 * n, n, n, 0, 5, 8)),
        "room, after a move": ([first, moved], Window(8 * n, n, 1, 15, 12, 0), Window(8 * n, n, 1, 0, 13, 0)),
        "room, after a new chain": ([first, other], Window(8 * n, n, 1, 15, 1, 14), Window(8 * n, n, 1, 0, 1, 15)),
        "room, far": ([first], Window(6 * n, n, n, 0, 0, 12), Window(6 * n, n, n, 0, MOST_LINES, MOST_LINES)),
    }


@pytest.mark.parametrize("lanes", [2, 8])
def test_borders_of_the_ring(lanes: int) -> None:
    """By the contract: the legal window comes as a tile, its neighbour ends the walk."""
    cases = []
    for before, legal, wrong in borders(lanes).values():
        for window in (legal, wrong):
            windows = [*before, window, Window(0, 0), Window(0, 1, 0, 2)]
            cases.append(
                Case(
                    extent=(len(windows), 9, 40 * lanes),
                    tile=(1, 9, 10 * lanes),
                    order=ORDERS[len(cases) % 6],
                    windows=windows,
                    capacity=20,
                    bad=len(before) if window is wrong else None,
                )
            )
    Walks(lanes).run(cases)


def test_nothing_stays_in_place_from_one_walk_to_the_next() -> None:
    """Neither after one that came to its end nor after a reset anywhere in its chain."""
    rng = np.random.default_rng(5)
    whole = Case(extent=(30, 9, 60), tile=(1, 9, 9), order="ijk", capacity=12)
    cases = []
    for cut in (None, 1, 2, 7, 15, 29):
        # The last window that is taken begins anew, so that rows from 0 on are there.
        windows = draw(rng, Chain(LANES, 60, 9, 12), (cut or 30) - 1)
        windows += [anew(0, 9)] * (30 - len(windows))
        keeps = Case(extent=(2, 9, 60), tile=(1, 9, 9), order="ijk", windows=[Window(0, 9, 1, 6)] * 2, bad=0)
        again = replace(whole, windows=draw(rng, Chain(LANES, 60, 9, 12), 30))
        cases += [replace(whole, windows=windows, cut=cut), keeps, replace(whole, windows=windows, cut=cut), again]
    Walks(LANES).run(cases)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("tile_i", [4, 10])
def test_positions_move_on_at_the_load_of_a_kept_tile(order: str, tile_i: int) -> None:
    """By the definition: the load of a stay after which the tile never comes back advances, no other load does.

    Nothing is skipped, so that the walk alone says which visits load.
    """
    full = np.ones((3, 3), np.bool_), np.ones((3, 3), np.bool_)
    visits = list(TileWalk((10, 13, 7), (tile_i, 5, 3), order, *full, line_bits=128, keep_a=True))
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
