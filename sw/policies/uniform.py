"""Uniform shape: the largest square tile that would fit even if it were dense. Paper: Tailors, 2.2 (conservative)."""

from dataclasses import replace
from typing import Any

import scipy.sparse as sp

from sw.cost.candidates.share_of_b import ShareOfB, scheme_for_b
from sw.cost.partial_rows import cheaper
from sw.cost.predict import predict_rows
from sw.cost.protocol import Machine
from sw.scheme.scheme import Scheme
from sw.stats.workload import Workload

__all__ = ["uniform"]


def uniform(A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, **options: Any) -> Scheme:
    """Looks at shapes only, never at a nonzero: no tile can overflow. No options."""
    if options:
        raise TypeError(f"uniform takes no options, not {', '.join(options)}")
    (I, K), J = A.shape, B.shape[1]  # noqa: E741 - extents, as in the papers
    share = ShareOfB(design)

    def largest(limit: int, other: int | None) -> int:
        """Largest T_k for which T_k rows of ``other`` (of T_k, when None) elements fit."""
        low, high = 1, limit
        while low < high:
            T = (low + high + 1) // 2
            if T * (other or T) <= share.capacity(T):
                low = T
            else:
                high = T - 1
        return low

    side = largest(share.most_rows(10**9), None)
    if side >= J:
        T_k, T_j = largest(share.most_rows(K), J), J
    elif side >= K:
        T_k, T_j = K, min(J, max(1, share.capacity(K) // K))
    else:
        T_k, T_j = side, side
    scheme = scheme_for_b("uniform", share, (I, J, K), T_j, T_k, "ijk")
    workload = Workload(A, B, lanes=design.lanes, seed=seed)
    scheme, prediction = cheaper(workload, design, scheme, predict_rows)
    return replace(scheme, predicted=prediction.as_dict())
