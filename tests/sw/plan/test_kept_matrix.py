"""A matrix in a format that the accelerator converts on its way: its bytes, and what lies in memory read back."""

import numpy as np
import pytest

from sw.formats.array_checks import FormatError
from sw.formats.csr import Csr
from sw.formats.sparse_tensor import VALUE_BITS, SparseTensor
from sw.plan.kept_matrix import KeptMatrix
from sw.runtime.registers import CONVERTED
from tests.sw.formats.tensors import drawn, ragged, tensor

FORMS = [*((kind, {}) for kind in CONVERTED), *(("rlc", {"run_bits": bits}) for bits in (1, 3, 32))]
IDS = [f"{kind}{options.get('run_bits', '')}" for kind, options in FORMS]
# Of 7 rows and 13 columns: each place, none, and one at each end.
SHAPE = (7, 13)
MATRICES = {
    "random": lambda value: drawn(SHAPE, 0.3, value, seed=4),
    "sparse": lambda value: drawn((40, 33), 0.01, value, seed=5),
    "stored zeros": lambda value: drawn(SHAPE, 0.6, value, seed=6, zeros=True),
    "ragged": ragged,
    "empty": lambda value: tensor(SHAPE, [], value),
    "full": lambda value: tensor(SHAPE, range(91), value),
    "first": lambda value: tensor(SHAPE, [0], value),
    "last": lambda value: tensor(SHAPE, [90], value),
    "one place": lambda value: tensor((1, 1), [0], value),
    "one place, empty": lambda value: tensor((1, 1), [], value),
}


def records_of(kept: KeptMatrix) -> int:
    """As the hardware counts them: pairs of RLC, values of ZVC, entries of COO; a dense matrix has none."""
    counted = {"coo": "entries", "rlc": "pairs", "zvc": "values"}.get(kept.kept.kind)
    return sum(part.count for part in kept.kept.layout.regions if part.name == counted)


def same(found: Csr, expected: Csr) -> None:
    assert found.shape == expected.shape and found.value == expected.value
    for array in ("pointers", "coordinates", "bits"):
        assert np.array_equal(getattr(found, array), getattr(expected, array)), array


@pytest.mark.parametrize(("kind", "options"), FORMS, ids=IDS)
@pytest.mark.parametrize("value", VALUE_BITS)
@pytest.mark.parametrize("name", MATRICES)
def test_a_matrix_is_read_back(name, value, kind, options):
    """Bit for bit, stored zeros where the format keeps them; bytes behind the regions are no part of it."""
    given = MATRICES[name](value)
    kept = KeptMatrix.of(given.to_csr(), kind, **options)
    memory = {
        region: np.append(data, np.full(9, 0xA5, np.uint8)) for region, data in kept.memory(given.to_csr()).items()
    }
    records = records_of(kept)
    expected = given if kept.form.keeps_zeros else given.without_zeros()
    same(kept.matrix(given.shape, memory, records), expected.to_csr())
    assert kept.layout(given.shape, records) == kept.kept.layout
    assert records <= kept.most_records(given.shape, given.nnz)


def test_records_of_a_dense_matrix_do_not_count():
    given = drawn(SHAPE, 0.3, "int16").to_csr()
    kept = KeptMatrix.of(given, "dense")
    for records in (0, 5, 1 << 31):
        same(kept.matrix(SHAPE, kept.memory(given), records), given)
        assert kept.layout(SHAPE, records) == kept.kept.layout


