"""Rows of C on their way: how long it takes to find what comes back to them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import load_design
from sw.formats.csr import Csr
from sw.model.machine import run_model
from sw.model.rows_of_c import JoinedRows
from sw.model.walk import Tile
from sw.plan.plan import plan
from sw.policies.registry import schedule
from sw.scheme.terms import BUFFERING, JOINED, STREAMING


def test_each_step_is_passed_for_each_block_of_rows_that_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """A band in 24 steps: two or three of them have parts of a tile; the unit that asks for their lines passes all of them."""
    design = load_design("edge")
    size, side = 480, 20
    band = sp.csr_array(sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(size, size)))
    matrix = Csr.from_scipy(band, np.ones(band.nnz, np.uint32), design.pe.value)
    streamed = {"A": STREAMING, "B": BUFFERING, "C": STREAMING}
    sides = {"T_i": size, "T_j": side, "T_k": side}
    scheme = replace(schedule("hyte", band, band, design), order="ijk", mode=streamed, partial_rows=JOINED, **sides)
    scheme.validate(design, size, size, size)
    found: list[tuple[int, int]] = []
    search = JoinedRows.search

    def note(self: Any, tile: Tile, latency: int) -> tuple[int, int, int]:
        cycles, lines, waits = search(self, tile, latency)
        if lines:
            found.append((tile.step, cycles))
        return cycles, lines, waits

    monkeypatch.setattr(JoinedRows, "search", note)
    run_model(design, plan(scheme, matrix, matrix, design))
    # A line has words of as many rows as two of its nonzeros; the first line of each step is asked for by itself.
    blocks = size // (2 * design.lanes)
    assert len(found) == size // side and max(step for step, _ in found) == 23
    assert all(cycles >= step * (blocks - 1) for step, cycles in found)
    assert all(cycles <= step * (blocks + 1) for step, cycles in found if step > 16)
