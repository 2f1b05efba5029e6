"""The array: figure 6 of MINT, words of the bus packed one by one, cases computed by hand."""

from dataclasses import replace

import numpy as np
import pytest

from sw.sage import array as array_module
from sw.sage.array import Array, compute_options, send_cycles
from sw.sage.constants import Constants
from sw.sage.counts import Counted
from sw.sage.workload import counted, uniform

#: A of figure 6: A and B in row 0, C and H in two others.
FIGURE_6 = np.zeros((4, 8))
FIGURE_6[0, 0], FIGURE_6[0, 2], FIGURE_6[1, 5], FIGURE_6[3, 7] = 1, 2, 3, 4
BUS = 5


def rows_of(matrix: np.ndarray) -> Counted:
    return Counted(*matrix.shape, *np.nonzero(matrix))


def packed(matrix: np.ndarray, acf: str, words: int) -> int:
    """Cycles: each is filled with what belongs to one row until nothing more fits."""
    cycles = 0
    for row in matrix:
        queue = list(range(len(row))) if acf == "dense" else [k for k, value in enumerate(row) if value]
        while queue:
            free = words - (acf != "coo")  # one row id for all, but of coo, whose nonzeros have their own
            while queue and free >= {"dense": 1, "csr": 2, "coo": 3}[acf]:
                queue.pop(0)
                free -= {"dense": 1, "csr": 2, "coo": 3}[acf]
            cycles += 1
    return cycles


@pytest.mark.parametrize(("acf", "cycles"), [("dense", 8), ("csr", 3), ("coo", 4)])
def test_figure_6(acf, cycles):
    assert send_cycles(acf, rows_of(FIGURE_6), BUS) == cycles == packed(FIGURE_6, acf, BUS)


@pytest.mark.parametrize("acf", ["dense", "csr", "coo"])
@pytest.mark.parametrize("words", [3, 5, 16])
def test_the_bus_carries_what_fits(acf, words):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        matrix = (rng.random((9, 23)) < rng.random()) * 1
        assert send_cycles(acf, rows_of(matrix), words) == packed(matrix, acf, words)
        cut = [matrix[:, begin : begin + 8] for begin in range(0, 23, 8)]
        assert send_cycles(acf, rows_of(matrix), words, width=8) == sum(packed(part, acf, words) for part in cut)


def by_range(work, acf_a, acf_b, array, constants=None):
    return {each.range_k: each for each in compute_options(work, acf_a, acf_b, array, constants or Constants())}


def test_dense_by_hand():
    """Figure 6: B is 8 x 4 in four PEs of eight words, two MACs each; 32 words of B over a bus of five."""
    array = Array(macs=8, vector=2, pe_bytes=32, bus_bits=160)
    (found,) = by_range(uniform("spmm", (4, 8, 4), 0.25), "dense", "dense", array).values()
    # Each of 4 rows takes a PE 8 / 2 cycles, the bus 2.
    assert found.cycles == pytest.approx(4 * 4 + 32 / 5)
    # With four MACs in a PE the bus and the PEs are equally fast.
    wide = replace(array, macs=16, vector=4)
    (found,) = by_range(uniform("spmm", (4, 8, 4), 0.25), "dense", "dense", wide).values()
    assert found.cycles == pytest.approx(4 * 2 + 32 / 5)


def test_energy_by_hand():
    """The case above, A with 8 nonzeros: all that moves and multiplies, one by one."""
    constants = Constants(scratchpad_bit=3.0, pe_bit=0.5, accumulator_bit=0.25)
    array = Array(macs=16, vector=4, pe_bytes=32, bus_bits=160)
    (found,) = by_range(uniform("spmm", (4, 8, 4), 0.25), "dense", "dense", array, constants).values()
    sent, stored, products, outputs = 4 * 8 + 8, 32, 8 * 4, 16
    assert found.buffer == pytest.approx(32 * (3.0 * (sent + stored) + 0.5 * (stored + products) + 0.25 * 2 * outputs))
    assert found.compute == pytest.approx(products * 4.6)
    (zeros,) = by_range(uniform("spmm", (4, 8, 4), 0.25), "dense", "dense", replace(array, gated=False)).values()
    assert zeros.compute == pytest.approx(4 * 8 * 4 * 4.6)


def test_a_column_that_does_not_fit_is_cut_or_its_columns_wait():
    """B is 16 x 4 in PEs of eight words: 8 PEs of which there are 4. A dense A goes by once, a compressed one twice."""
    array = Array(macs=32, vector=8, pe_bytes=32, bus_bits=544)
    dense = by_range(uniform("spmm", (10, 16, 4), 1.0), "dense", "dense", array)
    # All of k, two columns at a time: 16 words a row in one cycle, twice. Half of k, all columns: 8 words a row, twice.
    assert {each.cycles for each in dense.values()} == {2 * 10 + 64 / 17}
    csr = by_range(uniform("spmm", (10, 16, 4), 1.0), "csr", "dense", array)
    assert min(each.cycles for each in csr.values()) == 2 * 10 * 2 + 64 / 17
    found = by_range(uniform("spmm", (10, 16, 4), 1.0), "csr", "dense", replace(array, row_search=True))
    assert min(each.cycles for each in found.values()) == 2 * 10 * 1 + 64 / 17


