"""Sparseloop (MICRO 2022): formats of table 2, the example of figure 6, and the two mappings of figure 10."""

from math import comb
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.papers_sparseloop import figure_13_bars
from sw.analytic.analysis import Analysis, analyze
from sw.analytic.features import Features, FormattedRank, Representation
from sw.analytic.formats.registry import FORMATS
from sw.analytic.problem import Problem, Tensor, Term
from sw.analytic.sparse.occupancy import Occupancy
from sw.analytic.spec.load import load_spec
from tests.sw.analytic.machines import B, masks, nest, product, represented, sparse

# A is the tensor of which the words are counted.
FIBERS = Problem(
    "fibers",
    ("I", "J", "K"),
    (5, 6, 4),
    (
        Tensor("A", tuple((Term(d, 1),) for d in range(3)), False),
        Tensor("B", ((Term(2, 1),),), False),
        Tensor("Z", ((Term(0, 1),), (Term(1, 1),)), True),
    ),
)


def words(tile: Occupancy) -> list[tuple[float, float]]:
    """Metadata and payloads of each rank, outermost first."""
    return [tuple(rank.mean) for rank in reversed(tile.ranks)]


def test_table_2_csr_is_that_of_scipy():
    problem = product(2, 9, 7)
    data = masks(problem, seed=4, share=0.5)
    data["B"] |= np.eye(9, 7, dtype=bool)
    data["B"][7:, 0] = True
    found = sparse(nest(problem, "M2 N9 K7", keeps=["ABZ"]), Features({(0, B): represented("UOP", "CP")}), data)
    csr = sp.csr_array(data["B"])
    assert words(found.occupancy[0, B]) == [(0, len(csr.indptr)), (len(csr.indices), 0)]


def test_table_2_coo_is_that_of_scipy():
    problem = product(2, 9, 7)
    data = masks(problem, seed=5, share=0.3)
    both = Representation((FormattedRank(FORMATS["CP"], flattened=frozenset({1, 2})),))
    found = sparse(nest(problem, "M2 N9 K7", keeps=["ABZ"]), Features({(0, B): both}), data)
    coo = sp.coo_array(data["B"])
    (own,) = found.occupancy[0, B].ranks
    assert own.shape == 63 and words(found.occupancy[0, B]) == [(len(coo.row), 0)]


def test_table_2_csb():
    """Blocks of 3 x 4: an offset for each row of blocks, a coordinate for each block, and one for each nonzero of a block."""
    problem = product(2, 9, 8)
    data = masks(problem, seed=6, share=0.15)
    both = frozenset({1, 2})
    csb = Representation(
        (
            FormattedRank(FORMATS["CP"], flattened=both),
            FormattedRank(FORMATS["CP"]),
            FormattedRank(FORMATS["UOP"]),
        )
    )
    inner = Representation((FormattedRank(FORMATS["CP"], flattened=both),))
    mapping = nest(problem, "M2 N3 K4", "N3 K2", keeps=["ABZ", "ABZ"])
    found = sparse(mapping, Features({(1, B): csb, (0, B): inner}), data)
    blocks = data["B"].reshape(3, 3, 2, 4).any(axis=(1, 3))
    assert words(found.occupancy[1, B]) == [
        (0, 3 + 1),
        pytest.approx((blocks.sum(), blocks.sum())),
        pytest.approx((data["B"].sum(), 0)),
    ]


def test_table_2_csf():
    """A fiber tree: coordinates of slices, of fibers in them, and of nonzeros."""
    random = np.random.default_rng(8)
    mask = random.random((5, 6, 4)) < 0.1
    mask[2] = False
    data = {"A": mask, "B": np.ones(4, dtype=bool)}
    mapping = nest(FIBERS, "I5 J6 K4", keeps=["ABZ"])
    found = sparse(mapping, Features({(0, 0): represented("CP", "CP", "CP")}), data)
    slices, fibers = mask.any(axis=(1, 2)).sum(), mask.any(axis=2).sum()
    assert words(found.occupancy[0, 0]) == [
        pytest.approx((slices, slices)), pytest.approx((fibers, fibers)), pytest.approx((mask.sum(), 0)),
    ]  # fmt: skip


FIGURE_6 = """
architecture:
  version: 0.4
  nodes:
    - !Component {name: BackingStorage, class: SRAM, attributes: {sizeKB: 128, width: 8, datawidth: 8, metadata_storage_width: 8, metadata_datawidth: 8}}
    - !Container {name: columns, spatial: {meshX: 4}}
    - !Component
      name: Buffer
      class: SRAM
      attributes: {depth: 64, width: 8, datawidth: 8}
      sparse_optimizations: {action_optimization: [{type: skipping, target: B, condition_on: [A]}]}
    - !Component {name: MAC, class: mac, attributes: {datawidth: 8}}
problem:
  version: 0.4
  einsum: "Z[m,n] = A[m,k] * B[k,n]"
  instance: {m: 4, n: 4, k: 4, densities: {A: {distribution: uniform, density: 0.25}, B: {distribution: uniform, density: 0.5}}}
mapping:
  - {target: BackingStorage, type: temporal, factors: [m=OUTER]}
  - {target: columns, type: spatial, factors: [n=4]}
  - {target: Buffer, type: temporal, factors: [k=4, m=INNER], permutation: ORDER}
"""  # noqa: E501 - a specification, a line for each loop nest


def of_figure(tmp_path: Path, outer: int, inner: int, order: str) -> Analysis:
    path = tmp_path / "figure.yaml"
    text = FIGURE_6.replace("OUTER", str(outer)).replace("INNER", str(inner)).replace("ORDER", order)
    path.write_text(text)
    return analyze(load_spec([path]))


def test_figure_6_skips_three_of_four(tmp_path):
    """Four buffers side by side, rows of A one after the other: B is read where A has a nonzero."""
    found = of_figure(tmp_path, 4, 1, "[k, m]")
    reads = found.sparse.counters[0, B].reads
    assert (reads.dense, reads.actual, reads.skipped) == (16, 4, 12)
    assert found.sparse.computes.actual == 16 and found.cycles.total == 4


def test_figure_10_the_mapping_decides_what_a_saf_saves(tmp_path):
    """Mapping 1: a word of B meets a word of A. Mapping 2: a word of B stays for a column of A, which is seldom empty."""
    pair = of_figure(tmp_path, 1, 4, "[k, m]").sparse
    (own,) = pair.eliminations
    assert own.share == pytest.approx(0.75)
    # In mapping 2 a level between them keeps the word of B that is used again.
    path = tmp_path / "two.yaml"
    register = "    - !Component {name: Register, class: SRAM, attributes: {depth: 4, width: 8, datawidth: 8}}\n"
    text = FIGURE_6.replace("    - !Component {name: MAC", register + "    - !Component {name: MAC")
    text = text.replace("OUTER", "1").replace("m=INNER", "m=1").replace("ORDER", "[k, m]")
    text += "  - {target: Register, type: temporal, factors: [m=4]}\n"
    text += "  - {target: Register, type: dataspace, keep: [B], bypass: [A, Z]}\n"
    path.write_text(text)
    (column,) = analyze(load_spec([path])).sparse.eliminations
    assert (
        column.boxes == ((4, 1, 1),)
        and column.share == pytest.approx(comb(12, 4) / comb(16, 4))
        and column.share < own.share
    )


def test_figure_13_on_the_shipped_design():
    """The bars as plotted, to two decimals, of which the last may be rounded the other way."""
    for a, b, published, here in figure_13_bars():
        assert abs(here - published) < 0.006, (a, b)
