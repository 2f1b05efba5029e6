"""C on its way out against the bytes of its format, in every format. Testplan: ``verif/testplans/converted_c.toml``."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from numpy.typing import NDArray

from sw.formats.storage_format import coordinate_bits
from verif.agents.client_memory import POISON, ClientMemory
from verif.agents.pauses import PATTERN_NAMES, never, sometimes
from verif.agents.stream import StreamMonitor
from verif.benches.converted_bench import BAD_SETTING, FRAME, MEMORY_BYTES, RECORDS, REGIONS, SOURCES, stored_in
from verif.benches.sparse import Operand
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

CSR, BAD_ADDRESS = 2, 12
WRITERS = range(2)  # records and frame
RUN_BITS = 4
# From the first word to the cycle in which it is taken.
LATENCY = 5
MINUS, WIDEST = 1 << 31, 1 << 32
# Of source and target, by their codes in FORMATS: the source is CSR, and neither that nor CSC, BSR or CSF is a target.
WRONG_FORMATS = ((0, 3), (1, 3), (5, 3), (CSR, CSR), (CSR, 5), (CSR, 6), (CSR, 7))
coverage = Coverage("converted_c")


@dataclass(frozen=True)
class Golden:
    """What must be in memory: bytes and bits of a record of both regions, and how many records there are."""

    regions: list[NDArray[np.uint8]]
    widths: list[int]
    records: int

    @classmethod
    def of(cls, operand: Operand, value: str, kind: str, **options: int) -> "Golden":
        layout, packed = stored_in(kind, operand, value, **options)
        known = {region.name: region for region in layout.regions}
        records, frame = REGIONS[kind]
        return cls(
            [packed[name].view(np.uint8) if name else np.zeros(0, np.uint8) for name in (records, frame)],
            [known[name].width if name else 0 for name in (records, frame)],
            known[records].count if records else 0,
        )


class EveryCycle:
    """Does something after each rising edge: for pins that no agent drives."""

    def __init__(self, dut: Any, act: Callable[[], None]) -> None:
        self.dut = dut
        self.act = act
        self.breaches: list[str] = []
        self._task: Any = None

    def start(self) -> None:
        self._task = cocotb.start_soon(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    resume = start

    async def _run(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            self.act()


class ConvertedCBench(StreamBench):
    """Sends rows as accessor C does, and serves writes as the memory engine does; the format says which bytes come.

    ``flushing`` says for each cycle whether ``flush`` is high.
    """

    def __init__(self, dut: Any, backpressure: str = "none", seed: int = 1) -> None:
        super().__init__(
            dut,
            drive=["words"],
            idle=backpressure,
            backpressure=backpressure,
            zero=("settings", "flush", "written"),
            seed=seed,
            limit=10_000,
        )
        parameters = self.block.parameters
        self.lanes = int(parameters["lanes"])
        self.longest = int(parameters["burst_beats"])
        self.beat_bytes = int(parameters["beat_bits"]) // 8
        self.value, self.value_bits = str(parameters["value"]), int(parameters["value_bits"])
        self.integers = self.value.startswith("int")
        self.memory = ClientMemory(dut, self.block, MEMORY_BYTES, self.beat_bytes)
        for n in WRITERS:
            ports = f"write_request__{n}", f"write_data__{n}"
            self.memory.writer(*ports, *(self.pattern(backpressure, f"{what} {n}") for what in ("grant", "take")))
            for name in ports:
                self.layouts[name] = self.block.layout(name)
                self.monitors[name] = StreamMonitor(dut, name, dut.clk, self._observer(name), self.board.fail, dut.rst)
        self.helpers = [self.memory, EveryCycle(dut, self.act)]
        self.delays = self.pattern("random", "written")()
        self.flushing: Iterator[bool] = never()
        self.operand = Operand(1, [[]])
        self.golden = Golden([], [], 0)
        self.beats = 0
        self.forget()

    def forget(self) -> None:
        """A reset: nothing has come, and nothing is in memory."""
        self.rows_taken, self.last_taken, self.records = 0, 0, 0
        self.asked, self.given = [0, 0], [0, 0]  # beats of each client, by requests and as data
        self.seen = [(0, 0), (0, 0)]  # the same a cycle before
        self.written = 0b11
        self.ended, self.over = False, False  # the last row came in an earlier cycle; everything is in memory
        self.can_end = True
        self.memory.bytes[:] = POISON
        self.memory.beats = dict.fromkeys(self.memory.beats, 0)

    async def start(self) -> None:
        await super().start()
        self.dut.written.value = self.written

    async def restart(self, cycles: int = 3) -> None:
        self.dut.flush.value = 0
        await super().restart(cycles)
        self.forget()
        self.dut.written.value = self.written

    def is_zero(self, value: int) -> bool:
        return not value or (not self.integers and value == MINUS)

    def draw(self, zeros: float) -> int:
        """A value in its slot: with this chance 0, of floats also -0."""
        if self.rng.random() < zeros:
            return 0 if self.integers else self.rng.choice([0, MINUS])
        if self.integers:
            half = 1 << self.value_bits - 1
            return self.rng.randrange(-half, half) & 0xFFFF_FFFF
        return self.rng.getrandbits(self.value_bits) << 32 - self.value_bits

    def matrix(self, rows: int, columns: int, density: float, zeros: float = 0.0) -> Operand:
        """A matrix with this share of zeros among its nonzeros."""
        drawn = Operand.draw(self.rng, rows, columns, density)
        return Operand(columns, [[(column, self.draw(zeros)) for column, _ in row] for row in drawn.rows])

    async def configure(self, operand: Operand, kind: str, *, run_bits: int = RUN_BITS, **changes: Any) -> int:
        """Registers for a matrix in a format, with ``changes``; bytes of the records."""
        self.operand, self.kind, rows = operand, kind, len(operand.rows)
        self.options = {"run_bits": run_bits} if kind == "rlc" else {}
        self.golden = Golden.of(operand, self.value, kind, **self.options)
        needed = len(self.golden.regions[0])
        self.beats = sum(-(-len(region) // self.beat_bytes) for region in self.golden.regions)
        widths = {"row": coordinate_bits(rows), "column": coordinate_bits(operand.columns)}
        settings = {
            "formats": {"source": CSR, "target": SOURCES[kind]},
            "widths": widths | {"target_run": self.options.get("run_bits", 0)},
            "rows": rows,
            "columns": operand.columns,
            "target_records": RECORDS,
            "target_frame": FRAME,
            "target_records_bytes": needed + 64,
            "target_frame_bytes": (1 << 64) - 1,
        }
        self.set("settings", settings | changes)
        await self.cycles(1)
        self._cover()
        return needed

    def _cover(self) -> None:
        """Which situations the matrix has."""
        rows, columns = self.operand.rows, self.operand.columns
        values, sizes = [value for row in rows for _, value in row], [len(row) for row in rows]
        zeros = sum(self.is_zero(value) for value in values)
        situations = {
            self.kind: True,
            "empty_row": 0 in sizes,
            "empty_matrix": not any(sizes),
            "several_words": max(sizes) > self.lanes,
            "full_word": any(size and size % self.lanes == 0 for size in sizes),
            "one_place": len(rows) == columns == 1,
            "one_row": len(rows) == 1 < columns,
            "one_column": columns == 1 < len(rows),
            "widest": columns == WIDEST,
            "zero_dropped": zeros > 0 and self.kind != "coo",
            "zero_kept": zeros > 0 and self.kind == "coo",
            "negative_zero": not self.integers and MINUS in values,
            "filler": self.kind == "rlc" and self.golden.records > len(values) - zeros,
        }
        for name, holds in situations.items():
            coverage.hit(name, holds)

    def give(self, begin: int = 0, end: int | None = None) -> None:
        """Rows of the matrix, each as words with nonzeros from lane 0 on."""
        for row in self.operand.rows[begin:end]:
            for at in range(0, max(len(row), 1), self.lanes):
                part = row[at : at + self.lanes]
                line = [{"coordinate": column, "value": value} for column, value in part]
                line += [{"coordinate": 0xDEAD, "value": 0xBEEF}] * (self.lanes - len(part))
                self.send("words", {"line": line, "count": len(part), "last": int(at + self.lanes >= len(row))})

    async def finish(self) -> None:
        """Everything is in memory, and nothing else."""
        dut, records = self.dut, self.golden.records
        await self.wait(lambda: self.ended and bool(int(dut.idle.value)), "the matrix does not end")
        await self.settle()
        assert int(dut.idle.value) and not int(dut.error.value) and not int(dut.overflow.value)
        assert int(dut.records.value) == records, f"{int(dut.records.value)} records, where there are {records}"
        self.compare(self.expected())

    async def whole(self, operand: Operand, kind: str, **changes: Any) -> None:
        """A run, and a reset."""
        await self.configure(operand, kind, **changes)
        self.give()
        await self.finish()
        await self.restart()

    def expected(self, *rooms: int) -> NDArray[np.uint8]:
        """The whole memory with the first bytes of each region, so many, or with all of them."""
        memory = np.full(MEMORY_BYTES, POISON, np.uint8)
        for n, (at, region) in enumerate(zip((RECORDS, FRAME), self.golden.regions, strict=True)):
            data = region[: rooms[n]] if rooms else region
            memory[at : at + len(data)] = data
        return memory

    def compare(self, expected: NDArray[np.uint8]) -> None:
        found = self.memory.bytes
        wrong = np.flatnonzero(found != expected)
        first = f"0x{wrong[0]:x}: {found[wrong[0]]}, not {expected[wrong[0]]}" if len(wrong) else ""
        assert not first, f"{len(wrong)} bytes are wrong, the first at {first}"

    def in_memory(self) -> list[int]:
        """Beats of records and frame."""
        return [self.memory.beats[f"write_request__{n}"] for n in WRITERS]

    def has_in_memory(self, beats: list[int]) -> bool:
        return self.in_memory() == beats

    def known(self, rows: int) -> tuple[int, list[int]]:
        """What these first rows decide: records, and beats of records and frame that are full."""
        first = Operand(self.operand.columns, [*self.operand.rows[:rows], *[[]] * (len(self.operand.rows) - rows)])
        records = Golden.of(first, self.value, self.kind, **self.options).records
        places = [
            row * first.columns + column
            for row, items in enumerate(first.rows)
            for column, value in items
            if not self.is_zero(value)
        ]
        bits = zip((records, max(places, default=0)), self.golden.widths, strict=True)
        return records, [count * width // (8 * self.beat_bytes) for count, width in bits]

    def act(self) -> None:
        """After a rising edge: ``flush``, and ``written`` some time after the last beat."""
        in_memory = sum(self.in_memory()) == self.beats
        self.over = self.ended and in_memory and self.written == 0b11
        self.ended = self.rows_taken == len(self.operand.rows)
        delayed = next(self.delays)
        for n, now in enumerate(zip(self.asked, self.given, strict=True)):
            if now != self.seen[n] or now[0] != now[1]:
                self.written &= ~(1 << n)
            elif not delayed:
                self.written |= 1 << n
            self.seen[n] = now
        coverage.hit("late", self.ended and in_memory and self.written != 0b11)
        self.dut.written.value = self.written
        self.dut.flush.value = int(next(self.flushing))

    def every_cycle(self) -> None:
        dut = self.dut
        stalled = int(dut.words__valid.value) and not int(dut.words__ready.value)
        coverage.hit("stalled", bool(stalled))
        if int(dut.stalled.value) != stalled:
            self.board.fail(f"stalled is {int(dut.stalled.value)} where it must be {int(stalled)}")
        idle = int(dut.idle.value)
        if idle != (not self.ended) and not (idle and self.over) and self.can_end:
            self.board.fail(f"idle is {idle} with {sum(self.in_memory())} of {self.beats} beats in memory")
        records = int(dut.records.value)
        if not self.records <= records <= self.golden.records:
            self.board.fail(f"there are {records} records after {self.records}, of {self.golden.records}")
        self.records = records

    def taken(self, port: str, item: Any) -> None:
        now = self.monitors[port].cycle
        coverage.hit("gap", self.rows_taken > 0 and now - self.last_taken > 40)
        self.rows_taken, self.last_taken = self.rows_taken + item["last"], now

    def came(self, port: str, item: Any) -> None:
        """A beat, or a request of 1 beat to the longest burst."""
        n = int(port[-1])
        if port.startswith("write_data"):
            self.given[n] += 1
            return
        size = item["beats"]
        self.asked[n] += size
        if not 1 <= size <= self.longest:
            self.board.fail(f"{port}: a burst of {size} beats, where 1 to {self.longest} are allowed")
        coverage.hit("full_burst", size == self.longest)
        coverage.hit("short_burst", size < self.longest and not self.ended)

    def save(self) -> None:
        for n in WRITERS:
            for what in ("request", "data"):
                coverage.hit(f"refused_{what}", self.monitors[f"write_{what}__{n}"].stalled_cycles > 0)
        coverage.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(kind=list(SOURCES), backpressure=PATTERN_NAMES)
async def every_matrix(dut: Any, kind: str, backpressure: str) -> None:
    """Matrices of several shapes one after another, sparse, dense, with zeros; flushes at any time."""
    bench = ConvertedCBench(dut, backpressure)
    await bench.start()
    for flushes in (never(), sometimes(0.6, f"{kind} {backpressure}")()):
        bench.flushing = flushes
        for rows, columns, density, zeros in (
            (17, 30, 0.2, 0.1),
            (6, 9, 1.0, 0.0),
            (3, 150, 0.5, 0.3),
            (40, 5, 0.1, 0.5),
        ):
            await bench.whole(bench.matrix(rows, columns, density, zeros), kind)
    bench.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(kind=list(SOURCES))
async def shapes(dut: Any, kind: str) -> None:
    """One place, one row, one column, nothing at all, nothing but zeros, ends without a nonzero."""
    bench = ConvertedCBench(dut, "random")
    await bench.start()
    bench.flushing = sometimes(0.8, kind)()
    value = bench.draw(0.0)
    for size in (1, 9, 64):
        for rows, columns in ((1, size), (size, 1)):
            empty: list[list[tuple[int, int]]] = [[] for _ in range(rows)]
            await bench.whole(Operand(columns, empty), kind)
            await bench.whole(bench.matrix(rows, columns, 1.0), kind)
            await bench.whole(bench.matrix(rows, columns, 0.7, 1.0), kind)
            await bench.whole(Operand(columns, [*empty[1:], [(columns - 1, value)]]), kind)
            await bench.whole(Operand(columns, [[(0, value)], *empty[1:]]), kind)
    bench.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def longest_runs(dut: Any) -> None:
    """Runs of 1 to 5 bits, so that many pairs are fillers."""
    bench = ConvertedCBench(dut, "random")
    await bench.start()
    for run_bits in range(1, 6):
        for density in (0.03, 0.4):
            await bench.whole(bench.matrix(12, 25, density, 0.2), "rlc", run_bits=run_bits)
    bench.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(kind=["coo", "rlc"])
async def most_columns(dut: Any, kind: str) -> None:
    """2^32 of them: the position of a nonzero has more bits than a coordinate."""
    bench = ConvertedCBench(dut, "fourth")
    await bench.start()
    drawn = [[(column, bench.draw(0.0)) for column in columns] for columns in ([0, WIDEST - 1], [], [7], [WIDEST - 1])]
    await bench.whole(Operand(WIDEST, drawn), kind, run_bits=32)
    bench.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(kind=list(SOURCES), backpressure=["none", "random"])
async def rows_are_flushed(dut: Any, kind: str, backpressure: str) -> None:
    """Some rows come, and then none: only full bursts are in memory, and after a flush every full beat."""
    bench = ConvertedCBench(dut, backpressure)
    await bench.start()
    await bench.configure(bench.matrix(24, 40, 0.5, 0.2), kind)
    for begin in range(0, 24, 4):
        bench.flushing = never()
        before = bench.in_memory()
        bench.give(begin, begin + 4)
        await bench.wait(lambda: bench.drivers["words"].idle, "rows are not taken")
        records, beats = bench.known(begin + 4)
        if begin + 4 == 24:
            break
        await bench.cycles(100)
        # A burst that began with a flush is as long as any other.
        assert all((now - old) % bench.longest == 0 for now, old in zip(bench.in_memory(), before, strict=True))
        bench.flushing = repeat(True)
        await bench.wait(partial(bench.has_in_memory, beats), f"{beats} beats are not in memory")
        assert int(bench.dut.records.value) == records, f"{int(bench.dut.records.value)} records of {records}"
        coverage.hit("flushed", any(beats))
        await bench.cycles(50)
        assert bench.in_memory() == beats
        bench.compare(bench.expected(*(count * bench.beat_bytes for count in beats)))
    await bench.finish()
    bench.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(kind=["dense", "coo", "zvc"])
async def a_word_a_cycle(dut: Any, kind: str) -> None:
    """The first word waits while settings are checked, no other of a full matrix does; a sparse one waits for its beats."""
    bench = ConvertedCBench(dut)
    await bench.start()
    words = bench.monitors["words"]
    full = Operand(32, [[(column, bench.draw(0.0)) for column in range(32)] for _ in range(12)])
    await bench.whole(full, kind)
    assert words.stalled_cycles == LATENCY, f"words waited {words.stalled_cycles} cycles"
    words.stalled_cycles = 0
    await bench.configure(bench.matrix(12, 64, 0.05), kind)
    bench.give()
    await bench.finish()
    assert words.stalled_cycles <= LATENCY + bench.beats
    bench.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(kind=list(SOURCES))
async def nothing_afterwards(dut: Any, kind: str) -> None:
    """After its last row the block takes nothing till the next reset."""
    bench = ConvertedCBench(dut, "fourth")
    await bench.start()
    await bench.configure(bench.matrix(7, 10, 0.4), kind)
    bench.give()
    bench.give(0, 1)
    await bench.wait(lambda: bench.ended and bool(int(dut.idle.value)), "the matrix does not end")
    for _ in range(60):
        assert int(dut.idle.value) and not int(dut.words__ready.value)
        await bench.cycles(1)
    assert not bench.drivers["words"].idle and int(dut.stalled.value)
    bench.compare(bench.expected())
    coverage.hit("behind")
    await bench.restart()
    await bench.whole(bench.matrix(7, 10, 0.4), kind)
    bench.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(kind=["coo", "rlc", "zvc"])
async def rooms(dut: Any, kind: str) -> None:
    """Records have just the room they need, a byte less, little, none: nothing is written behind it."""
    bench = ConvertedCBench(dut, "fourth")
    await bench.start()
    operand = bench.matrix(20, 30, 0.5)
    needed = await bench.configure(operand, kind)
    await bench.whole(operand, kind, target_records_bytes=needed)
    coverage.hit("exact_room")
    beat = bench.beat_bytes
    for space in (needed - 1, beat, beat - 1, 0):
        await bench.configure(operand, kind, target_records_bytes=space)
        bench.can_end, bench.flushing = False, repeat(True)
        bench.give()
        await bench.wait(lambda: bool(int(dut.overflow.value)), "no overflow is found")
        await bench.cycles(150)
        assert int(dut.overflow.value) and not int(dut.error.value)
        assert int(dut.needed.value) == min(needed, (space // beat + 1) * beat), (
            f"{int(dut.needed.value)} of {needed} bytes"
        )
        # Beats of a burst that another one would have made longer stay where they are.
        records, frame = bench.in_memory()
        assert space // beat - bench.longest < records <= space // beat
        if space == needed - 1:
            assert not int(dut.idle.value), "the last row has come, and not everything is in memory"
        else:
            assert int(dut.stalled.value), "a word is taken that no region has space for"
        bench.compare(bench.expected(records * beat, frame * beat))
        coverage.hit("overflow")
        bench.flushing = never()
        await bench.restart()
        await bench.whole(operand, kind)
    bench.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def wrong_settings(dut: Any) -> None:
    """What no conversion can begin with: no word is taken; the next run after a reset is whole."""
    bench = ConvertedCBench(dut, "fourth")
    await bench.start()
    operand = bench.matrix(9, 17, 0.4)
    widths = {"row": 4, "column": 5, "target_run": RUN_BITS}
    wrong: list[tuple[dict[str, Any], int]] = [
        ({"formats": {"source": source, "target": target}}, BAD_SETTING) for source, target in WRONG_FORMATS
    ]
    wrong += [({name: size}, BAD_SETTING) for name in ("rows", "columns") for size in (0, WIDEST + 1)]
    sizes = {"row": (3, 33), "column": (4, 33), "target_run": (0, 33)}
    wrong += [({"widths": widths | {name: size}}, BAD_SETTING) for name in sizes for size in sizes[name]]
    wrong += [({name: 0x1008}, BAD_ADDRESS) for name in ("target_records", "target_frame")]
    for changes, error in wrong:
        await bench.configure(operand, "rlc", **changes)
        assert not int(dut.error.value)
        bench.give()
        await bench.wait(lambda: bool(int(dut.error.value)), f"{changes} is not found")
        await bench.cycles(40)
        assert int(dut.error.value) == error, f"{changes}: {int(dut.error.value)}"
        assert int(dut.idle.value) and int(dut.stalled.value) and not bench.rows_taken and not bench.asked[0]
        coverage.hit("bad_setting", error == BAD_SETTING)
        coverage.hit("bad_address", error == BAD_ADDRESS)
        await bench.restart()
        await bench.whole(operand, "rlc")
    bench.save()


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(kind=list(SOURCES))
async def reset_in_the_middle(dut: Any, kind: str) -> None:
    """A reset between the first word and the last beat; the next run is whole."""
    bench = ConvertedCBench(dut, "fourth")
    await bench.start()
    for wait in (3, 5, 12, 40, 90, 150):
        bench.flushing = sometimes(0.5, wait)()
        await bench.configure(bench.matrix(24, 30, 0.6), kind)
        bench.give()
        await bench.cycles(wait)
        assert not bench.over
        coverage.hit("reset", bench.rows_taken > 0)
        await bench.restart()
        assert not int(dut.records.value)
        await bench.whole(bench.matrix(9, 30, 0.3, 0.1), kind)
    bench.save()
