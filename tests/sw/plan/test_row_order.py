"""Orders of A's rows: permutations whatever the operand, the greedy rule against its own words, files, plans."""

import json
from collections import deque
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import load_design
from sw.formats.csr import Csr
from sw.plan.best_orders import best_orders
from sw.plan.least_reads import read_by_rows, read_once
from sw.plan.plan import plan
from sw.plan.row_order import in_order, inverse, row_order
from sw.plan.thresholds import ORDER_MOST_USERS, ORDER_SHARE_OF_B
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.stats.pattern import Pattern
from tests.forced import forced
from tests.tools import needs_tool

DESIGN = load_design("tiny")
COMMUNITIES = pytest.param("communities", marks=needs_tool("communities"))


def matrix(rows: int, columns: int, density: float, seed: int) -> sp.csr_array:
    found = sp.random_array((rows, columns), density=density, rng=np.random.default_rng(seed), format="csr")
    found.sort_indices()
    return found


KINDS = {
    "random": matrix(120, 90, 0.05, 1),
    "wide": matrix(20, 3000, 0.01, 2),
    "tall": matrix(900, 12, 0.1, 3),
    "full": sp.csr_array(np.ones((30, 40))),
    "empty": sp.csr_array((17, 5)),
    "one row": matrix(1, 50, 0.5, 4),
    "a row with all": sp.csr_array(np.vstack([np.ones((1, 60)), np.eye(60)])),
    "a column of all": sp.csr_array(np.hstack([np.ones((ORDER_MOST_USERS + 20, 1)), np.eye(ORDER_MOST_USERS + 20)])),
}


@pytest.mark.parametrize("name", ["rcm", "greedy", COMMUNITIES])
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_has_one_turn(name: str, kind: str) -> None:
    a = Pattern.of(KINDS[kind])
    b = Pattern.of(matrix(a.columns, 70, 0.1, 9))
    order = row_order(name, a, b, DESIGN)
    assert order is not None and order.dtype == np.int64
    assert sorted(order) == list(range(a.rows))
    assert (row_order(name, a, b, DESIGN) == order).all(), "the same every time"


def test_natural_is_no_order() -> None:
    a = Pattern.of(KINDS["random"])
    assert row_order("natural", a, a, DESIGN) is None
    assert in_order(a, None) is a


@pytest.mark.parametrize("kind", KINDS)
def test_rows_go_to_their_places_and_back(kind: str) -> None:
    given = KINDS[kind].astype(np.float32)
    a = Csr.from_scipy(given, given.data.view(np.uint32), "fp32")
    order = np.random.default_rng(5).permutation(a.rows)
    moved = in_order(a, order)
    assert (moved.to_scipy() != given[order]).nnz == 0
    back = in_order(moved, inverse(order))
    for name in ("pointers", "coordinates", "bits"):
        assert (getattr(back, name) == getattr(a, name)).all()
    pattern = in_order(Pattern.of(given), order)
    assert (pattern.pointers == moved.pointers).all() and (pattern.coordinates == moved.coordinates).all()


@pytest.mark.parametrize("buffer_bytes", [2048, 8192, 65536])
def test_the_next_row_misses_the_fewest(buffer_bytes: int) -> None:
    """By a walk over every row that is left: of those that find a row of B on chip none misses fewer than the one chosen."""
    design = load_design("tiny", [f"buffer.bytes={buffer_bytes}"])
    capacity = int(ORDER_SHARE_OF_B * buffer_bytes) // 8
    for seed in range(4):
        a, b = matrix(150, 100, 0.04, seed), matrix(100, 60, 0.1, 10 + seed)
        order = row_order("greedy", Pattern.of(a), Pattern.of(b), design)
        assert order is not None
        uses = [set(a.indices[a.indptr[n] : a.indptr[n + 1]].tolist()) for n in range(a.shape[0])]
        lengths = np.diff(b.indptr)
        on_chip: deque[int] = deque()
        left = set(range(a.shape[0]))
        for row in order.tolist():
            finding = {n: len(uses[n] - set(on_chip)) for n in left if uses[n] & set(on_chip)}
            if finding:
                assert row in finding and finding[row] == min(finding.values())
            else:
                assert row == min(left), "the first row that is left where none finds anything"
            left.remove(row)
            for k in sorted(uses[row]):
                if k in on_chip or lengths[k] == 0:
                    continue
                while sum(lengths[list(on_chip)]) + lengths[k] > capacity:
                    on_chip.popleft()
                on_chip.append(k)


