"""The cost model's bytes against a walk over every tile, row and use."""

from dataclasses import replace

import pytest

from gen.design import load_design
from sw.cost.predict import predict
from sw.model.judge import _with_values
from sw.model.machine import run_model
from sw.plan.plan import plan
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition
from sw.scheme.terms import BUFFERING, STREAMING
from sw.stats.workload import Workload
from tests.sw.stats.matrices import banded, mesh, noise, power_law

from .machines import Machine
from .reference_traffic import reference_traffic

MACHINE = Machine(6 << 10, 128, fifo_bytes=256, merge_radix=1024)
WIDE = replace(MACHINE, data_bits=512, bytes=12 << 10)
OPERANDS = {
    "noise": noise(250, 250, 0.04),
    "banded": banded(300, 7),
    "mesh": mesh(17),
    "power_law": power_law(260),
    "oblong": noise(120, 400, 0.03),
}
# T_i, T_j, T_k, order; 0 stands for the whole side.
SHAPES = [
    (0, 0, 0, "ijk"),
    (0, 0, 64, "ijk"),
    (0, 0, 64, "kij"),
    (0, 64, 0, "ijk"),
    (0, 64, 64, "ijk"),
    (0, 64, 64, "ikj"),
    (0, 50, 30, "jki"),
    (64, 0, 64, "ijk"),
    (64, 64, 64, "jki"),
]


def case(operand, shape, machine, mode=BUFFERING, lines_a=0):
    A = OPERANDS[operand]
    B = A if A.shape[0] == A.shape[1] else type(A)(A.T.tocsr())
    sides = {
        rank: min(side or full, full)
        for rank, side, full in zip("ijk", shape, (A.shape[0], B.shape[1], A.shape[1]), strict=False)
    }
    parts, fifo = default_partition(machine, **({"lines_a": lines_a} if lines_a else {}))
    scheme = Scheme(
        policy="hand",
        order=shape[3],
        T_i=sides["i"],
        T_j=sides["j"],
        T_k=sides["k"],
        buffer_bytes=parts,
        fifo_bytes=fifo,
        mode={"A": BUFFERING if lines_a else STREAMING, "B": mode, "C": STREAMING},
    )
    workload = Workload(A, B, lanes=machine.lanes, statistics="exact")
    scheme.validate(machine, workload.I, workload.J, workload.K)
    found = predict(workload, machine, scheme)
    expected = reference_traffic(A, B, machine.lanes, machine.line_bytes, scheme)
    return found, {name: lines * machine.line_bytes for name, lines in expected.items()}


