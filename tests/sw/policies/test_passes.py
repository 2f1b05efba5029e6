"""Conversions beside a run: they count among what is predicted, and schemes that need none of A are weighed against others."""

from dataclasses import replace
from functools import partial

import pytest

from gen.design import load_design
from sw.cost.passes import NO_PASSES, Pass, Passes, TensorPass
from sw.model.judge import judge
from sw.plan.tiles_of_b import passes_over
from sw.policies.registry import POLICIES, schedule
from sw.scheme.errors import SchemeError
from sw.scheme.terms import LISTS, LOAD_TILE
from sw.stats.pattern import Pattern
from tests.sw.plan.test_strips import long_fibers
from tests.sw.stats.matrices import banded, mesh, noise, power_law

EDGE = load_design("edge", ["memory.records=packed"])
SMALL = load_design("edge", ["memory.records=packed", "buffer.bytes=16384", "buffer.fifo_bytes=1024"])
SHORT_QUEUES = load_design("edge", ["memory.records=packed", "pe.queue_lines=32"])
OPERANDS = {"band": banded(1000, 5), "mesh": mesh(30), "noise": noise(500, 500, 0.01), "power law": power_law(400)}
HUGE = Passes(a=TensorPass(alone=Pass(cycles=10**7, dram_bytes=10**8)))
WITHOUT_LISTS = Passes(a=TensorPass(alone=Pass(cycles=10**7)), fixes_a=True)


def total(scheme, matrix, design, passes):
    """Cycles by the model tier, with those of the passes that it decides on."""
    pattern = Pattern.of(matrix)
    return judge(design)(scheme, pattern, pattern) + passes.over(scheme).cycles


