"""The sparse step against operations executed one by one, on data that is known and on data drawn from a density model."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sw.analytic.conventions import V03, V04
from sw.analytic.densities.structured import FixedStructured
from sw.analytic.densities.uniform import Hypergeometric
from sw.analytic.features import ActionOption, ActionSaf, Features
from sw.analytic.mapping import Mapping
from sw.analytic.nests import Nests
from sw.analytic.problem import Tensor
from sw.analytic.sparse.joint import _triangle
from sw.analytic.sparse.leaders import leader_boxes
from sw.analytic.sparse.step import SparseTraffic
from tests.sw.analytic.machines import A, B, Z, masks, nest, product, represented, saf, sparse
from tests.sw.analytic.walker import operations

KINDS = {"gating": "gated", "skipping": "skipped"}


def executed(
    mapping: Mapping, data: dict[str, np.ndarray], *, knows: set[int], safs: dict[int, tuple[int, ...]]
) -> Counter[str]:
    """What happens at the level next to the compute units, operation by operation.

    knows: inputs whose zeros the level knows. safs: leaders by target.
    """
    counted: Counter[str] = Counter()
    for m, n, k in operations(mapping):
        nonzero = {A: bool(data["A"][m, k]), B: bool(data["B"][n, k])}
        runs = True
        for tensor in (A, B):
            blocked = tensor in safs and not all(nonzero[leader] for leader in safs[tensor])
            if tensor not in knows or nonzero[tensor]:
                counted[f"{tensor} {'removed' if blocked else 'actual'}"] += 1
            runs = runs and not blocked
        counted["Z removed" if Z in safs and not all(nonzero[leader] for leader in safs[Z]) else "Z actual"] += 1
        if not runs or (not any(nonzero.values()) and knows == {A, B}):
            continue
        missing = any(tensor in knows and not nonzero[tensor] for tensor in (A, B))
        counted["nonzeros" if all(nonzero.values()) else "missing" if missing else "zeros"] += 1
    return counted


CASES = {
    "nothing": {},
    "one follows": {B: (A,)},
    "both follow": {A: (B,), B: (A,)},
    "output follows": {Z: (A, B)},
    "all": {A: (B,), B: (A,), Z: (A, B)},
}


@pytest.mark.parametrize("safs", CASES.values(), ids=CASES)
@pytest.mark.parametrize("knows", [set(), {B}, {A, B}], ids=["plain", "B known", "both known"])
@pytest.mark.parametrize(
    "compute", [frozenset(), frozenset({"gating"}), frozenset({"skipping"})], ids=["", "gates", "skips"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_known_data_at_one_level(safs, knows, compute, kind):
    problem = product(4, 6, 5)
    mapping = nest(problem, "N6 M4 K5", keeps=["ABZ"])
    data = masks(problem, seed=len(safs) + 3 * len(knows))
    features = Features(
        {(0, tensor): represented("UOP", "CP") for tensor in knows},
        {0: tuple(saf(kind, target, *leaders) for target, leaders in safs.items())} if safs else {},
        compute,
    )
    found = sparse(mapping, features, data)
    expected = executed(mapping, data, knows=knows, safs=safs)
    for tensor in (A, B):
        reads = found.counters[0, tensor].reads
        assert abs(reads.actual - expected[f"{tensor} actual"]) <= 1
        assert abs(getattr(reads, KINDS[kind]) - expected[f"{tensor} removed"]) <= 1
    updates = found.counters[0, Z].updates
    assert (
        abs(updates.actual - expected["Z actual"]) <= 1
        and abs(getattr(updates, KINDS[kind]) - expected["Z removed"]) <= 1
    )
    if features.is_empty:
        assert found.computes.actual == problem.computes
        return
    split = Counter({"actual": expected["nonzeros"]})
    split["skipped" if "skipping" in compute else "gated" if "gating" in compute else "actual"] += expected["missing"]
    split["gated" if "gating" in compute else "actual"] += expected["zeros"]
    for name in ("actual", "gated", "skipped"):
        assert abs(getattr(found.computes, name) - split[name]) <= 2, name


@pytest.mark.parametrize("text", ["N2 M2 K3 N4 M3 K2", "N3 K2 M4 N2 K3", "M2 K2 N6 K4 M3"])
@pytest.mark.parametrize("safs", CASES.values(), ids=CASES)
def test_known_data_where_loops_have_remainders(text, safs):
    problem = product(4, 6, 5)
    mapping = nest(problem, text, keeps=["ABZ"])
    assert mapping.imperfect
    data = masks(problem, seed=11)
    saf_list = tuple(saf("skipping", target, *leaders) for target, leaders in safs.items())
    found = sparse(mapping, Features({}, {0: saf_list} if safs else {}), data)
    expected = executed(mapping, data, knows=set(), safs=safs)
    for tensor in (A, B):
        assert abs(found.counters[0, tensor].reads.actual - expected[f"{tensor} actual"]) <= 1
    assert abs(found.counters[0, Z].updates.actual - expected["Z actual"]) <= 1


@pytest.mark.parametrize("known", [False, True], ids=["plain", "B known"])
@pytest.mark.parametrize("outer", ["N3 K5 M4", "K5 N3 M4", "N3 M4 K5", "M4 K5 N3"])
def test_known_data_of_a_tile_that_stays(outer, known):
    """A tile of B that waits inside for a whole row of A is skipped only if the row is empty."""
    problem = product(4, 6, 5)
    mapping = nest(problem, "N2 M1 K1", outer, keeps=["BZ", "ABZ"])
    data = masks(problem, seed=7, share=0.25)
    formats = {(1, B): represented("UOP", "UOP", "CP"), (0, B): represented("CP")} if known else {}
    features = Features(formats, {1: (saf("skipping", B, A),)})
    found = sparse(mapping, features, data)
    stays: dict[tuple[int, ...], list[tuple[int, int, int]]] = {}
    number, before = 0, None
    for m, n, k in operations(mapping):
        tile = (n // 2, k)
        number, before = number + (tile != before), tile
        stays.setdefault((number, *tile), []).append((m, n, k))
    skipped = arrives = 0
    for (_, block, k), steps in stays.items():
        words = int(data["B"][2 * block : 2 * block + 2, k].sum()) if known else 2
        if any(data["A"][m, k] for m, _, k in steps):
            arrives += words
        else:
            skipped += words
    reads = found.counters[1, B].reads
    assert abs(reads.skipped - skipped) <= 1 and abs(reads.actual - arrives) <= 1
    # Counters are those of an instance in use: an empty tile uses none.
    assert abs(found.counters[0, B].fills.actual * found.occupancy[0, B].arrives - arrives) <= 1


def encoded(mask: np.ndarray, formats: list[str]) -> list[tuple[int, int]]:
    """Words of metadata and payloads of each rank of one tile, outermost first, by building its fibers."""
    words = []
    fibers = [mask]
    for number, name in enumerate(formats):
        shape = mask.shape[number]
        filled = [fiber for fiber in fibers if fiber.any()]
        below = [fiber[c] for fiber in filled for c in range(shape)]
        coordinates = sum(bool(np.any(each)) for each in below)
        metadata, payload = {
            "UOP": (0, len(filled) * (shape + 1)),
            "CP": (coordinates, coordinates),
            "RLE": (coordinates, coordinates),
            "B": (len(filled) * shape, coordinates),
            "UB": (len(fibers) * shape, len(fibers) * shape),
            "U": (0, 0),
        }[name]
        words.append((metadata, payload if number < len(formats) - 1 else 0))
        fibers = [fiber[c] for fiber in fibers for c in range(shape)]
    return words


@pytest.mark.parametrize(
    "formats", [["UOP", "CP"], ["UOP", "RLE"], ["B", "B"], ["CP", "CP"], ["UB", "B"], ["U", "UB"], ["CP", "B"]]
)
def test_known_data_in_each_format(formats):
    """B in tiles of 3 x 4, ranks N and K."""
    problem = product(2, 6, 8)
    mapping = nest(problem, "M2 N3 K4", "M1 N2 K2", keeps=["ABZ", "ABZ"])
    data = masks(problem, seed=3, share=0.15)
    found = sparse(mapping, Features({(0, B): represented(*formats)}), data)
    tiles = [data["B"][n : n + 3, k : k + 4] for n in (0, 3) for k in (0, 4)]
    each = np.array([encoded(tile, formats) for tile in tiles], dtype=float)
    for number, rank in enumerate(reversed(found.occupancy[0, B].ranks)):
        assert rank.mean == pytest.approx(tuple(each.mean(axis=0)[number])), formats[number]
    assert found.occupancy[0, B].mean == pytest.approx(data["B"].sum() / 4)
    if found.occupancy[0, B].is_compressed:
        assert found.occupancy[0, B].maximum == max(tile.sum() for tile in tiles)


def test_empty_tiles_do_not_arrive():
    """Where the level outside knows them; what arrives is denser by that share."""
    problem = product(2, 6, 8)
    mapping = nest(problem, "M2 N3 K4", "M1 N2 K2", keeps=["ABZ", "ABZ"])
    mask = np.zeros((6, 8), dtype=bool)
    mask[0, 0] = mask[1, 3] = mask[5, 7] = True
    features = Features({(1, B): represented("UOP", "UOP", "UOP", "CP"), (0, B): represented("UOP", "CP")})
    tile = sparse(mapping, features, {"A": masks(problem, 1)["A"], "B": mask}).occupancy[0, B]
    assert (tile.arrives, tile.mean, tile.maximum) == (0.5, 1.5, 2)


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_drawn_data_agrees_with_the_uniform_model(share):
    """Means over draws, within three standard errors."""
    problem = product(4, 6, 8)
    mapping = nest(problem, "N2 M1 K1", "N3 M4 K8", keeps=["BZ", "ABZ"])
    stationary = nest(problem, "N2 M1 K1", "N3 K8 M4", keeps=["BZ", "ABZ"])
    random = np.random.default_rng(11)
    features = Features({(1, B): represented("UOP", "UOP", "CP")}, {1: (saf("skipping", B, A),)})

    def drawn(rows: int) -> np.ndarray:
        flat = np.zeros(rows * 8, dtype=bool)
        flat[random.choice(flat.size, Hypergeometric.of(share, flat.size).nonzeros, replace=False)] = True
        return flat.reshape(rows, 8)

    for nest_ in (mapping, stationary):
        model = sparse(nest_, features, {"A": Hypergeometric.of(share, 32), "B": Hypergeometric.of(share, 48)})
        runs = [sparse(nest_, features, {"A": drawn(4), "B": drawn(6)}) for _ in range(150)]

        def within(value: float, seen: list[float]) -> None:
            error = np.std(seen, ddof=1) / np.sqrt(len(seen))
            assert abs(np.mean(seen) - value) <= 3 * error + 1, (value, np.mean(seen), error)

        within(model.counters[1, B].reads.skipped, [run.counters[1, B].reads.skipped for run in runs])
        within(model.counters[1, B].reads.actual, [run.counters[1, B].reads.actual for run in runs])
        for number in range(3):
            within(
                sum(model.occupancy[1, B].ranks[number].mean),
                [sum(run.occupancy[1, B].ranks[number].mean) for run in runs],
            )


def test_saf_removes_computes_of_inputs_only():
    problem = product(4, 4, 4)
    mapping = nest(problem, "N4 M4 K4", keeps=["ABZ"])
    half = {"A": FixedStructured(0.5), "B": FixedStructured(1.0)}

    def run(target: int) -> SparseTraffic:
        return sparse(mapping, Features({}, {0: (saf("skipping", target, A),)}), half)

    assert run(B).computes.actual == 32 and run(Z).computes.actual == 64


def test_one_level_hands_on_what_it_removes():
    """Rows of A that are empty skip B outside; inside a word of A decides, of what arrives there."""
    problem = product(4, 4, 4)
    mapping = nest(problem, "N1 M1 K4", "M4 N4 K1", keeps=["BZ", "ABZ"])
    densities = {"A": Hypergeometric.of(0.25, 16), "B": FixedStructured(1.0)}
    inner = sparse(mapping, Features({}, {0: (saf("gating", B, A),)}), densities)
    assert (inner.counters[0, B].reads.actual, inner.counters[0, B].reads.gated) == (16, 48)
    assert inner.counters[1, B].reads.actual == inner.counters[1, B].reads.dense == 64
    both = sparse(mapping, Features({}, {0: (saf("gating", B, A),), 1: (saf("skipping", B, A),)}), densities)
    empty_rows = 12 * 11 * 10 * 9 / (16 * 15 * 14 * 13)
    outside, inside = both.counters[1, B].reads, both.counters[0, B].reads
    assert outside.skipped == int(64 * empty_rows) and both.counters[0, B].fills.actual == outside.actual
    assert inside.actual == pytest.approx(16, abs=1)
    assert inside.dense - inside.actual - inside.gated == int(64 * empty_rows)


def test_instances_side_by_side_share_a_decision():
    """A word of B goes to two rows of A at once: it is skipped if both have a zero there."""
    problem = product(4, 4, 4)
    mapping = nest(problem, "N1 M1 K4", "M2 N4 K1 Mx2", keeps=["Z", "ABZ"])
    model = Hypergeometric.of(0.25, 16)
    found = sparse(mapping, Features({}, {1: (saf("skipping", B, A),)}), {"A": model, "B": FixedStructured(1.0)})
    (only,) = found.eliminations
    assert only.share == pytest.approx(12 * 11 / (16 * 15)) == pytest.approx(model.empty((2, 1)))


def test_instances_that_share_nothing_decide_alone():
    problem = product(4, 4, 4)
    mapping = replace(
        nest(problem, "N1 M1 K4", "M2 N4 K1 Mx2", keeps=["Z", "ABZ"]), apart=(frozenset(), frozenset({B}))
    )
    data = masks(problem, seed=5)
    found = sparse(mapping, Features({}, {1: (saf("skipping", B, A),)}), data)
    effectual = sum(bool(data["A"][m, k]) for m, _, k in operations(mapping))
    reads = found.counters[1, B].reads
    assert reads.dense == problem.computes and abs(reads.actual - effectual) <= 1


def test_only_format_data_that_is_handed_on_is_skipped():
    problem = product(4, 6, 5)
    mapping = nest(problem, "N2 M1 K1", "K5 N3 M4", keeps=["BZ", "ABZ"])
    features = Features(
        {(1, B): represented("UOP", "UOP", "CP"), (0, B): represented("CP")}, {1: (saf("skipping", B, A),)}
    )
    found = sparse(mapping, features, {"A": Hypergeometric.of(0.25, 20), "B": FixedStructured(0.5)})
    words = found.counters[1, B].formats["reads"]
    assert words[0].metadata.skipped > 0 and words[1].payload.actual > 0 and words[2].payload.actual > 0
    assert words[1].payload.skipped == words[2].payload.skipped == 0


@pytest.mark.parametrize("swapped", [False, True])
def test_of_two_safs_the_one_that_removes_more_acts(swapped):
    problem = product(4, 4, 4)
    mapping = nest(problem, "N4 M4 K4", keeps=["ABZ"])
    safs = (saf("gating", Z, A), saf("skipping", Z, A, B))
    densities = {"A": FixedStructured(0.5), "B": FixedStructured(0.5)}
    found = sparse(mapping, Features({}, {0: safs[::-1] if swapped else safs}), densities).counters[0, Z].updates
    assert (found.actual, found.gated, found.skipped) == (16, 0, 48)


@pytest.mark.parametrize("swapped", [False, True])
def test_of_two_options_the_one_that_saves_more_acts(swapped):
    problem = product(4, 4, 4)
    mapping = nest(problem, "N4 M4 K4", keeps=["ABZ"])
    options = (ActionOption(B, (A,)), ActionOption(A, (B,)))
    either = ActionSaf("skipping", options[::-1] if swapped else options)
    densities = {"A": FixedStructured(0.25), "B": FixedStructured(0.5)}
    found = sparse(mapping, Features({}, {0: (either,)}), densities)
    assert found.counters[0, B].reads.skipped == 48 and found.counters[0, A].reads.skipped == 0


def boxes(mapping: Mapping, *args: Any) -> list[tuple[int, ...]]:
    return [tuple(int(np.ravel(length)[0]) for length in box) for box in leader_boxes(Nests.of([mapping]), *args)]


def test_a_row_of_several_words_is_skipped_as_a_whole():
    """The leader's tile has as many iterations of the target loop as the row has words."""
    mapping = nest(product(4, 4, 4), "N1 M1 K1", "N4 M4 K4", keeps=["BZ", "ABZ"])
    assert boxes(mapping, B, (A,), 1, 1) == [(1, 1, 1)]
    assert boxes(mapping, B, (A,), 1, 2) == [(1, 1, 2)]
    along_n = nest(product(4, 4, 4), "N1 M1 K1", "M4 K4 N4", keeps=["BZ", "ABZ"])
    assert boxes(along_n, B, (A,), 1, 8) == [(1, 4, 1)], "N is no index of A: its tile stays a word"


