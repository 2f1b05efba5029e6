"""One compiled machine with everything that a case multiplies in its memory, each product apart from the others."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gen.design import Design
from sw.runtime.driver import Driver
from sw.runtime.memory_image import POISON, MemoryImage, MemoryRegion, build_image
from sw.runtime.simulation.engine import observe, simulation_threads
from sw.runtime.simulation.loader import Region, Simulation, Statistics
from sw.scheme.terms import B_BY_COLUMNS

from .cases import Case, Product

__all__ = ["Machine", "Placed", "placed_of"]

PAGE = 4096
ARENA = "arena"
LOW = 1 << 20
BOUNDARY = 1 << 32
# A soft reset waits for what is on the bus; the slowest memory takes so long for all of it.
SETTLE_CYCLES = 3_000_000


@dataclass(frozen=True, eq=False)
class Placed:
    """A product's image, what it was like at first, and what may be written by its runs: all of ``arena`` and nothing else.

    ``by_columns``: B lies so.
    """

    product: Product
    image: MemoryImage
    arena: NDArray[np.uint8]
    pristine: dict[str, NDArray[np.uint8]]
    registers: dict[str, int]
    by_columns: bool

    def restore(self) -> None:
        """Memory as it was at first."""
        for name, region in self._memory():
            region.data[:] = self.pristine[name]

    def changed(self) -> list[str]:
        """Names of what is not as it was at first."""
        return [name for name, region in self._memory() if not np.array_equal(region.data, self.pristine[name])]

    def _memory(self) -> Iterator[tuple[str, MemoryRegion]]:
        return ((name, region) for name, region in self.image.regions.items() if name in self.pristine)

    def strayed(self) -> bool:
        """Whether anything was written between the regions of the arena, where no run has anything to write."""
        begin = self.registers["WRITE_BEGIN"]
        at = 0
        inside = sorted((r.base - begin, r.data.nbytes) for n, r in self.image.regions.items() if n in self._written())
        for first, size in [*inside, (len(self.arena), 0)]:
            if (self.arena[at:first] != POISON).any():
                return True
            at = first + size
        return False

    def _written(self) -> set[str]:
        return {name for name, region in self.image.regions.items() if region.writable and name != ARENA}


class Machine:
    """The machine of a case. A context manager."""

    def __init__(self, case: Case, library: Path) -> None:
        self.design = case.design
        self.placed = placed_of(case)
        regions = [
            Region(name=f"{n} {name}", base=region.base, data=region.data, writable=region.writable)
            for n, placed in enumerate(self.placed)
            for name, region in placed.image.regions.items()
            if name in placed.pristine
        ]
        self.simulation = Simulation(library, regions, case.timing, simulation_threads(case.design))
        self.driver = Driver(self.simulation)
        for n, placed in enumerate(self.placed):
            for name, region in placed.image.regions.items():
                if name != ARENA:
                    self.simulation.account(f"{n} {name}", region.base, region.data.nbytes)

    def __enter__(self) -> "Machine":
        return self

    def __exit__(self, *details: object) -> None:
        self.simulation.close()

    def start(self, placed: Placed) -> Statistics:
        """Begins a run; returns what the bus had seen before it."""
        before = self.simulation.statistics
        for name, value in placed.registers.items():
            self.driver.write(name, value)
        self.driver.start()
        return before

    def observed(self, placed: Placed) -> dict[str, int]:
        """What the simulation counted of the last run, of this product: bursts to another one's memory are not among them."""
        own = f"{self.placed.index(placed)} "
        found = {}
        for name, count in observe(self.simulation, placed.image).items():
            way, space, region = name.partition(" ")
            if not space:
                found[name] = count
            elif region.startswith(own):
                found[f"{way} {region.removeprefix(own)}"] = count
        return found

    def soft_reset(self) -> bool:
        """As a driver does it: wait until the machine is idle. False where it never is."""
        self.driver.soft_reset()
        begun = self.simulation.cycles
        while self.driver.busy:
            if self.simulation.cycles - begun > SETTLE_CYCLES:
                return False
        return True


def placed_of(case: Case) -> list[Placed]:
    """Images one behind the other, from where the case says."""
    design = case.design
    sizes = [_span(build_image(design, p.planned(design), base=LOW)) for p in case.products]
    total, end = sum(sizes), 1 << design.axi.address_bits
    high = min(end - total, 3 * BOUNDARY + LOW) if end > 4 * BOUNDARY else LOW
    base = {
        "low": LOW,
        "across 4 GiB": max(LOW, BOUNDARY - int(case.offset * total)) if end > BOUNDARY + total else LOW,
        "high": high,
        "top": end - total,
    }[case.placement]
    base = base // PAGE * PAGE
    found = []
    for product, size in zip(case.products, sizes, strict=True):
        found.append(_placed(design, product, base))
        base += size
    return found


def _span(image: MemoryImage) -> int:
    """Bytes of an image with the gap behind it."""
    return image.registers["WRITE_END"] - LOW + PAGE


def _placed(design: Design, product: Product, base: int) -> Placed:
    image = joined(build_image(design, product.planned(design), base=base, poison=True))
    bases = {f"{tensor}_BASE": line for tensor, line in product.bases(design.line_bytes).items()}
    arena = image.regions[ARENA].data
    memory = {n: r.data.copy() for n, r in image.regions.items() if n == ARENA or not r.writable}
    by_columns = design.pe.dataflow in B_BY_COLUMNS
    return Placed(product, image, arena, memory, {**image.registers, **bases}, by_columns)


def joined(image: MemoryImage) -> MemoryImage:
    """The same image with all that the write window spans in one array, which is a region ``arena`` besides."""
    begin, end = image.registers["WRITE_BEGIN"], image.registers["WRITE_END"]
    arena = np.full(end - begin, POISON, np.uint8)
    regions = {}
    for name, region in image.regions.items():
        data = region.data
        if region.writable:
            at = region.base - begin
            arena[at : at + data.nbytes] = data
            data = arena[at : at + data.nbytes]
        regions[name] = MemoryRegion(name=name, base=region.base, data=data, writable=region.writable)
    regions[ARENA] = MemoryRegion(name=ARENA, base=begin, data=arena, writable=True)
    return replace(image, regions=regions, poisoned=True)
