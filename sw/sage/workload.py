"""A kernel on two operands, as the costs see it: A streams by its rows, B stays by its columns. MINT, sections II and VI."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sw.formats.compactness import expected_counts
from sw.formats.sparse_tensor import SparseTensor
from sw.formats.storage import storage_format
from sw.stats.effmac import row_macs
from sw.stats.nnzc import exact_nnzc
from sw.stats.pattern import Pattern

from .counts import Counted, Fibers, Lengths, Uniform

__all__ = [
    "KERNELS",
    "Operand",
    "Workload",
    "counted",
    "estimated",
    "matrix_operand",
    "random_operand",
    "tensor_counted",
    "uniform",
]

KERNELS = ("spgemm", "spmm", "spttm", "mttkrp")
#: Products of nonzeros up to which nonzeros of the output are counted; above, they are expected ones, row by row.
MOST_PRODUCTS = 200_000_000
#: Products that an estimate looks at.
SAMPLED_PRODUCTS = 100_000


class Operand:
    """A tensor in memory.

    Parameters
    ----------
    shape, nnz: its sizes and nonzeros. run_bits: of rlc.
    counts: by the name of a storage format, the numbers that its size depends on; asked once for each.
    """

    def __init__(
        self, shape: tuple[int, ...], nnz: float, counts: Callable[[str], dict[str, int]], run_bits: int
    ) -> None:
        self.shape, self.nnz, self.run_bits = shape, nnz, run_bits
        self.counts, self.bits = cache(counts), cache(self._bits)

    @property
    def places(self) -> int:
        return prod(self.shape)

    def _bits(self, name: str, value: str) -> int:
        """The exact size in a storage format."""
        form = storage_format(name, **({"run_bits": self.run_bits} if name == "rlc" else {}))
        return form.layout(self.shape, self.counts(name), value).bits


@dataclass(frozen=True, kw_only=True, eq=False)
class Workload:
    """The operands A, B and O of O = A x B.

    Parameters
    ----------
    kernel: one of ``KERNELS``. value: type of the values.
    a, b, o: in memory. rows: of A, unfolded where it is a tensor. columns: of B. products: effectual ones.
    factor_rows: of the second matrix of ``mttkrp``, which scales the sum of each fiber of A; else 0. b stands for both then.
    factor_products: of it.
    """

    kernel: str
    value: str
    a: Operand
    b: Operand
    o: Operand
    rows: Fibers
    columns: Fibers
    products: float
    factor_rows: int = 0
    factor_products: float = 0.0

    @property
    def order(self) -> int:
        """Of A."""
        return len(self.a.shape)


def random_operand(shape: tuple[int, ...], density: float, run_bits: int) -> Operand:
    """Each place has a nonzero with the same chance."""
    return Operand(
        shape,
        prod(shape) * density,
        lambda name: expected_counts(name, shape, density, (1 << run_bits) - 1),
        run_bits,
    )


def uniform(
    kernel: str,
    shape: Sequence[int],
    density_a: float,
    density_b: float = 1.0,
    *,
    value: str = "fp32",
    run_bits: int = 5,
) -> Workload:
    """Random operands, each place with the same chance.

    ``shape``: M, K, N of a product of matrices; I, J, K, N of ``spttm`` (A is I x J x K, B is K x N) and of ``mttkrp`` (B is
    J x N, C is K x N, both of ``density_b``).
    """
    *outer, depth, width = shape
    rows = prod(outer)
    a = random_operand((*outer, depth), density_a, run_bits)
    meets = density_a * density_b
    if kernel == "mttkrp":
        filled = rows * _any(depth, meets)
        o = random_operand((outer[0], width), _any(outer[1], _any(depth, meets) * density_b), run_bits)
        b = _both(
            random_operand((outer[1], width), density_b, run_bits), random_operand((depth, width), density_b, run_bits)
        )
        factor_rows, factor_products = outer[1], filled * width * density_b
    else:
        b = random_operand((depth, width), density_b, run_bits)
        o = random_operand((*outer, width), _any(depth, meets), run_bits)
        factor_rows, factor_products = 0, 0.0
    return Workload(
        kernel=kernel,
        value=value,
        a=a,
        b=b,
        o=o,
        rows=Uniform(rows, depth, density_a),
        columns=Uniform(width, depth, density_b),
        products=float(rows) * depth * width * meets,
        factor_rows=factor_rows,
        factor_products=factor_products,
    )


def _any(number: int, chance: float) -> float:
    """The chance that at least one of so many happens."""
    return 1.0 if chance >= 1 else -float(np.expm1(number * np.log1p(-chance)))


def _both(first: Operand, second: Operand) -> Operand:
    """Two matrices of one width, one on top of the other, each in the same format: sizes differ by a pointer and an id's bits."""
    shape = (first.shape[0] + second.shape[0], first.shape[1])

    def counts(name: str) -> dict[str, int]:
        one, other = first.counts(name), second.counts(name)
        return {key: one[key] + other[key] for key in one}

    return Operand(shape, first.nnz + second.nnz, counts, first.run_bits)


