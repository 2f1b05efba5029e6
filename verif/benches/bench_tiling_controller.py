"""Tiling controller against its contract: every tile in order, ragged edges, empty tiles, begin positions, windows of k.

Testplan: ``verif/testplans/tiling_controller.toml``. ``verif/benches/walk.py`` knows what must be announced.
"""

from dataclasses import replace
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from verif.agents.client_memory import ClientMemory
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.stream_bench import StreamBench
from verif.benches.walk import ORDERS, Ring, Triple, Walk, Window, WindowWalk, coverage, window

A_MAP, B_MAP, MEMORY_BYTES = 0x100, 0x800, 0x1000
TOP = 2**32 - 1
# An entry of the table of windows: bits of each field, from the lowest one on.
FIELDS = {"begin": 32, "line": 16, "lines": 16, "size": 24, "kept": 23, "early": 1, "metadata": 16}
ENTRY_BYTES, MOST_LINES = 16, 2**16 - 1


class ControllerBench(StreamBench):
    """Configures, starts, checks each tile as it comes."""

    def __init__(self, dut: Any, backpressure: str = "none", seed: int = 1) -> None:
        super().__init__(dut, receive=["tiles"], backpressure=backpressure, zero=("settings", "start"), seed=seed)
        self.lanes = int(self.block.parameters["lanes"])
        self.memory = ClientMemory(dut, self.block, MEMORY_BYTES, 8 * self.lanes)
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
        self, extent: Triple, tile: Triple, order: str, capacity: int, windows: list[Window] | None = None
    ) -> None:
        """Windows at random where none are given; B's map is empty, and must not be read."""
        counts = [-(-n // t) for n, t in zip(extent, tile, strict=True)]
        ring = Ring(self.lanes, extent[2], tile[2], capacity)
        windows = windows or self.legal_windows(replace(ring), counts[0])
        assert A_MAP + ENTRY_BYTES * len(windows) <= B_MAP
        for n, want in enumerate(windows):
            bits, at = 0, 0
            for name, width in FIELDS.items():
                bits |= want[name] << at
                at += width
            entry = np.frombuffer(bits.to_bytes(ENTRY_BYTES, "little"), np.uint8)
            self.memory.store(A_MAP + ENTRY_BYTES * n, entry)
        self.memory.store(B_MAP, np.zeros(self.memory.line_bytes, np.uint8))
        self.walk = WindowWalk(extent, tile, windows, ring)
        self.ended = False
        self.memory.beats = dict.fromkeys(self.memory.beats, 0)
        config = {"extent": extent, "tile": tile, "tiles": counts, "order": ORDERS.index(order), "gathered": 1}
        await self._begin(config | {"capacity": capacity, "a_map": A_MAP, "b_map": B_MAP})

    def number(self, low: int, high: int) -> int:
        """Either end is as likely as all between."""
        return self.rng.choice([low, high, self.rng.randint(low, high)])

    def legal_windows(self, ring: Ring, count: int) -> list[Window]:
        """Chains that go on, begin anew in another ring, repeat a window and pass over windows without a coordinate."""
        windows: list[Window] = []
        for _ in range(count):
            want = self._legal_window(ring, windows[-1] if windows else None)
            want["early"] = self.rng.getrandbits(1)
            if want["size"]:
                line = self.number(0, ring.capacity - (ring.metadata if want["kept"] else want["metadata"]))
                lines = ring.capacity - (ring.metadata if want["kept"] else want["metadata"]) - line
                want |= {"line": line, "lines": self.number(0, lines)}
                assert not ring.breaches(want)
                ring.take(want)
            windows.append(want)
        return windows

    def _legal_window(self, ring: Ring, before: Window | None) -> Window:
        """Without its lines; what does not count is anything."""
        kind = self.rng.random()
        anything = {name: self.rng.getrandbits(16) for name in ("kept", "metadata", "line", "lines")}
        if kind < 0.1:
            return window(self.number(0, ring.extent), 0) | anything
        if kind < 0.25 or not ring.entries:
            size = self.number(1, min(ring.tile, ring.extent, ring.longest(ring.capacity)))
            least = -(-size // ring.lanes) + 1
            metadata = self.number(least, min(ring.capacity, least + 2))
            return window(self.number(0, ring.extent - size), size, 0, metadata)
        longest = min(ring.tile, ring.longest(ring.metadata))
        first, end = min(ring.entries), max(ring.entries) + 1
        if kind < 0.35 and before and before["size"]:
            return window(before["begin"], before["size"], before["size"], anything["metadata"])
        # Mostly on, and by little, so that chains are long.
        begin = self.rng.choice([first, min(end - 1, first + self.rng.randint(0, 3)), self.number(first, end - 1)])
        kept = self.number(1, min(end - begin, longest))
        return window(begin, self.number(kept, min(longest, ring.extent - begin)), kept, anything["metadata"])

    def borders(self, ring: Ring) -> list[tuple[Window, Window]]:
        """For each rule windows that just keep and just break it, after the last window of ``ring``."""
        lanes, extent, tile = ring.lanes, ring.extent, ring.tile
        first, end = min(ring.entries), max(ring.entries) + 1
        longest = ring.longest(ring.metadata)

        def anew(begin: int, size: int, **fields: int) -> Window:
            return window(begin, size, 0, -(-size // lanes) + 1) | fields

        def on(begin: int, size: int, kept: int, **fields: int) -> Window:
            return window(begin, size, kept, self.rng.choice([0, MOST_LINES])) | fields

        pairs = [
            (anew(extent - tile, tile), anew(extent - tile + 1, tile)),
            (anew(extent - 1, 1), anew(extent, 1)),
            (anew(extent - 1, 1), anew(TOP, 1)),
            (window(extent, 0, 7, 7), window(extent + 1, 0, 7, 7)),
            (window(extent, 0), window(TOP, 0)),
            (anew(0, tile), anew(0, tile + 1)),
            (on(first, 2, 2), on(first, 2, 3)),
            (on(first, 3, 1), on(first - 1, 3, 1)),
            (on(first, 3, 1), on(0, 3, 1)),
            (on(end - 2, 3, 2), on(end - 2, 3, 3)),
            (on(end - 1, 1, 1), on(end, 1, 1)),
            (on(first, longest, 1), on(first, longest + 1, 1)),
            (anew(0, 2 * lanes), anew(0, 2 * lanes + 1, metadata=3)),
            (anew(0, 1), anew(0, 1, metadata=1)),
            (anew(0, 1), anew(0, tile, metadata=0)),
        ]
        for make, metadata in ((anew(0, 1), 2), (on(first, 2, 1), ring.metadata)):
            line = self.rng.randrange(ring.capacity - metadata)
            fits = {"line": line, "lines": ring.capacity - metadata - line}
            for name in fits:
                pairs.append((make | fits, make | fits | {name: fits[name] + 1}))
            pairs.append((make | fits, make | {"line": MOST_LINES, "lines": MOST_LINES}))
        full = anew(0, 1, line=1, lines=ring.capacity - 3)
        return [*pairs, (full, full | {"metadata": 3})]

    def chained(self, ring: Ring) -> tuple[Ring, list[Window]]:
        """A few windows, of which the last two are the begin of a chain: ring and windows. It keeps clear of both ends of k."""
        ring = replace(ring)
        windows = self.legal_windows(ring, self.rng.randrange(6))
        lanes, begin = ring.lanes, self.rng.randint(2, ring.extent - 12 * ring.lanes)
        for want in (window(begin, 3 * lanes, 0, 5, 1, 2), window(begin + 1, 4 * lanes, 2 * lanes, 0, 3, 4)):
            assert not ring.breaches(want)
            ring.take(want)
            windows.append(want)
        return ring, windows

    async def _begin(self, config: dict[str, Any]) -> None:
        self.set("settings", config)
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
            assert self.walk.ended
            for rule in self.walk.rules:
                coverage.hit(f"bad_{rule}", len(self.walk.rules) == 1)
        lines = -(-ENTRY_BYTES * self.walk.entries // self.memory.line_bytes)
        assert self.memory.beats == {"read_request__0": lines, "read_request__1": 0}

    async def end_walk(self) -> None:
        await self.wait(lambda: self.ended, "the walk does not end")
        await self.settle()
        assert self.walk is not None and self.walk.ended
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
    """Tiles with a window each, between walks without; windows at the limits are legal. Nothing stays for the next walk."""
    bench = ControllerBench(dut, backpressure)
    await bench.start()
    for count in (1, 2, 7, 40, 100):
        rows = 4 * count - bench.rng.randrange(4)
        tile = 4, bench.rng.choice([6, 100]), 4 * bench.lanes
        await bench.begin_windows((rows, 6, 30 * bench.lanes), tile, order, bench.rng.randint(4, 9))
        await bench.end_windows()
        await bench.begin_walk((5, 7, 6), (2, 7, 4), order, 0.7)
        await bench.end_walk()
    far = [window(TOP - 9, 8, 0, MOST_LINES, MOST_LINES, MOST_LINES), window(TOP - 7, 7, 6), window(TOP, 0)]
    await bench.begin_windows((15, 6, TOP), (5, 6, TOP), order, 3 * MOST_LINES, far)
    await bench.end_windows()
    # Resident rows of the last walk are gone in the next one.
    await bench.begin_windows((5, 6, TOP), (5, 6, TOP), order, 3 * MOST_LINES, far[1:2])
    await bench.end_windows()
    await bench.restart()
    await bench.begin_windows((15, 6, TOP), (5, 6, TOP), order, 3 * MOST_LINES - 1, far)
    await bench.end_windows()
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(order=ORDERS, backpressure=["none", "random"])
async def wrong_windows(dut: Any, order: str, backpressure: str) -> None:
    """After any chain, a window that just keeps a rule is a tile, and one that just breaks it ends the walk."""
    bench = ControllerBench(dut, backpressure)
    await bench.start()
    lanes, capacity = bench.lanes, 12
    ring = Ring(lanes, 40 * lanes, 5 * lanes, capacity)
    numbers = range(len(bench.borders(bench.chained(ring)[0])))
    for number in numbers:
        so_far, windows = bench.chained(ring)
        legal, wrong = bench.borders(so_far)[number]
        assert not so_far.breaches(legal) and so_far.breaches(wrong), (legal, wrong)
        # The same chain once more, for the legal window may have begun another.
        repeated = windows[-2:]
        windows = [*windows, legal, *repeated, wrong, window(0, 1, 0, 2)]
        await bench.begin_windows((len(windows), 6, ring.extent), (1, 6, ring.tile), order, capacity, windows)
        assert isinstance(bench.walk, WindowWalk) and bench.walk.bad == len(windows) - 2
        await bench.end_windows()
        await bench.restart()
    for first in (window(0, 3, 1, 5), window(0, 3, 3, 5)):
        await bench.begin_windows((2, 6, 20), (1, 6, 8), order, capacity, [first, window(0, 3, 0, 5)])
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
        await bench.begin_windows((60, 6, 30), (2, 6, 8), "ijk", 9, [window(0, 8, 0, 5)] * 30)
        await bench.cycles(wait)
        assert not bench.ended
        await bench.restart()
        # No row of that chain is resident any more.
        await bench.begin_windows((2, 6, 30), (2, 6, 8), "ijk", 9, [window(0, 8, 2, 5)])
        await bench.end_windows()
        await bench.restart()
    await bench.begin_windows((9, 6, 30), (2, 6, 8), "ijk", 9)
    await bench.end_windows()
    coverage.save()
