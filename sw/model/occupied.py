"""Which tiles of an operand hold anything: as a table where that is small, else as a list of those that do."""

import numpy as np
from numpy.typing import NDArray

from sw.formats.csr import Csr
from sw.formats.distinct import distinct
from sw.plan.thresholds import MOST_IN_TABLE

__all__ = ["Occupied"]


class Occupied:
    """Tiles of ``rows x columns`` coordinates of a matrix, of which there may be as many as of places in it.

    Parameters
    ----------
    table: bool[rows of tiles, columns of tiles], or ``None`` where ``keys`` are given.
    keys: int64, rising: row of tiles times columns of tiles, plus column of tiles, of those that hold anything.
    shape: rows of tiles, columns of tiles.
    """

    def __init__(self, shape: tuple[int, int], table: NDArray[np.bool_] | None, keys: NDArray[np.int64] | None) -> None:
        self.shape = shape
        self.table = table
        self.keys = np.zeros(0, np.int64) if keys is None else keys
        self._by_column: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    @classmethod
    def of(cls, matrix: Csr, rows: int, columns: int) -> "Occupied":
        """Those of a matrix."""
        shape = (-(-matrix.rows // rows), -(-matrix.columns // columns))
        filled = np.flatnonzero(np.diff(matrix.pointers))
        row_of = np.repeat(filled, matrix.pointers[filled + 1] - matrix.pointers[filled])
        keys = row_of // rows * shape[1] + matrix.coordinates.astype(np.int64) // columns
        if shape[0] * shape[1] > MOST_IN_TABLE:
            return cls(shape, None, distinct(keys))
        table = np.zeros(shape, np.bool_)
        table.ravel()[keys] = True
        return cls(shape, table, None)

    @classmethod
    def in_table(cls, table: NDArray[np.bool_]) -> "Occupied":
        """Those that a table says."""
        return cls((int(table.shape[0]), int(table.shape[1])), table, None)

    def first(self, row: int, begin: int, end: int) -> int:
        """The first column of ``begin .. end - 1`` in which a tile of this row holds anything; ``end`` where none does."""
        if self.table is not None:
            part = self.table[row, begin:end]
            at = int(part.argmax())
            return begin + at if part[at] else end
        low = row * self.shape[1]
        at = int(np.searchsorted(self.keys, low + begin))
        return min(end, int(self.keys[at]) - low) if at < len(self.keys) else end

    def in_row(self, row: int) -> NDArray[np.int64]:
        """Columns of the tiles of this row of tiles, rising."""
        if self.table is not None:
            return np.flatnonzero(self.table[row])
        first, last = np.searchsorted(self.keys, (row * self.shape[1], (row + 1) * self.shape[1]))
        return self.keys[first:last] - row * self.shape[1]

    def in_column(self, column: int) -> NDArray[np.int64]:
        """Rows of the tiles of this column of tiles, rising."""
        if self.table is not None:
            return np.flatnonzero(self.table[:, column])
        if self._by_column is None:
            columns = self.keys % self.shape[1]
            order = np.argsort(columns, kind="stable")
            self._by_column = columns[order], self.keys[order] // self.shape[1]
        columns, rows = self._by_column
        first, last = np.searchsorted(columns, (column, column + 1))
        return rows[first:last]
