"""Runs of the whole machine with a tensor that is converted on its way, and such runs with something spoiled."""

from dataclasses import replace
from functools import cache

import numpy as np

from gen.design import Design, load_design
from sw.formats.csr import Csr
from sw.golden.compare import check_against_scipy, compare_bits
from sw.golden.spgemm import Product, multiply
from sw.model.machine import run_model
from sw.plan.kept_matrix import KeptMatrix
from sw.plan.plan import Plan, plan
from sw.runtime.driver import Driver
from sw.runtime.memory_image import MemoryImage, build_image
from sw.runtime.registers import CONVERSION, REGISTERS, ErrorCode, field_value, pack_fields
from sw.runtime.simulation.engine import bus_timing, library_of, observe, open_simulation, run_rtl
from sw.runtime.simulation.loader import Simulation
from sw.runtime.simulation.sources import accelerator_sources
from tests.verif.test_end_to_end import random_operand, scheme
from verif.counters import check_counters

__all__ = ["Spoiled", "check", "converting", "expected_c", "stored"]


@cache
def converting(*changes: str) -> Design:
    """``tiny`` with conversions of A, B and C, and with changes."""
    built = [f"memory.converts_{tensor}=true" for tensor in "abc"]
    return load_design("tiny", ["memory.records=packed", *built, *changes])


def stored(planned: Plan[Csr], tensor: str, kind: str, **options: int) -> Plan[Csr]:
    """The plan with A, B or C in a format."""
    matrix = {"a": planned.a, "b": planned.b}.get(tensor) or _golden(converting(), planned).structural
    return replace(planned, **{f"stored_{tensor}": KeptMatrix.of(matrix, kind, **options)})


def _golden(design: Design, planned: Plan[Csr]) -> Product:
    return multiply(planned.a, planned.b, design.pe.merge_radix, planned.a.value, planned.scheme)


def expected_c(planned: Plan[Csr], golden: Product) -> Csr:
    """The golden C as it comes out of its format."""
    bare = planned.stored_c is not None and not planned.stored_c.form.keeps_zeros
    return golden.canonical if bare else golden.structural


def check(design: Design, planned: Plan[Csr], seed: int = 0) -> dict[str, int]:
    """Runs and compares everything; returns the counters."""
    a, b = planned.a, planned.b
    found = run_rtl(design, planned, max_cycles=1_000_000, poison=True, seed=seed)
    assert found.error is None and found.c is not None
    golden = _golden(design, planned)
    for verdict in (
        compare_bits(expected_c(planned, golden), found.c),
        check_against_scipy(a, b, golden.structural, value=design.pe.arithmetic),
    ):
        assert verdict.correct, verdict
    model = run_model(design, planned)
    assert found.dram_bytes == model.dram_bytes
    wrong = check_counters(found.counters, found.observed, design=design, macs=golden.macs, model=model)
    assert not wrong, wrong
    return found.counters


class Spoiled:
    """One simulation whose memory and registers are spoiled before a run."""

    def __init__(self, tensor: str, kind: str, tile: tuple[int, int, int] = (4, 12, 20), order: str = "ijk") -> None:
        self.tensor = tensor
        self.register = CONVERSION[tensor][0]
        design = converting()
        self.a, self.b = random_operand(13, 20, 0.3, "int32", 6), random_operand(20, 12, 0.3, "int32", 7)
        forced = scheme(design, tile, order).clip(13, 12, 20)
        self.planned = stored(plan(forced, self.a, self.b, design), tensor, kind)
        self.golden = expected_c(self.planned, _golden(design, self.planned))
        self.image: MemoryImage = build_image(design, self.planned, poison=True)
        sources = accelerator_sources(design)
        self.simulation: Simulation = open_simulation(library_of(design, sources), self.image, bus_timing(design))
        self.driver = Driver(self.simulation)
        self.pristine = {name: region.data.copy() for name, region in self.image.regions.items()}

    def run(self, **registers: int) -> tuple[ErrorCode, int]:
        """Error and detail."""
        self.begin(**registers)
        assert self.simulation.run(400_000), self.driver.waiting()
        found = ErrorCode(self.driver.read("ERROR_CODE")), self.driver.read("ERROR_DETAIL")
        for name, region in self.image.regions.items():
            region.data[:] = self.pristine[name]
        return found

    def begin(self, **registers: int) -> None:
        for name, value in (dict(self.image.registers) | registers).items():
            self.driver.write(name, value)
        self.driver.start()

    def good(self) -> None:
        self.begin()
        assert self.simulation.run(400_000), self.driver.waiting()
        assert self.driver.error() is None
        assert compare_bits(self.golden, self.image.c(self.driver.read("C_NNZ"))).correct
        for name, region in self.image.regions.items():
            region.data[:] = self.pristine[name]

    def check_reset(self, *after: int) -> None:
        """A soft reset so many cycles after the begin of a run; each time the next run is whole."""
        for cycles in after:
            self.begin()
            assert not self.simulation.run(cycles)
            self.driver.soft_reset()
            while self.driver.busy:
                pass
            self.good()

    def check_stall(self, least: int) -> None:
        """The counter of the stall says what its monitor does, and more than ``least``."""
        self.good()
        stalls = self.driver.counters()["stall_conversion"]
        assert stalls == observe(self.simulation, self.image)["stall_conversion"] > least

    def conversion(self, **fields: int) -> int:
        word = self.image.registers[self.register]
        found = {name: field_value(self.register, name, word) for name in REGISTERS[self.register].fields}
        return pack_fields(self.register, **(found | fields))

    def check_mask(self) -> None:
        """A bit more, a bit less, a value of 0 of ZVC; each run after such a one is good."""
        operand = {"a": self.a, "b": self.b}[self.tensor]
        frame, records = (self.image.regions[f"{self.tensor}_{part}"].data for part in ("frame", "elements"))
        for flipped in (1, 0):
            bits = np.unpackbits(frame, bitorder="little")[: operand.rows * operand.columns]
            place = int(np.flatnonzero(bits == flipped)[3])
            frame[place // 8] ^= 1 << place % 8
            code, detail = self.run()
            assert code == ErrorCode.BAD_MASK and detail <= operand.nnz
            self.good()
        records.view(np.uint32)[5] = 0
        assert self.run() == (ErrorCode.BAD_VALUE, 5)
        self.good()

    def check_registers(self) -> None:
        """What no conversion of ZVC can begin with."""
        pointers = f"{self.tensor.upper()}_POINTERS"
        offset = {name: REGISTERS[name].offset for name in (self.register, pointers)}
        for fields in ({"format": 2}, {"row": 3}, {"format": 3, "run": 33}):
            found = self.run(**{self.register: self.conversion(**fields)})
            assert found == (ErrorCode.BAD_SETTING, offset[self.register])
        for count in CONVERSION[self.tensor][1:]:
            assert self.run(**{count: self.image.registers[count] - 1})[0] == ErrorCode.BAD_MASK
        unaligned = self.image.registers[pointers] + 8
        assert self.run(**{pointers: unaligned}) == (ErrorCode.BAD_ADDRESS, offset[pointers])
