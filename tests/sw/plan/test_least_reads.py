"""Bounds of what is read of B: bytes by hand, and no run of the model below the one that holds for all of them."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import load_design
from sw.model.machine import run_model
from sw.operands import Operand, to_csr
from sw.plan.least_reads import least_reads
from sw.plan.plan import plan
from tests.forced import forced

PACKED = ["memory.records=packed"]


def operand(matrix: sp.csr_array, design):
    matrix.sort_indices()
    return to_csr(Operand(name="A", source="made here", matrix=matrix), design.pe.value)


def planned(a, b, design, tile, **fields):
    scheme = forced(design.line_bytes, "ijk", tile, b_lines=design.buffer.bytes // design.line_bytes - 16)
    return plan(replace(scheme, **fields), a, b, design)


def whole(a, b, design):
    """A plan of one tile."""
    return planned(a, b, design, (a.rows, b.columns, a.columns))


@pytest.mark.parametrize(("changes", "record"), [([], 64), (PACKED, 32 + 3)])
def test_bytes_by_hand(changes, record):
    """Rows of B with 3, 0 and 8 nonzeros, used twice, twice and once: all of it fits, so each is read once."""
    design = load_design("tiny", changes)
    a = operand(sp.csr_array(np.array([[1, 1, 0], [1, 1, 1]])), design)
    rows = np.zeros((3, 8), int)
    rows[0, :3], rows[2] = 1, 1
    found = least_reads(whole(a, operand(sp.csr_array(rows), design), design), design)
    # Whole rows: the lines of two records with records 0 to 2, and with 3 to 10, on a bus of 16 bytes; and two pointers each.
    beats = sum(-(-end * record // 128) - begin * record // 128 for begin, end in ((0, 4), (2, 12)))
    whole_rows = 16 * beats + 16
    assert found == {"bytes": -(-11 * record // 8), "whole_rows": whole_rows, "partition": whole_rows}


@pytest.mark.parametrize("changes", [[], PACKED], ids=["plain", "packed"])
@pytest.mark.parametrize("load", ["tile", "list"])
@pytest.mark.parametrize("row_order", ["natural", "greedy"])
def test_no_run_reads_less(changes, load, row_order):
    design = load_design("tiny", ["pe.value=fp32", *changes])
    matrix = sp.random_array((150, 150), density=0.05, rng=np.random.default_rng(8), format="csr")
    a = operand(matrix, design)
    run = planned(a, a, design, (12, 150, 150), load=load, row_order=row_order)
    moved, found = run_model(design, run).dram_bytes["B"], least_reads(run, design)
    assert 0 < found["bytes"] <= moved["read"]


def test_the_partition_that_a_scheme_gives_b():
    """The whole buffer takes B, a few lines only some of it, none nothing; planned places add a word to each row that is read."""
    design = load_design("tiny", ["pe.value=fp32"])
    matrix = sp.random_array((150, 150), density=0.03, rng=np.random.default_rng(8), format="csr")
    a = operand(matrix, design)
    shares = [
        forced(design.line_bytes, "ijk", (12, 150, 150), b_lines=lines) for lines in (design.sram_lines - 16, 150)
    ]
    large, small = (least_reads(plan(replace(share, load="list"), a, a, design), design) for share in shares)
    assert large["whole_rows"] == small["whole_rows"] and large["bytes"] == small["bytes"]
    assert large["whole_rows"] <= large["partition"] < small["partition"]
    run = planned(a, a, design, (12, 150, 150), load="planned")
    words = least_reads(run, design)["partition"] - large["partition"]
    used = len(np.unique(a.coordinates[np.isin(a.coordinates, np.flatnonzero(np.diff(a.pointers)))]))
    assert words >= 4 * used and words % 4 == 0


def test_rows_of_one_turn_only():
    """k cut, j cut, strips, other dataflows."""
    design = load_design("tiny")
    a = operand(sp.csr_array(np.eye(30, dtype=int)), design)
    assert least_reads(whole(a, a, design), design) is not None
    for tile in ((30, 30, 10), (30, 10, 30)):
        assert least_reads(planned(a, a, design, tile), design) is None
    for dataflow in ("outer", "inner"):
        assert least_reads(whole(a, a, design), load_design("tiny", [f"pe.dataflow={dataflow}"])) is None
