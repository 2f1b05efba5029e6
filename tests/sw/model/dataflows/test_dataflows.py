"""Outer and inner products against a walk fiber by fiber, and what must hold of larger machines."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gen.design import load_design
from sw.model.dataflows.machine import PARTS, run_dataflow
from sw.operands import to_csr
from sw.operands.operand import Operand, canonical_csr
from sw.scheme.scheme import Scheme
from sw.scheme.terms import BUFFERING, ORDERS, STREAMING
from tests.sw.model.dataflows.reference_walk import walk

KEPT = {"": "", "b": "B", "c": "C", "ab": "AB", "bc": "BC", "abc": "ABC"}
TILES = {
    "whole": (99, 99, 99),
    "j and k": (99, 5, 4),
    "i and j": (6, 7, 99),
    "all": (5, 6, 7),
    "points of k": (8, 9, 1),
}


def design(dataflow, **changes):
    settings = [f"pe.dataflow={dataflow}", *(f"{k.replace('__', '.')}={v}" for k, v in changes.items())]
    return load_design("tiny", settings)


def operands(seed, density=0.25, shape=(17, 21, 19)):
    rng = np.random.default_rng(seed)
    m, k, n = shape

    def csr(rows, columns):
        matrix = canonical_csr(sp.random_array((rows, columns), density=density, rng=rng), "test")
        matrix.data[:] = 1
        return matrix, to_csr(Operand(source="test", name="test", matrix=matrix), "int32")

    return csr(m, k), csr(k, n)


def scheme(order="ijk", tile=(99, 99, 99), kept="BC", lines=(20, 24, 16), shape=(17, 19, 21)):
    i, j, k = (min(t, n) for t, n in zip(tile, shape, strict=True))
    return Scheme(
        policy="test", order=order, T_i=i, T_j=j, T_k=k,
        buffer_bytes={t: 16 * n for t, n in zip("ABC", lines, strict=True)},
        fifo_bytes={"A": 64, "B": 64},
        mode={t: BUFFERING if t in kept else STREAMING for t in "ABC"},
    )  # fmt: skip


def compared(found):
    """The model's numbers under the names of the walk."""
    numbers = {name: found.counters[name] for name in ("cycles", "macs", "walked", "compared", "merged")}
    numbers["visits"] = found.tiles["total"] - found.tiles["skipped_empty"]
    for tensor, kinds in found.dram_bytes.items():
        numbers[f"read_{tensor}_data"] = kinds["read"] // 16
        numbers[f"write_{tensor}_data"] = kinds["write"] // 16
        numbers[f"read_{tensor}_meta"] = kinds["metadata_read"] // 16
        numbers[f"write_{tensor}_meta"] = kinds["metadata_write"] // 16
    return numbers


@pytest.mark.parametrize("dataflow", ["outer", "inner"])
@pytest.mark.parametrize("tile", TILES.values(), ids=TILES)
@pytest.mark.parametrize("kept", KEPT.values(), ids=lambda kept: kept or "none")
@pytest.mark.parametrize("order", ["ijk", "ikj", "kji"])
def test_lines_and_cycles_are_those_of_a_walk(dataflow, tile, kept, order):
    (a, a_csr), (b, b_csr) = operands(sum(tile) % 7)
    machine, chosen = design(dataflow, pe__count=3), scheme(order, tile, kept)
    found = run_dataflow(machine, chosen, a_csr, b_csr)
    expected = walk(machine, chosen, a, b)
    numbers = compared(found)
    assert numbers == {name: expected.get(name, 0) for name in numbers}
    assert sum(found.counters[f"cycles_{part}"] for part in PARTS) == found.cycles


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_scheme_agrees_with_the_walk(data):
    shape = tuple(data.draw(st.integers(1, 24)) for _ in "ikj")
    tile = tuple(data.draw(st.integers(1, 24)) for _ in "ijk")
    lines = tuple(data.draw(st.integers(16, 60)) for _ in "AB") + (data.draw(st.integers(0, 40)),)
    kept = "".join(t for t in "ABC" if data.draw(st.booleans()))
    (a, a_csr), (b, b_csr) = operands(data.draw(st.integers(0, 99)), data.draw(st.sampled_from([0.0, 0.1, 0.5])), shape)
    machine = design(data.draw(st.sampled_from(["outer", "inner"])), pe__count=data.draw(st.integers(1, 5)))
    i, k, j = shape
    chosen = scheme(data.draw(st.sampled_from(ORDERS)), tile, kept, lines, (i, j, k))
    numbers = compared(run_dataflow(machine, chosen, a_csr, b_csr))
    expected = walk(machine, chosen, a, b)
    assert numbers == {name: expected.get(name, 0) for name in numbers}


@pytest.mark.parametrize("dataflow", ["outer", "inner"])
@pytest.mark.parametrize("tile", TILES.values(), ids=TILES)
@pytest.mark.parametrize("order", ["ijk", "ikj", "kji"])
def test_more_of_anything_never_costs_cycles(dataflow, tile, order):
    (_, a), (_, b) = operands(3, 0.4)
    chosen = scheme(order, tile, "ABC")

    def cycles(chosen=chosen, **changes):
        return run_dataflow(design(dataflow, **changes), chosen, a, b).cycles

    def falls(found):
        assert found == sorted(found, reverse=True)

    falls([cycles(pe__count=n) for n in (1, 2, 3, 4, 8, 16, 128)])
    falls([cycles(dram__bandwidth_gbps=rate) for rate in (0.5, 1, 2, 4, 8)])
    falls([cycles(buffer__banks=n) for n in (1, 2, 4, 8)])
    falls([cycles(dram__latency_ns=n) for n in (400, 200, 100, 0)])
    for tensor in "ABC":
        falls([
            cycles(replace(chosen, buffer_bytes=chosen.buffer_bytes | {tensor: 16 * n}))
            for n in (17, 18, 20, 24, 32, 48, 64, 128)
        ])  # fmt: skip


@pytest.mark.parametrize("dataflow", ["outer", "inner"])
def test_compulsory_traffic_where_everything_fits(dataflow):
    (a, a_csr), (b, b_csr) = operands(1)
    found = run_dataflow(design(dataflow), scheme(lines=(20, 200, 250), kept="ABC"), a_csr, b_csr).dram_bytes
    product = (a != 0).astype(int) @ (b != 0).astype(int)
    assert [found[t]["read"] for t in "ABC"] == [16 * -(-a.nnz // 2), 16 * -(-b.nnz // 2), 0]
    assert found["C"]["write"] == 16 * -(-product.nnz // 2)


@pytest.mark.parametrize("tile", TILES.values(), ids=TILES)
@pytest.mark.parametrize("density", [0.0, 0.003, 0.25])
@pytest.mark.parametrize("dataflow", ["outer", "inner"])
def test_no_line_moves_in_no_time(dataflow, density, tile):
    """The lines that say which tiles are empty, too, where few tiles or none are visited."""
    machine = design(dataflow, dram__latency_ns=0)
    found = run_dataflow(machine, scheme(tile=tile), *(csr for _, csr in operands(4, density)))
    moved = sum(sum(kinds.values()) for kinds in found.dram_bytes.values())
    assert found.cycles >= moved / machine.dram_bytes_per_cycle
    assert found.cycles == sum(found.counters[f"cycles_{part}"] for part in PARTS)


def test_the_walk_is_not_the_model():
    assert "sw.model" not in (Path(__file__).parent / "reference_walk.py").read_text()
