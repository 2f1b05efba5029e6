"""Accessor of B: the metadata of each fiber segment of a tile, and the data that they point to, during the load and after it.

Testplan: ``verif/testplans/accessor_b.toml``.
"""

from collections import deque
from typing import Any

import cocotb

from verif.agents.client_memory import ClientMemory
from verif.agents.pauses import PATTERN_NAMES
from verif.agents.sram import SramAgent
from verif.agents.stream import bits_of
from verif.benches.partition import (
    Load,
    LoadWatch,
    Partition,
    Segment,
    Window,
    Write,
    data_lines,
    listed_rows,
    placed,
    rows_of_all_lengths,
)
from verif.benches.planned_rows import PlannedRows, PlannedTile
from verif.benches.sparse import Operand, tiles_of
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

POINTERS, POSITIONS, ELEMENTS, MEMORY_BYTES = 0x1000, 0x2000, 0x4000, 0x10000
BASE, FIFO = 5, 4
READ_CLIENTS = ("positions", "pointers", "elements", "elements_second", "elements_later")
coverage = Coverage("accessor_b")


class AccessorBBench(StreamBench):
    """Loads tiles and compares writes, outputs and `settled` with a model of the partition."""

    def __init__(self, dut: Any, backpressure: str = "none", seed: int = 1) -> None:
        zero = ("gathered", "by_list", "planned", "base", "lines", "fifo_lines", "pointers", "positions", "elements")
        super().__init__(dut, drive=["tile"], idle=backpressure, backpressure=backpressure, zero=zero, seed=seed)
        lanes = self.lanes = int(self.block.parameters["lanes"])
        self.memory = ClientMemory(dut, self.block, MEMORY_BYTES, 8 * lanes)
        for n in range(len(READ_CLIENTS)):
            patterns = (self.pattern(backpressure, f"{what} {n}") for what in ("grant", "data"))
            self.memory.reader(f"read_request__{n}", f"read_data__{n}", *patterns)
        patterns = (self.pattern(backpressure, what) for what in ("write grant", "write data"))
        self.memory.writer("write_request", "write_data", *patterns)
        sram = SramAgent(dut, self.block, lanes)
        self.writes = []
        for n in range(2):
            sram.writer(f"sram_write__{n}", self.pattern(backpressure, f"sram write {n}"))
            pins = [getattr(dut, f"sram_write__{n}__{pin}") for pin in ("valid", "ready", "payload")]
            self.writes.append((pins, self.block.layout(f"sram_write__{n}")))
        self.helpers = [self.memory, sram]
        self.coming: deque[Load] = deque()
        self.watch: LoadWatch | None = None
        self.beats: dict[str, int] = {}  # when the present load began

    async def configure(self, operand: Operand, lines: int, row_list: list[int] | None = None) -> None:
        """``row_list``: windows are of this list of rows."""
        self.operand = operand
        self.lines = lines
        self.partition = Partition(operand, lanes=self.lanes, base=BASE, lines=lines, fifo=FIFO, row_list=row_list)
        self.watch = LoadWatch(self.lanes, BASE + lines - 1, self.board.fail)
        self.memory.store(POINTERS, self.partition.pointers)
        self.memory.store(POSITIONS, self.partition.positions)
        self.memory.store(ELEMENTS, operand.nonzeros)
        values = {"base": BASE, "lines": lines, "fifo_lines": FIFO, "pointers": POINTERS, "positions": POSITIONS}
        for name, value in (values | {"elements": ELEMENTS, "by_list": int(row_list is not None)}).items():
            getattr(self.dut, name).value = value
        await self.cycles(1)

    async def windowed(self, gathered: bool) -> None:
        """Later tiles are windows of k, or are not."""
        self.dut.gathered.value = int(gathered)
        await self.cycles(1)

    async def load(self, tile: dict[str, int]) -> None:
        """An ordinary tile."""
        self.announce(tile)
        await self.settle()

    def announce(self, tile: dict[str, int]) -> None:
        """Sends an ordinary tile; its ring fields have no meaning."""
        ring = {name: self.rng.getrandbits(16) for name in ("kept", "entry", "line", "lines", "metadata")}
        rows = range(tile["begin_k"], tile["begin_k"] + tile["size_k"])
        found = [self.operand.segment(row, tile["begin_j"], tile["size_j"]) for row in rows]
        resident = self.resident([len(nonzeros) for nonzeros in found])
        segments: list[Segment] = []
        used = 0
        for n, (row, nonzeros) in enumerate(zip(rows, found, strict=True)):
            fits = used + len(nonzeros) <= resident
            place = BASE * self.lanes + used if fits else None
            segments.append(Segment(n, nonzeros, place, self.operand.position(row, tile["begin_j"])))
            used += len(nonzeros) if fits else 0
            coverage.hit("empty_segment", not nonzeros)
        metadata = -(-len(rows) // self.lanes)
        self.begin(
            tile | {"ring": ring},
            Load(segments, 0, range(BASE, BASE + self.lines - metadata)),
            occupied=metadata + -(-resident // self.lanes),
            fifo_base=BASE + self.lines - metadata - FIFO,
        )
        coverage.hit("empty_tile", not any(found))
        coverage.hit("whole_rows" if tile["whole_j"] else "segments")

    def resident(self, lengths: list[int]) -> int:
        """Resident nonzeros: all if they fit with the region's lines, else the segments before the region."""
        capacity = self.lanes * (self.lines - -(-len(lengths) // self.lanes))
        regular = capacity - self.lanes * FIFO
        first, _ = placed(lengths, regular, capacity)
        total, resident = sum(lengths), sum(lengths[:first])
        if first == len(lengths):
            coverage.hit("fits" if total <= regular else "fits_with_region")
        else:
            coverage.hit("bumped")
            coverage.hit("nothing_fits", resident == 0)
        return resident

    def move(self, count: int, anew: float = 0.04) -> None:
        """Sends this many windows, back to back; the first one begins anew."""
        for n in range(count):
            window = self.partition.draw(self.rng, anew=anew if n else 1)
            before = list(self.partition.live.values())
            load = self.partition.load(window)
            self.begin(
                window.tile(self.operand.columns),
                load,
                occupied=self.partition.occupied,
                fifo_base=BASE + self.lines - window.metadata - FIFO,
                **dict.fromkeys(READ_CLIENTS, 0) | self.partition.reads(window),
            )
            self.cover(window, load, bool(n), before)

    async def plan(self, operand: Operand, lines: int, metadata: int, tiles: int) -> PlannedRows:
        """Sends tiles whose rows go where a list says."""
        sizes = {"lanes": self.lanes, "base": BASE, "lines": lines, "fifo": FIFO, "metadata": metadata}
        planned = PlannedRows(operand, self.rng, tiles=tiles, **sizes)
        await self.configure(operand, lines, [])
        self.memory.store(POSITIONS, planned.positions)
        self.memory.store(POINTERS, planned.pointers)
        self.dut.planned.value = 1
        await self.windowed(True)
        for tile in planned.tiles:
            self.begin(
                tile.announced(operand.columns),
                tile.load,
                occupied=tile.occupied,
                fifo_base=BASE + lines - metadata - FIFO,
                **dict.fromkeys(READ_CLIENTS, 0) | planned.reads(tile),
            )
            self.cover_planned(tile, planned.capacity)
        return planned

    def cover_planned(self, tile: PlannedTile, capacity: int) -> None:
        new = tile.load.segments[1:]
        standing = tile.load.standing or []
        lines = [data_lines(segment, self.lanes) for segment in new]
        hits = {
            "goes_by": any(segment.nonzeros and segment.position is None for segment in new),
            "all_go_by": not tile.placed,
            "empty": any(not segment.nonzeros for segment in new[: tile.placed]),
            "last_line": any(BASE + capacity - 1 in of for of in lines),
            "last_entry": any(segment.entry == tile.load.entries - 1 for segment in new),
            "beside": any(s.entry // self.lanes == n.entry // self.lanes for s in standing for n in new),
            "part_of_line": any(len(segment.nonzeros) % self.lanes for segment in new[: tile.placed]),
            "over_old_rows": any(line in tile.load.data for s in tile.before for line in data_lines(s, self.lanes)),
        }
        for name, holds in hits.items():
            coverage.hit(f"planned_{name}", holds)

    def begin(self, tile: dict[str, Any], load: Load, **told: int) -> None:
        """Sends a tile, and expects the accessor's writes and outputs for it."""
        new = load.segments[load.kept :]
        sizes = {
            "nonzeros": sum(len(segment.nonzeros) for segment in new),
            "bumped_elements": sum(len(segment.nonzeros) for segment in new if segment.position is None),
        }
        self.board.expect("loads", sizes | told)
        self.coming.append(load)
        self.send("tile", tile)

    def cover(self, window: Window, load: Load, follows: bool, before: list[Segment]) -> None:
        """The coverage bins of a window; ``before``: segments that were resident."""
        assert self.watch is not None
        old, new = load.segments[: window.kept], load.segments[window.kept :]
        nonzeros = sum(len(segment.nonzeros) for segment in new if segment.position is not None)
        highest = max((line for segment in old for line in data_lines(segment, self.lanes)), default=0)
        entries = [segment.entry for segment in new]
        at_once = self.watch.at_once(load)
        hits = {
            "anew": follows and not old,
            "keeps": bool(old),
            "data_wrap": bool(nonzeros) and BASE + window.line < highest,
            "first_entry_wraps": bool(old) and entries[0] < window.entry,
            "entries_wrap": entries[0] > entries[-1],
            "shares_entries": 0 < at_once < len(old),
            "holds_all_back": bool(old) and not at_once,
            "bumps": any(segment.nonzeros and segment.position is None for segment in new),
            "keeps_bumped": any(segment.nonzeros and segment.position is None for segment in old),
            "fills_its_lines": nonzeros == window.lines * self.lanes > 0,
            "no_lines": not window.lines,
            "no_elements": not any(segment.nonzeros for segment in new),
            "row_of_lines": any(len(data_lines(segment, self.lanes)) > 2 for segment in new),
            "ring_full": len(load.segments) == load.entries - self.lanes,
            "over_old_rows": bool(old)
            and any(line in load.data for segment in before for line in data_lines(segment, self.lanes)),
        }
        if self.partition.row_list is not None:
            ends = [segment.memory + len(segment.nonzeros) for segment in new]
            gaps = [segment.memory - end for end, segment in zip(ends, new[1:], strict=False)]
            hits |= {"list": True, "gap": max(gaps, default=0) >= self.lanes}
            hits["small_gap"] = any(0 < gap < self.lanes for gap in gaps)
        for name, holds in hits.items():
            coverage.hit(f"window_{name}", holds)

    def every_cycle(self) -> None:
        if self.watch is None:
            return
        load = self.watch.going
        writes: list[Write] = []
        for port, ((valid, ready, payload), layout) in enumerate(self.writes):
            if int(valid.value) and int(ready.value):
                bits = bits_of(payload)
                item, lanes = layout.unpack(bits), bits >> layout.tree["fields"]["line"][0]
                held = [lanes >> 64 * n & (1 << 64) - 1 for n in range(self.lanes)]
                writes.append((port, item["address"], item["mask"], held))
        self.watch.cycle(bool(int(self.dut.idle.value)), int(self.dut.settled.value), writes)
        if int(self.dut.misplaced.value):
            self.board.fail(f"the row at place {int(self.dut.place.value)} is said to lie outside the partition")
        if load is not None and self.watch.going is None:
            self.ended(load)
        if int(self.dut.tile__valid.value) and int(self.dut.tile__ready.value):
            self.beats = dict(self.memory.beats)
            self.watch.start(self.coming.popleft())

    def ended(self, load: Load) -> None:
        """The accessor's outputs in the first cycle in which the load is complete."""
        assert self.watch is not None
        names = ("nonzeros", "bumped_elements", "occupied", "fifo_base")
        told = {name: int(getattr(self.dut, name).value) for name in names}
        early = self.watch.early
        if load.entries:
            read = {port: count - self.beats[port] for port, count in self.memory.beats.items()}
            told |= {name: read[f"read_request__{n}"] for n, name in enumerate(READ_CLIENTS)}
            kind = "window" if load.standing is None else "planned"
            coverage.hit(f"{kind}_settles_early", early > load.kept)
        else:
            coverage.hit("settles_early", early > 0)
        self.board.observe("loads", told)

    def loading(self) -> int:
        """Cycles since the present load began."""
        return self.watch.since if self.watch is not None and self.watch.going is not None else 0

    async def restart(self, cycles: int = 2) -> None:
        self.coming.clear()
        if self.watch is not None:
            self.watch.forget()
        await super().restart(cycles)


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES, lines=[18, 30, 50])
async def every_tile(dut: Any, backpressure: str, lines: int) -> None:
    """Every segment is where its metadata say, in the partition or in memory; sizes and occupancy are right."""
    bench = AccessorBBench(dut, backpressure, seed=lines)
    await bench.start()
    for tile, density in (((12, 9), 0.3), ((12, 40), 0.15), ((20, 20), 0.02), ((20, 40), 0.0)):
        operand = Operand.draw(bench.rng, 20, 40, density)
        await bench.configure(operand, lines)
        for place in tiles_of(operand, "b", tile):
            await bench.load(place)
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def partitions_around_the_tile(dut: Any) -> None:
    """Partitions from the smallest to one in which everything fits, a line at a time."""
    bench = AccessorBBench(dut)
    await bench.start()
    operand = Operand.draw(bench.rng, 8, 24, 0.4)
    metadata = -(-8 // bench.lanes)
    for lines in range(metadata + FIFO + 1, metadata + FIFO + 50):
        await bench.configure(operand, lines)
        await bench.load(tiles_of(operand, "b", (8, 24))[0])
    coverage.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES, lines=[18, 30, 60])
async def windows_move(dut: Any, backpressure: str, lines: int) -> None:
    """Chains of windows: rows that are kept stay as they are, new ones are where the window says, all of them once."""
    bench = AccessorBBench(dut, backpressure, seed=lines)
    await bench.start()
    await bench.configure(rows_of_all_lengths(bench.rng, 150, 24, bench.lanes), lines)
    await bench.windowed(True)
    bench.move(60)
    await bench.settle()
    coverage.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES)
async def windows_of_a_list(dut: Any, backpressure: str) -> None:
    """The same for windows of a list of rows, which has gaps and begins anew."""
    bench = AccessorBBench(dut, backpressure, seed=8)
    await bench.start()
    operand = rows_of_all_lengths(bench.rng, 150, 24, bench.lanes)
    await bench.configure(operand, 40, listed_rows(bench.rng, 150, 300))
    await bench.windowed(True)
    bench.move(60)
    await bench.settle()
    coverage.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES, lines=[22, 60])
async def planned_rows(dut: Any, backpressure: str, lines: int) -> None:
    """Rows go to the lines and entries that a list names; ordinary windows and tiles come after them."""
    bench = AccessorBBench(dut, backpressure, seed=lines)
    await bench.start()
    operand = rows_of_all_lengths(bench.rng, 60, 24, bench.lanes)
    await bench.plan(operand, lines, lines // 6, 40)
    await bench.settle()
    dut.planned.value = 0
    await bench.configure(operand, lines)
    bench.move(10)
    await bench.settle()
    await bench.windowed(False)
    for place in tiles_of(operand, "b", (12, 24)):
        await bench.load(place)
    coverage.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES)
async def windows_and_other_tiles(dut: Any, backpressure: str) -> None:
    """Windows and ordinary tiles in turn: neither finds data that the other left."""
    bench = AccessorBBench(dut, backpressure, seed=7)
    await bench.start()
    operand = rows_of_all_lengths(bench.rng, 60, 24, bench.lanes)
    await bench.configure(operand, 24)
    for n, place in enumerate(tiles_of(operand, "b", (8, 24))):
        await bench.windowed(True)
        bench.move(1 + n % 4, anew=0)
        await bench.settle()
        await bench.windowed(False)
        await bench.load(place)
        coverage.hit("window_then_tile")
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(wait=[15, 40, 80], windows=[False, True])
async def reset_in_the_middle(dut: Any, wait: int, windows: bool) -> None:
    """A reset during a load; the loads after it are right."""
    bench = AccessorBBench(dut, "fourth", seed=wait)
    await bench.start()
    operand = Operand.draw(bench.rng, 20, 40, 0.4)
    await bench.configure(operand, 110)
    if windows:
        await bench.windowed(True)
        bench.move(30)
        await bench.cycles(10 * wait)
        await bench.wait(lambda: bench.loading() > wait % 11, "no window is loaded")
    else:
        bench.announce(tiles_of(operand, "b", (20, 40))[0])
        await bench.cycles(wait)
    assert not int(dut.idle.value)
    coverage.hit("window_reset" if windows else "reset")
    await bench.restart(3)
    operand = Operand.draw(bench.rng, 11, 30, 0.3)
    await bench.configure(operand, 30)
    if windows:
        bench.move(20)
        await bench.settle()
        await bench.windowed(False)
    for place in tiles_of(operand, "b", (6, 13)):
        await bench.load(place)
    coverage.save()
