"""MINT's figure 8, block by block: each of its four conversions with every value on the way.

The pictures are not in the paper's text. The matrix agrees with what the text says of figure 8b: the first entry, a, is of
column 2, the counts before column 2 are 3, a goes to place 3 and c to place 4. The tensor is one of 2 x 3 x 4.

              0 1 2 3
        row 0 . . a .
        row 1 b . c .
        row 2 . d . e
        row 3 f . . .
"""

import numpy as np
import pytest
import scipy.sparse as sp

from rtl.mint.block_flags import BlockFlags
from rtl.mint.cluster_counter import ClusterCounter
from rtl.mint.divmod import ReciprocalDivmod
from rtl.mint.prefix_sum import FORMS
from rtl.mint.sorter import Sorter
from rtl.mint.tree_builder import TreeBuilder
from sw.formats.sparse_tensor import SparseTensor
from sw.formats.storage.csf import Csf
from tests.rtl.mint.test_divmod import divide_all
from tests.rtl.mint.vectors import run_vectors

LANES = 8
SIDE = 4
ROW_PTRS = [0, 1, 3, 5, 6]
COL_IDS = [2, 0, 2, 1, 3, 0]
VALUES = list("abcdef")
MATRIX = sp.csr_array((np.arange(1, 7), COL_IDS, ROW_PTRS), shape=(SIDE, SIDE))


def letters(values) -> list[str]:
    return ["." if value == 0 else VALUES[int(value) - 1] for value in values]


def prefix_sum(form: str, vectors: list[list[int]]) -> list[list[int]]:
    """Sums of one array, in vectors of eight."""
    dut = FORMS[form](inputs=LANES, width=8, sum_width=16)
    full = [[*vector, *[0] * (LANES - len(vector))] for vector in vectors]
    came = run_vectors(dut, [{"first": n == 0, "values": vector} for n, vector in enumerate(full)])
    return [list(payload.sums)[: len(vector)] for (payload, _), vector in zip(came, vectors, strict=True)]


def divided(vectors: list[list[int]], divisor: int) -> list[list[tuple[int, int]]]:
    """Quotient and remainder of each."""
    dut = ReciprocalDivmod(lanes=LANES, width=16, divisor_width=9)
    full = [[*vector, *[0] * (LANES - len(vector))] for vector in vectors]
    return [
        results[: len(vector)] for results, vector in zip(divide_all(dut, [(divisor, full)])[0], vectors, strict=True)
    ]


@pytest.mark.parametrize("form", FORMS)
def test_csr_to_csc(form):
    """Figure 8c."""
    # Steps 1 to 3: a chunk of column numbers is sorted, and equal ones are counted.
    keys = [{"key": column, "present": 1} for column in COL_IDS] + [{"key": 0, "present": 0}] * 2
    ((items, _),) = run_vectors(Sorter(inputs=LANES, key_width=3, payload_width=0), [keys])
    ordered = [{"key": item.key, "present": item.present} for item in items]
    assert [item["key"] for item in ordered if item["present"]] == [0, 0, 1, 2, 2, 3]
    ((items, _),) = run_vectors(ClusterCounter(inputs=LANES, key_width=3), [ordered])
    clusters = [(item.key, item.count) for item in items if item.last]
    assert clusters == [(0, 2), (1, 1), (2, 2), (3, 1)]
    # Step 4: the counts of all chunks are added up in the scratchpad; there is one chunk.
    counts = [0] * SIDE
    for column, count in clusters:
        counts[column] += count
    # Step 5: sums of the counts before each column.
    (sums,) = prefix_sum(form, [[0, *counts]])
    assert sums == [0, 2, 3, 5, 6]
    # Steps 6 to 8: each entry goes to the place that its column's pointer says, which moves on.
    pointers, places = sums[:SIDE], []
    values, row_ids = [""] * len(VALUES), [0] * len(VALUES)
    for row in range(SIDE):
        for entry in range(ROW_PTRS[row], ROW_PTRS[row + 1]):
            place = pointers[COL_IDS[entry]]
            pointers[COL_IDS[entry]] += 1
            values[place], row_ids[place] = VALUES[entry], row
            places.append((VALUES[entry], place))
    assert places == [("a", 3), ("b", 0), ("c", 4), ("d", 2), ("e", 5), ("f", 1)]
    assert pointers == [2, 3, 5, 6]  # after the last entry each points to where the next column begins
    # Steps 9 and 10.
    wanted = MATRIX.tocsc()
    assert values == list("bfdace") == letters(wanted.data)
    assert row_ids == [1, 3, 2, 0, 1, 2] == wanted.indices.tolist()
    assert [0, *pointers] == wanted.indptr.tolist()


