"""Order-3 and other tensors as read: FROSTT's text (``.tns``) and NumPy archives (``.npz``) of coordinates and values."""

import gzip
import math
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sw.formats.canonical import RangeError, sum_runs
from sw.names import shown

from .errors import OperandError
from .memory import require_memory

__all__ = ["Tensor", "read_tensor_npz", "read_tns"]

# Least arrays of an archive, as PyData's `sparse` writes them and as they are often called.
VALUES = ("values", "data")


@dataclass(frozen=True, kw_only=True, eq=False)
class Tensor:
    """A sparse tensor: ``coordinates`` int64[nnz, order] from 0; ``values`` float64 or int64; ``shape`` sizes of the ranks.

    ``place``: names the n-th nonzero for messages (``FILE:LINE``), where the source can.
    """

    name: str
    source: str
    shape: tuple[int, ...]
    coordinates: NDArray[np.int64]
    values: NDArray[Any]
    place: Callable[[int], str] | None = None

    def __str__(self) -> str:
        """As in messages."""
        return self.source

    @property
    def nnz(self) -> int:
        return len(self.values)

    def kept(self, ranks: tuple[int, ...]) -> "Tensor":
        """The tensor over these ranks (from 0) in this order; nonzeros that then fall together are summed.

        Sorted, each place once: as read, the same holds only of what the file listed so. Raises OperandError.
        """
        if len(set(ranks)) != len(ranks) or not all(0 <= rank < len(self.shape) for rank in ranks):
            said = ",".join(str(rank + 1) for rank in ranks)
            raise OperandError(f"{self.source}: ranks {said}: must be different ones from 1 to {len(self.shape)}")
        picked = self.coordinates[:, list(ranks)]
        order = np.lexsort(picked.T[::-1])
        picked, values = picked[order], self.values[order]
        new = np.ones(len(picked), np.bool_)
        new[1:] = (picked[1:] != picked[:-1]).any(axis=1)
        begins = np.flatnonzero(new)
        try:
            sums = sum_runs(values, begins, order)
        except RangeError as error:
            where = self.source if self.place is None else self.place(error.entry)
            place = ", ".join(str(index + 1) for index in self.coordinates[error.entry, list(ranks)])
            raise OperandError(f"{where}: coordinates {place}: {error.complaint}") from None
        return Tensor(
            name=self.name,
            source=self.source,
            shape=tuple(self.shape[rank] for rank in ranks),
            coordinates=picked[begins],
            values=sums,
        )


def read_tns(path: Path, source: str) -> Tensor:
    """Reads a FROSTT file: one nonzero a line, its coordinates from 1 and its value. Raises OperandError.

    The shape is that of the largest coordinates, which is all that such a file says.
    """
    try:
        require_memory(3 * path.stat().st_size, source)
        table = np.loadtxt(path, dtype=np.float64, comments="#", ndmin=2)
    except FileNotFoundError:
        raise OperandError(f"{source}: no such file") from None
    except (ValueError, EOFError, OSError) as error:
        raise OperandError(f"{source}: not a FROSTT tensor ({' '.join(str(error).split())[:120]})") from None
    if table.size == 0 or table.shape[1] < 2:
        raise OperandError(f"{source}: not a FROSTT tensor: must have coordinates and a value on each line")
    coordinates = table[:, :-1]
    if np.any(coordinates < 1) or np.any(coordinates != np.rint(coordinates)):
        raise OperandError(f"{source}: not a FROSTT tensor: coordinates must be whole numbers from 1")
    places = coordinates.astype(np.int64) - 1
    if np.isinf(table[:, -1]).any():
        _refuse_too_large(path, source)
    name = shown(path.name).removesuffix(".gz").removesuffix(".tns")
    shape = tuple(int(size) + 1 for size in places.max(axis=0))

    def place(entry: int) -> str:
        return f"{source}:{next(line for number, (line, _) in enumerate(_data_lines(path)) if number == entry)}"

    return Tensor(name=name, source=shown(source), shape=shape, coordinates=places, values=table[:, -1], place=place)


def _data_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines with elements: their numbers, from 1, and their words."""
    with gzip.open(path, "rb") if path.name.endswith(".gz") else path.open("rb") as stream:
        for line, text in enumerate(stream, 1):
            words = text.decode("latin-1").partition("#")[0].split()
            if words:
                yield line, words


def _refuse_too_large(path: Path, source: str) -> None:
    """An infinity is legal where the file says so, and an error where it is a finite number too large for float64."""
    for line, words in _data_lines(path):
        if math.isinf(float(words[-1])) and "n" not in words[-1].lower():
            shown, largest = words[-1][:40], np.finfo(np.float64).max
            raise OperandError(
                f"{source}:{line}: value {shown} is out of range: float64 holds magnitudes up to {largest:.6e}"
            )


def read_tensor_npz(path: Path, source: str) -> Tensor:
    """Reads an archive of ``coords`` (from 0, a nonzero a row or a column), ``values`` or ``data``, and ``shape``.

    That of PyData's ``sparse.save_npz`` is one. Raises OperandError.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: np.asarray(archive[name]) for name in archive.files}
    except FileNotFoundError:
        raise OperandError(f"{source}: no such file") from None
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise OperandError(f"{source}: not a NumPy archive ({' '.join(str(error).split())[:120]})") from None
    values = next((arrays[name] for name in VALUES if name in arrays), None)
    coords, shape = arrays.get("coords"), arrays.get("shape")
    if coords is None or values is None or shape is None:
        raise OperandError(f"{source}: not a tensor: must hold coords, values (or data) and shape")
    order = shape.size
    if coords.ndim != 2 or coords.dtype.kind not in "iu" or sorted(coords.shape) != sorted((order, values.size)):
        raise OperandError(
            f"{source}: coords are {coords.dtype} {coords.shape}: must be {order} x {values.size} numbers"
        )
    if coords.shape[0] != values.size or (coords.shape[0] == order and "data" in arrays):
        coords = coords.T
    if values.dtype.kind not in "fiub":
        raise OperandError(f"{source}: values are {values.dtype}: must be real or integer")
    if values.dtype.kind == "u" and values.size and int(values.max()) > np.iinfo(np.int64).max:
        raise OperandError(f"{source}: value {values.max()} is too large: at most {np.iinfo(np.int64).max}")
    coords = coords.astype(np.int64)
    if values.size and (coords.min() < 0 or np.any(coords.max(axis=0) >= shape)):
        raise OperandError(f"{source}: coordinates lie outside the shape {' x '.join(map(str, shape.tolist()))}")
    return Tensor(
        name=shown(path.name).removesuffix(".npz"),
        source=shown(source),
        shape=tuple(int(size) for size in shape),
        coordinates=coords,
        values=values.astype(np.float64 if values.dtype.kind == "f" else np.int64),
    )
