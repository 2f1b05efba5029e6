"""What the paper (Sparseloop, MICRO 2022) says of its examples: formats of table 2, the specification of figure 6, the two
mappings of figure 10."""

from math import comb
from pathlib import Path

import numpy as np
import pytest

from sw.analytic.analysis import Analysis, analyze
from sw.analytic.features import Features, FormattedRank, Representation
from sw.analytic.formats.registry import FORMATS
from sw.analytic.problem import Problem, Tensor, Term
from sw.analytic.result import record
from sw.analytic.spec.load import load_spec
from tests.sw.analytic.machines import A, nest, product, represented, sparse

MASK = np.random.default_rng(2).random((8, 8)) < 0.15
SIDE = 8


def words(features: Features, levels: list[str], problem: Problem, mask: np.ndarray) -> list[float]:
    """Metadata and payloads of each rank of A at the outermost level, outermost rank first."""
    mapping = nest(problem, *levels, keeps=["ABZ"] * len(levels))
    ones = {t.name: np.ones(t.extents(problem.bounds), dtype=bool) for t in problem.tensors if not t.is_output}
    ranks = sparse(mapping, features, ones | {"A": mask}).occupancy[len(levels) - 1, A].ranks
    return [sum(rank.mean) for rank in reversed(ranks)]


def test_csr_is_offsets_and_coordinates():
    found = words(Features({(0, A): represented("UOP", "CP")}), ["N2 M8 K8"], product(SIDE, 2, SIDE), MASK)
    assert found == [SIDE + 1, MASK.sum()]


def test_coo_is_one_list_of_flattened_ranks():
    flattened = Representation((FormattedRank(FORMATS["CP"], flattened=frozenset({0, 2})),))
    found = words(Features({(0, A): flattened}), ["N2 M8 K8"], product(SIDE, 2, SIDE), MASK)
    assert found == [MASK.sum()]


def test_csb_is_offsets_of_blocks_and_two_lists():
    """Blocks of 4 x 4: an offset for each and one more, rows with a nonzero in each block, and nonzeros."""
    blocks = FormattedRank(FORMATS["UOP"], flattened=frozenset({0, 2}))
    lists = represented("CP", "CP").ranks
    features = Features({(1, A): Representation((*lists, blocks)), (0, A): Representation(lists)})
    found = words(features, ["N2 M4 K4", "M2 K2"], product(SIDE, 2, SIDE), MASK)
    # The payload of a coordinate that is not the last says where the row below lies.
    rows = sum(bool(MASK[m, k : k + 4].any()) for m in range(SIDE) for k in (0, 4))
    assert found == pytest.approx([4 + 1, 2 * rows, MASK.sum()])


def test_csf_is_a_list_at_each_rank():
    """Z[m, n] = A[m, n, k] * B[n, k]."""
    mask = np.random.default_rng(3).random((4, 6, 8)) < 0.05
    ranks = {"A": (0, 1, 2), "B": (1, 2), "Z": (0, 1)}
    tensors = tuple(Tensor(name, tuple((Term(d, 1),) for d in own), name == "Z") for name, own in ranks.items())
    problem = Problem("fibers", ("M", "N", "K"), (4, 6, 8), tensors)
    found = words(Features({(0, A): represented("CP", "CP", "CP")}), ["M4 N6 K8"], problem, mask)
    fibers = [mask.any(axis=(1, 2)).sum(), mask.any(axis=2).sum(), mask.sum()]
    assert found == pytest.approx([2 * fibers[0], 2 * fibers[1], fibers[2]])


