"""Writing an operand to a file of any of the forms that can be read."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from gen.design import did_you_mean

from .binsparse import FORMATS, write_binsparse
from .errors import OperandError
from .operand import Operand

__all__ = ["SUFFIXES", "save"]

SUFFIXES = (".mtx", ".mtx.gz", ".npz", ".h5", ".hdf5")


def save(operand: Operand, path: Path, name: str, *, layout: str = "CSR", symmetric: bool = False) -> None:
    """Writes ``operand`` to ``path``; the form follows from ``name``, the name that the file will have.

    Parameters
    ----------
    layout: CSR, CSC or COO, for ``.npz`` and binsparse (``.h5``). symmetric: one triangle, for ``.mtx`` and binsparse.

    Raises OperandError for what the form cannot hold, OSError when the file cannot be written.
    """
    kind = next((suffix for suffix in reversed(SUFFIXES) if name.lower().endswith(suffix)), None)
    if kind is None:
        raise OperandError(f"{name}: must end in one of {', '.join(SUFFIXES)}")
    if layout not in FORMATS:
        raise OperandError(f"--format {layout}: must be one of {', '.join(FORMATS)}{did_you_mean(layout, FORMATS)}")
    if symmetric and kind == ".npz":
        raise OperandError(f"{name}: a .npz file has no symmetric form: must be .mtx, .mtx.gz or .h5")
    if layout != "CSR" and kind.startswith(".mtx"):
        raise OperandError(f"--format {layout}: must be left out for {kind}, which lists coordinates")
    matrix = operand.matrix
    if symmetric and (matrix.shape[0] != matrix.shape[1] or (matrix != matrix.T).nnz):
        raise OperandError(f"{operand.source}: is not symmetric: must be written without --symmetric")
    if kind == ".npz":
        sp.save_npz(path, matrix.asformat(layout.lower()))
    elif kind.startswith(".mtx"):
        _write_matrix_market(path, matrix, kind, symmetric)
    else:
        write_binsparse(path, matrix, layout, symmetric=symmetric, name=name)


def _write_matrix_market(path: Path, matrix: sp.csr_array, kind: str, symmetric: bool) -> None:
    """Ones are written as a pattern; 17 digits give back every float64."""
    field = "pattern" if matrix.dtype.kind == "i" and bool(np.all(matrix.data == 1)) and matrix.nnz else None
    options: dict[str, Any] = {"field": field, "symmetry": "symmetric" if symmetric else "general", "precision": 17}
    with gzip.open(path, "wb") if kind == ".mtx.gz" else path.open("wb") as stream:
        scipy.io.mmwrite(stream, matrix, **options)
