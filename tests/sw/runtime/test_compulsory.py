"""What every run moves at least: counted by hand, and no tiling of any machine moves less."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gen.design import load_design
from sw.cost.candidates.resident import listed_schemes
from sw.cost.candidates.strip_width import best_strips
from sw.formats.csr import Csr
from sw.golden.spgemm import multiply
from sw.model.judge import judge
from sw.model.tier import simulate
from sw.operands import to_csr
from sw.operands.operand import Operand, canonical_csr
from sw.plan.plan import plan
from sw.policies.registry import POLICIES, schedule
from sw.runtime.result import compulsory_bytes
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition
from sw.scheme.terms import BUFFERING, ORDERS, STREAMING
from sw.stats.workload import Workload

TINY = load_design("tiny")
WIDE = load_design("server", ["pe.value=int32"])
PACKED = load_design("tiny", ["memory.records=packed"])
DATAFLOWS = [load_design("tiny", [f"pe.dataflow={name}"]) for name in ("outer", "inner")]


def few(rows: int, columns: int, count: int, seed: int) -> sp.csr_array:
    """So many ones, anywhere."""
    rng = np.random.default_rng(seed)
    at = rng.choice(rows * columns, count, replace=False)
    return sp.csr_array((np.ones(count), (at // columns, at % columns)), shape=(rows, columns))


def one_row(row: int, rows: int, columns: int) -> sp.csr_array:
    """A full row among empty ones."""
    dense = np.zeros((rows, columns))
    dense[row] = 1
    return sp.csr_array(dense)


# Of most, more rows are empty than not; in some, elements of A select empty rows of B, or rows of B are never selected.
PAIRS = {
    "few entries, many rows": (few(900, 900, 40, 1), sp.csr_array(few(900, 900, 40, 1).T)),
    "few entries, few of k": (few(700, 40, 50, 2), few(40, 700, 50, 3)),
    "most of B is of no use": (few(60, 500, 20, 4), few(500, 70, 2000, 5)),
    "most of A meets nothing": (few(300, 400, 900, 6), one_row(123, 400, 90)),
    "one row of A": (one_row(250, 300, 200), few(200, 50, 100, 7)),
    "one column of A": (sp.csr_array(one_row(3, 5, 400).T), one_row(3, 5, 30)),
    "a single element": (few(600, 600, 1, 8), sp.csr_array(few(600, 600, 1, 8).T)),
    "nothing meets": (few(50, 60, 30, 9)[:, :30], few(60, 40, 30, 9)[30:]),
    "A is empty": (sp.csr_array((300, 20)), few(20, 30, 50, 10)),
    "B is empty": (few(300, 20, 50, 11), sp.csr_array((20, 30))),
    "no empty row": (few(80, 80, 1500, 12), few(80, 80, 1500, 13)),
}


def csr(matrix: sp.csr_array) -> Csr:
    return to_csr(Operand(name="A", source="here", matrix=canonical_csr(matrix, "A")), "int32")


def grids(design, shape: tuple[int, int, int]) -> Iterator[Scheme]:
    """Every order and mode, whole and cut along every rank, tuned and not."""
    for cuts in ((1, 1, 1), (3, 1, 1), (1, 4, 1), (1, 1, 7), (2, 3, 5)):
        sides = dict(
            zip(("T_i", "T_j", "T_k"), (-(-n // cut) for n, cut in zip(shape, cuts, strict=True)), strict=True)
        )
        for number, order in enumerate(ORDERS if max(cuts) > 1 else ORDERS[:1]):
            modes = ((STREAMING, BUFFERING), (STREAMING, STREAMING), (BUFFERING, BUFFERING))
            for a, b in modes if number % 3 == 0 else modes[:1]:
                mode = {"A": a, "B": b, "C": STREAMING}
                parts, fifo = default_partition(design, partial_rows=cuts[2] > 1)
                if a == BUFFERING:
                    moved = parts["B"] // 4 // design.line_bytes * design.line_bytes
                    parts = parts | {"A": parts["A"] + moved, "B": parts["B"] - moved}
                scheme = Scheme(policy="forced", order=order, **sides, buffer_bytes=parts, fifo_bytes=fifo, mode=mode)
                yield scheme
                if number % 3 == 1:
                    yield replace(scheme, tuning=True)


def kept(design, workload: Workload) -> Iterator[Scheme]:
    """Tiles that load what they use, and strips."""
    found = listed_schemes("auto", workload, design)
    yield from (scheme for scheme, _ in found)
    if found:
        yield from (scheme for scheme, _ in best_strips("auto", workload, design, found[0][1]))
        for scheme, _ in found[::3]:
            yield replace(scheme, T_j=max(1, workload.J // 3), strips=scheme.T_i, T_i=workload.I)


def schemes(design, A: sp.csr_array, B: sp.csr_array) -> Iterator[Scheme]:
    """Legal ones only."""
    shape = (A.shape[0], B.shape[1], A.shape[1])
    workload = Workload(A, B, lanes=design.lanes, statistics="exact")
    candidates = list(grids(design, shape))
    if design.pe.dataflow == "gustavson":
        candidates += kept(design, workload)
    for policy in POLICIES:
        options = {"budget": 5} if policy == "optimal" else {}
        try:
            candidates.append(schedule(policy, A, B, design, judge=judge(design), **options))
        except SchemeError:
            continue  # not every policy knows every dataflow and operand
    for scheme in candidates:
        try:
            scheme.validate(design, *shape)
        except SchemeError:
            continue
        yield scheme


CASES = [(design, name) for design in (TINY, *DATAFLOWS) for name in PAIRS]
CASES += [(PACKED, name) for name in ("few entries, few of k", "most of B is of no use", "no empty row")]
CASES += [(WIDE, name) for name in ("few entries, many rows", "most of B is of no use", "one row of A")]


@pytest.mark.parametrize(
    ("design", "name"), CASES, ids=lambda of: of if isinstance(of, str) else f"{of.pe.dataflow}-{of.memory.records}"
)
def test_no_tiling_moves_less(design, name: str) -> None:
    A, B = (canonical_csr(matrix, "A") for matrix in PAIRS[name])
    a, b = csr(A), csr(B)
    seen = 0
    least = None
    for scheme in schemes(design, A, B):
        if least is None:
            c = multiply(a, b, design.pe.merge_radix, design.pe.arithmetic, scheme).structural
            least = compulsory_bytes(A, B, c, design)
        moved = simulate(design, plan(scheme, a, b, design)).dram_bytes
        assert moved is not None
        for tensor in "ABC":
            assert sum(moved[tensor].values()) >= least[tensor], (tensor, scheme)
        seen += 1
    assert seen > 20


def counted(a: list[list[int]], b: list[list[int]], *changes: str) -> dict[str, int]:
    A, B = (sp.csr_array(np.array(rows)) for rows in (a, b))
    c = (A != 0).astype(int) @ (B != 0).astype(int)
    return compulsory_bytes(A, B, csr(sp.csr_array(c)), load_design("tiny", changes))


# Row 1 of B is empty, and nothing selects row 3: of A two elements of three count, of B three of five.
A = [[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]
B = [[1, 1, 0], [0, 0, 0], [0, 0, 1], [1, 0, 1]]


def test_by_hand() -> None:
    assert counted(A, B) == {"A": 28, "B": 36, "C": 36, "total": 100}


def test_packed_records_count_their_bits() -> None:
    # Two rows of B are used, so A's coordinates have 1 bit, those of three columns 2; values have 8. Whole words of 4 bytes.
    found = counted(A, B, "memory.records=packed", "pe.value=int8")
    assert found == {"A": 4 + 12, "B": 4 + 12, "C": 4 + 12, "total": 48}


@pytest.mark.parametrize(("dataflow", "b"), [("outer", 36), ("inner", 40)])
def test_fibers_are_those_of_the_dataflow(dataflow: str, b: int) -> None:
    assert counted(A, B, f"pe.dataflow={dataflow}") == {"A": 28, "B": b, "C": 36, "total": 64 + b}


def test_an_outer_product_walks_columns_of_a() -> None:
    column = [[1], [1], [1]]
    assert counted(column, [[1]])["A"] == 24 + 16
    assert counted(column, [[1]], "pe.dataflow=outer")["A"] == 24 + 8


def test_nothing_need_move_where_nothing_meets() -> None:
    assert counted([[1, 0]], [[0], [1]]) == {"A": 0, "B": 0, "C": 0, "total": 0}
