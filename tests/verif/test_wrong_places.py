"""Planned replacement with lists that lie: an error that names the lie, the same product, or values that the comparison finds.

Whatever the list, the windows and A's columns say, the run ends and writes nothing outside its window; ``docs/faults.md`` says
what the hardware sees of it.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from sw.golden.compare import compare_bits
from sw.runtime.registers import ErrorCode, field_value
from sw.runtime.simulation.engine import observe
from tests.verif.fault_bench import CASES, FaultBench, Outcome
from verif.counters import check_counters
from verif.planned_list import PlannedList, planned_list
from verif.stored import tells_rows, wrong_product

pytestmark = pytest.mark.slow

Words = NDArray[np.uint32]
# Of a word that says where a row goes, and of the second word of 64 bits of a window.
ENTRY, LIMIT, KEPT = 16, 48, 24
EARLY = np.uint32(1 << 15)


@pytest.fixture(scope="module")
def bench() -> Iterator[FaultBench]:
    with FaultBench(CASES["planned"]) as made:
        yield made


def restored(bench: FaultBench) -> PlannedList:
    bench.restore()
    return planned_list(bench.image, bench.design.lanes)


def words(bench: FaultBench, name: str) -> Words:
    return bench.image.regions[name].data.view("<u4")


def put_place(bench: FaultBench, place: int, line: int, entry: int) -> None:
    words(bench, "b_positions")[2 * place + 1] = line | entry << ENTRY


def entries_of(found: PlannedList) -> int:
    """How many entries there are."""
    (lines,) = {window.metadata for window in found.tiles}
    return lines * found.lanes


def placed_rows(found: PlannedList, tile: int) -> list[int]:
    """Places that the tile loads and whose rows take lines."""
    window = found.tiles[tile]
    first = window.begin + window.kept
    return [place for place in range(first, first + window.placed) if found.ends[place] > found.begins[place]]


def same(bench: FaultBench) -> bool:
    """Whether C is what it is without the lie."""
    return bool(compare_bits(bench.golden, bench.image.c(bench.driver.read("C_NNZ"))).correct)


def ended(bench: FaultBench, what: str) -> tuple[Outcome, bool]:
    """How a run on what lies in memory ends, and whether C is right.

    It may not hang, nor write where it may not; where memory says what C is, it is that.
    """
    bench.start()
    outcome = bench.finish()
    assert outcome.ended, f"{what}: {outcome}"
    assert not [finding for finding in bench.simulation.findings if finding.write], what
    assert bench.simulation.statistics.protocol == 0, what
    right = outcome.good and same(bench)
    if outcome.good and tells_rows(bench.image, bench.design):
        assert wrong_product(bench.image, bench.image.c(bench.driver.read("C_NNZ")), bench.design) is None, what
    counters, observed = bench.driver.counters(), observe(bench.simulation, bench.image)
    assert check_counters(counters, observed, design=bench.design, ended_well=False) == [], what
    bench.soft_reset()
    return outcome, right


def test_the_case_has_what_lists_may_lie_about(bench: FaultBench) -> None:
    found = restored(bench)
    assert {window.early for window in found.tiles} == {False, True}
    assert any(window.placed < window.size - window.kept for window in found.tiles), "rows go by"
    first = [set(found.lines_of(place)) for place in placed_rows(found, 0)]
    later = [set(found.lines_of(place)) for tile in range(1, len(found.tiles)) for place in placed_rows(found, tile)]
    assert any(not one.isdisjoint(other) for one in first for other in later), "rows take the lines of others"


def test_a_row_may_end_where_the_partition_does_and_no_line_later(bench: FaultBench) -> None:
    found = restored(bench)
    registers = bench.registers
    lines = registers["B_LINES"] - registers["FIFO_LINES_B"] - found.tiles[0].metadata
    for tile in (0, 1, 3):
        for place in placed_rows(found, tile):
            for beyond in (0, 1, 1 << 14):
                restored(bench)
                line = lines - len(found.lines_of(place)) + beyond
                put_place(bench, place, line, int(found.entry[place]))
                outcome, _ = ended(bench, f"place {place} at line {line}")
                if beyond:
                    assert (outcome.code, outcome.detail) == (ErrorCode.BAD_PLACE, place), f"line {line}: {outcome}"
                else:
                    assert outcome.code in (ErrorCode.NONE, ErrorCode.BAD_ROW), f"line {line}: {outcome}"
    bench.good_run()


def test_an_entry_is_one_of_the_partition(bench: FaultBench) -> None:
    """Also that of a row that goes by."""
    found = restored(bench)
    entries = entries_of(found)
    for place in range(1, len(found.entry)):
        for entry in (entries, (1 << 16) - 1):
            restored(bench)
            put_place(bench, place, int(found.line[place]), entry)
            outcome, _ = ended(bench, f"place {place} with entry {entry}")
            assert (outcome.code, outcome.detail) == (ErrorCode.BAD_PLACE, place), f"entry {entry}: {outcome}"
    bench.good_run()


def test_nonzeros_name_an_entry_and_a_load_that_are(bench: FaultBench) -> None:
    found = restored(bench)
    entries, bits = entries_of(found), found.entry_bits
    assert entries < 1 << bits
    pointers = words(bench, "a_pointers")
    for row in range(bench.a.rows):
        begin, end = int(pointers[row]), int(pointers[row + 1])
        size = found.tiles[row // found.tile_rows].size
        for at, column, detail in ((begin, entries, entries), (end - 1, size << bits | 1, 1), (begin, 0xFFFFFFF1, 1)):
            if begin < end:
                restored(bench)
                words(bench, "a_elements")[2 * at] = column
                outcome, _ = ended(bench, f"row {row}, column {column}")
                assert (outcome.code, outcome.detail) == (ErrorCode.BAD_COORDINATE, detail), f"row {row}: {outcome}"
    bench.good_run()


def columns_of_a(bench: FaultBench, changed: Callable[[int, int], int]) -> None:
    """Puts another column, of the present one and the size of its tile's window."""
    found = restored(bench)
    pointers, columns = words(bench, "a_pointers"), words(bench, "a_elements")
    for row in range(bench.a.rows):
        size = found.tiles[row // found.tile_rows].size
        for at in range(int(pointers[row]), int(pointers[row + 1])):
            columns[2 * at] = changed(int(columns[2 * at]), size)


def test_a_load_may_be_told_too_late(bench: FaultBench) -> None:
    """Each nonzero waits for the tile's last row, and C is right."""
    bits = restored(bench).entry_bits
    columns_of_a(bench, lambda column, size: column & (1 << bits) - 1 | (size - 1) << bits)
    outcome, right = ended(bench, "all wait")
    assert right, outcome
    bench.good_run()


def test_a_load_that_is_told_too_early_is_not_seen(bench: FaultBench) -> None:
    """No nonzero waits: the run ends, and nobody can say with what."""
    bits = restored(bench).entry_bits
    columns_of_a(bench, lambda column, size: column & (1 << bits) - 1)
    assert not tells_rows(bench.image, bench.design)
    ended(bench, "no nonzero waits")
    bench.good_run()


def test_a_row_that_is_overwritten_before_its_last_use_is_found_by_its_values(bench: FaultBench) -> None:
    """The hardware sees it where columns fall. Else values are wrong, and the comparison says so."""
    found = restored(bench)
    ends, wrong = set(), 0
    for tile in range(1, len(found.tiles)):
        for place in placed_rows(found, tile):
            for victim in placed_rows(found, tile - 1):
                restored(bench)
                put_place(bench, place, int(found.line[victim]), int(found.entry[place]))
                told = tells_rows(bench.image, bench.design)
                outcome, right = ended(bench, f"place {place} on the lines of place {victim}")
                assert outcome.code in (ErrorCode.NONE, ErrorCode.BAD_ROW, ErrorCode.BAD_PLACE), outcome
                assert right or not told or outcome.code == ErrorCode.BAD_PLACE, "memory says what C is"
                ends.add(outcome.code)
                wrong += outcome.good and not right
    assert wrong > 0 and ErrorCode.NONE in ends
    bench.good_run()


def table(bench: FaultBench) -> NDArray[np.uint64]:
    found = restored(bench)
    return bench.image.regions["a_tile_map"].data.view("<u8")[: 2 * len(found.tiles)].reshape(-1, 2)


def test_rows_may_go_by_that_could_stay(bench: FaultBench) -> None:
    """A window that says that fewer rows find place costs traffic alone, unless a later tile counts on them."""
    words_of_tiles = table(bench)
    words_of_tiles[:, 0] &= np.uint64((1 << LIMIT) - 1)
    outcome, right = ended(bench, "no row finds place")
    assert right, outcome
    bench.good_run()


@pytest.mark.parametrize("kept", [0, 2, 3])
def test_windows_that_do_not_begin_with_a_place_for_all_that_are_there(bench: FaultBench, kept: int) -> None:
    """The run ends. A window keeps no more places than it has."""
    for tile in range(bench.tiles_gathered):
        words_of_tiles = table(bench)
        size = int(words_of_tiles[tile, 1]) & 0xFFFFFF
        words_of_tiles[tile, 1] = int(words_of_tiles[tile, 1]) & ~(0x7FFFFF << KEPT) | kept << KEPT
        outcome, _ = ended(bench, f"tile {tile} keeps {kept}")
        if kept > size:
            assert (outcome.code, outcome.detail) == (ErrorCode.BAD_WINDOW, tile), outcome
    bench.good_run()


@pytest.mark.parametrize("what", ["begin", "end"])
@pytest.mark.parametrize("by", [-4, -1, 1, 3, 1 << 20, 1 << 30])
def test_rows_that_begin_or_end_elsewhere(bench: FaultBench, what: str, by: int) -> None:
    """The product of what lies in memory, or an error. A longer row takes the lines of another one, or leaves the partition."""
    found = restored(bench)
    codes = set()
    for place in range(1, len(found.entry)):
        restored(bench)
        region, at = ("b_positions", 2 * place) if what == "begin" else ("b_pointers", place + 1)
        words(bench, region)[at] = (int(words(bench, region)[at]) + by) & 0xFFFFFFFF
        outcome, _ = ended(bench, f"{what} of place {place} {by:+}")
        codes.add(outcome.code)
    if abs(by) >= 1 << 20:
        assert ErrorCode.NONE not in codes, "memory ends before"
    bench.good_run()


@pytest.mark.parametrize("says", [False, True])
def test_what_windows_say_of_loads_ahead(bench: FaultBench, says: bool) -> None:
    """Without a word of it each tile waits for the one before, and C is right; where all say so the run ends as well."""
    restored(bench)
    high = words(bench, "a_tile_map")[: 4 * bench.tiles_gathered]
    high[3::4] = high[3::4] | EARLY if says else high[3::4] & ~EARLY
    outcome, right = ended(bench, "early")
    assert right or says, outcome
    bench.good_run()


def test_windows_whose_entries_are_fewer(bench: FaultBench) -> None:
    """An entry or a nonzero's entry is outside then."""
    table(bench)
    high = words(bench, "a_tile_map")[: 4 * bench.tiles_gathered]
    high[3::4] = high[3::4] & 0xFFFF | 5 << 16
    outcome, _ = ended(bench, "five lines of entries")
    assert outcome.code in (ErrorCode.BAD_PLACE, ErrorCode.BAD_COORDINATE), outcome
    assert field_value("MODES", "planned", bench.registers["MODES"])
    bench.good_run()