@pytest.mark.parametrize("name", ["rcm", "greedy", COMMUNITIES])
def test_rows_of_a_kind_come_together(name: str) -> None:
    """Two kinds of rows in turn, which share no row of B: first all of one, then all of the other."""
    rows = np.repeat(np.arange(80), 4)
    columns = np.tile(np.arange(4), 80) + 4 * (rows % 2)
    a = Pattern.of(sp.csr_array((np.ones(320), (rows, columns)), shape=(80, 8)))
    order = row_order(name, a, Pattern.of(matrix(8, 50, 1.0, 1)), DESIGN)
    assert order is not None
    assert np.count_nonzero(np.diff(order % 2)) == 1


def grouped(groups: np.ndarray) -> Pattern:
    """Rows of ten nonzeros: those of a group use the same rows of B, which no other group uses."""
    rows, columns = np.repeat(np.arange(len(groups)), 10), (groups[:, None] * 10 + np.arange(10)).ravel()
    return Pattern.of(sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(groups), 400)))


def test_an_order_is_worth_a_prediction_where_it_reads_less() -> None:
    """Rows of A that use the same rows of B, far apart: other orders read each once. Where B fits whole none reads less."""
    groups = np.random.default_rng(2).permutation(np.repeat(np.arange(40), 6))
    a, b = grouped(groups), Pattern.of(matrix(400, 100, 0.2, 3))
    assert b.nnz > 4 * DESIGN.buffer.bytes // 8
    found = best_orders(a, b, DESIGN)
    assert "natural" not in found, "which reads twice as much and more"
    (order,) = found.values()
    assert order is not None and np.count_nonzero(np.diff(groups[order])) == 39, "group after group"
    every = best_orders(a, b, DESIGN, every=True)
    assert list(every)[0] == "natural" and {"rcm", "greedy"} < set(every)
    small = Pattern.of(matrix(400, 100, 0.001, 3))
    for kind in (False, True):
        assert list(best_orders(a, small, DESIGN, every=kind)) == ["natural"]


def test_no_order_is_made_that_cannot_read_clearly_less(monkeypatch) -> None:
    """Once a quick order reads each row of B once the slow one is not made; at high effort it is, as long as any may gain."""
    made = []

    def noted(name, *patterns):
        made.append(name)
        return row_order(name, *patterns)

    monkeypatch.setattr("sw.plan.best_orders.row_order", noted)
    groups = np.random.default_rng(2).permutation(np.repeat(np.arange(40), 6))
    a, b = grouped(groups), Pattern.of(matrix(400, 100, 0.2, 3))
    best_orders(a, b, DESIGN)
    assert made == ["rcm"]
    made.clear()
    best_orders(a, b, DESIGN, every=True)
    assert made[:2] == ["rcm", "greedy"]
    made.clear()
    in_turn = grouped(np.sort(groups))
    for kind in (False, True):
        best_orders(in_turn, b, DESIGN, every=kind)
    assert not made


def test_each_row_of_b_once_is_the_least_that_any_order_reads() -> None:
    a, b = (
        grouped(np.random.default_rng(2).permutation(np.repeat(np.arange(40), 6))),
        Pattern.of(matrix(400, 100, 0.2, 3)),
    )
    once = read_once(a, b, DESIGN)
    assert once == read_by_rows(a, b, DESIGN, capacity=1 << 30)
    assert once < read_by_rows(a, b, DESIGN)


def test_the_natural_order_is_looked_at_where_another_reads_little_less() -> None:
    """Of forty groups of rows eight are mixed: natural order reads a quarter more than the best one."""
    groups = np.repeat(np.arange(40), 6)
    groups[-48:] = np.random.default_rng(1).permutation(groups[-48:])
    found = best_orders(grouped(groups), Pattern.of(matrix(400, 100, 0.2, 3)), DESIGN)
    assert list(found)[0] == "natural" and len(found) == 2