def test_the_published_compute_more_is_a_convention_of_the_old_dialect():
    problem = product(4, 4, 4)
    mapping = nest(problem, "N4 M4 K4", keeps=["ABZ"])
    both = Features({}, {0: (saf("skipping", A, B), saf("skipping", B, A))})
    densities = {"A": FixedStructured(0.25), "B": FixedStructured(0.5)}
    computes = [sparse(mapping, both, densities, conventions).computes.actual for conventions in (V03, V04)]
    assert computes == [9, 8]


@pytest.mark.parametrize("terms", [("ab", "bc", "ac"), ("ac", "cb", "ab"), ("ba", "ac", "bc"), ("cb", "ca", "ba")])
def test_three_matrices_over_three_dimensions_are_summed_alike(terms):
    random, sides = np.random.default_rng(0), {"a": 4, "b": 5, "c": 6}
    masks_ = [random.random(tuple(sides[letter] for letter in term)) < 0.5 for term in terms]
    expected = np.einsum(f"{','.join(terms)}->", *(mask.astype(float) for mask in masks_))
    assert _triangle(terms, masks_) == expected > 0


@pytest.mark.parametrize("formats", [["UOP", "UOP", "CP"], ["CP", "CP", "CP"], ["U", "UOP", "RLE"], ["B", "U", "B"]])
@pytest.mark.parametrize("cut", [3, 4, 5, 7])
def test_fibers_at_the_edge_are_shorter(formats, cut):
    """B in fibers of ``cut`` along K where 8 is no multiple of it, the whole of it at the outer level and tiles of it inside. The
    bits of fibers that are filled are those of mean fibers, though longer ones are filled more often."""
    near = {"rel": 0.04} if "B" in formats else {}
    problem = product(2, 6, 8)
    mapping = nest(problem, f"M2 N6 K{cut}", f"K{-(-8 // cut)} M1 N1", keeps=["ABZ", "ABZ"])
    data = masks(problem, seed=cut, share=0.3)
    mask = data["B"]
    found = sparse(mapping, Features({(1, B): represented(*formats), (0, B): represented(*formats[1:])}), data)
    tiles = [mask[:, begin : begin + cut] for begin in range(0, 8, cut)]
    inner = found.occupancy[0, B]
    assert inner.mean * inner.arrives == pytest.approx(mask.sum() / len(tiles))
    each = [encoded(tile, formats[1:]) for tile in tiles]
    for level, share in ((0, 1 / len(tiles)), (1, 1.0)):
        ranks = found.occupancy[level, B].ranks[:2]
        for number, rank in enumerate(ranks):
            expected = [sum(tile[1 - number][part] for tile in each) * share for part in (0, 1)]
            arrives = found.occupancy[level, B].arrives
            assert tuple(words * arrives for words in rank.mean) == pytest.approx(tuple(expected), **near), (
                level,
                number,
            )


