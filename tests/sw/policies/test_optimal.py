"""``optimal`` is what its name says: no policy is better, and of a small space nothing is left out."""

from itertools import product

import pytest

from gen.design import load_design
from sw.cost.candidates.grids import small_space
from sw.model.judge import judge
from sw.plan.thresholds import EVERY_COUNT
from sw.policies.registry import DATAFLOWS_OF, POLICIES, schedule
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition
from sw.scheme.terms import BUFFERING, GUSTAVSON, INNER, ORDERS, OUTER, STREAMING
from sw.stats.workload import Workload
from tests.sw.stats.matrices import banded, mesh, noise, power_law

OPERANDS = {
    "noise": (noise(120, 120, 0.1), noise(120, 120, 0.1)),
    "band": (banded(90, 3), banded(90, 3)),
    "mesh": (mesh(7), mesh(7)),
    "power law": (power_law(400), noise(400, 20, 0.1, 3)),
}


@pytest.mark.parametrize("dataflow", [GUSTAVSON, OUTER, INNER])
@pytest.mark.parametrize("name", OPERANDS)
def test_no_policy_beats_it(name: str, dataflow: str) -> None:
    """Not even where its own budget is one run; policies whose tiles no hardware has are no rivals."""
    design = load_design("tiny", [f"pe.dataflow={dataflow}"])
    A, B = OPERANDS[name]
    workload, ask = Workload(A, B, lanes=design.lanes), judge(design)
    rivals = [policy for policy in POLICIES if policy != "optimal" and dataflow in DATAFLOWS_OF[policy]]
    schemes = {policy: schedule(policy, A, B, design, judge=ask) for policy in rivals}
    others = {policy: ask(s, workload.a, workload.b) for policy, s in schemes.items() if not s.uneven}
    assert len(others) >= len(rivals) - 2
    for budget in (1, 12):
        best = schedule("optimal", A, B, design, judge=ask, budget=budget)
        assert best.policy == "optimal" and best.cycles == ask(best, workload.a, workload.b)
        assert best.cycles <= min(others.values()), others


def every_scheme(design, sizes: tuple[int, int, int]) -> list[Scheme]:
    """All sides of all ranks, all orders, B streamed (one tile) or kept, with A or C in a half or a quarter of the buffer."""
    lines = design.buffer.bytes // design.line_bytes
    found = []
    for order, *tile in product(ORDERS, *(range(1, size + 1) for size in sizes)):
        for kept, share in [("", 0), ("A", 2), ("A", 4), ("C", 2), ("C", 4)]:
            given = {f"lines_{kept.lower()}": lines // share} if kept else {}
            parts, fifo = default_partition(design, partial_rows=tile[2] < sizes[2], **given)
            scheme = Scheme(
                policy="test", order=order, T_i=tile[0], T_j=tile[1], T_k=tile[2], buffer_bytes=parts, fifo_bytes=fifo,
                mode={t: BUFFERING if t in ("B", kept) else STREAMING for t in "ABC"},
            )  # fmt: skip
            try:
                scheme.validate(design, *sizes)
            except SchemeError:
                continue
            found.append(scheme)
    return found


@pytest.mark.parametrize(("seed", "sizes"), [(1, (3, 4, 3)), (2, (4, 2, 4))])
def test_nothing_of_a_small_space_is_left_out(seed: int, sizes: tuple[int, int, int]) -> None:
    """Against every scheme, written down by loops of its own."""
    design = load_design("tiny")
    A, B = noise(sizes[0], sizes[2], 0.7, seed), noise(sizes[2], sizes[1], 0.7, seed + 1)
    workload, ask = Workload(A, B, lanes=design.lanes), judge(design)
    best = schedule("optimal", A, B, design, judge=ask, budget=10_000)
    cycles = [ask(scheme, workload.a, workload.b) for scheme in every_scheme(design, sizes)]
    assert len(cycles) > 100 and best.cycles <= min(cycles)


def test_c_is_kept_where_that_is_better() -> None:
    design, A = load_design("tiny"), noise(16, 16, 0.4)
    best = schedule("optimal", A, A, design, judge=judge(design))
    assert best.mode["C"] == BUFFERING and best.T_k < 16
    auto = schedule("auto", A, A, design, judge=judge(design))
    workload = Workload(A, A, lanes=design.lanes)
    assert best.cycles < judge(design)(auto, workload.a, workload.b)


def test_sides_are_all_or_one_for_each_count() -> None:
    design = load_design("tiny")
    A, B = noise(16, 30, 0.2), noise(30, 5, 0.2)
    schemes = small_space(Workload(A, B, lanes=design.lanes), design, 10**9)
    assert {s.T_i for s in schemes} == set(range(1, 17)) and {s.T_j for s in schemes} == set(range(1, 6))
    assert {s.T_k for s in schemes} == {1, 2, 3, 4, 5, 6, 8, 10, 15, 30}
    assert {t for s in schemes for t in "ABC" if s.buffers(t)} == set("ABC")
    few = small_space(Workload(A, B, lanes=design.lanes), design, 7)
    assert few == schemes[:7]
    wide = noise(EVERY_COUNT + 1, 9, 0.1)
    sides = {s.T_i for s in small_space(Workload(wide, noise(9, 9, 0.2), lanes=design.lanes), design, 10**9)}
    assert sides <= {EVERY_COUNT + 1, *(2**n for n in range(9))} and len(sides) > 1
