"""Sizes, products and outputs of operands against arrays that are made and multiplied."""

import numpy as np
import pytest
import scipy.sparse as sp

from sw.formats.csr import VALUE_DTYPES
from sw.formats.sparse_tensor import SparseTensor
from sw.formats.storage import storage_format
from sw.formats.storage_format import pack
from sw.sage.accelerators import MATRIX_MCFS, TENSOR_MCFS
from sw.sage.workload import counted, estimated, tensor_counted, uniform


def random_matrix(rows: int, columns: int, density: float, seed: int) -> sp.csr_array:
    found = sp.random_array((rows, columns), density=density, rng=np.random.default_rng(seed), format="csr")
    found.data[:] = 1
    return found


def made_bits(shape, ids, name: str, run_bits: int) -> int:
    """Bits of the records that are written, region by region; each ends less than a byte before its bytes do."""
    form = storage_format(name, **({"run_bits": run_bits} if name == "rlc" else {}))
    values = np.ones(len(ids[0]), VALUE_DTYPES["int16"])
    tensor = SparseTensor(shape=shape, ids=tuple(each.astype(np.int64) for each in ids), values=values, value="int16")
    layout = form.layout(shape, form.counts(tensor), "int16")
    written = pack(layout, form.encode(tensor))
    assert all(0 <= 8 * len(written[region.name]) - region.bits < 8 for region in layout.regions)
    return layout.bits


@pytest.mark.parametrize("name", MATRIX_MCFS)
def test_operands_have_the_size_of_their_arrays(name):
    a = random_matrix(37, 90, 0.07, 1)
    work = counted("spgemm", a, a.T.tocsr(), value="int16", run_bits=3)
    ids = a.tocoo()
    assert work.a.bits(name, "int16") == made_bits(a.shape, (ids.row, ids.col), name, 3)


def random_tensor(shape, density: float, seed: int) -> np.ndarray:
    return np.argwhere(np.random.default_rng(seed).random(shape) < density)


@pytest.mark.parametrize("name", TENSOR_MCFS)
def test_tensors_have_the_size_of_their_arrays(name):
    places = random_tensor((5, 7, 9), 0.2, 2)
    b = sp.csr_array(np.ones((9, 4)))
    work = tensor_counted("spttm", (5, 7, 9), places, np.ones(len(places)), b, value="int16", run_bits=4)
    assert work.a.bits(name, "int16") == made_bits((5, 7, 9), tuple(places.T), name, 4)


@pytest.mark.parametrize("name", [*MATRIX_MCFS, "csf"])
@pytest.mark.parametrize("density", [0.003, 0.1, 0.7])
def test_expected_sizes_are_the_mean_of_random_ones(name, density):
    shape = (40, 30) if name != "csf" else (12, 10, 10)
    work = uniform("spgemm" if name != "csf" else "spttm", (*shape, 3), density, value="int16")
    sizes = []
    for seed in range(20):
        ids = np.nonzero(np.random.default_rng(seed).random(shape) < density)
        sizes.append(made_bits(shape, ids, name, 5))
    spread = 4 * np.std(sizes) / len(sizes) ** 0.5
    assert abs(work.a.bits(name, "int16") - np.mean(sizes)) <= spread + 0.03 * np.mean(sizes) + 12


def test_products_and_outputs_of_operands_are_those_of_the_product():
    a, b = random_matrix(30, 50, 0.1, 3), random_matrix(50, 20, 0.2, 4)
    work = counted("spgemm", a, b)
    assert work.products == (a @ b).sum()  # all values are 1
    assert work.o.nnz == pytest.approx((a @ b).nnz)
    close = estimated("spgemm", a, b)
    assert close.products == work.products and close.o.nnz == pytest.approx(work.o.nnz, rel=0.1)


@pytest.mark.parametrize("kernel", ["spttm", "mttkrp"])
def test_products_and_outputs_of_tensors_are_those_of_the_product(kernel):
    shape, width = (6, 5, 8), 3
    places = random_tensor(shape, 0.15, 5)
    a = np.zeros(shape)
    a[tuple(places.T)] = 1
    rows = shape[2] if kernel == "spttm" else shape[1]
    work = tensor_counted(kernel, shape, places, np.ones(len(places)), sp.csr_array(np.ones((rows, width))))
    sums = a.sum(axis=2)  # of each fiber
    if kernel == "spttm":
        assert work.products == np.einsum("ijk,kn->ijn", a, np.ones((8, width))).sum()
        assert work.o.nnz == pytest.approx(np.count_nonzero(sums) * width)
        assert work.factor_products == 0
    else:
        assert work.products == len(places) * width
        assert work.factor_products == np.count_nonzero(sums) * width
        assert work.o.nnz == pytest.approx(np.count_nonzero(sums.sum(axis=1)) * width)
        assert work.b.places == (5 + 8) * width


def test_a_sparse_factor_of_a_tensor_is_counted():
    places = random_tensor((6, 5, 8), 0.3, 6)
    b = random_matrix(8, 7, 0.4, 7)
    work = tensor_counted("spttm", (6, 5, 8), places, np.ones(len(places)), b)
    assert work.products == sum(b[[k]].nnz for k in places[:, 2])
    assert (work.columns.nnz, work.b.nnz) == (b.nnz, b.nnz)


def test_random_operands_are_described_by_their_shape():
    """An operand that is random costs what a random one is said to cost."""
    a, b = random_matrix(300, 400, 0.05, 8), random_matrix(400, 200, 0.1, 9)
    found, said = counted("spgemm", a, b), uniform("spgemm", (300, 400, 200), 0.05, 0.1)
    assert found.products == pytest.approx(said.products, rel=0.05)
    assert found.o.nnz == pytest.approx(said.o.nnz, rel=0.05)
    for name in MATRIX_MCFS:
        assert found.a.bits(name, "fp32") == pytest.approx(said.a.bits(name, "fp32"), rel=0.02)
    assert found.rows.groups(400, 7) == pytest.approx(said.rows.groups(400, 7), rel=0.05)
    assert found.columns.groups(100, 64) == pytest.approx(said.columns.groups(100, 64), rel=0.05)


def test_stored_zeros_are_places_without_an_entry_where_the_format_has_none():
    a = sp.csr_array((np.array([0.0, 5.0]), np.array([1, 2]), np.array([0, 2])), shape=(1, 4))
    work = counted("spgemm", a, a.T.tocsr())
    assert (work.a.counts("zvc"), work.a.counts("csr")) == ({"nnz": 1}, {"nnz": 2})
