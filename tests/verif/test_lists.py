"""Lists of the rows of B that tiles use, in the whole machine: against golden, SciPy and the model."""

from dataclasses import replace

import numpy as np
import pytest

from gen.design import Design
from sw.formats.csr import Csr
from sw.plan.gather import RowPlanError
from sw.plan.plan import plan
from sw.runtime.simulation.loader import BusTiming
from sw.scheme.scheme import Scheme
from sw.scheme.terms import GATHERS, LOAD_LIST, LOAD_PLANNED, LOAD_REUSE, ORDERS
from tests.verif.test_end_to_end import check, design, operand, random_operand, scheme

pytestmark = pytest.mark.slow
__all__ = ["design"]  # the fixture


def listed(
    design: Design,
    a: Csr,
    columns: int,
    T_i: int,
    *,
    order: str = "ijk",
    b_lines: int | None = None,
    load: str = LOAD_LIST,
) -> Scheme:
    """Tiles of ``T_i`` rows that load what they use."""
    return replace(scheme(design, (min(T_i, a.rows), columns, a.columns), order, b_lines=b_lines), load=load)


def clustered(rows: int, columns: int, value: str, seed: int) -> Csr:
    """Neighbouring rows use the same few columns, which lie far apart; each tile of eight shares some with the one before."""
    rng = np.random.default_rng(seed)
    dense = np.zeros((rows, columns), np.int8)
    favourites = rng.permutation(columns)
    for row in range(rows):
        group = favourites[np.arange(3 * (row // 8), 3 * (row // 8) + 9) % columns]
        dense[row, group] = rng.random(len(group)) < 0.7
    return operand(dense, value, seed)


@pytest.mark.parametrize("order", ORDERS)
def test_every_order(design: Design, order: str) -> None:
    value = design.pe.value
    a, b = clustered(60, 80, value, 1), random_operand(80, 50, 0.1, value, 2)
    for load in (LOAD_LIST, LOAD_PLANNED):
        counters = check(design, listed(design, a, 50, 16, order=order, load=load), a, b)
        assert counters["tiles_total"] == 4
        assert counters["read_c_meta"] == 0, "no partial rows come back"


@pytest.mark.parametrize("T_i", [1, 3, 8, 30, 200])
@pytest.mark.parametrize("b_lines", [60, 120, None])
def test_rows_stay_for_the_tiles_after(design: Design, T_i: int, b_lines: int | None) -> None:
    value = design.pe.value
    a, b = clustered(200, 90, value, 3), random_operand(90, 70, 0.07, value, 4)
    counters = check(design, listed(design, a, 70, T_i, b_lines=b_lines), a, b)
    if b_lines is None and T_i < 30:
        assert counters["read_b_data"] < b.nnz, "hardly a row is read twice"


def test_rows_are_read_once_where_there_is_room(design: Design) -> None:
    """Each row in its lines, which rows far apart in memory do not share."""
    value = design.pe.value
    a, b = clustered(80, 60, value, 5), random_operand(60, 30, 0.1, value, 6)
    counters = check(design, listed(design, a, 30, 8), a, b)
    begin, end = b.pointers[:-1], b.pointers[1:]
    used = np.unique(a.coordinates)
    lines = (-(-end // design.lanes) - begin // design.lanes)[used]
    assert counters["read_b_data"] <= int(lines.sum())


@pytest.mark.parametrize("load", GATHERS)
@pytest.mark.parametrize("b_lines", [24, 30, 44])
def test_overbooked(design: Design, b_lines: int, load: str) -> None:
    value = design.pe.value
    a, b = clustered(60, 60, value, 7), random_operand(60, 52, 0.3, value, 8)
    counters = check(design, listed(design, a, 52, 16, b_lines=b_lines, load=load), a, b)
    assert counters["tiles_overbooked"] > 0 and counters["bumped_fetches"] > 0


def kinds(value: str) -> dict[str, tuple[Csr, Csr]]:
    gaps = np.zeros((40, 64), np.int8)
    gaps[[0, 9, 39], [63, 0, 63]] = 1
    hollow = np.zeros((64, 20), np.int8)
    hollow[::5] = 1  # rows of B between which many are empty
    dense = np.zeros((20, 60), np.int8)
    dense[:, 10:50] = 1
    backwards = np.zeros((64, 64), np.int8)
    backwards[np.arange(64), 63 - np.arange(64)] = 1
    backwards[:, 31] = 1
    return {
        "hardly anything": (operand(gaps, value, 1), random_operand(64, 20, 0.2, value, 2)),
        "empty rows of B": (random_operand(30, 64, 0.2, value, 3), operand(hollow, value, 4)),
        "rows of more leaves than a job takes": (operand(dense, value, 5), random_operand(60, 25, 0.2, value, 6)),
        "from the end to the front": (operand(backwards, value, 7), random_operand(64, 20, 0.2, value, 8)),
        "noise": (random_operand(60, 64, 0.08, value, 9), random_operand(64, 40, 0.15, value, 10)),
        "nothing in A": (operand(np.zeros((9, 8), np.int8), value, 11), random_operand(8, 9, 0.5, value, 12)),
        "nothing in B": (random_operand(9, 8, 0.5, value, 13), operand(np.zeros((8, 9), np.int8), value, 14)),
        "one element": (operand(np.ones((1, 1), np.int8), value, 15), operand(np.ones((1, 1), np.int8), value, 16)),
    }


@pytest.mark.parametrize("load", GATHERS)
@pytest.mark.parametrize("name", list(kinds("int32")))
def test_kinds_of_operands(design: Design, name: str, load: str) -> None:
    a, b = kinds(design.pe.value)[name]
    check(design, listed(design, a, b.columns, 8, b_lines=100, load=load), a, b)


@pytest.mark.parametrize("T_i", [1, 5])
def test_rows_that_nobody_uses_in_time_go_by(design: Design, T_i: int) -> None:
    """Two columns that all rows use, among many that few do: less is read than where all of them stay for a while."""
    rng, value = np.random.default_rng(21), design.pe.value
    dense = (rng.random((120, 150)) < 0.03).astype(np.int8)
    dense[:, [3, 140]] = 1
    a, b = operand(dense, value, 22), random_operand(150, 60, 0.25, value, 23)
    moved = {load: check(design, listed(design, a, 60, T_i, b_lines=110, load=load), a, b) for load in GATHERS}
    assert moved[LOAD_REUSE]["bumped_fetches"] > moved[LOAD_LIST]["bumped_fetches"]
    assert moved[LOAD_REUSE]["read_b_data"] < 0.97 * moved[LOAD_LIST]["read_b_data"]
    assert moved[LOAD_PLANNED]["read_b_data"] < 0.9 * moved[LOAD_REUSE]["read_b_data"], "what is used last leaves"


@pytest.mark.parametrize("timing", [BusTiming(read_latency=300), BusTiming(jitter=60, stall=0.4, reorder=True, seed=3)])
def test_slow_and_rough_memory(design: Design, timing: BusTiming) -> None:
    value = design.pe.value
    a, b = clustered(50, 50, value, 15), random_operand(50, 50, 0.2, value, 16)
    for load in GATHERS:
        check(design, listed(design, a, 50, 9, b_lines=90, load=load), a, b, dram=timing)


@pytest.mark.parametrize(("b_lines", "T_i"), [(26, 3), (60, 1), (60, 6), (100, 8), (None, 8), (None, 200)])
def test_planned_places(design: Design, b_lines: int | None, T_i: int) -> None:
    """Rows take lines and entries of others, while the tile before is computed or after it; some tiles load nothing."""
    value = design.pe.value
    a, b = clustered(100, 90, value, 3), random_operand(90, 70, 0.2, value, 4)
    planned = listed(design, a, 70, T_i, b_lines=b_lines, load=LOAD_PLANNED)
    counters = check(design, planned, a, b)
    made = plan(planned, a, b, design).rows_of_b
    assert made is not None and made.entries is not None
    loads = made.windows[:, 1] - made.fresh
    if b_lines is None:
        assert counters["bumped_fetches"] == 0 and len(made.lines) == len(np.unique(a.coordinates))
        assert T_i == 200 or made.early[1:].all()
    else:
        assert counters["bumped_fetches"] > 0
        taken = np.sort(made.entries)
        assert (
            (taken[1:] == taken[:-1]).any()
            and (made.placed < loads).any()
            and len(made.lines) > len(np.unique(a.coordinates))
        )
    if T_i == 1:
        assert (loads == 0).any()
    if b_lines == 100 or T_i == 1:
        assert set(made.early[1:].tolist()) == {False, True}


def test_one_row_of_a(design: Design) -> None:
    value = design.pe.value
    a, b = random_operand(1, 60, 0.4, value, 31), random_operand(60, 90, 0.2, value, 32)
    for b_lines in (30, None):
        assert check(design, listed(design, a, 90, 1, b_lines=b_lines, load=LOAD_PLANNED), a, b)["tiles_total"] == 1


def test_more_rows_than_entries_are_named(design: Design) -> None:
    value = design.pe.value
    a, b = random_operand(20, 200, 0.5, value, 17), random_operand(200, 20, 0.2, value, 18)
    forced = listed(design, a, 20, 20, b_lines=40)
    with pytest.raises(RowPlanError, match=r"tile 0 along i uses 200 rows of B, B's partition has entries for \d+"):
        plan(forced, a, b, design)
