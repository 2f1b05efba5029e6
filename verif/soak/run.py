"""A case on its machine: every good run compared with every engine, every spoiled one judged, each kept apart from the others."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sw.engine_result import EngineResult
from sw.formats.csr import Csr
from sw.model.tier import simulate
from sw.runtime.memory_image import ImageError
from sw.runtime.registers import ErrorCode
from sw.runtime.simulation.engine import HardwareStuck, library_of, result_of, run_to_end
from sw.runtime.simulation.loader import Statistics
from sw.runtime.simulation.sources import accelerator_sources
from verif.counters import bus_beats, check_counters
from verif.stored import tells_rows, wrong_product

from .cases import Case, Disturbance, Step
from .compare import Expected, differences
from .conversions import Kept, convert
from .machine import Machine, Placed
from .wrong import corrupt

__all__ = ["Verdict", "library_for", "run_case"]

# Of a case of the most multiplications on the slowest design: one element of radix 2 whose every line waits for a slow memory.
MOST_CYCLES = 40_000_000
# Whether anything moves is looked at so seldom that hardly a run is touched by it, and always in the same cycles.
LOOK_CYCLES = 150_000
SLVERR, DECERR = 2, 3
# An interrupt that a reset has not undone comes within these.
LISTEN_CYCLES = 100
# A shape of any run, which a reset by the pin clears.
CONFIGURED = "TILE_I"


@dataclass
class Verdict:
    """What came of a case: a line for each thing that is not right; how runs ended, by kind of disturbance; cycles of all.

    ``formats``: of the tensors that were converted.
    """

    problems: list[str] = field(default_factory=list)
    outcomes: list[tuple[str, str]] = field(default_factory=list)
    cycles: int = 0
    tiles: list[int] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)


def library_for(case: Case) -> Path:
    """The case's design, compiled now or before."""
    return library_of(case.design, accelerator_sources(case.design))


def run_case(case: Case, library: Path, machine: Callable[[Case, Path], Machine] = Machine) -> Verdict:
    """All steps of the case, up to the first that is not right."""
    verdict = Verdict()
    expected = [Expected(case.design, product, simulate) for product in case.products]
    verdict.tiles = [one.model.counters["tiles_total"] for one in expected]
    with machine(case, library) as opened:
        runs = _Runs(case, opened, expected)
        for number, step in enumerate(case.steps):
            outcome, problems = runs.run(step)
            verdict.outcomes.append((step.disturbance.kind if step.disturbance else "none", outcome))
            what = f" with {step.disturbance.kind}" if step.disturbance else ""
            verdict.problems += [f"run {number} (product {step.product}{what}): {problem}" for problem in problems]
            if problems:
                break
        verdict.cycles = opened.simulation.cycles
    for kept in case.conversions if not verdict.problems else ():
        kind, problems = convert(case.design, kept, _tensor(kept, expected[kept.product]))
        verdict.formats.append(f"{kept.tensor} {kind}")
        verdict.problems += [f"{kept.text}, {kind}: {problem}" for problem in problems]
    return verdict


def _tensor(kept: Kept, expected: Expected) -> Csr:
    """The operand, or the golden result."""
    if kept.tensor == "C":
        return expected.golden.structural
    return expected.product.a if kept.tensor == "A" else expected.product.b


