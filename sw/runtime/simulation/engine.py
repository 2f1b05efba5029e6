"""The ``rtl`` engine: one multiplication on the generated hardware, compiled, with a memory behind its bus."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sw.engine_result import EngineResult, Progress
from sw.formats.csr import Csr
from sw.plan.plan import Plan
from sw.runtime.driver import Driver, Stuck
from sw.runtime.memory_image import ImageError, MemoryImage, build_image
from sw.runtime.registers import field_value, words
from sw.scheme.terms import WEIGHT_STATIONARY

from .activity import activity_of, busy_of
from .build import build
from .loader import BusTiming, Region, Simulation, Statistics
from .sources import accelerator_sources

if TYPE_CHECKING:
    from gen.design import Design

__all__ = [
    "THREADS",
    "HardwareStuck",
    "SettingError",
    "bus_timing",
    "library_of",
    "observe",
    "open_simulation",
    "result_of",
    "run_rtl",
    "run_to_end",
    "simulation_threads",
    "watch_regions",
]

# A run in which nothing at all was counted for so long will not go on.
PATIENCE_CYCLES = 200_000
SIGNS_OF_LIFE = ("MACS", "LEAVES", "ROWS", "TILES_TOTAL")
UNLIMITED = 1 << 62
MANY_ELEMENTS = 4
# More threads than this wait for each other longer than they compute: an element's cycle is some microseconds.
MOST_THREADS = 4
MOST_WANTED = 64
THREADS = "FIBERLOOM_THREADS"
READS = ("read_a_data", "read_b_data", "read_c_data", "read_a_meta", "read_b_meta", "read_c_meta")
WRITES = ("write_a_meta", "write_b_meta", "write_c_data", "write_c_meta")


class SettingError(ValueError):
    """An environment variable that cannot be; the text names it, its value and what is allowed."""

    exit_code = 2


class HardwareStuck(Stuck):
    """A simulated run that does not end; the text says what each unit waits for."""

    exit_code = 1


def bus_timing(design: "Design", seed: int = 0) -> BusTiming:
    """The memory that a design names. A seed other than 0 adds jitter and reordering within what memories do."""
    latency = design.memory_latency_cycles
    return BusTiming(
        read_latency=latency,
        write_latency=max(1, latency // 2),
        beats_per_cycle=min(1.0, design.dram_bytes_per_cycle / design.bus_bytes),
        jitter=latency // 2 if seed else 0,
        stall=0.05 if seed else 0.0,
        reorder=seed != 0,
        seed=seed,
    )


def run_rtl(
    design: "Design",
    planned: Plan[Csr],
    progress: Progress | None = None,
    seed: int = 0,
    dram: BusTiming | None = None,
    max_cycles: int | None = None,
    poison: bool = False,
) -> EngineResult:
    """Generates, compiles and runs the design on A and B.

    Parameters
    ----------
    design, planned: what runs; the plan is of a scheme that is legal for the design.
    progress: told the finished share of the multiplications and a few words.
    seed: 0 for the design's memory as it is, others for rough ones (:func:`bus_timing`).
    dram: the memory's timing, instead of the design's.
    max_cycles: where to give up; without it only a run in which nothing moves is given up.
    poison: fill what the hardware writes before the run and check its neighbours after it (slow for large results).

    An error that the hardware reports is in the result's ``error``. Raises HardwareStuck when the run does not end,
    ToolMissing when it cannot be built.
    """
    report = progress or (lambda share, text: None)
    seconds: dict[str, float] = {}
    began = time.perf_counter()
    report(None, "generating Verilog")
    sources = accelerator_sources(design)
    seconds["generate"] = time.perf_counter() - began
    began = time.perf_counter()
    library = library_of(design, sources, lambda text: report(None, text))
    seconds["build"] = time.perf_counter() - began
    began = time.perf_counter()
    image = build_image(design, planned, poison=poison)
    seconds["image"] = time.perf_counter() - began
    began = time.perf_counter()
    threads = simulation_threads(design)
    with open_simulation(library, image, dram or bus_timing(design, seed), threads) as simulation:
        driver = Driver(simulation)
        driver.identify(design)
        for name, value in image.registers.items():
            simulation.write_many(words(name, value))
        driver.start()
        macs = int(np.diff(planned.b.pointers)[planned.a.coordinates].sum())
        run_to_end(simulation, driver, macs, report, max_cycles)
        result = _collect(simulation, driver, design, image)
        seen = simulation.activity(design.pe.count)
        result.activity = activity_of(seen, design.pe.count)
        result.pe_busy = busy_of(seen, design.pe.count) if result.activity else None
    seconds["simulate"] = time.perf_counter() - began
    result.seconds = seconds
    return result


def library_of(design: "Design", sources: Mapping[str, str], report: Callable[[str], None] | None = None) -> Path:
    """The compiled simulation of a design, built now or taken from the cache. ``sources``: its Verilog."""
    return build(
        sources,
        top="accelerator",
        data_bits=design.axi.data_bits,
        repeated=_repeated(design, sources),
        report=report,
    )


def _repeated(design: "Design", sources: Mapping[str, str]) -> str | None:
    """The processing element's module where there are so many of them that compiling it once pays.

    Outputs of a weight-stationary one answer its inputs in the same cycle, which such a module must not (:mod:`.parts`).
    """
    if design.pe.count < MANY_ELEMENTS or design.pe.dataflow == WEIGHT_STATIONARY:
        return None
    return next(name for name in map(_stem, sources) if name == f"{design.pe.dataflow}_pe")


def _stem(name: str) -> str:
    return Path(name).stem


def simulation_threads(design: "Design") -> int:
    """Threads of a simulation: ``$FIBERLOOM_THREADS``, or as many as there are processors for the design's elements."""
    wanted = os.environ.get(THREADS)
    if wanted is None:
        return min(MOST_THREADS, design.pe.count, len(os.sched_getaffinity(0)))
    if not wanted.isdecimal() or not 1 <= int(wanted) <= MOST_WANTED:
        raise SettingError(f"{THREADS} is {wanted!r}; allowed: 1 to {MOST_WANTED}")
    return int(wanted)


