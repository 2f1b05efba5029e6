"""FROSTT tensors (``.tns``, ``.tns.gz``): one element a line, its coordinates from 1 and its value."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .errors import OperandError
from .memory import require_memory

__all__ = ["Tensor", "read_tns"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Tensor:
    """A sparse tensor as read: ``coordinates`` int64[nnz, order] from 0; ``shape`` the largest of each rank and one more."""

    name: str
    source: str
    coordinates: NDArray[np.int64]
    values: NDArray[np.float64]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(size) + 1 for size in self.coordinates.max(axis=0))


def read_tns(path: Path, source: str) -> Tensor:
    """Reads a file. Raises OperandError."""
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
    name = path.name.removesuffix(".gz").removesuffix(".tns")
    return Tensor(name=name, source=source, coordinates=coordinates.astype(np.int64) - 1, values=table[:, -1])