@pytest.mark.parametrize(("kind", "options"), FORMS, ids=IDS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 65), (9, 20), (64, 64)])
def test_most_records(shape, kind, options):
    """No matrix of this shape and so many nonzeros has more: fillers are of RLC alone, and one run can be all of them."""
    size = shape[0] * shape[1]
    kept = KeptMatrix.of(tensor(shape, []).to_csr(), kind, **options)
    longest = 1 << options.get("run_bits", 5)
    assert kept.most_records(shape, 7) == 7 + (size // longest if kind == "rlc" else 0)
    for seed, density in enumerate((0.01, 0.1, 0.5, 1.0)):
        given = drawn(shape, density, seed=seed)
        assert records_of(KeptMatrix.of(given.to_csr(), kind, **options)) <= kept.most_records(shape, given.nnz)
    last = records_of(KeptMatrix.of(tensor(shape, [size - 1]).to_csr(), kind, **options))
    if kind == "rlc":
        assert last == 1 + (size - 1) // longest
        reached = (1, longest + 1) if longest < size else shape
        alone = KeptMatrix.of(tensor(reached, [reached[0] * reached[1] - 1]).to_csr(), kind, **options)
        assert records_of(alone) == alone.most_records(reached, 1)


def spoiled(kind: str, positions: list[int], change: dict[str, tuple[int, int]], **options: int):
    """int8 values 1 of 4 x 8 places, with bytes of regions set."""
    given = tensor((4, 8), positions, "int8")
    given = SparseTensor(shape=given.shape, ids=given.ids, values=np.ones(given.nnz, np.int8), value="int8").to_csr()
    kept = KeptMatrix.of(given, kind, **options)
    memory = {name: data.copy() for name, data in kept.memory(given).items()}
    for name, (at, byte) in change.items():
        memory[name][at] = byte
    return kept, memory


# An entry of COO is a byte of the value, two bits of the row and three of the column; a pair of RLC a byte and eight bits.
MALFORMED = {
    "unsorted": ("coo", [3, 9], {"entries": (1, 0b11111)}, 0, "row_ids, col_ids"),
    "entries missing": ("coo", [3, 9], {}, 9, "^region entries has 4 bytes: must have 18$"),
    "a short filler": (
        "rlc",
        [3, 9],
        {"pairs": (0, 0)},
        0,
        "^levels has 0 behind a run of 3 at entry 0: a filler's run",
    ),
    "behind the last place": ("rlc", [3, 9], {"pairs": (3, 200)}, 0, "^runs lead to position 204: must be below 32"),
    "pairs missing": ("rlc", [3, 9], {}, 1, "^region pairs has 4 bytes: must have 6$"),
    "a bit too many": ("zvc", [3, 9], {"mask": (3, 1)}, 0, "^mask has 3 bits that are 1 and values 2 entries"),
    "a value that is 0": ("zvc", [3, 9], {"values": (1, 0)}, 0, "^values has 0 at entry 1: must have no zeros$"),
    "values missing": ("zvc", [3, 9], {}, 1, "^region values has 2 bytes: must have 3$"),
    "a value too few": ("zvc", [3, 9], {}, -1, "^mask has 2 bits that are 1 and values 1 entries"),
}


@pytest.mark.parametrize(("kind", "positions", "change", "more", "message"), MALFORMED.values(), ids=MALFORMED)
def test_memory_that_holds_no_matrix_is_refused(kind, positions, change, more, message):
    options = {"run_bits": 8} if kind == "rlc" else {}
    kept, memory = spoiled(kind, positions, change, **options)
    with pytest.raises(FormatError, match=message) as raised:
        kept.matrix((4, 8), memory, records_of(kept) + more)
    assert "\n" not in str(raised.value)


def test_ends_of_a_matrix_are_looked_at():
    """A coordinate and a bit of the mask behind the last place, a filler behind which nothing comes, values that are cut off."""
    given = tensor((3, 5), [2, 7], "int8").to_csr()
    for kind, name, at, byte, message in (
        ("coo", "entries", 1, 0b11111, "^row_ids has 3: must be from 0 to 2$"),
        ("zvc", "mask", 1, 0x80, "^mask has bits behind place 14, the last one: must be 0$"),
        ("rlc", "pairs", 2, 0, "^levels ends with a filler: the last level must not be 0$"),
    ):
        kept = KeptMatrix.of(given, kind, **({"run_bits": 8} if kind == "rlc" else {}))
        memory = {region: data.copy() for region, data in kept.memory(given).items()}
        memory[name][at] = byte
        if kind == "rlc":
            memory[name][3] = 0xFF
        with pytest.raises(FormatError, match=message):
            kept.matrix((3, 5), memory, records_of(kept))
    dense = KeptMatrix.of(given, "dense")
    with pytest.raises(FormatError, match="^region values has 14 bytes: must have 15$"):
        dense.matrix((3, 5), {"values": dense.memory(given)["values"][:14]}, 0)
