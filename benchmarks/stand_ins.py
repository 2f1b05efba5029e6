"""Matrices of the kind and the size of those that a paper has and that cannot be had, for benchmarks alone."""

import re
from functools import reduce

import numpy as np
import scipy.sparse as sp

from sw.operands import Operand, load
from sw.operands.arrays import from_array
from sw.operands.generators import GENERATORS

__all__ = ["is_generated", "operand"]

STENCILS = ("stencil", "box")
GRID = re.compile(r"[1-9][0-9]{0,5}(?:x[1-9][0-9]{0,5}){0,3}")
ROADS = re.compile(r"roads:([0-9]{1,5}):([0-9]{1,5}):(0\.[0-9]+|1)")


def is_generated(name: str) -> bool:
    """Whether a name stands for a matrix that was drawn, not found."""
    return name.partition(":")[0] in (*GENERATORS, "roads", *STENCILS)


def operand(name: str) -> Operand:
    """As :func:`sw.operands.load`; ``roads:ROWS:COLUMNS:SHARE`` besides, a grid with that share of its roads, both ways.

    Crossings are numbered along the rows, so that all nonzeros lie near the diagonal. ``stencil:NxM`` and ``box:NxMxL`` are
    grids of up to four ranks that couple each point with its neighbours along each of them, or with all around it. Raises
    OperandError, and ValueError for one of these in another form.
    """
    if name.partition(":")[0] in STENCILS:
        return _stencil(name)
    if not name.startswith("roads:"):
        return load(name)
    match = ROADS.fullmatch(name)
    if match is None:
        raise ValueError(f"{name}: must be roads:ROWS:COLUMNS:SHARE, as in roads:1400:1400:0.7")
    rows, columns = (int(word) for word in match.groups()[:2])
    crossing = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns)
    begins = np.concatenate((crossing[:, :-1].ravel(), crossing[:-1].ravel()))
    ends = np.concatenate((crossing[:, 1:].ravel(), crossing[1:].ravel()))
    drawn = np.random.default_rng(0).random(len(begins)) < float(match[3])
    begins, ends = begins[drawn], ends[drawn]
    size = rows * columns
    both = (np.concatenate((begins, ends)), np.concatenate((ends, begins)))
    found = from_array(sp.csr_array((np.ones(2 * len(begins)), both), shape=(size, size)), name)
    assert isinstance(found, Operand)
    return found


def _stencil(name: str) -> Operand:
    kind, _, grid = name.partition(":")
    if GRID.fullmatch(grid) is None:
        raise ValueError(f"{name}: must be {kind}:NxM, one to four sides, as in {kind}:500x500")
    sides = [int(side) for side in grid.split("x")]
    chains = [sp.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1]) for n in sides]
    if kind == "box":
        matrix = reduce(sp.kron, chains)
    else:
        eyes = [sp.eye_array(n) for n in sides]
        each = [[chains[m] if m == n else eyes[m] for m in range(len(sides))] for n in range(len(sides))]
        matrix = sum(reduce(sp.kron, parts) for parts in each)
    found = from_array(sp.csr_array(matrix), name)
    assert isinstance(found, Operand)
    return found