class _Runs:
    """Runs on an open machine. ``cycles``: of the last good run of each product."""

    def __init__(self, case: Case, machine: Machine, expected: list[Expected]) -> None:
        self.case = case
        self.machine = machine
        self.simulation, self.driver = machine.simulation, machine.driver
        self.expected = expected
        self.cycles = {n: one.model.cycles or 1 for n, one in enumerate(expected)}

    def run(self, step: Step) -> tuple[str, list[str]]:
        """How the run ended, and what is not right."""
        placed = self.machine.placed[step.product]
        placed.restore()
        self.simulation.pardon()
        for freeze in step.freezes:
            begin = int(freeze.share * self.cycles[step.product])
            self.simulation.freeze(begin, freeze.cycles, freeze.channels)
        others = [other for other in self.machine.placed if other is not placed]
        for other in others:
            other.restore()
        if step.disturbance is None:
            outcome, problems = self._good(step.product, placed)
        else:
            outcome, problems = self._disturbed(step.product, placed, step.disturbance)
        problems += self._contained()
        for other in others:
            problems += [f"{name} of another product changed" for name in other.changed()]
        return outcome, problems

    def _end(self, product: int) -> str | None:
        """Waits for the end; what to say when there is none."""
        try:
            run_to_end(self.simulation, self.driver, 0, lambda share, text: None, MOST_CYCLES, LOOK_CYCLES)
        except HardwareStuck as stuck:
            return str(stuck)
        return None

    def _good(self, product: int, placed: Placed) -> tuple[str, list[str]]:
        before = self.machine.start(placed)
        begun = self.simulation.cycles
        stuck = self._end(product)
        if stuck is not None:
            return "stuck", [stuck]
        self.cycles[product] = self.simulation.cycles - begun
        found, problems = self._result(placed, before)
        problems += differences(self.expected[product], found)
        return "good" if not problems else "wrong", problems

    def _result(self, placed: Placed, before: Statistics) -> tuple[EngineResult, list[str]]:
        """What the machine says of the run that has ended, and what does not become its memory and its bus."""
        counters, error = self.driver.counters(), self.driver.error()
        c, problems = None, []
        if error is None:
            nnz = self.driver.read("C_NNZ")
            try:
                c = placed.image.c(nnz)
            except ImageError as problem:
                error = str(problem)
            problems += [f"bytes behind the result changed in {name}" for name in placed.image.spilled(nnz)]
            if placed.strayed():
                problems.append("bytes between the regions changed")
        after = self.simulation.statistics
        for way, moved in (
            ("read", after.read_beats - before.read_beats),
            ("write", after.write_beats - before.write_beats),
        ):
            counted = bus_beats(counters, way)
            if error is None and counted != moved:
                problems.append(f"counters say {counted} {way} beats, the bus moved {moved}")
        if not after.clean:
            problems.append("; ".join(after.messages[:3]))
        return result_of(self.case.design, counters, self.machine.observed(placed), c, error), problems

    def _disturbed(self, product: int, placed: Placed, drawn: Disturbance) -> tuple[str, list[str]]:
        rng = random.Random(drawn.seed)
        if drawn.kind in ("read error", "write error"):
            return self._bus_error(product, placed, drawn, rng)
        if drawn.kind in ("pin reset", "soft reset"):
            return self._reset(product, placed, drawn, rng)
        return self._wrong_operand(product, placed, rng)

    def _bus_error(self, product: int, placed: Placed, drawn: Disturbance, rng: random.Random) -> tuple[str, list[str]]:
        """The run ends with the kind and the address of the burst, whichever beat it is."""
        write = drawn.kind == "write error"
        kinds = ("write", "metadata_write") if write else ("read", "metadata_read")
        traffic = self.expected[product].model.dram_bytes or {}
        beats = sum(traffic[tensor][kind] for tensor in "ABC" for kind in kinds) // self.case.design.bus_bytes
        if not beats:
            return "no beat", []
        beat = min(beats - 1, int(drawn.share * beats))
        self.simulation.inject_beat(beat, write=write, response=rng.choice((SLVERR, DECERR)))
        self.machine.start(placed)
        stuck = self._end(product)
        if stuck is not None:
            return "stuck", [f"beat {beat}: {stuck}"]
        code, detail = ErrorCode(self.driver.read("ERROR_CODE")), self.driver.read("ERROR_DETAIL")
        problems = []
        if code != (ErrorCode.AXI_WRITE if write else ErrorCode.AXI_READ):
            problems.append(f"beat {beat} of {beats}: ended with {code.name}")
        elif detail != self.simulation.struck():
            problems.append(f"beat {beat} of {beats}: detail 0x{detail:x}, the burst is at {self.simulation.struck()}")
        problems += self._counted(placed)
        if rng.random() < 0.5 and not self.machine.soft_reset():
            problems.append(f"beat {beat} of {beats}: a soft reset after it does not end: {self.driver.waiting()}")
        return code.name.lower(), problems

    def _reset(self, product: int, placed: Placed, drawn: Disturbance, rng: random.Random) -> tuple[str, list[str]]:
        """The run is over at once; nothing comes after it."""
        cycles = self.cycles[product]
        # Some in the first cycles, where most begins.
        when = rng.randrange(12) if rng.random() < 0.2 else int(drawn.share * cycles)
        self.machine.start(placed)
        ended = self.simulation.run(when) if when else False
        problems = []
        pin = drawn.kind == "pin reset"
        if pin:
            self.simulation.reset(rng.choice((1, 2, 8, 40)))
        elif not self.machine.soft_reset():
            problems.append(f"it does not end: {self.driver.waiting()}")
        held = self.driver.read(CONFIGURED)
        if held != (0 if pin else placed.registers[CONFIGURED]):
            problems.append(f"{CONFIGURED} reads {held} after it")
        if self.simulation.run(LISTEN_CYCLES):
            problems.append("the interrupt came although there is no run")
        if self.driver.busy or self.driver.error() is not None:
            problems.append(f"busy, or {self.driver.error()}, after it")
        return "after the end" if ended else "in the run", [f"after {when} cycles: {problem}" for problem in problems]

    def _wrong_operand(self, product: int, placed: Placed, rng: random.Random) -> tuple[str, list[str]]:
        """An error, or the product of what lies in memory."""
        corruption = corrupt(placed, rng)
        if corruption is None:
            return "nothing to spoil", []
        before = self.machine.start(placed)
        stuck = self._end(product)
        if stuck is not None:
            return f"{corruption.kind}: stuck", [f"{corruption.text}: {stuck}"]
        code = ErrorCode(self.driver.read("ERROR_CODE"))
        if code != ErrorCode.NONE:
            problems = [f"{corruption.text}: {problem}" for problem in self._counted(placed)]
            return f"{corruption.kind}: {code.name.lower()}", problems
        found, problems = self._result(placed, before)
        if not corruption.judged:
            return f"{corruption.kind}: no error", []
        if not tells_rows(placed.image, self.case.design):
            return f"{corruption.kind}: no error, rows at another time", []
        if found.counters["tiles_skipped"]:
            # What stands in them, or behind what stands in them, nobody has read (docs/faults.md).
            return f"{corruption.kind}: no error, tiles skipped", []
        if found.c is None:
            problems.append(found.error or "no result")
        else:
            wrong = wrong_product(placed.image, found.c, self.case.design)
            problems += [wrong] if wrong is not None else []
        outcome = "wrong" if problems else "product of memory"
        return f"{corruption.kind}: {outcome}", [f"{corruption.text}: {problem}" for problem in problems]

    def _counted(self, placed: Placed) -> list[str]:
        """What counters must be in a run that an error has ended."""
        observed = self.machine.observed(placed)
        return check_counters(self.driver.counters(), observed, design=self.case.design, ended_well=False)

    def _contained(self) -> list[str]:
        """Nothing was written where nothing may be, no rule of the bus was broken, nothing is under way."""
        written = [finding for finding in self.simulation.findings if finding.write]
        problems = [f"{written[0].kind} at 0x{written[0].address:x}, cycle {written[0].cycle}"] if written else []
        if self.simulation.statistics.protocol:
            problems.append("; ".join(self.simulation.statistics.messages[:3]))
        if not self.simulation.quiet:
            problems.append("bursts are in flight after it")
        return problems
