"""The whole converter on its pins: register agent on one side, memory agent on the other, golden arrays as judge.

The design is ``tiny`` with the value type of the build. Testplan: ``verif/testplans/converter.toml``.
"""

import random
from dataclasses import dataclass
from itertools import product
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles
from numpy.typing import NDArray

from gen.design import load_design
from sw.formats.csr import VALUE_DTYPES
from sw.formats.sparse_tensor import VALUE_BITS, SparseTensor
from sw.formats.storage import storage_format
from sw.formats.storage_format import pack
from sw.runtime.converter import (
    CONVERTER,
    ERRORS,
    MATRIX_FORMATS,
    PAIRS,
    REGISTERS,
    ConverterImage,
    Matrix,
    converter_image,
)
from verif.agents.axi4 import Axi4MemoryAgent, Behaviour
from verif.agents.axi_lite import RegisterAgent
from verif.agents.memory import Memory
from verif.agents.pauses import pattern
from verif.clocking import begin
from verif.coverage import Coverage

coverage = Coverage("converter")
DESIGN = load_design("tiny")
VALUE = DESIGN.pe.value
RUN_LIMIT, POLL = 20_000, 20  # cycles
LITE_INPUTS = "awvalid awaddr awprot wvalid wdata wstrb bready arvalid araddr arprot rready"
BUS_INPUTS = "awready wready bvalid bid bresp arready rvalid rid rdata rresp rlast"
ZERO = (*(f"s_axil_{name}" for name in LITE_INPUTS.split()), *(f"m_axi_{name}" for name in BUS_INPUTS.split()))
START, SOFT_RESET, IRQ_ENABLE = 1, 2, 4


@dataclass(frozen=True)
class Place:
    """A region of memory."""

    name: str
    base: int
    data: NDArray[np.uint8]
    writable: bool


def tensor(shape: tuple[int, ...], density: float, seed: str) -> SparseTensor:
    """Random entries, none of them 0."""
    rng = random.Random(seed)
    places = [place for place in product(*map(range, shape)) if rng.random() < density]
    ids = np.array(places, np.int64).reshape(-1, len(shape))
    values = np.array([rng.randint(1, 100) for _ in places], VALUE_DTYPES[VALUE])
    return SparseTensor(shape=shape, ids=tuple(ids.T.copy()), values=values, value=VALUE)


def matrix(rows: int, columns: int, density: float, seed: str) -> SparseTensor:
    """Of a matrix."""
    return tensor((rows, columns), density, seed)


def image_of(what: SparseTensor, source: str, target: str) -> tuple[ConverterImage, dict[str, NDArray[np.uint8]]]:
    """The image, and the bytes that must come out."""
    sides, memory = [], []
    for kind in (source, target):
        form = storage_format(kind)
        layout = form.layout(what.shape, form.counts(what), VALUE)
        sides.append(Matrix.of(kind, form, layout))
        memory.append({name: data.view(np.uint8) for name, data in pack(layout, form.encode(what)).items()})
    return converter_image(DESIGN, what.shape, sides[0], sides[1], memory[0]), memory[1]