@needs_tool("communities")
def test_a_community_of_communities() -> None:
    """Four groups of rows share nothing; in each two halves share little: halves stay together within their group."""
    rng = np.random.default_rng(4)
    halves = rng.permutation(np.repeat(np.arange(8), 12))
    own = (halves[:, None] * 12 + np.arange(12)).ravel()
    shared = np.repeat(96 + halves // 2, 2) * 2 + np.tile([0, 1], 96)
    rows = np.concatenate([np.repeat(np.arange(96), 12), np.repeat(np.arange(96), 2)])
    a = Pattern.of(sp.csr_array((np.ones(len(rows)), (rows, np.concatenate([own, shared]))), shape=(96, 208)))
    order = row_order("communities", a, a, DESIGN)
    assert order is not None
    assert np.count_nonzero(np.diff(halves[order])) == 7 and np.count_nonzero(np.diff(halves[order] // 2)) == 3


def test_communities_need_their_library(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("communities", "best_orders"):
        monkeypatch.setattr(f"sw.plan.{module}.communities_here", lambda: False)
    a = Pattern.of(KINDS["random"])
    with pytest.raises(SchemeError, match=r"'communities': must be another one without scikit-network \(pip install "):
        row_order("communities", a, a, DESIGN)
    groups = np.random.default_rng(2).permutation(np.repeat(np.arange(40), 6))
    found = best_orders(grouped(groups), Pattern.of(matrix(400, 100, 0.2, 3)), DESIGN, every=True)
    assert found and "communities" not in found


def test_files_of_row_numbers(tmp_path: Path) -> None:
    a = Pattern.of(KINDS["tall"])
    order = np.random.default_rng(1).permutation(a.rows)
    np.save(tmp_path / "order.npy", order.astype(np.uint16))
    np.savetxt(tmp_path / "order.txt", order, fmt="%d")
    for name in ("order.npy", "order.txt"):
        read = row_order(str(tmp_path / name), a, a, DESIGN)
        assert read is not None and (read == order).all()


@pytest.mark.parametrize(
    ("content", "allowed"),
    [
        ("0 1 2", "a file of 4 row numbers, not int64 of shape (3,)"),
        ("0 1 2 4", "a permutation of 0 to 3: it has row 4"),
        ("0 -1 2 3", "a permutation of 0 to 3: it has row -1"),
        ("3 1 1 0", "a permutation of 0 to 3: row 1 comes twice, row 2 is missing"),
        ("a b c d", "a file of row numbers ("),
        ("", "a file of 4 row numbers, not int64 of shape (0,)"),
    ],
)
@pytest.mark.filterwarnings("ignore:loadtxt")
def test_a_file_that_is_no_permutation(tmp_path: Path, content: str, allowed: str) -> None:
    path = tmp_path / "order.txt"
    path.write_text(content.replace(" ", "\n"))
    a = Pattern.of(matrix(4, 4, 0.5, 1))
    with pytest.raises(SchemeError) as refused:
        row_order(str(path), a, a, DESIGN)
    assert str(refused.value).startswith(f"scheme: row_order = '{path}': must be {allowed}")


def test_an_unknown_order() -> None:
    a = Pattern.of(KINDS["random"])
    with pytest.raises(
        SchemeError, match=r"row_order = 'rmc': must be one of natural, rcm, greedy, communities or a file"
    ):
        row_order("rmc", a, a, DESIGN)


def scheme(rows: int, columns: int, inner: int, **fields: object) -> Scheme:
    made = forced(DESIGN.line_bytes, "ijk", (rows, columns, inner), b_lines=DESIGN.sram_lines - 16)
    return Scheme.from_dict(json.loads(made.to_json()) | fields)


def test_a_plan_has_the_rows_in_their_order() -> None:
    a, b = Pattern.of(KINDS["random"]), Pattern.of(matrix(90, 40, 0.1, 3))
    found = plan(scheme(120, 40, 90, row_order="greedy"), a, b, DESIGN)
    assert found.row_order is not None
    assert (np.diff(found.a.pointers) == np.diff(a.pointers)[found.row_order]).all()
    assert plan(scheme(120, 40, 90), a, b, DESIGN).row_order is None


def test_a_file_of_a_scheme_says_the_order() -> None:
    named = scheme(120, 40, 90, row_order="rcm")
    assert Scheme.from_json(named.to_json()).row_order == "rcm"
    document = json.loads(named.to_json())
    del document["row_order"]
    assert Scheme.from_dict(document).row_order == "natural", "files without the field"
    with pytest.raises(SchemeError, match=r"row_order = 3: must be one of natural, rcm, greedy, communities or a file"):
        Scheme.from_dict(document | {"row_order": 3})