@pytest.mark.parametrize(
    ("policy", "design"),
    [("auto", SMALL), ("auto", EDGE), ("optimal", SMALL)],
    ids=["auto-16K", "auto-edge", "optimal-16K"],
)
@pytest.mark.parametrize("name", OPERANDS)
def test_what_is_chosen_has_the_least_total(name, design, policy):
    """Whatever the pass over A costs: no more than the choice where A is never, or always, written anew."""
    A = OPERANDS[name]
    options = {"budget": 40} if policy == "optimal" else {}
    call = {"judge": judge(design), **options}
    as_it_is, anew = (schedule(policy, A, A, design, passes=passes, **call) for passes in (WITHOUT_LISTS, HUGE))
    assert not as_it_is.rewrites_a and anew.rewrites_a
    apart = total(as_it_is, A, design, NO_PASSES) - total(anew, A, design, NO_PASSES)
    for cycles in (1, 1 + abs(apart) // 2, 1 + 2 * abs(apart)):
        passes = Passes(a=TensorPass(alone=Pass(cycles=cycles)))
        found = schedule(policy, A, A, design, passes=passes, **call)
        least = min(total(other, A, design, passes) for other in (as_it_is, anew))
        assert total(found, A, design, passes) <= 1.02 * least, (cycles, found.load)


@pytest.mark.parametrize("design", [SMALL, EDGE], ids=["16K", "edge"])
@pytest.mark.parametrize("name", OPERANDS)
def test_nothing_that_writes_a_anew_where_it_cannot_be(name, design):
    A = OPERANDS[name]
    for policy, options in (("auto", {}), ("auto", {"uneven": True}), ("optimal", {"budget": 10})):
        assert not schedule(policy, A, A, design, judge=judge(design), passes=WITHOUT_LISTS, **options).rewrites_a


@pytest.mark.parametrize("policy", POLICIES)
def test_predictions_have_the_passes(policy):
    """Those of each scheme and of those that it beat; choices of policies without lists are the same."""
    A = OPERANDS["mesh"]
    options = {"budget": 20} if policy == "optimal" else {}
    over_a, rest = Pass(cycles=70, dram_bytes=160), Pass(cycles=1_000, dram_bytes=3_200)
    passes = Passes(a=TensorPass(alone=over_a), rest=rest, fixes_a=True)
    try:
        plain, found = (
            schedule(policy, A, A, SMALL, judge=judge(SMALL), passes=given, **options)
            for given in (Passes(fixes_a=True), passes)
        )
    except SchemeError as error:
        pytest.fail(str(error))
    over = passes.over(plain)
    more = {"cycles": 1_000 + over.cycles, "dram_bytes": 3_200 + over.dram_bytes}
    assert over == (Pass() if plain.rewrites_a else over_a)
    assert (found.T_i, found.T_j, found.T_k, found.mode, found.load) == (
        plain.T_i, plain.T_j, plain.T_k, plain.mode, plain.load,
    )  # fmt: skip
    assert plain.predicted and len(found.alternatives) == len(plain.alternatives)
    for before, after in zip(
        (plain.predicted, *plain.alternatives), (found.predicted, *found.alternatives), strict=True
    ):
        assert {name: after[name] - before[name] for name in more} == more
        assert after.get("judged_cycles", 0) - before.get("judged_cycles", 0) in (0, more["cycles"])
        assert ("judged_cycles" in before) == ("judged_cycles" in after)


def test_what_settles_a_choice_does_not_where_lists_save_a_pass():
    """One tile that fits is the choice at once; with a pass over A it is not."""
    A = OPERANDS["noise"]
    assert schedule("auto", A, A, EDGE, judge=judge(EDGE)).load == LOAD_TILE
    assert schedule("auto", A, A, EDGE, judge=judge(EDGE), passes=HUGE).load in LISTS
    assert schedule("auto", A, A, EDGE, judge=judge(EDGE), passes=HUGE, lists=False).load == LOAD_TILE


def test_what_an_operand_on_its_way_in_adds():
    """Bytes as often as it is read; where a scheme reads it in another way, the pass over memory; of each operand by itself."""
    alone = Pass(cycles=500, dram_bytes=900)
    over_a = TensorPass(alone=alone, times=lambda scheme: 2 * (scheme.T_j == 7), more_bytes=-16)
    over_b = TensorPass(alone=alone, times=lambda scheme: 3 * (scheme.T_i == 5), more_bytes=32)
    passes = Passes(a=over_a, b=over_b, rest=Pass(cycles=1, dram_bytes=1))
    scheme = schedule("hyte", OPERANDS["mesh"], OPERANDS["mesh"], SMALL)
    found = [passes.over(replace(scheme, T_i=i, T_j=j)) for i, j in ((6, 6), (6, 7), (5, 6), (5, 7))]
    assert [(each.cycles, each.dram_bytes) for each in found] == [(1000, 1800), (500, 868), (500, 996), (0, 64)]
    assert passes.over(replace(scheme, T_i=5, row_order="degree")) == Pass(dram_bytes=96)
    assert passes.least_cycles == 0 and HUGE.least_cycles == 10**7
    assert Passes(a=TensorPass(alone=alone), b=over_b).least_cycles == 500


@pytest.mark.parametrize("policy", ["auto", "hyte"])
def test_what_c_on_its_way_out_adds(policy):
    """Its bytes once, be they more or less than those of CSR; the pass over memory where its rows leave in another order."""
    rest, alone = Pass(cycles=1, dram_bytes=2), Pass(cycles=500, dram_bytes=900)
    plain = schedule(policy, OPERANDS["mesh"], OPERANDS["mesh"], SMALL, judge=judge(SMALL))
    for more_bytes in (-48, 0, 64):
        over_c = TensorPass(alone=alone, times=lambda scheme: scheme.passes_over_c, more_bytes=more_bytes)
        passes = Passes(c=over_c, rest=rest)
        for changes, cycles, dram_bytes in (({}, 0, more_bytes), ({"row_order": "degree"}, 500, 900)):
            scheme = replace(plain, strips=0, **changes)
            assert passes.over(scheme) == Pass(cycles=cycles, dram_bytes=dram_bytes)
            found = passes.added(scheme)
            assert found.predicted["cycles"] == scheme.predicted["cycles"] + 1 + cycles
            assert found.predicted["dram_bytes"] == scheme.predicted["dram_bytes"] + 2 + dram_bytes
        assert passes.least_cycles == 0
    # Of all three tensors, and of C where nothing converts it.
    everywhere = Passes(a=TensorPass(alone=alone), b=TensorPass(alone=alone), c=TensorPass(alone=alone))
    as_it_is = replace(plain, load=LOAD_TILE, strips=0, row_order="natural")
    assert everywhere.over(as_it_is) == Pass(cycles=1500, dram_bytes=2700) and everywhere.least_cycles == 1500


def test_a_run_lasts_as_long_as_memory_moves_what_it_converts():
    """The bound is of all tensors together, and of a run, not of the passes before and after it."""
    scheme = schedule("hyte", OPERANDS["mesh"], OPERANDS["mesh"], SMALL)
    cycles, rest = scheme.predicted["cycles"], Pass(cycles=7)
    for of_a, of_c, whole in ((0, 0, cycles), (cycles // 9, cycles // 9, cycles), (cycles, cycles, 4 * cycles)):
        converted = {
            "a": TensorPass(times=lambda scheme: 3, bus_cycles=of_a),
            "c": TensorPass(times=lambda scheme: 1, bus_cycles=of_c),
        }
        passes = Passes(**converted, rest=rest)
        assert passes.added(scheme).predicted["cycles"] == whole + rest.cycles
        assert passes.over(scheme).whole(cycles) == whole


def of(tensor, matrix, cycles, design):
    """A pass over B, or C, that takes so long, or none where the design converts it."""
    pattern = Pattern.of(matrix)
    extent = (pattern.rows, pattern.columns, pattern.columns)
    times = partial(passes_over, tensor, extent=extent, b=pattern, design=design)
    return Passes(**{tensor.lower(): TensorPass(alone=Pass(cycles=cycles), times=times)})


@pytest.mark.parametrize(
    ("policy", "design"),
    [("auto", SMALL), ("auto", EDGE), ("optimal", SMALL)],
    ids=["auto-16K", "auto-edge", "optimal-16K"],
)
@pytest.mark.parametrize("name", OPERANDS)
def test_schemes_that_read_b_in_its_order_are_weighed(name, design, policy):
    """A pass over B that costs much is not made: some scheme has its tiles of whole rows."""
    A = OPERANDS[name]
    options = {"budget": 40} if policy == "optimal" else {}
    call = {"judge": judge(design), **options}
    free, dear = (schedule(policy, A, A, design, passes=of("B", A, cycles, design), **call) for cycles in (0, 10**7))
    passes = of("B", A, 10**7, design)
    assert total(dear, A, design, passes) <= total(free, A, design, passes)
    assert not passes.over(dear).cycles
    assert dear.predicted["cycles"] < 10**7


@pytest.mark.parametrize("name", ["power law", "long fibers"])
def test_strips_are_weighed_against_a_pass_over_c(name):
    """They are chosen as without formats where the pass costs nothing or less than they save, and not where it costs more."""
    A = (OPERANDS | {"long fibers": long_fibers()})[name]
    plain = schedule("auto", A, A, SHORT_QUEUES, judge=judge(SHORT_QUEUES))
    free, cheap, dear = (
        schedule("auto", A, A, SHORT_QUEUES, passes=of("C", A, cycles, SHORT_QUEUES), judge=judge(SHORT_QUEUES))
        for cycles in (0, 10**4, 10**7)
    )
    assert free.strips == cheap.strips == plain.strips > 0 == dear.strips
    assert cheap.predicted["cycles"] == free.predicted["cycles"] + 10**4
    passes = of("C", A, 10**4, SHORT_QUEUES)
    assert total(cheap, A, SHORT_QUEUES, passes) < total(dear, A, SHORT_QUEUES, passes)
    assert not of("C", A, 10**7, SHORT_QUEUES).over(dear).cycles and dear.predicted["cycles"] < 10**7
