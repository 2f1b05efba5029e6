"""The result record: every derived number by hand on a small case."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from sw.engine_result import EngineResult
from sw.golden.compare import Check
from sw.golden.spgemm import multiply
from sw.operands import Operand, to_csr
from sw.runtime.result import PHASES, bounds, result_record, with_model
from sw.tile_sizes import TileSizes

SCHEME = SimpleNamespace(
    policy="forced",
    order="jki",
    T_i=2,
    T_j=2,
    T_k=2,
    buffer_bytes={"A": 256, "B": 7936, "C": 0},
    fifo_bytes={"A": 64, "B": 64},
    mode={"A": "streaming", "B": "buffering", "C": "streaming"},
    tuning=False,
    strips=0,
    row_order="natural",
    partial_rows="carried",
    scratch_bytes=0,
    joins=False,
    load="tile",
    predicted={},
)
# Five products; one element of C cancels.
LEFT = Operand(name="l", source="l.mtx", matrix=sp.csr_array(np.array([[1, 1], [0, 2]])))
RIGHT = Operand(name="r", source="r.mtx", matrix=sp.csr_array(np.array([[3, 4], [-3, 0]])))


@pytest.fixture
def record(design):
    def make(result: EngineResult | None = None, *, correct: bool = True, engine: str = "rtl", model=None) -> dict:
        return make_record(design, result, correct, engine, model)

    return make


def make_record(design, result: EngineResult | None, correct: bool, engine: str, model=None) -> dict:
    a, b = to_csr(LEFT, "int32"), to_csr(RIGHT, "int32")
    product = multiply(a, b, 4, "int32", SCHEME)
    return result_record(
        engine=engine,
        engine_result=result or EngineResult(c=product.structural),
        design=design,
        scheme=SCHEME,
        operands={"A": LEFT, "B": RIGHT},
        product=product,
        checks=[Check(name="x", correct=correct, detail="", compared=1)],
        seconds={"load": 1.0},
        command="fiberloom run l.mtx r.mtx",
        model=model,
    )


CONTRACT = (
    "correct", "kernel", "engine", "design", "operands", "scheme", "macs", "nnz_c", "cycles", "roofline_cycles",
    "roofline_fraction", "bound", "pe_utilization", "dram_bytes", "buffer", "tiles", "tuning", "seconds",
    "useful_bytes", "ideal_cycles",
)  # fmt: skip


def test_derived_numbers(record, traffic):
    got = record(EngineResult(c=None, cycles=46, dram_bytes=traffic, seconds={"build": 2.0}))
    assert got["macs"] == 4
    assert (got["nnz_c"], got["nnz_c_structural"]) == (2, 3)
    # A: 3 elements and 3 pointers; B the same; C: 3 elements and 3 pointers.
    assert got["useful_bytes"] == {"A": 36, "B": 36, "C": 36, "total": 108}
    assert got["dram_bytes"]["total"] == 368
    assert got["bounds"] == {"compute": 2, "dram": 23, "sram": 1}
    assert got["roofline_cycles"] == 23 and got["roofline_fraction"] == 0.5
    assert got["ideal_cycles"] == 7 and got["ideal_fraction"] == 7 / 46
    assert got["bound"] == "dram"
    assert got["pe_utilization"] == 4 / (46 * 2)
    assert list(got["seconds"]) == list(PHASES)
    assert got["seconds"]["build"] == 2.0 and got["seconds"]["load"] == 1.0


def test_every_field_of_the_contract_is_there(record, traffic):
    got = record(EngineResult(c=None, cycles=46, dram_bytes=traffic))
    assert set(CONTRACT) <= set(got)
    assert set(got["scheme"]) >= {"policy", "order", "T_i", "T_j", "T_k", "buffer_bytes", "mode"}
    for tensor in "ABC":
        assert set(got["dram_bytes"][tensor]) == {"read", "write", "metadata_read", "metadata_write"}
        assert set(got["buffer"][tensor]) >= {"peak_bytes", "mean_bytes", "hits", "bumped"}
    assert set(got["tiles"]) == {"total", "skipped_empty", "overbooked"}
    assert got["tuning"] == {"adjustments": 0}
    assert set(got["operands"]["A"]) >= {"rows", "cols", "nnz", "source"}


def test_moving_more_does_not_look_better(record, traffic):
    """Twice the traffic in twice the time keeps the roofline fraction, and halves the ideal one."""
    double = {tensor: {kind: 2 * size for kind, size in kinds.items()} for tensor, kinds in traffic.items()}
    lean = record(EngineResult(c=None, cycles=46, dram_bytes=traffic))
    fat = record(EngineResult(c=None, cycles=92, dram_bytes=double))
    assert fat["roofline_fraction"] == lean["roofline_fraction"]
    assert fat["ideal_fraction"] == lean["ideal_fraction"] / 2


def test_golden_knows_no_time(record):
    got = record(engine="golden")
    unknown = (
        "cycles",
        "roofline_cycles",
        "roofline_fraction",
        "ideal_fraction",
        "bound",
        "pe_utilization",
        "dram_bytes",
    )
    assert [got[name] for name in unknown] == [None] * len(unknown)
    assert got["ideal_cycles"] == 7 and got["correct"]


@pytest.mark.parametrize(
    ("result", "correct", "expected"),
    [(None, True, True), (None, False, False), (EngineResult(c=None, error="axi_read"), True, False)],
)
def test_correct_needs_every_check_and_no_error(record, result, correct, expected):
    assert record(result, correct=correct)["correct"] is expected


def test_bounds_round_up(design):
    assert bounds(design, 5, 17) == {"compute": 3, "dram": 2, "sram": 1}
    assert bounds(design, 0, 0) == {"compute": 0, "dram": 0, "sram": 0}


def test_the_model_is_told_beside_the_hardware(record, traffic):
    measured = EngineResult(c=None, cycles=46, dram_bytes=traffic)
    # A kind that is not there is none moved.
    same = traffic | {"B": {"read": 48, "write": 0}}
    got = record(measured, model=EngineResult(c=None, cycles=40, dram_bytes=same))
    assert got["model"] == {"cycles": 40, "dram_bytes": 368, "traffic_equal": True}
    moved = traffic | {"B": {"read": 0, "metadata_read": 48}}
    got = record(measured, model=EngineResult(c=None, cycles=40, dram_bytes=moved))
    assert got["model"] == {"cycles": 40, "dram_bytes": 368, "traffic_equal": False}
    assert got["correct"] and record(measured)["model"] is None


def test_the_model_fills_what_the_hardware_does_not_count():
    measured = EngineResult(c=None, cycles=46, buffer={"A": {"peak_bytes": 0}, "B": {"peak_bytes": 64}})
    series = {"B": TileSizes(128).add([32, 64])}
    model = EngineResult(c=None, buffer={"B": {"peak_bytes": 60, "mean_bytes": 48.0}}, occupancy=series)
    got = with_model(measured, model)
    assert got.buffer == {"A": {"peak_bytes": 0}, "B": {"peak_bytes": 64, "mean_bytes": 48.0}}
    assert got.occupancy == series and got.cycles == 46
    assert with_model(measured, None) is measured


def test_a_streaming_partition_holds_nothing(record, traffic):
    buffer = record(EngineResult(c=None, cycles=46, dram_bytes=traffic, buffer={"A": {"peak_bytes": 16}}))["buffer"]
    assert buffer["A"] == {"peak_bytes": 16, "mean_bytes": 0, "hits": 0, "bumped": 0, "capacity_bytes": 256}
    assert buffer["B"]["hits"] is None
    assert record(engine="golden")["buffer"]["A"]["hits"] is None
