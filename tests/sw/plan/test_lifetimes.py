"""A row of B that would lose its place before its last use is found, by name."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import load_design
from sw.cost.candidates.resident import kept_scheme
from sw.formats.csr import Csr
from sw.operands.operand import Operand, to_csr
from sw.plan.lifetimes import overwritten
from sw.plan.plan import Plan, plan
from sw.runtime.memory_image import ImageError, build_image
from sw.scheme.terms import LOAD_PLANNED
from sw.stats.pattern import Pattern
from sw.stats.workload import Workload
from tests.sw.stats.matrices import noise, power_law

DESIGN = load_design("edge", ["buffer.bytes=16384", "buffer.fifo_bytes=1024"])
MATRICES = {"noise": noise(300, 300, 0.03, 5), "law": power_law(400, 3)}


def planned(name: str, T_i: int) -> Plan[Csr]:
    """Rows of B without nonzeros among the others."""
    hollow = MATRICES[name].toarray()
    hollow[::7] = 0
    a, b = (to_csr(Operand(name="m", source="m", matrix=sp.csr_array(m)), "fp32") for m in (MATRICES[name], hollow))
    workload = Workload(Pattern.of(a.to_scipy()), Pattern.of(b.to_scipy()), lanes=DESIGN.lanes)
    return plan(kept_scheme("x", workload, DESIGN, T_i, LOAD_PLANNED), a, b, DESIGN)


def walked(made: Plan[Csr]) -> bool:
    """Whether each use finds its row, place by place and use by use."""
    rows = made.rows_of_b
    assert rows is not None and rows.entries is not None and rows.rows is not None
    lengths = -(-np.diff(made.b.pointers) // DESIGN.lanes)
    line_has: dict[int, int] = {}
    entry_has: dict[int, int] = {}

    def there(tile: int) -> bool:
        low, high = made.a.pointers[made.begins[tile]], made.a.pointers[made.begins[tile + 1]]
        for place in rows.places[low:high]:
            lines = range(rows.lines[place], rows.lines[place] + lengths[rows.rows[place]])
            if entry_has[rows.entries[place]] != place:
                return False
            if rows.lines[place] >= 0 and any(line_has[line] != place for line in lines):
                return False
        return True

    for tile in range(len(made.begins) - 1):
        for place in range(rows.fresh[tile], rows.windows[tile, 1]):
            entry_has[rows.entries[place]] = place
            if rows.lines[place] >= 0:
                for line in range(rows.lines[place], rows.lines[place] + lengths[rows.rows[place]]):
                    line_has[line] = place
        if not there(tile) or (tile and rows.early[tile] and not there(tile - 1)):
            return False
    return True


def found(made: Plan[Csr]) -> bool:
    assert made.rows_of_b is not None
    return overwritten(made.rows_of_b, made.a, made.begins, made.b.pointers, DESIGN.lanes) is None


@pytest.mark.parametrize("T_i", [4, 16])
@pytest.mark.parametrize("name", MATRICES)
def test_plans_keep_rows_until_their_last_use(name: str, T_i: int) -> None:
    made = planned(name, T_i)
    assert found(made) and walked(made)
    build_image(DESIGN, made)


def test_a_plan_of_a_b_without_nonzeros_keeps_all() -> None:
    a = to_csr(Operand(name="m", source="m", matrix=sp.csr_array(MATRICES["noise"])), "fp32")
    b = to_csr(Operand(name="m", source="m", matrix=sp.csr_array((300, 300))), "fp32")
    workload = Workload(Pattern.of(a.to_scipy()), Pattern.of(b.to_scipy()), lanes=DESIGN.lanes)
    made = plan(kept_scheme("x", workload, DESIGN, 16, LOAD_PLANNED), a, b, DESIGN)
    assert found(made) and walked(made)
    build_image(DESIGN, made)


@pytest.mark.parametrize("what", ["lines", "entries", "early"])
def test_a_changed_plan_is_found_where_a_use_misses_its_row(what: str) -> None:
    """Places exchanged at random: the check says the same as a walk through all uses, which fails for most of them, not all."""
    rng, agreed = np.random.default_rng(8), []
    for _ in range(60):
        made = planned("law", 8)
        rows = made.rows_of_b
        assert rows is not None
        changed = getattr(rows, what).copy()
        if what == "early":
            changed[rng.integers(len(changed))] ^= True
        else:
            one = rng.integers(len(changed))
            changed[one] = changed[rng.integers(len(changed))]
        other = replace(made, rows_of_b=replace(rows, **{what: changed}))
        agreed.append(walked(other))
        assert found(other) == walked(other)
    assert 0 < sum(agreed) < len(agreed)


def test_the_error_names_both_rows_and_both_tiles() -> None:
    made = planned("law", 8)
    rows = made.rows_of_b
    assert rows is not None and rows.rows is not None
    tiles = np.repeat(np.arange(len(made.begins) - 1), np.diff(made.a.pointers[made.begins]))
    last = np.full(len(rows.lines), -1)
    last[rows.places] = tiles
    first = int(np.flatnonzero((rows.lines >= 0) & (last > 3) & (np.arange(len(last)) < rows.windows[0, 1]))[0])
    place = int(rows.fresh[2])
    lines = rows.lines.copy()
    lines[place] = lines[first]
    with pytest.raises(ImageError) as refused:
        build_image(DESIGN, replace(made, rows_of_b=replace(rows, lines=lines)))
    row, by = rows.rows[first], rows.rows[place]
    said = f"row {row} of B would lose its place to row {by} in tile 2, tile {last[first]} uses it"
    assert str(refused.value) == said
