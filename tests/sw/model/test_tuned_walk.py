"""The model tier tunes tile shapes as the golden walk does: every tile, every decision."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sw.model.machine
from gen.design import load_design
from sw.formats.csr import Csr
from sw.golden.partition import Partition
from sw.golden.tuned_walk import tuned_walk
from sw.model.machine import run_model
from sw.model.walk import Tile, TileWalk
from sw.plan.plan import plan
from sw.scheme.scheme import Scheme
from sw.scheme.terms import ORDERS
from tests.forced import forced
from tests.tools import some_of

DESIGN = load_design("tiny")
LINE = DESIGN.line_bytes


def csr(matrix: Any) -> Csr:
    matrix = sp.csr_array(matrix)
    matrix.sort_indices()
    return Csr.from_scipy(matrix, np.ones(matrix.nnz, np.uint32), "int32")


def random_csr(rows: int, columns: int, density: float, seed: int) -> Csr:
    return csr(sp.random_array((rows, columns), density=density, rng=np.random.default_rng(seed)))


def blocks(seed: int) -> Csr:
    """Dense and sparse regions side by side, and nothing at all in between."""
    rng = np.random.default_rng(seed)
    parts = [
        [sp.random_array((40, 50), density=d, rng=rng) for d in row] for row in ((0.5, 0.01), (0.0, 0.1), (0.02, 0.7))
    ]
    return csr(sp.block_array(parts))


def scheme(order: str, tile: tuple[int, int, int], a_lines: int, b_lines: int, c_lines: int) -> Scheme:
    lines = {"a_lines": a_lines, "b_lines": b_lines, "c_lines": c_lines}
    return forced(LINE, order, tile, **lines, c_stays=order[2] == "k", tuning=True)


@pytest.fixture
def visited(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[int, ...], tuple[int, ...], bool]]:
    """Begin, size and emptiness of each tile that the model visits."""
    found: list[tuple[tuple[int, ...], tuple[int, ...], bool]] = []

    class Recorder(TileWalk):
        def __iter__(self) -> Iterator[Tile]:
            found.clear()
            for tile in super().__iter__():
                found.append(((tile.i, tile.j, tile.k), (tile.size_i, tile.size_j, tile.size_k), tile.carry))
                yield tile

    monkeypatch.setattr(sw.model.machine, "TileWalk", Recorder)
    return found


OPERANDS = {
    "random": (random_csr(45, 120, 0.1, 1), random_csr(120, 100, 0.12, 2)),
    "dense": (random_csr(45, 120, 0.2, 3), random_csr(120, 100, 0.8, 4)),
    "blocks": (random_csr(60, 120, 0.1, 5), blocks(6)),
    "sparse": (random_csr(60, 120, 0.005, 7), random_csr(120, 100, 0.01, 8)),
    "band": (csr(sp.diags_array([1.0] * 15, offsets=range(-7, 8), shape=(120, 120))),) * 2,
}


@pytest.mark.parametrize("order", some_of(ORDERS, every=3))
@pytest.mark.parametrize("operands", OPERANDS.values(), ids=OPERANDS.keys())
def test_model_and_golden_walk_alike(
    order: str, operands: tuple[Csr, Csr], visited: list[tuple[tuple[int, ...], tuple[int, ...], bool]]
) -> None:
    a, b = operands
    changes = 0
    for tile_i in (a.rows, 20):
        for side_j in (b.columns, 48, 24, 12):
            for side_k in (a.columns, 64, 32, 9):
                tile = (tile_i, side_j, side_k)
                for b_lines in (120, 300):
                    chosen = scheme(order, tile, 0, b_lines, 0)
                    chosen.validate(DESIGN, a.rows, b.columns, a.columns)
                    result = run_model(DESIGN, plan(chosen, a, b, DESIGN))
                    golden = tuned_walk(tile, order, a, b, Partition(lines=b_lines, fifo_lines=4, lanes=DESIGN.lanes))
                    expected = [
                        (t.begin, t.size, t.skipped)
                        for t in golden.tiles
                        # With k innermost, empty tiles are left out but for the last one of a row of tiles.
                        if not (t.skipped and order[2] == "k" and t.begin[2] + t.size[2] < a.columns)
                    ]
                    assert visited == expected, chosen
                    found = [(c["tile"], c["T_j"], c["T_k"]) for c in result.adjustments]
                    assert found == golden.adjustments
                    assert result.tiles["total"] == len(golden.tiles)
                    assert result.tiles["skipped_empty"] == sum(t.skipped for t in golden.tiles)
                    changes += len(found)
    assert changes > 0


@pytest.mark.parametrize("order", ORDERS)
def test_tuning_loses_no_multiplication(order: str) -> None:
    a, b = OPERANDS["blocks"]
    macs = int(np.diff(b.pointers)[a.coordinates].sum())
    for a_lines, c_lines in ((0, 0), (100, 0), (0, 80), (70, 80)):
        for tile in ((60, 24, 32), (20, 50, 120), (60, 100, 9)):
            result = run_model(DESIGN, plan(scheme(order, tile, a_lines, 200, c_lines), a, b, DESIGN))
            assert result.counters["macs"] == macs
