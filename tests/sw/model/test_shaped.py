"""The model of tiles with shapes of their own: equal to the machine's where it can run them, counted by hand where not."""

from dataclasses import replace

import numpy as np
import pytest

from gen.design import load_design
from sw.golden.spgemm import multiply
from sw.golden.tuned_walk import TunedTile, TunedWalk
from sw.model.machine import run_model
from sw.model.shaped import run_shaped
from sw.operands import to_csr
from sw.operands.operand import Operand, canonical_csr
from sw.plan.plan import plan
from sw.policies.registry import schedule
from sw.scheme.explicit_tiles import steps
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition
from sw.scheme.terms import BUFFERING, STREAMING
from tests.sw.stats.matrices import MATRICES, banded, mesh, noise, power_law

TINY = load_design("tiny")
OPERANDS = {"noise": noise(300, 300, 0.02), "mesh": mesh(18), "power_law": power_law(400), "banded": banded(257, 9)}


def as_csr(matrix, design=TINY):
    return to_csr(Operand(name="x", source="x", matrix=canonical_csr(matrix, "x")), design.pe.value)


def moved(result):
    return {(t, kind): n for t, kinds in result.dram_bytes.items() for kind, n in kinds.items()}


def grid_scheme(size, T_j, T_k, T_i=None):
    """One shape, as a scheme and as a list of tiles."""
    parts, fifo = default_partition(TINY, partial_rows=True)
    mode = {"A": STREAMING, "B": BUFFERING, "C": STREAMING}
    even = Scheme(policy="x", order="jik", T_i=size, T_j=T_j, T_k=T_k, buffer_bytes=parts, fifo_bytes=fifo, mode=mode)

    def cuts(T):
        return [(n, min(size, n + T)) for n in range(0, size, T)]

    tiles = [[*i, *j, *k] for j in cuts(T_j) for k in cuts(T_k) for i in cuts(T_i or size)]
    return even, replace(even, tiles=tiles, T_i=T_i or size, order="jki")


@pytest.mark.parametrize("cut_i", [None, 50])
@pytest.mark.parametrize(("T_j", "T_k"), [(64, 32), (1000, 40), (48, 1000)])
@pytest.mark.parametrize("name", OPERANDS)
def test_a_list_of_even_tiles_is_the_machines_own_tiling(name, T_j, T_k, cut_i):
    """Wherever i is cut, too: A streams."""
    a = as_csr(OPERANDS[name])
    even, listed = grid_scheme(a.rows, min(T_j, a.rows), min(T_k, a.rows), cut_i)
    listed.validate(TINY, a.rows, a.rows, a.rows)
    expected, found = run_model(TINY, plan(even, a, a, TINY)), run_shaped(TINY, plan(listed, a, a, TINY))
    for key in expected.counters:
        if key not in ("read_a_meta", "read_b_meta", "cycles"):  # maps of empty tiles may be finer
            assert found.counters[key] == expected.counters[key], key
    assert found.counters["read_a_meta"] >= expected.counters["read_a_meta"]
    # Rows of the list do not wait for their segments of B, which are loaded beside them.
    assert found.cycles == pytest.approx(expected.cycles, rel=0.07)


@pytest.mark.parametrize("name", OPERANDS)
def test_uneven_tiles_multiply_everything_once(name):
    a = as_csr(OPERANDS[name])
    scheme = schedule("drt", OPERANDS[name], OPERANDS[name], TINY)
    scheme.validate(TINY, a.rows, a.rows, a.rows)
    assert len({(t[1] - t[0], t[3] - t[2], t[5] - t[4]) for t in scheme.tiles}) > 3
    found = run_shaped(TINY, plan(scheme, a, a, TINY))
    golden = multiply(a, a, TINY.pe.merge_radix, TINY.pe.value, scheme)
    assert found.counters["macs"] == golden.macs
    walk = TunedWalk(
        tiles=[
            TunedTile(begin=(0, j, k), size=(a.rows, end_j - j, end_k - k), skipped=False)
            for j, end_j, k, end_k in steps(scheme.tiles)
        ]
    )
    again = multiply(a, a, TINY.pe.merge_radix, TINY.pe.value, scheme, walk)  # integers: any order gives the same
    assert np.array_equal(again.structural.bits, golden.structural.bits)
    # Everything of A and B is read once at least, C written once at least.
    traffic = moved(found)
    for tensor in "AB":
        assert traffic[tensor, "read"] >= 8 * a.nnz
    assert traffic["C", "write"] >= 8 * golden.structural.nnz


@pytest.mark.parametrize("pseudo", [1, 16, 1000])
@pytest.mark.parametrize("name", OPERANDS)
def test_super_tiles_move_what_a_count_by_hand_says(name, pseudo):
    matrix = OPERANDS[name]
    a = as_csr(matrix)
    design = load_design("tiny", ["pe.merge_radix=64"])
    scheme = schedule("harp", matrix, matrix, design, pseudo=pseudo)
    scheme.validate(design, a.rows, a.rows, a.rows)
    found = run_shaped(design, plan(scheme, a, a, design))
    lanes, line = design.lanes, design.line_bytes
    lines = scheme.buffer_bytes["B"] // line - scheme.fifo_bytes["B"] // line

    def touched(begin, end):
        return -(-end // lanes) - begin // lanes if end > begin else 0

    b_lines = a_lines = 0
    for i, end, *_ in scheme.tiles:
        wanted = a.coordinates[a.pointers[i] : a.pointers[end]]
        used = [k for k in sorted(set(wanted.tolist())) if a.pointers[k + 1] > a.pointers[k]]
        sizes = sum(int(a.pointers[k + 1] - a.pointers[k]) for k in used)
        assert sizes <= lanes * (lines - -(-len(used) // lanes)) or end - i <= pseudo
        if found.counters["bumped_elements"] == 0:
            b_lines += sum(touched(a.pointers[k], a.pointers[k + 1]) for k in used)
        a_lines += touched(a.pointers[i], a.pointers[end])
    assert found.dram_bytes["A"]["read"] == line * a_lines
    if found.counters["bumped_elements"] == 0:
        assert found.dram_bytes["B"]["read"] == line * b_lines
    golden = multiply(a, a, design.pe.merge_radix, design.pe.value, scheme)
    assert found.counters["macs"] == golden.macs
    assert 8 * golden.structural.nnz <= found.dram_bytes["C"]["write"]
    if name != "power_law":  # rows that are longer than the radix leave some in scratch
        assert found.dram_bytes["C"]["write"] <= 8 * golden.structural.nnz + line * len(scheme.tiles)


@pytest.mark.parametrize("name", ["drt", "harp"])
@pytest.mark.parametrize("operand", ["empty", "one", "one_row", "one_column", "dense"])
def test_small_and_empty_operands(operand, name):
    A = MATRICES[operand]
    B = canonical_csr(A.T, "x")
    scheme = schedule(name, A, B, TINY)
    a, b = as_csr(A), as_csr(B)
    found = run_shaped(TINY, plan(scheme, a, b, TINY))
    assert found.counters["macs"] == multiply(a, b, TINY.pe.merge_radix, TINY.pe.value, scheme).macs
