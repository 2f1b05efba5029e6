"""Operands that are arrays of a Python program: SciPy's, pydata/sparse's, NumPy's."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .errors import OperandError
from .operand import Operand
from .tensors import Tensor

__all__ = ["from_array"]

ARRAYS = "a SciPy or pydata/sparse array, a NumPy array, a file or a name"


def from_array(array: Any, name: str) -> Operand | Tensor:
    """The operand with the array's nonzeros where they are; the array stays as it is.

    Parameters
    ----------
    array: of any of SciPy's or pydata/sparse's formats, or a NumPy array; one of other than two dimensions is a :class:`Tensor`.
    name: of the operand, for tables and messages.

    Zeros of NumPy arrays are not stored. Raises OperandError for what is none of these, and for values that are no real numbers.
    """
    source = f"array {name}"
    given = array
    if hasattr(given, "asformat") and hasattr(given, "fill_value"):
        given = _from_pydata(given, source)
    if isinstance(given, np.ma.MaskedArray):
        raise OperandError(f"{source}: is masked: must be {ARRAYS}, as A.filled(0) makes of it")
    if isinstance(given, np.ndarray):
        given = _native(given, source)
        if given.ndim != 2:
            coordinates = np.argwhere(given)
            given = _tensor(name, source, given.shape, coordinates, given[tuple(coordinates.T)])
    elif isinstance(given, _Coordinates):
        places, values = given.coordinates, _native(given.values, source)
        if len(given.shape) == 2:
            given = sp.coo_array((values, tuple(places)), shape=given.shape)
        else:
            given = _tensor(name, source, given.shape, places.T, values)
    elif not sp.issparse(given):
        raise OperandError(f"{source}: is of type {type(array).__name__}: must be {ARRAYS}")
    return given if isinstance(given, Tensor) else Operand(name=name, source=source, matrix=given)


class _Coordinates(NamedTuple):
    """Of pydata/sparse: a rank a row, values, shape."""

    coordinates: Any
    values: Any
    shape: tuple[int, ...]


def _from_pydata(array: Any, source: str) -> _Coordinates:
    """COO, GCXS and DOK."""
    if array.fill_value != 0:
        raise OperandError(f"{source}: what is not stored is {array.fill_value}: must be 0")
    given = array.asformat("coo")
    return _Coordinates(given.coords, given.data, given.shape)


def _native(values: Any, source: str) -> Any:
    """Of a type that SciPy has, each value as it is: not in another machine's order of bytes, not of 16 bits."""
    if values.dtype.kind not in "fiubc":
        raise OperandError(f"{source}: values are {values.dtype}: must be real, integer or pattern")
    kind = values.dtype.newbyteorder("=")
    return values.astype(np.float32 if kind == np.float16 else kind, copy=False)


def _tensor(name: str, source: str, shape: tuple[int, ...], coordinates: Any, values: Any) -> Tensor:
    if values.dtype.kind == "c":
        raise OperandError(f"{source}: values are {values.dtype}: must be real or integer")
    if values.dtype.kind == "u" and values.size and int(values.max()) > np.iinfo(np.int64).max:
        raise OperandError(f"{source}: value {values.max()} is too large: at most {np.iinfo(np.int64).max}")
    return Tensor(
        name=name,
        source=source,
        shape=tuple(int(size) for size in shape),
        coordinates=coordinates.astype(np.int64),
        values=values.astype(np.float64 if values.dtype.kind == "f" else np.int64),
    )
