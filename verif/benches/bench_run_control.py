"""Run control against its contract: checks, the phases of every tile, assembly, faults.

Testplan: ``verif/testplans/run_control.toml``.
"""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from gen.headers import ERRORS
from verif.agents.pauses import PATTERN_NAMES
from verif.benches.stream_bench import StreamBench
from verif.coverage import Coverage

CODES = {error.name: error.code for error in ERRORS}
TOP = 2**32 - 1
NEEDED_QUIET = 3  # cycles of quiet that must at least pass before the next tile
coverage = Coverage("run_control")


class RunBench(StreamBench):
    """Stands in for controller and accessors: each is busy for a random time after it took its tile."""

    def __init__(self, dut: Any, backpressure: str = "none", seed: int = 1) -> None:
        super().__init__(
            dut,
            drive=["tiles"],
            receive=["load", "load_a", "compute_a", "compute_c"],
            idle=backpressure,
            backpressure=backpressure,
            zero=("scheme", "tune", "start", "fault", "fault_detail", "misaligned", "misaligned_offset"),
            seed=seed,
        )
        self.lanes, self.lines = int(self.block.parameters["lanes"]), int(self.block.parameters["sram_lines"])
        self.offsets: dict[str, int] = self.block.parameters["offsets"]
        self.forget()

    def forget(self) -> None:
        self.busy = {"load_idle": 0, "load_a_idle": 0, "selected": 0, "quiet": 0}
        self.rows_left = 0  # of accessor C's tile
        self.rows_held = 0  # cycles in which none gets out
        self.pulses = dict.fromkeys(("walk", "assemble", "restart_rows", "event_loaded", "event_loaded_a"), 0)
        self.loaded: tuple[int, int] | None = None  # begin along k and j
        self.before: tuple[int, int] = (0, 0)  # begin and size of the window before
        self.loaded_a: tuple[int, int] | None = None
        self.open = 0  # tiles whose rows are not in memory
        self.rows = 0  # of the run, with windows
        self.rows_looked_up = 0  # rows whose nonzeros of A have been handed out, with windows
        self.first_before = 0  # row of the tile before the present one
        self.first = 0
        self.present: Any = None
        self.buffering = {"a": 0, "b": 1}
        self.gathered = 0
        self.walking = False
        self.assembled = 0

    async def start(self) -> None:
        for name in self.busy:
            getattr(self.dut, name).value = 1
        await super().start()
        cocotb.start_soon(self._units())

    async def _units(self) -> None:
        while True:
            for name in self.busy:
                getattr(self.dut, name).value = self.busy[name] <= 0
                self.busy[name] -= 1
            self.rows_held -= 1
            if self.gathered and self.rows_left > self.rows - self.rows_looked_up and self.rows_held <= 0:
                self.rows_left -= 1
                self.rows_held = self.rng.choice([0, 0, 0, 3, 20])
            elif not self.gathered and self.rows_held <= 0:
                self.rows_left = 0
            self.dut.rows_left.value = self.rows_left
            await RisingEdge(self.dut.clk)

    def scheme(self, **changes: Any) -> dict[str, Any]:
        """A legal scheme, with changes."""
        right = {
            "extent": [20, 30, 40],
            "tile": [10, 15, 20],
            "order": 1,
            "buffering": {"a": 0, "b": 1, "c": 0},
            "a": {"base": 0, "lines": 12},
            "b": {"base": 12, "lines": self.lines - 12},
            "c": {"base": 0, "lines": 0},
            "fifo_b": 4,
            "gathered": 0,
            "joined": 0,
        }
        return right | changes

    async def go(self, scheme: dict[str, Any]) -> None:
        self.set("scheme", scheme)
        self.buffering, self.gathered, self.rows = scheme["buffering"], scheme["gathered"], scheme["extent"][0]
        await RisingEdge(self.dut.clk)
        self.dut.start.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.start.value = 0

    def tile(self, kept: int | None = None, **fields: int) -> None:
        """``kept``: of the window's rows; anything where there are no windows."""
        tile = {"size_i": 10, "size_j": 15, "size_k": 20} | fields
        ring = {name: self.rng.getrandbits(16) for name in ("entry", "line", "lines", "metadata")}
        ring["early"] = self.rng.getrandbits(1)
        kept = self.rng.choice([0, 1, tile["size_k"]]) if kept is None else kept
        self.send("tiles", {**tile, "ring": {**ring, "kept": kept}})

    def taken(self, port: str, item: Any) -> None:
        if not self.pulses["walk"]:
            self.board.fail("a tile was taken before the walk began")
        if self.open and not self.gathered:
            self.board.fail("a tile was taken before the rows of the one before were in memory")
        if self.gathered and self.open and (self.board.outstanding("compute_a") or self.busy["selected"] > 0):
            self.board.fail("a window was taken before the elements of A of the one before had been looked up")
        if self.gathered and self.rows_looked_up != item["begin_i"]:
            self.board.fail("a window was taken before the one in front was computed")
        self.first_before, self.first = self.first, item["begin_i"]
        place = (item["begin_k"], item["begin_j"])
        new = item["size_k"] != item["ring"]["kept"] if self.gathered else self.loaded != place
        wants_load = self.buffering["b"] and not item["carry"] and new
        place_a = (item["begin_i"], item["begin_k"])
        wants_a = self.buffering["a"] and not item["carry"] and self.loaded_a != place_a
        coverage.hit("carried", bool(item["carry"]))
        coverage.hit("streamed", not self.buffering["b"])
        coverage.hit("in_place", bool(self.buffering["b"] and not item["carry"] and not wants_load))
        coverage.hit("in_place_a", bool(self.buffering["a"] and not item["carry"] and not wants_a))
        if wants_a:
            self.loaded_a = place_a
            self.board.expect("load_a", item)
            coverage.hit("loaded_a")
        if wants_load:
            self.loaded = place
            self.board.expect("load", item)
            coverage.hit("loaded")
        if self.gathered and not item["carry"]:
            span = item["begin_k"], item["size_k"]
            coverage.hit("window_anew", bool(wants_load and span == self.before))
            coverage.hit("window_kept", not wants_load and span != self.before)
            coverage.hit("window_grown", bool(wants_load and item["ring"]["kept"]))
            self.before = span
            coverage.hit("held_back", bool(wants_load and self._too_early(item)))
        if not self.gathered:
            self.board.expect("compute_a", item)
            self.board.expect("compute_c", item)
        elif not self.open:
            self.board.expect("compute_a", item | {"size_i": self.rows, "begin_k": 0, "carry": 0})
            self.board.expect("compute_c", item | {"size_i": self.rows})
        self.present = item
        self.open = 2

    def _too_early(self, item: Any) -> bool:
        """Rows of C are missing that may use what the window's rows of B replace."""
        return bool(self.rows - self.rows_left < (self.first_before if item["ring"]["early"] else item["begin_i"]))

    def came(self, port: str, item: Any) -> None:
        if port == "load" and self.gathered:
            if self._too_early(item):
                self.board.fail(f"{item} is loaded with {self.rows_left} rows of C missing")
            coverage.hit("early", self.rows - self.rows_left < item["begin_i"])
        if port in ("load", "load_a"):
            self._occupy(f"{port}_idle")
            self.busy["quiet"] = max(self.busy["quiet"], self.busy[f"{port}_idle"])
        else:
            # B's part may still be on its way, but then the machine has to know.
            overlapped = bool(int(self.dut.loading_b.value))
            loading = self.board.outstanding("load") + self.board.outstanding("load_a")
            if loading or (self.busy["load_idle"] > 0 and not overlapped) or self.busy["load_a_idle"] > 0:
                self.board.fail(f"{port} begins before A's and B's parts are in place")
            coverage.hit("overlapped", overlapped)
            if port == "compute_c":
                self.rows_left = item["size_i"] if self.gathered else 1
                self.rows_held = self.rng.choice([2, 3, 8, 40])
            if int(self.dut.assembling.value):
                self.assembled += 1
                if port == "compute_a" or item["size_i"] != 20 or not item["last_k"] or item["begin_i"]:
                    self.board.fail(f"the assembly pass sends {port} {item}")
                return
            self.open -= not self.gathered
        self._occupy("quiet")
        self.board.observe(port, item)

    def _occupy(self, name: str) -> None:
        cycles = self.rng.choice([2, 3, 8, 40])
        self.busy[name] = max(self.busy[name], cycles)
        coverage.hit("slow", cycles == 40)

    def every_cycle(self) -> None:
        if self.gathered and int(self.dut.placed.value):
            # Its rows' elements are looked up from now on.
            self.rows_looked_up = self.present["begin_i"] + self.present["size_i"]
            self._occupy("selected")
        for name in self.pulses:
            self.pulses[name] += int(getattr(self.dut, name).value)

    async def walks(self) -> None:
        await self.wait(lambda: bool(self.pulses["walk"]), "the walk does not begin")

    async def end(self) -> tuple[int, int]:
        await self.wait(lambda: bool(int(self.dut.done.value)), "the run does not end")
        return int(self.dut.error.value), int(self.dut.detail.value)


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES, whole_j=[0, 1], kept=["", "b", "ab"])
async def every_tile_in_turn(dut: Any, backpressure: str, whole_j: int, kept: str) -> None:
    """Load when needed, compute, drain, next; assembly after the last tile if C is cut along j."""
    bench = RunBench(dut, backpressure, seed=2 * whole_j + len(kept))
    await bench.start()
    tile = [10, 15 if kept and not whole_j else 30, 20]
    count = 12
    for n in range(count):
        last = int(n == count - 1)
        place = {"begin_k": 20 * (n // 4 % 2), "begin_j": 0 if whole_j else 15 * (n // 3 % 2)}
        carry = int(bench.rng.random() < 0.2)
        bench.tile(begin_i=10 * (n // 6), carry=carry, whole_j=whole_j, last_k=n % 2, last=last, **place)
    await bench.go(bench.scheme(tile=tile, buffering={name: int(name in kept) for name in "abc"}))
    assert await bench.end() == (0, 0)
    await bench.settle()
    assert bench.pulses["walk"] == 1
    counts = dut.tiles_per_rank.value
    wanted_counts = [-(-extent // size) for extent, size in zip([20, 30, 40], tile, strict=True)]
    assert bench.block.layout("tiles_per_rank").unpack(int(counts)) == wanted_counts
    wanted = 1 - whole_j
    assert (bench.pulses["assemble"], bench.pulses["restart_rows"], bench.assembled) == (wanted, wanted, wanted)
    assert bench.pulses["event_loaded"] == bench.board.matched("load")
    assert bench.pulses["event_loaded_a"] == bench.board.matched("load_a")
    coverage.hit("no_assembly" if whole_j else "assembly")
    coverage.save()


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(backpressure=PATTERN_NAMES)
async def windows(dut: Any, backpressure: str) -> None:
    """A window is loaded unless all its rows were kept, wherever it lies and whatever came before; one that carries is not."""
    bench = RunBench(dut, backpressure)
    await bench.start()
    # Begin, size, kept.
    spans = [(0, 20, 0), (0, 20, 20), (0, 20, 0), (0, 12, 12), (0, 12, 0), (0, 20, 12), (8, 12, 12), (8, 20, 19)]
    spans += [(8, 0, 0), (8, 20, 20), (9, 20, 1), (30, 1, 0), (30, 1, 1), (31, 1, 1), (0, 0, 0), (0, 0, 5), (32, 8, 0)]
    # All bits of a size count.
    spans += [
        (0, 2**24 - 1, 2**24 - 1),
        (0, 2**24 - 1, 2**23 - 1),
        (0, 2**24 - 2, 2**24 - 1),
        (0, 2**23, 0),
        (0, 2**24, 0),
    ]
    for _ in range(20):
        size = bench.rng.choice([0, 19, 20])
        spans.append((bench.rng.choice([0, 20]), size, bench.rng.choice([0, size, bench.rng.randint(0, size)])))
    loads = sum(bool(size) and kept != size for _, size, kept in spans)
    for n, (begin, size, kept) in enumerate(spans):
        flags = {"carry": int(not size), "whole_j": 1, "whole_k": 1, "last_k": 1, "last": int(n == len(spans) - 1)}
        bench.tile(kept, begin_i=10 * n, begin_k=begin, size_k=size, size_j=30, **flags)
    scheme = bench.scheme(extent=[10 * len(spans), 30, 40], tile=[10, 30, 20], gathered=1)
    # Of a list or of k itself.
    await bench.go(scheme | {"by_list": int(backpressure != "none")})
    assert await bench.end() == (0, 0)
    await bench.settle()
    assert bench.pulses["event_loaded"] == bench.board.matched("load") == loads
    assert not bench.pulses["assemble"]
    coverage.hit("windows")
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(fifo=[0, 4, 9], windowed=[0, 1])
async def room_for_metadata(dut: Any, fifo: int, windowed: int) -> None:
    """The least partition of B for each longest tile begins a walk, a line less is refused; windows need one line more."""
    bench = RunBench(dut)
    await bench.start()
    lanes = bench.lanes
    for tile, extent in (
        (20, 40),
        (2 * lanes, 40),
        (2 * lanes + 1, 40),
        (1, 40),
        (40, 3 * lanes - 1),
        (TOP, 1),
        (7, 7),
    ):
        # Of entries, of data, of the FIFO-managed region; with windows one between the newest entries and the oldest.
        least = -(-min(tile, extent) // lanes) + 1 + fifo + windowed
        for lines in (least, least - 1, bench.lines - 12):
            scheme = bench.scheme(extent=[20, 30, extent], tile=[10, 30, tile], fifo_b=fifo, gathered=windowed)
            await bench.go(scheme | {"b": {"base": 12, "lines": lines}})
            if lines >= least:
                await bench.walks()
                coverage.hit("least_room", lines == least)
            else:
                assert await bench.end() == (CODES["b_metadata_overflow"], least), (tile, extent)
                assert not bench.pulses["walk"]
            await bench.restart()
            bench.forget()
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def wrong_schemes_are_refused(dut: Any) -> None:
    """Each mistake of a driver ends the run before the walk, with the error and the field that it names.

    A mistake of windows alone is legal without them.
    """
    for wrong, code, detail in mistakes(RunBench(dut)):
        bench = RunBench(dut)
        await bench.start()
        misaligned, tune = wrong.pop("misaligned", 0), wrong.pop("tune", 0)
        dut.misaligned.value, dut.misaligned_offset.value = int(bool(misaligned)), misaligned
        bench.set("tune", {"enable": tune})
        await bench.go(bench.scheme(**wrong))
        found = await bench.end()
        assert found == (CODES[code], detail), f"{wrong}: {found}, expected {code} {detail}"
        assert not bench.pulses["walk"], f"{wrong}: walked"
        await bench.restart()
        bench.dut.misaligned.value = 0
        bench.set("tune", 0)
        coverage.hit("refused")
        if wrong.get("gathered"):
            bench.forget()
            await bench.go(bench.scheme(**wrong | {"gathered": 0}))
            await bench.walks()
            await bench.restart()
            coverage.hit("refused_windows")
    coverage.save()


def mistakes(bench: RunBench) -> list[tuple[dict[str, Any], str, int]]:
    """Mistakes of a driver, and the error that each must give."""
    at = bench.offsets
    lines = bench.lines
    metadata, rows = -(-20 // bench.lanes), -(-10 // bench.lanes)
    windowed = {"gathered": 1, "tile": [10, 30, 20]}
    half = {"b": {"base": 12, "lines": lines - 24}, "c": {"base": lines - 12, "lines": 12}, "order": 0}
    return [
        ({"extent": [20, 0, 40]}, "bad_tile_shape", at["shape_j"]),
        ({"tile": [10, 15, 0]}, "bad_tile_shape", at["tile_k"]),
        ({"tile": [10, 15, 1], "joined": 1}, "bad_tile_shape", at["tile_k"]),
        ({"joined": 1, "part_words": 1}, "bad_address", at["part_words"]),
        ({"order": 6}, "bad_order", 6),
        ({"order": 255}, "bad_order", 255),
        ({"b": {"base": 13, "lines": lines - 12}}, "bad_partition", at["b_lines"]),
        ({"c": {"base": lines - 4, "lines": 4}}, "bad_partition", at["c_lines"]),
        ({"c": {"base": 8, "lines": 4}}, "bad_partition", at["c_lines"]),
        ({"b": {"base": 12, "lines": metadata + 4}}, "b_metadata_overflow", metadata + 5),
        (windowed | {"b": {"base": 12, "lines": metadata + 5}}, "b_metadata_overflow", metadata + 6),
        ({"buffering": {"a": 0, "b": 0, "c": 0}}, "bad_mode", 0),
        ({"buffering": {"a": 1, "b": 1, "c": 0}, "a": {"base": 0, "lines": rows}}, "a_metadata_overflow", rows + 1),
        ({"buffering": {"a": 0, "b": 1, "c": 1}}, "bad_mode", 6),
        ({"misaligned": 0x48}, "bad_address", 0x48),
        (windowed | {"buffering": {"a": 1, "b": 1, "c": 0}}, "bad_mode", 11),
        (windowed | {"buffering": {"a": 0, "b": 1, "c": 1}, **half}, "bad_mode", 14),
        (windowed | {"buffering": {"a": 0, "b": 0, "c": 0}}, "bad_mode", 8),
        (windowed | {"tile": [10, 29, 20]}, "bad_mode", 10),
        (windowed | {"tune": 1}, "bad_mode", 10),
        ({"by_list": 1}, "bad_mode", 18),
        ({"planned": 1}, "bad_mode", 66),
    ]


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(when=[20, 60, 150])
async def faults_end_the_run(dut: Any, when: int) -> None:
    """A fault of any unit ends the run at any moment, with its detail."""
    bench = RunBench(dut, seed=when)
    await bench.start()
    for n in range(40):
        bench.tile(begin_k=20 * (n % 2), last=int(n == 39), whole_j=1)
    await bench.go(bench.scheme())
    await bench.cycles(when)
    assert not int(dut.done.value)
    dut.fault.value, dut.fault_detail.value = 9, 0x1234567890
    await bench.cycles(1)
    dut.fault.value, dut.fault_detail.value = 0, 0
    assert await bench.end() == (9, 0x1234567890)
    coverage.hit("fault")
    coverage.save()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def reset_in_the_middle(dut: Any) -> None:
    """A reset during a tile; the next run loads B again and ends well."""
    bench = RunBench(dut, "fourth")
    await bench.start()
    for n in range(30):
        bench.tile(begin_k=20 * (n % 2), whole_j=1)
    await bench.go(bench.scheme())
    await bench.cycles(150)
    assert bench.pulses["walk"] and not int(dut.done.value)
    coverage.hit("reset")
    await bench.restart()
    bench.forget()
    await bench.cycles(5)
    assert not int(dut.done.value)
    for n in range(4):
        bench.tile(begin_k=20 * (n % 2), whole_j=1, last=int(n == 3))
    await bench.go(bench.scheme())
    assert await bench.end() == (0, 0)
    await bench.settle()
    coverage.save()
