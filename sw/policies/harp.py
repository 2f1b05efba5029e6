"""HARP: pseudo-tiles along i, merged into super-tiles by what the buffer holds. Paper: HYTE, section 2 and table 2."""

from typing import Any

import scipy.sparse as sp

from sw.cost.candidates.super_tiles import super_tiles
from sw.cost.protocol import Machine
from sw.plan.thresholds import HARP_ROWS, SHARES
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.shares import shared_buffer
from sw.stats.workload import Workload

__all__ = ["harp"]


def harp(
    A: sp.csr_array, B: sp.csr_array, design: Machine, *, seed: int = 0, pseudo: int = HARP_ROWS, **options: Any
) -> Scheme:
    """Merges pseudo-tiles of ``pseudo`` rows of A; one that alone asks for more than fits overbooks."""
    if options:
        raise TypeError(f"harp takes the option pseudo, not {', '.join(options)}")
    if isinstance(pseudo, bool) or not isinstance(pseudo, int) or pseudo < 1:
        raise SchemeError("option pseudo", pseudo, "an integer of at least 1")
    workload = Workload(A, B, lanes=design.lanes, seed=seed)
    return super_tiles("harp", workload, design, shared_buffer(design, SHARES["harp"][0], SHARES["harp"][2]), pseudo)
