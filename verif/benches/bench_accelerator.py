"""The whole accelerator on its pins: register agent on one side, memory agent on the other, golden product as judge.

The design is that of the environment variable ``FIBERLOOM_DESIGN`` (``tiny`` without), with the value type of
``FIBERLOOM_VALUE`` where that is set. Long runs belong to the compiled
simulation; here the buses misbehave as far as AXI allows: stalls on every channel, reordering, errors, resets.
"""

import os
import random
from dataclasses import replace
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiResp

from gen.design import load_design
from sw.formats.csr import Csr
from sw.golden.arithmetic import in_slots
from sw.golden.compare import compare_bits
from sw.golden.spgemm import multiply
from sw.plan.plan import plan
from sw.runtime.memory_image import MemoryImage, build_image
from sw.runtime.registers import COUNTERS, REGISTERS, ErrorCode, field_value, pack_fields, words
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition
from sw.scheme.terms import ORDERS
from verif.agents.axi4 import Axi4MemoryAgent, Behaviour
from verif.agents.axi_lite import RegisterAgent
from verif.agents.memory import Memory
from verif.agents.pauses import pattern
from verif.clocking import begin, reset
from verif.counters import bus_beats, check_sums
from verif.coverage import Coverage

coverage = Coverage("accelerator")
DESIGN = load_design(os.environ.get("FIBERLOOM_DESIGN", "tiny"))
if "FIBERLOOM_VALUE" in os.environ:
    DESIGN = DESIGN.model_copy(update={"pe": DESIGN.pe.model_copy(update={"value": os.environ["FIBERLOOM_VALUE"]})})
RUN_LIMIT = 60_000  # cycles
POLL = 50
LITE_INPUTS = "awvalid awaddr awprot wvalid wdata wstrb bready arvalid araddr arprot rready"
BUS_INPUTS = "awready wready bvalid bid bresp arready rvalid rid rdata rresp rlast"
ZERO = (
    *(f"s_axil_{name}" for name in LITE_INPUTS.split()),
    *(f"m_axi_{name}" for name in BUS_INPUTS.split()),
)


def operand(rows: int, columns: int, density: float, seed: str, empty_rows: float = 0.1) -> Csr:
    """Random matrix; values of the design's type whose sums depend on their order."""
    rng = random.Random(seed)
    pointers, coordinates = [0], []
    for _ in range(rows):
        if rng.random() >= empty_rows:
            coordinates += sorted(c for c in range(columns) if rng.random() < density)
        pointers.append(len(coordinates))
    if DESIGN.pe.value.startswith("int"):
        bits = np.array([rng.getrandbits(32) for _ in coordinates], np.uint32)
    else:
        bits = np.array([rng.gauss(0, 1) * 2.0 ** rng.randint(-9, 9) for _ in coordinates], np.float32).view(np.uint32)
    return Csr(
        rows=rows,
        columns=columns,
        pointers=np.array(pointers, np.int64),
        coordinates=np.array(coordinates, np.uint32),
        bits=in_slots(bits, DESIGN.pe.value),
        value=DESIGN.pe.value,
    )


def scheme(order: str, tile: tuple[int, int, int], *, mode_b: str = "buffering", lines_c: int = 0) -> Scheme:
    buffer_bytes, fifo_bytes = default_partition(DESIGN, lines_c=lines_c)
    return Scheme(
        policy="bench",
        order=order,
        T_i=tile[0],
        T_j=tile[1],
        T_k=tile[2],
        buffer_bytes=buffer_bytes,
        fifo_bytes=fifo_bytes,
        mode={"A": "streaming", "B": mode_b, "C": "buffering" if lines_c else "streaming"},
    )


