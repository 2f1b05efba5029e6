"""Planned replacement: plans are walked by a partition of their own, and what they read is counted from the operands."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from gen.design import load_design
from sw.cost.candidates.resident import FEWEST_ROWS, kept_scheme
from sw.cost.candidates.tile_height import best_kept
from sw.cost.predict import predict
from sw.formats.csr import Csr
from sw.model.machine import run_model
from sw.operands.operand import Operand, to_csr
from sw.plan.free_lines import claim, free_lines_of, release, shortest_run
from sw.plan.gather import Index, RowPlan, RowPlanError
from sw.plan.plan import plan
from sw.plan.replacement import place_rows
from sw.runtime.memory_image import build_image
from sw.runtime.registers import field_value
from sw.scheme.terms import LOAD_LIST, LOAD_PLANNED, LOAD_REUSE
from sw.stats.pattern import Pattern
from sw.stats.replacement import least_nonzeros, least_whole_rows
from sw.stats.workload import Workload
from tests.sw.plan.replayed import rows
from tests.sw.stats.matrices import banded, canonical, noise, power_law
from verif.planned_list import planned_list
from verif.stored import stored_nonzeros

SMALL = load_design("edge", ["buffer.bytes=16384", "buffer.fifo_bytes=1024"])
TINY = load_design("tiny")
PATTERNS = (banded(80, 3), noise(80, 80, 0.03), noise(200, 40, 0.04), noise(40, 90, 0.2), banded(300, 2))


@dataclass
class Walked:
    """A partition that a plan fills: which row of B each line and each entry has, by the walk alone.

    ``loaded``, ``bumped``: begins and ends in B's nonzeros of what comes, load by load and use by use.
    """

    a: Pattern
    begins: Index
    pointers: Index
    plan: RowPlan
    lanes: int
    lines: dict[int, int] = field(default_factory=dict)
    entries: dict[int, tuple[int, bool]] = field(default_factory=dict)
    loaded: list[list[tuple[int, int]]] = field(default_factory=list)
    bumped: list[tuple[int, int]] = field(default_factory=list)

    def lines_of(self, place: int) -> range:
        row, line = self.plan.rows_of(np.array([place]))[0], int(self.plan.lines[place])
        return range(line, line - int(self.pointers[row] - self.pointers[row + 1]) // self.lanes)

    def walk(self, data_lines: int, metadata: int) -> None:
        """Every tile: loads overwrite nothing that is in use, and each use finds its row."""
        plan, pointers = self.plan, self.pointers
        assert plan.entries is not None and plan.rows is not None
        in_use: list[tuple[set[int], set[int]]] = [(set(), set())]  # lines and entries, tile by tile
        end_before = 0
        for tile in range(len(self.begins) - 1):
            low, high = self.a.pointers[self.begins[tile : tile + 2]]
            places = [] if len(plan.places) == 0 else plan.places[low:high].tolist()
            fresh, end = int(plan.fresh[tile]), int(plan.windows[tile, 1])
            if low == high:
                assert fresh == end == 0, "nothing is loaded for nothing"
                in_use.append((set(), set()))
                continue
            assert fresh == end_before and end >= fresh, "the list goes on"
            end_before, placed = end, fresh + int(plan.placed[tile])
            for part in (plan.rows[fresh:placed], plan.rows[placed:end]):
                assert (np.diff(part) > 0).all(), "what is loaded rises in memory"
            mine = {n for place in places if place < fresh for n in self.used_lines(place)}
            my_entries = {int(plan.entries[place]) for place in places if place < fresh}
            before = in_use[-1] if plan.early[tile] else (set(), set())
            filled: set[int] = set()
            written: set[int] = set()
            for place in range(fresh, end):
                row, entry = int(plan.rows[place]), int(plan.entries[place])
                taken = set(self.lines_of(place)) if place < placed else set()
                assert (plan.lines[place] >= 0) == bool(taken)
                assert taken <= set(range(data_lines)), "inside the partition"
                assert not taken & (filled | mine | before[0]), (
                    "two rows in one line, or one that is in use overwritten"
                )
                assert 0 <= entry < metadata * self.lanes
                assert entry not in written | my_entries | before[1], "an entry that is in use is overwritten"
                filled |= taken
                written.add(entry)
                self.entries[entry] = row, place >= placed
                self.lines |= dict.fromkeys(taken, row)
            for place in places:
                filled |= self.used_lines(place)
            used_entries = {int(plan.entries[place]) for place in places}
            in_use.append((filled, used_entries))
            self.loaded.append([(int(pointers[k]), int(pointers[k + 1])) for k in plan.rows[fresh:placed]])
            for position, place in zip(range(low, high), places, strict=True):
                self.use(int(self.a.coordinates[position]), place)
            assert data_lines - int(plan.free[tile]) >= len(filled), "more lines are free than there are"

    def used_lines(self, place: int) -> set[int]:
        return set(self.lines_of(place)) if self.plan.lines[place] >= 0 else set()

    def use(self, k: int, place: int) -> None:
        """A nonzero of A finds its row of B: at its lines, or in memory."""
        assert self.plan.entries is not None
        row, away = self.entries[int(self.plan.entries[place])]
        length = int(self.pointers[k + 1] - self.pointers[k])
        if length == 0:
            assert self.pointers[row + 1] == self.pointers[row]
            return
        assert row == k, "the entry is another row's"
        if away:
            self.bumped.append((int(self.pointers[k]), int(self.pointers[k + 1])))
        else:
            where = self.lines_of(place)
            assert len(where) == -(-length // self.lanes) and {self.lines.get(n) for n in where} == {k}, "its lines"


def walked(a: Pattern, T_i: int, pointers: Index, lines: int, lanes: int) -> Walked:
    begins = np.append(np.arange(0, a.rows, T_i), a.rows)
    made = place_rows(a, begins, pointers, lines, lanes)
    found = Walked(a, begins, pointers, made, lanes)
    metadata = int(made.metadata[0])
    assert (made.metadata == metadata).all() and metadata < lines
    found.walk(lines - metadata, metadata)
    return found


@pytest.mark.parametrize("longest", [0, 1, 6, 40])
@pytest.mark.parametrize("lines", [12, 40, 120, 400])
@pytest.mark.parametrize("T_i", [1, 3, 10, 200])
def test_every_use_finds_its_row(T_i: int, lines: int, longest: int) -> None:
    early, bumped = set(), 0
    for seed, matrix in enumerate(PATTERNS):
        a = Pattern.of(matrix)
        for lanes in (2, 4):
            try:
                found = walked(a, T_i, rows(a.columns, longest, seed), lines, lanes)
            except RowPlanError as refused:
                assert refused.field == "T_i" and lines < 400
                continue
            early |= set(found.plan.early[1:].tolist())
            bumped += len(found.bumped)
    if longest == 40 and T_i == 3 and lines == 40:
        assert early == {False, True} and bumped > 0
    if lines == 400 and longest <= 6 and T_i < 200:
        assert bumped == 0, "there is room for all"
        assert early == {True}, "rows of two tiles fit"


def test_a_tile_that_uses_more_rows_than_there_are_entries_is_refused() -> None:
    a = Pattern.of(sp.csr_array(np.ones((4, 60))))
    with pytest.raises(
        RowPlanError, match=r"T_i = 4: must be smaller: tile 0 along i uses 60 rows of B, .* entries for 36"
    ):
        place_rows(a, np.array([0, 4]), np.arange(61), 20, 2)


def test_a_row_that_is_used_last_leaves() -> None:
    """Three rows of one length, place for two: the one that comes again last goes by, and no other is read twice."""
    order = [0, 1, 2, 0, 1, 0, 1, 0, 1, 2]
    a = Pattern(len(order), 3, np.arange(len(order) + 1), np.array(order))
    pointers = 8 * np.arange(4)
    begins = np.arange(len(order) + 1)
    made = place_rows(a, begins, pointers, 10, 4)  # entries take what rows leave
    found = Walked(a, begins, pointers, made, 4)
    found.walk(10 - int(made.metadata[0]), int(made.metadata[0]))
    reads = sorted([k for load in found.loaded for k, _ in load] + [k for k, _ in found.bumped])
    assert reads == [0, 8, 16, 16] or reads == [0, 8, 16], "rows 0 and 1 are read once"


def test_rows_that_a_tile_uses_most_often_find_place() -> None:
    """One tile of all rows, lines for a fifth of what it uses: what goes by is used less often than what stays."""
    rng = np.random.default_rng(7)
    weights = 1 / np.arange(1, 121)
    columns = [np.sort(rng.choice(120, 6, replace=False, p=weights / weights.sum())) for _ in range(200)]
    a = Pattern(200, 120, 6 * np.arange(201), np.concatenate(columns))
    found = walked(a, 200, 4 * np.arange(121), 31 + 25, 4)
    used = np.bincount(a.coordinates, minlength=120)
    assert found.plan.rows is not None
    stays = found.plan.lines >= 0
    assert 10 < stays.sum() < 40
    assert used[found.plan.rows[stays]].min() >= used[found.plan.rows[~stays]].max()


@pytest.mark.parametrize("room", [20, 40, 80])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rows_of_one_length_are_read_as_often_as_an_optimal_buffer_reads_them(seed: int, room: int) -> None:
    """Each tile is a row of A, of few nonzeros; what is used last leaves, or goes by, and rows of two tiles are in use."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 121)
    columns = [np.sort(rng.choice(120, 3, replace=False, p=weights / weights.sum())) for _ in range(500)]
    a = Pattern(500, 120, 3 * np.arange(501), np.concatenate(columns))
    pointers = 4 * np.arange(121)
    found = walked(a, 1, pointers, room, 4)
    reads = sum(map(len, found.loaded)) + len(found.bumped)
    places = room - int(found.plan.metadata[0])
    one = np.ones(120, np.int64)
    assert least_nonzeros(a, one, places) <= reads <= 1.03 * least_whole_rows(a, one, one, places, 2)


