"""One conversion on the generated converter, compiled, with a memory behind its bus."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sw.runtime.converter import Conversion, ConverterDriver, ConverterImage

from .build import build
from .engine import HardwareStuck, bus_timing
from .loader import BusTiming, Region, Simulation
from .sources import converter_sources

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["converter_library", "open_converter", "run_converter"]

# Cycles that any conversion may take, and those for each beat that it moves.
FEWEST_CYCLES, CYCLES_OF_A_BEAT = 100_000, 64


def converter_library(design: "Design", report: Callable[[str], None] | None = None) -> Path:
    """The compiled simulation of a design's converter, built now or taken from the cache."""
    return build(converter_sources(design), top="converter", data_bits=design.axi.data_bits, report=report)


def open_converter(library: Path, image: ConverterImage, timing: BusTiming) -> Simulation:
    """A simulation with the image as its memory."""
    regions = [
        Region(name=f"source {name}", base=at, data=data) for name, (at, data) in image.source.items() if len(data)
    ]
    regions += [
        Region(name=name, base=at, data=data, writable=True)
        for name, (at, data) in (
            {f"target {name}": place for name, place in image.target.items()} | image.scratch
        ).items()
    ]
    return Simulation(library, regions, timing)


def run_converter(
    design: "Design",
    image: ConverterImage,
    *,
    library: Path | None = None,
    timing: BusTiming | None = None,
    report: Callable[[str], None] | None = None,
    seconds: dict[str, float] | None = None,
) -> Conversion:
    """Generates, compiles and runs the converter of a design. ``seconds``: gets what building and simulating took.

    Raises HardwareStuck where the run does not end, ToolMissing where it cannot be built.
    """
    seconds = {} if seconds is None else seconds
    began = time.perf_counter()
    library = library or converter_library(design, report)
    seconds["build"] = time.perf_counter() - began
    began = time.perf_counter()
    with open_converter(library, image, timing or bus_timing(design)) as simulation:
        driver = ConverterDriver(simulation)
        driver.parameters()
        driver.write_all(image.registers)
        driver.start()
        sizes = sum(len(data) for _, data in (*image.source.values(), *image.target.values(), *image.scratch.values()))
        if not simulation.run(FEWEST_CYCLES + CYCLES_OF_A_BEAT * (image.passes + 1) * sizes // design.bus_bytes):
            statistics = simulation.statistics
            moved = f"{statistics.read_beats} beats read, {statistics.write_beats} written"
            raise HardwareStuck(f"the conversion did not end: {'; '.join([moved, *statistics.messages[:3]])}")
        result = _collect(simulation, driver, design, image)
    seconds["simulate"] = time.perf_counter() - began
    return result


def _collect(simulation: Simulation, driver: ConverterDriver, design: "Design", image: ConverterImage) -> Conversion:
    findings = [] if (error := driver.error()) is None else [error]
    counted = driver.read("READ_BYTES"), driver.read("WRITTEN_BYTES")
    statistics = simulation.statistics
    moved = statistics.read_beats * design.bus_bytes, statistics.write_beats * design.bus_bytes
    if error is None and counted != moved:
        findings.append(f"counters say {counted} bytes, the bus moved {moved}")
    if not simulation.quiet:
        findings.append("bursts are still in flight after the end of the run")
    findings += [f"bytes behind the result changed in {name}" for name in image.spilled()]
    if not statistics.clean:
        findings.append("; ".join(statistics.messages[:3]))
    return Conversion(
        error="; ".join(findings) or None,
        cycles=driver.read("CYCLES"),
        entries=driver.read("ENTRIES"),
        read_bytes=moved[0],
        written_bytes=moved[1],
        passes=driver.read("PASSES"),
    )
