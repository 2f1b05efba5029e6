"""Every performance counter has a truth, and what is wrong with a counter is found."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, Mux, Signal, Value

from gen.design import load_design
from gen.verilog import emit_design
from rtl.machine import machine
from rtl.regs.counter_list import COUNTERS as COUNTER_LIST
from sw.engine_result import EngineResult
from sw.golden.spgemm import multiply
from sw.model.machine import EXACT_COUNTERS, run_model
from sw.plan.plan import plan
from sw.runtime.registers import COUNTERS, ErrorCode
from sw.runtime.simulation import engine
from sw.runtime.simulation.build import build
from sw.runtime.simulation.engine import observe, run_rtl
from sw.runtime.simulation.sources import without_head
from tests.verif.fault_bench import CASES, Case, FaultBench, operand
from tests.verif.fault_bench import scheme as fault_scheme
from tests.verif.test_end_to_end import random_operand, scheme
from verif.counters import TRUTHS, check_counters

DESIGN = load_design("tiny")
NAMES = tuple(name.lower() for name in COUNTERS)
# Tiles of A that do not fit, and tiles without work, beside those of the fault tests.
PLANTED = (
    *((case, 0.4) for case in CASES.values()),
    (Case("ikj", (13, 5, 9), a_lines=16, b_lines=12), 0.6),
    (CASES["all ranks cut"], 0.05),
)
PAGE = Path(__file__).parents[2] / "docs" / "counters.md"


def test_every_counter_has_a_truth() -> None:
    assert set(TRUTHS) == set(NAMES)


def test_the_manual_says_what_is_compared() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(name.upper(), TRUTHS[name]) for name in TRUTHS]


def test_a_counter_without_a_truth_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verif.counters.COUNTERS", (*COUNTERS, "NEW"))
    (problem,) = check_counters(dict.fromkeys((*NAMES, "new"), 0), {}, design=DESIGN)
    assert problem == "counter new has no truth"


@cache
def good_run() -> tuple[EngineResult, EngineResult, int]:
    """A run that all counters take part in: what the hardware says, what the model says, the product's MACs."""
    value = DESIGN.pe.value
    a, b = random_operand(45, 60, 0.3, value, 33), random_operand(60, 52, 0.3, value, 34)
    forced = scheme(DESIGN, (20, 11, 25), "jik", a_lines=40, b_lines=60, c_lines=40)
    planned = plan(forced, a, b, DESIGN)
    found, model = run_rtl(DESIGN, planned, max_cycles=5_000_000), run_model(DESIGN, planned)
    assert found.error is None
    return found, model, multiply(a, b, DESIGN.pe.merge_radix, DESIGN.pe.arithmetic, forced).macs


def problems_with(counters: dict[str, int]) -> list[str]:
    found, model, macs = good_run()
    return check_counters(counters, found.observed, design=DESIGN, macs=macs, model=model)


@pytest.mark.slow
def test_a_run_in_which_all_counters_are_right() -> None:
    found, _, _ = good_run()
    assert problems_with(found.counters) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("by", [1, -1])
def test_a_counter_that_is_off_by_one_is_found(name: str, by: int) -> None:
    found, _, _ = good_run()
    assert any(name in problem for problem in problems_with(found.counters | {name: found.counters[name] + by}))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in EXACT_COUNTERS])
def test_a_counter_that_follows_nothing_but_the_model_is_one_of_those_it_gives(name: str) -> None:
    """What the model does not give exactly is compared where there is no model, too."""
    found, _, _ = good_run()
    wrong = found.counters | {name: found.counters[name] + 1}
    assert any(name in problem for problem in check_counters(wrong, found.observed, design=DESIGN))


#: Of builds that convert A alone, where tests/verif/test_converted_a.py compares it.
OF_CONVERSION = "stall_conversion"


def lossy(m: Module, steps: Mapping[str, Value], events: Any) -> None:
    """What the counters are shown, but for a fault in each: every second event is lost from the first on, peaks are halved."""
    for counter in COUNTER_LIST:
        name = counter.name.lower()
        if name == OF_CONVERSION:
            continue
        step = Signal(len(steps[name]), name=f"true_{name}")
        m.d.comb += step.eq(steps[name])
        if counter.peak:
            m.d.comb += events[name].eq(step >> 1)
            continue
        lost = Signal(init=1, name=f"lost_{name}")
        with m.If(step != 0):
            m.d.sync += lost.eq(~lost)
        m.d.comb += events[name].eq(Mux(lost, 0, step))


@pytest.mark.slow
def test_a_fault_in_each_counter_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are planted in one machine, which multiplies as before: its counters are no part of what it does."""
    monkeypatch.setattr(machine, "show_events", lossy)
    emitted = emit_design(DESIGN)
    sources = {name: without_head(emitted.files[name]) for name in emitted.sources}
    monkeypatch.setattr(engine, "accelerator_sources", lambda design: sources)
    monkeypatch.setattr(engine, "build", partial(build, optimize="-O0"))
    found: set[str] = set()
    for case, density in PLANTED:
        a, b = (operand(*shape, density, seed) for shape, seed in (((13, 18), 1), ((18, 16), 2)))
        forced = fault_scheme(DESIGN, case, a)
        planned = plan(forced, a, b, DESIGN)
        result, model = run_rtl(DESIGN, planned, max_cycles=500_000), run_model(DESIGN, planned)
        problems = check_counters(result.counters, result.observed, design=DESIGN, model=model)
        found |= {problem.partition(" ")[0] for problem in problems}
    assert set(NAMES) - found == {OF_CONVERSION}


def checked(bench: FaultBench) -> dict[str, int]:
    """The counters of a run that ended with an error."""
    counters = bench.driver.counters()
    observed = observe(bench.simulation, bench.image)
    assert check_counters(counters, observed, design=bench.design, ended_well=False) == []
    return counters


@pytest.mark.slow
def test_runs_that_end_with_an_error() -> None:
    """While the scheme is checked, while rows are computed, when nothing moves any more; counters then stand still."""
    with FaultBench(CASES["all ranks cut"]) as bench:
        assert bench.run(bench.registers | {"ORDER": 77}).code == ErrorCode.BAD_ORDER
        counters = checked(bench)
        assert counters["phase_next_tile"] == counters["cycles"] > 0
        cycles = bench.good_run()["cycles"]
        for beat in (3, 40, 150):
            bench.restore()
            bench.start()
            bench.simulation.inject_beat(beat, write=False)
            assert bench.finish().code == ErrorCode.AXI_READ
            counters = checked(bench)
            assert 0 < counters["cycles"] < cycles
            assert bench.driver.counters() == counters
        bench.restore()
        assert bench.run(bench.registers | {"C_ELEMENTS_BYTES": 16}).code == ErrorCode.C_ELEMENTS_OVERFLOW
        checked(bench)
        assert bench.good_run()["cycles"] == cycles


@pytest.mark.slow
def test_a_wrong_sum_of_phases_and_a_stall_outside_its_phase_are_found() -> None:
    """Also where the monitor makes the same mistake."""
    found, _, _ = good_run()
    for name, value in (("phase_drain", 0), ("stall_write", found.counters["phase_compute"] + 1), ("pe_busy", 1)):
        result = replace(found, counters=found.counters | {name: value}, observed=found.observed | {name: value})
        assert check_counters(result.counters, result.observed, design=DESIGN) != [], name
