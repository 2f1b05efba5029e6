"""Rows of A that use the same rows of B, community by community: Louvain's method on the graph of rows and columns.

The library is optional (``fiberloom[communities]``): it is imported where the order is asked for.
"""

import importlib.util
from typing import Any

import numpy as np
import scipy.sparse as sp

from sw.formats.csr import Csr
from sw.scheme.errors import SchemeError
from sw.stats.pattern import Index, Pattern

__all__ = ["by_communities", "communities_here"]

_LIBRARY = "sknetwork"


def communities_here() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec(_LIBRARY) is not None


def by_communities(a: Csr | Pattern) -> Index:
    """Order of the rows of A: those of a community together, and within it those of a smaller one, level by level.

    Louvain's method (Blondel et al., Journal of Statistical Mechanics, P10008, 2008) on the bipartite graph that has a node for
    each row and each column, and an edge for each nonzero. The same every time. Raises SchemeError without the library.
    """
    if not communities_here():
        raise SchemeError("row_order", "communities", "another one without scikit-network (pip install scikit-network)")
    if not len(a.coordinates):
        return np.arange(a.rows, dtype=np.int64)
    from sknetwork.clustering import Louvain

    pattern = sp.csr_matrix((np.ones(len(a.coordinates)), a.coordinates, a.pointers), shape=(a.rows, a.columns))
    graph: Any = sp.csr_matrix(sp.block_array([[None, pattern], [pattern.T, None]]))
    step = Louvain(n_aggregations=1, return_probs=False, sort_clusters=False)
    number = np.arange(a.rows + a.columns)  # of each node's community
    levels = [number[: a.rows]]
    while True:
        joined = step.fit_predict(graph)
        if joined.max() + 1 == graph.shape[0]:
            break
        graph, number = step.aggregate_, joined[number]
        levels.append(number[: a.rows])
    # The last key counts first: the largest communities.
    order: Index = np.lexsort(levels).astype(np.int64)
    return order
