"""Policies, rules and cost model of outer and inner products."""

import numpy as np
import pytest

from gen.design import load_design
from sw.cost.dataflows import predict_dataflow
from sw.model.judge import judge
from sw.model.tier import simulate
from sw.operands import to_csr
from sw.operands.operand import Operand
from sw.plan.plan import plan
from sw.policies.dataflows import space
from sw.policies.registry import DATAFLOWS_OF, schedule
from sw.scheme.errors import SchemeError
from sw.stats.workload import Workload
from tests.sw.stats.matrices import MATRICES, power_law

DATAFLOWS = ("outer", "inner")
POLICIES = [name for name, dataflows in DATAFLOWS_OF.items() if "outer" in dataflows]


def design(dataflow, *more):
    return load_design("tiny", [f"pe.dataflow={dataflow}", *more])


def csr(matrix):
    return to_csr(Operand(source="test", name="test", matrix=matrix), "int32")


def run(machine, scheme, matrix):
    return simulate(machine, plan(scheme, csr(matrix), csr(matrix), machine))


@pytest.mark.parametrize("dataflow", DATAFLOWS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["noise", "mesh", "power_law", "dense", "one"])
def test_every_policy_makes_a_scheme_that_runs(dataflow, policy, name):
    machine, matrix = design(dataflow), MATRICES[name]
    options = {"budget": 3} if policy == "optimal" else {}
    scheme = schedule(policy, matrix, matrix, machine, judge=judge(machine), **options)
    found = run(machine, scheme, matrix)
    assert scheme.policy == policy
    assert found.counters["macs"] == (matrix @ matrix).sum()
    assert found.cycles > 0


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_all_of_the_space_is_better_than_a_part_of_it(dataflow):
    machine, matrix = design(dataflow), power_law(300)
    ask = judge(machine)
    few, many = (schedule("optimal", matrix, matrix, machine, judge=ask, budget=n).cycles for n in (1, 12))
    every = [
        ask(scheme, workload.a, workload.b)
        for workload in [Workload(matrix, matrix, lanes=machine.lanes)]
        for scheme in list(space(workload, machine))[::7]
    ]
    assert many <= few
    assert many <= 1.1 * min(every)  # 12 of some hundred, by the cost model's order


def test_schemes_whose_tables_have_no_memory_are_left_out():
    """The model refuses some: the best of the others is taken, and the refusal said where there are no others."""
    machine, matrix = design("inner"), power_law(300)
    ask = judge(machine)
    best = schedule("optimal", matrix, matrix, machine, judge=ask, budget=12)

    def refusing(scheme, a, b):
        if (scheme.T_j, scheme.T_k, scheme.order) == (best.T_j, best.T_k, best.order):
            raise MemoryError("no table so large")
        return ask(scheme, a, b)

    other = schedule("optimal", matrix, matrix, machine, judge=refusing, budget=12)
    assert (other.T_j, other.T_k, other.order) != (best.T_j, best.T_k, best.order) and other.cycles >= best.cycles
    with pytest.raises(MemoryError, match="no table"):
        schedule("auto", matrix, matrix, machine, judge=lambda *_: (_ for _ in ()).throw(MemoryError("no table")))


# Prediction over model: the mean over tilings, the least and the largest of one. The cost model takes tiles as evenly filled;
# those of a band are full on the diagonal and empty beside it.
EVEN = (0.89, 1.11), 0.5, 2.0
BAND = (0.9, 1.35), 0.4, 3.5


@pytest.mark.parametrize("dataflow", DATAFLOWS)
@pytest.mark.parametrize(("name", "band"), [("noise", EVEN), ("mesh", EVEN), ("power_law", EVEN), ("banded", BAND)])
def test_predicted_bytes_and_cycles_follow_the_model(dataflow, name, band):
    (low, high), least, most = band
    machine, matrix = design(dataflow), MATRICES[name]
    workload = Workload(matrix, matrix, lanes=machine.lanes)
    ratios = {"cycles": [], "bytes": []}
    for scheme in list(space(workload, machine))[::11]:
        found = run(machine, scheme, matrix)
        told = predict_dataflow(workload, machine, scheme)
        moved = sum(sum(kinds.values()) for kinds in found.dram_bytes.values())
        ratios["cycles"].append(told.cycles / found.cycles)
        ratios["bytes"].append(told.dram_bytes / moved)
    for values in ratios.values():
        assert low < np.exp(np.mean(np.log(values))) < high, values
        assert least < min(values) and max(values) < most, values


def test_overbooked_tiles_are_as_many_as_asked_for():
    machine, matrix = design("inner", "buffer.bytes=16384"), power_law(2000)
    found = [run(machine, schedule("swiftiles", matrix, matrix, machine, y=y), matrix) for y in (0.05, 0.5)]
    shares = [r.tiles["overbooked"] / max(1, r.tiles["total"] - r.tiles["skipped_empty"]) for r in found]
    assert shares[0] < 0.25 < shares[1] + 0.25
    prescient = run(machine, schedule("prescient", matrix, matrix, machine), matrix)
    assert prescient.tiles["overbooked"] == 0


def test_what_only_gustavson_has_is_refused():
    machine, matrix = design("outer"), MATRICES["noise"]
    with pytest.raises(
        SchemeError, match="^scheme: policy = 'd2t2': must be one of uniform, .* where pe.dataflow is outer$"
    ):
        schedule("d2t2", matrix, matrix, machine)
    scheme = schedule("hyte", matrix, matrix, machine)
    tuned = type(scheme).from_dict({**vars(scheme), "tuning": True})
    with pytest.raises(SchemeError, match="only gustavson has it, and the design's pe.dataflow is outer$"):
        tuned.validate(machine, *(matrix.shape[0],) * 3)
    small = type(scheme).from_dict({**vars(scheme), "buffer_bytes": {"A": 16, "B": 512, "C": 512}})
    with pytest.raises(SchemeError, match=r"^scheme: buffer_bytes.A = 16: must be at least 256$"):
        small.validate(machine, *(matrix.shape[0],) * 3)
