"""Matrices made from a name: what each kind promises, the same name the same matrix, wrong names one line."""

import numpy as np
import pytest

from sw.operands import OperandError, load
from sw.operands.generators import GENERATORS


@pytest.mark.parametrize("kind", GENERATORS.values(), ids=lambda kind: kind.name)
def test_examples_work_and_repeat(kind):
    first, again = load(kind.example), load(kind.example)
    assert first.nnz and (first.matrix != again.matrix).nnz == 0
    assert first.matrix.has_canonical_format and first.matrix.dtype == np.int64
    assert first.source == kind.example and not set(":/= ") & set(first.name)


def test_rmat():
    graph = load("rmat:10:8:seed=3:values=one")
    assert graph.shape == (1024, 1024) and 4096 < graph.nnz <= 8192 and set(graph.matrix.data) == {1}
    assert (load("rmat:10:8:seed=4:values=one").matrix != graph.matrix).nnz
    # The first quadrant has the share a of the edges; those drawn twice are fewer there than drawn.
    quadrant = graph.matrix[:512, :512].nnz / graph.nnz
    assert 0.45 < quadrant < 0.6
    even = load("rmat:10:8:a=0.25:b=0.25:c=0.25").matrix
    assert abs(even[:512, :512].nnz / even.nnz - 0.25) < 0.03
    corner = load("rmat:6:4:a=0:b=0:c=1").matrix
    assert corner.nnz == 1 and corner[63, 0]


def test_banded():
    full = load("banded:50:3").matrix.toarray()
    rows, columns = np.indices(full.shape)
    assert np.array_equal(full != 0, abs(rows - columns) <= 3)
    thin = load("banded:2000:5:density=0.3:seed=1").matrix
    coordinates = thin.tocoo()
    assert abs(coordinates.row - coordinates.col).max() == 5
    assert np.all(thin.diagonal() != 0)
    assert abs((thin.nnz - 2000) / (10 * 2000) - 0.3) < 0.02
    assert load("banded:4:100").nnz == 16 and load("banded:4:0").nnz == 4


def test_dense_has_every_element_whatever_the_values():
    for values in ("int", "real"):
        matrix = load(f"dense:9:5:values={values}:seed=2").matrix
        assert matrix.shape == (9, 5) and matrix.nnz == 45 and np.all(matrix.data != 0)


def test_sources_are_one_element_a_column_in_different_rows():
    matrix = load("sources:300:40:seed=5").matrix
    assert matrix.shape == (300, 40) and matrix.nnz == 40
    assert set(np.diff(matrix.indptr)) == {0, 1} and sorted(matrix.indices) == list(range(40))
    assert list(matrix.indices) != list(range(40))  # a search may begin anywhere, not in the order of nodes
    with pytest.raises(OperandError, match="^sources:3:4: SEARCHES 4: must be at most NODES = 3$"):
        load("sources:3:4")


@pytest.mark.parametrize("density", ["0", "0.001", "0.2", "0.5", "1"])
def test_uniform(density):
    matrix = load(f"uniform:120:70:{density}").matrix
    assert matrix.shape == (120, 70) and matrix.nnz == round(float(density) * 8400)


def test_uniform_reaches_everywhere():
    """Of 200 draws of half the cells of a row each, every cell is in about half."""
    hits = sum((load(f"uniform:1:40:0.25:seed={seed}").matrix.toarray() != 0).astype(int) for seed in range(200))
    assert hits.min() > 25 and hits.max() < 80


def test_n_of_m():
    dense = load("nm:30:40:2:4:seed=5").matrix.toarray() != 0
    assert np.all(dense.reshape(30, 10, 4).sum(axis=2) == 2)
    patterns = {tuple(group) for group in dense.reshape(-1, 4)}
    assert len(patterns) == 6
    assert load("nm:3:4:4:4").nnz == 12


def test_block():
    dense = load("block:24:36:6:0.5:seed=2").matrix.toarray() != 0
    sums = dense.reshape(4, 6, 6, 6).sum(axis=(1, 3))
    assert sorted(np.unique(sums)) == [0, 36] and (sums == 36).sum() == 12


def test_values():
    assert set(load("uniform:100:100:0.5").matrix.data) == set(range(1, 10))
    real = load("uniform:100:100:0.5:values=real").matrix.data
    assert real.dtype == np.float64 and abs(real.mean()) < 0.1 and abs(real.std() - 1) < 0.1
    assert (load("uniform:9:9:0.5:values=one").matrix != 0).nnz == (load("uniform:9:9:0.5").matrix != 0).nnz


RMAT = "must be rmat:SCALE:EDGES[:a=0.57][:b=0.19][:c=0.19][:seed=0][:values=int], as in rmat:10:8:seed=1"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rmat:", f"rmat:: {RMAT}"),
        ("rmat:10", f"rmat:10: {RMAT}"),
        ("rmat:10:8:3", f"rmat:10:8:3: {RMAT}"),
        ("rmat:seed=1:10:8", f"rmat:seed=1:10:8: {RMAT}"),
        ("rmat:0:8", "rmat:0:8: SCALE '0': must be a whole number from 1 to 30"),
        ("rmat:ten:8", "rmat:ten:8: SCALE 'ten': must be a whole number from 1 to 30"),
        ("rmat:10:8:a=1.5", "rmat:10:8:a=1.5: a '1.5': must be a number from 0 to 1"),
        ("rmat:10:8:a=0.9", "rmat:10:8:a=0.9: a + b + c = 1.28: must be at most 1"),
        ("rmat:10:8:seed=-1", "rmat:10:8:seed=-1: seed '-1': must be a whole number from 0 to 4.29497e+09"),
        ("rmat:10:8:d=0.1", "rmat:10:8:d=0.1: option 'd': must be one of a, b, c, seed, values"),
        ("rmat:10:8:values=bool", "rmat:10:8:values=bool: values 'bool': must be one of int, real, one"),
        ("uniform:10:10:2", "uniform:10:10:2: DENSITY '2': must be a number from 0 to 1"),
        ("uniform:10:10:nan", "uniform:10:10:nan: DENSITY 'nan': must be a number from 0 to 1"),
        ("nm:10:10:3:2", "nm:10:10:3:2: N 3: must be at most M = 2"),
        ("nm:10:10:2:4", "nm:10:10:2:4: COLUMNS 10: must be a multiple of M = 4"),
        ("block:10:12:4:0.5", "block:10:12:4:0.5: ROWS 10: must be a multiple of SIDE = 4"),
        ("mycielskian:1", "mycielskian:1: order '1': must be a whole number from 2 to 16"),
    ],
)
def test_wrong_names_are_one_line(spec, message):
    with pytest.raises(OperandError) as caught:
        load(spec)
    assert str(caught.value) == message


@pytest.mark.parametrize("spec", ["rmat:30:4096", "banded:2000000000:1000", "uniform:2000000000:2000000000:0.5"])
def test_what_cannot_fit_is_refused_before_it_is_made(spec):
    with pytest.raises(OperandError, match=r": needs about [0-9.]+ GiB to hold, this machine has "):
        load(spec)
