"""Instances, cycles and energy of small machines, derived by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import hypergeom

from sw.analytic.analysis import analyze
from sw.analytic.architecture import Architecture, Compute, Storage
from sw.analytic.conventions import V03, V04, Conventions
from sw.analytic.densities.many import of_many
from sw.analytic.densities.structured import FixedStructured
from sw.analytic.densities.uniform import Hypergeometric
from sw.analytic.features import Features
from sw.analytic.hardware.capacity import instances_in_use
from sw.analytic.hardware.energy import reference_energy, tensor_energy
from sw.analytic.nests import Nests
from sw.analytic.sparse.counts import Accesses, Counters
from sw.analytic.sparse.occupancy import Occupancy
from sw.analytic.spec.load import load_spec
from tests.sw.analytic.machines import A, B, Z, nest, product, represented, saf, sparse

SPEC = Path("sparse_product")


def two_of_four(density: object):
    """Z[4, 4] over K = 16, eight lanes along K that hold a word of A each; only lanes with a nonzero of A are taken."""
    mapping = nest(product(4, 4, 16), "N4 M1 K1", "M1 N1 K2 Kx8", "M4 N1 K1", keeps=["A", "Z", "ABZ"])
    formats = {(2, A): represented("UOP", "UOP", "CP"), (0, A): represented("CP")}
    features = Features(formats, {1: (saf("skipping_spatial", B, A), saf("skipping_spatial", Z, A))})
    return mapping, sparse(mapping, features, {"A": density, "B": FixedStructured(1.0)})


def test_lanes_of_structured_zeros_are_not_needed():
    mapping, found = two_of_four(FixedStructured(0.5))
    use = instances_in_use(Nests.of([mapping]), found, -1)
    assert (use.maximum, use.x, use.busiest) == (4, 4, 4)
    assert found.computes.actual == 4 * 4 * 16 // 2
    lane = found.counters[0, A]
    assert (lane.reads.actual, lane.fills.actual) == (4 * 2 * 4, 4 * 2), (
        "an instance in use holds a nonzero at each step"
    )
    assert found.counters[2, A].reads.actual == 4 * 16 // 2
    assert found.counters[2, B].reads.skipped == 0, "what is skipped in space stays in the level's own counters"


def test_uniform_zeros_may_need_every_lane():
    mapping, found = two_of_four(Hypergeometric.of(0.5, 64))
    use = instances_in_use(Nests.of([mapping]), found, -1)
    assert (use.maximum, use.busiest) == (8, 4)


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("density", [0.2, 0.5, 0.9])
def test_lanes_that_take_nonzeros_by_position(lanes, density):
    """A tile of 16 of M over the lanes: rounds of the nonzeros of a tile, by the distribution that SciPy has."""
    mapping = nest(product(64, 4, 4), f"M{16 // lanes} N1 K1 Mx{lanes}", "M4 K4 N4", keeps=["AB", "ABZ"])
    model = Hypergeometric.of(density, 64 * 4)
    found = sparse(mapping, Features({}, {0: (saf("position_skipping", A),)}), {"A": model, "B": FixedStructured(1.0)})
    k = np.arange(1, 17)
    probability = hypergeom(256, model.nonzeros, 16).pmf(k)
    probability /= probability.sum()
    rounds = np.ceil(k / lanes)
    (own,) = found.lanes
    assert own.use == pytest.approx(float((probability * k / (lanes * rounds)).sum()))
    assert own.steps == pytest.approx(float((probability * rounds).sum()) * lanes / 16)
    assert found.computes.actual == pytest.approx(64 * 4 * 4 * model.nonzeros / 256, abs=1)
    assert instances_in_use(Nests.of([mapping]), found, -1).busiest == pytest.approx(lanes * own.use)


def test_bandwidth_slows_a_level_down():
    """Words that the buffer reads: data, and format data in words of data; at 8 a cycle."""
    found = analyze(load_spec([SPEC], ("architecture.nodes.Buffer.attributes.read_bandwidth=8",)))
    words = (3280 + 3280 + 520) + 26240 + 25830
    assert found.cycles.compute == 3280 and found.cycles.total == found.cycles.levels[1] == -(-words // 8)


def test_gated_words_still_take_their_cycle():
    text = "architecture.nodes.Buffer.sparse_optimizations.action_optimization=[{type: gating, target: B, condition_on: [A]}]"
    found = analyze(load_spec([SPEC], (text, "architecture.nodes.Buffer.attributes.read_bandwidth=8")))
    z_reads = found.sparse.counters[1, Z].reads.actual
    assert z_reads == 64**3 - 4096 and found.sparse.counters[1, B].reads.gated == 64**3 - 26240
    assert found.cycles.total == -(-(3280 + 3280 + 520 + 64**3 + z_reads) // 8)


EVERYTHING = FixedStructured(1.0)


def level(**changes: Any) -> Storage:
    return Storage(name="S", path="S", **changes)


def energy(
    storage: Storage,
    counters: Counters,
    tile: Occupancy,
    conventions: Conventions,
    density: Any = EVERYTHING,
):
    architecture = Architecture((storage,), Compute(name="M", path="M"), conventions)
    return tensor_energy(architecture, storage, counters, tile, of_many(density), (tile.size,))


def reads(actual: int, gated: int = 0, skipped: int = 0) -> Counters:
    empty = {action: [] for action in ("reads", "fills", "updates")}
    return Counters(Accesses(100, actual, gated, skipped), Accesses(0, 0), Accesses(0, 0), empty)


@pytest.mark.parametrize(
    ("energies", "old", "new"),
    [
        ({"read": 2.0}, 10 * 2 + 30 * 2 + 50 * 2, 10 * 2),
        ({"read": 2.0, "idle": 0.5}, 10 * 2 + 30 * 0.5 + 50 * 0.5, 10 * 2),
        ({"read": 2.0, "gated_read": 0.1}, 10 * 2 + 30 * 0.1 + 50 * 0.1, 10 * 2 + 30 * 0.1 + 50 * 0.1),
        ({"read": 2.0, "skipped_read": 0.3}, 10 * 2 + 30 * 2 + 50 * 0.3, 10 * 2 + 50 * 0.3),
    ],
)
def test_actions_without_an_entry(energies, old, new):
    tile = Occupancy(size=16, mean=16, maximum=16, arrives=1.0, is_compressed=False, points=16)
    for conventions, expected in ((V03, old), (V04, new)):
        assert energy(level(energies=energies), reads(10, 30, 50), tile, conventions) == pytest.approx(expected)


def test_rows_of_small_compressed_tiles():
    """Tiles of 3 words, of which 1 or 2 are nonzeros, in rows of 4: each tile takes a row."""
    storage = level(energies={"read": 1.0}, block=4)
    tile = Occupancy(size=3, mean=1.5, maximum=2, arrives=1.0, is_compressed=True, points=3)
    assert energy(storage, reads(60), tile, V04, FixedStructured(0.5)) == pytest.approx(15 * 4 / 1.5)
    loose = replace(tile, is_compressed=False)
    assert energy(storage, reads(60), loose, V04, FixedStructured(0.5)) == pytest.approx(15)


def test_energy_without_a_table_is_that_of_the_cited_one():
    """16 bits: 1 at 0.5 KB, 6 at 100 KB, 200 of DRAM; in between along a line, and in proportion to the bits of a row."""
    assert reference_energy(level(word_bits=16, words=256)) == pytest.approx(1.0)
    assert reference_energy(level(word_bits=16, words=51200)) == pytest.approx(6.0)
    assert reference_energy(level(word_bits=16, words=51200, block=4)) == pytest.approx(24.0)
    assert reference_energy(level(word_bits=16, is_dram=True, block=4)) == pytest.approx(800.0)


def test_what_is_decompressed_and_compressed_is_counted():
    """Outside compressed, inside not: each arriving word of A is decompressed, each word of Z that leaves compressed."""
    mapping = nest(product(4, 4, 4), "M4 N4 K4", "M1 N1 K1", keeps=["AZ", "ABZ"])
    features = Features({(1, A): represented("UOP", "CP"), (1, Z): represented("UOP", "CP")})
    half = {"A": FixedStructured(0.5), "B": FixedStructured(1.0), "Z": FixedStructured(0.25)}
    found = sparse(mapping, features, half, V03)
    assert (found.counters[0, A].decompressions, found.counters[0, A].compressions) == (16, 0)
    assert found.counters[0, Z].compressions == found.counters[1, Z].updates.actual == 4


def test_three_operands_that_are_zero():
    """Of three operands of density one half: an operation is of use in one case of eight, the others are gated."""
    changes = (
        "problem={einsum: 'Z[M,N] = A[M,K] * B[K,N] * C[K]', instance: {M: 64, N: 64, K: 64, commonDensity: 0.5}}",
        "architecture.nodes.Buffer.sparse_optimizations={}",
        "architecture.nodes.DRAM.sparse_optimizations={}",
        "architecture.nodes.Buffer.attributes.depth=8192",
        "architecture.nodes.MAC.sparse_optimizations={compute_optimization: [{type: gating}]}",
    )
    computes = analyze(load_spec([SPEC], changes)).sparse.computes
    assert (computes.actual, computes.gated, computes.skipped) == (64**3 // 8, 64**3 * 7 // 8, 0)
