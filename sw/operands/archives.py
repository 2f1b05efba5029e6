"""SciPy sparse archives (``.npz``) and order-3 tensors (``.tns``)."""

import io
import zipfile
import zlib
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from .errors import OperandError
from .operand import canonical_csr

__all__ = ["read_npz", "refuse_tns"]

EXPECTED = "must be a file written by scipy.sparse.save_npz"


def read_npz(path: Path, source: str) -> sp.csr_array:
    """A matrix saved by ``scipy.sparse.save_npz``, in any of its formats. Raises OperandError.

    Zeros inside the blocks of a BSR matrix and the diagonals of a DIA matrix are padding, not elements.
    """
    try:
        content = path.read_bytes()
        if not content:
            raise OperandError(f"{source}: empty file: {EXPECTED}")
        if not content.startswith((b"PK", b"\x93NUMPY")):
            raise OperandError(f"{source}: not an .npz archive: {EXPECTED}")
        # From memory: NumPy leaves a file open when it meets a damaged one.
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        names = sorted(getattr(loaded, "files", []))
        if "format" not in names:
            held = ", ".join(names[:6]) or "a single array"
            raise OperandError(f"{source}: holds {held}: {EXPECTED}")
        matrix = sp.load_npz(io.BytesIO(content))
    except OSError as error:
        raise OperandError(f"{source}: cannot be read ({error.strerror or error})") from None
    except (zipfile.BadZipFile, zlib.error, EOFError):
        raise OperandError(f"{source}: not a complete .npz archive: {EXPECTED}") from None
    except (ValueError, KeyError, NotImplementedError, TypeError, IndexError) as error:
        raise OperandError(f"{source}: not a sparse matrix ({_one_line(error)}): {EXPECTED}") from None
    if matrix.format in ("csr", "csc", "bsr"):
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise OperandError(f"{source}: damaged {matrix.format.upper()} matrix ({_one_line(error)})") from None
    elif matrix.format == "coo" and matrix.nnz:
        for size, coordinates in zip(matrix.shape, (matrix.row, matrix.col), strict=True):
            low, high = coordinates.min(), coordinates.max()
            if low < 0 or high >= size:
                raise OperandError(f"{source}: damaged COO matrix (coordinates {low} to {high} on an axis of {size})")
    padded = matrix.format in ("bsr", "dia")
    converted = canonical_csr(matrix, source)
    if padded:
        converted.eliminate_zeros()
    return converted


def refuse_tns(source: str) -> None:
    """Tensors have three or more ranks, and SpGEMM takes matrices: says so."""
    raise OperandError(f"{source}: a tensor: operands must be matrices (.mtx, .mtx.gz, .npz or a data-set name)")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:120]
