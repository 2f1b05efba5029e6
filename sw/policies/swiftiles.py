"""Swiftiles: tiles of which a chosen share overbooks, sized from a few samples. Paper: Tailors, section 4."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from sw.cost.candidates.share_of_b import ShareOfB, scheme_for_b
from sw.cost.partial_rows import cheaper
from sw.cost.predict import predict_rows
from sw.cost.protocol import Machine
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.stats.occupancy import sample_occupancies
from sw.stats.workload import Workload

__all__ = ["swiftiles"]


def swiftiles(
    A: sp.csr_array,
    B: sp.csr_array,
    design: Machine,
    *,
    seed: int = 0,
    y: float = 0.1,
    k: int = 10,
    **options: Any,
) -> Scheme:
    """Initial estimate b/s, a sample of such tiles, and the size scaled so that the y quantile fills the buffer.

    Parameters
    ----------
    y: share of the tiles that may overbook, in (0, 1).
    k: samples above the quantile; k / y tiles are sampled.

    The quantile is taken over all tiles, empty ones too, as the paper does. The tile grows along k, then along j; A
    streams, so that nothing bounds it along i. The capacity b shrinks with T_k by the metadata of its rows.
    """
    if options:
        raise TypeError(f"swiftiles takes the options y and k, not {', '.join(options)}")
    if isinstance(y, bool) or not isinstance(y, (int, float)) or not 0 < y < 1:
        raise SchemeError("option y", y, "a number between 0 and 1")
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise SchemeError("option k", k, "an integer of at least 1")
    (I, K), J = A.shape, B.shape[1]  # noqa: E741 - extents, as in the papers
    share = ShareOfB(design)
    workload = Workload(A, B, lanes=design.lanes, seed=seed)
    T_k, T_j = tile_shape(workload, share, y, k, np.random.default_rng(seed))
    scheme = scheme_for_b("swiftiles", share, (I, J, K), T_j, T_k, "ijk")
    scheme, prediction = cheaper(workload, design, scheme, predict_rows)
    return replace(scheme, predicted=prediction.as_dict())


def tile_shape(workload: Workload, share: ShareOfB, y: float, k: int, rng: np.random.Generator) -> tuple[int, int]:
    """``(T_k, T_j)`` by the three steps of the paper."""
    points = workload.K * workload.J
    if workload.b.nnz == 0:
        return share.shape(points, workload.J, workload.K)

    def filling(occupancy_per_point: float) -> tuple[int, int]:
        """Shape whose tile, at this occupancy, is as large as the room that the metadata of its own rows leave."""
        low, high = 1.0, float(points)
        for _ in range(40):
            middle = (low * high) ** 0.5
            T_k, T_j = share.shape(middle, workload.J, workload.K)
            if T_k * T_j * occupancy_per_point <= share.capacity(T_k):
                low = middle
            else:
                high = middle
        whole = share.shape(points, workload.J, workload.K)
        if whole[0] * whole[1] * occupancy_per_point <= share.capacity(whole[0]):
            return whole
        return share.shape(low, workload.J, workload.K)

    T_k, T_j = filling(workload.b.nnz / points)
    occupancies = np.sort(sample_occupancies(workload.b, T_k, T_j, math.ceil(k / y), rng))
    above = max(1, round(y * len(occupancies)))
    quantile = int(occupancies[max(0, len(occupancies) - above - 1)])
    if quantile == 0:  # more than 1 - y of the tiles are empty: the samples that are not empty decide
        filled = occupancies[occupancies > 0]
        quantile = int(filled[-max(1, round(y * len(filled)))]) if len(filled) else 1
    return filling(quantile / (T_k * T_j))
