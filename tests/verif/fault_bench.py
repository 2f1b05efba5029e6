"""A compiled machine with a driver, memory that can be spoiled and restored, and a judge: what the fault tests stand on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from gen.design import Design, load_design
from sw.formats.csr import Csr
from sw.golden.compare import compare_bits
from sw.golden.product import product_of
from sw.model.tier import simulate
from sw.plan.plan import plan
from sw.runtime.driver import Driver
from sw.runtime.memory_image import MemoryImage, build_image
from sw.runtime.registers import ErrorCode, field_value, pack_fields
from sw.runtime.simulation.build import build
from sw.runtime.simulation.engine import observe, watch_regions
from sw.runtime.simulation.loader import BusTiming, Region, Simulation
from sw.runtime.simulation.sources import accelerator_sources
from sw.scheme.scheme import Scheme
from sw.scheme.terms import B_BY_COLUMNS, LOAD_PLANNED, LOAD_TILE
from verif.counters import check_counters
from verif.soak.machine import ARENA, joined

__all__ = ["BUDGET", "CASES", "Case", "FaultBench", "Outcome", "machine"]

# No run here takes a tenth of it, and the watchdog's patience passes within it several times.
BUDGET = 400_000
SETTLE = 20_000
CALM = BusTiming(read_latency=25, write_latency=15)


@dataclass(frozen=True)
class Case:
    """A multiplication and how it is tiled; lines are of partitions, 0 is streaming."""

    order: str
    tile: tuple[int, int, int]
    a_lines: int = 0
    b_lines: int = 60
    c_lines: int = 0
    keep_c: bool = True
    tuning: bool = False
    parts: bool = False  # of rows are joined by the last k step
    load: str = LOAD_TILE  # what tiles load of B
    scratch_lines: int = 0  # of C's, in which the first lines of scratch fibers stay
    band: bool = False  # A has all elements beside its diagonal: the rows of B come in order, and no list is needed
    density: float = 0.3
    config: str = "tiny"


# Together they use every path: rows of C that leave, stay and come back, pieces that are assembled, scratch fibers, tiles
# that are kept, overbooked and streamed, and shapes that change.
CASES: Mapping[str, Case] = {
    "all ranks cut": Case("kij", (7, 8, 7), b_lines=12),
    "parts joined": Case("kij", (7, 16, 4), b_lines=30, parts=True),
    "k innermost, C on chip": Case("ijk", (7, 16, 6), c_lines=40),
    "A kept": Case("ikj", (13, 5, 7), a_lines=30, c_lines=8, keep_c=False),
    "whole, B streamed": Case("ijk", (13, 16, 18), b_lines=0),
    "tuned": Case("jki", (13, 8, 8), tuning=True),
    "windows": Case("ijk", (4, 16, 18), load="list", band=True),
    "list": Case("ijk", (3, 16, 18), load="list"),
    "planned": Case("ijk", (2, 16, 18), b_lines=40, load=LOAD_PLANNED),
    "strips": Case("ijk", (4, 6, 18), load="list"),
    # Of a long row 12 lines stay on chip, or 4; the others go through memory.
    "scratch on chip": Case("ijk", (13, 16, 18), c_lines=32, keep_c=False, scratch_lines=32, density=0.6),
    "scratch beside partial rows": Case("ijk", (7, 16, 9), c_lines=56, scratch_lines=16, density=0.6),
    # Weight-stationary PEs, whose buffers columns of more than 8 nonzeros overflow.
    "array, all ranks cut": Case("kij", (7, 2, 7), b_lines=12, config="flex_tiny"),
    "array, C on chip": Case("ijk", (7, 2, 6), a_lines=30, b_lines=20, c_lines=40, config="flex_tiny"),
    "array, B overbooked": Case("jik", (7, 2, 18), b_lines=8, density=0.6, config="flex_tiny"),
    "array, B streamed": Case("jki", (13, 2, 18), b_lines=0, density=0.6, config="flex_tiny"),
}


@dataclass(frozen=True)
class Outcome:
    """How a run ended: whether it did, with which error, after how many cycles."""

    ended: bool
    code: ErrorCode
    detail: int
    cycles: int
    waiting: str

    @property
    def good(self) -> bool:
        return self.ended and self.code == ErrorCode.NONE


@cache
def machine(records: str = "plain", config: str = "tiny") -> tuple[Design, Path]:
    """A small design and its library."""
    design = load_design(config, [f"memory.records={records}"])
    return design, build(accelerator_sources(design), top="accelerator", data_bits=design.axi.data_bits)


def operand(rows: int, columns: int, density: float, seed: int) -> Csr:
    rng = np.random.default_rng(seed)
    dense = rng.random((rows, columns)) < density
    dense[rng.random(rows) < 0.1] = False
    pointers = np.concatenate([[0], np.cumsum(dense.sum(axis=1))])
    bits = rng.integers(-(2**31), 2**31, int(pointers[-1])).astype(np.int32).view(np.uint32)
    return Csr(
        rows=rows,
        columns=columns,
        pointers=pointers.astype(np.int64),
        coordinates=np.nonzero(dense)[1].astype(np.uint32),
        bits=bits,
        value="int32",
    )


def band(rows: int, columns: int, width: int) -> Csr:
    """Each row of so many elements behind the diagonal."""
    begins = np.minimum(np.arange(rows), columns - 1)
    lengths = np.minimum(width, columns - begins)
    pointers = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    coordinates = np.concatenate([np.arange(k, k + size) for k, size in zip(begins, lengths, strict=True)])
    return replace(
        operand(rows, columns, 0.0, 1),
        pointers=pointers,
        coordinates=coordinates.astype(np.uint32),
        bits=np.random.default_rng(1).integers(0, 2**32, len(coordinates), dtype=np.uint32),
    )


def scheme(design: Design, case: Case, a: Csr) -> Scheme:
    """Clipped to operands of the case's columns of C."""
    line = design.line_bytes
    a_lines, b_lines = case.a_lines or 16, case.b_lines or 60
    return Scheme(
        policy="forced",
        order=case.order,
        T_i=case.tile[0],
        T_j=case.tile[1],
        T_k=case.tile[2],
        buffer_bytes={"A": a_lines * line, "B": b_lines * line, "C": case.c_lines * line},
        fifo_bytes={"A": 4 * line, "B": 4 * line},
        mode={
            "A": "buffering" if case.a_lines else "streaming",
            "B": "buffering" if case.b_lines else "streaming",
            "C": "buffering" if case.c_lines and case.keep_c else "streaming",
        },
        tuning=case.tuning,
        load=case.load,
        partial_rows="joined" if case.parts else "carried",
        scratch_bytes=case.scratch_lines * line,
    )


