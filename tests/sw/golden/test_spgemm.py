"""The golden multiplication against its definition, written out naively, and against SciPy."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sw.formats.csr import Csr
from sw.golden import arithmetic, pe
from sw.golden.compare import check_against_scipy, check_canonical, compare_bits
from sw.golden.spgemm import count_macs, multiply

WHOLE = 2**32


@dataclass(frozen=True)
class Tiles:
    T_j: int = WHOLE
    T_k: int = WHOLE
    joins: bool = False


CUTS = (Tiles(), Tiles(T_k=7), Tiles(T_j=5), Tiles(T_j=1, T_k=1), Tiles(T_j=11, T_k=16))


def csr(matrix, value: str) -> Csr:
    matrix = sp.csr_array(matrix)
    matrix.sort_indices()
    dtype = np.int32 if value.startswith("int") else np.float32
    bits = arithmetic.in_slots(matrix.data.astype(dtype).view(np.uint32), value)
    return Csr.from_scipy(matrix, bits, arithmetic.value_type(value))


def random_csr(rng, rows: int, columns: int, density: float, value: str) -> Csr:
    matrix = sp.random_array((rows, columns), density=density, rng=rng, format="csr")
    if value.startswith("int"):
        matrix.data = (rng.integers(-(2**31), 2**31, matrix.nnz) >> rng.integers(0, 32, matrix.nnz)) | 1
    else:
        matrix.data = rng.standard_normal(matrix.nnz) * 2.0 ** rng.integers(-20, 20, matrix.nnz)
    return csr(matrix, value)


# The definition, word for word, on lists. ---------------------------------------------------------------------------


def reduce_run(values: list[int], value: str) -> int:
    """Stage by stage: neighbours in pairs, an odd last one passes."""
    while len(values) > 1:
        paired = [
            int(arithmetic.add(np.uint32(x), np.uint32(y), value=value))
            for x, y in zip(values[::2], values[1::2], strict=False)
        ]
        values = paired + ([values[-1]] if len(values) % 2 else [])
    return values[0]


def merge_job(leaves: list[tuple[int | None, list[tuple[int, int]]]], radix: int, value: str) -> list[tuple[int, int]]:
    leaves = [leaf for leaf in leaves if leaf[1]]
    assert len(leaves) <= radix
    runs: dict[int, list[int]] = {}
    for weight, fiber in leaves:
        for coordinate, bits in fiber:
            if weight is not None:
                bits = int(arithmetic.multiply(np.uint32(weight), np.uint32(bits), value=value))
            runs.setdefault(coordinate, []).append(bits)
    return [(coordinate, reduce_run(runs[coordinate], value)) for coordinate in sorted(runs)]


def tile_row(leaves, radix: int, value: str):
    if len(leaves) <= radix:
        return merge_job(leaves, radix, value)
    table = []
    while leaves:
        if len(table) == radix:
            table = [merge_job([(None, fiber) for fiber in table], radix, value)]
        table.append(merge_job(leaves[:radix], radix, value))
        leaves = leaves[radix:]
    return merge_job([(None, fiber) for fiber in table], radix, value)


def by_definition(a: Csr, b: Csr, radix: int, value: str, tiles: Tiles) -> Csr:
    pointers, coordinates, bits = [0], [], []
    for row in range(a.rows):
        stored = range(a.pointers[row], a.pointers[row + 1])
        for first_j in range(0, b.columns, tiles.T_j):
            partial, parts = [], []
            for first_k in range(0, b.rows, tiles.T_k):
                leaves = [(None, partial)] if partial else []
                if tiles.joins:
                    leaves = [(None, part) for part in parts] if first_k + tiles.T_k >= b.rows else []
                for position in stored:
                    k = int(a.coordinates[position])
                    if not first_k <= k < first_k + tiles.T_k:
                        continue
                    segment = [
                        (int(b.coordinates[n]), int(b.bits[n]))
                        for n in range(b.pointers[k], b.pointers[k + 1])
                        if first_j <= b.coordinates[n] < first_j + tiles.T_j
                    ]
                    if segment:
                        leaves.append((int(a.bits[position]), segment))
                partial = tile_row(leaves, radix, value)
                if partial:
                    parts.append(partial)
            coordinates += [coordinate for coordinate, _ in partial]
            bits += [pattern for _, pattern in partial]
        pointers.append(len(bits))
    return Csr(
        rows=a.rows,
        columns=b.columns,
        pointers=np.array(pointers, np.int64),
        coordinates=np.array(coordinates, np.uint32),
        bits=np.array(bits, np.uint32),
        value=a.value,
    )


# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["int32", "fp32", "int8_saturate", "int16", "bf16", "bf16_flush"])
@pytest.mark.parametrize("radix", [2, 4, 16, 64])
@pytest.mark.parametrize("tiles", [*CUTS, *(replace(cut, joins=True) for cut in CUTS)])
def test_follows_the_definition(value, radix, tiles):
    rng = np.random.default_rng(radix)
    a = random_csr(rng, 17, 40, 0.4, value)
    b = random_csr(rng, 40, 23, 0.3, value)
    product = multiply(a, b, radix, value, tiles)
    assert compare_bits(by_definition(a, b, radix, value, tiles), product.structural).detail.endswith("bit for bit")
    assert (
        product.macs
        == count_macs(a, b)
        == int(((a.to_scipy() != 0).sum(axis=0) * (b.to_scipy() != 0).sum(axis=1)).sum())
    )


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 60), st.integers(1, 9)),
    radix=st.sampled_from([2, 4, 8]),
    tiles=st.builds(Tiles, T_j=st.integers(1, 10), T_k=st.integers(1, 60), joins=st.booleans()),
    value=st.sampled_from(arithmetic.VALUES),
)
def test_follows_the_definition_anywhere(seed, shape, radix, tiles, value):
    rng = np.random.default_rng(seed)
    a = random_csr(rng, shape[0], shape[1], float(rng.random()), value)
    b = random_csr(rng, shape[1], shape[2], float(rng.random()), value)
    assert compare_bits(
        by_definition(a, b, radix, value, tiles), multiply(a, b, radix, value, tiles).structural
    ).correct


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 15, 16, 17, 18, 64, 65, 256, 257])
def test_every_number_of_leaves_around_the_table_limits(count):
    """Radix 4: one job up to 4, one table up to 16, a folded table beyond; one dense column makes each run full."""
    rng = np.random.default_rng(count)
    a = random_csr(rng, 1, count, 1.0, "fp32")
    b = random_csr(rng, count, 3, 0.8, "fp32")
    expected = by_definition(a, b, 4, "fp32", Tiles())
    assert compare_bits(expected, multiply(a, b, 4, "fp32", Tiles()).structural).correct


def test_order_of_additions_shows():
    """Radix, T_k and T_j (leaves empty in a tile are dropped, so groups shift) change bits of fp32, never of int32."""
    rng = np.random.default_rng(1)
    for value, same in (("fp32", False), ("int32", True)):
        a, b = random_csr(rng, 20, 300, 0.9, value), random_csr(rng, 300, 20, 0.9, value)
        results = [
            multiply(a, b, radix, value, tiles).structural.bits
            for radix, tiles in ((4, Tiles()), (16, Tiles()), (4, Tiles(T_k=100)), (4, Tiles(T_j=3)))
        ]
        assert [np.array_equal(results[0], other) for other in results[1:]] == [same] * 3


@pytest.mark.parametrize("value", ["int32", "fp32"])
@pytest.mark.parametrize("count", [1, 3, 7, 8, 13, 16])
def test_one_job_equals_the_model_of_the_processing_element(value, count):
    rng = np.random.default_rng(count)
    a = random_csr(rng, 1, count, 1.0, value)
    b = random_csr(rng, count, 30, 0.7, value)
    leaves = [
        pe.JobLeaf(b.coordinates[first:last], b.bits[first:last], int(weight))
        for first, last, weight in zip(b.pointers[:-1], b.pointers[1:], a.bits, strict=True)
    ]
    coordinates, bits = pe.merge_job(leaves, 16, value)
    product = multiply(a, b, 16, value, Tiles()).structural
    assert np.array_equal(product.coordinates, coordinates)
    assert np.array_equal(product.bits, bits)


@pytest.mark.parametrize("value", ["int32", "fp32"])
@pytest.mark.parametrize("shape", [(1, 50, 1), (50, 1, 50), (1, 1, 1), (0, 5, 5), (5, 0, 5), (5, 5, 0), (1, 400, 30)])
def test_degenerate_shapes(value, shape):
    rng = np.random.default_rng(5)
    for density in (0.0, 0.3, 1.0):
        a = random_csr(rng, shape[0], shape[1], density, value)
        b = random_csr(rng, shape[1], shape[2], density, value)
        product = multiply(a, b, 8, value, Tiles(T_j=7, T_k=9))
        assert product.structural.shape == (shape[0], shape[2])
        check = check_against_scipy(a, b, product.structural)
        assert check.correct, check.detail
        assert check_canonical(product.canonical).correct


def test_zeros_stay_in_the_structure_and_leave_the_canonical_form():
    a = csr(np.array([[1, 1], [2, 0]]), "int32")
    b = csr(np.array([[3, 5], [-3, 0]]), "int32")
    product = multiply(a, b, 2, "int32", Tiles())
    assert product.structural.values.tolist() == [0, 5, 6, 10]
    assert product.canonical.values.tolist() == [5, 6, 10]
    assert product.canonical.coordinates.tolist() == [1, 0, 1]
    assert product.canonical.pointers.tolist() == [0, 1, 3]


def test_stored_zeros_of_the_operands_count_as_elements():
    a = csr(sp.csr_array((np.array([0, 2]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2)), "int32")
    b = csr(sp.csr_array((np.array([7, 8]), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2)), "int32")
    product = multiply(a, b, 2, "int32", Tiles())
    assert product.macs == 2
    assert product.structural.values.tolist() == [0, 16]


def test_single_negative_zero_is_structural_and_not_canonical():
    a = csr(np.array([[-1.0]]), "fp32")
    b = csr(sp.csr_array((np.array([0.0]), np.array([0]), np.array([0, 1])), shape=(1, 1)), "fp32")
    product = multiply(a, b, 2, "fp32", Tiles())
    assert product.structural.bits.tolist() == [0x80000000]
    assert product.canonical.nnz == 0


def test_not_a_number_is_the_canonical_one():
    a = csr(np.array([[np.inf, 1.0]]), "fp32")
    b = csr(sp.csr_array((np.array([0.0, 1.0]), np.array([0, 0]), np.array([0, 1, 2])), shape=(2, 1)), "fp32")
    assert multiply(a, b, 2, "fp32", Tiles()).structural.bits.tolist() == [0x7FC00000]


def test_subnormals_are_kept():
    a = csr(np.array([[2.0**-126]]), "fp32")
    b = csr(np.array([[2.0**-10]]), "fp32")
    assert multiply(a, b, 2, "fp32", Tiles()).structural.bits.tolist() == [1 << 13]


def test_int32_wraps():
    a = csr(np.array([[2**31 - 1, 2]]), "int32")
    b = csr(np.array([[2], [3]]), "int32")
    assert multiply(a, b, 2, "int32", Tiles()).structural.values.tolist() == [4]


def test_hypersparse_columns_need_no_workspace():
    matrix = sp.csr_array((np.ones(2), np.array([5, 2**32 - 2]), np.array([0, 2])), shape=(1, 2**32 - 1))
    b = Csr.from_scipy(matrix, np.ones(2, np.float32).view(np.uint32), "fp32")
    product = multiply(csr(np.array([[2.0]]), "fp32"), b, 4, "fp32", Tiles(T_j=1000))
    assert product.structural.coordinates.tolist() == [5, 2**32 - 2]


@pytest.mark.parametrize("name", ["airfoil", "unit_square", "recirc_flow", "bar"])
@pytest.mark.parametrize("value", ["int32", "fp32"])
def test_real_matrices_against_scipy(name, value):
    from sw.operands import Operand, load, to_csr

    operand = load(f"pyamg:{name}")
    if value == "int32":
        matrix = operand.matrix.copy()
        matrix.data = np.rint(matrix.data * 1000)
        operand = Operand(name=name, source=name, matrix=matrix)
    a = to_csr(operand, value)
    for tiles in (Tiles(), Tiles(T_j=100, T_k=70)):
        product = multiply(a, a, 8, value, tiles)
        check = check_against_scipy(a, a, product.structural)
        assert check.correct, check.detail
        assert check_canonical(product.canonical).correct


@pytest.mark.parametrize("pattern", ["dense_row", "dense_column", "arrow", "permutation", "diagonal", "full"])
def test_adversarial_matrices_against_scipy(pattern):
    rng = np.random.default_rng(9)
    size = 150
    dense = np.zeros((size, size))
    if pattern in ("dense_row", "arrow"):
        dense[size // 2] = rng.standard_normal(size)
    if pattern in ("dense_column", "arrow"):
        dense[:, 3] = rng.standard_normal(size)
    if pattern in ("diagonal", "arrow"):
        dense[np.arange(size), np.arange(size)] = rng.standard_normal(size)
    if pattern == "permutation":
        dense[np.arange(size), rng.permutation(size)] = rng.standard_normal(size)
    if pattern == "full":
        dense = rng.standard_normal((size, size)) * 10.0 ** rng.integers(-6, 6, (size, size))
    a = csr(dense, "fp32")
    for radix in (2, 64):
        check = check_against_scipy(a, a, multiply(a, a, radix, "fp32", Tiles(T_j=64, T_k=40)).structural)
        assert check.correct, check.detail


def test_misuse_is_refused():
    a = csr(np.eye(3), "fp32")
    with pytest.raises(ValueError, match=r"^Merge radix must be a power of two from 2, not 3$"):
        multiply(a, a, 3, "fp32", Tiles())
    with pytest.raises(ValueError, match=r"^Operands are fp32 and fp32, the design computes int32$"):
        multiply(a, a, 4, "int32", Tiles())
    with pytest.raises(ValueError, match=r"^A is 3 x 3 and B is 2 x 2: inner shapes must agree$"):
        multiply(a, csr(np.eye(2), "fp32"), 4, "fp32", SimpleNamespace(T_j=1, T_k=1))
