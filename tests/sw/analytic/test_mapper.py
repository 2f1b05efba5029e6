"""The mapper: every mapping of small spaces by a list of the test's own, constraints of both dialects, limits, what it writes."""

import itertools
import random
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path

import pytest
import yaml

from sw.analytic.analysis import InvalidMapping, analyze, evaluate
from sw.analytic.errors import MappingError, SpecError
from sw.analytic.mapping import Loop, Mapping
from sw.analytic.processes import in_order
from sw.analytic.result import record
from sw.analytic.search import objective_of, search
from sw.analytic.spec.load import SHIPPED, load_search, load_spec
from sw.analytic.spec.write_mapping import mapping_text
from tests.sw.analytic.test_spec import OLD

SPEC = Path("sparse_product")
SMALL = (
    "problem.instance.M=4",
    "problem.instance.N=4",
    "problem.instance.K=2",
    "architecture.nodes.lanes.spatial.meshX=2",
)
SAFS = "architecture.nodes.Buffer.sparse_optimizations.action_optimization=[]"
FREE = (
    *SMALL,
    SAFS,
    "architecture.nodes.DRAM.sparse_optimizations={}",
    "architecture.nodes.Buffer.sparse_optimizations={}",
    "architecture.nodes.Buffer.attributes.depth=14",
    "architecture.nodes.DRAM.attributes.read_bandwidth=1",
)


def splits(bound: int, parts: int) -> list[tuple[int, ...]]:
    """Factors of a bound, by trying all."""
    return [each for each in itertools.product(range(1, bound + 1), repeat=parts) if prod(each) == bound]


def every_mapping(spec) -> list[Mapping]:
    """All mappings of the shipped machine: DRAM, Buffer, lanes along x; DRAM keeps everything."""
    problem, found = spec.workload.problem, []
    fanout = spec.architecture.compute.mesh_x
    for factors in itertools.product(*(splits(bound, 3) for bound in problem.bounds)):
        if any(each[2] > fanout for each in factors):
            continue
        for outer, inner in itertools.product(itertools.permutations(range(3)), repeat=2):
            loops = (
                tuple(Loop(d, factors[d][2], "x") for d in range(3) if factors[d][2] > 1),
                tuple(Loop(d, factors[d][1]) for d in inner if factors[d][1] > 1),
                tuple(Loop(d, factors[d][0]) for d in outer if factors[d][0] > 1),
            )
            for kept in itertools.product((True, False), repeat=3):
                found.append(Mapping(problem, loops, ((False,) * 3, kept, (True,) * 3)))
    return list({(mapping.loops, mapping.keeps): mapping for mapping in found}.values())


def values(spec, mappings, objectives):
    found = evaluate(spec, mappings)
    delay, energy = found.cycles[found.valid], found.energy[found.valid]
    columns = {"delay": delay, "energy": energy, "edp": delay * energy}
    return list(zip(*(columns[name].tolist() for name in objectives), strict=True))


@pytest.mark.parametrize("objectives", [("delay", "energy"), ("energy",), ("edp",)])
@pytest.mark.parametrize("changes", [FREE, SMALL], ids=["dense", "sparse"])
def test_the_best_of_all_mappings_is_found(changes, objectives):
    spec, space, settings = load_search([SPEC], changes)
    mappings = every_mapping(spec)
    expected = values(spec, mappings, objectives)
    assert 1000 < len(mappings) < 10_000 and 10 < len(expected) < len(mappings)
    found = search(spec, space, replace(settings, objectives=objectives))
    assert found.stopped == "all mappings"
    assert (found.size, found.evaluations, found.valid) == (len(mappings), len(mappings), len(expected))
    assert found.value == min(expected) < max(expected)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("changes", [FREE, SMALL], ids=["dense", "sparse"])
def test_climbs_find_the_best_with_fewer_evaluations(changes, seed):
    spec, space, settings = load_search([SPEC], changes)
    best = search(spec, space, settings)
    assert best.size is not None
    few = best.size // 2
    runs = [
        search(spec, space, replace(settings, seed=seed, evaluations=few), spread=partial(in_order, jobs))
        for jobs in (1, 2)
    ]
    assert runs[0].size is None and runs[0].value == best.value
    assert runs[0].stopped == "evaluations" and runs[0].evaluations == few
    mine, other = (run.best.spec.mapping for run in runs if run.best is not None)
    assert (mine.loops, mine.keeps) == (other.loops, other.keeps) and runs[0].valid == runs[1].valid