class ConverterBench:
    """Clock, reset, both agents, and the steps of a driver."""

    def __init__(self, dut: Any, conditions: str = "calm") -> None:
        self.dut = dut
        self.conditions = conditions

    async def start(self, image: ConverterImage) -> None:
        dut = self.dut
        await begin(dut, zero=ZERO, clock="aclk", reset_name="aresetn")
        rough = self.conditions == "rough"
        behaviour = Behaviour(latency=6, jitter=20 if rough else 0, reorder=rough, seed=3)
        self.registers = RegisterAgent(dut, "s_axil", dut.aclk, dut.aresetn, reset_active_level=False)
        self.memory = Memory([])
        self.use(image)
        self.bus = Axi4MemoryAgent(
            dut, "m_axi", dut.aclk, dut.aresetn, self.memory, behaviour, reset_active_level=False
        )
        if rough:
            self.bus.pause(pattern("random", "bus"))
            self.registers.pause(pattern("fourth", "registers"))
        self.bus.start()
        await ClockCycles(dut.aclk, 2)

    def use(self, image: ConverterImage) -> None:
        """Another conversion's memory."""
        given = [Place(name, at, data, False) for name, (at, data) in image.source.items()]
        wanted = [Place(name, at, data, True) for name, (at, data) in (image.target | image.scratch).items()]
        self.memory.regions = [*given, *wanted]

    async def read(self, register: str) -> int:
        item = REGISTERS[register]
        value = await self.registers.read(item.offset)
        return value if item.width == 32 else value | await self.registers.read(item.offset + 4) << 32

    async def load(self, registers: dict[str, int]) -> None:
        for name, value in registers.items():
            for offset, word in CONVERTER.words(name, value):
                await self.registers.write(offset, word)

    async def command(self, bits: int) -> None:
        await self.registers.write(REGISTERS["CONTROL"].offset, bits)

    async def finish(self) -> str:
        """Wait for the interrupt; returns the error's name."""
        for _ in range(RUN_LIMIT // POLL):
            await ClockCycles(self.dut.aclk, POLL)
            if int(self.dut.irq.value):
                break
        else:
            raise AssertionError(f"the run did not end in {RUN_LIMIT} cycles")
        assert self.bus.quiet, "bursts are in flight after the end of the run"
        assert not self.bus.breaches, self.bus.breaches[:3]
        return ERRORS[await self.read("ERROR_CODE")][0]

    async def convert(self, image: ConverterImage, wanted: dict[str, NDArray[np.uint8]]) -> None:
        """A run that ends well and leaves the golden bytes, nothing else."""
        self.use(image)
        before = dict(self.bus.beats)
        await self.load(image.registers)
        await self.command(START | IRQ_ENABLE)
        assert await self.finish() == "none"
        assert not self.memory.breaches, self.memory.breaches[:3]
        for name, data in image.written().items():
            assert np.array_equal(data, wanted[name]), name
        assert image.spilled() == []
        moved = {name: (self.bus.beats[name] - before[name]) * DESIGN.bus_bytes for name in ("read", "write")}
        assert (await self.read("READ_BYTES"), await self.read("WRITTEN_BYTES")) == (moved["read"], moved["write"])


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(conditions=["calm", "rough"])
async def every_pair(dut: Any, conditions: str) -> None:
    """Each format to each other, run after run; matrices and tensors in turns."""
    bench = ConverterBench(dut, conditions)
    for number, (source, target) in enumerate(PAIRS):
        density = (0.05, 0.3, 1.0)[number % 3]
        shape = (7, 9) if target in MATRIX_FORMATS else (3, 4, 5)
        image, wanted = image_of(tensor(shape, density, f"{source} {target}"), source, target)
        if not number:
            await bench.start(image)
        await bench.convert(image, wanted)
        coverage.hit(f"from_{source}")
        coverage.hit(f"to_{target}")
        coverage.hit("transposed_in_sram", image.passes > 0 and not image.scratch)
        coverage.hit("transposed_in_memory", len(image.scratch) == 1)
        coverage.hit("full", density == 1.0)
        coverage.hit("rough", conditions == "rough")
    coverage.save()


TREES = {
    "no_slice": ((3, 4, 5), 0.0),
    "one_fiber": ((1, 1, 40), 0.6),
    "fibers_of_one": ((2, 17, 1), 1.0),
    "slices_of_one": ((17, 1, 1), 1.0),
    "gaps": ((9, 8, 7), 0.02),
}


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(conditions=["calm", "rough"])
async def trees(dut: Any, conditions: str) -> None:
    """Trees without a node, of one and of many on each level, up to the largest coordinate."""
    bench = ConverterBench(dut, conditions)
    size = 1 << 32
    ends = [(i, j, k) for i in (0, size - 1) for j in (7, size - 1) for k in (0, 1, size - 1)]
    ids = np.array(ends, np.int64).T
    values = np.arange(1, len(ends) + 1).astype(VALUE_DTYPES[VALUE])
    far = SparseTensor(shape=(size,) * 3, ids=tuple(rank.copy() for rank in ids), values=values, value=VALUE)
    whats = {"largest": far} | {name: tensor(*of, name) for name, of in TREES.items()}
    for number, (name, what) in enumerate(whats.items()):
        for source in ("coo", "dense") if name != "largest" else ("coo",):
            image, wanted = image_of(what, source, "csf")
            if not number:
                await bench.start(image)
            await bench.convert(image, wanted)
            coverage.hit(f"tree_{name}")
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def nothing_stored(dut: Any) -> None:
    """A matrix without entries, and one of a single place."""
    bench = ConverterBench(dut)
    for number, (source, target) in enumerate((("csr", "coo"), ("coo", "csr"), ("rlc", "zvc"), ("zvc", "dense"))):
        for shape, density in (((5, 3), 0.0), ((1, 1), 1.0)):
            image, wanted = image_of(matrix(*shape, density, "few"), source, target)
            if not number and not density:
                await bench.start(image)
            await bench.convert(image, wanted)
            coverage.hit("empty", density == 0.0)
            coverage.hit("one_place", density == 1.0)
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(conditions=["calm", "rough"])
async def several_passes(dut: Any, conditions: str) -> None:
    """More columns, or rows, than counters: entries go to and fro between two scratch regions."""
    bench = ConverterBench(dut, conditions)
    first = True
    for source, target, shape in (("csr", "csc", (6, 300)), ("csc", "rlc", (300, 5)), ("dense", "csc", (9, 40))):
        image, wanted = image_of(matrix(*shape, 0.2, source), source, target)
        if first:
            await bench.start(image)
            first = False
        await bench.convert(image, wanted)
        assert await bench.read("PASSES") == image.passes
        coverage.hit("several_passes", image.passes > 1 and len(image.scratch) == 2)
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def errors_end_a_run(dut: Any) -> None:
    """What contradicts itself, what memory refuses, what lies outside the window; and a good run after each."""
    what = matrix(7, 9, 0.4, "errors")
    good, wanted = image_of(what, "csr", "zvc")
    bench = ConverterBench(dut, "rough")
    await bench.start(good)
    faults = (
        ({"COUNT": good.registers["COUNT"] - 2}, "bad_pointers"),
        ({"TARGET_RECORDS_BYTES": 9}, "records_overflow"),
        ({"WRITE_END": good.registers["WRITE_BEGIN"] + 16}, "write_outside"),
        ({"SOURCE_RECORDS": 1 << 30}, "axi_read"),
        ({"ROWS": 0}, "bad_setting"),
    )
    for changes, error in faults:
        image, _ = image_of(what, "csr", "zvc")
        bench.use(image)
        await bench.load(image.registers | changes)
        await bench.command(START | IRQ_ENABLE)
        assert await bench.finish() == error
        bench.memory.breaches.clear()
        coverage.hit(error)
        source, wanted = image_of(what, "csr", "zvc")
        await bench.convert(source, wanted)
    wide = matrix(7, 90, 0.2, "scratch")
    for target, changes, error in (
        ("csc", {"SCRATCH_BYTES": 400}, "scratch_overflow"),
        ("csc", {"DIGITS": 3 | 2 << 6}, "bad_setting"),
        ("bsr", {"TARGET_BLOCKS_BYTES": 100}, "blocks_overflow"),
    ):
        image, _ = image_of(wide, "csr", target)
        bench.use(image)
        await bench.load(image.registers | changes)
        await bench.command(START | IRQ_ENABLE)
        assert await bench.finish() == error
        assert not bench.memory.breaches
        coverage.hit(error)
        source, wanted = image_of(wide, "csr", target)
        await bench.convert(source, wanted)
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def errors_in_trees(dut: Any) -> None:
    """Entries that fall, regions of a tree that are too small, extents that are none; and a good run after each."""
    what = tensor((4, 5, 6), 0.3, "trees")
    image, wanted = image_of(what, "coo", "csf")
    bench = ConverterBench(dut, "rough")
    await bench.start(image)

    record = (VALUE_BITS[VALUE] + 2 + 3 + 3) // 8
    for changes, error in (
        ({}, "bad_order"),
        ({"ROWS": 1}, "bad_coordinate"),
        ({"DEPTH": 0}, "bad_setting"),
        ({"POINTERS": 40 << 6 | 2 << 12}, "pointer_overflow"),
        ({"TARGET_FRAME_BYTES": 3}, "frame_overflow"),
        ({"TARGET_BLOCKS_BYTES": 1}, "blocks_overflow"),
        ({"TARGET_IDS_0_BYTES": 0}, "ids_0_overflow"),
        ({"TARGET_PTRS_1_BYTES": 0}, "ptrs_1_overflow"),
    ):
        image, _ = image_of(what, "coo", "csf")
        if not changes:
            data = image.source["entries"][1]
            data[record : 2 * record] = data[:record]  # the first entry comes twice
        bench.use(image)
        await bench.load(image.registers | changes)
        await bench.command(START | IRQ_ENABLE)
        assert await bench.finish() == error
        assert not bench.memory.breaches
        coverage.hit(f"tree_{error}")
        good, wanted = image_of(what, "coo", "csf")
        await bench.convert(good, wanted)
    coverage.save()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def soft_reset_in_the_middle(dut: Any) -> None:
    """A run that is stopped leaves the bus quiet and the next run whole."""
    what = matrix(12, 15, 0.5, "reset")
    image, _ = image_of(what, "dense", "csr")
    bench = ConverterBench(dut, "rough")
    await bench.start(image)
    await bench.load(image.registers)
    await bench.command(START | IRQ_ENABLE)
    await ClockCycles(dut.aclk, 60)
    coverage.hit("soft_reset", not int(dut.irq.value))
    await bench.command(SOFT_RESET | IRQ_ENABLE)
    for _ in range(100):
        await ClockCycles(dut.aclk, POLL)
        if not await bench.read("STATUS") & 1:
            break
    assert bench.bus.quiet
    fresh, wanted = image_of(what, "dense", "csr")
    await bench.convert(fresh, wanted)
    # While buckets have bytes that are not in memory yet.
    image, _ = image_of(what, "csr", "csc")
    bench.use(image)
    await bench.load(image.registers)
    written = bench.bus.beats["write"]
    await bench.command(START | IRQ_ENABLE)
    while bench.bus.beats["write"] < written + 3:
        await ClockCycles(dut.aclk, 1)
    await bench.command(SOFT_RESET | IRQ_ENABLE)
    for _ in range(100):
        await ClockCycles(dut.aclk, POLL)
        if not await bench.read("STATUS") & 1:
            break
    coverage.hit("soft_reset_in_a_pass", await bench.read("PASSES") == 0)
    fresh, wanted = image_of(what, "csr", "csc")
    await bench.convert(fresh, wanted)
    # While levels of a tree have nodes that are not in memory yet.
    cube = tensor((9, 8, 7), 0.5, "reset")
    image, _ = image_of(cube, "dense", "csf")
    bench.use(image)
    await bench.load(image.registers)
    written = bench.bus.beats["write"]
    await bench.command(START | IRQ_ENABLE)
    while bench.bus.beats["write"] < written + 3:
        await ClockCycles(dut.aclk, 1)
    await bench.command(SOFT_RESET | IRQ_ENABLE)
    for _ in range(100):
        await ClockCycles(dut.aclk, POLL)
        if not await bench.read("STATUS") & 1:
            break
    coverage.hit("soft_reset_in_a_tree", bench.bus.beats["write"] < written + 100)
    fresh, wanted = image_of(cube, "dense", "csf")
    await bench.convert(fresh, wanted)
    coverage.save()
