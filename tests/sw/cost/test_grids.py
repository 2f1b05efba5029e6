"""What the search for grids leaves out cannot win: bounds, the limit that ``auto`` sets, and its early answer."""

import pytest
import scipy.sparse as sp

from gen.design import load_design
from sw.cost.candidates import grids
from sw.cost.candidates.grids import ranked, tiling_space
from sw.cost.predict import predict
from sw.model.judge import judge
from sw.policies import auto as module
from sw.policies.registry import schedule
from sw.scheme.terms import TENSORS
from sw.stats.workload import Workload
from tests.sw.stats.matrices import banded, canonical, mesh, noise, power_law

SMALL = load_design("edge", ["buffer.bytes=16384", "buffer.fifo_bytes=1024"])
EDGE, TINY = load_design("edge"), load_design("tiny")
NARROW = load_design("edge", ["buffer.bytes=16384", "buffer.fifo_bytes=1024", "pe.value=int8", "memory.records=packed"])
OPERANDS = {
    "band": banded(200, 4),
    "mesh": mesh(15),
    "noise": noise(180, 180, 0.04),
    "power law": power_law(220),
    "oblong": noise(90, 300, 0.05),
    "few rows of B": canonical(sp.hstack([noise(200, 20, 0.2), sp.csr_array((200, 180))])),
    "long rows": noise(150, 150, 0.6),
}


def pair(name: str) -> tuple[sp.csr_array, sp.csr_array]:
    A = OPERANDS[name]
    return A, A if A.shape[0] == A.shape[1] else canonical(sp.csr_array(A.T))


@pytest.mark.parametrize("design", [SMALL, NARROW], ids=["16K", "packed"])
@pytest.mark.parametrize("close", [False, True])
@pytest.mark.parametrize("name", OPERANDS)
def test_bounds_never_exceed_what_they_bound(name: str, close: bool, design, monkeypatch) -> None:
    """But for the filling of merges, which the prediction leaves out."""
    monkeypatch.setattr(grids, "FILL_LEAF_CYCLES", 0.0)
    workload = Workload(*pair(name), lanes=design.lanes, statistics="exact")
    space = grids._space(workload, design, TENSORS, True)
    bound = grids._Bound(workload, design, close=close)
    limits = bound.all(space)
    for candidate, limit in zip(space, limits, strict=True):
        cycles = predict(workload, design, candidate.scheme()).cycles
        assert limit <= cycles + 1, candidate
        if close:
            assert limit <= bound.closer(candidate, float(limit)) <= cycles + 1, candidate


@pytest.mark.parametrize("design", [SMALL, TINY], ids=["16K", "tiny"])
@pytest.mark.parametrize("name", OPERANDS)
def test_candidates_are_the_schemes_of_the_space(name: str, design) -> None:
    workload = Workload(*pair(name), lanes=design.lanes)
    for scheme in tiling_space(workload, design, tile_i=True):
        scheme.validate(design, workload.I, workload.J, workload.K)


@pytest.mark.parametrize("name", OPERANDS)
def test_below_a_limit_what_is_found_is_near_the_best(name: str, monkeypatch) -> None:
    monkeypatch.setattr(grids, "FILL_LEAF_CYCLES", 0.0)
    workload = Workload(*pair(name), lanes=SMALL.lanes, statistics="exact")
    best = ranked(workload, SMALL)[0][1].cycles
    assert ranked(workload, SMALL, at_most=1.2 * best)[0][1].cycles <= 1.2 * best
    assert all(p.cycles > 0.5 * best for _, p in ranked(workload, SMALL, at_most=0.5 * best))


@pytest.mark.parametrize("design", [SMALL, EDGE], ids=["16K", "edge"])
@pytest.mark.parametrize("name", OPERANDS)
def test_the_early_answer_is_that_of_the_full_search(name: str, design, monkeypatch) -> None:
    A, B = pair(name)
    early = schedule("auto", A, B, design, judge=judge(design))
    monkeypatch.setattr(module, "_nothing_moves_twice", lambda *_: False)
    full = schedule("auto", A, B, design, judge=judge(design))
    workload = Workload(A, B, lanes=design.lanes)
    cycles = [judge(design)(scheme, workload.a, workload.b) for scheme in (early, full)]
    # Of the mesh the RTL takes 2,699 cycles for the first, 2,719 and 2,708 for the others; the model is 1.9 % above, 1.3 below.
    most = 1.03 if name == "mesh" else 1.02
    assert cycles[0] <= most * cycles[1]


def test_what_fits_is_answered_without_a_search(monkeypatch) -> None:
    def never(*_args, **_options):
        raise AssertionError("looked for")

    for name in ("ranked", "best_kept", "_judged"):
        monkeypatch.setattr(module, name, never)
    A = OPERANDS["mesh"]
    found = schedule("auto", A, A, EDGE, judge=judge(EDGE))
    assert (found.T_i, found.T_j, found.T_k, found.buffers("B")) == (*A.shape, A.shape[1], True)