@pytest.mark.parametrize("limits", [{}, {"victory": 60}, {"timeout": 30}])
def test_processes_change_nothing(limits, monkeypatch):
    """Several families, each as large as a process takes at once."""
    monkeypatch.setattr("sw.analytic.search.FAMILY", 400)
    spec, space, settings = load_search([SPEC])
    settings = replace(settings, evaluations=1500, **limits)
    runs = [search(spec, space, settings, spread=partial(in_order, jobs)) for jobs in (1, 2, 3)]
    assert runs[0].best is not None
    for run in runs:
        assert run.best is not None and record(run.best) == record(runs[0].best)
        assert (run.value, run.evaluations, run.valid, run.stopped) == (
            runs[0].value, runs[0].evaluations, runs[0].valid, runs[0].stopped,
        )  # fmt: skip
        assert run.reasons == runs[0].reasons
    assert runs[0].stopped == {"victory": "victory condition", "timeout": "timeout"}.get(
        next(iter(limits), ""), "evaluations"
    )


def test_draws_and_neighbours_stay_in_the_space():
    spec, space, _ = load_search([SPEC], SMALL)
    known = {(m.loops, m.keeps) for m in every_mapping(spec) if m.instances(-1) <= 2}
    random_, met, point = random.Random(1), set(), None
    for _ in range(20_000):
        point = space.draw(random_) if point is None or random_.random() < 0.05 else space.neighbour(point, random_)
        try:
            mapping = space.mapping(point)
        except MappingError:
            continue
        met.add((mapping.loops, mapping.keeps))
    assert met <= known and len(met) > 0.9 * len(known)


OLD_CONSTRAINTS = """
architecture_constraints:
  targets:
    - {target: DRAM, type: temporal, factors: M=1 N=0 K1, permutation: NMK}
    - {target: Buffer, type: bypass, keep: [A], bypass: [Z]}
mapspace_constraints:
  targets:
    - {target: Buffer, type: spatial, factors: M=1 K=1 N<=4, permutation: NMK, split: 1}
    - {target: Buffer, type: temporal, permutation: K}
mapper: {optimization-metrics: [delay, energy], algorithm: linear-pruned, num-threads: 4, live-status: false}
"""
NEW_CONSTRAINTS = {
    "DRAM": {"temporal": {"factors": ["M=1", "N=0", "K=1"], "permutation": ["N", "M", "K"]}},
    "Buffer": {"dataspace": {"keep": ["A"], "bypass": ["Z"]}, "temporal": {"permutation": ["K"]}},
    "lanes": {"spatial": {"factors": ["M=1", "K=1", "N<=4"], "permutation": ["N", "M", "K"], "split": 1}},
}


def constrained(dialect: str, tmp_path: Path) -> tuple[list[Path], tuple[str, ...]]:
    """The same constraints in both dialects, and no mapping."""
    sizes = ("problem.instance.M=8", "problem.instance.K=4", "problem.instance.N=16")
    if dialect == "v0.3":
        head, tail = OLD.split("\nmapping:")
        path = tmp_path / "old.yaml"
        path.write_text(head + "\nsparse_optimizations:" + tail.split("\nsparse_optimizations:")[1] + OLD_CONSTRAINTS)
        return [path], sizes
    path = tmp_path / "new.yaml"
    text = (SHIPPED / "sparse_product.yaml").read_text()
    mapping = text[text.index("\nmapping:") : text.index("# Energy of each action")]
    path.write_text(text.replace(mapping, "\n"))
    changes = [f"architecture.nodes.{name}.constraints={yaml.safe_dump(own, default_flow_style=True).strip()}"
               for name, own in NEW_CONSTRAINTS.items()]  # fmt: skip
    return [path], (*sizes, *changes)