def _stored(shape: tuple[int, ...], ids: tuple[Any, ...], data: Any, run_bits: int) -> Operand:
    """What a format counts of an operand; values matter only as far as stored zeros go."""
    marks = (data != 0).astype(np.int8)
    tensor = SparseTensor(shape=shape, ids=tuple(each.astype(np.int64) for each in ids), values=marks, value="int8")

    def counts(name: str) -> dict[str, int]:
        return storage_format(name, **({"run_bits": run_bits} if name == "rlc" else {})).counts(tensor)

    return Operand(shape, float(len(data)), counts, run_bits)


def matrix_operand(matrix: Any, run_bits: int = 5) -> Operand:
    """A matrix of SciPy's, each place once, as it is kept in memory."""
    return _of_matrix(matrix, run_bits)[0]


def _of_matrix(matrix: Any, run_bits: int) -> tuple[Operand, Any]:
    entries = sp.csr_array(matrix).tocoo()
    return _stored(entries.shape, (entries.row, entries.col), entries.data, run_bits), entries


@dataclass(frozen=True, eq=False)
class _Factor:
    """B: in memory, by its columns, and how many nonzeros each of its rows has."""

    operand: Operand
    columns: Fibers
    per_row: NDArray[np.int64]

    @property
    def density(self) -> float:
        return self.operand.nnz / self.operand.places


def _factor(b: Any, depth: int, run_bits: int) -> _Factor:
    """Of a matrix, or of a width: a dense one, of which nothing is made."""
    if isinstance(b, int):
        return _Factor(random_operand((depth, b), 1.0, run_bits), Uniform(b, depth, 1.0), np.full(depth, b))
    operand, entries = _of_matrix(b, run_bits)
    order = np.lexsort((entries.row, entries.col))
    fiber, place = (each[order].astype(np.int64) for each in (entries.col, entries.row))
    return _Factor(operand, Counted(operand.shape[1], depth, fiber, place), Pattern.of(b).row_lengths)


def counted(kernel: str, a: Any, b: Any, *, value: str = "fp32", run_bits: int = 5) -> Workload:
    """A product of two sparse matrices of SciPy's, canonical ones: rows sorted, each place once.

    ``b``: a matrix, or the width of a dense one.
    """
    first, entries = _of_matrix(a, run_bits)
    rows, depth = first.shape
    factor = _factor(b, depth, run_bits)
    pattern = Pattern.of(a)
    products = float(pattern.column_counts() @ factor.per_row)
    if isinstance(b, int):
        outputs = float(np.count_nonzero(pattern.row_lengths) * b)
    elif products <= MOST_PRODUCTS:
        outputs = float(exact_nnzc(pattern, Pattern.of(b), depth))
    else:
        outputs = _expected_output(pattern, Pattern.of(b))
    shape = (rows, factor.operand.shape[1])
    return Workload(
        kernel=kernel,
        value=value,
        a=first,
        b=factor.operand,
        o=random_operand(shape, outputs / prod(shape), run_bits),
        rows=Counted(rows, depth, entries.row.astype(np.int64), entries.col.astype(np.int64)),
        columns=factor.columns,
        products=products,
    )