class FaultBench:
    """One simulation of one case: run it, spoil it, restore it, run it again.

    Parameters
    ----------
    case: what is multiplied. records: how it lies in memory.
    timing: of the memory.
    arena: all that the write window spans is memory, so that a write outside it is told from one in a gap. Otherwise the
        gaps between the regions are not memory.
    """

    def __init__(self, case: Case, *, records: str = "plain", timing: BusTiming = CALM, arena: bool = False) -> None:
        self.design, library = machine(records, case.config)
        self.a = band(13, 18, 6) if case.band else operand(13, 18, case.density, 1)
        self.b = operand(18, 16, case.density, 2)
        chosen = scheme(self.design, case, self.a).clip(13, 16, 18)
        chosen.validate(self.design, 13, 16, 18)
        planned = plan(chosen, self.a, self.b, self.design)
        self.image = build_image(self.design, planned, poison=True)
        self.tiles_gathered = len(planned.rows_of_b.windows) if planned.rows_of_b else 0
        assert field_value("MODES", "listed", self.image.registers["MODES"]) == (
            case.load != LOAD_TILE and not case.band
        )
        golden = product_of(self.design.pe, self.a, self.b, chosen)
        self.golden = golden.structural
        if arena:
            self.image = joined(self.image)
        self.memory = _regions(self.image, arena)
        self.pristine = {region.name: region.data.copy() for region in self.memory}
        self.model = simulate(self.design, planned)
        # B as it lies in memory: its rows, or its columns.
        self.by_columns = self.design.pe.dataflow in B_BY_COLUMNS
        self.stored_b = self.b.transposed() if self.by_columns else self.b
        self.macs = golden.macs
        self.simulation = Simulation(library, self.memory, timing)
        watch_regions(self.simulation, self.image)
        self.driver = Driver(self.simulation)
        self.reference: dict[str, int] | None = None

    def __enter__(self) -> "FaultBench":
        self.reference = self.good_run()
        return self

    def __exit__(self, *details: object) -> None:
        self.simulation.close()

    @property
    def registers(self) -> dict[str, int]:
        return dict(self.image.registers)

    def fibers(self, tensor: str) -> int:
        """Of ``a`` or ``b``, as the hardware counts them."""
        return self.registers["SHAPE_I" if tensor == "a" else "SHAPE_J" if self.by_columns else "SHAPE_K"]

    def restore(self) -> None:
        """Memory as it was at first, no faults any more."""
        for region in self.memory:
            region.data[:] = self.pristine[region.name]
        self.simulation.pardon()

    def start(self, registers: Mapping[str, int] | None = None) -> None:
        for name, value in (registers or self.image.registers).items():
            self.driver.write(name, value)
        self.driver.start()

    def finish(self, budget: int = BUDGET) -> Outcome:
        before = self.simulation.cycles
        ended = self.simulation.run(budget)
        cycles = self.simulation.cycles - before
        code, detail = ErrorCode(self.driver.read("ERROR_CODE")), self.driver.read("ERROR_DETAIL")
        return Outcome(ended, code, detail, cycles, self.driver.waiting())

    def run(self, registers: Mapping[str, int] | None = None) -> Outcome:
        self.start(registers)
        return self.finish()

    def soft_reset(self) -> None:
        """As a driver does it: wait until the machine is idle again."""
        self.driver.soft_reset()
        waited = self.simulation.cycles
        while self.driver.busy:
            assert self.simulation.cycles - waited < SETTLE, f"a soft reset does not end: {self.driver.waiting()}"
        assert self.simulation.quiet, "a soft reset left bursts in flight"
        assert not self.driver.done and self.driver.error() is None

    def good_run(self) -> dict[str, int]:
        """A run from restored memory; checks the product, the guard and the counters, against the first such run, too."""
        self.restore()
        outcome = self.run()
        assert outcome.good, outcome
        self.check_product()
        counters = self.driver.counters()
        observed = observe(self.simulation, self.image)
        assert check_counters(counters, observed, design=self.design, macs=self.macs, model=self.model) == []
        if self.reference is not None:
            changed = {name: (self.reference[name], n) for name, n in counters.items() if n != self.reference[name]}
            assert not changed, f"counters differ from those of the first run: {changed}"
        return counters

    def check_product(self) -> None:
        nnz = self.driver.read("C_NNZ")
        verdict = compare_bits(self.golden, self.image.c(nnz))
        assert verdict.correct, verdict.detail
        assert self.image.spilled(nnz) == []
        assert self.simulation.statistics.clean, self.simulation.statistics.messages[:3]
        assert self.simulation.quiet, "bursts are in flight after the end of the run"

    def check_contained(self) -> None:
        """Nothing was written where nothing may be, no rule of the bus was broken, and no operand has changed."""
        written = [finding for finding in self.simulation.findings if finding.write]
        assert not written, written[:3]
        assert self.simulation.statistics.protocol == 0, self.simulation.statistics.messages[:3]
        for region in self.memory:
            if not region.writable:
                assert np.array_equal(region.data, self.pristine[region.name]), f"{region.name} changed"


def _regions(image: MemoryImage, arena: bool) -> list[Region]:
    return [
        Region(name=r.name, base=r.base, data=r.data, writable=r.writable)
        for r in image.regions.values()
        if not arena or not r.writable or r.name == ARENA
    ]


def control(**fields: int) -> int:
    """A word for CONTROL with the interrupt enabled."""
    return pack_fields("CONTROL", irq_enable=1, **fields)
