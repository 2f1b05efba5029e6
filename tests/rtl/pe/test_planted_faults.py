"""The jobs of the PE's tests find faults planted in its source.

Each fault replaces one snippet of a block's source; each sixth one is planted in each run, all in long ones.
"""

import random

import pytest

from tests.rtl.pe.bench import Conditions, PeBench
from tests.rtl.pe.jobs import changing_sources, mixed_jobs, segment
from tests.rtl.planted import assert_present, planted
from tests.tools import some_of

pytestmark = pytest.mark.plants

# Leaves with many line slots, and with few.
SIZES = {"radix": 8, "lanes": 2, "value": "fp32", "leaf_lines": 4, "queue_lines": 4}
ADDRESSES = {"line_address_width": 14, "address_width": 40}

PE = "gustavson.GustavsonPe"
#: name -> (module, source snippet, what it becomes)
FAULTS = {
    "ties_against_leaf_order": ("merge_level", "right.item.coordinate < left", "right.item.coordinate <= left"),
    "comparator_without_top_bit": (
        "merge_level",
        "right.item.coordinate < left.item.coordinate",
        "right.item.coordinate[:31] < left.item.coordinate[:31]",
    ),
    "waits_for_one_child_only": ("merge_level", " & (right.valid | right_over)", ""),
    "absent_leaf_is_present": (
        "merge_level",
        "right_absent.eq(scheduler.is_last & ~last_child[0])",
        "right_absent.eq(0)",
    ),
    "root_forgets_what_is_over": (
        "merge_tree",
        "noted_left.eq(left_over | (~takes_right",
        "noted_left.eq((~takes_right",
    ),
    "jobs_run_into_each_other": ("combiner", "held.valid & ~held.last & self.i.valid", "held.valid & self.i.valid"),
    "second_of_pair_stays": ("combiner", "m.d.sync += held.valid.eq(0)", "m.d.sync += held.eq(self.i)"),
    "pairs_are_not_added": ("combiner", "Mux(summed, add.result, stage.value)", "stage.value"),
    "end_of_job_lost_in_pair": ("combiner", "held.last | (pair & self.i.last)", "held.last"),
    "units_are_scaled": ("scaler", "Mux(unit, stage.value, multiply.result)", "multiply.result"),
    "weights_of_another_job": ("scaler", "with m.If(self.job_over):", "with m.If(self.job_over & turn[0]):"),
    "begins_at_lane_0": ("leaf_unpacker", "now.lane.eq(begun.lane)", "now.lane.eq(0)"),
    "line_freed_too_late": ("leaf_unpacker", "(now.last | now.lane.all())", "now.lane.all()"),
    "ragged_line_not_fetched": ("intake", "+ lane + (self.lanes - 1)) >> lane_bits", "+ lane) >> lane_bits"),
    "slots_overrun": ("slot_usage", "case.used[lines.bit_length() - 1 :] == 0", "at_most(case.used, lines)"),
    "slots_overrun_by_a_burst": ("slot_usage", "at_most(case.used, lines - burst)", "at_most(case.used, lines)"),
    "long_slots_overrun": (
        "slot_usage",
        "at_most(case.used, long_lines - long_burst)",
        "at_most(case.used, long_lines)",
    ),
    "rest_of_long_leaf": ("leaf_requests", "lines[: long_burst.bit_length() - 1]", "lines[: burst.bit_length() - 1]"),
    "long_lines_over_short": ("line_store", "few | base", "few"),
    "memory_overtakes_sram": ("leaf_feeder", "Mux(issue, made.in_memory, held_in_memory)", "made.in_memory"),
    "bursts_not_hinted_at": ("leaf_feeder", "range(1, lines // burst + 1)", "range(0)"),
    "sram_line_lost_to_memory": ("line_store", "delayed.i.valid.eq(sram.valid & ~direct)", "delayed.i.valid.eq(0)"),
    "node_overrun": (
        "node_store",
        "full = (queried.tail ^ queried_head) == self.node_depth",
        "full = queried.tail != queried.tail",
    ),
    "hint_forgotten": (
        "hint_queue",
        "returned.valid.eq(self.failed.valid & (self.hint.valid | self.waiting))",
        "returned.valid.eq(0)",
    ),
    "next_fiber_begins_in_last_lane": ("packer", "lane.eq(Mux(nonzero.last, 0, lane + 1))", "lane.eq(lane + 1)"),
}


def exercise(pe: type) -> None:
    bench = PeBench(pe(**ADDRESSES, **SIZES))
    for seed, conditions in enumerate(
        (Conditions(), Conditions(0.7, 0.6, 4, 0.4, (1, 20), 0.4), Conditions(fiber=0.2))
    ):
        rng = bench.rng = random.Random(seed)
        bench.run(mixed_jobs(rng, "fp32", SIZES["radix"], 90, memory=0.4), conditions)
    long = [segment(rng, "fp32", list(range(n, 600, 2)), in_memory=True) for n in range(2)]
    bench.run([long], Conditions(fiber=0.2, fetch_latency=(1, 1)))
    # All leaves long, and their lines late: many nodes wait to be served, again and again.
    starved = [
        segment(rng, "fp32", sorted(rng.sample(range(9999), 150)), in_memory=True) for _ in range(SIZES["radix"])
    ]
    bench.run([starved], Conditions(fetch_latency=(20, 60), fetch_grant=0.3))
    bench.run(changing_sources(rng, "fp32", SIZES["lanes"]), Conditions(sram_latency=40, fetch_latency=(1, 1)))


def test_faults_are_of_the_present_source():
    assert_present("pe", FAULTS.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(FAULTS, every=6))
def test_fault_is_found(name, tmp_path, monkeypatch):
    with planted(tmp_path, monkeypatch, "pe", FAULTS[name], PE) as (pe,), pytest.raises(AssertionError):
        exercise(pe)


def test_without_a_fault_nothing_is_found(tmp_path, monkeypatch):
    with planted(tmp_path, monkeypatch, "pe", None, PE) as (pe,):
        exercise(pe)
