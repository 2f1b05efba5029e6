"""Operands with values of a narrow integer type, drawn on the pattern of others: what an integer benchmark multiplies."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from sw.operands import load
from sw.operands.save import save

__all__ = ["drawn"]

SEED = 8


def drawn(operand: str, value: str, folder: Path) -> str:
    """Where the operand lies with a value of ``value`` at each of its nonzeros; the operand itself where that is no integer type.

    Every number of the type is drawn with the same chance, but for 0: no nonzero is lost. The file has the operand's name.
    """
    if not value.startswith("int"):
        return operand
    path = folder / f"drawn-{value}" / f"{Path(operand).stem.replace(':', '_')}.npz"
    if not path.exists():
        known = load(operand)
        half = 1 << (int(value.removeprefix("int")) - 1)
        numbers = np.random.default_rng(SEED).integers(-half, half - 1, known.matrix.nnz)
        matrix = known.matrix.copy()
        matrix.data = (numbers + (numbers >= 0)).astype(np.float64)
        path.parent.mkdir(parents=True, exist_ok=True)
        save(replace(known, matrix=matrix), path, path.name)
    return str(path)