def operand(matrix: sp.csr_array) -> Csr:
    return to_csr(Operand(name="m", source="m", matrix=matrix), "fp32")


def skewed(seed: int) -> sp.csr_array:
    """Few columns that many rows use, many that few do; long rows among short ones."""
    return canonical(power_law(400, seed))


@pytest.mark.parametrize("T_i", [2, 16])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_model_reads_what_the_walk_counts(seed: int, T_i: int) -> None:
    a = operand(skewed(seed))
    pattern = Pattern.of(skewed(seed))
    workload = Workload(pattern, pattern, lanes=SMALL.lanes, statistics="exact")
    scheme = kept_scheme("x", workload, SMALL, T_i, LOAD_PLANNED)
    planned = plan(scheme, a, a, SMALL)
    made = planned.rows_of_b
    assert made is not None
    found = Walked(pattern, planned.begins, a.pointers.astype(np.int64), made, SMALL.lanes)
    metadata = int(made.metadata[0])
    found.walk(scheme.rows_lines(SMALL.line_bytes) - metadata, metadata)
    lanes = SMALL.lanes
    beats = 0
    for load in found.loaded:  # neighbours in memory share a line
        beats += len({n for begin, end in load for n in range(begin // lanes, -(-end // lanes))})
    beats += sum(-(-end // lanes) - begin // lanes for begin, end in found.bumped)
    counters = run_model(SMALL, planned).counters
    assert counters["read_b_data"] == beats
    assert counters["bumped_fetches"] == sum(end - begin for begin, end in found.bumped) > 0
    words = 2 * lanes
    listed = [(int(made.fresh[n]), int(made.windows[n, 1])) for n in range(len(made.windows))]
    meta = sum(
        # Two words a place, behind a place that no row has; ends begin a word later.
        -(-((2 * first + 2) % words + 2 * (end - first)) // words) + -(-((first + 2) % words + end - first) // words)
        for first, end in listed
        if end > first
    )
    assert counters["read_b_meta"] == meta, "begins, ends and places"
    predicted = predict(workload, SMALL, scheme).traffic
    assert predicted["b_data"] == SMALL.line_bytes * beats
    assert predicted["b_meta"] == pytest.approx(SMALL.line_bytes * meta, rel=0.12)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_less_is_read_than_where_rows_leave_in_the_order_in_which_they_came(seed: int) -> None:
    pattern = Pattern.of(skewed(seed))
    workload = Workload(pattern, pattern, lanes=SMALL.lanes, statistics="exact")
    read = {}
    for load in (LOAD_LIST, LOAD_REUSE, LOAD_PLANNED):
        heights = (2, 4, 8, 16)
        traffic = [predict(workload, SMALL, kept_scheme("x", workload, SMALL, T_i, load)).traffic for T_i in heights]
        read[load] = min(moved["b_data"] + moved["b_meta"] for moved in traffic)
    assert read[LOAD_PLANNED] < 0.9 * min(read[LOAD_LIST], read[LOAD_REUSE])
    assert read[LOAD_PLANNED] >= 8 * least_nonzeros(pattern, pattern.row_lengths, SMALL.buffer.bytes // 8)


@pytest.mark.parametrize("width", [3, 8])
def test_loads_along_a_band_overlap(width: int) -> None:
    """Entries are as few as are in use at a time, and enough for the rows of two tiles."""
    a = Pattern.of(banded(300, width))
    made = place_rows(a, np.append(np.arange(0, 300, 8), 300), 4 * np.arange(301), 400, 2)
    assert made.early[1:].all()
    assert int(made.metadata[0]) * 2 <= 8 + 2 * width + 8 + 4


def test_a_file_says_planned() -> None:
    pattern = Pattern.of(skewed(1))
    workload = Workload(pattern, pattern, lanes=SMALL.lanes, statistics="exact")
    scheme = kept_scheme("x", workload, SMALL, 16, LOAD_PLANNED)
    scheme.validate(SMALL, workload.I, workload.J, workload.K)
    assert type(scheme).from_json(scheme.to_json()) == scheme and scheme.gathers


@pytest.mark.parametrize("records", ["plain", "packed"])
@pytest.mark.parametrize("T_i", [2, 16])
def test_each_nonzero_names_its_row_in_the_image(T_i: int, records: str) -> None:
    """By the arrays in memory alone: its entry has its row when it is used, and its load is the one that brings the row."""
    design = load_design("edge", ["buffer.bytes=16384", "buffer.fifo_bytes=1024", f"memory.records={records}"])
    hollow = skewed(1).toarray()
    hollow[::7] = 0
    a, b = operand(skewed(2)), operand(canonical(sp.csr_array(hollow)))
    workload = Workload(Pattern.of(a.to_scipy()), Pattern.of(b.to_scipy()), lanes=design.lanes)
    scheme = kept_scheme("x", workload, design, T_i, LOAD_PLANNED)
    image = build_image(design, plan(scheme, a, b, design))
    found = planned_list(image, design.lanes)
    assert field_value("MODES", "planned", image.registers["MODES"]) and found.begins[0] == found.ends[0] == 0
    columns = stored_nonzeros(image, "a")[: a.nnz, 0].astype(np.int64)
    places = found.named(a.pointers, columns)
    assert places.min() > 0, "each has a row, and none the place that stands for those that are there"
    first, end = b.pointers[a.coordinates], b.pointers[a.coordinates + 1]
    some = end > first
    assert not some.all() and (found.begins[places] == first)[some].all() and (found.ends[places] == end)[some].all()
    assert (found.begins[places] == found.ends[places])[~some].all()
    tiles = np.repeat(np.arange(a.rows) // T_i, np.diff(a.pointers))
    firsts = np.array([window.begin for window in found.tiles])
    assert (columns >> found.entry_bits == np.maximum(places - firsts[tiles], 0)).all()
    used = max(max(found.lines_of(place), default=0) for place in range(1, len(found.line)))
    assert used < scheme.rows_lines(design.line_bytes) - found.tiles[0].metadata


def test_a_coordinate_of_a_holds_an_entry_and_a_load() -> None:
    pattern = Pattern.of(skewed(1))
    begins = np.append(np.arange(0, pattern.rows, 8), pattern.rows)
    made = place_rows(pattern, begins, pattern.pointers, 400, 2)
    assert made.entries is not None
    loads = int((made.windows[:, 1] - made.fresh).max())
    most = int(made.entries.max())
    assert made.coordinates == (loads + 1) << most.bit_length() <= 1 << 32
    assert replace(made, entries=None).coordinates == len(made.lines)


def free_of(owners: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Runs of free lines: length, first line."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (owners < 0).astype(int), [0]])))
    return [(int(end - begin), int(begin)) for begin, end in edges.reshape(-1, 2)]


def test_free_lines_are_found_by_length() -> None:
    rng = np.random.default_rng(5)
    free = free_lines_of(200)
    taken: dict[int, tuple[int, int]] = {}
    for number in range(3000):
        if taken and rng.random() < 0.5:
            release(free, *taken.pop(list(taken)[rng.integers(len(taken))]))
        lines = int(rng.integers(1, 30))
        line = shortest_run(free, lines)
        runs = free_of(free.owner)
        fitting = [length for length, _ in runs if length >= lines]
        if not fitting:
            assert line == -1
            continue
        assert (min(fitting), line) in runs, "the shortest one"
        claim(free, line, lines, number)
        taken[number] = line, lines
        assert (free.owner[line : line + lines] == number).all()
    assert shortest_run(free, 201) == -1


def test_no_height_is_lower_than_tiles_may_be() -> None:
    """An operand of which a part is looked at first, whose best tiles that keep all are as low as tiles are."""
    pattern = Pattern.of(banded(500, 8))
    workload = Workload(pattern, pattern, lanes=SMALL.lanes, statistics="exact")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sw.cost.candidates.tile_height.SEARCHED", pattern.nnz // 4)
        ((scheme, prediction),) = best_kept("x", workload, SMALL, load=LOAD_PLANNED)
    assert scheme.load == LOAD_PLANNED and scheme.T_i >= FEWEST_ROWS
    assert prediction == predict(workload, SMALL, scheme)
