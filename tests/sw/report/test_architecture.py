"""The picture of the machine: one drawing for the manual and for reports, shares by hand, timelines and loads."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sw.report.architecture import UNITS, architecture, shares
from sw.report.charts import NARROW, WIDE
from sw.report.timeline import timeline
from sw.runtime.simulation.activity import activity_of, busy_of
from sw.runtime.simulation.loader import Activity

ROOT = Path(__file__).parents[3]


def test_the_manual_has_this_picture():
    command = "python -m sw.report.architecture > docs/architecture.svg"
    assert (ROOT / "docs" / "architecture.svg").read_text() == architecture(), command
    texts = ["".join(text.itertext()) for text in ElementTree.fromstring(architecture()).iter() if "text" in text.tag]
    assert {"Tailors", "HYTE", "MINT"} <= set(texts) and not re.search(r"\d%", architecture())


NOTHING_CONVERTED = {"converts_a": False, "converts_b": False, "converts_c": False}


def record(**counters: int) -> dict:
    moved = dict.fromkeys(("read", "write", "metadata_read", "metadata_write"), 0)
    return {
        "cycles": 1000,
        "counters": counters,
        "dram_bytes": {
            "A": moved | {"read": 1600},
            "B": moved | {"metadata_read": 800},
            "C": moved | {"write": 8000},
        },
        "design": {"axi": {"data_bits": 128}, "pe": {"count": 4}, "memory": NOTHING_CONVERTED},
        "pe_utilization": 0.25,
    }


def test_shares_are_of_all_cycles():
    found = shares(record(stall_lookup=125, stall_conversion=0, pe_stall_input=400, pe_stall_output=40))
    assert found == {
        "lookup": "12.5% full",
        "memory": "reads a beat in 15.0%, writes one in 50.0% of the cycles",
        "pes": "10.0% wait for data, 1.0% blocked",
    }
    assert all(words in architecture(found) for words in found.values()) and found.keys() <= UNITS.keys()
    # An engine that sees no stalls says what it knows.
    assert shares(record())["pes"] == "25.0% of the MACs that they could do"
    assert shares(record() | {"cycles": None}) == {}
    # The converter is waited for where it converts tensors on their way.
    for tensors in ("a", "b", "c", "ab", "abc"):
        converting = record(stall_conversion=50)
        converting["design"]["memory"] = NOTHING_CONVERTED | {f"converts_{tensor}": True for tensor in tensors}
        assert shares(converting)["converter"] == "5.0% waited for"


def test_activity_is_shares_of_intervals():
    names = ["beats_read", "beats_written", "phase_load_a", "phase_load_b", "phase_compute", "phase_drain"]
    names += ["pe_busy", "stall_a_empty", "stall_load", "stall_dispatch", "stall_collect", "stall_write"]
    zeros = dict.fromkeys(names, [0, 0, 0])
    counts = zeros | {"cycles": [16, 32, 40], "pe_busy": [16, 48, 64], "beats_read": [4, 4, 8]}
    seen = Activity(interval=16, counts=counts | {"pe0": [0, 0, 24], "pe1": [0, 0, 40]})
    found = activity_of(seen, 2)
    units = found["units"]
    assert (found["interval"], found["cycles"]) == (16, 40)
    assert units["PEs"] == [0.5, 1.0, 1.0] and units["DRAM reads"] == [0.25, 0.0, 0.5]
    assert busy_of(seen, 2) == [24, 40]
    assert activity_of(Activity(interval=16, counts=zeros | {"cycles": [0]}), 2) is None


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_timeline_has_its_time_and_tells_its_means(width):
    picture = timeline({"PEs": [0.5] * 100 + [1.0] * 100, "waits": [0.0] * 200}, 16, 3190, width)
    assert "PEs 75%; waits 0%" in picture
    cells = re.findall(r'class="k0" x="([\d.]+)" y="\d+" width="([\d.]+)" height="16" fill-opacity="([\d.]+)"', picture)
    # Equal neighbours are one cell; a phone has cells of several intervals.
    assert {float(share) for *_, share in cells} >= {0.5, 1.0} and len(cells) <= 3
    (frame,) = set(re.findall(r'class="frame" x="[\d.]+" y="\d+" width="([\d.]+)"', picture))
    assert sum(float(wide) for _, wide, _ in cells) == pytest.approx(float(frame), rel=0.01)
