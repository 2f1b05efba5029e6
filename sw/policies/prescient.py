"""Prescient uniform shape: the largest tile whose worst case fits, knowing every tile. Paper: Tailors, 2.2 and 5.1."""

from dataclasses import replace
from typing import Any

import scipy.sparse as sp

from sw.cost.candidates.share_of_b import BASE_SIDE, ShareOfB, scheme_for_b
from sw.cost.partial_rows import cheaper
from sw.cost.predict import predict_rows
from sw.cost.protocol import Machine
from sw.scheme.scheme import Scheme
from sw.stats.largest import largest_good
from sw.stats.occupancy import fits
from sw.stats.workload import Workload

__all__ = ["prescient"]


def prescient(A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, **options: Any) -> Scheme:
    """Grows B's tile along k, then along j, by binary search over exact worst occupancies. No options.

    Shapes that fit need not follow one another without a gap; what is found fits, and one more coordinate along the
    rank that ended the search does not.
    """
    if options:
        raise TypeError(f"prescient takes no options, not {', '.join(options)}")
    (I, K), J = A.shape, B.shape[1]  # noqa: E741 - extents, as in the papers
    share = ShareOfB(design)
    workload = Workload(A, B, lanes=design.lanes, seed=seed)

    def fit(T_k: int, T_j: int) -> bool:
        return fits(workload.b, T_k, T_j, share.capacity(T_k))

    T_j = min(J, BASE_SIDE)
    if not fit(1, T_j):
        T_j = largest_good(T_j, lambda T: fit(1, T))
        T_k = 1
    else:
        limit = share.most_rows_by_half(K)
        T_k = largest_good(limit, lambda T: fit(T, T_j))
        if T_k == limit:
            T_j = largest_good(J, lambda T: fit(T_k, T), least=T_j)
    scheme = scheme_for_b("prescient", share, (I, J, K), T_j, T_k, "ijk")
    scheme, prediction = cheaper(workload, design, scheme, predict_rows)
    return replace(scheme, predicted=prediction.as_dict())
