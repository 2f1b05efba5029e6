"""The tiles of the array's tests find faults planted in its source: each sixth one in each run, all in long ones."""

import random
from typing import Any

import pytest

from sw.golden.weight_stationary import StationaryColumn, bus_cycles
from tests.rtl.pe.weight_stationary_bench import run
from tests.rtl.pe.weight_stationary_cases import Sizes, bits, column, streamed
from tests.rtl.planted import assert_present, planted
from tests.tools import some_of

pytestmark = pytest.mark.plants

ARRAY = "weight_stationary_array.WeightStationaryArray"
#: name -> (module, source snippet, what it becomes)
FAULTS = {
    "value_of_the_next_pair": ("match_buffer", "Cat(1, onehot_index(equal))", "onehot_index(equal << 1) << 1"),
    "entries_of_the_column_before": ("match_buffer", "coordinate < self.limit)", "1)"),
    "column_is_not_emptied": ("column_loader", "self.quiet & self.occupied", "0"),
    "row_goes_on_in_the_next": (
        "bus_lanes",
        "first.eq(~bare & (~opened | (words[0].payload != row)))",
        "first.eq(~opened)",
    ),
    "dense_row_does_not_begin_at_0": ("bus_lanes", "origin.eq(Mux(first, 0, place))", "origin.eq(place)"),
    "triples_are_pairs": ("bus_lanes", "(Acf.COO, ~dense & triples)", "(Acf.COO, 0 & triples)"),
    "pass_is_not_ended": ("bumped_walk", "& ~begun & (following != first)", "& 0 & (following != first)"),
    "pass_ends_early": ("bumped_walk", "coordinate <= self.last_column", "coordinate < self.last_column"),
    "passed_for_ever": ("bumped_walk", "[begun.eq(1), passed.eq(0)]", "[begun.eq(1)]"),
    "part_of_the_next_pass": (
        "bumped_walk",
        "refill.payload.count.eq(Mux(left < self.region, left, self.region))",
        "refill.payload.count.eq(self.region)",
    ),
    "bumped_match_stays": (
        "bumped_walk",
        "        with m.If(self.leaves):\n            m.d.sync += hits.eq(0)",
        "        with m.If(0):\n            m.d.sync += hits.eq(0)",
    ),
    "released_too_often": (
        "bumped_walk",
        "self.released.eq(pops & ~self.drop)",
        "self.released.eq(self.read_data.valid)",
    ),
    "sums_of_rows_mix": ("vector_mac", "fresh.eq(item.first | (count != self.sums))", "fresh.eq(count != self.sums)"),
    "zero_of_the_wrong_sign": ("vector_mac", 'C(0 if self.value.startswith("int") else 1 << 31', "C(0"),
    "absent_lane_is_multiplied": ("vector_mac", "Mux(hit, multiply.result, nothing)", "multiply.result"),
    "end_of_a_is_lost": (
        "vector_mac",
        "leaves.last.eq(bare | (flushing & ~others))",
        "leaves.last.eq(flushing & ~others)",
    ),
    "row_without_a_match_is_one": ("combiner", "pair & ~self.i.void", "0"),
    "next_a_does_not_wait": ("weight_stationary", "loader.present & ~ending &", "loader.present &"),
    "pe_runs_ahead": (
        "weight_stationary_array",
        "pe.bus.valid.eq(self.bus.valid & ready)",
        "pe.bus.valid.eq(self.bus.valid)",
    ),
    "words_for_another_pe": ("weight_stationary_array", "onehot_index(arbiter.grant))", "0)"),
}


def exercise(block: Any) -> None:
    """Tiles of all formats; fitting and overbooked columns side by side; zeros of both signs alone in their rows; several As."""
    sizes = Sizes(words=6, value="fp32", entries=8, region=4)
    rng = random.Random(17)
    tiles: list[Any] = []
    for acf, depth in (("csr", 13), ("coo", 4), ("dense", 9), ("coo", 13), ("csr", 3)):
        columns = [column(rng, depth, dense, rng.choice([0.6, 1.0]), "fp32") for dense in (True, False)]
        rng.shuffle(columns)
        streams = [streamed(rng, sizes, acf, rows=rows, depth=depth, density=0.4) for rows in (4, 2)]
        tiles.append((columns, *streams))
    zeros = bus_cycles(range(4), [1, 1, 1, 1], [0, 1 << 31] * 2, acf="csr", words=6, vector=4)
    tiles.append(([column(rng, 4, False, 1.0, "fp32"), column(rng, 12, True, 1.0, "fp32")], zeros, [], zeros))
    # Cycles of a row that meet nothing before and after some that do.
    few = StationaryColumn([4, 5], [1 << 30, 1 << 29], False)
    mixed = bus_cycles([0] * 8, range(8), [bits(rng, "fp32") for _ in range(8)], acf="csr", words=6, vector=4)
    tiles.append(([few, few], mixed))
    tiles.append(([column(rng, 4, True, 1.0, "fp32")], streamed(rng, sizes, "csr", rows=2, depth=9, density=0.5)))
    run(2, sizes, tiles, chance=0.9, block=block)


def test_faults_are_of_the_present_source():
    assert_present("pe", FAULTS.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(FAULTS, every=6))
def test_fault_is_found(name, tmp_path, monkeypatch):
    with planted(tmp_path, monkeypatch, "pe", FAULTS[name], ARRAY) as (block,), pytest.raises(AssertionError):
        exercise(block)


def test_without_a_fault_nothing_is_found(tmp_path, monkeypatch):
    with planted(tmp_path, monkeypatch, "pe", None, ARRAY) as (block,):
        exercise(block)
