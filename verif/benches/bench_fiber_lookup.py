"""Fiber lookup against the metadata and pointers it reads. Testplan: ``verif/testplans/fiber_lookup.toml``."""

from typing import Any

import cocotb
import numpy as np

from verif.agents.client_memory import ClientMemory
from verif.agents.pauses import PATTERN_NAMES
from verif.agents.sram import SramAgent
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

ENTRIES, POINTERS, ELEMENTS, METADATA_LINE, MEMORY_BYTES = 40, 0x100, 0x800, 60, 0x1000
BUMPED = 1 << 63
coverage = Coverage("fiber_lookup")


class LookupBench(StreamBench):
    """Selections in; leaves out, in order, as the tables say."""

    def __init__(self, dut: Any, idle: str = "none", backpressure: str = "none", seed: int = 1) -> None:
        zero = ("streaming", "unit", "metadata_line", "pointers", "elements")
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

    def meaning(self, bits: int) -> Any:
        """The fields of an absent leaf say nothing but whether it ends its row."""
        item = self.layouts["leaves"].unpack(bits)
        return bits if item["present"] else item["leaf"]["last"]

    async def configure(self, *, streaming: bool, unit: int = 0) -> None:
        """New tables: fiber segments of 0 to 9 elements."""
        lengths = [self.rng.choice([0, 0, 1, 2, 9]) for _ in range(ENTRIES)]
        ends = np.cumsum([0, *lengths])
        begin = 2 * self.rng.randrange(3)  # the pointer array may begin anywhere in its first beat
        self.memory.store(POINTERS + 4 * begin, ends.astype(np.uint32))
        self.unit = unit
        bumped_from = ENTRIES if streaming else 2 * ENTRIES // 3
        self.table = []
        for n, length in enumerate(lengths):
            bumped = int(n >= bumped_from)
            self.table.append((int(ends[n]), length, int(streaming) or bumped))
            entry = int(ends[n]) | length << 32 | (BUMPED if bumped else 0)
            self.sram.line(METADATA_LINE - n // self.lanes)[n % self.lanes] = entry
        values = {"streaming": int(streaming), "unit": unit, "metadata_line": METADATA_LINE, "elements": ELEMENTS}
        for name, value in values.items():
            getattr(self.dut, name).value = value
        self.dut.pointers.value = POINTERS + 4 * begin
        coverage.hit("streaming" if streaming else "buffering")
        coverage.hit("bumped", not streaming)
        coverage.hit("across_beats", streaming)
        await self.cycles(1)

    def select(self, count: int) -> None:
        for _ in range(count):
            item = {
                "index": self.rng.randrange(ENTRIES),
                "weight": self.rng.getrandbits(32),
                "present": int(self.rng.random() < 0.85),
                "last": int(self.rng.random() < 0.3),
            }
            self.send("selections", item)

    def taken(self, port: str, item: Any) -> None:
        position, length, in_memory = self.table[item["index"]]
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
        await bench.configure(streaming=streaming, unit=unit)
        bench.select(60)
        await bench.finish()
    coverage.save()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(streaming=[False, True])
async def reset_in_the_middle(dut: Any, streaming: bool) -> None:
    """Lookups under way are dropped by a reset; those after it are right, in the other mode too."""
    bench = LookupBench(dut, "none", "random")
    await bench.start()
    await bench.configure(streaming=streaming)
    bench.select(50)
    await bench.cycles(40)
    assert bench.board.outstanding() and not int(dut.idle.value)
    coverage.hit("reset")
    await bench.restart(4)
    await bench.configure(streaming=not streaming)
    bench.select(50)
    await bench.finish()
    coverage.save()