def open_simulation(library: Path, image: MemoryImage, timing: BusTiming, threads: int = 1) -> Simulation:
    """A simulation with the image as its memory."""
    regions = [Region(name=r.name, base=r.base, data=r.data, writable=r.writable) for r in image.regions.values()]
    simulation = Simulation(library, regions, timing, threads)
    watch_regions(simulation, image)
    return simulation


def watch_regions(simulation: Simulation, image: MemoryImage) -> None:
    """Count the beats of each of the image's regions, for :func:`observe`."""
    for region in image.regions.values():
        simulation.account(region.name, region.base, region.data.nbytes)


def observe(simulation: Simulation, image: MemoryImage) -> dict[str, int]:
    """What the simulation counted of the last run, and what of its configuration bounds its counters (``verif.counters``)."""
    registers = image.registers
    modes = {f"keeps_{tensor}": field_value("MODES", f"{tensor}_buffering", registers["MODES"]) for tensor in "abc"}
    lines = {f"{tensor}_lines": registers[f"{tensor.upper()}_LINES"] for tensor in "abc"}
    return simulation.observed | lines | modes | {"windows": field_value("MODES", "windows", registers["MODES"])}


def run_to_end(
    simulation: Simulation,
    driver: Driver,
    macs: int,
    report: Progress,
    max_cycles: int | None,
    every: int | None = None,
) -> None:
    """Lets a started run come to its end. Raises HardwareStuck where it does not, or nothing moves any more.

    Parameters
    ----------
    macs: multiplications of the run, for ``report``. max_cycles: where to give up.
    every: cycles between two looks at the counters, which take cycles themselves; without it some are taken each second, and
        the same run does not take the same cycles again.
    """
    seen: tuple[int, ...] = ()
    alive_at = simulation.cycles

    def watch(cycles: int, rate: float) -> None:
        nonlocal seen, alive_at
        counts = tuple(driver.read(name) for name in SIGNS_OF_LIFE)
        now = simulation.statistics
        signs = (*counts, now.read_beats, now.write_beats)
        if signs != seen:
            seen, alive_at = signs, now.cycles
        elif now.cycles - alive_at > PATIENCE_CYCLES:
            raise HardwareStuck(_story(driver, now))
        share = counts[0] / macs if macs else None
        report(share, f"{cycles:,} cycles, {rate:,.0f} a second")

    most, spent = max_cycles or UNLIMITED, 0
    while every is not None and spent < most - every:
        if simulation.run(every):
            return
        spent += every
        watch(spent, 0.0)
    if not simulation.run(most - spent, None if every else watch):
        raise HardwareStuck(_story(driver, simulation.statistics))