def _expected_output(a: Pattern, b: Pattern) -> float:
    """Nonzeros of the product, as if the products of a row fell anywhere in it."""
    return float((-b.columns * np.expm1(-row_macs(a, b) / b.columns)).sum())


def _sampled_output(a: Any, b: Pattern) -> float:
    """Nonzeros of the product by those of a sample of its rows, as many for each of its products."""
    each = row_macs(Pattern.of(a), b)
    products = int(each.sum())
    step = -(-products // SAMPLED_PRODUCTS)
    if step <= 1:
        return float(exact_nnzc(Pattern.of(a), b, b.rows))
    sample = np.arange(step // 2, a.shape[0], step)
    some = int(each[sample].sum())
    return products / some * exact_nnzc(Pattern.of(a[sample]), b, b.rows) if some else 0.0


def estimated(kernel: str, a: Any, b: Any, *, value: str = "fp32", run_bits: int = 5) -> Workload:
    """What :func:`counted` is about, by sizes, lengths of rows and columns, and a sample: less work than reading was."""
    pattern = Pattern.of(a)
    first, _ = _of_matrix(a, run_bits)
    if isinstance(b, int):
        factor = _factor(b, pattern.columns, run_bits)
        outputs = float(np.count_nonzero(pattern.row_lengths) * b)
    else:
        other = Pattern.of(b)
        operand = first if b is a else _of_matrix(b, run_bits)[0]
        factor = _Factor(operand, Lengths(other.rows, other.column_counts()), other.row_lengths)
        outputs = _sampled_output(a, other)
    shape = (pattern.rows, factor.operand.shape[1])
    return Workload(
        kernel=kernel,
        value=value,
        a=first,
        b=factor.operand,
        o=random_operand(shape, min(1.0, outputs / prod(shape)), run_bits),
        rows=Lengths(pattern.columns, pattern.row_lengths),
        columns=factor.columns,
        products=float(pattern.column_counts() @ factor.per_row),
    )


def tensor_counted(
    kernel: str,
    shape: tuple[int, ...],
    coordinates: Any,
    values: Any,
    b: Any,
    *,
    value: str = "fp32",
    run_bits: int = 5,
) -> Workload:
    """A tensor of order 3 times matrices.

    ``coordinates``: int64[nnz, 3], sorted. ``b``: a matrix of SciPy's, K x N, of ``mttkrp`` J x N, whose width and density hold
    for the other matrix too; or the width of dense ones.
    """
    factor = _factor(b, shape[1 if kernel == "mttkrp" else 2], run_bits)
    width, density = factor.operand.shape[1], factor.density
    expected = uniform(kernel, (*shape, width), len(values) / prod(shape), density, value=value, run_bits=run_bits)
    i, j, k = coordinates.T
    fibers = Counted(shape[0] * shape[1], shape[2], i * shape[1] + j, k)
    filled = fibers.filled(shape[2])
    known = replace(expected, a=_stored(shape, (i, j, k), values, run_bits), rows=fibers)
    if kernel == "mttkrp":
        rows = float(len(np.unique(i)))
        known = replace(known, products=len(k) * width * density, factor_products=filled * width * density)
    else:
        rows = filled
        known = replace(known, b=factor.operand, columns=factor.columns, products=float(factor.per_row[k].sum()))
    share = rows / prod(expected.o.shape[:-1]) * (1.0 if density == 1 else _of_filled(expected))
    return replace(known, o=random_operand(expected.o.shape, min(1.0, share), run_bits))


def _of_filled(expected: Workload) -> float:
    """The share of a filled row of the output that holds something, of random operands."""
    rows = prod(expected.o.shape[:-1])
    filled = rows * _any(expected.a.places // rows, expected.a.nnz / expected.a.places)
    return expected.o.nnz / (filled * expected.o.shape[-1]) if filled else 0.0