def test_columns_that_leave_pes_free_share_them():
    """Two columns of 16 in eight PEs of 16 words: four words each, two cycles a row; the bus takes 1."""
    array = Array(macs=16, vector=2, pe_bytes=64, bus_bits=544)
    (found,) = by_range(uniform("spmm", (10, 16, 2), 1.0), "dense", "dense", array).values()
    assert found.cycles == pytest.approx(10 * 2 + 32 / 17)


def test_ids_are_compared_with_all_that_is_stored():
    """One row of 4 nonzeros; one column with 6, compared two at a time: 4 x 3 cycles, 24 comparisons."""
    a, b = np.zeros((1, 8)), np.zeros((8, 1))
    a[0, :4], b[:6, 0] = 1, 1
    work = counted("spgemm", *(_csr(each) for each in (a, b)))
    array = Array(macs=2, vector=2, pe_bytes=64, bus_bits=544, comparators=2)
    (found,) = by_range(work, "csr", "csc", array, Constants(compare_bit=1.0)).values()
    assert found.cycles == pytest.approx(12 + 12 / 17)
    assert found.compute == pytest.approx(24 * 32 + 4 * 4.6)


def _csr(matrix: np.ndarray):
    import scipy.sparse as sp

    return sp.csr_array(matrix.astype(np.float64))


def test_narrow_values_leave_ids_more_words():
    """Of int8 an id of 300 places takes two words: 64 words of bus carry 62 / 3 nonzeros of csr, and 15 of 32 bits 7."""
    for value, words, pairs in (("int8", 64, 20), ("fp32", 16, 7)):
        work = uniform("spmm", (1000, 300, 4), 0.2, value=value)
        least = min(each.cycles for each in compute_options(work, "csr", "dense", Array(macs=1 << 18), Constants()))
        assert least == pytest.approx(work.rows.groups(300, pairs) + 300 * 4 / words)


@pytest.mark.parametrize("acf_b", ["dense", "csc"])
@pytest.mark.parametrize("acf_a", ["dense", "csr", "coo"])
def test_more_nonzeros_are_never_less_work(acf_a, acf_b):
    least = [
        min(
            each.cycles
            for each in compute_options(uniform("spgemm", (500, 900, 700), d, d), acf_a, acf_b, Array(), Constants())
        )
        for d in (1e-4, 1e-3, 1e-2, 0.1, 0.3, 0.6, 1.0)
    ]
    assert least == sorted(least)
    assert (least[0] == least[-1]) == ((acf_a, acf_b) == ("dense", "dense"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"macs": 12}, "macs must be a multiple of vector = 8, not 12"),
        ({"pe_bytes": 0}, "pe_bytes must be at least 1, not 0"),
    ],
)
def test_arrays_that_cannot_be(change, said):
    with pytest.raises(ValueError, match=f"^{said}$"):
        Array(**change)


def test_mttkrp_by_hand():
    """A is 2 x 3 x 4 without zeros, two columns of B (3 rows) and of C (4 rows): PEs of eight words, a bus of five."""
    workload = uniform("mttkrp", (2, 3, 4, 2), 1.0)
    array = Array(macs=12, vector=4, pe_bytes=32, bus_bits=160)
    (dense,) = by_range(workload, "dense", "dense", array).values()
    # Six fibers of a cycle each; C's 8 and B's 6 words come first.
    assert dense.cycles == pytest.approx(6 + 14 / 5)
    assert dense.compute == pytest.approx((2 * 3 * 4 * 2 + 6 * 2) * 4.6)
    # Both matrices of both columns take four PEs of which there are three: two pairs a cycle, a column at a time.
    (csf,) = by_range(workload, "csf", "dense", array).values()
    assert csf.cycles == pytest.approx(2 * 6 * 2 + 14 / 5)


def test_ids_of_a_range_alone_are_compared_where_ranges_are_found():
    a, b = np.zeros((1, 8)), np.zeros((8, 1))
    a[0, :], b[:, 0] = 1, 1
    workload = counted("spgemm", *(_csr(each) for each in (a, b)))
    constants = Constants(compare_bit=1.0)
    for row_search, compared in ((False, 8 * 8), (True, 2 * 4 * 4)):
        array = Array(macs=16, vector=1, pe_bytes=16, bus_bits=544, comparators=1, row_search=row_search)
        found = array_module._computed(workload, "csr", "csc", array, constants, 4)
        assert found.compute == pytest.approx(compared * 32 + 8 * 4.6)
