"""Operands that are not what they should be: every fault in every case is an error, or C is the product of what lies in memory.

The judge is :mod:`verif.stored`, which reads the arrays in memory and knows no tiles. Tile maps call every tile
occupied: ``docs/faults.md`` says what is not seen where tiles are skipped.
"""

import itertools
import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from sw.runtime.registers import ErrorCode, field_value
from tests.verif.fault_bench import CASES, FaultBench
from verif.soak.wrong import extent_of
from verif.stored import put_nonzeros, stored_nonzeros, wrong_product

pytestmark = pytest.mark.slow

ROWS_STRUCK = 3
Words = NDArray[np.uint32]
# What becomes of a row's elements (coordinates and values), of which there are two or more, where coordinates end at `extent`.
Fault = Callable[[Words, int], None]


def put(at: int, value: Callable[[int], int]) -> Fault:
    def spoil(row: Words, extent: int) -> None:
        row[at, 0] = value(extent)

    return spoil


def swap(one: int, other: int) -> Fault:
    def spoil(row: Words, extent: int) -> None:
        row[[one, other]] = row[[other, one]]

    return spoil


def repeat(row: Words, extent: int) -> None:
    row[1, 0] = row[0, 0]


def turn(row: Words, extent: int) -> None:
    row[:] = row[::-1].copy()


FAULTS: dict[str, Fault] = {
    "last column is the extent": put(-1, lambda extent: extent),
    "last column is far outside": put(-1, lambda extent: 1 << 20),
    "last column is the largest": put(-1, lambda extent: (1 << 32) - 1),
    "first column is far outside": put(0, lambda extent: 1 << 20),
    "first column is the last one": put(0, lambda extent: extent - 1),
    "last column is 0": put(-1, lambda extent: 0),
    "ends swapped": swap(0, -1),
    "first two swapped": swap(0, 1),
    "last two swapped": swap(-2, -1),
    "a column twice": repeat,
    "row reversed": turn,
}
# What becomes of a pointer between the row before and the row behind it.
POINTERS: dict[str, Callable[[int], int]] = {
    "one element later": lambda old: old + 1,
    "one element earlier": lambda old: old - 1,
    "0": lambda old: 0,
    "far outside": lambda old: 1 << 20,
    "the largest": lambda old: (1 << 32) - 1,
}


@pytest.fixture(scope="module", params=itertools.product(("plain", "packed"), CASES), ids="-".join)
def bench(request: pytest.FixtureRequest) -> Iterator[FaultBench]:
    records, case = request.param
    with FaultBench(CASES[case], records=records) as made:
        yield made


def words(bench: FaultBench, name: str) -> Words:
    return bench.image.regions[name].data.view("<u4")


def judge(bench: FaultBench, what: str) -> ErrorCode:
    """Runs on what lies in memory; how it ended."""
    if not bench.tiles_gathered:
        for tensor in "ab":
            bench.image.regions[f"{tensor}_tile_map"].data[:] = 0xFF
    bench.start()
    outcome = bench.finish()
    assert outcome.ended, f"{what}: {outcome}"
    assert bench.driver.counters()["tiles_skipped"] == 0, what
    assert not [finding for finding in bench.simulation.findings if finding.write], what
    if outcome.code == ErrorCode.NONE:
        c = bench.image.c(bench.driver.read("C_NNZ"))
        assert wrong_product(bench.image, c, bench.design) is None, what
    bench.soft_reset()
    return outcome.code


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("tensor", ["a", "b"])
def test_wrong_columns(bench: FaultBench, tensor: str, fault: str) -> None:
    registers = bench.registers
    rows = registers["SHAPE_I"] if tensor == "a" else bench.stored_b.rows
    extent = extent_of(registers, "a") if tensor == "a" else bench.stored_b.columns
    pointers = words(bench, "a_pointers")[: rows + 1].astype(int) if tensor == "a" else bench.stored_b.pointers
    long = [row for row in range(rows) if pointers[row + 1] - pointers[row] > 1]
    codes = set()
    for row in random.Random(f"{tensor} {fault}").sample(long, ROWS_STRUCK):
        bench.restore()
        nonzeros = stored_nonzeros(bench.image, tensor)
        FAULTS[fault](nonzeros[pointers[row] : pointers[row + 1]], extent)
        put_nonzeros(bench.image, tensor, nonzeros)
        codes.add(judge(bench, f"{tensor}, row {row}"))
    allowed = {ErrorCode.NONE, ErrorCode.BAD_COORDINATE if tensor == "a" else ErrorCode.BAD_ROW}
    # An entry at a time at which it has another row, or parts of several.
    at_another_time = {ErrorCode.BAD_ROW} if field_value("MODES", "planned", registers["MODES"]) else set()
    assert codes <= allowed | at_another_time, codes
    bench.good_run()


@pytest.mark.parametrize("fault", POINTERS)
@pytest.mark.parametrize("tensor", ["a", "b"])
def test_wrong_pointers(bench: FaultBench, tensor: str, fault: str) -> None:
    rows = bench.fibers(tensor)
    for row in random.Random(f"{tensor} {fault}").sample(range(1, rows), ROWS_STRUCK):
        bench.restore()
        pointers = words(bench, f"{tensor}_pointers")
        pointers[row] = POINTERS[fault](int(pointers[row])) & 0xFFFFFFFF
        judge(bench, f"{tensor}, pointer {row}")
    bench.good_run()
