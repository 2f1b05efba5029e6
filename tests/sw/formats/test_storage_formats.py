"""Every storage format, a user's own too: what it holds comes back from arrays and from memory, and its size is exact."""

from math import ceil, log2, prod

import numpy as np
import pytest

from sw.formats import storage
from sw.formats.array_checks import FormatError
from sw.formats.sparse_tensor import VALUE_BITS, SparseTensor
from sw.formats.storage import parameter_names, storage_format, storage_names
from sw.formats.storage_format import pack, through_memory, unpack

from .tensors import drawn, far, ragged, small_tensors, tensor

OWN = '''
"""Values in reverse, each with its position."""
from typing import ClassVar

import numpy as np

from sw.formats.array_checks import id_array, value_array
from sw.formats.sparse_tensor import VALUE_BITS, SparseTensor
from sw.formats.storage_format import Field, Layout, Region, coordinate_bits, places


class FORMAT:
    orders: ClassVar = (2, 3)
    keeps_zeros: ClassVar = True

    def counts(self, tensor):
        return {"nnz": tensor.nnz}

    def layout(self, shape, counts, value):
        position = Field("positions", coordinate_bits(places(shape)))
        values = Field("values", VALUE_BITS[value], kind="value")
        return Layout(value, (Region("entries", counts["nnz"], (position, values)),))

    def encode(self, tensor):
        return {"positions": tensor.positions()[::-1].astype(np.int64), "values": tensor.values[::-1]}

    def decode(self, arrays, shape, value):
        positions = id_array(arrays, "positions")[::-1].astype(np.uint64)
        return SparseTensor.from_positions(shape, positions, value_array(arrays, "values", value)[::-1], value)
'''


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """A format of a user's own: one file in the package's folder, and nothing else."""
    (tmp_path / "reversed_coo.py").write_text(OWN)
    monkeypatch.setattr(storage, "__path__", [*storage.__path__, str(tmp_path)])


ALL = (*storage_names(), "reversed_coo")
VARIANTS = {
    "bsr": [{}, {"block": (1, 1)}, {"block": (3, 5)}, {"block": (64, 2)}],
    "hicoo": [{}, {"block": (1, 1, 1)}, {"block": (4, 3, 9)}],
    "rlc": [{}, {"run_bits": 1}, {"run_bits": 3}, {"run_bits": 32}],
}
FORMS = [
    pytest.param(name, one, id=f"{name}{n or ''}") for name in ALL for n, one in enumerate(VARIANTS.get(name, [{}]))
]


def kept(form, given):
    return given if form.keeps_zeros else given.without_zeros()


def test_all_formats_are_found():
    expected = {"bsr", "coo", "csc", "csf", "csr", "dense", "dia", "ell", "hicoo", "rlc", "zvc"}
    assert expected | {"reversed_coo"} == set(storage_names())


@pytest.mark.parametrize(("name", "parameters"), FORMS)
def test_every_tensor_comes_back(name, parameters):
    form = storage_format(name, **parameters)
    for order in form.orders:
        for label, given in small_tensors(order):
            layout = form.layout(given.shape, form.counts(given), given.value)
            arrays = form.encode(given)
            assert form.decode(arrays, given.shape, given.value).same_as(kept(form, given)), label
            memory = pack(layout, arrays)
            assert {part: len(data) for part, data in memory.items()} == {r.name: r.bytes for r in layout.regions}, (
                label
            )
            assert layout.array_bytes == sum(array.nbytes for array in arrays.values()), label
            # Other bytes behind what is stored.
            behind = {part: np.concatenate([data, np.full(9, 0xA5, np.uint8)]) for part, data in memory.items()}
            found = unpack(layout, behind)
            assert set(found) == set(arrays), label
            for part, array in arrays.items():
                assert found[part].dtype == array.dtype and found[part].shape == array.shape, (label, part)
                assert array.tobytes() == found[part].tobytes(), (label, part)
            assert form.decode(found, given.shape, given.value).same_as(kept(form, given)), label


@pytest.mark.parametrize(("name", "parameters"), FORMS)
def test_regions_that_are_too_small_are_refused(name, parameters):
    form = storage_format(name, **parameters)
    for order in form.orders:
        given = drawn((9, 8, 7)[:order], 0.4)
        layout = form.layout(given.shape, form.counts(given), given.value)
        memory = pack(layout, form.encode(given))
        for region in layout.regions:
            if region.bytes:
                short = memory | {region.name: memory[region.name][:-1]}
                with pytest.raises(FormatError, match=f"^region {region.name} has {region.bytes - 1} bytes: must have"):
                    unpack(layout, short)


@pytest.mark.parametrize("source", ALL)
def test_from_every_format_to_every_other(source):
    first = storage_format(source)
    for order in first.orders:
        given = [drawn((23, 31, 17)[:order], 0.15, value, zeros=True) for value in VALUE_BITS] + [
            tensor((6, 5, 4)[:order], []),
            tensor((6, 5, 4)[:order], range(prod((6, 5, 4)[:order]))),
            *([ragged()] if order == 2 else []),
        ]
        for target in ALL:
            second = storage_format(target)
            if order not in second.orders:
                continue
            for one in given:
                layout = first.layout(one.shape, first.counts(one), one.value)
                _, middle = through_memory(first, layout, one)
                _, last = through_memory(second, second.layout(one.shape, second.counts(middle), one.value), middle)
                assert last.same_as(kept(second, kept(first, one))), target


