"""HYTE's search against enumeration, and the cost model against traffic counted by hand or by SciPy."""

from dataclasses import replace
from itertools import product

import pytest

from sw.cost.candidates.grids import ranked, tiling_space
from sw.cost.partial_rows import cheaper
from sw.cost.predict import predict
from sw.policies.hyte import hyte
from sw.policies.registry import schedule
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition
from sw.scheme.terms import BUFFERING, ORDERS, STREAMING
from sw.stats.segments import row_lines
from sw.stats.workload import Workload
from tests.sw.cost.machines import EDGE, SMALLEST, TINY, Machine
from tests.sw.stats.matrices import MATRICES, banded, mesh, noise, power_law

SMALL = {"noise": noise(40, 40, 0.15), "banded": banded(48, 3), "mesh": mesh(6), "power_law": power_law(50)}
NARROW = Machine(60 * 16, 128, fifo_bytes=64)


def scheme_of(machine, workload, T_j, T_k, order="ijk", mode=BUFFERING, T_i=None):
    parts, fifo = default_partition(machine)
    return Scheme(
        policy="hand",
        order=order,
        T_i=T_i or workload.I,
        T_j=T_j,
        T_k=T_k,
        buffer_bytes=parts,
        fifo_bytes=fifo,
        mode={"A": STREAMING, "B": mode, "C": STREAMING},
    )


def all_schemes(machine, workload):
    """Every legal scheme with sides that are powers of two or whole, all six orders, B kept or not, one partition."""
    sides = [sorted({*(1 << n for n in range(12) if 1 << n < size), size}) for size in (workload.J, workload.K)]
    for T_j, T_k, order, mode in product(*sides, ORDERS, (BUFFERING, STREAMING)):
        scheme = scheme_of(machine, workload, T_j, T_k, order, mode)
        try:
            scheme.validate(machine, workload.I, workload.J, workload.K)
        except SchemeError:
            continue
        if mode == BUFFERING or (T_j, T_k) == (workload.J, workload.K):
            yield scheme


@pytest.mark.parametrize("machine", [TINY, SMALLEST, NARROW], ids=["tiny", "smallest", "narrow"])
@pytest.mark.parametrize("operand", SMALL)
def test_no_scheme_beats_it_by_its_own_model(operand, machine):
    A = SMALL[operand]
    chosen = hyte(A, A, machine, statistics="exact")
    workload = Workload(A, A, lanes=machine.lanes, statistics="exact")
    others = [cheaper(workload, machine, s)[1].cycles for s in all_schemes(machine, workload)]
    assert len(others) > 5
    assert predict(workload, machine, chosen).cycles <= min(others)


@pytest.mark.parametrize("operand", ["mesh", "power_law", "banded"])
def test_pruning_large_spaces_costs_little(operand):
    A = {"mesh": mesh(40), "power_law": power_law(1500), "banded": banded(2000, 8)}[operand]
    workload = Workload(A, A, lanes=TINY.lanes)
    best = ranked(workload, TINY)[0][1].cycles
    whole = min(cheaper(workload, TINY, s)[1].cycles for s in tiling_space(workload, TINY))
    assert whole <= best <= 1.05 * whole


def test_alternatives_are_next_in_line():
    A = banded(400, 6)
    scheme = hyte(A, A, NARROW)
    costs = [scheme.cycles, *(a["cycles"] for a in scheme.alternatives)]
    assert len(costs) > 2
    assert costs == sorted(costs)
    assert set(scheme.alternatives[0]) == {"order", "T_i", "T_j", "T_k", "mode", "cycles", "dram_bytes"}


def test_cutting_i_pays_along_a_diagonal():
    """Partial rows then pass only the k steps near them; the paper does not cut i, so it is an option."""
    A = banded(3000, 12)
    plain, cut = hyte(A, A, TINY), hyte(A, A, TINY, tile_i=True)
    assert plain.T_i == 3000
    workload = Workload(A, A, lanes=TINY.lanes)
    assert predict(workload, TINY, cut).cycles <= predict(workload, TINY, plain).cycles
    cut.validate(TINY, 3000, 3000, 3000)


