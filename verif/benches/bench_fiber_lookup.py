"""Fiber lookup against the metadata and pointers it reads. Testplan: ``verif/testplans/fiber_lookup.toml``."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge

from verif.agents.client_memory import ClientMemory
from verif.agents.pauses import PATTERN_NAMES
from verif.agents.sram import SramAgent
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

ENTRIES, POINTERS, ELEMENTS, METADATA_LINE, MEMORY_BYTES = 40, 0x100, 0x800, 60, 0x1000
BUMPED = 1 << 63
LATENCY = 5  # of a lookup, three of them the SRAM's
coverage = Coverage("fiber_lookup")


class LookupBench(StreamBench):
    """Selections in; leaves out, in order, as the tables say."""

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none", seed: int = 1) -> None:
        zero = ("streaming", "unit", "entry", "entries", "origin", "metadata_line", "pointers", "elements")
        super().__init__(
            dut, drive=["selections"], receive=["leaves"], idle=idle, backpressure=backpressure, zero=zero, seed=seed
        )
        self.monitors["leaves"].meaning = self.meaning
        self.lanes = int(self.block.parameters["lanes"])
        self.memory = ClientMemory(dut, self.block, MEMORY_BYTES, 8 * self.lanes)
        self.memory.reader(
            "read_request", "read_data", self.pattern(backpressure, "grant"), self.pattern(backpressure, "data")
        )
        self.sram = SramAgent(dut, self.block, self.lanes)
        self.sram.reader("sram_request", "sram_response", self.pattern(backpressure, "sram"))
        self.helpers = [self.memory, self.sram]
        self.table: list[tuple[int, int, int]] = []  # position, length, bumped
        self.unit = 0
        self.entry, self.entries, self.origin = 0, 0, 0
        self.asked: list[int] = []  # cycles in which selections were taken
        self.times: list[int] = []  # and in which leaves came

    def meaning(self, bits: int) -> Any:
        """Of an absent leaf only the field that ends its row has a meaning."""
        item = self.layouts["leaves"].unpack(bits)
        return bits if item["present"] else item["leaf"]["last"]

    def configure(self, *, streaming: bool, unit: int = 0, entry: int = 0, entries: int = 0, origin: int = 0) -> None:
        """New tables: fiber segments of 0 to 9 nonzeros. Selections may begin with the cycle after the next edge.

        ``entries``: they are a ring of so many, and fiber ``origin``, the first, has entry ``entry``; 0: they are none.
        """
        count = min(ENTRIES, entries or ENTRIES)
        lengths = [self.rng.choice([0, 0, 1, 2, 9]) for _ in range(count)]
        ends = np.cumsum([0, *lengths])
        begin = 2 * self.rng.randrange(3)  # the pointer array may begin anywhere in its first beat
        self.memory.store(POINTERS + 4 * begin, ends.astype(np.uint32))
        self.unit, self.entry, self.entries, self.origin = unit, entry, entries, origin
        bumped_from = count if streaming else 2 * count // 3
        self.table = []
        self.sram.lines.clear()
        for n, length in enumerate(lengths):
            bumped = int(n >= bumped_from)
            self.table.append((int(ends[n]), length, int(streaming) or bumped))
            stored = int(ends[n]) | length << 32 | (BUMPED if bumped else 0)
            line, lane = divmod((entry + n) % entries if entries else n, self.lanes)
            self.sram.line(METADATA_LINE - line)[lane] = stored
        values = {"streaming": int(streaming), "unit": unit, "entry": entry, "entries": entries, "origin": origin}
        values |= {"metadata_line": METADATA_LINE, "elements": ELEMENTS, "pointers": POINTERS + 4 * begin}
        for name, value in values.items():
            getattr(self.dut, name).value = value
        coverage.hit("streaming" if streaming else "buffering")
        coverage.hit("bumped", not streaming)
        coverage.hit("across_beats", streaming)

    def select(self, count: int) -> None:
        for _ in range(count):
            item = {
                "index": self.origin
                + self.rng.choice([0, len(self.table) - 1, *[self.rng.randrange(len(self.table))] * 8]),
                "weight": self.rng.getrandbits(32),
                "present": int(self.rng.random() < 0.85),
                "last": int(self.rng.random() < 0.3),
            }
            self.send("selections", item)

    def taken(self, port: str, item: Any) -> None:
        self.asked.append(self.monitors["selections"].cycle)
        number = item["index"] - self.origin
        position, length, in_memory = self.table[number]
        if self.entries and item["present"]:
            entry = self.entry + number
            coverage.hit("ring_far", self.origin >= 1 << 31)
            coverage.hit("ring_before_its_end", entry < self.entries - 1)
            coverage.hit("ring_last_entry", entry == self.entries - 1)
            coverage.hit("ring_entry_0_again", entry == self.entries)
            coverage.hit("ring_round", entry > self.entries)
        coverage.hit("absent", not item["present"])
        coverage.hit("last", bool(item["last"]))
        coverage.hit("empty_fiber", bool(item["present"]) and not length)
        if not item["present"] or not length:
            self.board.expect("leaves", ("absent", item["last"]))
            return
        position += ELEMENTS // 8 if in_memory else 0
        leaf = (in_memory, self.unit, position, length, item["weight"], item["last"])
        self.board.expect("leaves", leaf)

    def came(self, port: str, item: Any) -> None:
        leaf = item["leaf"]
        self.times.append(self.monitors["leaves"].cycle)
        if not item["present"]:
            self.board.observe("leaves", ("absent", leaf["last"]))
            return
        names = ("in_memory", "unit", "position", "length", "weight", "last")
        self.board.observe("leaves", tuple(leaf[name] for name in names))

    def every_cycle(self) -> None:
        coverage.hit(
            "waited", bool(int(self.dut.selections__valid.value)) and not int(self.dut.selections__ready.value)
        )

    async def finish(self) -> None:
        await self.settle()
        assert int(self.dut.idle.value)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(idle=PATTERN_NAMES, backpressure=PATTERN_NAMES, streaming=[False, True])
async def leaves_are_where_the_tables_say(dut: Any, idle: str, backpressure: str, streaming: bool) -> None:
    """Every selection gives its leaf, in order; empty fibers and absent selections keep their row's end."""
    bench = LookupBench(dut, idle, backpressure)
    await bench.start()
    for unit in (0, 1):
        bench.configure(streaming=streaming, unit=unit)
        await bench.cycles(1)
        bench.select(60)
        await bench.finish()
    coverage.save()


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES)
async def entries_in_a_ring(dut: Any, backpressure: str) -> None:
    """Rings from one line on, from any entry on, each configured a cycle before its first selection; no ring after them."""
    bench = LookupBench(dut, "none", backpressure)
    await bench.start()
    for entries in (bench.lanes, 3 * bench.lanes, ENTRIES, 3 * ENTRIES):
        for entry in (0, 1, entries - 1, bench.rng.randrange(entries), entries // 2):
            origin = bench.rng.choice([0, 1, entries, 1 << 31, (1 << 32) - min(ENTRIES, entries)])
            bench.configure(streaming=False, entry=entry, entries=entries, origin=origin)
            await FallingEdge(dut.clk)
            bench.select(25)
            await bench.finish()
        bench.configure(streaming=entries == ENTRIES)
        await FallingEdge(dut.clk)
        bench.select(25)
        await bench.finish()
        coverage.hit("ring_then_none")
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(ring=[False, True])
async def one_a_cycle(dut: Any, ring: bool) -> None:
    """With an SRAM that grants at once leaves come one a cycle, each five cycles after its selection, in a ring too."""
    bench = LookupBench(dut)
    await bench.start()
    bench.configure(streaming=False, entry=7 if ring else 0, entries=ENTRIES if ring else 0)
    await bench.cycles(1)
    bench.select(60)
    await bench.finish()
    assert len(bench.times) == 60
    # Absent ones at the begin come before the first line does.
    assert bench.times[-1] - bench.times[10] == 49, bench.times
    assert max(came - asked for asked, came in zip(bench.asked, bench.times, strict=True)) == LATENCY
    coverage.hit("one_a_cycle")
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(streaming=[False, True])
async def reset_in_the_middle(dut: Any, streaming: bool) -> None:
    """A reset drops lookups in flight; those after it are right, in the other mode too."""
    bench = LookupBench(dut, "none", "random")
    await bench.start()
    ring = {} if streaming else {"entry": 31, "entries": ENTRIES, "origin": 1000}
    bench.configure(streaming=streaming, **ring)
    await bench.cycles(1)
    bench.select(50)
    await bench.cycles(40)
    assert bench.board.outstanding() and not int(dut.idle.value)
    coverage.hit("reset")
    await bench.restart(4)
    bench.configure(streaming=not streaming)
    await bench.cycles(1)
    bench.select(50)
    await bench.finish()
    coverage.save()
