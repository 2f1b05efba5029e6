"""Patterns that schedulers meet: even, along the diagonal, skewed, oblong, nearly empty."""

import networkx as nx
import numpy as np
import pyamg
import scipy.sparse as sp

__all__ = ["MATRICES", "banded", "empty", "mesh", "noise", "power_law"]


def canonical(matrix: sp.sparray | sp.spmatrix) -> sp.csr_array:
    csr = sp.csr_array(matrix)
    csr.sum_duplicates()
    csr.data[:] = 1
    return csr


def noise(rows: int, columns: int, density: float, seed: int = 0) -> sp.csr_array:
    return canonical(sp.random_array((rows, columns), density=density, rng=np.random.default_rng(seed)))


def banded(size: int, half_width: int) -> sp.csr_array:
    offsets = np.arange(-half_width, half_width + 1)
    return canonical(sp.diags_array([np.ones(size)] * len(offsets), offsets=offsets, shape=(size, size)))


def mesh(side: int) -> sp.csr_array:
    return canonical(pyamg.gallery.poisson((side, side), format="csr"))


def power_law(size: int, seed: int = 0) -> sp.csr_array:
    return canonical(nx.to_scipy_sparse_array(nx.barabasi_albert_graph(size, 5, seed=seed)))


def empty(rows: int, columns: int) -> sp.csr_array:
    return sp.csr_array((rows, columns))


MATRICES = {
    "noise": noise(300, 300, 0.02),
    "oblong": noise(60, 500, 0.03, 1),
    "tall": noise(500, 60, 0.03, 2),
    "banded": banded(257, 4),
    "mesh": mesh(18),
    "power_law": power_law(400),
    "one_row": noise(1, 200, 0.3, 3),
    "one_column": noise(200, 1, 0.3, 4),
    "one": canonical(np.ones((1, 1))),
    "empty": empty(7, 9),
    "dense": canonical(np.ones((20, 20))),
}