THREE = {
    "one leader twice": {B: (A,), 3: (A, B)},
    "one leader of both": {B: (A,), 3: (A,)},
    "a chain": {B: (A,), 3: (B,)},
    "each follows the others": {A: (B, 3), B: (A, 3), 3: (A, B)},
}


@pytest.mark.parametrize("safs", THREE.values(), ids=THREE)
def test_three_operands_share_leaders(safs):
    """Operations that are left are those at which all leaders are nonzero, however many SAFs a leader has; Z[m, n] = A[m, k] *
    B[n, k] * C[m, k, n]."""
    two = product(6, 6, 8)
    third = Tensor("C", (*two.tensors[A].ranks, *two.tensors[B].ranks[:1]), is_output=False)
    problem = replace(two, tensors=(*two.tensors, third))
    mapping = nest(problem, "N6 M6 K8", keeps=["ABCZ"])
    features = Features({}, {0: tuple(saf("skipping", target, *leaders) for target, leaders in safs.items())})
    random = np.random.default_rng(13)
    shares = {"A": 0.5, "B": 0.4, "C": 0.6}
    sizes = {tensor.name: tensor.extents(problem.bounds) for tensor in problem.tensors if not tensor.is_output}
    models = {name: Hypergeometric.of(share, int(np.prod(sizes[name]))) for name, share in shares.items()}
    left = sparse(mapping, features, models).computes
    seen = []
    for _ in range(200):
        data = {}
        for name, model in models.items():
            flat = np.zeros(int(np.prod(sizes[name])), dtype=bool)
            flat[random.choice(flat.size, model.nonzeros, replace=False)] = True
            data[name] = flat.reshape(sizes[name])
        whole = np.ones((6, 6, 8), dtype=bool)
        views = {A: data["A"][:, None, :], B: data["B"][None], 3: data["C"].transpose(0, 2, 1)}
        for leader in set().union(*safs.values()):
            whole = whole & views[leader]
        seen.append(int(whole.sum()))
    error = np.std(seen, ddof=1) / np.sqrt(len(seen))
    assert abs(left.actual + left.gated + left.skipped - np.mean(seen)) <= 3 * error + 2