# A is 4 x 4 with four nonzeros; four buffers work on a column of B each.
FIGURE_6 = """
architecture:
  version: 0.4
  nodes:
    - !Component {name: Backing, class: SRAM, attributes: {sizeKB: 128, width: 16, datawidth: 16}}
    - !Container {name: lanes, spatial: {meshX: 4}}
    - !Component
      name: Buffer
      class: SRAM
      attributes: {entries: 64, width: 16, datawidth: 16}
      sparse_optimizations: {action_optimization: [{type: skipping, target: B, condition_on: [A]}]}
    - !Component {name: Compute, class: compute, attributes: {datawidth: 16}}
problem:
  einsum: "Z[m,n] = A[m,k] * B[k,n]"
  instance: {M: 4, N: 4, K: 4, densities: {A: {distribution: uniform, density: 0.25}}}
mapping:
  - {target: Backing, type: temporal, factors: [M=4], permutation: [M]}
  - {target: lanes, type: spatial, factors: [N=4], permutation: [N]}
  - {target: Buffer, type: temporal, factors: [K=4], permutation: [K]}
"""
# A latch keeps a value of B while the loop inside does not ask for another one.
LATCH = """    - !Component
      name: Latch
      class: regfile
      attributes: {entries: 1, width: 16, datawidth: 16}
"""
FIRST, SECOND = (
    f"""  - {{target: Buffer, type: temporal, factors: [K=4, M=4], permutation: {order}}}
  - {{target: Latch, type: dataspace, keep: [B], bypass: [A, Z]}}
"""
    for order in ("[K, M]", "[M, K]")
)


@pytest.fixture
def spec(tmp_path) -> Path:
    path = tmp_path / "figure6.yaml"
    path.write_text(FIGURE_6)
    return path


def reads_of_b(found: Analysis) -> dict[str, int]:
    level = next(level for level in record(found)["levels"] if level["name"] == "Buffer")
    reads: dict[str, int] = level["tensors"]["B"]["reads"]
    return reads


def test_figure_6(spec):
    """A's rows come one after the other, to all buffers; a column of B stays in each."""
    found = record(analyze(load_spec([spec])))
    buffer, backing = found["levels"]
    assert found["computes"]["algorithmic"] == 64 and found["computes"]["actual"] == 16 and found["cycles"] == 4
    assert buffer["instances"]["max"] == 4
    assert {name: own["tile_shape"] for name, own in buffer["tensors"].items()} == {
        "A": [1, 4],
        "B": [4, 1],
        "Z": [1, 1],
    }
    assert {name: own["fills"]["dense"] for name, own in buffer["tensors"].items()} == {"A": 16, "B": 4, "Z": 0}
    assert {name: own["reads"]["dense"] for name, own in backing["tensors"].items()} == {"A": 16, "B": 16, "Z": 0}
    assert backing["tensors"]["Z"]["updates"]["dense"] == 16
    assert buffer["tensors"]["B"]["reads"] == {"dense": 16, "actual": 4, "gated": 0, "skipped": 12}


def of_figure_10(tmp_path: Path, loops: str, a: str) -> dict[str, int]:
    """A as a density. All of it is in the buffer."""
    text = FIGURE_6[: FIGURE_6.index("  - {target: Backing")] + FIGURE_6[FIGURE_6.index("  - {target: lanes") :]
    text = text[: text.index("  - {target: Buffer")] + loops
    compute = "    - !Component {name: Compute"
    (tmp_path / "figure10.yaml").write_text(text.replace(compute, LATCH + compute))
    return reads_of_b(analyze(load_spec([tmp_path / "figure10.yaml"], (f"problem.instance.densities.A={a}",))))


@pytest.mark.parametrize(
    ("loops", "dense", "empty"), [(FIRST, 16, 0.75), (SECOND, 4, comb(12, 4) / comb(16, 4))], ids=["first", "second"]
)
def test_figure_10(tmp_path, loops, dense, empty):
    """With k innermost a value of B meets one of A; with m innermost it waits for a column: skipped where that is empty."""
    skipped = int(dense * empty)
    found = of_figure_10(tmp_path, loops, "{distribution: uniform, density: 0.25}")
    assert found == {"dense": dense, "actual": dense - skipped, "gated": 0, "skipped": skipped}


@pytest.mark.parametrize(("loops", "skipped"), [(FIRST, 12), (SECOND, 0)], ids=["first", "second"])
def test_columns_of_figure_6_are_never_empty(tmp_path, loops, skipped):
    (tmp_path / "a.txt").write_text("".join(str(int(m == (k * 3 + 1) % 4)) for k in range(4) for m in range(4)))
    assert of_figure_10(tmp_path, loops, "{distribution: actual_data, data_file_path: a.txt}")["skipped"] == skipped
