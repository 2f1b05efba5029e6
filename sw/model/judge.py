"""The model tier as policies may ask it: cycles of a scheme for a pair of patterns."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from sw.formats.csr import Csr
from sw.plan.plan import plan
from sw.scheme.scheme import Scheme
from sw.stats.pattern import Pattern

from .tier import simulate

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["judge"]


def judge(design: "Design") -> Callable[[Scheme, Pattern, Pattern], int]:
    """``cycles(scheme, A, B)`` for ``design``; the scheme is legal for these patterns, values do not matter."""

    def cycles(scheme: Scheme, A: Pattern, B: Pattern) -> int:
        a = _with_values(A)
        b = a if B is A else _with_values(B)
        found = simulate(design, plan(scheme, a, b, design)).cycles
        assert found is not None  # the model always says
        return found

    return cycles


def _with_values(matrix: Pattern) -> Csr:
    return Csr(
        rows=matrix.rows,
        columns=matrix.columns,
        pointers=matrix.pointers,
        coordinates=matrix.coordinates.astype(np.uint32),
        bits=np.zeros(matrix.nnz, np.uint32),
        value="int32",
    )