@pytest.mark.parametrize("name", ["coo", "csf", "hicoo", "rlc", "reversed_coo"])
def test_largest_coordinates(name):
    form = storage_format(name, **({"run_bits": 32} if name == "rlc" else {}))
    for order in form.orders:
        given = far(order)
        if name in ("rlc", "reversed_coo"):
            # 2^64 places are as many as positions tell; 2^96 are not.
            if order == 3:
                with pytest.raises(FormatError, match="positions must fit 64 bits"):
                    form.counts(given) if name == "rlc" else form.encode(given)
                continue
            ids = np.array([0, 0]), np.array([0, 2**32 - 1])
            given = SparseTensor(shape=given.shape, ids=ids, values=given.values, value="fp32")
        layout = form.layout(given.shape, form.counts(given), given.value)
        assert through_memory(form, layout, given)[1].same_as(given)


def test_positions_take_all_of_64_bits():
    given = far(2)
    assert given.positions().tolist() == [0, 2**64 - 1]
    assert SparseTensor.from_positions(given.shape, given.positions(), given.values, "fp32").same_as(given)


def bits(n):
    """Of a number from 0 to n - 1."""
    return ceil(log2(n))


@pytest.mark.parametrize("value", VALUE_BITS)
@pytest.mark.parametrize("density", [0.0, 0.01, 0.3, 1.0])
def test_sizes_are_those_of_the_paper(density, value):
    """Section III.A: metadata take the logarithm of the largest value that they may have."""
    rows, columns, depth = 37, 50, 9
    given = drawn((rows, columns), density, value)
    nnz, v = given.nnz, VALUE_BITS[value]
    i, j = bits(rows), bits(columns)
    row_sizes = np.bincount(given.ids[0], minlength=rows)
    blocks = len({(r // 2, c // 2) for r, c in zip(*(rank.tolist() for rank in given.ids), strict=True)})
    diagonals = len(set((given.ids[1] - given.ids[0]).tolist()))
    length = max(given.ids[1].tolist(), default=-1) + 1
    gaps = np.diff(given.positions().astype(np.int64), prepend=-1) - 1
    expected = {
        "dense": rows * columns * v,
        "coo": nnz * (i + j + v),
        "csr": (rows + 1) * bits(nnz + 1) + nnz * (j + v),
        "csc": (columns + 1) * bits(nnz + 1) + nnz * (i + v),
        "rlc": (nnz + int((gaps // 32).sum())) * (5 + v),
        "zvc": rows * columns + nnz * v,
        "bsr": 20 * bits(blocks + 1) + blocks * (bits(25) + 4 * v),
        "dia": diagonals * (bits(rows + columns - 1) + length * v),
        "ell": rows * int(row_sizes.max()) * (bits(columns + 1) + v),
    }
    for name, size in expected.items():
        form = storage_format(name)
        assert form.layout(given.shape, form.counts(given), value).bits == size, name
    given = drawn((rows, columns, depth), density, value)
    nnz, ids = given.nnz, list(zip(*(rank.tolist() for rank in given.ids), strict=True))
    first, second = len({one[:1] for one in ids}), len({one[:2] for one in ids})
    blocks = len({tuple(c // 2 for c in one) for one in ids})
    expected = {
        "coo": nnz * (i + j + bits(depth) + v),
        "csf": first * i + (first + 1) * bits(second + 1) + second * j + (second + 1) * bits(nnz + 1)
        + nnz * (bits(depth) + v),
        "hicoo": (blocks + 1) * bits(nnz + 1) + blocks * (bits(19) + bits(25) + bits(5)) + nnz * (3 + v),
    }  # fmt: skip
    for name, size in expected.items():
        form = storage_format(name)
        assert form.layout(given.shape, form.counts(given), value).bits == size, name


def test_parameters_are_checked():
    assert parameter_names("rlc") == ("run_bits",) and parameter_names("csr") == ()
    for name, parameters, complaint in (
        ("rlc", {"run_bits": 0}, "Bits of a run must be from 1 to 32, not 0"),
        ("bsr", {"block": (2, 0)}, "Block must be two numbers from 1, not 2x0"),
        ("hicoo", {"block": (2, 2)}, "Block must be three numbers from 1, not 2x2"),
        ("cscr", {}, "Format must be one of bsr, .*, not 'cscr'"),
    ):
        with pytest.raises(ValueError, match=f"^{complaint}$"):
            storage_format(name, **parameters)


def test_a_tensor_must_have_a_shape():
    with pytest.raises(FormatError, match="^shape 0 x 5: each rank must be from 1 to 2\\^32$"):
        tensor((0, 5), [])
    with pytest.raises(ValueError, match="^Value type must be one of int8, .*, not 'fp64'$"):
        SparseTensor(shape=(1, 1), ids=(np.zeros(0, np.int64),) * 2, values=np.zeros(0), value="fp64")
    with pytest.raises(FormatError, match="as many coordinates"):
        SparseTensor(shape=(1, 1), ids=(np.zeros(1, np.int64),) * 2, values=np.zeros(0, np.float32), value="fp32")
