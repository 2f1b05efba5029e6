"""Many mappings at once against one at a time: every number of the record, on random mappings of several specifications."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sw.analytic.analysis import InvalidMapping, analysis_of, analyze, evaluate
from sw.analytic.errors import MappingError
from sw.analytic.mapping import Mapping
from sw.analytic.mapspace import MapSpace
from sw.analytic.result import record
from sw.analytic.spec.load import Spec, load_search

PRODUCT = Path("sparse_product")
NO_SAFS = (
    "architecture.nodes.DRAM.sparse_optimizations={}",
    "architecture.nodes.Buffer.sparse_optimizations={}",
)
LARGE = "architecture.nodes.Buffer.attributes.depth=32768"
OUTER = (
    "{name: %s, ranks: [{format: UOP, payload_word_bits: 6}, {format: UOP}, {format: B}, "
    "{format: %s, metadata_word_bits: 5}]}"
)
INNER = "{name: A, ranks: [{format: UOP, payload_word_bits: 6}, {format: CP, metadata_word_bits: 5}]}"
FORMATS = (
    "architecture.nodes.DRAM.sparse_optimizations={representation_format: {data_spaces: ["
    + ", ".join(OUTER % names for names in (("A", "CP"), ("B", "RLE")))
    + "]}}",
    "architecture.nodes.Buffer.sparse_optimizations={representation_format: {data_spaces: [" + INNER + "]}, "
    "action_optimization: [{type: skipping, options: [{target: A, condition_on: [B]}, {target: B, condition_on: [A]}]}, "
    "{type: gating, target: Z, condition_on: [A, B]}]}",
    "architecture.nodes.MAC.sparse_optimizations={compute_optimization: [{type: skipping}, {type: gating}]}",
    "architecture.nodes.Buffer.attributes.decompression_supported=true",
    "architecture.nodes.lanes.spatial={meshX: 4, meshY: 2}",
)
LEADERS = (
    NO_SAFS[0],
    "architecture.nodes.Buffer.sparse_optimizations={action_optimization: [{type: gating, target: A, condition_on: [B]}]}",
    "architecture.nodes.DRAM.sparse_optimizations={action_optimization: [{type: skipping, target: B, condition_on: [A]}, "
    "{type: skipping, target: Z, condition_on: [A, B]}]}",
    "problem.instance.densities.B=0.3",
)
UNIFORM = (
    "problem.instance.densities={A: {distribution: hypergeometric, density: 0.07}, B: {distribution: uniform, density: 0.2}}",
)
SHAPES = (
    "problem.instance.densities={A: {distribution: banded, band_width: 3}, B: {distribution: n_of_m, n: 1, m: 4}}",
)
WINDOWS = (
    *NO_SAFS,
    "problem={einsum: 'O[m,p,q] = W[m,c,r,s] * I[c,2*p+r,q+2*s]', "
    "instance: {m: 4, c: 6, p: 8, q: 4, r: 3, s: 2, densities: {I: 0.5}}}",
    "architecture.nodes.DRAM.sparse_optimizations={action_optimization: [{type: skipping, target: W, condition_on: [I]}]}",
)  # fmt: skip
CASES = {
    "shipped": (),
    "dense": (*NO_SAFS,),
    "uniform": UNIFORM,
    "formats and SAFs": (*FORMATS, *UNIFORM),
    "formats, structured": (*FORMATS, "problem.instance.densities.B=0.4"),
    "leaders outside": (*LEADERS, *UNIFORM),
    "leaders, structured": LEADERS,
    "shapes": (*SHAPES, *FORMATS),
    "windows": WINDOWS,
    "bandwidths": (
        *UNIFORM,
        "architecture.nodes.Buffer.attributes.read_bandwidth=3",
        "architecture.nodes.DRAM.attributes.shared_bandwidth=1",
    ),
}


def loaded(changes: tuple[str, ...]) -> tuple[Spec, MapSpace]:
    spec, space, _ = load_search([PRODUCT], (*changes, LARGE))
    return spec, space


def drawn(space: MapSpace, count: int, seed: int) -> list[Mapping]:
    random_ = random.Random(seed)
    found: list[Mapping] = []
    while len(found) < count:
        try:
            found.append(space.mapping(space.draw(random_)))
        except MappingError:
            continue
    return found


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES)
def test_many_are_as_each_alone(changes):
    spec, space = loaded(changes)
    mappings = drawn(space, 150, seed=len(changes))
    many = evaluate(spec, mappings)
    valid = 0
    for number, mapping in enumerate(mappings):
        try:
            alone = analyze(replace(spec, mapping=mapping))
        except InvalidMapping as error:
            assert not many.valid[number] and str(error) == spec.refusal(many.error(number))
            continue
        valid += 1
        assert many.valid[number]
        assert record(analysis_of(many, number, mapping)) == record(alone), mapping
        assert many.cycles[number] == alone.cycles.total and many.energy[number] == sum(alone.energy.values())
    assert valid > 20, "too few to say anything"


def test_remainders_stand_beside_others():
    """Mappings with and without remainders, and with other tensors kept, in one batch."""
    spec, space = loaded(())
    mappings = drawn(space, 30, seed=5)
    imperfect = []
    for mapping in mappings:
        loops = [list(level) for level in mapping.loops]
        level, place = next((n, p) for n, own in enumerate(loops) for p, each in enumerate(own) if each.bound > 2)
        loop = loops[level][place]
        outermost = max(
            p.loop.bound * p.below[loop.dimension] for p in mapping.places if p.loop.dimension == loop.dimension
        )
        if outermost == 64:
            loops[-1].append(replace(loop, bound=2, axis="time"))
            loops[level][place] = replace(loop, bound=loop.bound // 2 + 1)
            imperfect.append(Mapping(mapping.problem, tuple(map(tuple, loops)), mapping.keeps))
    imperfect = [mapping for mapping in imperfect if mapping.imperfect]
    assert len(imperfect) > 5
    together = [each for pair in zip(imperfect, mappings, strict=False) for each in pair]
    many = evaluate(spec, together)
    for number, mapping in enumerate(together):
        if many.valid[number]:
            alone = record(analyze(replace(spec, mapping=mapping)))
            assert record(analysis_of(many, number, mapping)) == alone
    assert 0 < many.valid.sum()


def test_order_of_a_batch_changes_nothing():
    spec, space = loaded(FORMATS)
    mappings = drawn(space, 200, seed=3)
    order = np.random.default_rng(1).permutation(len(mappings))
    one, other = evaluate(spec, mappings), evaluate(spec, [mappings[number] for number in order])
    assert (one.valid[order] == other.valid).all()
    assert (one.cycles[order] == other.cycles).all() and (one.energy[order] == other.energy).all()
