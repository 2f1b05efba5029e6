"""Baselines of HYTE's published simulator, against their rules written down with dense counts."""

import math
from itertools import count

import numpy as np
import pytest

from gen.design import load_design
from sw.policies.registry import schedule
from tests.sw.stats.matrices import banded, mesh, noise, power_law

DESIGN = load_design("tiny", ["pe.value=fp32"])
OPERANDS = {
    "noise": noise(300, 500, 0.03),
    "band": banded(700, 3),
    "mesh": mesh(25),
    "power law": power_law(600),
    "fits": noise(40, 40, 0.05),
}


def width(B) -> int:
    """By every window of columns, and by every tile."""
    of_column = np.asarray((B != 0).sum(axis=0)).ravel()
    J, holds = B.shape[1], int(0.33 * DESIGN.buffer.bytes / 8)
    windows = [w for w in range(1, J + 1) if max(of_column[b : b + w].sum() for b in range(J - w + 1)) + w <= holds]
    safe = max(windows, default=1)
    for n in count():
        wide = min(J, int(safe * (1 + 2**n / 16)))
        tiles = [of_column[b : b + wide].sum() + wide > holds for b in range(0, J, wide)]
        if wide == J or sum(tiles) > 0.1 * len(tiles):
            return wide
    raise AssertionError


@pytest.mark.parametrize("name", OPERANDS)
def test_tiles_are_the_rules(name: str) -> None:
    B = OPERANDS[name]
    A = B if B.shape[0] == B.shape[1] else noise(70, B.shape[0], 0.05)
    (rows, K), J = A.shape, B.shape[1]
    n = math.ceil(J / width(B))
    columns, squares, even = (schedule(f"even_{what}", A, B, DESIGN) for what in ("columns", "squares", "rows"))
    assert (columns.order, squares.order, even.order) == ("ikj", "kji", "kji")
    assert (columns.T_i, columns.T_j) == (rows, width(B))
    assert (squares.T_i, squares.T_j) == (rows, math.ceil(J / n**0.5))
    assert (even.T_i, even.T_j) == (math.ceil(rows / n), J)
    lines = DESIGN.buffer.bytes // DESIGN.line_bytes
    for scheme, share, whole in ((columns, 0.5, K), (squares, 0.4, math.ceil(K / n**0.5)), (even, 0.9, K)):
        of_b = scheme.buffer_bytes["B"] // DESIGN.line_bytes
        assert abs(of_b - share * lines) < 2 and not scheme.tiles and scheme.buffers("B")
        most = scheme.partition("B", DESIGN).most_rows
        assert scheme.T_k == whole if whole <= most else scheme.T_k < most


def test_a_stays_where_its_rows_have_a_place() -> None:
    small, B = noise(20, 500, 0.05), noise(500, 900, 0.03)
    assert schedule("even_columns", small, B, DESIGN).buffers("A")
    assert not schedule("even_columns", noise(5000, 500, 0.01), B, DESIGN).buffers("A")
