"""SciPy sparse archives (``.npz``) and order-3 tensors (``.tns``)."""

import io
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .errors import OperandError
from .operand import canonical_csr

__all__ = ["read_npz", "refuse_tns"]

EXPECTED = "must be a file written by scipy.sparse.save_npz"
# The arrays of coordinates of every format: SciPy cuts off fractions silently.
PLACES = ("indices", "indptr", "row", "col", "coords", "offsets", "shape")


def read_npz(path: Path, source: str) -> sp.csr_array:
    """A matrix saved by ``scipy.sparse.save_npz``, in any of its formats. Raises OperandError."""
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
        for name in PLACES:
            if name in names and (held_as := _dtype(loaded, name)).kind not in "iu":
                raise OperandError(f"{source}: damaged matrix ({name} of type {held_as}: must be integers)")
        matrix = sp.load_npz(io.BytesIO(content))
    except OSError as error:
        raise OperandError(f"{source}: cannot be read ({error.strerror or error})") from None
    except (zipfile.BadZipFile, zlib.error, EOFError):
        raise OperandError(f"{source}: not a complete .npz archive: {EXPECTED}") from None
    except (ValueError, KeyError, NotImplementedError, TypeError, IndexError, RuntimeError) as error:
        raise OperandError(f"{source}: not a sparse matrix ({_one_line(error)}): {EXPECTED}") from None
    if matrix.format in ("csr", "csc", "bsr"):
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise OperandError(f"{source}: damaged {matrix.format.upper()} matrix ({_one_line(error)})") from None
        if matrix.format == "bsr" and any(
            size % side for size, side in zip(matrix.shape, matrix.blocksize, strict=True)
        ):
            (rows, columns), (high, wide) = matrix.shape, matrix.blocksize
            raise OperandError(f"{source}: damaged BSR matrix ({rows} x {columns} in blocks of {high} x {wide})")
    elif matrix.format == "coo" and matrix.nnz:
        for size, coordinates in zip(matrix.shape, (matrix.row, matrix.col), strict=True):
            low, high = coordinates.min(), coordinates.max()
            if low < 0 or high >= size:
                raise OperandError(f"{source}: damaged COO matrix (coordinates {low} to {high} on an axis of {size})")
    return canonical_csr(matrix, source)


def _dtype(archive: Any, name: str) -> "np.dtype[Any]":
    """Shape and type of an array in an archive, from its header."""
    with archive.zip.open(f"{name}.npy") as stream:
        short = np.lib.format.read_magic(stream) == (1, 0)
        read = np.lib.format.read_array_header_1_0 if short else np.lib.format.read_array_header_2_0
        found: np.dtype[Any] = read(stream)[2]
        return found


def refuse_tns(source: str) -> None:
    """Refuses a tensor of three or more ranks: SpGEMM takes matrices."""
    raise OperandError(f"{source}: a tensor: operands must be matrices (.mtx, .mtx.gz, .npz or a data-set name)")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:120]