def small_b_partition(chosen: Scheme, rows: int) -> Scheme:
    """The same scheme with a B partition of metadata, the smallest region and two lines: its tiles overbook it."""
    line = DESIGN.line_bytes
    lines = -(-rows // DESIGN.lanes) + 4 + 2
    return replace(
        chosen, buffer_bytes=chosen.buffer_bytes | {"B": lines * line}, fifo_bytes=chosen.fifo_bytes | {"B": 4 * line}
    )


class AcceleratorBench:
    """Clock, reset, both agents, and the steps of a driver."""

    def __init__(self, dut: Any, conditions: str = "calm") -> None:
        self.dut = dut
        self.conditions = conditions

    async def start(self, image: MemoryImage) -> None:
        dut = self.dut
        await begin(dut, zero=ZERO, clock="aclk", reset_name="aresetn")
        rough = self.conditions == "rough"
        behaviour = Behaviour(latency=12, jitter=25 if rough else 0, reorder=rough, seed=3)
        options = {"reset_active_level": False}
        self.registers = RegisterAgent(dut, "s_axil", dut.aclk, dut.aresetn, **options)
        self.memory = Memory(image.regions.values())
        self.bus = Axi4MemoryAgent(dut, "m_axi", dut.aclk, dut.aresetn, self.memory, behaviour, **options)
        if rough:
            self.bus.pause(pattern("random", "bus"))
            self.registers.pause(pattern("fourth", "registers"))
        self.bus.start()
        await ClockCycles(dut.aclk, 2)

    def use(self, image: MemoryImage) -> None:
        """Another multiplication's memory."""
        self.memory.regions = list(image.regions.values())

    async def read(self, register: str) -> int:
        item = REGISTERS[register]
        value = await self.registers.read(item.offset)
        return value if item.width == 32 else value | await self.registers.read(item.offset + 4) << 32

    async def write(self, register: str, value: int) -> None:
        for offset, word in words(register, value):
            await self.registers.write(offset, word)

    async def load(self, image: MemoryImage) -> None:
        for name, value in image.registers.items():
            await self.write(name, value)

    async def go(self) -> None:
        await self.write("CONTROL", pack_fields("CONTROL", start=1, irq_enable=1))

    async def finish(self) -> tuple[ErrorCode, int]:
        """Wait for the interrupt; returns the error and its detail."""
        for _ in range(RUN_LIMIT // POLL):
            await ClockCycles(self.dut.aclk, POLL)
            if int(self.dut.irq.value):
                break
        else:
            waiting = await self.read("WAITING")
            raise AssertionError(f"the run did not end in {RUN_LIMIT} cycles; WAITING = 0x{waiting:x}")
        status = await self.read("STATUS")
        assert field_value("STATUS", "done", status) and not field_value("STATUS", "busy", status)
        code = ErrorCode(await self.read("ERROR_CODE"))
        assert bool(code) == bool(field_value("STATUS", "error", status))
        assert self.bus.quiet, "bursts are in flight after the end of the run"
        assert not self.bus.breaches, self.bus.breaches[:3]
        return code, await self.read("ERROR_DETAIL")

    async def counters(self) -> dict[str, int]:
        built = await self.read("COUNTERS")
        return {name.lower(): await self.read(name) if n < built else 0 for n, name in enumerate(COUNTERS)}

    async def check(self, image: MemoryImage, a: Csr, b: Csr, chosen: Scheme) -> dict[str, int]:
        """The run ended well and left the golden product, nothing else; returns the counters."""
        assert await self.finish() == (ErrorCode.NONE, 0)
        assert not self.memory.breaches, self.memory.breaches[:3]
        nnz = await self.read("C_NNZ")
        golden = multiply(a, b, DESIGN.pe.merge_radix, DESIGN.pe.arithmetic, chosen.clip(a.rows, b.columns, a.columns))
        verdict = compare_bits(golden.structural, image.c(nnz))
        assert verdict.correct, verdict.detail
        assert image.spilled(nnz) == []
        counters = await self.counters()
        assert counters["macs"] == golden.macs
        assert check_sums(counters, pes=DESIGN.pe.count, gathered=chosen.gathers) == []
        read, written = bus_beats(counters, "read"), bus_beats(counters, "write")
        assert (read, written) == (self.bus.beats["read"], self.bus.beats["write"])
        return counters


async def run_once(dut: Any, conditions: str, a: Csr, b: Csr, chosen: Scheme) -> dict[str, int]:
    """Reset, one run, all checks."""
    image = build_image(DESIGN, plan(chosen, a, b, DESIGN), poison=True)
    bench = AcceleratorBench(dut, conditions)
    await bench.start(image)
    await bench.load(image)
    await bench.go()
    return await bench.check(image, a, b, chosen)


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(conditions=["calm", "rough"])
async def one_tile(dut: Any, conditions: str) -> None:
    """Everything fits: no cut along any rank."""
    a, b = operand(12, 10, 0.25, "a"), operand(10, 11, 0.3, "b")
    counters = await run_once(dut, conditions, a, b, scheme("ijk", (12, 11, 10)))
    assert counters["tiles_total"] == 1 and counters["rows"] == 12
    coverage.save()


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(order=ORDERS)
async def every_order(dut: Any, order: str) -> None:
    """All ranks cut, ragged edges, empty tiles, a rough bus."""
    a, b = operand(9, 13, 0.25, f"{order} a"), operand(13, 11, 0.25, f"{order} b")
    counters = await run_once(dut, "rough", a, b, scheme(order, (4, 6, 5)))
    coverage.hit(f"order_{order}")
    coverage.hit("partial", counters["read_c_data"] > 0)
    coverage.hit("assembly", counters["read_c_meta"] > 0)
    coverage.save()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def overbooked_tiles(dut: Any) -> None:
    """B tiles larger than their partition: what does not fit is streamed at each use."""
    a, b = operand(10, 12, 0.4, "o a"), operand(12, 20, 0.6, "o b")
    chosen = small_b_partition(scheme("jki", (10, 20, 6)), 6)
    counters = await run_once(dut, "rough", a, b, chosen)
    assert counters["tiles_overbooked"] == 2 and counters["bumped_fetches"] > 0
    coverage.hit("overbooked")
    coverage.save()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def streamed_b(dut: Any) -> None:
    """B is not kept: each use reads its segment from memory."""
    a, b = operand(8, 12, 0.3, "s a"), operand(12, 15, 0.4, "s b")
    counters = await run_once(dut, "rough", a, b, scheme("ijk", (8, 15, 12), mode_b="streaming"))
    assert counters["phase_load_b"] <= 2 and counters["stall_load"] == 0
    coverage.hit("b_streamed")
    coverage.save()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def long_rows(dut: Any) -> None:
    """Rows with more leaves than the merge radix go through scratch memory."""
    radix = DESIGN.pe.merge_radix
    a, b = operand(3, 4 * radix + 3, 1.0, "l a", 0.0), operand(4 * radix + 3, 9, 0.5, "l b", 0.0)
    counters = await run_once(dut, "rough", a, b, scheme("ijk", (3, 9, 4 * radix + 3)))
    assert counters["jobs"] > 3 * 4
    coverage.hit("scratch")
    coverage.save()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def long_rows_on_chip(dut: Any) -> None:
    """The first lines of their scratch fibers stay in a ring, which is full at times and goes round; the others go to memory."""
    radix = DESIGN.pe.merge_radix
    a, b = operand(9, 4 * radix + 3, 0.8, "l a", 0.0), operand(4 * radix + 3, 24, 0.5, "l b", 0.0)
    spilled = scheme("ijk", (9, 24, 4 * radix + 3), lines_c=24)
    spilled = replace(spilled, mode=spilled.mode | {"C": "streaming"})
    kept = replace(spilled, scratch_bytes=spilled.buffer_bytes["C"])
    bench = AcceleratorBench(dut, "rough")
    found: list[dict[str, int]] = []
    for chosen in (spilled, kept):
        image = build_image(DESIGN, plan(chosen, a, b, DESIGN), poison=True)
        if not found:
            await bench.start(image)
        bench.use(image)
        bench.bus.beats = {"read": 0, "write": 0}
        await bench.load(image)
        await bench.go()
        found.append(await bench.check(image, a, b, chosen))
    without, counters = found
    for access in ("read_scratch", "write_scratch"):
        assert 0 < counters[access] < without[access]
        coverage.hit("scratch_in_memory", counters[access] > 0)
        coverage.hit("scratch_on_chip", counters[access] < without[access])
    coverage.save()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def empty_tiles(dut: Any) -> None:
    """Tiles whose A or B part is empty are skipped."""
    a, b = operand(9, 12, 0.04, "e a"), operand(12, 10, 0.05, "e b")
    counters = await run_once(dut, "rough", a, b, scheme("ijk", (3, 5, 3)))
    coverage.hit("skipped", counters["tiles_skipped"] > 0)
    coverage.save()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def windows(dut: Any) -> None:
    """Tiles that use B's rows in order, without a gap; one has nothing to do, two use the same ones."""
    a, b = operand(16, 20, 0.0, "w"), operand(20, 11, 0.3, "w b")
    spans = [[0, 7], [4, 15], [6, 15], [0, 0]]
    coordinates = [k for begin, end in spans for _ in range(4) for k in range(begin, end)]
    lengths = [end - begin for begin, end in spans for _ in range(4)]
    bits = operand(1, len(coordinates), 1.0, "w a", 0.0).bits
    pointers = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    a = replace(a, pointers=pointers, coordinates=np.array(coordinates, np.uint32), bits=bits)
    counters = await run_once(dut, "rough", a, b, replace(scheme("kji", (4, 11, 20)), load="list"))
    assert counters["tiles_total"] == 4 and counters["tiles_skipped"] == 1 and counters["read_c_meta"] == 0
    coverage.hit("windows")
    coverage.save()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def lists(dut: Any) -> None:
    """Each tile loads the rows of B that it uses, and finds some of them resident."""
    a, b = operand(16, 20, 0.2, "l a"), operand(20, 11, 0.3, "l b")
    counters = await run_once(dut, "rough", a, b, replace(scheme("ijk", (4, 11, 20)), load="list"))
    assert counters["tiles_total"] == 4 and counters["read_c_meta"] == 0
    coverage.hit("lists")
    coverage.save()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def nothing_at_all(dut: Any) -> None:
    """A matrix without nonzeros gives an empty C."""
    await run_once(dut, "rough", operand(5, 6, 0.0, "none"), operand(6, 7, 0.5, "some"), scheme("kij", (2, 3, 4)))
    coverage.save()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def partial_rows_on_chip(dut: Any) -> None:
    """With k innermost, partial rows stay in C's partition."""
    a, b = operand(6, 12, 0.4, "c a"), operand(12, 8, 0.4, "c b")
    counters = await run_once(dut, "rough", a, b, scheme("ijk", (6, 8, 4), lines_c=64))
    assert counters["buffer_peak_c"] > 0
    coverage.hit("c_on_chip")
    coverage.save()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def runs_follow_each_other(dut: Any) -> None:
    """Three different multiplications without a reset between them."""
    first = True
    bench = AcceleratorBench(dut, "calm")
    for n, order in enumerate(("ijk", "kji", "jik")):
        a, b = operand(6 + n, 9, 0.3, f"f{n}a"), operand(9, 8 - n, 0.3, f"f{n}b")
        chosen = scheme(order, (3, 8, 5))
        image = build_image(DESIGN, plan(chosen, a, b, DESIGN), poison=True)
        if first:
            await bench.start(image)
            first = False
        bench.use(image)
        bench.bus.beats = {"read": 0, "write": 0}
        await bench.load(image)
        await bench.go()
        await bench.check(image, a, b, chosen)
    coverage.save()


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(kind=["pin", "soft"], when=[60, 333, 700])
async def reset_in_the_middle(dut: Any, kind: str, when: int) -> None:
    """A reset during a run ends it; the next run is right."""
    a, b = operand(10, 14, 0.4, "r a"), operand(14, 12, 0.4, "r b")
    chosen = scheme("kij", (5, 6, 5))
    image = build_image(DESIGN, plan(chosen, a, b, DESIGN), poison=True)
    bench = AcceleratorBench(dut, "calm")
    await bench.start(image)
    await bench.load(image)
    await bench.go()
    await ClockCycles(dut.aclk, when)
    assert field_value("STATUS", "busy", await bench.read("STATUS")), "the run was over before the reset"
    if kind == "pin":
        await reset(dut, 3, clock="aclk", reset_name="aresetn")
        bench.bus.forget()
        await ClockCycles(dut.aclk, 4)
        assert await bench.read("TILE_I") == 0, "a reset by the pin clears the configuration"
    else:
        await bench.write("CONTROL", pack_fields("CONTROL", soft_reset=1))
        while field_value("STATUS", "busy", await bench.read("STATUS")):
            await RisingEdge(dut.aclk)
        assert bench.bus.quiet, "a soft reset left bursts in flight"
        assert await bench.read("TILE_I") == 5, "a soft reset keeps the configuration"
    assert not int(dut.irq.value)
    coverage.hit(f"{kind}_reset_busy")
    fresh = build_image(DESIGN, plan(chosen, a, b, DESIGN), poison=True)
    bench.use(fresh)
    bench.bus.beats = {"read": 0, "write": 0}
    await bench.load(fresh)
    await bench.go()
    await bench.check(fresh, a, b, chosen)
    coverage.save()


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(region=["a_pointers", "a_elements", "b_elements", "c_elements", "c_pointers"])
@cocotb.parametrize(response=["SLVERR", "DECERR"])
async def bus_errors(dut: Any, region: str, response: str) -> None:
    """An error on the bus ends the run with its address; the run after it is right."""
    a, b = operand(8, 9, 0.4, "x a", 0.0), operand(9, 10, 0.4, "x b", 0.0)
    chosen = scheme("ijk", (8, 10, 9))
    image = build_image(DESIGN, plan(chosen, a, b, DESIGN), poison=True)
    bench = AcceleratorBench(dut, "calm")
    await bench.start(image)
    kind = "write" if region.startswith("c_") else "read"
    address = image.regions[region].base
    bench.bus.faults[kind, address] = AxiResp[response]
    await bench.load(image)
    await bench.go()
    code, detail = await bench.finish()
    assert code == (ErrorCode.AXI_WRITE if kind == "write" else ErrorCode.AXI_READ)
    assert detail == address
    coverage.hit(f"{kind}_error")
    bench.bus.faults.clear()
    fresh = build_image(DESIGN, plan(chosen, a, b, DESIGN), poison=True)
    bench.use(fresh)
    bench.bus.beats = {"read": 0, "write": 0}
    await bench.go()
    await bench.check(fresh, a, b, chosen)
    coverage.save()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def refused_schemes(dut: Any) -> None:
    """Illegal register values are refused with the error that names them, and the next run is right."""
    a, b = operand(6, 7, 0.4, "i a"), operand(7, 8, 0.4, "i b")
    chosen = scheme("ijk", (6, 4, 7))
    image = build_image(DESIGN, plan(chosen, a, b, DESIGN), poison=True)
    bench = AcceleratorBench(dut, "calm")
    await bench.start(image)
    wrong = [
        ("TILE_J", 0, ErrorCode.BAD_TILE_SHAPE, REGISTERS["TILE_J"].offset),
        ("SHAPE_K", 0, ErrorCode.BAD_TILE_SHAPE, REGISTERS["SHAPE_K"].offset),
        ("ORDER", 6, ErrorCode.BAD_ORDER, 6),
        ("B_LINES", DESIGN.sram_lines, ErrorCode.BAD_PARTITION, REGISTERS["B_LINES"].offset),
        ("B_LINES", 5, ErrorCode.B_METADATA_OVERFLOW, None),
        ("MODES", 0, ErrorCode.BAD_MODE, 0),  # B streams while j is cut
        ("C_ELEMENTS", image.registers["C_ELEMENTS"] + 4, ErrorCode.BAD_ADDRESS, REGISTERS["C_ELEMENTS"].offset),
        ("C_ELEMENTS_BYTES", 2 * DESIGN.line_bytes, ErrorCode.C_ELEMENTS_OVERFLOW, None),
        ("C_POINTERS", image.registers["A_POINTERS"], ErrorCode.WRITE_OUTSIDE, image.registers["A_POINTERS"]),
        ("WRITE_END", image.registers["WRITE_BEGIN"], ErrorCode.WRITE_OUTSIDE, None),
    ]
    for register, value, code, detail in wrong:
        await bench.load(image)
        await bench.write(register, value)
        await bench.go()
        found = await bench.finish()
        assert found[0] == code, f"{register} = {value}: {found}"
        assert detail is None or found[1] == detail, f"{register} = {value}: {found}"
        bins = {ErrorCode.C_ELEMENTS_OVERFLOW: "overflow", ErrorCode.WRITE_OUTSIDE: "write_outside"}
        coverage.hit(bins.get(code, "refused_scheme"))
    bench.bus.beats = {"read": 0, "write": 0}
    await bench.load(image)
    await bench.go()
    await bench.check(image, a, b, chosen)
    coverage.save()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def configuration_is_locked_while_busy(dut: Any) -> None:
    """Writes of configuration during a run are answered with SLVERR and change nothing; a second start is ignored."""
    a, b = operand(10, 12, 0.4, "k a"), operand(12, 9, 0.4, "k b")
    chosen = scheme("kij", (5, 9, 4))
    image = build_image(DESIGN, plan(chosen, a, b, DESIGN), poison=True)
    bench = AcceleratorBench(dut, "calm")
    await bench.start(image)
    await bench.load(image)
    await bench.go()
    answer = await bench.registers.master.write(REGISTERS["TILE_K"].offset, (7).to_bytes(4, "little"))
    assert answer.resp == AxiResp.SLVERR
    await bench.go()
    assert await bench.read("TILE_K") == 4
    await bench.check(image, a, b, chosen)
    coverage.save()