@pytest.mark.parametrize("machine", [MACHINE, WIDE], ids=["128", "512"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("operand", OPERANDS)
def test_predicted_bytes_are_near_those_of_the_walk(operand, shape, machine):
    found, expected = case(operand, shape, machine)
    assert found.dram_bytes == pytest.approx(sum(expected.values()), rel=0.15), (found.traffic, expected)


@pytest.mark.parametrize("share", [2, 3])
@pytest.mark.parametrize(
    "shape",
    [(0, 64, 0, "ikj"), (0, 64, 64, "ikj"), (0, 40, 100, "kij"), (64, 64, 64, "ikj"), (50, 90, 0, "kij")],
    ids=str,
)
@pytest.mark.parametrize("operand", OPERANDS)
def test_predicted_bytes_with_tiles_of_a_kept(operand, shape, share):
    """Half of the buffer holds some of A's tiles whole, a third bumps rows of most."""
    machine = replace(MACHINE, bytes=8 << 10)
    lines = machine.bytes // machine.line_bytes // share
    found, expected = case(operand, shape, machine, lines_a=lines)
    assert found.dram_bytes == pytest.approx(sum(expected.values()), rel=0.15), (found.traffic, expected)
    of_a = expected["a_data"] + expected["a_meta"]
    assert found.traffic["a_data"] + found.traffic["a_meta"] == pytest.approx(of_a, rel=0.3), (found.traffic, expected)
    streamed, _ = case(operand, shape, machine)
    assert found.traffic["a_data"] + found.traffic["a_meta"] <= streamed.traffic["a_data"] + streamed.traffic["a_meta"]


@pytest.mark.parametrize("operand", OPERANDS)
def test_streaming_bytes_are_exact_but_for_the_last_lines(operand):
    found, expected = case(operand, (0, 0, 0, "ijk"), MACHINE, STREAMING)
    assert found.dram_bytes == pytest.approx(sum(expected.values()), rel=0.02)


# Packed records ---------------------------------------------------------------------------------------------------------
# Coordinates of 9 bits: records of 17, 25 and 41.
NARROW = {
    value: load_design(
        "edge", [f"pe.value={value}", "memory.records=packed", "buffer.bytes=8192", "buffer.fifo_bytes=512"]
    )
    for value in ("int8", "bf16", "fp32")
}


def packed_case(operand, shape, design, mode=BUFFERING, lines_a=0):
    """Prediction and bytes of the model tier by kind, and what the model counts."""
    A = OPERANDS[operand]
    workload = Workload(A, A if A.shape[0] == A.shape[1] else A.T.tocsr(), lanes=design.lanes, statistics="exact")
    sides = {r: side or full for r, side, full in zip("ijk", shape, (workload.I, workload.J, workload.K), strict=False)}
    parts, fifo = default_partition(design, **({"lines_a": lines_a} if lines_a else {}))
    scheme = Scheme(
        policy="hand", order=shape[3], T_i=sides["i"], T_j=sides["j"], T_k=sides["k"], buffer_bytes=parts, fifo_bytes=fifo,
        mode={"A": BUFFERING if lines_a else STREAMING, "B": mode, "C": STREAMING},
    )  # fmt: skip
    scheme.validate(design, workload.I, workload.J, workload.K)
    a = _with_values(workload.a)
    b = a if workload.b is workload.a else _with_values(workload.b)
    counted = run_model(design, plan(scheme, a, b, design)).counters
    bytes_of = {
        f"{t}_{kind}": design.line_bytes * sum(counted.get(f"{access}_{t}_{kind}", 0) for access in ("read", "write"))
        for t in "abc"
        for kind in ("data", "meta")
    }
    return predict(workload, design, scheme), bytes_of, counted


@pytest.mark.parametrize("design", NARROW.values(), ids=NARROW)
@pytest.mark.parametrize("shape", [*SHAPES, (0, 64, 64, "kij")], ids=str)
@pytest.mark.parametrize("operand", OPERANDS)
def test_packed_bytes_are_near_those_of_the_model(operand, shape, design):
    found, expected, _ = packed_case(operand, shape, design)
    assert found.dram_bytes == pytest.approx(sum(expected.values()), rel=0.15), (found.traffic, expected)


@pytest.mark.parametrize("design", NARROW.values(), ids=NARROW)
@pytest.mark.parametrize("lines_a", [0, 200])
@pytest.mark.parametrize("operand", OPERANDS)
def test_packed_beats_of_whole_rows_and_of_scans(operand, lines_a, design):
    """Rows of B that are loaded, bumped or streamed, and segments of A: a beat that two of them share is read for each."""
    for shape, mode in (((0, 0, 0, "ijk"), STREAMING), ((0, 0, 0, "ijk"), BUFFERING), ((0, 0, 64, "ijk"), BUFFERING)):
        found, expected, _ = packed_case(operand, shape, design, mode, lines_a if mode == BUFFERING else 0)
        # The prediction leaves out what a load reads into the FIFO-managed region before the tile turns out not to fit.
        apart = 0.04 if mode == BUFFERING else 0
        assert found.traffic["b_data"] == pytest.approx(expected["b_data"], rel=apart), (shape, mode)
        if not lines_a:
            assert abs(found.traffic["a_data"] - expected["a_data"]) <= 2 * design.line_bytes, (shape, mode)


@pytest.mark.parametrize("design", NARROW.values(), ids=NARROW)
@pytest.mark.parametrize("operand", OPERANDS)
def test_packed_records_leave_lines_that_take_a_cycle_each(operand, design):
    """The bus has fewer beats than units have lines: cycles are near those of the model all the same."""
    for shape, mode in (((0, 0, 0, "ijk"), STREAMING), ((0, 0, 64, "ijk"), BUFFERING), ((64, 0, 64, "ijk"), BUFFERING)):
        found, _, counted = packed_case(operand, shape, design, mode)
        assert found.cycles == pytest.approx(counted["cycles"], rel=0.2), (shape, mode)
