"""The model of the machine: what a design says of memory reaches its cycles, and windows may be empty anywhere."""

from dataclasses import replace

import numpy as np
import pytest

from gen.design import load_design
from sw.engine_result import EngineResult
from sw.formats.csr import Csr
from sw.model.machine import run_model
from sw.operands import load, to_csr
from sw.plan.plan import plan
from sw.policies.registry import schedule
from sw.scheme.scheme import Scheme


def operand(name: str) -> tuple[Csr, Scheme]:
    design = load_design("tiny")
    known = load(name)
    return to_csr(known, design.pe.value), schedule("hyte", known.matrix, known.matrix, design)


def on_tiny(scheme: Scheme, a: Csr, *settings: str) -> EngineResult:
    design = load_design("tiny", settings)
    return run_model(design, plan(scheme, a, a, design))


@pytest.mark.parametrize("name", ["uniform:60:60:0.1", "banded:80:3"])
def test_slower_memory_costs_cycles_in_proportion(name):
    a, scheme = operand(name)
    cycles = [on_tiny(scheme, a, f"dram.bandwidth_gbps={gb}").cycles for gb in (0.5, 1, 2, 4)]
    assert cycles == sorted(cycles, reverse=True)
    assert cycles[0] > 1.7 * cycles[1], "at a gigabyte a second and less nothing but memory counts"
    traffic = [on_tiny(scheme, a, f"dram.bandwidth_gbps={gb}").dram_bytes for gb in (0.5, 4)]
    assert traffic[0] == traffic[1]


def test_memory_faster_than_the_bus_saves_nothing():
    a, scheme = operand("uniform:60:60:0.1")
    at_bus, above = (on_tiny(scheme, a, f"dram.bandwidth_gbps={gb}") for gb in (4, 64))
    assert at_bus.cycles == above.cycles


def test_a_run_waits_for_memory_three_times_and_a_half():
    """Map, pointers and elements one after the other, and half a latency for the last write: as the hardware takes it."""
    a, scheme = operand("uniform:1:1:1.0")
    near, far = (on_tiny(scheme, a, f"dram.latency_ns={ns}").cycles for ns in (40, 400))
    assert far - near == pytest.approx(3.5 * (100 - 10), abs=1)


def test_a_tile_without_elements_at_the_end_of_k():
    """It loads nothing."""
    rows = 12
    a = Csr(
        rows=rows,
        columns=rows,
        pointers=np.minimum(np.arange(rows + 1), 6).astype(np.int64),
        coordinates=np.arange(6, dtype=np.uint32),
        bits=np.ones(6, np.uint32),
        value="int32",
    )
    _, plain = operand(f"uniform:{rows}:{rows}:0.2")
    scheme = replace(plain, order="ijk", T_i=6, T_j=rows, T_k=rows, load="list")
    assert run_model(load_design("tiny"), plan(scheme, a, a, load_design("tiny"))).counters["macs"] == 6


@pytest.mark.parametrize("rule", ["carried", "joined"])
def test_partial_rows_pass_what_there_is_of_the_partition_of_c(rule):
    """A small region makes leaves wait for rows that leave; where there is none PEs read them; B's region has no part in it."""
    a, _ = operand("uniform:260:260:0.025:seed=3")

    def cycles(of_c: int, region_of_b: int = 512) -> int:
        steps = Scheme(
            policy="steps",
            order="jki",
            T_i=260,
            T_j=260,
            T_k=20,
            buffer_bytes={"A": 256, "B": 7936 - of_c, "C": of_c},
            fifo_bytes={"A": 64, "B": region_of_b},
            mode={"A": "streaming", "B": "buffering", "C": "streaming"},
            partial_rows=rule,
        )
        return on_tiny(steps, a).cycles

    small, large, none = cycles(512), cycles(4096), cycles(0)
    assert large < none < small
    assert cycles(4096, 1024) == large
