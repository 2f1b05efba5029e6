"""Runs whose memory lies across 2^32 bytes, gigabytes apart, or at the end of the address space.

Nothing changes but the addresses: every counter, cycles among them, is that of the run at the usual place.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from sw.formats.csr import Csr
from sw.golden.compare import compare_bits
from sw.golden.spgemm import multiply
from sw.plan.plan import plan
from sw.runtime.driver import Driver
from sw.runtime.memory_image import PAGE, POISON, MemoryImage, MemoryRegion, build_image
from sw.runtime.simulation.engine import open_simulation
from tests.verif.fault_bench import CALM, Case, band, machine, scheme

pytestmark = pytest.mark.slow

GIB = 1 << 30
FOUR_GIB = 1 << 32
TOP = 1 << 40
BUDGET = 5_000_000
ROWS, INNER, COLUMNS = 1300, 1280, 1200
# Together they use every region of the image, each but the tile maps for longer than a page.
CASES = {
    "all ranks cut": Case("jik", (700, 500, 400), b_lines=480),
    "middling tiles": Case("jki", (130, 100, 100), b_lines=480),
    "windows": Case("ijk", (4, COLUMNS, INNER), load="list", band=True, b_lines=480),
    "list": Case("ijk", (4, COLUMNS, INNER), load="list", b_lines=480),
    "planned": Case("ijk", (4, COLUMNS, INNER), load="planned", b_lines=480),
}
REGIONS = [
    *(("all ranks cut", f"{tensor}_{name}") for tensor in "ab" for name in ("pointers", "elements", "positions")),
    *(("all ranks cut", f"c_{name}") for name in ("pointers", "elements", "partial0", "partial1", "finished")),
    *(("all ranks cut", f"c_{name}") for name in ("tile_positions", "scratch")),
    ("windows", "a_tile_map"),
    ("list", "a_tile_map"),
    ("list", "b_positions"),
    ("list", "b_pointers"),
    ("planned", "b_positions"),
]


def operand(rows: int, columns: int, seed: int, long: int) -> Csr:
    """Three elements a row near the diagonal, eight in every third; ``long`` in every 300th, which then fill scratch memory."""
    rng = np.random.default_rng(seed)
    found = []
    for row in range(rows):
        count, spread = (long, 2 * long) if row % 300 == 150 else (8 if row % 3 == 0 else 3, 9)
        middle = row * columns // rows
        places = np.arange(max(0, middle - spread), min(columns, middle + spread + 1))
        found.append(np.sort(rng.choice(places, count, replace=False)))
    coordinates = np.concatenate(found).astype(np.uint32)
    bits = rng.integers(-(2**31), 2**31, len(coordinates)).astype(np.int32).view(np.uint32)
    pointers = np.concatenate([[0], np.cumsum([len(row) for row in found])]).astype(np.int64)
    return Csr(rows=rows, columns=columns, pointers=pointers, coordinates=coordinates, bits=bits, value="int32")


class Multiplication:
    """One case, its product, and the run at the usual place."""

    def __init__(self, name: str) -> None:
        self.design, self.library = machine()
        self.a = band(ROWS, INNER, 5) if CASES[name].band else operand(ROWS, INNER, 1, 200)
        self.b = operand(INNER, COLUMNS, 2, 5)
        self.scheme = scheme(self.design, CASES[name], self.a)
        self.scheme.validate(self.design, ROWS, COLUMNS, INNER)
        self.product = multiply(self.a, self.b, self.design.pe.merge_radix, "int32", self.scheme).structural
        self.usual = self.image()
        self.counters = self.run(self.usual)

    def image(self, base: int | None = None) -> MemoryImage:
        return build_image(self.design, plan(self.scheme, self.a, self.b, self.design), base=base, poison=True)

    def run(self, image: MemoryImage) -> dict[str, int]:
        """The counters of a run that left the product and touched nothing else."""
        with open_simulation(self.library, image, CALM) as simulation:
            driver = Driver(simulation)
            driver.load(image)
            driver.start()
            assert simulation.run(BUDGET), driver.stuck()
            assert driver.error() is None
            nnz = driver.read("C_NNZ")
            verdict = compare_bits(self.product, image.c(nnz))
            assert verdict.correct, verdict.detail
            assert image.spilled(nnz) == []
            assert simulation.statistics.clean, simulation.statistics.messages[:3]
            return driver.counters()


multiplication = cache(Multiplication)


def begin(image: MemoryImage) -> int:
    return min(region.base for region in image.regions.values())


def end(image: MemoryImage) -> int:
    return max(region.base + region.data.nbytes for region in image.regions.values())


def busy_boundary(region: MemoryRegion) -> int:
    """Offset of the page of a region that has most of its contents, or of what a run wrote, right before and behind."""
    used = np.add.reduceat(region.data != POISON, np.arange(0, region.data.nbytes, 128))
    offsets = np.arange(PAGE, region.data.nbytes, PAGE)
    around = [min(used[at // 128 - 1], used[at // 128]) for at in offsets]
    assert around and max(around) > 0, f"{region.name} has no page behind another one that is used"
    return int(offsets[int(np.argmax(around))])


@pytest.mark.parametrize(("name", "region"), REGIONS)
def test_a_region_lies_across_2_to_the_32(name: str, region: str) -> None:
    """In the middle of what is read or written of it: rows, bursts and requests cross the boundary, and positions do."""
    case = multiplication(name)
    placed = case.usual.regions[region]
    moved = case.image(FOUR_GIB - (placed.base + busy_boundary(placed) - begin(case.usual)))
    across = moved.regions[region]
    assert across.base < FOUR_GIB < across.base + across.data.nbytes
    assert case.run(moved) == case.counters


@pytest.mark.parametrize("region", ["a_tile_map", "b_tile_map"])
def test_a_tile_map_lies_across_2_to_the_32(region: str) -> None:
    """It is a line longer than one; nothing but the bus asks for regions that begin at a page."""
    case = multiplication("middling tiles")
    image = case.image(2 * FOUR_GIB)
    base = FOUR_GIB - case.design.line_bytes
    moved = replace(image.regions[region], base=base)
    assert not moved.writable and (moved.data[case.design.line_bytes :] != POISON).any()
    image = replace(
        image, regions={**image.regions, region: moved}, registers={**image.registers, region.upper(): base}
    )
    assert case.run(image) == case.counters


@pytest.mark.parametrize(("name", "spare"), [*((name, 0) for name in CASES), ("all ranks cut", PAGE)])
def test_the_image_ends_where_the_address_space_does(name: str, spare: int) -> None:
    """The end of the write window is then 2^40, which no register holds: 0 stands for it."""
    case = multiplication(name)
    moved = case.image(TOP - spare - (end(case.usual) - begin(case.usual)))
    assert end(moved) == TOP - spare and moved.registers["WRITE_END"] == (TOP - spare) % TOP
    assert case.run(moved) == case.counters


def scattered(image: MemoryImage, gap: int) -> MemoryImage:
    """The same image with its regions ``gap`` bytes from begin to begin, and rooms of C as large."""
    registers, regions = dict(image.registers), {}
    base = gap - PAGE  # so that boundaries of gigabytes lie inside the regions, not at their begin
    for name, region in image.regions.items():
        regions[name] = replace(region, base=base)
        assert registers[name.upper()] == region.base
        registers[name.upper()] = base
        base += gap
    written = [region for region in regions.values() if region.writable]
    registers["WRITE_BEGIN"] = min(region.base for region in written)
    registers["WRITE_END"] = max(region.base + region.data.nbytes for region in written)
    for room in ("C_ELEMENTS", "C_PARTIAL", "C_FINISHED"):
        registers[f"{room}_BYTES"] = gap - PAGE
    return replace(image, regions=regions, registers=registers)


@pytest.mark.parametrize(
    ("name", "gap"), [("all ranks cut", FOUR_GIB), ("all ranks cut", 60 * GIB), ("list", 5 * GIB)], ids=str
)
def test_regions_lie_gigabytes_apart(name: str, gap: int) -> None:
    case = multiplication(name)
    assert case.run(scattered(case.image(), gap)) == case.counters


def test_elements_lie_more_than_4_gib_behind_their_array_s_begin(tmp_path: Path) -> None:
    """Rows of B that a list names, at positions around 2^29, where bytes pass 2^32, and up to the last of 2^32.

    The array is a file without contents but these rows.
    """
    case = multiplication("list")
    image = case.image()
    begins = image.regions["b_positions"].data.view(np.uint32)
    ends = image.regions["b_pointers"].data.view(np.uint32)[1:]
    listed = image.registers["SHAPE_K"]
    rows = np.searchsorted(case.b.pointers, begins[:listed], side="right") - 1
    elements = np.memmap(tmp_path / "elements", np.uint64, "w+", shape=(1 << 32,))
    try:
        shifts = _shifts(case.b.pointers)
        stored = image.regions["b_elements"].data.view(np.uint64)
        for row, shift in enumerate(shifts):
            span = slice(int(case.b.pointers[row]), int(case.b.pointers[row + 1]))
            elements[span.start + shift : span.stop + shift] = stored[span]
        begins[:listed] += shifts[rows].astype(np.uint32)
        ends[:listed] += shifts[rows].astype(np.uint32)
        assert begins[:listed].min() < 1 << 20 and ends[:listed].max() >= (1 << 32) - 2
        regions: Mapping[str, MemoryRegion] = image.regions | {
            "b_elements": MemoryRegion(
                name="b_elements", base=3 * TOP // 4, data=elements.view(np.uint8), writable=False
            )
        }
        registers = image.registers | {"B_ELEMENTS": 3 * TOP // 4}
        found = case.run(replace(image, regions=regions, registers=registers))
        assert found["macs"] == case.counters["macs"]
    finally:
        del elements


def _shifts(pointers: np.ndarray) -> np.ndarray:
    """What is added to each row's positions: by thirds nothing, half of 2^29, and as much as there is; bus lines stay whole."""
    third = (len(pointers) - 1) // 3
    shifts = np.zeros(len(pointers) - 1, np.int64)
    shifts[third:] = (1 << 29) - int(pointers[third + third // 2]) & ~1
    shifts[2 * third :] = (1 << 32) - 1 - int(pointers[-1]) & ~1
    return shifts