def _story(driver: Driver, statistics: Statistics) -> str:
    story = f"{driver.stuck()}; bus: {statistics.read_beats} beats read, {statistics.write_beats} written"
    return "; ".join([story, *statistics.messages[:3]])


def _collect(simulation: Simulation, driver: Driver, design: "Design", image: MemoryImage) -> EngineResult:
    error = driver.error()
    counters = driver.counters()
    observed = observe(simulation, image)
    statistics = simulation.statistics
    c = None
    findings = [] if error is None else [error]
    if error is None:
        nnz = driver.read("C_NNZ")
        try:
            c = image.c(nnz)
        except ImageError as problem:
            findings.append(str(problem))
        if image.poisoned:
            findings += [f"bytes behind the result changed in {name}" for name in image.spilled(nnz)]
        beats = {"read": sum(counters[name] for name in READS), "write": sum(counters[name] for name in WRITES)}
        moved = {"read": statistics.read_beats, "write": statistics.write_beats}
        if beats != moved:
            findings.append(f"counters say {beats} beats, the bus moved {moved}")
        if not simulation.quiet:
            findings.append("bursts are still in flight after the end of the run")
    if not statistics.clean:
        findings.append("; ".join(statistics.messages[:3]))
    return result_of(design, counters, observed, c, "; ".join(findings) or None)


def result_of(
    design: "Design", counters: dict[str, int], observed: dict[str, int], c: Csr | None, error: str | None
) -> EngineResult:
    """What the counters of a run say, by tensor; ``observed``: by :func:`observe`."""
    line, beat = design.line_bytes, design.bus_bytes
    traffic = {
        tensor.upper(): {
            "read": beat * counters.get(f"read_{tensor}_data", 0),
            "write": beat * counters.get(f"write_{tensor}_data", 0),
            "metadata_read": beat * counters.get(f"read_{tensor}_meta", 0),
            "metadata_write": beat * counters.get(f"write_{tensor}_meta", 0),
        }
        for tensor in "abc"
    }
    buffer: dict[str, dict[str, float]] = {
        tensor.upper(): {"peak_bytes": line * counters[f"buffer_peak_{tensor}"]} for tensor in "abc"
    }
    buffer["A"] |= {"hits": counters["hits_a"], "bumped": counters["bumped_fetches_a"]}
    buffer["B"]["bumped"] = counters["bumped_fetches"]
    if design.pe.dataflow != WEIGHT_STATIONARY:  # whose products do not read the SRAM
        buffer["B"]["hits"] = counters["macs"] - counters["bumped_fetches"]
    return EngineResult(
        c=c,
        cycles=counters["cycles"],
        counters=counters,
        dram_bytes=traffic,
        tiles={
            "total": counters["tiles_total"],
            "skipped_empty": counters["tiles_skipped"],
            "overbooked": counters["tiles_overbooked"],
        },
        buffer=buffer,
        observed=observed,
        error=error,
    )
