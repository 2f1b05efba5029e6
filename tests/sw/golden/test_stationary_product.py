"""The product of a weight-stationary machine against the readable model of its array, tile by tile along k."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from sw.formats.csr import Csr
from sw.golden.arithmetic import add, in_slots
from sw.golden.compare import check_against_scipy
from sw.golden.stationary_product import bus_words, multiply_stationary
from sw.golden.weight_stationary import StationaryColumn, bus_cycles, partial_sums, places_of, row_sums


def operand(rows: int, columns: int, value: str, seed: int) -> Csr:
    rng = np.random.default_rng(seed)
    matrix = sp.csr_array(rng.random((rows, columns)) < 0.4)
    matrix.sort_indices()
    count = matrix.nnz
    if value.startswith("int"):
        bits = rng.integers(-(2**31), 2**31, count).astype(np.int32).view(np.uint32)
    else:
        bits = (rng.normal(size=count) * 2.0 ** rng.integers(-12, 12, count)).astype(np.float32).view(np.uint32)
    pointers, coordinates = matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32)
    bits = in_slots(bits, value)
    return Csr(rows=rows, columns=columns, pointers=pointers, coordinates=coordinates, bits=bits, value=value)


@pytest.mark.parametrize("acf", ["csr", "coo", "dense"])
@pytest.mark.parametrize("vector", [1, 2, 4])
@pytest.mark.parametrize("value", ["int8", "fp32", "bf16"])
def test_each_tile_is_the_array_and_tiles_follow_one_another(value: str, vector: int, acf: str) -> None:
    a, b, tile_k, words = operand(9, 40, value, 1), operand(40, 5, value, 2), 17, bus_words(acf, vector)
    columns = b.transposed()
    expected: dict[tuple[int, int], int] = {}
    for k in range(0, a.columns, tile_k):
        chosen = (a.coordinates >= k) & (a.coordinates < k + tile_k)
        rows = np.repeat(np.arange(a.rows), np.diff(a.pointers))[chosen]
        lists: Any = rows, a.coordinates[chosen] - k, a.bits[chosen]
        if acf == "dense":
            lists = places_of(*lists, (a.rows, min(tile_k, a.columns - k)))
        cycles = bus_cycles(*lists, acf=acf, words=words, vector=vector)
        for j in range(b.columns):
            part = slice(columns.pointers[j], columns.pointers[j + 1])
            within = (columns.coordinates[part] >= k) & (columns.coordinates[part] < k + tile_k)
            column = StationaryColumn(columns.coordinates[part][within] - k, columns.bits[part][within], dense=False)
            for found in row_sums(cycles, column, vector=vector, sums=partial_sums(value), value=value):
                if found.met:
                    place, here = (found.row, j), np.array([found.value], np.uint32)
                    before = expected.get(place)
                    if before is not None:
                        here = add(np.array([before], np.uint32), here, value=value)
                    expected[place] = int(here[0])
    product = multiply_stationary(a, b, acf=acf, words=words, vector=vector, value=value, tile_k=tile_k)
    c = product.structural
    rows = np.repeat(np.arange(c.rows), np.diff(c.pointers))
    assert dict(zip(zip(rows.tolist(), c.coordinates.tolist(), strict=True), c.bits.tolist(), strict=True)) == expected
    assert check_against_scipy(a, b, c, value=value).correct


def test_the_order_of_additions_follows_the_cycles() -> None:
    """Formats and sides along k change a sum; otherwise they could not be told from one another."""
    a, b = operand(30, 60, "fp32", 1), operand(60, 30, "fp32", 2)

    def bits(**changes: int | str) -> bytes:
        given = {"acf": "csr", "words": 9, "vector": 4, "tile_k": 60} | changes
        return multiply_stationary(a, b, value="fp32", **given).structural.bits.tobytes()  # type: ignore[arg-type]

    found = {bits(), bits(acf="coo"), bits(acf="dense"), bits(tile_k=20), bits(vector=2)}
    assert len(found) == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"acf": "dia"}, "format of A must be one of dense, csr, coo, not 'dia'"),
        ({"value": "fp32"}, "Operands are int8 and int8, the design computes fp32"),
    ],
)
def test_what_no_machine_multiplies(changes: dict[str, str], message: str) -> None:
    a = operand(4, 4, "int8", 1)
    given = {"acf": "csr", "words": 3, "vector": 1, "value": "int8", "tile_k": 4} | changes
    with pytest.raises(ValueError, match=message):
        multiply_stationary(a, a, **given)  # type: ignore[arg-type]


def test_nothing_times_something() -> None:
    empty = Csr(
        rows=3,
        columns=4,
        pointers=np.zeros(4, np.int64),
        coordinates=np.zeros(0, np.uint32),
        bits=np.zeros(0, np.uint32),
        value="int8",
    )
    c = multiply_stationary(empty, operand(4, 4, "int8", 1), acf="csr", words=3, vector=1, value="int8", tile_k=2)
    assert (c.structural.nnz, c.macs) == (0, 0)