def test_tiles_of_c_are_kept_where_k_is_cut_and_innermost():
    """Section 5.2: the tensor that the innermost rank does not touch may keep its tile, C where that is k."""
    A, large = banded(600, 8), replace(TINY, bytes=64 << 10)
    workload = Workload(A, A, lanes=TINY.lanes)
    kept = [s for s in tiling_space(workload, large) if s.buffers("C")]
    assert kept and all(s.order[2] == "k" and s.T_k < workload.K and not s.buffers("A") for s in kept)
    for scheme in kept:
        scheme.validate(large, 600, 600, 600)
    without = tiling_space(workload, large, buffered=("A", "B"))
    assert without == [s for s in tiling_space(workload, large) if not s.buffers("C")]
    assert hyte(A, A, large).cycles <= hyte(A, A, large, buffered=("A", "B")).cycles


def test_tiles_of_a_are_kept_where_j_is_cut_and_innermost():
    """Each shape that cuts j has a scheme with A kept for each share that holds A's metadata; no other shape has one."""
    A = noise(300, 300, 0.05)
    workload = Workload(A, A, lanes=TINY.lanes)
    schemes = tiling_space(workload, TINY)
    kept = [s for s in schemes if s.buffers("A")]
    assert kept and all(s.order[2] == "j" and s.T_j < workload.J and not s.buffers("C") for s in kept)
    for scheme in kept:
        scheme.validate(TINY, workload.I, workload.J, workload.K)
    assert {s.buffer_bytes["A"] for s in kept} == {TINY.bytes // 2}  # a quarter is less than 300 rows' metadata
    assert [s for s in schemes if not s.buffers("A")] == tiling_space(workload, TINY, buffered=("B", "C"))


def test_a_is_kept_where_b_is_wide():
    """A is read once instead of once for each of many j tiles: fewer bytes, and the search knows it."""
    A, B = noise(60, 200, 0.2), noise(200, 2000, 0.1)
    machine = replace(EDGE, bytes=64 << 10, count=32)
    with_a, without = hyte(A, B, machine), hyte(A, B, machine, buffered=("B",))
    assert with_a.mode["A"] == BUFFERING and with_a.T_j < 2000
    workload = Workload(A, B, lanes=machine.lanes)
    its_own = [predict(workload, machine, scheme).cycles for scheme in (with_a, without)]
    assert its_own[0] < its_own[1] and with_a.dram_bytes < without.dram_bytes


@pytest.mark.parametrize(
    ("options", "field"),
    [({"statistics": "guess"}, "option statistics"), ({"buffered": ("B", "D")}, "option buffered")],
)
def test_impossible_options_are_refused(options, field):
    with pytest.raises(SchemeError, match=f"^scheme: {field} = "):
        schedule("hyte", MATRICES["one"], MATRICES["one"], TINY, **options)


def test_sampled_statistics_choose_about_as_well():
    A = power_law(3000)
    exact = Workload(A, A, lanes=TINY.lanes, statistics="exact")
    costs = {}
    for statistics in ("exact", "sketch", "sampled"):
        costs[statistics] = predict(exact, TINY, hyte(A, A, TINY, statistics=statistics)).cycles
    assert costs["sketch"] <= 1.1 * costs["exact"]
    assert costs["sampled"] <= 1.3 * costs["exact"]


# The cost model's bytes.


@pytest.mark.parametrize("operand", ["mesh", "noise"])
def test_untiled_resident_b_moves_each_operand_once(operand):
    A = {"mesh": mesh(15), "noise": noise(200, 200, 0.02)}[operand]
    workload = Workload(A, A, lanes=EDGE.lanes, statistics="exact")
    found = predict(workload, EDGE, scheme_of(EDGE, workload, workload.J, workload.K))
    nnz_c = (A @ A).nnz
    assert found.traffic["a_data"] == pytest.approx(8 * A.nnz, abs=16)
    assert found.traffic["b_data"] == pytest.approx(8 * A.nnz, abs=16)
    assert found.traffic["c_data"] == pytest.approx(8 * nnz_c, abs=16)
    for tensor in "abc":
        assert found.traffic[f"{tensor}_meta"] == pytest.approx(4 * (A.shape[0] + 1), abs=48)
    assert found.hit_rate == 1.0
    assert found.tiles == 1


def test_streaming_b_reads_a_row_for_each_use():
    A = power_law(300)
    workload = Workload(A, A, lanes=EDGE.lanes)
    found = predict(workload, EDGE, scheme_of(EDGE, workload, 300, 300, mode=STREAMING))
    assert found.traffic["b_data"] == 16 * int((A.sum(axis=0) * row_lines(workload.b, 2)).sum())
    assert found.traffic["b_meta"] == pytest.approx(16 * (A.nnz * 1.25 + 1), abs=16)  # and the line of the tile map
    assert found.hit_rate == 0.0


@pytest.mark.parametrize("order", ["kij", "kji"])
@pytest.mark.parametrize("T_k", [32, 50])
@pytest.mark.parametrize("operand", SMALL)
def test_partial_rows_leave_and_return_at_each_step(operand, T_k, order):
    """Against the growing unions of the product; fibers begin anywhere, which costs up to a line each."""
    A = SMALL[operand]
    K = A.shape[1]
    machine = replace(EDGE, merge_radix=256)
    workload = Workload(A, A, lanes=2, statistics="exact")
    found = predict(workload, machine, scheme_of(machine, workload, workload.J, min(T_k, K), order))
    columns, rows = A.tocsc(), A.tocsr()
    unions = [(columns[:, : k + T_k] @ rows[: k + T_k, :]).nnz for k in range(0, K, T_k)]
    moved = 8 * (2 * sum(unions[:-1]) + unions[-1])
    assert moved <= found.traffic["c_data"] <= moved + 16 * workload.I * (len(unions) - 1) + 16


def test_overbooked_tiles_fetch_what_is_bumped():
    A = banded(300, 10)
    workload = Workload(A, A, lanes=2)
    roomy = predict(workload, EDGE, scheme_of(EDGE, workload, 300, 300))
    tight = predict(workload, NARROW, scheme_of(NARROW, workload, 150, 20))
    assert roomy.overbooked == 0.0
    assert tight.overbooked > 0.3
    assert 0 < tight.hit_rate < 0.8
    assert tight.traffic["b_data"] > 2 * roomy.traffic["b_data"]


def test_rows_beyond_the_merge_radix_use_scratch():
    A = noise(200, 200, 0.1)
    workload = Workload(A, A, lanes=2, statistics="exact")
    bytes_by_radix = [
        predict(workload, replace(EDGE, merge_radix=radix), scheme_of(EDGE, workload, 200, 200)).traffic["c_data"]
        for radix in (4, 16, 64)
    ]
    assert bytes_by_radix[0] > bytes_by_radix[1] > bytes_by_radix[2] == pytest.approx(8 * (A @ A).nnz, abs=16)


def test_more_room_never_costs_more():
    A = power_law(600)
    workload = Workload(A, A, lanes=TINY.lanes)
    machines = [replace(TINY, bytes=size << 10) for size in (4, 8, 16, 32, 64)]
    costs = [predict(workload, machine, hyte(A, A, machine)).cycles for machine in machines]
    assert costs == sorted(costs, reverse=True)


def test_nothing_to_do_still_ends_every_row():
    workload = Workload(MATRICES["empty"], MATRICES["empty"].T.tocsr(), lanes=2)
    found = predict(workload, TINY, scheme_of(TINY, workload, workload.J, workload.K))
    assert found.traffic["a_data"] == found.traffic["b_data"] == found.traffic["c_data"] == 0
    assert found.traffic["c_meta"] >= 4 * 7
    assert found.cycles > 0