@pytest.mark.parametrize("dialect", ["v0.3", "v0.4"])
def test_constraints_hold_for_all_mappings(dialect, tmp_path):
    spec, space, settings = load_search(*constrained(dialect, tmp_path))
    buffer = next(n for n, level in enumerate(spec.architecture.levels) if level.name == "Buffer")
    count = 0
    for point in space.points():
        mapping, count = space.mapping(point), count + 1
        loops = {(p.level, p.loop.dimension, p.loop.axis): p.loop.bound for p in mapping.places}
        dram = len(mapping.loops) - 1
        assert all(dimension == 1 for level, dimension, _ in loops if level == dram), "N alone at DRAM"
        spatial = {dimension: bound for (_, dimension, axis), bound in loops.items() if axis != "time"}
        assert set(spatial) <= {1} and all(bound <= 4 for bound in spatial.values())
        assert mapping.keeps[buffer][0] and not mapping.keeps[buffer][2] and all(mapping.keeps[dram])
        inner = [p.loop.dimension for p in mapping.places if p.level == buffer and not p.loop.is_spatial]
        assert inner[0] == 2, "K is the innermost loop"
    # N = 16: lanes 1, 2 or 4 and any part of the rest at Buffer; the order of M and N there; whether B is kept.
    orders = {1: [5, 4, 3]}
    assert count == 2 * sum(2 * (ways - 1) + 1 for ways in orders[1]) == space.count(10_000)
    if dialect == "v0.3":
        assert settings.objectives == ("delay", "energy") and settings.in_order


@pytest.mark.parametrize("dialect", ["v0.3", "v0.4"])
def test_what_is_written_reads_back_to_the_same_numbers(dialect, tmp_path):
    files, changes = constrained(dialect, tmp_path)
    spec, space, settings = load_search(files, changes)
    found = search(spec, space, settings)
    assert found.best is not None
    path = tmp_path / "best.yaml"
    path.write_text(mapping_text(spec.document, found.best.spec.mapping, spec.architecture))
    assert isinstance(yaml.safe_load(path.read_text())["mapping"][1]["factors"], str if dialect == "v0.3" else list)
    read = analyze(load_spec([*files, path], changes))
    assert record(read) == record(found.best)
    assert objective_of(read, settings.objectives) == found.value
    # In place of a mapping that the specification has.
    if dialect == "v0.4":
        assert record(analyze(load_spec([SPEC], changes[:3], mapping=path))) == record(found.best)


def test_a_mesh_with_two_sides(tmp_path):
    mesh = ("architecture.nodes.lanes.spatial={meshX: 2, meshY: 4}", *SMALL[:3])
    spec, space, settings = load_search([SPEC], (*mesh, SAFS))
    found = search(spec, space, replace(settings, evaluations=2000, objectives=("delay",)))
    assert found.best is not None
    assert found.best.spec.mapping.spread(-1) == (2, 4), "all eight units are in use"
    path = tmp_path / "best.yaml"
    path.write_text(mapping_text(spec.document, found.best.spec.mapping, spec.architecture))
    assert record(analyze(load_spec([SPEC], (*mesh, SAFS), mapping=path))) == record(found.best)


def test_remainders_are_written(tmp_path):
    changes = ("problem.instance.N=60", 'mapping.DRAM.factors=["N=8"]', 'mapping.lanes.factors=["N=8,4"]')
    spec = load_spec([SPEC], changes)
    path = tmp_path / "same.yaml"
    path.write_text(mapping_text(spec.document, spec.mapping, spec.architecture))
    assert "N=8,4" in path.read_text()
    assert record(analyze(load_spec([SPEC], changes[:1], mapping=path))) == record(analyze(spec))


def test_limits():
    spec, space, settings = load_search([SPEC], SMALL)
    victory = search(spec, space, replace(settings, victory=5))
    assert victory.stopped == "victory condition" and victory.evaluations < 1000
    seconds = search(spec, space, replace(settings, evaluations=10**6, seconds=0.3))
    assert seconds.stopped in ("seconds", "all mappings") and seconds.best is not None
    # All mappings are known before the limit: the search ends.
    tiny, little, _ = load_search([SPEC], ("problem.instance.M=2", "problem.instance.N=1", "problem.instance.K=1"))
    whole = search(tiny, little, settings)
    assert whole.size is not None and whole.size < 100
    unending = search(tiny, little, replace(settings, evaluations=whole.size - 1))
    assert unending.evaluations == whole.size - 1


def test_an_interrupt_keeps_the_best():
    spec, space, settings = load_search([SPEC], SMALL)

    def report(found):
        if found.valid == 20:
            raise KeyboardInterrupt

    found = search(spec, space, settings, report)
    assert found.stopped == "interrupt" and found.valid == 20 and found.best is not None

    def at_once(found):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(*load_search([SPEC], (*SMALL, "architecture.nodes.Buffer.attributes.depth=0"))[:2], settings, at_once)


