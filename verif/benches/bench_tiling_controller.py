"""Tiling controller against its contract: every tile in order, ragged edges, empty tiles, begin positions, windows of k.

Testplan: ``verif/testplans/tiling_controller.toml``. What begin positions mean is checked by keeping them, as the accessors do:
a visited tile must find its segments at or after the position that it is told to begin from.
"""

import itertools
from dataclasses import dataclass, field
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from verif.agents.client_memory import ClientMemory
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

ORDERS = ("ijk", "ikj", "jik", "jki", "kij", "kji")  # outermost first; the index is the register's value
A_MAP, B_MAP, MEMORY_BYTES = 0x100, 0x800, 0x1000
TOP = 2**32 - 1
coverage = Coverage("tiling_controller")
Triple = tuple[int, int, int]


@dataclass
class Walk:
    """Tiles in order, which of them must be announced, and what must be said of each."""

    extent: Triple
    tile: Triple
    order: str
    occupied_a: Any
    occupied_b: Any
    positions_a: dict[int, int] = field(default_factory=dict)  # by i tile: columns passed in its rows
    positions_b: dict[int, int] = field(default_factory=dict)  # by k tile
    loaded: tuple[int, int] | None = None
    last_k_step: int | None = None

    def __post_init__(self) -> None:
        self.counts = tuple(-(-n // t) for n, t in zip(self.extent, self.tile, strict=True))
        ranks = ["ijk".index(rank) for rank in self.order]
        self.todo: list[Triple] = []
        for steps in itertools.product(*(range(self.counts[rank]) for rank in ranks)):
            step = dict(zip(self.order, steps, strict=True))
            self.todo.append((step["i"], step["j"], step["k"]))
        self.at = 0
        self.partial: set[tuple[int, int]] = set()
        self.skipped = 0

    def empty(self, index: Triple) -> bool:
        return not (self.occupied_a[index[0], index[2]] and self.occupied_b[index[2], index[1]])

    def may_skip(self, index: Triple) -> bool:
        return self.empty(index) and self.order[2] == "k" and index[2] != self.counts[2] - 1

    def check(self, got: dict[str, int]) -> list[str]:
        """What is wrong with the next announced tile."""
        begin = got["begin_i"], got["begin_j"], got["begin_k"]
        while self.at < len(self.todo) and self._begin(self.todo[self.at]) != begin:
            if not self.may_skip(self.todo[self.at]):
                return [f"tile {begin} came, {self._begin(self.todo[self.at])} must be next"]
            self.at += 1
            self.skipped += 1
        if self.at == len(self.todo):
            return [f"tile {begin} came out of order"]
        index = self.todo[self.at]
        self.at += 1
        wanted = self._fields(index)
        wrong = [
            f"{name} is {got[name]}, expected {value} at {begin}"
            for name, value in wanted.items()
            if got[name] != value
        ]
        if got["carry"] and not self.empty(index):
            wrong.append(f"tile {begin} is not empty but only carries")
        self.partial.add(index[:2])
        self.last_k_step = index[2]
        if not got["carry"]:
            wrong += self._positions(index, got)
        coverage.hit("carried", bool(got["carry"]))
        coverage.hit("visited_though_empty", self.empty(index) and not got["carry"])
        return wrong

    def _begin(self, index: Triple) -> Triple:
        i, j, k = (n * t for n, t in zip(index, self.tile, strict=True))
        return i, j, k

    def _fields(self, index: Triple) -> dict[str, int]:
        begin = self._begin(index)
        fields = {}
        for rank, name in enumerate("ijk"):
            fields[f"size_{name}"] = min(self.tile[rank], self.extent[rank] - begin[rank])
            coverage.hit("ragged", fields[f"size_{name}"] < self.tile[rank] and index[rank] > 0)
        return fields | {
            "last_k": int(index[2] == self.counts[2] - 1),
            "whole_j": int(self.tile[1] >= self.extent[1]),
            "whole_k": int(self.tile[2] >= self.extent[2]),
            "partial_in": int(index[:2] in self.partial),
            "k_step": int(self.last_k_step != index[2]),
            "position_index": index[1] * (self.extent[0] + self.counts[0]) + begin[0] + index[0],
            "last": int(self.at == len(self.todo)),
        }

    def _positions(self, index: Triple, got: dict[str, int]) -> list[str]:
        """Positions begin as copies of the row pointers; a visit with ``advance`` leaves that of the next segment."""
        begin, wrong = self._begin(index), []
        known = 0 if got["from_pointers_a"] else self.positions_a.get(index[0], 0)
        if known > begin[2]:
            wrong.append(f"A's positions are at column {known} already, tile {begin} begins before")
        if got["advance_a"]:
            self.positions_a[index[0]] = begin[2] + got["size_k"]
        if self.loaded != (index[2], index[1]):  # B's part of the tile before is not fetched again
            self.loaded = (index[2], index[1])
            known = 0 if got["from_pointers_b"] else self.positions_b.get(index[2], 0)
            if known > begin[1]:
                wrong.append(f"B's positions are at column {known} already, tile {begin} begins before")
            if got["advance_b"]:
                self.positions_b[index[2]] = begin[1] + got["size_j"]
        return wrong


@dataclass
class WindowWalk:
    """One tile for each along i, whatever the order: with its window it has all of k that its rows need, and all of j.

    windows: begin and size of each, up to the first that is not legal, which is ``bad``.
    """

    extent: Triple
    tile: Triple
    windows: list[tuple[int, int]]
    at: int = 0
    skipped: int = 0
    bad: int | None = None

    def __post_init__(self) -> None:
        legal = [size <= self.tile[2] and begin + size <= self.extent[2] for begin, size in self.windows]
        self.bad = next((n for n, fits in enumerate(legal) if not fits), None)
        self.todo = self.windows[: self.bad]

    @property
    def entries(self) -> int:
        """How many windows are looked at."""
        return len(self.todo) + (self.bad is not None)

    def check(self, got: dict[str, int]) -> list[str]:
        if self.at == len(self.todo):
            return [f"a tile came after window {self.bad}, which is not legal"]
        index, before = self.at, self.windows[max(0, self.at - 1)]
        self.at += 1
        row = index * self.tile[0]
        begin, size = self.windows[index]
        wanted = {
            "begin_i": row,
            "size_i": min(self.tile[0], self.extent[0] - row),
            "begin_j": 0,
            "size_j": self.extent[1],
            "begin_k": begin,
            "size_k": size,
            "carry": int(not size),
            "k_step": int(index == 0),
            "position_index": row + index,
            "last": int(index == len(self.windows) - 1),
        }
        # Nothing comes back to these rows, and nothing was there before.
        wanted |= dict.fromkeys(("last_k", "whole_j", "whole_k", "from_pointers_a", "from_pointers_b"), 1)
        wanted |= dict.fromkeys(("partial_in", "advance_a", "advance_b"), 0)
        coverage.hit("window", size > 0)
        coverage.hit("empty_window", not size)
        coverage.hit("same_window", index > 0 and size > 0 and before == (begin, size))
        coverage.hit("ragged", index > 0 and wanted["size_i"] < self.tile[0])
        return [
            f"{name} is {got[name]}, expected {value} with window {index}"
            for name, value in wanted.items()
            if got[name] != value
        ]


class ControllerBench(StreamBench):
    """Configures, starts, checks each tile as it comes."""

    def __init__(self, dut: Any, backpressure: str = "none", seed: int = 1) -> None:
        super().__init__(dut, receive=["tiles"], backpressure=backpressure, zero=("config", "start"), seed=seed)
        self.memory = ClientMemory(dut, self.block, MEMORY_BYTES, 8 * int(self.block.parameters["lanes"]))
        for n in range(2):
            self.memory.reader(
                f"read_request__{n}", f"read_data__{n}", *(self.pattern(backpressure, f"{what}{n}") for what in "gd")
            )
        self.helpers = [self.memory]
        self.walk: Walk | WindowWalk | None = None
        self.ended = False

    async def begin_walk(self, extent: Triple, tile: Triple, order: str, density: float, *, maps: bool = True) -> None:
        rng = np.random.default_rng(self.rng.getrandbits(32))
        counts = [-(-n // t) for n, t in zip(extent, tile, strict=True)]
        occupied = [rng.random((counts[0], counts[2])) < density, rng.random((counts[2], counts[1])) < density]
        if not maps:
            occupied = [np.ones_like(flags) for flags in occupied]
        for address, flags in zip((A_MAP, B_MAP), occupied, strict=True):
            self.memory.store(address, np.packbits(flags.ravel(), bitorder="little"))
        self.walk = Walk(extent, tile, order, occupied[0], occupied[1])
        self.ended = False
        config = {"extent": extent, "tile": tile, "tiles": counts, "order": ORDERS.index(order)}
        await self._begin(config | ({"a_map": A_MAP, "b_map": B_MAP} if maps else {}))
        coverage.hit(f"order_{order}")
        coverage.hit("no_map", not maps)
        coverage.hit("single", counts == [1, 1, 1])
        coverage.hit("long_map", counts[0] * counts[2] > 8 * self.memory.line_bytes)

    async def begin_windows(
        self, extent: Triple, tile: Triple, order: str, windows: list[tuple[int, int]] | None = None
    ) -> None:
        """Windows at random where none are given; B's map says that nothing is there, and is not asked."""
        counts = [-(-n // t) for n, t in zip(extent, tile, strict=True)]
        windows = windows or self.legal_windows(counts[0], extent[2], tile[2])
        self.memory.store(A_MAP, np.array(windows, np.uint32))
        self.memory.store(B_MAP, np.zeros(self.memory.line_bytes, np.uint8))
        self.walk = WindowWalk(extent, tile, windows)
        self.ended = False
        self.memory.beats = dict.fromkeys(self.memory.beats, 0)
        config = {"extent": extent, "tile": tile, "tiles": counts, "order": ORDERS.index(order), "windows": 1}
        await self._begin(config | {"a_map": A_MAP, "b_map": B_MAP})

    def legal_windows(self, count: int, extent: int, tile: int) -> list[tuple[int, int]]:
        """Some have no coordinate, some are as long as a tile, some end where the shape does, some are as the one before."""
        windows: list[tuple[int, int]] = []
        for _ in range(count):
            size = self.rng.choice([0, 1, tile, self.rng.randint(0, tile)])
            begin = self.rng.choice([0, extent - size, self.rng.randint(0, extent - size)])
            windows.append(self.rng.choice([(begin, size), (windows or [(begin, size)])[-1]]))
        return windows

    async def _begin(self, config: dict[str, Any]) -> None:
        self.set("config", config)
        self.dut.start.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.start.value = 0

    def every_cycle(self) -> None:
        if not int(self.dut.bad_window.value):
            return
        bad = self.walk.bad if isinstance(self.walk, WindowWalk) else None
        if bad is None or int(self.dut.window_index.value) != bad:
            self.board.fail(f"window {int(self.dut.window_index.value)} is told to be wrong, not {bad}")
        coverage.hit("bad_window")

    def came(self, port: str, item: Any) -> None:
        if self.walk is None or self.ended:
            self.board.fail(f"a tile too many: {item}")
            return
        for problem in self.walk.check(item):
            self.board.fail(problem)
        self.ended = bool(item["last"]) or bool(self.board.failures)

    async def end_windows(self) -> None:
        """Ends the walk where it should; each beat of the table has then been read once."""
        assert isinstance(self.walk, WindowWalk)
        if self.walk.bad is None:
            await self.end_walk()
        else:
            wrong = self.dut.bad_window
            await self.wait(lambda: bool(int(wrong.value) or self.board.failures), "the wrong window is not told")
            await self.settle()
            assert int(wrong.value), "a walk goes on after a wrong window"
            assert self.walk.at == len(self.walk.todo)
        lines = -(-8 * self.walk.entries // self.memory.line_bytes)
        assert self.memory.beats == {"read_request__0": lines, "read_request__1": 0}

    async def end_walk(self) -> None:
        await self.wait(lambda: self.ended, "the walk does not end")
        await self.settle()
        assert self.walk is not None and self.walk.at == len(self.walk.todo)
        coverage.hit("skipped", self.walk.skipped > 0)
        coverage.hit("refused", self.monitors["tiles"].stalled_cycles > 0)


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(order=ORDERS, density=[1.0, 0.6, 0.2])
async def every_order(dut: Any, order: str, density: float) -> None:
    """All ranks cut with ragged edges, tiles full and empty."""
    bench = ControllerBench(dut, "random", seed=int(10 * density))
    await bench.start()
    for extent, tile in (((10, 13, 7), (4, 5, 3)), ((6, 6, 6), (2, 3, 2))):
        await bench.begin_walk(extent, tile, order, density)
        await bench.end_walk()
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES)
async def every_shape(dut: Any, backpressure: str) -> None:
    """One tile, tiles of one, tiles wider than their rank, maps longer than a beat, no maps; drawn at random too."""
    bench = ControllerBench(dut, backpressure)
    await bench.start()
    shapes: list[tuple[Triple, Triple, bool]] = [
        ((10, 13, 7), (10, 13, 7), True),
        ((3, 4, 5), (1, 1, 1), True),
        ((10, 4, 7), (10, 4, 100), True),
        ((40, 6, 60), (2, 3, 5), True),
        ((9, 9, 9), (4, 4, 4), False),
        ((1, 1, 1), (9, 9, 9), True),
    ]
    for extent, tile, maps in shapes:
        await bench.begin_walk(extent, tile, bench.rng.choice(ORDERS), 0.5, maps=maps)
        await bench.end_walk()
    for _ in range(8):
        extent, tile = ((bench.rng.randint(1, n), bench.rng.randint(1, n), bench.rng.randint(1, n)) for n in (12, 6))
        await bench.begin_walk(extent, tile, bench.rng.choice(ORDERS), bench.rng.random())
        await bench.end_walk()
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(order=ORDERS, backpressure=["none", "random"])
async def windows(dut: Any, order: str, backpressure: str) -> None:
    """Tiles with a window each, between walks without; wrong windows end the walk, legal ones at the limits do not."""
    bench = ControllerBench(dut, backpressure)
    await bench.start()
    for count in (1, 2, 7, 40):
        rows = 4 * count - bench.rng.randrange(4)
        await bench.begin_windows((rows, 6, 30), (4, bench.rng.choice([6, 100]), 8), order)
        await bench.end_windows()
        await bench.begin_walk((5, 7, 6), (2, 7, 4), order, 0.7)
        await bench.end_walk()
    await bench.begin_windows((10, 6, TOP), (5, 6, TOP), order, [(0, TOP), (TOP, 0)])
    await bench.end_windows()
    for wrong in ((0, 9), (22, 9), (23, 8), (30, 1), (31, 0), (TOP, 0), (TOP, 2), (TOP - 3, 8), (2, TOP), (TOP, TOP)):
        legal = [*bench.legal_windows(bench.rng.randrange(5), 30, 8), (22, 8)]
        await bench.begin_windows((3 * len(legal) + 4, 6, 30), (3, 6, 8), order, [*legal, wrong, (0, 8)])
        await bench.end_windows()
        await bench.restart()
    coverage.save()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset ends the walk, also while a map or a table is being read; the next one begins with the first tile."""
    bench = ControllerBench(dut, "fourth")
    await bench.start()
    for wait in (5, 47, 120):
        await bench.begin_walk((12, 12, 12), (3, 3, 3), "kij", 0.7)
        await bench.cycles(wait)
        assert not bench.ended
        coverage.hit("reset")
        await bench.restart()
        bench.walk = None
        await bench.cycles(10)
        bench.board.check()
    await bench.begin_walk((7, 8, 9), (3, 3, 3), "jki", 0.7)
    await bench.end_walk()
    for wait in range(1, 25):
        await bench.begin_windows((60, 6, 30), (2, 6, 8), "ijk")
        await bench.cycles(wait)
        assert not bench.ended
        await bench.restart()
    await bench.begin_windows((9, 6, 30), (2, 6, 8), "ijk")
    await bench.end_windows()
    coverage.save()
