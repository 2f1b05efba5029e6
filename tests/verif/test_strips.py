"""Rows of C in strips of ``T_j`` columns, in the whole machine: against SciPy, the model and golden, which knows tiles alone."""

from dataclasses import replace

import numpy as np
import pytest

from gen.design import Design
from sw.formats.csr import Csr
from sw.plan.plan import plan
from sw.runtime.memory_image import build_image
from sw.runtime.simulation.loader import BusTiming
from sw.scheme.terms import LOAD_LIST, LOAD_PLANNED
from tests.verif.test_end_to_end import check, design, operand, random_operand
from tests.verif.test_lists import clustered, kinds, listed

pytestmark = pytest.mark.slow
__all__ = ["design"]  # the fixture


def strips(design: Design, a: Csr, b: Csr, T_i: int, T_j: int, b_lines: int | None = None, load: str = LOAD_LIST):
    whole = listed(design, a, b.columns, a.rows, b_lines=b_lines, load=load)
    return replace(whole, T_j=T_j, strips=T_i) if T_j < b.columns else replace(whole, T_i=min(T_i, a.rows))


@pytest.mark.parametrize("T_j", [1, 7, 24, 49, 50])
@pytest.mark.parametrize("T_i", [1, 8, 64])
def test_widths(design: Design, T_j: int, T_i: int) -> None:
    """From a column each to all of them, which is no strip."""
    value = design.pe.value
    a, b = clustered(64, 80, value, 1), random_operand(80, 50, 0.15, value, 2)
    check(design, strips(design, a, b, T_i, T_j), a, b)


@pytest.mark.parametrize("name", list(kinds("int32")))
@pytest.mark.parametrize(("T_j", "load"), [(4, LOAD_LIST), (13, LOAD_LIST), (7, LOAD_PLANNED)])
def test_kinds_of_operands(design: Design, name: str, T_j: int, load: str) -> None:
    a, b = kinds(design.pe.value)[name]
    check(design, strips(design, a, b, 8, min(T_j, b.columns), 100, load), a, b)


def test_a_full_row_has_tiles_of_its_own(design: Design) -> None:
    """Tiles end early rather than use more of B than fits beside others: empty rows fill them up."""
    value = design.pe.value
    dense = np.zeros((40, 90), np.int8)
    dense[np.arange(40), np.arange(40)] = 1
    dense[[11, 12, 30]] = 1
    a, b = operand(dense, value, 3), random_operand(90, 60, 0.2, value, 4)
    scheme = strips(design, a, b, 16, 20)
    image = build_image(design, plan(scheme, a, b, design))
    assert image.registers["SHAPE_I"] > int(np.count_nonzero(np.diff(image.starts)) + 16)
    assert image.rows == 40 and len(image.starts) == 41 and image.starts[-1] == image.registers["SHAPE_I"]
    check(design, scheme, a, b)


@pytest.mark.parametrize("b_lines", [24, 30, 44])
def test_overbooked(design: Design, b_lines: int) -> None:
    value = design.pe.value
    a, b = clustered(60, 60, value, 7), random_operand(60, 52, 0.3, value, 8)
    for load in (LOAD_LIST, LOAD_PLANNED):
        counters = check(design, strips(design, a, b, 16, 18, b_lines, load), a, b)
        assert counters["bumped_fetches"] > 0


@pytest.mark.parametrize("timing", [BusTiming(read_latency=300), BusTiming(jitter=60, stall=0.4, reorder=True, seed=3)])
def test_slow_and_rough_memory(design: Design, timing: BusTiming) -> None:
    value = design.pe.value
    a, b = clustered(50, 50, value, 15), random_operand(50, 50, 0.2, value, 16)
    check(design, strips(design, a, b, 9, 17, 90), a, b, dram=timing)
