"""Operands with far more rows than elements: work and memory follow rows and elements, not rows times tiles."""

import numpy as np
import pytest
import scipy.sparse as sp

import sw.model.occupied
import sw.model.segments
from gen.design import load_design
from sw.cli.app import main
from sw.model.judge import judge
from sw.model.machine import run_model
from sw.model.occupied import Occupied
from sw.model.walk import TileWalk
from sw.operands import Operand, OperandError, to_csr
from sw.plan.plan import plan
from sw.policies.registry import schedule
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition
from sw.scheme.terms import ORDERS

TINY = load_design("tiny")
EDGE = load_design("edge")


def sparse(size: int, elements: int, products: bool, seed: int = 3) -> sp.csr_array:
    """Elements anywhere; without ``products`` no column that is used is a row that is."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, size, (2, elements))
    if not products:
        rows, columns = rows // 2 * 2, columns // 2 * 2 + 1
    else:
        rows[: elements // 4] = columns[elements // 4 : 2 * (elements // 4)]
    return sp.csr_array(sp.coo_array((np.ones(elements, np.int64), (rows, columns)), shape=(size, size)))


def by_hand(matrix: sp.csr_array, order: str, T_i: int, T_j: int, T_k: int) -> Scheme:
    parts, fifo = default_partition(TINY, partial_rows=True)
    mode = {"A": "streaming", "B": "buffering", "C": "streaming"}
    scheme = Scheme(
        policy="forced", order=order, T_i=T_i, T_j=T_j, T_k=T_k, buffer_bytes=parts, fifo_bytes=fifo, mode=mode
    )
    scheme.validate(TINY, matrix.shape[0], matrix.shape[1], matrix.shape[1])
    return scheme


@pytest.mark.parametrize("design", [TINY, EDGE], ids=["tiny", "edge"])
@pytest.mark.parametrize("size", [40, 3000, 200_000])
def test_auto_leaves_k_whole_where_there_is_no_product(design, size):
    matrix = sparse(size, 30, products=False)
    scheme = schedule("auto", matrix, matrix, design, judge=judge(design))
    assert scheme.tiles_per_rank(size, size, size) == (1, 1, 1)
    a = to_csr(Operand(name="m", source="m", matrix=matrix), "int32")
    found = run_model(design, plan(scheme, a, a, design))
    assert found.counters["macs"] == 0 and found.tiles["total"] == 1


@pytest.mark.parametrize("policy", ["auto", "hyte", "swiftiles", "prescient"])
def test_a_few_products_of_many_rows(policy):
    matrix = sparse(200_000, 60, products=True)
    scheme = (
        schedule(policy, matrix, matrix, EDGE, judge=judge(EDGE))
        if policy == "auto"
        else schedule(policy, matrix, matrix, EDGE)
    )
    a = to_csr(Operand(name="m", source="m", matrix=matrix), "int32")
    assert (
        run_model(EDGE, plan(scheme, a, a, EDGE)).counters["macs"] == np.diff(matrix.indptr)[matrix.indices].sum() > 0
    )


@pytest.mark.parametrize("products", [False, True])
def test_as_many_tiles_as_columns(products):
    """A count for each row and tile would take 160 GB."""
    size = 200_000
    matrix = sparse(size, 24, products)
    a = to_csr(Operand(name="m", source="m", matrix=matrix), "int32")
    found = run_model(TINY, plan(by_hand(matrix, "ijk", size, size, 1), a, a, TINY))
    assert found.tiles["total"] == size
    assert found.counters["macs"] == np.diff(matrix.indptr)[matrix.indices].sum()
    assert found.counters["read_a_meta"] >= size // (8 * TINY.line_bytes)  # the map is read to its end


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", [(60, 60, 1), (7, 11, 3), (60, 13, 4), (9, 60, 60)])
def test_lists_say_what_tables_say(monkeypatch, order, shape):
    """Counts by step or by gain, maps as tables or as lists, empty tiles one by one or at a leap: one result."""
    matrix = sparse(60, 80, products=True, seed=int(sum(shape)))
    a = to_csr(Operand(name="m", source="m", matrix=matrix), "int32")
    scheme = by_hand(matrix, order, *shape)
    small = run_model(TINY, plan(scheme, a, a, TINY))
    monkeypatch.setattr(TileWalk, "_leap", lambda *_: None)
    assert run_model(TINY, plan(scheme, a, a, TINY)) == small
    monkeypatch.undo()
    monkeypatch.setattr(sw.model.segments, "MOST_COUNTS", 0)
    monkeypatch.setattr(sw.model.segments, "COUNTS_A_MAC", 0)
    monkeypatch.setattr(sw.model.occupied, "MOST_IN_TABLE", 0)
    assert run_model(TINY, plan(scheme, a, a, TINY)) == small


@pytest.mark.parametrize("order", [order for order in ORDERS if order[2] == "k"])
def test_a_leap_looks_up_what_single_steps_do(monkeypatch, order):
    rng = np.random.default_rng(9)
    for _ in range(30):
        extent = tuple(int(n) for n in rng.integers(1, (6, 12, 150)))
        tile = (int(rng.integers(1, extent[0] + 1)), int(rng.integers(1, extent[1] + 1)), int(rng.integers(1, 3)))
        tiles = [-(-n // t) for n, t in zip(extent, tile, strict=True)]
        density = rng.random() ** 3
        maps = rng.random((tiles[0], tiles[2])) < density, rng.random((tiles[2], tiles[1])) < density
        line_bits = int(rng.choice([8, 16, 64]))

        def walked(extent=extent, tile=tile, maps=maps, line_bits=line_bits) -> tuple:
            walk = TileWalk(extent, tile, order, *maps, line_bits=line_bits)
            return list(walk), walk.visited, walk.empty, walk.map_lines, walk.tiles

        leaping = walked()
        with monkeypatch.context() as patch:
            patch.setattr(TileWalk, "_leap", lambda *_: None)
            assert walked() == leaping


def test_what_has_no_room_says_how_much_and_what_helps(monkeypatch):
    matrix = sparse(200_000, 24, products=True)
    a = to_csr(Operand(name="m", source="m", matrix=matrix), "int32")
    pages = {"SC_PAGE_SIZE": 1 << 20, "SC_PHYS_PAGES": 512}
    monkeypatch.setattr("os.sysconf", lambda name: pages[name])
    with pytest.raises(OperandError) as caught:
        run_model(TINY, plan(by_hand(matrix, "ijk", 200_000, 1000, 500), a, a, TINY))
    assert str(caught.value) == (
        "model of 200,000 rows of C in 200 j tiles of 1,000 columns: needs about 2.4 GiB to hold, this machine has 0.5 GiB; "
        "j left whole takes 0.0 GiB (--tiling auto, or a larger --T_j)"
    )
    assert run_model(TINY, plan(by_hand(matrix, "ijk", 200_000, 200_000, 500), a, a, TINY)).counters["macs"] > 0


def test_more_rows_than_the_model_has_room_for_are_refused_at_once(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    pages = {"SC_PAGE_SIZE": 1 << 20, "SC_PHYS_PAGES": 24}
    sp.save_npz("m.npz", sparse(200_000, 24, products=True))
    monkeypatch.setattr("os.sysconf", lambda name: pages[name])
    monkeypatch.setattr("sw.policies.registry.schedule", None)  # nothing is decided
    assert main(["run", "m.npz", "--engine", "model", "--config", "tiny"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "fiberloom: m.npz: 200,000 rows of C in the model: needs about 0.0 GiB to hold, this machine has 0.0 GiB; "
        "no tiling takes less: rows without elements count, too"
    ]


def test_optimal_passes_over_what_has_no_room():
    matrix = sparse(60, 80, products=True)
    asked = []

    def cycles(scheme, *_):
        asked.append(scheme)
        if len(asked) < 3:
            raise OperandError("model: needs about 99.0 GiB to hold, this machine has 1.0 GiB")
        return 1000 - len(asked)

    found = schedule("optimal", matrix, matrix, TINY, judge=cycles, budget=5)
    # Five of the space, then what the other policies choose.
    assert len(asked) > 5 and found.predicted["cycles"] == 1000 - len(asked)
    with pytest.raises(OperandError, match="99"):
        schedule("optimal", matrix, matrix, TINY, judge=cycles_of_nothing, budget=2)


def cycles_of_nothing(*_):
    raise OperandError("model: needs about 99.0 GiB to hold, this machine has 1.0 GiB")


def test_occupied_tiles(monkeypatch):
    matrix = sparse(50, 40, products=True)
    a = to_csr(Operand(name="m", source="m", matrix=matrix), "int32")
    for rows, columns in ((1, 1), (7, 3), (50, 50), (4, 50)):
        blocks = np.zeros((-(-50 // rows), -(-50 // columns)), bool)
        for row, column in zip(*matrix.nonzero(), strict=True):
            blocks[row // rows, column // columns] = True
        for limit in (0, 1 << 20):
            monkeypatch.setattr(sw.model.occupied, "MOST_IN_TABLE", limit)
            found = Occupied.of(a, rows, columns)
            assert (found.table is None) == (limit == 0) and found.shape == blocks.shape
            for row in range(blocks.shape[0]):
                assert found.in_row(row).tolist() == np.flatnonzero(blocks[row]).tolist()
                for begin in range(blocks.shape[1]):
                    for end in (begin + 1, blocks.shape[1]):
                        there = np.flatnonzero(blocks[row, begin:end])
                        assert found.first(row, begin, end) == (begin + there[0] if len(there) else end)
            for column in range(blocks.shape[1]):
                assert found.in_column(column).tolist() == np.flatnonzero(blocks[:, column]).tolist()
