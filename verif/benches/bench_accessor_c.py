"""Accessor of C: rows, partial rows and scratch fibers in memory, and partial rows that come back.

Testplan: ``verif/testplans/accessor_c.toml``.
"""

from typing import Any

import cocotb

from verif.agents.client_memory import POISON, ClientMemory
from verif.agents.pauses import PATTERN_NAMES, sometimes
from verif.agents.sram import SramAgent
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

REGIONS = {
    "pointers": 0x1000,
    "elements": 0x2000,
    "finished": 0x4000,
    "partial0": 0x6000,
    "partial1": 0x8000,
    "tile_positions": 0xA000,
    "scratch": 0xC000,
}
ROOM, MEMORY_BYTES = 0x2000, 0xE000
BASE, LINES = 8, 48
OVERFLOWS = ("rows", "partials", "scratch")  # bits of the port
NO_TICKET = {"scratch": 0, "first": 0, "slot": 0}
coverage = Coverage("accessor_c")
Fiber = list[tuple[int, int]]


class AccessorCBench(StreamBench):
    """Tiles and fibers in; the model knows the memory's contents and the fibers that must come back."""

    def __init__(self, dut: Any, backpressure: str = "none", seed: int = 1) -> None:
        zero = (
            "regions",
            "whole_rows",
            "scratch",
            "first",
            "slot",
            "bound",
            "buffering",
            "base",
            "lines",
            "scratch_base",
            "scratch_lines",
            "merged_out",
            "written",
            "scratch_retired",
            "restart",
        )
        super().__init__(
            dut,
            drive=["tile", "collected"],
            receive=["partials", "scratch_results"],
            idle=backpressure,
            backpressure=backpressure,
            zero=zero,
            seed=seed,
        )
        lanes = self.lanes = int(self.block.parameters["lanes"])
        self.memory = ClientMemory(dut, self.block, MEMORY_BYTES, 8 * lanes)
        self.memory.reader(
            "read_request", "read_data", self.pattern(backpressure, "grant"), self.pattern(backpressure, "data")
        )
        for n in range(4):
            patterns = [self.pattern(backpressure, f"{what} {n}") for what in ("write grant", "write data")]
            if n == 2:
                patterns += ["scratch_retired", sometimes(0.9, backpressure)]
            self.memory.writer(f"write_request__{n}", f"write_data__{n}", *patterns)
        self.sram = SramAgent(dut, self.block, lanes)
        self.sram.reader("sram_request", "sram_response", self.pattern(backpressure, "sram"))
        for n in range(2):
            self.sram.writer(f"sram_write__{n}", self.pattern(backpressure, f"sram write {n}"))
        self.helpers = [self.memory, self.sram]
        self.forget()

    def forget(self) -> None:
        self.rows: list[Fiber] = []  # of the whole run, finished
        self.back: list[Fiber] = []  # partial fibers that must come back, in order
        self.memory.bytes[:] = POISON
        self.told = 0

    async def configure(self, *, whole_rows: bool = True, buffering: bool = False, **rooms: int) -> None:
        sizes = {f"{name}_bytes": ROOM for name in ("elements", "finished", "partial", "scratch")} | rooms
        self.set("regions", REGIONS | sizes)
        values = {
            "whole_rows": int(whole_rows),
            "buffering": int(buffering),
            "base": BASE,
            "lines": LINES,
            "written": 15,
        }
        for name, value in values.items():
            getattr(self.dut, name).value = value
        await self.cycles(1)

    def fiber(self, longest: int = 9) -> Fiber:
        size = self.rng.choice([0, 0, 1, 2, longest])
        coverage.hit("empty_row", size == 0)
        coverage.hit("long_row", size > 2 * self.lanes)
        return [(c, self.rng.getrandbits(32)) for c in sorted(self.rng.sample(range(100), size))]

    async def begin_tile(self, **tile: int) -> None:
        self.send("tile", tile)
        await self.wait(lambda: self.drivers["tile"].idle, "a tile is not taken")

    async def give(self, fiber: Fiber, **ticket: int) -> None:
        """One fiber with the fields of its ticket."""
        for word in self.words(fiber):
            await self.give_word(word, len(fiber), **ticket)

    def words(self, fiber: Fiber) -> list[dict[str, Any]]:
        words = []
        for at in range(0, max(len(fiber), 1), self.lanes):
            word = fiber[at : at + self.lanes]
            line = [{"coordinate": c, "value": v} for c, v in word]
            line += [{"coordinate": 0xDEAD, "value": 0xBEEF}] * (self.lanes - len(word))
            words.append({"line": line, "count": len(word), "last": int(at + self.lanes >= len(fiber))})
        return words

    async def give_word(self, word: dict[str, Any], length: int, **ticket: int) -> None:
        for name, value in (NO_TICKET | ticket | {"bound": length + 2}).items():
            getattr(self.dut, name).value = value
        self.send("collected", word)
        await self.wait(lambda: self.drivers["collected"].idle, "a fiber is not taken")

    async def slot_free(self, fibers: int) -> None:
        """Waits until this many scratch fibers were reported: the earlier row in the slot does not need it any more."""
        await self.wait(lambda: self.told >= fibers, "a slot is not free")

    async def drain(self) -> None:
        await self.wait(lambda: bool(int(self.dut.drained.value)) and self.memory.quiet, "C is not drained")
        await self.settle()
        assert int(self.dut.drained.value) and not int(self.dut.rows_left.value)

    def came(self, port: str, item: Any) -> None:
        """A reported fiber is in memory at the item's place at that moment."""
        if port == "scratch_results":
            self.told += 1
            self.board.observe("scratch", (item["slot"], self.scratch(item)))
        elif item["in_memory"] or not item["length"]:
            address = 8 * (int(self.dut.partial_region.value) + item["position"])
            self.board.observe("partials", self.stored(address, item["length"]))
        else:
            lanes = [self.sram.nonzero(item["position"] + n) for n in range(item["length"])]
            self.board.observe("partials", [(lane & 0xFFFFFFFF, lane >> 32) for lane in lanes])
            coverage.hit("on_chip")

    def scratch(self, fiber: dict[str, int]) -> Fiber:
        """A fiber that was told, from the lines of the SRAM and of memory that hold it now."""
        places = self.block.layout("scratch_places").unpack(int(self.dut.scratch_places.value))
        found, rings = [], set()
        for at in range(fiber["position"], fiber["position"] + fiber["length"]):
            line = at // self.lanes
            if line < places["kept"]:
                ring = (places["begins"][fiber["slot"]] + line) % places["lines"]
                rings.add(ring)
                lane = self.sram.line(places["base"] + ring)[at % self.lanes]
                found.append((lane & 0xFFFFFFFF, lane >> 32))
                coverage.hit("scratch_on_chip")
            else:
                found += self.stored(8 * (places["region"] + fiber["slot"] * places["slot_lines"] * self.lanes + at), 1)
                coverage.hit("scratch_in_memory")
                coverage.hit("scratch_split", bool(rings))
        coverage.hit("scratch_wraps", {0, places["lines"] - 1} <= rings)
        return found

    def stored(self, address: int, length: int) -> Fiber:
        words = self.memory.words(address, 2 * length)
        return list(zip(words[::2], words[1::2], strict=True))

    def untouched(self, address: int) -> None:
        assert (self.memory.bytes[address : address + 64] == POISON).all(), f"written beyond the end at 0x{address:x}"

    def every_cycle(self) -> None:
        coverage.hit("stalled", bool(int(self.dut.event_stall.value)))

    def check_rows(self, pointers: int, base: int) -> None:
        """All finished rows so far, packed, with the positions of their ends."""
        ends = [0]
        for row in self.rows:
            assert self.stored(base + 8 * ends[-1], len(row)) == row, f"row {len(ends) - 1} at position {ends[-1]}"
            ends.append(ends[-1] + len(row))
        assert self.memory.words(pointers, len(ends)) == ends
        assert int(self.dut.stored.value) == ends[-1]
        self.untouched(base + 8 * ends[-1])


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES)
async def rows_become_compressed_sparse_rows(dut: Any, backpressure: str) -> None:
    """Rows of several tiles, packed one after the other, with their pointers; nothing beyond."""
    bench = AccessorCBench(dut, backpressure)
    await bench.start()
    await bench.configure()
    for begin, size in ((0, 10), (10, 10), (20, 5)):
        await bench.begin_tile(begin_i=begin, size_i=size, last_k=1, whole_j=1, k_step=int(begin == 0))
        for _ in range(size):
            bench.rows.append(bench.fiber())
            await bench.give(bench.rows[-1])
        await bench.drain()
        bench.check_rows(REGIONS["pointers"], REGIONS["elements"])
    coverage.hit("rows")
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def finished_tiles_keep_their_positions(dut: Any) -> None:
    """While C is cut along j, finished rows go to their own region, ``size_i + 1`` positions with each tile."""
    bench = AccessorCBench(dut, "random")
    await bench.start()
    await bench.configure(whole_rows=False)
    end = 0
    for tile, (begin, size) in enumerate(((0, 6), (6, 3), (0, 6), (6, 3))):
        index = 11 * (tile // 2) + begin + tile % 2
        await bench.begin_tile(begin_i=begin, size_i=size, last_k=1, k_step=int(tile == 0), position_index=index)
        ends = [end]
        for _ in range(size):
            row = bench.fiber()
            await bench.give(row)
            ends.append(ends[-1] + len(row))
            bench.rows.append(row)
        await bench.drain()
        assert bench.memory.words(REGIONS["tile_positions"] + 4 * index, size + 1) == ends
        at = end
        for row in bench.rows[-size:]:
            assert bench.stored(REGIONS["finished"] + 8 * at, len(row)) == row
            at += len(row)
        end = at
    coverage.hit("finished_tiles")
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES)
async def partial_rows_come_back(dut: Any, backpressure: str) -> None:
    """Over four k steps of two tiles each, the rows of the step before come back as they left."""
    bench = AccessorCBench(dut, backpressure)
    await bench.start()
    await bench.configure()
    before: dict[int, list[Fiber]] = {}
    for step in range(4):
        for tile, (begin, size) in enumerate(((0, 6), (6, 3))):
            for fiber in before.get(tile, []):
                bench.board.expect("partials", fiber)
            flags = {"last_k": int(step == 3), "whole_j": 1, "partial_in": int(step > 0), "k_step": int(tile == 0)}
            await bench.begin_tile(begin_i=begin, size_i=size, position_index=begin + tile, **flags)
            before[tile] = [bench.fiber() for _ in range(size)]
            for fiber in before[tile]:
                await bench.give(fiber)
            await bench.drain()
    bench.rows = before[0] + before[1]
    bench.check_rows(REGIONS["pointers"], REGIONS["elements"])
    coverage.hit("partials")
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(backpressure=["none", "random"])
async def partial_rows_stay_on_chip(dut: Any, backpressure: str) -> None:
    """In buffering mode partial rows wait in the partition; those that may not fit go to memory; all come back."""
    bench = AccessorCBench(dut, backpressure)
    await bench.start()
    await bench.configure(buffering=True)
    for begin, size in ((0, 7), (7, 7)):
        before: list[Fiber] = []
        for step in range(4):
            for fiber in before:
                bench.board.expect("partials", fiber)
            flags = {"last_k": int(step == 3), "whole_j": 1, "partial_in": int(step > 0), "k_step": 1}
            await bench.begin_tile(begin_i=begin, size_i=size, position_index=begin, **flags)
            before = [bench.fiber(20) for _ in range(size)]
            for fiber in before:
                await bench.give(fiber)
            await bench.drain()
        bench.rows += before
    bench.check_rows(REGIONS["pointers"], REGIONS["elements"])
    outside = [line for line in bench.sram.lines if not BASE <= line < BASE + LINES]
    assert not outside, f"lines outside the partition were used: {outside}"
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES, ring=[0, 20])
async def scratch_fibers_are_told_when_there(dut: Any, backpressure: str, ring: int) -> None:
    """Each scratch fiber is reported once, in order, in its row's slot, and is in memory, or in the ring, by then.

    Nothing waits for that; rows and scratch fibers alternate word by word.
    """
    bench = AccessorCBench(dut, backpressure)
    await bench.start()
    await bench.configure()
    dut.scratch_base.value, dut.scratch_lines.value = BASE + LINES, ring
    await bench.cycles(2)
    count = 12
    await bench.begin_tile(begin_i=0, size_i=count, last_k=1, whole_j=1, k_step=1)
    scratch_slots = int(bench.block.parameters["scratch_slots"])
    groups = [[bench.fiber() for _ in range(bench.rng.randrange(1, 5))] for _ in range(count)]
    ends = [sum(map(len, groups[: row + 1])) for row in range(count)]  # fibers reported before a slot is free again
    scratch = [
        (row, int(n == 0), len(fiber), word)
        for row, group in enumerate(groups)
        for n, fiber in enumerate(group)
        for word in bench.words(fiber)
    ]
    for row, group in enumerate(groups):
        for fiber in group:
            bench.board.expect("scratch", (row % scratch_slots, fiber))
    bench.rows = [bench.fiber() for _ in range(count)]
    rows = [(len(row), word) for row in bench.rows for word in bench.words(row)]
    given = merged = 0
    while scratch or rows:
        if scratch and (not rows or bench.rng.random() < 0.6):
            row, first, length, word = scratch.pop(0)
            coverage.hit("took_turns", bool(rows) and not word["last"])
            if row >= scratch_slots:
                await bench.slot_free(ends[row - scratch_slots])
            if first and row - scratch_slots >= merged:
                merged += 1
                dut.merged_out.value = 1
                await bench.cycles(1)
                dut.merged_out.value = 0
            if not int(dut.scratch_open.value):
                # Only rows before this one can have the lines.
                await bench.slot_free(ends[row - 1])
                while merged < row:
                    merged += 1
                    dut.merged_out.value = 1
                    await bench.cycles(1)
                dut.merged_out.value = 0
                await bench.wait(lambda: bool(int(dut.scratch_open.value)), "the ring does not open")
                coverage.hit("scratch_closed")
            coverage.hit("scratch_late", bench.told < given)
            await bench.give_word(word, length, scratch=1, first=first, slot=row % scratch_slots)
            given += word["last"]
        else:
            length, word = rows.pop(0)
            await bench.give_word(word, length)
    await bench.drain()
    bench.check_rows(REGIONS["pointers"], REGIONS["elements"])
    coverage.hit("scratch")
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(kind=OVERFLOWS)
async def regions_that_are_too_small(dut: Any, kind: str) -> None:
    """A fiber that does not fit is not written; the port says which region and how many bytes it needs at least."""
    bench = AccessorCBench(dut)
    await bench.start()
    name = {"rows": "elements", "partials": "partial", "scratch": "scratch"}[kind]
    parts = int(bench.block.parameters["scratch_slots"]) if kind == "scratch" else 1  # of the region, alike
    rooms: dict[str, Any] = {f"{name}_bytes": 64 * parts}
    await bench.configure(**rooms)
    await bench.begin_tile(begin_i=0, size_i=3, last_k=int(kind != "partials"), whole_j=1, k_step=1)
    ticket = {"scratch": int(kind == "scratch"), "first": 1}
    fiber = [(n, n) for n in range(7)]
    if kind == "scratch":
        bench.board.expect("scratch", (0, fiber))
    await bench.give(fiber, **ticket)
    bench.drivers["collected"].queue.clear()
    bench.dut.first.value = 0
    line = [{"coordinate": n, "value": n} for n in range(bench.lanes)]
    bench.send("collected", {"line": line, "count": bench.lanes, "last": 1})
    await bench.cycles(60)
    assert int(dut.overflow.value) == 1 << OVERFLOWS.index(kind)
    assert int(dut.needed.value) >= 8 * (7 + bench.lanes) * parts
    regions = ("elements",) if kind == "rows" else ("scratch",) if kind == "scratch" else ("partial0", "partial1")
    for region in regions:
        bench.untouched(REGIONS[region] + 64)
    coverage.hit(f"overflow_{kind}")
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(wait=[3, 40, 100])
async def reset_in_the_middle(dut: Any, wait: int) -> None:
    """A reset inside a tile; the run after it begins at the begin of its regions."""
    bench = AccessorCBench(dut, "fourth", seed=wait)
    await bench.start()
    await bench.configure()
    await bench.begin_tile(begin_i=0, size_i=40, last_k=1, whole_j=1, k_step=1)
    feeding = cocotb.start_soon(feed(bench, 40))
    await bench.cycles(wait)
    assert not int(dut.drained.value)
    coverage.hit("reset")
    feeding.cancel()
    await bench.restart(3)
    bench.forget()
    await bench.configure()
    await bench.begin_tile(begin_i=0, size_i=5, last_k=1, whole_j=1, k_step=1)
    for _ in range(5):
        bench.rows.append(bench.fiber())
        await bench.give(bench.rows[-1])
    await bench.drain()
    bench.check_rows(REGIONS["pointers"], REGIONS["elements"])
    coverage.save()


async def feed(bench: AccessorCBench, count: int) -> None:
    for _ in range(count):
        await bench.give(bench.fiber())