def test_why_nothing_is_valid():
    keep = "architecture.nodes.Buffer.constraints={dataspace: {keep: [A, B, Z]}}"
    spec, space, settings = load_search([SPEC], (*SMALL, keep, "architecture.nodes.Buffer.attributes.depth=2"))
    with pytest.raises(InvalidMapping) as caught:
        search(spec, space, settings)
    line = str(caught.value)
    assert "no valid mapping: all " in line and " were tried (all mappings); " in line
    assert " x Buffer: largest tiles, as A " in line and ": must be at most 2" in line
    with pytest.raises(InvalidMapping, match=r"the first 7 were tried \(timeout\)"):
        search(spec, space, replace(settings, timeout=7))


MISTAKES = [
    ("mapper={optimization_metrics: [speed]}", "must be of delay, energy, edp"),
    ("mapper={algorithm: clever}", "must be one of exhaustive, linear, linear_pruned, random, random_pruned, hybrid"),
    ("mapper={victory_conditions: 4}", "(did you mean victory_condition?)"),
    ("constraints={targets: [{target: Cache, type: temporal}]}", "must be one of DRAM, Buffer, lanes"),
    ("constraints={targets: [{target: lanes, type: temporal}]}", "must be spatial: the target is a container"),
    (
        "constraints={targets: [{target: DRAM, type: utilization}]}",
        "must be one of temporal, spatial, datatype, dataspace, bypass, bypassing",
    ),
    ("constraints={targets: [{target: DRAM, type: temporal, factors: 'M=3,2'}]}", "must have no remainder: a search has none"),
    ("constraints={targets: [{target: DRAM, type: temporal, factors: 'M=5'}]}", "must be such that a product of factors is 64"),
    (
        "constraints={targets: [{target: DRAM, type: temporal, factors: 'M=2'}, {target: DRAM, type: temporal, factors: 'M=4'}]}",
        "another constraint says M=2",
    ),
    ("architecture.nodes.Buffer.constraints={spatial: {factors: [M=1]}}", "must be at a component with copies: Buffer has none"),
    ("architecture.nodes.lanes.constraints={dataspace: {keep: [A]}}", "must be at a component with storage: lanes has none"),
    ("architecture.nodes.Buffer.constraints={dataspace: {keep: [A], bypass: [A]}}", "A is kept and bypassed: must be one"),
    ("architecture.nodes.DRAM.constraints={dataspace: {bypass: [A]}}", None),
]  # fmt: skip


@pytest.mark.parametrize(("change", "allowed"), MISTAKES, ids=[change for change, _ in MISTAKES])
def test_a_mistake_is_one_clear_line(change, allowed, tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text((SHIPPED / "sparse_product.yaml").read_text() + "\nmapper: {}\nconstraints: {}\n")
    if allowed is None:
        both = (change, "architecture.nodes.Buffer.constraints={dataspace: {bypass: [A]}}")
        with pytest.raises(SpecError, match="a tensor is bypassed at every level: must be kept at one"):
            load_search([path], both)
        return
    name, _, value = change.partition("=")
    if not name.startswith("architecture"):  # --set changes keys, not whole sections
        path.write_text((SHIPPED / "sparse_product.yaml").read_text() + f"\n{name}: {value}\n")
        change = ""
    with pytest.raises(SpecError) as caught:
        load_search([path], (change,) if change else ())
    line = str(caught.value)
    assert "\n" not in line and line.endswith(allowed) and str(path if not change else "--set") in line, line


def test_too_many_free_tensors_are_refused(tmp_path):
    head, tail = OLD.split("        - name: Buffer\n", 1)
    more = "".join(
        f"        - {{name: L{n}, class: SRAM, attributes: {{depth: 64, width: 16, datawidth: 16}}}}\n"
        for n in range(5)
    )
    path = tmp_path / "deep.yaml"
    path.write_text(head + more + "        - name: Buffer\n" + tail)
    with pytest.raises(
        SpecError, match="tensors that levels may keep or not: 18: must be at most 16: say keep or bypass"
    ):
        load_search([path])


def test_a_space_that_is_not_large_is_gone_through(monkeypatch):
    """Without a limit; with one that is smaller the search climbs."""
    monkeypatch.setattr("sw.analytic.search.EVALUATIONS", 300)
    spec, space, settings = load_search([SPEC], SMALL)
    size = space.count(100_000)
    assert size is not None and size > 300 and settings.evaluations is None
    for whole, ended, evaluations in ((size, "all mappings", size), (size - 1, "evaluations", 300)):
        monkeypatch.setattr("sw.analytic.search.WHOLE", whole)
        found = search(spec, space, settings)
        assert (found.stopped, found.evaluations) == (ended, evaluations)
    assert search(spec, space, replace(settings, evaluations=200)).evaluations == 200
