"""Mycielskian graphs: SuiteSparse's ``mycielskianN``, made instead of downloaded."""

import re

import numpy as np
import scipy.sparse as sp

from .errors import OperandError
from .memory import require_memory
from .operand import canonical_csr

__all__ = ["MYCIELSKIAN_LIMIT", "mycielskian"]

MYCIELSKIAN_LIMIT = 16


def mycielskian(argument: str, source: str) -> sp.csr_array:
    """Adjacency matrix of the Mycielskian graph of order ``argument`` (SuiteSparse's ``mycielskianN``, pattern).

    Nodes are numbered as in the construction: old nodes, their copies, the apex.
    """
    if not re.fullmatch(r"[0-9]{1,4}", argument) or not 2 <= int(argument) <= MYCIELSKIAN_LIMIT:
        raise OperandError(f"{source}: order {argument!r}: must be a whole number from 2 to {MYCIELSKIAN_LIMIT}")
    order = int(argument)
    # Each step triples the edges and adds one for each node.
    edges, nodes = 1, 2
    for _ in range(order - 2):
        edges, nodes = 3 * edges + nodes, 2 * nodes + 1
    require_memory(100 * edges, source)
    graph = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.int64))
    for _ in range(order - 2):
        ones = sp.csr_array(np.ones((graph.shape[0], 1), dtype=np.int64))
        graph = sp.csr_array(sp.block_array([[graph, graph, None], [graph, None, ones], [None, ones.T, None]]))
    return canonical_csr(graph, source)
