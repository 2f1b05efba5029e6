"""Operands of the size of the papers' that nobody has to download: stencils of grids, beside the names that ``load`` knows.

``stencil:NxM`` couples each point with its neighbours along each rank, ``box:NxMxL`` with all around it.
"""

import re
from functools import reduce

import numpy as np
import scipy.sparse as sp

from sw.operands import Operand, load

__all__ = ["operand"]


def operand(name: str) -> Operand:
    """The stencil of that name, or what :func:`sw.operands.load` finds. Raises OperandError as it does."""
    found = re.fullmatch(r"(stencil|box):([1-9][0-9]*(?:x[1-9][0-9]*)*)", name)
    if found is None:
        return load(name)
    sides = [int(side) for side in found[2].split("x")]
    chains = [sp.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1]) for n in sides]
    if found[1] == "box":
        matrix = reduce(sp.kron, chains)
    else:
        eyes = [sp.eye_array(n) for n in sides]
        each = [[chains[m] if m == n else eyes[m] for m in range(len(sides))] for n in range(len(sides))]
        matrix = sum(reduce(sp.kron, parts) for parts in each)
    return Operand(name=name, source=name, matrix=sp.csr_array(matrix))