@pytest.mark.parametrize("form", FORMS)
def test_rlc_to_coo(form):
    """Figure 8d, with a buffer of four."""
    # Step 1: zeros before each level.
    runs, levels = [[2, 1, 1, 2], [1, 0]], [["a", "b", "c", "d"], ["e", "f"]]
    # Step 2: one more for each level before, which the first one does not have.
    steps = [[run + (n > 0 or lane > 0) for lane, run in enumerate(vector)] for n, vector in enumerate(runs)]
    assert steps == [[2, 2, 2, 3], [2, 1]]
    # Step 3: the sums are positions.
    positions = prefix_sum(form, steps)
    assert positions == [[2, 4, 6, 9], [11, 12]]
    # Step 4: divide and mod by the columns are row and column.
    cells = divided(positions, SIDE)
    assert cells == [[(0, 2), (1, 0), (1, 2), (2, 1)], [(2, 3), (3, 0)]]
    wanted = MATRIX.tocoo()
    flat = [
        (row, column, level)
        for place, level in zip(cells, levels, strict=True)
        for (row, column), level in zip(place, level, strict=True)
    ]
    assert flat == list(zip(wanted.row, wanted.col, letters(wanted.data), strict=True))


@pytest.mark.parametrize("form", FORMS)
def test_csr_to_bsr(form):
    """Figure 8e, blocks of 2 x 2."""
    side = 2
    counted, col_ids, numbers = [], [], []
    dut = BlockFlags(inputs=LANES, columns=2)
    vectors = []
    # Step 1: the rows of a row of blocks. Step 2: block and place inside it.
    for first in range(0, SIDE, side):
        part = COL_IDS[ROW_PTRS[first] : ROW_PTRS[first + side]]
        (cells,) = divided([part], side)
        items = [{"column": block, "present": 1} for block, _ in cells]
        vectors.append({"last": 1, "items": items + [{"column": 0, "present": 0}] * (LANES - len(items))})
        numbers.append(cells)
    assert numbers == [[(1, 0), (0, 0), (1, 0)], [(0, 1), (1, 1), (0, 0)]]
    came = [vector for vector, _ in run_vectors(dut, vectors)]
    fresh = [[item.fresh for item in vector.items if item.present] for vector in came]
    assert fresh == [[1, 1, 0], [1, 1, 0]]
    # Step 3: occupied blocks are counted, their columns are those of their flags.
    for vector in came:
        occupied = [column for column in range(2) if vector.flags >> column & 1]
        counted.append(len(occupied))
        col_ids += occupied
    assert counted == [2, 2] and col_ids == [0, 1, 0, 1]
    # Step 5: sums of the counts are the pointers.
    (row_ptrs,) = prefix_sum(form, [[0, *counted]])
    assert row_ptrs == [0, 2, 4]
    # Values, with zeros where a block is not complete.
    blocks = np.zeros((4, side, side), int)
    for row in range(SIDE):
        for entry in range(ROW_PTRS[row], ROW_PTRS[row + 1]):
            block, inner = numbers[row // side][entry - ROW_PTRS[row // side * side]]
            blocks[row_ptrs[row // side] + block, row % side, inner] = entry + 1
    assert letters(blocks.ravel()) == list("..b." + "a.c." + ".df." + ".e..")
    wanted = MATRIX.tobsr((side, side))
    assert wanted.indptr.tolist() == row_ptrs
    order = [number for row in range(2) for number in sorted(range(*row_ptrs[row : row + 2]), key=wanted.indices.item)]
    assert wanted.indices[order].tolist() == col_ids and np.array_equal(wanted.data[order], blocks)


@pytest.mark.parametrize("form", FORMS)
def test_dense_to_csf(form):
    """Figure 8f."""
    extent = (2, 3, 4)
    # Step 1: the dense tensor, innermost coordinate first.
    dense = np.zeros(extent, int)
    for value, place in enumerate([(0, 0, 1), (0, 2, 0), (0, 2, 3), (1, 0, 2), (1, 1, 0), (1, 1, 1)], 1):
        dense[place] = value
    flat = dense.ravel().tolist()
    vectors = [flat[n : n + LANES] for n in range(0, len(flat), LANES)]
    assert [letters(vector) for vector in vectors] == [list(".a......"), list("b..c..d."), list("ef......")]
    # Step 2: each element adds one, and a nonzero keeps the sum of those before it, its position.
    ones = [[int((n, lane) != (0, 0)) for lane in range(LANES)] for n in range(len(vectors))]
    sums = prefix_sum(form, ones)
    positions = [[at for at, value in zip(*pair, strict=True) if value] for pair in zip(sums, vectors, strict=True)]
    assert positions == [[1], [8, 11, 14], [16, 17]]
    # Steps 3 and 4: i = sum div (y z), j = sum div z mod y, k = sum mod z.
    _, columns, depth = extent
    fibers = divided(positions, depth)
    assert fibers == [[(0, 1)], [(2, 0), (2, 3), (3, 2)], [(4, 0), (4, 1)]]
    rows = divided([[fiber for fiber, _ in vector] for vector in fibers], columns)
    entries = [[(i, j, k) for (i, j), (_, k) in zip(*pair, strict=True)] for pair in zip(rows, fibers, strict=True)]
    assert entries == [[(0, 0, 1)], [(0, 2, 0), (0, 2, 3), (1, 0, 2)], [(1, 1, 0), (1, 1, 1)]]
    # Steps 5 and 6: comparators, adders and a prefix sum find the nodes of the tree.
    empty = {"i": 0, "j": 0, "k": 0}
    sent = [
        {
            "items": [dict(zip("ijk", place, strict=True)) for place in vector] + [empty] * (LANES - len(vector)),
            "count": len(vector),
            "last": n == len(entries) - 1,
        }
        for n, vector in enumerate(entries)
    ]
    grown = [vector for vector, _ in run_vectors(TreeBuilder(inputs=LANES, width=4, form=form), sent)]
    nodes = [item for vector in grown for item in list(vector.items)[: vector.count]]
    assert [node.new_i for node in nodes] == [1, 0, 0, 1, 0, 0]
    assert [node.new_j for node in nodes] == [1, 1, 0, 1, 1, 0]
    assert [node.fibers for node in nodes] == [1, 2, 2, 3, 4, 4]
    # Step 7: the arrays of the tree, as the docstring of the block says.
    arrays: dict[str, list[int]] = {name: [] for name in ("ids_0", "ptrs_1", "ids_1", "ptrs_2", "ids_2")}
    for n, node in enumerate(nodes):
        arrays["ids_0"] += [node.i] * node.new_i
        arrays["ptrs_1"] += [node.fibers - 1] * node.new_i
        arrays["ids_1"] += [node.j] * node.new_j
        arrays["ptrs_2"] += [n] * node.new_j
        arrays["ids_2"].append(node.k)
    arrays["ptrs_1"].append(nodes[-1].fibers)
    arrays["ptrs_2"].append(len(nodes))
    assert arrays == {
        "ids_0": [0, 1],
        "ptrs_1": [0, 2, 4],
        "ids_1": [0, 2, 0, 1],
        "ptrs_2": [0, 1, 3, 4, 6],
        "ids_2": [1, 0, 3, 2, 0, 1],
    }
    ids = tuple(part.astype(np.int64) for part in np.nonzero(dense))
    wanted = Csf().encode(SparseTensor(shape=extent, ids=ids, values=np.arange(1, 7, dtype=np.int8), value="int8"))
    assert all(arrays[name] == wanted[name].tolist() for name in arrays)
