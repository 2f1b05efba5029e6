"""The block flags know the occupied blocks of each row of blocks, and which nonzeros are the first of theirs."""

import numpy as np
import pytest
import scipy.sparse as sp

from rtl.mint.block_flags import BlockFlags
from sw.golden.mint import block_flags
from tests.rtl.mint.vectors import PAUSES, run_vectors

SIZES = {
    "one_lane": {"inputs": 1, "columns": 2},
    "four": {"inputs": 4, "columns": 8},
    "wide": {"inputs": 8, "columns": 256},
}


def stimulus(dut, seed):
    """Block columns, present and last flags: all equal, first and last column, noise; rows of one vector and of several."""
    rng = np.random.default_rng(seed)
    n, highest = dut.inputs, dut.columns - 1
    rows = [
        [highest] * n,
        [0] * n,
        [highest * (lane % 2) for lane in range(n)],
        [lane % dut.columns for lane in range(n)],
    ]
    rows += rng.integers(0, min(highest, 5), (15, n), endpoint=True).tolist()
    rows += rng.integers(0, highest, (15, n), endpoint=True).tolist()
    columns = rng.permutation(np.array(rows))
    present = rng.random(columns.shape) < rng.choice([1.0, 0.5, 0.0], (len(columns), 1), p=[0.6, 0.3, 0.1])
    return columns, present, rng.random(len(columns)) < 0.3


def check(dut, stimulus, *, begin=0, **conditions):
    columns, present, last = stimulus
    vectors = [
        {"last": bool(end), "items": [{"column": c, "present": here} for c, here in zip(*row, strict=True)]}
        for *row, end in zip(columns.tolist(), present.tolist(), last, strict=True)
    ]
    came = run_vectors(dut, vectors, **conditions)
    fresh, occupied = block_flags(columns[begin:], present[begin:], last[begin:])
    assert len(came) == len(occupied)
    for n, (vector, _) in enumerate(came):
        assert [item.fresh for item in vector.items] == fresh[n].tolist(), n
        assert vector.flags == sum(1 << column for column in occupied[n]), n
        assert vector.last == last[begin + n]
        got = [(item.column, item.present) for item in vector.items]
        assert got == list(zip(columns[begin + n], present[begin + n], strict=True))
    return came


@pytest.mark.parametrize("backpressure", PAUSES)
@pytest.mark.parametrize("idle", PAUSES)
@pytest.mark.parametrize("size", SIZES)
def test_flags_and_first_nonzeros(size, idle, backpressure):
    dut = BlockFlags(**SIZES[size])
    check(dut, stimulus(dut, len(size)), idle=PAUSES[idle], backpressure=PAUSES[backpressure])


def test_a_vector_a_cycle():
    dut = BlockFlags(inputs=4, columns=16)
    cycles = [cycle for _, cycle in check(dut, stimulus(dut, 4))]
    assert cycles == [1 + 2 + n for n in range(len(cycles))]


@pytest.mark.parametrize("count", [1, 3, 8])
def test_a_reset_clears_the_flags(count):
    dut = BlockFlags(inputs=4, columns=4)
    columns, present, last = stimulus(dut, 3)
    last[:count] = False
    check(dut, (columns, present, last), begin=count, reset_after=count, backpressure=0.3)


def test_blocks_are_those_of_scipy():
    """Blocks of 2 x 4 of a random matrix, a row of blocks after the other, are those of its BSR form."""
    matrix = sp.random_array((12, 64), density=0.08, rng=np.random.default_rng(2), format="csr")
    dut = BlockFlags(inputs=4, columns=16)
    rows, ends = [], []
    for row in range(0, 12, 2):
        found = (matrix.indices[matrix.indptr[row] : matrix.indptr[row + 2]] // 4).tolist()
        chunks = [found[n : n + 4] for n in range(0, len(found), 4)] or [[]]
        rows += chunks
        ends += [False] * (len(chunks) - 1) + [True]
    present = np.array([[lane < len(row) for lane in range(4)] for row in rows])
    columns = np.array([row + [0] * (4 - len(row)) for row in rows])
    came = check(dut, (columns, present, np.array(ends)))
    blocks = matrix.tobsr((2, 4))
    blocks.sort_indices()
    flags = [vector.flags for vector, _ in came if vector.last]
    assert [[n for n in range(16) if bits >> n & 1] for bits in flags] == [
        part.tolist() for part in np.split(blocks.indices, blocks.indptr[1:-1])
    ]
    assert sum(item.fresh for vector, _ in came for item in vector.items) == len(blocks.indices)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"inputs": 3}, r"^Inputs must be a power of two from 1 to 32, not 3$"),
        ({"columns": 1}, r"^Block columns must be a power of two from 2 to 1024, not 1$"),
    ],
)
def test_refuses_impossible_parameters(sizes, message):
    with pytest.raises(ValueError, match=message):
        BlockFlags(**sizes)
